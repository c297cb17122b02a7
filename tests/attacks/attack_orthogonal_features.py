"""Attacks on what the chapter on orthogonal features says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, less, no_attack, rounding
from instances import Array
from scipy import special

#: s = |x + y|^2, a dimension and a number of rows, each rounded from numbers that cover orders of magnitude.
sizes = instances.numbers(s=(1e-3, 60.0), d=(2.0, 300.0), m=(2.0, 300.0)).map(
    "s d m", lambda s, d, m: (s, np.floor(d), np.floor(m))
)


def factors(d: Array, top: int, step: float = 2.0) -> Array:
    """b_0, ..., b_top as products, one row for each d."""
    j = np.arange(top)
    ratios = (d[:, None] + j) / (d[:, None] + step * j)
    return np.cumprod(np.concatenate([np.ones((len(d), 1)), ratios], axis=1), axis=1)


def poisson(s: Array, top: int) -> Array:
    k = np.arange(top + 1)
    return np.exp(k * np.log(s[:, None]) - s[:, None] - special.gammaln(k + 1))


def gain(s: Array, d: Array) -> Array:
    """E(1 - b_M) from the product form."""
    return np.sum(poisson(s, 200) * (1 - factors(d, 200)), axis=1)


few = instances.numbers(s=(1e-3, 60.0), d=(2.0, 300.0)).map("s d", lambda s, d: (s, np.floor(d)))


def covariance(s: Array, d: Array, step: float = 2.0) -> object:
    top = 200
    mean = np.sum(poisson(s, top) * factors(d, top, step), axis=1)
    exact = np.exp(-s) * special.hyp1f1(d, d / 2, s / 2)
    return equal(mean, exact, 1e-10 * np.ones_like(s))


@attack(
    "theorem-orthogonal-covariance",
    "report/orthogonal-correlation",
    on=few,
    wrong={"three j in the denominator": lambda s, d: covariance(s, d, step=3.0)},
)
def the_poisson_mean_is_the_confluent_function(s, d):
    return covariance(s, d)


@attack(
    "theorem-orthogonal-covariance",
    "report/orthogonal-correlation",
    on=few,
    wrong={"above zero": lambda s, d: less(gain(s, d), np.zeros_like(s))},
)
def the_covariance_is_negative_and_at_least_minus_one(s, d):
    found = gain(s, d)
    return (found > 0) & (found <= 1 + 1e-12)


def ceiling(s: Array, d: Array, m: Array, top: float = 0.32381) -> object:
    full, rest = np.divmod(m, d)
    pairs = full * d * (d - 1) + rest * (rest - 1)
    return at_most(pairs / m * gain(s, d) / np.expm1(s), np.full_like(s, top), rounding(1000, 1.0))


@attack(
    "theorem-orthogonal-ceiling",
    "orthogonal_features/bounds",
    on=sizes,
    wrong={"a quarter": lambda s, d, m: ceiling(s, d, m, top=0.25)},
)
def no_number_of_rows_saves_more_than_the_ceiling(s, d, m):
    return ceiling(s, d, m)


def below(s: Array, d: Array, factor: float = 2.0) -> object:
    bound = factor / (d + 2) * np.expm1(-s / 2) ** 2
    return at_most(bound, gain(s, d), rounding(1000, gain(s, d)))


@attack(
    "theorem-orthogonal-ceiling",
    "orthogonal_features/bounds",
    on=few,
    wrong={"three in place of two": lambda s, d: below(s, d, factor=3.0)},
)
def the_gain_is_at_least_the_known_bound(s, d):
    return below(s, d)


def above(s: Array, d: Array, factor: float = 2.0) -> object:
    bound = s**2 / (factor * (d + 2))
    return at_most(gain(s, d), bound, rounding(1000, bound))


@attack(
    "theorem-orthogonal-ceiling",
    "orthogonal_features/bounds",
    on=few,
    wrong={"a third of it": lambda s, d: above(s, d, factor=3.0)},
)
def the_gain_is_at_most_of_second_order(s, d):
    return above(s, d)


def on_the_sphere(s: Array, d: Array, radius: float = 0.0) -> object:
    """Both fixed norms, 1 and sqrt(d), give too small a mean."""
    r = np.where(radius > 0, radius, np.sqrt(d))
    # 0F1 by its logarithm: the Bessel function overflows for no instance here.
    n, z = d / 2, r * np.sqrt(s)
    log_mean = np.log(special.hyp0f1(n, z**2 / 4))
    return less(log_mean, s / 2 * np.ones_like(d))


short = instances.numbers(s=(1e-1, 60.0), d=(2.0, 60.0)).map("s d", lambda s, d: (s, np.floor(d)))


@attack(
    "report/orthogonal-unbiased",
    "report/orthogonal-features",
    on=short,
    wrong={"norm 8 in place of the root": lambda s, d: on_the_sphere(s, d, radius=8.0)},
)
def rows_of_fixed_norm_give_too_small_a_mean(s, d):
    return on_the_sphere(s, d)


@attack(
    "report/orthogonal-features",
    on=short,
    wrong={"norm 8": lambda s, d: on_the_sphere(s, d, radius=8.0)},
)
def rows_of_norm_one_give_too_small_a_mean(s, d):
    return on_the_sphere(s, d, radius=1.0)


def product_of_cosh(z: Array, wrong: bool = False) -> object:
    """The mean over all sign vectors, for the rows of H with these signs."""
    d = z.shape[1]
    signs = np.asarray(np.meshgrid(*[[-1.0, 1.0]] * d)).reshape(d, -1)
    mean = np.exp(z @ signs).mean(axis=1)
    expected = np.exp((z**2).sum(axis=1) / 2) if wrong else np.cosh(z).prod(axis=1)
    return equal(mean, expected, rounding(200, expected))


four = instances.numbers(a=(1e-2, 3.0), b=(1e-2, 3.0), c=(1e-2, 3.0), e=(1e-2, 3.0)).map(
    "z", lambda a, b, c, e: (np.stack([a, -b, c, e], axis=1),)
)


@attack("orthogonal_features/hadamard", on=four, wrong={"normal rows": lambda z: product_of_cosh(z, wrong=True)})
def the_mean_over_signs_is_a_product(z):
    return product_of_cosh(z)


def below_normal(z: Array, factor: float = 0.5) -> object:
    return less(np.cosh(z).prod(axis=1), np.exp(factor * (z**2).sum(axis=1)))


@attack("orthogonal_features/hadamard", on=four, wrong={"a third of it": lambda z: below_normal(z, factor=1 / 3)})
def the_product_is_below_the_normal_mean(z):
    return below_normal(z)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
powers = instances.numbers(d=(2.0, 60.0), p=(0.1, 6.0)).map("d p", lambda d, p: (np.floor(d), p))


def moments_of_the_angle(d: Array, p: Array, power: float = 1.0) -> object:
    """E S^p E sin(theta)^p = 2^p (E r^p)^2, with the chi norms r of the two rows and S the sum of their squares."""
    log_sine = np.log(np.cos(np.pi / 2 * _NODES))
    density = _WEIGHTS * np.exp((d[:, None] - power) * log_sine)
    sine = (density * np.exp(p[:, None] * log_sine)).sum(axis=1) / density.sum(axis=1)
    log_norms = special.gammaln((d + p) / 2) - special.gammaln(d / 2)
    log_sum = special.gammaln(d + p) - special.gammaln(d)
    return equal(np.log(sine), p * np.log(2) + 2 * log_norms - log_sum, 1e-4)


@attack(
    "orthogonal_features/simplex",
    on=powers,
    wrong={"the exponent d": lambda d, p: moments_of_the_angle(d, p, power=0.0)},
)
def the_angle_of_two_norms_has_its_moments(d, p):
    return moments_of_the_angle(d, p)


no_attack(
    "report/gram-matrix",
    because="instance: The rows of Gram-Schmidt are orthonormal by construction, and the shapes of products decide.",
)
