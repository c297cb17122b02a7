"""Attacks on what the chapter on low rank says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding, true
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


def moves(U: Array, V: Array) -> Array:
    """The derivative of (U, V) -> U V^T, shape (batch, n n, 2 n r)."""
    eye = identities(len(U), U.shape[1])
    return np.concatenate([kron(eye, V), kron(U, eye)], axis=2)


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


# Heads, layers, logarithms ------------------------------------------------------------------------------------------


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


@attack(
    "5.5.3/stacking",
    on=instances.stochastic_pairs.such_that(clear),
    wrong={
        "one less than the smaller rank": lambda A, B: product_rank(A, B, -1),
    },
)
def exact_rank_never_rises(A, B):
    return product_rank(A, B, 0)


def product_rank(A, B, extra):
    most = np.minimum(counted(A), counted(B)) + extra
    return at_most(np.where(np.arange(A.shape[1]) >= most[:, None], sigma(A @ B), 0.0), 0.0, 1e-8)


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


# Condition numbers --------------------------------------------------------------------------------------------------

near_singular = instances.square_matrices.such_that(lambda M: sigma(M)[:, 0] > 0).also(
    v=lambda rng, M: rng.normal(size=M.shape[:2])
)


def distance_bound(M, v, factor=1.0):
    """sigma_min |M - H| with a random singular H (its kernel is spanned by v): not above |M - H|."""
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    H = M - np.einsum("bij,bj,bk->bik", M, v, v)
    apart = np.linalg.norm(M - H, 2, axis=(1, 2))
    values = sigma(M)
    return at_most(values[:, -1], factor * apart, rounding(20 * M.shape[1] ** 1.5, values[:, 0]))


def nearest(M):
    """Removing the smallest term of the singular value decomposition is as near as the bound allows."""
    U, values, Vt = np.linalg.svd(M)
    removed = np.einsum("bi,b,bj->bij", U[:, :, -1], values[:, -1], Vt[:, -1, :])
    slack = rounding(40 * M.shape[1] ** 1.5, values[:, 0])
    gone = at_most(sigma(M - removed)[:, -1], 0.0, slack)
    return gone & equal(np.linalg.norm(removed, 2, axis=(1, 2)), values[:, -1], slack)


@attack(
    "proposition-nearly-singular",
    "5.5.3/unstable",
    on=near_singular,
    wrong={"half of the distance is enough": lambda M, v: distance_bound(M, v, 0.5)},
)
def singular_matrices_are_not_nearer(M, v):
    return distance_bound(M, v) & nearest(M)


def product_error(A, V, terms):
    single = np.float32
    P, values = A.astype(single), V.astype(single)
    exact = P.astype(float) @ values.astype(float)
    size = np.abs(values.astype(float)).max(axis=(1, 2))
    return at_most(np.abs(P @ values - exact).max(axis=(1, 2)), terms(A.shape[1]) * np.finfo(single).eps * size, 1e-40)


@attack(
    "5.5.3/unstable",
    on=with_values(),
    wrong={"a tenth of a unit": lambda A, V: product_error(A, V, lambda n: 0.1)},
)
def the_product_keeps_its_digits(A, V):
    return product_error(A, V, lambda n: n + 1)


def kappa(A: Array) -> Array:
    values = sigma(A)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(values[:, -1] > 0, values[:, 0] / values[:, -1], np.inf)


def near_uniform(A, power):
    n = A.shape[1]
    apart = np.linalg.norm(A - 1 / n, 2, axis=(1, 2)) ** power
    smallest = sigma(A)[:, -1]
    return at_most(smallest, apart * sigma(A)[:, 0], rounding(20 * n**1.5, np.linalg.norm(A, axis=(1, 2))))


several = instances.row_stochastic.such_that(lambda A: np.full(len(A), A.shape[1] >= 2))


@attack(
    "5.5.3/uniform-condition",
    "proposition-nearly-singular",
    on=several,
    wrong={
        "the square of the distance": lambda A: near_uniform(A, 2),
        "one token": instances.row_stochastic,
    },
)
def condition_near_uniform(A):
    return near_uniform(A, 1)


def one_hot(f: Array) -> Array:
    return np.eye(f.shape[1])[f]


def one_hot_values(f, chosen):
    found, n = sigma(one_hot(f)), f.shape[1]
    counts = (f[:, :, None] == np.arange(n)).sum(axis=1)
    expected = -np.sort(-np.sqrt(chosen(counts)), axis=1)
    return equal(found, expected, rounding(20 * n, np.sqrt(n)))


@attack(
    "5.5.3/one-hot-condition",
    on=instances.maps,
    wrong={
        "all singular values 1": lambda f: one_hot_values(f, np.ones_like),
        "the numbers without the root": lambda f: one_hot_values(f, lambda m: m**2),
    },
)
def one_hot_rows_have_these_singular_values(f):
    return one_hot_values(f, lambda m: m)


def approaching(f, noise, injective):
    """The condition number close to a one-hot matrix: at least 1/distance if two rows agree, near 1 if none do."""
    n, lead = f.shape[1], 30.0
    A = softmax(np.tanh(noise) + lead * one_hot(f))
    apart = np.linalg.norm(A - one_hot(f), 2, axis=(1, 2))
    distinct = np.array([len(set(row)) == n for row in f.tolist()])
    permutes = distinct if injective else np.full(len(f), True)
    bound = np.where(permutes, np.inf, apart)
    smallest = sigma(A)[:, -1]
    near_one = np.where(permutes, kappa(A) <= 1 + 1e-6, True)
    return at_most(smallest, bound, rounding(20 * n**1.5, 1.0)) & near_one


@attack(
    "5.5.3/one-hot-condition",
    on=instances.maps.also(noise=lambda rng, f: rng.normal(size=(*f.shape, f.shape[1]))),
    wrong={"near 1 for all favourites": lambda f, noise: approaching(f, noise, injective=False)},
)
def near_one_hot_it_depends_on_favourites(f, noise):
    return approaching(f, noise, injective=True)


# Gradients and the scale --------------------------------------------------------------------------------------------

gradient_cases = instances.row_stochastic.also(
    G=lambda rng, A: instances.entries(rng, len(A), (A.shape[1], 3))[rng.permutation(len(A))]
)


def pulled_back(A, G, factor):
    size = np.linalg.norm(G, axis=(1, 2))
    back = np.linalg.norm(A.swapaxes(1, 2) @ G, axis=(1, 2))
    return at_most(back, factor(A.shape[1]) * size, rounding(16 * A.shape[1] ** 1.5, size))


@attack(
    "5.5.3/condition-gradients",
    on=gradient_cases,
    wrong={
        "never enlarged": lambda A, G: pulled_back(A, G, lambda n: 1.0),
        "the root of n - 1": lambda A, G: pulled_back(A, G, lambda n: max(n - 1, 1) ** 0.5),
    },
)
def gradients_grow_by_root_n_at_most(A, G):
    return pulled_back(A, G, lambda n: n**0.5)


value_gradients = instances.score_matrices.such_that(moderate(5)).also(
    V=lambda rng, S: rng.normal(size=(len(S), S.shape[2], 2)),
    G=lambda rng, S, V: rng.normal(size=(len(S), S.shape[1], 2)),
    dS=lambda rng, S, V, G: rng.normal(size=S.shape),
)


def directional(S, V, G, dS, by_hand):
    """The change of L = <G, softmax(S) V> along dS, by a difference quotient and by a formula."""
    step = 1e-5

    def loss(at):
        return (G * (softmax(at) @ V)).sum(axis=(1, 2))

    quotient = (loss(S + step * dS) - loss(S - step * dS)) / (2 * step)
    size = np.abs(G).max(axis=(1, 2)) * np.abs(V).max(axis=(1, 2)) * np.abs(dS).max(axis=(1, 2)) ** 3
    return equal(quotient, (by_hand(softmax(S), G @ V.swapaxes(1, 2)) * dS).sum(axis=(1, 2)), 1e-7 * (1 + size))


@attack(
    "5.5.3/backward",
    on=value_gradients,
    wrong={
        "the normalisation forgotten": lambda *batch: directional(*batch, lambda A, D: A * D),
        "the sum over columns": lambda *batch: directional(
            *batch, lambda A, D: A * (D - (A * D).sum(axis=1, keepdims=True))
        ),
    },
)
def the_gradient_of_the_scores(S, V, G, dS):
    return directional(S, V, G, dS, lambda A, D: A * (D - (A * D).sum(axis=2, keepdims=True)))


def through_values(S, G, transposed):
    """The change of L = <G, A V> with one entry of V is what A^T G says: exact, since L is linear in V."""
    A = softmax(S)
    eye = np.eye(S.shape[2])
    changes = np.einsum("bid,bij,jk->bkd", G, A, eye)
    return equal(changes, transposed(A) @ G, rounding(8 * S.shape[1], np.abs(G).max(axis=(1, 2)) * S.shape[1]))


@attack(
    "5.5.3/backward",
    on=instances.square_matrices.such_that(moderate(5)).also(G=lambda rng, S: rng.normal(size=(*S.shape[:2], 2))),
    wrong={
        "the pseudo-inverse": lambda S, G: through_values(S, G, lambda A: np.linalg.pinv(A)),
        "not transposed": lambda S, G: through_values(S, G, lambda A: A),
    },
)
def the_gradient_of_the_values(S, G):
    return through_values(S, G, lambda A: A.swapaxes(1, 2))


def two_tokens(s, formula):
    """The condition number of two tokens that prefer themselves by s > 0."""
    own = 1 / (1 + np.exp(-s))
    A = np.stack([np.stack([own, 1 - own], 1), np.stack([1 - own, own], 1)], 1)
    expected = formula(s)
    return equal(kappa(A) / expected, 1.0, rounding(100, 1.0, np.maximum(kappa(A), expected)))


positive = instances.numbers(s=(1e-3, 30.0))


@attack(
    "5.5.3/scaling-condition",
    on=positive,
    wrong={
        "s in place of s/2": lambda s: two_tokens(s, lambda s: 1 / np.tanh(s)),
        "tanh in place of coth": lambda s: two_tokens(s, lambda s: np.tanh(s / 2)),
    },
)
def two_tokens_have_coth(s):
    return two_tokens(s, lambda s: 1 / np.tanh(s / 2)) & at_most(1 / np.tanh(s / 2), 1 / np.tanh(s / 4), 1e-12)


no_attack(
    "condition_number/trained-scaling",
    because="measured: It compares two condition numbers of each of the trained heads that the book ships.",
)
no_attack(
    "powers/collapse",
    because="measured: It reports a mean over twenty seeded networks of random weights of one size.",
)
