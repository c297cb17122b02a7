"""The package under what calls it: error states of numpy, autocast, vmap, compile, pickle, processes, -OO, threads."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import formats
import hostile
import numpy as np
import pytest
from backends import torch_or_skip

from attnmath.checks import Fixed
from attnmath.fixed_attention.positions import frequencies, rotary, shift_matrix, sinusoidal
from attnmath.linear_cost.feature_maps import (
    cosine_reweighted,
    polynomial_features,
    power_series_features,
    taylor_features,
)
from attnmath.linear_cost.random_features.maps import gerf, trigonometric
from attnmath.linear_cost.random_features.performer import kernel_estimate, performer_attention
from attnmath.operator.attention import softmax

PUBLIC = hostile.public_functions()
#: Not called here: files, and what measures the machine.
LEFT_OUT = hostile.FILES | {"cost.peak_memory", "experiments.sparsity_benchmark.microseconds"}
NAMES = sorted(({*PUBLIC} | {*formats.FUNCTIONS}) - LEFT_OUT)
IN_KIND = [name for name in NAMES if name in formats.FUNCTIONS and any(
    "[Array]" in str(p.annotation) or "Summary" in str(p.annotation)
    for p in inspect.signature(formats.FUNCTIONS[name]).parameters.values()
)]  # fmt: skip


def arguments_of(name: str) -> dict[str, Any]:
    if name in formats.FUNCTIONS:
        return formats.ordinary(name)
    return {key: new() for key, new in hostile.parameters(name, PUBLIC[name]).items()}


def called(name: str, arguments: dict[str, Any]) -> Any:
    function = formats.FUNCTIONS.get(name) or PUBLIC[name]
    result = function(**formats.renewed(arguments))
    return list(result) if inspect.isgenerator(result) else result


def in_single(name: str) -> dict[str, Any]:
    """Return ordinary arguments in tensors of single precision, which autocast would touch."""
    torch = torch_or_skip()
    arguments = formats.renewed(arguments_of(name))
    return {key: formats.mapped(value, lambda a: torch.tensor(a).float()) for key, value in arguments.items()}


def assert_same(got: Any, want: Any, roundings: int = 0) -> None:
    """Compare two results, but for some roundings of their largest entry, or of 1.

    Where an array lies in memory decides in which order a library adds, so that a second computation of the same may
    have other last digits.
    """
    assert type(got) is type(want)
    for a, b in zip(formats.numbers(got), formats.numbers(want), strict=True):
        assert a.dtype == b.dtype
        if roundings and b.dtype.kind in "fc":
            largest = np.abs(b[np.isfinite(b)]).max(initial=1)  # arguments are of the size of 1
            np.testing.assert_allclose(a, b, rtol=0, atol=roundings * np.finfo(b.dtype).eps * largest)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_numpys_errors_are_kept_inside(name: str) -> None:
    for scale in (1.0, 1e-170, 1e-308, 1e160, 300.0, -30.0):
        arguments = arguments_of(name)
        for dtype in ("float64", "float32", "float16"):

            def scaled(value: np.ndarray, scale: float = scale, dtype: str = dtype) -> np.ndarray:
                with np.errstate(all="ignore"):
                    return (value if formats.is_stochastic(value) else value * scale).astype(dtype)

            given = {key: formats.mapped(value, scaled) for key, value in arguments.items()}
            try:
                with np.errstate(all="raise"):
                    called(name, given)
            except (TypeError, ValueError):
                continue


@pytest.mark.parametrize("name", IN_KIND)
def test_autocast_and_inference_mode_change_nothing(name: str) -> None:
    torch = torch_or_skip()
    want = called(name, in_single(name))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(called(name, in_single(name)), want)
    with torch.inference_mode():
        assert_same(called(name, in_single(name)), want)


@pytest.mark.parametrize("name", IN_KIND)
def test_vmap_is_refused_in_one_line(name: str) -> None:
    torch, arguments = torch_or_skip(), in_single(name)
    keys = [key for key, value in arguments.items() if isinstance(value, torch.Tensor) and key != "like"]
    if not keys:  # a record of arrays, or a list of integers
        return

    def one(*given: Any) -> Any:
        return called(name, arguments | dict(zip(keys, given, strict=True)))

    with pytest.raises(TypeError, match=r"^[\w, ]+: .*torch\.func\.vmap.*not supported[^\n]*$"):
        torch.func.vmap(one)(*(arguments[key][None] for key in keys))


def test_a_compiled_function_gives_the_same() -> None:
    torch = torch_or_skip()
    x = torch.tensor(hostile.rows(3, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch says of its own tracing
        assert_same(torch.compile(softmax, backend="eager")(x), softmax(x))


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield the constants, classes and functions of the public modules."""
    for module in sorted({*hostile.MODULES.values(), "attnmath.checks"}):
        for name, value in vars(importlib.import_module(module)).items():
            is_own = getattr(value, "__module__", module) == module or name.isupper()
            if not name.startswith("_") and is_own and not inspect.ismodule(value):
                yield f"{module}.{name}", value


