"""Attacks on what the chapter on measuring concentration says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, less, no_attack, rounding
from instances import Array, moderate, softmax


def sparsity(a: Array) -> Array:
    """Mean modulus over root mean square of each row, shape (batch,); rows are not zero."""
    a = np.abs(a) / np.abs(a).max(axis=1, keepdims=True)
    return a.mean(axis=1) / np.sqrt((a * a).mean(axis=1))


def support(p: Array) -> Array:
    """n S^2 of each row."""
    return p.shape[1] * sparsity(p) ** 2


def entropy(p: Array) -> Array:
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1)


# The number S -------------------------------------------------------------------------------------------------------

nonzero = instances.vectors.such_that(lambda x: np.abs(x).max(axis=1) > 0).also(
    c=lambda rng, x: rng.choice([-1.0, 1.0], size=len(x)) * 10.0 ** rng.uniform(-3, 3, size=len(x))
)


def same_for_a_multiple(x, c, S=sparsity):
    return equal(S(c[:, None] * x), S(x), rounding(8 * x.shape[1], 1))


def without_moduli(x: Array) -> Array:
    return x.mean(axis=1) / np.sqrt((x * x).mean(axis=1))


def without_the_root(x: Array) -> Array:
    return np.abs(x).mean(axis=1) / (x * x).mean(axis=1)


@attack(
    "article/any-vector",
    "article/1",
    on=nonzero,
    wrong={
        "the mean without moduli": lambda x, c: same_for_a_multiple(x, c, without_moduli),
        "the mean square without its root": lambda x, c: same_for_a_multiple(x, c, without_the_root),
    },
)
def a_multiple_is_as_sparse(x, c):
    return same_for_a_multiple(x, c)


def between(x, c, least, most):
    slack = rounding(8 * x.shape[1], 1)
    return at_most(least, sparsity(x), slack) & at_most(sparsity(x), most, slack)


@attack(
    "article/any-vector",
    "article/1",
    on=nonzero,
    wrong={
        "at least 2/sqrt(n)": lambda x, c: between(x, c, 2 / np.sqrt(x.shape[1]), 1.0),
        "at most 0.99": lambda x, c: between(x, c, 0.0, 0.99),
    },
)
def S_lies_between_its_bounds(x, c):
    return between(x, c, 1 / np.sqrt(x.shape[1]), 1.0)


# Two entropies ------------------------------------------------------------------------------------------------------


def shares_of(*weights: Array) -> Array:
    rows = np.stack(weights, axis=1)
    return rows / rows.sum(axis=1, keepdims=True)


two_rows = (
    instances.numbers(a=(1e-4, 1.0), b=(1e-4, 1.0))
    .map("p r", lambda a, b: (shares_of(a, np.ones(len(a))), shares_of(b, np.ones(len(b)))))
    .such_that(lambda p, r: np.abs(p.max(axis=1) - r.max(axis=1)) > 1e-6)
)
of_three = instances.numbers(a=(1e-2, 1.0), b=(1e-2, 1.0), c=(1e-2, 1.0), d=(1e-2, 1.0)).map(
    "p r", lambda a, b, c, d: (shares_of(a, b, np.ones(len(a))), shares_of(c, d, np.ones(len(c))))
)


@attack("concentration/two-entries", on=two_rows, wrong={"for three entries as well": of_three})
def two_shares_have_one_order(p, r):
    return exactly_if(sparsity(p) < sparsity(r), entropy(p) < entropy(r))


def compared_with_entropy(p, bound):
    return at_most(support(p), bound(p), rounding(20 * p.shape[1], p.shape[1]))


@attack(
    "concentration/renyi",
    on=instances.probability_rows,
    wrong={
        "the other way round": lambda p: at_most(np.exp(entropy(p)), support(p), 1e-9),
        "half the exponential": lambda p: compared_with_entropy(p, lambda p: np.exp(entropy(p)) / 2),
        "without the exponential": lambda p: compared_with_entropy(p, lambda p: 1 + entropy(p)),
    },
)
def the_support_is_at_most_the_exponential_of_entropy(p):
    return compared_with_entropy(p, lambda p: np.exp(entropy(p)))


# The largest share --------------------------------------------------------------------------------------------------


def largest_between(p, low, high):
    slack = rounding(20 * p.shape[1], 1)
    return at_most(low(support(p)), p.max(axis=1), slack) & at_most(p.max(axis=1), high(support(p)), slack)


@attack(
    "article/one-dominates",
    on=instances.probability_rows,
    wrong={
        "at least 1/sqrt(nS^2)": lambda p: largest_between(p, lambda s: s**-0.5, lambda s: s**-0.5),
        "at most 1/(nS^2)": lambda p: largest_between(p, lambda s: 1 / s, lambda s: 1 / s),
        "never larger for a larger support": lambda p: at_most(p.max(axis=1), 1.0001 / support(p), 0.0),
    },
)
def the_largest_share_lies_between(p):
    return largest_between(p, lambda s: 1 / s, lambda s: s**-0.5)


@attack(
    "article/one-dominates",
    on=instances.integers(w=(2, 400)),
    wrong={"a small S has a large share": lambda w: less(few_of_many(w)[0], few_of_many(w)[1])},
)
def S_may_fall_with_the_largest_share(w):
    S, largest = few_of_many(w)
    return equal(S, w**-0.5, rounding(8, 1)) & equal(largest, 1 / w, rounding(8, 1)) & less(largest, S)


def few_of_many(w):
    """S and the largest share of w equal entries among w^2: mean and mean square are both w / w^2."""
    mean = w / w.astype(float) ** 2
    return mean / np.sqrt(mean), 1 / w


def largest_at_least(p, bound):
    return at_most(bound(p), p.max(axis=1), rounding(20 * p.shape[1], 1))


@attack(
    "article/entropy-concentrates",
    on=instances.probability_rows,
    wrong={
        "entropy to base 2": lambda p: largest_at_least(p, lambda p: np.exp(-entropy(p) / 2)),
        "one less the entropy, doubled": lambda p: largest_at_least(p, lambda p: 1 - entropy(p) / 2),
    },
)
def the_largest_share_is_at_least_exp_of_minus_entropy(p):
    return largest_at_least(p, lambda p: np.exp(-entropy(p)))


def mixture(p, r, w, bound):
    mixed = w[:, None] * p + (1 - w)[:, None] * r
    return at_most(bound(support(p), support(r)), support(mixed), rounding(20 * p.shape[1], p.shape[1]))


@attack(
    "exercise-concentration-mixture",
    on=instances.probability_rows.also(
        r=lambda rng, p: p[rng.permutation(len(p))], w=lambda rng, p, r: rng.random(size=len(p))
    ),
    wrong={"as wide as the wider row": lambda p, r, w: mixture(p, r, w, np.maximum)},
)
def an_average_is_not_sparser_than_both(p, r, w):
    return mixture(p, r, w, np.minimum)


# Rank ---------------------------------------------------------------------------------------------------------------


def _whole(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    return rng.integers(-2, 3, size=(count, *shape)).astype(float)


squares = instances.kind(
    "M",
    lambda: ((f"ones, n = {n}", (np.ones((n, n)),)) for n in instances.SIZES),
    _whole,
    [(n, n) for n in instances.SIZES],
)


def invertible(M: Array) -> Array:
    """The determinant of a matrix of whole numbers is a whole number."""
    return np.abs(np.linalg.det(M)) > 0.5


@attack(
    "article/causal-full-rank",
    on=squares.map("A", np.tril),
    wrong={
        "always of full rank": lambda A: invertible(A),
        "without the mask": squares.map("A", lambda M: M),
        "a zero in the last place does no harm": lambda A: exactly_if(
            invertible(A), (np.einsum("bii->bi", A)[:, :-1] != 0).all(axis=1)
        ),
    },
)
def a_triangle_has_full_rank_if_no_zero_is_on_its_diagonal(A):
    return exactly_if(invertible(A), (np.einsum("bii->bi", A) != 0).all(axis=1))


def elu_plus_one(x: Array) -> Array:
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def features_are_positive(Q, K, feature):
    return less(0.0, feature(Q) @ feature(K).swapaxes(1, 2))


@attack(
    "article/causal-full-rank",
    on=instances.queries_and_keys.such_that(moderate(300)),
    wrong={"features relu": lambda Q, K: features_are_positive(Q, K, lambda x: np.maximum(x, 0))},
)
def elu_plus_one_is_positive_on_the_diagonal(Q, K):
    return features_are_positive(Q, K, elu_plus_one)


def blocks_have_rank(weights, d):
    """Beyond the d-th every singular value of a block below the diagonal is rounding."""
    n = weights.shape[1]
    causal = np.tril(weights)
    size = np.linalg.norm(weights, axis=(1, 2))
    judged = np.full(len(weights), True)
    for k in range(1, n):
        beyond = np.linalg.svd(causal[:, k:, :k], compute_uv=False)[:, d:]
        judged &= (beyond <= rounding(20 * n, size)[:, None]).all(axis=1)
    return judged


@attack(
    "article/no-bottleneck",
    on=instances.queries_and_keys.such_that(lambda Q, K: np.full(len(Q), Q.shape[1] == K.shape[1] > 1)),
    wrong={
        "one feature less": lambda Q, K: blocks_have_rank(
            elu_plus_one(Q) @ elu_plus_one(K).swapaxes(1, 2), Q.shape[2] - 1
        ),
        "softmax as well": lambda Q, K: blocks_have_rank(softmax(Q @ K.swapaxes(1, 2)), Q.shape[2]),
    },
)
def blocks_below_the_diagonal_have_rank_at_most_d(Q, K):
    return blocks_have_rank(elu_plus_one(Q) @ elu_plus_one(K).swapaxes(1, 2), Q.shape[2])


no_attack(
    "concentration/limit",
    because="instance: It is about one law, the uniform one, whose two moments and long rows the chapter computes.",
)
