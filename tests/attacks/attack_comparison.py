"""Attacks on what the chapter on the comparison table says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import Judged, at_most, attack, equal, rounding
from instances import Array, moderate

modest = instances.attention.such_that(moderate(1e2))
square = modest.such_that(lambda Q, K, V: np.full(len(Q), Q.shape[1] == K.shape[1]))


# Weight on different targets ----------------------------------------------------------------------------------------


def on_shifts(A: Array) -> Array:
    """Total weights on the n targets that are the tokens moved by 0, 1, ... places in a circle."""
    n = A.shape[1]
    places = np.arange(n)
    return np.stack([A[:, places, (places + move) % n].sum(axis=1) for move in range(n)], axis=1)


def by_features(Q, K, V, per_feature: float = 1.0, causal: bool = False, sharpness: float = 3.0) -> Judged:
    F, G = np.abs(Q) ** sharpness + 1e-3, np.abs(K) ** sharpness + 1e-3
    table = F @ G.swapaxes(1, 2)
    if causal:
        table = np.tril(table)
    A = table / table.sum(axis=2, keepdims=True)
    return at_most(on_shifts(A), per_feature * Q.shape[2], rounding(64 * Q.shape[1], 1.0))


@attack(
    "theorem-distinct-targets",
    "report/expressivity-row",
    on=square,
    wrong={
        "with a causal mask as well": lambda Q, K, V: by_features(Q, K, V, causal=True),
        "nine tenths for each feature": lambda Q, K, V: by_features(Q, K, V, per_feature=0.9),
    },
)
def features_share_their_weight(Q, K, V):
    return by_features(Q, K, V)


def through_a_bottleneck(A: Array, B: Array, width: int = 2) -> Array:
    """A row-stochastic matrix of rank at most `width`: rows of A lumped into that many classes, then rows of B."""
    classes = np.arange(A.shape[1]) % width
    shares = np.stack([A[:, :, classes == k].sum(axis=2) for k in range(width)], axis=2)
    return shares @ np.resize(B.swapaxes(0, 1), (width, *B.shape[::2])).swapaxes(0, 1)


@attack(
    "theorem-distinct-targets",
    on=instances.stochastic_pairs.such_that(lambda A, B: np.full(len(A), A.shape[1] > 1)),
    wrong={
        "one less than the rank": lambda A, B: at_most(
            on_shifts(through_a_bottleneck(A, B)), 1, rounding(64 * A.shape[1], 1.0)
        )
    },
)
def the_rank_bounds_the_weight(A, B):
    return at_most(on_shifts(through_a_bottleneck(A, B)), 2, rounding(64 * A.shape[1], 1.0))


def with_signs(Q: Array, K: Array, lowest: float = 0.0, per_rank: float = 1.0) -> Judged:
    """Weights of rank at most d + 1 from d features with signs, of which the smallest is `lowest` / n."""
    n, d = Q.shape[1:]
    S = Q @ (K - K.mean(axis=1, keepdims=True)).swapaxes(1, 2)
    size = d * np.abs(Q).max((1, 2)) * np.abs(K).max((1, 2))
    scale = np.maximum(-S.min((1, 2)), np.maximum(1e-6 * size, 1e-100))  # S = 0 but for rounding gives equal weights
    A = (1 + (1 - lowest) * S / scale[:, None, None]) / n
    return at_most(on_shifts(A), per_rank * (d + 1), rounding(64 * n, 1e6))


@attack(
    "theorem-distinct-targets",
    "report/expressivity-row",
    on=square,
    wrong={
        "weights below 0": lambda Q, K, V: with_signs(Q, K, lowest=-1.0),
        "half the rank": lambda Q, K, V: with_signs(Q, K, per_rank=0.5),
    },
)
def the_rank_bounds_weights_from_signs(Q, K, V):
    return with_signs(Q, K)


circles = instances.integers(n=(2, 40), power=(6, 9))


def on_a_circle(n, power, sharp: bool = True) -> Judged:
    size = int(n.max())
    angle = 2 * np.pi * np.arange(size) / n[:, None]
    inside = np.arange(size) < n[:, None]
    apart = 1 - np.cos(angle)  # from the own key to the others
    strength = 10.0**power if sharp else np.ones(len(power))
    own = 1 / np.where(inside, np.exp(-strength[:, None] * apart), 0).sum(axis=1)
    return at_most(n * (1 - 1e-6), n * own, 0.0)


@attack("report/expressivity-row", on=circles, wrong={"blunt queries": lambda n, power: on_a_circle(n, power, False)})
def softmax_reaches_any_number_of_targets(n, power):
    return on_a_circle(n, power)


# Frozen projections -------------------------------------------------------------------------------------------------


def with_frozen(rng: np.random.Generator, X: Array) -> Array:
    """2 d_k orthonormal columns in 2 d_k + 1 dimensions, for each instance."""
    d_k = X.shape[2]
    G = rng.standard_normal((len(X), 2 * d_k + 1, 2 * d_k + 1))
    return np.linalg.qr(G)[0][:, : 2 * d_k + 1, : 2 * d_k]


heads = square.also(W=lambda rng, Q, K, V: with_frozen(rng, Q))


def solved(Q, K, V, W, rows: int = 0) -> Judged:
    W = W[:, : W.shape[1] - rows]
    wanted = np.concatenate([Q, K], axis=2)
    X = wanted @ np.linalg.pinv(W)
    return equal(X @ W, wanted, rounding(1e4, 1 + np.abs(wanted).max((1, 2))))


@attack(
    "theorem-frozen-inputs",
    "report/expressivity-frozen",
    on=heads,
    wrong={"one dimension less than columns": lambda Q, K, V, W: solved(Q, K, V, W, rows=2)},
)
def every_query_and_key_has_an_input(Q, K, V, W):
    return solved(Q, K, V, W)


def moved_logit(Q, K, V, W, transposed: bool = False) -> Judged:
    """The first token of X, moved along the gradient P y of its logit with the last token."""
    X = np.concatenate([Q, K], axis=2) @ W.swapaxes(1, 2)
    d_k = Q.shape[2]
    P = W[:, :, :d_k] @ W[:, :, d_k:].swapaxes(1, 2)
    x, y = X[:, 0], X[:, -1]
    gradient = np.einsum("bca,bc->ba" if transposed else "bac,bc->ba", P, y)
    change = np.einsum("ba,bac,bc->b", x + gradient, P, y) - np.einsum("ba,bac,bc->b", x, P, y)
    size = 1 + np.abs(X).max((1, 2)) ** 2 * W.shape[1] ** 2
    return equal(change, (gradient**2).sum(axis=1), rounding(4096, size))


@attack(
    "report/weights-row",
    on=heads,
    wrong={"the transposed form": lambda Q, K, V, W: moved_logit(Q, K, V, W, transposed=True)},
)
def a_frozen_logit_moves_with_its_input(Q, K, V, W):
    return moved_logit(Q, K, V, W)


# Counts -------------------------------------------------------------------------------------------------------------

sizes = instances.integers(h=(1, 40), d_k=(1, 200), learned=(0, 40), d=(1, 2000))


def counts(h, d_k, learned, d, medium: int = 0) -> Judged:
    """Entries of the trained matrices, head by head, against the formulas."""
    learned = np.minimum(learned, h)
    of_a_head = d * d_k
    standard = sum(of_a_head * h for _ in "QKVO")
    fixed = 2 * of_a_head * learned + 2 * of_a_head * h
    frozen, values_too = 2 * of_a_head * h, of_a_head * h
    return (
        equal(standard, 4 * d * h * d_k - medium, 0.0)
        & equal(fixed, 2 * d * h * d_k + 2 * d * learned * d_k, 0.0)
        & equal(frozen, 2 * d * h * d_k, 0.0)
        & equal(values_too, d * h * d_k, 0.0)
        & at_most(frozen, fixed, 0.0)
    )


@attack(
    "report/parameters-row",
    on=sizes,
    wrong={"a medium number": lambda h, d_k, learned, d: counts(h, d_k, learned, d, medium=1)},
)
def the_formulas_count_the_matrices(h, d_k, learned, d):
    return counts(h, d_k, learned, d)


def of_a_layer(h, d_k, learned, d, frozen: int = 2) -> Judged:
    d = h * d_k
    return equal((4 - frozen) * d * h * d_k, 2 * d**2, 0.0) & equal((4 - 3) * d * h * d_k, d**2, 0.0)


@attack(
    "report/projections-row",
    on=sizes,
    wrong={"both readings freeze three matrices": lambda h, d_k, learned, d: of_a_layer(h, d_k, learned, d, frozen=3)},
)
def the_two_readings_leave_two_squares_and_one(h, d_k, learned, d):
    return of_a_layer(h, d_k, learned, d)


# Fixed patterns by sums ---------------------------------------------------------------------------------------------

values = instances.matrices.such_that(moderate(1e6)).map("V", lambda A: A)


def left_context(V: Array, power: int = 3) -> Judged:
    """Running means of the positions before i - 1, against the sums of each row by itself; the first two rows copy."""
    n = V.shape[1]
    s, t = np.zeros_like(V[:, 0]), 0.0
    means = []
    operations = 0
    for k in range(max(n - 2, 0)):
        s, t = s + (k + 1) ** power * V[:, k], t + (k + 1) ** 3
        operations += 3 if k else 2
        means.append(s / t)
    fast = np.stack([V[:, 0]] * min(n, 2) + means, axis=1)
    slow = np.stack([
        V[:, 0] if i < 2 else np.average(V[:, : i - 1], axis=1, weights=np.arange(1, i) ** 3) for i in range(n)
    ], axis=1)  # fmt: skip
    size = 1 + np.abs(V).max((1, 2))
    return equal(fast, slow, rounding(4096, size)) & at_most(np.full(len(V), operations), 3 * n, 0.0)


@attack("comparison/fixed-by-sums", on=values, wrong={"squares for cubes": lambda V: left_context(V, power=2)})
def running_sums_give_the_contexts(V):
    return left_context(V)
