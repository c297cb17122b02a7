"""What attention costs: formulas for its operations, the operations counted one by one, and peak memory."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Real

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import fits_memory, floats, generator, in_range, positive_integer
from attnmath.checks import function as checked_function

STAGES = ("scores", "scaling", "softmax", "values")


def dot_operations(d: Any) -> Any:
    """Operations of a dot product of d terms: d multiplications and d - 1 additions.

    >>> dot_operations(np.uint8(200))
    399
    """
    return 2 * _size(d, "d") - 1


def attention_operations(n: Any, d_k: Any, d_v: Any) -> dict[str, Any]:
    """Operations of the stages of (5.1.1) for n queries and n keys.

    The softmax of a row takes n - 1 comparisons, n subtractions, n exponentials, n - 1
    additions and n divisions.

    Numbers give numbers, sympy symbols give formulas.

    >>> attention_operations(3, 1, 1)["softmax"]
    39
    """
    n, d_k, d_v = _size(n, "n"), _size(d_k, "d_k"), _size(d_v, "d_v")
    return {
        "scores": n**2 * dot_operations(d_k),
        "scaling": n**2,
        "softmax": n * (5 * n - 2),
        "values": n * d_v * dot_operations(n),
    }


def attention_traffic(n: Any, d_k: Any, d_v: Any) -> dict[str, Any]:
    """Numbers that each stage of (5.1.1) reads and writes, with S and P kept in memory.

    Times the bytes of a number, this is the traffic between memory and processor.

    >>> attention_traffic(2, 3, 1)
    {'scores': 16, 'scaling': 8, 'softmax': 8, 'values': 8}
    """
    n, d_k, d_v = _size(n, "n"), _size(d_k, "d_k"), _size(d_v, "d_v")
    return {
        "scores": 2 * n * d_k + n**2,
        "scaling": 2 * n**2,
        "softmax": 2 * n**2,
        "values": n**2 + 2 * n * d_v,
    }


def projection_operations(n: Any, d_model: Any, d_out: Any) -> Any:
    """Operations of one projection (5.1.2) of n rows from d_model to d_out dimensions."""
    return _size(n, "n") * _size(d_out, "d_out") * dot_operations(_size(d_model, "d_model"))


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


def peak_memory(function: Callable[..., Any], *arguments: Any) -> int:
    """Largest number of bytes that were allocated during a call, beyond what was before it.

    numpy reports its arrays to tracemalloc; torch does not.
    """
    checked_function(function, "function")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        function(*arguments)
        _, peak = tracemalloc.get_traced_memory()
    finally:
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


def _size(value: Any, name: str) -> Any:
    """Return a size as an int of Python, which cannot overflow, a sympy expression as it is, or an array in float64.

    Curves are drawn over sizes in between as well, so arrays need not hold integers.
    """
    if isinstance(value, np.ndarray) and value.ndim:
        sizes = floats(value, name)
        if np.any(sizes < 1) or np.any(sizes > 1e75):  # the fourth power stays in range
            raise ValueError(f"{name}: expected sizes from 1 to 1e75, got {sizes.min():g} to {sizes.max():g}")
        return sizes
    if hasattr(value, "free_symbols") and not getattr(value, "is_number", True):
        return value
    if getattr(value, "is_Integer", False):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: expected an integer or a sympy expression, got {type(value).__name__} {value!r}")
    if value < 1:
        raise ValueError(f"{name}: expected a positive integer, got {value}")
    return int(value)


def _times(a: float, b: float) -> float:
    return a * b


def _plus(a: float, b: float) -> float:
    return a + b


def _dot(tally: Tally, a: list[float], b: list[float]) -> float:
    products = [tally(_times, x, y) for x, y in zip(a, b, strict=True)]
    return _reduce(tally, _plus, products)


def _softmax(tally: Tally, row: list[float]) -> list[float]:
    top = _reduce(tally, max, row)
    powers = [tally(math.exp, tally(lambda a, b: a - b, s, top)) for s in row]
    total = _reduce(tally, _plus, powers)
    return [tally(lambda a, b: a / b, p, total) for p in powers]


def _reduce(tally: Tally, operation: Callable[..., float], values: list[float]) -> float:
    result = values[0]
    for value in values[1:]:
        result = tally(operation, result, value)
    return result
