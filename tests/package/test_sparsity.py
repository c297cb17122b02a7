"""The closed forms against 50 digits of mpmath, over the whole range that they promise."""

from __future__ import annotations

import time
import tracemalloc

import mpmath as mp
import numpy as np
import pytest
from backends import both_backends, make
from hypothesis import given
from hypothesis import strategies as st

from attnmath import sparsity

#: The promised relative error: a few units in the last place.
BOUND = 4e-15
RATIOS = np.concatenate([
    s * np.geomspace(1e-6, 1e6, 49) for s in (1, -1)
] + [np.linspace(-60, 10, 71)])  # fmt: skip
GAMMAS = np.geomspace(1e-6, 1e6, 13)


def exact(beta: float, gamma: float) -> dict[str, mp.mpf]:
    """S of relu^2 and of the identity, to 60 digits: moments by parabolic cylinder functions."""
    with mp.workdps(90):
        t = mp.mpf(beta) / mp.mpf(gamma)
        if t < 0:
            m2, m4 = (mp.factorial(k) * mp.exp(-t * t / 4) * mp.pcfd(-k - 1, -t) / mp.sqrt(2 * mp.pi) for k in (2, 4))
        else:
            Phi, phi = mp.ncdf(t), mp.npdf(t)
            m2, m4 = (t**2 + 1) * Phi + t * phi, (t**4 + 6 * t**2 + 3) * Phi + (t**3 + 5 * t) * phi
        mean = mp.sqrt(2 / mp.pi) * mp.exp(-t * t / 2) + t * mp.erf(t / mp.sqrt(2))
        return {"relu_squared": m2 / mp.sqrt(m4), "identity": mean / mp.sqrt(1 + t * t)}


def error(found: float, expected: mp.mpf) -> float:
    with mp.workdps(60):
        return float(abs(mp.mpf(float(found)) / expected - 1))


@pytest.mark.parametrize("name", ["relu_squared", "identity"])
def test_closed_forms_are_accurate_everywhere(name: str) -> None:
    form = getattr(sparsity, name)
    for k, ratio in enumerate(RATIOS):
        gamma = GAMMAS[k % len(GAMMAS)]
        expected = exact(ratio * gamma, gamma)[name]
        with mp.workdps(60):
            log_expected = mp.log(expected)
        if expected > 1e-300:
            assert error(form(ratio * gamma, gamma), expected) <= BOUND, (ratio, gamma)
        assert error(form(ratio * gamma, gamma, log=True), log_expected) <= BOUND, (ratio, gamma)


def random_points(count: int) -> list[tuple[float, float]]:
    """Pairs of beta and gamma: log-uniform ones of both signs, and ratios uniform in [-60, 60]."""
    rng = np.random.default_rng(20)
    gamma = 10 ** rng.uniform(-6, 6, 2 * count)
    far = 10 ** rng.uniform(-8, 6, count) * rng.choice([-1, 1], count)
    near = rng.uniform(-60, 60, count) * gamma[count:]
    return list(zip(np.concatenate([far, near]).tolist(), gamma.tolist(), strict=True))


def test_closed_forms_are_accurate_at_random_points() -> None:
    for beta, gamma in random_points(150):
        for name, expected in exact(beta, gamma).items():
            form = getattr(sparsity, name)
            with mp.workdps(60):
                log_expected = mp.log(expected)
            assert error(form(beta, gamma, log=True), log_expected) <= BOUND, (name, beta, gamma)
            if expected > 1e-307:  # the smallest normal number is 2.2e-308
                assert error(form(beta, gamma), expected) <= BOUND, (name, beta, gamma)


@pytest.mark.parametrize("name", ["relu_squared", "identity"])
@pytest.mark.parametrize("log", [False, True])
def test_a_million_values_take_little_room_and_time(name: str, log: bool) -> None:
    form = getattr(sparsity, name)
    beta = np.linspace(-60, 60, 10**6)
    gamma = np.geomspace(0.1, 10, 10**6)
    start = time.process_time()
    values = form(beta, gamma, log=log)
    assert time.process_time() - start < 2
    assert values.shape == beta.shape
    tracemalloc.start()
    form(beta, gamma, log=log)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


