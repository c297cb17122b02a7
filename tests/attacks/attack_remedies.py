"""Attacks on what the chapter on remedies for low rank says itself."""

from __future__ import annotations

import itertools

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding, true
from instances import Array, softmax


def sigma(A: Array) -> Array:
    """Singular values of each matrix, the largest first."""
    return np.linalg.svd(A, compute_uv=False)


def grouped(function, *sizes: Array) -> Array:
    """Answers of a function that gets the sizes of a group of instances, their number, and a seeded generator."""
    rows = np.stack(sizes, axis=1).astype(int)
    different, where = np.unique(rows, axis=0, return_inverse=True)
    holds = np.zeros(len(rows), dtype=bool)
    for number, row in enumerate(different):
        chosen = np.flatnonzero(where.ravel() == number)
        rng = np.random.default_rng([len(rows), *np.abs(row)])
        holds[chosen] = function(*map(int, row), len(chosen), rng)
    return holds


def ranks(A: Array, relative: float = 1e-10) -> Array:
    """Rank of each matrix, counted above a share of its largest singular value."""
    values = sigma(A)
    return (values > relative * values[:, :1]).sum(axis=1)


# Different targets --------------------------------------------------------------------------------------------------


def few_rows(rng: np.random.Generator, A: Array) -> Array:
    """Row-stochastic matrices of low rank: rows are mixtures of the first r rows."""
    count, n = A.shape[:2]
    r = rng.integers(1, n + 1, size=count)
    mix = rng.random((count, n, n)) ** rng.integers(1, 9, size=(count, 1, 1)) * (np.arange(n) < r[:, None, None])
    hard = np.eye(n)[rng.integers(0, r[:, None], size=(count, n))]
    mix = np.where(rng.random((count, 1, 1)) < 0.5, mix / mix.sum(axis=2, keepdims=True), hard)
    return mix @ A


of_low_rank = instances.row_stochastic.also(
    B=few_rows, order=lambda rng, A, B: rng.permuted(np.tile(np.arange(A.shape[1]), (len(A), 1)), axis=1)
)


def targets(B: Array, order: Array, least=lambda values, r: r, by_values=1.0, distance=0.0) -> object:
    n = B.shape[1]
    wanted = np.take_along_axis(B, order[:, :, None], axis=2)[..., 0].sum(axis=1)
    values, r = sigma(B), ranks(B)
    off = np.linalg.norm(B - np.eye(n)[order], axis=(1, 2))
    return (
        at_most(wanted, least(values, r), 1e-7)
        & at_most(wanted, by_values * values.sum(axis=1), 1e-7)
        & at_most(np.sqrt(np.maximum(n - r, 0)) + distance, off, 1e-7)
    )


@attack(
    "theorem-different-targets",
    "note/fine-dependencies",
    on=of_low_rank,
    wrong={
        "one less than the rank": lambda A, B, order: targets(B, order, lambda values, r: r - 0.5),
        "the largest singular value alone": lambda A, B, order: targets(B, order, lambda values, r: values[:, 0]),
        "half of the singular values": lambda A, B, order: targets(B, order, by_values=0.5),
        "a larger distance": lambda A, B, order: targets(B, order, distance=0.1),
    },
)
def weights_of_low_rank_serve_few_targets(A, B, order):
    return targets(B, order)


# The circle ---------------------------------------------------------------------------------------------------------

circles = instances.numbers(beta=(1e-3, 1e5)).also(
    n=lambda rng, beta: np.full(len(beta), int(rng.integers(3, 12))), seed=lambda rng, beta, n: rng.permutation(len(n))
)


