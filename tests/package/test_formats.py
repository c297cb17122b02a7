"""Every public function of arrays in every number format: right within what rounding may do, or a clear error.

The bound is that of backward errors. A result that is computed by k successive roundings to eps is the exact one of
arguments that are moved relatively by k eps; `formats.sensitivity` says how far that moves the result. Half precision
is a format for what goes in and comes out, with at most `FEW` roundings on the way: every sum is kept in single
precision, with one rounding for each of its terms and at most `MANY` others.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import formats
import numpy as np
import pytest
from array_api_compat import is_torch_array
from backends import torch_or_skip

from attnmath.checks import precision, total
from attnmath.encoder_decoder.bidirectional import mean_row_cosine
from attnmath.figures import attention_heatmap
from attnmath.fixed_attention.frozen_heads import inputs_for, logit_moments
from attnmath.linear_cost.expansion import expanded_attention
from attnmath.linear_cost.feature_maps import power_series_features
from attnmath.linear_cost.kernels import elu_plus_one, linear_attention, linear_attention_recurrent
from attnmath.matrix.rank import numerical_rank
from attnmath.operator.attention import attention_weights, scores, softmax
from attnmath.operator.gradients import stage_gradients
from attnmath.operator.online import merge, online_attention, summarise
from attnmath.sparsity import linear, sparsity

FEW, MANY = 8, 64
SINGLE = float(np.finfo(np.float32).eps)
FLOATING = [("numpy", t) for t in ("float16", "float32", "float64")]
FLOATING += [("torch", t) for t in ("float16", "bfloat16", "float32", "float64")]
WHOLE = [
    (library, f"{sign}int{bits}") for sign in ("", "u") for library in ("numpy", "torch") for bits in (8, 16, 32, 64)
]
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": SINGLE, "float64": 2.0**-52}

#: Functions that take no half precision, as their docstrings or errors say: linear algebra has none.
PRECISE = re.compile(r"expected single or double precision")
#: The machine is asked for a time, or for its memory.
LEFT_OUT = {"cost.peak_memory", "experiments.sparsity_benchmark.microseconds"}
NAMES = sorted(set(formats.FUNCTIONS) - LEFT_OUT)
#: Arguments of long calls beside those that grow: chunks as large as a user has them.
LONG: dict[str, Any] = {"causal": False, "block": 4096, "chunk": 4096, "masks": np.ones((3, 3), bool)}
#: Functions that are long at so many entries (a square matrix, a loop, a series for each); others get 100,000.
LONGEST = {
    **dict.fromkeys(("cost.counted_attention", "cost.counted_linear_attention"), 30),
    **dict.fromkeys(("mechanisms.counted_pattern", "mechanisms.counted_positive_features"), 300),
    **dict.fromkeys(("dot_product.gaussian_cdf", "dot_product.gaussian_density"), 1000),
    **dict.fromkeys(("frozen_heads.logits", "gradients.attention_gradients", "gradients.stack_gradients"), 300),
    **dict.fromkeys(("experts.block_matrix", "heads.locality.mutual_information", "attention.softmax_jacobian"), 300),
    **dict.fromkeys(("johnson_lindenstrauss.distortion", "depth.attention_stack", "performer.attention_estimate"), 300),
    **dict.fromkeys([f"orthogonal.{each}_variance" for each in ("gerf", "hyperbolic", "positive")], 10_000),
    "kernels.linear_attention_recurrent": 3000,
    "experiments.sparsity_benchmark.monte_carlo": 3,
    "experiments.sparsity_benchmark.quadrature": 100,
    "experiments.sparsity_benchmark.relative_errors": 16,
}  # fmt: skip


def of_kind(value: np.ndarray, library: str, dtype: str) -> Any:
    """Return an ordinary argument in a format; rows of probabilities become one-hot in integers."""
    if "int" in dtype:
        whole = np.rint(2 * value)
        whole = np.abs(whole) if dtype.startswith("u") else whole
        value = np.eye(value.shape[-1])[value.argmax(-1)] if formats.is_stochastic(value) else whole
    if library == "numpy":
        return value.astype(dtype)
    torch = torch_or_skip()
    return torch.tensor(value).to(getattr(torch, dtype))


def in_double(value: Any) -> np.ndarray:
    """Return the same numbers in float64, rows of probabilities to its rounding."""
    value = value.double().numpy() if is_torch_array(value) else value.astype(float)
    close = value.ndim and np.all(value >= 0) and np.all(np.abs(value.sum(-1) - 1) < 2.0**-6)
    return formats.normalised(value) if close else value


def outcome(name: str, arguments: dict[str, Any]) -> Any:
    """Return what a function gives, or the error that it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = formats.FUNCTIONS[name](**formats.renewed(arguments))
            return list(result) if inspect.isgenerator(result) else result
    except (TypeError, ValueError) as error:
        return error


