"""Attacks on what the chapter on the spectrum says itself."""

from __future__ import annotations

import math

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, implies, less, no_attack, rounding, true
from instances import Array, moderate, softmax

from attnmath.mixing import cycle_lengths


def norm(A: Array) -> Array:
    """The 2-norm of each matrix of a batch; 0 for a matrix without entries."""
    return np.linalg.norm(A, 2, axis=(1, 2)) if A.shape[1] else np.zeros(len(A))


def off_constants(A: Array) -> Array:
    """A on the space that is left when constants are removed, shape (batch, n - 1, n - 1): eigenvalues beside the 1.

    Its basis is orthonormal. So computed eigenvalues are those of a matrix within n eps ||A|| of it, and a bound on
    eigenvalues by a norm needs no condition number.
    """
    n = A.shape[1]
    ones = np.ones((n, 1)) / np.sqrt(n)
    U = np.linalg.svd(np.eye(n) - ones @ ones.T)[0][:, : n - 1]
    return U.T @ A @ U


def second(A: Array) -> Array:
    """|lambda_2|; 0 if n = 1."""
    return np.abs(np.linalg.eigvals(off_constants(A))).max(axis=1, initial=0)


def backward(A: Array) -> Array:
    """How far from A is the matrix whose eigenvalues or singular values were computed, in any of the norms."""
    return rounding(20 * A.shape[1] ** 1.5, np.linalg.norm(A, axis=(1, 2)))


def spread(A: Array) -> Array:
    """The largest difference of two entries of a column."""
    return np.ptp(A, axis=1).max(axis=1)


def squared_often(A: Array, times: int) -> Array:
    """A to the power 2^times. Rows are normalised on the way, so that rounding does not drain them."""
    for _ in range(times):
        A = A @ A
        A = A / A.sum(axis=2, keepdims=True)
    return A


def power(A: Array, k: int) -> Array:
    return np.linalg.matrix_power(A, k)


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
    "exercise-spectrum-largest-norm",
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


# Eigenvalues --------------------------------------------------------------------------------------------------------


def bounded_by(A, bound):
    return at_most(np.abs(np.linalg.eigvals(A)), bound, backward(A))


@attack(
    "5.5.6/eigenvalue-bound",
    "5.5.1/eigenvalue-bound",
    "5.5.1/spectral-radius",
    on=instances.row_stochastic,
    wrong={
        "the 2-norm is at most 1 as well": lambda A: at_most(norm(A), 1, backward(A)),
        "the 1-norm is at most 1 as well": lambda A: at_most(A.sum(axis=1), 1, backward(A)),
        "all but one lie below 0.999": lambda A: at_most(second(A), 0.999, backward(A)),
        "rows need not sum to 1": (lambda A: bounded_by(A, 1), instances.square_matrices.map("A", np.abs)),
    },
)
def the_infinity_norm_bounds_the_eigenvalues(A):
    rows = np.abs(A).sum(axis=2).max(axis=1)
    radius = np.abs(np.linalg.eigvals(A)).max(axis=1)
    # From below: 1 is an eigenvalue, so A - I is singular.
    exists = np.linalg.svd(A - np.eye(A.shape[1]), compute_uv=False)[:, -1]
    return (
        equal(rows, 1, rounding(2 * A.shape[1], 1)) & at_most(radius, rows, backward(A)) & equal(exists, 0, backward(A))
    )


def two_eigenvalues(A, other=lambda p, q: 1 - p - q):
    """For n = 2: the vectors (1, 1) and (p, -q) with their eigenvalues; any two vectors if A = I."""
    p, q = A[:, 0, 1], A[:, 1, 0]
    ones = equal(A @ np.ones(2), 1, rounding(4, 1))
    image = np.einsum("bij,bj->bi", A, np.stack([p, -q], axis=1))
    expected = other(p, q)[:, None] * np.stack([p, -q], axis=1)
    # The determinant of both vectors is -(p + q): they are independent unless p = q = 0, and then A = I.
    independent = (p + q > 0) | ((p == 0) & (q == 0))
    return ones & equal(image, expected, rounding(8, 1)) & true(independent)


two_positions = instances.numbers(p=(1e-9, 1), q=(1e-9, 1)).map(
    "A", lambda p, q: np.stack([np.stack([1 - p, p], axis=1), np.stack([q, 1 - q], axis=1)], axis=1)
)


@attack(
    "5.5.1/diagonalisable",
    on=two_positions,
    wrong={"the other eigenvalue is p + q": lambda A: two_eigenvalues(A, lambda p, q: p + q)},
)
def two_positions_have_their_eigenvectors(A):
    return two_eigenvalues(A)


def split_last(w: Array) -> Array:
    """The defective matrix of three positions, whose last position is divided into several with the weights w."""
    defective = np.array([[5, 5, 2], [3, 3, 6], [4, 4, 4]]) / 12
    rows = defective[np.minimum(np.arange(2 + w.shape[1]), 2)]
    share = np.concatenate([np.ones((len(w), 2)), w], axis=1)
    return rows[None, :, np.minimum(np.arange(2 + w.shape[1]), 2)] * share[:, None, :]


