"""Attacks on what the chapter on attention sinks says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding, true
from instances import Array

several = instances.causal_stochastic.such_that(lambda A: np.full(len(A), A.shape[1] > 1))
not_alone = several.such_that(lambda A: A[:, 1:, 0].max(axis=1) < 1 - 1e-3)


def sigma(A: Array) -> Array:
    """The singular values of each matrix of a batch."""
    return np.linalg.svd(A, compute_uv=False)


def on_the_first(A: Array) -> Array:
    """The weights of the later queries on the first key."""
    return A[:, 1:, 0]


def without_the_first(A: Array) -> Array:
    """The other rows and columns, each row divided by its sum."""
    return A[:, 1:, 1:] / (1 - on_the_first(A))[:, :, None]


# Norm and stable rank -----------------------------------------------------------------------------------------------


def norm_and_stable_rank(A: Array, mean_counts: float, lost: int):
    values, w = sigma(A), on_the_first(A)
    first, m = 1 + (w**2).sum(axis=1), w.shape[1]
    slack = rounding(40 * A.shape[1], A.shape[1])
    stable = (values**2).sum(axis=1) / values[:, 0] ** 2
    return (
        at_most(1 + mean_counts * m * w.mean(axis=1) ** 2, first, slack)
        & at_most(first, values[:, 0] ** 2, slack)
        & at_most(stable, 1 + ((1 - w) ** lost).sum(axis=1) / first, slack)
    )


@attack(
    "theorem-attention-sink",
    "attention_sinks/stable-rank",
    on=several,
    wrong={
        "the mean counts a tenth more": lambda A: norm_and_stable_rank(A, 1.1, 2),
        "the rest to the third power": lambda A: norm_and_stable_rank(A, 1.0, 3),
    },
)
def a_sink_makes_the_norm_large_and_the_stable_rank_small(A):
    return norm_and_stable_rank(A, 1.0, 2)


def below_for_every_length(A: Array, power: int):
    """If all weights on the sink are at least w0, the stable rank is below 1 + ((1 - w0) / w0)^2."""
    values, least = sigma(A), on_the_first(A).min(axis=1)
    stable = (values**2).sum(axis=1) / values[:, 0] ** 2
    return at_most(stable, 1 + (1 / least - 1) ** power, rounding(40 * A.shape[1], A.shape[1]))


@attack(
    "theorem-attention-sink",
    on=several.such_that(lambda A: on_the_first(A).min(axis=1) > 0.1),
    wrong={"to the fourth power": lambda A: below_for_every_length(A, 4)},
)
def the_stable_rank_stays_small_for_every_length(A):
    return below_for_every_length(A, 2)


# Singular values and rank -------------------------------------------------------------------------------------------


def interlaced(A: Array, shift: int):
    """sigma_{i + shift}(A) <= sigma_i(D A') <= sigma_i(A)."""
    values, rest = sigma(A), sigma(A[:, 1:, 1:])
    slack = rounding(40 * A.shape[1], A.shape[1])
    m = rest.shape[1]
    return at_most(values[:, shift : shift + m], rest, slack) & at_most(rest, values[:, :m], slack)


@attack(
    "theorem-attention-sink",
    on=several,
    wrong={"the first value is not left out": lambda A: interlaced(A, 0)},
)
def the_rest_interlaces(A):
    return interlaced(A, 1)


def decided(A: Array) -> Array:
    """Where no singular value is so small that rounding decides a rank."""
    both = np.concatenate([sigma(A), sigma(without_the_first(A))], axis=1)
    return np.all((both > 1e-6) | (both < 1e-12), axis=1)


def ranks(A: Array) -> Array:
    return (sigma(A) > 1e-9).sum(axis=1)


@attack(
    "theorem-attention-sink",
    on=not_alone.such_that(decided),
    wrong={"the same rank": lambda A: true(ranks(A) == ranks(without_the_first(A)))},
)
def a_sink_adds_one_to_the_rank(A):
    return true(ranks(A) == 1 + ranks(without_the_first(A)))


# Entropy ------------------------------------------------------------------------------------------------------------


def entropy(p: Array) -> Array:
    return -(p * np.log(np.where(p > 0, p, 1))).sum(axis=-1)


def entropies(p: Array, factor):
    """H(p) = h(w) + (1 - w) H(rest)."""
    w = p[:, 0]
    rest = p[:, 1:] / (1 - w)[:, None]
    two = entropy(np.stack([w, 1 - w], axis=1))
    return equal(entropy(p), two + factor(w) * entropy(rest), rounding(40 * p.shape[1], 1 + np.log(p.shape[1])))


@attack(
    "theorem-attention-sink",
    "attention_sinks/entropy",
    on=instances.probability_rows.such_that(lambda p: (p[:, 0] < 0.99) & (p.shape[1] > 1)),
    wrong={"the rest in full": lambda p: entropies(p, lambda w: 1), "by w": lambda p: entropies(p, lambda w: w)},
)
def the_entropy_splits(p):
    return entropies(p, lambda w: 1 - w)


no_attack(
    "attention_sinks/first-token",
    because="measured: The weight on the first token of three kinds of heads is compared with that on drawn keys.",
)
no_attack(
    "attention_sinks/without-it",
    because="measured: One pretrained decoder's heads are compared without the first token and without another.",
)
