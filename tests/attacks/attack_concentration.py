"""Attacks on what the chapter on measuring concentration says itself."""

from __future__ import annotations

import functools
import itertools
import operator

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


def split_at(x, part, factor=2.0, counted=True):
    """S^2 against its bound by the number of entries above a border, which is a part of the largest one."""
    moduli = np.abs(x) / np.abs(x).max(axis=1, keepdims=True)
    n, above = x.shape[1], (moduli > part[:, None]).sum(axis=1)
    bound = factor * (part**2 / (moduli**2).mean(axis=1) + (above if counted else 1) / n)
    return at_most(sparsity(x) ** 2, bound, rounding(8 * n, 1))


@attack(
    "article/any-vector",
    on=nonzero.also(part=lambda rng, x, c: rng.choice([0.0, 0.01, 0.1, 0.5, 1.0], size=len(x))),
    wrong={
        "a quarter of the bound": lambda x, c, part: split_at(x, part, factor=0.5),
        "one large entry": lambda x, c, part: split_at(x, part, counted=False),
    },
)
def a_row_is_bounded_by_its_large_entries(x, c, part):
    return split_at(x, part)


# Two entropies ------------------------------------------------------------------------------------------------------


def effective_number(p: Array, q: Array) -> Array:
    """(sum p^q)^(1/(1-q)) of each row, with its limits at q = 0, 1 and infinity."""
    count, largest, shannon = (p > 0).sum(axis=1), 1 / p.max(axis=1), np.exp(entropy(p))
    # Powers of p / max p do not underflow all at once.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = np.where(p > 0, (p * largest[:, None]) ** q[:, None], 0.0).sum(axis=1)
        general = np.exp((np.log(relative) - q * np.log(largest)) / (1 - q))
    return np.select([q == 0, q == 1, np.isinf(q)], [count, shannon, largest], general)


rows_and_orders = instances.probability_rows.also(
    low=lambda rng, p: rng.choice([0.0, 0.3, 0.7, 1.0, 1.5, 2.0], size=len(p)),
    high=lambda rng, p, low: low + rng.choice([0.0, 0.5, 1.0, 3.0, np.inf], size=len(p)),
)


def falls(p, low, high, number=effective_number):
    return at_most(number(p, high), number(p, low), rounding(200 * p.shape[1], p.shape[1]))


@attack(
    "theorem-concentration-orders",
    on=rows_and_orders,
    wrong={
        "rises with the order": lambda p, low, high: falls(p, high, low),
        "the sign of the exponent": lambda p, low, high: falls(p, low, high, lambda p, q: 1 / effective_number(p, q)),
        "by one percent at least": lambda p, low, high: falls(
            p, low, high, lambda p, q: effective_number(p, q) * (1 + 0.01 * np.minimum(q, 9.0))
        ),
    },
)
def effective_numbers_fall_with_the_order(p, low, high):
    return falls(p, low, high)


def chain(p, *numbers):
    slack = rounding(100 * p.shape[1], p.shape[1])
    judged = [at_most(left, right, slack) for left, right in itertools.pairwise(numbers)]
    return functools.reduce(operator.and_, judged)


@attack(
    "theorem-concentration-orders",
    on=instances.probability_rows,
    wrong={
        "entropy below the support": lambda p: chain(p, np.exp(entropy(p)), support(p)),
        "half the exponential": lambda p: chain(p, support(p), np.exp(entropy(p)) / 2),
        "without the exponential": lambda p: chain(p, support(p), 1 + entropy(p)),
        "the root of the support": lambda p: chain(p, support(p) ** 0.5, 1 / p.max(axis=1), support(p) ** 0.9),
    },
)
def largest_share_support_and_entropy_are_ordered(p):
    return chain(p, 1 / p.max(axis=1), support(p), np.exp(entropy(p)), (p > 0).sum(axis=1))


longer_rows = instances.probability_rows.such_that(lambda p: np.full(len(p), p.shape[1] >= 2))


def entropy_of_peak(n: int, N: Array, dropped: int = 1) -> Array:
    peak = np.clip((1 + np.sqrt((n - 1) * np.maximum(n / N - 1, 0.0))) / n, 1 / n, 1.0)
    rest = 1 - peak
    return entropy(np.stack([peak, rest], axis=1)) + rest * np.log(max(n - dropped, 1))


def in_the_band(p, low, high):
    # Near one-hot and uniform rows the square root loses half of the digits.
    slack = rounding(p.shape[1], 1) + 1e-6
    return at_most(low, entropy(p), slack) & at_most(entropy(p), high, slack)


@attack(
    "theorem-concentration-band",
    on=longer_rows,
    wrong={
        "one entry less in the tail": lambda p: in_the_band(
            p, np.log(support(p)), entropy_of_peak(p.shape[1], support(p), dropped=2)
        ),
        "half of the upper bound above the lower": lambda p: in_the_band(
            p, np.log(support(p)), (np.log(support(p)) + entropy_of_peak(p.shape[1], support(p))) / 2
        ),
        "a larger lower bound": lambda p: in_the_band(
            p, 1.01 * np.log(support(p)), entropy_of_peak(p.shape[1], support(p))
        ),
    },
)
def entropy_lies_in_the_band(p):
    return in_the_band(p, np.log(support(p)), entropy_of_peak(p.shape[1], support(p)))


