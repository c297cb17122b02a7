"""Attacks on what the chapter on associative recall says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, no_attack, rounding
from instances import Array, Kind

# A temperature binds ------------------------------------------------------------------------------------------------


def _scores(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Bounds t, and scores between -t and t; in half of the rows each score is at an end."""
    t = 10.0 ** rng.uniform(-3, 1.5, size=count)
    share = rng.uniform(-1, 1, size=(count, *shape))
    share[::2] = np.sign(share[::2] + rng.uniform(-1, 1, size=(len(share[::2]), 1)))
    return t, t[:, None] * share


bounded_scores: Kind = instances.kind(
    "t s",
    lambda: (
        (f"{ones} of {n} scores at t = {t:g}", (np.array(t), np.where(np.arange(n) < ones, t, -t)))
        for t in (1e-3, np.log(7) / 2, 5.0)
        for n, ones in ((1, 1), (8, 1), (8, 7), (50, 1))
    ),
    _scores,
    [(1,), (2,), (5,), (8,), (30,)],
)


def sparsity_of_weights(s: Array) -> Array:
    weights = np.exp(s - s.max(axis=1, keepdims=True))
    return weights.mean(axis=1) / np.sqrt((weights**2).mean(axis=1))


@attack(
    "recall/temperature-binds",
    on=bounded_scores,
    wrong={
        "the bound of half the range": lambda t, s: at_most(1 / np.cosh(t / 2), sparsity_of_weights(s), 1e-12),
        "one less the quotient of the ends": lambda t, s: at_most(1 - np.exp(-2 * t), sparsity_of_weights(s), 1e-12),
    },
)
def bounded_scores_keep_rows_spread(t, s):
    return at_most(1 / np.cosh(t), sparsity_of_weights(s), rounding(s.shape[1] + 8, 1.0, 1 + t))


# Few features locate few tokens -------------------------------------------------------------------------------------


def _features(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Features of D queries, and of D right tokens with as many others; powers make them nearly one-hot."""
    queries, width = shape
    power = rng.choice([1.0, 4.0, 30.0], size=(count, 1, 1))
    G, H = rng.uniform(size=(count, queries, width)), rng.uniform(size=(count, 2 * queries, width))
    G[::3] = H[::3, :queries]  # each query looks for the features of its token
    H[:, queries:] *= rng.choice([0.0, 1.0], size=(count, 1, 1))
    return G**power, H**power


def _one_hot(queries: int, width: int) -> tuple[Array, Array]:
    features = np.eye(width)[np.arange(queries) % width]
    return features, np.concatenate([features, np.zeros((queries, width))])


features: Kind = instances.kind(
    "G H",
    lambda: ((f"{width} one-hot features, {queries} queries", _one_hot(queries, width))
             for queries in (1, 2, 4, 5) for width in (1, 2, 4)),
    _features,
    [(1, 1), (2, 1), (2, 2), (4, 2), (5, 4), (6, 3)],
)  # fmt: skip


def mean_share(G: Array, H: Array) -> Array:
    """Mean over the queries of the share that the token of the same number gets; a row of zeros gives none."""
    weights = G @ H.swapaxes(1, 2)
    queries = np.arange(G.shape[1])
    total = weights.sum(axis=2)
    return (weights[:, queries, queries] / np.where(total > 0, total, 1)).mean(axis=1)


def few_features(G: Array, H: Array, factor: float = 1.0):
    return at_most(mean_share(G, H), factor * G.shape[2] / G.shape[1], rounding(4 * G.size / len(G), 1.0))


@attack(
    "recall/share-bound",
    on=features,
    wrong={
        "half a token for each feature": lambda G, H: few_features(G, H, 0.5),
        "one token in all": lambda G, H: at_most(mean_share(G, H), 1 / G.shape[1], 1e-12),
    },
)
def few_features_locate_few_tokens(G, H):
    return few_features(G, H)


# What was measured --------------------------------------------------------------------------------------------------

no_attack(
    "recall/within-kinds",
    because="measured: It compares the recall of the most concentrated and the most spread settings of the table.",
)
no_attack(
    "recall/linear-concentrates",
    because="measured: It compares the mean sparsity of the trained elu + 1 models of the table with a bound.",
)
no_attack(
    "recall/identity-spreads",
    because="measured: It compares the mean sparsity of two kinds of trained models of the shipped table.",
)
no_attack(
    "recall/without-concentration",
    because="measured: It compares sparsity and recall of two settings of the shipped table.",
)
no_attack(
    "recall/concentrated-without-recall",
    because="measured: It compares sparsity and recall of elu + 1 at two powers in the shipped table.",
)
