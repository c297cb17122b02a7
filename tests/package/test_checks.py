"""The one place where arguments become arrays and numbers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from backends import torch_or_skip

from attnmath import checks
from attnmath.estimate import Estimate


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
    with pytest.raises(TypeError, match="x: expected half, single or double precision, got .* longdouble|float128"):
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


# --- the bounds themselves: the last value that passes, and the first that does not ----------------


@pytest.mark.parametrize(
    ("check", "last", "first", "words"),
    [
        (lambda v: checks.positive_integer(v, "n"), 1, 0, "n: expected a positive integer, got 0"),
        (lambda v: checks.positive_integer(v, "n"), 2**53, 2**53 + 1,
         f"n: expected a positive integer, at most {2**53}, got {2**53 + 1}"),
        (lambda v: checks.positive_integer(v, "n", at_most=7), 7, 8,
         "n: expected a positive integer, at most 7, got 8"),
        (lambda v: checks.non_negative_integer(v, "n"), 0, -1, "n: expected an integer of at least 0, got -1"),
        (lambda v: checks.non_negative_integer(v, "n"), 2**53, 2**53 + 1,
         f"n: expected an integer of at least 0, at most {2**53}, got {2**53 + 1}"),
        (lambda v: checks.positive(v, "x"), 5e-324, 0.0, "x: expected a positive finite number, got 0.0"),
        (lambda v: checks.positive(v, "x"), 1.7e308, math.inf, "x: expected a positive finite number, got inf"),
        (lambda v: checks.positive(v, "x", at_most=2), 2, 2.5,
         "x: expected a positive finite number of at most 2, got 2.5"),
        (lambda v: checks.fits_memory("a, b", *v), (2**27, 2), (2**27 + 1, 2),
         f"a, b: expected a result of at most {2**28} numbers, got {2**27 + 1} x 2"),
    ],
)  # fmt: skip
def test_a_bound_is_where_it_is_said_to_be(check, last, first, words: str) -> None:
    check(last)
    with pytest.raises(ValueError) as error:
        check(first)
    assert str(error.value) == words


def test_an_array_has_the_dimensions_that_are_asked_for() -> None:
    assert checks.real_array(np.ones((2, 3)), "x", ndim=2).shape == (2, 3)
    assert checks.real_array(np.ones((2, 3)), "x", at_least=2).shape == (2, 3)
    assert checks.real_array(3, "x").shape == () and checks.real_array(3, "x").dtype == np.float64
    assert checks.real_array([0.0, -math.inf], "x")[1] == -math.inf
    for kind in (np.float16, np.float32, np.float64):
        assert checks.real_array(np.ones(1, kind), "x").dtype == kind
    for wanted, words in (
        ({"ndim": 1}, "x: expected 1 dimensions, got shape (2, 3), dtype float64"),
        ({"ndim": 3}, "x: expected 3 dimensions, got shape (2, 3), dtype float64"),
        ({"at_least": 3}, "x: expected at least 3 dimensions, got shape (2, 3), dtype float64"),
    ):
        with pytest.raises(ValueError) as error:
            checks.real_array(np.ones((2, 3)), "x", **wanted)
        assert str(error.value) == words
    with pytest.raises(ValueError, match="x: expected no NaN, got 2 of them"):
        checks.real_array([math.nan, 1.0, math.nan], "x")
    with pytest.raises(ValueError, match=r"x: expected no empty axis, got shape \(2, 0\)"):
        checks.real_array(np.ones((2, 0)), "x")


def test_integers_and_booleans_have_their_kind_and_shape() -> None:
    assert checks.integers([3], "n").tolist() == [3] and checks.booleans([[True]], "m").tolist() == [[True]]
    for value in ([[1]], 1, [], [1.0], [True]):
        with pytest.raises(TypeError, match="n: expected a non-empty sequence of integers, got shape"):
            checks.integers(value, "n")
    for value in ([1], [0.0]):
        with pytest.raises(TypeError, match=r"m: expected booleans \(True: may attend\), got shape"):
            checks.booleans(value, "m")


def test_arrays_come_in_the_library_that_is_asked_for() -> None:
    torch = torch_or_skip()
    assert isinstance(checks.integers([1, 2], "n", like=torch.ones(1)), torch.Tensor)
    assert isinstance(checks.booleans([True], "m", like=torch.ones(1)), torch.Tensor)
    assert isinstance(checks.real_array(torch.ones(2), "x"), torch.Tensor)
    assert checks.scalar(torch.tensor(2.5, requires_grad=True)) == 2.5 == checks.scalar(np.float64(2.5))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 9])
def test_probabilities_may_be_off_by_the_rounding_of_their_sum(dtype: str, n: int) -> None:
    p = np.full(n, 1 / n, dtype)
    allowed = 4 * (n + 1) * float(np.finfo(dtype).eps)
    assert checks.rounding_of_sums(p) == allowed
    for share, fits in ((0.8, True), (-0.8, True), (1.25, False), (-1.25, False)):
        moved = p.copy()
        moved[0] += share * allowed
        if fits:
            assert checks.probabilities(moved, "p") is not None
        else:
            with pytest.raises(ValueError, match="p: expected probabilities that sum to 1 along the last axis, off by"):
                checks.probabilities(moved, "p")
    assert checks.probabilities([[1.0, 0.0], [0.5, 0.5]], "p").shape == (2, 2)
    with pytest.raises(ValueError, match="off by 0"):
        checks.probabilities([[1.0, 0.0], [1.5, -0.5]], "p")
    with pytest.raises(ValueError, match="p: expected at least 1 dimensions"):
        checks.probabilities(1.0, "p")


def test_results_in_range_pass_and_infinite_ones_are_named() -> None:
    good = np.asarray([1.0, -1e308])
    assert checks.in_range(good, "x") is good and checks.finite(good, "x") is good
    for bad in (math.inf, -math.inf, math.nan):
        with pytest.raises(ValueError, match="x: expected a result within the range of float64"):
            checks.in_range(np.asarray([1.0, bad]), "x")
        with pytest.raises(ValueError, match="x: expected finite numbers, got shape"):
            checks.finite(np.asarray([1.0, bad]), "x")


def test_numpy_is_silent_about_overflow_and_not_about_division_by_zero() -> None:
    with checks.silent():
        assert np.float64(1e300) * 1e300 == math.inf and np.exp(np.float64(-1e4)) == 0
        assert math.isnan(np.float64(math.inf) - np.float64(math.inf))
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            np.float64(1.0) / np.float64(0.0)


def test_numbers_keep_their_sign_beyond_the_floats() -> None:
    assert checks.number(10**400, "x") == math.inf and checks.number(-(10**400), "x") == -math.inf
    assert checks.number(np.float32(0.5), "x") == 0.5 and math.isnan(checks.number(math.nan, "x"))
    for value in (True, "1", None, [1.0]):
        with pytest.raises(TypeError, match=f"x: expected a number, got {type(value).__name__} "):
            checks.number(value, "x")


def test_flags_are_true_and_false_and_their_numbers() -> None:
    for value in (True, 1, np.bool_(True), np.int8(1)):
        assert checks.flag(value, "f") is True
    for value in (False, 0, np.bool_(False), np.int8(0)):
        assert checks.flag(value, "f") is False
    for value in (-1, 1.0, None, "True"):
        with pytest.raises(TypeError, match="f: expected True or False, got"):
            checks.flag(value, "f")


def test_names_paths_functions_and_instances() -> None:
    assert checks.one_of("b", ("a", "b"), "law") == "b" and checks.function(len, "f") is len
    assert checks.path_to("a/b", "path") == checks.path_to(Path("a/b"), "path") == Path("a/b")
    assert checks.instance(3, int, "n") == 3
    for call, words in (
        (lambda: checks.one_of("c", ("a", "b"), "law"), "law: expected one of a, b, got 'c'"),
        (lambda: checks.function(3, "f"), "f: expected a function, got int"),
        (lambda: checks.path_to("a\0b", "path"), r"path: expected a path, got str 'a\x00b'"),
        (lambda: checks.instance(3, np.ndarray, "a"), "a: expected a numpy ndarray, got int"),
        (lambda: checks.instance(3, Estimate, "e"), "e: expected an attnmath Estimate, got int"),
        (lambda: checks.axis_of(np.ones(2), True, "x"), "axis: expected an integer, got bool True"),
        (lambda: checks.axis_of(np.ones((2, 3)), 2, "x"),
         "axis: expected an axis of x (shape (2, 3), dtype float64), got 2"),
        (lambda: checks.same_dtype(a=np.ones(1), b=np.ones(1, np.float32)),
         "a, b: expected one array library and one dtype, got a: numpy float64, b: numpy float32"),
        (lambda: checks.same_batches(Q=np.ones((2, 4, 3)), K=np.ones((3, 5, 3))),
         "Q, K: expected batch axes that broadcast, got Q (2, 4, 3), K (3, 5, 3)"),
        (lambda: checks.broadcast(a=np.ones(2), b=np.ones((1, 3))),
         "a, b: expected shapes that broadcast, got a (2,), b (1, 3)"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError)) as error:
            call()
        assert str(error.value) == words


def test_shapes_that_broadcast_do() -> None:
    checks.same_batches(Q=np.ones((2, 1, 4, 3)), K=np.ones((3, 5, 6)))
    checks.same_dtype(a=np.ones(1), b=np.ones(2))
    a, b = checks.broadcast(a=np.ones((2, 1)), b=np.ones(3))
    assert a.shape == b.shape == (2, 3)


def test_exponents_are_those_of_the_largest_modulus() -> None:
    x = np.asarray([[0.5, -3.0], [0.0, 0.0], [1.0, 8.0]])
    assert checks.exponent(x).tolist() == [4] and checks.exponent(np.zeros(2)).tolist() == [0]
    assert checks.exponent(x, axis=1).tolist() == [[2], [0], [4]]
    assert checks.unit_scaled(x, axis=1).tolist() == [[0.125, -0.75], [0, 0], [0.0625, 0.5]]


def test_errors_of_linear_algebra_and_of_large_integers_are_named() -> None:
    torch = torch_or_skip()
    with pytest.raises(ValueError, match="A: did not converge"), checks.about("A"):
        raise RuntimeError("did not converge")
    with pytest.raises(KeyError), checks.about("A"):
        raise KeyError("other errors pass")
    for like in (np.ones(1), torch.ones(1)):
        with pytest.raises(TypeError, match="n: expected a"):
            checks.integers([2**70], "n", like=like)


def test_the_rounding_of_sums_is_that_of_the_last_axis() -> None:
    eps = float(np.finfo(float).eps)
    assert (
        checks.rounding_of_sums(np.ones((2, 3, 5))) == 24 * eps and checks.rounding_of_sums(np.ones((7, 1))) == 8 * eps
    )


@pytest.mark.parametrize("n", [40, 300, 5000])
def test_half_precision_does_not_excuse_a_sum_of_zero(n: int) -> None:
    with pytest.raises(ValueError, match="p: expected probabilities that sum to 1"):
        checks.probabilities(np.zeros(n, np.float16), "p")
    torch = torch_or_skip()
    with pytest.raises(ValueError, match="p: expected probabilities that sum to 1"):
        checks.probabilities(torch.zeros(n, dtype=torch.bfloat16), "p")


def test_arrays_have_the_byte_order_of_the_machine() -> None:
    swapped = np.dtype(float).newbyteorder()
    found = checks.real_array(np.asarray([1.0, 2.5], dtype=swapped), "x")
    assert found.dtype == np.float64 and found.dtype.isnative and found.tolist() == [1.0, 2.5]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_have_room_for_their_differences(dtype: str) -> None:
    found = checks.integers(np.asarray([3, 100], dtype=dtype), "x")
    assert (found[0] - found[1], found[1] + found[1]) == (-97, 200)


def test_integers_that_no_double_holds_are_named() -> None:
    with pytest.raises(ValueError, match=f"x: expected integers of at most {2**53}"):
        checks.integers(np.asarray([2**63], dtype=np.uint64), "x")


def test_tensors_without_plain_numbers_are_named() -> None:
    torch = torch_or_skip()
    eye = torch.eye(2)
    for strange, kind in (
        (eye.to_sparse(), "a torch.sparse_coo"), (eye.to("meta"), "a meta"),
        (torch.nested.nested_tensor([eye, eye[:1]], layout=torch.jagged), "a nested"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=f"x: expected an array of real numbers, got {kind} tensor"):
            checks.real_array(strange, "x")
    with pytest.raises(TypeError, match="x: expected half, single or double precision, got .*float8"):
        checks.real_array(eye.to(torch.float8_e4m3fn), "x")
