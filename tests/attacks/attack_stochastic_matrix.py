"""Attacks on what the chapter on row-stochastic matrices says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, less, no_attack, rounding, true
from instances import Array, moderate, softmax


def norm(A: Array) -> Array:
    """The 2-norm of each matrix of a batch; 0 for a matrix without entries."""
    return np.linalg.norm(A, 2, axis=(1, 2)) if A.shape[1] else np.zeros(len(A))


# Positive, or not ---------------------------------------------------------------------------------------------------


def at_least_by_size(S, factor):
    """a_ij >= exp(-factor B) / n, with B the size of the largest score."""
    B, A = np.abs(S).max(axis=(1, 2)), softmax(S)
    return at_most(np.exp(-factor * B) / S.shape[2], A, rounding(4 * S.shape[2], A, 1 + B[:, None, None]))


@attack(
    "5.5/non-negative",
    "5.5.1/positive",
    on=instances.score_matrices.such_that(moderate(300)),
    wrong={"one B is forgotten": lambda S: at_least_by_size(S, 1)},
)
def weights_are_positive(S):
    return less(0.0, softmax(S)) & at_least_by_size(S, 2)


@attack(
    "5.5/non-negative",
    on=instances.masked_scores,
    wrong={"positive under a mask as well": lambda mask, S: less(0.0, softmax(np.where(mask, S, -np.inf)))},
)
def masks_make_zeros(mask, S):
    A = softmax(np.where(mask, S, -np.inf))
    return true((A >= 0) & (mask | (A == 0))) & equal(A.sum(axis=2), 1, rounding(2 * S.shape[2], 1))


# The norm -----------------------------------------------------------------------------------------------------------


def norm_and_columns(A, lower=lambda c: 1 + c.var(axis=1), upper=lambda c: c.max(axis=1)):
    squared, c = norm(A) ** 2, A.sum(axis=1)
    slack = rounding(20 * A.shape[1], squared)
    return at_most(lower(c), squared, slack) & at_most(squared, upper(c), slack) & at_most(upper(c), A.shape[1], slack)


def bessel(c):
    return 1 + c.var(axis=1) * c.shape[1] / max(c.shape[1] - 1, 1)


@attack(
    "theorem-norm-row-stochastic",
    "5.5.1/norm",
    on=instances.row_stochastic,
    wrong={
        "the norm is at most 1": lambda A: norm_and_columns(A, upper=lambda c: np.ones(len(c))),
        "the variance with n - 1": lambda A: norm_and_columns(A, lower=bessel),
        "twice the variance": lambda A: norm_and_columns(A, lower=lambda c: 1 + 2 * c.var(axis=1)),
        "row sums are not needed": (norm_and_columns, instances.square_matrices.map("A", np.abs)),
    },
)
def the_norm_lies_between(A):
    return norm_and_columns(A)


doubly_or_clearly_not = instances.row_stochastic.such_that(
    lambda A: (np.abs(A.sum(axis=1) - 1).max(axis=1) < 1e-13) | (A.sum(axis=1).var(axis=1) > 1e-9)
)


@attack(
    "theorem-norm-row-stochastic",
    "5.5.1/norm",
    on=doubly_or_clearly_not,
    wrong={
        "for permutations only": lambda A: exactly_if(norm(A) < 1 + 1e-11, ((A < 1e-9) | (A > 1 - 1e-9)).all((1, 2))),
        "for symmetric matrices": lambda A: exactly_if(
            norm(A) < 1 + 1e-11, np.abs(A - A.swapaxes(1, 2)).max((1, 2)) < 1e-11
        ),
    },
)
def the_norm_is_1_exactly_if_doubly_stochastic(A):
    return exactly_if(norm(A) < 1 + 1e-11, np.abs(A.sum(axis=1) - 1).max(axis=1) < 1e-12)


@attack(
    "theorem-norm-row-stochastic",
    on=instances.row_stochastic.such_that(lambda A: (A.min(axis=(1, 2)) > 1e-6) & (A.shape[1] > 1)),
    wrong={
        "without positivity": instances.row_stochastic,
        "below the root of n - 1": lambda A: less(norm(A), np.full(len(A), np.sqrt(A.shape[1] - 1))),
    },
)
def a_positive_matrix_stays_below_the_root_of_n(A):
    return less(norm(A) + rounding(20 * A.shape[1], 2), np.sqrt(A.shape[1]) + np.zeros(len(A)))


near_one_column = instances.row_stochastic.also(epsilon=lambda rng, A: 10.0 ** rng.uniform(-12, -1, len(A))).map(
    "A epsilon", lambda A, e: ((1 - e[:, None, None]) * np.eye(A.shape[1])[0] + e[:, None, None] * A, e)
)


def close_to_root_n(A, epsilon, factor):
    n = A.shape[1]
    return at_most(np.sqrt(n) * (1 - factor * epsilon), norm(A), rounding(20 * n, np.sqrt(n)))


@attack(
    "5.5.1/norm",
    "exercise-stochastic_matrix-largest-norm",
    on=near_one_column,
    wrong={
        "closer than the rows are": lambda A, epsilon: close_to_root_n(A, epsilon, 0.1),
        "rows that are one-hot, but not the same": lambda A, epsilon: close_to_root_n(
            np.eye(A.shape[1]) + 0 * A, epsilon, 1
        ),
    },
)
def equal_one_hot_rows_come_close_to_the_root_of_n(A, epsilon):
    return close_to_root_n(A, epsilon, 1)


def equal_rows(A: Array) -> Array:
    """The first row of A in every row."""
    return np.broadcast_to(A[:, :1], A.shape).copy()


def attains(A, bound):
    return equal(norm(A) ** 2, bound(A.sum(axis=1)), rounding(20 * A.shape[1], norm(A) ** 2))


@attack(
    "theorem-norm-row-stochastic",
    on=instances.row_stochastic.map("A", equal_rows),
    wrong={
        "any rows": instances.row_stochastic,
        "the upper bound": lambda A: attains(A, lambda c: c.max(axis=1)),
    },
)
def equal_rows_attain_the_lower_bound(A):
    return attains(A, lambda c: 1 + c.var(axis=1))


one_hot = instances.maps.map("A", lambda f: np.eye(f.shape[1])[f])


@attack(
    "theorem-norm-row-stochastic",
    on=one_hot,
    wrong={
        "any rows": instances.row_stochastic,
        "the lower bound": lambda A: attains(A, lambda c: 1 + c.var(axis=1)),
    },
)
def one_hot_rows_attain_the_upper_bound(A):
    return attains(A, lambda c: c.max(axis=1))


def one_column(A: Array) -> Array:
    """Whether all rows are the same one-hot row."""
    return A.sum(axis=1).max(axis=1) > A.shape[1] - 1e-9


near_or_far = one_hot | instances.row_stochastic.such_that(
    lambda A: one_column(A) | (A.shape[1] > A.sum(1).max(1) + 0.01)
)


@attack(
    "theorem-norm-row-stochastic",
    "5.5.1/norm",
    on=near_or_far,
    wrong={
        "exactly if all rows are equal": lambda A: exactly_if(reaches_root(A), np.ptp(A, axis=1).max(axis=1) < 1e-9)
    },
)
def the_root_of_n_needs_one_column(A):
    return exactly_if(reaches_root(A), one_column(A))


def reaches_root(A: Array) -> Array:
    return norm(A) ** 2 > A.shape[1] - 1e-6


def two_positions_of(p: Array, q: Array) -> Array:
    return np.stack([np.stack([1 - p, p], axis=1), np.stack([q, 1 - q], axis=1)], axis=1)


def doubly_if_symmetric(A):
    return exactly_if(np.ptp(A.sum(axis=1), axis=1) < 1e-9, np.abs(A - A.swapaxes(1, 2)).max(axis=(1, 2)) < 1e-9)


half = instances.numbers(p=(0.01, 1), q=(0.01, 1)).map(
    "A", lambda p, q: two_positions_of(p, np.where(np.arange(len(p)) % 2 == 0, p, q))
)


@attack(
    "exercise-stochastic_matrix-two-positions",
    on=half.such_that(lambda A: (A[:, 0, 1] == A[:, 1, 0]) | (np.abs(A[:, 0, 1] - A[:, 1, 0]) > 1e-6)),
    wrong={"for more positions": doubly_or_clearly_not},
)
def two_doubly_stochastic_positions_are_symmetric(A):
    return doubly_if_symmetric(A)


no_attack(
    "stochastic_matrix/trained-norms",
    because="measured: The norms of the trained heads that the book ships are compared with those of shuffled rows.",
)
