"""What attention costs: formulas for its operations, the operations counted one by one, and peak memory."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Real

from attnmath.arrays import ArrayLike, Numpy, Size, SizeLike
from attnmath.checks import (
    fits_memory,
    flag,
    floats,
    generator,
    in_range,
    positive_integer,
    silent,
    size_or_symbol,
    sizes_or_symbols,
)
from attnmath.checks import function as checked_function

STAGES = ("scores", "scaling", "softmax", "values")
LINEAR_STAGES = ("table", "sums", "numerators", "denominators", "quotients")


def dot_operations(d: SizeLike[Size]) -> Size:
    """Operations of a dot product of d terms: d multiplications and d - 1 additions.

    >>> dot_operations(np.uint8(200))
    399
    """
    return 2 * size_or_symbol(d, "d") - 1


def attention_operations(n: SizeLike[Size], d_k: SizeLike[Size], d_v: SizeLike[Size]) -> dict[str, Size | int]:
    """Operations of the stages of (5.1.1) for n queries and n keys.

    The softmax of a row takes n - 1 comparisons, n subtractions, n exponentials, n - 1
    additions and n divisions.

    Numbers give numbers, sympy symbols give formulas.

    >>> attention_operations(3, 1, 1)["softmax"]
    39
    """
    n, d_k, d_v = sizes_or_symbols(n=n, d_k=d_k, d_v=d_v)
    return {
        "scores": n**2 * dot_operations(d_k),
        "scaling": n**2,
        "softmax": n * (5 * n - 2),
        "values": n * d_v * dot_operations(n),
    }


def projection_operations(n: SizeLike[Size], d_model: SizeLike[Size], d_out: SizeLike[Size]) -> Size:
    """Operations of one projection (5.1.2) of n rows from d_model to d_out dimensions."""
    n, d_model, d_out = sizes_or_symbols(n=n, d_model=d_model, d_out=d_out)
    return n * d_out * dot_operations(d_model)


def linear_attention_operations(
    n: SizeLike[Size],
    r: SizeLike[Size],
    d_v: SizeLike[Size],
    *,
    causal: bool = False,
    chunk: SizeLike[Size] | None = None,
) -> dict[str, Size | int]:
    """Operations of linear attention for n queries and n keys with r features each, the features given.

    causal=False: the sums S = phi(K)^T V and z over all keys, then the numerators phi(Q) S, the denominators
    phi(Q) z and their quotients; a chunk has no effect. causal=True: the recurrence, where S and z begin with 0 and
    every token adds to them; with a chunk, that number of tokens at a time, whose full table of chunk x chunk weights
    is formed, and masked (this is no operation on numbers), before it meets V and a column of ones. (The last chunk
    is shorter where chunk does not divide n; formulas in symbols, and arrays, take n/chunk whole chunks.)

    Numbers give numbers, sympy symbols give formulas.

    >>> linear_attention_operations(4, 2, 2)
    {'table': 0, 'sums': 34, 'numerators': 24, 'denominators': 12, 'quotients': 8}
    """
    n, r, d_v, *chunks = sizes_or_symbols(n=n, r=r, d_v=d_v, **({} if chunk is None else {"chunk": chunk}))
    causal = flag(causal, "causal")
    rows = {"numerators": n * d_v * dot_operations(r), "denominators": n * dot_operations(r), "quotients": n * d_v}
    if not causal:
        return {"table": 0 * n, "sums": r * d_v * dot_operations(n) + r * (n - 1), **rows}
    if not chunks:
        return {"table": 0 * n, "sums": n * r * (2 * d_v + 1), **rows}
    chunk = chunks[0]
    if isinstance(n, int) and isinstance(chunk, int):
        whole, rest = divmod(n, chunk)
        parts = [(whole, chunk), (1, rest)] if rest else [(whole, chunk)]
    else:
        parts = [(n / chunk, chunk)]
    products = sum(count * c * c for count, c in parts)
    return {
        "table": products * dot_operations(r),
        "sums": sum(count * r * (2 * c * d_v + c) for count, c in parts),
        "numerators": rows["numerators"] + 2 * d_v * products,  # the table's part, and one addition
        "denominators": rows["denominators"] + products,
        "quotients": rows["quotients"],
    }


class Tally:
    """Arithmetic that counts itself: every operation on numbers adds one to the current stage."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.stage = STAGES[0]

    def __call__(self, operation: Callable[..., float], *operands: float) -> float:
        """Apply an operation to numbers, and count it."""
        self.counts[self.stage] += 1
        return operation(*operands)


def counted_attention(
    Q: Real[ArrayLike, "n d_k"], K: Real[ArrayLike, "n d_k"], V: Real[ArrayLike, "n d_v"]
) -> tuple[list[list[float]], dict[str, int]]:
    """Attention (5.1.1) by the definition, one scalar operation at a time.

    Returns the output, in rows, and the number of
    additions, multiplications, divisions, exponentials and comparisons of each stage.

    >>> counted_attention([[1.0]], [[1.0]], [[2.0]])
    ([[2.0]], {'scores': 1, 'scaling': 1, 'softmax': 3, 'values': 1})
    """
    Q, K, V = (floats(a, name, ndim=2) for a, name in ((Q, "Q"), (K, "K"), (V, "V")))
    if K.shape != Q.shape or len(V) != len(K):
        raise ValueError(f"Q, K, V: expected shapes (n, d_k), (n, d_k), (n, d_v), got {Q.shape}, {K.shape}, {V.shape}")
    tally = Tally()
    S = [[_dot(tally, q, k) for k in K.tolist()] for q in Q.tolist()]
    in_range(np.asarray(S), "Q, K")
    tally.stage = "scaling"
    factor = 1 / math.sqrt(Q.shape[1])
    S = [[tally(_times, s, factor) for s in row] for row in S]
    tally.stage = "softmax"
    P = [_softmax(tally, row) for row in S]
    tally.stage = "values"
    O = [[_dot(tally, row, column) for column in V.T.tolist()] for row in P]  # noqa: E741
    in_range(np.asarray(O), "V")
    return O, {stage: tally.counts[stage] for stage in STAGES}