peaks = instances.numbers(m=(1e-3, 1.0)).also(n=lambda rng, m: rng.integers(2, 400, size=len(m)))


def attained(m, n, bound):
    m = 1 / n + (1 - 1 / n) * m
    N = 1 / (m**2 + (1 - m) ** 2 / (n - 1))
    own = entropy(np.stack([m, 1 - m], axis=1)) + (1 - m) * np.log(n - 1)
    return equal(own, bound(n, N), 1e-6)


def upper_bound(n, N):
    peak = np.minimum((1 + np.sqrt((n - 1) * np.maximum(n / N - 1, 0.0))) / n, 1.0)
    return entropy(np.stack([peak, 1 - peak], axis=1)) + (1 - peak) * np.log(n - 1)


@attack(
    "theorem-concentration-band",
    on=peaks,
    wrong={
        "another peak": lambda m, n: attained(m, n, lambda n, N: upper_bound(n, N**0.99)),
        "the lower bound": lambda m, n: attained(m, n, lambda n, N: np.log(N)),
    },
)
def peak_rows_attain_the_upper_bound(m, n):
    return attained(m, n, upper_bound)


# Finite rows --------------------------------------------------------------------------------------------------------

ENTRIES = 400
LOG_CHOICES = np.cumsum(np.log(np.maximum(np.arange(ENTRIES + 1), 1)))
LOG_BINOMIAL = LOG_CHOICES[-1] - LOG_CHOICES - LOG_CHOICES[::-1]


def two_values(h: Array, share: Array) -> tuple[Array, Array, Array]:
    """Exact mean and variance of S of ENTRIES entries, each h with probability `share` and else 1; its four moments."""
    h, share = h[:, None], share[:, None]
    count = np.arange(ENTRIES + 1)
    chance = np.exp(LOG_BINOMIAL + count * np.log(share) + (ENTRIES - count) * np.log1p(-share))
    part = count / ENTRIES
    S = (1 - part + part * h) / np.sqrt(1 - part + part * h * h)
    mean = (chance * S).sum(axis=1)
    variance = (chance * (S - mean[:, None]) ** 2).sum(axis=1)
    moments = np.stack([(1 - share + share * h**k)[:, 0] for k in (1, 2, 3, 4)])
    return mean, variance, moments


# h = 2 to 5 with probability 0.1 to 0.9: the terms beyond c / n and v / n are small at 400 entries.
laws_of_two = instances.numbers(h=(2.0, 5.0), share=(0.1, 0.9))


def as_predicted(h, share, eighth=0.125, quarter=0.25, three=3.0):
    mean, variance, (m1, m2, m3, m4) = two_values(h, share)
    S, r3, r4 = m1 / np.sqrt(m2), m3 / (m1 * m2), m4 / m2**2
    c = eighth - r3 / 2 + three * r4 / 8
    v = 1 - S**2 * (r3 - r4 / 4 + quarter)
    size = (r4 - 1) * (1 + r4)
    return equal(ENTRIES * (mean / S - 1), c, 4 * size / ENTRIES) & equal(ENTRIES * variance, v, 4 * size / ENTRIES)


@attack(
    "theorem-concentration-finite",
    "concentration/finite-rows",
    on=laws_of_two,
    wrong={
        "without the eighth": lambda h, share: as_predicted(h, share, eighth=0.0),
        "without the quarter": lambda h, share: as_predicted(h, share, quarter=0.0),
        "the second term once": lambda h, share: as_predicted(h, share, three=1.0),
    },
)
def mean_and_variance_are_as_predicted(h, share):
    return as_predicted(h, share)


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
    "concentration/lengths",
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
    size = n * np.abs(weights).max(axis=(1, 2))  # a bound of the norm; the norm squares, and small squares are 0
    judged = np.full(len(weights), True)
    for k in range(1, n):
        beyond = np.linalg.svd(causal[:, k:, :k], compute_uv=False)[:, d:]
        judged &= (beyond <= rounding(20 * n, size)[:, None]).all(axis=1)
    return judged


@attack(
    "concentration/past-through-features",
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


own_and_other = instances.numbers(own=(1e-3, 1.0), other=(1e-3, 1.0)).such_that(
    lambda own, other: np.abs(own - other) > 1e-3
)


def less_than_its_own(own, other, second=lambda x: 1 - x * x):
    """Whether a query gives another key less than its own, by the key features x and second(x)."""
    weight = [2 * own * x + second(x) for x in (other, own)]
    return less(*weight)


@attack(
    "concentration/peaks-of-rank-two",
    on=own_and_other,
    wrong={
        "a second feature that does not fall": lambda own, other: less_than_its_own(own, other, lambda x: 1 + 0 * x),
        "a second feature without the square": lambda own, other: less_than_its_own(own, other, lambda x: 1 - x),
    },
)
def two_features_give_the_own_key_most(own, other):
    return less_than_its_own(own, other)


no_attack(
    "concentration/as-many-features",
    because="measured: It compares the recall of elu + 1 and softmax at two settings of the shipped table.",
)
no_attack(
    "concentration/same-queries",
    because="measured: It says what two functions make of the stored queries and keys and of seeded normal numbers.",
)
