"""Attacks on what the chapter on feature maps says itself."""

from __future__ import annotations

import math

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, less, rounding
from instances import EPS, Array
from scipy import special

# cosFormer ------------------------------------------------------------------------------------------------------------

pairs = instances.queries_and_keys.such_that(lambda Q, K: np.full(len(Q), Q.shape[1] == K.shape[1]))
pairs = pairs.such_that(instances.moderate(1e6)).also(extra=lambda rng, Q, K: rng.integers(0, 5, size=len(Q)))


def reweighted(Q, K, extra, sign=-1.0, keep=lambda x: np.maximum(x, 0)):
    """The 2d features against the kernel with the cosine of the distance, and its sign."""
    n = Q.shape[1]
    place = np.arange(n)
    unit = np.pi / 2 / (n + extra)
    angle = unit[:, None, None] * place[None, :, None]
    Q, K = keep(Q), keep(K)
    phi_Q, phi_K = (np.concatenate([x * np.cos(angle), x * np.sin(angle)], axis=2) for x in (Q, K))
    found = np.einsum("bif,bjf->bij", phi_Q, phi_K)
    apart = place[:, None] + sign * place[None, :]
    dots = np.einsum("bid,bjd->bij", Q, K)
    size = np.einsum("bid,bjd->bij", np.abs(Q), np.abs(K)).max(axis=(1, 2))
    slack = rounding(16 * Q.shape[2], size)
    return equal(found, dots * np.cos(unit[:, None, None] * apart), slack) & at_most(-found, 0 * found, slack)


@attack(
    "report/9",
    on=pairs,
    wrong={
        "the sum of the positions": lambda Q, K, extra: reweighted(Q, K, extra, sign=1.0),
        "without ReLU": lambda Q, K, extra: reweighted(Q, K, extra, keep=lambda x: x),
    },
)
def the_features_give_the_reweighted_kernel_and_no_negative_weight(Q, K, extra):
    return reweighted(Q, K, extra)


two_places = instances.numbers(first=(1e-3, 1.0), second=(1e-3, 1.0), query=(1e-3, 1.0), size=(0.1, 9.0)).such_that(
    lambda first, second, query, size: np.abs(np.abs(first - query) - np.abs(second - query)) > 1e-3
)


def share_of_equal_keys(first, second, query, size, places=True):
    """The weight of one of two equal keys, after the division: 1/2 by every map of the token alone."""
    near, far = (size * np.cos(np.pi / 2 * (query - place)) for place in (first, second))
    share = near / (near + far)
    nearer = np.abs(first - query) < np.abs(second - query)
    if not places:
        return equal(share, 0.5, rounding(8, 1.0))
    return exactly_if(share > 0.5, nearer)


@attack(
    "report/9",
    on=two_places,
    wrong={"a map of the token alone": lambda first, second, query, size: share_of_equal_keys(
        first, second, query, size, places=False)},
)  # fmt: skip
def the_nearer_of_two_equal_keys_has_the_larger_weight(first, second, query, size):
    return share_of_equal_keys(first, second, query, size)


# Powers ---------------------------------------------------------------------------------------------------------------

two_vectors = instances.queries_and_keys.map("x y", lambda Q, K: (Q[:, 0], K[:, 0])).such_that(instances.moderate(1e3))


def exponents(d: int, order: int) -> Array:
    grid = np.indices((order + 1,) * d).reshape(d, -1).T
    return grid[grid.sum(axis=1) <= order]


def factorials(a: Array) -> Array:
    return np.prod(special.factorial(a), axis=1)


def polynomial(x, y, order=3, factors=True):
    """(1 + x . y)^p by the monomials of degree at most p with the roots of multinomial coefficients."""
    d = x.shape[1]
    a = exponents(d, order)
    if len(a) != math.comb(d + order, order):
        return np.zeros(len(x), dtype=bool)
    weight = math.factorial(order) / factorials(a) / special.factorial(order - a.sum(axis=1)) if factors else 1.0
    phi = [np.prod(v[:, None, :] ** a, axis=2) * np.sqrt(weight) for v in (x, y)]
    size = (1 + np.einsum("bd,bd->b", np.abs(x), np.abs(y))) ** order
    return equal(np.einsum("ba,ba->b", *phi), (1 + np.einsum("bd,bd->b", x, y)) ** order, rounding(40 * len(a), size))


@attack("report/10", on=two_vectors, wrong={"no factors": lambda x, y: polynomial(x, y, factors=False)})
def the_monomials_give_the_polynomial_kernel(x, y):
    return polynomial(x, y)


short_products = instances.numbers(x=(1e-2, 0.95), y=(1e-2, 0.95))


def endless(x, y, powers=400, kernel=lambda s: 1 / (1 - s)):
    """The powers of two numbers, so many that no further one counts."""
    k = np.arange(powers)
    found = np.sum(x[:, None] ** k * y[:, None] ** k, axis=1)
    return equal(found, kernel(x * y), rounding(400, 1 / (1 - np.abs(x * y))))


