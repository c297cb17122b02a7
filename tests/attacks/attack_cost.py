"""Attacks on what the chapter on cost says itself."""

from __future__ import annotations

from functools import cache

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, less, no_attack, rounding, true
from instances import Array, moderate, softmax

from attnmath.operator import cost

# Counts -------------------------------------------------------------------------------------------------------------


@cache
def counted(n: int, d: int, d_v: int) -> tuple[int, ...]:
    """Operations of the stages, counted one by one on arrays that are not constant."""
    Q = np.arange(n * d, dtype=float).reshape(n, d) / 8
    V = np.arange(n * d_v, dtype=float).reshape(n, d_v) / 8
    return tuple(cost.counted_attention(Q, Q[::-1], V)[1].values())


def stages(n, d, d_v, additions=-1):
    """What the claim says. additions : how many fewer than products a dot product has, negative."""
    return np.stack([n * n * (2 * d + additions), n * n, n * (5 * n - 2), n * d_v * (2 * n + additions)], axis=1)


def counts_are(n, d, d_v, expected):
    found = np.array([counted(*case) for case in zip(n.tolist(), d.tolist(), d_v.tolist(), strict=True)])
    return true(found == expected)


small = instances.integers(n=(1, 4), d=(1, 4), d_v=(1, 4))


@attack(
    "cost/counted",
    on=small,
    wrong={
        "as many additions as products": lambda n, d, d_v: counts_are(n, d, d_v, stages(n, d, d_v, additions=0)),
        "the width of the values is that of the keys": lambda n, d, d_v: counts_are(n, d, d_v, stages(n, d, d)),
    },
)
def counted_operations_follow_the_formulas(n, d, d_v):
    return counts_are(n, d, d_v, stages(n, d, d_v))


lengths_and_widths = instances.integers(n=(1, 10**5), d=(1, 10**4)).map(
    "n d", lambda n, d: (n.astype(float), d.astype(float))
)
# Evenly on a logarithmic scale, so that short sequences and narrow layers are as frequent as long and wide ones.
log_sizes = instances.numbers(n=(1, 1e5), d=(1, 1e4)).map("n d", lambda n, d: (np.floor(n), np.floor(d)))
sizes = lengths_and_widths | log_sizes


def three_stages(n, d):
    return stages(n, d, d).sum(axis=1)


def near_the_leading_terms(n, d, projections, terms):
    """The count of a layer is its leading terms up to a part of 2/d of them, so to 0 where n and d grow together."""
    layer = three_stages(n, d) + projections * n * d * (2 * d - 1)
    leading = 4 * n**2 * d + terms * n * d**2
    return at_most(np.abs(layer - leading), 2 / d * leading, rounding(16, leading))


@attack(
    "cost/layer",
    on=sizes,
    wrong={
        "two projections": lambda n, d: near_the_leading_terms(n, d, 3, 4),
        "an output projection that is not counted": lambda n, d: near_the_leading_terms(n, d, 4, 6),
    },
)
def a_layer_has_these_leading_terms(n, d):
    return near_the_leading_terms(n, d, 3, 6) & near_the_leading_terms(n, d, 4, 8)


def overtakes(n, d, three, four):
    square = 4 * n**2 * d
    return exactly_if(square > 6 * n * d**2, n > three * d) & exactly_if(square > 8 * n * d**2, n > four * d)


@attack("cost/layer", on=sizes, wrong={"at the width and twice the width": lambda n, d: overtakes(n, d, 1, 2)})
def the_square_is_larger_from_there_on(n, d):
    return overtakes(n, d, 1.5, 2)


@attack(
    "cost/recurrence",
    on=sizes,
    wrong={"fewer than the three stages alone": lambda n, d: less(4 * n * d**2, three_stages(n, d))},
)
def a_recurrent_layer_takes_fewer_operations(n, d):
    recurrent = 2 * n * d * (2 * d - 1) + 2 * n * d
    layer = three_stages(n, d) + 3 * n * d * (2 * d - 1)
    return equal(recurrent, 4 * n * d**2, rounding(8, recurrent)) & less(recurrent, layer)


def cheaper_from(n, d, threshold):
    """Whether the recurrent layer takes fewer operations than the three stages alone exactly from this length on."""
    return exactly_if(4 * n * d**2 < three_stages(n, d), n >= threshold)


near_the_width = (
    instances.integers(d=(1, 10**4))
    .also(n=lambda rng, d: np.maximum(1, d + rng.integers(-3, 4, size=len(d))))
    .map("n d", lambda d, n: (n.astype(float), d.astype(float)))
)


@attack(
    "cost/recurrence",
    on=sizes | near_the_width,
    wrong={
        "only where the sequence is longer than the width": lambda n, d: cheaper_from(n, d, d + 1),
        "from half of the width on": lambda n, d: cheaper_from(n, d, d / 2),
    },
)
def a_recurrent_layer_is_cheaper_than_the_stages_from_the_width_on(n, d):
    return cheaper_from(n, d, d)


