"""Every public function answers hostile input with something finite or with an error that names an argument."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import time
from pathlib import Path
from typing import Any

import hostile
import numpy as np
import pytest
from backends import make

import attnmath
from attnmath.linear_cost.random_features import maps
from attnmath.operator.online import Summary

FUNCTIONS = hostile.public_functions()

#: What the judge reports and is right as it is: function, parameter and value, with the reason.
KNOWN = {
    ("cost.peak_memory", "function", "a function"): "an error of the measured function passes through unchanged",
    **{
        ("heads.removal.bits", "weights", kind): "an error of the function given passes through unchanged"
        for kind in ("a function", "a class")
    },
}
#: Functions whose result is a time, a size in memory, bytes or a law: nothing to compare between two calls.
TIMES_AND_FILES = {
    "cost.peak_memory",
    "dot_product.student_t",
    "heads.load.load_decoder",
    "heads.load.load_decoders",
    "heads.load.load_heads",
    "heads.load.load_pretrained",
    "experiments.sparsity_benchmark.exact",
    "experiments.sparsity_benchmark.microseconds",
    *hostile.FILES,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ordinary_arguments_are_accepted(name: str) -> None:
    arguments = {key: new() for key, new in hostile.parameters(name, FUNCTIONS[name]).items()}
    assert hostile.verdict(name, FUNCTIONS[name], arguments) == ""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hostile_arguments_get_an_answer_or_a_clear_error(name: str) -> None:
    makers = hostile.parameters(name, FUNCTIONS[name])
    found = {}
    for parameter, new in makers.items():
        for label, value in hostile.hostile_values(new()):
            arguments = {key: other() for key, other in makers.items()} | {parameter: value}
            if wrong := hostile.verdict(name, FUNCTIONS[name], arguments):
                found[name, parameter, label] = wrong
    assert {key: wrong for key, wrong in found.items() if key not in KNOWN} == {}
    assert {key for key in KNOWN if key[0] == name} <= set(found), "KNOWN lists what is no longer found"


#: What a method of a map answers to.
FEATURES = {f"maps.{kind}": getattr(maps, kind) for kind in ("trigonometric", "positive", "hyperbolic")}


@pytest.mark.parametrize("kind", FEATURES)
def test_features_of_hostile_vectors_are_finite_or_refused(kind: str) -> None:
    for label, Omega in [("ordinary", hostile.rows(4, 2)), ("huge", np.copysign(1e308, hostile.rows(4, 2)))]:
        features = FEATURES[kind](Omega)
        for of in ("queries", "keys"):
            method = getattr(features, of)
            name = next(iter(inspect.signature(method).parameters))
            found = {
                (label, of, value_label): wrong
                for value_label, value in hostile.hostile_values(hostile.rows(3, 2))
                if (wrong := hostile.verdict(kind, method, {name: value}))
            }
            assert found == {}


SIZED = sorted(name for name, function in FUNCTIONS.items() if "SizeLike" in str(inspect.signature(function)))


@pytest.mark.parametrize("name", SIZED)
def test_sizes_that_are_too_large_beside_an_array_are_refused(name: str) -> None:
    makers = hostile.parameters(name, FUNCTIONS[name])
    sizes = [key for key, p in inspect.signature(FUNCTIONS[name]).parameters.items() if "SizeLike" in str(p.annotation)]
    for array, large in itertools.permutations(sizes, 2):
        given = {key: new() for key, new in makers.items()} | {array: np.asarray([4.0, 5.0]), large: 10**400}
        assert hostile.verdict(name, FUNCTIONS[name], given) == "", (array, large)


def in_dtype(value: Any, backend: str, dtype: str) -> Any:
    """Return an ordinary argument with its floating arrays in one library and dtype."""
    if isinstance(value, Summary):
        return Summary(*(in_dtype(part, backend, dtype) for part in value))
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return [tuple(in_dtype(part, backend, dtype) for part in layer) for layer in value]
    if isinstance(value, list) and value and isinstance(value[0], float):
        value = np.asarray(value)
    floating = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return make(backend, value, dtype) if floating else value


def numbers(result: Any) -> list[np.ndarray]:
    """Return all arrays and numbers in a result."""
    if dataclasses.is_dataclass(result):
        result = tuple(vars(result).values())
    if inspect.isgenerator(result) or isinstance(result, list | tuple | dict):
        parts = result.values() if isinstance(result, dict) else result
        return [array for part in parts for array in numbers(part)]
    return [np.asarray(result)] if not isinstance(result, str) else []


def outcome(name: str, backend: str, dtype: str) -> list[np.ndarray] | type:
    """Call a function with ordinary arguments of a library and dtype; return its numbers, or the kind of error."""
    makers = hostile.parameters(name, FUNCTIONS[name])
    try:
        return numbers(FUNCTIONS[name](**{key: in_dtype(new(), backend, dtype) for key, new in makers.items()}))
    except (TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - TIMES_AND_FILES))
def test_numpy_and_torch_give_one_answer(name: str, dtype: str) -> None:
    ours, theirs = (outcome(name, backend, dtype) for backend in ("numpy", "torch"))
    if isinstance(ours, type) or isinstance(theirs, type):
        assert ours is theirs, name
        return
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        if a.dtype.kind == "U":
            np.testing.assert_array_equal(a, b)
        else:
            assert a.dtype == b.dtype, name
            # Ordinary arguments are of the order of 1, and so are sums of their products; ulps count.
            eps = np.finfo(a.dtype).eps if a.dtype.kind in "fc" else 0
            np.testing.assert_allclose(a, b, rtol=256 * eps, atol=256 * eps)


#: Functions that do not depend on the scale of these arguments.
SCALE_FREE = {
    ("depth.relative_residual", "X"),
    ("initialisation.measured_gains", "x"),
    ("initialisation.measured_gains", "g"),
    ("rank.condition_number", "A"),
    ("rank.effective_rank", "sigma"),
    ("rank.entropy_rank", "sigma"),
    ("rank.stable_rank", "sigma"),
    ("closed_forms.effective_support", "a"),
    ("closed_forms.linear", "q"),
    ("closed_forms.linear_independent", "q"),
    ("closed_forms.sparsity", "a"),
}


@pytest.mark.parametrize("name, parameter", sorted(SCALE_FREE))
@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e155, 1e160, 1e300])
def test_scale_changes_nothing_where_the_mathematics_has_none(name: str, parameter: str, scale: float) -> None:
    def at(factor: float) -> list[np.ndarray]:
        arguments = {key: new() for key, new in hostile.parameters(name, FUNCTIONS[name]).items()}
        arguments[parameter] = np.asarray(arguments[parameter]) * factor
        return numbers(FUNCTIONS[name](**arguments))

    for usual, scaled in zip(at(1.0), at(scale), strict=True):
        np.testing.assert_allclose(scaled, usual, rtol=1e-12)


#: Modules of attnmath whose arguments are tried elsewhere, and where.
ELSEWHERE = {
    "arrays": "test_checks",
    "checks": "test_checks",
    "figures": "test_hostile_figures",
    "symbols": "test_rank",
}


def test_no_module_of_the_package_is_forgotten() -> None:
    names = [name for name in hostile.modules_of(attnmath) if name.split(".")[1] not in ELSEWHERE]
    assert set(names) == {name for name in hostile.MODULES.values() if name.startswith("attnmath.")}
    assert len({hostile.key(name) for name in names}) == len(names), "two modules of one name"
    assert set(ELSEWHERE) <= {name.split(".")[1] for name in hostile.modules_of(attnmath)}
    assert all(Path(__file__).with_name(f"{test}.py").is_file() for test in ELSEWHERE.values())


def test_tables_name_functions_that_exist() -> None:
    listed = {
        *TIMES_AND_FILES,
        *(name for name, _ in SCALE_FREE),
        *hostile.PROMISED,
        *hostile.FILES,
        *hostile.SPECIAL,
        *(name for name, _, _ in KNOWN),
    }
    assert listed <= set(FUNCTIONS)


def returns_nan(x: Any) -> Any:
    return np.asarray([1.0, np.nan])


def indexes(x: Any) -> Any:
    return np.ones(2)[7]


def sleeps(x: Any) -> None:
    time.sleep(5)


def names_nothing(x: Any) -> None:
    raise ValueError("operands could not be broadcast together")


def warns(x: Any) -> Any:
    return np.asarray([1e308]) * 10


@pytest.mark.parametrize(
    "function, words",
    [
        (returns_nan, "not finite"),
        (indexes, "obscure IndexError"),
        (sleeps, "took more than 0.2 s"),
        (names_nothing, "obscure ValueError"),
        (warns, "obscure RuntimeWarning"),
    ],
)
def test_the_judge_reports_what_is_wrong(function: Any, words: str) -> None:
    assert words in hostile.verdict("some.function", function, {"x": 1.0}, seconds=0.2)


def test_an_unknown_parameter_is_reported_by_name() -> None:
    def new(whatever: Any) -> None: ...

    with pytest.raises(LookupError, match=r"some\.new: no ordinary argument for whatever"):
        hostile.parameters("some.new", new)
