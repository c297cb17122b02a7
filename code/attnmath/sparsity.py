"""The l1/l2 sparsity S(a) of attention: of a row, and in closed form, accurate everywhere.

S(a) = E|a| / sqrt(E a^2) lies between 1/sqrt(n) (one-hot) and 1 (constant modulus). For
a row a_j = f(q.k_j) over Gaussian keys, the article reduces it to beta = q.mu and
gamma = sigma |q|. The printed forms cancel, overflow or return NaN outside a small range
of beta/gamma; the functions here do not, and `log=True` returns log S where S underflows
or is too close to 1 to tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Real
from numpy.polynomial import polynomial
from numpy.typing import NDArray
from scipy import special

from attnmath.arrays import Array, ArrayLike, Numpy
from attnmath.checks import (
    LARGEST_INTEGER,
    about,
    axis_of,
    broadcast,
    exponent,
    finite,
    flag,
    floats,
    in_range,
    real_array,
    silent,
    unit_scaled,
)

Floats = NDArray[Any]

# Trapezoidal rule in s = log v for integrals of v^k exp(-(c v)^2/2 - b v) over v > 0, k <= 4. The
# integrand is analytic for |Im s| < pi/4; at Im s = 0.7 it has grown by less than 100, so a
# step of 0.1 leaves an error below 100 exp(-2 pi 0.7 / 0.1) < 1e-17. Beyond the first node
# lies exp(-2 * 20) of it, beyond the last less.
_STEP = 0.1
_NODES = np.exp(np.arange(-200, 46) * _STEP)

# Power series of log(tanh(y)/y) in y^2, used up to y = 0.8, about half its radius pi/2. (Bernoulli's
# numbers are written as zeta values, which scipy has to full accuracy.)
_K = np.arange(1, 34)
_TANHC = (-1.0) ** (_K + 1) * (2 - 4.0**_K) * special.zeta(2.0 * _K) / (_K * np.pi ** (2 * _K))
_SMALL = 0.8


def sparsity(a: Real[ArrayLike, "..."], *, axis: int = -1) -> Float[Array, "..."]:
    """S of rows: mean |a| over root mean square a, article equation (1).

    The result has the shape of a without `axis`. Entries are
    scaled by the largest modulus first, so squares neither overflow nor underflow. A row of
    zeros has no S: `ValueError`.

    >>> sparsity(np.asarray([[1.0, 0.0, 0.0, 0.0], [1.0, -1.0, 1.0, -1.0]]))
    array([0.5, 1. ])
    """
    a = finite(real_array(a, "a", at_least=1), "a")
    xp = array_namespace(a)
    axis = axis_of(a, axis, "a")
    a = xp.abs(a)
    top = xp.max(a, axis=axis, keepdims=True)
    if bool(xp.any(top == 0)):
        raise ValueError("a: expected a non-zero entry in every row, got a row of zeros")
    a = a / top
    return xp.mean(a, axis=axis) / xp.sqrt(xp.mean(a * a, axis=axis))


def effective_support(a: Real[ArrayLike, "..."], *, axis: int = -1) -> Float[Array, "..."]:
    """n S^2 = (sum |a|)^2 / sum a^2: how many equal entries would be as concentrated, between 1 and n.

    It is the exponential of the Renyi entropy of order 2 of |a| / sum |a|.

    >>> effective_support(np.asarray([[5.0, 0.0, 0.0, 0.0], [1.0, -1.0, 1.0, -1.0]]))
    array([1., 4.])
    """
    S = sparsity(a, axis=axis)
    return real_array(a, "a").shape[axis] * S**2


def exponential(gamma: Real[ArrayLike, "*shape"], *, log: bool = False) -> Float[Numpy, "*shape"]:
    """S for f = exp, article equation (5): exp(-gamma^2 / 2), with gamma = sigma |q| >= 0.

    The square is carried in twice the working precision, since exp turns its rounding,
    gamma^2/2 times an ulp, into relative error.

    >>> exponential([0.0, 2.0]).round(6)
    array([1.      , 0.135335])
    """
    gamma, log = floats(gamma, "gamma"), flag(log, "log")
    if np.any(gamma < 0):
        raise ValueError(f"gamma: expected sigma |q| >= 0, got {gamma.min():g}")
    if log:
        with silent():
            return in_range(-gamma * gamma / 2, "gamma")
    high, low = _square(np.minimum(gamma, 1e9), np.zeros_like(gamma))  # far past underflow, short of overflow
    return _exp_of_minus(high / 2, low / 2)


def relu_squared(
    beta: Real[ArrayLike, "*#shape"], gamma: Real[ArrayLike, "*#shape"], *, log: bool = False
) -> Float[Numpy, "*shape"]:
    """S for f = relu^2, article equation (6); it depends on t = beta / gamma alone.

    With M_k(t) = E[max(t + z, 0)^k] for standard normal z, S = M_2 / sqrt(M_4). For t >= 0
    the moments are those of the whole line less a tail of at most half their size. For t = -x < 0
    they are exp(-x^2/2) / sqrt(2 pi) times integrals of u^k exp(-u^2/2 - x u), which are positive: a
    quadrature with fixed nodes has nothing to cancel, and the exponential is kept apart.

    >>> relu_squared([-40.0, 0.0, 40.0], 1.0).round(6)
    array([0.      , 0.408248, 0.998754])
    """
    t, rest = _ratio(beta, gamma)
    log = flag(log, "log")
    x = np.abs(t)
    scaled = _tail_moments(x)  # I_2, I_4 at |t|
    if log:
        return np.where(t >= 0, _log_relu_positive(x, scaled), _log_relu_negative(x, scaled))
    with np.errstate(over="ignore", under="ignore"):
        high, low = _square(t, rest)
        decay = _exp_of_minus(high / 4, low / 4) / (2 * np.pi) ** 0.25
        # Far out the product of the first two is subnormal, and has lost digits, before the quotient is taken.
        negative = np.where(x > 50, decay * (scaled[0] / np.sqrt(scaled[1])), decay * scaled[0] / np.sqrt(scaled[1]))
        m2, m4 = _moments(x, scaled)
        return np.where(t >= 0, (m2 / np.sqrt(m4)), negative)


def identity(
    beta: Real[ArrayLike, "*#shape"], gamma: Real[ArrayLike, "*#shape"], *, log: bool = False
) -> Float[Numpy, "*shape"]:
    """S for f = identity, article equation (7); even in t = beta / gamma, at least sqrt(2/pi).

    With m = E[max(z - |t|, 0)], E|t + z| = |t| + 2 m: a sum of positive terms.

    >>> identity([0.0, -2.0, 2.0], 1.0).round(6)
    array([0.797885, 0.902022, 0.902022])
    """
    t, _ = _ratio(beta, gamma)
    log = flag(log, "log")
    x = np.abs(t)
    m = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * _integral(x, 1)
    if log:
        # 1 - S^2 = (1 - 4 m (x + m)) / (1 + x^2), and the numerator stays above 0.36.
        return np.log1p(-(1 - 4 * m * (x + m)) / (1 + x * x)) / 2
    return (x + 2 * m) / np.hypot(1, x)


def linear(q: Real[ArrayLike, "d"], mean: Real[ArrayLike, "d"], covariance: Real[ArrayLike, "d d"]) -> float:
    """S of non-negative linear attention a_j = q.k_j, article equation (8).

    q : g(query), no negative entries.  mean, covariance : of h(key).  Returns 1 / sqrt(1 + q' C q / (q' mean)^2).

    >>> linear([1.0, 0.0], [1.0, 1.0], [[3.0, 0.0], [0.0, 1.0]])
    0.5
    """
    q, mean = floats(q, "q", ndim=1), floats(mean, "mean", ndim=1)
    covariance = floats(covariance, "covariance", ndim=2)
    if mean.shape != q.shape or covariance.shape != (q.size, q.size):
        raise ValueError(
            f"q, mean, covariance: expected shapes (d,), (d,), (d, d), got {q.shape}, {mean.shape}, {covariance.shape}"
        )
    if np.any(q < 0) or np.any(mean < 0):
        raise ValueError("q, mean: expected non-negative entries (the range of g and h)")
    # Scaled by powers of two, which round nothing; the exponents return in the ratio.
    of_mean, of_covariance = exponent(mean).item(), 2 * (exponent(covariance).item() // 2)
    q, mean = unit_scaled(q), unit_scaled(mean)
    C: Floats = np.ldexp(covariance, -of_covariance)
    if not np.allclose(C, C.T):
        raise ValueError("covariance: expected a symmetric matrix")
    signal, spread = float(q @ mean), float(q @ C @ q)
    if signal == 0:
        raise ValueError("q, mean: expected q.mean > 0, got 0: almost every attention weight is zero")
    # A singular covariance may come out below 0 by the rounding of its entries and of the 2 d^2 terms.
    rounding = 4 * (q.size + 1) * np.finfo(float).eps * float(q @ np.abs(C) @ q)
    if spread < -rounding:
        raise ValueError(f"covariance: expected positive semi-definite, got q' C q = {spread:g} after scaling")
    with silent():
        return float(1 / np.hypot(1, np.ldexp(np.sqrt(max(spread, 0.0)) / signal, of_covariance // 2 - of_mean)))


def linear_independent(q: Real[ArrayLike, "d"], mean: float, deviation: float) -> float:
    """S of non-negative linear attention over keys with independent, equally distributed entries, article equation (9).

    q : g(query), no negative entries.  mean, deviation : of one entry of h(key), mean > 0.
    Returns 1 / sqrt(1 + (deviation / mean * |q|_2 / |q|_1)^2).

    >>> linear_independent([1.0, 0.0], 1.0, np.sqrt(3.0)), linear_independent([1.0, 1.0, 1.0], 1.0, 3.0)
    (0.5, 0.5)
    """
    q = floats(q, "q", ndim=1)
    m, s = floats(mean, "mean", ndim=0), floats(deviation, "deviation", ndim=0)
    if s < 0:
        raise ValueError(f"deviation: expected at least 0, got {s:g}")
    # Only deviation / mean counts: of the two the larger gets the exponent 0, and the other may vanish beside it.
    power = -max(exponent(m).item(), exponent(s).item())
    with about("q, mean, deviation"), silent():
        return linear(q, np.full(q.shape, np.ldexp(m, power)), np.ldexp(s, power) ** 2 * np.eye(q.size))


def decay(
    lam: Real[ArrayLike, "*#shape"], n: Real[ArrayLike, "*#shape"], *, log: bool = False
) -> Float[Numpy, "*shape"]:
    """S of the geometric row (lam^(n-1), ..., lam, 1), article equation (11).

    lam : in (0, 1].  n : integers of at least 1.  With w = -log lam the printed form is
    S^2 = tanh(n w / 2) / (n tanh(w / 2)), which neither divides 0 by 0 at lam = 1 nor cancels near it.

    >>> decay([0.5, 1.0], 2).round(6)
    array([0.948683, 1.      ])
    """
    lam, n = broadcast(lam=floats(lam, "lam"), n=floats(n, "n"))
    log = flag(log, "log")
    if np.any(lam <= 0) or np.any(lam > 1):
        raise ValueError(f"lam: expected 0 < lam <= 1, got values from {lam.min():g} to {lam.max():g}")
    if np.any(n < 1) or np.any(n != np.floor(n)) or np.any(n > LARGEST_INTEGER):
        raise ValueError(f"n: expected integers of at least 1 and at most {LARGEST_INTEGER}")
    half = -np.log(lam) / 2
    log_s = (_log_tanhc(n * half) - _log_tanhc(half)) / 2
    return log_s if log else np.exp(log_s)


def _ratio(beta: ArrayLike, gamma: ArrayLike) -> tuple[Floats, Floats]:
    """beta / gamma in twice the working precision: the quotient, and what rounding took from it."""
    beta, gamma = broadcast(beta=floats(beta, "beta"), gamma=floats(gamma, "gamma"))
    if np.any(gamma <= 0):
        raise ValueError(f"gamma: expected sigma |q| > 0, got {gamma.min():g}")
    # Only the quotient counts; a power of two that brings gamma near 1 keeps the products below in range.
    power = np.frexp(gamma)[1]
    with silent():
        beta, gamma = np.ldexp(beta, -power), np.ldexp(gamma, -power)
        t = beta / gamma
    if np.any(np.abs(t) > 1e60):
        raise ValueError(f"beta, gamma: expected |beta / gamma| of at most 1e60, got {np.abs(t).max():g}")
    high, low = _product(t, gamma)
    return t, ((beta - high) - low) / gamma


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Dekker's product: a b as a rounded value and its exact error (entries below 1e150)."""
    p = a * b
    a1 = 134217729.0 * a
    b1 = 134217729.0 * b
    a_high, b_high = a1 - (a1 - a), b1 - (b1 - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def _square(t: Floats, rest: Floats) -> tuple[Floats, Floats]:
    high, low = _product(t, t)
    return high, low + 2 * t * rest


def _exp_of_minus(high: Floats, low: Floats) -> Floats:
    """exp(-(high + low)) for a low part below an ulp of the high one."""
    with np.errstate(under="ignore"):
        e: Floats = np.exp(-high)
        return e - e * low


def _integral(x: Floats, k: int) -> Floats:
    """Integral of u^k exp(-u^2/2 - x u) over u > 0, for x >= 0."""
    c = 2 / (x + np.sqrt(x * x + 8))  # the width of the integrand, so that the nodes fit every x
    b = (x * c)[..., None]
    with np.errstate(under="ignore"):
        values = np.exp(-((c[..., None] * _NODES) ** 2) / 2 - b * _NODES)
    return c ** (k + 1) * (values @ (_STEP * _NODES ** (k + 1)))


def _tail_moments(x: Floats) -> tuple[Floats, Floats]:
    return _integral(x, 2), _integral(x, 4)


def _moments(x: Floats, scaled: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """M_2 and M_4 at t = x >= 0: the full Gaussian moments less the tails at -x."""
    peak = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    return x * x + 1 - peak * scaled[0], x**4 + 6 * x * x + 3 - peak * scaled[1]


def _log_relu_positive(x: Floats, scaled: tuple[Floats, Floats]) -> Floats:
    peak = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    m2, m4 = peak * scaled[0], peak * scaled[1]
    # M_4 - M_2^2 with the powers of x that cancel taken out: at least 5/4.
    variance = 4 * x * x + 2 - m4 + 2 * (x * x + 1) * m2 - m2 * m2
    return np.log1p(-variance / (x**4 + 6 * x * x + 3 - m4)) / 2


def _log_relu_negative(x: Floats, scaled: tuple[Floats, Floats]) -> Floats:
    return -x * x / 4 - np.log(2 * np.pi) / 4 + np.log(scaled[0]) - np.log(scaled[1]) / 2


def _log_tanhc(y: Floats) -> Floats:
    """log(tanh(y) / y) for y >= 0, by its power series where y is small."""
    square, large = np.minimum(y, _SMALL) ** 2, np.maximum(y, _SMALL)
    series = square * polynomial.polyval(square, _TANHC)
    return np.where(y < _SMALL, series, np.log(np.tanh(large) / large))
