"""Attention with a kernel in place of the exponential: linear attention (section 5.5.4).

With features phi the weight of key j for query i is phi(q_i) . phi(k_j). Sums over keys can then be
formed once for all queries, in time O(n) where softmax attention needs O(n^2).
"""

from __future__ import annotations

from collections.abc import Callable

from array_api_compat import array_namespace
from jaxtyping import Float, Real

from attnmath.arrays import Array, ArrayLike
from attnmath.checks import (
    about,
    describe,
    finite,
    flag,
    function,
    in_range,
    real_array,
    same_batches,
    same_dtype,
    silent,
)

FeatureMap = Callable[[Float[Array, "... d_k"]], Float[Array, "... r"]]


def elu_plus_one(x: Real[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
    """Feature map of Katharopoulos et al. (2020): elu(x) + 1, that is x + 1 above 0 and exp(x) below; positive.

    >>> import numpy as np
    >>> elu_plus_one(np.asarray([2.0, 0.0, -np.log(2.0)]))
    array([3. , 1. , 0.5])
    """
    x = finite(real_array(x, "x"), "x")
    xp = array_namespace(x)
    return xp.where(x > 0, x + 1, xp.exp(xp.minimum(x, xp.zeros_like(x))))


def kernel_weights(
    Q: Real[ArrayLike, "... n d_k"], K: Real[ArrayLike, "... m d_k"], feature: FeatureMap = elu_plus_one
) -> Float[Array, "... n m"]:
    """The matrix of phi(q_i) . phi(k_j), not normalised.

    >>> import numpy as np
    >>> kernel_weights(np.zeros((1, 2)), np.asarray([[0.0, 1.0]]))
    array([[3.]])
    """
    phi_Q, phi_K = _features(Q, K, feature)
    xp = array_namespace(phi_Q, phi_K)
    with silent():
        return in_range(xp.matmul(phi_Q, xp.matrix_transpose(phi_K)), "Q, K, feature")


def linear_attention(
    Q: Real[ArrayLike, "... n d_k"],
    K: Real[ArrayLike, "... m d_k"],
    V: Real[ArrayLike, "... m d_v"],
    feature: FeatureMap = elu_plus_one,
    *,
    causal: bool = False,
    normalise: bool = True,
) -> Float[Array, "... n d_v"]:
    """Linear attention in time O(n): rows phi(q_i)^T sum_j phi(k_j) v_j^T over phi(q_i)^T sum_j phi(k_j).

    causal : sums run over the keys j <= i only (n = m).
    normalise : False leaves the denominator out, as the textbook prints it.
    A query whose weights sum to 0 has no mean: `ValueError`.

    >>> import numpy as np
    >>> linear_attention(np.zeros((1, 1)), np.zeros((2, 1)), np.asarray([[1.0], [5.0]]))
    array([[3.]])
    """
    phi_Q, phi_K = _features(Q, K, feature)
    causal, normalise = flag(causal, "causal"), flag(normalise, "normalise")
    V = finite(real_array(V, "V", at_least=2), "V")
    same_dtype(K=phi_K, V=V)
    same_batches(Q=phi_Q, K=phi_K, V=V)
    if V.shape[-2] != phi_K.shape[-2]:
        raise ValueError(f"V: expected {phi_K.shape[-2]} rows, one for each key, got {describe(V)}")
    xp = array_namespace(phi_Q, phi_K, V)
    if causal and phi_Q.shape[-2] != phi_K.shape[-2]:
        raise ValueError(f"causal: expected as many queries as keys, got {describe(phi_Q)} and {describe(phi_K)}")
    with silent():
        if causal:
            # The running state of the recurrence: one r x d_v matrix and one r-vector for each position.
            state = xp.cumulative_sum(phi_K[..., :, None] * V[..., None, :], axis=-3)
            out = xp.sum(phi_Q[..., :, None] * state, axis=-2)
            sums = xp.sum(phi_Q * xp.cumulative_sum(phi_K, axis=-2), axis=-1, keepdims=True)
        else:
            out = xp.matmul(phi_Q, xp.matmul(xp.matrix_transpose(phi_K), V))
            sums = xp.sum(phi_Q * xp.sum(phi_K, axis=-2, keepdims=True), axis=-1, keepdims=True)
        in_range(out, "Q, K, V, feature")
        if not normalise:
            return out
        if bool(xp.any(sums == 0)):
            raise ValueError("Q, K, feature: expected weights that do not sum to 0, got a query for which they do")
        return in_range(out / in_range(sums, "Q, K, feature"), "Q, K, V, feature")


def _features(Q: Array, K: Array, feature: FeatureMap) -> tuple[Array, Array]:
    Q, K = (finite(real_array(a, name, at_least=2), name) for a, name in ((Q, "Q"), (K, "K")))
    same_dtype(Q=Q, K=K)
    if Q.shape[-1] != K.shape[-1]:
        raise ValueError(f"Q, K: expected the same last axis d_k, got Q {describe(Q)} and K {describe(K)}")
    function(feature, "feature")
    with silent(), about("feature: expected a function from arrays to arrays, got an error"):
        phi_Q, phi_K = (finite(real_array(feature(a), "its values", at_least=1), "its values") for a in (Q, K))
    same_dtype(Q=Q, feature=phi_Q)
    if phi_Q.shape[:-1] != Q.shape[:-1] or phi_K.shape[:-1] != K.shape[:-1] or phi_Q.shape[-1] != phi_K.shape[-1]:
        raise ValueError(f"feature: expected features along the last axis, got {describe(phi_Q)}, {describe(phi_K)}")
    return phi_Q, phi_K
