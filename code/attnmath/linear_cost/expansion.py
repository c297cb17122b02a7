"""Softmax attention expanded about one query: deterministic attention in time O(n).

A score is split at a query c, which is one for all rows: q . k = c . k + (q - c) . k. The first part gives each key
the weight p_j that it has for the query c, exactly. The second part is small for queries near c, and its exponential
is replaced by a Taylor polynomial. A vector that is taken off all keys, here their mean under p, changes no weight.
"""

from __future__ import annotations

import math

from array_api_compat import array_namespace
from jaxtyping import Float, Real

from attnmath.arrays import AnyArray, Array, ArrayLike
from attnmath.checks import (
    concat,
    describe,
    finite,
    fits_memory,
    flag,
    in_range,
    matmul,
    non_negative_integer,
    positive,
    real_array,
    rounded,
    same_batches,
    same_dtype,
    silent,
    total,
    wide,
)
from attnmath.linear_cost.feature_maps import feature_count, taylor_features
from attnmath.linear_cost.kernels import linear_attention
from attnmath.operator.attention import softmax

#: Queries whose features of the second order and above are held at once.
ROWS = 1024


def expanded_attention(
    Q: Real[ArrayLike[Array], "... n d_k"],
    K: Real[ArrayLike[Array], "... m d_k"],
    V: Real[ArrayLike[Array], "... m d_v"],
    *,
    centre: Real[ArrayLike[Array], "d_k"] | None = None,
    order: int = 1,
    scale: float | None = None,
    causal: bool = False,
) -> Float[Array, "... n d_v"]:
    """Softmax attention with the Taylor polynomial about the query c: the weights are p_j T(t_j) over their sum.

    p is the softmax of scale c . k_j, t_j = scale (q - c) . (k_j - b), b the mean of the keys under p, and T the
    Taylor polynomial of exp. At the order 1 the sum is 1, and the row is sum_j p_j v_j + scale (q - c)^T C with the
    covariance C of keys and values under p. A query q = c has its exact row at every order.

    centre : c, the mean of the queries unless given.
    order : of T; it takes C(d_k + order, order) features. Weights may be negative at odd orders, and not at even ones.
    scale : of the scores, 1/sqrt(d_k) unless given.
    causal : query i takes the keys j <= i only (n = m), and p and b are those of these keys. It needs the order 1, and
        a centre of its own: the mean of the queries would know the future. Keys whose weight for the centre exceeds
        that of the first one by a factor above 10^300 are a `ValueError`.

    >>> import numpy as np
    >>> expanded_attention([[0.0], [2.0]], [[1.0], [-1.0]], [[1.0], [0.0]], scale=0.1, centre=[0.0])
    array([[0.5],
           [0.6]])
    """
    Q, K, V = (finite(real_array(a, name, at_least=2), name) for a, name in ((Q, "Q"), (K, "K"), (V, "V")))
    same_dtype(Q=Q, K=K, V=V)
    same_batches(Q=Q, K=K, V=V)
    if Q.shape[-1] != K.shape[-1]:
        raise ValueError(f"Q, K: expected the same last axis d_k, got Q {describe(Q)} and K {describe(K)}")
    if V.shape[-2] != K.shape[-2]:
        raise ValueError(f"V: expected {K.shape[-2]} rows, one for each key, got {describe(V)}")
    order, causal = non_negative_integer(order, "order", at_most=20), flag(causal, "causal")
    root = math.sqrt(1 / math.sqrt(Q.shape[-1]) if scale is None else positive(scale, "scale"))
    xp, dtype = array_namespace(Q, K, V), V.dtype
    c = _centre(centre, Q, causal)
    Q, K, V, c = wide(Q, K, V, c)
    with silent():
        K = K - K[..., :1, :]  # what all keys share changes no weight, and would cost digits
        X, Y, c = ((Q - c) * root, K * root, c * root)
        logits = in_range(matmul(Y, xp.matrix_transpose(c)), "Q, K, scale, centre")
        if causal:
            if order != 1 or Q.shape[-2] != K.shape[-2]:
                raise ValueError(
                    f"causal: expected the order 1 and as many queries as keys, got the order {order}, "
                    f"{describe(Q)} and {describe(K)}"
                )
            return rounded(_causal(X, Y, V, logits), dtype, "Q, K, V, scale, centre")
        p = softmax(logits, axis=-2)
        Y = Y - total(p * Y, axis=-2, keepdims=True)
        if order == 1:
            out = total(p * V, axis=-2, keepdims=True) + matmul(X, matmul(xp.matrix_transpose(p * Y), V))
        else:
            out = _by_features(X, Y, V, p, order)
        return rounded(out, dtype, "Q, K, V, scale, centre")


def _centre(centre: ArrayLike | None, Q: AnyArray, causal: bool) -> AnyArray:
    """Return the query to expand about, as one row."""
    if centre is None:
        if causal:
            raise ValueError("centre: expected a query to expand about (the mean of all queries knows the future)")
        (Q,) = wide(Q)
        return total(Q, axis=-2, keepdims=True) / Q.shape[-2]
    c = finite(real_array(centre, "centre", ndim=1), "centre")
    same_dtype(Q=Q, centre=c)
    if c.shape[0] != Q.shape[-1]:
        raise ValueError(f"centre: expected {Q.shape[-1]} entries, as Q has columns, got {describe(c)}")
    return c[None, :]


def _by_features(X: AnyArray, Y: AnyArray, V: AnyArray, p: AnyArray, order: int) -> AnyArray:
    """Return sum_j p_j T(x . y_j) v_j over the sum of its weights, by Taylor features."""
    fits_memory("Q, K, order", max(Y.shape[-2], ROWS), feature_count(Y.shape[-1], order))
    xp = array_namespace(X, Y, V)
    V = concat([V, xp.ones_like(V[..., :1])], axis=-1)  # the last column sums the weights
    state = matmul(xp.matrix_transpose(taylor_features(Y, order) * p), V)
    rows = (X[..., low : low + ROWS, :] for low in range(0, X.shape[-2], ROWS))
    out = concat([matmul(taylor_features(part, order), state) for part in rows], axis=-2)
    if bool(xp.any(out[..., -1:] == 0)):
        raise ValueError("Q, K, order: expected weights that do not sum to 0, got a query for which they do")
    return out[..., :-1] / out[..., -1:]


def _causal(X: AnyArray, Y: AnyArray, V: AnyArray, logits: AnyArray) -> AnyArray:
    """Return the rows of the order 1 over the keys up to each query, by running sums in double precision.

    With running means under p, the row is mean(v) + x . (mean(y v^T) - mean(y) mean(v)^T). Weights are taken relative
    to the first key, which every query sees: a maximum over all keys would know the future.
    """
    xp, dtype = array_namespace(X, Y, V), V.dtype
    X, Y, V, logits = (xp.astype(a, xp.float64) for a in (X, Y, V, logits))
    w = in_range(xp.exp(logits - logits[..., :1, :]), "Q, K, V, scale, centre")
    sums = xp.cumulative_sum(w, axis=-2)
    mean_y, mean_v = (xp.cumulative_sum(w * a, axis=-2) / sums for a in (Y, V))
    moved = linear_attention(X, w * Y, V, _as_given, causal=True, normalise=False) / sums
    return xp.astype(mean_v + moved - xp.sum(X * mean_y, axis=-1, keepdims=True) * mean_v, dtype)


def _as_given(features: AnyArray) -> AnyArray:
    return features