def exactly(name: str, exact: dict[str, Any]) -> tuple[Any, list[np.ndarray]]:
    """Return the result in float64, or the error, and its sensitivity."""
    want = outcome(name, exact)
    return want, [] if isinstance(want, Exception) else formats.sensitivity(name, exact, want)


def once(name: str, exact: dict[str, Any]) -> tuple[Any, list[np.ndarray]]:
    """Return the same for short arguments, once for all formats and layouts of the same numbers."""
    key = name, tuple((key, same(value)) for key, value in exact.items())
    if key not in KEPT:
        KEPT[key] = exact, exactly(name, exact)
    return KEPT[key][1]


def same(value: Any) -> Any:
    """Return what is equal for equal arguments, and for no others while the arguments exist."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, list | tuple):
        return type(value), *map(same, value)
    return type(value), None if isinstance(value, np.random.Generator) else id(value)


#: By what is the same: the arguments, of which all exist, and what is right for them.
KEPT: dict[Any, tuple[dict[str, Any], tuple[Any, list[np.ndarray]]]] = {}


def wrong(name: str, given: dict[str, Any], exact: dict[str, Any], eps: float, length: int) -> str:
    """Say what is wrong with the result of arguments in a format, beside that of the same numbers in float64."""
    return wrong_result(name, outcome(name, given), given, exact, eps, length)


def wrong_result(name: str, got: Any, given: dict[str, Any], exact: dict[str, Any], eps: float, length: int) -> str:
    """Say what is wrong with a result, or an error, of arguments in a format."""
    want, moved = once(name, exact) if length <= 4 else exactly(name, exact)
    if isinstance(got, Exception):
        named = any(re.search(rf"\b{key}\b[^:]*:", str(got)) for key in given)
        too_large = not isinstance(want, Exception) and largest(want) > 65504 and "overflow" in str(got)
        fair = isinstance(want, Exception) or too_large or (eps > SINGLE and is_refused(name, got))
        if length > 4 and isinstance(want, Exception) and name not in BOUNDED:
            return f"float64 raises {want}"
        return "" if named and fair else f"raises {got}"
    if isinstance(want, Exception):
        return f"float64 raises {want}"
    if name.startswith("gradients."):  # differences of intermediate products: errors are small beside the largest
        moved = [np.asarray(max(float(np.max(by)) for by in moved))] * len(moved)
    for a, b, by in zip(formats.numbers(got), formats.numbers(want), moved, strict=True):
        if a.shape != b.shape:
            return f"shape {a.shape} in place of {b.shape}"
        if b.dtype.kind not in "fc":
            if not (np.array_equal(a, b) or name in BETWEEN):
                return f"{a} in place of {b}"
            continue
        with np.errstate(all="ignore"):
            sums = (MANY + length) * (SINGLE if eps >= SINGLE else eps)
            bound = FEW * eps * (by + np.abs(b)) + sums * (by + np.abs(b)) + (2.0**-24 if eps == 2.0**-10 else 0)
            off = np.where(np.isinf(b) & (a == b), 0, np.abs(a - b)) / np.maximum(bound, 1e-300)
        if not np.all(off <= 1):
            worst = np.unravel_index(np.argmax(np.nan_to_num(off, nan=np.inf)), off.shape)
            return f"{a[worst]} in place of {b[worst]}, {off[worst]:.3g} times the bound"
    return ""


#: Functions that take no long arguments: windows of a small decoder.
BOUNDED = {"heads.removal.attention", "heads.removal.bits", "heads.removal.greedy_order"}
#: Counts that depend on a tolerance, which is that of the format.
BETWEEN = {"rank.effective_rank", "rank.numerical_rank"}


def is_refused(name: str, error: Exception) -> bool:
    """Whether half precision is refused as such: the function wants more, or rounding hides what it asks for."""
    hidden = name == "frozen_heads.invariant" and "expected independent columns" in str(error)
    return hidden or bool(PRECISE.search(str(error)))


def largest(result: Any) -> float:
    return max(float(np.max(np.abs(part))) for part in formats.numbers(result))


def pair(name: str, arguments: dict[str, Any], library: str, dtype: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return arguments in a format, and the same numbers in float64."""
    given = {key: formats.mapped(value, lambda a: of_kind(a, library, dtype)) for key, value in arguments.items()}
    exact = {
        key: formats.mapped(value, lambda a: in_double(of_kind(a, library, dtype))) for key, value in arguments.items()
    }
    if (
        name.endswith(("derf", "derf_variance")) and "int" not in dtype
    ):  # what is unbiased is so to the precision of the format
        exact |= {key: value for key, value in arguments.items() if key in ("A", "B", "B_q", "B_k")}
    return given, exact


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_result_of_float64_or_a_clear_error(name: str) -> None:
    arguments, found = formats.ordinary(name), {}
    assert not isinstance(outcome(name, arguments), Exception)
    for library, dtype in FLOATING + WHOLE:  # signed ones, and then unsigned ones, of the same numbers
        given, exact = pair(name, arguments, library, dtype)
        eps = EPS.get(dtype, SINGLE if library == "torch" else 2.0**-52)
        got = outcome(name, given)
        found[library, dtype] = wrong_result(name, got, given, exact, eps, 4) or wrong_dtype(
            name, got, given, library, dtype
        )
    assert {key: text for key, text in found.items() if text} == {}


