"""Heads whose projections of queries and keys are drawn once, with orthonormal columns, and never trained.

A head has the logits s_ij = x_i M x_j^T / sqrt(d_k) with the form M = W_Q W_K^T. Where both matrices have orthonormal
columns, this product is a singular value decomposition of M: its d_k singular values that are not 0 are 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Real

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import (
    broadcast,
    describe,
    exponent,
    fits_memory,
    flag,
    floats,
    generator,
    in_range,
    positive_integer,
    precision,
    silent,
    unit_scaled,
)
from attnmath.linear_cost.random_features.projections import orthogonal


class LogitMoments(NamedTuple):
    """Mean and variance of x M y^T over the draw of the projections; not divided by sqrt(d_k)."""

    mean: Float[Numpy, "*batch"]
    variance: Float[Numpy, "*batch"]


def frozen_projection(d_model: int, d_k: int, *, rng: np.random.Generator) -> Float[Numpy, "{d_model} {d_k}"]:
    """Matrix of d_k <= d_model orthonormal columns with a uniform direction: a slice of a Haar matrix.

    >>> W = frozen_projection(3, 2, rng=np.random.default_rng(0))
    >>> bool(np.allclose(W.T @ W, np.eye(2)))
    True
    """
    d_model, d_k = positive_integer(d_model, "d_model"), positive_integer(d_k, "d_k")
    if d_k > d_model:
        raise ValueError(f"d_k, d_model: expected at most d_model orthonormal columns, got {d_k} and {d_model}")
    fits_memory("d_model, d_k", d_model + d_k, d_model)
    return orthogonal(d_k, d_model, rng=generator(rng), norms="one").T


def logits(
    X: Real[ArrayLike, "... n d_model"], W_Q: Real[ArrayLike, "d_model d_k"], W_K: Real[ArrayLike, "d_model d_k"]
) -> Float[Numpy, "... n n"]:
    """Scaled scores X W_Q (X W_K)^T / sqrt(d_k) of one head.

    >>> logits([[1.0, 0.0], [1.0, 2.0]], [[1.0], [0.0]], [[0.0], [1.0]])
    array([[0., 2.],
           [0., 2.]])
    """
    X = floats(X, "X", at_least=2)
    W_Q, W_K = _pair(W_Q, W_K)
    _same_width(X, W_Q)
    with silent():
        S = (X @ W_Q) @ np.swapaxes(X @ W_K, -1, -2) / math.sqrt(W_Q.shape[1])
        return in_range(S, "X, W_Q, W_K")


def logit_moments(
    x: Real[ArrayLike, "*batch d_model"], y: Real[ArrayLike, "*batch d_model"], d_k: int, *, shared: bool
) -> LogitMoments:
    """Exact mean and variance of x M y^T over frozen projections.

    shared : True for W_K = W_Q, False for two independent ones; both slices of Haar matrices with d_k columns.

    >>> logit_moments([1.0, 0.0], [1.0, 0.0], 1, shared=True)
    LogitMoments(mean=np.float64(0.5), variance=np.float64(0.125))
    """
    x, y = broadcast(x=floats(x, "x", at_least=1), y=floats(y, "y", at_least=1))
    k, d = positive_integer(d_k, "d_k"), x.shape[-1]
    if k > d:
        raise ValueError(f"d_k: expected at most d_model = {d}, got {k}")
    shared = flag(shared, "shared")
    with silent():
        # Scaled by powers of two, which round nothing, so that squares keep their range.
        power = (exponent(x, axis=-1) + exponent(y, axis=-1))[..., 0]
        x, y = unit_scaled(x, axis=-1), unit_scaled(y, axis=-1)
        dot, norms = np.sum(x * y, axis=-1), np.sum(x**2, axis=-1) * np.sum(y**2, axis=-1)
        if not shared:
            variance = np.ldexp(norms * (k / d**2), 2 * power)
            return LogitMoments(np.zeros_like(dot)[()], in_range(variance, "x, y"))
        # k = d: the form is the identity, and d = 1 has no other case.
        spread = k * (d - k) / (d * (d - 1) * (d + 2)) if k < d else 0.0
        variance = np.ldexp(spread * (norms + (1 - 2 / d) * dot**2), 2 * power)
        return LogitMoments(in_range(np.ldexp(dot * (k / d), power), "x, y"), in_range(variance, "x, y"))


def inputs_for(
    Q: Real[ArrayLike, "n d_k"],
    K: Real[ArrayLike, "n d_k"],
    W_Q: Real[ArrayLike, "d_model d_k"],
    W_K: Real[ArrayLike, "d_model d_k"],
) -> Float[Numpy, "n d_model"]:
    """Input X of smallest norm with X W_Q = Q and X W_K = K.

    It exists for every Q and K if the 2 d_k columns of W_Q and W_K are independent; otherwise an error is raised.

    >>> inputs_for([[1.0]], [[2.0]], [[1.0], [1.0]], [[0.0], [1.0]])
    array([[-1.,  2.]])
    """
    eps = precision(W_Q, W_K)
    W_Q, W_K = _pair(W_Q, W_K)
    Q, K = floats(Q, "Q", ndim=2), floats(K, "K", ndim=2)
    if not (Q.shape == K.shape and Q.shape[1] == W_Q.shape[1]):
        raise ValueError(
            f"Q, K: expected one shape with {W_Q.shape[1]} columns as W_Q, got {describe(Q)} and {describe(K)}"
        )
    both = np.concatenate([W_Q, W_K], axis=1)
    _independent(both, "W_Q, W_K", eps)
    with silent():
        return in_range(np.concatenate([Q, K], axis=1) @ np.linalg.pinv(both), "Q, K")


def invariant(
    W_Q: Real[ArrayLike, "heads d_model d_k"], W_K: Real[ArrayLike, "heads d_model d_k"]
) -> Float[Numpy, "heads heads d_k d_k"]:
    """The blocks of T = [W_Q^1 ... W_Q^h]^-1 [W_K^1 ... W_K^h], for heads of the common size: heads * d_k = d_model.

    A linear map R of the input, X -> X R, turns all projections into R W and leaves T as it is. Other matrices with
    the same forms W_Q^a (W_K^a)^T have the blocks G_a^-1 T_ab G_b^-T with invertible G. Entry [a, b] is T_ab.
    Raises an error if the columns of all W_Q are not independent.

    >>> W = [[[1.0], [0.0]], [[0.0], [1.0]]]
    >>> invariant(W, W)[:, :, 0, 0]
    array([[1., 0.],
           [0., 1.]])
    """
    eps = precision(W_Q)
    W_Q, W_K = floats(W_Q, "W_Q", ndim=3), floats(W_K, "W_K", ndim=3)
    heads, d_model, d_k = W_Q.shape
    if W_K.shape != W_Q.shape or heads * d_k != d_model:
        raise ValueError(
            "W_Q, W_K: expected one shape (heads, d_model, d_k) with heads * d_k = d_model, "
            f"got {describe(W_Q)} and {describe(W_K)}"
        )
    queries, keys = (np.moveaxis(W, 0, 1).reshape(d_model, d_model) for W in (W_Q, W_K))
    _independent(queries, "W_Q", eps)
    with silent():
        T = in_range(np.linalg.solve(queries, keys), "W_Q, W_K")
    return np.moveaxis(T.reshape(heads, d_k, heads, d_k), 2, 1)


def _pair(
    W_Q: Real[ArrayLike, "d_model d_k"], W_K: Real[ArrayLike, "d_model d_k"]
) -> tuple[Float[Numpy, "d_model d_k"], Float[Numpy, "d_model d_k"]]:
    W_Q, W_K = floats(W_Q, "W_Q", ndim=2), floats(W_K, "W_K", ndim=2)
    if W_Q.shape != W_K.shape:
        raise ValueError(f"W_Q, W_K: expected one shape, got {describe(W_Q)} and {describe(W_K)}")
    return W_Q, W_K


def _same_width(X: Float[Numpy, "... n d_model"], W_Q: Float[Numpy, "d_model d_k"]) -> None:
    if X.shape[-1] != W_Q.shape[0]:
        raise ValueError(f"X, W_Q: expected rows as long as W_Q has rows, got {describe(X)} and {describe(W_Q)}")


def _independent(W: Float[Numpy, "d columns"], names: str, eps: float) -> None:
    """Raise an error unless the columns are independent to the precision that they came in."""
    sigma = np.linalg.svd(W, compute_uv=False)
    with silent():
        if W.shape[1] > W.shape[0] or not sigma[-1] > max(W.shape) * eps * sigma[0]:
            raise ValueError(f"{names}: expected independent columns, got {describe(W)} of a smaller rank")
