"""Attacks on what the chapter on heads and positions says itself."""

from __future__ import annotations

import itertools

import instances
import numpy as np
from hunt import at_most, attack, equal, rounding
from instances import Array, entries

pairs = instances.probability_rows.also(
    b=lambda rng, p: p[rng.permutation(len(p))],
    v=lambda rng, p, b: entries(rng, len(p), p.shape[1:]),
)


def apart(p: Array, b: Array) -> Array:
    """Total variation distance, written as the largest difference of a probability: that of where p is larger."""
    return np.where(p > b, p - b, 0).sum(axis=1)


def spread(v: Array) -> Array:
    return v.max(axis=1) - v.min(axis=1)


def slack(v: Array) -> Array:
    return rounding(8 * v.shape[1], np.abs(v).max(axis=1))


def change(p: Array, b: Array, v: Array) -> Array:
    return np.abs((p * v).sum(axis=1) - (b * v).sum(axis=1))


@attack(
    "theorem-distance-output",
    "positional_heads/total-variation",
    on=pairs,
    wrong={
        "half of the distance": lambda p, b, v: at_most(change(p, b, v), spread(v) * apart(p, b) / 2, slack(v)),
        "the largest value for the range": lambda p, b, v: at_most(
            change(p, b, v), np.abs(v).max(axis=1) * apart(p, b), slack(v)
        ),
        "the root mean square of the difference": lambda p, b, v: at_most(
            change(p, b, v), spread(v) * np.sqrt(((p - b) ** 2).mean(axis=1)), slack(v)
        ),
    },
)
def outputs_differ_by_at_most_the_range_times_the_distance(p, b, v):
    return at_most(change(p, b, v), spread(v) * apart(p, b), slack(v))


@attack(
    "theorem-distance-output",
    "positional_heads/total-variation",
    on=pairs,
    wrong={
        "large values where the second row is larger": lambda p, b, v: equal(
            (p - b) @ np.ones(p.shape[1]) + ((p < b) * (p - b)).sum(axis=1), apart(p, b), 1e-12
        ),
        "large values everywhere": lambda p, b, v: equal(change(p, b, np.ones_like(p)), apart(p, b), 1e-12),
    },
)
def some_values_attain_the_bound(p, b, v):
    return equal(change(p, b, np.where(p > b, 1.0, 0.0)), apart(p, b), 1e-12)


small = instances.row_stochastic.such_that(lambda A: np.full(len(A), 2 <= A.shape[1] <= 4))


def over_permutations(A: Array, together: bool = True) -> Array:
    """Mean over all permutations of the positions of queries and keys, together or each by itself."""
    orders = [list(order) for order in itertools.permutations(range(A.shape[1]))]
    if not together:
        return np.mean([A[:, one][:, :, other] for one in orders for other in orders], axis=0)
    return np.mean([A[:, order][:, :, order] for order in orders], axis=0)


def predicted(A: Array, pairs: int | None = None, diagonal: bool = True) -> Array:
    n = A.shape[1]
    on = A.diagonal(axis1=1, axis2=2).mean(axis=1)[:, None, None]
    off = ((1 - on) if diagonal else np.ones_like(on)) / (n - 1 if pairs is None else pairs)
    return np.where(np.eye(n, dtype=bool), on, off)


@attack(
    "theorem-permuted-positions",
    "positional_heads/permuted",
    on=small,
    wrong={
        "one in n for every other token": lambda A: equal(over_permutations(A), predicted(A, A.shape[1]), 1e-12),
        "the diagonal is forgotten": lambda A: equal(over_permutations(A), predicted(A, diagonal=False), 1e-12),
        "queries and keys each by themselves": lambda A: equal(over_permutations(A, False), predicted(A), 1e-12),
    },
)
def permuted_entries_have_the_mean_of_the_theorem(A):
    return equal(over_permutations(A), predicted(A), 1e-12)