def null_space_is_smaller_by(A, missing):
    """A has the eigenvalues 1 and n - 1 times 0, so traces of powers 1; its null space lacks some dimensions."""
    n = A.shape[1]
    traces = np.stack([np.trace(power(A, k), axis1=1, axis2=2) for k in range(1, n + 1)], axis=1)
    singular = np.linalg.svd(A, compute_uv=False)
    nullity = (singular < 1e-12).sum(axis=1)
    return equal(traces, 1, rounding(8 * n * n, 1)) & true(nullity == n - 1 - missing)


@attack(
    "5.5.1/diagonalisable",
    on=instances.probability_rows.such_that(lambda p: p.min(axis=1) > 1e-9).map("A", split_last),
    wrong={"a full set of eigenvectors": lambda A: null_space_is_smaller_by(A, 0)},
)
def from_three_positions_on_eigenvectors_may_lack(A):
    return less(0.0, A) & null_space_is_smaller_by(A, 1)


def around(a, b, c, n):
    """Positions on a circle that stay with weight a, pass on b forwards and c back, shape (batch, n, n)."""
    eye = np.eye(n)
    a, b, c = (weight[:, None, None] / (a + b + c)[:, None, None] for weight in (a, b, c))
    return a * eye + b * np.roll(eye, 1, axis=1) + c * np.roll(eye, -1, axis=1)


def with_imaginary_part(a, b, c, n):
    values = np.linalg.eigvals(around(a, b, c, n))
    return np.abs(values.imag).max(axis=1) > 1e-12


def even_half(a, b, c):
    """In every second instance b and c agree; in the others they differ clearly."""
    return a, b, np.where(np.arange(len(b)) % 2 == 0, b, np.where(np.abs(b - c) < 1e-3 * (a + b + c), 3 * b, c))


circle = instances.numbers(a=(1e-2, 1e2), b=(1e-2, 1e2), c=(1e-2, 1e2)).map("a b c", even_half)
circle = circle.such_that(lambda a, b, c: (b == c) | (np.abs(b - c) > 1e-3 * (a + b + c)))


@attack(
    "eigenvalues/complex-pairs",
    on=circle,
    wrong={
        "exactly if stay and forwards differ": lambda a, b, c: exactly_if(with_imaginary_part(a, b, c, 3), a != b),
        "two positions as well": lambda a, b, c: exactly_if(with_imaginary_part(a, b, c, 2), b != c),
    },
)
def a_circle_has_complex_pairs_exactly_if_its_directions_differ(a, b, c):
    return exactly_if(with_imaginary_part(a, b, c, 3), b != c) & implies(b != c, with_imaginary_part(a, b, c, 5))


# One-hot rows -------------------------------------------------------------------------------------------------------


def one_hot(f: Array) -> Array:
    return np.eye(f.shape[1])[f]


def traces_of_cycles(f, trace=lambda cycles, k: sum(length for length in cycles if k % length == 0)):
    """A polynomial is determined by the power sums of its roots: compare the traces of A^k with those of the cycles."""
    A, n = one_hot(f), f.shape[1]
    lengths = {image: cycle_lengths(image) for image in set(map(tuple, f.tolist()))}
    expected = {image: [trace(cycles, k) for k in range(1, n + 1)] for image, cycles in lengths.items()}
    found = np.stack([np.trace(power(A, k), axis1=1, axis2=2) for k in range(1, n + 1)], axis=1)
    return equal(found, np.array([expected[tuple(image)] for image in f.tolist()]), 0.0)


def all_on_cycles(f):
    lengths = {image: sum(cycle_lengths(image)) for image in set(map(tuple, f.tolist()))}
    return np.array([lengths[tuple(image)] for image in f.tolist()]) == f.shape[1]


@attack(
    "proposition-one-hot-rows",
    "5.5.1/one-hot",
    on=instances.maps,
    wrong={
        "every cycle is a fixed point": lambda f: traces_of_cycles(f, lambda cycles, k: sum(cycles)),
        "a cycle counts once": lambda f: traces_of_cycles(f, lambda cycles, k: sum(k % c == 0 for c in cycles)),
        "only the longest cycle": lambda f: traces_of_cycles(f, lambda cycles, k: cycles[-1] * (k % cycles[-1] == 0)),
        "one-hot rows are a permutation": lambda f: true(one_hot(f).sum(axis=1) == 1),
    },
)
def the_polynomial_of_a_map_is_that_of_its_cycles(f):
    A = one_hot(f)
    permutation = (A.sum(axis=1) == 1).all(axis=1)
    no_repetition = np.diff(np.sort(f, axis=1), axis=1).all(axis=1)
    # The power A^n maps onto the cycles, so every eigenvalue is 0 or has modulus 1: A^(n + 60) = A^n for n <= 6.
    settled, later = power(A, f.shape[1]), power(A, f.shape[1] + 60)
    return (
        traces_of_cycles(f)
        & exactly_if(permutation, all_on_cycles(f))
        & exactly_if(permutation, no_repetition)
        & equal(later, settled, 0.0)
    )


# Powers -------------------------------------------------------------------------------------------------------------

STEPS = (1, 2, 3, 5, 20, 100)


def common_mass(A: Array) -> Array:
    return A.min(axis=1).sum(axis=1)


def rows_agree_after(A, rate):
    """Within each column, the entries of A^k differ by at most rate^k."""
    judged = at_most(spread(A), rate, backward(A))
    for k in STEPS[1:]:
        judged = judged & at_most(spread(power(A, k)), rate**k, rounding(4 * k * A.shape[1], 1))
    return judged


