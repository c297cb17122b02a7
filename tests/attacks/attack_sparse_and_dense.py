"""Attacks on what the chapter on the cost and the reach of sparse patterns says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding
from instances import Array, softmax


def masked(S: Array, mask: Array) -> Array:
    """Softmax of the scores inside of the mask, written out."""
    return softmax(np.where(mask, S, -np.inf))


def window(n: int, w: int) -> Array:
    seen = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= w
    return seen / seen.sum(axis=1, keepdims=True)


lengths = instances.integers(n=(1, 24), w=(0, 26))


lengths = instances.integers(n=(1, 24), w=(0, 26))
tokens = instances.integers(n=(2, 120))


def each(function, *arguments):
    """The value of a function of whole numbers at each instance; each pair of arguments is computed once."""
    rows = np.stack(arguments, axis=1)
    different, where = np.unique(rows, axis=0, return_inverse=True)
    values = np.array([function(*map(int, row)) for row in different], dtype=float)
    return values[where.ravel()]


# Counts of patterns -------------------------------------------------------------------------------------------------


def strided(s: int) -> int:
    n = s * s
    distance = np.arange(n)
    seen = (distance < s) | (distance % s == 0)
    return int(n * seen[0] + 2 * ((n - distance[1:]) * seen[1:]).sum())


@attack(
    "sparse_and_dense/strided",
    on=instances.integers(s=(1, 200)),
    wrong={
        "leading term only": lambda s: equal(each(strided, s), 3.0 * s**3, 0.0),
        "at most 4 n log n": lambda s: at_most(each(strided, s), 4 * s**2 * np.log(s.astype(float) ** 2 + 1), 0.0),
    },
)
def the_strided_pattern_has_so_many_entries(s):
    return equal(each(strided, s), 3.0 * s**3 - 3 * s**2 + s, 0.0)


@attack(
    "5.5.4/sparse-cost",
    on=lengths.such_that(lambda n, w: w < n),
    wrong={"no edges": lambda n, w: equal(each(lambda n, w: (window(n, w) > 0).sum(), n, w), n * (2 * w + 1), 0.0)},
)
def windows_have_so_many_entries(n, w):
    return equal(each(lambda n, w: (window(n, w) > 0).sum(), n, w), n * (2 * w + 1) - w * (w + 1), 0.0)


# Reach --------------------------------------------------------------------------------------------------------------


def layers_needed(step: Array) -> int:
    """After how many layers every token has reached every other one."""
    reached = np.eye(len(step), dtype=int)
    for layer in range(1, len(step) + 1):
        reached = np.minimum(reached @ step, 1)
        if reached.all():
            return layer
    return len(step) + 1


def window_layers(n: int, w: int) -> int:
    return layers_needed((window(n, w) > 0).astype(int))


def two_layers(n: int, s: int, with_hub: bool) -> int:
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    if with_hub:
        seen = (distance == 0) | (np.arange(n) == s % n) | (np.arange(n)[:, None] == s % n)
    else:
        seen = (distance < s) | (distance % s == 0)
    return layers_needed(seen.astype(int))


stretches = instances.integers(n=(2, 24), w=(1, 26))


@attack(
    "theorem-reach",
    on=stretches,
    wrong={
        "n / w rounded up": lambda n, w: equal(each(window_layers, n, w), np.ceil(n / w), 0.0),
        "strides in one layer": lambda n, w: at_most(each(lambda n, w: two_layers(n, w, False), n, w), 1.0, 0.0),
    },
)
def patterns_reach_as_far_as_the_theorem_says(n, w):
    return (
        equal(each(window_layers, n, w), np.ceil((n - 1) / w), 0.0)
        & at_most(each(lambda n, w: two_layers(n, w, False), n, w), 2.0, 0.0)
        & at_most(each(lambda n, w: two_layers(n, w, True), n, w), 2.0, 0.0)
    )


def multiplies(mask: Array, layers: int) -> tuple[Array, Array]:
    """Most tokens that a token sees in one layer, and those that reach it after several layers."""
    step = mask.astype(float)
    reached = np.broadcast_to(np.eye(mask.shape[1]), mask.shape)
    for _ in range(layers):
        reached = np.minimum(reached @ step, 1)
    return step.sum(axis=2).max(axis=1), reached.sum(axis=2).max(axis=1)


square = instances.masks.such_that(lambda mask: np.full(len(mask), mask.shape[1] == mask.shape[2]))


def multiply(mask, power):
    seen, reached = multiplies(mask, 2)
    return at_most(reached, power(seen), 0.0)


@attack("theorem-reach", on=square, wrong={"twice as many": lambda mask: multiply(mask, lambda k: k + 0.0)})
def reach_multiplies_at_most(mask):
    return multiply(mask, lambda k: k**2)


# Rank ---------------------------------------------------------------------------------------------------------------

small_scores = instances.square_matrices.such_that(lambda M: np.abs(M).max(axis=(1, 2)) <= 2)


def least_block(M: Array, w: int, shifted: int) -> Array:
    """Smallest singular value of the block of the proof, for a window of width w: not 0 if the rank is n - w."""
    n = M.shape[1]
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    A = softmax(np.where(distance <= w, M, -np.inf))
    block = A[:, : n - w + shifted, w - shifted :]
    return np.linalg.svd(block, compute_uv=False)[:, -1]


def invertible(M: Array, shifted: int = 0) -> object:
    n = M.shape[1]
    least = [least_block(M, w, shifted) for w in range(shifted, n)]
    causal = np.linalg.svd(softmax(np.where(np.tri(n, dtype=bool), M, -np.inf)), compute_uv=False)[:, -1]
    return at_most(1e-9, np.min([*least, causal], axis=0), 0.0)


larger = small_scores.such_that(lambda M: np.full(len(M), M.shape[1] > 1))


@attack(
    "theorem-window-rank",
    on=small_scores,
    wrong={"a rank larger by one": (lambda M: invertible(M, 1), larger)},
)
def windows_have_nearly_full_rank(M):
    return invertible(M)


def stable(A: Array, share) -> object:
    values = np.linalg.svd(A, compute_uv=False)
    found = (values**2).sum(axis=1) / values[:, 0] ** 2
    seen = (A > 0).sum(axis=2).max(axis=1)
    p = values / values.sum(axis=1, keepdims=True)
    entropy_rank = np.exp(-np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=1))
    held = np.cumsum(values**2, axis=1) / (values**2).sum(axis=1, keepdims=True)
    energy_rank = 1 + np.sum(held < 0.9, axis=1)
    held = np.cumsum(values, axis=1) / values.sum(axis=1, keepdims=True)
    effective_rank = 1 + np.sum(held < 0.9, axis=1)  # (5.5.3), at the share 0.9
    return (
        at_most(A.shape[1] / share(seen, A.sum(axis=1).max(axis=1)), found, rounding(256, found))
        & at_most(found, entropy_rank, 1e-9)
        & at_most(0.9 * found, energy_rank, 1e-9)
        & at_most(0.9 * found, effective_rank, 1e-9)
    )


@attack(
    "theorem-stable-rank",
    "sparse_and_dense/no-hubs",
    on=instances.row_stochastic,
    wrong={"the hubs forgotten": lambda A: stable(A, lambda k, c: k), "the rows forgotten": lambda A: stable(
        A, lambda k, c: c)},
)  # fmt: skip
def sparse_attention_without_hubs_has_a_high_stable_rank(A):
    return stable(A, lambda k, c: k * c)


# Dense --------------------------------------------------------------------------------------------------------------


def causal_rank(n, rank_of, width=None):
    """Rank of equal scores behind a causal window of this width; without a width behind the whole causal mask."""

    def found(n):
        seen = np.tri(n) - (0 if width is None else np.tri(n, k=-width - 1))
        return np.linalg.matrix_rank(seen / seen.sum(axis=1, keepdims=True))

    return equal(each(found, n), rank_of(n), 0.0)


@attack(
    "5.5.5/sparse-low-rank",
    "theorem-window-rank",
    on=tokens,
    wrong={
        "the rank without the mask": lambda n: causal_rank(n, np.ones_like, 1),
        "the least rank of a window to both sides": lambda n: causal_rank(n, lambda n: n - 1, 1),
    },
)
def uniform_attention_has_full_rank_behind_a_causal_window(n):
    return causal_rank(n, lambda n: n, 1) & causal_rank(n, lambda n: n, 4) & causal_rank(n, lambda n: n)


narrow = instances.queries_and_keys.map("Q K", lambda Q, K: (K[:, :, :1], np.roll(K, 1, axis=0)[:, ::-1, :1]))


def some_token_below_half(Q, K):
    diagonal = softmax(Q @ K.swapaxes(1, 2)).diagonal(axis1=1, axis2=2)
    return at_most(diagonal.min(axis=1), 0.5, rounding(64, 1))  # below it by what rounding may swallow


wide = instances.queries_and_keys.map("Q K", lambda Q, K: (K, K))


def far_from_identity(Q, K, least):
    A = softmax(Q @ K.swapaxes(1, 2))
    return at_most(least, np.linalg.norm(A - np.eye(A.shape[1]), axis=(1, 2)), 1e-9)


@attack(
    "proposition-middle-key",
    "5.5.5/dense",
    on=narrow.such_that(lambda Q, K: np.full(len(Q), Q.shape[1] >= 3)),
    wrong={
        "two tokens": narrow.such_that(lambda Q, K: np.full(len(Q), Q.shape[1] == 2)),
        "a width above 1": wide.such_that(lambda Q, K: np.full(len(Q), (Q.shape[1] >= 3) and (Q.shape[2] > 1))),
    },
)
def some_token_gives_itself_less_than_half(Q, K):
    return some_token_below_half(Q, K)


@attack(
    "5.5.5/dense",
    "theorem-radon",
    on=narrow.such_that(lambda Q, K: np.full(len(Q), Q.shape[1] >= 3)),
    wrong={
        "twice as far": lambda Q, K: far_from_identity(Q, K, np.sqrt(2)),
        "a width above 1": wide.such_that(lambda Q, K: np.full(len(Q), (Q.shape[1] >= 3) and (Q.shape[2] > 1))),
    },
)
def width_one_keeps_a_distance_from_the_identity(Q, K):
    return far_from_identity(Q, K, 1 / np.sqrt(2))


square_masks = instances.masked_scores.such_that(lambda mask, S: np.full(len(S), S.shape[1] == S.shape[2])).such_that(
    lambda mask, S: np.abs(S).max(axis=(1, 2)) <= 30
)


def leaks(mask, S, limit):
    n, c = S.shape[1], 200.0
    scores = np.where(mask, S, S - c)
    keys = np.broadcast_to(np.eye(n), S.shape)  # d_k = n: the queries are the scores
    dense = softmax(scores @ keys.swapaxes(1, 2))
    spread = S.max(axis=(1, 2)) - S.min(axis=(1, 2))
    return equal(dense, limit(mask, S), n * np.exp(spread - c) + rounding(64 * n, 1))


@attack(
    "5.5.5/dense",
    on=square_masks,
    wrong={"no mask": lambda mask, S: leaks(mask, S, lambda mask, S: softmax(S))},
)
def wide_dense_attention_approaches_sparse_attention(mask, S):
    return leaks(mask, S, lambda mask, S: masked(S, mask))


def dependence(K: Array) -> Array:
    """Numbers t with sum t = 0 and sum t k = 0, for each set of d + 2 keys."""
    with_ones = np.concatenate([K, np.ones((*K.shape[:2], 1))], axis=2)
    return np.linalg.svd(with_ones.swapaxes(1, 2))[2][:, -1]


def inside_beats_outside(Q: Array, K: Array) -> object:
    """Whether some query gives every key with t > 0 a larger score than every other key, or the reverse."""
    t = dependence(K)[:, None, :]
    S = Q @ K.swapaxes(1, 2)
    size = np.abs(Q).max(axis=(1, 2)) * np.abs(K).max(axis=(1, 2))
    slack = rounding(1024, size + 1, 1e4)
    part = t > 0
    least = np.where(part, S, np.inf).min(axis=2)
    rest = np.where(part, -np.inf, S).max(axis=2)
    reverse = np.where(part, np.inf, S).min(axis=2) - np.where(part, S, -np.inf).max(axis=2)
    return at_most((least - rest).max(axis=1), 0.0, slack) & at_most(reverse.max(axis=1), 0.0, slack)


plane = instances.queries_and_keys.such_that(
    lambda Q, K: np.max([np.abs(Q).max(axis=(1, 2)), np.abs(K).max(axis=(1, 2))], axis=0) <= 1e3
).map("Q K", lambda Q, K: (np.concatenate([Q, -Q], axis=1), K))


def with_keys(surplus: int):
    return plane.such_that(lambda Q, K: np.full(len(Q), K.shape[1] == K.shape[2] + surplus))


@attack("theorem-radon", on=with_keys(2), wrong={"one key fewer": with_keys(1)})
def no_query_makes_the_split_of_radon(Q, K):
    return inside_beats_outside(Q, K)


def splits(d: int) -> Array:
    """The mask of the theorem with equal weights: a row for each split of d + 2 keys in two."""
    parts = [part for code in range(1, 2 ** (d + 1)) for part in [np.array([code >> j & 1 for j in range(d + 2)])]]
    smaller = np.array([part if 2 * part.sum() <= d + 2 else 1 - part for part in parts], dtype=float)
    target = np.zeros((len(parts), len(parts)))
    target[:, : d + 2] = smaller / smaller.sum(axis=1, keepdims=True)
    return target


def misses(Q: Array, K: Array, factor: float = 1.0) -> object:
    d = Q.shape[2]
    A = softmax(Q @ K.swapaxes(1, 2))
    distance = np.linalg.norm(A - splits(d), axis=(1, 2))
    return at_most(factor / np.sqrt(2) / ((d + 2) // 2), distance, 1e-9)


def seven(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    size = np.exp(rng.normal(size=(count, 1, 1)) * 2)
    return rng.normal(size=(count, *shape)) * size, rng.normal(size=(count, *shape)) * size


angles = 2 * np.pi * np.arange(7) / 7
around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
of_splits = instances.kind(
    "Q K",
    lambda: (("three on a line", (np.array([[-9.0], [0.0], [9.0]]), np.array([[-1.0], [0.0], [1.0]]))),
             ("seven on a circle", (9 * around, around))),
    seven,
    [(3, 1), (7, 2)],
)  # fmt: skip


@attack("theorem-radon", on=of_splits, wrong={"three times as far": lambda Q, K: misses(Q, K, 3.0)})
def dense_attention_misses_the_mask_of_all_splits(Q, K):
    return misses(Q, K)


wanted = instances.kind(
    "u",
    lambda: ((f"equal, width {w}", (np.ones(2 * w + 1),)) for w in (0, 1, 2)),
    lambda rng, count, shape: np.exp(rng.normal(size=(count, *shape))),
    [(1,), (3,), (5,)],
)


def causal_in_the_limit(u: Array, cut: int = 0, n: int = 7) -> object:
    """The same for causal windows of as many tokens as there are weights: the last weight is for the token itself."""
    w = u.shape[1] - 1
    offsets = np.arange(-w, 1)
    ahead = np.subtract.outer(np.arange(n), np.arange(n)).T.astype(float)
    g = np.linalg.solve(np.vander(offsets.astype(float), increasing=True)[None], np.log(u)[:, :, None])[:, :, 0]
    shape = np.sum(g[:, :, None, None] * ahead ** np.arange(w + 1)[:, None, None], axis=1)
    factors = [offset - ahead for offset in offsets][: w + 1 - cut]
    scores = shape - 1e4 * np.prod(factors, axis=0)  # of keys that are not ahead, none has a negative product
    scores = np.where(ahead <= 0, scores, -np.inf)
    spread = np.where((ahead <= 0) & (ahead >= -w), u[:, np.clip(ahead + w, 0, w).astype(int)], 0.0)
    return equal(softmax(scores), spread / spread.sum(axis=2, keepdims=True), 1e-6)


def in_the_limit(u: Array, cut: int = 0, n: int = 7) -> object:
    """Dense weights from polynomials, against the window; cut: factors left out."""
    w = u.shape[1] // 2
    offsets = np.arange(-w, w + 1)
    ahead = np.subtract.outer(np.arange(n), np.arange(n)).T.astype(float)
    powers = np.vander(offsets.astype(float), increasing=True)
    g = np.linalg.solve(powers[None], np.log(u)[:, :, None])[:, :, 0]
    shape = np.sum(g[:, :, None, None] * ahead ** np.arange(len(offsets))[:, None, None], axis=1)
    factors = [ahead, *(ahead - r for r in offsets)][: len(offsets) + 1 - cut]
    scores = shape - 1e4 * np.prod(factors, axis=0)
    spread = np.where(np.abs(ahead) <= w, u[:, np.clip(ahead + w, 0, 2 * w).astype(int)], 0.0)
    return equal(softmax(scores), spread / spread.sum(axis=2, keepdims=True), 1e-6)


@attack(
    "theorem-windows-reached",
    "sparse_and_dense/windows-reached",
    on=wanted,
    wrong={"one factor fewer": lambda u: in_the_limit(u, 1)},
)
def polynomials_make_windows(u):
    return in_the_limit(u) & causal_in_the_limit(u)


no_attack(
    "sparse_and_dense/window-rank",
    because="measured: it says what was measured on the trained heads that the book ships.",
)
