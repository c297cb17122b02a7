"""Exact variances with coupled rows: against 60 digits of mpmath, drawn rows, known bounds and limits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special

from attnmath.linear_cost.random_features import orthogonal, projections

mp.mp.dps = 60
SQUARES = [0.0, 1e-12, 1e-3, 0.5, 2.0, 9.0, 30.0, 100.0, 200.0, 1000.0, 1e6]


@pytest.mark.parametrize("d", [2, 3, 5, 8, 33, 64, 512])
def test_the_covariance_of_positive_terms_is_a_confluent_function(d: int) -> None:
    for square in SQUARES:
        t = mp.mpf(square) / 2
        # By Kummer's transformation, which mpmath finds easier.
        exact = float(mp.exp(-t) * mp.hyp1f1(-mp.mpf(d) / 2, mp.mpf(d) / 2, -t) - 1) if square < 1e4 else -1.0
        assert float(orthogonal.relative_covariance(square, d)) == pytest.approx(exact, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("d", [2, 3, 4, 5, 8, 33, 64, 512])
def test_the_covariance_of_cosines_is_a_confluent_function(d: int) -> None:
    for square in SQUARES:
        t = mp.mpf(square) / 2
        # For even d Kummer's transformation gives a polynomial.
        n = d // 2
        terms = [mp.binomial(n, k) / mp.rf(n, k) * (-t) ** k for k in range(n + 1)]
        mean = mp.hyp1f1(d, mp.mpf(d) / 2, -t) if d % 2 else mp.exp(-t) * mp.fsum(terms)
        exact = float(mean - mp.exp(-2 * t))
        assert float(orthogonal.cosine_covariance(square, d)) == pytest.approx(exact, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("d", [1, 2, 3, 64, 999, 20_000])
@pytest.mark.parametrize("radius", [1.0, 8.0])
def test_the_mean_on_a_sphere_is_a_bessel_function(d: int, radius: float) -> None:
    norms = np.asarray([0.0, 1e-9, 0.5, 3.0, 40.0, 1e3])
    found = orthogonal.log_mean_on_sphere(norms, d, radius=radius)
    for norm, value in zip(norms, found, strict=True):
        exact = mp.log(mp.hyp0f1(mp.mpf(d) / 2, mp.mpf(radius * norm) ** 2 / 4)) if norm else 0
        assert float(value) == pytest.approx(float(exact), rel=1e-10, abs=1e-15)


def test_the_mean_on_a_circle_and_on_a_sphere_by_integrals() -> None:
    z = 1.7
    circle = integrate.quad(lambda a: np.exp(z * np.cos(a)) / np.pi, 0, np.pi)[0]
    assert np.exp(orthogonal.log_mean_on_sphere(z, 2, radius=1.0)) == pytest.approx(circle)
    assert np.exp(orthogonal.log_mean_on_sphere(z, 3, radius=1.0)) == pytest.approx(np.sinh(z) / z)


@pytest.mark.parametrize("d", [2, 3, 6, 64])
def test_the_simplex_against_an_integral_over_the_norms(d: int) -> None:
    for square in (1e-6, 0.5, 3.0, 12.0):

        def mean(theta: float, square: float = square) -> float:
            return np.sin(theta) ** (d - 1) * special.hyp1f1(d, d / 2, square / 2 * (1 - np.sin(theta) / (d - 1)))

        total = integrate.quad(mean, 0, np.pi, epsabs=0, epsrel=1e-12, limit=200, points=[np.pi / 2])[0]
        law = np.sqrt(np.pi) * special.gamma(d / 2) / special.gamma((d + 1) / 2)
        exact = np.exp(-square) * total / law - 1
        found = orthogonal.relative_covariance(square, d, coupling="simplex")
        assert float(found) == pytest.approx(exact, rel=1e-8, abs=1e-12)


def drawn(kind: str, W: np.ndarray, x: np.ndarray, y: np.ndarray, A: float) -> np.ndarray:
    """One term for each row."""
    d = x.size
    norms = (x @ x + y @ y) / 2
    if kind == "hyperbolic":
        return np.exp(-norms) * np.cosh(W @ (x + y))
    return (1 - 4 * A) ** (d / 2) * np.exp(2 * A * np.sum(W**2, axis=-1) + np.sqrt(1 - 4 * A) * W @ (x + y) - norms)


@pytest.mark.parametrize("m", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("kind", "coupling", "A"),
    [("positive", "orthogonal", 0.0), ("positive", "simplex", 0.0), ("positive", "independent", 0.0),
     ("gerf", "orthogonal", -0.1), ("gerf", "simplex", 0.03), ("hyperbolic", "orthogonal", 0.0),
     ("hyperbolic", "independent", 0.0)],
)  # fmt: skip
def test_variances_of_drawn_estimates(kind: str, coupling: str, A: float, m: int) -> None:
    d, draws = 3, 40_000
    rng = np.random.default_rng(m)
    x, y = np.asarray([0.5, 0.2, -0.1]), np.asarray([0.3, -0.4, 0.4])
    # A call for all draws: blocks are independent, and the last m % d rows of each draw are a part of a block.
    per_draw = -(-m // d) * d
    draw = {"orthogonal": projections.orthogonal, "simplex": projections.simplex, "independent": projections.gaussian}
    W = draw[coupling](per_draw * draws, d, rng=rng).reshape(draws, per_draw, d)[:, :m]
    estimates = drawn(kind, W, x, y, A).mean(axis=1)
    mean_error = estimates.std() / np.sqrt(draws)
    assert abs(estimates.mean() - np.exp(x @ y)) < 4.5 * mean_error
    squares = (estimates - np.exp(x @ y)) ** 2
    arguments = (A, m) if kind == "gerf" else (m,)
    exact = getattr(orthogonal, f"{kind}_variance")(x, y, *arguments, coupling=coupling)
    assert abs(squares.mean() - exact) < 4.5 * squares.std() / np.sqrt(draws)


def test_one_row_has_the_variance_of_a_normal_one() -> None:
    x, y = np.asarray([0.5, 1.0, -0.2]), np.asarray([0.1, -0.4, 0.7])
    z, K = np.sum((x + y) ** 2), np.exp(x @ y)
    assert orthogonal.positive_variance(x, y, 1) == pytest.approx(K**2 * np.expm1(z))
    assert orthogonal.hyperbolic_variance(x, y, 1) == pytest.approx(K**2 * (np.cosh(z) - 1))
    for A in (-0.3, 0.1):
        value = ((1 - 4 * A) ** 2 / (1 - 8 * A)) ** 1.5 * np.exp(z / (1 - 8 * A)) - 1
        assert orthogonal.gerf_variance(x, y, A, 1, relative=True) == pytest.approx(value)


def test_rows_of_one_dimension_are_independent() -> None:
    x, y, m = [0.7], [0.4], 3
    for A in (0.0, -0.1):
        alone = orthogonal.gerf_variance(x, y, A, m, coupling="independent")
        assert orthogonal.gerf_variance(x, y, A, m) == alone
        assert orthogonal.gerf_variance(x, y, A, m, coupling="simplex") == alone
    for variance in (orthogonal.positive_variance, orthogonal.hyperbolic_variance):
        assert variance(x, y, m) == variance(x, y, m, coupling="independent")
    # Drawn rows agree: products of two neighbours have the mean of independent terms, 1 in units of K^2.
    for draw in (projections.orthogonal, projections.simplex):
        terms = np.exp(draw(80_000, 1, rng=np.random.default_rng(0)) * 0.5 - 0.125).reshape(-1, 2)
        products = terms.prod(axis=1)
        assert abs(products.mean() - 1) < 4.5 * products.std() / 200


def test_blocks_of_d_share_the_saving() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 5, 4)) / 3
    one, whole = (orthogonal.positive_variance(x, y, m) for m in (4, 12))
    np.testing.assert_allclose(whole, one / 3)
    assert orthogonal.coupled_pairs(10, 4) == 4 * 3 * 2 + 2
    assert all(
        orthogonal.coupled_pairs(m, d) == sum(i // d == j // d and i != j for i in range(m) for j in range(m))
        for m in range(1, 9)
        for d in range(1, 6)
    )


def test_the_saving_lies_between_its_bounds() -> None:
    """Above that of Choromanski et al. (2021), and below 2 t^2 / (d + 2)."""
    s = np.geomspace(1e-4, 300, 200)
    for d in (2, 3, 7, 64, 500):
        saving = -orthogonal.relative_covariance(s, d)
        assert np.all(saving >= 2 / (d + 2) * np.expm1(-s / 2) ** 2 * (1 - 1e-12))
        assert np.all(saving <= s**2 / (2 * (d + 2)) * (1 + 1e-12))
        assert np.all(-orthogonal.relative_covariance(s, d, coupling="simplex") >= saving * (1 - 1e-12))


def test_relative_variances_stay_exact_where_the_kernel_overflows() -> None:
    x, y = np.asarray([400.0, 1.0]), np.asarray([-400.0, 1.0])
    far = orthogonal.positive_variance(x, y, 2, relative=True)
    assert far == pytest.approx(orthogonal.positive_variance([0.0, 1.0], [0.0, 1.0], 2, relative=True))
    assert orthogonal.positive_variance(x, y, 2) == 0
    with pytest.raises(ValueError, match="x, y: expected a result within the range"):
        orthogonal.positive_variance(x, -y, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: orthogonal.gerf_variance([1.0], [1.0], 0.125, 2), "A: expected a finite number below 1/8"),
        (lambda: orthogonal.positive_variance([1.0], [1.0, 2.0], 2), "x, y: expected the same last axis d"),
        (lambda: orthogonal.positive_variance([1.0], [1.0], 0), "m: expected a positive integer"),
        (lambda: orthogonal.hyperbolic_variance([1.0], [1.0], 2, coupling="simplex"), "coupling: expected one of"),
        (lambda: orthogonal.relative_covariance([1.0], 1, coupling="simplex"), "d: expected at least 2"),
        (
            lambda: orthogonal.relative_covariance([1.0], 1),
            "d: expected at least 2, so that a block has two rows, got 1",
        ),
        (lambda: orthogonal.cosine_covariance([1.0], 1), "d: expected at least 2"),
        (lambda: orthogonal.log_mean_on_sphere(1e6, 3, radius=1.0), "norm, radius: expected products of at most"),
        (lambda: orthogonal.relative_covariance([-1.0], 2), "square: expected squared lengths"),
    ],
)
def test_errors_say_what_is_expected(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("d", [2, 5, 64, 200])
def test_far_out_the_covariance_of_cosines_is_nothing_at_once(d: int) -> None:
    squares = np.asarray([1e9, 1e12, 1e16, 1e20, 1e308])
    np.testing.assert_allclose(orthogonal.cosine_covariance(squares, d), 0, atol=1e-13)


@pytest.mark.parametrize("d", [2, 900, 10**4, 10**8, 2**53])
def test_the_mean_on_a_wide_sphere_keeps_its_digits(d: int) -> None:
    for norm, radius in ((1e-3, 1.0), (1.0, 1.0), (8.0, 8.0)):
        exact = float(mp.log(mp.hyp0f1(mp.mpf(d) / 2, (mp.mpf(norm) * mp.mpf(radius)) ** 2 / 4)))
        # The largest of the logarithms that are summed, log(d / 2), is rounded to half an ulp of 64 at most.
        assert float(orthogonal.log_mean_on_sphere(norm, d, radius=radius)) == pytest.approx(exact, rel=2e-14)
