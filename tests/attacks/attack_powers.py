"""Attacks on what the chapter on powers says itself."""

from __future__ import annotations

import math

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, less, no_attack, rounding, true
from instances import Array, moderate, softmax
from spectra import backward, off_constants, second


def norm(A: Array) -> Array:
    """The 2-norm of each matrix of a batch; 0 for a matrix without entries."""
    return np.linalg.norm(A, 2, axis=(1, 2)) if A.shape[1] else np.zeros(len(A))


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
    "exercise-powers-dobrushin",
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


def varied(x: Array) -> Array:
    return np.ptp(x, axis=1) > 1e-3 * np.abs(x).max(axis=1)


def layer_norm(x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / centred.std(axis=-1, keepdims=True)


@attack(
    "5.5.1/homogenise",
    on=instances.vectors.such_that(varied).also(
        W_V=lambda rng, x: rng.normal(size=(len(x), x.shape[1], x.shape[1])),
    ),
    wrong={"weights that are not uniform": lambda x, W_V: keeps_opposite_tokens(x, W_V, own=0.75)},
)
def opposite_tokens_stay_with_a_normalisation_and_any_values(x, W_V):
    return keeps_opposite_tokens(x, W_V)


def keeps_opposite_tokens(x, W_V, own=0.5):
    """Ten layers with a residual connection, normalised before the attention or after the sum."""
    A = np.array([[own, 1 - own], [1 - own, own]])
    start = layer_norm(layer_norm(np.stack([x, -x], axis=1)))  # the second time removes what rounding left
    before = after = start
    for _ in range(10):
        before = before + A @ layer_norm(before) @ W_V
        after = layer_norm(after + A @ after @ W_V)
    allowed = rounding(400, np.abs(start).max(axis=(1, 2)))
    return equal(before[:, 0], start[:, 0], allowed) & equal(after[:, 0], start[:, 0], allowed)


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


# One pass, and layers -----------------------------------------------------------------------------------------------


def farthest_rows(A: Array) -> Array:
    """The vector that is 1 where the first of the two rows that are farthest apart is larger, and 0 elsewhere."""
    n = A.shape[1]
    apart = np.abs(A[:, :, None] - A[:, None]).sum(axis=3).reshape(len(A), -1).argmax(axis=1)
    batch = np.arange(len(A))
    return (A[batch, apart // n] > A[batch, apart % n]).astype(float)


def one_pass(A, x, share):
    """No spread is left beyond the share, and one vector of zeros and ones keeps just tau."""
    after = np.einsum("bij,bj->bi", A, x)
    most = at_most(np.ptp(after, axis=1), share(A) * np.ptp(x, axis=1), rounding(40, np.abs(x).max(axis=1)))
    best = farthest_rows(A)
    kept = np.ptp(np.einsum("bij,bj->bi", A, best), axis=1)
    return most & equal(kept, share(A) * np.ptp(best, axis=1), backward(A))


signals = instances.row_stochastic.such_that(lambda A: np.full(len(A), A.shape[1] >= 2)).also(
    x=lambda rng, A: rng.normal(size=A.shape[:2])
)


@attack(
    "theorem-dobrushin",
    "powers/contraction",
    on=signals,
    wrong={
        "the second eigenvalue": lambda A, x: one_pass(A, x, second),
        "the part that is not common": lambda A, x: one_pass(A, x, lambda A: 1 - common_mass(A)),
        "the distance without its half": lambda A, x: one_pass(A, x, lambda A: 2 * tau(A)),
    },
)
def tau_is_the_largest_share_that_one_pass_leaves(A, x):
    return one_pass(A, x, tau)


starts = instances.row_stochastic.also(
    p=lambda rng, A: rng.dirichlet(np.full(A.shape[1], 0.3), len(A)),
    q=lambda rng, A, p: rng.dirichlet(np.full(A.shape[1], 0.3), len(A)),
)


def starts_come_closer(A, p, q, share):
    before = np.abs(p - q).sum(axis=1)
    after = np.abs(np.einsum("bi,bij->bj", p - q, A)).sum(axis=1)
    return at_most(after, share(A) * before, rounding(8 * A.shape[1], 2))


@attack(
    "5.5.1/initial-position",
    on=starts,
    wrong={
        "the common part itself": lambda A, p, q: starts_come_closer(A, p, q, common_mass),
        "forgotten after one pass": lambda A, p, q: starts_come_closer(A, p, q, lambda A: 0 * common_mass(A)),
        "the square": lambda A, p, q: starts_come_closer(A, p, q, lambda A: (1 - common_mass(A)) ** 2),
    },
)
def two_starts_come_closer(A, p, q):
    return starts_come_closer(A, p, q, lambda A: 1 - common_mass(A))


layers = instances.row_stochastic.also(
    B=lambda rng, A: A[rng.permutation(len(A))], C=lambda rng, A, B: A[rng.permutation(len(A))]
)


def product_of_layers(A, B, C, share):
    return at_most(tau(C @ B @ A), share(A) * share(B) * share(C), backward(A) * 4)


@attack(
    "theorem-layers-forget",
    "theorem-dobrushin",
    "5.5.1/homogenise",
    on=layers,
    wrong={
        "the second eigenvalues multiply": lambda A, B, C: product_of_layers(A, B, C, second),
        "twice the common parts": lambda A, B, C: product_of_layers(A, B, C, lambda A: np.exp(-2 * common_mass(A))),
    },
)
def three_layers_forget(A, B, C):
    return (
        product_of_layers(A, B, C, tau)
        & product_of_layers(A, B, C, lambda A: 1 - common_mass(A))
        & product_of_layers(A, B, C, lambda A: np.exp(-common_mass(A)))
    )


def causal_factor(S, bound):
    A = softmax(S)
    B = np.abs(np.where(np.isfinite(S), S, 0)).max(axis=(1, 2))
    return at_most(tau(A), bound(B, S.shape[1]), backward(A) * 9)


@attack(
    "theorem-layers-forget",
    "5.5.1/homogenise",
    on=causal_scores,
    wrong={"as without the mask": lambda S: causal_factor(S, lambda B, n: -np.expm1(-2 * B))},
)
def bounded_causal_scores_bound_the_factor(S):
    return causal_factor(S, lambda B, n: 1 - np.exp(-2 * B) / n)


# Ranks --------------------------------------------------------------------------------------------------------------


def sigma(A: Array) -> Array:
    return np.linalg.svd(A, compute_uv=False)


def counted(A: Array) -> Array:
    """How many singular values exceed a billionth of the largest: a rank where they have a gap."""
    return (sigma(A) > 1e-9 * sigma(A)[:, :1]).sum(axis=1)


def clear(*matrices: Array) -> Array:
    """Whether no singular value lies between rounding and a thousandth of the largest."""
    relative = np.stack([sigma(A) / np.maximum(sigma(A)[:, :1], np.finfo(float).tiny) for A in matrices])
    return ((relative < 1e-12) | (relative > 1e-3)).all(axis=(0, 2))


def product_rank(A, B, extra):
    most = np.minimum(counted(A), counted(B)) + extra
    return at_most(np.where(np.arange(A.shape[1]) >= most[:, None], sigma(A @ B), 0.0), 0.0, 1e-8)


@attack(
    "proposition-exact-rank",
    "5.5.3/stacking",
    on=instances.stochastic_pairs.such_that(clear),
    wrong={"one less than the smaller rank": lambda A, B: product_rank(A, B, -1)},
)
def exact_rank_never_rises(A, B):
    return product_rank(A, B, 0)


# Exercises ----------------------------------------------------------------------------------------------------------


def two_by_two(p, q):
    return np.stack([np.stack([1 - p, p], axis=1), np.stack([q, 1 - q], axis=1)], axis=1)


def closed_form(p, q, formula):
    A = two_by_two(p, q)
    limit = np.stack([q, p], axis=1)[:, None] / (p + q)[:, None, None]
    judged = equal(tau(A), np.abs(1 - p - q), rounding(8, 1)) & equal(1 - common_mass(A), tau(A), rounding(8, 1))
    for k in STEPS:
        expected = limit + formula(p, q)[:, None, None] ** k * (np.eye(2) - limit)
        judged = judged & equal(power(A, k), expected, rounding(40 * k, 1))
    return judged


@attack(
    "exercise-powers-two-tokens",
    on=instances.numbers(p=(1e-3, 0.999), q=(1e-3, 0.999)),
    wrong={"the sum of both": lambda p, q: closed_form(p, q, lambda p, q: p + q)},
)
def two_positions_have_a_closed_form(p, q):
    return closed_form(p, q, lambda p, q: 1 - p - q)


def halved(A, low):
    half = (A + np.eye(A.shape[1])) / 2
    values = np.linalg.eigvals(off_constants(half))
    return at_most(np.abs(values - 0.5), 0.5, backward(A)) & at_most(low, values.real, backward(A))


@attack(
    "exercise-powers-lazy",
    on=instances.row_stochastic,
    wrong={"the real parts stay above one half": lambda A: halved(A, 0.5)},
)
def half_the_identity_moves_the_eigenvalues(A):
    return halved(A, 0.0)


def oscillation(S: Array) -> Array:
    return np.ptp(S[:, :, None] - S[:, None], axis=3).max(axis=(1, 2))


def within_tanh(S, divisor):
    A = softmax(S)
    return at_most(tau(A), np.tanh(oscillation(S) / divisor), backward(A) * 9 + rounding(20, 1 + size_of(S)))


@attack(
    "exercise-powers-temperature",
    on=instances.square_matrices.map("S", lambda M: M).such_that(moderate(300)),
    wrong={
        "an eighth": lambda S: within_tanh(S, 8),
        "half the oscillation of a row": lambda S: at_most(
            tau(softmax(S)), np.tanh(np.ptp(S, axis=2).max(axis=1) / 4), backward(softmax(S))
        ),
    },
)
def the_oscillation_bounds_the_coefficient(S):
    return within_tanh(S, 4)


def shrinking(mix):
    line = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1.0]])
    return (1 - mix)[:, None, None] * line + mix[:, None, None] / 3


def equal_rows_after(mix, passes):
    A = shrinking(mix)
    return equal(tau(A), 1 - mix, rounding(20, 1)) & equal(spread(power(A, passes)), 0.0, rounding(40, 1))


@attack(
    "exercise-powers-dobrushin",
    on=instances.numbers(mix=(1e-6, 0.5)),
    wrong={"after one pass": lambda mix: equal_rows_after(mix, 1)},
)
def a_line_has_equal_rows_after_two_passes(mix):
    return equal_rows_after(mix, 2) & less(0.0, shrinking(mix))


no_attack(
    "powers/collapse",
    because="measured: It reports a mean over twenty seeded networks of random weights of one size.",
)
