"""Attention with a kernel in place of the exponential: linear attention (section 5.5.4; report, 2.1 and 3.2).

With features phi the weight of key j for query i is phi(q_i) . phi(k_j). Sums over keys can then be
formed once for all queries, in time O(n) where softmax attention needs O(n^2).

With a causal mask the sums become a recurrence: `linear_attention_recurrent` is that definition, one token at
a time, and `linear_attention` does the same for a chunk of tokens at a time, by products of matrices.

A power of two may be taken out of a query's features, and out of one feature of all keys if the queries get it: the
quotient stays the same, to the last bit. So `linear_attention` can divide where the sums themselves leave the range.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from array_api_compat import array_namespace, device, is_torch_array
from jaxtyping import Float, Real

from attnmath.arrays import AnyArray, Array, ArrayLike
from attnmath.checks import (
    about,
    concat,
    describe,
    finite,
    flag,
    function,
    in_range,
    matmul,
    positive_integer,
    real_array,
    rounded,
    same_batches,
    same_dtype,
    silent,
    stack,
    total,
    wide,
)

#: A feature map: queries or keys go in, the features of each come out.
FeatureMap = Callable[[Float[AnyArray, "... d_k"]], Float[AnyArray, "... r"]]

#: The exponent of 0: below those of all numbers.
OF_ZERO = -100_000


def elu_plus_one(x: Real[ArrayLike[Array], "*shape"]) -> Float[Array, "*shape"]:
    """Feature map of Katharopoulos et al. (2020): elu(x) + 1, that is x + 1 above 0 and exp(x) below.

    Positive, as long as exp(x) does not underflow to 0 (in float64 from about -745 down).


    >>> import numpy as np
    >>> elu_plus_one(np.asarray([2.0, 0.0, -np.log(2.0)]))
    array([3. , 1. , 0.5])
    """
    x = finite(real_array(x, "x"), "x")
    xp = array_namespace(x)
    with silent():
        above = x > 0
        return xp.where(above, x + 1, xp.exp(xp.where(above, 0.0, x)))


def kernel_weights(
    Q: Real[ArrayLike[Array], "... n d_k"], K: Real[ArrayLike[Array], "... m d_k"], feature: FeatureMap = elu_plus_one
) -> Float[Array, "... n m"]:
    """The matrix of phi(q_i) . phi(k_j), not normalised.

    >>> import numpy as np
    >>> kernel_weights(np.zeros((1, 2)), np.asarray([[0.0, 1.0]]))
    array([[3.]])
    """
    phi_Q, phi_K = _features(Q, K, feature)
    xp, dtype = array_namespace(phi_Q, phi_K), phi_Q.dtype
    phi_Q, phi_K = wide(phi_Q, phi_K)
    with silent():
        return rounded(matmul(phi_Q, xp.matrix_transpose(phi_K)), dtype, "Q, K, feature")


def linear_attention(
    Q: Real[ArrayLike[Array], "... n d_k"],
    K: Real[ArrayLike[Array], "... m d_k"],
    V: Real[ArrayLike[Array], "... m d_v"],
    feature: FeatureMap = elu_plus_one,
    *,
    causal: bool = False,
    normalise: bool = True,
    chunk: int = 128,
) -> Float[Array, "... n d_v"]:
    """Linear attention in time O(n): rows phi(q_i)^T sum_j phi(k_j) v_j^T over phi(q_i)^T sum_j phi(k_j).

    causal : sums run over the keys j <= i only (n = m).
    normalise : False leaves the denominator out, as the textbook and (R.6) of the report print it.
    chunk : tokens that the causal form takes at a time; without causal it has no effect. It changes rounding, time
        and memory, not the result: beyond the features and the output (held twice while its chunks are joined)
        there are a few matrices r x d_v, sums of r features, and tables of chunk x chunk weights.
    Features whose products leave the range of the numbers are scaled by powers of two, which cancel in the quotient.
    A query whose weights sum to 0 has no mean: `ValueError`. So have values whose sums leave the range.

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
    xp, dtype = array_namespace(phi_Q, phi_K, V), V.dtype
    phi_Q, phi_K, V = wide(phi_Q, phi_K, V)
    scaled = normalise and not (_moderate(phi_Q) and _moderate(phi_K))
    with silent():
        if causal:
            out, sums = _in_chunks(phi_Q, phi_K, V, chunk, scaled=scaled)
        else:
            if scaled:
                shift = _largest(phi_K)
                phi_Q, phi_K = _shifted_queries(phi_Q, shift), phi_K * _power(-shift, phi_K)
            out = matmul(phi_Q, matmul(xp.matrix_transpose(phi_K), V))
            sums = matmul(phi_Q, total(phi_K, axis=-2)[..., None])
        return rounded(_divided(out, sums, normalise=normalise), dtype, "Q, K, V, feature")