overlapping = instances.row_stochastic.such_that(lambda A: common_mass(A) > 1e-6)


def limit_is_a_distribution(A):
    """Equal rows, fixed by A, and no other distribution is."""
    n, m = A.shape[1], common_mass(A)
    limit = squared_often(A, 40)
    pi = limit[:, 0]
    slack = rounding(200 * n, 1, 1 / np.maximum(m, 1e-6))
    # spread((I - A) x) >= m spread(x), so the second smallest singular value of I - A is at least m / sqrt(2 n).
    free = np.linalg.svd(np.eye(n) - A, compute_uv=False)
    only = at_most(m / np.sqrt(2 * n), free[:, -2], backward(A)) if n > 1 else true(m > 0)
    return (
        at_most(spread(limit), 0.0, slack)
        & equal(np.einsum("bi,bij->bj", pi, A), pi, slack)
        & at_most(A.min(axis=1), pi, slack)
        & only
    )


@attack(
    "theorem-powers-forget",
    "5.5.1/limit",
    on=overlapping,
    wrong={
        "rows need nothing in common": instances.row_stochastic,
        "what is common in place of the rest": lambda A: rows_agree_after(A, common_mass(A)),
        "the rate of the second eigenvalue, without a factor": lambda A: rows_agree_after(A, second(A)),
        "the square of the rate": lambda A: rows_agree_after(A, (1 - common_mass(A)) ** 2),
    },
)
def powers_tend_to_equal_rows(A):
    return rows_agree_after(A, 1 - common_mass(A)) & limit_is_a_distribution(A)


@attack(
    "theorem-powers-forget",
    on=instances.row_stochastic.such_that(lambda A: A.min(axis=(1, 2)) > 1e-6),
    wrong={"common mass is enough for it": overlapping},
)
def the_limit_of_a_positive_matrix_is_positive(A):
    return less(1e-7, squared_often(A, 40)[:, 0])


# A second eigenvalue between 1 - 1e-3 and 1 - 1e-10 needs more steps than 2^20, or cannot be told from 1.
decided = instances.row_stochastic.such_that(lambda A: (second(A) < 1 - 1e-3) | (second(A) > 1 - 1e-10))


@attack(
    "proposition-powers-converge",
    "5.5.1/radius-and-powers",
    on=decided,
    wrong={
        "the spectral radius decides": lambda A: exactly_if(
            spread(squared_often(A, 20)) < 1e-9, np.abs(np.linalg.eigvals(A)).max(axis=1) < 1 + 1e-9
        ),
        "1 is simple": lambda A: exactly_if(
            spread(squared_often(A, 20)) < 1e-9,
            (np.abs(np.linalg.eigvals(off_constants(A)) - 1) > 1e-10).all(axis=1),
        ),
        "the matrix is positive": lambda A: exactly_if(spread(squared_often(A, 20)) < 1e-9, (A > 0).all(axis=(1, 2))),
    },
)
def powers_converge_exactly_if_the_second_eigenvalue_is_below_1(A):
    return exactly_if(spread(squared_often(A, 20)) < 1e-9, second(A) < 1 - 1e-3)


def departure(B: Array) -> Array:
    """The norm of the strictly triangular part of the Schur form, not less than it is."""
    squares = (np.abs(np.linalg.eigvals(B)) ** 2).sum(axis=1)
    size = np.linalg.norm(B, axis=(1, 2)) ** 2
    return np.sqrt(np.maximum(size - squares, 0) + rounding(40 * (1 + B.shape[1]) ** 2, 1 + size))


def rate_between(A, rate, factors=True):
    """rate^k <= |A^k - limit| <= a polynomial in k times rate^k, the norms taken where constants are removed."""
    B, r = off_constants(A), rate(A)
    N, judged = departure(B), true(np.full(len(A), True))
    for k in STEPS:
        left, slack = norm(power(B, k)), rounding(200 * k * A.shape[1] ** 2, 1)
        ways = range(min(k, A.shape[1] - 2) + 1) if factors else range(1)
        right = sum((math.comb(k, j) * r ** (k - j) * N**j for j in ways), np.zeros(len(A)))
        judged = judged & at_most(r**k, left, slack) & at_most(left, right, slack)
    return judged


def second_singular(A):
    return norm(off_constants(A))


@attack(
    "proposition-powers-converge",
    "5.5.1/radius-and-powers",
    on=instances.row_stochastic,
    wrong={
        "the second singular value": lambda A: rate_between(A, second_singular),
        "Dobrushin's coefficient": lambda A: rate_between(A, tau),
        "no polynomial factor": lambda A: rate_between(A, second, factors=False),
    },
)
def the_rate_is_the_second_eigenvalue(A):
    return rate_between(A, second)


# The limit is trusted where it exists clearly; the bound is about diagonalisable matrices.
with_limit = instances.row_stochastic.such_that(lambda A: (second(A) < 0.999) & (A.shape[1] > 1))


def vectors_and_condition(A: Array) -> Array:
    """The condition number of the eigenvectors; infinite where they are dependent."""
    vectors = np.linalg.eig(A)[1]
    singular = np.linalg.svd(vectors, compute_uv=False)
    return singular[:, 0] / np.maximum(singular[:, -1], 1e-300)


