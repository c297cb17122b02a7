"""No public function allocates more than the stated multiple of its arguments and its result.

numpy reports to tracemalloc what it allocates; tensors of torch take the same way through one definition. What is asked
at a size counts at every size, as the multiple is compared at a size at which nothing fixed is left of it.
"""

from __future__ import annotations

import inspect
import tracemalloc
from typing import Any

import formats
import hostile
import numpy as np
import pytest

from attnmath.checks import MULTIPLE, WORKING_SPACE
from attnmath.linear_cost.random_features import projections
from attnmath.linear_cost.random_features.maps import positive
from attnmath.linear_cost.random_features.performer import kernel_estimate
from attnmath.matrix.patterns import window_mask
from attnmath.operator.attention import jacobian_norm
from attnmath.operator.gaussian_rows import LONGEST, WIDEST, mean_entropy

PUBLIC = hostile.public_functions()
#: Not called: files, what measures the machine, and what is made to be slow.
LEFT_OUT = hostile.FILES | {"cost.peak_memory"}
#: Files, texts, and a decoder whose windows are short.
ELSEWHERE = ("heads.load", "heads.corpus", "heads.extract", "heads.removal", "experiments.")
NAMES = sorted(name for name in {*PUBLIC, *formats.FUNCTIONS} - LEFT_OUT if not name.startswith(ELSEWHERE))
#: Sizes of functions that take no array.
SIZES = {"n": 700, "m": 512, "d": 512, "size": 40_000, "rows": 400, "d_model": 300}
#: Sizes of chunks, whose tables are the caller's choice.
CHUNKS = {"causal": False, "block": 256, "chunk": 16}
#: Fixed space: grids and series of quadratures, and blocks of random draws, whatever is asked for.
FIXED = {
    *(f"gaussian_rows.{name}" for name in ("deviation_for_entropy", "mean_collision", "mean_entropy", "mean_log_sum")),
    "dot_product.draws", "dot_product.gaussian_cdf", "dot_product.gaussian_density", "dot_product.kolmogorov_distance",
    "initialisation.measured_chain", "initialisation.measured_gains", "initialisation.scaled_scores",
}  # fmt: skip
#: Results that are larger than the longest argument would suggest: long is so many rows.
SHORT = {
    **dict.fromkeys(("attention.softmax_jacobian", "experts.block_matrix", "frozen_heads.logits"), 300),
    **dict.fromkeys(("gradients.attention_gradients", "gradients.stack_gradients", "depth.attention_stack"), 2),
    **dict.fromkeys(("patterns.masked_weights", "patterns.renormalised"), 3), "performer.attention_estimate": 300,
    "johnson_lindenstrauss.distortion": 300, "kernels.linear_attention_recurrent": 1000,
    "cost.counted_attention": 40, "cost.counted_linear_attention": 40,
    "mechanisms.counted_pattern": 1000, "mechanisms.counted_positive_features": 300,
}  # fmt: skip


def long_arguments(name: str) -> dict[str, Any]:
    if name not in formats.FUNCTIONS:
        made = {key: new() for key, new in hostile.parameters(name, PUBLIC[name]).items()}
        return made | {key: size for key, size in SIZES.items() if isinstance(made.get(key), int)}
    function = formats.FUNCTIONS[name]
    is_square = any(axes[-2:] == ["n", "n"] or "kinds" in axes for axes in formats.array_axes(function).values())
    chosen = {key: value for key, value in CHUNKS.items() if key in inspect.signature(function).parameters}
    return formats.stretched(name, SHORT.get(name, 300 if is_square else 20_000), **chosen)


def in_double(value: Any) -> int:
    """Return the bytes of arrays, of numbers in double precision; booleans are a byte each."""
    arrays = [a for a in formats.numbers(value) if a.dtype.kind != "O"]
    return sum(a.size * (1 if a.dtype.kind == "b" else max(8, a.dtype.itemsize)) for a in arrays)


def excess(function: Any, arguments: dict[str, Any], fixed: int) -> float:
    """Return the bytes that a call allocates beyond a fixed space, for each byte of its arguments and its result."""
    arguments = formats.renewed(arguments)
    given = in_double([value for value in arguments.values() if not isinstance(value, np.random.Generator)])
    tracemalloc.start()
    try:
        result = function(**arguments)
        result = list(result) if inspect.isgenerator(result) else result
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (peak - fixed) / (given + in_double(result))


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_a_multiple_of_what_goes_in_and_comes_out(name: str) -> None:
    function = formats.FUNCTIONS.get(name) or PUBLIC[name]
    # What Python itself allocates in a call is some ten kilobytes.
    assert excess(function, long_arguments(name), WORKING_SPACE if name in FIXED else 2**17) < MULTIPLE


def test_at_the_largest_sizes_that_are_promised() -> None:
    tracemalloc.start()
    try:
        mean_entropy(WIDEST, LONGEST)
        jacobian_norm(np.full(10**6, 1e-6))
        assert tracemalloc.get_traced_memory()[1] < WORKING_SPACE
    finally:
        tracemalloc.stop()
    assert excess(window_mask, {"n": 2**12, "width": 3}, 0) < MULTIPLE


def test_a_square_on_the_way_is_found() -> None:
    def off_diagonal(x: np.ndarray) -> np.ndarray:
        return (x[:, None] * (1 - np.eye(len(x)))).sum(axis=1)

    assert excess(off_diagonal, {"x": np.ones(500)}, 2**17) > MULTIPLE


def test_one_row_of_a_block_needs_no_block_and_one_key_no_table() -> None:
    draws = np.random.default_rng(0)
    for draw in (projections.hadamard, projections.simplex, projections.orthogonal):
        assert excess(draw, {"m": 1, "d": 4096, "rng": draws}, 2**17) < MULTIPLE
    one, many = draws.standard_normal((1, 1)), draws.standard_normal((4000, 1))
    for x, y in ((many, one), (one, many)):
        features = positive(draws.standard_normal((2000, 1)))
        assert excess(kernel_estimate, {"X": x, "Y": y, "features": features}, WORKING_SPACE) < MULTIPLE
