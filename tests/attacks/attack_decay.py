"""Attacks on what the chapter on decay says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, implies, less, no_attack, rounding, true
from instances import Array, Kind

LENGTHS = (2, 3, 5, 9)


def geometric_rows(n: Array, w: Array) -> tuple[Array, Array]:
    """Rows exp(-w m) for m = 0 ... n - 1, with zeros behind them, and the distances m."""
    m = np.arange(n.max())
    return np.exp(-w[:, None] * m) * (m < n[:, None]), m


def squared_sparsity(n: Array, w: Array) -> Array:
    """The squared mean over the mean square of each row."""
    rows, _ = geometric_rows(n, w)
    return rows.sum(axis=1) ** 2 / (n * (rows**2).sum(axis=1))


def _rows(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    n = np.full(count, shape[0]) * rng.integers(1, 30, size=count)
    return n, 10.0 ** rng.uniform(-3, 1, size=count), rng.integers(0, n)


decays: Kind = instances.kind(
    "n w m",
    lambda: (
        (f"n = {n}, w = {w:g}, m = {m}", (np.array(n), np.array(w), np.array(m)))
        for n in (1, 2, 100)
        for w in (1e-6, np.log(2), 5.0)
        for m in (0, n - 1)
    ),
    _rows,
    [(n,) for n in LENGTHS],
)


# The closed form ----------------------------------------------------------------------------------------------------


def with_tanh(n: Array, w: Array, half: float = 0.5) -> Array:
    return np.tanh(half * n * w) / (n * np.tanh(half * w))


@attack(
    "decay/tanh",
    "article/11",
    on=decays,
    wrong={
        "without the halves": lambda n, w, m: equal(squared_sparsity(n, w), with_tanh(n, w, 1.0), 1e-12),
        "not divided by the length": lambda n, w, m: equal(squared_sparsity(n, w), n * with_tanh(n, w), 1e-12),
    },
)
def the_square_is_a_quotient_of_tangents(n, w, m):
    return equal(squared_sparsity(n, w), with_tanh(n, w), 1e-12)


def window(w: Array) -> Array:
    return (1 + np.exp(-w)) / -np.expm1(-w)


def support_below(n: Array, w: Array, limit: Array, relative: float):
    """The support is at most the limit, and within a fraction of it where the row is 40 times its decay length."""
    support = n * squared_sparsity(n, w)
    slack = rounding(8, limit)
    return at_most(support, limit, slack) & ((n * w < 40) | (support >= limit * (1 - relative)))


@attack(
    "decay/window",
    on=decays,
    wrong={
        "half the window": lambda n, w, m: support_below(n, w, window(w) / 2, 1e-12),
        "twice the window": lambda n, w, m: support_below(n, w, 2 * window(w), 1e-12),
        "reached at every length": lambda n, w, m: equal(n * squared_sparsity(n, w), window(w), 1e-3 * window(w)),
    },
)
def the_support_rises_to_the_window(n, w, m):
    return support_below(n, w, window(w), 1e-12) & support_above(n, w, 2.0)


def support_above(n: Array, w: Array, lost: float):
    """The support is at least the window less a multiple of lambda^n of it."""
    return at_most(window(w) * (1 - lost * np.exp(-n * w)), n * squared_sparsity(n, w), rounding(64, window(w)))


@attack(
    "decay/window",
    on=decays,
    wrong={"half of the loss": lambda n, w, m: support_above(n, w, 0.5)},
)
def the_support_is_close_to_the_window(n, w, m):
    return support_above(n, w, 2.0)


positive = instances.numbers(u=(0.05, 50.0))


def tangent_between(u: Array, cubic: float):
    """tanh u < u < (1 + cubic u^2) tanh u; the smaller gap is about u^5/45, beyond rounding from u = 0.05 on."""
    return less(np.tanh(u), u) & less(u, (1 + cubic * u * u) * np.tanh(u))


def quotient_falls(u: Array, factor: float = 1.01):
    return less(np.tanh(factor * u) / (factor * u), np.tanh(u) / u)


@attack(
    "lemma-decay-tangent",
    on=positive,
    wrong={
        "a quarter in place of a third": lambda u: tangent_between(u, 1 / 4),
        "the quotient rises": lambda u: quotient_falls(u, 0.99),
    },
)
def the_tangent_lies_between_its_bounds(u):
    return tangent_between(u, 1 / 3) & quotient_falls(u)


growing = instances.numbers(c=(1e-2, 50.0))


def close_to(c: Array, limit: Array):
    """At n = 10^6 the tangent of c/(2n) differs from c/(2n) by less than (c/n)^2 of it."""
    return equal(with_tanh(np.full(len(c), 10**6), c / 10**6), limit, 1e-8)


@attack(
    "decay/growing-window",
    on=growing,
    wrong={
        "tends to 0": lambda c: close_to(c, np.zeros(len(c))),
        "without the halves": lambda c: close_to(c, np.tanh(c) / c),
    },
)
def a_growing_window_keeps_its_sparsity(c):
    limit = np.tanh(c / 2) / (c / 2)
    return close_to(c, limit) & less(0.0, limit)


def limit_of(c: Array) -> Array:
    return np.tanh(c / 2) / (c / 2)


def following(n: Array, w: Array, lower: float = 1.0, upper: float = 1 / 12):
    """S^2 at the rate exp(-w) = 1 - c/n = exp(-c'/n) lies between the bounds for c and for c' = n w."""
    square = squared_sparsity(n, w)
    c, exact = -n * np.expm1(-w), n * w
    slack = rounding(64, 1)
    by_difference = at_most(limit_of(c) * (1 - lower * c / n), square, slack) & at_most(
        square, limit_of(c) * (1 + upper * (c / (n - c)) ** 2), slack
    )
    by_exponential = at_most(limit_of(exact), square, slack) & at_most(
        square, limit_of(exact) * (1 + upper * (exact / n) ** 2), slack
    )
    return by_difference & by_exponential


@attack(
    "theorem-decay-growing",
    "decay/growing-window",
    on=decays,
    wrong={
        "no correction below": lambda n, w, m: following(n, w, lower=0.0),
        "a twentieth above": lambda n, w, m: following(n, w, upper=1 / 20),
    },
)
def a_rate_that_follows_the_length_keeps_to_its_bounds(n, w, m):
    return following(n, w)


# Reach --------------------------------------------------------------------------------------------------------------


def one_share(n: Array, w: Array, m: Array, most: Array):
    rows, _ = geometric_rows(n, w)
    share = rows[np.arange(len(m)), m] / rows.sum(axis=1)
    return at_most(share, most, rounding(8, 1))


@attack(
    "decay/wrong-token",
    on=decays,
    wrong={
        "one step more": lambda n, w, m: one_share(n, w, m, np.exp(-w * (m + 1))),
        "divided by the window": lambda n, w, m: one_share(n, w, m, np.exp(-w * m) / window(w)),
    },
)
def a_distant_token_has_a_small_share(n, w, m):
    return one_share(n, w, m, np.exp(-w * m))


def far_share(n: Array, w: Array, m: Array, most: Array):
    rows, distance = geometric_rows(n, w)
    share = (rows * (distance >= m[:, None])).sum(axis=1) / rows.sum(axis=1)
    return at_most(share, most, rounding(2 * n, 1))


@attack(
    "article/10-fixed",
    on=decays,
    wrong={"one step more": lambda n, w, m: far_share(n, w, m, np.exp(-w * (m + 1)))},
)
def all_distant_tokens_together_have_a_small_share(n, w, m):
    return far_share(n, w, m, np.exp(-w * m))


# Several rates ------------------------------------------------------------------------------------------------------


def _mixtures(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    (r,) = shape
    # Rates at least 0.01 apart, so that the values at 30 distances are told from 0.
    rates = np.sort(rng.random((count, r)), axis=1) * (0.95 - 0.02 * r) + 0.02 * np.arange(1, r + 1)
    # Half of the coefficients are those of a difference of neighbours, which changes its sign most often.
    signs = np.where(rng.random((count, 1)) < 0.5, (-1.0) ** np.arange(r), rng.choice([-1.0, 1.0], size=(count, r)))
    return rates, signs * rng.random((count, r))


mixtures: Kind = instances.kind(
    "rates c",
    lambda: (
        (f"rates {rates}, coefficients {c}", (np.array(rates), np.array(c)))
        for rates, c in (((0.5, 0.9), (-1.0, 1.0)), ((0.5, 0.9), (1.0, 1.0)), ((0.2, 0.5, 0.9), (1.0, -3.0, 2.0)))
    ),
    _mixtures,
    [(1,), (2,), (3,), (4,)],
)


def weights_at(rates: Array, c: Array, count: int) -> tuple[Array, Array]:
    """The weights at the first distances, and how much rounding may move each."""
    terms = c[:, :, None] * rates[:, :, None] ** np.arange(count)
    return terms.sum(axis=1), rounding(64, np.abs(terms).sum(axis=1))


def sign_changes(rates: Array, c: Array) -> Array:
    """The number of neighbouring distances between which the weight changes its sign beyond rounding."""
    values, slack = weights_at(rates, c, 60)
    clear = np.abs(values) > slack
    return ((values[:, 1:] * values[:, :-1] < 0) & clear[:, 1:] & clear[:, :-1]).sum(axis=1)


def differences_are_signed(rates: Array, c: Array, sign: float = 1.0):
    """The first four differences of the weights have fixed signs, and the far share is at most that of one rate."""
    values, slack = weights_at(rates, c, 30)
    out = at_most(0.0, values, slack)
    for _ in range(4):
        values = sign * (values[:, :-1] - values[:, 1:])
        slack = slack[:, :-1] * 2
        out = out & at_most(0.0, values, slack)
    return out


def far_share_of(rates: Array, c: Array, rate: Array):
    values, _ = weights_at(rates, c, 30)
    far = values[:, ::-1].cumsum(axis=1)[:, ::-1] / values.sum(axis=1)[:, None]
    return at_most(far, rate[:, None] ** np.arange(30), rounding(64, 1))


without_signs = mixtures.map("rates c", lambda rates, c: (rates, np.abs(c)))


@attack(
    "theorem-decay-rates",
    on=mixtures,
    wrong={"one change less": lambda rates, c: at_most(sign_changes(rates, c), max(0, rates.shape[1] - 2), 0)},
)
def sums_of_r_rates_change_sign_less_than_r_times(rates, c):
    return at_most(sign_changes(rates, c), np.full(len(c), rates.shape[1] - 1), 0)


@attack(
    "theorem-decay-rates",
    on=without_signs,
    wrong={
        "coefficients of any sign": (differences_are_signed, mixtures),
        "the weights rise": lambda rates, c: differences_are_signed(rates, c, -1.0),
        "the share of the smallest rate": lambda rates, c: far_share_of(rates, c, rates.min(axis=1)),
    },
)
def mixtures_without_signs_are_completely_monotone(rates, c):
    return differences_are_signed(rates, c) & far_share_of(rates, c, rates.max(axis=1))


def one_hot_is_reached(rates: Array, c: Array, distances: int):
    """Whether sums of these rates come as near as rounding to the row that is one-hot at the last of the distances."""
    powers = (rates[:, :, None] ** np.arange(distances)).swapaxes(1, 2)
    target = np.eye(distances)[-1]
    left = target - np.einsum("bmi,bi->bm", powers, np.einsum("bim,m->bi", np.linalg.pinv(powers), target))
    return np.linalg.norm(left, axis=1) < 1e-6


@attack(
    "theorem-decay-rates",
    on=mixtures,
    wrong={"one rate less": lambda rates, c: true(one_hot_is_reached(rates, c, rates.shape[1] + 1))},
)
def as_many_rates_as_distances_reach_a_one_hot_row(rates, c):
    r = rates.shape[1]
    return true(one_hot_is_reached(rates, c, r) & ~one_hot_is_reached(rates, c, r + 1))


# Gates --------------------------------------------------------------------------------------------------------------


def gated_rows(gates: Array) -> Array:
    """Row t holds the weights (1 - l_j) l_(j+1) ... l_t, shape (batch, n, n), by the recurrence itself."""
    count, n = gates.shape
    rows, row = np.zeros((count, n, n)), np.zeros((count, n))
    for t in range(n):
        row = gates[:, t, None] * row
        row[:, t] = 1 - gates[:, t]
        rows[:, t] = row
    return rows


all_gates = instances.kind(
    "gates",
    lambda: ((f"all gates {x}", (np.full(5, x),)) for x in (0.0, 0.5, 1.0)),
    lambda rng, count, shape: rng.random((count, *shape)) * rng.choice([0.0, 1.0, 1.0, 1.0], size=(count, *shape)),
    [(2,), (4,), (7,)],
)


def later_rows_keep_ratios(gates: Array):
    rows = gated_rows(gates)
    n = rows.shape[1]
    seen = np.tril(np.ones((n, n), dtype=bool))
    both = seen[:, :, None] & seen[:, None, :]
    left = rows[:, -1, None, :, None] * rows[:, :, None, :]
    return equal(np.where(both, left, 0.0), np.where(both, left.swapaxes(2, 3), 0.0), rounding(64, 1))


def all_ratios(gates: Array):
    rows = gated_rows(gates)
    left = rows[:, -1, None, :, None] * rows[:, :, None, :]
    return equal(left, left.swapaxes(2, 3), rounding(64, 1))


@attack(
    "proposition-decay-gates",
    on=all_gates,
    wrong={
        "the sum is 1": lambda gates: equal(gated_rows(gates)[:, -1].sum(axis=1), 1.0, 1e-12),
        "tokens that come later as well": all_ratios,
    },
)
def gated_weights_have_their_sum_and_keep_their_ratios(gates):
    sums = equal(gated_rows(gates)[:, -1].sum(axis=1), 1 - gates.prod(axis=1), rounding(64, 1))
    return sums & later_rows_keep_ratios(gates)


marks = instances.kind(
    "marked eps",
    lambda: (
        (f"one mark {m} back, eps = {eps}", (np.arange(12)[::-1] == m, np.array(eps)))
        for m in (0, 5, 11)
        for eps in (1e-3, 0.1, 0.5)
    ),
    lambda rng, count, shape: (rng.random((count, *shape)) < 0.3, 0.5 * (1 - rng.random(count))),
    [(3,), (8,), (20,)],
)


def share_of_the_last_mark(marked: Array, eps: Array, power: int):
    """The last marked token has at least (1 - eps)^(m + power) of the weight; rows without a mark do not count."""
    gates = np.where(marked, eps[:, None], 1 - eps[:, None])
    row = gated_rows(gates)[:, -1]
    m = marked[:, ::-1].argmax(axis=1)
    share = row[np.arange(len(m)), marked.shape[1] - 1 - m] / row.sum(axis=1)
    return implies(marked.any(axis=1), at_most((1 - eps) ** (m + power), share, rounding(64, 1)))


@attack(
    "proposition-decay-gates",
    on=marks,
    wrong={"one factor less": lambda marked, eps: share_of_the_last_mark(marked, eps, 0)},
)
def the_last_mark_has_its_share(marked, eps):
    return share_of_the_last_mark(marked, eps, 1)


# A head with two components ------------------------------------------------------------------------------------------


maps = instances.kind(
    "f t",
    lambda: (
        (f"{n} queries at {place}, t = {t}", (np.full(n, place), np.array(t)))
        for n in (2, 3, 9)
        for place in (0, n - 1)
        for t in (1e-3, 1.0, 1e3)
    ),
    lambda rng, count, shape: (rng.integers(0, shape[0], size=(count, *shape)), 10.0 ** rng.uniform(-3, 4, size=count)),
    [(2,), (3,), (5,), (8,)],
)


def sharp_on_the_circle(f: Array, t: Array, lead_of: float = 1.0, least: float = 8.0):
    """Every row of the softmax is largest at its place, and its support keeps to the bound of the lead."""
    n = f.shape[1]
    angles = 2 * np.pi * np.arange(n) / n
    keys = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    scores = t[:, None, None] * keys[f] @ keys.T
    rows = instances.softmax(scores)
    support = rows.sum(axis=2) ** 2 / (rows**2).sum(axis=2)
    lead = lead_of * t * (1 - np.cos(2 * np.pi / n))
    bound = (1 + (n - 1) * np.exp(-lead)) ** 2
    others = np.where(np.arange(n) == f[..., None], -np.inf, scores).max(axis=2)
    own = np.take_along_axis(scores, f[..., None], axis=2)[..., 0]
    return (
        at_most(support, bound[:, None], rounding(64, n * bound[:, None]))
        & at_most(1.0, support, rounding(64, n))
        & at_most(lead[:, None], own - others, rounding(64, t[:, None]))
        & at_most(least * t / n**2, t * (1 - np.cos(2 * np.pi / n)), rounding(64, t))
    )


@attack(
    "proposition-decay-circle",
    on=maps,
    wrong={
        "twice the lead": lambda f, t: sharp_on_the_circle(f, t, lead_of=2.0),
        "more than 8 t/n^2": lambda f, t: sharp_on_the_circle(f, t, least=9.0),
    },
)
def two_components_make_every_row_sharp(f, t):
    return sharp_on_the_circle(f, t)


# One-hot rows of linear attention -----------------------------------------------------------------------------------


def _features(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    rows, d = shape
    return tuple(rng.integers(0, 3, size=(count, rows, d)) * (rng.random((count, rows, d)) < 0.5) for _ in range(2))


features: Kind = instances.kind(
    "g h",
    lambda: (
        (f"{d} unit vectors, {n} tokens", (np.eye(n, d, dtype=int), np.eye(n, d, dtype=int)))
        for n in (1, 2, 4)
        for d in (1, 2, 3)
    ),
    _features,
    [(3, 1), (4, 2), (5, 2), (6, 3)],
)


def places_of_one_hot_rows(g: Array, h: Array) -> Array:
    """The number of different places at which rows of the weights have their only entry that is not 0."""
    positive = g @ h.swapaxes(1, 2) > 0
    one_hot = positive & (positive.sum(axis=2) == 1)[..., None]
    return one_hot.any(axis=1).sum(axis=1)


def places_of_peaks(g: Array, h: Array) -> Array:
    """The number of different places at which rows have their largest entry."""
    peaks = (g @ h.swapaxes(1, 2)).argmax(axis=2)
    return (peaks[:, :, None] == np.arange(h.shape[1])).any(axis=1).sum(axis=1)


@attack(
    "decay/places",
    on=features,
    wrong={
        "the same place for all queries": lambda g, h: at_most(places_of_one_hot_rows(g, h), 1, 0),
        "less than d places": lambda g, h: at_most(
            places_of_one_hot_rows(g, h), np.full(len(g), max(1, g.shape[2] - 1)), 0
        ),
        "rows that are not one-hot as well": lambda g, h: at_most(
            places_of_peaks(g, h), np.full(len(g), g.shape[2]), 0
        ),
    },
)
def one_hot_rows_have_at_most_d_places(g, h):
    return at_most(places_of_one_hot_rows(g, h), np.full(len(g), g.shape[2]), 0)


no_attack(
    "decay/trained",
    because="measured: it says how scores fall with distance in the heads that ship with the book.",
)