@attack("report/10", on=short_products, wrong={"the exponential": lambda x, y: endless(x, y, kernel=np.exp)})
def powers_without_an_end_give_the_geometric_series(x, y):
    return endless(x, y) & endless(-x, y)


def component_kernel(p: Array, same: bool = True):
    """1 + sum_m sum_k (x_m y_m)^k at two pairs with x . y = 2 and zeros elsewhere: different for p >= 2."""
    powers = np.floor(p)
    even = 1 + 2 * powers  # x = y = (1, 1, 0, ...)
    single = 2 ** (powers + 1) - 1  # x = (2, 0, ...), y = (1, 0, ...)
    return less(even, single) if same else equal(even, single, rounding(4, single))


@attack(
    "report/10",
    on=instances.numbers(p=(2.0, 40.0)),
    wrong={"one function of the dot product": lambda p: component_kernel(p, same=False)},
)
def powers_of_components_are_no_function_of_the_dot_product(p):
    return component_kernel(p)


# As many features as points -------------------------------------------------------------------------------------------

apart = instances.vectors.map("x", lambda x: 4 * x / (np.abs(x).max(axis=1, keepdims=True) + 1e-300)).such_that(
    lambda x: np.diff(np.sort(x, axis=1), axis=1, prepend=-9).min(axis=1) > 0.6
)


def definite(x, kernel=lambda s: np.exp(s)):
    """The smallest eigenvalue of the Gram matrix, its diagonal scaled to 1."""
    G = kernel(x[:, :, None] * x[:, None, :])
    root = np.sqrt(np.einsum("bii->bi", G))
    least = np.linalg.eigvalsh(G / root[:, :, None] / root[:, None, :])[:, 0]
    return less(np.full(len(x), 64 * EPS), least)


@attack(
    "proposition-feature-points",
    "feature_maps/points",
    on=apart,
    wrong={"a polynomial kernel": lambda x: definite(x, kernel=lambda s: (1 + s) ** 2)},
)
def the_exponential_of_distinct_points_is_definite(x):
    return definite(x)


# Random exponentials --------------------------------------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
in_the_plane = instances.numbers(a=(1e-2, 1.5), b=(1e-2, 1.5), angle=(1e-2, np.pi))


def expectation(a, b, angle, half=0.5):
    """Mean over standard normal rows, by quadrature: the rows' component along x + y decides."""
    dot = a * b * np.cos(angle)
    length = np.sqrt(np.maximum(a**2 + b**2 + 2 * dot, 0))
    mean = np.exp(length[:, None] * _NODES) @ _WEIGHTS * np.exp(-half * (a**2 + b**2))
    return equal(mean, np.exp(dot), 1e-9 * np.exp(dot))


@attack("report/17", on=in_the_plane, wrong={"no half": lambda a, b, angle: expectation(a, b, angle, half=1.0)})
def random_exponentials_have_the_kernel_as_their_mean(a, b, angle):
    return expectation(a, b, angle)


rows_drawn = instances.vectors.such_that(instances.moderate(20.0))


def somewhere_off(omega, mean=True, near=0.0):
    """Some x at which (1/m) phi(x) . phi(0) is not 1: at y = 0 the kernel is 1 for every x."""
    x = np.asarray([-2.0, -1.0, 1.0, 2.0])
    found = np.exp(omega[:, :, None] * x - x**2 / 2).mean(axis=1)
    off = np.abs(found - 1).max(axis=1)
    return less(np.full(len(omega), 1e-3), off) if mean else at_most(off, 1.0, rounding(4, 1.0))


@attack("report/17", on=rows_drawn, wrong={"exact everywhere": lambda omega: somewhere_off(omega, mean=False)})
def no_finite_matrix_is_exact_everywhere(omega):
    return somewhere_off(omega)


# The cut series -------------------------------------------------------------------------------------------------------

scores_and_orders = instances.numbers(size=(1e-3, 12.0), which=(1.0, 10.0)).map(
    "s p", lambda size, which: (size * np.where(np.sin(1e5 * which) > 0, 1.0, -1.0), np.floor(which) - 1)
)


def taylor(s: Array, p: Array) -> Array:
    k = np.arange(10)
    return np.sum(np.where(k <= p[:, None], s[:, None] ** k / special.factorial(k), 0.0), axis=1)


def remainder(s, p, raised=1.0, flip=1.0):
    bound = np.abs(s) ** (p + 1) / special.factorial(p + raised)
    slack = rounding(40, np.exp(np.abs(s)))
    exact = np.exp(s)
    absolute = at_most(np.abs(exact - taylor(s, p)), bound * np.exp(np.maximum(flip * s, 0)), slack)
    relative = at_most(np.abs(taylor(s, p) / exact - 1), bound * np.exp(np.maximum(-flip * s, 0)), slack / exact)
    return absolute & relative


@attack(
    "feature_maps/truncation",
    on=scores_and_orders,
    wrong={
        "the factorial of p + 2": lambda s, p: remainder(s, p, raised=2.0),
        "the two sides exchanged": lambda s, p: remainder(s, p, flip=-1.0),
    },
)
def the_bounds_hold_on_both_sides(s, p):
    return remainder(s, p)


