"""Attacks on what the chapter on the scaling factor says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import attack, equal, no_attack, rounding
from instances import Array, Kind


def score_moments(q: Array, p: Array, k: Array, r: Array) -> tuple[Array, Array]:
    """Mean and variance of q.k for independent finite laws (atoms, probabilities), exactly up to rounding."""
    scores, weights = np.einsum("bad,bcd->bac", q, k), p[:, :, None] * r[:, None, :]
    mean = (weights * scores).sum(axis=(1, 2))
    return mean, (weights * (scores - mean[:, None, None]) ** 2).sum(axis=(1, 2))


def slack(q: Array, k: Array, condition: Array | float = 1.0) -> Array:
    """How far rounding may move the variance of a score: it follows the largest square of a score."""
    largest = np.abs(q).max(axis=1)[:, None, :] @ np.abs(k).max(axis=1)[:, :, None]
    return rounding(40 * q.shape[1] * k.shape[1] * q.shape[2], largest[:, 0, 0] ** 2, condition)


def centred(x: Array, p: Array) -> Array:
    return x - instances.mean(p, x)[:, None]


def deviations(x: Array, p: Array) -> Array:
    """Standard deviations of the components, shape (batch, 1, d)."""
    return np.sqrt((p[:, :, None] * centred(x, p) ** 2).sum(axis=1, keepdims=True))


def spread(x: Array, p: Array, least: float = 1e-3) -> Array:
    """Whether every component varies, and no law is so lopsided that rounding decides."""
    size = np.abs(x).max(axis=(1, 2))
    return (deviations(x, p).min(axis=(1, 2)) > least * size) & (size > 1e-3) & (size < 1e3)


def standardised(x: Array, p: Array) -> Array:
    return centred(x, p) / deviations(x, p)


def whitened(x: Array, p: Array) -> Array:
    """The law mapped to uncorrelated components of variance 1."""
    values, vectors = np.linalg.eigh(instances.covariance(p, x, x))
    return centred(x, p) @ (vectors / np.sqrt(values)[:, None, :])


def well_conditioned(q: Array, p: Array, k: Array, r: Array) -> Array:
    values = np.linalg.eigvalsh(instances.covariance(p, q, q))
    return spread(q, p) & spread(k, r) & (values[:, 0] > 1e-4 * values[:, -1])


pairs: Kind = instances.random_pairs.such_that(well_conditioned)


def variance_is(q: Array, p: Array, k: Array, r: Array, power: float = 4.0, sigma: float = 1.5):
    q, k = sigma * q, sigma * k
    return equal(score_moments(q, p, k, r)[1], q.shape[2] * sigma**power, slack(q, k, 1e4))


@attack(
    "theorem-variance-of-score",
    on=pairs,
    wrong={
        "sigma squared": lambda q, p, k, r: variance_is(whitened(q, p), p, standardised(k, r), r, power=2.0),
        "both vectors correlated": lambda q, p, k, r: variance_is(standardised(q, p), p, standardised(k, r), r),
        "a mean of both": lambda q, p, k, r: variance_is(whitened(q, p) + 1, p, standardised(k, r) + 1, r),
    },
)
def the_variance_is_d_sigma_to_the_fourth(q, p, k, r):
    return variance_is(whitened(q, p), p, standardised(k, r), r)


def correlated(d: Array, r_q: Array, r_k: Array, last: float = 1.0):
    """Var(q.k) = trace of the product of the covariances, for equicorrelated components."""
    n = int(d[0])
    C_q = r_q[:, None, None] + (1 - r_q)[:, None, None] * np.eye(n)
    C_k = r_k[:, None, None] + (1 - r_k)[:, None, None] * np.eye(n)
    trace = np.einsum("bij,bji->b", C_q, C_k)
    return equal(trace, n * (1 + (n - last) * r_q * r_k), rounding(8 * n * n, n * n))


def equicorrelations(count_of: int) -> Kind:
    draw = instances.numbers(a=(1e-6, 1.0), b=(1e-6, 1.0))
    low = -1.0 / max(count_of - 1, 1)
    return draw.map("d r_q r_k", lambda a, b: (np.full(len(a), count_of), low + (1 - low) * a, low + (1 - low) * b))


every_width = equicorrelations(1) | equicorrelations(2) | equicorrelations(3) | equicorrelations(17)


@attack(
    "scaling/hypotheses",
    on=every_width,
    wrong={"d pairs too many": lambda d, r_q, r_k: correlated(d, r_q, r_k, last=0.0)},
)
def equal_correlations_add_pairs(d, r_q, r_k):
    return correlated(d, r_q, r_k)


def product_of_coordinates(q, p, k, r, cross=True):
    """Independent components with means, one dimension at a time: the variances of the products add up."""
    s_q, s_k = deviations(q, p)[:, 0], deviations(k, r)[:, 0]
    m_q, m_k = instances.mean(p, q), instances.mean(r, k)
    moments = (score_moments(q[:, :, [i]], p, k[:, :, [i]], r)[1] for i in range(q.shape[2]))
    predicted = s_q**2 * s_k**2 + cross * (m_q**2 * s_k**2 + m_k**2 * s_q**2)
    return equal(np.stack(list(moments), axis=1), predicted, slack(q, k)[:, None])


@attack(
    "scaling/hypotheses",
    on=pairs,
    wrong={"without the means": lambda q, p, k, r: product_of_coordinates(q, p, k, r, cross=False)},
)
def means_enter_with_the_other_variance(q, p, k, r):
    return product_of_coordinates(q, p, k, r)


numbers_with_spread = instances.random_numbers.such_that(lambda x, p: spread(x[:, :, None], p))


def signed_copy(x: Array, p: Array, kurtosis: bool = True):
    """q_m = x centred, k_m = x with a random sign: their covariance is 0, the variance of the product E[x^4]."""
    c = x - instances.mean(p, x)[:, None]
    atoms, weights = np.concatenate([c * c, -c * c], axis=1), np.concatenate([p, p], axis=1) / 2
    second, fourth = (p * c**2).sum(axis=1), (p * c**4).sum(axis=1)
    variance = (weights * atoms**2).sum(axis=1) - (weights * atoms).sum(axis=1) ** 2
    scale = np.abs(c).max(axis=1) ** 4
    return equal(variance, fourth if kurtosis else second**2, rounding(80 * x.shape[1], scale))


@attack(
    "scaling/hypotheses",
    on=numbers_with_spread,
    wrong={"as if independent": lambda x, p: signed_copy(x, p, kurtosis=False)},
)
def a_random_sign_leaves_the_fourth_moment(x, p):
    return signed_copy(x, p)


def aligned(x: Array, p: Array, rho: Array, width: Array, root: float = 0.5):
    """The mean of the scaled score of k = rho q + sqrt(1 - rho^2) e, with e of the law of x reversed."""
    c = x - instances.mean(p, x)[:, None]
    e, r = c[:, ::-1], p[:, ::-1]
    k = rho[:, None, None] * c[:, :, None] + np.sqrt(1 - rho**2)[:, None, None] * e[:, None, :]
    mean = np.einsum("ba,bc,ba,bac->b", p, r, c, k)
    second = (p * c**2).sum(axis=1)
    size = np.abs(c).max(axis=1) ** 2 * width**0.5
    return equal(width * mean / width**0.5, width**root * rho * second, rounding(80 * x.shape[1] ** 2, size))


aligned_pairs = numbers_with_spread.also(
    rho=lambda rng, x, p: rng.uniform(0, 1, size=len(x)),
    width=lambda rng, x, p, rho: rng.integers(1, 4097, size=len(x)).astype(float),
)


@attack(
    "scaling/hypotheses",
    on=aligned_pairs.such_that(lambda x, p, rho, width: width > 1),
    wrong={"no growth with the width": lambda x, p, rho, width: aligned(x, p, rho, width, root=0.0)},
)
def an_aligned_pair_grows_with_the_root(x, p, rho, width):
    return aligned(x, p, rho, width)


def shape_of_two(x: Array, p: Array, add: bool = False):
    """Excess kurtosis and skewness of X_1 + X_2 with X = q k, from the law of four atoms' products."""
    c = standardised(x[:, :, None], p)[:, :, 0]
    X, w = (
        (c[:, :, None] * c[:, None, ::-1]).reshape(len(c), -1),
        (p[:, :, None] * p[:, None, ::-1]).reshape(len(c), -1),
    )
    total, both = X[:, :, None] + X[:, None, :], w[:, :, None] * w[:, None, :]
    third, fourth = ((both * total**order).sum(axis=(1, 2)) for order in (3, 4))
    kappa, gamma = (p * c**4).sum(axis=1), (p * c**3).sum(axis=1)
    excess = (2 * kappa - 6 if add else kappa**2 - 3) / 2
    allowed = rounding(200 * X.shape[1] ** 2, np.abs(X).max(axis=1) ** 4)
    return equal(fourth / 4 - 3, excess, allowed) & equal(third / 2**1.5, gamma**2 / 2**0.5, allowed)