diagonalisable = with_limit.such_that(lambda A: vectors_and_condition(A) < 1e4)


def band(A, width):
    limit, kappa, lam = squared_often(A, 20), vectors_and_condition(A), second(A)
    judged = true(np.full(len(A), True))
    for k in STEPS:
        # The eigenvalue itself is known to n eps times kappa, and its power to k times that.
        left, slack = np.linalg.norm(power(A, k) - limit, axis=(1, 2)), rounding(500 * k * A.shape[1] ** 2, kappa)
        judged = judged & at_most(lam**k, left, slack) & at_most(left, width(kappa, A.shape[1]) * lam**k, slack)
    return judged


@attack(
    "powers/rate",
    on=diagonalisable,
    wrong={
        "without the condition number": lambda A: band(A, lambda kappa, n: np.ones_like(kappa)),
        "the inverse of the condition number": lambda A: band(A, lambda kappa, n: np.sqrt(n) / kappa),
    },
)
def the_distance_runs_in_a_band(A):
    return band(A, lambda kappa, n: kappa * np.sqrt(n))


# How fast -----------------------------------------------------------------------------------------------------------


def tau(A: Array) -> Array:
    """Dobrushin's coefficient by its definition: half the largest l1 distance of two rows."""
    return np.abs(A[:, :, None] - A[:, None]).sum(axis=3).max(axis=(1, 2)) / 2


def smallest_overlap(A: Array) -> Array:
    return np.minimum(A[:, :, None], A[:, None]).sum(axis=3).min(axis=(1, 2))


@attack(
    "powers/contraction",
    on=instances.row_stochastic,
    wrong={
        "the second singular value instead": lambda A: at_most(second_singular(A), tau(A), backward(A)),
        "half the coefficient": lambda A: at_most(second(A), tau(A) / 2, backward(A)),
        "the bounds in the other order": lambda A: at_most(1 - common_mass(A), tau(A), backward(A)),
        "the distance without its half": lambda A: equal(2 * tau(A), 1 - smallest_overlap(A), backward(A)),
    },
)
def three_numbers_in_order(A):
    return (
        equal(tau(A), 1 - smallest_overlap(A), backward(A))
        & at_most(second(A), tau(A), backward(A))
        & at_most(tau(A), 1 - common_mass(A), backward(A))
    )


@attack(
    "5.5.1/homogenise",
    "exercise-spectrum-dobrushin",
    on=instances.stochastic_pairs,
    wrong={
        "with equality": lambda A, B: equal(tau(A @ B), tau(A) * tau(B), backward(A)),
        "the square of both": lambda A, B: at_most(tau(A @ B), (tau(A) * tau(B)) ** 2, backward(A)),
        "the second eigenvalues multiply": lambda A, B: at_most(second(A @ B), second(A) * second(B), backward(A)),
    },
)
def layers_contract_by_the_product_of_their_factors(A, B):
    two = A.shape[1] <= 2
    exact = equal(tau(A @ B), tau(A) * tau(B), backward(A)) if two else true(np.full(len(A), True))
    return at_most(tau(A @ B), tau(A) * tau(B), backward(A)) & exact


@attack(
    "5.5.1/homogenise",
    on=instances.symmetric_matrices.map("S", lambda S: S) | instances.square_matrices.map("S", lambda M: M),
    wrong={
        "one B is forgotten": lambda S: at_most(tau(softmax(S)), -np.expm1(-size_of(S)), backward(softmax(S))),
        "a bound without the scores": lambda S: at_most(tau(softmax(S)), 1 - np.exp(-2.0), backward(softmax(S))),
    },
)
def bounded_scores_bound_the_factor(S):
    A = softmax(S)
    return at_most(tau(A), -np.expm1(-2 * size_of(S)), backward(A) * 9)


def size_of(S: Array) -> Array:
    return np.abs(S).max(axis=(1, 2))


@attack(
    "5.5.1/homogenise",
    on=instances.vectors.also(layers=lambda rng, x: rng.integers(1, 30, size=len(x))),
    wrong={"without the residual connection": lambda x, layers: keeps_differences(x, layers, residual=0.0)},
)
def a_residual_connection_can_keep_positions_apart(x, layers):
    return keeps_differences(x, layers)


def keeps_differences(x, layers, residual=1.0):
    y = x
    for layer in range(30):
        after = residual * y - y.mean(axis=1, keepdims=True)
        y = np.where((layer < layers)[:, None], after, y)
    return equal(y - y[:, :1], x - x[:, :1], rounding(400, np.abs(x).max(axis=1)))


EXCHANGES = 400
DIFFERENCES = np.array([1.0, -1.0]) + np.zeros((EXCHANGES + 1, 2))
for _l in range(1, EXCHANGES + 1):
    _p = 1 / (2 * (_l + 1) ** 2)
    DIFFERENCES[_l] = np.array([[1 - _p, _p], [_p, 1 - _p]]) @ DIFFERENCES[_l - 1]


def difference_left(L, formula):
    return equal((DIFFERENCES[L, 0] - DIFFERENCES[L, 1]) / 2, formula(L), rounding(4 * L, 1))