def circle(beta: Array, n: Array, others=lambda n: n - 1, scores=2, weights=3, at=0) -> object:
    size = int(n[0])
    angle = 2 * np.pi * np.arange(size) / size
    wanted = np.random.default_rng(size).permutation(size)
    cosines = np.cos(angle[wanted][:, None] - angle)
    S = beta[:, None, None] * cosines
    on_target = softmax(S)[:, np.arange(size), wanted]
    gap = 1 - np.cos(2 * np.pi / size)
    gentle = (2 + cosines) / (2 * size)
    right = (
        ranks(cosines[None])[0] == scores
        and ranks(gentle[None])[0] == weights
        and abs(gentle.sum(axis=1) - 1).max() < 1e-12
        and (np.roll(gentle, at, axis=1).argmax(axis=1) == wanted).all()
    )
    lower = 1 / (1 + others(size) * np.exp(-beta * gap))
    return at_most(lower[:, None], on_target, 1e-12 * (1 + beta[:, None])) & true(np.full(len(beta), right))


@attack(
    "theorem-circle",
    "remedies/circle",
    on=circles,
    wrong={
        "one other key": lambda beta, n, seed: circle(beta, n, others=lambda size: 1),
        "weights of rank 2": lambda beta, n, seed: circle(beta, n, weights=2),
        "the neighbour of the target": lambda beta, n, seed: circle(beta, n, at=1),
    },
)
def a_circle_serves_all_targets(beta, n, seed):
    return circle(beta, n)


# Approximations -----------------------------------------------------------------------------------------------------


def approximated(A: Array, extra: int = 1, by_rank: int = 0) -> object:
    U, values, Vt = np.linalg.svd(A)
    judged = true(np.full(len(A), True))
    for r in range(A.shape[1] + 1):
        best = (U[:, :, :r] * values[:, None, :r]) @ Vt[:, :r]
        error = np.linalg.norm(A - best, axis=(1, 2))
        dropped = values[:, r:] if extra else values[:, r : r + 1]
        judged &= equal(error, np.sqrt((dropped**2).sum(axis=1)), 1e-12)
        judged &= true((error < 1e-9) == (ranks(A, 1e-9) - by_rank <= r))
    return judged


@attack(
    "remedies/tails",
    on=instances.row_stochastic.such_that(lambda A: ((sigma(A) < 1e-14) | (sigma(A) > 1e-7)).all(axis=1)),
    wrong={
        "the first dropped value alone": lambda A: approximated(A, extra=0),
        "one dimension less is enough": lambda A: approximated(A, by_rank=1),
    },
)
def the_best_approximation_misses_the_tail(A):
    return approximated(A)


def repeated(words: Array, S: Array, bound=lambda words: np.array([len(set(one)) for one in words.tolist()])) -> object:
    """Equal words have equal rows and columns of scores."""
    rows = np.take_along_axis(S, words[:, :, None], axis=1)
    A = softmax(np.take_along_axis(rows, words[:, None, :], axis=2))
    return at_most(ranks(A, 1e-9), bound(words), 0.0)


texts = (
    instances.square_matrices.such_that(instances.moderate(20))
    .map("S", lambda M: M)
    .also(words=lambda rng, S: rng.integers(0, rng.integers(1, S.shape[1] + 1), size=S.shape[:2]))
)


@attack(
    "remedies/tails",
    on=texts,
    wrong={"one less than the words": lambda S, words: repeated(words, S, lambda w: np.array(
        [len(set(one)) - 1 for one in w.tolist()]))},
)  # fmt: skip
def repeated_words_have_low_rank(S, words):
    return repeated(words, S)


# The layer as a map -------------------------------------------------------------------------------------------------

layers = instances.integers(n=(1, 4), h=(1, 3), width=(1, 2), cut=(0, 2))


def orthogonal(rng: np.random.Generator, count: int, d: int) -> Array:
    return np.linalg.qr(rng.standard_normal((count, d, d)))[0]


