"""Attention by random features in time O(n): the weight of key j for query i is the estimate of exp(scale q_i . k_j).

Each feature is a value times exp(exponent). The largest exponent that a feature has over the keys is taken out of its
keys and given to the queries, and then the largest over the features out of each query. A query's factor cancels in
the quotient, so both shifts leave the output as it is; and where all values are positive the denominator is at least 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Float, Real

from attnmath.arrays import AnyArray, Array, ArrayLike
from attnmath.checks import (
    concat,
    constant,
    describe,
    finite,
    fits_memory,
    flag,
    in_range,
    instance,
    matmul,
    positive,
    positive_integer,
    real_array,
    rounded,
    same_batches,
    same_dtype,
    silent,
    wide,
)
from attnmath.linear_cost.random_features.maps import RandomFeatures

#: Features of `kernel_estimate` that are held at once, for queries and for keys.
AT_ONCE = 2**20


def kernel_estimate(
    X: Real[ArrayLike[Array], "... n d"], Y: Real[ArrayLike[Array], "... m d"], features: RandomFeatures
) -> Float[Array, "... n m"]:
    """Estimates of exp(x . y) for all rows x of X and y of Y: the products of their features, summed over the features.

    Computed in double precision. An estimate comes out as 0 if it is below the range of the dtype, or below 10^-300 of
    the largest in its row, or so.

    >>> from attnmath.linear_cost.random_features.maps import positive
    >>> kernel_estimate([[0.0]], [[0.0], [1.0]], positive([[0.5], [-0.5]])).round(6)
    array([[1.     , 0.68394]])
    """
    X, Y = _vectors(X, Y, features, "X", "Y")
    fits_memory("X, Y", X.shape[-2], Y.shape[-2])
    xp, dtype = array_namespace(X, Y), X.dtype
    X, Y = xp.astype(X, xp.float64), xp.astype(Y, xp.float64)
    of_a_row = math.prod(np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])) * len(features.offset)
    step = max(1, AT_ONCE // of_a_row)
    with silent():
        estimate = concat(
            (concat((_estimate(x, y, features) for y in _by_rows(Y, step)), axis=-1) for x in _by_rows(X, step)),
            axis=-2,
        )
        return rounded(in_range(estimate, "X, Y, features"), dtype, "X, Y, features")


def _by_rows(X: AnyArray, step: int) -> Iterator[AnyArray]:
    return (X[..., low : low + step, :] for low in range(0, X.shape[-2], step))


def _estimate(X: AnyArray, Y: AnyArray, features: RandomFeatures) -> AnyArray:
    xp = array_namespace(X, Y)
    values, exponents, rows = features.key_parts(Y)
    exponents = exponents + rows
    shift = constant(xp.max(exponents, axis=-2, keepdims=True))
    F_k = _times(values, xp.exp(exponents - shift))
    values, exponents, rows = features.query_parts(X)
    exponents = exponents + (shift + 2 * features.offsets(X))
    top = constant(xp.max(exponents, axis=-1, keepdims=True))
    F_q = _times(values, xp.exp(exponents - top))
    return matmul(F_q, xp.matrix_transpose(F_k)) * xp.exp(rows + top)


def attention_estimate(
    Q: Real[ArrayLike[Array], "... n d_k"],
    K: Real[ArrayLike[Array], "... m d_k"],
    features: RandomFeatures,
    *,
    scale: float | None = None,
    causal: bool = False,
) -> Float[Array, "... n m"]:
    """The attention weights that `performer_attention` gives without forming them: its output for V = I.

    >>> from attnmath.linear_cost.random_features.maps import positive
    >>> attention_estimate([[0.0]], [[0.0], [0.0]], positive([[0.5]]))
    array([[0.5, 0.5]])
    """
    Q, K = _vectors(Q, K, features, "Q", "K")
    xp, m = array_namespace(Q, K), K.shape[-2]
    fits_memory("Q, K", m, Q.shape[-2])
    keys, step = xp.arange(m, device=device(K)), max(Q.shape[-2:])  # columns of I that take no more than Q K^T or K
    columns = (xp.astype(keys[:, None] == keys[low : low + step], K.dtype) for low in range(0, m, step))
    parts = [performer_attention(Q, K, V, features, scale=scale, causal=causal) for V in columns]
    return concat(parts, axis=-1)


def performer_attention(
    Q: Real[ArrayLike[Array], "... n d_k"],
    K: Real[ArrayLike[Array], "... m d_k"],
    V: Real[ArrayLike[Array], "... m d_v"],
    features: RandomFeatures,
    *,
    scale: float | None = None,
    causal: bool = False,
    chunk: int = 256,
) -> Float[Array, "... n d_v"]:
    """Attention with the estimated kernel in time O(n): the report's section 3.3.3, stable.

    features : a map of `attnmath.linear_cost.random_features.maps`, of q sqrt(scale) and of k sqrt(scale).
    scale : of the scores, 1/sqrt(d_k) unless given (the report has none: 1).
    causal : query i takes the keys j <= i only (n = m); what comes later does not change it.
    chunk : rows worked on at once. The memory beside the arguments, the result and a few copies of V and of the result
        is O(chunk * r + r * d_v), and chunk^2 numbers more in the causal form.

    There is no epsilon in the denominator. Trigonometric weights may be negative, and so may their sum: the
    signs are kept, and a query whose weights sum to 0 has no mean, which is a `ValueError`.

    >>> from attnmath.linear_cost.random_features.maps import positive
    >>> performer_attention([[0.0]], [[0.0], [0.0]], [[1.0], [5.0]], positive([[0.5]]))
    array([[3.]])
    """
    Q, K = _vectors(Q, K, features, "Q", "K")
    V = finite(real_array(V, "V", at_least=2), "V")
    same_dtype(K=K, V=V)
    same_batches(Q=Q, K=K, V=V)
    causal, chunk = flag(causal, "causal"), positive_integer(chunk, "chunk")
    root = math.sqrt(1 / math.sqrt(Q.shape[-1]) if scale is None else positive(scale, "scale"))
    if V.shape[-2] != K.shape[-2]:
        raise ValueError(f"V: expected {K.shape[-2]} rows, one for each key, got {describe(V)}")
    if causal and Q.shape[-2] != K.shape[-2]:
        raise ValueError(f"causal: expected as many queries as keys, got {describe(Q)} and {describe(K)}")
    xp, dtype = array_namespace(Q, K, V), V.dtype
    Q, K, V = wide(Q, K, V)
    with silent():
        V = concat([V, xp.ones_like(V[..., :1])], axis=-1)  # the last column sums the weights
        out = (_causal if causal else _all_keys)(Q, K, V, features, root, chunk)
        sums = in_range(out[..., -1:], "Q, K, scale, features")
        if bool(xp.any(sums == 0)):
            raise ValueError("Q, K, features: expected weights that do not sum to 0, got a query for which they do")
        return rounded(out[..., :-1] / sums, dtype, "Q, K, V, scale, features")


def _all_keys(Q: AnyArray, K: AnyArray, V: AnyArray, features: RandomFeatures, root: float, chunk: int) -> AnyArray:
    """Return the weighted sums of the rows of V, each query's up to a factor."""
    xp = array_namespace(Q, K, V)
    shift = state = None
    for low in range(0, K.shape[-2], chunk):
        values, exponents, rows = features.key_parts(K[..., low : low + chunk, :] * root)
        exponents = exponents + rows
        top = constant(xp.max(exponents, axis=-2, keepdims=True))
        new = top if shift is None else xp.maximum(shift, top)
        F_k = _times(values, xp.exp(exponents - new))
        added = matmul(xp.matrix_transpose(F_k), V[..., low : low + chunk, :])
        state = added if state is None else state * xp.matrix_transpose(xp.exp(shift - new)) + added
        shift = new
    shift = shift + 2 * features.offsets(Q)
    blocks = (Q[..., low : low + chunk, :] * root for low in range(0, Q.shape[-2], chunk))
    return concat([matmul(_query_features(features, block, shift), state) for block in blocks], axis=-2)