@attack(
    "powers/vanishing-exchange",
    on=instances.integers(L=(1, EXCHANGES)),
    wrong={
        "counted from layer 0": lambda L: difference_left(L, lambda L: (L + 1) / (2 * L)),
        "half from the start": lambda L: difference_left(L, lambda L: 0.5 + 0 * L),
    },
)
def half_of_the_difference_survives(L):
    return difference_left(L, lambda L: (L + 2) / (2 * (L + 1))) & less(0.5, DIFFERENCES[L, 0])


# Causal powers ------------------------------------------------------------------------------------------------------


def largest_other(A: Array) -> Array:
    """The largest diagonal entry but the first."""
    return np.diagonal(A, axis1=1, axis2=2)[:, 1:].max(axis=1, initial=0)


def causal_rate(A, rate, factors=True):
    """|A^k - 1 e_1'| between rate^k and its product with a polynomial of degree n - 2."""
    n, r, judged = A.shape[1], rate(A), true(np.full(len(A), True))
    for k in STEPS:
        distance = power(A, k)[:, :, 1:].sum(axis=2).max(axis=1)
        ways = range(min(k, n - 2) + 1) if factors else range(1)
        right = sum((math.comb(k, j) * r ** (k - j) for j in ways), np.zeros(len(A)))
        slack = rounding(8 * k * n, 1)
        judged = judged & at_most(r**k if n > 1 else 0 * r, distance, slack) & at_most(distance, right, slack)
    return judged


causal_clear = instances.causal_stochastic.such_that(lambda A: largest_other(A) < 0.999)


def first_takes_all(A):
    return equal(squared_often(A, 20), np.eye(A.shape[1])[None, :1], rounding(200 * A.shape[1], 1, 1e3))


@attack(
    "proposition-causal-powers",
    on=causal_clear,
    wrong={
        "the smallest diagonal entry": lambda A: causal_rate(A, lambda A: np.diagonal(A, 0, 1, 2).min(axis=1)),
        "no polynomial factor": lambda A: causal_rate(A, largest_other, factors=False),
        "not triangular": overlapping,
        "another position that sees itself only": lambda A: first_takes_all(
            np.concatenate([A[:, :-1], np.eye(A.shape[1])[-1] + 0 * A[:, -1:]], axis=1)
        ),
    },
)
def causal_powers_end_at_the_first(A):
    return causal_rate(A, largest_other) & first_takes_all(A)


causal_scores = instances.square_matrices.such_that(moderate(4)).map(
    "S", lambda M: np.where(np.tril(np.ones(M.shape[1:])) > 0, M, -np.inf)
)


@attack(
    "powers/causal-limit",
    on=causal_scores,
    wrong={
        "uniform over the past": lambda S: equal(squared_often(softmax(S), 20)[:, -1], 1 / S.shape[1], 1e-3),
        "without the mask": (lambda S: first_takes_all(softmax(S)), instances.square_matrices.such_that(moderate(4))),
    },
)
def a_causal_softmax_ends_at_the_first(S):
    return first_takes_all(softmax(S))


# Scores as a bilinear form ------------------------------------------------------------------------------------------


def times(*factors: Array) -> tuple[Array, Array]:
    """A product of matrices, and the sums of the sizes of its terms."""
    value, size = factors[0], np.abs(factors[0])
    for factor in factors[1:]:
        value, size = value @ factor, size @ np.abs(factor)
    return value, size


def T(A: Array) -> Array:
    return A.swapaxes(1, 2)


def same(one: tuple[Array, Array], other: tuple[Array, Array]):
    (x, size), (y, other_size) = one, other
    return equal(x, y, rounding(200, size + other_size))


law = instances.random_vectors.also(
    W_Q=lambda rng, x, p: instances.entries(rng, len(x), (x.shape[2], 2)),
    W_K=lambda rng, x, p, W_Q: instances.entries(rng, len(x), (x.shape[2], 3)),
)


def covariance_is(x, p, W_Q, W_K, formula):
    """Cov(q, k) with q = x W_Q and k = x W_K for a law with finitely many atoms, so that it is exact."""
    q, k = x @ W_Q, x @ W_K
    expected = formula(instances.covariance(p, x, x))
    total = np.abs(x).sum(axis=1)
    size = np.einsum("bd,bde,bf,bfg->beg", total, np.abs(W_Q), total, np.abs(W_K), optimize=True)
    return equal(instances.covariance(p, q, k), expected, rounding(100, size))


@attack(
    "5.5.1/cross-covariance",
    on=law,
    wrong={
        "it is M, without the data": lambda x, p, W_Q, W_K: covariance_is(x, p, W_Q, W_K, lambda C: T(W_Q) @ W_K),
        "without subtracting means": lambda x, p, W_Q, W_K: covariance_is(
            x, p, W_Q, W_K, lambda C: T(W_Q) @ np.einsum("ba,bad,bae->bde", p, x, x) @ W_K
        ),
    },
)
def cross_covariance_of_query_and_key(x, p, W_Q, W_K):
    found = covariance_is(x, p, W_Q, W_K, lambda C: T(W_Q) @ C @ W_K)
    return found & true(np.full(len(x), instances.covariance(p, x @ W_Q, x @ W_K).shape[1:] == (2, 3)))


projections = instances.inputs.map("X W_Q W_K", lambda X, W_Q, W_K, W_V: (X, W_Q, W_K))


