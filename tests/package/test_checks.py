"""The one place where arguments become arrays and numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import torch_or_skip

from attnmath import checks


@pytest.mark.parametrize("convert", [checks.real_array, checks.floats, checks.integers, checks.booleans])
def test_masked_arrays_and_matrices_are_never_plain_arrays(convert) -> None:
    with pytest.raises(TypeError, match="x: expected .*, got a MaskedArray"):
        convert(np.ma.masked_array([1, 2], [True, False]), "x")
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.asmatrix([[1, 2]])
    with pytest.raises(TypeError, match="x: expected .*, got a matrix"):
        convert(matrix, "x")


@pytest.mark.parametrize("value", [None, "a", [[1.0], [1.0, 2.0]], [1j], [True], {"a": 1}, [2**70], len])
def test_what_is_no_number_is_a_type_error(value) -> None:
    with pytest.raises(TypeError, match="x: expected"):
        checks.floats(value, "x")


def test_extended_precision_is_an_error() -> None:
    if np.dtype(np.longdouble).itemsize == 8:
        pytest.skip("here a long double is a double")
    with pytest.raises(TypeError, match="x: expected at most double precision, got .* longdouble|float128"):
        checks.real_array(np.ones(2, np.longdouble), "x")


def test_tensors_become_float64_arrays_unless_they_require_grad() -> None:
    torch = torch_or_skip()
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.int32, torch.uint8):
        found = checks.floats(torch.tensor([1, 2]).to(dtype), "x")
        assert found.dtype == np.float64 and found.tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"x: expected numbers without a gradient, .* \(detach it\)"):
        checks.floats(torch.ones(2, requires_grad=True), "x")


@pytest.mark.parametrize("kind", [int, np.int8, np.uint8, np.int32, np.uint64])
def test_integers_of_any_width_become_ints(kind) -> None:
    found = checks.positive_integer(kind(100), "n")
    assert type(found) is int and found**9 == 10**18


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: checks.positive_integer(2**53 + 1, "n"), ValueError, "n: expected a positive integer, at most"),
        (lambda: checks.positive_integer(True, "n"), TypeError, "n: expected a positive integer"),
        (lambda: checks.non_negative_integer(-1, "n"), ValueError, "n: expected an integer of at least 0, got -1"),
        (lambda: checks.positive(10**400, "x"), ValueError, "x: expected a positive finite number"),
        (lambda: checks.positive(-(10**400), "x"), ValueError, "x: expected a positive finite number"),
        (lambda: checks.positive(3.0, "x", at_most=2), ValueError, "x: .* of at most 2, got 3"),
        (lambda: checks.fits_memory("n, m", 2**20, 2**20), ValueError, "n, m: expected a result of at most"),
        (lambda: checks.flag(2, "log"), TypeError, "log: expected True or False"),
        (lambda: checks.flag(np.ones(2), "log"), TypeError, "log: expected True or False"),
        (lambda: checks.one_of(["a"], ("a", "b"), "law"), ValueError, r"law: expected one of a, b, got \['a'\]"),
        (lambda: checks.generator(0), TypeError, "rng: expected a numpy Generator, got int"),
        (lambda: checks.generator(np.random.RandomState(0)), TypeError, "rng: expected a numpy Generator"),
        (lambda: checks.axis_of(np.ones(2), 1.0, "x"), TypeError, "axis: expected an integer, got float"),
        (lambda: checks.axis_of(np.ones(2), 1, "x"), ValueError, "axis: expected an axis of x"),
        (lambda: checks.broadcast(a=np.ones(2), b=np.ones(3)), ValueError, "a, b: expected shapes that broadcast"),
        (lambda: checks.same_batches(Q=np.ones((2, 1, 1)), K=np.ones((3, 1, 1))), ValueError, "Q, K: expected batch"),
        (lambda: checks.path_to(None, "path"), TypeError, "path: expected a path, got NoneType"),
        (lambda: checks.in_range(np.asarray([math.nan]), "Q, K"), ValueError, "Q, K: expected a result within the"),
    ],
)
def test_errors_name_the_argument(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


def test_scaling_by_a_power_of_two_rounds_nothing() -> None:
    x = np.random.default_rng(0).standard_normal((4, 3))
    scaled = checks.unit_scaled(x)
    assert 0.5 <= np.abs(scaled).max() < 1
    np.testing.assert_array_equal(np.ldexp(scaled, checks.exponent(x)), x)
    rows = checks.unit_scaled(x * [[1e300], [1e-300], [0], [1]], axis=-1)
    assert np.all(np.isfinite(rows)) and np.all(np.abs(rows[[0, 1, 3]]).max(axis=-1) >= 0.5)


def test_an_error_on_the_way_names_the_callers_arguments() -> None:
    for error, kind in ((ValueError, ValueError), (TypeError, TypeError), (np.linalg.LinAlgError, ValueError)):
        with pytest.raises(kind, match="X, W: Q: expected"), checks.about("X, W"):
            raise error("Q: expected")


@pytest.mark.parametrize(("axis", "fits"), [(-3, False), (-2, True), (-1, True), (1, True), (2, False)])
def test_an_axis_is_counted_from_either_end(axis: int, fits: bool) -> None:
    if fits:
        assert checks.axis_of(np.ones((2, 3)), axis, "x") == axis
    else:
        with pytest.raises(ValueError, match=r"axis: expected an axis of x"):
            checks.axis_of(np.ones((2, 3)), axis, "x")