def _causal(Q: AnyArray, K: AnyArray, V: AnyArray, features: RandomFeatures, root: float, chunk: int) -> AnyArray:
    """Return what `_all_keys` does, over the keys j <= i.

    Keys are shifted by the largest exponent of each feature up to the first row of a chunk, which is in the past of
    every query there, so that no shift knows the future. Where a later row of the chunk rises above it by more than
    `rise`, that row and those after it are computed again with the shift up to that row.
    """
    xp = array_namespace(Q, K, V)
    rise = math.log(xp.finfo(V.dtype).max) / 4
    shift = state = None
    out = []
    for low in range(0, K.shape[-2], chunk):
        here = (..., slice(low, low + chunk), slice(None))
        values, exponents, rows = features.key_parts(K[here] * root)
        exponents = exponents + rows
        top = constant(xp.max(exponents, axis=-2, keepdims=True))
        X, V_here = Q[here] * root, V[here]
        size, start = X.shape[-2], 0
        visible = xp.tril(xp.ones((size, size), dtype=V.dtype, device=device(V)))
        while start < size:
            now = constant(xp.max(exponents[..., : start + 1, :], axis=-2, keepdims=True))
            now = now if shift is None else xp.maximum(shift, now)
            ahead = exponents - now
            stop = _first_row(ahead > rise) if bool(xp.any(top - now > rise)) else size
            F_k = _times(values, xp.exp(ahead if stop == size else xp.clip(ahead, max=rise)))
            F_q = _query_features(features, X, now + 2 * features.offsets(X))
            sums = matmul(matmul(F_q, xp.matrix_transpose(F_k)) * visible, V_here)
            if state is not None:
                sums = sums + matmul(F_q, state * xp.matrix_transpose(xp.exp(shift - now)))
            out.append(sums[..., start:stop, :])
            start = stop
        added = matmul(xp.matrix_transpose(F_k), V_here)
        state = added if state is None else state * xp.matrix_transpose(xp.exp(shift - now)) + added
        shift = xp.maximum(now, top)
        state = state * xp.matrix_transpose(xp.exp(now - shift))
    return concat(out, axis=-2)