def linear_attention_recurrent(
    Q: Real[ArrayLike[Array], "... n d_k"],
    K: Real[ArrayLike[Array], "... n d_k"],
    V: Real[ArrayLike[Array], "... n d_v"],
    feature: FeatureMap = elu_plus_one,
    *,
    normalise: bool = True,
) -> Float[Array, "... n d_v"]:
    """Causal linear attention by its definition, the recurrence: one token after the other.

    S_t = S_(t-1) + phi(k_t) v_t^T,  z_t = z_(t-1) + phi(k_t),  o_t = phi(q_t)^T S_t / phi(q_t)^T z_t,

    from S_0 = 0 and z_0 = 0, with S of shape r x d_v and z of r features. `linear_attention` with
    `causal=True` gives the same and is faster; this is what a model does that generates token by token.
    The sums are kept in at least single precision.
    Nothing is scaled here: sums that leave the range of the numbers, or underflow to 0, are a `ValueError`.

    >>> import numpy as np
    >>> linear_attention_recurrent(np.zeros((2, 1)), np.zeros((2, 1)), np.asarray([[1.0], [5.0]]))
    array([[1.],
           [3.]])
    """
    normalise = flag(normalise, "normalise")
    phi_Q, phi_K, V = _arguments(Q, K, V, feature, causal="Q, K")
    xp, dtype = array_namespace(phi_Q, phi_K, V), V.dtype
    phi_Q, phi_K, V = wide(phi_Q, phi_K, V)
    outs, sums = [], []
    with silent():
        S = z = 0.0
        for t in range(phi_K.shape[-2]):
            q, k, v = phi_Q[..., t, :], phi_K[..., t, :], V[..., t, :]
            S, z = S + k[..., :, None] * v[..., None, :], z + k
            outs.append(total(q[..., :, None] * S, axis=-2))
            sums.append(xp.sum(q * z, axis=-1, keepdims=True))
        out = _divided(stack(outs, axis=-2), stack(sums, axis=-2), normalise=normalise)
        return rounded(out, dtype, "Q, K, V, feature")


def _in_chunks(phi_Q: AnyArray, phi_K: AnyArray, V: AnyArray, chunk: int, *, scaled: bool) -> tuple[AnyArray, AnyArray]:
    """Return the numerators and the denominators of causal linear attention, a chunk of tokens at a time.

    Earlier chunks enter through the sums S and z, the tokens of the chunk itself through its masked table. With
    `scaled` a row of both is divided by a power of two. The powers of the keys come from those up to the first of
    the chunk, which all of its queries see; a key that rises far above them begins a new chunk.
    """
    xp = array_namespace(phi_Q, phi_K, V)
    rise = _exponent_range(phi_K) // 4
    S = z = shift = past = None
    outs, sums = [], []
    start, n = 0, phi_K.shape[-2]
    while start < n:
        part = slice(start, min(start + chunk, n))
        q, k = phi_Q[..., part, :], phi_K[..., part, :]
        if scaled:
            first = _largest(k[..., :1, :])
            now = first if past is None else xp.maximum(past, first)
            top = _largest(k)
            if bool(xp.any(top - now > rise)):
                stop = _first_row(_exponents(k) - now > rise)
                part = slice(start, start + stop)
                q, k = q[..., :stop, :], k[..., :stop, :]
                top = _largest(k)
            q, k = _shifted_queries(q, now), k * _power(-now, k)
            if S is not None:
                fall = xp.matrix_transpose(_power(shift - now, k))
                S, z = S * fall, z * fall
            shift, past = now, xp.maximum(now, top)
        v = V[..., part, :]
        table = matmul(q, xp.matrix_transpose(k))
        at = xp.arange(k.shape[-2], device=device(k))
        # An overflow at a later key is none of this result: where drops it, and a product with 0 would not.
        table = xp.where(at[:, None] >= at, table, xp.zeros_like(table))
        out, weight = matmul(table, v), xp.sum(table, axis=-1, keepdims=True)
        added, more = matmul(xp.matrix_transpose(k), v), total(k, axis=-2)[..., None]
        if S is None:
            S, z = added, more
        else:
            out, weight = out + matmul(q, S), weight + matmul(q, z)
            S, z = S + added, z + more
        outs.append(out)
        sums.append(weight)
        start = part.stop
    return concat(outs, axis=-2), concat(sums, axis=-2)


