"""Attacks on what the chapter on the condition number says itself."""

from __future__ import annotations

from math import comb, factorial

import instances
import numpy as np
from hunt import at_most, attack, equal, rounding, true
from instances import Array, moderate, softmax


def sigma(A: Array) -> Array:
    """Singular values of each matrix, the largest first, shape (batch, min(n, m))."""
    return np.linalg.svd(A, compute_uv=False)


def kappa(A: Array) -> Array:
    values = sigma(A)
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(values[:, -1] > 0, values[:, 0] / values[:, -1], np.inf)


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


regular = instances.square_matrices.such_that(lambda M: sigma(M)[:, -1] > 1e-6 * sigma(M)[:, 0]).also(
    b=lambda rng, M: rng.normal(size=M.shape[:2]), error=lambda rng, M, b: rng.normal(size=M.shape[:2])
)


def relative_error(M, b, error):
    """The relative error of the solution over that of the right side."""
    size = np.linalg.norm
    y, moved = np.linalg.solve(M, np.stack([b, error], axis=2)).transpose(2, 0, 1)
    return size(moved, axis=1) / size(y, axis=1) * size(b, axis=1) / size(error, axis=1)


def solving(M, b, error, power=1.0):
    """At most kappa, and equal to it for the first and the last left singular vector."""
    U, limit = np.linalg.svd(M)[0], kappa(M) ** power
    worst = relative_error(M, U[:, :, 0], U[:, :, -1])
    return at_most(relative_error(M, b, error), limit, 1e-8 * limit) & equal(worst / limit, 1.0, 1e-8)


@attack(
    "theorem-solving-error",
    on=regular,
    wrong={
        "the square of kappa": lambda M, b, error: solving(M, b, error, 2.0),
        "the root of kappa": lambda M, b, error: solving(M, b, error, 0.5),
    },
)
def solving_enlarges_errors_by_kappa(M, b, error):
    return solving(M, b, error)


values_too = instances.row_stochastic.also(
    V=lambda rng, A: instances.entries(rng, len(A), (A.shape[1], int(rng.integers(1, 7))))
)


def product_error(A, V, factors):
    """The product in single precision against the bound, for the rounded weights and values themselves."""
    single, unit = np.float32, float(np.finfo(np.float32).eps) / 2
    P, values = A.astype(single), V.astype(single)
    exact = P.astype(float) @ values.astype(float)
    bound = ((1 + unit) ** factors(A.shape[1]) - 1) * (P.astype(float) @ np.abs(values.astype(float)))
    largest = np.abs(values.astype(float)).max(axis=(1, 2))
    sums = P.astype(float).sum(axis=2).max(axis=1)
    within = at_most(np.abs(P @ values - exact), bound, 1e-40 + 1e-14 * bound)
    return within & at_most(P.astype(float) @ np.abs(values.astype(float)), largest * sums, rounding(8, largest))


@attack(
    "theorem-product-rounding",
    "5.5.3/unstable",
    on=values_too,
    wrong={"the products are not rounded": lambda A, V: product_error(A, V, lambda n: n - 1)},
)
def the_product_keeps_its_digits(A, V):
    return product_error(A, V, lambda n: n)


square_heads = instances.queries_and_keys.such_that(
    lambda Q, K: np.full(len(Q), Q.shape[1] == K.shape[1] and Q.shape[1] >= 2)
).also(heat=lambda rng, Q, K: 10 ** rng.uniform(-0.5, 2, size=len(Q)))
square_heads = square_heads.such_that(lambda Q, K, heat: np.abs(Q @ K.swapaxes(1, 2)).max(axis=(1, 2)) > 0)


def hot(Q, K, heat, more=0):
    """At the temperature heat * s, kappa is at least m! heat^m exp(-2 / heat)."""
    n, d = Q.shape[1:]
    S = Q @ K.swapaxes(1, 2)
    s = np.abs(S).max(axis=(1, 2))
    A = softmax(S / (s * heat)[:, None, None])
    m = max(m for m in range(1, n + 1) if comb(d + m - 1, d) < n) + more
    bound = factorial(m) * heat**m * np.exp(-2 / heat)
    values = sigma(A)
    return at_most(bound * values[:, -1], values[:, 0], rounding(40 * n**1.5, bound * values[:, 0]))


@attack(
    "theorem-hot-condition",
    on=square_heads,
    wrong={
        "one power more": lambda Q, K, heat: hot(Q, K, heat, more=1),
    },
)
def heat_raises_kappa(Q, K, heat):
    return hot(Q, K, heat)


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
    "theorem-one-hot-condition",
    "5.5.3/one-hot-condition",
    on=instances.maps,
    wrong={
        "all singular values 1": lambda f: one_hot_values(f, np.ones_like),
        "the numbers without the root": lambda f: one_hot_values(f, lambda m: m**2),
    },
)
def one_hot_rows_have_these_singular_values(f):
    return one_hot_values(f, lambda m: m)


close = instances.maps.also(
    A=lambda rng, f: instances.distributions(rng, len(f), (f.shape[1], f.shape[1])),
    share=lambda rng, f, A: 10 ** rng.uniform(-6, 0, size=len(f)),
)