@pytest.mark.parametrize("name", ["relu_squared", "identity"])
@pytest.mark.parametrize("log", [False, True])
def test_many_values_are_those_of_one_at_a_time(name: str, log: bool) -> None:
    form = getattr(sparsity, name)
    beta = np.linspace(-9, 9, 3 * 2**14 + 5).reshape(1, -1, 1)
    values = form(beta, np.ones((2, 1, 1)), log=log)
    assert values.shape == (2, beta.size, 1)
    for k in (0, 1, 2**14 - 1, 2**14, 2**15, 2**15 + 1, beta.size - 1):
        assert values[1, k, 0] == values[0, k, 0] == form(beta[0, k, 0], 1.0, log=log)
    assert np.isscalar(form(1.0, 1.0, log=log)) and form([1.0], 1.0, log=log).shape == (1,)


def test_the_printed_form_is_where_digits_go() -> None:
    """The control: the article's own expression has no digit left at a ratio of -7."""
    t = -7.0
    e, erf1 = np.exp(-t * t / 2), float(mp.erf(t / mp.sqrt(2))) + 1
    top = e * (np.sqrt(2) * t + np.sqrt(np.pi) / e * (t**2 + 1) * erf1)
    under = 2 * np.sqrt(2) * t * e * (t**2 + 5) + 2 * np.sqrt(np.pi) * (t**4 + 6 * t**2 + 3) * erf1
    printed = top / (np.pi**0.25 * np.sqrt(abs(under)))
    assert error(printed, exact(t, 1.0)["relu_squared"]) > 1e-2
    assert error(sparsity.relu_squared(t, 1.0), exact(t, 1.0)["relu_squared"]) <= BOUND


def test_exponential() -> None:
    for gamma in np.geomspace(1e-6, 37, 60):
        with mp.workdps(60):
            expected = mp.exp(-(mp.mpf(gamma) ** 2) / 2)
        assert error(sparsity.exponential(gamma), expected) <= BOUND
    assert sparsity.exponential(1e6) == 0 and sparsity.exponential(1e6, log=True) == -5e11


def test_decay() -> None:
    for lam in (1e-9, 0.3365589630089816, 0.5, 0.9, 1 - 1e-9, 1 - 2**-53):
        for n in (2, 3, 10, 1000, 10**7):
            with mp.workdps(60):
                a = mp.mpf(lam)
                expected = mp.sqrt((1 - a**n) * (1 + a) / (n * (1 - a) * (1 + a**n)))
                log_expected = mp.log(expected)
            assert error(sparsity.decay(lam, n), expected) <= BOUND
            assert error(sparsity.decay(lam, n, log=True), log_expected) <= BOUND
    assert sparsity.decay(1.0, 5) == 1 and sparsity.decay(0.3, 1) == 1


@both_backends
@given(row=st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=9), scale=st.floats(1e-100, 1e100))
def test_sparsity_is_scale_invariant_and_bounded(backend: str, row: list[float], scale: float) -> None:
    row = [x if abs(x) > 1e-150 else 1.0 for x in row]
    S = float(sparsity.sparsity(make(backend, row)))
    assert 1 / np.sqrt(len(row)) - 1e-12 <= S <= 1 + 1e-12
    assert pytest.approx(float(sparsity.sparsity(make(backend, np.asarray(row) * scale))), rel=1e-12) == S


def test_geometric_row_matches_its_closed_form() -> None:
    row = 0.9 ** np.arange(20)[::-1]
    assert sparsity.sparsity(row) == pytest.approx(sparsity.decay(0.9, 20), rel=1e-14)


def test_gaussian_rows_approach_their_closed_forms() -> None:
    z = np.random.default_rng(0).standard_normal(400_000)
    for row, expected in (
        (np.exp(0.5 * z), sparsity.exponential(0.5)),
        (np.maximum(z - 0.5, 0) ** 2, sparsity.relu_squared(-0.5, 1.0)),
        (z + 1, sparsity.identity(1.0, 1.0)),
    ):
        # The relative error of a ratio of two such means is of the order of 1 / sqrt(N) times a kurtosis below 100.
        assert sparsity.sparsity(row) == pytest.approx(float(expected), rel=10 / np.sqrt(len(z)))


def test_linear() -> None:
    q, mean = np.asarray([1.0, 2.0]), np.asarray([0.5, 1.0])
    assert sparsity.linear(q, mean, np.zeros((2, 2))) == 1.0
    assert sparsity.linear(q, mean, np.eye(2)) == pytest.approx(1 / np.sqrt(1 + 5 / 2.5**2))