def layer(n: Array, h: Array, width: Array, cut: Array, wanted: str = "mean") -> object:
    """Rank and singular values of a layer as a map; cut: how many directions W_O loses."""

    def holds(n: int, h: int, width: int, cut: int, count: int, rng: np.random.Generator) -> Array:
        d = h * width
        inner = rng.integers(1, n + 1, size=(count, h))
        left = rng.standard_normal((count, h, n, n)) * (np.arange(n) < inner[:, :, None, None])
        A = left @ rng.standard_normal((count, h, n, n))
        W_V, W_O = (orthogonal(rng, count, d) for _ in range(2))
        W_O = W_O * (np.arange(d) >= cut)
        of_heads = W_V.reshape(count, d, h, width).swapaxes(1, 2) @ W_O.reshape(count, h, width, d)
        whole = np.einsum("bhpq,bhij->bqipj", of_heads, A).reshape(count, d * n, d * n)
        found = (sigma(whole) > 1e-9).sum(axis=1)
        bound = {
            "mean": width * inner.sum(axis=1),
            "largest": width * inner.max(axis=1),
            "one": d * inner.max(axis=1),
        }[wanted]
        fine = found <= bound
        if cut == 0:
            values = np.sort(np.repeat(np.linalg.svd(A, compute_uv=False).reshape(count, -1), width, axis=1))
            fine &= (found == bound) & np.isclose(sigma(whole)[:, ::-1], values, atol=1e-9).all(axis=1)
        return fine

    return grouped(holds, n, h, width, cut)


@attack(
    "theorem-layer-rank",
    "remedies/layer-rank",
    on=layers,
    wrong={
        "d times the largest rank": lambda *given: layer(*given, wanted="one"),
        "the width times the largest rank": lambda *given: layer(*given, wanted="largest"),
    },
)
def a_layer_as_a_map_has_the_mean_rank(n, h, width, cut):
    return layer(n, h, width, cut)


# Patterns -----------------------------------------------------------------------------------------------------------


def matching(mask: Array) -> int:
    """Structural rank by trying all permutations of columns."""
    n = len(mask)
    return max(int(mask[np.arange(n), list(order)].sum()) for order in itertools.permutations(range(n)))


square = instances.masked_scores.such_that(lambda mask, S: np.full(len(mask), mask.shape[1] == mask.shape[2] <= 4)).map(
    "mask S", lambda mask, S: (mask, S)
)


def under_a_pattern(mask: Array, S: Array, less: int = 0, almost_all: bool = True) -> object:
    """The rank for the given scores is at most the structural rank, and for scores drawn at random it is that."""
    different, where = np.unique(mask.reshape(len(mask), -1), axis=0, return_inverse=True)
    known = np.array([matching(one.reshape(mask.shape[1:])) for one in different])
    rho = known[where.ravel()] - less
    given = ranks(softmax(np.where(mask, np.clip(S, -3, 3), -np.inf)), 1e-9)
    drawn = np.random.default_rng(len(mask)).normal(scale=2, size=S.shape) if almost_all else np.zeros(S.shape)
    generic = ranks(softmax(np.where(mask, drawn, -np.inf)), 1e-9)
    # Scores near the exceptional set are rare; none of the drawn ones comes within the tolerance.
    return at_most(given, rho, 0.0) & equal(generic, rho, 0.0)


@attack(
    "theorem-structural-rank",
    "remedies/structural-rank",
    on=square,
    wrong={
        "one less": lambda mask, S: under_a_pattern(mask, S, less=1),
        "also for equal scores": lambda mask, S: under_a_pattern(mask, S, almost_all=False),
    },
)
def a_pattern_allows_its_structural_rank(mask, S):
    return under_a_pattern(mask, S)


def apart(rng: np.random.Generator, count: int, n: int, d_k: int) -> Array:
    """Rows in an order by chance, whose first components are well apart, so that no rank is a matter of rounding."""
    first = rng.permuted(np.tile(np.arange(n) - (n - 1) / 2, (count, 1)), axis=1)
    rows = rng.uniform(-0.2, 0.2, size=(count, n, d_k))
    rows[:, :, 0] += 2 * first
    return rows


