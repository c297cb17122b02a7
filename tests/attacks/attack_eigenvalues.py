"""Attacks on what the chapter on eigenvalues says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, implies, less, rounding, true
from instances import Array
from spectra import backward, second

from attnmath.matrix.mixing import cycle_lengths


def norm(A: Array) -> Array:
    """The 2-norm of each matrix of a batch; 0 for a matrix without entries."""
    return np.linalg.norm(A, 2, axis=(1, 2)) if A.shape[1] else np.zeros(len(A))


def power(A: Array, k: int) -> Array:
    return np.linalg.matrix_power(A, k)


# Eigenvalues --------------------------------------------------------------------------------------------------------


def bounded_by(A, bound):
    return at_most(np.abs(np.linalg.eigvals(A)), bound, backward(A))


@attack(
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


# Positive weights ----------------------------------------------------------------------------------------------------


def beside_one(A, bound):
    return at_most(second(A), bound, backward(A))


def least(A: Array) -> Array:
    return A.min(axis=(1, 2))


@attack(
    "theorem-perron-frobenius",
    "eigenvalues/perron-frobenius",
    on=instances.row_stochastic,
    wrong={
        "one minus twice as much": lambda A: beside_one(A, np.maximum(1 - 2 * A.shape[1] * least(A), 0)),
        "with the largest entry of the row": lambda A: beside_one(A, 1 - A.max(axis=2).min(axis=1)),
        "the smallest column maximum": lambda A: beside_one(A, 1 - A.max(axis=1).min(axis=1)),
        "rows need not sum to 1": (
            lambda A: beside_one(A, 1 - A.shape[1] * least(A)),
            instances.square_matrices.map("A", np.abs),
        ),
    },
)
def the_others_are_at_most_one_minus_n_delta(A):
    return beside_one(A, 1 - A.shape[1] * least(A))


@attack(
    "theorem-perron-frobenius",
    "eigenvalues/perron-frobenius",
    on=instances.row_stochastic.such_that(lambda A: least(A) * A.shape[1] > 1e-6),
    wrong={"without positivity": instances.row_stochastic},
)
def one_is_simple_for_positive_matrices(A):
    return less(second(A) + 0.5 * A.shape[1] * least(A), np.ones(len(A)))


def meeting(A, times=1.0):
    """1 - mu, with mu the least probability that two positions draw the same key."""
    meet = A @ A.swapaxes(1, 2) + 2 * np.eye(A.shape[1])
    return 1 - times * np.minimum(meet.min(axis=(1, 2)), 1)


@attack(
    "exercise-eigenvalues-meeting",
    on=instances.row_stochastic,
    wrong={
        "twice the probability": lambda A: beside_one(A, np.maximum(meeting(A, 2.0), 0)),
        "always better than n delta": lambda A: at_most(meeting(A), 1 - A.shape[1] * least(A), 1e-12),
    },
)
def positions_that_meet_forget(A):
    return beside_one(A, meeting(A))


# Causal matrices -----------------------------------------------------------------------------------------------------


def polynomial_is(A, roots):
    """det(x I - A) at several points beside the product over the roots; |x| > 1, so that nothing cancels."""
    found = []
    for x in (1.5, -1.5, 2.0 + 1.0j):
        left = np.linalg.det(x * np.eye(A.shape[1]) - A)
        right = np.prod(x - roots, axis=1)
        found.append(np.abs(left - right) / np.maximum(np.abs(right), 1e-3))
    return equal(np.max(found, axis=0), 0.0, rounding(100 * A.shape[1] ** 2, 1.0, 3.0 ** A.shape[1]))


def on_the_diagonal(A: Array) -> Array:
    return np.diagonal(A, axis1=1, axis2=2)


@attack(
    "proposition-causal-determinant",
    "eigenvalues/causal",
    on=instances.causal_stochastic,
    wrong={
        "without a mask": instances.row_stochastic,
        "the last row instead": lambda A: polynomial_is(A, A[:, -1]),
        "the first weight left out": lambda A: polynomial_is(A, on_the_diagonal(A) * (np.arange(A.shape[1]) > 0)),
    },
)
def causal_eigenvalues_are_the_diagonal(A):
    own = on_the_diagonal(A)
    product = equal(np.linalg.det(A), np.prod(own, axis=1), rounding(10 * A.shape[1] ** 2, 1.0))
    return polynomial_is(A, own) & product & equal(own[:, 0], 1, rounding(A.shape[1], 1)) & at_most(own, 1, 1e-12)
