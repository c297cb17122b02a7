"""Attacks on what the chapter on linear attention says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, less, rounding
from instances import Array


def sparsity(a: Array) -> Array:
    """Mean modulus over root mean square of each row, shape (batch,); rows are not zero."""
    a = np.abs(a) / np.abs(a).max(axis=1, keepdims=True)
    return a.mean(axis=1) / np.sqrt((a * a).mean(axis=1))


# Non-negative features ----------------------------------------------------------------------------------------------

features = (
    instances.attention.map("K q", lambda Q, K, V: (np.abs(K), np.abs(Q[:, 0])))
    .such_that(lambda K, q: np.einsum("bnd,bd->b", K, q) > 1e-30)
    .such_that(lambda K, q: np.full(len(K), K.shape[1] > 1))
)


def by_signal_to_noise(K, q, own=True, divisor=0):
    """Compare S^2 with r / (1 + r), written without a quotient that may be infinite."""
    n, d = K.shape[1:]
    q = q / q.max(axis=1, keepdims=True)
    K = K / K.max(axis=(1, 2), keepdims=True)
    mean = K.mean(axis=1)
    centred = K - mean[:, None]
    cov = np.einsum("bni,bnj->bij", centred, centred) / max(n - divisor, 1)
    signal = np.einsum("bd,bd->b", q, mean) if own else np.linalg.norm(mean, axis=1)
    noise = np.einsum("bi,bij,bj->b", q, cov, q) if own else np.einsum("bii->b", cov)
    S = sparsity(np.einsum("bnd,bd->bn", K, q))
    total = signal**2 + noise
    return equal(S**2 * total, signal**2, rounding(64 * (n + d), total))


@attack(
    "article/8-mean",
    "article/8-exact",
    on=features,
    wrong={
        "the ratio of the vector": lambda K, q: by_signal_to_noise(K, q, own=False),
        "the divisor n - 1": lambda K, q: by_signal_to_noise(K, q, divisor=1),
    },
)
def S_depends_on_signal_to_noise_along_the_query(K, q):
    return by_signal_to_noise(K, q)


# The extremes over all queries ----------------------------------------------------------------------------------------

used = features.such_that(lambda K, q: (K.max(axis=1) > 1e-12 * K.max(axis=(1, 2))[:, None]).all(axis=1))


def of_features(K: Array) -> Array:
    """S of each feature over the tokens, shape (batch, d)."""
    K = K / K.max(axis=1, keepdims=True)
    return K.mean(axis=1) / np.sqrt((K * K).mean(axis=1))


def bounded_by(K, q, bound):
    S = sparsity(np.einsum("bnd,bd->bn", K / K.max(axis=(1, 2), keepdims=True), q / q.max(axis=1, keepdims=True)))
    return at_most(bound(K, q), S, rounding(64 * sum(K.shape[1:]), 1))


@attack(
    "theorem-linear-extremes",
    "linear/extremes",
    on=used,
    wrong={
        "the mean over the features": lambda K, q: bounded_by(K, q, lambda K, q: of_features(K).mean(axis=1)),
        "the flattest feature": lambda K, q: bounded_by(K, q, lambda K, q: of_features(K).max(axis=1)),
    },
)
def no_row_is_sparser_than_the_sparsest_feature(K, q):
    return bounded_by(K, q, lambda K, q: of_features(K).min(axis=1))


def error_of_fit(K, q, scale, share=1.0):
    row = np.einsum("bnd,bd->bn", K / K.max(axis=(1, 2), keepdims=True), q / q.max(axis=1, keepdims=True))
    row = row / row.max(axis=1, keepdims=True)
    best = row.mean(axis=1) / (row * row).mean(axis=1)
    error = np.mean((1 - (scale * best)[:, None] * row) ** 2, axis=1)
    least = 1 - sparsity(row) ** 2
    slack = rounding(64 * row.shape[1], 1 + scale**2)
    return at_most(share * least, error, slack) & at_most(np.where(scale == 1, error, 0), least, slack)


@attack(
    "theorem-linear-extremes",
    "linear/extremes",
    on=used.also(scale=lambda rng, K, q: np.where(rng.uniform(size=len(K)) < 0.3, 1, rng.uniform(0, 3, size=len(K)))),
    wrong={"twice the error": lambda K, q, scale: error_of_fit(K, q, scale, share=2.0)},
)
def the_least_error_of_a_fit_is_one_minus_S_squared(K, q, scale):
    return error_of_fit(K, q, scale)


def by_the_trace(K, q, power=1):
    K = K / K.max(axis=(1, 2), keepdims=True)
    ratio = K.var(axis=1).sum(axis=1) / (K.mean(axis=1) ** 2).sum(axis=1)
    S = of_features(K).min(axis=1)
    return at_most(S, 1 / np.sqrt(1 + ratio**power), rounding(64 * sum(K.shape[1:]), 1))


@attack("article/8-mean", on=used, wrong={"the square of the ratio": lambda K, q: by_the_trace(K, q, power=2)})
def some_query_is_as_sparse_as_the_whole_sequence(K, q):
    return by_the_trace(K, q)


def entropy_within(a, bins, bound):
    """Bits of bins of the width max / bins: bin k holds [k / bins, (k + 1) / bins) of the largest element."""
    label = np.floor(a / a.max(axis=1, keepdims=True) * bins[:, None]).astype(int)
    share = np.stack([(label == k).mean(axis=1) for k in range(10)], axis=1)
    p = 1 - share[:, 0]
    question = -(share[:, 0] * np.log(np.maximum(share[:, 0], 1e-300)) + p * np.log(np.maximum(p, 1e-300)))
    entropy = -(share * np.log(np.maximum(share, 1e-300))).sum(axis=1)
    cap = np.minimum(1.0, sparsity(a) ** 2 * bins)
    slack = rounding(64 * a.shape[1], 10)
    return at_most(entropy, question + bound(p, bins), slack) & at_most(p, cap, slack)


@attack(
    "article/limited-information",
    on=instances.nonnegative_vectors.such_that(lambda a: a.max(axis=1) > 0).also(
        bins=lambda rng, a: rng.integers(1, 10, size=len(a))
    ),
    wrong={
        "the bins are not counted": lambda a, bins: entropy_within(a, bins, lambda p, bins: 0 * p),
        "a bin too few": lambda a, bins: entropy_within(a, bins, lambda p, bins: p * np.log(np.maximum(bins - 1, 1))),
    },
)
def the_information_is_limited_at_a_fixed_resolution(a, bins):
    return entropy_within(a, bins, lambda p, bins: p * np.log(bins))


def share_of_large(x, delta, bound):
    largest = x.max(axis=1)
    share = (x >= (delta * largest)[:, None]).mean(axis=1)
    scaled = x / largest[:, None]
    c = scaled.std(axis=1) / scaled.mean(axis=1)
    return at_most(share, bound(c, delta), rounding(32 * x.shape[1], 1 / delta))


@attack(
    "article/8-noise",
    on=instances.nonnegative_vectors.such_that(lambda a: a.max(axis=1) > 0).also(
        delta=lambda rng, a: rng.uniform(0.01, 1, size=len(a))
    ),
    wrong={
        "the threshold is forgotten": lambda a, delta: share_of_large(a, delta, lambda c, delta: 1 / (1 + c**2)),
        "noise is not squared": lambda a, delta: share_of_large(a, delta, lambda c, delta: 1 / (delta * (1 + c))),
        "half of it": lambda a, delta: share_of_large(a, delta, lambda c, delta: 0.5 / (delta * (1 + c**2))),
    },
)
def few_elements_are_large(a, delta):
    return share_of_large(a, delta, lambda c, delta: 1 / (delta * (1 + c**2)))


positive = instances.attention.map("G H", lambda Q, K, V: (np.abs(Q), np.abs(K))).such_that(
    lambda G, H: (G.sum(axis=2).min(axis=1) > 1e-30) & ((G @ H.swapaxes(1, 2)).sum(axis=2).min(axis=1) > 1e-30)
)


def normalised(G: Array, H: Array) -> Array:
    weights = G @ H.swapaxes(1, 2)
    return weights / weights.sum(axis=2, keepdims=True)


@attack(
    "proposition-linear-one-feature",
    "article/8-absolute",
    on=positive.such_that(lambda G, H: np.full(len(G), G.shape[2] == 1)),
    wrong={"with two features": positive.such_that(lambda G, H: np.full(len(G), G.shape[2] == 2))},
)
def one_feature_makes_all_rows_equal(G, H):
    rows = normalised(G, H)
    return equal(rows, rows[:, :1], rounding(16 * H.shape[1], 1))


def rank_at_most(G, H, d):
    rows = normalised(G, H)
    beyond = np.linalg.svd(rows, compute_uv=False)[:, d:]
    slack = rounding(20 * sum(rows.shape[1:]), np.linalg.norm(rows, axis=(1, 2)))
    return (beyond <= slack[:, None]).all(axis=1) & (rows >= 0).all(axis=(1, 2))


@attack(
    "article/8-absolute",
    on=positive,
    wrong={"one feature less": lambda G, H: rank_at_most(G, H, G.shape[2] - 1)},
)
def d_features_have_rank_at_most_d(G, H):
    return rank_at_most(G, H, G.shape[2])


@attack(
    "article/8-absolute",
    on=instances.row_stochastic,
    wrong={"one feature less": lambda A: with_looked_up_features(A, A.shape[1] - 1)},
)
def n_features_express_every_matrix(A):
    return with_looked_up_features(A, A.shape[1])


def with_looked_up_features(A, d):
    """The first d columns of the rows as features of queries, one-hot features of keys."""
    return equal(A[:, :, :d] @ np.eye(A.shape[1])[:d], A, 0.0)


# Width --------------------------------------------------------------------------------------------------------------

nonzero = instances.vectors.such_that(lambda x: np.abs(x).max(axis=1) > 0)


def quotient(x: Array) -> Array:
    x = np.abs(x) / np.abs(x).max(axis=1, keepdims=True)
    return np.linalg.norm(x, axis=1) / x.sum(axis=1)


def quotient_between(x, low, high):
    slack = rounding(16 * x.shape[1], 1)
    return at_most(low, quotient(x), slack) & at_most(quotient(x), high, slack)


@attack(
    "article/9-ratio",
    "article/9-width",
    on=nonzero,
    wrong={
        "the maximum is not reached": lambda x: quotient_between(x, 0.0, 0.999),
        "the minimum is not reached": lambda x: quotient_between(x, 1.001 / np.sqrt(x.shape[1]), 1.0),
        "the bounds of the inverse": lambda x: quotient_between(x, 1.0, np.sqrt(x.shape[1])),
    },
)
def the_quotient_lies_between(x):
    return quotient_between(x, 1 / np.sqrt(x.shape[1]), 1.0)


def equal_features(c, d):
    """S by (A.9) for d equal features."""
    ones = np.where(np.arange(201) < d[:, None], 1.0, 0.0)
    return 1 / np.hypot(1, c * np.linalg.norm(ones, axis=1) / ones.sum(axis=1))


widths = instances.numbers(c=(0.1, 1e3)).also(d=lambda rng, c: rng.integers(1, 200, size=len(c)))


@attack(
    "article/9-width",
    on=widths,
    wrong={"S falls with the width": lambda c, d: less(equal_features(c, d + 1), equal_features(c, d))},
)
def S_rises_with_the_width_to_1(c, d):
    S = equal_features(c, d)
    return less(S, equal_features(c, d + 1)) & less(S, 1.0) & at_most(1 - S, c * c / (2 * d), rounding(16, 1))


# Infinitely many features ---------------------------------------------------------------------------------------------

exponents = np.arange(5)
nodes = instances.numbers(size=(1, 2)).also(
    x=lambda rng, size: rng.permuted(np.tile(np.arange(1.0, 13), (len(size), 1)), axis=1)[:, :5]
)


def determinant_is_not_zero(x):
    """The determinant of the powers x_j^i: at least 1 in size for different whole numbers."""
    return less(0.5, np.abs(np.linalg.det(x[:, None, :] ** exponents[None, :, None])))


def with_a_repeated_key(size, x):
    return determinant_is_not_zero(np.concatenate([x[:, :1], x[:, :1], x[:, 2:]], axis=1))


@attack("theorem-linear-finite", on=nodes, wrong={"two keys are equal": with_a_repeated_key})
def five_tokens_need_five_features(size, x):
    return determinant_is_not_zero(x)


# Exercises ----------------------------------------------------------------------------------------------------------


def no_query_is_better(x, p, best):
    """S^2 of the last atom as a query, and of the best one, for the law of keys that the others make."""
    q, mean = x[:, -1], instances.mean(p, x)
    cov = instances.covariance(p, x, x) + np.eye(x.shape[2])
    signal, noise = np.einsum("bd,bd->b", q, mean) ** 2, np.einsum("bi,bij,bj->b", q, cov, q)
    ratio = best(cov, mean)
    return at_most(signal * (1 + ratio), ratio * (signal + noise), 1e-9 * (1 + ratio) * (signal + noise))


@attack(
    "exercise-linear-best-query",
    on=instances.random_vectors.such_that(instances.moderate(100)),
    wrong={
        "without the inverse": lambda x, p: no_query_is_better(
            x, p, lambda cov, mean: np.einsum("bi,bij,bj->b", mean, cov, mean) / np.einsum("bii->b", cov) ** 3
        ),
    },
)
def no_query_beats_fisher(x, p):
    return no_query_is_better(
        x, p, lambda cov, mean: np.einsum("bi,bi->b", mean, np.linalg.solve(cov, mean[:, :, None])[:, :, 0])
    )
