"""Attention without the attention matrix: one pass over blocks of keys, in memory O(n (d_k + d_v)).

A block of keys is summed up by three things for each query: the largest score m, the sum l
of exp(score - m), and the vector o of the values weighted by exp(score - m). Two such
summaries merge into that of both blocks; the output is o / l. A block without a visible key
has the summary (-inf, 0, 0), which changes nothing it is merged with.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from attnmath.attention import masked, scores
from attnmath.checks import Array, describe, finite, positive, positive_integer, real_array, same_dtype


class Summary(NamedTuple):
    """What one pass keeps of the keys seen: m, l of shape (..., n, 1) and o of shape (..., n, d_v)."""

    m: Array
    l: Array  # noqa: E741  (the usual name of the running sum)
    o: Array


def summarise(S: Array, V: Array) -> Summary:
    """Summary of one block: scores S (..., n, b), where -inf hides a key, and values V (..., b, d_v).

    >>> summarise(np.asarray([[5.0, 5.0]]), np.asarray([[1.0], [2.0]]))
    Summary(m=array([[5.]]), l=array([[2.]]), o=array([[3.]]))
    """
    xp = array_namespace(S, V)
    m = xp.max(S, axis=-1, keepdims=True)
    with np.errstate(over="ignore", under="ignore"):
        weights = xp.exp(S - _reference(m))
    return Summary(m, xp.sum(weights, axis=-1, keepdims=True), xp.matmul(weights, V))


def merge(first: Summary, second: Summary) -> Summary:
    """Summary of two blocks together; associative and commutative in exact arithmetic.

    >>> left, right = (Summary(np.asarray(m), np.asarray(1.0), np.asarray(v)) for m, v in ((0.0, 1.0), (0.0, 2.0)))
    >>> [float(x) for x in merge(left, right)]
    [0.0, 2.0, 3.0]
    """
    xp = array_namespace(first.m, second.m)
    m = xp.maximum(first.m, second.m)
    reference = _reference(m)
    with np.errstate(over="ignore", under="ignore"):
        a, b = xp.exp(first.m - reference), xp.exp(second.m - reference)
    return Summary(m, a * first.l + b * second.l, a * first.o + b * second.o)


def online_attention(
    Q: Array, K: Array, V: Array, *, block: int = 64, mask: Array | None = None, scale: float | None = None
) -> Array:
    """Attention (5.1.1) in one pass over blocks of keys, equal to `attention` up to rounding.

    Q : (..., n, d_k).  K : (..., m, d_k).  V : (..., m, d_v).  Returns (..., n, d_v).
    block : keys at a time.  mask, scale : as in `attnmath.attention.attention`.

    >>> online_attention(np.zeros((1, 3)), np.zeros((2, 3)), np.asarray([[1.0], [5.0]]), block=1)
    array([[3.]])
    """
    K = finite(real_array(K, "K", at_least=2), "K")
    V = finite(real_array(V, "V", at_least=2), "V")
    same_dtype(K=K, V=V)
    block, keys = positive_integer(block, "block"), K.shape[-2]
    if V.shape[-2] != keys:
        raise ValueError(f"V: expected {keys} rows, one for each key, got {describe(V)}")
    if mask is not None:
        mask = array_namespace(K).asarray(mask, device=device(K))
        if mask.ndim == 0 or mask.shape[-1] not in (1, keys):
            raise ValueError(f"mask: expected a last axis of {keys}, one for each key, got {describe(mask)}")
    summary: Summary | None = None
    for start in range(0, keys, block):
        part = slice(start, start + block)
        S = scores(Q, K[..., part, :], scale=scale)
        if mask is not None:
            S = masked(S, mask if mask.shape[-1] == 1 else mask[..., part])
        new = summarise(S, V[..., part, :])
        summary = new if summary is None else merge(summary, new)
    assert summary is not None  # K has no empty axis
    if bool(array_namespace(K).any(summary.l == 0)):
        raise ValueError("mask: expected every query to see a key, got a query that sees none (fully masked)")
    return summary.o / summary.l


def rounding_bound(Q: Array, K: Array, V: Array, *, block: int = 64, scale: float | None = None) -> float:
    """How far `online_attention` and `attention` may lie apart through rounding, to first order.

    Let u be the unit roundoff and s = scale max|q| max|k|, which no score exceeds. A score is off by
    (d_k + 2) u s; subtracting a maximum adds 2 u s, and moving from maximum to maximum another
    2 u s in all, since the steps add up. Each of the exponentials behind a weight, one for its block and one
    for each merge, is off by 4 u (and by u for its product); the sums over m keys by m u. So
    numerator and denominator are off by r = u ((d_k + 6) s + 5 (blocks + 1) + m + 2) relative to
    sums of positive terms, the quotient by 2 r max|v|, and two such results by twice that.

    >>> rounding_bound(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1))) / 2**-52
    40.0
    """
    Q, K, V = (finite(real_array(a, s, at_least=2), s) for a, s in ((Q, "Q"), (K, "K"), (V, "V")))
    xp = array_namespace(Q, K, V)
    keys, d_k = K.shape[-2:]
    blocks = -(-keys // positive_integer(block, "block"))
    scale = 1 / math.sqrt(d_k) if scale is None else positive(scale, "scale")
    longest_q, longest_k = (float(xp.max(xp.sum(a**2, axis=-1))) ** 0.5 for a in (Q, K))
    relative = (d_k + 6) * scale * longest_q * longest_k + 5 * (blocks + 1) + keys + 2
    return float(2 * xp.finfo(V.dtype).eps * relative * float(xp.max(xp.abs(V))))


def _reference(m: Array) -> Array:
    """The maximum, or 0 where no key is visible: -inf - (-inf) would be NaN."""
    xp = array_namespace(m)
    return xp.where(m == -math.inf, xp.zeros_like(m), m)
