"""Attacks on what the chapter on the exponential says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, no_attack, rounding
from instances import Array
from scipy import special


def row_sparsity(a: Array) -> Array:
    a = np.abs(a) / np.abs(a).max(axis=1, keepdims=True)
    return a.mean(axis=1) / np.sqrt((a**2).mean(axis=1))


def floor(a: Array, power: float = 0.5):
    n = a.shape[1]
    return at_most(np.full(len(a), n**-power), row_sparsity(a), rounding(10 * n, 1.0))


@attack(
    "exponential/floor",
    on=instances.vectors.such_that(lambda x: np.abs(x).max(axis=1) > 0),
    wrong={"a floor of n to the -1/4": lambda a: floor(a, power=0.25)},
)
def no_row_is_below_its_floor(x):
    return floor(x)


def crossing(n: Array, gamma: Array, factor: float = 1.0):
    return exactly_if(np.exp(-(gamma**2) / 2) < n**-0.5, gamma > np.sqrt(factor * np.log(n)))


lengths = instances.numbers(x=(2.0, 1e6), gamma=(1e-2, 10.0)).map("n gamma", lambda x, gamma: (np.floor(x), gamma))


@attack(
    "exponential/floor",
    on=lengths.such_that(lambda n, gamma: np.abs(gamma**2 / np.log(n) - 1) > 1e-9),
    wrong={"already at half of it": lambda n, gamma: crossing(n, gamma, factor=0.25)},
)
def the_closed_form_crosses_the_floor_at_the_root_of_log_n(n, gamma):
    return crossing(n, gamma)


def remainder(x: Array, y: Array, cross: float = 0.5):
    expansion = 1 + x - y / 2 - cross * x * y + 3 * y**2 / 8
    return at_most(np.abs((1 + x) / np.sqrt(1 + y) - expansion), (np.abs(x) + np.abs(y)) ** 3, rounding(20, 2.0))


small_errors = instances.numbers(a=(1e-3, 0.3), b=(1e-3, 0.3)).map(
    "x y", lambda a, b: (a * np.sign(np.sin(1e6 * b)), b * np.sign(np.sin(1e6 * a)))
)


@attack("exponential/bias", on=small_errors, wrong={"the product forgotten": lambda x, y: remainder(x, y, cross=0.0)})
def the_expansion_behind_the_bias_is_of_third_order(x, y):
    return remainder(x, y)


def largest(n: Array) -> Array:
    return np.sqrt(2 * np.log(n))


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(72)


def below(c: Array, top: Array, half: float = 0.5):
    """The mean of exp(c z) over standard normal z up to top, against its closed form."""
    low = np.minimum(top, c) - 12
    high = np.minimum(top, c + 12)
    z = low[:, None] + (high - low)[:, None] * (_NODES + 1) / 2
    logs = c[:, None] * z - z**2 / 2 - c[:, None] ** 2 * half
    mean = np.exp(logs) @ _WEIGHTS * (high - low) / 2 / np.sqrt(2 * np.pi)
    return equal(mean, special.ndtr(top - c), 1e-8 * special.ndtr(top - c))


means = instances.numbers(x=(2.0, 1e6), c=(1e-2, 3.0)).map("c top", lambda x, c: (c, largest(x)))


@attack(
    "theorem-long-row",
    "exponential/threshold",
    on=means,
    wrong={"the square not halved": lambda c, top: below(c, top, half=1.0)},
)
def the_mean_without_large_scores_is_as_displayed(c, top):
    return below(c, top)


def variance_bound(n: Array, c: Array, factor: float = 2.0):
    gamma = c * np.sqrt(np.log(n) / 2)
    bound = special.ndtr(largest(n) - 4 * gamma) * np.exp(4 * gamma**2) / n
    return at_most(bound, n ** (-factor * (1 - c) ** 2), rounding(200, bound))


shares = instances.numbers(x=(2.0, 1e6), c=(0.5, 1.0)).map("n c", lambda x, c: (np.floor(x), c))


@attack(
    "theorem-long-row",
    "exponential/threshold",
    on=shares,
    wrong={"four times the square": lambda n, c: variance_bound(n, c, factor=4.0)},
)
def the_variance_below_the_threshold_is_bounded(n, c):
    return variance_bound(n, c)


def variance_of_the_mean(n: Array, c: Array, factor: float = 0.5):
    gamma = c * np.sqrt(np.log(n) / 2)
    bound = special.ndtr(largest(n) - 2 * gamma) * np.exp(gamma**2) / n
    return at_most(bound, n ** (-factor * (2 - c) ** 2), rounding(200, bound))


@attack(
    "theorem-long-row",
    "exponential/threshold",
    on=shares.map("n c", lambda n, c: (n, 2 * c)),
    wrong={"without the half": lambda n, c: variance_of_the_mean(n, c, factor=1.0)},
)
def the_variance_of_the_numerator_is_bounded(n, c):
    return variance_of_the_mean(n, c)


no_attack(
    "exponential/departure", because="measured: It reports drawn rows of three lengths at one standard deviation each."
)