def near_one_hot(f, A, share, injective=True, factor=1.0):
    """Weights near one-hot rows: kappa at most (1 + d)/(1 - d), or at least 1/d if two rows agree."""
    n, H = f.shape[1], one_hot(f)
    near = (1 - share[:, None, None]) * H + share[:, None, None] * A
    d = factor * np.linalg.norm(near - H, 2, axis=(1, 2))
    distinct = np.array([len(set(row)) == n for row in f.tolist()])
    permutes = distinct if injective else np.full(len(f), True)
    values = sigma(near)
    slack = rounding(40 * n**1.5, np.sqrt(n))
    upper = np.where(permutes & (d < 1), (1 - d) * values[:, 0] - (1 + d) * values[:, -1], 0.0)
    lower = np.where(permutes, 0.0, values[:, -1] - d * values[:, 0])
    return at_most(upper, 0.0, slack) & at_most(lower, 0.0, slack)


@attack(
    "theorem-one-hot-condition",
    "5.5.3/one-hot-condition",
    on=close,
    wrong={
        "near 1 for all favourites": lambda f, A, share: near_one_hot(f, A, share, injective=False),
        "half of the distance": lambda f, A, share: near_one_hot(f, A, share, factor=0.5),
    },
)
def near_one_hot_it_depends_on_favourites(f, A, share):
    return near_one_hot(f, A, share)


def causal(A, least, length=0):
    """kappa >= 1 / min a_ii, and the bounds at uniform weights of the same length."""
    n, values = A.shape[1] + length, sigma(A)
    own = least(np.diagonal(A, axis1=1, axis2=2))
    smallest = at_most(values[:, -1], own * values[:, 0], rounding(20 * A.shape[1] ** 1.5, values[:, 0]))
    uniform = kappa((np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None])[None])
    past = kappa((np.tril(np.ones((A.shape[1],) * 2)) / np.arange(1, A.shape[1] + 1)[:, None])[None])
    bounds = at_most(float(n), uniform, 1e-9) & at_most(past, (2 * A.shape[1] - 1) * (1 + np.log(n)) ** 0.5, 1e-9)
    return smallest & true(np.broadcast_to(bounds.holds, len(A)))


@attack(
    "proposition-causal-condition",
    on=instances.causal_stochastic,
    wrong={
        "the mean of the diagonal": lambda A: causal(A, lambda own: own.mean(axis=1) / 8),
        "the square of the least": lambda A: causal(A, lambda own: own.min(axis=1) ** 2),
    },
)
def a_small_own_weight_makes_kappa_large(A):
    return causal(A, lambda own: own.min(axis=1))


# Gradients and the scale --------------------------------------------------------------------------------------------

gradient_cases = instances.row_stochastic.also(
    G=lambda rng, A: instances.entries(rng, len(A), (A.shape[1], 3))[rng.permutation(len(A))]
)


def pulled_back(A, G, factor):
    size = np.linalg.norm(G, axis=(1, 2))
    back = np.linalg.norm(A.swapaxes(1, 2) @ G, axis=(1, 2))
    return at_most(back, factor(A.shape[1]) * size, rounding(16 * A.shape[1] ** 1.5, size))


@attack(
    "theorem-gradient-factors",
    "condition_number/gradient-bounds",
    on=gradient_cases,
    wrong={
        "never enlarged": lambda A, G: pulled_back(A, G, lambda n: 1.0),
        "the root of n - 1": lambda A, G: pulled_back(A, G, lambda n: max(n - 1, 1) ** 0.5),
    },
)
def gradients_grow_by_root_n_at_most(A, G):
    return pulled_back(A, G, lambda n: n**0.5)


def through_scores(A, G, factor):
    """The gradient of the scores for a given gradient of the weights, D = G C with any C of n columns."""
    D = G @ np.cos(np.arange(3 * A.shape[1], dtype=float)).reshape(1, 3, -1)
    size = np.linalg.norm(D, axis=(1, 2))
    back = A * (D - (A * D).sum(axis=2, keepdims=True))
    return at_most(np.linalg.norm(back, axis=(1, 2)), factor * size, rounding(32 * A.shape[1], size))


@attack(
    "theorem-gradient-factors",
    "condition_number/gradient-bounds",
    on=gradient_cases,
    wrong={"a quarter": lambda A, G: through_scores(A, G, 0.25)},
)
def the_jacobian_halves(A, G):
    return through_scores(A, G, 0.5)


def along_the_last(A, G, back):
    """A gradient along the last left singular vector is multiplied by sigma_min, which is at most root n / kappa."""
    U, values, _ = np.linalg.svd(A)
    size = np.linalg.norm(back(A) @ U[:, :, -1:], axis=(1, 2))
    slack = rounding(32 * A.shape[1] ** 1.5, np.linalg.norm(A, axis=(1, 2)))
    within = at_most(size * values[:, 0], np.sqrt(A.shape[1]) * values[:, -1], slack * A.shape[1])
    return within & equal(size, values[:, -1], slack)


@attack(
    "5.5.3/small-gradients",
    on=gradient_cases,
    wrong={
        "the pseudo-inverse": lambda A, G: along_the_last(A, G, np.linalg.pinv),
        "not transposed": lambda A, G: along_the_last(A, G, lambda A: A),
    },
)
def gradients_along_the_last_direction_shrink(A, G):
    return along_the_last(A, G, lambda A: A.swapaxes(1, 2))


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
    "condition_number/two-tokens",
    on=positive,
    wrong={
        "s in place of s/2": lambda s: two_tokens(s, lambda s: 1 / np.tanh(s)),
        "tanh in place of coth": lambda s: two_tokens(s, lambda s: np.tanh(s / 2)),
    },
)
def two_tokens_have_coth(s):
    return two_tokens(s, lambda s: 1 / np.tanh(s / 2)) & at_most(1 / np.tanh(s / 2), 1 / np.tanh(s / 4), 1e-12)
