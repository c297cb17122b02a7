"""Softmax rows of n independent normal scores: their means by quadrature, at every n and every standard deviation.

The scores of a row are s x_1, ..., s x_n with independent standard normal x_i, and Z is the sum of the exponentials.
Given a query, the scores against keys with independent Gaussian components are of this kind (section 5.1.4).

If G is an independent standard Gumbel variable, log Z + G is at most w with probability F(w)^n, where
F(w) = E exp(-exp(s x - w)) is one integral. So a mean over n scores is an integral over w.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy import optimize, stats

from attnmath.arrays import Numpy
from attnmath.checks import positive, positive_integer, silent

#: Wider scores, and longer rows, are beyond what the grids below resolve.
WIDEST, LONGEST = 50.0, 10**12
_NARROWEST = 1e-6
#: The integrands are analytic in a strip of half-width pi/2, so the trapezoidal rule errs by about exp(-pi^2 / step);
#: the power n multiplies this error, and the rounding of the inner integral: six digits are left at n = 10^12.
_STEP = 0.35


def mean_log_sum(deviation: float, n: int) -> float:
    """Mean of log Z, the logarithm of the sum of n exponentials of normal scores with this standard deviation.

    >>> abs(round(mean_log_sum(2.0, 1), 8))
    0.0
    >>> round(mean_log_sum(1.0, 64), 4)
    4.6459
    """
    w, density, _ = _integrands(*_checked(deviation, n))
    return float(_STEP * (w * density).sum() - np.euler_gamma)


def mean_collision(deviation: float, n: int) -> float:
    """Mean of the sum of the squared weights: the chance that two draws from the row are the same key.

    >>> round(mean_collision(1.0, 1), 9), round(mean_collision(1e-6, 4), 9)
    (1.0, 0.25)
    """
    _, _, collision = _integrands(*_checked(deviation, n))
    return float(_STEP * collision.sum())


def mean_entropy(deviation: float, n: int) -> float:
    """Mean entropy of the row, in nats: the mean of log Z less s^2 (1 - mean collision).

    >>> round(mean_entropy(1.0, 64), 4), round(float(np.log(64) - 1 / 2), 4)
    (3.6847, 3.6589)
    """
    deviation, n = _checked(deviation, n)
    w, density, collision = _integrands(deviation, n)
    log_sum = _STEP * (w * density).sum() - np.euler_gamma
    return float(log_sum - deviation**2 * (1 - _STEP * collision.sum()))


def deviation_for_entropy(entropy: float, n: int) -> float:
    """Standard deviation of n scores at which the mean entropy of the row has this value, between 0 and log n.

    >>> s = deviation_for_entropy(1.0, 64)
    >>> round(mean_entropy(s, 64), 9)
    1.0
    """
    n = positive_integer(n, "n", at_most=LONGEST)
    entropy = positive(entropy, "entropy")
    if entropy >= mean_entropy(_NARROWEST, n):
        raise ValueError(f"entropy, n: expected an entropy below log n = {np.log(n):.6g}, got {entropy}")
    high = 1.0
    while mean_entropy(high, n) > entropy:
        if high == WIDEST:
            raise ValueError(f"entropy, n: expected one that a deviation of at most {WIDEST:g} gives, got {entropy}")
        high = min(2 * high, WIDEST)
    low = high / 2 if high > 1 else _NARROWEST
    return float(optimize.brentq(lambda s: mean_entropy(s, n) - entropy, low, high, xtol=1e-12))


def _checked(deviation: float, n: int) -> tuple[float, int]:
    return positive(deviation, "deviation", at_most=WIDEST), positive_integer(n, "n", at_most=LONGEST)


def _integrands(s: float, n: int) -> tuple[Float[Numpy, "points"], Float[Numpy, "points"], Float[Numpy, "points"]]:
    """Return a grid of w, the density of log Z + G on it, and the integrand of the mean collision."""
    with silent():
        x = np.arange(-9, 9, min(_STEP / s, _STEP))
        weights = stats.norm.pdf(x) * (x[1] - x[0])
        low = s * max(stats.norm.ppf(np.exp(-40 / n)), -9) - 4
        high = np.log(n) + min(s * stats.norm.isf(1e-17 / n), s**2 / 2) + 37
        w = np.arange(low, high, _STEP)
        e = np.subtract(s * x, w[:, None])  # two tables of the points are kept, and written over
        np.exp(np.minimum(e, 40, out=e), out=e)
        table = np.negative(e)
        gone = np.negative(np.expm1(table, out=table), out=table) @ weights
        others = np.exp((n - 1) * np.log1p(-np.minimum(gone, 1 - 1e-16)))
        survives = np.exp(np.negative(e, out=table), out=table)
        once = np.multiply(e, survives) @ weights
        np.square(e, out=e)
        return w, n * others * once, n * others * (np.multiply(e, survives, out=e) @ weights)
