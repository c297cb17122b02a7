"""The seven fixed attention patterns of section 1.1 of the report, as row-stochastic matrices.

A pattern depends on the positions alone, so it is one matrix for each length n. Positions count from 0. The report
gives formulas for two patterns, (R.1) to (R.3), and words for the others.

Edge rows. Where a pattern points outside of the sentence (the token before the first, the left context of the first
two tokens), the formulas leave a row of zeros, or weights over an empty sum. With ``edges="nearest"`` an index that
leaves the sentence becomes the nearest position in it, so every row sums to 1. With ``edges="zero"`` such a row is 0.

Ends. "end" and "start" have no formula in the report. With ``ends="cubic"`` they carry the weights of (R.3) over the
whole sentence; with ``ends="point"`` all weight lies on the last, or first, position.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attnmath.arrays import Numpy
from attnmath.checks import fits_memory, one_of, positive_integer

#: The patterns in the order of section 1.1.1 of the report.
PATTERNS = ("current", "previous", "next", "left", "right", "end", "start")
EDGES = ("nearest", "zero")
ENDS = ("cubic", "point")

#: The pattern that the reversed sentence has in place of one of the last kind.
_MIRRORED = {"next": "previous", "right": "left", "start": "end"}


def cubic_weights(m: int) -> Float[Numpy, "{m}"]:
    """The weights (R.3) of m positions: (j + 1)^3 over their sum, which is (m (m + 1) / 2)^2.

    >>> cubic_weights(3) * 36
    array([ 1.,  8., 27.])
    """
    m = positive_integer(m, "m")
    fits_memory("m", m)
    return np.arange(1.0, m + 1) ** 3 / (m * (m + 1) / 2) ** 2


def fixed_pattern(name: str, n: int, *, edges: str = "nearest", ends: str = "cubic") -> Float[Numpy, "{n} {n}"]:
    """One pattern for n tokens: entry (i, j) is the weight that token i gives to token j.

    name : one of `PATTERNS`.
    edges : "nearest" or "zero", and ends : "cubic" or "point"; see above.

    >>> fixed_pattern("previous", 3)
    array([[1., 0., 0.],
           [1., 0., 0.],
           [0., 1., 0.]])
    >>> fixed_pattern("left", 4).round(3)
    array([[1.   , 0.   , 0.   , 0.   ],
           [1.   , 0.   , 0.   , 0.   ],
           [1.   , 0.   , 0.   , 0.   ],
           [0.111, 0.889, 0.   , 0.   ]])
    """
    name, n = one_of(name, PATTERNS, "name"), positive_integer(n, "n")
    edges, ends = one_of(edges, EDGES, "edges"), one_of(ends, ENDS, "ends")
    fits_memory("n", n, n)
    if name in _MIRRORED:
        return fixed_pattern(_MIRRORED[name], n, edges=edges, ends=ends)[::-1, ::-1].copy()
    if name == "current":
        return np.eye(n)
    if name == "end":
        row = cubic_weights(n) if ends == "cubic" else np.eye(n)[-1]
        return np.tile(row, (n, 1))
    A = np.eye(n, k=-1) if name == "previous" else _left(n)
    if edges == "nearest":
        A[: 1 if name == "previous" else 2, 0] = 1
    return A


def fixed_patterns(n: int, *, edges: str = "nearest", ends: str = "cubic") -> Float[Numpy, "7 {n} {n}"]:
    """All seven patterns for n tokens, in the order of `PATTERNS`.

    >>> fixed_patterns(5).sum(axis=-1).round(12).min()
    np.float64(1.0)
    """
    n = positive_integer(n, "n")
    fits_memory("n", len(PATTERNS), n, n)
    return np.stack([fixed_pattern(name, n, edges=edges, ends=ends) for name in PATTERNS])


def _left(n: int) -> np.ndarray:
    """(R.2) with (R.3): row i has the cubic weights of the positions 0 to i - 2; the first two rows are 0."""
    many = np.arange(n) - 1.0  # positions in the left context of each token
    totals = np.where(many > 0, (many * (many + 1) / 2) ** 2, 1)
    return np.tril(np.arange(1.0, n + 1) ** 3 / totals[:, None], -2)
