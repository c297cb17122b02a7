"""Attacks on what the chapter on linear attention says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, less, rounding
from instances import Array
from scipy import special


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
    "article/8",
    "article/8-mean",
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


not_zero = instances.nonnegative_vectors.such_that(lambda a: a.max(axis=1) > 0)
sequences = not_zero.also(delta=lambda rng, a: rng.uniform(0.01, 3, size=len(a)))


def in_units(a: Array) -> Array:
    """The elements of each row in units of its root mean square."""
    a = a / a.max(axis=1, keepdims=True)
    return a / np.sqrt((a * a).mean(axis=1, keepdims=True))


def share_of_large(a, delta, bound):
    share = (in_units(a) >= delta[:, None]).mean(axis=1)
    return at_most(share, bound(sparsity(a), delta), rounding(32 * a.shape[1], 1 / delta))


@attack(
    "article/8-noise",
    on=sequences,
    wrong={
        "the threshold is forgotten": lambda a, delta: share_of_large(a, delta, lambda S, delta: S),
        "the squared sparsity": lambda a, delta: share_of_large(a, delta, lambda S, delta: S**2 / delta),
        "half of it": lambda a, delta: share_of_large(a, delta, lambda S, delta: S / (2 * delta)),
    },
)
def few_elements_are_large(a, delta):
    return share_of_large(a, delta, lambda S, delta: S / delta)


def share_of_the_largest(a, delta, bound):
    share = (a >= (delta * a.max(axis=1))[:, None]).mean(axis=1)
    return at_most(share, bound(sparsity(a), delta), rounding(32 * a.shape[1], 1 / delta**2))


@attack(
    "article/8-noise",
    on=not_zero.also(delta=lambda rng, a: rng.uniform(0.01, 1, size=len(a))),
    wrong={"the threshold is forgotten": lambda a, delta: share_of_the_largest(a, delta, lambda S, delta: S**2)},
)
def few_elements_come_near_the_largest(a, delta):
    return share_of_the_largest(a, delta, lambda S, delta: S**2 / delta)


def keys_with_a_large_feature(K, delta, factor):
    """The share of keys with a feature of delta R, and d S / delta, by the sparsity of the sequence of vectors."""
    K = K / K.max(axis=(1, 2), keepdims=True)
    size = np.sqrt((K * K).sum(axis=2).mean(axis=1))
    S = np.linalg.norm(K.mean(axis=1), axis=1) / size
    share = ((delta * size)[:, None, None] <= K).any(axis=2).mean(axis=1)
    return at_most(share, factor(K.shape[2]) * S / delta, rounding(32 * sum(K.shape[1:]), 1 / delta))


@attack(
    "article/8-noise",
    on=features.also(delta=lambda rng, K, q: rng.uniform(0.01, 1, size=len(K))),
    wrong={"half of it": lambda K, q, delta: keys_with_a_large_feature(K, delta, lambda d: d / 2)},
)
def few_keys_have_a_large_feature(K, q, delta):
    return keys_with_a_large_feature(K, delta, lambda d: d)


def entropies(labels: Array) -> Array:
    """The entropy of each row of labels."""
    counts = (labels[:, :, None] == labels[:, None, :]).sum(axis=2)
    return np.log(labels.shape[1] / counts).mean(axis=1)


def entropy_in_bins(a, delta, bound):
    entropy = entropies(np.floor(in_units(a) / delta[:, None]))
    return at_most(entropy, bound(sparsity(a) / delta), rounding(64 * a.shape[1], 10 / delta))


def geometric(m: Array) -> Array:
    """The largest entropy of a whole number that is not negative and has the mean m."""
    return (1 + m) * np.log1p(m) - m * np.log(m)


@attack(
    "linear_attention/entropy-in-bins",
    on=sequences,
    wrong={
        "the first part alone": lambda a, delta: entropy_in_bins(a, delta, np.log1p),
        "the mean alone": lambda a, delta: entropy_in_bins(a, delta, lambda m: m),
    },
)
def the_information_is_limited_at_a_fixed_resolution(a, delta):
    return entropy_in_bins(a, delta, geometric)


levels = special.ndtri((np.arange(200) + 0.5) / 200)


def bits_grow(width, read):
    """A wider log-normal sequence is sparser, and has more entropy when it is read so."""
    narrow, wide = (np.exp(factor * width[:, None] * levels) for factor in (1, 2))
    return less(sparsity(wide), sparsity(narrow)) & less(entropies(read(narrow)), entropies(read(wide)))


@attack(
    "linear_attention/entropy-in-bins",
    on=instances.numbers(width=(0.5, 6)),
    wrong={"in bins on its own scale": lambda width: bits_grow(width, lambda a: np.floor(in_units(a)))},
)
def octaves_carry_more_bits_with_less_signal(width):
    return bits_grow(width, lambda a: np.floor(np.log2(a)))


positive = instances.attention.map("G H", lambda Q, K, V: (np.abs(Q), np.abs(K))).such_that(
    lambda G, H: (G.sum(axis=2).min(axis=1) > 1e-30) & ((G @ H.swapaxes(1, 2)).sum(axis=2).min(axis=1) > 1e-30)
)


def normalised(G: Array, H: Array) -> Array:
    weights = G @ H.swapaxes(1, 2)
    return weights / weights.sum(axis=2, keepdims=True)


@attack(
    "proposition-linear-one-feature",
    "linear_attention/features",
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
    "linear_attention/features",
    on=positive,
    wrong={"one feature less": lambda G, H: rank_at_most(G, H, G.shape[2] - 1)},
)
def d_features_have_rank_at_most_d(G, H):
    return rank_at_most(G, H, G.shape[2])


@attack(
    "linear_attention/features",
    on=instances.row_stochastic,
    wrong={"one feature less": lambda A: with_looked_up_features(A, A.shape[1] - 1)},
)
def n_features_express_every_matrix(A):
    return with_looked_up_features(A, A.shape[1])


def with_looked_up_features(A, d):
    """The first d columns of the rows as features of queries, one-hot features of keys."""
    return equal(A[:, :, :d] @ np.eye(A.shape[1])[:d], A, 0.0)


def attends_to_the_predecessor(base, i, masked=True, parity=2):
    """Key j of twelve has the size base^j in the feature j mod 2, and query i asks for the parity of i - 1."""
    place, i = np.arange(12), i[:, None]
    wanted = (i - 1 - place) % parity == 0
    weights = np.where(wanted & ((place <= i) | (not masked)), base[:, None] ** (place - i), 0.0)
    share = np.take_along_axis(weights, i - 1, axis=1)[:, 0] / weights.sum(axis=1)
    return at_most(1 - base**-2.0, share, rounding(64, 1))


@attack(
    "linear_attention/features",
    "article/relative-positions",
    on=instances.numbers(base=(1.5, 1e3)).also(i=lambda rng, base: rng.integers(1, 11, size=len(base))),
    wrong={
        "one feature": lambda base, i: attends_to_the_predecessor(base, i, parity=1),
        "without the mask": lambda base, i: attends_to_the_predecessor(base, i, masked=False),
    },
)
def two_features_find_the_predecessor_under_a_causal_mask(base, i):
    """The boundary of both statements, which are about attention without a mask."""
    return attends_to_the_predecessor(base, i)


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


def with_averaged_norms(x, c, factor):
    """S by (A.9), written with norms that are means over the features."""
    x = np.abs(x) / np.abs(x).max(axis=1, keepdims=True)
    averaged = np.sqrt((x * x).mean(axis=1)) / x.mean(axis=1)
    S = 1 / np.hypot(1, c * averaged * factor(x.shape[1]))
    return at_most(1 / np.hypot(1, c), S, rounding(16 * x.shape[1], 1))


@attack(
    "article/9-width",
    on=nonzero.also(c=lambda rng, x: np.exp(rng.uniform(-2, 5, size=len(x)))),
    wrong={"without the further factor": lambda x, c: with_averaged_norms(x, c, lambda d: 1.0)},
)
def no_width_makes_the_sparsest_row_sparser(x, c):
    return with_averaged_norms(x, c, lambda d: 1 / np.sqrt(d))


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
