"""Attention with a kernel in place of the exponential: linear attention (section 5.5.4; report, 2.1 and 3.2).

With features phi the weight of key j for query i is phi(q_i) . phi(k_j). Sums over keys can then be
formed once for all queries, in time O(n) where softmax attention needs O(n^2).

With a causal mask the sums become a recurrence: `linear_attention_recurrent` is that definition, one token at
a time, and `linear_attention` does the same for a chunk of tokens at a time, by products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable

from array_api_compat import array_namespace, device
from jaxtyping import Float, Real

from attnmath.arrays import Array, ArrayLike
from attnmath.checks import (
    about,
    describe,
    finite,
    flag,
    function,
    in_range,
    positive_integer,
    real_array,
    same_batches,
    same_dtype,
    silent,
)

FeatureMap = Callable[[Float[Array, "... d_k"]], Float[Array, "... r"]]


def elu_plus_one(x: Real[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
    """Feature map of Katharopoulos et al. (2020): elu(x) + 1, that is x + 1 above 0 and exp(x) below.

    Positive, as long as exp(x) does not underflow to 0 (in float64 from about -745 down).


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
    chunk: int = 128,
) -> Float[Array, "... n d_v"]:
    """Linear attention in time O(n): rows phi(q_i)^T sum_j phi(k_j) v_j^T over phi(q_i)^T sum_j phi(k_j).

    causal : sums run over the keys j <= i only (n = m).
    normalise : False leaves the denominator out, as the textbook and (R.6) of the report print it.
    chunk : tokens that the causal form takes at a time. It changes rounding, time and memory, not the result:
        beyond the features and the output (held twice while its chunks are joined) there are a few matrices
        r x d_v, sums of r features, and tables of chunk x chunk weights.
    A query whose weights sum to 0, or underflow to 0, has no mean: `ValueError`.

    >>> import numpy as np
    >>> linear_attention(np.zeros((1, 1)), np.zeros((2, 1)), np.asarray([[1.0], [5.0]]))
    array([[3.]])
    >>> linear_attention(np.zeros((2, 1)), np.zeros((2, 1)), np.asarray([[1.0], [5.0]]), causal=True)
    array([[1.],
           [3.]])
    """
    causal, normalise = flag(causal, "causal"), flag(normalise, "normalise")
    chunk = positive_integer(chunk, "chunk")
    phi_Q, phi_K, V = _arguments(Q, K, V, feature, causal="causal" if causal else "")
    with silent():
        if causal:
            out, sums = _in_chunks(phi_Q, phi_K, V, chunk)
        else:
            xp = array_namespace(phi_Q, phi_K, V)
            out = xp.matmul(phi_Q, xp.matmul(xp.matrix_transpose(phi_K), V))
            sums = xp.matmul(phi_Q, xp.sum(phi_K, axis=-2)[..., None])
        return _divided(out, sums, normalise=normalise)


def linear_attention_recurrent(
    Q: Real[ArrayLike, "... n d_k"],
    K: Real[ArrayLike, "... n d_k"],
    V: Real[ArrayLike, "... n d_v"],
    feature: FeatureMap = elu_plus_one,
    *,
    normalise: bool = True,
) -> Float[Array, "... n d_v"]:
    """Causal linear attention by its definition, the recurrence: one token after the other.

    S_t = S_(t-1) + phi(k_t) v_t^T,  z_t = z_(t-1) + phi(k_t),  o_t = phi(q_t)^T S_t / phi(q_t)^T z_t,

    from S_0 = 0 and z_0 = 0, with S of shape r x d_v and z of r features. `linear_attention` with
    `causal=True` gives the same and is faster; this is what a model does that generates token by token.

    >>> import numpy as np
    >>> linear_attention_recurrent(np.zeros((2, 1)), np.zeros((2, 1)), np.asarray([[1.0], [5.0]]))
    array([[1.],
           [3.]])
    """
    normalise = flag(normalise, "normalise")
    phi_Q, phi_K, V = _arguments(Q, K, V, feature, causal="Q, K")
    xp = array_namespace(phi_Q, phi_K, V)
    outs, sums = [], []
    with silent():
        S = z = 0.0
        for t in range(phi_K.shape[-2]):
            q, k, v = phi_Q[..., t, :], phi_K[..., t, :], V[..., t, :]
            S, z = S + k[..., :, None] * v[..., None, :], z + k
            outs.append(xp.sum(q[..., :, None] * S, axis=-2))
            sums.append(xp.sum(q * z, axis=-1, keepdims=True))
        return _divided(xp.stack(outs, axis=-2), xp.stack(sums, axis=-2), normalise=normalise)


def _in_chunks(phi_Q: Array, phi_K: Array, V: Array, chunk: int) -> tuple[Array, Array]:
    """Return the numerators and the denominators of causal linear attention, a chunk of tokens at a time.

    Earlier chunks enter through the sums S and z, the tokens of the chunk itself through its masked table.
    """
    xp = array_namespace(phi_Q, phi_K, V)
    S = z = None
    outs, sums = [], []
    for start in range(0, phi_K.shape[-2], chunk):
        part = slice(start, start + chunk)
        q, k, v = phi_Q[..., part, :], phi_K[..., part, :], V[..., part, :]
        table = xp.matmul(q, xp.matrix_transpose(k))
        at = xp.arange(k.shape[-2], device=device(k))
        # An overflow at a later key is none of this result: where drops it, and a product with 0 would not.
        table = xp.where(at[:, None] >= at, table, xp.zeros_like(table))
        out, total = xp.matmul(table, v), xp.sum(table, axis=-1, keepdims=True)
        added, more = xp.matmul(xp.matrix_transpose(k), v), xp.sum(k, axis=-2)[..., None]
        if S is None:
            S, z = added, more
        else:
            out, total = out + xp.matmul(q, S), total + xp.matmul(q, z)
            S, z = S + added, z + more
        outs.append(out)
        sums.append(total)
    return xp.concat(outs, axis=-2), xp.concat(sums, axis=-2)


def _divided(out: Array, sums: Array, *, normalise: bool) -> Array:
    """Return numerators over denominators, or the numerators alone."""
    in_range(out, "Q, K, V, feature")
    if not normalise:
        return out
    if bool(array_namespace(sums).any(sums == 0)):
        raise ValueError("Q, K, feature: expected weights that do not sum to 0, got a query for which they do")
    return in_range(out / in_range(sums, "Q, K, feature"), "Q, K, V, feature")


def _arguments(Q: Array, K: Array, V: Array, feature: FeatureMap, *, causal: str) -> tuple[Array, Array, Array]:
    """Return features and values; `causal` names the arguments at fault where a causal sum has other queries."""
    phi_Q, phi_K = _features(Q, K, feature)
    V = finite(real_array(V, "V", at_least=2), "V")
    same_dtype(K=phi_K, V=V)
    same_batches(Q=phi_Q, K=phi_K, V=V)
    if V.shape[-2] != phi_K.shape[-2]:
        raise ValueError(f"V: expected {phi_K.shape[-2]} rows, one for each key, got {describe(V)}")
    if causal and phi_Q.shape[-2] != phi_K.shape[-2]:
        raise ValueError(f"{causal}: expected as many queries as keys, got {describe(phi_Q)} and {describe(phi_K)}")
    return phi_Q, phi_K, V


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
