"""Monte Carlo estimates with their standard errors: seeded generators in, intervals out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Real
from numpy.typing import NDArray
from scipy.special import stdtrit

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import (
    about,
    broadcast,
    centred,
    exponent,
    floats,
    in_range,
    instance,
    number,
    positive_integer,
    silent,
    silently,
    unit_scaled,
)


@dataclass(frozen=True)
class Estimate:
    """A value (or an array of them) with its standard error, in the same units.

    >>> Estimate(2.0, 0.25).interval(2)
    (1.5, 2.5)
    """

    value: Real[Numpy, "*shape"] | float
    standard_error: Real[Numpy, "*#shape"] | float

    def __post_init__(self) -> None:
        try:
            value, error = floats(self.value, "value"), floats(self.standard_error, "standard_error")
        except ValueError as problem:
            raise ValueError(f"value, standard_error: expected finite numbers, got {problem}") from None
        if np.any(error < 0):
            raise ValueError(f"standard_error: expected finite and non-negative, got {value} and {error}")
        if broadcast(value=value, standard_error=error)[0].shape != value.shape:
            raise ValueError(f"standard_error: expected no more numbers than the values, got shape {error.shape}")

    @silently
    def interval(self, z: float = 1.96) -> tuple[Float[Numpy, "*shape"] | float, Float[Numpy, "*shape"] | float]:
        """Return value - z * error and value + z * error; z = 1.96 covers 95 % of a normal law."""
        z = number(z, "z")
        if not math.isfinite(z):
            raise ValueError(f"z: expected a finite number, got {z}")
        value, error = floats(self.value, "value"), floats(self.standard_error, "standard_error")
        low, high = value - z * error, value + z * error
        return (low, high) if value.ndim else (low.item(), high.item())

    def __str__(self) -> str:
        if np.ndim(self.value):
            return f"{np.size(self.value)} estimates"
        return f"{float(self.value):.4g} ± {float(self.standard_error):.2g}"


@silently
def mean(samples: Real[ArrayLike, "N ..."]) -> Estimate:
    """Sample mean along the first axis, with standard error s / sqrt(N).

    samples : N >= 2 independent draws.

    >>> print(mean([1.0, 2.0, 3.0, 4.0]))
    2.5 ± 0.65
    """
    x = _draws(samples)
    # Scaled by a power of two, so that squares keep their range and no digit changes.
    power = exponent(x, axis=0)
    y = np.ldexp(x, -power)
    deviation = np.sqrt((centred(y) ** 2).sum(axis=0) / (len(x) - 1))
    return _estimate(y.mean(axis=0), deviation / np.sqrt(len(x)), power[0])


@silently
def variance(samples: Real[ArrayLike, "N ..."]) -> Estimate:
    """Unbiased sample variance along the first axis, with its standard error.

    The error is sqrt((m4 - m2^2 (N-3)/(N-1)) / N) from the sample's own central moments; it
    is worth what the fourth moment is worth, and so nothing when that is infinite.

    >>> print(variance([1.0, 2.0, 3.0, 4.0]))
    1.667 ± 0.71
    """
    x = _draws(samples)
    n, power = len(x), exponent(x, axis=0)
    x = np.ldexp(x, -power)
    x = centred(x)
    m2, m4 = (x**2).mean(axis=0), (x**4).mean(axis=0)
    error = np.sqrt(np.maximum(m4 - m2**2 * (n - 3) / (n - 1), 0) / n)
    return _estimate(m2 * n / (n - 1), error, 2 * power[0])


def interval(
    estimate: Estimate, runs: int, coverage: float = 0.95
) -> tuple[Float[Numpy, "*shape"] | float, Float[Numpy, "*shape"] | float]:
    """Student's interval for a mean over so few runs.

    >>> low, high = interval(Estimate(0.5, 0.1), 3)
    >>> round(float(high - low), 3)
    0.861
    """
    instance(estimate, Estimate, "estimate")
    if positive_integer(runs, "runs") < 2:
        raise ValueError(f"runs: expected at least 2, got {runs}")
    coverage = number(coverage, "coverage")
    if not 0 < coverage < 1:
        raise ValueError(f"coverage: expected a number between 0 and 1, got {coverage}")
    with about("estimate"):
        # By the lower tail: (1 + coverage) / 2 may round to 1.
        return estimate.interval(-float(stdtrit(runs - 1, (1 - coverage) / 2)))


def stack(estimates: Sequence[Estimate]) -> Estimate:
    """Gather estimates of one shape into a single one, along a new first axis.

    >>> stack([Estimate(1.0, 0.1), Estimate(2.0, 0.2)]).value
    array([1., 2.])
    """
    if not isinstance(estimates, Sequence) or not all(isinstance(e, Estimate) for e in estimates):
        raise TypeError(f"estimates: expected a sequence of Estimate, got {type(estimates).__name__}")
    if not estimates:
        raise ValueError("estimates: expected at least one Estimate, got none")
    if len(shapes := {np.shape(part) for e in estimates for part in (e.value, e.standard_error)}) > 1:
        raise ValueError(f"estimates: expected values and errors of one shape, got {sorted(shapes)}")
    return Estimate(np.stack([e.value for e in estimates]), np.stack([e.standard_error for e in estimates]))


@silently
def slope(x: Real[ArrayLike, "N"], y: Real[ArrayLike, "N"]) -> Estimate:
    """Least-squares slope of y against x, with the standard error of ordinary regression.

    N >= 3, and x is not constant.

    >>> slope([0.0, 1.0, 2.0], [1.0, 3.0, 5.0]).value
    2.0
    """
    x, y = (floats(a, s, ndim=1) for a, s in ((x, "x"), (y, "y")))
    of_x, of_y = exponent(x).item(), exponent(y).item()
    x, y = unit_scaled(x), unit_scaled(y)
    if len(x) != len(y) or len(x) < 3 or np.ptp(x) == 0:
        raise ValueError(f"x, y: expected the same length, at least 3, and x not constant, got {len(x)} and {len(y)}")
    dx, dy = centred(x), centred(y)
    b = dx @ dy / (dx @ dx)
    residual = dy - b * dx
    found = _estimate(b, np.sqrt(residual @ residual / (len(x) - 2) / (dx @ dx)), of_y - of_x, names="x, y")
    return Estimate(float(found.value), float(found.standard_error))


def _draws(samples: ArrayLike) -> NDArray[Any]:
    x = floats(samples, "samples", at_least=1)
    if len(x) < 2:
        raise ValueError(f"samples: expected at least 2 draws along the first axis, got {len(x)}")
    return x


def _estimate(value: Any, error: Any, power: int, names: str = "samples") -> Estimate:
    """Return the Estimate of 2^power times a value and an error."""
    with silent():
        value, error = (np.ldexp(a, power) for a in (value, error))
    return Estimate(in_range(value, names), in_range(error, names))
