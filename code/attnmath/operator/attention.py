"""Softmax, its Jacobian and entropy, and scaled dot-product attention with its masks.

Every function takes numpy arrays or torch tensors and answers in kind; batches stand in
front. The names are the textbook's: Q, K, V with d_k and d_v columns, S the scores,
P the attention weights, O the output (section 5.1.6).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Bool, Float, Integer, Real, Shaped

from attnmath.arrays import AnyArray, Array, ArrayLike
from attnmath.checks import (
    about,
    axis_of,
    booleans,
    constant,
    describe,
    finite,
    fits_memory,
    in_range,
    integers,
    matmul,
    positive,
    positive_integer,
    probabilities,
    real_array,
    root,
    rounded,
    same_batches,
    same_dtype,
    scaled_product,
    silent,
    total,
    wide,
)


def softmax(x: Real[ArrayLike[Array], "*shape"], *, axis: int = -1, temperature: float = 1.0) -> Float[Array, "*shape"]:
    """Softmax along an axis, equation (5.1.6): exp(x_i / T) / sum_j exp(x_j / T).

    x : logits; -inf marks a position that gets weight 0.
    temperature : T > 0, in the units of x.

    Shifting by the maximum leaves the value as it is and keeps every exponential in [0, 1],
    so finite logits of any size are safe. A slice whose every logit is -inf has no softmax:
    `ValueError`.

    >>> softmax(np.asarray([0.0, np.log(3.0)]))
    array([0.25, 0.75])
    >>> softmax([1e308, -1e308, 1e308])
    array([0.5, 0. , 0.5])
    """
    x = real_array(x, "x", at_least=1)
    temperature = positive(temperature, "temperature")
    xp, dtype = array_namespace(x), x.dtype
    axis = axis_of(x, axis, "x")
    (x,) = wide(x)
    top = constant(xp.max(x, axis=axis, keepdims=True))
    if bool(xp.any(top == -math.inf)):
        raise ValueError("x: expected a finite logit in every slice, got one that is -inf throughout (fully masked)")
    with silent():
        if temperature > 1:  # the difference may be out of range where its quotient is not
            weights = xp.exp(2 * _quotient(x / 2 - top / 2, temperature))
        else:
            weights = xp.exp(_quotient(x - top, temperature))
        return rounded(weights / total(weights, axis=axis, keepdims=True), dtype)


def softmax_jacobian(y: Real[ArrayLike[Array], "... n"]) -> Float[Array, "... n n"]:
    """Jacobian of softmax at its output y, equation (5.1.8): diag(y) - y y^T.

    y : probabilities along the last axis.

    >>> softmax_jacobian(np.asarray([0.25, 0.75]))
    array([[ 0.1875, -0.1875],
           [-0.1875,  0.1875]])
    """
    y = probabilities(y, "y")
    fits_memory("y", *y.shape, y.shape[-1])
    xp = array_namespace(y)
    with silent():
        diagonal = y[..., :, None] * xp.eye(y.shape[-1], dtype=y.dtype, device=device(y))
        return diagonal - y[..., :, None] * y[..., None, :]


def jacobian_norm(y: Real[ArrayLike[Array], "... n"]) -> Float[Array, "..."]:
    """Frobenius norm of the softmax Jacobian at output y, accurate where it nearly vanishes.

    y : probabilities along the last axis. The square is
    sum_i y_i^2 ((1 - y_i)^2 + sum_{j != i} y_j^2), a sum of non-negative terms. For the
    largest y_i both 1 - y_i and the sum are taken from the others, and for these y_i <= 1/2,
    so nothing cancels near saturation (the printed diagonal y_i (1 - y_i) rounds to 0 there).
    Memory is a few times that of y. At a one-hot y, where the norm is 0 and has a kink, its
    derivative is taken as 0.

    >>> round(float(jacobian_norm(np.asarray([0.5, 0.5]))), 12)
    0.5
    """
    y = probabilities(y, "y")
    xp, dtype = array_namespace(y), y.dtype
    (y,) = wide(y)
    with silent():
        is_top = xp.arange(y.shape[-1], device=device(y)) == xp.argmax(y, axis=-1, keepdims=True)
        others = xp.where(is_top, xp.zeros_like(y), y)
        top = xp.sum(y - others, axis=-1)
        unit = constant(xp.max(others, axis=-1, keepdims=True))  # the squares of small ones may underflow
        z = others / xp.where(unit > 0, unit, xp.ones_like(unit))
        of_top = top**2 * (xp.sum(z, axis=-1) ** 2 + xp.sum(z**2, axis=-1))
        rest = (1 - others) ** 2 + (xp.sum(y**2, axis=-1, keepdims=True) - others**2)
        return rounded(unit[..., 0] * root(of_top + xp.sum(z**2 * rest, axis=-1)), dtype)


def entropy(p: Real[ArrayLike[Array], "... n"]) -> Float[Array, "..."]:
    """Shannon entropy -sum_i p_i log p_i of distributions, in nats; 0 log 0 is 0.

    p : probabilities along the last axis. The result is between 0 and log n.
    At p_i = 0 the derivative is infinite; autograd gives 0 there.

    >>> round(float(entropy(np.asarray([0.5, 0.5, 0.0]))), 6)
    0.693147
    """
    p = probabilities(p, "p")
    xp, dtype = array_namespace(p), p.dtype
    (p,) = wide(p)
    logs = xp.log(xp.where(p > 0, p, xp.ones_like(p)))
    with silent():
        return rounded(-xp.sum(xp.where(p > 0, p * logs, xp.zeros_like(p)), axis=-1), dtype)


def scores(
    Q: Real[ArrayLike[Array], "... n d_k"], K: Real[ArrayLike[Array], "... m d_k"], *, scale: float | None = None
) -> Float[Array, "... n m"]:
    """Scaled scores S = scale * Q K^T, equation (5.1.3); the scale is 1/sqrt(d_k) unless given.

    Q : queries.  K : keys.

    >>> scores(np.asarray([[1.0, 2.0, 2.0, 0.0]]), np.asarray([[2.0, 1.0, 0.0, 5.0]]))
    array([[2.]])
    """
    S, dtype, names = _scores(Q, K, scale)
    return rounded(S, dtype, names)


def attention_weights(
    Q: Real[ArrayLike[Array], "... n d_k"],
    K: Real[ArrayLike[Array], "... m d_k"],
    *,
    mask: Bool[ArrayLike, "..."] | None = None,
    scale: float | None = None,
) -> Float[Array, "... n m"]:
    """Attention weights P = softmax(scale * Q K^T), the row-stochastic matrix of (5.1.1).

    mask : boolean, broadcast to (..., n, m); True where a query may see a key.
    A query that may see no key has no weights: `ValueError`.

    >>> Q = K = np.asarray([[2.0], [0.0]])
    >>> attention_weights(Q, K, mask=causal_mask(2))
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    P, dtype = _weights(Q, K, mask, scale)
    return rounded(P, dtype)


