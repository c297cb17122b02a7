"""Estimates: right on average, with errors of the right size, and strict about their input."""

from __future__ import annotations

import numpy as np
import pytest

from attnmath import estimate
from attnmath.estimate import Estimate, mean, slope, variance


def coverage(estimator, truth: float, draws: np.ndarray) -> float:
    """Share of samples whose interval of 1.96 standard errors holds the truth."""
    hits = [low <= truth <= high for low, high in (estimator(row).interval() for row in draws)]
    return float(np.mean(hits))


@pytest.mark.parametrize("estimator, truth", [(mean, 0.0), (variance, 1.0)])
def test_intervals_cover_the_truth(estimator, truth) -> None:
    draws = np.random.default_rng(11).standard_normal((2000, 400))
    # A binomial share of 2000 has a standard error of 0.005; the nominal 95 % is approached from below.
    assert coverage(estimator, truth, draws) == pytest.approx(0.95, abs=0.02)
    assert coverage(estimator, truth + 0.5, draws) < 0.5


def test_variance_is_unbiased_and_vectorised() -> None:
    x = np.random.default_rng(1).standard_normal((50, 3))
    np.testing.assert_allclose(variance(x).value, x.var(axis=0, ddof=1))
    assert variance(x).standard_error.shape == (3,)


def test_two_valued_draws_have_a_variance_without_error() -> None:
    assert variance([-1.0, 1.0] * 500).standard_error == pytest.approx(np.sqrt(2 / (999 * 1000)))


def test_slope_and_its_error() -> None:
    rng = np.random.default_rng(2)
    x = np.linspace(0, 1, 30)
    slopes = [slope(x, 3 * x + 0.1 * rng.standard_normal(30)) for _ in range(500)]
    values = np.asarray([s.value for s in slopes])
    assert values.mean() == pytest.approx(3, abs=4 * values.std() / np.sqrt(500))
    assert np.mean([s.standard_error for s in slopes]) == pytest.approx(values.std(), rel=0.1)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: mean([1.0]), "samples: expected at least 2 draws"),
        (lambda: mean([1.0, np.nan]), "samples: expected no NaN"),
        (lambda: variance([1.0, -np.inf]), "samples: expected finite"),
        (lambda: slope([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]), "x not constant"),
        (lambda: slope([1.0, 2.0, 3.0], [1.0, 2.0]), "same length"),
        (lambda: slope([1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]), "same length"),
        (lambda: Estimate(1.0, -1.0), "standard_error: expected"),
        (lambda: Estimate(np.nan, 1.0), "standard_error: expected"),
    ],
)
def test_bad_input(call, words) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_estimates_are_gathered_in_order() -> None:
    both = estimate.stack([Estimate([1.0, 2.0], [0.1, 0.2]), Estimate([3.0, 4.0], [0.3, 0.4])])
    assert both.value.tolist() == [[1.0, 2.0], [3.0, 4.0]] and both.standard_error[1, 1] == 0.4
    with pytest.raises(ValueError, match="estimates: expected at least one"):
        estimate.stack([])


def test_groups_are_the_units_of_a_clustered_mean() -> None:
    """Copies of one draw add nothing: the error is that of the groups, not of the samples."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal(8)
    copied = estimate.mean_of_groups(np.repeat(draws, 12), np.repeat(np.arange(8), 12))
    assert copied.standard_error == pytest.approx(estimate.mean(draws).standard_error)
    assert copied.standard_error > 3 * estimate.mean(np.repeat(draws, 12)).standard_error


@pytest.mark.parametrize(
    ("samples", "groups", "words"),
    [([1.0, 2.0], ["a"], "one label for each sample"), ([1.0, 2.0], ["a", "a"], "at least 2 groups")],
)
def test_bad_groups_are_named(samples, groups, words) -> None:
    with pytest.raises(ValueError, match=words):
        estimate.mean_of_groups(samples, groups)


@pytest.mark.parametrize("power", [-700, -300, 300, 700])
def test_estimates_scale_by_powers_of_two_exactly(power: int) -> None:
    x = np.random.default_rng(0).standard_normal(50)
    small, usual = mean(np.ldexp(x, power)), mean(x)
    assert small.value == np.ldexp(usual.value, power) and small.standard_error == np.ldexp(usual.standard_error, power)
    y = 3 * x + np.random.default_rng(1).standard_normal(50)
    tilted = slope(np.ldexp(x, power), np.ldexp(y, power))
    assert (tilted.value, tilted.standard_error) == (slope(x, y).value, slope(x, y).standard_error)
    if abs(power) < 500:
        assert variance(np.ldexp(x, power)).standard_error == np.ldexp(variance(x).standard_error, 2 * power)


def test_a_variance_beyond_the_floats_is_an_error_that_names_the_samples() -> None:
    with pytest.raises(ValueError, match="samples: expected a result within the range"):
        variance([1e200, -1e200])


def test_half_precision_is_computed_in_double() -> None:
    x, y = (np.random.default_rng(k).standard_normal(30).astype(np.float16) for k in (0, 1))
    for function in (lambda a, b: slope(a, b), lambda a, b: mean(a)):
        assert function(x, y) == function(x.astype(float), y.astype(float))
