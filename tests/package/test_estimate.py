"""Estimates: right on average, with errors of the right size, and strict about their input."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

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


def test_estimates_are_their_formulas_on_uneven_samples() -> None:
    x = np.asarray([[1.0, -2.0, 4.0], [0.5, 3.0, 4.5], [2.0, 7.0, 1.0], [8.0, 0.0, 3.0], [-1.0, 5.0, 2.5]])
    n = 5
    found = mean(x)
    np.testing.assert_allclose(found.value, x.sum(axis=0) / n, rtol=1e-14)
    np.testing.assert_allclose(found.standard_error, x.std(axis=0, ddof=1) / np.sqrt(n), rtol=1e-14)
    centred = x - x.sum(axis=0) / n
    m2, m4 = (centred**2).sum(axis=0) / n, (centred**4).sum(axis=0) / n
    found = variance(x)
    np.testing.assert_allclose(found.value, m2 * n / (n - 1), rtol=1e-13)
    np.testing.assert_allclose(found.standard_error, np.sqrt((m4 - m2**2 * (n - 3) / (n - 1)) / n), rtol=1e-12)
    a, y = np.asarray([0.0, 1.0, 2.0, 5.0, 9.0]), np.asarray([1.0, 0.0, 4.0, 2.0, 7.0])
    (b, _), squares = np.linalg.lstsq(np.column_stack([a, np.ones(n)]), y, rcond=None)[:2]
    found = slope(a, y)
    assert found.value == pytest.approx(b, rel=1e-12)
    expected = np.sqrt(squares[0] / (n - 2) / ((a - a.mean()) ** 2).sum())
    assert found.standard_error == pytest.approx(expected, rel=1e-12)


def test_two_draws_are_enough_for_a_mean_and_three_points_for_a_slope() -> None:
    assert mean([1.0, 3.0]) == Estimate(2.0, 1.0) and variance([1.0, 3.0]).value == 2.0
    assert slope([0.0, 1.0, 2.0], [0.0, 1.0, 5.0]).value == 2.5
    assert Estimate(1.0, 0.0).interval() == (1.0, 1.0) and Estimate(1.0, 1.0).interval() == (-0.96, 2.96)
    for call, words in (
        (lambda: mean([1.0]), "samples: expected at least 2 draws along the first axis, got 1"),
        (lambda: variance([[1.0, 2.0]]), "samples: expected at least 2 draws along the first axis, got 1"),
        (lambda: slope([0.0, 1.0], [0.0, 1.0]),
         "x, y: expected the same length, at least 3, and x not constant, got 2 and 2"),
        (lambda: mean(3.0), "samples: expected at least 1 dimensions, got shape (), dtype float64"),
        (lambda: estimate.stack([Estimate(1.0, 0.1), Estimate([1.0], [0.1])]),
         "estimates: expected values and errors of one shape, got [(), (1,)]"),
    ):  # fmt: skip
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value) == words


def test_what_is_no_list_of_estimates_is_named() -> None:
    for value in (iter([Estimate(1.0, 0.1)]), [1.0], [Estimate(1.0, 0.1), 2.0], 3):
        with pytest.raises(TypeError, match="estimates: expected a sequence of Estimate, got"):
            estimate.stack(value)


def test_an_estimate_reads_as_a_value_and_its_error() -> None:
    assert str(Estimate(1234.567, 0.01234)) == "1235 ± 0.012" and str(Estimate([1.0, 2.0], 0.1)) == "2 estimates"
    with pytest.raises(ValueError, match="value, standard_error: expected finite numbers, got standard_error: "):
        Estimate(1.0, np.inf)
    with pytest.raises(
        ValueError, match=r"standard_error: expected finite and non-negative, got \[1. 2.\] and \[ 0. -1.\]"
    ):
        Estimate([1.0, 2.0], [0.0, -1.0])


def test_hundreds_of_points_have_a_slope() -> None:
    assert slope(np.arange(300.0), 3 * np.arange(300.0)).value == pytest.approx(3)


def test_records_cannot_be_changed_by_accident() -> None:
    for record in (Estimate(1.0, 0.1),):
        name = dataclasses.fields(record)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, None)


def test_a_slope_is_that_of_two_rows_of_numbers() -> None:
    for name, given in (("x", ([[0.0, 1.0, 2.0]], [0.0, 1.0, 2.0])), ("y", ([0.0, 1.0, 2.0], [[0.0, 1.0, 2.0]]))):
        with pytest.raises(ValueError, match=f"{name}: expected 1 dimensions, got shape"):
            slope(*given)


def test_an_interval_names_what_it_cannot_use() -> None:
    low, high = Estimate([1.0, 2.0], 0.5).interval(2)
    assert low.tolist() == [0.0, 1.0] and high.tolist() == [2.0, 3.0]
    for z, error in (("a", TypeError), (float("nan"), ValueError), (float("inf"), ValueError)):
        with pytest.raises(error, match="z: expected"):
            Estimate(1.0, 0.1).interval(z)
    with pytest.raises(ValueError, match="standard_error: expected no more numbers than the values"):
        Estimate(1.0, np.ones(2))
    with pytest.raises(ValueError, match="value, standard_error: expected shapes that broadcast"):
        Estimate(np.ones(2), np.ones(3))


def test_columns_of_unlike_size_do_not_disturb_one_another() -> None:
    draws = np.asarray([[1e200, 1e-200, 0.0], [1e200, 3e-200, 0.0], [4e200, 2e-200, 0.0]])
    found, alone = mean(draws), [mean(column) for column in draws.T]
    np.testing.assert_array_equal(found.value, [float(one.value) for one in alone])
    np.testing.assert_array_equal(found.standard_error, [float(one.standard_error) for one in alone])
    np.testing.assert_allclose(found.value, [2e200, 2e-200, 0])
    small = np.asarray([[1e150, 1e-150], [2e150, 3e-150], [4e150, 2e-150]])
    np.testing.assert_allclose(variance(small).value, small.var(axis=0, ddof=1), rtol=1e-12)


def test_the_coverage_of_an_interval_is_a_double() -> None:
    single = np.float32(0.95)
    assert estimate.interval(Estimate(0.0, 1.0), 5, coverage=single) == estimate.interval(
        Estimate(0.0, 1.0), 5, coverage=float(single)
    )


@pytest.mark.parametrize("offset, step", [(2.0**53, 2.0), (1e9, 2.0**-23), (-3.0, 2.0**-51), (0.0, 1.0)])
def test_points_a_few_ulp_apart_keep_their_digits(offset: float, step: float) -> None:
    x = offset + step * np.asarray([0.0, 1.0, 1.0, 3.0])
    y = np.asarray([0.0, 1.0, 3.0, 4.0])
    exact = [Fraction(a) for a in x.tolist()]
    mean = sum(exact) / 4
    squares = sum((a - mean) ** 2 for a in exact)
    b = sum((a - mean) * Fraction(c) for a, c in zip(exact, y.tolist(), strict=True)) / squares
    # A few roundings of numbers of one sign, or of differences of the order of the step.
    assert estimate.slope(x, y).value == pytest.approx(float(b), rel=1e-14)
    assert estimate.variance(x).value == pytest.approx(float(squares / 3), rel=1e-14)
    assert estimate.mean(x).standard_error == pytest.approx(float(squares / 12) ** 0.5, rel=1e-14)


def test_an_interval_next_to_certainty() -> None:
    low, high = estimate.interval(Estimate(0.0, 1.0), 255, 1 - 2.0**-53)
    assert 8 < high == -low < 10  # (1 + coverage) / 2 rounds to 1, whose quantile is infinite
