"""Attacks on what the chapter on decay says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, less, rounding
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
    return support_below(n, w, window(w), 1e-12)


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
    "article/summary-absolute",
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
