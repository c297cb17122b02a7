"""The task: multi-query associative recall of Arora et al. (2023).

A sequence lists pairs of a key and its value, then asks for every key once more, in another order:

    k1 v1 k2 v2 k3 v3 | k2 k1 k3     with the answers     v2 v1 v3

Keys and values are disjoint sets of tokens. Keys are distinct within a sequence, and which value belongs to
which key is new in every sequence, so nothing can be learned by heart.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import factorial

import numpy as np
from jaxtyping import Int

from attnmath.arrays import Numpy
from attnmath.checks import fits_memory, generator, positive_integer

#: Tokens that serve as keys and as values.
KEYS, VALUES = 64, 16


@dataclass(frozen=True)
class Batch:
    """Sequences of n = 3 pairs tokens, and the answers at the last `pairs` positions.

    Tokens 0 ... KEYS - 1 are keys, the next VALUES are values; answers count values from 0.
    """

    tokens: Int[Numpy, "size n"]
    answers: Int[Numpy, "size pairs"]


def draw(size: int, pairs: int, rng: np.random.Generator) -> Batch:
    """Draw sequences with so many pairs each.

    >>> batch = draw(2, 3, np.random.default_rng(0))
    >>> batch.tokens.shape, batch.answers.shape
    ((2, 9), (2, 3))
    """
    size, pairs = positive_integer(size, "size"), positive_integer(pairs, "pairs")
    if pairs > KEYS:
        raise ValueError(f"pairs: expected at most {KEYS}, the number of keys, got {pairs}")
    generator(rng)
    fits_memory("size, pairs", size, KEYS)
    keys = rng.permuted(np.tile(np.arange(KEYS), (size, 1)), axis=1)[:, :pairs]
    values = rng.integers(0, VALUES, (size, pairs))
    order = rng.permuted(np.tile(np.arange(pairs), (size, 1)), axis=1)
    listed = np.stack([keys, KEYS + values], axis=-1).reshape(size, 2 * pairs)
    asked = np.take_along_axis(keys, order, axis=1)
    return Batch(np.concatenate([listed, asked], axis=1), np.take_along_axis(values, order, axis=1))


def most_frequent(pairs: int) -> float:
    """Recall of the rule that looks nothing up: name the value that occurs most often in the sequence.

    The values are independent and uniform, so that a value occurs at most m times with probability
    D! / VALUES^D [x^D] (sum_{j <= m} x^j / j!)^VALUES, D = pairs, and the rule is right in E[largest count] of D cases.

    >>> most_frequent(1), most_frequent(2)
    (1.0, 0.53125)
    """
    pairs = positive_integer(pairs, "pairs")
    if pairs > KEYS:
        raise ValueError(f"pairs: expected at most {KEYS}, the number of keys, got {pairs}")
    at_most = [_at_most(largest, pairs) for largest in range(pairs)]
    return float(sum(1 - share for share in at_most) / pairs)


def _at_most(largest: int, pairs: int) -> Fraction:
    """Probability that no value occurs more than `largest` times."""
    ways = [Fraction(1)] + [Fraction(0)] * pairs
    for _ in range(VALUES):
        ways = [sum((ways[total - j] / factorial(j) for j in range(min(largest, total) + 1)), Fraction(0))
                for total in range(pairs + 1)]  # fmt: skip
    return ways[pairs] * factorial(pairs) / Fraction(VALUES) ** pairs
