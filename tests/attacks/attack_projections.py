"""Attacks on what the chapter on projections says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, rounding, true
from instances import Array, entries, moderate

# Projections --------------------------------------------------------------------------------------------------------


def _tall(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Matrices from their factors, with known singular values between 1/2 and 2, and rows."""
    d_model, d_k = shape
    left = np.linalg.qr(rng.normal(size=(count, d_model, d_model)))[0]
    right = np.linalg.qr(rng.normal(size=(count, d_k, d_k)))[0]
    values = np.exp2(rng.uniform(-1, 1, size=(count, min(shape))))
    size = min(shape)
    return (left[:, :, :size] * values[:, None]) @ right[:, :size], rng.normal(size=(count, d_model))


def _named_tall():
    for d_model, d_k in WIDTHS:
        yield f"identity, {d_model} x {d_k}", (np.eye(d_model, d_k), np.arange(1.0, d_model + 1))
        yield f"shifted identity, {d_model} x {d_k}", (np.roll(np.eye(d_model, d_k), 1, axis=0), np.ones(d_model))


WIDTHS = ((1, 1), (2, 1), (3, 1), (3, 2), (4, 4), (5, 2), (6, 3), (2, 4))
projections = instances.kind("W x", _named_tall, _tall, WIDTHS)


def in_order(W, x, row=True):
    """The query from the factors: U first for a row, V^T first for a column."""
    U, sigma, Vt = np.linalg.svd(W)
    Sigma = np.zeros(W.shape)
    steps = np.arange(sigma.shape[1])
    Sigma[:, steps, steps] = sigma
    first, last = (U, Vt) if row else (Vt.swapaxes(1, 2), U.swapaxes(1, 2))
    middle = Sigma if row else Sigma.swapaxes(1, 2)
    found = x[:, None, :] @ first @ middle @ last
    size = np.abs(x).sum(axis=1) * 4 * W.shape[1]
    return equal(found[:, 0], (x[:, None, :] @ W)[:, 0], rounding(64, size))


square = projections.such_that(lambda W, x: np.full(len(W), W.shape[1] == W.shape[2]))


@attack("5.1.8/query-svd", on=projections,
        wrong={"the order of a column": (lambda W, x: in_order(W, x, row=False), square)})  # fmt: skip
def a_row_meets_u_first(W, x):
    return in_order(W, x)


def blind_directions(W, x, count):
    """The input directions without a trace form the null space of the transpose of W."""
    values = np.linalg.eigvalsh(W @ W.swapaxes(1, 2))  # at least 1/4 where not 0
    return (values < 1e-9).sum(axis=1) == count(W.shape[1], W.shape[2])


compressing = projections.such_that(lambda W, x: np.full(len(W), W.shape[1] > W.shape[2]))


@attack(
    "projections/invisible-directions",
    on=compressing,
    wrong={"as many as query components": lambda W, x: blind_directions(W, x, lambda d_model, d_k: d_k)},
)
def the_blind_directions_are_counted(W, x):
    return blind_directions(W, x, lambda d_model, d_k: d_model - d_k)


changes = instances.inputs.such_that(moderate(30)).also(
    A=lambda rng, X, W_Q, W_K, W_V: (
        np.linalg.qr(rng.normal(size=(len(X), W_Q.shape[2], W_Q.shape[2])))[0]
        * rng.uniform(0.5, 2, size=(len(X), 1, W_Q.shape[2]))
    )
)


def scores_after(X, W_Q, W_K, A, change):
    other = np.linalg.inv(A).swapaxes(1, 2) if change else A
    before = X @ W_Q @ (X @ W_K).swapaxes(1, 2)
    after = X @ W_Q @ A @ (X @ W_K @ other).swapaxes(1, 2)
    size = [np.abs(M).sum(axis=(1, 2)) for M in (X, W_Q, X, W_K)]
    return equal(after, before, rounding(256, np.prod(size, axis=0), 16))


@attack(
    "projections/gauge",
    on=changes,
    wrong={"the same matrix on both": lambda X, W_Q, W_K, W_V, A: scores_after(X, W_Q, W_K, A, False)},
)
def a_change_of_basis_keeps_the_scores(X, W_Q, W_K, W_V, A):
    return scores_after(X, W_Q, W_K, A, True)


full_rank = projections.such_that(lambda W, x: np.full(len(W), W.shape[1] >= W.shape[2]))


def whitened(W, x, power):
    """The singular values of W A, with A = V Sigma^-power."""
    _, values, Vt = np.linalg.svd(W, full_matrices=False)
    A = Vt.swapaxes(1, 2) / values[:, None] ** power
    found = np.linalg.svd(W @ A, compute_uv=False)
    return equal(found, np.ones_like(found), np.full(found.shape, 1e-12))


@attack("projections/gauge", on=full_rank, wrong={"the squares of the values": lambda W, x: whitened(W, x, 2)})
def a_change_of_basis_makes_the_singular_values_equal(W, x):
    return whitened(W, x, 1)


# Xavier's variance --------------------------------------------------------------------------------------------------


