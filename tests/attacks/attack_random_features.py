"""Attacks on what the chapter on random features says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, no_attack
from instances import Array

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def mean(values: Array) -> Array:
    """The expectation over a standard normal number, of values at the nodes."""
    return values @ _WEIGHTS


def between(low: float, high: float, names: str) -> instances.Kind:
    """Numbers of either sign, each even between two ends: logarithms of numbers that are even on their scale."""
    ends = {name: (float(np.exp(low)), float(np.exp(high))) for name in names.split()}
    return instances.numbers(**ends).map(names, lambda *values: tuple(np.log(value) for value in values))


pairs = between(-1.0, 1.0, "a b c").map("a b c", lambda a, b, c: (1.3 * np.abs(a) + 0.02, 1.3 * np.abs(b) + 0.02, c))


def of_sum(a: Array, b: Array, c: Array, sign: int = 1) -> Array:
    """The squared norm of x + y (or x - y), from the norms of both and the cosine between them."""
    return np.maximum(a**2 + b**2 + 2 * sign * a * b * c, 0.0)


def estimates(a: Array, b: Array, c: Array, *, hyperbolic: bool) -> Array:
    """One projection's estimate over the kernel, at the nodes: the projection of x + y or x - y is normal."""
    square = of_sum(a, b, c, 1 if hyperbolic else -1)[:, None]
    z = np.sqrt(square) * _NODES
    return np.cosh(z) * np.exp(-square / 2) if hyperbolic else np.cos(z) * np.exp(square / 2)


def unbiased(a: Array, b: Array, c: Array, factor: float = 1.0):
    both = [mean(estimates(a, b, c, hyperbolic=h)) for h in (True, False)]
    return equal(both[0], factor, 1e-8) & equal(both[1], factor, 1e-8)


@attack(
    "random_features/other-maps",
    on=pairs,
    wrong={"each term of cosh counted in full": lambda a, b, c: unbiased(a, b, c, factor=2.0)},
)
def both_other_maps_are_unbiased(a, b, c):
    return unbiased(a, b, c)


def variances(a: Array, b: Array, c: Array, swap: bool = False):
    s, t = of_sum(a, b, c), of_sum(a, b, c, -1)
    if swap:
        s, t = t, s
    z = np.sqrt(of_sum(a, b, c))[:, None] * _NODES
    positive = mean(np.exp(2 * z - of_sum(a, b, c)[:, None])) - 1
    two = [mean(estimates(a, b, c, hyperbolic=h) ** 2) - 1 for h in (True, False)]
    allowance = 1e-8 * np.exp(of_sum(a, b, c) + of_sum(a, b, c, -1))
    return (
        equal(positive, np.expm1(s), allowance)
        & equal(two[0], np.cosh(s) - 1, allowance)
        & equal(two[1], np.cosh(t) - 1, allowance)
    )


@attack(
    "random_features/variances",
    on=pairs,
    wrong={"sum and difference exchanged": lambda a, b, c: variances(a, b, c, swap=True)},
)
def the_variances_are_those_of_the_integral(a, b, c):
    return variances(a, b, c)


@attack(
    "random_features/comparison",
    on=pairs.such_that(lambda a, b, c: np.abs(a * b * c) > 1e-9),
    wrong={
        "cosines win for a small kernel": lambda a, b, c: exactly_if(
            np.cosh(of_sum(a, b, c, -1)) < np.cosh(of_sum(a, b, c)), c < 0
        )
    },
)
def cosines_win_where_the_score_is_positive(a, b, c):
    return exactly_if(np.cosh(of_sum(a, b, c, -1)) < np.cosh(of_sum(a, b, c)), c > 0)


def gain(a: Array, b: Array, c: Array, most: float = 0.5):
    s = of_sum(a, b, c)
    difference = np.expm1(s) / 2 - (np.cosh(s) - 1)
    return at_most(0.0, difference, 1e-12 * np.exp(s)) & at_most(difference, most, 1e-12 * np.exp(s))


@attack("random_features/comparison", on=pairs, wrong={"at most a quarter": lambda a, b, c: gain(a, b, c, most=0.25)})
def the_gain_of_both_signs_is_at_most_one_half(a, b, c):
    return gain(a, b, c)


def weights(query: Array, keys: Array, projections: Array) -> Array:
    logs = (
        projections[..., None] * keys[:, None] - keys[:, None] ** 2 / 2 + projections[..., None] * query[:, None, None]
    )
    kernel = np.exp(logs - logs.max(axis=(1, 2), keepdims=True)).sum(axis=1)
    return kernel / kernel.sum(axis=1, keepdims=True)


draws = between(-2.0, 2.0, "q other k l w v")


def blind(q: Array, other: Array, k: Array, l: Array, w: Array, v: Array, m: int = 1):  # noqa: E741
    keys, projections = np.stack([k, l], axis=1), np.stack([w, v], axis=1)[:, :m]
    return equal(weights(q, keys, projections), weights(other, keys, projections), 1e-10)


@attack(
    "random_features/one-feature",
    on=draws,
    wrong={"two features do not see it either": lambda *given: blind(*given, m=2)},
)
def one_feature_does_not_see_the_query(q, other, k, l, w, v):  # noqa: E741
    return blind(q, other, k, l, w, v)


def expected_weight(k: Array, right: Array | float):
    return equal(mean(1 / (1 + np.exp(-2 * k[:, None] * _NODES))), right, 1e-12)


