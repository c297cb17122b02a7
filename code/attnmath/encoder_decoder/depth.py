"""Attention layer upon layer: do positions become alike, and does the rank collapse? (section 5.5.3)"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Real

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import (
    about,
    centred,
    fits_memory,
    flag,
    floats,
    generator,
    positive_integer,
    silent,
    silently,
    unit_scaled,
)
from attnmath.operator.attention import attention


@silently
def relative_residual(X: Real[ArrayLike, "... n d"]) -> Float[Numpy, "..."]:
    """How far the rows of X are from being alike: |X - 1 m^T| / |X| with the mean row m, between 0 and 1.

    Norms are Frobenius norms; 0 means rank one with equal rows.

    >>> relative_residual([[1.0, 0.0], [1.0, 0.0]]), relative_residual([[1.0], [-1.0]])
    (np.float64(0.0), np.float64(1.0))
    """
    x = floats(X, "X", at_least=2)
    x = unit_scaled(x, axis=(-2, -1))
    size = np.linalg.norm(x, axis=(-2, -1))
    if np.any(size == 0):
        raise ValueError("X: expected a non-zero matrix, got one of zeros")
    return np.asarray(np.linalg.norm(centred(x, axis=-2), axis=(-2, -1)) / size)[()]


def attention_stack(
    X: Real[ArrayLike, "n d"], *, d_k: int, depth: int, rng: np.random.Generator, skip: bool = False
) -> Iterator[Float[Numpy, "n d"]]:
    """Yield X and then what each of `depth` random attention layers makes of it.

    A layer is X <- attention(X W_Q, X W_K, X W_V), with fresh Gaussian weights of variance 1/d in every layer.
    skip : add the layer's input to its output.
    Rows are scaled back to norm sqrt(d) on average after each layer, which changes no `relative_residual`
    and keeps scores of one order of size at any depth.
    """
    x = floats(X, "X", ndim=2)
    d_k, depth = positive_integer(d_k, "d_k"), positive_integer(depth, "depth")
    skip = flag(skip, "skip")
    fits_memory("X, d_k", sum(x.shape), max(d_k, *x.shape))
    generator(rng)
    if not np.any(x):
        raise ValueError("X: expected a non-zero matrix, got one of zeros")
    d = x.shape[1]
    yield x
    for _ in range(depth):
        W_Q, W_K, W_V = (rng.normal(0, d**-0.5, (d, width)) for width in (d_k, d_k, d))
        with silent(), about("X, d_k"):
            out = attention(x @ W_Q, x @ W_K, x @ W_V)
        x = x + out if skip else out
        x = unit_scaled(x)
        x = x * np.sqrt(x.size) / np.linalg.norm(x)
        yield x