@attack(
    "scaling/shape",
    on=numbers_with_spread,
    wrong={"excesses added": lambda x, p: shape_of_two(x, p, add=True)},
)
def products_multiply_kurtoses_and_skewnesses(x, p):
    return shape_of_two(x, p)


def in_the_plane(q: Array, k: Array, with_lengths: bool = True):
    """The dot product against the angle that two unit vectors make, measured by their distance."""
    a, b = np.linalg.norm(q, axis=1), np.linalg.norm(k, axis=1)
    u, v = q / a[:, None], k / b[:, None]
    angle = 2 * np.arctan2(np.linalg.norm(u - v, axis=1), np.linalg.norm(u + v, axis=1))
    factor = a * b if with_lengths else np.ones(len(a))
    return equal((q * k).sum(axis=1), factor * np.cos(angle), rounding(20 * q.shape[1], a * b + factor))


no_zero = instances.vector_pairs.such_that(
    lambda x, y: (np.linalg.norm(x, axis=1) > 1e-9) & (np.linalg.norm(y, axis=1) > 1e-9)
)


@attack(
    "5.1.2/cosine",
    on=no_zero,
    wrong={"the cosine alone": lambda x, y: in_the_plane(x, y, with_lengths=False)},
)
def the_dot_product_is_lengths_times_cosine(x, y):
    return in_the_plane(x, y)


no_attack("scaling/growth", because="measured: It compares drawn variances of four named laws with their prediction.")
no_attack("scaling/normal-limit", because="instance: It compares computed distances at three widths with two rates.")
