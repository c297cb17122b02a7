"""Laws of the dot product: draws against theory, exact distributions against independent formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from attnmath import dot_product as dp
from attnmath import estimate


@pytest.mark.parametrize("law", dp.COMPONENT_LAWS.values(), ids=lambda law: law.name)
def test_component_laws_are_standardised(law: dp.ComponentLaw) -> None:
    x = law.sample(np.random.default_rng(4), (200_000,))
    for observed, expected in ((x, 0), (x**2, 1)):
        m = estimate.mean(observed)
        assert abs(m.value - expected) <= 4 * m.standard_error + 1e-12


def test_declared_fourth_moments_match_scipy() -> None:
    assert dp.student_t(7).fourth_moment == pytest.approx(3 + float(stats.t.stats(7, moments="k")))
    assert dp.student_t(3).fourth_moment == np.inf
    assert dp.COMPONENT_LAWS["uniform"].fourth_moment == pytest.approx(3 + float(stats.uniform.stats(moments="k")))


@pytest.mark.parametrize("d_k", [1, 3, 64, 5000])
def test_draws_have_variance_d_sigma_to_the_fourth(d_k: int) -> None:
    v = estimate.variance(dp.draws(dp.COMPONENT_LAWS["gaussian"], d_k, 4000, np.random.default_rng(d_k), sigma=2))
    assert abs(v.value - 16 * d_k) <= 4 * v.standard_error
    assert abs(v.value - 4 * d_k) > 4 * v.standard_error


def test_draws_are_seeded_and_complete() -> None:
    law = dp.COMPONENT_LAWS["uniform"]
    first, again = (dp.draws(law, 2_000_000, 5, np.random.default_rng(0)) for _ in range(2))
    assert first.shape == (5,) and np.array_equal(first, again)


@pytest.mark.parametrize("d_k", [1, 2, 5, 64])
def test_gaussian_density_is_the_bessel_form_and_integrates_to_the_cdf(d_k: int) -> None:
    x = np.asarray([0.05, 0.4, 1.0, 2.5])
    s, nu = x * np.sqrt(d_k), (d_k - 1) / 2
    bessel = np.sqrt(d_k / np.pi) * (s / 2) ** nu * special.kv(nu, s) / special.gamma(d_k / 2)
    np.testing.assert_allclose(dp.gaussian_density(x, d_k), bessel, rtol=1e-7)
    mass, _ = integrate.quad(lambda t: dp.gaussian_density([t], d_k)[0], 0.4, 1.0)
    low, high = dp.gaussian_cdf([0.4, 1.0], d_k)
    assert mass == pytest.approx(high - low, abs=1e-8)


def test_two_dimensions_give_laplaces_law() -> None:
    x = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(dp.gaussian_cdf(x, 2), stats.laplace.cdf(x * np.sqrt(2)), atol=1e-9)


def test_kolmogorov_distance_matches_a_brute_force_enumeration() -> None:
    d = 4
    sums = np.array([sum(1 if b >> i & 1 else -1 for i in range(d)) for b in range(2**d)]) / np.sqrt(d)
    points = np.unique(sums)
    upto = np.array([(sums <= p).mean() for p in points])
    below = np.array([(sums < p).mean() for p in points])
    gap = max(np.abs(upto - stats.norm.cdf(points)).max(), np.abs(below - stats.norm.cdf(points)).max())
    assert dp.kolmogorov_distance("rademacher", d) == pytest.approx(gap, abs=1e-14)


def test_kolmogorov_distance_of_gaussian_components_agrees_with_draws() -> None:
    draws = dp.draws(dp.COMPONENT_LAWS["gaussian"], 4, 200_000, np.random.default_rng(9)) / 2
    # The empirical distribution is off by more than 1.95 / sqrt(N) once in a thousand samples.
    assert stats.kstest(draws, "norm").statistic == pytest.approx(dp.kolmogorov_distance("gaussian", 4), abs=0.0044)


@pytest.mark.parametrize("d", [2, 3, 7, 512])
def test_cosine_density_has_mass_one_and_variance_one_over_d(d: int) -> None:
    mass, _ = integrate.quad(lambda t: dp.cosine_density(t, d), -1, 1, points=[0])
    square, _ = integrate.quad(lambda t: t**2 * dp.cosine_density(t, d), -1, 1, points=[0])
    assert mass == pytest.approx(1, abs=1e-7) and square == pytest.approx(1 / d, rel=1e-6)


def test_score_rows_have_the_promised_spread() -> None:
    v = estimate.mean(dp.score_rows(16, 8, 3000, np.random.default_rng(0), sigma=3).var(axis=1, ddof=1))
    assert abs(v.value - 16 * 81) <= 4 * v.standard_error
    # Given its query, a row's variance is chi-squared with 7 degrees of freedom; the query's length adds 2 / 16.
    spread = 16 * 81 * np.sqrt(((1 + 2 / 7) * (1 + 2 / 16) - 1) / 3000)
    assert 0.8 * spread < v.standard_error < 1.25 * spread


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: dp.student_t(2), ValueError, "nu: expected more than 2"),
        (lambda: dp.draws(dp.student_t(5), 0, 3, np.random.default_rng(0)), ValueError, "d_k: expected a positive"),
        (lambda: dp.draws(dp.student_t(5), 1, 3, np.random.default_rng(0), sigma=-1), ValueError, "sigma: expected"),
        (lambda: dp.kolmogorov_distance("cauchy", 3), ValueError, "law_name: expected"),
        (lambda: dp.gaussian_density([0.0], 1), ValueError, "x: expected no 0"),
        (lambda: dp.gaussian_cdf([np.nan], 1), ValueError, "x: expected no NaN"),
        (lambda: dp.cosine_density(0.0, 1), ValueError, "d: expected at least 2"),
        (lambda: dp.cosine_density(1.0, 3), ValueError, "t: expected cosines"),
        (lambda: dp.cosine_density(np.nan, 3), ValueError, "t: expected"),
    ],
)
def test_bad_input(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, int])
def test_widths_of_any_integer_type(kind) -> None:
    for d in (2, 3, 100):
        np.testing.assert_array_equal(dp.cosine_density([0.5], kind(d)), dp.cosine_density([0.5], d))
        np.testing.assert_array_equal(dp.gaussian_cdf([0.5], kind(d)), dp.gaussian_cdf([0.5], d))


def test_wide_heads_take_the_expansion_and_no_time() -> None:
    x = np.linspace(-5, 5, 11)
    below, above = 10**6, 10**6 + 1
    for function in (dp.gaussian_cdf, dp.gaussian_density):
        # The quadrature and the expansion meet to the accuracy that both promise.
        np.testing.assert_allclose(function(x, below), function(x, above), rtol=0, atol=2e-9)
    np.testing.assert_allclose(dp.gaussian_cdf(x, 10**12), stats.norm.cdf(x), atol=1e-12)
    # The first Edgeworth term is 3e-8 at x = 1 and d_k = 10^7 and has its own sign.
    correction = dp.gaussian_cdf([1.0], 10**7) - stats.norm.cdf(1.0)
    np.testing.assert_allclose(correction, 2 / (4 * 10**7) * stats.norm.pdf(1.0), rtol=1e-6)
    np.testing.assert_allclose(dp.gaussian_cdf([-1e308, 1e308], 10), [0, 1], rtol=0, atol=1e-13)
    assert dp.kolmogorov_distance("rademacher", 10**9) == pytest.approx(stats.norm.pdf(0) / 10**4.5, rel=1e-3)