def wrong_dtype(name: str, result: Any, given: dict[str, Any], library: str, dtype: str) -> str:
    """Say which part of a result is not in the promised library and dtype: of the arguments, or float64."""
    function = formats.FUNCTIONS[name]
    if isinstance(result, Exception):
        return ""
    in_kind = any("[Array]" in str(p.annotation) or "Summary" in str(p.annotation)
                  for p in inspect.signature(function).parameters.values())  # fmt: skip
    promised = "float64" if not in_kind else dtype
    in_torch = in_kind and any(is_torch_array(a) for value in given.values() for a in parts([value]))
    if "int" in dtype and in_kind:
        promised = "float32" if library == "torch" else "float64"
    if name in ("online.summarise", "online.merge") and "16" in promised:
        promised = "float32"  # sums are kept in single precision, as the docstring says
    for part in parts(result):
        kind = str(part.dtype).removeprefix("torch.")
        is_right = kind == promised or not kind.startswith(("float", "bfloat"))
        if not is_right or is_torch_array(part) != in_torch:
            return f"gives {part.dtype}"
    return ""


def parts(result: Any) -> list[Any]:
    """Return the arrays in a result as they are."""
    if isinstance(result, list | tuple):
        return [part for item in result for part in parts(item)]
    if hasattr(result, "shape"):
        return [result]
    return [part for item in getattr(result, "__dict__", {}).values() for part in parts(item)]


def frozen(value: np.ndarray) -> np.ndarray:
    value = value.copy()
    value.flags.writeable = False
    return value