def _moderate(features: AnyArray) -> bool:
    """Whether no product of features is near the ends of the range. Then powers of two would change no bit."""
    xp, far = array_namespace(features), 2.0 ** (_exponent_range(features) // 8)
    sizes = xp.abs(features)
    return bool(xp.min(sizes) >= 1 / far) and bool(xp.max(sizes) <= far)


def _shifted_queries(phi_Q: AnyArray, shift: AnyArray) -> AnyArray:
    """Return queries that get the keys' powers of two back, each row without its own largest power."""
    xp = array_namespace(phi_Q)
    exponents = _exponents(phi_Q) + shift
    by = shift - xp.clip(xp.max(exponents, axis=-1, keepdims=True), min=OF_ZERO // 2)
    half = by // 2  # the power alone may leave the range where the product does not
    return phi_Q * _power(half, phi_Q) * _power(by - half, phi_Q)


def _largest(phi_K: AnyArray) -> AnyArray:
    """Return the exponent of the largest absolute value of each feature."""
    xp = array_namespace(phi_K)
    return _exponents(xp.max(xp.abs(phi_K), axis=-2, keepdims=True))


def _exponents(numbers: AnyArray) -> AnyArray:
    """Return the e with 2^(e-1) <= |number| < 2^e as constants, such that 2^e is in range, and OF_ZERO for 0."""
    xp, limit = array_namespace(numbers), _exponent_range(numbers) - 8
    mantissas, exponents = xp.frexp(numbers.detach() if is_torch_array(numbers) else numbers)
    return xp.where(mantissas == 0, OF_ZERO, xp.clip(exponents, min=-limit, max=limit))


def _power(exponents: AnyArray, like: AnyArray) -> AnyArray:
    """Return powers of two in the dtype of `like`, none of which leaves its range."""
    xp, limit = array_namespace(like), _exponent_range(like) - 8
    ones = xp.ones(exponents.shape, dtype=like.dtype, device=device(like))
    return xp.ldexp(ones, xp.clip(exponents, min=-limit, max=limit))


def _exponent_range(array: AnyArray) -> int:
    return math.frexp(float(array_namespace(array).finfo(array.dtype).max))[1]


def _first_row(mask: AnyArray) -> int:
    """Return the first row that holds a True, in any batch."""
    xp, size = array_namespace(mask), mask.shape[-2]
    rows = xp.any(xp.reshape(xp.any(mask, axis=-1), (-1, size)), axis=0)
    return int(xp.argmax(xp.astype(rows, xp.int64)))


def _divided(out: AnyArray, sums: AnyArray, *, normalise: bool) -> AnyArray:
    """Return numerators over denominators, or the numerators alone."""
    in_range(out, "Q, K, V, feature")
    if not normalise:
        return out
    if bool(array_namespace(sums).any(sums == 0)):
        raise ValueError("Q, K, feature: expected weights that do not sum to 0, got a query for which they do")
    return in_range(out / in_range(sums, "Q, K, feature"), "Q, K, V, feature")


def _arguments(
    Q: AnyArray, K: AnyArray, V: AnyArray, feature: FeatureMap, *, causal: str
) -> tuple[AnyArray, AnyArray, AnyArray]:
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


def _features(Q: AnyArray, K: AnyArray, feature: FeatureMap) -> tuple[AnyArray, AnyArray]:
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
