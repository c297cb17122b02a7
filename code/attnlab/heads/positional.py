"""How near attention matrices are to patterns of position (section 1.1).

The distance of two attention matrices is the mean over rows of the total variation distance of the rows. One minus the
distance is the share of the weight that lies at the same place in both. A row's output changes by at most its distance
times the range of the values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Real
from numpy.typing import NDArray

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import floats
from attnmath.matrix.spectrum import row_stochastic

Floats = NDArray[Any]

_STEPS = 2000  # of the gradient method, whose error falls with their square


def distance(A: Real[ArrayLike, "... n n"], B: Real[ArrayLike, "... n n"]) -> Float[Numpy, "..."]:
    """Mean over rows of the total variation distance, (1 / 2n) sum |A_ij - B_ij|, between 0 and 1.

    Batch axes are broadcast. Raises `ValueError` unless all rows are distributions.

    >>> distance(np.eye(2), np.full((2, 2), 0.5))
    np.float64(0.5)
    """
    A, B = _weights(A, "A"), _weights(B, "B")
    if A.shape[-1] != B.shape[-1]:
        raise ValueError(f"A, B: expected the same number of tokens, got {A.shape} and {B.shape}")
    try:
        return np.asarray(np.abs(A - B).sum(axis=(-2, -1)) / (2 * A.shape[-1]))[()]
    except ValueError:
        raise ValueError(f"A, B: expected batch axes that fit, got shapes {A.shape} and {B.shape}") from None


def distances(A: Real[ArrayLike, "... n n"], patterns: Real[ArrayLike, "p n n"]) -> Float[Numpy, "... p"]:
    """The distance of each attention matrix from each pattern.

    The distance is 1 - (1 / n) sum of min(A_ij, P_ij). Of a sparse pattern only the entries that it fills are read.

    >>> distances(np.full((2, 2), 0.5), [np.eye(2), np.full((2, 2), 0.5)])
    array([0.5, 0. ])
    """
    A = _weights(A, "A")
    patterns = _patterns(patterns, A)
    found = []
    for pattern in patterns:
        i, j = np.nonzero(pattern)
        if 8 * len(i) < pattern.size:
            found.append(np.minimum(A[..., i, j], pattern[i, j]).sum(axis=-1))
        else:
            found.append(np.minimum(A, pattern).sum(axis=(-2, -1)))
    return 1 - np.stack(found, axis=-1) / A.shape[-1]


def mixture(A: Real[ArrayLike, "... n n"], patterns: Real[ArrayLike, "p n n"]) -> Float[Numpy, "... p"]:
    """Coefficients of the mixture of patterns that is nearest to each attention matrix, by least squares.

    The coefficients are non-negative and sum to 1, so the mixture is an attention matrix for every length. They are
    found by accelerated projected gradients.

    >>> mixture(np.full((2, 2), 0.5), [np.eye(2), np.eye(2)[::-1]]).round(6)
    array([0.5, 0.5])
    """
    A = _weights(A, "A")
    patterns = _patterns(patterns, A)
    gram = np.einsum("pij,qij->pq", patterns, patterns)
    inner = np.einsum("...ij,pij->...p", A, patterns)
    step = 1 / np.linalg.eigvalsh(gram)[-1]
    found = ahead = np.full(inner.shape, 1 / len(patterns))
    momentum = 1.0
    for _ in range(_STEPS):
        moved = _onto_simplex(ahead - step * (ahead @ gram - inner))
        if np.array_equal(moved, ahead) and np.array_equal(moved, found):
            break  # every further step gives the same
        faster = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead, found, momentum = moved + (momentum - 1) / faster * (moved - found), moved, faster
    return found


def at_offsets(A: Real[ArrayLike, "... n n"], offsets: Real[ArrayLike, "k"]) -> Float[Numpy, "... k"]:
    """Share of the rows whose largest weight lies at the place i + offset, for each offset.

    Rows whose place i + offset is outside of the sentence are left out. The first of equal largest weights counts.

    >>> at_offsets(np.eye(3), [0, 1])
    array([1., 0.])
    """
    A = _weights(A, "A")
    wanted = floats(offsets, "offsets", ndim=1, at_least=1)
    n = A.shape[-1]
    if np.any(wanted != np.round(wanted)) or np.any(np.abs(wanted) >= n):
        raise ValueError(f"offsets: expected whole numbers between {1 - n} and {n - 1}, got {wanted}")
    found = A.argmax(axis=-1) - np.arange(n)
    inside = [(np.arange(n) + k >= 0) & (np.arange(n) + k < n) for k in wanted]
    return np.stack([(found[..., rows] == k).mean(axis=-1) for k, rows in zip(wanted, inside, strict=True)], axis=-1)


def _onto_simplex(x: Floats) -> Floats:
    """Nearest points with non-negative coordinates that sum to 1."""
    ordered = np.sort(x, axis=-1)[..., ::-1]
    excess = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, x.shape[-1] + 1)
    projected: Floats = np.maximum(x - excess.max(axis=-1, keepdims=True), 0)  # rises until all others are 0
    return projected


def _weights(value: Any, name: str) -> Floats:
    A: Floats = floats(row_stochastic(value, name), name)
    return A


def _patterns(value: Any, A: Floats) -> Floats:
    patterns = _weights(value, "patterns")
    if patterns.ndim != 3 or not len(patterns) or patterns.shape[-1] != A.shape[-1]:
        n = A.shape[-1]
        raise ValueError(f"patterns: expected at least one matrix of shape ({n}, {n}), got shape {patterns.shape}")
    return patterns