#: The same numbers in other places of memory.
LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "read-only": frozen,
    "every second": lambda value: np.repeat(value, 2, axis=-1)[..., ::2] if value.ndim else value,
    "columns first": lambda value: np.array(value, order="F"),
    "backwards": lambda value: value[::-1].copy()[::-1] if value.ndim else value,
    "foreign": lambda value: value.astype(value.dtype.newbyteorder("S")),
    "strided tensor": lambda value: of_kind(np.stack([value] * 2, axis=-1), "torch", "float64")[..., 0],
    "negative bit": lambda value: torch_or_skip().conj(of_kind(-value, "torch", "float64") * 1j).imag,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_place_in_memory_changes_nothing(name: str) -> None:
    arguments, found = formats.ordinary(name), {}
    others = {key for key, value in arguments.items() if isinstance(value, np.ndarray) and value.dtype.kind in "bi"}
    for label, layout in LAYOUTS.items():
        given = {key: formats.mapped(value, layout) for key, value in arguments.items()}
        in_numpy = label in ("read-only", "backwards", "foreign")
        given |= {key: layout(arguments[key]) for key in others if in_numpy}
        found[label] = wrong(name, given, arguments, 2.0**-52, 4)
        if any(is_torch_array(value) for value in given.values()):  # masks and positions of numpy beside tensors
            given |= {key: LAYOUTS["backwards"](frozen(arguments[key])) for key in others}
            found[label, "backwards"] = wrong(name, given, arguments, 2.0**-52, 4)
    assert {key: text for key, text in found.items() if text} == {}


@pytest.mark.parametrize("name", NAMES)
def test_short_and_long_arguments(name: str) -> None:
    axes = formats.array_axes(formats.FUNCTIONS[name]).values()
    is_square = any(each[-2:] == ["n", "n"] for each in axes)
    longest = LONGEST.get(name, 200 if is_square else 100_000)
    chosen = {key: value for key, value in LONG.items() if key in inspect.signature(formats.FUNCTIONS[name]).parameters}
    if name.startswith("cost."):
        chosen.pop("chunk", None)
    found = {}
    for size in (1, 2, longest):
        for library, dtype in [("numpy", "float16"), ("torch", "bfloat16"), ("torch", "float32")][size <= 2 :][:2]:
            given, exact = pair(name, formats.stretched(name, size, **chosen), library, dtype)
            found[size, library, dtype] = wrong(name, given, exact, EPS[dtype], size)
    assert {key: text for key, text in found.items() if text} == {}


LARGE = {"numpy": 2**53 + 1, "torch": 2**24 + 1}


@pytest.mark.parametrize("library", LARGE)
@pytest.mark.parametrize("name", NAMES)
def test_an_integer_that_the_result_cannot_hold_is_refused(name: str, library: str) -> None:
    arguments = formats.ordinary(name)
    for key in formats.array_axes(formats.FUNCTIONS[name]):
        if key == "like" or not isinstance(arguments[key], np.ndarray) or arguments[key].dtype.kind != "f":
            continue  # of `like` the library counts alone
        value = of_kind(arguments[key], "numpy", "int64")
        value.flat[0] = LARGE[library]
        got = outcome(name, arguments | {key: value if library == "numpy" else torch_or_skip().tensor(value)})
        in_kind = "[Array]" in str(inspect.signature(formats.FUNCTIONS[name]).parameters[key].annotation)
        if library == "numpy" or in_kind:
            assert isinstance(got, TypeError | ValueError), (key, got)
        elif name != "optimal.optimal_gerf":  # float64 holds it
            assert_same(got, outcome(name, arguments | {key: value.astype(float)}))


