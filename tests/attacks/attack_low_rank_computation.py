"""Attacks on what the chapter on computing with low rank says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, rounding, true
from instances import Array, moderate


def sigma(A: Array) -> Array:
    """Singular values of each matrix, the largest first, shape (batch, min(n, m))."""
    return np.linalg.svd(A, compute_uv=False)


def norm(A: Array) -> Array:
    """2-norm of each matrix."""
    return sigma(A)[:, 0]


# Low rank -----------------------------------------------------------------------------------------------------------

ranks = instances.integers(n=(1, 300), r=(1, 300), d_v=(1, 64)).such_that(lambda n, r, d_v: r <= n)


@attack(
    "5.5.4/speedup",
    on=ranks,
    wrong={
        "fewer for every r below n": lambda n, r, d_v: exactly_if(2 * n * r * d_v < n * n * d_v, r < n),
        "one product only": lambda n, r, d_v: exactly_if(n * r * d_v < n * n * d_v, 2 * r < n),
    },
)
def factors_save_below_half_of_the_rank(n, r, d_v):
    return exactly_if(r * n * d_v + n * r * d_v < n * n * d_v, 2 * r < n)


with_keys = instances.queries_and_keys.such_that(moderate(1e3)).such_that(
    lambda Q, K: np.full(len(Q), K.shape[1] >= K.shape[2])
)


def through_qr(Q, K, one_letter=False):
    basis, R = np.linalg.qr(K)
    last = Q if one_letter else basis
    if last.shape != basis.shape:
        return np.full(len(Q), True)
    found = Q @ R.swapaxes(1, 2) @ last.swapaxes(1, 2)
    size = np.linalg.norm(Q, axis=(1, 2)) * np.linalg.norm(K, axis=(1, 2))
    return equal(found, Q @ K.swapaxes(1, 2), rounding(64 * sum(K.shape[1:]), size))


@attack(
    "5.5.4/qr",
    on=with_keys,
    wrong={"the queries in both places": lambda Q, K: through_qr(Q, K, one_letter=True)},
)
def scores_through_qr(Q, K):
    return through_qr(Q, K)


def truncated(Q: Array, K: Array, r: int) -> tuple[Array, Array, Array]:
    """Scores from Q V_r and U_r Sigma_r, the change against the scores, and the singular values of the keys."""
    U, values, Vt = np.linalg.svd(K, full_matrices=False)
    found = (Q @ Vt[:, :r].swapaxes(1, 2)) @ (U[:, :, :r] * values[:, None, :r]).swapaxes(1, 2)
    return found, np.linalg.norm(Q @ K.swapaxes(1, 2) - found, 2, axis=(1, 2)), values


def error_bounded(Q, K, shift=0, part=1.0):
    judged = []
    for r in {1, min(K.shape[1:])}:
        _, change, values = truncated(Q, K, r)
        place = r + shift
        allowed = part * norm(Q) * values[:, place] if place < values.shape[1] else 0 * change
        size = np.linalg.norm(Q, axis=(1, 2)) * np.linalg.norm(K, axis=(1, 2))
        judged.append(at_most(change, allowed, rounding(64 * sum(K.shape[1:]), size)))
    joined = judged[0]
    for other in judged[1:]:
        joined = joined & other
    return joined


@attack(
    "low_rank_computation/truncation-error",
    "5.5.4/svd",
    on=instances.queries_and_keys,
    wrong={
        "the singular value after it": lambda Q, K: error_bounded(Q, K, shift=1),
        "half of the bound": lambda Q, K: error_bounded(Q, K, part=0.5),
    },
)
def truncated_keys_change_scores_little(Q, K):
    return error_bounded(Q, K)


def bound_reached(Q, K, place):
    """Equality for queries along the first direction that was dropped, for the smallest and the largest rank."""
    judged = true(np.full(len(K), True))
    Vt = np.linalg.svd(K, full_matrices=False)[2]
    for r in {1, min(K.shape[1:]) - 1} if min(K.shape[1:]) > 1 else ():
        along = np.broadcast_to(Vt[:, r : r + 1], (len(K), Q.shape[1], K.shape[2]))
        _, change, values = truncated(along, K, r)
        slack = rounding(64 * sum(K.shape[1:]), values[:, 0] * np.sqrt(Q.shape[1]))
        judged = judged & equal(change, norm(along) * values[:, r + place], slack)
    return judged


@attack(
    "theorem-truncated-keys",
    "low_rank_computation/truncation-error",
    on=instances.queries_and_keys,
    wrong={"the last singular value that was kept": lambda Q, K: bound_reached(Q, K, -1)},
)
def some_queries_reach_the_bound(Q, K):
    return bound_reached(Q, K, 0)


def has_equality(Q, K, r, place):
    """Whether a direction in which Q is longest lies among the dropped ones with the largest singular value.

    w is the part of the first right singular vectors of Q inside the dropped directions with the value of that place.
    """
    values_K, Vt = np.linalg.svd(K, full_matrices=True)[1:]
    values_K = np.concatenate([values_K, np.zeros((len(K), Vt.shape[1] - values_K.shape[1]))], axis=1)
    values_Q, Wt = np.linalg.svd(Q, full_matrices=True)[1:]
    values_Q = np.concatenate([values_Q, np.zeros((len(Q), Wt.shape[1] - values_Q.shape[1]))], axis=1)
    same = np.abs(values_K - values_K[:, place : place + 1]) < 1e-6 * values_K[:, :1]
    same[:, :r] = False
    longest = values_Q > (1 - 1e-6) * values_Q[:, :1]
    overlap = np.einsum("bia,bja->bij", Wt, Vt) * longest[:, :, None] * same[:, None, :]
    return sigma(overlap)[:, 0] > 1 - 1e-6


def plane_pairs():
    """Queries and keys in the plane at angles that are multiples of 45 degrees, of several lengths."""
    turns = instances.integers(turn=(0, 7), stretch=(0, 2), shrink=(1, 2))

    def build(turn, stretch, shrink):
        c, s = np.cos(turn * np.pi / 4), np.sin(turn * np.pi / 4)
        rotation = np.stack([np.stack([c, s], 1), np.stack([-s, c], 1)], 1)
        lengths = np.stack([np.ones(len(turn)), stretch / 2.0], 1)
        Q = lengths[:, :, None] * rotation
        K = np.stack([3.0 / shrink, np.ones(len(turn))], 1)[:, :, None] * np.eye(2)
        return Q, K

    return turns.map("Q K", build)


def reached_exactly_if(Q, K, place):
    _, change, values = truncated(Q, K, 1)
    reached = np.abs(change - norm(Q) * values[:, 1]) < 1e-9
    return exactly_if(reached, has_equality(Q, K, 1, place))


@attack(
    "theorem-truncated-keys",
    "low_rank_computation/truncation-error",
    on=plane_pairs(),
    wrong={
        "a kept direction": lambda Q, K: exactly_if(
            np.abs(truncated(Q, K, 1)[1] - norm(Q) * truncated(Q, K, 1)[2][:, 1]) < 1e-9,
            np.abs(np.linalg.norm(Q[:, :, 0], axis=1) - norm(Q)) < 1e-9,
        ),
    },
)
def bound_reached_exactly_along_dropped_directions(Q, K):
    return reached_exactly_if(Q, K, 1)


def error_above(Q, K, shift=0):
    """The error is at least the next singular value of the product, for the smallest and the largest rank."""
    judged = true(np.full(len(Q), True))
    product = sigma(Q @ K.swapaxes(1, 2))
    for r in {1, min(K.shape[1:])}:
        _, change, _ = truncated(Q, K, r)
        below = product[:, r + shift] if r + shift < product.shape[1] else 0 * change
        size = np.linalg.norm(Q, axis=(1, 2)) * np.linalg.norm(K, axis=(1, 2))
        judged = judged & at_most(below, change, rounding(64 * sum(K.shape[1:]), size))
    return judged


@attack(
    "theorem-truncated-keys",
    "low_rank_computation/truncation-error",
    on=instances.queries_and_keys,
    wrong={"the singular value before it": lambda Q, K: error_above(Q, K, shift=-1)},
)
def best_scores_are_nearer_than_those_of_truncated_keys(Q, K):
    return error_above(Q, K)


orthonormal = instances.queries_and_keys.such_that(lambda Q, K: np.full(len(Q), Q.shape[1] >= Q.shape[2])).map(
    "Q K", lambda Q, K: (3 * np.linalg.qr(Q)[0], K)
)


def all_three_equal(Q, K):
    _, change, values = truncated(Q, K, 1)
    next_one = values[:, 1] if values.shape[1] > 1 else 0 * change
    product = sigma(Q @ K.swapaxes(1, 2))
    below = product[:, 1] if product.shape[1] > 1 else 0 * change
    slack = rounding(64 * sum(K.shape[1:]), values[:, 0] * np.linalg.norm(Q, axis=(1, 2)))
    return equal(change, norm(Q) * next_one, slack) & equal(below, change, slack)


@attack(
    "theorem-truncated-keys",
    on=orthonormal,
    wrong={"any queries": instances.queries_and_keys},
)
def orthogonal_queries_make_both_sides_equal(Q, K):
    return all_three_equal(Q, K)


widths = instances.integers(n=(1, 1000), r=(1, 64), d_k=(1, 64)).such_that(lambda n, r, d_k: r <= d_k)


@attack(
    "5.5.4/svd-cost",
    on=widths,
    wrong={"linear in n": lambda n, r, d_k: at_most(n**2 * (2 * r - 1), 4.0 * n * r * d_k, 0.0)},
)
def entries_of_the_product_stay_quadratic(n, r, d_k):
    entries = n**2 * (2 * r - 1)
    return at_most(n**2, entries, 0.0) & equal(n**2 * (2 * d_k - 1) - entries, 2 * n**2 * (d_k - r), 0.0)


# Linear attention ---------------------------------------------------------------------------------------------------

features = instances.queries_and_keys.such_that(moderate(1e3))


def positive_semidefinite(G, H):
    """Smallest eigenvalue of the symmetric part of the kernel matrix, for as many queries as keys."""
    if G.shape[1] != H.shape[1]:
        return np.full(len(G), True)
    table = G @ H.swapaxes(1, 2)
    least = np.linalg.eigvalsh((table + table.swapaxes(1, 2)) / 2)[:, 0]
    size = np.linalg.norm(G, axis=(1, 2)) * np.linalg.norm(H, axis=(1, 2))
    return at_most(0.0, least, rounding(64 * sum(G.shape[1:]), size))


@attack(
    "5.5.4/psd",
    on=features,
    wrong={
        "other keys": positive_semidefinite,
        "other keys, features not negative": lambda Q, K: positive_semidefinite(np.abs(Q), np.abs(K)),
    },
)
def queries_that_are_keys_make_a_kernel_matrix(Q, K):
    return positive_semidefinite(Q, Q)


scaled_kernels = features.such_that(
    lambda Q, K: np.full(len(Q), (Q.shape[1] == K.shape[1]) and (Q.shape[2] < Q.shape[1]))
).also(D=lambda rng, Q, K: rng.normal(size=Q.shape[:2]) * 10.0 ** rng.uniform(-3, 0, size=(len(Q), 1)))


def far_from_identity(Q, K, D, extra):
    n, r = Q.shape[1:]
    weights = D[:, :, None] * (Q @ K.swapaxes(1, 2))
    distance = np.linalg.norm(np.eye(n) - weights, axis=(1, 2))
    slack = rounding(64 * n * r, n + np.linalg.norm(weights, axis=(1, 2)))
    return at_most(np.sqrt(max(n - r + extra, 0)), distance, slack)


def nearest_of_rank(Q, K, D):
    """Keys and queries cut to unit vectors, which come as near as the bound allows."""
    n, r = Q.shape[1:]
    units = np.broadcast_to(np.eye(n)[:, :r], Q.shape)
    return far_from_identity(units, units, np.ones_like(D), 0)


@attack(
    "proposition-linear-identity",
    "5.5.4/linear-limited",
    on=scaled_kernels,
    wrong={
        "one more than the bound": lambda Q, K, D: far_from_identity(
            np.broadcast_to(np.eye(*Q.shape[1:]), Q.shape), np.broadcast_to(np.eye(*Q.shape[1:]), Q.shape), D * 0 + 1, 1
        ),
    },
)
def kernels_stay_away_from_the_identity(Q, K, D):
    return far_from_identity(Q, K, D, 0) & nearest_of_rank(Q, K, D)


grouped = instances.integers(n=(1, 7), r=(1, 7)).such_that(lambda n, r: r <= n)


def distance_of_groups(n: int, r: int) -> float:
    """Distance from the identity of attention that is even within r groups of n tokens."""
    member = np.arange(n) % r
    same = member[:, None] == member
    return float(np.linalg.norm(np.eye(n) - same / same.sum(axis=1, keepdims=True)))


def each(function, *arguments):
    rows = np.stack(arguments, axis=1)
    different, where = np.unique(rows, axis=0, return_inverse=True)
    return np.array([function(*map(int, row)) for row in different], dtype=float)[where.ravel()]


@attack(
    "proposition-linear-identity",
    on=grouped,
    wrong={"one group fewer": lambda n, r: equal(each(distance_of_groups, n, r), np.sqrt(n - r + 1.0), 1e-9)},
)
def groups_reach_the_bound(n, r):
    return equal(each(distance_of_groups, n, r), np.sqrt(n - r), 1e-9)


def joined(Q, K, V, ones):
    """Normalised linear attention with features that are positive, from the values and a column beside them."""
    F, G = np.abs(Q) + 0.5, np.abs(K) + 0.5
    beside = np.concatenate([V, ones(V)], axis=2)
    out = F @ (G.swapaxes(1, 2) @ beside)
    table = F @ G.swapaxes(1, 2)
    wanted = table @ V / table.sum(axis=2, keepdims=True)
    return equal(out[:, :, :-1] / out[:, :, -1:], wanted, rounding(256 * sum(K.shape[1:]), 1 + np.abs(V).max((1, 2))))


modest = instances.attention.such_that(moderate(1e2))


@attack(
    "theorem-keys-first",
    "5.5.4/associative",
    on=modest,
    wrong={"a column of halves": lambda Q, K, V: joined(Q, K, V, lambda V: 0 * V[:, :, :1] + 0.5)},
)
def a_column_of_ones_gives_the_normaliser(Q, K, V):
    return joined(Q, K, V, lambda V: 0 * V[:, :, :1] + 1)


sizes = instances.integers(n=(1, 60), r=(1, 20), d_v=(1, 20))


@attack(
    "theorem-keys-first",
    "theorem-recurrence",
    on=sizes,
    wrong={
        "no divisions": lambda n, r, d_v: equal(
            counted_products(n, r, d_v), r * (d_v + 1) * (2 * n - 1) + n * (d_v + 1) * (2 * r - 1), 0.0
        ),
    },
)
def operations_are_as_counted(n, r, d_v):
    product = r * (d_v + 1) * (2 * n - 1) + n * (d_v + 1) * (2 * r - 1) + n * d_v
    return equal(counted_products(n, r, d_v), product, 0.0) & equal(
        counted_steps(n, r, d_v), n * (4 * r * d_v + 3 * r - 1), 0.0
    )


def counted_products(n, r, d_v):
    """Multiplications, additions and divisions, each counted by itself."""
    times = r * (d_v + 1) * n + n * (d_v + 1) * r
    plus = r * (d_v + 1) * (n - 1) + n * (d_v + 1) * (r - 1)
    return times + plus + n * d_v


def counted_steps(n, r, d_v):
    state = r * d_v + r * d_v + r
    read = (d_v + 1) * (r + r - 1)
    return n * (state + read + d_v)


causal = modest.such_that(lambda Q, K, V: np.full(len(Q), Q.shape[1] == K.shape[1]))


def recurrence(Q, K, V, late=False):
    F, G = np.abs(Q) + 0.5, np.abs(K) + 0.5
    S, z = np.zeros((len(Q), Q.shape[2], V.shape[2])), np.zeros((len(Q), Q.shape[2]))
    rows = []
    for t in range(Q.shape[1]):
        if not late:
            S, z = S + G[:, t, :, None] * V[:, t, None], z + G[:, t]
        norm_of = np.einsum("ba,ba->b", F[:, t], z)
        rows.append(np.einsum("ba,bac->bc", F[:, t], S) / np.where(norm_of == 0, 1, norm_of)[:, None])
        if late:
            S, z = S + G[:, t, :, None] * V[:, t, None], z + G[:, t]
    table = np.tril(F @ G.swapaxes(1, 2))
    wanted = table @ V / table.sum(axis=2, keepdims=True)
    return equal(np.stack(rows, axis=1), wanted, rounding(256 * sum(K.shape[1:]), 1 + np.abs(V).max((1, 2))))


@attack(
    "theorem-recurrence",
    "5.5.4/recurrence",
    on=causal,
    wrong={"the state is updated after it is read": lambda Q, K, V: recurrence(Q, K, V, late=True)},
)
def the_state_gives_causal_linear_attention(Q, K, V):
    return recurrence(Q, K, V)
