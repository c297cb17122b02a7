"""Fixed sparse patterns of attention and the spectra of band matrices (sections 5.5.4 and 5.5.5).

A pattern is a boolean mask of shape (n, n), True where a query may see a key, as in
`attnmath.attention`. Patterns combine with | and &.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Bool, Float, Inexact, Real

from attnmath.arrays import Array, ArrayLike, Numpy
from attnmath.checks import (
    booleans,
    describe,
    exponent,
    fits_memory,
    floats,
    in_range,
    non_negative_integer,
    positive_integer,
    silent,
)
from attnmath.spectrum import row_stochastic


def window_mask(n: int, width: int) -> Bool[Numpy, "{n} {n}"]:
    """Local pattern: query i sees the keys at a distance of at most `width`.

    It has n (2 width + 1) - width (width + 1) entries, as long as width < n.

    >>> window_mask(4, 1).sum(axis=1)
    array([2, 3, 3, 2])
    """
    n, width = positive_integer(n, "n"), non_negative_integer(width, "width")
    return _distance(n) <= width


def hub_mask(n: int, hubs: int) -> Bool[Numpy, "{n} {n}"]:
    """Global pattern: everyone sees the first `hubs` positions, and these see everyone.

    >>> hub_mask(3, 1).astype(int)
    array([[1, 1, 1],
           [1, 0, 0],
           [1, 0, 0]])
    """
    n, hubs = positive_integer(n, "n"), positive_integer(hubs, "hubs")
    if hubs > n:
        raise ValueError(f"hubs: expected at most n = {n}, got {hubs}")
    fits_memory("n", n, n)
    is_hub = np.arange(n) < hubs
    return is_hub[:, None] | is_hub[None, :]


def strided_mask(n: int, stride: int) -> Bool[Numpy, "{n} {n}"]:
    """Strided pattern of Child et al. (2019), both ways: distances below `stride`, or a multiple of it.

    With a stride of about the root of n it has of the order of n^(3/2) entries.

    >>> strided_mask(5, 2)[0].astype(int)
    array([1, 1, 1, 0, 1])
    """
    n, stride = positive_integer(n, "n"), positive_integer(stride, "stride")
    distance = _distance(n)
    return (distance < stride) | (distance % stride == 0)


def masked_weights(A: Real[ArrayLike, "... n n"], mask: Bool[ArrayLike, "n n"]) -> Float[Array, "... n n"]:
    """The printed sparse attention, A * M: weights outside of the mask set to 0.

    Rows need not sum to 1 any more; see `renormalised`.

    >>> masked_weights(np.full((2, 2), 0.5), window_mask(2, 0))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    A = row_stochastic(A)
    xp = array_namespace(A)
    mask = booleans(mask, "mask", like=A)
    if tuple(mask.shape) != tuple(A.shape[-2:]):
        raise ValueError(f"mask: expected booleans of shape {tuple(A.shape[-2:])}, got {describe(mask)}")
    return xp.where(mask, A, xp.zeros_like(A))


def renormalised(A: Real[ArrayLike, "... n n"], mask: Bool[ArrayLike, "n n"]) -> Float[Array, "... n n"]:
    """A * M with its rows divided by their sums: the softmax of the masked scores.

    A row that the mask leaves without weight has no normalisation: `ValueError`.

    >>> renormalised(np.full((2, 2), 0.5), np.asarray([[True, False], [True, True]]))
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    kept = masked_weights(A, mask)
    xp = array_namespace(kept)
    sums = xp.sum(kept, axis=-1, keepdims=True)
    if bool(xp.any(sums == 0)):
        raise ValueError("mask: expected some weight left in every row, got a row without any")
    return kept / sums


def uniform_attention(mask: Bool[ArrayLike, "n m"]) -> Float[Numpy, "n m"]:
    """Attention with equal scores on a pattern: each query spreads evenly over the keys it sees.

    >>> uniform_attention(window_mask(3, 1)).round(3)
    array([[0.5  , 0.5  , 0.   ],
           [0.333, 0.333, 0.333],
           [0.   , 0.5  , 0.5  ]])
    """
    seen = np.asarray(booleans(mask, "mask"))
    if seen.ndim != 2 or not np.all(seen.any(axis=1)):
        raise ValueError(f"mask: expected booleans of shape (n, m) with a True in every row, got {describe(seen)}")
    return np.asarray(seen / seen.sum(axis=1, keepdims=True))


def tridiagonal_eigenvalues(n: int, below: float, diagonal: float, above: float) -> Inexact[Numpy, "{n}"]:
    """Eigenvalues of the tridiagonal Toeplitz matrix: a + 2 sqrt(bc) cos(k pi / (n + 1)), k = 1 ... n.

    below, diagonal, above : the constants b, a, c of the three diagonals. Complex where bc < 0.

    >>> tridiagonal_eigenvalues(2, 1.0, 0.0, 1.0).round(6)
    array([ 1., -1.])
    """
    n = positive_integer(n, "n")
    fits_memory("n", n)
    b, a, c = (float(floats(value, name, ndim=0))
               for value, name in ((below, "below"), (diagonal, "diagonal"), (above, "above")))  # fmt: skip
    with silent():
        root = _root_of_product(b, c)
        found = np.asarray(a + 2 * root * np.cos(np.arange(1, n + 1) * np.pi / (n + 1)))
    return in_range(found, "below, diagonal, above")


def window_symbol(theta: Real[ArrayLike, "*shape"], width: int) -> Float[Numpy, "*shape"]:
    """Symbol of uniform window attention: (1 + 2 sum_{k <= width} cos k theta) / (2 width + 1).

    The eigenvalues of the band matrices are distributed like its values at evenly spaced
    angles, the better the larger n is against the width.

    >>> window_symbol([0.0, np.pi], 1).round(6)
    array([ 1.        , -0.333333])
    """
    angle = floats(theta, "theta")
    width = non_negative_integer(width, "width")
    fits_memory("theta, width", angle.size, width)
    # The product with k rounds large angles, or overflows; numpy's sine and cosine reduce them exactly.
    angle = np.where(np.abs(angle) > 8, np.arctan2(np.sin(angle), np.cos(angle)), angle)
    k = np.arange(1, width + 1)
    return np.asarray((1 + 2 * np.cos(angle[..., None] * k).sum(axis=-1)) / (2 * len(k) + 1))


def _distance(n: int) -> np.ndarray:
    fits_memory("n", n, n)
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def _root_of_product(b: float, c: float) -> Any:
    """Square root of b c, imaginary where that is negative; the exponents are kept apart, so it is within range."""
    of_b, of_c = exponent(np.asarray(b)).item(), exponent(np.asarray(c)).item()
    of_b -= (of_b + of_c) % 2
    product = np.ldexp(b, -of_b) * np.ldexp(c, -of_c)
    root = np.sqrt(product + 0j) if product < 0 else np.sqrt(product)
    half = (of_b + of_c) // 2
    return root * 2.0 ** (half // 2) * 2.0 ** (half - half // 2)  # in two steps, of which neither overflows
