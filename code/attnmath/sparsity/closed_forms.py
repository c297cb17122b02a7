"""The l1/l2 sparsity S(a) of attention: of a row, and in closed form, accurate everywhere.

S(a) = E|a| / sqrt(E a^2) lies between 1/sqrt(n) (one-hot) and 1 (constant modulus). For
a row a_j = f(q.k_j) over Gaussian keys, the article reduces it to beta = q.mu and
gamma = sigma |q|. The printed forms cancel, overflow or return NaN outside a small range
of beta/gamma; the functions here do not, and `log=True` returns log S where S underflows
or is too close to 1 to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Real
from numpy.polynomial import chebyshev, polynomial
from numpy.typing import NDArray
from scipy import special

from attnmath.arrays import AnyArray, Array, ArrayLike, Numpy
from attnmath.checks import (
    LARGEST_INTEGER,
    about,
    axis_of,
    broadcast,
    constant,
    exponent,
    finite,
    flag,
    floats,
    in_range,
    precision,
    real_array,
    rounded,
    silent,
    silently,
    total,
    unit_scaled,
    wide,
)

Floats = NDArray[Any]

# For x >= 0 the ratios r_k(x) = I_k / I_(k-1) of the integrals I_k of u^k exp(-u^2/2 - x u) over u > 0 obey
# r_k = k / (x + r_(k+1)), a continued fraction: going down from r_4 adds and divides positive numbers only.
# (x + 3) r_4(x) lies between 4 and 6, is analytic at every x >= 0 and smooth at infinity. 36 Chebyshev polynomials in
# (x - 3) / (x + 3) give it to ten units in the last place (compared with mpmath).
_CENTRE = 3.0


def _ratio_coefficients(count: int = 36) -> Floats:
    """Chebyshev coefficients of (x + 3) r_4(x), from its values at the Chebyshev points."""
    odd = 2 * np.arange(count) + 1  # the angle of a Chebyshev point is so many times pi / (2 count)
    x = _CENTRE / np.tan(odd * np.pi / (4 * count)) ** 2
    # Trapezoidal rule in s = log v for integrals of v^k exp(-(c v)^2/2 - b v) over v > 0, k = 3 and 4. The
    # integrand is analytic for |Im s| < pi/4; at Im s = 0.7 it has grown by less than 100, so a step
    # of 0.1 leaves an error below 100 exp(-2 pi 0.7 / 0.1) < 1e-17. Before the first node lies
    # less than exp(-4 * 20) of it, beyond the last less than 1e-28.
    c = 2 / (x + np.sqrt(x * x + 8))  # the width of the integrand, so that the nodes fit every x
    v = np.exp(np.arange(-200, 46) * 0.1)
    with np.errstate(under="ignore"):
        values = np.exp(-((c[:, None] * v) ** 2) / 2 - (x * c)[:, None] * v)
    scaled = (x + _CENTRE) * c * (values @ v**5) / (values @ v**4)
    cosines = np.cos(np.outer(np.arange(count), odd) % (4 * count) * np.pi / (2 * count))  # of whole multiples, reduced
    coefficients: Floats = 2 * (cosines @ scaled) / count
    coefficients[0] /= 2
    return coefficients


_RATIO = _ratio_coefficients()

# So many values are worked on at a time: what is needed on the way then fits a processor's cache.
_CHUNK = 1 << 14

# Power series of log(tanh(y)/y) in y^2, used up to y = 0.8, about half its radius pi/2. (Bernoulli's
# numbers are written as zeta values, which scipy has to full accuracy.)
_K = np.arange(1, 34)
_TANHC = (-1.0) ** (_K + 1) * (2 - 4.0**_K) * special.zeta(2.0 * _K) / (_K * np.pi ** (2 * _K))
_SMALL = 0.8


def sparsity(a: Real[ArrayLike[Array], "..."], *, axis: int = -1) -> Float[Array, "..."]:
    """S of rows: mean |a| over root mean square a, article equation (1).

    The result has the shape of a without `axis`. Entries are
    scaled by the largest modulus first, so squares neither overflow nor underflow. A row of
    zeros has no S: `ValueError`.

    >>> sparsity(np.asarray([[1.0, 0.0, 0.0, 0.0], [1.0, -1.0, 1.0, -1.0]]))
    array([0.5, 1. ])
    """
    a, axis = _rows(a, axis)
    return rounded(_measure(a, axis), a.dtype)


def effective_support(a: Real[ArrayLike[Array], "..."], *, axis: int = -1) -> Float[Array, "..."]:
    """n S^2 = (sum |a|)^2 / sum a^2: how many equal entries would be as concentrated, between 1 and n.

    It is the exponential of the Renyi entropy of order 2 of |a| / sum |a|.

    >>> effective_support(np.asarray([[5.0, 0.0, 0.0, 0.0], [1.0, -1.0, 1.0, -1.0]]))
    array([1., 4.])
    """
    a, axis = _rows(a, axis)
    with silent():
        return rounded(a.shape[axis] * _measure(a, axis) ** 2, a.dtype, "a")


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
    with silent():
        high, low = _square(np.minimum(gamma, 1e9), np.zeros_like(gamma))  # far past underflow, short of overflow
        return _exp_of_minus(high / 2, low / 2)


def relu_squared(
    beta: Real[ArrayLike, "*#shape"], gamma: Real[ArrayLike, "*#shape"], *, log: bool = False
) -> Float[Numpy, "*shape"]:
    """S for f = relu^2, article equation (6); it depends on t = beta / gamma alone.

    With M_k(t) = E[max(t + z, 0)^k] for standard normal z, S = M_2 / sqrt(M_4). For t >= 0
    the moments are sums of positive terms. For t = -x < 0 they are exp(-x^2/2) / sqrt(2 pi) times
    I_k(x), the integral of u^k exp(-u^2/2 - x u) over u > 0. I_0 is a scaled complementary error function,
    and with the ratios r_k = I_k / I_(k-1) = k / (x + r_(k+1)), I_2^2 / I_4 = I_0 r_1 r_2 / (r_3 r_4): nothing
    cancels, and the exponential is kept apart. A million values take less than a second and 200 MB.

    >>> relu_squared([-40.0, 0.0, 40.0], 1.0).round(6)
    array([0.      , 0.408248, 0.998754])
    """
    t, rest = _ratio(beta, gamma)
    return _by_chunks(_log_relu_squared if flag(log, "log") else _relu_squared, t, rest)


def identity(
    beta: Real[ArrayLike, "*#shape"], gamma: Real[ArrayLike, "*#shape"], *, log: bool = False
) -> Float[Numpy, "*shape"]:
    """S for f = identity, article equation (7); even in t = beta / gamma, at least sqrt(2/pi).

    E|t + z| = |t| erf(|t| / sqrt 2) + 2 phi(t) with the normal density phi: a sum of positive terms.

    >>> identity([0.0, -2.0, 2.0], 1.0).round(6)
    array([0.797885, 0.902022, 0.902022])
    """
    t, rest = _ratio(beta, gamma)
    return _by_chunks(_log_identity if flag(log, "log") else _identity, t, rest)


@silently
def linear(q: Real[ArrayLike, "d"], mean: Real[ArrayLike, "d"], covariance: Real[ArrayLike, "d d"]) -> float:
    """S of non-negative linear attention a_j = q.k_j, article equation (8).

    q : g(query), no negative entries.  mean, covariance : of h(key).  Returns 1 / sqrt(1 + q' C q / (q' mean)^2).

    >>> linear([1.0, 0.0], [1.0, 1.0], [[3.0, 0.0], [0.0, 1.0]])
    0.5
    """
    eps = precision(q, covariance)
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
    given, q, mean = (q, mean, covariance), unit_scaled(q), unit_scaled(mean)
    C: Floats = np.ldexp(covariance, -of_covariance)
    if not np.allclose(C, C.T, rtol=max(1e-5, 4 * eps)):
        raise ValueError("covariance: expected a symmetric matrix")
    if not all(_near_one(*pair) for pair in zip((q, mean, C), given, strict=True)):
        # A product may underflow where it is all there is: terms with their exponents, and weights 1.
        mean, of_mean = _terms(*given[:2])
        C, of_covariance = _squares(given[0], given[2])
        q = np.ones_like(q)
    signal, spread = float(q @ mean), float(q @ C @ q)
    if signal == 0:
        raise ValueError("q, mean: expected q.mean > 0, got 0: almost every attention weight is zero")
    # A singular covariance may come out below 0 by the rounding of its entries and of the 2 d^2 terms.
    rounding = 4 * (q.size + 1) * eps * float(q @ np.abs(C) @ q)
    if spread < -rounding:
        raise ValueError(f"covariance: expected positive semi-definite, got q' C q = {spread:g} after scaling")
    with silent():
        return float(1 / np.hypot(1, np.ldexp(np.sqrt(max(spread, 0.0)) / signal, of_covariance // 2 - of_mean)))


def _near_one(scaled: Floats, given: Floats) -> bool:
    """Whether no entry but 0 is so small that a product of four of them could underflow."""
    return bool(np.all(np.abs(scaled[given != 0]) >= 2.0**-250))


def _terms(q: Floats, mean: Floats) -> tuple[Floats, int]:
    """Return the terms q_i mean_i divided by a power of two, and its exponent."""
    (q, of_q), (mean, of_mean) = np.frexp(q), np.frexp(mean)
    terms, powers = q * mean, of_q + of_mean
    top = int(np.max(powers, where=terms != 0, initial=-(2**20)))
    return np.ldexp(terms, powers - top), top


def _squares(q: Floats, C: Floats) -> tuple[Floats, int]:
    """Return the terms q_i C_ij q_j divided by a power of four, and the exponent of two."""
    (q, of_q), (C, of_C) = np.frexp(q), np.frexp(C)
    terms, powers = q[:, None] * C * q, of_q[:, None] + of_C + of_q
    top = int(np.max(powers, where=terms != 0, initial=-(2**20))) // 2 * 2
    return np.ldexp(terms, powers - top), top


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


def _rows(a: AnyArray, axis: int) -> tuple[AnyArray, int]:
    """Return rows without a row of zeros, and the axis along which they lie."""
    a = finite(real_array(a, "a", at_least=1), "a")
    axis = axis_of(a, axis, "a")
    if not bool(array_namespace(a).all(array_namespace(a).any(a != 0, axis=axis))):
        raise ValueError("a: expected a non-zero entry in every row, got a row of zeros")
    return a, axis


def _measure(a: AnyArray, axis: int) -> AnyArray:
    xp = array_namespace(a)
    (a,) = wide(a)
    with silent():
        a = xp.abs(a)
        a = a / constant(xp.max(a, axis=axis, keepdims=True))
        n = a.shape[axis]
        return total(a, axis=axis) / n / xp.sqrt(total(a * a, axis=axis) / n)


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


def _by_chunks(form: Callable[[Floats, Floats], Floats], t: Floats, rest: Floats) -> Floats:
    """Apply a function of t and of what rounding took from it to a chunk of values at a time."""
    out, flat, rests = np.empty(t.size), np.ravel(t), np.ravel(rest)
    with np.errstate(over="ignore", under="ignore"):
        for start in range(0, t.size, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            out[chunk] = form(flat[chunk], rests[chunk])
    return out.reshape(t.shape)[()]


def _relu_squared(t: Floats, rest: Floats) -> Floats:
    out, positive = np.empty_like(t), t >= 0
    m2, m4 = _moments(t[positive])
    out[positive] = m2 / np.sqrt(m4)
    t, rest = t[~positive], rest[~positive]
    high, low = _square(t, rest)
    out[~positive] = _exp_of_minus(high / 4, low / 4) * np.sqrt(_quotient(-t) / np.sqrt(2 * np.pi))
    return out


def _log_relu_squared(t: Floats, rest: Floats) -> Floats:
    out, positive = np.empty_like(t), t >= 0
    out[positive] = _log_relu_positive(t[positive])
    x = -t[~positive]
    out[~positive] = -x * x / 4 + np.log(_quotient(x) / np.sqrt(2 * np.pi)) / 2
    return out


def _identity(t: Floats, rest: Floats) -> Floats:
    x = np.abs(t)
    return (x * special.erf(x / np.sqrt(2)) + 2 * _density(x)) / np.hypot(1, x)


def _log_identity(t: Floats, rest: Floats) -> Floats:
    x = np.abs(t)
    m = _density(x) - x * special.ndtr(-x)  # E max(z - x, 0); its digits count beside 1 only
    # 1 - S^2 = (1 - 4 m (x + m)) / (1 + x^2), and the numerator stays above 0.36.
    return np.log1p(-(1 - 4 * m * (x + m)) / (1 + x * x)) / 2


def _density(x: Floats) -> Floats:
    density: Floats = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    return density


def _moments(t: Floats) -> tuple[Floats, Floats]:
    """M_2 and M_4 at t >= 0."""
    below, density, square = special.ndtr(t), _density(t), t * t
    return (square + 1) * below + t * density, (square * (square + 6) + 3) * below + t * (square + 5) * density


def _quotient(x: Floats) -> Floats:
    """I_2^2 / I_4 at x > 0."""
    s = (x - _CENTRE) / (x + _CENTRE)
    r_4: Floats = chebyshev.chebval(s, _RATIO) / (x + _CENTRE)
    r_3 = 3 / (x + r_4)
    r_2 = 2 / (x + r_3)
    r_1 = 1 / (x + r_2)
    first = np.sqrt(np.pi / 2) * special.erfcx(x / np.sqrt(2))  # I_0
    return first * r_1 * r_2 / (r_3 * r_4)


def _log_relu_positive(t: Floats) -> Floats:
    above, density, square = special.ndtr(-t), _density(t), t * t
    # The tails at -t: what M_2 and M_4 lack to the moments of the whole line. Their digits count beside 2 and 3 only.
    m2 = (square + 1) * above - t * density
    m4 = (square * (square + 6) + 3) * above - t * (square + 5) * density
    # M_4 - M_2^2 with the powers of t that cancel taken out: at least 5/4.
    variance = 4 * square + 2 - m4 + 2 * (square + 1) * m2 - m2 * m2
    return np.log1p(-variance / (square * (square + 6) + 3 - m4)) / 2


def _log_tanhc(y: Floats) -> Floats:
    """log(tanh(y) / y) for y >= 0, by its power series where y is small."""
    square, large = np.minimum(y, _SMALL) ** 2, np.maximum(y, _SMALL)
    series = square * polynomial.polyval(square, _TANHC)
    return np.where(y < _SMALL, series, np.log(np.tanh(large) / large))
