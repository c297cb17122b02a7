"""Attacks on what the chapter on fixed patterns says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, rounding
from instances import Array

from attnmath.fixed_attention.fixed_patterns import EDGES, ENDS, PATTERNS, cubic_weights, fixed_pattern, fixed_patterns


def each(function, *arguments):
    """The value of a function of whole numbers at each instance; each combination is computed once."""
    rows = np.stack(arguments, axis=1)
    different, where = np.unique(rows, axis=0, return_inverse=True)
    values = np.array([function(*map(int, row)) for row in different], dtype=float)
    return values[where.ravel()]


contexts = instances.integers(m=(1, 90), w=(0, 90)).such_that(lambda m, w: w <= m)


def share(m: int, w: int, power: int = 3) -> float:
    """The share of the w nearest of m positions, summed cube by cube."""
    energies = [k**power for k in range(1, m + 1)]
    return sum(energies[m - w :]) / sum(energies)


def closed(m: Array, w: Array) -> Array:
    return 1 - ((m - w) * (m - w + 1) / (m * (m + 1))) ** 2


@attack(
    "fixed_patterns/near-share",
    on=contexts,
    wrong={
        "squares": lambda m, w: equal(each(lambda m, w: share(m, w, 2), m, w), closed(m, w), 1e-12),
        "no square of the ratio": lambda m, w: equal(
            each(share, m, w), 1 - (m - w) * (m - w + 1) / (m * (m + 1)), 1e-12
        ),
        "a context shorter by one": lambda m, w: equal(each(share, m, w), closed(m + 1, w), 1e-12),
    },
)
def near_positions_hold_this_share(m, w):
    found = each(share, m, w)
    return equal(found, closed(m, w), 1e-12) & at_most(found, 4 * w / m, 1e-12)


@attack(
    "fixed_patterns/near-share",
    on=instances.integers(m=(10, 100_000), w=(1, 10)),
    wrong={"three times the uniform share": lambda m, w: at_most(closed(m, w) * m / w, 3.0, 1e-9)},
)
def the_share_tends_to_four_times_the_uniform_one(m, w):
    ratio = closed(m, w) * m / w
    return at_most(ratio, 4.0, 1e-9) & at_most(4 - (6 * w + 4) / m, ratio, 1e-9)


def mean_of(a: Array) -> float:
    return a @ np.arange(1, len(a) + 1) / len(a)


def median_of(a: Array) -> float:
    return (np.searchsorted(a.cumsum(), 0.5) + 1) / len(a)


def support_of(a: Array) -> float:
    return 1 / (a @ a) / len(a)


def sparsity_of(a: Array) -> float:
    return float(a.mean() / np.sqrt((a * a).mean()))


def entropy_lost(a: Array) -> float:
    return float(np.log(len(a)) + a @ np.log(a))


OF_A_ROW = (
    (mean_of, 4 / 5),
    (median_of, 2**-0.25),
    (support_of, 7 / 16),
    (sparsity_of, 7**0.5 / 4),
    (entropy_lost, np.log(4) - 3 / 4),
)


def off_limits(m: int, power: int = 3) -> float:
    """m times the largest distance of the five numbers of a row from their limits."""
    a = cubic_weights(m) ** (power / 3)
    a /= a.sum()
    return m * max(abs(function(a) - limit) for function, limit in OF_A_ROW)


@attack(
    "fixed_patterns/spread",
    on=instances.integers(m=(2, 300)),
    wrong={"squares in place of cubes": lambda m: at_most(each(lambda m: off_limits(m, 2), m), 1.5, 0.0)},
)
def the_numbers_of_a_row_are_near_their_limits(m):
    return at_most(each(off_limits, m), 1.5, 0.0)


lengths = instances.integers(n=(3, 20))


def rank_error(n: int, of_left: int = 2) -> float:
    expected = [n, n - 1, n - 1, n - of_left, n - of_left, 1, 1]
    return max(
        abs(int(np.linalg.matrix_rank(A)) - rank)
        for edges in EDGES
        for ends in ENDS
        for A, rank in zip(fixed_patterns(n, edges=edges, ends=ends), expected, strict=True)
    )


@attack(
    "fixed_patterns/rank",
    "theorem-fixed-ranks",
    on=lengths,
    wrong={"left loses one direction": lambda n: equal(each(lambda n: rank_error(n, 1), n), 0.0, 0.0)},
)
def patterns_have_these_ranks(n):
    return equal(each(rank_error, n), 0.0, 0.0)


powers = instances.integers(n=(2, 16), r=(1, 18))


def power_error(n: int, r: int, late: int = 0) -> float:
    """0 where the r-th powers are what the theorem says; late: wrongly so many layers more for the left context."""
    zero = {name: np.linalg.matrix_power(fixed_pattern(name, n, edges="zero"), r) for name in PATTERNS[1:4:2]}
    nearest = {name: np.linalg.matrix_power(fixed_pattern(name, n), r) for name in PATTERNS[1:4:2]}
    arrived = np.zeros((n, n))
    arrived[:, 0] = 1
    there = {name: np.allclose(A, arrived, rtol=0, atol=1e-13) and not A[:, 1:].any() for name, A in nearest.items()}
    right = [
        np.array_equal(zero["previous"], np.eye(n, k=-r)),
        zero["left"].any() == (r < -(-n // 2) + late),
        (2 * r >= n) == (not zero["left"].any()) or late != 0,
        there["previous"] == (r >= n - 1),
        there["left"] == (r >= n // 2 + late),
    ]
    return float(not all(right))


@attack(
    "fixed_patterns/powers",
    "theorem-fixed-powers",
    on=powers,
    wrong={
        "one layer more": lambda n, r: equal(each(lambda n, r: power_error(n, r, 1), n, r), 0.0, 0.0),
        "one layer less": lambda n, r: equal(each(lambda n, r: power_error(n, r, -1), n, r), 0.0, 0.0),
    },
)
def powers_are_forgotten_in_so_many_layers(n, r):
    return equal(each(power_error, n, r), 0.0, 0.0)


def dimension(n: int, edges: str = "zero", step: int = 0) -> float:
    """Dimension of the span of the seven, with the matrix of a shift by `step` places where that is not 0."""
    basis = [A.ravel() for A in fixed_patterns(n, edges=edges)]
    return float(np.linalg.matrix_rank(np.array([*basis, np.eye(n, k=-step).ravel()] if step else basis)))


@attack(
    "fixed_patterns/span",
    "theorem-fixed-span",
    on=lengths,
    wrong={
        "nearest positions at the edges": lambda n: equal(each(lambda n: dimension(n, "nearest"), n), 7.0, 0.0),
        "two places back at n = 3": lambda n: equal(each(lambda n: dimension(n, step=2), n), 8.0, 0.0),
        "one place back": lambda n: equal(each(lambda n: dimension(n, step=1), n), 8.0, 0.0),
    },
)
def seven_matrices_are_independent_and_miss_a_shift(n):
    with_shift = each(lambda n: dimension(n, step=2), n)
    return equal(each(dimension, n), 7.0, 0.0) & equal(with_shift, np.where(n >= 4, 8.0, 7.0), 0.0)


outputs = instances.integers(n=(4, 6), seed=(0, 9))


def nearest_output(n: int, seed: int, layers: int = 1) -> float:
    """Distance of P^2 X M from the layers that seven heads can give, for random M, relative to M."""
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(2, 2))
    P2 = np.eye(n, k=-2)
    heads = fixed_patterns(n, edges="zero")
    if layers == 2:
        heads = np.concatenate([heads, heads @ heads[1]])
    wanted = np.kron(P2, M)
    design = np.array([np.kron(A, unit.reshape(2, 2)).ravel() for A in heads for unit in np.eye(4)]).T
    rest = wanted.ravel() - design @ np.linalg.lstsq(design, wanted.ravel(), rcond=None)[0]
    return float(np.linalg.norm(rest) / np.linalg.norm(M))


@attack(
    "fixed_patterns/span",
    on=outputs,
    wrong={
        "two layers": lambda n, seed: at_most(0.05, each(lambda n, seed: nearest_output(n, seed, 2), n, seed), 0.0),
        "the whole of it is missed": lambda n, seed: at_most(1.0, each(nearest_output, n, seed), 0.0),
    },
)
def no_layer_of_seven_heads_fetches_two_places_back(n, seed):
    return at_most(0.05, each(nearest_output, n, seed), rounding(1, 1))
