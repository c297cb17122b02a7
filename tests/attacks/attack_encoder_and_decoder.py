"""Attacks on what the chapter on encoder and decoder says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, implies, less, no_attack, rounding, true
from instances import Array, softmax

from attnmath.matrix.rank import entropy_rank, stable_rank


def sigma(A: Array) -> Array:
    """Singular values of each matrix, the largest first."""
    return np.linalg.svd(A, compute_uv=False)


def under_the_mask(S: Array) -> Array:
    """Causal attention, written out."""
    return softmax(np.where(np.tri(S.shape[-1], dtype=bool), S, -np.inf))


def each(function, *arguments):
    """The value of a function of whole numbers at each instance; each tuple of arguments is computed once."""
    different, where = np.unique(np.stack(arguments, axis=1), axis=0, return_inverse=True)
    values = np.array([function(*map(int, row)) for row in different], dtype=float)
    return values[where.ravel()]


# Rows that agree ----------------------------------------------------------------------------------------------------


def cosines(A: Array) -> Array:
    """Cosines of all pairs of different rows, 1 on the diagonal, shape (batch, n, n)."""
    units = A / np.linalg.norm(A, axis=2, keepdims=True)
    return np.minimum(units @ units.swapaxes(1, 2), 1.0)


def bounded_by_cosines(A, notion=stable_rank, of=lambda C: C.min(axis=(1, 2))):
    c = of(cosines(A))
    met = c > 1e-3
    return implies(met, at_most(notion(sigma(A)), 1 / np.where(met, c, 1.0), rounding(1e3 * A.shape[1] ** 2, 1e3)))


def off_diagonal_maximum(C):
    n = C.shape[1]
    return np.where(np.eye(n, dtype=bool), -1.0 if n > 1 else 1.0, C).max(axis=(1, 2))


@attack(
    "theorem-row-cosines",
    "note/far-below",
    on=instances.row_stochastic,
    wrong={
        "the entropy rank as well": lambda A: bounded_by_cosines(A, entropy_rank),
        "the largest cosine": lambda A: bounded_by_cosines(A, of=off_diagonal_maximum),
    },
)
def rows_that_agree_bound_the_stable_rank(A):
    return bounded_by_cosines(A)


def leaning(A, epsilon, others=True):
    """Equal rows with a little of the identity are invertible, though their rows agree and one value dominates."""
    n = A.shape[1]
    values = sigma((1 - epsilon)[:, None, None] * A[:, :1] * np.ones((n, 1)) + epsilon[:, None, None] * np.eye(n))
    # A c = y gives c = (y - (1 - epsilon) (p . y) 1) / epsilon, whose length bounds 1 / sigma_n.
    least = epsilon / (1 + np.sqrt(n) * np.linalg.norm(A[:, 0], axis=1))
    return at_most(least if others else 2 * epsilon, values[:, -1], 1e-12)


@attack(
    "note/far-below",
    on=instances.row_stochastic.also(epsilon=lambda rng, A: rng.uniform(1e-3, 1, size=len(A))),
    wrong={"a smallest value of twice epsilon": lambda A, epsilon: leaning(A, epsilon, others=False)},
)
def rows_that_agree_may_have_full_rank(A, epsilon):
    return leaning(A, epsilon)


# Equal scores -------------------------------------------------------------------------------------------------------


def cesaro(n: int) -> Array:
    return np.tri(n) / np.arange(1, n + 1)[:, None]


def equal_scores(n, upper=4.0, quarter=0.25, inside=1):
    root = np.sqrt(1 - 1 / (n + 1 - inside))
    largest, smallest = (each(lambda n, k=k: sigma(cesaro(n))[k], n) for k in (0, -1))
    harmonic = each(lambda n: float(np.sum(1 / np.arange(1, n + 1))), n)
    energy = each(lambda n: float(np.sum(cesaro(n) ** 2)), n)
    condition, stable = largest / smallest, energy / largest**2
    judged = at_most(largest, 1 + root, 1e-12) & at_most(1 - root, smallest, 1e-12) & at_most(1.0, largest, 1e-12)
    judged &= less(condition, upper * n) & at_most(np.sqrt(2) * (n - 1), condition, 1e-9 * n)
    judged &= equal(energy, harmonic, 1e-12 * harmonic) & less(quarter * harmonic, stable)
    return judged & at_most(stable, harmonic, 1e-12) & at_most(4 - 24 / harmonic, largest**2, 1e-12)


@attack(
    "encoder_and_decoder/equal-scores",
    "theorem-equal-scores",
    on=instances.integers(n=(1, 70)),
    wrong={
        "a condition number below 3 n": lambda n: equal_scores(n, upper=3.0),
        "a stable rank above half of the harmonic number": lambda n: equal_scores(n, quarter=1 / 2),
        "the bounds for one token less": lambda n: equal_scores(n + 1, inside=2),
    },
)
def equal_scores_under_the_mask(n):
    return equal_scores(n)


# No general order ---------------------------------------------------------------------------------------------------

at_least_two = instances.square_matrices.such_that(lambda S: np.full(len(S), S.shape[1] >= 2))


def hot(S, spread=1e-3):
    """Scores within `spread` of one another: the causal matrix has both effective ranks larger."""
    S = S - S.mean(axis=(1, 2), keepdims=True)
    size = np.abs(S).max(axis=(1, 2), keepdims=True)
    S = spread * S / np.where(size > 0, size, 1.0)
    free, causal = sigma(softmax(S)), sigma(under_the_mask(S))
    return less(stable_rank(free), stable_rank(causal)) & less(entropy_rank(free), entropy_rank(causal))


@attack(
    "theorem-no-order",
    "encoder_and_decoder/no-order",
    on=at_least_two,
    wrong={"at every temperature": lambda S: hot(S, 20.0)},
)
def high_temperature_favours_the_causal_matrix(S):
    return hot(S)


def look_ahead(n: int) -> Array:
    S = np.zeros((n, n))
    S[:-1, 0] = 1
    S[np.arange(n - 1), np.arange(1, n)] = 2
    S[-1, 0] = 2
    return S


def last_token(n: int) -> Array:
    S = np.eye(n)
    S[:, -1] = 2
    return S


def extremes(n, scores, free_is_flat):
    """How far the two matrices at T = 1/60 are from n singular values 1, and from a single one that is sqrt(n)."""

    def off(n: int) -> float:
        S = 60 * scores(n)
        flat, single = (softmax(S), under_the_mask(S)) if free_is_flat else (under_the_mask(S), softmax(S))
        one = np.eye(n)[0] * np.sqrt(n)
        return float(max(np.abs(sigma(flat) - 1).max(), np.abs(sigma(single) - one).max()))

    return at_most(each(off, n), 1e-9, 0.0)


@attack(
    "theorem-no-order",
    "encoder_and_decoder/no-order",
    "exercise-encoder_and_decoder-extremes",
    on=instances.integers(n=(2, 40)),
    wrong={
        "looking ahead favours the causal matrix": lambda n: extremes(n, look_ahead, False),
        "the last token favours the bidirectional matrix": lambda n: extremes(n, last_token, True),
    },
)
def low_temperature_has_both_extremes(n):
    return extremes(n, look_ahead, True) & extremes(n, last_token, False)


two_tokens = instances.square_matrices.map(
    "a b", lambda M: tuple(1 / (1 + np.exp(-np.clip(M[:, -1, k], -8, 8))) for k in (0, -1))
)


def compared(a, b, margin):
    rows = np.stack([1 - a, a, 1 - b, b], axis=1).reshape(-1, 2, 2)
    first = np.stack([np.ones_like(a), np.zeros_like(a), 1 - b, b], axis=1).reshape(-1, 2, 2)
    free, causal = sigma(rows), sigma(first)
    clear = np.abs(margin(a, b)) > 1e-6
    larger = margin(a, b) > 0
    agree = [(notion(causal) > notion(free)) == larger for notion in (stable_rank, entropy_rank)]
    return implies(clear, true(agree[0] & agree[1]))


@attack(
    "theorem-two-tokens",
    "encoder_and_decoder/no-order",
    "exercise-encoder_and_decoder-two-tokens",
    on=two_tokens,
    wrong={
        "the last term forgotten": lambda a, b: compared(a, b, lambda a, b: 2 * b - a),
        "a and b exchanged": lambda a, b: compared(b, a, lambda b, a: (2 * b - a) * (1 - b + b**2) - a * b * (1 - a)),
    },
)
def one_inequality_decides_for_two_tokens(a, b):
    return compared(a, b, lambda a, b: (2 * b - a) * (1 - b + b**2) - a * b * (1 - a))


def winning_columns(n: int, causal: bool) -> float:
    """Mean number of columns that win a row, over all cases."""
    cases = np.indices(tuple(range(1, n + 1)) if causal else (n,) * n).reshape(n, -1).T
    return float(np.mean([len(set(rows)) for rows in cases.tolist()]))


@attack(
    "exercise-encoder_and_decoder-winners",
    on=instances.integers(n=(1, 6)),
    wrong={
        "half of the columns under the mask": lambda n: equal(each(lambda n: winning_columns(n, True), n), n / 2, 1e-9)
    },
)
def as_many_columns_win(n):
    causal, free = (each(lambda n, masked=masked: winning_columns(n, masked), n) for masked in (True, False))
    return equal(causal, (n + 1) / 2, 1e-9) & equal(free, n * (1 - (1 - 1 / n) ** n), 1e-9)


# Near the diagonal --------------------------------------------------------------------------------------------------


def band(n: int, w: int, seed: int, causal: bool) -> Array:
    """Rows inside of a window: at one place, evenly spread, or random; many of them at a common place."""
    rng = np.random.default_rng(seed)
    A = np.zeros((n, n))
    hub = rng.integers(n)
    for i in range(n):
        low, high = max(0, i - w), i + 1 if causal else min(n, i + w + 1)
        places = np.arange(low, high)
        how = rng.integers(4)
        if how == 0:
            A[i, np.clip(hub, low, high - 1)] = 1
        elif how == 1:
            A[i, places] = 1 / len(places)
        elif how == 2:
            A[i, rng.choice(places)] = 1
        else:
            A[i, places] = rng.dirichlet(np.full(len(places), 0.5))
    return A


def near_the_diagonal(n, w, seed, width=lambda w: (2 * w + 1) ** 2, width_causal=lambda w: (w + 1) ** 2):
    free, causal = (each(lambda *a, c=c: float(stable_rank(sigma(band(*a, c)))), n, w, seed) for c in (False, True))
    return at_most(n / width(w), free, 1e-9) & at_most(n / width_causal(w), causal, 1e-9)


@attack(
    "theorem-near-diagonal",
    "note/near-diagonal",
    on=instances.integers(n=(2, 14), w=(0, 2), seed=(0, 6)),
    wrong={
        "without the square": lambda n, w, seed: near_the_diagonal(n, w, seed, width=lambda w: 2 * w + 1),
        "half of the window": lambda n, w, seed: near_the_diagonal(n, w, seed, width=lambda w: w + 1.0),
    },
)
def weights_near_the_diagonal_have_a_high_stable_rank(n, w, seed):
    return near_the_diagonal(n, w, seed)


def on_columns(A, fewer=0):
    """With weight on h columns only, the value after the h-th vanishes."""
    h = (A.shape[2] + 1) // 2
    kept = A[:, :, :h] + 1e-3
    A = np.concatenate([kept / kept.sum(axis=2, keepdims=True), np.zeros_like(A[:, :, h:])], axis=2)
    return at_most(sigma(A)[:, h - fewer :].max(axis=1, initial=0.0), 1e-12, 0.0)


@attack(
    "note/near-diagonal",
    on=instances.row_stochastic,
    wrong={"one less": lambda A: on_columns(A, fewer=1)},
)
def few_columns_have_a_low_rank(A):
    return on_columns(A)


def dominant(A, delta, root=0.5):
    """The bounds of the exercise for matrices that give themselves at least 1 - delta."""
    n = A.shape[1]
    A = (1 - delta)[:, None, None] * np.eye(n) + delta[:, None, None] * A
    bound = n * (1 - delta) / (1 + (n - 1) * delta) ** root
    return less(0.0, np.abs(np.linalg.det(A))) & at_most(bound, entropy_rank(sigma(A)), 1e-9 * n)


@attack(
    "exercise-encoder_and_decoder-dominant",
    on=instances.row_stochastic.also(delta=lambda rng, A: rng.uniform(0, 0.499, size=len(A))),
    wrong={"without the root, upside down": lambda A, delta: dominant(A, delta, root=-0.5)},
)
def a_dominant_diagonal_has_a_high_entropy_rank(A, delta):
    return dominant(A, delta)


# Causes -------------------------------------------------------------------------------------------------------------


def largest_weight(s, others=1):
    s = np.clip(s, -200, 200)
    n, span = s.shape[1], np.ptp(s, axis=1)
    return at_most(softmax(s).max(axis=1), 1 / (1 + (n - others) * np.exp(-span)), 1e-12)


@attack(
    "note/winner-takes-all",
    on=instances.score_rows,
    wrong={"n others": lambda s: largest_weight(s, others=0)},
)
def a_winner_needs_a_range(s):
    return largest_weight(s)


def sharp(S, count):
    """At a low temperature as many singular values are left as columns win a row."""
    ordered = np.sort(S, axis=2)
    gap = np.min(ordered[:, :, -1] - ordered[:, :, -2], axis=1) if S.shape[2] > 1 else np.ones(len(S))
    A = softmax((S - ordered[:, :, -1:]) * (60 / gap)[:, None, None])
    winners = np.eye(S.shape[2])[S.argmax(axis=2)].max(axis=1).sum(axis=1)
    return equal(np.sum(sigma(A) > 1e-6, axis=1), count(winners), 0.0)


def one_winner(S: Array) -> Array:
    if S.shape[2] == 1:
        return np.full(len(S), True)
    ordered = np.sort(S, axis=2)
    gap = np.min(ordered[:, :, -1] - ordered[:, :, -2], axis=1)
    return (gap > 1e-6 * np.ptp(S, axis=(1, 2))) & (gap > 1e-100)


@attack(
    "note/winner-takes-all",
    on=instances.square_matrices.such_that(one_winner),
    wrong={"always one winner": lambda S: sharp(S, np.ones_like)},
)
def sharp_rows_have_the_rank_of_the_number_of_winners(S):
    return sharp(S, lambda winners: winners)


def repeated(S, causal=False):
    """Tokens of two kinds: the third singular value vanishes."""
    n = S.shape[1]
    kinds = np.arange(n) % 2
    S = np.clip(S[:, kinds[:, None] % n, kinds[None, :] % n], -20, 20)
    A = under_the_mask(S) if causal else softmax(S)
    return at_most(sigma(A)[:, 2:].max(axis=1, initial=0.0), 1e-12, 0.0)


@attack(
    "note/may-be-low",
    "note/bidirectional",
    "exercise-encoder_and_decoder-repeated",
    on=instances.square_matrices,
    wrong={"under the mask as well": lambda S: repeated(S, causal=True)},
)
def repeated_tokens_bound_the_rank(S):
    return repeated(S)


no_attack(
    "encoder_and_decoder/trained-decoders",
    because="measured: It compares the shipped heads with a mask and without one, at the scores they compute.",
)


# A weaker model -----------------------------------------------------------------------------------------------------

small_layers = instances.integers(n=(2, 7), h=(1, 3), width=(1, 2), seed=(0, 40))


def collides(n: int, h: int, width: int, seed: int, more: int = 0, last: bool = True) -> float:
    """Two inputs that some token cannot tell apart, and that ask different things of it: 1 if there are such.

    more : added to the largest rank that all heads have together.  last : whether the last token is held at 0.
    """
    rng, d = np.random.default_rng([n, h, width, seed]), h * width
    most = h * (n - 1) - 1 + more
    together = most if more else int(rng.integers(0, most + 1))
    order = np.sort(rng.permutation(h * n)[:together] % h)
    heads = [rng.normal(size=(n, r)) @ rng.normal(size=(r, n)) for r in np.bincount(order, minlength=h)]
    maps = [rng.normal(size=(d, width)) @ rng.normal(size=(width, d)) for _ in heads]
    mixed = sum(np.kron(A, W) for A, W in zip(heads, maps, strict=True))
    x = np.linalg.svd(np.vstack([mixed, np.eye(n * d)[-d if last else n * d :]]))[2][-1]
    own = np.linalg.norm(x.reshape(n, d), axis=1)
    silent = np.linalg.norm((mixed @ x).reshape(n, d), axis=1) < 1e-9
    return float(np.any(silent & (own < 1e-9) & (np.roll(own, -1) > 1e-9)))


@attack(
    "proposition-weaker-layer",
    "note/weaker",
    on=small_layers,
    wrong={
        "one rank more": lambda n, h, width, seed: each(lambda *of: collides(*of, more=1), n, h, width, seed) == 1,
        "without a token that is 0": lambda n, h, width, seed: (
            each(lambda *of: collides(*of, last=False), n, h, width, seed) == 1
        ),
    },
)
def a_layer_of_low_rank_cannot_pass_tokens_on(n, h, width, seed):
    return each(collides, n, h, width, seed) == 1


def passes_on(n: int, tenths: int, skip: float = 1.0, missing: int = 1) -> float:
    """The layer with the weights a and 1 - a gives each token the next one, and has the rank of the statement."""
    a, following = tenths / 10, np.roll(np.eye(n), 1, axis=1)
    A = a * np.eye(n) + (1 - a) * following
    x = np.random.default_rng([n, tenths]).normal(size=(n, 3))
    right = np.abs(-a / (1 - a) * (skip * x + A @ (-x / a)) - following @ x).max() < 1e-9
    return float(right and np.linalg.matrix_rank(A, tol=1e-9) == n - missing * (tenths == 5 and n % 2 == 0))


@attack(
    "proposition-weaker-layer",
    on=instances.integers(n=(2, 12), tenths=(5, 9)),
    wrong={
        "no skip connection": lambda n, tenths: each(lambda *of: passes_on(*of, skip=0.0), n, tenths) == 1,
        "full rank for equal weights": lambda n, tenths: each(lambda *of: passes_on(*of, missing=0), n, tenths) == 1,
    },
)
def a_layer_of_high_rank_passes_tokens_on(n, tenths):
    return each(passes_on, n, tenths) == 1