@attack(
    "5.5.1/map",
    "5.5.1/bilinear",
    on=projections,
    wrong={
        "M in place of its transpose": lambda X, W_Q, W_K: same(
            times(X, W_Q, T(W_K), T(X)), T2(times(X, W_Q, T(W_K), T(X)))
        ),
        "the plain dot product of the inputs": lambda X, W_Q, W_K: same(times(X, W_Q, T(W_K), T(X)), times(X, T(X))),
    },
)
def the_form_acts_on_the_inputs(X, W_Q, W_K):
    queries, keys = times(X, W_Q), times(X, W_K)
    M = W_Q @ T(W_K)
    looked_for = T(T(M) @ T(X))  # row i is M' x_i
    size = times(X, W_Q, T(W_K), T(X))[1]
    scores = queries[0] @ T(keys[0])
    return (
        equal(scores, looked_for @ T(X), rounding(200, size))
        & equal(scores, X @ M @ T(X), rounding(200, size))
        & true(np.full(len(X), M.shape[1:] == (X.shape[2], X.shape[2])))
    )


def T2(pair: tuple[Array, Array]) -> tuple[Array, Array]:
    return T(pair[0]), T(pair[1])


def symmetric_or_clearly_not(M: Array) -> Array:
    off = np.abs(M - T(M)).max(axis=(1, 2))
    return (off <= 1e-13 * size_of(M)) | (off > 1e-6 * size_of(M))


def symmetric(M: Array) -> Array:
    return np.abs(M - T(M)).max(axis=(1, 2)) <= 1e-9 * size_of(M)


half_symmetric = instances.square_matrices | instances.symmetric_matrices.map("M", lambda S: S)
forms = half_symmetric.such_that(symmetric_or_clearly_not).also(
    X=lambda rng, M: np.concatenate([np.eye(M.shape[1]) + 0 * M, rng.normal(size=M.shape)], axis=1)
)


def exchange(M, X, weights=lambda M: M):
    """Whether the form gives the same when its arguments are exchanged, for unit vectors and others."""
    form = X @ weights(M) @ T(X)
    return np.abs(form - T(form)).max(axis=(1, 2)) <= 1e-8 * size_of(M)


@attack(
    "5.5.1/inner-product",
    on=forms,
    wrong={
        "always": lambda M, X: true(exchange(M, X)),
        "exactly if it is diagonal": lambda M, X: exactly_if(
            exchange(M, X), np.abs(M * (1 - np.eye(M.shape[1]))).max((1, 2)) <= 1e-9 * size_of(M)
        ),
    },
)
def the_form_is_symmetric_exactly_if_its_matrix_is(M, X):
    return exactly_if(exchange(M, X), symmetric(M))


def some_vector_has_no_positive_square(W_Q, W_K):
    """The direction that W_K loses has x M x = 0, so that the form is not positive definite."""
    lost = np.linalg.svd(W_K)[0][:, :, -1]
    square = np.einsum("bd,bde,bfe,bf->b", lost, W_Q, W_K, lost, optimize=True)
    size = np.linalg.norm(W_Q, axis=(1, 2)) * np.linalg.norm(W_K, axis=(1, 2))
    return at_most(square, 0.0, rounding(100, size))


weights = projections.map("W_Q W_K", lambda X, W_Q, W_K: (W_Q, W_K))


@attack(
    "5.5.1/inner-product",
    on=weights.such_that(lambda W_Q, W_K: np.full(len(W_Q), W_Q.shape[2] < W_Q.shape[1])),
    wrong={"wide heads as well": weights.such_that(lambda W_Q, W_K: np.full(len(W_Q), W_Q.shape[2] >= W_Q.shape[1]))},
)
def a_narrow_head_has_no_inner_product(W_Q, W_K):
    return some_vector_has_no_positive_square(W_Q, W_K)


biased = projections.such_that(moderate(10)).also(
    b_Q=lambda rng, X, W_Q, W_K: rng.normal(size=(len(X), 1, W_Q.shape[2])),
    b_K=lambda rng, X, W_Q, W_K, b_Q: rng.normal(size=(len(X), 1, W_Q.shape[2])),
)


def weights_with_biases(X, W_Q, W_K, b_Q, b_K, seen):
    d_k = W_Q.shape[2]
    full, size = times(X @ W_Q + b_Q, T(X @ W_K + b_K))
    size = np.abs(full) + times(np.abs(X) @ np.abs(W_Q) + np.abs(b_Q), T(np.abs(X) @ np.abs(W_K) + np.abs(b_K)))[1]
    part = X @ W_Q @ T(X @ W_K) + seen
    slack = rounding(200, 1 + size.max(axis=(1, 2)))
    return equal(softmax(full / np.sqrt(d_k)), softmax(part / np.sqrt(d_k)), slack)


@attack(
    "gram_and_kernel/biases",
    on=biased,
    wrong={
        "the softmax sees none of them": lambda X, W_Q, W_K, b_Q, b_K: weights_with_biases(X, W_Q, W_K, b_Q, b_K, 0.0),
        "it sees the bias of the keys": lambda X, W_Q, W_K, b_Q, b_K: weights_with_biases(
            X, W_Q, W_K, b_Q, b_K, X @ W_Q @ T(b_K)
        ),
        "the query's bias meets the query's projection": lambda X, W_Q, W_K, b_Q, b_K: weights_with_biases(
            X, W_Q, W_K, b_Q, b_K, b_Q @ T(X @ W_Q)
        ),
    },
)
def the_softmax_sees_one_of_three_terms(X, W_Q, W_K, b_Q, b_K):
    return weights_with_biases(X, W_Q, W_K, b_Q, b_K, b_Q @ T(X @ W_K))