@attack(
    "random_features/one-feature",
    on=instances.numbers(k=(0.05, 3.0)),
    wrong={"the softmax weight of the query 1": lambda k: expected_weight(k, 1 / (1 + np.exp(-2 * k)))},
)
def its_mean_is_one_half(k):
    return expected_weight(k, 0.5)


def joint(x: Array, y: Array, z: Array, query: int = 1):
    a = (2 * x + y + z)[:, None] * _NODES
    log_kernels = x * y + x * z
    norms = x**2 + (y**2 + z**2) / 2
    found = mean(np.exp(a - (norms + log_kernels)[:, None]))
    right = np.exp((query * x + y) * (query * x + z))
    return equal(found, right, 1e-8 * (1 + np.exp(a.max(axis=1) / 4)))


@attack(
    "random_features/first-order",
    on=between(-1.0, 1.0, "x y z"),
    wrong={"the keys alone": lambda x, y, z: joint(x, y, z, query=0)},
)
def the_covariance_of_two_entries_is_as_displayed(x, y, z):
    return joint(x, y, z)


def expansion(o: Array, A: Array, V: Array, sign: int = -1):
    error, D = (o + A) / (1 + V) - o, A - o * V
    return equal(error, D + sign * V * D + V**2 * error, 1e-12)


@attack(
    "random_features/first-order",
    on=between(-0.5, 0.5, "o A V"),
    wrong={"the second term added": lambda o, A, V: expansion(o, A, V, sign=1)},
)
def the_rest_of_the_quotient_has_the_factor_of_second_order(o, A, V):
    return expansion(o, A, V)


def small_errors(x: Array, y: Array, z: Array, v: Array, w: Array, alone: bool = False):
    """Bias and squared error over t^2, for errors of two kernel entries with the covariances t^2 C and a small t."""
    sums, values = np.stack([x + y, x + z], axis=1), np.stack([v, w], axis=1)
    p = np.exp(x[:, None] * np.stack([y, z], axis=1))
    p /= p.sum(axis=1, keepdims=True)
    C = np.expm1(sums[:, :, None] * sums[:, None])
    sizes, axes = np.linalg.eigh(C)
    size = 1 + np.abs(C).max(axis=(1, 2))
    t = (1e-3 / np.sqrt(size))[:, None, None]
    u = np.swapaxes(axes * np.sqrt(np.maximum(sizes, 0))[:, None], 1, 2) * t  # [instance, axis, key]
    up, down = (p[:, None] * (1 + e) / (p[:, None] * (1 + e)).sum(axis=2, keepdims=True) for e in (u, -u))
    bias = ((up + down - 2 * p[:, None]) / (2 * t**2)).sum(axis=1)[:, 0]
    square = (np.einsum("bak,bk->ba", (up - down) / (2 * t), values) ** 2).sum(axis=1)
    aside = p * (values - (p * values).sum(axis=1, keepdims=True))
    own = 0 if alone else np.einsum("bl,bl->b", C[:, 0], p)
    given = p[:, 0] * (np.einsum("bj,bl,bjl->b", p, p, C) - own)
    pairs_of_keys = (C + 1) * (np.eye(2) if alone else 1)
    return equal(bias, given, 1e-4 * size) & equal(
        square, np.einsum("bj,bl,bjl->b", aside, aside, pairs_of_keys), 1e-4 * size
    )


@attack(
    "random_features/first-order",
    on=between(-1.0, 1.0, "x y z v w"),
    wrong={"the denominator and each key alone": lambda *given: small_errors(*given, alone=True)},
)
def bias_and_squared_error_are_those_of_small_errors(x, y, z, v, w):
    return small_errors(x, y, z, v, w)


def ideal_output(q: Array, k: Array, other: Array, v: Array, w: Array, norms: bool = True):
    """The algorithm with the nodes of the integral as rows, weighted: its limit for one query and two keys."""
    keys, values = np.stack([k, other], axis=1), np.stack([v, w], axis=1)
    features = np.exp(keys[..., None] * _NODES - (keys[..., None] ** 2 / 2 if norms else 0))
    sums = np.exp(q[:, None] * _NODES) * _WEIGHTS
    scores = np.einsum("ir,ijr->ij", sums, features)
    exact = np.exp(q[:, None] * keys)
    return equal((scores * values).sum(1) / scores.sum(1), (exact * values).sum(1) / exact.sum(1), 1e-8)


@attack(
    "report/algorithm",
    on=between(-1.5, 1.5, "q k other v w"),
    wrong={"keys without their norms": lambda *given: ideal_output(*given, norms=False)},
)
def its_limit_is_softmax_attention(q, k, other, v, w):
    return ideal_output(q, k, other, v, w)


def scaled_kernel(q: Array, k: Array, power: float = 0.25):
    x, y = q / 4.0**power, k / 4.0**power
    z = (x + y)[:, None] * _NODES
    found = mean(np.exp(z - (x**2 + y**2)[:, None] / 2))
    return equal(found, np.exp(q * k / 2), 1e-8 * np.exp((x + y) ** 2))


@attack(
    "report/algorithm",
    on=between(-2.0, 2.0, "q k"),
    wrong={"queries and keys over the root": lambda q, k: scaled_kernel(q, k, power=0.5)},
)
def the_fourth_root_of_the_width_gives_the_scaled_kernel(q, k):
    return scaled_kernel(q, k)


no_attack("report/step-1", because="exact: The mean of m estimates of one mean is that mean, whatever they share.")
no_attack(
    "report/performer-linear", because="exact: The count of operations is a polynomial, and N is in each term once."
)
