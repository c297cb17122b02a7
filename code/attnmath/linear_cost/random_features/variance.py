"""Exact variances of random-feature estimates of the kernel exp(x . y) (the report's section 2.2.4).

Each function gives the variance of the estimate by *one* standard normal projection w; m independent projections
divide it by m. All are the squared kernel times a function of a vector z, which is x + y (x - y for the
trigonometric features). The relative second moment of a positive feature pair is the exponential of

    sum_l log(1 - 4 a_l) - log(1 - 8 a_l) / 2 + c_l^2 / (1 - 8 a_l),

with c = x + y for one coefficient a (FAVOR+ has a = 0), and c = M x + M^(-T) y in general. It is infinite from
a_l = 1/8 on.

x, y : shapes (..., d), batched over the axes in front.
relative : True divides the variance by the squared kernel, without computing the kernel.
log : True returns the logarithm of the variance, which is in range where the variance is not (-inf for 0).
"""

from __future__ import annotations

import math
from typing import Any

from array_api_compat import array_namespace
from jaxtyping import Float, Real

from attnmath.arrays import AnyArray, Array, ArrayLike
from attnmath.checks import (
    describe,
    finite,
    flag,
    in_range,
    matmul,
    number,
    precision,
    real_array,
    rounded,
    same_dtype,
    scalar,
    silent,
    wide,
)


def trigonometric_variance(
    x: Real[ArrayLike[Array], "... d"], y: Real[ArrayLike[Array], "... d"], *, relative: bool = False, log: bool = False
) -> Float[Array, "..."]:
    """Variance with one w of exp((|x|^2 + |y|^2)/2) cos(w . (x - y)); relative cosh(|x - y|^2) - 1.

    >>> round(float(trigonometric_variance([1.0], [-1.0], relative=True)), 6)
    26.308233
    """
    x, y, dtype = _pair(x, y)
    return _variance_of_two_signs(x, y, x - y, relative, log, dtype)


def positive_variance(
    x: Real[ArrayLike[Array], "... d"], y: Real[ArrayLike[Array], "... d"], *, relative: bool = False, log: bool = False
) -> Float[Array, "..."]:
    """Variance of exp(w . (x + y) - (|x|^2 + |y|^2)/2) (FAVOR+); relative exp(|x + y|^2) - 1.

    >>> float(positive_variance([1.0], [-1.0]))
    0.0
    """
    return gerf_variance(x, y, 0.0, relative=relative, log=log)


def hyperbolic_variance(
    x: Real[ArrayLike[Array], "... d"], y: Real[ArrayLike[Array], "... d"], *, relative: bool = False, log: bool = False
) -> Float[Array, "..."]:
    """Variance of the mean of the positive features at w and at -w, one w; relative cosh(|x + y|^2) - 1.

    >>> round(float(hyperbolic_variance([1.0], [1.0], relative=True)), 6)
    26.308233
    """
    x, y, dtype = _pair(x, y)
    return _variance_of_two_signs(x, y, x + y, relative, log, dtype)


def gerf_variance(
    x: Real[ArrayLike[Array], "... d"],
    y: Real[ArrayLike[Array], "... d"],
    A: float,
    *,
    relative: bool = False,
    log: bool = False,
) -> Float[Array, "..."]:
    """Variance of one product of generalised exponential features (FAVOR++), with the coefficient A < 1/8.

    f(w, x) = (1 - 4A)^(d/4) exp(A |w|^2 + sqrt(1 - 4A) w . x - |x|^2 / 2).

    >>> z = [1.0, 1.0]
    >>> float(gerf_variance(z, z, -0.25)) < float(positive_variance(z, z))
    True
    """
    x, y, dtype = _pair(x, y)
    A = number(A, "A")
    if not -math.inf < A < 0.125:
        raise ValueError(f"A: expected a number below 1/8 (the variance is infinite from there on), got {A}")
    xp = array_namespace(x, y)
    with silent():
        base = x.shape[-1] * math.log1p(4 * A * (4 * A / (1 - 8 * A))) / 2
        return _variance(x, y, base + xp.sum((x + y) ** 2, axis=-1) / (1 - 8 * A), relative, log, dtype)


def sderf_variance(
    x: Real[ArrayLike[Array], "... d"],
    y: Real[ArrayLike[Array], "... d"],
    A: Real[ArrayLike, "d"],
    B: Real[ArrayLike, "d d"],
    *,
    relative: bool = False,
    log: bool = False,
) -> Float[Array, "..."]:
    """Variance of one product of symmetric dense exponential features (FAVOR#): `aderf_variance` with one matrix B.

    >>> round(float(sderf_variance([1.0], [1.0], [0.0], [[1.0]], relative=True)), 6)
    53.59815
    """
    return _dense_variance(x, y, A, {"B": B}, relative, log)


def aderf_variance(
    x: Real[ArrayLike[Array], "... d"],
    y: Real[ArrayLike[Array], "... d"],
    A: Real[ArrayLike, "d"],
    B_q: Real[ArrayLike, "d d"],
    B_k: Real[ArrayLike, "d d"],
    *,
    relative: bool = False,
    log: bool = False,
) -> Float[Array, "..."]:
    """Variance of one product of asymmetric dense exponential features (FAVOR#).

    f(w, x) = D exp(w . A w + w . B_q x + x . C_q x) for the query, B_k and C_k for the key, A diagonal (its entries
    are given) and below 1/8, D = det(I - 4A)^(1/4), C = -B^T (I - 4A)^(-1) B / 2. The features are unbiased if
    B_q^T (I - 4A)^(-1) B_k = I, which is required to the square root of the dtype's precision.

    >>> round(float(aderf_variance([1.0], [4.0], [0.0], [[2.0]], [[0.5]], relative=True)), 4)
    8886109.5205
    """
    return _dense_variance(x, y, A, {"B_q": B_q, "B_k": B_k}, relative, log)