def assert_same(got: Any, want: Any) -> None:
    assert type(got) is type(want), (got, want)
    if isinstance(got, Exception):
        return
    for a, b in zip(formats.numbers(got), formats.numbers(want), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("value", [[2**53 + 1, 0.5], [[2**64 + 1, 1.5]], [10**400, 0.5]])
def test_a_float_beside_it_does_not_round_an_integer_in_a_list(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="x: expected"):
        elu_plus_one(value)


# --- what was reported ---------------------------------------------------------------------------


@pytest.mark.parametrize("library, dtype", [("numpy", "float32"), ("torch", "float32"), ("numpy", "float64")])
def test_the_rank_of_rounded_scores_is_that_of_the_scores(library: str, dtype: str) -> None:
    Q, K = (of_kind(a, library, dtype) for a in np.random.default_rng(0).standard_normal((2, 8, 1)))
    assert numerical_rank(scores(Q, K)).rank == 1


def test_tolerances_follow_what_was_given() -> None:
    draws = np.random.default_rng(0)
    for seed in range(50):
        Y = np.abs(np.random.default_rng(seed).standard_normal((5, 8)).astype(np.float32))
        covariance = np.cov(Y.T, dtype=np.float32)
        q = np.linalg.svd(covariance.astype(float))[2][-1]
        linear(np.abs(q), Y.mean(0), covariance)
    W = (draws.standard_normal((8, 2)) @ draws.standard_normal((2, 4))).astype(np.float32)
    with pytest.raises(ValueError, match="expected independent columns"):
        inputs_for(np.ones((1, 4)), np.ones((1, 4)), W, draws.standard_normal((8, 4)))
    assert precision(W, [1, 2], 3) == SINGLE and precision([1.5], np.ones(2, int)) == 2.0**-52


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_running_sums_do_not_stall_in_half_precision(dtype: str) -> None:
    torch = torch_or_skip()
    n = 600 if dtype == "bfloat16" else 4800  # the sum of so many ones stalls at half of them
    one = torch.ones(n, 1).to(getattr(torch, dtype))
    v = (torch.arange(n) >= n / 2).to(one.dtype)[:, None]
    assert linear_attention_recurrent(one, one, v)[-1] == online_attention(one[:1], one, v, block=4) == 0.5
    halves = [summarise(one[:1].mT @ one.mT[:1], v)] * 2
    both = merge(*halves)
    assert both.l == 2 * n and both.o / both.l == 0.5


@pytest.mark.parametrize("value", [[np.int64(2**53 + 1), 0.5], [[1.5, np.uint64(2**53 + 1)]]])
def test_an_integer_of_numpy_in_a_list_is_not_rounded_either(value: Any) -> None:
    with pytest.raises(ValueError, match="x: expected integers of at most"):
        elu_plus_one(value)


@pytest.mark.parametrize("default, most", [("float16", 2**11), ("bfloat16", 2**8)])
def test_integers_become_the_default_dtype_only_where_it_holds_them(default: str, most: int) -> None:
    torch = torch_or_skip()
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, default))
    try:
        for dtype in (torch.int16, torch.int32, torch.int64):
            assert elu_plus_one(torch.tensor([most - 1, -most], dtype=dtype)).shape == (2,)
            for value in (most + 1, -most - 1):
                with pytest.raises(ValueError, match=f"x: expected integers of at most {most}, as torch.{default}"):
                    elu_plus_one(torch.tensor([value], dtype=dtype))
        assert elu_plus_one(torch.tensor([255], dtype=torch.uint8)).dtype == getattr(torch, default)
    finally:
        torch.set_default_dtype(before)


def test_sums_down_columns_keep_the_digits_of_the_format() -> None:
    n = 100_000
    k, v = np.full((n, 2), 0.1, np.float32), np.stack([np.linspace(0.1, 1, n, dtype=np.float32)] * 2, axis=1)
    assert mean_row_cosine(np.ones((n, 2), np.float32)) == pytest.approx(1, abs=8 * SINGLE)
    for out in (
        linear_attention(k[:1], k, v),
        linear_attention(k, k, v, causal=True)[-1:],
        expanded_attention(k[:1], k, v),
    ):
        np.testing.assert_allclose(out, 0.55, rtol=64 * SINGLE)
    np.testing.assert_allclose(softmax(k, axis=0) * n, 1, rtol=8 * SINGLE)
    np.testing.assert_allclose(sparsity(v, axis=0), sparsity(v.astype(float), axis=0), rtol=8 * SINGLE)
    np.testing.assert_allclose(total(v[None], (0, 1)), v.sum(axis=0, dtype=float), rtol=SINGLE)
    assert total(k.T, axis=-1)[0] == total(k, axis=0, keepdims=True)[0, 0]


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("size, scale", [(1e25, 1e-50), (1e-25, 1e50), (1e30, 1e-60), (1e-38, 1e76), (1e38, 1e-76)])
def test_a_scale_outside_of_the_range_counts_with_what_it_multiplies(library: str, size: float, scale: float) -> None:
    Q, V = (of_kind(a, library, "float32") for a in (np.diag([size, 2 * size]), np.eye(2)))
    want = np.diag([1.0, 4.0])
    P = softmax(want)
    np.testing.assert_allclose(np.asarray(scores(Q, Q, scale=scale)), want, rtol=8 * SINGLE)
    for weights in (attention_weights(Q, Q, scale=scale), online_attention(Q, Q, V, scale=scale)):
        np.testing.assert_allclose(np.asarray(weights), P, rtol=32 * SINGLE)
    found = stage_gradients(Q, Q, V, V, scale=scale)
    dS = P * (np.eye(2) - np.sum(P * np.eye(2), axis=-1, keepdims=True))
    for got, product in ((found.Q, dS @ np.diag([1.0, 2.0])), (found.K, dS.T @ np.diag([1.0, 2.0]))):
        with np.errstate(over="ignore"):
            unit = scale * size
        np.testing.assert_allclose(np.asarray(got) / unit, product, rtol=64 * SINGLE, atol=64 * SINGLE)


