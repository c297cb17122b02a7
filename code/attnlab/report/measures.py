"""What the report measures of each head, and the sentence of the book that explains it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnlab.heads.load import Decoders, Heads
from attnmath import sparsity
from attnmath.arrays import Numpy
from attnmath.checks import instance, non_negative_integer, silent
from attnmath.linear_cost.random_features.variance import positive_variance
from attnmath.matrix import mixing, patterns, rank, spectrum
from attnmath.matrix.sinks import sink_weight, without_key
from attnmath.operator.attention import entropy, jacobian_norm

#: A share of singular values is left out, as in the chapter on the effective rank.
TOLERANCE = 0.1
#: The rank of the approximation whose distance is measured, and the width of the window.
RANK, WINDOW = 8, 8
#: Tokens that a text needs.
LEAST = 3
#: A row is saturated where one weight is above this.
SATURATED = 0.9


@dataclass(frozen=True)
class Attention:
    """Attention weights of the heads of a model on one text, with the queries and keys that they come from.

    A : the weights.  Q, K : of the same positions.  causal : whether a token sees those up to itself alone.
    """

    A: Float[Numpy, "layers heads n n"]
    Q: Float[Numpy, "layers heads n d_k"]
    K: Float[Numpy, "layers heads n d_k"]
    causal: bool

    @property
    def n(self) -> int:
        """Number of positions."""
        return int(self.A.shape[-1])

    def without(self, key: int) -> Attention:
        """Return the attention of the other queries among the other keys."""
        key = non_negative_integer(key, "key", at_most=self.n - 1)
        Q, K = (np.delete(part, key, axis=2) for part in (self.Q, self.K))
        return Attention(without_key(self.A, key), Q, K, self.causal)

    def sink(self) -> int:
        """Return the key that the other queries put most weight on, in the mean over all heads."""
        received = (self.A * ~np.eye(self.n, dtype=bool)).sum(axis=-2).mean(axis=(0, 1))
        queries = np.arange(self.n)[::-1] if self.causal else np.full(self.n, self.n - 1)
        return int(np.argmax(received / np.maximum(queries, 1)))


def attention_of(heads: Heads) -> Attention:
    """Return the attention of the heads of a model, of at least `LEAST` tokens.

    >>> from attnlab.heads import load_heads
    >>> attention = attention_of(load_heads("sentence"))
    >>> attention.A.shape, attention.sink()
    ((6, 12, 18, 18), 0)
    """
    if instance(heads, Heads, "heads").n < LEAST:
        raise ValueError(f"heads: expected at least {LEAST} tokens, got {heads.n}")
    return Attention(heads.weights(), heads.Q, heads.K, heads.causal)


def of_decoders(decoders: Decoders) -> Attention:
    """Return the attention of several decoders, the layers of one after those of the other."""
    A, Q, K = (part.reshape(-1, *part.shape[2:]) for part in (decoders.weights(), decoders.Q, decoders.K))
    return Attention(A, Q, K, causal=True)


@dataclass(frozen=True)
class Measure:
    """One number of each head.

    title : of the section.  label : of the axis.  chapter : below ``chapters/``, without its ending.
    sentence : of that chapter, as it stands there but for markup and glosses.  how : what the number is.
    of : from the attention to a number for each head, of shape (layers, heads).
    """

    title: str
    label: str
    chapter: str
    sentence: str
    how: str
    of: Callable[[Attention], Float[Numpy, "layers heads"]]


def _lacking(given: Attention) -> Float[Numpy, "layers heads"]:
    return given.n - np.asarray(rank.numerical_rank(given.A).rank, dtype=float)


def _effective(given: Attention) -> Float[Numpy, "layers heads"]:
    return np.asarray(rank.effective_rank(spectrum.singular_values(given.A), TOLERANCE), dtype=float)


def _entropy_rank(given: Attention) -> Float[Numpy, "layers heads"]:
    return rank.entropy_rank(spectrum.singular_values(given.A))


def _distance(given: Attention) -> Float[Numpy, "layers heads"]:
    squares = spectrum.singular_values(given.A) ** 2
    return np.sqrt(squares[..., RANK:].sum(axis=-1) / squares.sum(axis=-1))


def _condition(given: Attention) -> Float[Numpy, "layers heads"]:
    with silent():  # a singular matrix has infinity
        found = np.asarray(rank.condition_number(given.A))
        return np.log10(np.minimum(found, 1 / (given.n * np.finfo(float).eps)))


def _spectral_norm(given: Attention) -> Float[Numpy, "layers heads"]:
    return np.asarray(spectrum.spectral_norm(given.A))


def _sink(given: Attention) -> Float[Numpy, "layers heads"]:
    return np.asarray(sink_weight(given.A, given.sink(), causal=given.causal))


def _entropy(given: Attention) -> Float[Numpy, "layers heads"]:
    return np.asarray(entropy(given.A)).mean(axis=-1) / math.log(2)


def _support(given: Attention) -> Float[Numpy, "layers heads"]:
    return np.asarray(sparsity.effective_support(given.A)).mean(axis=-1)


def _saturated(given: Attention) -> Float[Numpy, "layers heads"]:
    first = 1 if given.causal else 0  # the first row of a causal head has one entry
    return (given.A[..., first:, :].max(axis=-1) > SATURATED).mean(axis=-1)


def _jacobian(given: Attention) -> Float[Numpy, "layers heads"]:
    return np.asarray(jacobian_norm(given.A)).mean(axis=-1)


def _near(given: Attention) -> Float[Numpy, "layers heads"]:
    return np.asarray((given.A * patterns.window_mask(given.n, WINDOW)).sum(axis=-1)).mean(axis=-1)


def _dobrushin(given: Attention) -> Float[Numpy, "layers heads"]:
    return np.asarray(mixing.dobrushin(given.A))


def _features(given: Attention) -> Float[Numpy, "layers heads"]:
    """Decimal logarithm of the features that a standard error of a tenth needs, the median over the pairs seen."""
    root = given.Q.shape[-1] ** 0.25
    seen = np.tri(given.n, dtype=bool) if given.causal else np.ones((given.n, given.n), dtype=bool)
    found = [
        np.median(positive_variance((q / root)[:, None], (k / root)[None], relative=True, log=True)[seen])
        for q, k in zip(given.Q.reshape(-1, *given.Q.shape[2:]), given.K.reshape(-1, *given.K.shape[2:]), strict=True)
    ]
    return np.reshape(found, given.A.shape[:2]) / math.log(10) + 2


#: Every number of the report, in its order.
MEASURES = (
    Measure(
        "Exact rank", "positions less rank", "matrix/rank",
        "The normalisation keeps the rank; the exponential does not.",
        "the number of positions less the rank in double precision: 0 is full rank", _lacking,
    ),
    Measure(
        "Effective rank", f"effective rank, {TOLERANCE:.0%}", "matrix/effective_rank",
        "The effective rank says how many singular values carry nearly all of the matrix.",
        f"how many of the largest singular values have {1 - TOLERANCE:.0%} of the sum of all, equation (5.5.3)",
        _effective,
    ),
    Measure(
        "Entropy rank", "entropy rank", "matrix/effective_rank",
        "The stable rank is at most the entropy rank, and the entropy rank is at most the exact rank.",
        "the exponential of the entropy of the singular values as shares", _entropy_rank,
    ),
    Measure(
        "Distance from low rank", f"relative distance from rank {RANK}", "matrix/rank",
        "The weights of a head have full rank, and many of their singular values are tiny.",
        f"the relative error, in the Frobenius norm, of the best matrix of rank {RANK}", _distance,
    ),
    Measure(
        "Condition number", "decimal logarithm of the condition number", "matrix/condition_number",
        "A large κ can make gradients very small.",
        "the largest over the smallest singular value; what double precision cannot tell from a singular matrix stands "
        "at the top", _condition,
    ),
    Measure(
        "Spectral norm", "largest singular value", "matrix/stochastic_matrix",
        "By the theorem every norm is at least 1, so a norm above 1 is no finding.",
        "the largest singular value, at least 1 and at most the root of the number of positions", _spectral_norm,
    ),
    Measure(
        "Attention sink", "mean weight on the sink", "matrix/attention_sinks",
        "A key that collects the weight of many queries is called an attention sink.",
        "the mean weight that the other queries put on the key with the most of it", _sink,
    ),
    Measure(
        "Entropy of the rows", "mean entropy, bits", "sparsity/concentration",
        "An entropy near 0 forces one share near 1.",
        "the Shannon entropy of a row, the mean over the rows", _entropy,
    ),
    Measure(
        "Concentration", "mean effective support, tokens", "sparsity/concentration",
        "It counts the large entries of a row. Entropy counts the tail too.",
        "how many equal entries would be as concentrated, the mean over the rows", _support,
    ),
    Measure(
        "Saturation", f"share of rows with a weight above {SATURATED}", "operator/saturation",
        "Saturation depends on the differences of the scores in a row.",
        f"the share of the rows with one weight above {SATURATED}", _saturated,
    ),
    Measure(
        "What a gradient keeps", "mean Jacobian norm", "operator/softmax",
        "Two equal weights that share everything make its norm as large as it can be.",
        "the Frobenius norm of the Jacobian of softmax, the mean over the rows", _jacobian,
    ),
    Measure(
        "Locality", f"mean weight within {WINDOW} positions", "matrix/sparse_patterns",
        "Whether a window is close to what a model does depends on the model.",
        f"the weight on keys at a distance of at most {WINDOW}, the mean over the rows; this is what a window keeps",
        _near,
    ),
    Measure(
        "Forgetting", "Dobrushin coefficient", "matrix/powers",
        "The initial position is forgotten in the limit.",
        "half the largest distance of two rows: by how much one pass shrinks differences at least", _dobrushin,
    ),
    Measure(
        "Distance from random features", "decimal logarithm of the features needed", "linear_cost/random_features",
        "The features that a given error needs grow exponentially in the squared norm.",
        "the positive random features (FAVOR+) for a standard error of a tenth of the kernel, the median over the "
        "pairs of a query and a key that it sees", _features,
    ),
)  # fmt: skip