# Weights as a kernel ------------------------------------------------------------------------------------------------


def normalised(S, kernel=np.exp, axis=2, first=np.exp):
    K = kernel(S)
    slack = rounding(20 * S.shape[2], 1, 1 + size_of(S))
    return equal(softmax(S), K / K.sum(axis=axis, keepdims=True), slack)


@attack(
    "5.5.1/kernel",
    on=instances.score_matrices.such_that(moderate(300)),
    wrong={
        "a softmax of the kernel": lambda S: equal(softmax(S), softmax(np.exp(S)), rounding(20 * S.shape[2], 1, 301)),
        "columns are normalised": lambda S: normalised(S, axis=1),
    },
)
def weights_are_the_kernel_with_normalised_rows(S):
    return normalised(S)


def circulants(M: Array) -> Array:
    """Symmetric circulant matrices from the first rows: all row sums agree."""
    n = M.shape[1]
    row = M[:, 0] + np.roll(M[:, 0, ::-1], 1, axis=1)
    return np.stack([np.roll(row, i, axis=1) for i in range(n)], axis=1) / 2


def denominators_clear(S: Array) -> Array:
    D = np.exp(S).sum(axis=2)
    apart = np.ptp(D, axis=1) / D.max(axis=1)
    return (apart < 1e-14 * S.shape[1]) | (apart > 1e-6)


small = moderate(5)
symmetric_scores = (instances.symmetric_matrices | instances.square_matrices.map("S", circulants)).such_that(small)


@attack(
    "gram_and_kernel/symmetric-scores",
    on=symmetric_scores.such_that(denominators_clear),
    wrong={
        "always": lambda S: true(symmetric(softmax(S))),
        "exactly if the diagonal is constant": lambda S: exactly_if(
            symmetric(softmax(S)), np.ptp(np.diagonal(S, 0, 1, 2), axis=1) < 1e-9
        ),
        "for any scores": (
            lambda S: exactly_if(symmetric(softmax(S)), equal_denominators(S)),
            (instances.square_matrices.map("S", lambda M: M).such_that(small)),
        ),
    },
)
def weights_are_symmetric_exactly_if_denominators_agree(S):
    return exactly_if(symmetric(softmax(S)), equal_denominators(S))


def equal_denominators(S: Array) -> Array:
    D = np.exp(S).sum(axis=2)
    return np.ptp(D, axis=1) <= 1e-10 * D.max(axis=1)


def kernel(X: Array, M: Array) -> Array:
    return np.exp(X @ M @ T(X) / np.sqrt(M.shape[1]))


tame_forms = half_symmetric.such_that(lambda M: symmetric_or_clearly_not(M) & (size_of(M) > 0)).map(
    "M", lambda M: M / size_of(M)[:, None, None]
)


@attack(
    "gram_and_kernel/kernel-symmetric",
    on=tame_forms.also(X=lambda rng, M: np.concatenate([np.eye(M.shape[1]) + 0 * M, rng.normal(size=M.shape)], axis=1)),
    wrong={
        "always": lambda M, X: true(symmetric(kernel(X, M))),
        "on one pair of equal inputs": lambda M, X: exactly_if(symmetric(kernel(X[:, :1], M)), symmetric(M)),
    },
)
def the_kernel_is_symmetric_exactly_if_the_form_is(M, X):
    logs = np.log(kernel(X, M))
    return exactly_if(np.abs(logs - T(logs)).max(axis=(1, 2)) < 1e-8, symmetric(M))


def clear_sign(S: Array) -> Array:
    """The smallest eigenvalue is rounding or positive, or clearly negative, for matrices of norm 1."""
    low = np.linalg.eigvalsh(S)[:, 0]
    return (low > -1e-13) | (low < -1e-3)


def unit_norm(S: Array) -> Array:
    return S / norm(S)[:, None, None]


psd = instances.square_matrices.such_that(lambda M: norm(M) > 0).map("S", lambda M: M @ T(M))
any_sign = instances.symmetric_matrices | psd
signed = any_sign.such_that(lambda S: norm(S) > 0).map("S", unit_norm).such_that(clear_sign)
points = signed.also(X=lambda rng, S: rng.uniform(-2, 2, size=(len(S), 4, S.shape[1])))


def smallest_of_kernel(S, X):
    """The smallest eigenvalue of the kernel matrix of X, and of the pair u and -u along the lowest direction of M."""
    u = np.linalg.eigh(S)[1][:, :, 0]
    pair = np.stack([u, -u], axis=1)
    return np.minimum(*(np.linalg.eigvalsh(kernel(points, S))[:, 0] for points in (X, pair)))


def is_psd(S):
    return np.linalg.eigvalsh(S)[:, 0] > -1e-9


