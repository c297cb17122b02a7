"""Attacks on what the chapter on rank says itself."""

from __future__ import annotations

import math

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, rounding, true
from instances import Array, moderate, softmax


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


def all_rows_differ(X: Array) -> Array:
    return np.array([len({tuple(row) for row in matrix}) == len(matrix) for matrix in X.tolist()])


def clear_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers with a density whose modulus is at least a half, so that determinants stay clear of rounding."""
    return (0.5 + np.abs(rng.normal(size=shape))) * rng.choice([-1.0, 1.0], size=shape)


def points(rng: np.random.Generator, count: int, n: int, d: int) -> Array:
    """Rows on multiples of a half: distinct in some draws and not in others."""
    return rng.integers(-2, 3, size=(count, n, d)) / 2


WIDTHS = [(n, d_k) for n in (1, 2, 3) for d_k in (1, 2, 3)]
queries_with_density = instances.kind(
    "Q K",
    lambda: (
        (f"keys on a line, n = {n}", (np.eye(n, d), np.outer(np.arange(n) / 2, np.eye(d)[0]))) for n, d in [(2, 2)]
    ),
    lambda rng, count, shape: (clear_normal(rng, (count, *shape)), points(rng, count, *shape)),
    WIDTHS,
)
projected_inputs = instances.kind(
    "X W_Q W_K",
    lambda: ((f"tokens 1 ... {n}", (np.arange(1.0, n + 1)[:, None] / 2, np.eye(1), np.eye(1))) for n in (1, 2, 3)),
    lambda rng, count, shape: (
        points(rng, count, shape[0], shape[1]),
        *(clear_normal(rng, (count, shape[1], shape[2])) for _ in range(2)),
    ),
    [(n, d, d_k) for n in (1, 2, 3) for d in (1, 2) for d_k in (1, 3)],
)


def full_rank(Q: Array, K: Array) -> Array:
    """Whether the exponentials of the scaled scores are clearly invertible."""
    S = Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2])
    E = np.exp(S - S.max(axis=2, keepdims=True))
    E = E / np.linalg.norm(E, axis=2, keepdims=True)
    return np.abs(np.linalg.det(E)) > rounding(50 * Q.shape[1] ** 3, np.ones(len(Q)))


@attack(
    "theorem-generic-full-rank",
    on=queries_with_density,
    wrong={
        "equal keys do no harm": lambda Q, K: true(full_rank(Q, K)),
        "at most as many tokens as dimensions": lambda Q, K: exactly_if(
            full_rank(Q, K), all_rows_differ(K) & (Q.shape[1] <= Q.shape[2])
        ),
    },
)
def distinct_keys_and_almost_every_query(Q, K):
    return exactly_if(full_rank(Q, K), all_rows_differ(K))


@attack(
    "theorem-generic-full-rank",
    "5.5.2/rank-bound",
    on=projected_inputs,
    wrong={
        "equal rows do no harm": lambda X, W_Q, W_K: true(full_rank(X @ W_Q, X @ W_K)),
        "independent rows are needed": lambda X, W_Q, W_K: exactly_if(
            full_rank(X @ W_Q, X @ W_K), np.linalg.matrix_rank(X) == X.shape[1]
        ),
    },
)
def distinct_rows_and_almost_all_projections(X, W_Q, W_K):
    return exactly_if(full_rank(X @ W_Q, X @ W_K), all_rows_differ(X))


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


# A bound with a tolerance -------------------------------------------------------------------------------------------


def below_taylor(Q, K, monomials=0, power=1):
    """sigma_{r+1}(A) <= e^{2 rho} rho^{p+1} / (p+1)! with r the number of monomials of degree at most p."""
    S = Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2])
    largest = np.abs(S).max(axis=(1, 2))
    S = S * np.minimum(1, 2 / np.where(largest > 0, largest, 1))[:, None, None]
    rho = np.abs(S).max(axis=(1, 2))
    A = softmax(S)
    values, judged = sigma(A), true(np.full(len(A), True))
    for p in range(S.shape[1]):
        r = math.comb(Q.shape[2] + p, p)
        if r < S.shape[1]:
            bound = np.exp(2 * rho) * rho ** (p + power) / math.factorial(p + power)
            judged &= at_most(values[:, r + monomials], bound, slack(A))
    return judged


@attack(
    "theorem-taylor-rank",
    on=instances.queries_and_keys.such_that(
        lambda Q, K: moderate(1e4)(Q, K) & np.full(len(Q), Q.shape[1] == K.shape[1])
    ),
    wrong={
        "one singular value too early": lambda Q, K: below_taylor(Q, K, monomials=-1),
        "one power too many": lambda Q, K: below_taylor(Q, K, power=2),
    },
)
def singular_values_lie_below_the_taylor_bound(Q, K):
    return below_taylor(Q, K)


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
    "theorem-causal-full-rank",
    on=instances.square_matrices.such_that(moderate(10)),
    wrong={"a token does not see itself": lambda S: causal_determinant(S, 1)},
)
def causal_attention_is_invertible(S):
    return causal_determinant(S, 0)
