"""Attacks on what the chapter on effective rank says itself."""

from __future__ import annotations

import itertools

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding, true
from instances import Array, softmax

from attnmath.matrix.rank import effective_rank, entropy_rank, stable_rank


def sigma(A: Array) -> Array:
    """Singular values of each matrix, the largest first, shape (batch, min(n, m))."""
    return np.linalg.svd(A, compute_uv=False)


# Three effective ranks ----------------------------------------------------------------------------------------------

falling = instances.nonnegative_vectors.map("a", lambda a: -np.sort(-a, axis=1)).such_that(
    lambda a: (a[:, 0] > 1e-100) & (a[:, 0] < 1e100)
)
SHARES = (0.01, 0.1, 0.3, 0.5, 0.9)


def compared(a, holds):
    """Effective ranks by squares and by the sum, at several shares; a little of each is given away to rounding."""
    judged = true(np.full(len(a), True))
    for share in SHARES:
        squares, plain = effective_rank(a, 1.001 * share, power=2), effective_rank(a, 0.999 * share)
        judged &= true(holds(squares, plain))
    return judged


@attack(
    "5.5.2/energy",
    on=falling,
    wrong={
        "always fewer": lambda a: compared(a, np.less),
        "the other way round": lambda a: compared(a, np.greater_equal),
    },
)
def energy_needs_no_more(a):
    return compared(a, np.less_equal)


def in_order(*values):
    """Numbers that rise from one to the next, up to rounding."""
    judged = true(np.full(len(values[0]), True))
    for small, large in itertools.pairwise(values):
        judged &= at_most(small, large, 1e-12 * large)
    return judged


def without_a_threshold(a, swapped=False):
    stable, entropy = stable_rank(a), entropy_rank(a)
    total, exact = (a / a[:, :1]).sum(axis=1), (a > 0).sum(axis=1)
    return in_order(total, stable, entropy, exact) if swapped else in_order(stable, total, entropy, exact)


def at_thresholds(a, least=1.0, most=np.ceil, below=stable_rank):
    """Both counts lie between (1 - epsilon) times the stable rank and the share of the exact rank, rounded up."""
    judged = true(np.full(len(a), True))
    exact, total = (a > 0).sum(axis=1), (a / a[:, :1]).sum(axis=1)
    for share in SHARES:
        squares, plain = effective_rank(a, share, power=2), effective_rank(a, share)
        limit = most((1 - share) * exact * (1 + 1e-9))
        judged &= at_most(least * (1 - share) * below(a), squares, 1e-9 * exact)
        judged &= at_most((1 - share) * total, plain, 1e-9 * exact) & at_most(plain, np.maximum(limit, 1), 0.0)
    return judged


@attack(
    "theorem-effective-ranks",
    "effective_rank/order",
    on=falling,
    wrong={
        "stable rank and sum exchanged": lambda a: without_a_threshold(a, swapped=True),
        "without the factor 1 - epsilon": lambda a: at_thresholds(a, least=2.0),
        "rounded down": lambda a: at_thresholds(a, most=np.floor),
        "the entropy rank bounds the count by squares": lambda a: at_thresholds(a, below=entropy_rank),
    },
)
def effective_ranks_are_ordered(a):
    return without_a_threshold(a) & at_thresholds(a)


def equality(a, forces):
    """Where the entropy rank attains one of its bounds, all positive values are equal: tried on values 0, 1 and 2."""
    a = -np.sort(-np.floor(3 * a / np.nextafter(a[:, :1], np.inf)), axis=1)
    a = np.where(a[:, :1] > 0, a, 1.0)
    stable, entropy, exact = stable_rank(a), entropy_rank(a), (a > 0).sum(axis=1)
    total = (a / a[:, :1]).sum(axis=1)
    level = ((a == a[:, :1]) | (a == 0)).all(axis=1)
    close = [np.abs(x - y) < 1e-9 for x, y in ((stable, total), (total, entropy), (entropy, exact))]
    return true(np.all([near == forces(level) for near in close], axis=0))


@attack(
    "theorem-effective-ranks",
    on=falling,
    wrong={"equality at all lists": lambda a: equality(a, np.ones_like)},
)
def equality_needs_equal_values(a):
    return equality(a, lambda level: level)


def by_markov(a, power):
    """The count by the sum is at most a power of the entropy rank."""
    judged = true(np.full(len(a), True))
    for share in SHARES:
        judged &= at_most(effective_rank(a, share), entropy_rank(a) ** power(share), 1e-9)
    return judged


@attack(
    "exercise-effective_rank-markov",
    on=falling,
    wrong={"the entropy rank itself": lambda a: by_markov(a, lambda share: 1.0)},
)
def a_small_entropy_rank_bounds_the_count(a):
    return by_markov(a, lambda share: 1 / share)