def attention(
    Q: Real[ArrayLike[Array], "... n d_k"],
    K: Real[ArrayLike[Array], "... m d_k"],
    V: Real[ArrayLike[Array], "... m d_v"],
    *,
    mask: Bool[ArrayLike, "..."] | None = None,
    scale: float | None = None,
) -> Float[Array, "... n d_v"]:
    """Scaled dot-product attention O = softmax(Q K^T / sqrt(d_k)) V, equation (5.1.1).

    Q : queries.  K : keys.  V : values.  mask, scale : as in `attention_weights`.

    >>> attention(np.zeros((1, 3)), np.zeros((2, 3)), np.asarray([[1.0], [5.0]]))
    array([[3.]])
    """
    V = finite(real_array(V, "V", at_least=2), "V")
    P, dtype = _weights(Q, K, mask, scale)
    if V.dtype != dtype:
        same_dtype(Q=rounded(P, dtype), V=V)
    if V.shape[-2] != P.shape[-1]:
        raise ValueError(f"V: expected {P.shape[-1]} rows, one for each key, got {describe(V)}")
    same_batches(Q=P, V=V)
    with silent():
        return rounded(matmul(P, *wide(V)), dtype, "V")


def masked(S: Real[ArrayLike[Array], "*shape"], mask: Bool[ArrayLike, "*#shape"]) -> Float[Array, "*shape"]:
    """Put -inf where the mask is False, equation (5.1.9) with the mask of (5.1.10) or (5.1.11).

    S : scores, one row for each query.  mask : broadcast to their shape.

    >>> masked(np.asarray([[1.0, 2.0]]), np.asarray([[True, False]]))
    array([[  1., -inf]])
    """
    S = real_array(S, "S", at_least=1)
    xp = array_namespace(S)
    mask = booleans(mask, "mask", like=S)
    try:
        shape = np.broadcast_shapes(tuple(S.shape), tuple(mask.shape))
    except ValueError:
        shape = ()
    if shape != tuple(S.shape):
        raise ValueError(f"mask: expected a shape that broadcasts to {tuple(S.shape)}, got {describe(mask)}")
    return xp.where(mask, S, xp.full_like(S, -math.inf))


