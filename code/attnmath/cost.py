"""What attention costs, in formulas: operations, depth and bytes for each stage; and the peak memory of a call.

The formulas take numbers, arrays or sympy symbols and answer in kind. `attnmath.counting` holds
implementations that count themselves, against which the formulas are checked.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from attnmath.checks import positive_integer

STAGES = ("scores", "scaling", "softmax", "values")


def dot_operations(d: Any) -> Any:
    """Operations of a dot product of d terms: d multiplications and d - 1 additions.

    >>> dot_operations(4)
    7
    """
    d = _size(d, "d")
    return 2 * d - 1


def attention_operations(n: Any, d_k: Any, d_v: Any) -> dict[str, Any]:
    """Operations of the stages of (5.1.1) for n queries and n keys.

    The softmax of a row takes n - 1 comparisons, n subtractions, n exponentials, n - 1
    additions and n divisions.

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


def projection_operations(n: Any, d_model: Any, d_out: Any) -> Any:
    """Operations of one projection (5.1.2) of n rows from d_model to d_out dimensions.

    >>> projection_operations(2, 3, 4)
    40
    """
    return _size(n, "n") * _size(d_out, "d_out") * dot_operations(d_model)


def layer_operations(n: Any, d: Any, *, heads: Any = 1, projections: int = 3) -> dict[str, Any]:
    """Operations of a self-attention layer of width d: the stages of all heads, and the projections.

    heads : each has d_k = d_v = d / heads.
    projections : 3 for Q, K and V; 4 with that of the output.

    >>> layer_operations(1, 2)
    {'stages': 9, 'projections': 18}
    """
    d, heads = _size(d, "d"), _size(heads, "heads")
    if isinstance(d, int) and isinstance(heads, int) and d % heads:
        raise ValueError(f"heads: expected a divisor of d = {d}, got {heads}")
    width = d // heads if isinstance(d, int) and isinstance(heads, int) else d / heads
    return {
        "stages": heads * sum(attention_operations(n, width, width).values()),
        "projections": positive_integer(projections, "projections") * projection_operations(n, d, d),
    }


def recurrent_operations(n: Any, d: Any) -> Any:
    """Operations of the recurrence h_t = tanh(h_{t-1} W + x_t U) over n steps of width d.

    Two products with a vector, d additions and d hyperbolic tangents a step.

    >>> recurrent_operations(5, 2)
    80
    """
    n, d = _size(n, "n"), _size(d, "d")
    return n * (2 * d * dot_operations(d) + 2 * d)


def attention_depth(n: int, d_k: int) -> int:
    """Longest chain of operations in (5.1.1) when sums and maxima are taken in balanced trees.

    One multiplication and a tree over d_k for a score; the scaling; a tree over n for the maximum;
    a subtraction and an exponential; a tree over n for the sum; a division; and, for the output, a
    multiplication and a tree over n.

    >>> attention_depth(1024, 64)
    42
    """
    return _tree(d_k, "d_k") + 3 * _tree(n, "n") + 6


def recurrent_depth(n: int, d: int) -> int:
    """Longest chain of operations in h_t = tanh(h_{t-1} W + x_t U): each step waits for the one before.

    >>> recurrent_depth(1024, 64)
    9216
    """
    return positive_integer(n, "n") * (_tree(d, "d") + 3)


def attention_bytes(n: Any, d_k: Any, d_v: Any, *, width: Any = 8) -> dict[str, Any]:
    """Bytes that the stages of (5.1.1) move if each reads its inputs once and writes its result once.

    width : bytes of a number. Keys beyond the first numbers that fit into fast memory are read more
    often than once in practice, so this is a lower bound for an implementation in stages.

    >>> attention_bytes(2, 3, 1, width=1)
    {'scores': 16, 'scaling': 8, 'softmax': 8, 'values': 8}
    """
    n, d_k, d_v, width = (_size(v, s) for v, s in ((n, "n"), (d_k, "d_k"), (d_v, "d_v"), (width, "width")))
    return {
        "scores": width * (2 * n * d_k + n**2),
        "scaling": width * 2 * n**2,
        "softmax": width * 2 * n**2,
        "values": width * (n**2 + 2 * n * d_v),
    }


def peak_memory(function: Callable[..., Any], *arguments: Any) -> int:
    """Largest number of bytes that were allocated during a call, beyond what was before it.

    The function is called once before, so that what a first call sets up is not charged to it.
    numpy reports its arrays to tracemalloc; torch does not.

    >>> 8_000_000 <= peak_memory(np.zeros, 10**6) < 8_010_000
    True
    """
    if not callable(function):
        raise TypeError(f"function: expected something to call, got {type(function).__name__} {function!r}")
    if tracemalloc.is_tracing():
        raise RuntimeError("tracemalloc: expected it not to be tracing already, since a peak belongs to one call")
    function(*arguments)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        function(*arguments)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before


def random_inputs(n: int, d: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Standard normal Q, K and V of shape (n, d).

    >>> [a.shape for a in random_inputs(5, 2, np.random.default_rng(0))]
    [(5, 2), (5, 2), (5, 2)]
    """
    shape = (positive_integer(n, "n"), positive_integer(d, "d"))
    return rng.standard_normal(shape), rng.standard_normal(shape), rng.standard_normal(shape)


def _tree(leaves: int, name: str) -> int:
    """Depth of a balanced binary tree: ceil(log2(leaves)), in integers."""
    return (positive_integer(leaves, name) - 1).bit_length()


def _size(value: Any, name: str) -> Any:
    """Return a size: an integer of at least 1, an array of positive numbers, or a symbol as it is."""
    if isinstance(value, int | np.integer):
        return positive_integer(int(value) if not isinstance(value, bool) else value, name)
    if isinstance(value, float | np.floating | np.ndarray):
        values = np.asarray(value)
        if values.dtype.kind not in "iuf" or not np.all(np.isfinite(values)) or not np.all(values > 0):
            raise ValueError(f"{name}: expected positive finite numbers, got {value}")
        return value
    if not hasattr(value, "free_symbols"):
        raise TypeError(f"{name}: expected a size, an array of sizes or a symbol, got {type(value).__name__} {value!r}")
    if value.is_positive is False:
        raise ValueError(f"{name}: expected a positive size, got {value}")
    return value
