"""Laws of the dot product: draws against theory, exact distributions against independent formulas."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import integrate, special, stats

from attnmath import checks, estimate
from attnmath.operator import dot_product as dp


@pytest.mark.parametrize("law", dp.COMPONENT_LAWS.values(), ids=lambda law: law.name)
def test_component_laws_are_standardised(law: dp.ComponentLaw) -> None:
    x = law.sample(np.random.default_rng(4), (200_000,))
    for observed, expected in ((x, 0), (x**2, 1)):
        m = estimate.mean(observed)
        assert abs(m.value - expected) <= 4 * m.standard_error + 1e-12


def test_a_law_draws_as_many_numbers_as_it_is_asked_for() -> None:
    law = dp.ComponentLaw("one", "$1$", lambda rng, shape: np.ones(3), 1.0)
    with pytest.raises(ValueError, match=r"law: expected draws of shape \(5, 2\), got \(3,\)"):
        dp.draws(law, 2, 5, np.random.default_rng(0))


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


def test_the_four_laws_have_their_moments_and_their_bounds() -> None:
    laws = dp.COMPONENT_LAWS
    assert {name: law.fourth_moment for name, law in laws.items()} == {
        "gaussian": 3.0, "uniform": 9 / 5, "rademacher": 1.0, "student_t5": 9.0,
    }  # fmt: skip
    rng = np.random.default_rng(0)
    x = laws["uniform"].sample(rng, (2000,))
    assert np.sqrt(3) * 0.99 < x.max() <= np.sqrt(3) and -np.sqrt(3) <= x.min() < -np.sqrt(3) * 0.99
    assert set(laws["rademacher"].sample(rng, (100,)).tolist()) == {-1.0, 1.0}
    t = dp.student_t(8)
    assert t.fourth_moment == 3 * 6 / 4 and t.name == "Student t, 8 d.o.f." and t.symbol == "$t_{8}$"
    again = np.sqrt(6 / 8) * np.random.default_rng(1).standard_t(8, (5,))
    np.testing.assert_allclose(t.sample(np.random.default_rng(1), (5,)), again, rtol=1e-15)
    assert dp.student_t(4).fourth_moment == np.inf and dp.student_t(4.5).fourth_moment == pytest.approx(15)
    assert dp.student_t(2.001).fourth_moment == np.inf


def test_draws_are_sums_of_products_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    law, rng = dp.COMPONENT_LAWS["gaussian"], np.random.default_rng(6)
    expected = (1.5**2 * rng.standard_normal((4, 3)) * rng.standard_normal((4, 3))).sum(axis=1)
    np.testing.assert_allclose(dp.draws(law, 3, 4, np.random.default_rng(6), sigma=1.5), expected, rtol=1e-14)
    unit = dp.draws(law, 3, 4, np.random.default_rng(6))
    np.testing.assert_allclose(unit, expected / 1.5**2, rtol=1e-14)
    monkeypatch.setattr(dp, "_BLOCK", 7)  # two rows of three at a time
    rng = np.random.default_rng(6)
    parts = [(rng.standard_normal((b, 3)) * rng.standard_normal((b, 3))).sum(axis=1) for b in (2, 2, 1)]
    np.testing.assert_allclose(dp.draws(law, 3, 5, np.random.default_rng(6)), np.concatenate(parts), rtol=1e-14)


def test_score_rows_are_queries_times_keys() -> None:
    rng = np.random.default_rng(6)
    queries = rng.standard_normal((2, 3))
    keys = [rng.standard_normal((4, 3)) for _ in range(2)]
    expected = [k @ q for k, q in zip(keys, queries, strict=True)]
    np.testing.assert_allclose(dp.score_rows(3, 4, 2, np.random.default_rng(6)), expected, rtol=1e-14)
    found = dp.score_rows(3, 4, 2, np.random.default_rng(6), sigma=2.0)
    np.testing.assert_allclose(found, 4 * np.asarray(expected), rtol=1e-14)


def test_the_rate_of_edgeworth_is_the_largest_value_of_its_term() -> None:
    x = np.linspace(0, 4, 400_001)
    term = 6 / 24 * np.abs(x**3 - 3 * x) * stats.norm.pdf(x)
    assert pytest.approx(term.max(), rel=1e-9) == dp.EDGEWORTH_RATE
    assert 512 * dp.kolmogorov_distance("gaussian", 512) == pytest.approx(dp.EDGEWORTH_RATE, rel=0.01)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 9])
def test_the_distance_of_a_walk_is_the_largest_over_all_its_points(d: int) -> None:
    heads = np.arange(d + 1)
    normal = stats.norm.cdf((2 * heads - d) / np.sqrt(d))
    upto, below = stats.binom.cdf(heads, d, 0.5), stats.binom.cdf(heads - 1, d, 0.5)
    expected = max(np.abs(normal - upto).max(), np.abs(normal - below).max())
    assert dp.kolmogorov_distance("rademacher", d) == pytest.approx(expected, rel=1e-13)


def test_wide_densities_have_edgeworths_terms() -> None:
    """The law of q.k / sqrt(d) has excess kurtosis 6 / d: its density is phi(x) (1 + (x^4 - 6 x^2 + 3) / (4 d))."""
    x, d = np.asarray([-2.0, -0.5, 0.0, 1.0, 3.0]), 10**7
    phi = stats.norm.pdf(x)
    term = d * (dp.gaussian_density(x, d) / phi - 1)
    np.testing.assert_allclose(term, (x**4 - 6 * x**2 + 3) / 4, atol=1e-7)
    term = d * (dp.gaussian_cdf(x, d) - stats.norm.cdf(x))
    np.testing.assert_allclose(term, -(x**3 - 3 * x) / 4 * phi, atol=1e-8)


def test_the_density_has_a_pole_in_one_dimension_only() -> None:
    for x in ([0.0], [1.0, 0.0], [-0.0]):
        with pytest.raises(ValueError, match="x: expected no 0 where d_k = 1, the density has a pole there"):
            dp.gaussian_density(x, 1)
    assert dp.gaussian_density([0.0], 2)[0] == pytest.approx(np.sqrt(2) / 2, rel=1e-6)
    assert dp.gaussian_density([0.5], 1)[0] == pytest.approx(special.k0(0.5) / np.pi, rel=1e-7)


@pytest.mark.parametrize("d", [2, 3, 4, 9])
def test_cosines_have_their_density(d: int) -> None:
    t = np.asarray([-0.75, 0.0, 0.5])
    expected = (1 - t**2) ** ((d - 3) / 2) * special.gamma(d / 2) / np.sqrt(np.pi) / special.gamma((d - 1) / 2)
    np.testing.assert_allclose(dp.cosine_density(t, d), expected, rtol=1e-13)
    for edge in (-1.0, 1.0, 1.5, -1.5):
        with pytest.raises(ValueError, match="t: expected cosines strictly between -1 and 1"):
            dp.cosine_density([0.0, edge], d)


def test_names_that_are_made_while_a_program_runs_count_as_well() -> None:
    assert dp.kolmogorov_distance("".join(("gauss", "ian")), 1) == dp.kolmogorov_distance("gaussian", 1)


def test_records_cannot_be_changed_by_accident() -> None:
    for record in (dp.student_t(5),):
        name = dataclasses.fields(record)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, None)


def test_the_grid_of_the_gaussian_distance_has_its_step() -> None:
    x = np.arange(801) / 200
    expected = np.abs(dp.gaussian_cdf(x, 2) - stats.norm.cdf(x)).max()
    assert dp.kolmogorov_distance("gaussian", 2) == pytest.approx(expected, rel=1e-9)
    exact = np.abs(stats.laplace.cdf(x * np.sqrt(2)) - stats.norm.cdf(x)).max()
    assert expected == pytest.approx(exact, rel=1e-6)


def test_the_expansion_begins_beyond_a_million(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dp, "_over_norm", lambda s, conditional, d_k: "quadrature")
    for function in (dp.gaussian_cdf, dp.gaussian_density):
        assert function([0.5], 10**6) == "quadrature" and function([0.5], 10**6 + 1) != "quadrature"
        with pytest.raises(ValueError, match="x: expected at least 1 dimensions"):
            function(0.5, 3)


def test_a_vector_longer_than_a_block_is_drawn_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dp, "_BLOCK", 7)
    rng = np.random.default_rng(6)
    parts = [(rng.standard_normal((1, 8)) * rng.standard_normal((1, 8))).sum(axis=1) for _ in range(3)]
    law = dp.COMPONENT_LAWS["gaussian"]
    np.testing.assert_allclose(dp.draws(law, 8, 3, np.random.default_rng(6)), np.concatenate(parts), rtol=1e-14)


def test_as_many_numbers_are_drawn_as_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_NUMBERS", 12)
    law = dp.COMPONENT_LAWS["gaussian"]
    assert dp.draws(law, 12, 1, np.random.default_rng(0)).shape == (1,)
    assert dp.score_rows(3, 4, 3, np.random.default_rng(0)).shape == (3, 4)
    for call, words in (
        (
            lambda: dp.draws(law, 13, 1, np.random.default_rng(0)),
            "d_k: expected a result of at most 12 numbers, got 13",
        ),
        (lambda: dp.draws(law, 1, 13, np.random.default_rng(0)), "size: expected a result of at most 12 numbers"),
        (lambda: dp.score_rows(4, 4, 1, np.random.default_rng(0)), "d_k, n: expected a result of at most 12 numbers"),
        (lambda: dp.score_rows(5, 2, 3, np.random.default_rng(0)), "d_k, n, rows: expected a result of at most 12"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_block_takes_thirty_two_mebibytes() -> None:
    """It decides in which order numbers are drawn, so the same seed needs the same size."""
    assert dp._BLOCK * np.dtype(float).itemsize == 32 * 2**20


def test_the_density_of_two_components_is_laplaces_down_to_0() -> None:
    x = np.array([0.0, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 5.0])
    assert dp.gaussian_density(x, 2) == pytest.approx(np.sqrt(0.5) * np.exp(-np.sqrt(2) * x), abs=1e-9)


@pytest.mark.parametrize("d_k", [2, 64, 2 * 10**6, 10**9])
def test_far_out_the_density_is_zero_and_the_tail_whole(d_k: int) -> None:
    x = np.asarray([1e70, -1e76, 1e78, -1e90, 1e308])
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(dp.gaussian_density(x, d_k), np.zeros(5))
