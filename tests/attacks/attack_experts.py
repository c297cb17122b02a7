"""Attacks on what the chapter on factored weights, distillation and experts says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding, true
from instances import Array, moderate


def sigma(A: Array) -> Array:
    """Singular values of each matrix, the largest first, shape (batch, min(n, m))."""
    return np.linalg.svd(A, compute_uv=False)


def norm(A: Array) -> Array:
    """2-norm of each matrix."""
    return sigma(A)[:, 0]


def counted(A: Array) -> Array:
    """How many singular values exceed a billionth of the largest."""
    values = sigma(A)
    return (values > 1e-9 * values[:, :1]).sum(axis=1)


factorised = instances.matrices.such_that(moderate(1e3)).also(
    U=lambda rng, A: rng.normal(size=(len(A), A.shape[1], 2)),
    V=lambda rng, A, U: rng.normal(size=(len(A), 2, A.shape[2])),
)


def factors_miss(A, U, V, place):
    """Products of inner dimension 2 miss A by the third singular value at least; the truncation misses it by that."""
    values = sigma(A)
    bound = values[:, place] if place < values.shape[1] else np.zeros(len(A))
    slack = rounding(64 * sum(A.shape[1:]), values[:, 0] + norm(U @ V))
    left, found, right = np.linalg.svd(A, full_matrices=False)
    cut = (left[:, :, :2] * found[:, None, :2]) @ right[:, :2]
    return at_most(bound, norm(A - U @ V), slack) & equal(norm(A - cut), bound, slack)


@attack(
    "proposition-factored-projection",
    "5.5.4/weights-expressive",
    on=factorised,
    wrong={
        "the singular value before": lambda A, U, V: factors_miss(A, U, V, 1),
        "the singular value after": lambda A, U, V: factors_miss(A, U, V, 3),
    },
)
def factors_miss_by_the_next_singular_value(A, U, V):
    return factors_miss(A, U, V, 2)


expert_maps = (
    instances.square_matrices.such_that(lambda M: np.full(len(M), M.shape[1] <= 4))
    .also(
        choice=lambda rng, M: rng.integers(0, 2, size=(len(M), 3)),
        thin=lambda rng, M, choice: rng.normal(size=M.shape[:2]),
    )
    .such_that(lambda M, choice, thin: clear(M))
)


def clear(M: Array) -> Array:
    """Whether no singular value lies between rounding and a thousandth of the largest."""
    values = sigma(M) / np.maximum(sigma(M)[:, :1], np.finfo(float).tiny)
    return ((values < 1e-12) | (values > 1e-3)).all(axis=1) & (sigma(M)[:, 0] > 1e-3) & (sigma(M)[:, 0] < 1e3)


def block_rank(M, choice, thin, total):
    """Two experts, M and one of rank 1, for three tokens."""
    n = M.shape[1]
    unit = thin / np.linalg.norm(thin, axis=1, keepdims=True)
    second = np.einsum("bi,bj->bij", unit, unit) * sigma(M)[:, :1, None]
    both = np.stack([M, second], axis=1)
    whole = np.zeros((len(M), 3 * n, 3 * n))
    for token in range(3):
        part = slice(token * n, (token + 1) * n)
        whole[:, part, part] = both[np.arange(len(M)), choice[:, token]]
    single = np.stack([counted(M), np.ones(len(M), dtype=int)], axis=1)
    chosen = np.take_along_axis(single, choice, axis=1)
    return true(counted(whole) == total(chosen, single))


@attack(
    "theorem-switched-blocks",
    "5.5.5/moe-low-rank",
    on=expert_maps,
    wrong={
        "each expert counted once": lambda M, choice, thin: block_rank(
            M, choice, thin, lambda chosen, single: single.sum(axis=1)
        ),
        "the largest rank": lambda M, choice, thin: block_rank(
            M, choice, thin, lambda chosen, single: chosen.max(axis=1)
        ),
    },
)
def ranks_of_chosen_experts_add_up(M, choice, thin):
    return block_rank(M, choice, thin, lambda chosen, single: chosen.sum(axis=1))


no_attack(
    "5.5.4/compress-attention",
    because="wording: it counts the entries of three named matrices and says that there is no fourth one.",
)


def thin_projection(A, U, V, inner):
    """Directions without a query, and the rank of all scores, for a product of inner dimension 2."""
    W = (U @ V)[:, :, :]
    d = A.shape[1]
    zeros = d - counted(W)
    scores = counted(W @ W.swapaxes(1, 2))
    return true(zeros >= d - inner) & true(scores <= inner)


@attack(
    "proposition-factored-projection",
    on=factorised.such_that(lambda A, U, V: np.full(len(A), min(A.shape[1:]) >= 2)),
    wrong={"one direction more": lambda A, U, V: thin_projection(A, U, V, 1)},
)
def thin_factors_lose_directions(A, U, V):
    missed = np.linalg.norm(A - U @ V, axis=(1, 2))
    rows = np.linalg.norm(A - U @ V, axis=2).max(axis=1)
    return thin_projection(A, U, V, 2) & at_most(rows, missed, rounding(64, missed))


switched = instances.integers(E=(1, 4), r=(1, 3), k=(1, 4)).such_that(lambda E, r, k: k <= E)


def switched_rank(E: int, r: int, k: int) -> float:
    """Rank of U D(g) V for 13 dimensions, and a number above it where the equation fails."""
    rng = np.random.default_rng([E, r, k])
    U, V = rng.normal(size=(E, 13, r)), rng.normal(size=(E, r, 13))
    g = np.where(np.arange(E) < k, rng.uniform(0.1, 1, E), 0)
    whole = np.concatenate(list(U), axis=1) @ np.diag(np.repeat(g, r)) @ np.concatenate(list(V), axis=0)
    same = np.allclose(whole, np.einsum("e,ear,erc->ac", g, U, V), atol=1e-12)
    return float(np.linalg.matrix_rank(whole)) if same else 99.0


def each(function, *arguments):
    rows = np.stack(arguments, axis=1)
    different, where = np.unique(rows, axis=0, return_inverse=True)
    return np.array([function(*map(int, row)) for row in different], dtype=float)[where.ravel()]


@attack(
    "theorem-switched-blocks",
    "5.5.5/moe-low-rank",
    on=switched,
    wrong={
        "one expert": lambda E, r, k: at_most(each(switched_rank, E, r, k), r, 0.0),
    },
)
def active_blocks_bound_the_rank(E, r, k):
    return at_most(each(switched_rank, E, r, k), k * r, 0.0)