@both_backends
def test_effective_support_counts_equal_entries(backend: str) -> None:
    rows = make(backend, [[2.0, -2.0, 0.0, 0.0], [0.0, 0.0, 1e-200, 0.0]])
    np.testing.assert_allclose(np.asarray(sparsity.effective_support(rows)), [2, 1], rtol=1e-14)
    assert float(sparsity.effective_support(make(backend, [[3.0], [0.0]]), axis=0)[0]) == pytest.approx(1)


def test_independent_entries_are_a_special_case() -> None:
    q = np.asarray([1.0, 2.0, 5.0])
    expected = 1 / np.sqrt(1 + (3.0 / 0.5 * np.linalg.norm(q) / q.sum()) ** 2)
    assert sparsity.linear_independent(q, 0.5, 3.0) == pytest.approx(expected, rel=1e-14)
    assert sparsity.linear_independent(q, 0.5, 0.0) == 1.0


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: sparsity.sparsity([0.0, 0.0]), "a: expected a non-zero entry"),
        (lambda: sparsity.sparsity([]), "a: expected no empty axis"),
        (lambda: sparsity.sparsity([np.nan]), "a: expected no NaN"),
        (lambda: sparsity.sparsity([1.0], axis=3), "axis: expected"),
        (lambda: sparsity.exponential(-1.0), "gamma: expected"),
        (lambda: sparsity.relu_squared(1.0, 0.0), "gamma: expected"),
        (lambda: sparsity.relu_squared(np.nan, 1.0), "beta: expected no NaN"),
        (lambda: sparsity.identity(1.0, 1e-300), "beta / gamma"),
        (lambda: sparsity.decay(0.0, 3), "lam: expected 0 < lam <= 1"),
        (lambda: sparsity.decay(1.5, 3), "lam: expected 0 < lam <= 1"),
        (lambda: sparsity.decay(0.5, 0), "n: expected integers"),
        (lambda: sparsity.decay(0.5, 2.5), "n: expected integers"),
        (lambda: sparsity.effective_support([0.0]), "a: expected a non-zero entry"),
        (lambda: sparsity.effective_support([1.0], axis=2), "axis: expected"),
        (lambda: sparsity.linear_independent([1.0], 0.0, 1.0), "q.mean > 0"),
        (lambda: sparsity.linear_independent([1.0], 1.0, -1.0), "deviation: expected at least 0"),
        (lambda: sparsity.linear_independent([[1.0]], 1.0, 1.0), "q: expected 1 dim"),
        (lambda: sparsity.linear([-1.0], [1.0], [[1.0]]), "non-negative"),
        (lambda: sparsity.linear([0.0], [1.0], [[1.0]]), "q.mean > 0"),
        (lambda: sparsity.linear([1.0], [1.0], [[-1.0]]), "positive semi-definite"),
        (lambda: sparsity.linear([1.0], [1.0], [[1.0, 2.0]]), "expected shapes"),
    ],
)
def test_bad_input(call, words) -> None:
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e155, 1e160, 1e300])
def test_linear_attention_does_not_depend_on_the_scale_of_q(scale: float) -> None:
    q, mean, covariance = np.asarray([1.0, 2.0]), np.asarray([0.5, 1.0]), np.asarray([[2.0, -0.5], [-0.5, 1.0]])
    expected = sparsity.linear(q, mean, covariance)
    assert sparsity.linear(q * scale, mean, covariance) == pytest.approx(expected, rel=1e-14)
    assert sparsity.linear_independent(q * scale, 0.5, 3.0) == pytest.approx(
        sparsity.linear_independent(q, 0.5, 3.0), rel=1e-14
    )
    assert sparsity.linear_independent(q, 0.5 * scale, 3.0 * scale) == pytest.approx(
        sparsity.linear_independent(q, 0.5, 3.0), rel=1e-14
    )
    if scale in (1e-170, 1e155):  # the covariance has the square of it
        root = np.sqrt(scale)
        assert sparsity.linear(q, mean * root, covariance * scale) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("power", [-564, -3, 8, 514])  # 2^-564 is about 1e-170, 2^514 about 1e155
def test_a_power_of_two_in_the_query_changes_no_bit(power: int) -> None:
    keys = np.abs(np.random.default_rng(5).standard_normal((3, 20)))
    q, mean, covariance = np.asarray([0.3, 2.0, 0.7]), keys.mean(axis=1), np.cov(keys, bias=True)
    assert sparsity.linear(np.ldexp(q, power), mean, covariance) == sparsity.linear(q, mean, covariance)