def counted_linear_attention(
    Q: Real[ArrayLike, "n r"],
    K: Real[ArrayLike, "n r"],
    V: Real[ArrayLike, "n d_v"],
    *,
    causal: bool = False,
    chunk: int | None = None,
) -> tuple[list[list[float]], dict[str, int]]:
    """Linear attention of features Q and K, one scalar operation at a time, as `linear_attention_operations` has it.

    Returns the output, in rows, and the number of additions, multiplications and divisions of each part. A chunk
    without causal has no effect.

    >>> counted_linear_attention([[2.0]], [[3.0]], [[5.0]])[0]
    [[5.0]]
    """
    Q, K, V = (floats(a, name, ndim=2) for a, name in ((Q, "Q"), (K, "K"), (V, "V")))
    causal = flag(causal, "causal")
    chunk = None if chunk is None else positive_integer(chunk, "chunk")
    if K.shape != Q.shape or len(V) != len(K):
        raise ValueError(f"Q, K, V: expected shapes (n, r), (n, r), (n, d_v), got {Q.shape}, {K.shape}, {V.shape}")
    tally = Tally()
    n = len(Q)
    values = np.column_stack([V, np.ones(n)])  # the last column of the sums is z
    size = n if not causal else 1 if chunk is None else chunk
    state = np.zeros((Q.shape[1], values.shape[1]))
    out = []
    with silent():
        for start in range(0, n, size):
            part = slice(start, min(start + size, n))
            tally.stage = "table"
            chunked = causal and chunk is not None
            table = [[_dot(tally, q, k) for k in K[part].tolist()] for q in Q[part].tolist()] if chunked else []
            before, state = state, _added(tally, state, K[part], values[part], first=not causal)
            for i, q in enumerate(Q[part].tolist()):
                sums = []
                for column in range(values.shape[1]):
                    tally.stage = "denominators" if column == V.shape[1] else "numerators"
                    total = _dot(tally, q, (before if chunked else state)[:, column].tolist())
                    if chunked:
                        masked = [w if j <= i else 0.0 for j, w in enumerate(table[i])]
                        weighted = masked if column == V.shape[1] else [
                            tally(_times, w, v) for w, v in zip(masked, V[part, column].tolist(), strict=True)
                        ]  # fmt: skip
                        total = tally(_plus, total, _reduce(tally, _plus, weighted))
                    sums.append(total)
                in_range(np.asarray(sums), "Q, K, V")
                if sums[-1] == 0:
                    raise ValueError("Q, K: expected weights that do not sum to 0, got a query for which they do")
                tally.stage = "quotients"
                out.append([tally(_divided, total, sums[-1]) for total in sums[:-1]])
    in_range(np.asarray(out), "Q, K, V")
    return out, {stage: tally.counts[stage] for stage in LINEAR_STAGES}


def peak_memory(function: Callable[..., Any], *arguments: Any) -> int:
    """Largest number of bytes that were allocated during a call, beyond what was before it.

    numpy reports its arrays to tracemalloc; torch does not. What other threads allocate meanwhile is counted too.
    """
    checked_function(function, "function")
    tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        function(*arguments)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not tracing:
            tracemalloc.stop()
    return peak - before


def random_inputs(
    n: int, d: int, rng: np.random.Generator
) -> tuple[Float[Numpy, "{n} {d}"], Float[Numpy, "{n} {d}"], Float[Numpy, "{n} {d}"]]:
    """Standard normal Q, K and V."""
    shape = (positive_integer(n, "n"), positive_integer(d, "d"))
    fits_memory("n, d", 3, *shape)
    generator(rng)
    return rng.standard_normal(shape), rng.standard_normal(shape), rng.standard_normal(shape)


def _times(a: float, b: float) -> float:
    return a * b


def _plus(a: float, b: float) -> float:
    return a + b


def _divided(a: float, b: float) -> float:
    return a / b


def _added(tally: Tally, state: Any, K: Any, values: Any, *, first: bool) -> Any:
    """Return the sums of k v^T, added to the state before; values has ones in its last column, which cost nothing."""
    tally.stage = "sums"
    new = np.empty_like(state)
    for column in range(state.shape[1]):
        ones = column == state.shape[1] - 1
        for row in range(state.shape[0]):
            pairs = zip(K[:, row].tolist(), values[:, column].tolist(), strict=True)
            products = [k if ones else tally(_times, k, v) for k, v in pairs]
            new[row, column] = _reduce(tally, _plus, products if first else [float(state[row, column]), *products])
    return new


def _dot(tally: Tally, a: list[float], b: list[float]) -> float:
    products = [tally(_times, x, y) for x, y in zip(a, b, strict=True)]
    return _reduce(tally, _plus, products)


def _softmax(tally: Tally, row: list[float]) -> list[float]:
    top = _reduce(tally, max, row)
    powers = [tally(math.exp, tally(lambda a, b: a - b, s, top)) for s in row]
    total = _reduce(tally, _plus, powers)
    return [tally(_divided, p, total) for p in powers]


def _reduce(tally: Tally, operation: Callable[..., float], values: list[float]) -> float:
    result = values[0]
    for value in values[1:]:
        result = tally(operation, result, value)
    return result
