"""Attacks on what the chapter on attention in linear time says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import Judged, at_most, attack, equal, exactly_if, no_attack, rounding
from instances import Array, moderate, softmax

modest = instances.attention.such_that(moderate(1e2))
causal = modest.such_that(lambda Q, K, V: np.full(len(Q), Q.shape[1] == K.shape[1]))


def features(x: Array) -> Array:
    return np.abs(x) + 0.5


# Without the normaliser ---------------------------------------------------------------------------------------------


def twice(a: Array) -> Array:
    return np.concatenate([a, a], axis=1)


def unnormalised(Q, K, V):
    return features(Q) @ (features(K).swapaxes(1, 2) @ V)


def normalised(Q, K, V):
    return unnormalised(Q, K, V) / unnormalised(Q, K, np.ones_like(V[:, :, :1]))


def by_softmax(Q, K, V):
    return softmax(Q @ K.swapaxes(1, 2)) @ V


def repeated(form, Q, K, V, factor: float) -> Judged:
    once = form(Q, K, V)
    size = 1 + np.abs(features(Q) @ features(K).swapaxes(1, 2)).max((1, 2)) * (1 + np.abs(V).max((1, 2)))
    return equal(form(Q, twice(K), twice(V)), factor * once, rounding(512, size))


@attack(
    "theorem-no-rewriting",
    "report/6",
    on=modest,
    wrong={
        "without the normaliser it stays as well": lambda Q, K, V: repeated(unnormalised, Q, K, V, 1.0),
        "with the normaliser it doubles as well": lambda Q, K, V: repeated(normalised, Q, K, V, 2.0),
    },
)
def repeating_the_tokens_doubles_the_sums_only(Q, K, V):
    return (
        repeated(unnormalised, Q, K, V, 2.0) & repeated(normalised, Q, K, V, 1.0) & repeated(by_softmax, Q, K, V, 1.0)
    )


def exponential_features(Q, K):
    """Features of the exponential for numbers in [-1, 1]: 30 terms of its series."""
    k = np.arange(30)
    root = np.sqrt(np.cumprod(np.maximum(k, 1), dtype=float))
    return Q[:, :, :1] ** k / root, K[:, :, :1] ** k / root


def as_softmax(Q, K, V, normalise: bool = True, multiple: float = 1.0) -> Judged:
    Q, K = np.tanh(Q), np.tanh(K)
    F, G = (np.sqrt(multiple) * features for features in exponential_features(Q, K))
    out = F @ (G.swapaxes(1, 2) @ V)
    total = F @ G.sum(axis=1)[:, :, None] if normalise else K.shape[1]
    return equal(out / total, by_softmax(Q[:, :, :1], K[:, :, :1], V), rounding(1e4, 1 + np.abs(V).max((1, 2))))


@attack(
    "report/6",
    on=modest,
    wrong={"divided by the number of keys": lambda Q, K, V: as_softmax(Q, K, V, normalise=False)},
)
def exact_features_with_the_normaliser_give_softmax_attention(Q, K, V):
    return as_softmax(Q, K, V) & as_softmax(Q, K, V, multiple=4.0)


def transposed(Q, K, V, row: bool = True) -> Judged:
    """The middle and the right side of (R.19) for the first query, with rows of values or with their reversal."""
    f = features(Q)[:, 0]
    G = features(K)
    middle = np.einsum("ba,bja,bjc->bc", f, G, V)
    state = np.einsum("bja,bjc->bac", G, V if row else V[:, :, ::-1])
    size = (f.max(axis=1) * G.max((1, 2)) + 1) * (1 + np.abs(V).max((1, 2)))
    return equal(middle, np.einsum("ba,bac->bc", f, state), rounding(512, size))


@attack("report/19", on=modest, wrong={"components exchanged": lambda Q, K, V: transposed(Q, K, V, row=False)})
def both_sides_are_one_row(Q, K, V):
    return transposed(Q, K, V)


# Counts -------------------------------------------------------------------------------------------------------------

sizes = instances.integers(N=(1, 400), m=(1, 300), d=(1, 200))


def standard(N, d):
    """Multiplications, additions, comparisons, exponentials and divisions of scores, softmax and values."""
    scores = N * N * d + N * N * (d - 1) + N * N
    weights = N * (N - 1) + N * N + N * N + N * (N - 1) + N * N
    return scores + weights + N * d * N + N * d * (N - 1)


def projected(N, d, d_out=None):
    d_out = d if d_out is None else d_out
    return 3 * (N * d_out * d + N * d_out * (d - 1))


def linear(N, m, d):
    sums = m * d * N + m * d * (N - 1) + m * (N - 1)
    rows = N * (d + 1) * m + N * (d + 1) * (m - 1) + N * d
    return sums + rows


def standard_total(N, m, d, projections: int = 6):
    total = standard(N, d) + projected(N, d)
    formula = 4 * N**2 * d + projections * N * d**2 + 5 * N**2 - 4 * N * d - 2 * N
    return equal(total, formula, 0.0)


def below_the_length(N, m, d, constant: float = 15.0):
    d = np.minimum(d, N)
    return at_most(standard(N, d) + projected(N, d), constant * N.astype(float) ** 2 * d, 0.0)


@attack(
    "report/total",
    on=sizes,
    wrong={
        "one projection": lambda N, m, d: standard_total(N, m, d, projections=2),
        "the constant of a long sequence": lambda N, m, d: below_the_length(N, m, d, constant=9.0),
    },
)
def the_total_is_as_counted_and_bounded_below_the_length(N, m, d):
    return standard_total(N, m, d) & below_the_length(N, m, d)


def linear_total(N, m, d, z: int = 3):
    return equal(linear(N, m, d), 4 * N * m * d + z * N * m - N - m * d - m, 0.0)


@attack(
    "report/linear-costs",
    "report/linear-in-n",
    on=sizes,
    wrong={"the sum z forgotten": lambda N, m, d: linear_total(N, m, d, z=2)},
)
def linear_attention_takes_what_is_said(N, m, d):
    return linear_total(N, m, d) & at_most(linear(N, m, d), 7.0 * N * m * d, 0.0)


def crossing(N, m, d, by: int = 0, priced: bool = True):
    d = np.where(m % 3 == 0, np.maximum(N + m % 2 - (m // 2) % 2, 1), d)  # many sizes close to the crossing
    cheaper = linear(N, d, d) + (4 * N * d if priced else 0) < standard(N, d)
    return exactly_if(cheaper, d + by < N)


@attack(
    "theorem-linear-crossover",
    "linear_time/crossover",
    on=sizes,
    wrong={
        "at the width": lambda N, m, d: crossing(N, m, d, by=-1),
        "two tokens more": lambda N, m, d: crossing(N, m, d, by=1),
        "the features are free": lambda N, m, d: crossing(N, m, d, priced=False),
    },
)
def linear_attention_wins_beyond_the_width(N, m, d):
    return crossing(N, m, d)


def gain_of_a_layer(kappa, h, heads: float = 3.0):
    d = 1e7
    N = kappa * d
    h = np.floor(h)
    made = projected(N, h * d)
    stages, elu = h * standard(N, d), h * (linear(N, d, d) + 4 * N * d)
    limit = (2 * kappa + heads * h) / (2 + heads * h)
    return equal((stages + made) / (elu + made), limit, 1e-5 * limit)


@attack(
    "linear_time/crossover",
    on=instances.numbers(kappa=(1e-2, 1e3), h=(1.0, 64.0)),
    wrong={"four projections": lambda kappa, h: gain_of_a_layer(kappa, h, heads=4.0)},
)
def the_projections_dilute_the_gain(kappa, h):
    return gain_of_a_layer(kappa, h)


# Three forms --------------------------------------------------------------------------------------------------------


def three_forms(Q, K, V, late: bool = False, forget: bool = False) -> Judged:
    F, G = features(Q), features(K)
    n = K.shape[1]
    beside = np.concatenate([V, np.ones_like(V[:, :, :1])], axis=2)
    wanted = np.tril(F @ G.swapaxes(1, 2)) @ beside
    size = 1 + np.abs(F).max((1, 2)) * np.abs(G).max((1, 2)) * (1 + np.abs(V).max((1, 2)))
    judged = equal(wanted, wanted, rounding(1, size))
    for chunk in range(1, n + 2):
        state = np.zeros((len(F), F.shape[2], beside.shape[2]))
        rows = []
        for start in range(0, n, chunk):
            part = slice(start, start + chunk)
            table = np.tril(F[:, part] @ G[:, part].swapaxes(1, 2), -1 if late else 0)
            rows.append(F[:, part] @ state + table @ beside[:, part])
            added = G[:, part].swapaxes(1, 2) @ beside[:, part]
            state = added if forget else state + added
        judged = judged & equal(np.concatenate(rows, axis=1), wanted, rounding(512, size))
    return judged


@attack(
    "theorem-three-forms",
    "linear_time/three-forms",
    on=causal,
    wrong={
        "a token does not see itself": lambda Q, K, V: three_forms(Q, K, V, late=True),
        "the state is overwritten": lambda Q, K, V: three_forms(Q, K, V, forget=True),
    },
)
def every_chunk_gives_the_table(Q, K, V):
    return three_forms(Q, K, V)


chunked = instances.integers(chunk=(1, 40), blocks=(1, 20), m=(1, 60), d=(1, 60))


def of_chunks(chunk, blocks, m, d, table: int = 2):
    N = chunk * blocks
    weights = chunk * chunk * (2 * m - 1)
    reading = (d + 1) * chunk * (2 * m - 1) + chunk * (d * (2 * chunk - 1) + (chunk - 1)) + chunk * (d + 1)
    writing = 2 * chunk * m * d + chunk * m
    counted = blocks * (weights + reading + writing + chunk * d)
    by_token = 4 * m * d + 3 * m - 1
    return equal(counted, N * (by_token + table * chunk * (m + d)), 0.0)


@attack(
    "linear_time/three-forms",
    on=chunked,
    wrong={"half of the table": lambda chunk, blocks, m, d: of_chunks(chunk, blocks, m, d, table=1)},
)
def chunks_take_as_many_operations_more(chunk, blocks, m, d):
    return of_chunks(chunk, blocks, m, d)


no_attack(
    "linear_time/trained",
    because="measured: It compares five computations on the stored queries and keys of four trained decoders.",
)
no_attack(
    "linear_time/memory",
    because="measured: It reports the peak memory of four given programs at three given lengths and one width.",
)
