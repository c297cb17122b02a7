"""The attention matrix as an operator: its norm, its eigenvalues, and what its powers tend to.

A is row-stochastic, of shape (..., n, n): rows are distributions over the keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from attnmath.checks import finite, positive_integer, real_array

Floats = NDArray[Any]


def row_stochastic(A: ArrayLike, name: str = "A") -> Floats:
    """Return A as float64, refusing what is not square, non-negative, with rows that sum to 1."""
    matrix: Floats = np.asarray(finite(real_array(A, name, at_least=2), name), dtype=float)
    n = matrix.shape[-1]
    if matrix.shape[-2] != n:
        raise ValueError(f"{name}: expected square matrices, got shape {matrix.shape}")
    off = float(np.abs(matrix.sum(axis=-1) - 1).max())
    if np.any(matrix < 0) or off > 4 * (n + 1) * np.finfo(float).eps:
        raise ValueError(f"{name}: expected non-negative rows that sum to 1, off by {off:.3g}")
    return matrix


def spectral_norm(A: ArrayLike) -> Floats:
    """Largest singular value of A, shape (...); between 1 and sqrt(n).

    It is the root of the largest eigenvalue of A' A, which keeps its relative accuracy.

    >>> spectral_norm([[1.0, 0.0], [1.0, 0.0]]).round(6)
    np.float64(1.414214)
    """
    A = row_stochastic(A)
    n = A.shape[-1]
    grams = (A.swapaxes(-1, -2) @ A).reshape(-1, n, n)
    largest = [linalg.eigh(G, eigvals_only=True, subset_by_index=[n - 1, n - 1])[0] for G in grams]
    return np.sqrt(np.reshape(largest, A.shape[:-2]))[()]


def eigenvalues(A: ArrayLike) -> NDArray[Any]:
    """Eigenvalues of A by falling modulus, complex, shape (..., n); the first is 1.

    >>> eigenvalues([[0.75, 0.25], [0.25, 0.75]]).real.round(6)
    array([1. , 0.5])
    """
    found = np.linalg.eigvals(row_stochastic(A)).astype(complex)
    return np.take_along_axis(found, np.argsort(-np.abs(found), axis=-1, kind="stable"), axis=-1)


def stationary_distribution(A: ArrayLike) -> Floats:
    """The distribution pi with pi A = pi, for one matrix, shape (n,).

    It is unique when the eigenvalue 1 is simple (always, if A is positive); otherwise `ValueError`.

    >>> stationary_distribution([[0.5, 0.5], [0.25, 0.75]]).round(6)
    array([0.333333, 0.666667])
    """
    A = row_stochastic(A)
    if A.ndim != 2:
        raise ValueError(f"A: expected one matrix, got shape {A.shape}")
    n = len(A)
    gaps = np.linalg.svd(A - np.eye(n), compute_uv=False)
    if n > 1 and gaps[-2] <= n * np.finfo(float).eps * max(gaps[0], 1):
        raise ValueError("A: expected a unique stationary distribution, got a matrix that falls into separate parts")
    system = np.vstack([A.T - np.eye(n), np.ones(n)])
    pi, *_ = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)
    pi = np.maximum(pi, 0)  # rounding may leave an ulp below 0
    return pi / pi.sum()


def dobrushin(A: ArrayLike) -> Floats:
    """Dobrushin's coefficient: half the largest l1 distance of two rows, between 0 and 1.

    It bounds what A does to differences, and tau(A B) <= tau(A) tau(B).

    >>> dobrushin([[0.75, 0.25], [0.25, 0.75]])
    np.float64(0.5)
    """
    A = row_stochastic(A)
    distances = [np.abs(A - A[..., i : i + 1, :]).sum(axis=-1).max(axis=-1) for i in range(A.shape[-1])]
    return np.max(distances, axis=0) / 2


def distances_to_limit(A: ArrayLike, steps: int) -> Floats:
    """Largest entry of |A^k - 1 pi'| for k = 1 ... steps, for one matrix.

    >>> distances_to_limit([[0.75, 0.25], [0.25, 0.75]], 2)
    array([0.25 , 0.125])
    """
    A, steps = row_stochastic(A), positive_integer(steps, "steps")
    limit = np.broadcast_to(stationary_distribution(A), A.shape)
    gap, found = A - limit, []
    power = gap
    for _ in range(steps):
        found.append(np.abs(power).max())
        power = power @ gap  # (A - 1 pi')^k = A^k - 1 pi'
    return np.asarray(found)
