"""Attention without the attention matrix: one pass over blocks of keys, in memory O(n (d_k + d_v)).

A block of keys is summed up by three numbers for each query: the largest score m, the sum l
of exp(score - m), and the vector o of the values weighted by exp(score - m). Two such
summaries merge into that of both blocks; the output is o / l. Summaries are kept in at least
single precision, whatever comes in.
"""

from __future__ import annotations

import math
from typing import Generic, NamedTuple

from array_api_compat import array_namespace, is_array_api_obj
from jaxtyping import Float, Real

from attnmath.arrays import Array, ArrayLike
from attnmath.checks import (
    about,
    describe,
    finite,
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
from attnmath.operator.attention import scores


class Summary(NamedTuple, Generic[Array]):
    """What one pass keeps of the keys seen, for each query: m, l and o."""

    m: Float[Array, "... n 1"]
    l: Float[Array, "... n 1"]  # noqa: E741  (the usual name of the running sum)
    o: Float[Array, "... n d_v"]


def summarise(S: Real[ArrayLike[Array], "... n b"], V: Real[ArrayLike[Array], "... b d_v"]) -> Summary[Array]:
    """Summary of one block: scores S and values V of b keys; of half precision in single precision.

    >>> summarise([[0.0, 0.0]], [[1.0], [5.0]]).o
    array([[6.]])
    """
    S, V = (finite(real_array(a, name, at_least=2), name) for a, name in ((S, "S"), (V, "V")))
    same_dtype(S=S, V=V)
    same_batches(S=S, V=V)
    if S.shape[-1] != V.shape[-2]:
        raise ValueError(f"V: expected {S.shape[-1]} rows, one for each column of S, got {describe(V)}")
    xp = array_namespace(S, V)
    S, V = wide(S, V)
    m = xp.max(S, axis=-1, keepdims=True)
    with silent():
        weights = xp.exp(S - m)
        o = in_range(matmul(weights, V), "V")
    return Summary(m, xp.sum(weights, axis=-1, keepdims=True), o)


def merge(first: Summary[Array], second: Summary[Array]) -> Summary[Array]:
    """Summary of two blocks together; associative and commutative in exact arithmetic."""
    instance(first, Summary, "first")
    instance(second, Summary, "second")
    for name, summary in (("first", first), ("second", second)):
        if any(not is_array_api_obj(array) for array in summary):
            raise TypeError(f"{name}: expected a summary of arrays, got {', '.join(type(a).__name__ for a in summary)}")
    first, second = (
        Summary(*wide(*(finite(real_array(a, name, at_least=2), name) for a in summary)))
        for name, summary in (("first", first), ("second", second))
    )
    same_dtype(first=first.m, second=second.m)
    if first.m.shape != second.m.shape or first.o.shape != second.o.shape:
        raise ValueError(
            f"first, second: expected summaries of one shape, got {describe(first.o)} and {describe(second.o)}"
        )
    xp = array_namespace(first.m, second.m)
    m = xp.maximum(first.m, second.m)
    with silent():
        a, b = xp.exp(first.m - m), xp.exp(second.m - m)
        o = in_range(a * first.o + b * second.o, "first, second")
        total = in_range(a * first.l + b * second.l, "first, second")
    return Summary(m, total, o)


def online_attention(
    Q: Real[ArrayLike[Array], "... n d_k"],
    K: Real[ArrayLike[Array], "... m d_k"],
    V: Real[ArrayLike[Array], "... m d_v"],
    *,
    block: int = 64,
    scale: float | None = None,
) -> Float[Array, "... n d_v"]:
    """Attention (5.1.1) in one pass over blocks of keys, equal to `attention` up to rounding.

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
    same_batches(K=K, V=V)
    scale = 1 / math.sqrt(K.shape[-1]) if scale is None else positive(scale, "scale")
    Q = finite(real_array(Q, "Q", at_least=2), "Q")
    same_dtype(Q=Q, K=K)
    dtype = V.dtype
    Q, K, V = wide(Q, K, V)
    summary: Summary[Array] | None = None
    for start in range(0, K.shape[-2], block):
        part = slice(start, start + block)
        S = scores(Q, K[..., part, :], scale=scale)
        same_batches(Q=S, V=V)
        new = summarise(S, V[..., part, :])
        with about("V"):
            summary = new if summary is None else merge(summary, new)
    assert summary is not None  # K has no empty axis
    with silent():
        return rounded(summary.o / summary.l, dtype, "V")
