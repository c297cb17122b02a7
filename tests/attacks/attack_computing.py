"""Attacks on what the chapter on computing with low rank and sparsity says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, less, no_attack, rounding, true
from instances import Array, moderate, softmax


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
    "low_rank_computation/truncation-error",
    on=instances.queries_and_keys,
    wrong={"the last singular value that was kept": lambda Q, K: bound_reached(Q, K, -1)},
)
def some_queries_reach_the_bound(Q, K):
    return bound_reached(Q, K, 0)


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


# Masks --------------------------------------------------------------------------------------------------------------


def masked(S: Array, mask: Array) -> Array:
    """Softmax of the scores inside of the mask, written out."""
    return softmax(np.where(mask, S, -np.inf))


moderate_masks = instances.masked_scores.such_that(lambda mask, S: np.abs(S).max(axis=(1, 2)) <= 30)


def divided_by(mask, S, divisor):
    kept = softmax(S) * mask
    return equal(kept / divisor(kept), masked(S, mask), rounding(64 * S.shape[2], 1 / kept.sum(axis=2).min(axis=1)))


@attack(
    "5.5.4/sparse-mask",
    on=moderate_masks,
    wrong={
        "not divided": lambda mask, S: divided_by(mask, S, lambda kept: 1.0),
        "divided by the sums of columns": lambda mask, S: divided_by(
            mask, S, lambda kept: np.maximum(kept.sum(axis=1, keepdims=True), 1e-300)
        ),
    },
)
def rows_of_the_masked_matrix_divided_by_their_sums(mask, S):
    return divided_by(mask, S, lambda kept: kept.sum(axis=2, keepdims=True))


def window(n: int, w: int) -> Array:
    seen = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= w
    return seen / seen.sum(axis=1, keepdims=True)


lengths = instances.integers(n=(1, 24), w=(0, 26))


def each(function, *arguments):
    """The value of a function of whole numbers at each instance; each pair of arguments is computed once."""
    rows = np.stack(arguments, axis=1)
    different, where = np.unique(rows, axis=0, return_inverse=True)
    values = np.array([function(*map(int, row)) for row in different], dtype=float)
    return values[where.ravel()]


def window_norm(n: int, w: int) -> float:
    return float(np.linalg.norm(window(n, w), 2))


@attack(
    "sparse_patterns/window-norm",
    on=lengths,
    wrong={
        "at most 1, the largest row sum": lambda n, w: at_most(each(window_norm, n, w), 1.0, 1e-9),
    },
)
def windows_have_norms_below_root_two(n, w):
    return less(each(window_norm, n, w), 2**0.5)


def off_symbol(n: int, w: int = 1) -> float:
    """Largest distance of the sorted eigenvalues of a window from the symbol of width 1, times n."""
    symmetric = window(n, w) ** 0.5 * window(n, w).T ** 0.5  # similar to the window, entry by entry
    values = np.linalg.eigvalsh(symmetric)
    symbol = np.sort((1 + 2 * np.cos(np.arange(n) * np.pi / n)) / 3)
    return n * np.abs(values - symbol).max()


tokens = instances.integers(n=(2, 120))


@attack(
    "5.5.4/band-toeplitz",
    on=tokens,
    wrong={
        "a window of width 2": lambda n: at_most(each(lambda n: off_symbol(n, 2), n), 4 * np.pi / 3, 1e-9),
        "a twentieth of it": lambda n: at_most(each(off_symbol, n), np.pi / 15, 1e-9),
    },
)
def windows_follow_their_symbol(n):
    return at_most(each(off_symbol, n), 4 * np.pi / 3, 1e-9)


def reflecting(n: int, forgotten: float = 0.0) -> float:
    """Largest distance of the eigenvalues of the reflecting window from the closed form."""
    matrix = (np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)) / 3
    matrix[0, 0] = matrix[-1, -1] = 2 / 3 - forgotten
    closed = np.sort((1 + 2 * np.cos(np.arange(n) * np.pi / n)) / 3)
    return float(np.abs(np.linalg.eigvalsh(matrix) - closed).max())


@attack(
    "sparse_patterns/reflecting",
    on=tokens,
    wrong={"edge tokens count themselves once": lambda n: at_most(each(lambda n: reflecting(n, 1 / 3), n), 0.0, 1e-9)},
)
def reflecting_windows_have_these_eigenvalues(n):
    return at_most(each(reflecting, n), 0.0, 1e-9)


bands = instances.numbers(above=(0.1, 10), below=(0.1, 10), on=(0.01, 100)).also(
    n=lambda rng, above, below, on: np.full(len(above), int(rng.integers(1, 9)))
)


def tridiagonal(above, below, on, n, step):
    """Characteristic equation: the closed form makes the vector of the chapter an eigenvector."""
    size = int(n[0])
    k = np.arange(1, size + 1)
    angle = k * np.pi / step(size)
    j = np.arange(size + 2)
    rho = np.sqrt(below / above)[:, None, None]
    v = rho ** j[:, None] * np.sin(j[:, None] * angle)
    value = on[:, None] + 2 * np.sqrt(below * above)[:, None] * np.cos(angle)
    v[:, [0, -1]] = 0  # the matrix has no such neighbours
    left = below[:, None, None] * v[:, :-2] + on[:, None, None] * v[:, 1:-1] + above[:, None, None] * v[:, 2:]
    size_of = (np.abs(on) + above + below)[:, None] * np.abs(v).max(axis=1)
    return equal((left - value[:, None] * v[:, 1:-1]).transpose(0, 2, 1), 0.0 * v[:, 1:-1].transpose(0, 2, 1),
                 rounding(256 * size, size_of))  # fmt: skip


@attack(
    "sparse_patterns/tridiagonal",
    on=bands,
    wrong={"n in place of n + 1": lambda above, below, on, n: tridiagonal(above, below, on, n, lambda n: n)},
)
def tridiagonal_matrices_have_these_eigenvalues(above, below, on, n):
    return tridiagonal(above, below, on, n, lambda n: n + 1)


# Counts of patterns -------------------------------------------------------------------------------------------------


def strided(s: int) -> int:
    n = s * s
    distance = np.arange(n)
    seen = (distance < s) | (distance % s == 0)
    return int(n * seen[0] + 2 * ((n - distance[1:]) * seen[1:]).sum())


@attack(
    "5.5.4/sparse-cost",
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


def causal_rank(n, rank_of):
    found = each(lambda n: np.linalg.matrix_rank(np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]), n)
    return equal(found, rank_of(n), 0.0)


@attack(
    "5.5.5/sparse-low-rank",
    on=tokens,
    wrong={"the rank without the mask": lambda n: causal_rank(n, np.ones_like)},
)
def uniform_attention_has_full_rank_behind_a_causal_mask(n):
    return causal_rank(n, lambda n: n)


# Dense --------------------------------------------------------------------------------------------------------------

narrow = instances.queries_and_keys.map("Q K", lambda Q, K: (K[:, :, :1], np.roll(K, 1, axis=0)[:, ::-1, :1]))


def some_token_below_half(Q, K):
    diagonal = softmax(Q @ K.swapaxes(1, 2)).diagonal(axis1=1, axis2=2)
    return at_most(diagonal.min(axis=1), 0.5, rounding(64, 1))  # below it by what rounding may swallow


wide = instances.queries_and_keys.map("Q K", lambda Q, K: (K, K))


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


# Weights and experts ------------------------------------------------------------------------------------------------

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


def as_mixture(Q, K, V, gate):
    q = Q / np.sqrt(Q.shape[2])
    out = softmax(q @ K.swapaxes(1, 2)) @ V
    answers = np.stack([gate(q, K, V, j) for j in range(K.shape[1])], axis=1)
    return equal(answers.sum(axis=1), out, rounding(64 * K.shape[1], 1 + np.abs(V).max(axis=(1, 2))))


def gated(q, K, V, j):
    logits = np.einsum("bid,bjd->bij", q, K)
    top = logits.max(axis=2)
    weight = np.exp(logits[:, :, j] - top) / np.exp(logits - top[:, :, None]).sum(axis=2)
    return weight[:, :, None] * V[:, None, j]


@attack(
    "experts/attention-as-mixture",
    on=instances.attention.such_that(moderate(30)),
    wrong={"all experts alike": lambda Q, K, V: as_mixture(Q, K, V, lambda q, K, V, j: V[:, None, j] / K.shape[1])},
)
def attention_is_a_gated_sum(Q, K, V):
    return as_mixture(Q, K, V, gated)


no_attack(
    "sparse_and_dense/window-rank",
    because="measured: it says what was measured on the heads of one trained encoder.",
)
no_attack(
    "5.5.4/compress-attention",
    because="wording: it counts the entries of three named matrices and says that there is no fourth one.",
)