def disagreement(m, values, entropy=lambda m: 2 * np.sqrt(m)):
    """Singular values and effective ranks of the matrix in which each of m + 1 tokens gives itself 2 / (m + 1)."""
    judged = []
    for count in m.tolist():
        A = softmax(np.log(2 * count / (count - 1)) * np.eye(count + 1))
        found = np.linalg.svd(A, compute_uv=False)
        right = np.append(1.0, np.full(count, values(count)))
        close = np.allclose(found, right, atol=1e-12) and np.isclose(stable_rank(right), 1 + 1 / count)
        close = close and np.isclose(entropy_rank(right), entropy(count))
        close = close and effective_rank(right, 0.25) == 1 + -(-count // 2)
        judged.append(close and (count < 3 or effective_rank(right, 0.25, power=2) == 1))
    return true(np.array(judged))


@attack(
    "theorem-ranks-disagree",
    on=instances.integers(m=(2, 24)),
    wrong={
        "1 / n for 1 / m": lambda m: disagreement(m, lambda count: 1 / (count + 1)),
        "an entropy rank without the factor 2": lambda m: disagreement(m, lambda count: 1 / count, np.sqrt),
    },
)
def one_matrix_has_four_answers(m):
    return disagreement(m, lambda count: 1 / count)


# Temperature --------------------------------------------------------------------------------------------------------


def hot(S, factor):
    """Effective ranks at the temperature of the theorem, divided by a factor."""
    n, spread = S.shape[1], np.ptp(S, axis=2).max(axis=1)
    S = S / np.where(spread > 0, spread, 1.0)[:, None, None]
    judged = true(np.full(len(S), True))
    for share in SHARES:
        values = sigma(softmax(S * factor * np.log1p(share / np.sqrt(n))))
        judged &= at_most(values[:, 1:].sum(axis=1), share * values.sum(axis=1), 1e-12)
    return judged


@attack(
    "theorem-temperature-effective-rank",
    on=instances.square_matrices,
    wrong={"at a hundredth of the temperature": lambda S: hot(S, 100.0)},
)
def smoothing_ends_at_one(S):
    return hot(S, 1.0)


def cold(S, of_counts):
    """Singular values, stable and entropy rank of one-hot rows, from the numbers of rows that favour a column."""
    ordered = np.sort(S, axis=2)
    gap = np.min(ordered[:, :, -1] - ordered[:, :, -2], axis=1) if S.shape[2] > 1 else np.ones(len(S))
    A = softmax((S - ordered[:, :, -1:]) * (60 / gap)[:, None, None])
    counts = np.eye(S.shape[2])[S.argmax(axis=2)].sum(axis=1)
    right = of_counts(-np.sort(-counts, axis=1))
    found = sigma(A)
    return (
        equal(found, right, 1e-9)
        & equal(stable_rank(found), stable_rank(right), 1e-9)
        & equal(entropy_rank(found), entropy_rank(right), 1e-6)
    )


def clear_favourites(S: Array) -> Array:
    """Whether the largest score of every row is clearly larger than the second."""
    if S.shape[2] == 1:
        return np.full(len(S), True)
    ordered = np.sort(S, axis=2)
    gap = np.min(ordered[:, :, -1] - ordered[:, :, -2], axis=1)
    return (gap > 1e-6 * np.ptp(S, axis=(1, 2))) & (gap > 1e-100)


@attack(
    "theorem-temperature-effective-rank",
    "exercise-effective_rank-cold",
    on=instances.square_matrices.such_that(clear_favourites),
    wrong={"counts without the root": lambda S: cold(S, lambda counts: counts)},
)
def cold_heads_have_the_roots_of_the_counts(S):
    return cold(S, np.sqrt)


# Rounding -----------------------------------------------------------------------------------------------------------


def rounded_to_half(step, delta, tie=1):
    """One of two tokens gets weights near a tie of half precision: effective rank 1 without rounding, 2 with it."""
    s = 0.5 + (2 * step + tie) * 2.0**-12
    s = s[:, None] + 4e-9 * delta[:, None] * np.array([1.0, -1.0])
    scores = np.log(s / (1 - s))[:, :, None] * np.array([1.0, 0.0])
    A = softmax(scores)
    half = A.astype(np.float16).astype(float)
    return true((effective_rank(sigma(A), 1e-6) == 1) & (effective_rank(sigma(half), 1e-6) == 2))


@attack(
    "5.5.2/why-different",
    on=instances.integers(step=(0, 900), delta=(1, 99)),
    wrong={"away from the tie": lambda step, delta: rounded_to_half(step, delta, tie=0)},
)
def rounding_adds_one(step, delta):
    return rounded_to_half(step, delta)


# Representations ----------------------------------------------------------------------------------------------------


def out_of_attention(A, V, skip):
    """sigma_i(AV) <= sigma_i(A) |V|, and so the output has no more dimensions than A."""
    found, limits = sigma(A @ V + skip * V), sigma(A)
    norms = np.linalg.norm(V, 2, axis=(1, 2))[:, None]
    size = np.linalg.norm(A, axis=(1, 2)) * np.linalg.norm(V, axis=(1, 2))
    return at_most(found, limits * norms, rounding(40 * A.shape[1] ** 1.5, size)[:, None])


def stable_ranks_fall(A, V):
    """The stable rank of the output is at most that of A, which the chapter denies."""
    output = sigma(A @ V)
    usable = output[:, 0] > 1e-9
    falls = stable_rank(np.where(usable[:, None], output, 1.0)) <= stable_rank(sigma(A)) + 1e-9
    return true(falls | ~usable)


@attack(
    "5.5.2/compact",
    on=instances.row_stochastic.also(V=lambda rng, A: rng.normal(size=A.shape)),
    wrong={
        "with a skip connection": lambda A, V: out_of_attention(A, V, 1.0),
        "the stable rank as well": stable_ranks_fall,
    },
)
def attention_alone_keeps_the_rank_low(A, V):
    return out_of_attention(A, V, 0.0)


no_attack(
    "effective_rank/energy-share",
    because="measured: It compares the trained heads that the book ships with permutations of the same weights.",
)
no_attack(
    "effective_rank/training",
    because="measured: It compares the decoders that the book ships with the same decoders before their training.",
)