def causal_mask(n: int, *, like: Shaped[ArrayLike[Array], "..."] | None = None) -> Bool[Array, "{n} {n}"]:
    """Causal mask of (5.1.10): query i may see the keys j <= i.

    like : an array whose library and device the mask shares (numpy unless given).

    >>> causal_mask(2)
    array([[ True, False],
           [ True,  True]])
    """
    n = positive_integer(n, "n")
    fits_memory("n", n, n)
    if like is None:
        like = np.empty(0)
    try:
        xp = array_namespace(like)
    except TypeError:
        raise TypeError(f"like: expected an array, got {type(like).__name__}") from None
    return xp.tril(xp.ones((n, n), dtype=xp.bool, device=device(like)))


def padding_mask(lengths: Integer[ArrayLike[Array], "batch"], n: int) -> Bool[Array, "batch 1 {n}"]:
    """Padding mask of (5.1.11): in a batch, no query may see a key past its sequence's length.

    lengths : from 1 to n.

    >>> padding_mask(np.asarray([1, 3]), 3)[:, 0]
    array([[ True, False, False],
           [ True,  True,  True]])
    """
    n = positive_integer(n, "n")
    lengths = integers(lengths, "lengths")
    xp = array_namespace(lengths)
    fits_memory("lengths, n", lengths.shape[0], n)
    if bool(xp.any(lengths < 1)) or bool(xp.any(lengths > n)):
        raise ValueError(f"lengths: expected values from 1 to {n}, got {lengths}")
    return xp.arange(n, device=device(lengths))[None, None, :] < lengths[:, None, None]


def _scores(Q: AnyArray, K: AnyArray, scale: float | None) -> tuple[AnyArray, Any, str]:
    """Return scores in at least single precision, the dtype of the arguments, and the names that an overflow has."""
    Q, K = (finite(real_array(a, name, at_least=2), name) for a, name in ((Q, "Q"), (K, "K")))
    same_dtype(Q=Q, K=K)
    if Q.shape[-1] != K.shape[-1]:
        raise ValueError(f"Q, K: expected the same last axis d_k, got Q {describe(Q)} and K {describe(K)}")
    same_batches(Q=Q, K=K)
    names, dtype = "Q, K" if scale is None else "Q, K, scale", Q.dtype
    scale = 1 / math.sqrt(Q.shape[-1]) if scale is None else positive(scale, "scale")
    Q, K = wide(Q, K)
    with silent():
        return in_range(scaled_product(Q, K, scale), names), dtype, names


def _weights(Q: AnyArray, K: AnyArray, mask: AnyArray | None, scale: float | None) -> tuple[AnyArray, Any]:
    """Return attention weights in at least single precision, and the dtype of the arguments."""
    S, dtype, _ = _scores(Q, K, scale)
    if mask is None:
        return softmax(S), dtype
    S = masked(S, mask)
    with about("mask"):
        return softmax(S), dtype


def _quotient(x: AnyArray, temperature: float) -> AnyArray:
    """x / T for x <= 0, in double precision where T is not a normal number of the dtype of x."""
    xp = array_namespace(x)
    limits = xp.finfo(x.dtype)
    if float(limits.smallest_normal) <= temperature <= float(limits.max):
        return x / temperature
    return xp.astype(xp.astype(x, xp.float64) / temperature, x.dtype)