def test_scores_of_either_sign_and_any_size_scale_together() -> None:
    for t in (-30.0, -1.5, 0.0, 0.7, 12.0):
        for power in (-564, 514):
            beta, gamma = np.ldexp(t, power), np.ldexp(1.0, power)
            assert sparsity.relu_squared(beta, gamma) == sparsity.relu_squared(t, 1.0)
            assert sparsity.identity(beta, gamma) == sparsity.identity(t, 1.0)


def test_singular_covariances_are_accepted_to_rounding() -> None:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        y = rng.standard_normal(5)
        for bias in (False, True):
            covariance = np.cov(np.stack([y, 1 - y]), bias=bias)  # q = (1, 1) is in its kernel
            found.append(sparsity.linear([1.0, 1.0], [1.0, 1.0], covariance))
    np.testing.assert_allclose(found, 1, atol=1e-7)
    with pytest.raises(ValueError, match="positive semi-definite"):
        sparsity.linear([1.0, 1.0], [1.0, 1.0], [[1.0, -1.0 - 1e-12], [-1.0 - 1e-12, 1.0]])


def test_the_ratio_alone_counts_up_to_the_largest_floats() -> None:
    for beta, gamma in ((-1.0, 1e305), (-1e308, 1e308), (-1e-308, 1e-308), (3e300, 1e300)):
        expected = exact(beta, gamma)
        assert error(sparsity.relu_squared(beta, gamma), expected["relu_squared"]) <= BOUND
        assert error(sparsity.identity(beta, gamma), expected["identity"]) <= BOUND


def test_far_tails_keep_their_digits() -> None:
    for t in (-52.2, -52.6, -53.1):
        expected = exact(t, 1.0)["relu_squared"]
        # A subnormal product with the first integral had lost two digits here.
        assert error(sparsity.relu_squared(t, 1.0), expected) <= BOUND, t


