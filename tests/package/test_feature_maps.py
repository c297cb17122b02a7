"""Feature maps against the kernels they are for, their number, their truncation, and what is refused."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from backends import both_backends, make
from hypothesis import given
from hypothesis import strategies as st

from attnmath.linear_cost import feature_maps as maps
from attnmath.linear_cost import kernels

POINTS = np.random.default_rng(5).standard_normal((2, 4, 3))


def gram(phi: np.ndarray) -> np.ndarray:
    return phi @ np.swapaxes(phi, -1, -2)


@both_backends
@given(d=st.integers(1, 4), order=st.integers(0, 6), seed=st.integers(0, 30))
def test_features_are_those_of_their_kernel(backend: str, d: int, order: int, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((2, 5, d))
    dots = gram(x)
    tower = gram(np.abs(x))  # the size of what cancels
    for features, series in (
        (maps.taylor_features, [1 / math.factorial(k) for k in range(order + 1)]),
        (maps.polynomial_features, [math.comb(order, k) for k in range(order + 1)]),
    ):
        phi = np.asarray(features(make(backend, x), order))
        assert phi.shape == (2, 5, math.comb(d + order, order)) == (2, 5, maps.feature_count(d, order))
        size = np.polynomial.polynomial.polyval(tower, series).max()
        expected = np.polynomial.polynomial.polyval(dots, series)
        np.testing.assert_allclose(gram(phi), expected, rtol=0, atol=1e-13 * size)


def test_a_series_with_gaps_needs_fewer_features() -> None:
    phi = maps.power_series_features(POINTS, [0.0, 2.0, 0.0, 0.5, 0.0])
    assert phi.shape == (2, 4, 3 + 10)
    dots = gram(POINTS)
    np.testing.assert_allclose(gram(phi), 2 * dots + dots**3 / 2, atol=1e-12)


def test_monomials_are_distinct_and_in_order() -> None:
    primes = np.asarray([2.0, 3.0, 5.0, 7.0])
    phi = maps.taylor_features(primes, 3)
    degrees = [c for k in range(4) for c in itertools.combinations_with_replacement(range(4), k)]
    expected = [math.prod(primes[list(c)]) / math.sqrt(math.prod(math.factorial(c.count(i)) for i in c and set(c)))
                for c in degrees]  # fmt: skip
    np.testing.assert_allclose(phi, expected, rtol=1e-14)
    assert len(degrees) == maps.feature_count(4, 3) == 35


def test_the_componentwise_map_has_no_mixed_products() -> None:
    x, y = np.asarray([2.0, 3.0]), np.asarray([0.5, -1.0])
    phi = [maps.componentwise_powers(v, 3) for v in (x, y)]
    assert phi[0].shape == (7,)
    assert phi[0] @ phi[1] == 1 + sum((x * y) ** k for k in (1, 2, 3)).sum()
    assert maps.componentwise_powers(x, 0).tolist() == [1.0]


@both_backends
def test_cosine_features_give_the_reweighted_kernel(backend: str) -> None:
    rng = np.random.default_rng(2)
    Q, K = rng.standard_normal((2, 6, 3)), rng.standard_normal((2, 4, 3))
    apart = np.arange(6)[:, None] - np.arange(4)
    for length in (6, 9):
        phi_Q, phi_K = (np.asarray(maps.cosine_reweighted(make(backend, a), length)) for a in (Q, K))
        assert phi_Q.shape == (2, 6, 6)
        weights = np.maximum(Q, 0) @ np.swapaxes(np.maximum(K, 0), 1, 2) * np.cos(np.pi * apart / (2 * length))
        np.testing.assert_allclose(phi_Q @ np.swapaxes(phi_K, 1, 2), weights, atol=1e-14)
    weights = kernels.kernel_weights(Q, Q, maps.cosine_reweighted)
    assert (weights >= 0).all()
    np.testing.assert_array_equal(maps.cosine_reweighted(Q), maps.cosine_reweighted(Q, 6))


@given(order=st.integers(0, 30), seed=st.integers(0, 30))
def test_the_truncation_obeys_its_bound_and_its_sign(order: int, seed: int) -> None:
    s = np.random.default_rng(seed).uniform(-6, 6, 50)
    found = maps.truncated_exponential(s, order)
    expected = sum(s**k / math.factorial(k) for k in range(order + 1))
    rounding = 1e-14 * np.exp(np.abs(s))  # of the sum above, whose terms cancel
    np.testing.assert_array_less(np.abs(found - expected), rounding)
    assert np.all(np.abs(np.exp(s) - found) <= maps.truncation_bound(s, order) + rounding)
    relative = maps.truncation_bound(s, order, relative=True)
    assert np.all(np.abs(found / np.exp(s) - 1) <= relative + rounding / np.exp(s))
    assert np.all(np.diff(np.sign(maps.truncated_exponential(np.sort(s), order))) >= 0)
    if order % 2 == 0:
        assert np.all(found > 0)


@both_backends
@pytest.mark.parametrize("order", [0, 1, 2, 3, 8, 37, 38, 57, 101, 170])
def test_the_cut_series_is_right_where_its_terms_cancel(backend: str, order: int) -> None:
    """Against 400 digits, in both precisions, and positive for even orders; odd ones vanish once, so e^s counts too."""
    places = np.concatenate([-np.geomspace(0.1, 2 * order + 40, 40), [-36.0, -order - 1.0, -order, 2.0, 10.0]])
    for dtype in (np.float64, np.float32):
        s = places.astype(dtype)[places > (-1e3 if dtype is np.float64 else -88)]  # further out float32 overflows
        found = np.asarray(maps.truncated_exponential(make(backend, s, dtype.__name__), order))
        assert found.dtype == dtype
        with mpmath.workdps(400):
            points = [mpmath.mpf(float(v)) for v in s]
            exact = [mpmath.fsum(v**k / mpmath.factorial(k) for k in range(order + 1)) for v in points]
            scale = [max(abs(e), mpmath.exp(v) if order % 2 else 0) for e, v in zip(exact, points, strict=True)]
            off = [float(abs(float(f) - e) / w) for f, e, w in zip(found, exact, scale, strict=True)]
        assert max(off) < 4 * (order + 1) * np.finfo(dtype).eps
        assert order % 2 or (found > 0).all()


@both_backends
@pytest.mark.parametrize("order", [57, 110, 170])
def test_high_orders_do_not_overflow_on_the_way(backend: str, order: int) -> None:
    """In float32 the root of 57! times powers is within the range, and 57! and 1 / sqrt(57!) times it are not."""
    x, y = np.asarray([1.25]), np.asarray([0.75])
    only = [0.0] * order + [1.0]
    phi = [np.asarray(maps.power_series_features(make(backend, v, "float32"), only)) for v in (x, y)]
    assert phi[0].dtype == np.float32 and phi[0].shape == (1,)
    np.testing.assert_allclose(phi[0] @ phi[1], (15 / 16) ** order, rtol=2 * order * 6e-8)
    ends = [0.5] + [0.0] * (order - 1) + [2.0]
    phi = [np.asarray(maps.power_series_features(make(backend, v, "float32"), ends)) for v in (x, y)]
    np.testing.assert_allclose(phi[0] @ phi[1], 0.5 + 2 * (15 / 16) ** order, rtol=2 * order * 6e-8)
    small = [np.asarray(maps.polynomial_features(make(backend, v / 4, "float32"), order)) for v in (x, y)]
    np.testing.assert_allclose(small[0] @ small[1], (1 + 15 / 256) ** order, rtol=2 * order * 6e-8)


def test_every_order_needed_can_be_counted() -> None:
    for largest in (50.0, 1e3, 1e6):
        order = maps.order_needed(largest, 0.01)
        assert order > maps.MOST_TERMS // 2
        assert maps.feature_count(64, order) == math.comb(64 + order, 64)


def test_the_bound_is_sharp_at_small_scores_and_does_not_overflow_on_the_way() -> None:
    for s in (1e-3, -1e-3):
        assert 0.999 < abs(math.exp(s) - 1 - s) / maps.truncation_bound(s, 1) < 1.0
    assert maps.truncation_bound(0.0, 3) == 0.0
    assert 0 < maps.truncation_bound(300.0, 1300, relative=True) < 1e-100
    with pytest.raises(ValueError, match="s, order: expected a result within the range"):
        maps.truncation_bound(1e4, 3)


@given(largest=st.floats(0.01, 60), error=st.floats(1e-12, 10))
def test_the_order_needed_is_the_smallest(largest: float, error: float) -> None:
    order = maps.order_needed(largest, error)
    ends = [-largest, largest]
    assert np.max(maps.truncation_bound(ends, order, relative=True)) <= error * (1 + 1e-9)
    for smaller in {0, order // 2, order - 1} if order else ():
        assert np.max(maps.truncation_bound(ends, smaller, relative=True)) > error * (1 - 1e-9)


def test_linear_attention_takes_each_map() -> None:
    rng = np.random.default_rng(8)
    Q, K, V = (rng.standard_normal((7, 2)) / 2 for _ in range(3))
    exact = np.exp(Q @ K.T)
    exact = exact / exact.sum(axis=1, keepdims=True) @ V
    errors = []
    for order in (2, 4, 6, 8):
        found = kernels.linear_attention(Q, K, V, lambda x, p=order: maps.taylor_features(x, p))
        errors.append(np.abs(found - exact).max())
    assert errors == sorted(errors, reverse=True) and errors[-1] < 1e-5


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: maps.taylor_features([1.0], -1), ValueError, "order: expected an integer of at least 0"),
        (lambda: maps.taylor_features([1.0], 171), ValueError, "order: expected an integer of at least 0, at most 170"),
        (lambda: maps.taylor_features(np.ones((9, 64)), 6), ValueError, "x, order: expected a result of at most"),
        (lambda: maps.taylor_features([1e200], 2), ValueError, "x, order: expected a result within the range"),
        (lambda: maps.taylor_features(1.0, 2), ValueError, "x: expected at least 1 dimensions"),
        (lambda: maps.power_series_features([1.0], [1.0, -1.0]), ValueError, "coefficients: expected non-negative"),
        (lambda: maps.power_series_features([1.0], [0.0]), ValueError, "coefficients: expected non-negative"),
        (lambda: maps.power_series_features([1.0], np.ones(172)), ValueError, "coefficients: expected at most 171"),
        (lambda: maps.cosine_reweighted([[1.0], [2.0]], 1), ValueError, "length: expected at least 2"),
        (lambda: maps.cosine_reweighted([1.0]), ValueError, "x: expected at least 2 dimensions"),
        (lambda: maps.feature_count(0, 1), ValueError, "d: expected a positive integer"),
        (lambda: maps.feature_count(10_001, 20_000), ValueError, "d, order: expected one of them to be at most 10000"),
        (lambda: maps.order_needed(0.0, 0.1), ValueError, "largest: expected a positive finite number"),
        (lambda: maps.truncated_exponential([np.nan], 2), ValueError, "s: expected no NaN"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()
