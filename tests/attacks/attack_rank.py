"""Attacks on what the chapter on rank says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, no_attack, rounding, true
from instances import Array, moderate, softmax

from attnmath.rank import effective_rank


def sigma(A: Array) -> Array:
    """Singular values of each matrix, the largest first, shape (batch, min(n, m))."""
    return np.linalg.svd(A, compute_uv=False)


def beyond(A: Array, most: Array) -> Array:
    """Singular values behind the given number of them, the others replaced by 0."""
    values = sigma(A)
    return np.where(np.arange(values.shape[1]) >= np.reshape(most, (-1, 1)), values, 0.0)


def slack(A: Array) -> Array:
    """How far rounding moves the singular values of products and sums of the size of A."""
    return rounding(40 * max(A.shape[1:]) ** 1.5, np.linalg.norm(A, axis=(1, 2)))


# Sums of outer products ---------------------------------------------------------------------------------------------


def truncated(A: Array, r: int) -> Array:
    U, values, Vt = np.linalg.svd(A, full_matrices=False)
    return (U[:, :, :r] * values[:, None, :r]) @ Vt[:, :r, :]


competitors = instances.matrices.also(noise=lambda rng, A: rng.normal(size=A.shape) * rng.choice([1e-3, 0.1, 1.0]))


def nearest(A, noise, last=0, factor=1.0):
    """No matrix of rank r is nearer than the tail of the singular values. The competitors are near the best one."""
    judged = true(np.full(len(A), True))
    values, size = sigma(A), np.linalg.norm(A, axis=(1, 2))
    for r in sorted({1, (values.shape[1] + 1) // 2}):
        B = truncated(A + noise * size[:, None, None], r)
        tail = values[:, max(r + last, 0) :]
        largest = tail[:, 0] if tail.shape[1] else np.zeros(len(A))
        total = np.sqrt((tail**2).sum(axis=1))
        for apart, attained in ((A - B, False), (A - truncated(A, r), True)):
            both = sigma(apart)[:, 0], np.linalg.norm(apart, axis=(1, 2))
            for distance, bound in zip(both, (largest, total), strict=True):
                allowed = slack(A) + slack(B)
                judged &= at_most(factor * bound, distance, allowed)
                if attained:
                    judged &= equal(distance, factor * bound, allowed)
    return judged


@attack(
    "theorem-best-approximation",
    on=competitors,
    wrong={
        "one index too early": lambda A, noise: nearest(A, noise, last=-1),
        "half of the distance": lambda A, noise: nearest(A, noise, factor=0.5),
    },
)
def no_matrix_of_the_rank_is_nearer(A, noise):
    return nearest(A, noise)


# Scores and exponentials --------------------------------------------------------------------------------------------


def no_larger(product: Array, factor: Array, other: Array, shift: int = 0) -> object:
    """sigma_i(product) <= sigma_i(factor) |other|: so the product has no more dimensions than the factor."""
    found, limits = sigma(product), sigma(factor)
    extra = [(0, 0), (0, max(found.shape[1] - limits.shape[1], 0) + shift)]
    size = np.linalg.norm(factor, axis=(1, 2)) * np.linalg.norm(other, axis=(1, 2))
    bound = np.pad(limits, extra)[:, shift : shift + found.shape[1]] * np.linalg.norm(other, 2, axis=(1, 2))[:, None]
    return at_most(found, bound, rounding(40 * max(product.shape[1:]) ** 1.5, size)[:, None])


def score_bounds(Q, K, shift=0):
    S = Q @ K.swapaxes(1, 2)
    return no_larger(S, Q, K, shift) & no_larger(S, K, Q, shift)


@attack(
    "5.5.2/subspace",
    "5.5.6/rank-bound",
    on=instances.queries_and_keys.such_that(moderate(1e4)),
    wrong={
        "one dimension less": lambda Q, K: score_bounds(Q, K, shift=1),
        "the weights as well": lambda Q, K: no_larger(softmax(Q @ K.swapaxes(1, 2)), Q, K),
    },
)
def scores_have_the_dimensions_of_queries_and_of_keys(Q, K):
    return score_bounds(Q, K)


def lattice(n: int):
    """Queries and keys on multiples of a half, which keeps the determinants far from rounding: distinct or not."""

    def draw(rng: np.random.Generator, count: int, distinct: bool) -> Array:
        if not distinct:
            return rng.integers(-3, 4, size=(count, n)) / 2
        return np.argsort(rng.random(size=(count, 7)), axis=1)[:, :n] / 2 - 1.5

    return draw


def line(distinct: bool):
    """One-dimensional queries and keys for one to four tokens."""
    return instances.kind(
        "q k",
        lambda: (
            (f"queries and keys 0 ... {n - 1}, times {sign}", (np.arange(float(n)), sign * np.arange(float(n))))
            for n in (1, 2, 3, 4)
            for sign in (1, -1)
        ),
        lambda rng, count, shape: tuple(lattice(shape[0])(rng, count, distinct) for _ in range(2)),
        [(n,) for n in (1, 2, 3, 4)],
    )


def determinants(q: Array, k: Array) -> tuple[Array, Array]:
    """Determinant of the exponentials divided by the norms of the rows, and what rounding may do to it."""
    E = np.exp(q[:, :, None] * k[:, None, :])
    E = E / np.linalg.norm(E, axis=2, keepdims=True)
    return np.linalg.det(E), rounding(50 * q.shape[1] ** 3, np.ones(len(q)))


def invertible(q, k):
    value, allowed = determinants(q, k)
    return true(np.abs(value) > allowed)


def all_different(x: Array) -> Array:
    return np.array([len(set(row)) == len(row) for row in x.tolist()])


@attack(
    "theorem-exponential-full-rank",
    "5.5.2/exp-rank",
    "5.5.2/rank-bound",
    on=line(distinct=True),
    wrong={
        "queries and keys may agree": line(distinct=False),
        "rank 1, like the scores": lambda q, k: at_most(np.abs(determinants(q, k)[0]), 0.0, determinants(q, k)[1]),
    },
)
def distinct_points_give_full_rank(q, k):
    return invertible(q, k)


@attack(
    "theorem-exponential-full-rank",
    on=line(distinct=False),
    wrong={"distinct queries are enough": lambda q, k: exactly_if(invertible(q, k).holds, all_different(q))},
)
def full_rank_exactly_if_distinct(q, k):
    return exactly_if(invertible(q, k).holds, all_different(q) & all_different(k))


sums = instances.vector_pairs.such_that(lambda x, y: np.abs(x).max(axis=1) + np.abs(y).max(axis=1) < 30)


def clearly(x: Array) -> Array:
    """Whether the components are all equal, or clearly not."""
    return (np.ptp(x, axis=1) == 0) | (np.ptp(x, axis=1) > 1e-3)


def rank_of_sums(x, y, several):
    S = x[:, :, None] + y[:, None, :]
    values = sigma(S)
    second = values[:, 1] > 1e-9 * values[:, 0] if values.shape[1] > 1 else np.full(len(x), False)
    third = at_most(beyond(S, 2), 0.0, slack(S))
    E = np.exp(S)
    return (
        exactly_if(second, several(np.ptp(x, axis=1) > 0, np.ptp(y, axis=1) > 0))
        & third
        & at_most(beyond(E, 1), 0.0, 8 * slack(E) * (1 + np.abs(S).max(axis=(1, 2))))
    )


@attack(
    "5.5.2/lowered",
    on=sums.such_that(lambda x, y: clearly(x) & clearly(y)),
    wrong={
        "one of the two that varies is enough": lambda x, y: rank_of_sums(x, y, np.logical_or),
        "the scores have rank 1 as well": lambda x, y: at_most(beyond(x[:, :, None] + y[:, None, :], 1), 0.0, 1e-9),
    },
)
def exponentials_of_sums_have_rank_one(x, y):
    return rank_of_sums(x, y, np.logical_and)


def divided(S, axis):
    """Row sums 1, and the rank of the exponentials, for a division by the row sums along an axis."""
    E = np.exp(S)
    A = E / np.expand_dims(E.sum(axis=2), axis)
    return A, equal(A.sum(axis=2), 1.0, rounding(4 * S.shape[2], np.abs(A).sum(axis=2)))


@attack(
    "5.5.2/normalisation",
    on=instances.square_matrices.such_that(moderate(5)),
    wrong={"the divisor on the right": lambda S: divided(S, 1)[1]},
)
def the_divisor_is_on_the_left(S):
    A, sums_are_one = divided(S, 2)
    E = np.exp(S)
    rows = E.sum(axis=2)
    condition = rows.max(axis=1) / rows.min(axis=1)
    judged = sums_are_one & equal(A, softmax(S), rounding(8 * S.shape[2], 1.0) * (1 + np.abs(S).max(axis=(1, 2))))
    # An invertible diagonal factor changes singular values by factors between its smallest and its largest entry.
    values = sigma(E)
    low, high = values / rows.max(axis=1)[:, None], values / rows.min(axis=1)[:, None]
    allowed = rounding(60 * S.shape[2] ** 1.5, high[:, :1], condition[:, None])
    for changed in (A, divided(S, 1)[0]):
        judged &= at_most(low, sigma(changed), allowed) & at_most(sigma(changed), high, allowed)
    return judged


# Effective rank -----------------------------------------------------------------------------------------------------

falling = instances.nonnegative_vectors.map("a", lambda a: -np.sort(-a, axis=1)).such_that(
    lambda a: (a[:, 0] > 1e-100) & (a[:, 0] < 1e100)
)


def compared(a, holds):
    """Effective ranks by squares and by the sum, at several shares; a little of each is given away to rounding."""
    judged = true(np.full(len(a), True))
    for share in (0.01, 0.1, 0.3, 0.5, 0.9):
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


def hot(S, q):
    """Effective rank at 1e-6 when the scores are divided by a temperature that exceeds their range by the factor q."""
    spread = np.ptp(S, axis=(1, 2))[:, None, None]
    values = sigma(softmax(S / (q * np.where(spread > 0, spread, 1.0))))
    return at_most(values[:, 1:].sum(axis=1), 1e-6 * values.sum(axis=1), 0.0)


@attack(
    "5.5.2/why-different",
    on=instances.square_matrices,
    wrong={"at every temperature": lambda S: hot(S, 0.1)},
)
def smoothing_ends_at_one(S):
    return hot(S, 1e8)


def out_of_attention(A, V, skip):
    """sigma_i(AV) <= sigma_i(A) |V|, and so the output has no more dimensions than A."""
    return no_larger(A @ V + skip * V, A, V)


@attack(
    "5.5.2/compact",
    on=instances.row_stochastic.also(V=lambda rng, A: rng.normal(size=A.shape)),
    wrong={"with a skip connection": lambda A, V: out_of_attention(A, V, 1.0)},
)
def attention_alone_keeps_the_rank_low(A, V):
    return out_of_attention(A, V, 0.0)


# Causal attention ---------------------------------------------------------------------------------------------------


def causal_determinant(S, first_seen):
    """The determinant is the product of the diagonal, and positive; first_seen = 1 hides the diagonal."""
    n = S.shape[1]
    seen = np.tri(n, k=-first_seen, dtype=bool)
    seen[:first_seen, 0] = True
    A = softmax(np.where(seen, S, -np.inf))
    diagonal = np.diagonal(A, axis1=1, axis2=2)
    sign, logarithm = np.linalg.slogdet(A)
    by_hand = np.log(np.maximum(diagonal, 1e-300)).sum(axis=1)
    # Elimination with exchanged rows spoils the small entries of the diagonal most.
    allowed = rounding(40 * n, 1 + np.abs(by_hand), 1 / np.maximum(diagonal.min(axis=1), 1e-15))
    return true((sign > 0) & (diagonal > 0).all(axis=1)) & equal(np.maximum(logarithm, -1e300), by_hand, allowed)


@attack(
    "5.5.2/causal",
    on=instances.square_matrices.such_that(moderate(10)),
    wrong={"a token does not see itself": lambda S: causal_determinant(S, 1)},
)
def causal_attention_is_invertible(S):
    return causal_determinant(S, 0)


no_attack(
    "effective_rank/energy-share",
    because="measured: It compares the trained heads that the book ships with permutations of the same weights.",
)
