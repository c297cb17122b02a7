"""Fixed sparse patterns of attention (sections 5.5.4, 5.5.5, report 2.3) and the spectra of band matrices.

A pattern is a boolean mask of shape (n, n), True where a query may see a key, as in
`attnmath.operator.attention`. Patterns combine with | and &.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Bool, Float, Integer, Real

from attnmath.arrays import Array, ArrayLike, Numpy
from attnmath.checks import (
    as_numpy,
    booleans,
    describe,
    fits_memory,
    flag,
    floats,
    generator,
    integers,
    non_negative_integer,
    positive_integer,
    silent,
    silently,
)
from attnmath.matrix.spectrum import row_stochastic


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
    distance, stride = _distance(n), min(stride, n)
    return (distance < stride) | (distance % stride == 0)


def factorised_strided(n: int, stride: int) -> tuple[Bool[Numpy, "{n} {n}"], Bool[Numpy, "{n} {n}"]]:
    """Both heads of strided attention (R.13), causal: the query and the `stride` positions before it; every stride-th.

    With n = q stride + r, 0 <= r < stride <= n, they have (stride + 1)(n - stride/2) and (q + 1)(q stride/2 + r)
    entries. Child et al. (2019) let no query see a later key; the report's formula of the second head does not say so.

    >>> [head[4].astype(int).tolist() for head in factorised_strided(5, 2)]
    [[0, 0, 1, 1, 1], [1, 0, 1, 0, 1]]
    """
    n, stride = positive_integer(n, "n"), positive_integer(stride, "stride")
    back, stride = _back(n), min(stride, n)
    return (back >= 0) & (back <= stride), (back >= 0) & (back % stride == 0)


def factorised_fixed(n: int, stride: int, summary: int) -> tuple[Bool[Numpy, "{n} {n}"], Bool[Numpy, "{n} {n}"]]:
    """Both heads of the fixed factorisation of Child et al. (2019), causal: the own block; the summary cells so far.

    Blocks have `stride` positions, the last `summary` of each are its summary cells. The rows of the second head before
    the first summary cell are empty: a layer of this head alone needs the residual connection.

    >>> [head[3].astype(int).tolist() for head in factorised_fixed(4, 2, 1)]
    [[0, 0, 1, 1], [0, 1, 0, 1]]
    """
    n, stride = positive_integer(n, "n"), positive_integer(stride, "stride")
    summary = positive_integer(summary, "summary")
    if summary > stride:
        raise ValueError(f"summary: expected at most stride = {stride}, got {summary}")
    earlier, place = _back(n) >= 0, np.arange(n)
    same_block = (place // stride)[:, None] == place // stride
    return earlier & same_block, earlier & (place % stride >= stride - summary)


def halving_mask(n: int) -> Bool[Numpy, "{n} {n}"]:
    """Causal pattern in which two layers reach everything, with of the order of n log n entries.

    The middle of a stretch sees the stretch before it, and is seen by the stretch after it; then both halves alike. Two
    positions j < i part at one middle m with j <= m <= i. For n = 2^k - 1 it has (k - 1) 2^k + 1 entries.

    >>> halving_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1]])
    """
    n = positive_integer(n, "n")
    fits_memory("n", n, n)
    mask = np.eye(n, dtype=bool)
    stretches = [(0, n)]
    while stretches:
        first, end = stretches.pop()
        if end - first > 1:
            middle = (first + end) // 2
            mask[middle, first:middle] = mask[middle:end, middle] = True
            stretches += [(first, middle), (middle + 1, end)]
    return mask


def block_mask(n: int, block: int) -> Bool[Numpy, "{n} {n}"]:
    """Block pattern: a query sees the keys of its own block; the last block may be shorter.

    >>> block_mask(3, 2).astype(int)
    array([[1, 1, 0],
           [1, 1, 0],
           [0, 0, 1]])
    """
    n, block = positive_integer(n, "n"), positive_integer(block, "block")
    fits_memory("n", n, n)
    number = np.arange(n) // block
    return number[:, None] == number


def random_block_mask(n: int, block: int, blocks: int, *, rng: np.random.Generator) -> Bool[Numpy, "{n} {n}"]:
    """Random block pattern: each block of queries sees itself and blocks - 1 other blocks of keys, drawn evenly.

    >>> random_block_mask(6, 2, 2, rng=np.random.default_rng(0)).sum(axis=1)
    array([4, 4, 4, 4, 4, 4])
    """
    n, block, blocks = positive_integer(n, "n"), positive_integer(block, "block"), positive_integer(blocks, "blocks")
    fits_memory("n", n, n)
    count, rng = -(-n // block), generator(rng)
    if blocks > count:
        raise ValueError(f"blocks: expected at most the {count} blocks of n = {n}, got {blocks}")
    chosen = np.zeros((count, count), dtype=bool)
    for own, row in enumerate(chosen):
        order = rng.random(count)
        order[own] = -1.0  # its own block comes first
        row[order.argsort()[:blocks]] = True
    number = np.arange(n) // block
    return chosen[np.ix_(number, number)]


def global_local_mask(
    n: int, width: int, globals_: Integer[ArrayLike, "g"], *, seen: bool = True
) -> Bool[Numpy, "{n} {n}"]:
    """Global and local pattern: the positions `globals_` see everyone, the others see `width` neighbours each side.

    seen : whether everyone sees the global positions too, as in Longformer; the report's words leave it open.

    >>> global_local_mask(4, 0, [1], seen=False).astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 1, 1],
           [0, 0, 1, 0],
           [0, 0, 0, 1]])
    """
    local = window_mask(n, width)
    positions, seen = as_numpy(integers(globals_, "globals_")), flag(seen, "seen")
    if positions.min() < 0 or positions.max() >= n:
        raise ValueError(f"globals_: expected positions from 0 to {n - 1}, got {positions.min()} to {positions.max()}")
    local[positions, :] = True
    if seen:
        local[:, positions] = True
    return local


def tiles(mask: Bool[ArrayLike, "n m"], size: int) -> Bool[Numpy, "rows columns"]:
    """Which tiles of size x size entries hold an entry of the mask: what a program that works in tiles computes.

    The tiles at the far ends may be smaller.

    >>> tiles(window_mask(4, 1), 2).sum()
    np.int64(4)
    """
    given, size = as_numpy(booleans(mask, "mask")), positive_integer(size, "size")
    if given.ndim != 2 or 0 in given.shape:
        raise ValueError(f"mask: expected booleans of shape (n, m), got {describe(given)}")
    rows = np.logical_or.reduceat(given, np.arange(0, given.shape[0], size), axis=0)
    return np.logical_or.reduceat(rows, np.arange(0, given.shape[1], size), axis=1)


def masked_weights(A: Real[ArrayLike[Array], "... n n"], mask: Bool[ArrayLike, "n n"]) -> Float[Array, "... n n"]:
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


@silently
def renormalised(A: Real[ArrayLike[Array], "... n n"], mask: Bool[ArrayLike, "n n"]) -> Float[Array, "... n n"]:
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
    seen = as_numpy(booleans(mask, "mask"))
    if seen.ndim != 2 or not np.all(seen.any(axis=1)):
        raise ValueError(f"mask: expected booleans of shape (n, m) with a True in every row, got {describe(seen)}")
    return np.asarray(seen / seen.sum(axis=1, keepdims=True))


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
    with silent():
        angle = np.where(np.abs(angle) > 8, np.arctan2(np.sin(angle), np.cos(angle)), angle)
        k = np.arange(1, width + 1)
        return np.asarray((1 + 2 * np.cos(angle[..., None] * k).sum(axis=-1)) / (2 * len(k) + 1))


def _distance(n: int) -> np.ndarray:
    return np.abs(_back(n))


def _back(n: int) -> np.ndarray:
    """How far key j lies behind query i: i - j, in the small integers that the largest n leaves enough."""
    fits_memory("n", n, n)
    place = np.arange(n, dtype=np.int16)
    return np.asarray(np.subtract.outer(place, place))
