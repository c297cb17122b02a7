"""Eigenvalues of a batch of row-stochastic matrices, with how far rounding may move them."""

from __future__ import annotations

import numpy as np
from hunt import rounding
from instances import Array


def off_constants(A: Array) -> Array:
    """A on the space that is left when constants are removed, shape (batch, n - 1, n - 1): eigenvalues beside the 1.

    Its basis is orthonormal. So computed eigenvalues are those of a matrix within n eps ||A|| of it, and a bound on
    eigenvalues by a norm needs no condition number.
    """
    n = A.shape[1]
    ones = np.ones((n, 1)) / np.sqrt(n)
    U = np.linalg.svd(np.eye(n) - ones @ ones.T)[0][:, : n - 1]
    return U.T @ A @ U


def second(A: Array) -> Array:
    """|lambda_2|; 0 if n = 1."""
    return np.abs(np.linalg.eigvals(off_constants(A))).max(axis=1, initial=0)


def backward(A: Array) -> Array:
    """How far from A is the matrix whose eigenvalues or singular values were computed, in any of the norms."""
    return rounding(20 * A.shape[1] ** 1.5, np.linalg.norm(A, axis=(1, 2)))