# One pass -----------------------------------------------------------------------------------------------------------


def summary(S: Array, V: Array, reference: Array) -> tuple[Array, Array]:
    """The sum of exponentials and the weighted values of a block of keys. S : (batch, n, m).  V : (batch, m, d_v)."""
    E = np.exp(S - reference)
    return E.sum(axis=2, keepdims=True), E @ V


blocks = instances.attention.map("S V", lambda Q, K, V: (Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2]), V)).such_that(
    moderate(30)
)
referenced = blocks.also(
    cut=lambda rng, S, V: np.full(len(S), rng.integers(0, S.shape[2] + 1)),
    old=lambda rng, S, V, cut: rng.uniform(-5, 5, size=(len(S), S.shape[1], 2)),
    new=lambda rng, S, V, cut, old: rng.uniform(-5, 5, size=(len(S), S.shape[1])),
)


def merges(S, V, cut, old, new, changed=True):
    """Whether two summaries, after a change of reference, add up to the summary of both blocks."""
    at = cut[0]
    target = new[:, :, None]
    first = summary(S[:, :, :at], V[:, :at], old[:, :, :1])
    second = summary(S[:, :, at:], V[:, at:], old[:, :, 1:])
    factors = [np.exp(old[:, :, k : k + 1] - target) if changed else 1.0 for k in (0, 1)]
    whole = summary(S, V, target)
    size = summary(S, np.abs(V), target)
    # A score of size 30 and references up to 5 leave an error of some 40 roundings in the exponent.
    slack = [rounding(400 + 8 * S.shape[2], part) for part in size]
    judged = [equal(factors[0] * first[k] + factors[1] * second[k], whole[k], slack[k]) for k in (0, 1)]
    return judged[0] & judged[1]


@attack(
    "cost/merge",
    on=referenced,
    wrong={"no common reference": lambda *batch: merges(*batch, changed=False)},
)
def two_summaries_merge_into_one(S, V, cut, old, new):
    return merges(S, V, cut, old, new)


def one_pass(S, V, rescaled=True):
    """Attention key by key with a running maximum, as an algorithm of its own."""
    top = np.full((*S.shape[:2], 1), -np.inf)
    total = np.zeros_like(top)
    mixture = np.zeros((*S.shape[:2], V.shape[2]))
    for j in range(S.shape[2]):
        higher = np.maximum(top, S[:, :, j : j + 1])
        change = np.exp(top - higher) if rescaled else 1.0
        weight = np.exp(S[:, :, j : j + 1] - higher)
        total = change * total + weight
        mixture = change * mixture + weight * V[:, j : j + 1]
        top = higher
    return mixture / total


def agrees_with_the_matrix(S, V, rescaled=True):
    size = np.abs(V).max(axis=(1, 2))
    return equal(one_pass(S, V, rescaled), softmax(S) @ V, rounding(200 + 16 * S.shape[2], size))


@attack(
    "cost/online",
    on=blocks,
    wrong={"the running sums are not rescaled": lambda S, V: agrees_with_the_matrix(S, V, rescaled=False)},
)
def one_pass_agrees_with_the_matrix(S, V):
    return agrees_with_the_matrix(S, V)


# Depth --------------------------------------------------------------------------------------------------------------

recurrences = instances.vectors.also(a=lambda rng, x: rng.uniform(-1.5, 1.5, size=x.shape))


def scanned(x, a, merged=True):
    """The states of h_t = a_t h_(t-1) + x_t by doubling, and the number of rounds."""
    h, factors = x.copy(), a.copy()
    span = 1
    rounds = 0
    while span < h.shape[1]:
        h[:, span:] = h[:, span:] + factors[:, span:] * h[:, :-span]
        if merged:
            factors[:, span:] = factors[:, span:] * factors[:, :-span]
        span = 2 * span
        rounds = rounds + 1
    return h, rounds


def scan_agrees(x, a, merged=True, extra=0):
    states, rounds = scanned(x, a, merged)
    loop = [x[:, 0]]
    terms = [np.abs(x[:, 0])]
    for t in range(1, x.shape[1]):
        loop.append(a[:, t] * loop[-1] + x[:, t])
        terms.append(np.abs(a[:, t]) * terms[-1] + np.abs(x[:, t]))
    few = np.full(len(x), rounds + extra == int(np.ceil(np.log2(x.shape[1]))))
    return equal(states, np.stack(loop, axis=1), rounding(8 * x.shape[1], np.stack(terms, axis=1))) & few


@attack(
    "cost/scan",
    on=recurrences,
    wrong={
        "the factors are never merged": lambda x, a: scan_agrees(x, a, merged=False),
        "one round more": lambda x, a: scan_agrees(x, a, extra=1),
    },
)
def the_scan_is_the_loop(x, a):
    return scan_agrees(x, a)


no_attack(
    "cost/memory",
    because="measured: The exponents are fitted to the peaks of two named functions at four named lengths.",
)