def from_queries_and_keys(mask: Array, d_k: int, less: int = 0, product: bool = True) -> object:
    """Scores that are products of queries and keys of few dimensions have the structural rank as well.

    product : in place of the products, queries alone.
    """
    different, where = np.unique(mask.reshape(len(mask), -1), axis=0, return_inverse=True)
    rho = np.array([matching(one.reshape(mask.shape[1:])) for one in different])[where.ravel()] - less
    rng = np.random.default_rng([len(mask), d_k])
    Q, K = (apart(rng, len(mask), mask.shape[1], d_k) for _ in range(2))
    S = Q @ (K if product else np.ones_like(K)).swapaxes(1, 2)
    return equal(ranks(softmax(np.where(mask, S, -np.inf)), 1e-12), rho, 0.0)


@attack(
    "theorem-structural-rank",
    "remedies/structural-rank",
    on=square,
    wrong={
        "one less, one dimension": lambda mask, S: from_queries_and_keys(mask, 1, less=1),
        "one less, two dimensions": lambda mask, S: from_queries_and_keys(mask, 2, less=1),
        "also for equal keys": lambda mask, S: from_queries_and_keys(mask, 1, product=False),
    },
)
def queries_and_keys_of_few_dimensions_reach_it(mask, S):
    return from_queries_and_keys(mask, 1) & from_queries_and_keys(mask, 2)


windows = instances.integers(n=(2, 9), w=(0, 4), h=(1, 3)).such_that(lambda n, w, h: w + h < n)


def with_hubs(n: Array, w: Array, h: Array, more: int = 0, wide: bool = True) -> object:
    def holds(n: int, w: int, h: int, count: int, rng: np.random.Generator) -> Array:
        place = np.arange(n)
        near = np.abs(np.subtract.outer(place, place)) <= w
        seen = (near & wide) | (place < h)[:, None] | (place < h)[None, :]
        S = rng.choice([0.0, 0.3, 2.0], size=(count, 1, 1)) * rng.integers(-2, 3, size=(count, n, n))
        return ranks(softmax(np.where(seen, S, -np.inf)), 1e-12) >= n - w - h + more

    return grouped(holds, n, w, h)


@attack(
    "theorem-windows-hubs",
    "note/sparse",
    on=windows,
    wrong={
        "two more": lambda n, w, h: with_hubs(n, w, h, more=2),
        "hubs without windows": lambda n, w, h: with_hubs(n, w, h, wide=False),
    },
)
def windows_with_hubs_have_a_high_rank(n, w, h):
    return with_hubs(n, w, h)


# A residual, projections and latents --------------------------------------------------------------------------------


def residual(A: Array, kept: int = 0) -> object:
    U, values, Vt = np.linalg.svd(A)
    whole, judged = ranks(A, 1e-7), true(np.full(len(A), True))
    for r in range(1, A.shape[1]):
        rest = A - (U[:, :, :r] * values[:, None, :r]) @ Vt[:, :r]
        found = (sigma(rest) > 1e-8 * values[:, :1]).sum(axis=1)
        judged &= true((r >= whole) | (found == whole - r + kept))
    return judged


@attack(
    "note/residual",
    on=instances.row_stochastic.such_that(lambda A: ((sigma(A) < 1e-14) | (sigma(A) > 1e-5)).all(axis=1)),
    wrong={"the rank of the whole": lambda A: residual(A, kept=1)},
)
def a_residual_has_the_rest_of_the_rank(A):
    return residual(A)


of_projections = instances.queries_and_keys.such_that(instances.moderate(5)).also(
    E=lambda rng, Q, K: rng.normal(size=(len(Q), int(rng.integers(1, 4)), K.shape[1])),
    F=lambda rng, Q, K, E: rng.normal(size=E.shape) * rng.choice([0.1, 1, 10], size=(len(E), 1, 1)),
)


def projected(Q: Array, K: Array, E: Array, F: Array, less: int = 0) -> object:
    S = Q @ (E @ K).swapaxes(1, 2) / np.sqrt(Q.shape[2])
    return at_most(ranks(softmax(S) @ F, 1e-9), E.shape[1] - less, 0.0)


