"""Encodings of positions: sinusoidal ones, (R.4) of the report, their shifts, and rotary ones.

Positions count from 0. The width d is even: component 2i of an encoding is a sine, component 2i + 1 the cosine of the
same angle, position times frequency, and the frequency of pair i is base^(-2i/d). Frequencies are rounded, so that the
angles of a position p are off by up to |p| 2^-52; positions and shifts beyond 2^30 are a `ValueError`.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Float, Integer, Real

from attnmath.arrays import Array, ArrayLike, Numpy
from attnmath.checks import (
    Floats,
    as_numpy,
    describe,
    finite,
    fits_memory,
    integers,
    number,
    positive_integer,
    real_array,
    rounded,
    silent,
    silently,
    stack,
    untraced,
    wide,
)

#: Largest position, and largest shift: there angles are off by up to 2^-22.
FARTHEST = 2**30


@untraced
def frequencies(d: int, base: float = 10000.0) -> Float[Numpy, "{d//2}"]:
    """Angular frequencies of the pairs of components, in radians for each position: base^(-2i/d), i = 0 ... d/2 - 1.

    >>> frequencies(4)
    array([1.  , 0.01])
    """
    d, base = _even(d), _base(base)
    fits_memory("d", d)
    return np.asarray(base ** (-np.arange(0, d, 2) / d))


@untraced
def sinusoidal(n: int, d: int, base: float = 10000.0) -> Float[Numpy, "{n} {d}"]:
    """Sinusoidal encodings of the positions 0 ... n - 1, one a row: (R.4), sines and cosines interleaved.

    >>> sinusoidal(2, 4).round(3)
    array([[0.   , 1.   , 0.   , 1.   ],
           [0.841, 0.54 , 0.01 , 1.   ]])
    """
    n, d = positive_integer(n, "n"), _even(d)
    fits_memory("n, d", n, d)
    angles = np.outer(np.arange(n), frequencies(d, base))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, d)


@untraced
@silently
def shift_matrix(k: float, d: int, base: float = 10000.0) -> Float[Numpy, "{d} {d}"]:
    """The matrix M_k with PE(p + k) = M_k PE(p) for every position p: one rotation in each pair of components.

    k may be negative, and need not be whole. M_k is orthogonal, and M_k M_l = M_(k + l).

    >>> PE = sinusoidal(9, 4)
    >>> bool(np.allclose(PE[3:], PE[:-3] @ shift_matrix(3, 4).T))
    True
    """
    k, d = number(k, "k"), _even(d)
    if not np.isfinite(k):
        raise ValueError(f"k: expected a finite number, got {k}")
    if abs(k) > FARTHEST:
        raise ValueError(f"k: expected a shift of at most {FARTHEST}, got {k}")
    fits_memory("d", d, d)
    angles = k * frequencies(d, base)
    even = np.arange(0, d, 2)
    M = np.zeros((d, d))
    M[even, even] = M[even + 1, even + 1] = np.cos(angles)
    M[even, even + 1] = np.sin(angles)
    M[even + 1, even] = -M[even, even + 1]
    return M


def rotary(
    X: Real[ArrayLike[Array], "... n d"], base: float = 10000.0, positions: Integer[ArrayLike, "n"] | None = None
) -> Float[Array, "... n d"]:
    """Rotary positions: the pair (2i, 2i + 1) of row p is turned by the angle p base^(-2i/d), counterclockwise.

    positions : the position of each row, 0 ... n - 1 unless given. Rotated queries and keys have inner products that
    depend on the difference of their positions.

    >>> rotary([[1.0, 0.0], [1.0, 0.0]]).round(3)
    array([[1.   , 0.   ],
           [0.54 , 0.841]])
    """
    X = finite(real_array(X, "X", at_least=2), "X")
    xp, (n, d) = array_namespace(X), X.shape[-2:]
    if d % 2:
        raise ValueError(f"X: expected an even number of components, got {describe(X)}")
    where = np.arange(n) if positions is None else as_numpy(integers(positions, "positions"))
    if len(where) != n:
        raise ValueError(f"positions: expected one for each of the {n} rows of X, got {describe(where)}")
    if np.any(np.abs(where) > FARTHEST):
        raise ValueError(f"positions: expected positions of at most {FARTHEST}, got one of {np.abs(where).max()}")
    turns, dtype = _turns(where, d, base), X.dtype
    (X,) = wide(X)
    cos, sin = (xp.asarray(f, dtype=X.dtype, device=device(X)) for f in turns)
    first, second = X[..., ::2], X[..., 1::2]
    with silent():
        turned = stack([first * cos - second * sin, first * sin + second * cos], axis=-1)
    return rounded(xp.reshape(turned, X.shape), dtype, "X")


@untraced
def _turns(where: Floats, d: int, base: float) -> tuple[Floats, Floats]:
    """Cosines and sines of the angles of positions, one row each."""
    angles = np.outer(where, frequencies(d, base))
    return np.cos(angles), np.sin(angles)


def _even(d: int) -> int:
    d = positive_integer(d, "d")
    if d % 2:
        raise ValueError(f"d: expected an even number of components, got {d}")
    return d


def _base(base: float) -> float:
    base = number(base, "base")
    if not 1 < base < np.inf:
        raise ValueError(f"base: expected a finite number above 1, got {base}")
    return base
