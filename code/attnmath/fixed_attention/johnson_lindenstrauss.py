"""How well a random orthogonal projection keeps the distances of n points: Johnson and Lindenstrauss in numbers.

Omega has k orthonormal rows in d dimensions, k <= d, with a uniform direction (the Haar measure). Then |Omega u|^2 of a
unit vector u has the law Beta(k/2, (d - k)/2) with mean k/d, so that sqrt(d/k) Omega keeps squared lengths in mean.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Real
from numpy.polynomial import polynomial
from scipy import special

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import (
    describe,
    fits_memory,
    floats,
    in_range,
    number,
    positive_integer,
    silent,
    silently,
    unit_scaled,
)


def needed_dimension(n: int, epsilon: float) -> int:
    """Smallest positive integer k with k >= 4 log(n) / (epsilon^2/2 - epsilon^3/3), equation (R.26).

    n : number of points.  epsilon : in (0, 1). The logarithm is natural. k may be larger than d.

    >>> needed_dimension(512, 0.5)
    300
    """
    n, epsilon = positive_integer(n, "n"), _between_0_and_1(epsilon)
    # Divided by epsilon twice, so that no power underflows.
    smallest = 4 * math.log(n) / (0.5 - epsilon / 3) / epsilon / epsilon
    if smallest > 2**53:
        raise ValueError(f"epsilon: expected one for which k is at most 2^53, got {epsilon}")
    return max(1, math.ceil(smallest))


def pair_failure(epsilon: Real[ArrayLike, "*shape"], k: int, d: int) -> Float[Numpy, "*shape"]:
    """Exact probability that (d/k) |Omega u|^2 is below 1 - epsilon or above 1 + epsilon, for a unit vector u.

    epsilon : positive.  k : at most d; at k = d the probability is 0.

    >>> pair_failure(1.0, 1, 2).round(12) == 0.0, pair_failure(0.5, 1, 2).round(6)
    (np.True_, np.float64(0.666667))
    """
    low, high = _tails(epsilon, k, d)
    return np.asarray(low + high)[()]


def tail_bound(epsilon: Real[ArrayLike, "*shape"], k: int) -> Float[Numpy, "*shape"]:
    """Bound of Chernoff's kind on `pair_failure`, for every d: the sum of exp(k/2 (1 - b + log b)) at b = 1 -+ epsilon.

    >>> tail_bound([0.5, 1.0], 64).round(6)
    array([5.0621e-02, 5.4000e-05])
    """
    epsilon, k = _positive(epsilon), positive_integer(k, "k")
    with silent(), np.errstate(divide="ignore"):
        lower = np.where(epsilon < 1, _log1p_less(-np.minimum(epsilon, 1.0)), -math.inf)
        upper = _log1p_less(epsilon)
        return np.asarray(np.exp(k / 2 * lower) + np.exp(k / 2 * upper))[()]


def union_failure(n: int, epsilon: Real[ArrayLike, "*shape"], k: int, d: int) -> Float[Numpy, "*shape"]:
    """Bound on the probability that one of the n(n-1)/2 distances fails: the exact `pair_failure` times their number.

    It is at most 1, and holds for every set of n points.

    >>> union_failure(512, 0.9, 64, 512).round(2)
    np.float64(0.31)
    """
    n = positive_integer(n, "n")
    return np.minimum(n * (n - 1) / 2 * pair_failure(epsilon, k, d), 1.0)


def smallest_dimension(n: int, epsilon: float, d: int, *, error: float) -> int:
    """Smallest k from which on `union_failure` is at most `error`; at most d, where the failure is 0.

    error : a probability in (0, 1).

    >>> smallest_dimension(512, 0.5, 512, error=0.1)
    150
    """
    n, d = positive_integer(n, "n"), positive_integer(d, "d", at_most=2**24)
    epsilon = _between_0_and_1(epsilon)
    error = number(error, "error")
    if not 0 < error < 1:
        raise ValueError(f"error: expected a number between 0 and 1, got {error}")
    dimensions = np.arange(1, d + 1)
    failures = n * (n - 1) / 2 * sum(_beta_tails(np.asarray(epsilon), dimensions, d))
    failing = dimensions[failures > error]
    return int(failing[-1]) + 1 if failing.size else 1


def guaranteed_epsilon(n: int, k: int, d: int, *, error: float) -> float:
    """Smallest epsilon at which `union_failure` is at most `error`: what n points get from k of d dimensions.

    error : a probability in (0, 1). The result is 0 for n = 1 or k = d, and above 1 where k is small.

    >>> round(guaranteed_epsilon(512, 64, 512, error=0.1), 3)
    0.953
    """
    n, k, d = positive_integer(n, "n"), positive_integer(k, "k"), positive_integer(d, "d")
    error = number(error, "error")
    if not 0 < error < 1:
        raise ValueError(f"error: expected a number between 0 and 1, got {error}")
    low, high = 0.0, d / k  # (d/k) |Omega u|^2 is at most d/k, so that above it no pair fails
    if float(union_failure(n, np.finfo(float).tiny, k, d)) <= error:
        return 0.0
    for _ in range(80):
        middle = (low + high) / 2
        if float(union_failure(n, middle, k, d)) > error:
            low = middle
        else:
            high = middle
    return high


@silently
def distortion(X: Real[ArrayLike, "n d"], Omega: Real[ArrayLike, "k d"]) -> Float[Numpy, "pairs"]:
    """The ratios |Omega (x - y)|^2 / |x - y|^2 of all pairs of rows of X, in the order (1, 2), (1, 3), ..., (2, 3), ...

    Omega : as it is; nothing is scaled.
    Raises an error for a single row or for two equal ones.

    >>> distortion([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]], [[1.0, 0.0]])
    array([0.36, 1.  , 0.  ])
    """
    X, Omega = floats(X, "X", ndim=2), floats(Omega, "Omega", ndim=2)
    if X.shape[1] != Omega.shape[1]:
        raise ValueError(f"X, Omega: expected rows of one length, got {describe(X)} and {describe(Omega)}")
    n = X.shape[0]
    if n < 2:
        raise ValueError(f"X: expected at least two rows, got {describe(X)}")
    fits_memory("X", n, n, X.shape[1])
    first, second = np.triu_indices(n, 1)
    X = unit_scaled(X)
    differences = X[first] - X[second]
    if not np.all(np.any(differences != 0, axis=1)):
        raise ValueError(f"X: expected rows that differ from one another, got {describe(X)} with two equal ones")
    differences = unit_scaled(differences, axis=1)
    with silent():
        images = differences @ Omega.T
        return in_range(np.sum(images**2, axis=1) / np.sum(differences**2, axis=1), "Omega")


def _tails(epsilon: Real[ArrayLike, "*shape"], k: int, d: int) -> tuple[Any, Any]:
    epsilon = _positive(epsilon)
    k, d = positive_integer(k, "k"), positive_integer(d, "d")
    if k > d:
        raise ValueError(f"k, d: expected at most d orthonormal rows, got k = {k} and d = {d}")
    return _beta_tails(epsilon, np.asarray(k), d)


def _beta_tails(epsilon: Any, k: Any, d: int) -> tuple[Any, Any]:
    """P(|Omega u|^2 < (1 - epsilon) k/d) and P(|Omega u|^2 > (1 + epsilon) k/d)."""
    a, b = k / 2, np.where(k < d, (d - k) / 2, 1.0)
    with silent():
        below = np.clip((1 - epsilon) * k / d, 0.0, 1.0)
        above = np.clip(1 - (1 + epsilon) * k / d, 0.0, 1.0)
        low, high = special.betainc(a, b, below), special.betainc(b, a, above)
    return np.where(k < d, low, 0.0), np.where(k < d, high, 0.0)


def _log1p_less(x: Any) -> Any:
    """log(1 + x) - x, near 0 by its power series: the difference would lose the digits that k multiplies."""
    degrees = np.arange(2, 19)
    near = np.where(np.abs(x) < 0.1, x, 0.0)
    series = near**2 * polynomial.polyval(near, (-1.0) ** (degrees + 1) / degrees)
    return np.where(np.abs(x) < 0.1, series, np.log1p(x) - x)


def _positive(epsilon: Real[ArrayLike, "*shape"]) -> Float[Numpy, "*shape"]:
    array = floats(epsilon, "epsilon")
    if np.any(array <= 0):
        raise ValueError(f"epsilon: expected positive numbers, got {describe(array)} with one of {array.min()}")
    return array


def _between_0_and_1(epsilon: float) -> float:
    epsilon = number(epsilon, "epsilon")
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon: expected a number between 0 and 1, got {epsilon}")
    return epsilon