def test_a_product_beyond_the_range_is_still_refused() -> None:
    with pytest.raises(ValueError, match="Q, K, scale: expected a result within the range of float32"):
        scores(np.full((1, 1), 1e25, np.float32), np.full((1, 1), 1e25, np.float32), scale=1.0)
    assert scores([[1e300]], [[1e-300]], scale=1e10)[0, 0] == pytest.approx(1e10)
    assert not np.any(scores([[0.0]], [[0.0]], scale=1e300))


@pytest.mark.parametrize("library, dtype", [("numpy", "float16"), ("numpy", "float32"), ("numpy", "float64"),
                                            ("torch", "bfloat16"), ("torch", "float32")])  # fmt: skip
def test_features_leave_the_range_only_where_they_themselves_do(library: str, dtype: str) -> None:
    for x, c in (([2.0], [1e-10, 1.0]), ([2.0], [1e-90, 1.0]), ([1e-26], [1e-40, 1e20]), ([1e-6, 4.0], [0, 1e6, 1.0])):
        given = of_kind(np.array(x), library, dtype)
        got = power_series_features(given, c)
        got, x = (np.asarray(a.double() if is_torch_array(a) else a, dtype=float) for a in (got, given))
        powers = [[1.0], x, [x[0] ** 2, *([2**0.5 * x[0] * x[1], x[1] ** 2] if len(x) == 2 else [])]]
        want = np.concatenate([np.sqrt(c[k]) * np.asarray(powers[k]) for k in range(len(c)) if c[k] > 0])
        least = {"float16": 2.0**-24}.get(dtype, 2.0**-149)
        np.testing.assert_allclose(got, want, rtol=64 * EPS[dtype], atol=least)
    fine = power_series_features([1e-160, 1e150], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(fine[1:], [2**0.5 * 1e-10, 1e300], rtol=1e-12)
    x = np.random.default_rng(0).standard_normal((4, 3))
    for kernel in ([1e-300, 2.0, 1e-290], [1.0, 2.0, 3.0]):
        phi = power_series_features(x, kernel)
        np.testing.assert_allclose(phi @ phi.T, sum(a * (x @ x.T) ** k for k, a in enumerate(kernel)), rtol=1e-12)


def test_sizes_of_one_argument_may_differ_from_entry_to_entry() -> None:
    spread = [[0.0, 0.0], [0.0, 3.0]]
    for q in ([1e200, 1.0], [1.0, 1e-200], [1e300, 1e-300], [1.0, 1.0]):
        assert linear(q, [0.0, 1.0], spread) == 0.5
    for shared in (False, True):
        small = logit_moments([1e-170, 0.0], [1e150, 0.0], 1, shared=shared)
        one = logit_moments([1.0, 0.0], [1.0, 0.0], 1, shared=shared)
        np.testing.assert_allclose(small, (one.mean * 1e-20, one.variance * 1e-40), rtol=1e-12)


def test_a_heatmap_takes_the_rows_of_a_coarse_format() -> None:
    torch = torch_or_skip()
    weights = torch.full((1, 300), 1 / 300).bfloat16()
    assert abs(float(weights.double().sum()) - 1) > 1e-3
    attention_heatmap(weights)
    with pytest.raises(ValueError, match="weights: expected non-negative rows that sum to 1"):
        attention_heatmap(weights.double() * 1.01)
