"""Rank, in exact and in practical senses, of attention matrices and of any others.

In floating point a rank is a count of singular values above a tolerance, so every count here
comes with its tolerance or threshold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Real
from numpy.typing import NDArray

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import floats, in_range, number, positive_integer, precision, silent, silently, unit_scaled
from attnmath.matrix.spectrum import singular_values as singular_values

Floats = NDArray[Any]


class NumericalRank(NamedTuple):
    """A rank with the tolerance that it was counted with."""

    rank: Int[Numpy, "*batch"]
    tolerance: Float[Numpy, "*batch"]


def numerical_rank(A: Real[ArrayLike, "... n m"], *, relative: float | None = None) -> NumericalRank:
    """Number of singular values above ``relative`` times the largest.

    relative : the larger side times the machine epsilon of the dtype that A comes in (at most 1/2) unless given:
    what rounding alone can do to a singular value.

    >>> numerical_rank([[1.0, 0.0], [0.0, 1e-3]], relative=1e-2).rank
    np.int64(1)
    """
    matrices = _matrices(A)
    if relative is None:
        relative = min(max(matrices.shape[-2:]) * precision(A), 0.5)
    relative = number(relative, "relative")
    if not 0 <= relative < 1:
        raise ValueError(f"relative: expected a number from 0 to 1, got {relative}")
    sigma = singular_values(matrices)
    tolerance = relative * sigma[..., 0]
    return NumericalRank(np.sum(sigma > tolerance[..., None], axis=-1), tolerance)


def effective_rank(sigma: Real[ArrayLike, "... n"], epsilon: float, *, power: int = 1) -> Int[Numpy, "..."]:
    """Smallest r whose first r singular values hold the share 1 - epsilon of their sum, equation (5.5.3).

    sigma : singular values by falling size.  epsilon : in (0, 1).
    power : 2 counts squares, the energy of the Frobenius norm, instead.

    >>> effective_rank([2.0, 1.0], 0.3), effective_rank([2.0, 1.0], 0.3, power=2)
    (np.int64(2), np.int64(1))
    """
    rounding = precision(sigma)
    sigma = _falling(sigma)
    epsilon = number(epsilon, "epsilon")
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon: expected a number between 0 and 1, got {epsilon}")
    # Powers of numbers up to 1: they do not overflow, and the largest does not underflow.
    with silent():
        mass = (sigma / sigma[..., :1]) ** positive_integer(power, "power")
    # Summed from the small end: the mass that is left out must not exceed epsilon of the total. A tie counts as
    # one, although each of the n sums and the product with epsilon is rounded.
    left_out = np.cumsum(mass[..., ::-1], axis=-1)[..., ::-1]
    tie = 1 + (mass.shape[-1] + 4) * float(np.finfo(float).eps)
    if rounding > np.finfo(float).eps:  # each value is off by half of it, its power by so many times that
        tie += power * rounding
    return np.maximum(np.sum(left_out > epsilon * tie * left_out[..., :1], axis=-1), 1)


@silently
def entropy_rank(sigma: Real[ArrayLike, "... n"]) -> Float[Numpy, "..."]:
    """Exponential of the entropy of the normalised singular values (Roy and Vetterli), between 1 and n.

    >>> entropy_rank([1.0, 1.0, 0.0]).round(6)
    np.float64(2.0)
    """
    sigma = _falling(sigma)
    sigma = unit_scaled(sigma, axis=-1)
    p = sigma / sigma.sum(axis=-1, keepdims=True)
    return np.exp(-np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=-1))


def stable_rank(sigma: Real[ArrayLike, "... n"]) -> Float[Numpy, "..."]:
    """Squared Frobenius norm over squared 2-norm, at most the rank.

    >>> stable_rank([2.0, 1.0])
    np.float64(1.25)
    """
    sigma = _falling(sigma)
    with silent():
        return np.sum((sigma / sigma[..., :1]) ** 2, axis=-1)


def condition_number(A: Real[ArrayLike, "... n m"]) -> Float[Numpy, "..."]:
    """Largest over smallest singular value; inf where the smallest is 0.

    Rounding moves singular values by about an ulp of the largest. Results beyond 1 / (n ulps) say only
    that the matrix is singular to working precision.

    >>> condition_number([[2.0, 0.0], [0.0, 0.5]])
    np.float64(4.0)
    """
    sigma = singular_values(_matrices(A))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(sigma[..., -1] > 0, sigma[..., 0] / sigma[..., -1], np.inf)[()]


def best_approximation(A: Real[ArrayLike, "... n m"], r: int) -> Float[Numpy, "... n m"]:
    """Closest matrix of rank r in the 2-norm and the Frobenius norm: the first r terms of (5.5.2).

    >>> best_approximation([[2.0, 0.0], [0.0, 1.0]], 1)
    array([[2., 0.],
           [0., 0.]])
    """
    matrices = _matrices(A)
    if positive_integer(r, "r") > min(matrices.shape[-2:]):
        raise ValueError(f"r: expected at most {min(matrices.shape[-2:])}, got {r}")
    U, sigma, Vt = np.linalg.svd(matrices, full_matrices=False)
    with silent():
        return in_range((U[..., :r] * sigma[..., None, :r]) @ Vt[..., :r, :], "A")


def truncated_keys(
    Q: Real[ArrayLike, "... n d_k"], K: Real[ArrayLike, "... m d_k"], r: int
) -> tuple[Float[Numpy, "... n {r}"], Float[Numpy, "... m {r}"]]:
    """Factors of Q K_r^T, where K_r is the truncated SVD of K: Q V_r and U_r Sigma_r with K = U Sigma V^T.

    The error of the product is at most |Q|_2 sigma_{r+1}(K) in the 2-norm. The textbook prints the
    factors as Q U_r and Sigma_r V_r^T, which do not fit.

    >>> left, right = truncated_keys([[1.0, 2.0]], [[3.0, 0.0], [0.0, 1.0]], 1)
    >>> np.abs(left @ right.T)
    array([[3., 0.]])
    """
    queries, keys = _matrices(Q, "Q"), _matrices(K, "K")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"Q, K: expected the same last axis d_k, got shapes {queries.shape} and {keys.shape}")
    if positive_integer(r, "r") > min(keys.shape[-2:]):
        raise ValueError(f"r: expected at most {min(keys.shape[-2:])}, got {r}")
    U, sigma, Vt = np.linalg.svd(keys, full_matrices=False)
    with silent():
        left = in_range(queries @ Vt[..., :r, :].swapaxes(-1, -2), "Q")
        return left, in_range(U[..., :r] * sigma[..., None, :r], "K")


def _matrices(A: ArrayLike, name: str = "A") -> Floats:
    return floats(A, name, at_least=2)


def _falling(sigma: ArrayLike) -> Floats:
    values = floats(sigma, "sigma", at_least=1)
    if np.any(values < 0) or np.any(values[..., 1:] > values[..., :-1]) or np.any(values[..., 0] == 0):
        raise ValueError("sigma: expected singular values, falling and not all 0")
    return values
