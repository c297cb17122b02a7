"""Attacks on what the chapter on softmax says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, rounding
from instances import EPS, Array, entries, moderate, softmax

ROWS = instances.score_rows.such_that(moderate(30))


def jacobian(y: Array) -> Array:
    """diag(y) - y y^T for each row, shape (batch, n, n)."""
    return y[:, :, None] * (np.eye(y.shape[1]) - y[:, None, :])


def frobenius(J: Array) -> Array:
    return np.linalg.norm(J, axis=(1, 2))


# Shifts and magnitudes ----------------------------------------------------------------------------------------------

shifted = instances.score_rows.also(
    C=lambda rng, s: rng.choice([-1e6, -1.0, 1.0, 1e6], size=len(s)) * rng.random(len(s))
)


def same_weights(s, moved, C):
    """Rounding of the shifted scores moves them by eps times their size, and the weights by as much relatively."""
    size = 1 + np.abs(s).max(axis=1) + np.abs(C)
    return equal(softmax(moved), softmax(s), rounding(8 * s.shape[1], 1, size))


@attack(
    "5.1.5/constant",
    on=shifted,
    wrong={
        "added to one score only": lambda s, C: same_weights(s, s + C[:, None] * np.eye(s.shape[1])[0], C),
        "multiplied instead of added": lambda s, C: same_weights(s, s * (1 + C[:, None]), C),
    },
)
def a_constant_changes_nothing(s, C):
    return same_weights(s, s + C[:, None], C)


def gap_below(s: Array) -> Array:
    """The distance from the maximum to the nearest lower score; infinite where all scores are tied."""
    below = s.max(axis=1, keepdims=True) - s
    return np.where(below > 0, below, np.inf).min(axis=1)


stretched = instances.score_rows.also(
    c=lambda rng, s: 10.0 ** rng.uniform(-2, 3, size=len(s)) / np.ptp(s, axis=1).clip(1e-3)
)


def leaders_share(s, c, ties=True):
    """1/(m + r exp(-c Delta)) <= weight of each of the m maxima <= 1/m."""
    top = s == s.max(axis=1, keepdims=True)
    m = top.sum(axis=1) if ties else np.ones(len(s))
    r, slack = s.shape[1] - m, rounding(8 * s.shape[1], 1, 1 + c * np.abs(s).max(axis=1))
    weight = softmax(c[:, None] * s).max(axis=1)
    # Where all scores are tied, there is no rival and the lower bound is 1/m.
    lower = 1 / (m + r * np.exp(-c * np.where(r > 0, gap_below(s), 0)))
    return at_most(lower, weight, slack) & at_most(weight, 1 / m, slack)


@attack(
    "5.1.5/hard",
    "softmax/temperature",
    on=stretched,
    wrong={"ties are overlooked": lambda s, c: leaders_share(s, c, ties=False)},
)
def maxima_share_the_weight(s, c):
    return leaders_share(s, c)


def near_uniform(s, factor=1.0):
    n, D = s.shape[1], np.ptp(s, axis=1)
    slack = rounding(8 * n, 1, 1 + np.abs(s).max(axis=1))
    p = softmax(s)
    low, high = np.exp(-factor * D) / n, np.exp(np.minimum(factor * D, 700)) / n
    return at_most(low, p.min(axis=1), slack) & at_most(p.max(axis=1), high, slack)


@attack(
    "5.1.5/hard",
    "softmax/temperature",
    on=instances.score_rows,
    wrong={"half of the distance": lambda s: near_uniform(s, 0.5)},
)
def small_distances_keep_weights_near_uniform(s):
    return near_uniform(s)


def mass_beside_the_rest(s, few=2, beside=None):
    """The mass on the few largest is 1 over 1 + rho, where rho is the sum of the others beside that of the few."""
    powers = -np.sort(-np.exp(s - s.max(axis=1, keepdims=True)), axis=1)
    rho = powers[:, few:].sum(axis=1) / powers[:, : beside or few].sum(axis=1)
    mass = -np.sort(-softmax(s), axis=1)[:, :few].sum(axis=1)
    return equal(mass, 1 / (1 + rho), rounding(8 * s.shape[1], 1))


@attack(
    "5.1.5/hard",
    on=instances.score_rows,
    wrong={
        "beside the largest exponential": lambda s: mass_beside_the_rest(s, beside=1),
        "beside one more": lambda s: mass_beside_the_rest(s, beside=3),
    },
)
def the_few_are_weighed_against_the_rest(s):
    return mass_beside_the_rest(s)


# The Jacobian -------------------------------------------------------------------------------------------------------

weighted = instances.probability_rows.also(v=lambda rng, p: entries(rng, len(p), p.shape[1:])[rng.permutation(len(p))])


def central_differences(s, closed):
    """The derivative of softmax by central differences, against a closed form of the weights."""
    h, n = 1e-5, s.shape[1]
    steps = h * np.eye(n)
    moved = (softmax(s[:, None] + steps) - softmax(s[:, None] - steps)) / (2 * h)
    # Third derivatives of softmax are below 1; rounding moves a weight by a few eps and is divided by the step.
    allowed = h**2 + 8 * (n + 1) * EPS * (1 + np.abs(s).max(axis=1)) / h
    return equal(moved.swapaxes(1, 2), closed(softmax(s)), allowed)


@attack(
    "softmax/potential",
    "5.1.8",
    on=ROWS,
    wrong={
        "the diagonal alone": lambda s: central_differences(s, lambda y: y[:, :, None] * np.eye(s.shape[1])),
        "plus y y^T": lambda s: central_differences(s, lambda y: jacobian(y) + 2 * y[:, :, None] * y[:, None, :]),
    },
)
def the_jacobian_is_diagonal_less_outer_product(s):
    return central_differences(s, jacobian)


def gradient_of_log_sum(s, expected):
    h, n = 1e-5, s.shape[1]

    def L(rows):
        top = rows.max(axis=-1)
        return top + np.log(np.exp(rows - top[..., None]).sum(axis=-1))

    moved = (L(s[:, None] + h * np.eye(n)) - L(s[:, None] - h * np.eye(n))) / (2 * h)
    return equal(moved, expected, h**2 + 8 * (n + 1) * EPS * (1 + np.abs(s).max(axis=1)) / h)


@attack(
    "softmax/potential",
    on=ROWS,
    wrong={"without normalisation": lambda s: gradient_of_log_sum(s, np.exp(s - s.max(axis=1, keepdims=True)))},
)
def weights_are_the_gradient_of_the_potential(s):
    return gradient_of_log_sum(s, softmax(s))


def log_sum(s: Array) -> Array:
    top = s.max(axis=1)
    return top + np.log(np.exp(s - top[:, None]).sum(axis=1))


def log_sum_shifts(s, C, factor=1.0):
    size = 1 + np.abs(s).max(axis=1) + np.abs(C)
    return equal(log_sum(s + C[:, None]), log_sum(s) + factor * C, rounding(8 * s.shape[1], size))


@attack(
    "softmax/potential",
    on=shifted,
    wrong={"the shift is lost": lambda s, C: log_sum_shifts(s, C, 0.0)},
)
def a_shift_is_added_to_log_sum_exp(s, C):
    return log_sum_shifts(s, C)


def near_the_maximum(s, low=None, high=None):
    """M + log m <= L <= M + log n, where m scores share the maximum M."""
    M, n = s.max(axis=1), s.shape[1]
    m = (s == M[:, None]).sum(axis=1)
    low, high = np.log(m) if low is None else low, np.log(n) if high is None else high
    slack = rounding(8 * n, 1 + np.abs(s).max(axis=1))
    return at_most(M + low, log_sum(s), slack) & at_most(log_sum(s), M + high, slack)


@attack(
    "softmax/potential",
    on=instances.score_rows,
    wrong={
        "one for the number of scores": lambda s: near_the_maximum(s, high=0.0),
        "all scores at the maximum": lambda s: near_the_maximum(s, low=np.log(s.shape[1])),
    },
)
def log_sum_exp_is_near_the_maximum(s):
    return near_the_maximum(s)


def constants_vanish(J, p):
    return equal(J.sum(axis=2), 0.0, rounding(4 * p.shape[1], np.ones(len(p))))


@attack(
    "softmax/semidefinite",
    on=instances.probability_rows,
    wrong={"the diagonal alone": lambda p: constants_vanish(jacobian(p) * np.eye(p.shape[1]), p)},
)
def rows_of_the_jacobian_sum_to_zero(p):
    return constants_vanish(jacobian(p), p)


def variance(p, v, factor=0.5):
    form = np.einsum("bi,bij,bj->b", v, jacobian(p), v)
    spread = factor * (p[:, :, None] * p[:, None, :] * (v[:, :, None] - v[:, None, :]) ** 2).sum(axis=(1, 2))
    centred = (p * (v - (p * v).sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    slack = rounding(16 * p.shape[1] ** 2, np.abs(v).max(axis=1) ** 2)
    return equal(form, spread, slack) & equal(form, centred, slack) & at_most(0.0, form, slack)


@attack("softmax/semidefinite", on=weighted, wrong={"every pair counted twice": lambda p, v: variance(p, v, 1.0)})
def the_form_is_the_variance(p, v):
    return variance(p, v)


def largest_eigenvalue(p, bound):
    return at_most(np.linalg.eigvalsh(jacobian(p)), bound, rounding(16 * p.shape[1], np.ones(len(p))))


@attack(
    "softmax/norm",
    "theorem-jacobian-norm",
    on=instances.probability_rows,
    wrong={"a quarter": lambda p: largest_eigenvalue(p, 0.25), "0.499": lambda p: largest_eigenvalue(p, 0.499)},
)
def no_eigenvalue_exceeds_one_half(p):
    return largest_eigenvalue(p, 0.5)


def norm_at_most(p, bound):
    return at_most(frobenius(jacobian(p)), bound, rounding(4 * p.shape[1] ** 2, np.ones(len(p))))


@attack(
    "softmax/norm",
    "theorem-jacobian-norm",
    "5.1.5/gradient-size",
    on=instances.probability_rows,
    wrong={"a quarter": lambda p: norm_at_most(p, 0.25), "0.499": lambda p: norm_at_most(p, 0.499)},
)
def no_norm_exceeds_one_half(p):
    return norm_at_most(p, 0.5)


# Saturation ---------------------------------------------------------------------------------------------------------


def entries_at_most(p, factor):
    rest = np.sort(p, axis=1)[:, :-1].sum(axis=1)
    return at_most(np.abs(jacobian(p)), factor * rest[:, None, None], rounding(4 * p.shape[1], 1))


@attack(
    "5.1.5/saturated-jacobian",
    on=instances.probability_rows,
    wrong={"half of the rest": lambda p: entries_at_most(p, 0.5)},
)
def entries_are_at_most_the_rest(p):
    return entries_at_most(p, 1.0)


def gradient_at_most(p, v, factor):
    rest, largest = np.sort(p, axis=1)[:, :-1].sum(axis=1), np.abs(v).max(axis=1)
    passed = np.abs(np.einsum("bij,bj->bi", jacobian(p), v))
    return at_most(passed, factor * (rest * largest)[:, None], rounding(8 * p.shape[1], largest))


@attack(
    "5.1.5/vanishing-gradient",
    on=weighted,
    wrong={"half of the bound": lambda p, v: gradient_at_most(p, v, 1.0)},
)
def a_bounded_gradient_passes_the_rest_only(p, v):
    return gradient_at_most(p, v, 2.0)


led = instances.score_rows.such_that(lambda s: np.full(len(s), s.shape[1] > 1)).also(
    v=lambda rng, s: entries(rng, len(s), s.shape[1:])
)


def the_lead_decides(s, v, rivals=None):
    """Rest of the weight, entries of J and entries of J v against r exp(-lead), with r rivals of the largest input."""
    n, ordered = s.shape[1], np.sort(s, axis=1)
    p, largest = softmax(s), np.abs(v).max(axis=1)
    bound = (n - 1 if rivals is None else rivals) * np.exp(-(ordered[:, -1] - ordered[:, -2]))
    slack = rounding(16 * n, 1, 1 + np.abs(s).max(axis=1))
    passed = np.abs(np.einsum("bij,bj->bi", jacobian(p), v)).max(axis=1)
    small = at_most(1 - p.max(axis=1), bound, slack) & at_most(np.abs(jacobian(p)).max(axis=(1, 2)), bound, slack)
    return small & at_most(passed, 2 * largest * bound, slack * (1 + largest))


@attack(
    "5.1.5/large-inputs",
    on=led,
    wrong={"one rival instead of all": lambda s, v: the_lead_decides(s, v, rivals=1)},
)
def a_leader_makes_the_gradient_small(s, v):
    return the_lead_decides(s, v)


def two_leaders_keep_the_norm(s, factor=2.0):
    """The norm is at least twice the product of the two largest weights, which keeps away from 0 if these two do."""
    p = softmax(s)
    first, second = -np.sort(-p, axis=1)[:, :2].T
    return at_most(factor * first * second, frobenius(jacobian(p)), rounding(4 * s.shape[1] ** 2, np.ones(len(s))))


@attack(
    "5.1.5/large-inputs",
    on=instances.score_rows.such_that(lambda s: np.full(len(s), s.shape[1] > 1)),
    wrong={"a larger multiple": lambda s: two_leaders_keep_the_norm(s, 2.2)},
)
def two_leaders_keep_the_jacobian(s):
    return two_leaders_keep_the_norm(s)


level = instances.score_rows.such_that(moderate(30)).also(v=lambda rng, s: entries(rng, len(s), s.shape[1:]))


def every_direction_is_felt(s, v, centred=True, power=1.0):
    """v^T J v >= exp(-D)/n |v|^2 for v with the sum 0."""
    n, D = s.shape[1], np.ptp(s, axis=1)
    v = v / np.abs(v).max(axis=1, keepdims=True).clip(1e-300)
    v = v - v.mean(axis=1, keepdims=True) if centred else v
    p = softmax(s)
    spread = (p * (v - (p * v).sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return at_most(np.exp(-D) / n**power * (v**2).sum(axis=1), spread, rounding(16 * n, np.ones(len(s))))


@attack(
    "5.1.5/gradient-size",
    on=level,
    wrong={
        "constants are felt too": lambda s, v: every_direction_is_felt(s, v, centred=False),
        "the number of keys is forgotten": lambda s, v: every_direction_is_felt(s, v, power=0.0),
    },
)
def moderate_scores_lose_no_direction(s, v):
    return every_direction_is_felt(s, v)


def band(p, low=1.0, high=2.0):
    """low p(1-p) <= norm <= high p(1-p) for the largest weight p; 1 - p is summed from the others."""
    ascending = np.sort(p, axis=1)
    rest = ascending[:, :-1].sum(axis=1)
    product, norm = ascending[:, -1] * rest, frobenius(jacobian(p))
    slack = rounding(8 * p.shape[1] ** 2, np.ones(len(p)))
    return at_most(low * product, norm, slack) & at_most(norm, high * product, slack)


led = instances.probability_rows.such_that(lambda p: p.max(axis=1) >= 0.5)


@attack(
    "proposition-softmax-band",
    "exercise-softmax-band",
    on=led,
    wrong={
        "a larger lower bound": lambda p: band(p, low=1.6),
        "a smaller upper bound": lambda p: band(p, high=1.9),
        "no weight of one half": instances.probability_rows,
    },
)
def the_norm_is_of_the_order_of_the_rest(p):
    return band(p)


def _tied(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    lead = rng.uniform(0.01, 3, size=count)
    rows = np.where(np.arange(shape[0]) < 2, lead[:, None], 0.0)
    return rows, rng.uniform(0, 60, size=count) / lead


tied = instances.kind(
    "s c",
    lambda: ((f"two of {n} lead by 1, c = {c:g}", (np.where(np.arange(n) < 2, 1.0, 0.0), np.array(c))) for n in
             (3, 4, 6) for c in (0.0, 1.0, 40.0)),
    _tied,
    [(n,) for n in (3, 4, 5, 6)],
)  # fmt: skip


def norm_near_half(s, c, limit=0.5):
    """The distance to the limit is at most (r + 2) exp(-c Delta): each weight moves by no more than r exp(-c Delta)."""
    r, t = s.shape[1] - 2, np.exp(-c * np.ptp(s, axis=1))
    return at_most(
        np.abs(frobenius(jacobian(softmax(c[:, None] * s))) - limit), (r + 2) * t, rounding(64, np.ones(len(s)))
    )


@attack("softmax/temperature", on=tied, wrong={"the limit is 1/4": lambda s, c: norm_near_half(s, c, 0.25)})
def two_leaders_have_the_largest_norm(s, c):
    return norm_near_half(s, c)


right = ROWS.also(target=lambda rng, s: rng.integers(0, s.shape[1], size=len(s)))


def loss_gradient(s, target, expected):
    h, n = 1e-5, s.shape[1]
    chosen = np.arange(len(s))[:, None], np.arange(n)[None, :], target[:, None]

    def loss(rows):
        top = rows.max(axis=-1)
        return top + np.log(np.exp(rows - top[..., None]).sum(axis=-1)) - rows[chosen]

    moved = (loss(s[:, None] + h * np.eye(n)) - loss(s[:, None] - h * np.eye(n))) / (2 * h)
    return equal(moved, expected, h**2 + 8 * (n + 2) * EPS * (1 + np.abs(s).max(axis=1)) / h)


@attack(
    "exercise-softmax-cross-entropy",
    on=right,
    wrong={"the target is forgotten": lambda s, target: loss_gradient(s, target, softmax(s))},
)
def the_gradient_is_weight_less_target(s, target):
    return loss_gradient(s, target, softmax(s) - np.eye(s.shape[1])[target])


# Temperature, entropy -----------------------------------------------------------------------------------------------


def entropy(p: Array) -> Array:
    return -(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1)


warm = instances.score_rows.such_that(moderate(10)).also(T=lambda rng, s: rng.uniform(0.5, 5, size=len(s)))


def entropy_slope(s, T, power):
    h, p = 1e-4, softmax(s / T[:, None])
    moved = (entropy(softmax(s / (T + h)[:, None])) - entropy(softmax(s / (T - h)[:, None]))) / (2 * h)
    var = (p * (s - (p * s).sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    # The third derivative in T is bounded by a polynomial in |x|/T of degree 6 over T^3; T >= 1/2 and |x| <= 10.
    size = np.abs(s).max(axis=1) / T
    return equal(moved, var / T**power, 100 * h**2 * (1 + size) ** 6 / T**3 + 64 * EPS * (1 + size) ** 2 / h)


@attack("softmax/entropy", on=warm, wrong={"one power of T too few": lambda s, T: entropy_slope(s, T, 2)})
def entropy_grows_at_the_variance(s, T):
    return entropy_slope(s, T, 3)


def ordered(s: Array) -> Array:
    """Distances of the other scores from the maximum, ascending, shape (batch, n - 1)."""
    return np.sort(s.max(axis=1, keepdims=True) - s, axis=1)[:, 1:]


cold = instances.score_rows.such_that(
    lambda s: (
        (ordered(s).min(axis=1, initial=np.inf) > 1e-6 * (1 + np.abs(s).max(axis=1))) & np.full(len(s), s.shape[1] > 1)
    )
).also(T=lambda rng, s: ordered(s)[:, 0] / rng.uniform(3, 60, size=len(s)))


def rate(s, T, count=True):
    """Largest diagonal entry over exp(-Delta/T)/T, between two bounds that tend to r as T falls."""
    far, n = ordered(s), s.shape[1]
    lead = far[:, 0]
    r = (far == lead[:, None]).sum(axis=1) if count else np.ones(len(s))
    t = np.exp(-lead / T)
    further = np.where(far > lead[:, None], np.exp(-(far - lead[:, None]) / T[:, None]), 0).sum(axis=1)
    weights = np.exp((s - s.max(axis=1, keepdims=True)) / T[:, None])
    p, total = weights / weights.sum(axis=1, keepdims=True), weights.sum(axis=1)
    rest = np.array(total - 1)
    # 1 - p of the leader is summed from the others, so that nothing cancels.
    others = np.where(np.arange(n) == s.argmax(axis=1)[:, None], 0, p).sum(axis=1)
    one_less = np.where(np.arange(n) == s.argmax(axis=1)[:, None], others[:, None], 1 - p)
    ratio = (p * one_less).max(axis=1) / t
    slack = rounding(16 * n, n, 1 + np.abs(s).max(axis=1) / T)
    return at_most(r / (1 + rest) ** 2, ratio, slack) & at_most(ratio, r + further, slack)


@attack(
    "exercise-softmax-rate",
    on=cold,
    wrong={"the number of rivals is forgotten": lambda s, T: rate(s, T, count=False)},
)
def saturation_has_the_rate_of_the_rivals(s, T):
    return rate(s, T)


scored = instances.probability_rows.also(x=lambda rng, p: np.clip(entries(rng, len(p), p.shape[1:]), -50, 50))


def objective(p, x, sign=1.0):
    """<p, x> + H(p) = L - divergence of p from softmax(x), and at most L."""
    top = x.max(axis=1)
    L = top + np.log(np.exp(x - top[:, None]).sum(axis=1))
    log_y = x - L[:, None]
    value = (p * x).sum(axis=1) + entropy(p)
    divergence = (p * (np.log(np.where(p > 0, p, 1)) - log_y)).sum(axis=1)
    slack = rounding(32 * p.shape[1], 1 + np.abs(x).max(axis=1))
    return equal(value, L - sign * divergence, slack) & at_most(value, L, slack) & at_most(0.0, divergence, slack)


@attack("softmax/maximum-entropy", on=scored, wrong={"the sign of the divergence": lambda p, x: objective(p, x, -1.0)})
def softmax_maximises_score_plus_entropy(p, x):
    return objective(p, x)


@attack(
    "softmax/maximum-entropy",
    on=instances.score_rows.such_that(moderate(30)).such_that(lambda s: np.full(len(s), s.shape[1] > 1)),
    wrong={"the uniform distribution": lambda s: reaches(s, np.full_like(s, 1 / s.shape[1]))},
)
def the_maximum_is_reached(s):
    return reaches(s, softmax(s))


def reaches(s, p):
    top = s.max(axis=1)
    L = top + np.log(np.exp(s - top[:, None]).sum(axis=1))
    return equal((p * s).sum(axis=1) + entropy(p), L, rounding(32 * s.shape[1], 1 + np.abs(s).max(axis=1)))


def rank_of_weights(p, offset):
    """The rank of J is the number of positive weights less one."""
    values = np.linalg.eigvalsh(jacobian(p))
    k = (p > 0).sum(axis=1)
    smallest = np.where(p > 0, p, 1).min(axis=1)
    clear = smallest > 1e-3  # weights that are nearly 0 have eigenvalues that are nearly 0
    rank = (values > 1e-7).sum(axis=1)
    return np.where(clear, rank == k - offset, True)


@attack(
    "exercise-softmax-rank",
    on=instances.probability_rows,
    wrong={"the number of positive weights": lambda p: rank_of_weights(p, 0)},
)
def the_rank_is_one_less_than_the_support(p):
    return rank_of_weights(p, 1)
