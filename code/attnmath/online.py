"""Attention without the attention matrix: one pass over blocks of keys, in memory O(n (d_k + d_v)).

A block of keys is summed up by three numbers for each query: the largest score m, the sum l
of exp(score - m), and the vector o of the values weighted by exp(score - m). Two such
summaries merge into that of both blocks; the output is o / l.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from array_api_compat import array_namespace

from attnmath.attention import scores
from attnmath.checks import Array, describe, finite, positive_integer, real_array, same_dtype


class Summary(NamedTuple):
    """What one pass keeps of the keys seen: m, l of shape (..., n, 1) and o of shape (..., n, d_v)."""

    m: Array
    l: Array  # noqa: E741  (the usual name of the running sum)
    o: Array


def summarise(S: Array, V: Array) -> Summary:
    """Summary of one block: scores S (..., n, b) and values V (..., b, d_v)."""
    xp = array_namespace(S, V)
    m = xp.max(S, axis=-1, keepdims=True)
    weights = xp.exp(S - m)
    return Summary(m, xp.sum(weights, axis=-1, keepdims=True), xp.matmul(weights, V))


def merge(first: Summary, second: Summary) -> Summary:
    """Summary of two blocks together; associative and commutative in exact arithmetic."""
    xp = array_namespace(first.m, second.m)
    m = xp.maximum(first.m, second.m)
    a, b = xp.exp(first.m - m), xp.exp(second.m - m)
    return Summary(m, a * first.l + b * second.l, a * first.o + b * second.o)


def online_attention(Q: Array, K: Array, V: Array, *, block: int = 64, scale: float | None = None) -> Array:
    """Attention (5.1.1) in one pass over blocks of keys, equal to `attention` up to rounding.

    Q : (..., n, d_k).  K : (..., m, d_k).  V : (..., m, d_v).  Returns (..., n, d_v).
    block : keys at a time.  scale : 1/sqrt(d_k) unless given.

    >>> import numpy as np
    >>> online_attention(np.zeros((1, 3)), np.zeros((2, 3)), np.asarray([[1.0], [5.0]]), block=1)
    array([[3.]])
    """
    K = finite(real_array(K, "K", at_least=2), "K")
    V = finite(real_array(V, "V", at_least=2), "V")
    same_dtype(K=K, V=V)
    block = positive_integer(block, "block")
    if V.shape[-2] != K.shape[-2]:
        raise ValueError(f"V: expected {K.shape[-2]} rows, one for each key, got {describe(V)}")
    scale = 1 / math.sqrt(K.shape[-1]) if scale is None else scale
    summary: Summary | None = None
    for start in range(0, K.shape[-2], block):
        part = slice(start, start + block)
        new = summarise(scores(Q, K[..., part, :], scale=scale), V[..., part, :])
        summary = new if summary is None else merge(summary, new)
    assert summary is not None  # K has no empty axis
    return summary.o / summary.l
