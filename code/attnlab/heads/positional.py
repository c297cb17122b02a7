"""How near attention matrices are to patterns of position, and what share of them position explains (section 1.1).

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
from attnmath.checks import flag, floats
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


def explained(
    A: Real[ArrayLike, "... n n"], *, causal: bool = False, first: int = 0
) -> tuple[Float[Numpy, "..."], Float[Numpy, "..."], Float[Numpy, "..."]]:
    """Shares of the variance of the entries that functions of i - j, of j, and their sums explain (R squared).

    The three shares are those of least squares fits t(i - j) + constant, c(j) + constant, and t(i - j) + c(j).
    causal : whether only the entries with j <= i count.  first : rows before this one are left out.
    A matrix of equal entries has nothing to explain: the shares are then 0.

    >>> explained(np.eye(4))[0], explained(np.eye(4)[[0, 0, 0, 0]])[1]
    (np.float64(1.0), np.float64(1.0))
    """
    A, causal = _weights(A, "A"), flag(causal, "causal")
    n = A.shape[-1]
    if isinstance(first, bool) or not isinstance(first, int | np.integer) or not 0 <= first < n:
        raise ValueError(f"first: expected a row from 0 to {n - 1}, got {first!r}")
    i, j = np.nonzero(np.tri(n, dtype=bool) if causal else np.ones((n, n), dtype=bool))
    i, j = i[i >= first], j[i >= first]
    entries = A[..., i, j] if causal or first else A.reshape(*A.shape[:-2], n * n)
    entries = entries - entries.mean(axis=-1, keepdims=True)
    total = (entries**2).sum(axis=-1)
    positive = total > (64 * np.finfo(float).eps) ** 2 * len(i)
    offset = i - j - (i - j).min()
    kinds = int(offset.max()) + 1
    by_offset, by_column = _grouped(entries, offset, kinds), _grouped(entries, j, n)
    together = np.zeros((kinds, n))
    np.add.at(together, (offset, j), 1.0)
    of_offset, of_column = (np.maximum(together.sum(axis=axis), 1) for axis in (1, 0))
    # The offsets are eliminated first: what they leave to the columns is a smaller system of equations.
    rest = by_column - (by_offset / of_offset) @ together
    system = np.diag(together.sum(axis=0)) - together.T @ (together / of_offset[:, None])
    added = (rest @ np.linalg.pinv(system, rcond=1e-10, hermitian=True) * rest).sum(axis=-1)
    fitted = [(by_offset**2 / of_offset).sum(axis=-1), (by_column**2 / of_column).sum(axis=-1)]
    shares = [
        np.where(positive, part / np.where(positive, total, 1), 0.0).clip(0, 1)[()]
        for part in (*fitted, fitted[0] + added)
    ]
    return shares[0], shares[1], shares[2]


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


def _grouped(entries: Floats, group: NDArray[Any], count: int) -> Floats:
    """Sum of the entries of each group."""
    flat = entries.reshape(-1, entries.shape[-1])
    sums = np.stack([np.bincount(group, weights=row, minlength=count) for row in flat])
    return sums.reshape(*entries.shape[:-1], count)


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
