"""Random weights for a linear map, and how they change the size of signals and gradients.

Section 5.1.8 draws the entries of a projection with Xavier's variance 2 / (d_in + d_out). A
row x of d_in components goes forward as x W, a gradient g of d_out components back as g W^T.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Real
from numpy.typing import NDArray

from attnmath import estimate
from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import (
    Fixed,
    about,
    fits_memory,
    floats,
    function,
    generator,
    in_range,
    one_of,
    positive,
    positive_integer,
    silent,
    silently,
    unit_scaled,
)
from attnmath.estimate import Estimate

Floats = NDArray[Any]

# Entries of one random block: 2 Mi float64, 16 MiB, whatever the number of matrices asked for.
_BLOCK = 2**21


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.standard_normal(shape)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.uniform(-np.sqrt(3), np.sqrt(3), shape)


#: Laws of one entry with mean 0 and variance 1: only these two moments matter for the gains.
LAWS = Fixed[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]]({
    "normal": _normal,
    "uniform": _uniform,
})  # fmt: skip


def xavier_variance(d_in: int, d_out: int) -> float:
    """Variance of an entry, 2 / (d_in + d_out): the harmonic mean of 1/d_in and 1/d_out.

    >>> xavier_variance(3, 1)
    0.5
    """
    return 2 / (positive_integer(d_in, "d_in") + positive_integer(d_out, "d_out"))


def gains(d_in: int, d_out: int, variance: float | None = None) -> tuple[float, float]:
    """Forward and backward gain of a random d_in x d_out matrix: d_in * variance and d_out * variance.

    The forward gain is the mean square of a component of x W over that of a component of x; the
    backward gain the same for g W^T and g.  variance : of an entry, Xavier's unless given.

    >>> gains(3, 1)
    (1.5, 0.5)
    """
    v = xavier_variance(d_in, d_out) if variance is None else positive(variance, "variance")
    found = positive_integer(d_in, "d_in") * v, positive_integer(d_out, "d_out") * v
    in_range(np.asarray(found), "variance")
    return found


def geometric_variance(d_in: int, d_out: int) -> float:
    """Variance 1 / sqrt(d_in d_out), the geometric mean of 1/d_in and 1/d_out.

    >>> geometric_variance(8, 2)
    0.25
    """
    return 1 / math.sqrt(positive_integer(d_in, "d_in") * positive_integer(d_out, "d_out"))


def chain_gains(widths: Sequence[int], rule: Callable[[int, int], float]) -> Float[Numpy, "{len(widths)}"]:
    """Forward gain from the first width to each one of a chain of maps: the product of the gains on the way.

    rule : variance of an entry from d_in and d_out.  The first entry of the result is 1.

    >>> chain_gains([3, 1, 3], xavier_variance)
    array([1.  , 1.5 , 0.75])
    """
    widths = _widths(widths)
    function(rule, "rule")
    steps = [gains(a, b, _variance(rule, a, b))[0] for a, b in pairwise(widths)]
    with silent():
        return in_range(np.cumprod([1.0, *steps]), "widths, rule")


def measured_chain(
    widths: Sequence[int], rule: Callable[[int, int], float], size: int, rng: np.random.Generator
) -> Estimate:
    """Estimate what `chain_gains` predicts from `size` random chains, each with one random Gaussian input.

    >>> measured_chain([3, 1, 3], xavier_variance, 50, np.random.default_rng(0)).value.shape
    (3,)
    """
    widths = _widths(widths)
    size = positive_integer(size, "size")
    function(rule, "rule")
    generator(rng)
    fits_memory("widths, size", size, *sorted(widths)[-2:])
    x = rng.standard_normal((size, 1, widths[0]))
    squares = [np.mean(x**2, axis=(1, 2))]
    for a, b in pairwise(widths):
        with silent():
            x = x @ draw_weights(a, b, size, rng, variance=_variance(rule, a, b))
            squares.append(np.mean(x**2, axis=(1, 2)))
    with about("widths, size, rule"):
        return estimate.mean(in_range(np.stack(squares, axis=1), "the chain"))


def draw_weights(
    d_in: int, d_out: int, size: int, rng: np.random.Generator, *, law: str = "normal", variance: float | None = None
) -> Float[Numpy, "{size} {d_in} {d_out}"]:
    """Draw `size` matrices with independent centred entries.

    law : "normal" or "uniform".  variance : of an entry, Xavier's unless given.

    >>> draw_weights(2, 6, 1, np.random.default_rng(0), law="uniform").shape
    (1, 2, 6)
    """
    one_of(law, LAWS, "law")
    generator(rng)
    v = xavier_variance(d_in, d_out) if variance is None else positive(variance, "variance")
    shape = (positive_integer(size, "size"), positive_integer(d_in, "d_in"), positive_integer(d_out, "d_out"))
    fits_memory("d_in, d_out, size", *shape)
    weights: Floats = np.sqrt(v) * LAWS[law](rng, shape)
    return weights


@silently
def measured_gains(
    x: Real[ArrayLike, "d_in"], g: Real[ArrayLike, "d_out"], size: int, rng: np.random.Generator, *, law: str = "normal"
) -> tuple[Estimate, Estimate]:
    """Estimate the forward and the backward gain of Xavier's weights from random matrices.

    x, g : one fixed input and one fixed output gradient, neither 0.
    size : how many matrices are drawn.  Given x, the components of x W are independent, so each
    of them is a draw; likewise those of g W^T.

    >>> forward, backward = measured_gains([1.0, 2.0, 3.0], [1.0], 4000, np.random.default_rng(0))
    >>> print(forward, backward)
    1.506 ± 0.034 0.4992 ± 0.0064
    """
    x, g = (floats(a, s, ndim=1) for a, s in ((x, "x"), (g, "g")))
    for name, vector in (("x", x), ("g", g)):
        if not np.any(vector):
            raise ValueError(f"{name}: expected a vector that is not 0, got zeros throughout")
    # Gains do not depend on the sizes of x and g; powers of two change no digit.
    x, g = unit_scaled(x), unit_scaled(g)
    fits_memory("size, x, g", positive_integer(size, "size"), max(len(x), len(g)))
    forward, backward = [], []
    for count in _blocks(size, len(x) * len(g)):
        W = draw_weights(len(x), len(g), count, rng, law=law)
        forward.append((x @ W) ** 2 / np.mean(x**2))
        backward.append((W @ g) ** 2 / np.mean(g**2))
    return estimate.mean(np.concatenate(forward, axis=None)), estimate.mean(np.concatenate(backward, axis=None))


def scaled_scores(
    x: Real[ArrayLike, "d_model"], y: Real[ArrayLike, "d_model"], d_k: int, size: int, rng: np.random.Generator, *,
    law: str = "normal",
) -> Float[Numpy, "{size}"]:  # fmt: skip
    """Draw the scaled score (x W_Q) . (y W_K) / sqrt(d_k) of two fixed rows over Xavier's weights.

    x, y : the rows (they may be the same).

    >>> scaled_scores([1.0, 2.0], [3.0, 1.0], 4, 3, np.random.default_rng(0)).shape
    (3,)
    """
    x, y = (floats(a, s, ndim=1) for a, s in ((x, "x"), (y, "y")))
    if len(x) != len(y):
        raise ValueError(f"x, y: expected the same number d_model of components, got {len(x)} and {len(y)}")
    d_k, parts = positive_integer(d_k, "d_k"), []
    one_of(law, LAWS, "law")
    fits_memory("d_k, size, x, y", positive_integer(size, "size"), positive_integer(d_k, "d_k"), len(x))
    for count in _blocks(size, len(x) * positive_integer(d_k, "d_k")):
        W_Q, W_K = (draw_weights(len(x), d_k, count, rng, law=law) for _ in range(2))
        with silent():
            parts.append(np.einsum("sk,sk->s", x @ W_Q, y @ W_K) / np.sqrt(d_k))
    return in_range(np.concatenate(parts), "x, y")


def _widths(widths: Sequence[int]) -> list[int]:
    try:
        found = [positive_integer(width, f"widths[{k}]") for k, width in enumerate(widths)]
    except TypeError as error:
        raise TypeError(f"widths: expected a sequence of integers, got {type(widths).__name__} ({error})") from None
    if not found:
        raise ValueError("widths: expected at least one width, got none")
    return found


def _variance(rule: Callable[[int, int], float], d_in: int, d_out: int) -> float:
    with about("rule: expected a function of d_in and d_out, got an error"):
        return positive(rule(d_in, d_out), "its value")


def _blocks(size: int, entries: int) -> list[int]:
    """Split `size` matrices of so many entries into blocks that fit into `_BLOCK`."""
    size, rows = positive_integer(size, "size"), max(1, _BLOCK // entries)
    return [min(rows, size - start) for start in range(0, size, rows)]