@attack(
    "note/residual",
    "remedies/one-pass-and-latents",
    "proposition-latents",
    on=of_projections,
    wrong={"one less": lambda Q, K, E, F: projected(Q, K, E, F, less=1)},
)
def what_passes_through_few_rows_has_low_rank(Q, K, E, F):
    return projected(Q, K, E, F)


def in_blocks(Q: Array, K: Array, V: Array, shared: bool = True) -> object:
    """One pass over two blocks of keys: their sums, scaled to one reference, add up."""
    S = Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2])
    half = (S.shape[2] + 1) // 2
    above = below = 0.0
    top = S.max(axis=2, keepdims=True)
    for part in (slice(0, half), slice(half, None)):
        if S[:, :, part].shape[2]:
            own = S[:, :, part].max(axis=2, keepdims=True)
            scale = np.exp(own - top) if shared else 1.0
            block = np.exp(S[:, :, part] - own)
            above = above + scale * (block @ V[:, part])
            below = below + scale * block.sum(axis=2, keepdims=True)
    size = np.abs(V).max(axis=(1, 2))[:, None, None]
    return equal(above / below, softmax(S) @ V, rounding(256, 1 + np.abs(S).max(axis=(1, 2))[:, None, None]) * size)


@attack(
    "remedies/one-pass-and-latents",
    on=instances.attention.such_that(instances.moderate(100)),
    wrong={"each block with its own reference": lambda Q, K, V: in_blocks(Q, K, V, shared=False)},
)
def one_pass_over_blocks_is_exact(Q, K, V):
    return in_blocks(Q, K, V)


# Rotary scores ------------------------------------------------------------------------------------------------------


def turned(X: Array, at: Array, omega: Array) -> Array:
    """Rows of X, pair by pair, turned by position times frequency. omega : shape (batch, pairs)."""
    z = (X[..., ::2] + 1j * X[..., 1::2]) * np.exp(1j * at[:, None] * omega[:, None, :])
    return np.stack([z.real, z.imag], axis=-1).reshape(X.shape)


pairs = instances.integers(n=(1, 9), pairs=(1, 3), shift=(0, 20))


def rotary(n: Array, pairs: Array, shift: Array, equal_rank=min, both: bool = True) -> object:
    def holds(n: int, pairs: int, shift: int, count: int, rng: np.random.Generator) -> Array:
        # Different frequencies in (0, pi).
        omega = (np.arange(pairs) + rng.uniform(0.3, 0.7, size=(count, pairs))) * np.pi / pairs
        Q, K = rng.normal(size=(2, count, n, 2 * pairs))
        at = np.arange(n)
        S = turned(Q, at, omega) @ turned(K, at, omega).swapaxes(1, 2)
        moved = turned(Q, at + shift, omega) @ turned(K, at + shift * both, omega).swapaxes(1, 2)
        c = rng.choice([-1, 1], size=(count, 1, 2 * pairs)) * rng.uniform(0.5, 2, size=(count, 1, 2 * pairs))
        of_one = turned(np.repeat(c, n, axis=1), at, omega)
        fine = np.isclose(S, moved, atol=1e-9).all(axis=(1, 2)) & (ranks(S, 1e-11) <= 2 * pairs)
        return fine & (ranks(of_one @ of_one.swapaxes(1, 2), 1e-11) == equal_rank(n, 2 * pairs))

    return grouped(holds, n, pairs, shift)


@attack(
    "theorem-rotary-scores",
    "remedies/rotary",
    on=pairs,
    wrong={
        "a shift of the queries alone": lambda *given: rotary(*given, both=False),
        "the rank stays 1": lambda *given: rotary(*given, equal_rank=lambda size, d: 1),
        "one for each frequency": lambda *given: rotary(*given, equal_rank=lambda size, d: min(size, d // 2)),
    },
)
def rotary_scores_depend_on_differences(n, pairs, shift):
    return rotary(n, pairs, shift)


no_attack(
    "remedies/random-patterns",
    because="measured: the sentence says what the heads that the book ships do behind eight drawings.",
)
