"""Means over rows of normal scores, against integrals of another kind, drawn rows and known limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from attnmath.operator import gaussian_rows
from attnmath.operator.attention import entropy, softmax


@pytest.mark.parametrize("deviation", [0.1, 1.0, 3.0, 12.0])
def test_two_scores_follow_from_the_law_of_their_gap(deviation: float) -> None:
    gap = stats.norm(scale=np.sqrt(2) * deviation)

    def mean(of_gap) -> float:
        return integrate.quad(lambda g: gap.pdf(g) * of_gap(g), -12 * deviation, 12 * deviation, epsabs=1e-11)[0]

    assert gaussian_rows.mean_log_sum(deviation, 2) == pytest.approx(mean(lambda g: np.logaddexp(g, 0)), abs=1e-7)
    collision = mean(lambda g: special.expit(g) ** 2 + special.expit(-g) ** 2)
    assert gaussian_rows.mean_collision(deviation, 2) == pytest.approx(collision, abs=1e-7)
    of_entropy = mean(lambda g: float(entropy(softmax(np.asarray([g, 0.0])))))
    assert gaussian_rows.mean_entropy(deviation, 2) == pytest.approx(of_entropy, abs=1e-6)


def test_one_score_has_no_entropy() -> None:
    assert gaussian_rows.mean_entropy(3.0, 1) == pytest.approx(0, abs=1e-7)
    assert gaussian_rows.mean_collision(3.0, 1) == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(("deviation", "n"), [(0.5, 3), (2.0, 64), (6.0, 1000)])
def test_the_bounds_of_the_theorem(deviation: float, n: int) -> None:
    found, collision = gaussian_rows.mean_entropy(deviation, n), gaussian_rows.mean_collision(deviation, n)
    assert np.log(n) - deviation**2 * (1 - 1 / n) <= found
    assert found <= np.log(n) - deviation**2 / 2 + deviation**2 * collision


def test_many_scores_approach_the_limit_at_a_fixed_scale() -> None:
    gaps = [np.log(n) - 1 / 2 - gaussian_rows.mean_entropy(1.0, n) for n in (10**3, 10**6)]
    assert abs(gaps[1]) < 1e-5 < abs(gaps[0]) < 1e-2
    assert 10**6 * gaussian_rows.mean_collision(1.0, 10**6) == pytest.approx(np.e, rel=1e-4)


LONG = [10**9, gaussian_rows.LONGEST]


@pytest.mark.parametrize("n", LONG)
def test_long_rows_at_a_fixed_scale(n: int) -> None:
    """For fixed s, E log Z = log n + s^2 / 2 up to order 1/n, and n C tends to exp(s^2)."""
    for s in (1e-3, 0.5, 1.0, 2.0):
        assert gaussian_rows.mean_log_sum(s, n) == pytest.approx(np.log(n) + s**2 / 2, abs=1e-6)
        assert gaussian_rows.mean_entropy(s, n) == pytest.approx(np.log(n) - s**2 / 2, abs=2e-6)
        assert n * gaussian_rows.mean_collision(s, n) == pytest.approx(np.exp(s**2), rel=1e-5)


@pytest.mark.parametrize("n", LONG)
@pytest.mark.parametrize("deviation", [4.0, 7.0, 10.0, 20.0, 48.0])
def test_in_long_rows_the_two_means_obey_steins_equation(deviation: float, n: int) -> None:
    """The derivative of E log Z by s is s (1 - E C): the two come from different integrands."""

    def difference(h: float) -> float:
        high, low = gaussian_rows.mean_log_sum(deviation + h, n), gaussian_rows.mean_log_sum(deviation - h, n)
        return (high - low) / (2 * h)

    near, far = difference(0.02 * deviation), difference(0.04 * deviation)
    slope = (4 * near - far) / 3  # without the error of order h^2
    assert slope == pytest.approx(deviation * (1 - gaussian_rows.mean_collision(deviation, n)), rel=2e-5)


@pytest.mark.parametrize("n", LONG)
def test_wide_long_rows_follow_their_largest_score(n: int) -> None:
    """log Z less the largest score is minus the logarithm of the largest weight: between 0 and the entropy."""
    largest = stats.norm.isf(-np.log((np.arange(20_000) + 0.5) / 20_000) / n)  # its quantiles, as Phi^n is near 1
    excess = gaussian_rows.mean_log_sum(50.0, n) - 50.0 * largest.mean()
    assert -0.02 <= excess <= gaussian_rows.mean_entropy(50.0, n)


@pytest.mark.parametrize("n", [10**6, *LONG])
@pytest.mark.parametrize("deviation", [1.0, 5.0, 10.0, 50.0])
def test_a_finer_grid_changes_long_rows_by_less_than_the_digits_promised(
    deviation: float, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = gaussian_rows.mean_entropy(deviation, n)
    monkeypatch.setattr(gaussian_rows, "_STEP", 0.2)
    assert found == pytest.approx(gaussian_rows.mean_entropy(deviation, n), abs=5e-6)


@pytest.mark.parametrize(("target", "n"), [(0.1, 2), (0.69, 2), (1.0, 10**6), (13.8, 10**6)])
def test_the_deviation_for_an_entropy_gives_it(target: float, n: int) -> None:
    deviation = gaussian_rows.deviation_for_entropy(target, n)
    assert gaussian_rows.mean_entropy(deviation, n) == pytest.approx(target, abs=1e-7)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gaussian_rows.deviation_for_entropy(0.7, 2), "entropy, n: expected an entropy below log n = 0.693147"),
        (lambda: gaussian_rows.deviation_for_entropy(1e-4, 10), "entropy, n: expected one that a deviation of at most"),
        (lambda: gaussian_rows.mean_entropy(51.0, 2), "deviation: expected"),
        (lambda: gaussian_rows.mean_entropy(1.0, 0), "n: expected a positive integer"),
    ],
)
def test_bad_arguments_are_named(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_means_agree_with_drawn_rows_of_many_lengths() -> None:
    rng = np.random.default_rng(0)
    for n, deviation in ((3, 0.7), (10, 2.0), (50, 4.0)):
        y = softmax(deviation * rng.standard_normal((40_000, n)))
        for found, drawn in (
            (gaussian_rows.mean_collision(deviation, n), (y**2).sum(axis=1)),
            (gaussian_rows.mean_entropy(deviation, n), entropy(y)),
        ):
            assert abs(drawn.mean() - found) < 5 * drawn.std() / 200


@pytest.mark.parametrize("n", [1, 2, 3, 100, 10**6, 10**12])
def test_narrow_scores_weigh_all_keys_alike(n: int) -> None:
    """For a small deviation s: mean log Z = log n + s^2 / 2 (1 - 1/n), collision 1/n + s^2 (1 - 1/n) / n."""
    s = 1e-3
    rounding = 3e-6 if n > 10**6 else 2e-9  # six digits are left at the largest n
    assert gaussian_rows.mean_log_sum(s, n) == pytest.approx(np.log(n) + s**2 / 2 * (1 - 1 / n), abs=rounding)
    assert gaussian_rows.mean_collision(s, n) == pytest.approx((1 + s**2 * (1 - 1 / n)) / n, rel=4 * rounding)


@pytest.mark.parametrize("deviation", [1e-6, 0.3, 5.0, 20.0])
def test_one_score_is_its_own_sum(deviation: float) -> None:
    assert gaussian_rows.mean_log_sum(deviation, 1) == pytest.approx(0, abs=1e-8)
    assert gaussian_rows.mean_collision(deviation, 1) == pytest.approx(1, abs=1e-9)
    two = np.sqrt(2) * deviation
    mean = integrate.quad(lambda g: stats.norm.pdf(g) * np.logaddexp(two * g, 0), -12, 12, epsabs=1e-11, limit=200)[0]
    assert gaussian_rows.mean_log_sum(deviation, 2) == pytest.approx(mean, abs=1e-7)


def test_an_entropy_has_its_deviation_up_to_the_bounds() -> None:
    for deviation in (0.01, 0.9, 1.1, 2.0, 3.5):
        target = gaussian_rows.mean_entropy(deviation, 10)
        assert gaussian_rows.deviation_for_entropy(target, 10) == pytest.approx(deviation, rel=1e-6)
    for call, words in (
        (lambda: gaussian_rows.deviation_for_entropy(2.3026, 10),
         "entropy, n: expected an entropy below log n = 2.30259, got 2.3026"),
        (lambda: gaussian_rows.deviation_for_entropy(1.0, 1), "entropy, n: expected an entropy below log n = 0, got 1"),
        (lambda: gaussian_rows.deviation_for_entropy(0.0, 10), "entropy: expected a positive"),
        (lambda: gaussian_rows.mean_log_sum(50.5, 2), "deviation: expected a positive finite number of at most 50"),
        (lambda: gaussian_rows.mean_log_sum(1.0, 10**12 + 1), f"n: expected a positive integer, at most {10**12}, got"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            call()
    assert gaussian_rows.mean_entropy(50.0, 10**12) > 0
