"""Attacks on what the chapter on sparse patterns and their spectra says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, less, rounding
from instances import Array, softmax


def masked(S: Array, mask: Array) -> Array:
    """Softmax of the scores inside of the mask, written out."""
    return softmax(np.where(mask, S, -np.inf))


moderate_masks = instances.masked_scores.such_that(lambda mask, S: np.abs(S).max(axis=(1, 2)) <= 30)


def divided_by(mask, S, divisor):
    kept = softmax(S) * mask
    return equal(kept / divisor(kept), masked(S, mask), rounding(64 * S.shape[2], 1 / kept.sum(axis=2).min(axis=1)))


@attack(
    "5.5.4/sparse-mask",
    on=moderate_masks,
    wrong={
        "not divided": lambda mask, S: divided_by(mask, S, lambda kept: 1.0),
        "divided by the sums of columns": lambda mask, S: divided_by(
            mask, S, lambda kept: np.maximum(kept.sum(axis=1, keepdims=True), 1e-300)
        ),
    },
)
def rows_of_the_masked_matrix_divided_by_their_sums(mask, S):
    return divided_by(mask, S, lambda kept: kept.sum(axis=2, keepdims=True))


def window(n: int, w: int) -> Array:
    seen = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= w
    return seen / seen.sum(axis=1, keepdims=True)


lengths = instances.integers(n=(1, 24), w=(0, 26))


def each(function, *arguments):
    """The value of a function of whole numbers at each instance; each pair of arguments is computed once."""
    rows = np.stack(arguments, axis=1)
    different, where = np.unique(rows, axis=0, return_inverse=True)
    values = np.array([function(*map(int, row)) for row in different], dtype=float)
    return values[where.ravel()]


def window_norm(n: int, w: int) -> float:
    return float(np.linalg.norm(window(n, w), 2))


@attack(
    "sparse_patterns/window-norm",
    on=lengths,
    wrong={
        "at most 1, the largest row sum": lambda n, w: at_most(each(window_norm, n, w), 1.0, 1e-9),
    },
)
def windows_have_norms_below_root_two(n, w):
    return less(each(window_norm, n, w), 2**0.5)


def symbol(angles: Array, w: int) -> Array:
    """Symbol of a window with equal weights."""
    return (1 + 2 * np.cos(np.multiply.outer(angles, np.arange(1, w + 1))).sum(axis=-1)) / (2 * w + 1)


def off_symbol(n: int, w: int, places: float = 2.0, below: bool = True) -> float:
    """By how much the eigenvalues of a window exceed the bounds of the theorem; places: how many per neighbour."""
    symmetric = window(n, w) ** 0.5 * window(n, w).T ** 0.5  # similar to the window, entry by entry
    off = np.linalg.eigvalsh(symmetric)[::-1] - np.sort(symbol(np.arange(n) * np.pi / n, w))[::-1]
    delta = places * w**2 * (w + 1) / (2 * w + 1) * np.pi / n
    lower = -off  # for w > 1 the theorem leaves the 2w smallest out; the chapter observes that they obey it too
    return float(max(off.max(), lower.max(initial=-1.0) if below else -1.0) - delta)


windows = instances.integers(n=(1, 40), w=(1, 9)).such_that(lambda n, w: w <= n)


@attack(
    "theorem-window-symbol",
    "5.5.4/band-toeplitz",
    on=windows,
    wrong={
        "a tenth of a step": lambda n, w: at_most(each(lambda n, w: off_symbol(n, w, 0.1), n, w), 0.0, 1e-9),
        "of the order of 1/n^2": lambda n, w: at_most(each(lambda n, w: off_symbol(n, w, 2 / n), n, w), 0.0, 1e-9),
    },
)
def windows_follow_their_symbol(n, w):
    return at_most(each(off_symbol, n, w), 0.0, 1e-9)


def reflecting(n: int, w: int, once: bool = False) -> float:
    """Largest change of a wave by the reflecting window, beyond the factor of the closed form."""
    matrix = np.zeros((n, n))
    for i in range(n):
        for place in range(i - w, i + w + 1):
            inside = -1 - place if place < 0 else 2 * n - 1 - place if place >= n else place
            matrix[i, inside] += 0 if once and inside != place else 1
    angles = np.arange(n) * np.pi / n
    waves = np.cos(np.outer(np.arange(n) + 0.5, angles))
    return float(np.abs(matrix @ waves / (2 * w + 1) - symbol(angles, w) * waves).max())


@attack(
    "sparse_patterns/reflecting",
    on=windows,
    wrong={"edge tokens count themselves once": lambda n, w: at_most(
        each(lambda n, w: reflecting(n, w, True), n, w), 0.0, 1e-9)},
)  # fmt: skip
def reflecting_windows_have_these_eigenvectors(n, w):
    return at_most(each(reflecting, n, w), 0.0, 1e-9)


# Weights of a window of width 2, for the keys -2 ... 2 places ahead, in Toeplitz and circulant matrices.
weights = instances.kind(
    "c",
    lambda: ((f"{name}", (np.array(c),)) for name, c in (
        ("itself", [0, 0, 1.0, 0, 0]), ("causal", [0.2, 0.3, 0.5, 0, 0]), ("equal", [0.2] * 5),
        ("differences", [0, -1.0, 2.0, -1.0, 0]), ("far ends", [1.0, 0, 0, 0, 1.0]))),
    lambda rng, count, shape: rng.normal(size=(count, 5)) * (rng.random((count, 5)) < 0.7),
    [(5,)],
)  # fmt: skip


def of_weights(c: Array, n: int, wrap: bool) -> Array:
    """Matrices with the weight t_r for the key r places ahead, on a circle or with two ends."""
    eye = np.eye(n)
    shifted = [np.roll(eye, r, axis=1) if wrap else np.eye(n, k=r) for r in range(-2, 3)]
    return np.einsum("br,rij->bij", c, np.array(shifted))


def on_a_circle(c: Array, turns: float = 1.0) -> object:
    n = 7
    angles = turns * 2 * np.pi * np.arange(n) / n
    waves = np.exp(1j * np.outer(np.arange(n), angles))
    values = c @ np.exp(1j * np.outer(np.arange(-2, 3), angles))
    off = np.abs(of_weights(c, n, True) @ waves - values[:, None, :] * waves).max(axis=(1, 2))
    return at_most(off, 0.0, 1e-9)


@attack("sparse_patterns/circulant", on=weights, wrong={"half of the angle": lambda c: on_a_circle(c, 0.5)})
def waves_are_eigenvectors_on_a_circle(c):
    return on_a_circle(c)


@attack(
    "sparse_patterns/circulant",
    on=instances.numbers(theta=(1e-3, 3.1)).also(w=lambda rng, theta: rng.integers(0, 9, size=len(theta))),
    wrong={"one neighbour more": lambda theta, w: dirichlet(theta, w, w + 1)},
)
def the_symbol_has_a_closed_form(theta, w):
    return dirichlet(theta, w, w)


def dirichlet(theta, w, used):
    summed = np.array([symbol(np.array(t), int(v)) for t, v in zip(theta, w, strict=True)])
    return equal(summed, np.sin((2 * used + 1) * theta / 2) / ((2 * used + 1) * np.sin(theta / 2)), 1e-9)


def by_columns(A: Array, from_above=lambda c: c.max(axis=1)) -> object:
    columns = A.sum(axis=1)
    square = np.linalg.norm(A, 2, axis=(1, 2)) ** 2
    slack = rounding(64 * A.shape[1], square)
    return at_most((columns**2).mean(axis=1), square, slack) & at_most(square, from_above(columns), slack)


@attack(
    "theorem-column-sums",
    on=instances.row_stochastic,
    wrong={"the mean square from above": lambda A: by_columns(A, lambda c: (c**2).mean(axis=1))},
)
def column_sums_bound_the_norm(A):
    return by_columns(A)


bands = instances.numbers(above=(0.1, 10), below=(0.1, 10), on=(0.01, 100)).also(
    n=lambda rng, above, below, on: np.full(len(above), int(rng.integers(1, 9)))
)


def tridiagonal(above, below, on, n, step):
    """Characteristic equation: the closed form makes the vector of the chapter an eigenvector."""
    size = int(n[0])
    k = np.arange(1, size + 1)
    angle = k * np.pi / step(size)
    j = np.arange(size + 2)
    rho = np.sqrt(below / above)[:, None, None]
    v = rho ** j[:, None] * np.sin(j[:, None] * angle)
    value = on[:, None] + 2 * np.sqrt(below * above)[:, None] * np.cos(angle)
    v[:, [0, -1]] = 0  # the matrix has no such neighbours
    left = below[:, None, None] * v[:, :-2] + on[:, None, None] * v[:, 1:-1] + above[:, None, None] * v[:, 2:]
    size_of = (np.abs(on) + above + below)[:, None] * np.abs(v).max(axis=1)
    return equal((left - value[:, None] * v[:, 1:-1]).transpose(0, 2, 1), 0.0 * v[:, 1:-1].transpose(0, 2, 1),
                 rounding(256 * size, size_of))  # fmt: skip


@attack(
    "sparse_patterns/tridiagonal",
    "theorem-tridiagonal",
    on=bands,
    wrong={"n in place of n + 1": lambda above, below, on, n: tridiagonal(above, below, on, n, lambda n: n)},
)
def tridiagonal_matrices_have_these_eigenvalues(above, below, on, n):
    return tridiagonal(above, below, on, n, lambda n: n + 1)
