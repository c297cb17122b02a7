"""The two examples that run through the book: a head of four tokens for pencil and paper, and a trained head.

The sentence of the trained head is "The Rabbit actually took a watch out of its pocket, and looked at it."
The small head knows four of its words. Its numbers are chosen, not learned, so that the query of "it" matches the key
of "watch" best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Integer

from attnlab.heads.load import load_heads
from attnmath.arrays import Numpy


@dataclass(frozen=True)
class SmallHead:
    """An input, shape (4, 3), and the projections of one head, shape (3, 2) each, all of whole numbers."""

    tokens: tuple[str, ...]
    X: Integer[Numpy, "4 3"]
    W_Q: Integer[Numpy, "3 2"]
    W_K: Integer[Numpy, "3 2"]
    W_V: Integer[Numpy, "3 2"]

    @property
    def Q(self) -> Integer[Numpy, "4 2"]:
        """The queries X W_Q, equation (5.1.2)."""
        return self.X @ self.W_Q

    @property
    def K(self) -> Integer[Numpy, "4 2"]:
        """The keys X W_K."""
        return self.X @ self.W_K

    @property
    def V(self) -> Integer[Numpy, "4 2"]:
        """The values X W_V."""
        return self.X @ self.W_V


def four_tokens() -> SmallHead:
    """Return the head of four tokens with d_model = 3 and d_k = 2.

    >>> head = four_tokens()
    >>> head.Q @ head.K.T
    array([[ 0, -1,  2,  2],
           [-2,  3,  2,  0],
           [-1,  1,  2,  1],
           [-1,  0,  4,  3]])
    """
    X = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]])
    W_Q = np.array([[0, 1], [2, -1], [1, 0]])
    W_K = np.array([[-1, 0], [1, -1], [2, 2]])
    W_V = np.array([[2, 0], [0, 2], [-1, 1]])
    return SmallHead(("rabbit", "took", "watch", "it"), X, W_Q, W_K, W_V)


#: The trained head of the examples: layer and head, counted from 0.
LAYER, HEAD = 5, 11


def trained_head() -> tuple[tuple[str, ...], Float[Numpy, "n d_k"], Float[Numpy, "n d_k"]]:
    """Return the tokens of the sentence, and the queries and the keys of the trained head on it.

    >>> tokens, Q, K = trained_head()
    >>> len(tokens), Q.shape
    (18, (18, 32))
    """
    heads = load_heads("sentence")
    return heads.tokens, heads.Q[LAYER, HEAD], heads.K[LAYER, HEAD]