@attack(
    "proposition-kernel-psd",
    "gram_and_kernel/kernel-psd",
    on=points,
    wrong={
        "every symmetric form": lambda S, X: true(smallest_of_kernel(S, X) > -1e-9),
        "exactly if the entries are not negative": lambda S, X: exactly_if(
            smallest_of_kernel(S, X) > -1e-9, (S >= 0).all(axis=(1, 2))
        ),
        "exactly if the trace is not negative": lambda S, X: exactly_if(
            smallest_of_kernel(S, X) > -1e-9, np.trace(S, axis1=1, axis2=2) >= 0
        ),
    },
)
def the_kernel_is_semidefinite_exactly_if_the_form_is(S, X):
    return exactly_if(smallest_of_kernel(S, X) > -1e-9, is_psd(S))


def stationary_is(S, D):
    A = softmax(S)
    pi = D / D.sum(axis=1, keepdims=True)
    return equal(np.einsum("bi,bij->bj", pi, A), pi, rounding(40 * S.shape[1], 1, 1 + size_of(S)))


def eigenvalues_are_real(A, D):
    """D^(1/2) A D^(-1/2) is symmetric, so the eigenvectors of A have at most the condition (max D / min D)^(1/2)."""
    return equal(np.linalg.eigvals(A).imag, 0.0, backward(A) * np.sqrt(D.max(axis=1) / D.min(axis=1)))


def row_sums(S):
    return np.exp(S).sum(axis=2)


@attack(
    "gram_and_kernel/reversible",
    on=instances.symmetric_matrices.such_that(moderate(20)),
    wrong={
        "the stationary distribution is uniform": lambda S: stationary_is(S, np.ones(S.shape[:2])),
        "proportional to the inverse of the denominators": lambda S: stationary_is(S, 1 / row_sums(S)),
        "scores need not be symmetric": instances.square_matrices.map("S", lambda M: M).such_that(moderate(20)),
    },
)
def symmetric_scores_are_reversible(S):
    A, D = softmax(S), row_sums(S)
    similar = np.sqrt(D)[:, :, None] * A / np.sqrt(D)[:, None]
    alike = equal(similar, T(similar), rounding(40 * S.shape[1], similar.max(axis=(1, 2)), 1 + size_of(S)))
    return alike & eigenvalues_are_real(A, D) & stationary_is(S, D)


def eigenvalues_from(low, X, W_Q, sign):
    S = sign * X @ W_Q @ T(X @ W_Q)
    A, D = softmax(S), row_sums(S)
    values = np.linalg.eigvals(A)
    slack = backward(A) * np.sqrt(D.max(axis=1) / D.min(axis=1)) + rounding(40, 1 + size_of(S))
    return equal(values.imag, 0.0, slack) & at_most(low, values.real, slack) & at_most(values.real, 1.0, slack)


@attack(
    "exercise-spectrum-reversible",
    on=projections.such_that(lambda X, W_Q, W_K: size_of(X @ W_Q @ T(X @ W_Q)) < 20),
    wrong={"W_K = -W_Q": lambda X, W_Q, W_K: eigenvalues_from(0.0, X, W_Q, -1)},
)
def equal_projections_have_eigenvalues_from_0_to_1(X, W_Q, W_K):
    return eigenvalues_from(0.0, X, W_Q, 1)


# Missing eigenvectors -----------------------------------------------------------------------------------------------


def lacking(lam: Array, mu: Array, largest: bool) -> Array:
    """Row-stochastic with the eigenvalues 1, lam and, twice, mu < lam, for which an eigenvector is missing.

    largest : exchange the roles, so that lam is double and lacks one. shape (batch, 4, 4).
    """
    double, single = (lam, mu) if largest else (mu, lam)
    A = np.zeros((len(lam), 4, 4))
    A[:, 0, 0] = 1
    for i, value in ((1, double), (2, double), (3, single)):
        A[:, i, i] = value
    A[:, 2, 1] = (1 - double) / 2  # the missing eigenvector; all else goes to the first position
    A[:, :, 0] += 1 - A.sum(axis=2)
    return A


def carries_a_factor(A, lam):
    """Whether |A^k - limit| / lam^k grows without bound, like k: from step 100 to step 200 by a half at least."""
    distance = [np.abs(power(A, k)[:, :, 1:]).max(axis=(1, 2)) / lam**k for k in (100, 200)]
    return at_most(1.5 * distance[0], distance[1], 0.0)


def without_eigenvector(largest: bool) -> instances.Kind:
    """Matrices for which the second eigenvalue lacks an eigenvector, or else a smaller one does."""
    rates = instances.numbers(lam=(0.3, 0.95), mu=(0.01, 0.25))
    return rates.map("A lam", lambda lam, mu: (lacking(lam, mu, largest), lam))


@attack(
    "powers/polynomial-factor",
    on=without_eigenvector(largest=True),
    wrong={
        "another eigenvalue may lack them": without_eigenvector(largest=False),
        "full sets of eigenvectors as well": without_eigenvector(largest=True).map(
            "A lam", lambda A, lam: (np.where(np.eye(4) + (np.arange(4) == 0) > 0, A, 0), lam)
        ),
    },
)
def a_second_eigenvalue_without_eigenvectors_carries_a_factor(A, lam):
    return carries_a_factor(A, lam)


no_attack(
    "stochastic_matrix/trained-norms",
    because="measured: The norms of 72 trained heads on one passage are compared with those of their shuffled rows.",
)
no_attack(
    "eigenvalues/trained-determinants",
    because="measured: Determinants and eigenvalues are compared in the 72 heads of the shipped encoder.",
)
