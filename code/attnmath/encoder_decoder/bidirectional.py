"""Bidirectional attention beside causal attention at equal scores: what the causal mask alone does to a matrix.

S is a matrix of scores, shape (..., n, n). The bidirectional matrix is its softmax, row by row; the causal matrix is
the softmax of the scores that the causal mask leaves. Functions take numpy arrays and torch tensors alike and answer in
kind, unless they take numbers alone.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Float, Int, Real

from attnmath.arrays import Array, ArrayLike, Numpy
from attnmath.checks import (
    broadcast,
    constant,
    describe,
    finite,
    flag,
    floats,
    positive_integer,
    real_array,
    rounded,
    silent,
    total,
    wide,
)
from attnmath.matrix.spectrum import square
from attnmath.operator.attention import causal_mask, masked, softmax


class Pair(NamedTuple, Generic[Array]):
    """Two attention matrices of the same scores."""

    bidirectional: Float[Array, "... n n"]
    causal: Float[Array, "... n n"]


def at_equal_scores(S: Real[ArrayLike[Array], "... n n"], *, temperature: float = 1.0) -> Pair[Array]:
    """Attention weights of the same scores without a mask and under the causal mask.

    >>> both = at_equal_scores(np.zeros((2, 2)))
    >>> both.bidirectional.tolist(), both.causal.tolist()
    ([[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]])
    """
    S = square(S, "S")
    mask = causal_mask(S.shape[-1], like=S)
    return Pair(softmax(S, temperature=temperature), softmax(masked(S, mask), temperature=temperature))


def rows_won(S: Real[ArrayLike[Array], "... n n"], *, causal: bool = False) -> Int[Array, "... n"]:
    """Number of rows whose largest score is in each column; of equal scores the first one counts.

    At a temperature near 0 the weights are one-hot there. If no row has two largest scores, the singular values tend to
    the square roots of these numbers, and the rank of the limit is the number of columns that win a row.

    causal : count among the scores that the causal mask leaves.

    >>> swapped = np.asarray([[0.0, 1.0], [1.0, 0.0]])
    >>> rows_won(swapped).tolist(), rows_won(swapped, causal=True).tolist()
    ([1, 1], [2, 0])
    """
    S = square(S, "S")
    xp, n = array_namespace(S), S.shape[-1]
    if flag(causal, "causal"):
        S = masked(S, causal_mask(n, like=S))
    winners = xp.argmax(S, axis=-1)
    columns = xp.arange(n, dtype=winners.dtype, device=device(S))
    return xp.sum(xp.astype(winners[..., :, None] == columns, winners.dtype), axis=-2)


def mean_row_cosine(A: Real[ArrayLike[Array], "... n m"]) -> Float[Array, "..."]:
    """Mean cosine of the angle between two different rows, over all pairs of rows.

    A : at least two rows, none of them 0. Of weights the cosines lie between 0 and 1.
    If no pair has a cosine below c > 0, the stable rank of A is at most 1 / c.

    >>> round(float(mean_row_cosine([[1.0, 0.0], [1.0, 1.0]])), 6)
    0.707107
    """
    A = finite(real_array(A, "A", at_least=2), "A")
    n, dtype = A.shape[-2], A.dtype
    xp = array_namespace(A)
    if n < 2:
        raise ValueError(f"A: expected at least two rows, got {describe(A)}")
    largest = xp.max(xp.abs(A), axis=-1, keepdims=True)
    if bool(xp.any(largest == 0)):
        raise ValueError("A: expected no row of zeros, got one")
    A, largest = wide(A, constant(largest))
    with silent():
        A = A / largest  # so that squares keep their range
        A = A / xp.sqrt(xp.sum(A**2, axis=-1, keepdims=True))
        # The squared length of the sum of n unit rows is n plus the cosines of all ordered pairs.
        return rounded((xp.sum(total(A, axis=-2) ** 2, axis=-1) - n) / (n * (n - 1)), dtype)


def uniform_causal_bounds(n: int) -> tuple[float, float]:
    """Bounds 1 - sqrt(1 - 1/n) and 1 + sqrt(1 - 1/n) on the singular values of causal attention with n equal scores.

    Row i of that matrix, the Cesàro matrix, is 1/i at the columns 1 ... i. The product of the bounds is 1/n,
    and the first one is near 1/(2n).

    >>> uniform_causal_bounds(1)
    (1.0, 1.0)
    """
    n = positive_integer(n, "n")
    upper = 1 + (1 - 1 / n) ** 0.5
    return 1 / n / upper, upper


def two_token_margin(a: Real[ArrayLike, "*shape"], b: Real[ArrayLike, "*#shape"]) -> Float[Numpy, "*shape"]:
    """Which of two tokens' matrices has the larger stable rank and entropy rank, by sign: positive for the causal one.

    The bidirectional rows are (1 - a, a) and (1 - b, b), the causal rows (1, 0) and (1 - b, b). The number is
    (2b - a) (1 - b + b^2) - a b (1 - a).

    a, b : weights on the second token, in the open interval from 0 to 1; they broadcast.

    >>> two_token_margin([0.5, 0.9], [0.5, 0.1]) > 0
    array([ True, False])
    """
    a, b = broadcast(a=floats(a, "a"), b=floats(b, "b"))
    for values, name in ((a, "a"), (b, "b")):
        if np.any((values <= 0) | (values >= 1)):
            raise ValueError(f"{name}: expected weights between 0 and 1, got {values.min():.3g} to {values.max():.3g}")
    with silent():
        return np.asarray((2 * b - a) * (1 - b + b**2) - a * b * (1 - a))