def test_every_public_object_can_be_pickled_and_copied() -> None:
    found = []
    for name, value in public_objects():
        for how in (copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))):
            try:
                other = how(value)
            except Exception as error:
                found.append(f"{name}: {error}")
                break
            if inspect.isfunction(value) or inspect.isclass(value):
                assert other is value
    assert found == []
    table = Fixed({"a": 1})
    with pytest.raises(TypeError):
        table["a"] = 2  # type: ignore[index]


@pytest.mark.parametrize("name", NAMES)
def test_every_result_can_be_pickled_and_copied(name: str) -> None:
    if name == "experiments.sparsity_benchmark.exact":
        return  # a number of mpmath
    result = called(name, arguments_of(name))
    for other in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert_same(other, result)


ALL_IN_A_PROCESS = """
import pickle, sys
assert False, "asserts are left out"
import test_callers
results = {name: test_callers.outcome(name) for name in test_callers.NAMES}
sys.stdout.buffer.write(pickle.dumps(results))
"""


def outcome(name: str) -> list[np.ndarray]:
    return formats.numbers(called(name, arguments_of(name)))


def test_another_process_without_asserts_and_docstrings_gives_the_same() -> None:
    here = Path(__file__)
    path = os.pathsep.join([str(here.parents[2] / "code"), str(here.parent), str(here.parents[1])])
    environment = os.environ | {"PYTHONOPTIMIZE": "2", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", ALL_IN_A_PROCESS], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    there = pickle.loads(done.stdout)
    assert set(there) == set(NAMES)
    for name, numbers in there.items():
        assert_same(numbers, outcome(name), roundings=8)


def test_threads_do_not_disturb_one_another() -> None:
    want = {name: outcome(name) for name in NAMES}
    with ThreadPoolExecutor(4) as pool:
        for name, got in pool.map(lambda name: (name, outcome(name)), sorted(NAMES * 2)):
            assert_same(got, want[name], roundings=8)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", IN_KIND)
def test_autocast_to_the_other_half_precision_changes_nothing(name: str, kind: str) -> None:
    torch = torch_or_skip()
    other = torch.bfloat16 if kind == "float16" else torch.float16

    def given() -> dict[str, Any]:
        arguments = formats.renewed(arguments_of(name))
        return {k: formats.mapped(v, lambda a: torch.tensor(a).to(getattr(torch, kind))) for k, v in arguments.items()}

    try:
        want = called(name, given())
    except (TypeError, ValueError):  # linear algebra takes no half precision
        return
    with torch.autocast("cpu", dtype=other):
        assert_same(parts_in_single(called(name, given())), parts_in_single(want))


def parts_in_single(result: Any) -> list[Any]:
    """Return the tensors of a result in single precision, which numpy knows."""
    if hasattr(result, "detach"):
        return [result.float()] if result.is_floating_point() else [result]
    if isinstance(result, dict | list | tuple):
        return [a for part in (result.values() if isinstance(result, dict) else result) for a in parts_in_single(part)]
    return parts_in_single(list(vars(result).values())) if hasattr(result, "__dict__") else [np.asarray(result)]


@pytest.mark.parametrize("name", NAMES)
def test_numpys_errors_are_kept_inside_where_entries_are_of_mixed_sizes(name: str) -> None:
    for large, small in ((1.0, 1e-200), (1e200, 1e-200), (1e300, 1e-300), (1.0, 1e-310)):

        def mixed(value: np.ndarray, large: float = large, small: float = small) -> np.ndarray:
            if value.dtype.kind != "f" or not value.ndim:
                return value
            factors = np.where(np.arange(value.size) % 2, small, large).reshape(value.shape)
            with np.errstate(all="ignore"):
                changed = value * factors
                return formats.normalised(changed / large) if formats.is_stochastic(value) else changed

        given = {key: formats.mapped(value, mixed) for key, value in arguments_of(name).items()}
        try:
            with np.errstate(all="raise"):
                called(name, given)
        except (TypeError, ValueError):
            continue


def test_a_small_shift_underflows_in_silence() -> None:
    with np.errstate(all="raise"):
        assert shift_matrix(1e-310, 4)[0, 1] == 1e-310


COMPILED: dict[str, Callable[[Any], Any]] = {
    "rotary": lambda x: rotary(x, positions=[10**9 + 1, 3, 2**20 + 1]),
    "cosine": cosine_reweighted,
    "taylor": lambda x: taylor_features(x, 3),
    "polynomial": lambda x: polynomial_features(x, 3),
    "series": lambda x: power_series_features(x, [0.1, 0.0, 0.3]),
    "performer": lambda x: performer_attention(x, x, x, gerf(np.ones((3, 4)) / 3, -0.1)),
    "estimate": lambda x: kernel_estimate(x, x, trigonometric(np.ones((3, 4)) / 3)),
}


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_function_keeps_the_tables_of_numpy(name: str) -> None:
    torch, function = torch_or_skip(), COMPILED[name]
    x = torch.tensor(hostile.rows(3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(torch.compile(function, backend="eager")(x), function(x), rtol=1e-14, atol=1e-14)


def test_compiled_tables_are_in_double_precision() -> None:
    torch = torch_or_skip()
    calls: list[Callable[[], Any]] = [lambda: frequencies(8), lambda: sinusoidal(9, 4), lambda: shift_matrix(3.5, 4)]
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_same(torch.compile(call, backend="eager")(), call())
