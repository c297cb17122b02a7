"""Attacks on what the chapter on what low rank buys and costs says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, rounding, true
from instances import Array, moderate, softmax


def sigma(A: Array) -> Array:
    """Singular values of each matrix, the largest first, shape (batch, min(n, m))."""
    return np.linalg.svd(A, compute_uv=False)


def counted(A: Array, relative: float = 1e-9) -> Array:
    """How many singular values exceed that part of the largest: a rank where the matrix was built to have gaps."""
    values = sigma(A)
    return (values > relative * values[:, :1]).sum(axis=1)


def kron(A: Array, B: Array) -> Array:
    """Kronecker product of each pair of matrices."""
    rows, columns = A.shape[1] * B.shape[1], A.shape[2] * B.shape[2]
    return np.einsum("bij,bkl->bikjl", A, B).reshape(len(A), rows, columns)


def identities(count: int, n: int) -> Array:
    return np.broadcast_to(np.eye(n), (count, n, n))


# Degrees of freedom -------------------------------------------------------------------------------------------------


def orthonormal(rng: np.random.Generator, count: int, n: int, r: int) -> Array:
    return np.linalg.qr(rng.normal(size=(count, n, r)))[0]


# The tangent space of the matrices of rank r depends on the column spaces of the factors alone, so that orthonormal
# factors cover every case, and ranks have a clear gap.
tall = instances.matrices.such_that(lambda A: np.full(len(A), A.shape[2] <= A.shape[1]))
factors = tall.also(
    U=lambda rng, A: orthonormal(rng, len(A), *A.shape[1:]), V=lambda rng, A, U: orthonormal(rng, len(A), *A.shape[1:])
)
oblong = tall.also(
    U=lambda rng, A: orthonormal(rng, len(A), *A.shape[1:]),
    V=lambda rng, A, U: orthonormal(rng, len(A), A.shape[2] + int(rng.integers(0, 3)), A.shape[2]),
)


def moves(U: Array, V: Array) -> Array:
    """The derivative of (U, V) -> U V^T, shape (batch, n m, (n + m) r)."""
    n, m = U.shape[1], V.shape[1]
    return np.concatenate([kron(identities(len(U), n), V), kron(U, identities(len(U), m))], axis=2)


def dimension_is(U, V, formula):
    n, r = U.shape[1:]
    return true(counted(moves(U, V)) == formula(n, r))


@attack(
    "theorem-rank-r-dimension",
    "5.5.3/freedom",
    "5.5.3/count",
    on=factors,
    wrong={
        "values and vectors all free": lambda A, U, V: dimension_is(U, V, lambda n, r: r + 2 * n * r),
        "vectors of length 1 only": lambda A, U, V: dimension_is(U, V, lambda n, r: 2 * n * r - r),
        "all entries": lambda A, U, V: dimension_is(U, V, lambda n, r: n * n),
    },
)
def matrices_of_rank_r_have_dimension(A, U, V):
    return dimension_is(U, V, lambda n, r: 2 * n * r - r * r)


def oblong_dimension(U, V, formula):
    return true(counted(moves(U, V)) == formula(U.shape[1], V.shape[1], U.shape[2]))


@attack(
    "theorem-rank-r-dimension",
    on=oblong,
    wrong={"twice the rows": lambda A, U, V: oblong_dimension(U, V, lambda n, m, r: 2 * n * r - r * r)},
)
def oblong_matrices_of_rank_r_have_dimension(A, U, V):
    return oblong_dimension(U, V, lambda n, m, r: (n + m) * r - r * r)


def schur(A, U, V, block):
    """For a matrix U V^T whose first r rows and columns are regular, the last block follows from the others."""
    r = U.shape[2]
    whole = U @ V.swapaxes(1, 2)
    P, C, R, T = whole[:, :r, :r], whole[:, :r, r:], whole[:, r:, :r], whole[:, r:, r:]
    return equal(T, block(P, C, R), 1e-6)


regular_block = oblong.such_that(
    lambda A, U, V: np.linalg.svd((U @ V.swapaxes(1, 2))[:, : A.shape[2], : A.shape[2]])[1][:, -1] > 1e-4
)


@attack(
    "theorem-rank-r-dimension",
    "5.5.3/freedom",
    on=regular_block,
    wrong={
        "the inverse transposed": lambda A, U, V: schur(
            A, U, V, lambda P, C, R: R @ np.linalg.inv(P).swapaxes(1, 2) @ C
        ),
    },
)
def the_last_block_is_determined(A, U, V):
    return schur(A, U, V, lambda P, C, R: R @ np.linalg.inv(P) @ C)


turns = oblong.also(
    G=lambda rng, A, U, V: (
        orthonormal(rng, len(A), A.shape[2], A.shape[2]) * rng.uniform(0.5, 2, size=(len(A), 1, A.shape[2]))
    )
)


def one_orbit(U, V, G, back):
    """The changed factors have the same product, and factors of the product from elsewhere differ by some G."""
    product = U @ V.swapaxes(1, 2)
    changed = equal(U @ G @ (V @ back(G)).swapaxes(1, 2), product, 1e-12)
    left, values, right = np.linalg.svd(product, full_matrices=False)
    r = U.shape[2]
    U_new, V_new = left[:, :, :r] * values[:, None, :r], right[:, :r].swapaxes(1, 2)
    found = V.swapaxes(1, 2) @ V_new  # the columns of V_new are orthonormal
    return changed & equal(U @ found, U_new, 1e-10) & equal(V @ back(found), V_new, 1e-10)


def inverse_transposed(G):
    return np.linalg.inv(G).swapaxes(1, 2)


@attack(
    "theorem-one-orbit",
    "theorem-attention-maps",
    on=turns,
    wrong={
        "the same matrix on both": lambda A, U, V, G: one_orbit(U, V, G, lambda G: G),
        "the inverse, not transposed": lambda A, U, V, G: one_orbit(U, V, G, np.linalg.inv),
    },
)
def factorisations_form_one_orbit(A, U, V, G):
    return one_orbit(U, V, G, inverse_transposed)


def log_softmax(S):
    top = S - S.max(axis=-1, keepdims=True)
    return top - np.log(np.exp(top).sum(axis=-1, keepdims=True))


def told_by_weights(W_Q, W_K, order):
    """x^T M y from the weights of the inputs (x, 0) and (x, y) of two tokens, for all basis vectors x and y."""
    M = W_Q @ W_K.swapaxes(1, 2)
    own = np.einsum("baa->ba", M)[:, :, None]
    with_zero = log_softmax(np.stack([own + 0 * M, 0 * M], axis=-1))
    with_y = log_softmax(np.stack([own + 0 * M, M], axis=-1))
    found = (with_zero[..., 0] - with_zero[..., 1]) - (with_y[..., 0] - with_y[..., 1])
    return equal(found, order(M), rounding(64 * W_Q.shape[2], 1 + np.abs(M).max(axis=(1, 2))))


@attack(
    "theorem-attention-maps",
    on=instances.inputs.such_that(moderate(30)),
    wrong={"the transpose": lambda X, W_Q, W_K, W_V: told_by_weights(W_Q, W_K, lambda M: M.swapaxes(1, 2))},
)
def two_tokens_tell_the_product(X, W_Q, W_K, W_V):
    return told_by_weights(W_Q, W_K, lambda M: M)


def measured_directions(U, V, rng, formula):
    n, r = U.shape[1:]
    m = int(rng.integers(1, n * n + 1))
    told = counted(rng.normal(size=(len(U), m, n * n)) @ moves(U, V), 1e-7)
    return true(told == np.minimum(m, formula(n, r)))


@attack(
    "5.5.3/samples",
    on=factors,
    wrong={
        "as many as entries": lambda A, U, V: measured_directions(
            U, V, np.random.default_rng(len(A)), lambda n, r: n * n
        ),
        "as many as entries of both factors": lambda A, U, V: measured_directions(
            U, V, np.random.default_rng(len(A)), lambda n, r: 2 * n * r
        ),
    },
)
def measurements_tell_directions_apart(A, U, V):
    return measured_directions(U, V, np.random.default_rng(len(A)), lambda n, r: 2 * n * r - r * r)


def score_moves(X, W_Q, W_K):
    """The derivative of the scores by both projections, constants of each row removed: what softmax sees of it."""
    n, (d, d_k) = X.shape[1], W_Q.shape[1:]
    by_queries = np.einsum("bia,bje->bijae", X, X @ W_K).reshape(len(X), n * n, d * d_k)
    by_keys = np.einsum("bie,bja->bijae", X @ W_Q, X).reshape(len(X), n * n, d * d_k)
    both = np.concatenate([by_queries, by_keys], axis=2).reshape(len(X), n, n, -1)
    return (both - both.mean(axis=2, keepdims=True)).reshape(len(X), n * n, -1)


# n, d_model, p, whether a combination of the features is constant, d_k
TOKENS = (
    (3, 2, 2, False, 1),
    (3, 2, 2, True, 2),
    (4, 3, 2, False, 1),
    (4, 3, 3, True, 1),
    (4, 3, 3, True, 2),
    (4, 3, 3, False, 2),
)


def _tokens(rng, count, shape):
    n, d, p, constant, d_k = shape
    C = rng.normal(size=(count, n, p))
    if constant:
        C[:, :, 0] = 1
    B = np.linalg.qr(rng.normal(size=(count, d, p)))[0].swapaxes(1, 2)
    return C @ B, rng.normal(size=(count, d, d_k)), rng.normal(size=(count, d, d_k))


def _named_tokens():
    e = np.eye(3)
    small = np.array([e[0], e[1], e[2], e[0] + e[2]])
    yield "the small head", (small, np.array([[0.0, 1], [2, -1], [1, 0]]), np.array([[-1.0, 0], [1, -1], [2, 2]]))
    yield "the basis, a width of 1", (e, np.array([[1.0], [2], [-1]]), np.array([[3.0], [1], [1]]))


tokens = instances.kind("X W_Q W_K", _named_tokens, _tokens, TOKENS)


def free_numbers(X, W_Q, W_K, formula):
    d, d_k = W_Q.shape[1:]
    p, q = counted(X), counted(X - X[:, :1])
    width = np.minimum(np.minimum(p, q), d_k)  # all p x q matrices have rank min(p, q) at most
    return true(counted(score_moves(X, W_Q, W_K)) == formula(d, p, q, width))


@attack(
    "theorem-free-numbers",
    on=tokens,
    wrong={
        "the width of the model": lambda X, W_Q, W_K: free_numbers(X, W_Q, W_K, lambda d, p, q, k: 2 * d * k - k * k),
        "the span of the tokens twice": lambda X, W_Q, W_K: free_numbers(
            X, W_Q, W_K, lambda d, p, q, k: 2 * p * k - k * k
        ),
    },
)
def free_numbers_follow_the_spans(X, W_Q, W_K):
    return free_numbers(X, W_Q, W_K, lambda d, p, q, k: (p + q) * k - k * k)


def free_numbers_at_most(X, W_Q, W_K, limit):
    jacobian = score_moves(X, W_Q, W_K)
    beyond = sigma(jacobian)[:, limit:]
    size = np.linalg.norm(jacobian, axis=(1, 2))
    return at_most(beyond, 0.0, rounding(64 * sum(jacobian.shape[1:]), size)) if beyond.shape[1] else size >= 0


def full_bound(X, W_Q, W_K):
    d, d_k = W_Q.shape[1:]
    return free_numbers_at_most(X, W_Q, W_K, 2 * d * d_k - d_k * d_k)


@attack(
    "5.5.3/parameters",
    on=instances.inputs.such_that(moderate(100)).such_that(
        lambda X, W_Q, W_K, W_V: np.full(len(X), W_Q.shape[2] <= W_Q.shape[1])
    ),
    wrong={
        "d_model d_k": lambda X, W_Q, W_K, W_V: free_numbers_at_most(
            X, W_Q, W_K, W_Q.shape[1] * W_Q.shape[2] - W_Q.shape[2] ** 2
        ),
        "one less": lambda X, W_Q, W_K, W_V: free_numbers_at_most(
            X, W_Q, W_K, 2 * W_Q.shape[1] * W_Q.shape[2] - W_Q.shape[2] ** 2 - 1
        ),
    },
)
def attention_has_few_free_numbers(X, W_Q, W_K, W_V):
    return full_bound(X, W_Q, W_K)


# Where the output lives ---------------------------------------------------------------------------------------------


def lies_in(part: Array, whole: Array, slack: Array) -> object:
    """Whether the columns of `part` lie in the column space of `whole`, whose rank is clear."""
    U, values, _ = np.linalg.svd(whole, full_matrices=False)
    basis = U * (values > 1e-9 * values[:, :1])[:, None, :]
    return at_most(np.abs(part - basis @ (basis.swapaxes(1, 2) @ part)).max(axis=(1, 2)), 0.0, slack)


def clear(*matrices: Array) -> Array:
    """Whether no singular value lies between rounding and a thousandth of the largest."""
    fine = np.full(len(matrices[0]), True)
    for A in matrices:
        relative = sigma(A) / np.maximum(sigma(A)[:, :1], np.finfo(float).tiny)
        fine &= ((relative < 1e-12) | (relative > 1e-3)).all(axis=1) & (sigma(A)[:, 0] > 0)
    return fine


def with_values(width=None):
    """Attention matrices with values of a random width, or of the given function of n."""
    return instances.row_stochastic.also(
        V=lambda rng, A: instances.entries(
            rng, len(A), (A.shape[1], width(A.shape[1]) if width else int(rng.integers(1, 7))), scaled=False
        )
    ).such_that(clear)


def spaces(A, V, rows_of=lambda A, V: V):
    """Columns of AV in the columns of A, rows of AV in the rows of V, and no more dimensions than A has."""
    output = A @ V
    slack = 1e-8 * np.maximum(np.abs(V).max(axis=(1, 2)), 1)
    values = sigma(output)
    beyond = np.where(np.arange(values.shape[1]) >= counted(A)[:, None], values, 0.0)
    in_rows = lies_in(output.swapaxes(1, 2), rows_of(A, V).swapaxes(1, 2), slack)
    return lies_in(output, A, slack) & in_rows & at_most(beyond, 0.0, slack)


@attack(
    "theorem-output-space",
    "5.5.3/row-space",
    on=with_values(),
    wrong={
        "rows of the output in the row space of A": (
            lambda A, V: spaces(A, V, lambda A, V: A),
            with_values(lambda n: n),
        )
    },
)
def columns_from_A_and_rows_from_V(A, V):
    return spaces(A, V)


def lost(A, V, extra):
    """rank O = rank V - dim(ker A and colspace V), the dimensions counted from singular values."""
    values, Vt = np.linalg.svd(A)[1:]
    outside = np.where((values > 1e-9 * values[:, :1])[:, :, None], 0.0, Vt).swapaxes(1, 2)
    both = np.concatenate([outside, V / np.abs(V).max(axis=(1, 2), keepdims=True)], axis=2)
    common = (A.shape[1] - counted(A)) + counted(V) - counted(both)
    output = np.where(np.abs(A @ V).max(axis=(1, 2)) > 1e-12 * np.abs(V).max(axis=(1, 2)), counted(A @ V), 0)
    return true(output == counted(V) - extra(A.shape[1] - counted(A), common))


def plain_output(A, V):
    """Whether the rank of AV is clear, and AV itself is either of the size of V or rounding."""
    part = np.abs(A @ V).max(axis=(1, 2)) / np.abs(V).max(axis=(1, 2))
    return clear(A @ V) & ((part > 1e-3) | (part < 1e-12))


clear_output = with_values().such_that(plain_output)


@attack(
    "theorem-output-space",
    "5.5.3/row-space",
    on=clear_output,
    wrong={
        "the whole kernel is lost": lambda A, V: lost(A, V, lambda kernel, common: kernel),
        "nothing is lost": lambda A, V: lost(A, V, lambda kernel, common: 0),
    },
)
def the_output_loses_the_common_part(A, V):
    return lost(A, V, lambda kernel, common: common)


# Heads and logarithms ------------------------------------------------------------------------------------------


def together(A, B, extra):
    both, most = np.concatenate([A, B], axis=2), counted(A) + counted(B) + extra
    values, place = sigma(both), np.arange(A.shape[1])
    return at_most(np.where(place >= most[:, None], values, 0.0), 0.0, 1e-8 * values[:, :1])


@attack(
    "proposition-heads-together",
    on=instances.stochastic_pairs.such_that(clear),
    wrong={"one less": lambda A, B: together(A, B, -2)},
)
def heads_share_a_direction(A, B):
    return together(A, B, -1)


def log_rank(Q, K, extra):
    S = Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2])
    logs = (
        S - np.log(np.exp(S - S.max(axis=2, keepdims=True)).sum(axis=2, keepdims=True)) - S.max(axis=2, keepdims=True)
    )
    beyond = sigma(logs)[:, Q.shape[2] + extra :]
    slack = rounding(64 * sum(S.shape[1:]), 1 + np.linalg.norm(S, axis=(1, 2)) + np.linalg.norm(logs, axis=(1, 2)))
    return at_most(beyond, 0.0, slack) if beyond.shape[1] else np.full(len(Q), True)


@attack(
    "5.5.3/single-layer",
    on=instances.queries_and_keys.such_that(moderate(30)),
    wrong={
        "rank d_k, normalisation forgotten": lambda Q, K: log_rank(Q, K, 0),
        "the rank of A itself": lambda Q, K: at_most(
            np.pad(sigma(softmax(Q @ K.swapaxes(1, 2))), [(0, 0), (0, 9)])[:, Q.shape[2] : Q.shape[2] + 1], 0.0, 1e-9
        ),
    },
)
def the_logarithm_has_low_rank(Q, K):
    return log_rank(Q, K, 1)


def centred(Q, K, extra):
    """The centred logarithm has rank at most d_k, and its factors give the weights back."""
    n, d_k = Q.shape[1], Q.shape[2] + extra
    logs = log_softmax(Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2]))
    L = logs - logs.mean(axis=2, keepdims=True)
    left, values, right = np.linalg.svd(L, full_matrices=False)
    slack = rounding(64 * (n + K.shape[1]), 1 + np.linalg.norm(logs, axis=(1, 2)))
    beyond = at_most(values[:, d_k:], 0.0, slack) if values.shape[1] > d_k else np.full(len(Q), True)
    again = softmax((left[:, :, :d_k] * values[:, None, :d_k]) @ right[:, :d_k])
    return beyond & equal(again, np.exp(logs), slack)


@attack(
    "theorem-log-rank",
    "5.5.3/single-layer",
    on=instances.queries_and_keys.such_that(moderate(30)),
    wrong={"one dimension less": lambda Q, K: centred(Q, K, -1)},
)
def a_head_is_what_its_logarithm_allows(Q, K):
    return centred(Q, K, 0)


between = (
    instances.queries_and_keys.such_that(moderate(100))
    .such_that(lambda Q, K: np.full(len(Q), K.shape[1] >= 3))
    .also(parts=lambda rng, Q, K: rng.dirichlet(np.full(K.shape[1] - 1, 0.5), size=len(Q)))
)


def weight_between(Q, K, parts, most):
    """The weight of a key that is a combination of the others."""
    inner = np.einsum("bl,bld->bd", parts, K[:, 1:])
    keys = np.concatenate([inner[:, None], K[:, 1:]], axis=1)
    weights = softmax(Q @ keys.swapaxes(1, 2))
    return at_most(weights[:, :, 0], most, rounding(64 * K.shape[2], 1 + np.abs(Q @ keys.swapaxes(1, 2)).max((1, 2))))


@attack(
    "proposition-key-between",
    on=between,
    wrong={
        "at most a third": lambda Q, K, parts: weight_between(Q, K, parts, 1 / 3),
        "any combination": lambda Q, K, parts: weight_between(Q, K, 2 * parts - 1 / parts.shape[1], 0.5),
    },
)
def a_key_between_others_gets_half_at_most(Q, K, parts):
    return weight_between(Q, K, parts, 0.5)
