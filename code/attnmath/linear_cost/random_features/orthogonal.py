"""Exact variances of the softmax kernel's estimates with coupled rows: orthogonal, or towards the corners of a simplex.

The estimate of K = exp(x . y) is the mean of m terms, one for each row. Rows of different blocks are independent, so

    m^2 Var = m (variance of one term) + (ordered pairs of rows in one block) (covariance of two coupled terms).

With z = x + y, t = |z|^2 / 2 and two orthogonal rows of independent chi norms, the covariance of positive terms is

    Cov / K^2 = exp(-2t) 1F1(d; d/2; t) - 1 = -E(1 - a_N),  a_k = prod_{j<k} (d/2 - j) / (d/2 + j),

with a Poisson variable N of mean t. It is below 0 for every z but 0, since a_0 = a_1 = 1 and |a_k| < 1 from k = 2 on.
Hyperbolic terms, and generalised exponential ones (GERF), have the same covariance.
In one dimension every block is a single row: nothing is coupled, and every variance is that of independent rows.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Real
from scipy import special

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import (
    Floats,
    describe,
    flag,
    floats,
    in_range,
    number,
    one_of,
    positive,
    positive_integer,
    silent,
)

#: Longer vectors take too many terms of the series.
_LONGEST = 1e5
#: How the rows of a block hang together.
COUPLINGS = ("independent", "orthogonal", "simplex")


def positive_variance(
    x: Real[ArrayLike, "... d"],
    y: Real[ArrayLike, "... d"],
    m: int,
    *,
    coupling: str = "orthogonal",
    relative: bool = False,
) -> Float[Numpy, "..."]:
    """Variance of the estimate of exp(x . y) by m positive features (FAVOR+) with rows of chi norms, in blocks of d.

    coupling : "orthogonal", "simplex" or "independent".
    relative : divided by exp(2 x . y).

    >>> x, y = [1.0, 0.0], [0.0, 1.0]
    >>> positive_variance(x, y, 2, coupling="independent"), positive_variance(x, y, 2)
    (array(3.19452805), array(3.06240749))
    """
    return gerf_variance(x, y, 0.0, m, coupling=coupling, relative=relative)


def gerf_variance(
    x: Real[ArrayLike, "... d"],
    y: Real[ArrayLike, "... d"],
    A: float,
    m: int,
    *,
    coupling: str = "orthogonal",
    relative: bool = False,
) -> Float[Numpy, "..."]:
    """As `positive_variance`, for the features D exp(A |w|^2 + sqrt(1 - 4A) w.x - |x|^2 / 2) of FAVOR++; A < 1/8.

    A coupling of the directions gives the covariance of A = 0: the factors exp(A |w|^2) change the law of the norms
    into that of chi norms times 1 / sqrt(1 - 4A), which the factor before w.x takes back.

    >>> gerf_variance([1.0, 0.0], [0.0, 1.0], -0.125, 2)
    array(0.89691297)
    """
    A = number(A, "A")
    if not -math.inf < A < 1 / 8:
        raise ValueError(f"A: expected a finite number below 1/8, or the variance is infinite, got {A}")
    square, kernel, d = _pairs_of(x, y)
    with silent():
        # log(E f^2 / K^2), from the Gaussian integral.
        exponent = d / 2 * np.log1p(16 * A / (1 - 8 * A) * A) + square / (1 - 8 * A)
    in_range(exponent, "x, y, A")
    with silent():
        covariance = 0.0
        if _is_coupled(coupling, d, COUPLINGS):
            covariance = relative_covariance(square, d, coupling=coupling)
        return _variance(-np.expm1(-exponent), covariance * np.exp(-exponent), exponent, kernel, m, d, relative)


def hyperbolic_variance(
    x: Real[ArrayLike, "... d"],
    y: Real[ArrayLike, "... d"],
    m: int,
    *,
    coupling: str = "orthogonal",
    relative: bool = False,
) -> Float[Numpy, "..."]:
    """As `positive_variance`, for m orthogonal rows that are used with both signs: terms cosh(w.(x + y)).

    coupling : "orthogonal" or "independent".

    >>> hyperbolic_variance([1.0, 0.0], [0.0, 1.0], 2)
    array(1.24897729)
    """
    square, kernel, d = _pairs_of(x, y)
    with silent():
        covariance = relative_covariance(square, d) * np.exp(-square) if _is_coupled(coupling, d) else 0.0
        return _variance(np.expm1(-square) ** 2 / 2, covariance, square, kernel, m, d, relative)


def relative_covariance(
    square: Real[ArrayLike, "*shape"], d: int, *, coupling: str = "orthogonal"
) -> Float[Numpy, "*shape"]:
    """Covariance of two positive terms with coupled rows, divided by K^2; between -1 and 0.

    square : |x + y|^2.
    d : at least 2, since a block of one dimension has no two rows.
    coupling : "orthogonal", or "simplex" (directions whose cosine is -1/(d - 1)).

    >>> relative_covariance([0.0, 1.0, 4.0, 100.0], 64).round(6)
    array([-0.      , -0.007334, -0.103143, -1.      ])
    """
    square, d = _square(square), _of_two_rows(d)
    with silent():
        if one_of(coupling, COUPLINGS[1:], "coupling") == "orthogonal":
            return np.asarray(-_one_less_mean(square / 2, d))
        # With |w1|^2 + |w2|^2 = S and 2 |w1| |w2| = S sin(theta): S is chi^2 with 2d degrees of freedom, and
        # independent of theta, whose density is proportional to sin(theta)^(d - 1).
        nodes, weights = np.polynomial.legendre.leggauss(64)
        # 9 deviations to each side, where that is less than a right angle.
        angles = min(math.pi / 2, 9 / math.sqrt(d)) * nodes
        weights = weights * np.cos(angles) ** (d - 1)
        total = np.zeros_like(square)
        for sine, weight in zip(np.cos(angles), weights / weights.sum(), strict=True):
            nearer = sine / (d - 1)  # |w1 + w2|^2 = S (1 - nearer)
            total += weight * -np.expm1(-square * nearer)
            total += weight * np.exp(-square * nearer) * _one_less_mean(square / 2 * (1 - nearer), d)
        return np.asarray(-np.minimum(total, 1.0))


def cosine_covariance(square: Real[ArrayLike, "*shape"], d: int) -> Float[Numpy, "*shape"]:
    """Covariance of cos(w1.z) and cos(w2.z) for two orthogonal rows of chi norms, to an error of about 1e-13.

    It is 1F1(d; d/2; -|z|^2 / 2) - exp(-|z|^2): below 0 for small z, and for large z of either sign.
    square : |z|^2.
    d : at least 2, since a block of one dimension has no two rows.

    >>> cosine_covariance([0.0, 1.0, 12.0], 4).round(6)
    array([-0.      , -0.039342,  0.002473])
    """
    square, d = _square(square), _of_two_rows(d)
    with silent():
        t = square / 2
        far = t > _far(d)
        near = -_one_less_mean(np.where(far, 0.0, t), d, alternating=True)
        # Beyond 1e5 the function is below the error, and scipy's takes long, or gives no number.
        far_t = np.minimum(np.where(far, t, 0.0), 1e5)
        return np.where(far, special.hyp1f1(d, d / 2, -far_t) - np.exp(-square), near)


def log_mean_on_sphere(norm: Real[ArrayLike, "*shape"], d: int, *, radius: float) -> Float[Numpy, "*shape"]:
    """Logarithm of E exp(w.z) for w uniform on the sphere of this radius in d dimensions: log 0F1(d/2; r^2 |z|^2 / 4).

    norm : |z|, at most 1e5 / radius. A standard normal w has |z|^2 / 2 instead: fixed norms bias a positive feature.

    >>> log_mean_on_sphere([1.0, 8.0], 64, radius=8.0).round(4)  # against 0.5 and 32
    array([ 0.4963, 24.2341])
    """
    norm, d, radius = np.abs(floats(norm, "norm")), positive_integer(d, "d"), positive(radius, "radius")
    with silent():
        r = in_range(radius * norm, "norm, radius")
    if np.any(r > _LONGEST):
        raise ValueError(f"norm, radius: expected products of at most {_LONGEST:g}, got {r.max():g}")
    n = d / 2
    # I_(n-1) underflows in scipy where its order is large against the argument; the series has few terms there.
    longest = max(d + 60, n**2 / 1000)
    far = r > longest
    with silent():
        log_series = _log_series(np.where(far, 0.0, r), n)
        s = np.where(far, r, longest)
        log_bessel = special.gammaln(n) + (n - 1) * np.log(2 / s) + np.log(special.ive(n - 1, s)) + s
        return np.where(far, log_bessel, log_series)


def coupled_pairs(m: int, d: int) -> int:
    """Ordered pairs of different rows that lie in one block, of m rows in blocks of d.

    >>> coupled_pairs(3, 4), coupled_pairs(10, 4)
    (6, 26)
    """
    m, d = positive_integer(m, "m"), positive_integer(d, "d")
    full, rest = divmod(m, d)
    return full * d * (d - 1) + rest * (rest - 1)


def _one_less_mean(t: Floats, d: int, *, alternating: bool = False) -> Floats:
    """E(1 - a_N) for N Poisson of mean t; alternating: E((-1)^N (1 - a_N)), for t up to `_far` alone."""
    n = d / 2
    far = t > _far(d)
    t = np.where(far, 0.0, t)
    top = float(np.max(t))
    log_t = np.log(np.where(t > 0, t, 1.0))
    total = np.zeros_like(t)
    a, less = 1.0, 0.0  # a_k, and 1 - a_k without cancellation
    for k in range(1, int(top + 10 * math.sqrt(top) + 40)):
        j = k - 1
        less, a = less + a * (2 * j / (n + j)), a * ((n - j) / (n + j))
        if k > 1:
            sign = -1.0 if alternating and k % 2 else 1.0
            total += sign * less * np.exp(k * log_t - t - math.lgamma(k + 1))
    return np.where(far, 1.0, np.where(t > 0, total, 0.0))


def _far(d: int) -> float:
    """Mean of N beyond which E a_N is below the rounding of 1."""
    return 60 + 7 * math.sqrt(d / 2)


def _log_series(r: Floats, n: float) -> Floats:
    """log 0F1(n; r^2 / 4), term by term."""
    largest = (math.hypot(n, float(np.max(r))) - n) / 2  # the index of the largest term
    log_quarter = 2 * np.log(np.maximum(r, 1e-300) / 2)
    # Terms by their quotients: lgamma(n) is above n, and its rounding above the whole sum for a large n.
    log_term, log_rest = np.zeros_like(r), np.full_like(r, -math.inf)
    for k in range(1, int(largest + 10 * math.sqrt(largest) + 40)):
        log_term = log_term + (log_quarter - math.log(k) - math.log(n + k - 1))
        log_rest = np.logaddexp(log_rest, log_term)
    return np.where(log_rest < 0, np.log1p(np.exp(np.minimum(log_rest, 0.0))), np.logaddexp(0.0, log_rest))


def _variance(
    one: Floats, covariance: Floats | float, exponent: Floats, kernel: Floats, m: int, d: int, relative: bool
) -> Floats:
    """Variance of the mean of m terms; `one` and `covariance` are in units of K^2 exp(exponent), `kernel` is x . y."""
    m, relative = positive_integer(m, "m"), flag(relative, "relative")
    # Division of Python's integers: both may be large.
    inside = (one + coupled_pairs(m, d) / m * covariance) / m
    with silent():
        result = np.where(inside == 0, 0.0, inside * np.exp(exponent if relative else exponent + 2 * kernel))
    return in_range(np.asarray(np.maximum(result, 0.0)), "x, y")


def _pairs_of(x: Real[ArrayLike, "... d"], y: Real[ArrayLike, "... d"]) -> tuple[Floats, Floats, int]:
    """|x + y|^2, x . y and d."""
    x, y = floats(x, "x", at_least=1), floats(y, "y", at_least=1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"x, y: expected the same last axis d, got x {describe(x)} and y {describe(y)}")
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise ValueError(f"x, y: expected shapes that broadcast, got {x.shape} and {y.shape}") from None
    with silent():
        square = np.sum((x + y) ** 2, axis=-1)
        kernel = np.sum(x * y, axis=-1)
    return in_range(square, "x, y"), in_range(kernel, "x, y"), x.shape[-1]


def _square(square: Real[ArrayLike, "*shape"]) -> Floats:
    square = floats(square, "square")
    if np.any(square < 0):
        raise ValueError(f"square: expected squared lengths of at least 0, got {square.min()}")
    return square


def _is_coupled(coupling: str, d: int, known: tuple[str, ...] = COUPLINGS[:2]) -> bool:
    """Whether two rows of a block exist and are not independent."""
    return one_of(coupling, known, "coupling") != "independent" and d > 1


def _of_two_rows(d: int) -> int:
    d = positive_integer(d, "d")
    if d == 1:
        raise ValueError("d: expected at least 2, so that a block has two rows, got 1")
    return d