def test_linear_attention_is_its_formula_at_uneven_inputs() -> None:
    q, mean = np.asarray([1.0, 3.0, 0.25]), np.asarray([0.5, 2.0, 4.0])
    root = np.asarray([[2.0, 0.5, 0.0], [0.0, 1.0, -3.0], [0.25, 0.0, 1.0]])
    C = root @ root.T
    expected = 1 / np.sqrt(1 + q @ C @ q / (q @ mean) ** 2)
    assert sparsity.linear(q, mean, C) == pytest.approx(expected, rel=1e-14)
    for power in (-300, -3, 3, 300):
        assert sparsity.linear(q, np.ldexp(mean, power), np.ldexp(C, 2 * power)) == pytest.approx(expected, rel=1e-14)
    for m, s in ((0.5, 3.0), (8.0, 0.125), (1e-200, 1e-201), (1e200, 1e199)):
        expected = 1 / np.sqrt(1 + ((s / m) * np.sqrt((q**2).sum()) / q.sum()) ** 2)
        assert sparsity.linear_independent(q, m, s) == pytest.approx(expected, rel=1e-13)
    for call, words in (
        (lambda: sparsity.linear([1.0, 1.0], [1.0], np.eye(2)), r"got \(2,\), \(1,\), \(2, 2\)"),
        (lambda: sparsity.linear([1.0], [1.0, 1.0], np.eye(1)), r"got \(1,\), \(2,\), \(1, 1\)"),
        (lambda: sparsity.linear([1.0], [1.0], np.eye(2)), r"got \(1,\), \(1,\), \(2, 2\)"),
        (lambda: sparsity.linear([1.0, 1.0], [1.0, -0.5], np.eye(2)), r"q, mean: expected non-negative entries"),
        (lambda: sparsity.linear([1.0, -0.5], [1.0, 1.0], np.eye(2)), r"q, mean: expected non-negative entries"),
        (lambda: sparsity.linear([1.0, 1.0], [1.0, 1.0], [[1.0, 0.5], [0.0, 1.0]]), "covariance: expected a symmetric"),
        (lambda: sparsity.linear([1.0, 0.0], [0.0, 1.0], np.eye(2)), "expected q.mean > 0, got 0"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_covariance_may_be_negative_by_its_rounding_and_no_more() -> None:
    # q' C q = -2 x, against 4 (d + 1) eps q' |C| q = 48 eps (up to the power of two that scales C)
    eps = np.finfo(float).eps
    for x, fits in ((10 * eps, True), (60 * eps, False)):
        covariance = [[1.0, -1.0 - x], [-1.0 - x, 1.0]]
        if fits:
            assert sparsity.linear([1.0, 1.0], [1.0, 1.0], covariance) == 1.0
        else:
            with pytest.raises(ValueError, match="covariance: expected positive semi-definite, got q' C q = -"):
                sparsity.linear([1.0, 1.0], [1.0, 1.0], covariance)


def test_arguments_have_their_bounds() -> None:
    assert sparsity.exponential(0.0) == 1.0 and sparsity.exponential([0.5], log=True).tolist() == [-0.125]
    assert sparsity.decay(1.0, 1) == 1.0 == sparsity.decay(5e-324, 1) and sparsity.decay(0.5, 2**53) > 0
    for call, words in (
        (lambda: sparsity.exponential([1.0, -5e-324]), "gamma: expected sigma |q| >= 0, got -4.94066e-324"),
        (lambda: sparsity.decay([0.5, 0.0], 2), "lam: expected 0 < lam <= 1, got values from 0 to 0.5"),
        (lambda: sparsity.decay([0.5, 1.5], 2), "lam: expected 0 < lam <= 1, got values from 0.5 to 1.5"),
        (lambda: sparsity.decay(0.5, [2, 0]), f"n: expected integers of at least 1 and at most {2**53}"),
        (lambda: sparsity.decay(0.5, [2, 2.5]), f"n: expected integers of at least 1 and at most {2**53}"),
        (lambda: sparsity.decay(0.5, 2.0**53 + 2), f"n: expected integers of at least 1 and at most {2**53}"),
        (lambda: sparsity.identity(1.0, [1.0, 0.0]), "gamma: expected sigma |q| > 0, got 0"),
        (lambda: sparsity.identity([1.0, 2e60], 1.0),
         "beta, gamma: expected |beta / gamma| of at most 1e60, got 2e+60"),
        (lambda: sparsity.identity(-2e60, 1.0), "beta, gamma: expected |beta / gamma| of at most 1e60, got 2e+60"),
        (lambda: sparsity.linear_independent([1.0], 1.0, -0.5), "deviation: expected at least 0, got -0.5"),
        (lambda: sparsity.sparsity([[1.0, 0.0], [0.0, 0.0]]),
         "a: expected a non-zero entry in every row, got a row of zeros"),
        (lambda: sparsity.sparsity(1.0), "a: expected at least 1 dimensions, got shape (), dtype float64"),
    ):  # fmt: skip
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value) == words
    assert sparsity.identity(1e60, 1.0) == sparsity.identity(-1e60, 1.0) == 1.0
    assert sparsity.relu_squared(1e60, 1.0) == pytest.approx(1.0, rel=1e-15)


def test_sparsity_is_taken_along_the_axis_that_is_asked_for() -> None:
    a = np.random.default_rng(4).standard_normal((3, 4, 5))
    for axis in (-1, 0, 1, 2):
        expected = np.abs(a).mean(axis=axis) / np.sqrt((a**2).mean(axis=axis))
        np.testing.assert_allclose(sparsity.sparsity(a, axis=axis), expected, rtol=1e-14)
        support = np.abs(a).sum(axis=axis) ** 2 / (a**2).sum(axis=axis)
        np.testing.assert_allclose(sparsity.effective_support(a, axis=axis), support, rtol=1e-13)
    np.testing.assert_array_equal(sparsity.sparsity(a), sparsity.sparsity(a, axis=2))
    np.testing.assert_array_equal(sparsity.effective_support(a), sparsity.effective_support(a, axis=2))


def test_dimensions_that_are_not_those_of_a_formula_are_named() -> None:
    for call, words in (
        (lambda: sparsity.linear([[1.0]], [1.0], [[1.0]]), "q: expected 1 dimensions"),
        (lambda: sparsity.linear([1.0], [[1.0]], [[1.0]]), "mean: expected 1 dimensions"),
        (lambda: sparsity.linear([1.0], [1.0], [1.0]), "covariance: expected 2 dimensions"),
        (lambda: sparsity.linear_independent([1.0], [1.0], 1.0), "mean: expected 0 dimensions"),
        (lambda: sparsity.linear_independent([1.0], 1.0, [1.0]), "deviation: expected 0 dimensions"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_an_effective_support_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match="a: expected"):
        sparsity.effective_support(np.ones(70_000, np.float16))
