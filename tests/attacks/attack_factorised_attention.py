"""Attacks on what the chapter on factorised attention says itself."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack
from instances import Array, softmax


def each(function, *arguments):
    """The value of a function of whole numbers at each instance; each row of arguments is computed once."""
    rows = np.stack(arguments, axis=1)
    different, where = np.unique(rows, axis=0, return_inverse=True)
    values = np.array([function(*map(int, row)) for row in different])
    return values[where.ravel()]


def through(*layers: Array) -> Array:
    """Boolean product of masks, first layer first."""
    found = np.eye(len(layers[0]), dtype=int)
    for layer in layers:
        found = (layer.astype(int) @ found > 0).astype(int)
    return found > 0


def strided(n: int, s: int, first: int = 0) -> tuple[Array, Array]:
    """Both heads of (R.13), causal, position by position; first: by how much the first head is shorter."""
    near, far = np.zeros((2, n, n), dtype=bool)
    for i in range(n):
        near[i, max(0, i - s + first) : i + 1] = True
        far[i, i % s : i + 1 : s] = True
    return near, far


def fixed(n: int, s: int, c: int) -> tuple[Array, Array]:
    own, cells = np.zeros((2, n, n), dtype=bool)
    for i in range(n):
        own[i, i // s * s : i + 1] = True
        cells[i, : i + 1] = np.arange(i + 1) % s >= s - c
    return own, cells


lengths = instances.integers(n=(1, 16), s=(1, 18))
with_cells = instances.integers(n=(1, 14), s=(1, 8), c=(1, 8)).such_that(lambda n, s, c: c <= s)
FIRST = "the first head shorter by two positions"


def strided_reach(n: int, s: int, shorter: int = 0) -> bool:
    near, far = strided(n, s, shorter)
    before = np.tri(n, dtype=bool)
    back = np.subtract.outer(np.arange(n), np.arange(n))
    one = np.array_equal(near | far, before & ((back <= s) | (back % s == 0)))
    pairs = ((near, far), (far, near), (near | far, near | far))
    return one and all(np.array_equal(through(*layers), before) for layers in pairs)


@attack(
    "theorem-strided-reach",
    "report/two-hops",
    on=lengths,
    wrong={
        FIRST: lambda n, s: each(lambda n, s: strided_reach(n, s, 2), n, s),
        "one layer is enough": lambda n, s: each(
            lambda n, s: bool(np.array_equal(strided(n, s)[0] | strided(n, s)[1], np.tri(n, dtype=bool))), n, s
        ),
    },
)
def strided_attention_reaches_what_is_before(n, s):
    return each(strided_reach, n, s)


def fixed_reach(n: int, s: int, c: int, first: str = "own block", routes: str = "cells from j on") -> bool:
    own, cells = fixed(n, s, c)
    before, itself = np.tri(n, dtype=bool), np.eye(n, dtype=bool)
    layers = (own | itself, cells | itself)
    everything = through(*(layers if first == "own block" else layers[::-1]))
    count = layers[1].astype(int) @ layers[0].astype(int)
    block, place = np.divmod(np.arange(n), s)
    later = block[:, None] > block
    stated = np.minimum(c, s - place) if routes == "cells from j on" else np.full(n, c)
    other = through(*layers[::-1])
    expected = before & ((block[:, None] == block) | (place >= s - c))
    return bool(
        np.array_equal(everything, before)
        and np.array_equal(count[later], np.broadcast_to(stated, (n, n))[later])
        and np.array_equal(other, expected)
    )


@attack(
    "theorem-fixed-reach",
    "report/fixed-attention",
    on=with_cells,
    wrong={
        "cells first": lambda n, s, c: each(lambda n, s, c: fixed_reach(n, s, c, first="cells"), n, s, c),
        "c routes from everywhere": lambda n, s, c: each(lambda n, s, c: fixed_reach(n, s, c, routes="c"), n, s, c),
    },
)
def fixed_attention_reaches_what_is_before(n, s, c):
    return each(fixed_reach, n, s, c)


# Hubs as the bits of a number.
hub_sets = instances.integers(n=(1, 6), bits=(1, 63)).such_that(lambda n, bits: bits < 2**n)


def picture(n: int, bits: int, all_in_two: bool = False, seen_by_all: bool = True) -> bool:
    hubs = np.flatnonzero(bits >> np.arange(n) & 1)
    itself = np.eye(n, dtype=bool)
    nearest = hubs[np.abs(np.arange(n)[:, None] - hubs).argmin(axis=1)]
    spokes, between = itself.copy(), itself.copy()
    spokes[np.arange(n), nearest] = spokes[nearest, np.arange(n)] = True
    between[np.ix_(hubs, hubs)] = True
    informed = between.copy()
    if seen_by_all:
        informed[:, hubs] = True
    knows = itself.copy()
    knows[np.arange(n), nearest] = True
    knows[hubs] = True
    expected = np.ones((n, n), dtype=bool) if all_in_two else knows
    return bool(
        np.array_equal(through(spokes, between), expected)
        and through(spokes, between, spokes).all()
        and through(spokes, informed).all()
    )


@attack(
    "theorem-hubs",
    "report/hub-picture",
    on=hub_sets,
    wrong={
        "two layers of the picture connect all": lambda n, bits: each(lambda n, b: picture(n, b, True), n, bits),
        "without the way down": lambda n, bits: each(lambda n, b: picture(n, b, seen_by_all=False), n, bits),
    },
)
def hubs_know_everything_and_others_know_two(n, bits):
    return each(picture, n, bits)


# Two random masks on six positions; the factors make some of them sparse, and some nearly full.
two_masks = instances.numbers(share=(0.05, 1.0)).also(
    masks=lambda rng, share: rng.random((len(share), 2, 6, 6)) < share[:, None, None, None]
)


def even_rows(masks: Array, factor: float) -> Array:
    first, second = masks[:, 0], masks[:, 1]
    learned = (second[:, -1:].astype(int) @ first.astype(int) > 0)[:, 0].all(axis=1)
    return ~learned | (first.sum(axis=2).max(axis=1) * second.sum(axis=2).max(axis=1) >= factor * 6)


@attack(
    "theorem-two-layers",
    on=two_masks,
    wrong={"twice as many": lambda share, masks: even_rows(masks, 2.0)},
)
def two_layers_with_few_keys_in_each_row(share, masks):
    return even_rows(masks, 1.0)


def halved(n: int, spared: int = 0) -> bool:
    """Halving by recursion; whether it has few entries, and reaches everything before."""
    mask = np.eye(n, dtype=bool)

    def part(first: int, end: int) -> None:
        if end - first > 1:
            middle = (first + end) // 2
            mask[middle, first:middle] = mask[middle:end, middle] = True
            part(first, middle)
            part(middle + 1, end)

    part(0, n)
    few = mask.sum() <= n * (math.ceil(math.log2(n + 1)) - spared)
    exact = (n + 1) & n or mask.sum() == (n + 1) * (round(math.log2(n + 1)) - 1) + 1
    return bool(few and exact and np.array_equal(through(mask, mask), np.tri(n, dtype=bool)))


@attack(
    "theorem-two-layers",
    on=instances.integers(n=(1, 90)),
    wrong={"a logarithm less one": lambda n: each(lambda n: halved(n, 1), n)},
)
def halving_is_cheap_and_reaches_everything(n):
    return each(halved, n)


def off_dense(n: int, s: int, even: bool = False) -> float:
    """Distance of the product of both layers from dense causal attention with equal scores."""
    one, two = np.zeros((2, n, n))
    for i in range(n):
        b, o = divmod(i, s)
        one[i, b * s : i + 1] = 1 / (o + 1)
        cells = np.arange(b) * s + s - 1
        two[i, cells] = 1 / (b + 1) if even else s / (i + 1)
        two[i, i] = 1 / (b + 1) if even else (o + 1) / (i + 1)
    return float(np.abs(two @ one - np.tri(n) / np.arange(1, n + 1)[:, None]).max())


@attack(
    "theorem-exact",
    "factorised_attention/exact",
    on=lengths,
    wrong={"equal weights in layer 2": lambda n, s: at_most(each(lambda n, s: off_dense(n, s, True), n, s), 0, 1e-12)},
)
def two_sparse_layers_are_dense(n, s):
    return at_most(each(off_dense, n, s), 0, 1e-12)


# Scores of two layers on 12 positions, for blocks of four and one to four cells.
two_layers_of_scores = instances.integers(c=(1, 4)).also(
    scores=lambda rng, c: rng.normal(size=(len(c), 2, 12, 12)) * rng.choice([0.0, 0.1, 1.0], size=(len(c), 1, 1, 1))
)


def rank_behind(c: Array, scores: Array, fewer: int = 0) -> Array:
    masks = np.array([[mask | np.eye(12, dtype=bool) for mask in fixed(12, 4, int(k))] for k in range(1, 5)])[c - 1]
    weights = softmax(np.where(masks, scores, -np.inf))
    part = (weights[:, 1] @ weights[:, 0])[:, 8:, 4:8]
    values = np.linalg.svd(part, compute_uv=False)
    return (values > 1e-12).sum(axis=1) <= c - fewer


@attack(
    "proposition-summary-rank",
    on=two_layers_of_scores,
    wrong={"rank c - 1": lambda c, scores: rank_behind(c, scores, 1)},
)
def what_passes_through_the_cells_has_rank_c(c, scores):
    return rank_behind(c, scores)


global_sets = instances.integers(n=(1, 6), w=(1, 3), bits=(1, 63)).such_that(lambda n, w, bits: bits < 2**n)


def heard_of(n: int, w: int, bits: int, extra: int = 1) -> bool:
    """Layers until x hears of y, by walking, against the statement."""
    chosen = np.flatnonzero(bits >> np.arange(n) & 1)
    places = np.arange(n)
    distance = np.abs(np.subtract.outer(places, places))
    mask = distance <= w
    mask[chosen, :] = True
    stated = np.minimum(-(-distance // w), extra - (-distance[:, chosen].min(axis=1) // w)[:, None])
    found = np.eye(n, dtype=bool)
    layers = np.where(found, 0, -1)
    for step in range(1, n + 1):
        found = through(found, mask)
        layers[found & (layers < 0)] = step
    both = mask.copy()
    both[:, chosen] = True
    return bool(np.array_equal(layers, stated) and through(both, both).all())


@attack(
    "proposition-global",
    on=global_sets,
    wrong={"the layer to the global position forgotten": lambda n, w, bits: each(
        lambda n, w, b: heard_of(n, w, b, 0), n, w, bits)},
)  # fmt: skip
def global_positions_pass_on_by_windows(n, w, bits):
    return each(heard_of, n, w, bits)


def unseen_on_average(m: int, k: int) -> Fraction:
    """Mean number of blocks that no other block sees, over all ways to choose."""
    others = [list(itertools.combinations([j for j in range(m) if j != i], k)) for i in range(m)]
    total = count = 0
    for choice in itertools.product(*others):
        total += m - len(set().union(*choice))
        count += 1
    return Fraction(total, count)


AVERAGES = {(m, k): unseen_on_average(m, k) for m in range(2, 6) for k in range(1, m)}


def unseen_formula(m: int, k: int, power: int = 1) -> float:
    return m * (1 - k / (m - 1)) ** (m - power)


@attack(
    "proposition-unseen",
    on=instances.integers(m=(2, 5), k=(1, 4)).such_that(lambda m, k: k < m),
    wrong={"m in the exponent": lambda m, k: equal(
        each(lambda m, k: float(AVERAGES[m, k]), m, k), each(lambda m, k: unseen_formula(m, k, 0), m, k), 1e-12)},
)  # fmt: skip
def blocks_that_nobody_sees(m, k):
    return equal(each(lambda m, k: float(AVERAGES[m, k]), m, k), each(unseen_formula, m, k), 1e-12)


no_attack(
    "factorised_attention/random-blocks",
    because="measured: it says what ten seeds gave for four given numbers of blocks.",
)
no_attack(
    "factorised_attention/kept-weight",
    because="measured: it says how much weight two masks keep of the heads of four given decoders.",
)