def integral(s, p, sign=-1.0):
    """1 - T_p(s) / e^s by Gauss-Legendre quadrature of e^-t t^p / p! from 0 to s."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    t = s[:, None] * (nodes + 1) / 2
    area = (np.exp(sign * t) * t ** p[:, None]) @ weights * s / 2 / special.factorial(p)
    return equal(1 - taylor(s, p) / np.exp(s), area, rounding(400, np.exp(np.abs(s)) + np.exp(np.maximum(-2 * s, 0))))


@attack(
    "feature_maps/truncation", on=scores_and_orders, wrong={"the other sign": lambda s, p: integral(s, p, sign=1.0)}
)
def the_relative_error_is_the_integral(s, p):
    return integral(s, p)


far_from_zero = scores_and_orders.such_that(lambda s, p: np.abs(taylor(s, p)) > 1e-10 * np.exp(np.abs(s)))


def signs(s, p, parity=0.0):
    even = p % 2 == parity
    slack = rounding(40, np.exp(np.abs(s)))
    below = even | (s > 0)
    positive = at_most(np.where(below, -taylor(s, p), -1), np.zeros(len(s)), slack)
    above = np.where(even & (s < 0), np.exp(s) - taylor(s, p), taylor(s, p) - np.exp(s))
    return positive & at_most(above, np.zeros(len(s)), slack)


@attack(
    "proposition-feature-sign",
    "feature_maps/sign",
    on=scores_and_orders,
    wrong={"odd orders are positive": lambda s, p: signs(s, p, parity=1.0)},
)
def even_orders_are_positive_and_on_the_side_that_is_said(s, p):
    return signs(s, p)


#: The zeros of orders 1, 3, 5, 7, 9, below 0.
_ZEROS = {p: [r.real for r in np.roots([1 / math.factorial(k) for k in range(p, -1, -1)]) if abs(r.imag) < 1e-9]
          for p in (1, 3, 5, 7, 9)}  # fmt: skip


def one_zero(s, p, factor=1.0):
    zero = np.asarray([factor * _ZEROS.get(int(order), [np.nan])[0] for order in p])
    single = np.asarray([len(_ZEROS.get(int(order), [])) == 1 for order in p])
    return exactly_if(taylor(s, p) < 0, s < zero) & single


@attack(
    "proposition-feature-sign",
    "feature_maps/sign",
    on=far_from_zero.such_that(lambda s, p: p % 2 == 1),
    wrong={"a zero at half the distance": lambda s, p: one_zero(s, p, factor=0.5)},
)
def odd_orders_have_one_zero_and_it_is_negative(s, p):
    return one_zero(s, p)


# Weights and rank -----------------------------------------------------------------------------------------------------

disturbed = instances.score_rows.such_that(instances.moderate(30.0)).also(
    eta=lambda rng, s: np.exp(rng.uniform(-6, -0.1, size=len(s))),
    part=lambda rng, s, eta: np.where(rng.uniform(size=(len(s), 1)) < 0.5, np.sign(rng.normal(size=s.shape)),
                                 rng.uniform(-1, 1, size=s.shape)),
)  # fmt: skip


def changed_weights(s, eta, part, factor=2.0):
    before = instances.softmax(s)
    after = before * (1 + eta[:, None] * part)
    after = after / after.sum(axis=1, keepdims=True)
    allowed = factor * eta / (1 - eta)
    shifted = np.abs(after - before)
    return at_most(shifted, allowed[:, None] * before, rounding(8 * s.shape[1], 1 / (1 - eta)))


@attack(
    "feature_maps/weights",
    on=disturbed,
    wrong={"the error of the numerator alone": lambda s, eta, part: changed_weights(s, eta, part, factor=1.0)},
)
def weights_change_by_at_most_the_share(s, eta, part):
    return changed_weights(s, eta, part)


wide = instances.queries_and_keys.such_that(instances.moderate(5.0)).such_that(
    lambda Q, K: np.full(len(Q), min(Q.shape[1], K.shape[1]) > Q.shape[2])
)


def rank_of(Q, K, kernel):
    weights = kernel(Q, K)
    weights = weights / weights.sum(axis=2, keepdims=True)
    values = np.linalg.svd(weights, compute_uv=False)
    n, d = Q.shape[1:]
    return at_most(values[:, d], np.zeros(len(Q)), rounding(64 * n, values[:, 0]))


def elu_kernel(Q, K):
    Q, K = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (Q, K))
    return np.einsum("bid,bjd->bij", Q, K)


@attack(
    "feature_maps/rank",
    on=wide,
    wrong={"softmax": lambda Q, K: rank_of(Q, K, lambda Q, K: np.exp(np.einsum("bid,bjd->bij", Q, K)))},
)
def weights_by_features_have_no_further_singular_value(Q, K):
    return rank_of(Q, K, elu_kernel)