def _dense_variance(
    x: AnyArray, y: AnyArray, A: AnyArray, matrices: dict[str, AnyArray], relative: bool, log: bool
) -> AnyArray:
    given_x = real_array(x, "x", at_least=1)
    x, y, dtype = _pair(x, y)
    d = x.shape[-1]
    A = finite(real_array(A, "A", ndim=1), "A")
    given = {name: finite(real_array(B, name, ndim=2), name) for name, B in matrices.items()}
    same_dtype(x=given_x, A=A, **given)
    allowed = math.sqrt(precision(given_x))
    A, given = wide(A)[0], {name: wide(B)[0] for name, B in given.items()}
    if A.shape[0] != d:
        raise ValueError(f"A: expected {d} entries, one for each axis of x, got {describe(A)}")
    for name, B in given.items():
        if tuple(B.shape) != (d, d):
            raise ValueError(f"{name}: expected a matrix of shape {(d, d)}, got {describe(B)}")
    xp = array_namespace(x, y, A)
    if not bool(xp.all(A < 0.125)):
        raise ValueError(f"A: expected entries below 1/8 (the variance is infinite from there on), got {xp.max(A)}")
    with silent():
        root = xp.sqrt(1 - 4 * A)[:, None]
        first, *others = (in_range(B / root, f"A, {name}") for name, B in given.items())
        second = others[0] if others else first
        eye = xp.eye(d, dtype=x.dtype, device=getattr(x, "device", None))
        off = in_range(matmul(xp.matrix_transpose(first), second) - eye, "A, " + ", ".join(given))
        if (worst := scalar(xp.max(xp.abs(off)))) > allowed:
            left, right = (*given, *given)[:2]
            raise ValueError(f"A, {', '.join(given)}: expected {left}^T (I - 4A)^(-1) {right} = I, off by {worst:.3g}")
        c = matmul(x, xp.matrix_transpose(first)) + matmul(y, xp.matrix_transpose(second))
        base = xp.sum(xp.log1p(4 * A * (4 * A / (1 - 8 * A)))) / 2
        return _variance(x, y, base + xp.sum(c**2 / (1 - 8 * A), axis=-1), relative, log, dtype)


def _variance(x: AnyArray, y: AnyArray, log_second: AnyArray, relative: bool, log: bool, dtype: Any) -> AnyArray:
    """Variance from the logarithm t >= 0 of the relative second moment: e^t - 1 = e^t (1 - e^(-t))."""
    xp = array_namespace(x, y)
    log_scale = _log_scale(x, y, in_range(log_second, "x, y"), relative)
    if flag(log, "log"):
        return _rounded_log(log_scale + _log(-xp.expm1(-log_second)), dtype)
    if relative:
        return rounded(xp.expm1(log_second), dtype, "x, y")
    return rounded(xp.exp(log_scale) * -xp.expm1(-log_second), dtype, "x, y")


def _variance_of_two_signs(x: AnyArray, y: AnyArray, z: AnyArray, relative: bool, log: bool, dtype: Any) -> AnyArray:
    """Variance with the relative value cosh(s) - 1 = e^s (1 - e^(-s))^2 / 2, where s = |z|^2."""
    xp = array_namespace(x, y)
    with silent():
        square = in_range(xp.sum(z**2, axis=-1), "x, y")
        log_scale = _log_scale(x, y, square, relative)
        rest = -xp.expm1(-square)
        if flag(log, "log"):
            return _rounded_log(log_scale + 2 * _log(rest) - math.log(2), dtype)
        # The square of a small rest may underflow.
        return rounded((xp.exp(log_scale / 2) * rest) ** 2 / 2, dtype, "x, y")


def _rounded_log(log: AnyArray, dtype: Any) -> AnyArray:
    """Return a logarithm, -inf for 0, in the dtype of the arguments."""
    xp = array_namespace(log)
    rounded(xp.where(log == -math.inf, xp.zeros_like(log), log), dtype, "x, y")
    return rounded(log, dtype)


def _log_scale(x: AnyArray, y: AnyArray, log_second: AnyArray, relative: bool) -> AnyArray:
    if flag(relative, "relative"):
        return log_second
    xp = array_namespace(x, y)
    return in_range(log_second + 2 * xp.sum(x * y, axis=-1), "x, y")


def _log(value: AnyArray) -> AnyArray:
    """Logarithm of non-negative numbers; -inf for 0, without a warning."""
    xp = array_namespace(value)
    above = value > 0
    return xp.where(above, xp.log(xp.where(above, value, xp.ones_like(value))), -math.inf)


def _pair(x: AnyArray, y: AnyArray) -> tuple[AnyArray, AnyArray, Any]:
    """Return x and y in at least single precision, and the dtype that they came in."""
    x, y = (finite(real_array(a, name, at_least=1), name) for a, name in ((x, "x"), (y, "y")))
    same_dtype(x=x, y=y)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"x, y: expected the same last axis d, got x {describe(x)} and y {describe(y)}")
    xp = array_namespace(x, y)
    try:
        xp.broadcast_arrays(x, y)
    except (ValueError, RuntimeError):
        raise ValueError(f"x, y: expected shapes that broadcast, got x {describe(x)} and y {describe(y)}") from None
    return *wide(x, y), x.dtype