def _query_features(features: RandomFeatures, X: AnyArray, shift: AnyArray) -> AnyArray:
    """Return the features of queries with the keys' shift, times a factor: the largest exponential is 1."""
    xp = array_namespace(X)
    values, exponents = features.query_directions(X)
    exponents = exponents + shift
    return _times(values, xp.exp(exponents - constant(xp.max(exponents, axis=-1, keepdims=True))))


def _first_row(mask: AnyArray) -> int:
    """Return the first row that holds a True, in any batch."""
    xp = array_namespace(mask)
    rows = xp.any(xp.reshape(xp.any(mask, axis=-1), (-1, mask.shape[-2])), axis=0)
    return int(xp.argmax(xp.astype(rows, xp.int64)))


def _times(values: AnyArray | None, exponentials: AnyArray) -> AnyArray:
    return exponentials if values is None else values * exponentials


def _vectors(
    X: AnyArray, Y: AnyArray, features: RandomFeatures, x: str, y: str
) -> tuple[Float[AnyArray, "... n d"], Float[AnyArray, "... m d"]]:
    X, Y = finite(real_array(X, x, at_least=2), x), finite(real_array(Y, y, at_least=2), y)
    same_dtype(**{x: X, y: Y})
    same_batches(**{x: X, y: Y})
    instance(features, RandomFeatures, "features").check(X, x)
    features.check(Y, y)
    return X, Y