def _signed(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    return entries(rng, count, shape[:1], scaled=False), entries(rng, count, shape[1:], scaled=False)


signed = instances.kind(
    "x g",
    lambda: ((f"ones, {a} to {b}", (np.ones(a), np.ones(b))) for a, b in ((1, 1), (2, 1), (1, 3), (2, 3))),
    _signed,
    ((1, 1), (1, 2), (2, 1), (3, 1), (1, 3), (2, 2)),
)


def gains(x, g, forward):
    """Mean squares over all signs of the entries: exact for uncorrelated entries of Xavier's variance."""
    a, b = x.shape[1], g.shape[1]
    signs = 2.0 * np.array(list(np.ndindex(*[2] * (a * b)))).reshape(-1, a, b) - 1
    W = np.sqrt(2 / (a + b)) * signs
    ahead = ((x[:, None, None] @ W) ** 2).mean(axis=(1, 2, 3))
    back = ((g[:, None, None] @ W.swapaxes(1, 2)) ** 2).mean(axis=(1, 2, 3))
    in_x, in_g = (x**2).mean(axis=1), (g**2).mean(axis=1)
    slack = rounding(64 * a * b, in_x + in_g)
    one = equal(ahead, 2 * forward(a, b) / (a + b) * in_x, slack)
    return one & equal(back, 2 * forward(b, a) / (a + b) * in_g, slack)


@attack(
    "5.1.8/xavier-stable",
    "projections/measured-gains",
    on=signed,
    wrong={"the two gains exchanged": lambda x, g: gains(x, g, lambda here, there: there)},
)
def the_gains_are_those_of_the_widths(x, g):
    return gains(x, g, lambda here, there: here)


chains = instances.kind(
    "widths",
    lambda: ((f"widths {w}", (np.array(w, dtype=float),)) for w in ((4, 4, 4), (4, 1, 4), (1, 9, 1), (3, 5, 2))),
    lambda rng, c, shape: rng.integers(1, 600, size=(c, *shape)).astype(float),
    [(k,) for k in (2, 3, 4, 6)],
)


def chain(widths, share, returns=False):
    """The product of the gains against the formula of the proposition."""
    a, b = widths[:, :-1], widths[:, 1:]
    if returns:
        a, b = np.concatenate([a, widths[:, -1:]], axis=1), np.concatenate([b, widths[:, :1]], axis=1)
    found = np.prod(2 * a / (a + b), axis=1)
    formula = np.sqrt(a[:, 0] / b[:, -1]) * np.prod(share(a, b), axis=1)
    slack = rounding(64, np.maximum(found, formula))
    kept = np.prod(a / np.sqrt(a * b), axis=1)
    ratio = np.sqrt(a[:, 0] / b[:, -1])
    bounded = at_most(found, 1.0, rounding(64, 1 + found)) if returns else true(np.full(len(a), True))
    return equal(found, formula, slack) & equal(kept, ratio, rounding(64, 1 + ratio)) & bounded


def lost(a, b):
    return 1 - (np.sqrt(a) - np.sqrt(b)) ** 2 / (a + b)


@attack(
    "proposition-change-of-width",
    "projections/chain",
    on=chains,
    wrong={"nothing is lost": lambda widths: chain(widths, lambda a, b: np.ones_like(a))},
)
def every_change_of_width_costs(widths):
    means = chain(widths, lambda a, b: np.sqrt(a * b) / ((a + b) / 2))
    return means & chain(widths, lost) & chain(widths, lost, returns=True)


same_width = chains.map("widths", lambda widths: np.repeat(widths[:, :1], widths.shape[1], axis=1))


@attack("proposition-change-of-width", on=same_width | chains,
        wrong={"all chains that return": lambda widths: keeps_its_size(widths, widths[:, 0] > 0)})  # fmt: skip
def only_equal_widths_lose_nothing(widths):
    return keeps_its_size(widths, widths.max(axis=1) == widths.min(axis=1))


def keeps_its_size(widths, expected):
    following = np.roll(widths, -1, axis=1)
    product = np.prod(2 * widths / (widths + following), axis=1)
    return (product > 1 - 1e-9) == expected


def score_spread(x, y, d_k, power):
    """Variance of a scaled score over all signs of W_Q and W_K, exact for every law with these moments."""
    d = x.shape[1]
    signs = 2.0 * np.array(list(np.ndindex(*[2] * (d * d_k)))).reshape(-1, d, d_k) - 1
    W = np.sqrt(2 / (d + d_k)) * signs
    q, k = x[:, None, None] @ W, y[:, None, None] @ W  # all W_Q, all W_K
    scores = q[:, :, 0] @ k[:, :, 0].swapaxes(1, 2) / np.sqrt(d_k)
    found = (scores**2).mean(axis=(1, 2))
    lengths = (x**2).sum(axis=1) * (y**2).sum(axis=1)
    return equal(found, (2 / (d + d_k)) ** power * lengths, rounding(256, d * lengths))


pairs = instances.vector_pairs.such_that(moderate(1e3)).such_that(lambda x, y: np.full(len(x), x.shape[1] <= 3))


def all_widths(x, y, power=2):
    one = score_spread(x, y, 1, power) & score_spread(x, x, 1, power)
    return one & score_spread(x, y, 2, power) if x.shape[1] < 3 else one


@attack(
    "projections/first-scores",
    on=pairs,
    wrong={"one power of Xavier's variance": lambda x, y: all_widths(x, y, power=1)},
)
def the_variance_follows_the_lengths(x, y):
    return all_widths(x, y)
