"""Attacks on what the chapter on squared ReLU says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, less, no_attack, rounding
from instances import Array
from scipy import special

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(72)


def moment(k: int, t: Array) -> Array:
    """E max(t + z, 0)^k by Gauss-Legendre quadrature over the part of u > 0 that carries it, |t| <= 8."""
    low, high = np.maximum(t - 11, 0.0), np.maximum(t, 0.0) + 11
    u = low[:, None] + (high - low)[:, None] * (_NODES + 1) / 2
    values = u**k * np.exp(-((u - t[:, None]) ** 2) / 2) / np.sqrt(2 * np.pi)
    return (values @ _WEIGHTS) * (high - low) / 2


def sparsity(t: Array) -> Array:
    return moment(2, t) / np.sqrt(moment(4, t))


#: The quadrature is exact to about 1e-10 of itself for these ratios; 1e-8 leaves room.
_QUADRATURE = 1e-8
ratios = instances.numbers(a=(1e-6, 8.0), b=(1e-6, 8.0)).also(
    t=lambda rng, a, b: a * rng.choice([-1.0, 1.0], size=len(a)),
    s=lambda rng, a, b, t: b * rng.choice([-1.0, 1.0], size=len(b)),
)
ordered = ratios.map("t s", lambda a, b, t, s: (np.minimum(t, s), np.maximum(t, s))).such_that(
    lambda t, s: s - t > 1e-4
)
one_ratio = ratios.map("t", lambda a, b, t, s: t)


def increases(t: Array, s: Array, upwards: bool = True):
    first, second = np.log(sparsity(t)), np.log(sparsity(s))
    return less(first, second) if upwards else less(second, first)


@attack("theorem-relu-squared", on=ordered, wrong={"it falls": lambda t, s: increases(t, s, upwards=False)})
def the_sparsity_of_relu_squared_increases(t, s):
    return increases(t, s)


def passes_through(t: Array, value: float = 1 / np.sqrt(6)):
    S = sparsity(t)
    return exactly_if(t > 0, value * (1 + _QUADRATURE) < S) & less(0.0 * S, S) & less(S, 1.0 + 0 * S)


@attack(
    "theorem-relu-squared",
    on=one_ratio.such_that(lambda t: np.abs(t) > 1e-3),
    wrong={"through one half": lambda t: passes_through(t, value=0.5)},
)
def it_passes_through_the_value_at_zero(t):
    return passes_through(t)


def at_most_the_root_of_the_share(t: Array, power: float = 0.5):
    return at_most(sparsity(t), special.ndtr(t) ** power, _QUADRATURE * special.ndtr(t) ** power)


@attack(
    "article/relu2-zeros",
    on=one_ratio,
    wrong={"the share without its root": lambda t: at_most_the_root_of_the_share(t, power=1.0)},
)
def zeros_make_the_row_sparse(t):
    return at_most_the_root_of_the_share(t)


def recursion(t: Array, factor: int = 0):
    parts = []
    for k in range(1, 7):
        size = np.abs(t) * moment(k, t) + k * moment(k - 1, t)
        right = t * moment(k, t) + (k + factor) * moment(k - 1, t)
        parts.append(equal(moment(k + 1, t), right, _QUADRATURE * size))
    return parts[0] & parts[1] & parts[2] & parts[3] & parts[4] & parts[5]


@attack("squared_relu/moments", on=one_ratio, wrong={"k + 1 in place of k": lambda t: recursion(t, factor=1)})
def moments_follow_from_one_another(t):
    return recursion(t)


def closed_moments(t: Array, three: float = 3.0):
    Phi, phi = special.ndtr(t), np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    second = (t**2 + 1) * Phi + t * phi
    fourth = (t**4 + 6 * t**2 + three) * Phi + (t**3 + 5 * t) * phi
    cancels = rounding(60, (t**4 + 6 * t**2 + 3) * Phi + (np.abs(t) ** 3 + 5 * np.abs(t)) * phi)
    return equal(moment(2, t), second, cancels + _QUADRATURE * moment(2, t)) & equal(
        moment(4, t), fourth, cancels + _QUADRATURE * moment(4, t)
    )


@attack(
    "squared_relu/moments", on=one_ratio, wrong={"the constant 3 forgotten": lambda t: closed_moments(t, three=0.0)}
)
def the_second_and_fourth_moment_are_as_displayed(t):
    return closed_moments(t)


def row_sparsity(a: Array) -> Array:
    a = np.abs(a) / np.abs(a).max(axis=1, keepdims=True)
    return a.mean(axis=1) / np.sqrt((a**2).mean(axis=1))


def relu_squared(s: Array) -> Array:
    return np.maximum(s, 0) ** 2


some_positive = instances.score_rows.such_that(lambda s: s.max(axis=1) > 1e-3)


def does_not_notice(row, changed):
    return equal(row_sparsity(changed), row_sparsity(row), rounding(40 * row.shape[1], 1.0))


@attack(
    "squared_relu/what-matters",
    on=some_positive,
    wrong={"it does not notice a shift": lambda s: does_not_notice(relu_squared(s), relu_squared(s + 1))},
)
def squared_relu_does_not_notice_a_stretch(s):
    return does_not_notice(relu_squared(s), relu_squared(7.3 * s))


small = instances.score_rows.such_that(lambda s: np.abs(s).max(axis=1) < 100)


@attack(
    "squared_relu/what-matters",
    on=small,
    wrong={"it does not notice a stretch": lambda s: does_not_notice(instances.softmax(s), instances.softmax(2 * s))},
)
def softmax_does_not_notice_a_shift(s):
    moved = np.exp(s + 3 - s.max(axis=1, keepdims=True))
    return equal(row_sparsity(moved), row_sparsity(instances.softmax(s)), rounding(400 * s.shape[1], 10.0))


def between(value: Array, low: Array, high: Array):
    return at_most(low, value, _QUADRATURE) & at_most(value, high, _QUADRATURE)


def far_left(t: Array, above: float = 9.0):
    left_over = 2 * np.log(sparsity(t)) + t**2 / 2 + np.log(2 * np.pi) / 2 + np.log(6 * np.abs(t))
    return between(left_over, -6 / t**2, above / t**2)


@attack(
    "theorem-relu-far",
    "squared_relu/asymptotics",
    on=one_ratio.such_that(lambda t: t < -1e-4),
    wrong={"with 2 for 9": lambda t: far_left(t, above=2.0)},
)
def far_on_the_left_it_is_within_its_bounds(t):
    return far_left(t)


def far_right(t: Array, second: float = 7.0):
    phi = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    return between(np.log(sparsity(t)), -2 / t**2 - phi / t**3, -2 / t**2 + second / t**4 + phi / t**3)


@attack(
    "theorem-relu-far",
    "squared_relu/asymptotics",
    on=one_ratio.map("t", lambda t: 2 + 0.75 * np.abs(t)),
    wrong={"without the term of fourth order": lambda t: far_right(t, second=0.0)},
)
def far_on_the_right_it_is_within_its_bounds(t):
    return far_right(t)


no_attack(
    "squared_relu/empty-rows", because="exact: Independent scores multiply n equal probabilities of not being positive."
)
no_attack(
    "squared_relu/accuracy", because="instance: It is a statement about the sixteen ratios at which it was computed."
)
