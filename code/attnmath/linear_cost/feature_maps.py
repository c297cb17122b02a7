"""Feature maps of linear attention: cosine, polynomial, and the Taylor series of exp.

A feature map phi makes a kernel phi(x) . phi(y). Here is the way from the kernel to the map, for every polynomial in
x . y whose coefficients are not negative (the report's sections 2.1.4 and 3.2.1 to 3.2.3). The random maps of the
exponential are in `attnmath.linear_cost.random_features`; `attnmath.linear_cost.kernels` takes each map as its
`feature`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Float, Real
from numpy.typing import NDArray
from scipy import special

from attnmath.arrays import AnyArray, Array, ArrayLike, Numpy
from attnmath.checks import (
    binary_exponents,
    concat,
    constant,
    describe,
    finite,
    fits_memory,
    flag,
    floats,
    in_range,
    non_negative_integer,
    positive,
    positive_integer,
    power_of_two,
    real_array,
    rounded,
    scalar,
    silent,
    untraced,
    wide,
)

Numbers = NDArray[Any]

#: Largest order of a series: 170! is the last factorial within the range of float64.
MOST_TERMS = 170

#: Of d and the order, the smaller one that `feature_count` takes at most: it has as many factors.
MOST_FACTORS = 10_000


def feature_count(d: int, order: int) -> int:
    """Number of monomials of d variables and degree at most `order`: C(d + order, order), exactly.

    It counts for every order, those included that are too large for the maps below; d and the order may not both be
    above 10,000.

    >>> feature_count(2, 2), feature_count(64, 2), feature_count(64, 4)
    (6, 2145, 814385)
    >>> feature_count(2, order_needed(300.0, 0.01))
    581581
    """
    d, order = positive_integer(d, "d"), non_negative_integer(order, "order")
    if min(d, order) > MOST_FACTORS:
        raise ValueError(f"d, order: expected one of them to be at most {MOST_FACTORS}, got {d} and {order}")
    return math.comb(d + order, order)


def power_series_features(
    x: Real[ArrayLike[Array], "... d"], coefficients: Real[ArrayLike, "p"]
) -> Float[Array, "... r"]:
    """Features of the kernel sum_k c_k (x . y)^k: all monomials of degree at most p, r = C(d + p, p) of them.

    The monomial x^a = x_1^(a_1) ... x_d^(a_d) of degree k has the factor sqrt(c_k k! / (a_1! ... a_d!)), by the
    multinomial theorem. Degrees follow one another; those with c_k = 0 are left out of the count.
    coefficients : c_0, ..., c_p, none of them negative.

    >>> import numpy as np
    >>> x, y = np.asarray([1.0, 2.0]), np.asarray([3.0, -1.0])
    >>> phi = power_series_features([x, y], [0.0, 0.0, 1.0])  # the square of x . y = 1
    >>> phi.shape, round(float(phi[0] @ phi[1]), 12)
    ((2, 3), 1.0)
    """
    c = floats(coefficients, "coefficients", ndim=1)
    if bool(np.any(c < 0)) or not bool(np.any(c > 0)):
        raise ValueError(f"coefficients: expected non-negative numbers, not all 0, got {c.tolist()}")
    if len(c) - 1 > MOST_TERMS:
        raise ValueError(f"coefficients: expected at most {MOST_TERMS + 1} of them, got {len(c)}")
    return _weighted(x, _of_coefficients(c), "x, coefficients")


def taylor_features(x: Real[ArrayLike[Array], "... d"], order: int) -> Float[Array, "... r"]:
    """Features of the Taylor polynomial of exp: phi(x) . phi(y) = sum over k <= order of (x . y)^k / k!.

    They are the monomials x^a / sqrt(a_1! ... a_d!) of degree at most `order`, C(d + order, order) of them.

    >>> import numpy as np
    >>> taylor_features([2.0, 3.0], 2) * np.sqrt([1, 1, 1, 2, 1, 2])  # 1, x_1, x_2, x_1^2, x_1 x_2, x_2^2
    array([1., 2., 3., 4., 6., 9.])
    """
    order = non_negative_integer(order, "order", at_most=MOST_TERMS)
    return _weighted(x, np.zeros(order + 1), "x, order")


def polynomial_features(x: Real[ArrayLike[Array], "... d"], order: int) -> Float[Array, "... r"]:
    """Features of the polynomial kernel (1 + x . y)^order: C(d + order, order) monomials.

    >>> import numpy as np
    >>> polynomial_features([3.0], 2) / np.sqrt([1, 2, 1])  # 1, x, x^2 with the roots of binomial coefficients
    array([1., 3., 9.])
    """
    order = non_negative_integer(order, "order", at_most=MOST_TERMS)
    return _weighted(x, _falling_factorials(order), "x, order")


def componentwise_powers(x: Real[ArrayLike[Array], "... d"], order: int) -> Float[Array, "... r"]:
    """The report's map [1, x, x^2, ...] taken component by component: 1, then all x_m, all x_m^2, ...; 1 + d order.

    Its kernel is 1 + sum_m sum_k (x_m y_m)^k. No component of x meets another component of y.

    >>> componentwise_powers([2.0, 3.0], 2).tolist()
    [1.0, 2.0, 3.0, 4.0, 9.0]
    """
    order = non_negative_integer(order, "order", at_most=MOST_TERMS)
    x = finite(real_array(x, "x", at_least=1), "x")
    fits_memory("x, order", *x.shape[:-1], 1 + order * int(x.shape[-1]))
    xp = array_namespace(x)
    with silent():
        (x,) = wide(given := x)
        powers = [xp.ones_like(x[..., :1])] + [x**k for k in range(1, order + 1)]
        return rounded(concat(powers, axis=-1), given.dtype, "x, order")


def cosine_reweighted(x: Real[ArrayLike[Array], "... n d"], length: int | None = None) -> Float[Array, "... n 2*d"]:
    """The features of cosFormer (Qin et al. 2022): relu(x_i) cos(pi i / 2M), then relu(x_i) sin(pi i / 2M).

    As `feature` of `kernels.linear_attention` they give the weights relu(q_i) . relu(k_j) cos(pi (i - j) / 2M), which
    no distance below M makes negative. Row i is position i.
    length : M, at least the number n of rows, and n unless given; give it where queries and keys differ in number.

    >>> import numpy as np
    >>> phi = cosine_reweighted(np.asarray([[2.0], [3.0], [-1.0]]))
    >>> np.round(phi @ phi.T, 3)  # 6 cos(pi / 6) beside the diagonal
    array([[4.   , 5.196, 0.   ],
           [5.196, 9.   , 0.   ],
           [0.   , 0.   , 0.   ]])
    """
    x = finite(real_array(x, "x", at_least=2), "x")
    n = int(x.shape[-2])
    length = n if length is None else positive_integer(length, "length")
    if length < n:
        raise ValueError(f"length: expected at least {n}, the number of rows of x ({describe(x)}), got {length}")
    xp = array_namespace(x)
    kept = xp.where(x > 0, x, xp.zeros_like(x))
    turned = [xp.astype(xp.asarray(of, device=device(x)), x.dtype) for of in _quarter_turn(n, length)]
    with silent():
        return concat([kept * factor for factor in turned], axis=-1)


def truncated_exponential(s: Real[ArrayLike[Array], "*shape"], order: int) -> Float[Array, "*shape"]:
    """The Taylor polynomial T_p(s) = sum over k <= p of s^k / k!, p = order.

    Positive everywhere for even orders; for odd ones it has one zero, below 0. Even orders are right up to
    about 2 p eps of their value, at every s: where the terms of the sum cancel, the remainder takes its place.

    >>> truncated_exponential([-1.0, 0.0, 2.0], 2).tolist()
    [0.5, 1.0, 5.0]
    >>> truncated_exponential([-36.0], 170) / np.exp([-36.0])
    array([1.])
    """
    order = non_negative_integer(order, "order", at_most=MOST_TERMS)
    s = finite(real_array(s, "s"), "s")
    xp, dtype = array_namespace(s), s.dtype
    (s,) = wide(s)
    cancels = (s < -1) & (s > -(order + 1))
    with silent():
        total = xp.ones_like(s)
        for k in range(order, 0, -1):
            total = 1 + s / k * total
        if bool(xp.any(cancels)):
            total = xp.where(cancels, _by_remainder(xp.where(cancels, -s, xp.ones_like(s)), order), total)
        return rounded(total, dtype, "s, order")


def _by_remainder(x: AnyArray, order: int) -> AnyArray:
    """T_p(-x) = e^-x + (-1)^p x^(p+1) / (p+1)! r_p for 0 < x <= p + 1, both terms positive for even p = order.

    r_p = (p + 1) * integral from 0 to 1 of (1 - u)^p e^(-x u) du, which is 1F1(1; p + 2; -x). By parts
    r_(k-1) = 1 - x r_k / (k + 1). Downwards each step multiplies an error by x / (k + 1) and takes at most half from 1.
    """
    xp = array_namespace(x)
    # Steps until the error of the start is below the rounding of float64, at the largest x.
    top = order + 1
    while (top - order) * math.log(order + 1) - math.lgamma(top + 2) + math.lgamma(order + 2) > -37:
        top += 1
    ratio = (top + 1) / (top + 1 + x)
    for k in range(top, order, -1):
        ratio = 1 - x / (k + 1) * ratio
    # One power, since x^(p+1) and (p+1)! may both be too large.
    unit = math.exp(math.lgamma(order + 2) / (order + 1))
    return xp.exp(-x) + (-1) ** order * (x / unit) ** (order + 1) * ratio


def truncation_bound(s: Real[ArrayLike, "*shape"], order: int, *, relative: bool = False) -> Float[Numpy, "*shape"]:
    """Bound on the error of the Taylor polynomial: |e^s - T_p(s)| <= |s|^(p+1) / (p+1)! e^max(s, 0), p = order.

    relative : the bound on |T_p(s) / e^s - 1|, which has e^max(-s, 0) in place of e^max(s, 0).

    >>> truncation_bound([0.5, -0.5], 2).round(6).tolist()
    [0.034348, 0.020833]
    """
    order, relative = non_negative_integer(order, "order"), flag(relative, "relative")
    s = floats(s, "s")
    with silent():
        return np.asarray(in_range(np.exp(_log_bound(s, order, -1.0 if relative else 1.0)), "s, order"))


def order_needed(largest: float, error: float) -> int:
    """Smallest order whose bound on the relative error of exp is at most `error` for all |s| <= largest.

    The bound is `truncation_bound` with relative=True, at s = -largest, where it is largest. It holds in exact
    arithmetic: with the rounding eps of a dtype a product of features may be off by a share of eps e^(2 largest).
    `feature_count` takes every order found here; the maps and `truncated_exponential` take those up to 170.

    >>> order_needed(1.0, 0.01), order_needed(10.0, 0.01)
    (5, 37)
    """
    largest, error = positive(largest, "largest", at_most=1e6), positive(error, "error")
    # The order 4 largest + 3 log(1 / error) is enough, by k! >= (k / e)^k.
    orders = np.arange(4 * largest + 3 * max(-math.log(error), 0) + 2)
    return int(np.argmax(_log_bound(np.asarray(-largest), orders, -1.0) <= math.log(error)))


@untraced
def _falling_factorials(order: int) -> Numbers:
    """The logarithm of p! / (p - k)! for k = 0, ..., p = order."""
    return np.asarray(special.gammaln(order + 1) - special.gammaln(order + 1 - np.arange(order + 1)))


@untraced
def _of_coefficients(c: Numbers) -> Numbers:
    """The logarithm of c_k k! up to the last coefficient that is not 0."""
    c = np.trim_zeros(c, "b")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(c) + special.gammaln(np.arange(1, len(c) + 1)))


@untraced
def _quarter_turn(n: int, length: int) -> tuple[Numbers, Numbers]:
    """Cosines and sines of pi i / 2 length for i < n, one a row, in float64: half precision has no room for i."""
    angles = np.arange(n)[:, None] * (math.pi / 2 / length)
    return np.cos(angles), np.sin(angles)


def _weighted(x: ArrayLike, log_weights: Numbers, names: str) -> AnyArray:
    """The monomials x^a / sqrt(a!), those of degree k times the root of a weight; a degree of weight 0 is left out."""
    x = finite(real_array(x, "x", at_least=1), "x")
    d, top = int(x.shape[-1]), len(log_weights) - 1
    fits_memory(names, *x.shape[:-1], math.comb(d + top, top))
    kept, dtype = np.flatnonzero(np.isfinite(log_weights)).tolist(), x.dtype
    (x,) = wide(x)
    with silent():
        if _in_range_throughout(x, log_weights):
            blocks = _monomials(x, _shares(log_weights))
        else:
            blocks = _by_exponents(x, log_weights)
        return rounded(concat([blocks[k] for k in kept], axis=-1), dtype, names)


@untraced
def _shares(log_weights: Numbers) -> list[float]:
    """The factor of each degree in those above: the whole root of k! may be too large, and 1 / sqrt(a!) too small."""
    degrees, kept = np.arange(len(log_weights)), np.isfinite(log_weights)
    factorials = special.gammaln(degrees + 1)
    between = np.interp(degrees, degrees[kept], (log_weights - factorials)[kept]) + factorials
    shares: list[float] = np.exp(np.diff(np.where(kept, log_weights, between), prepend=0.0) / 2).tolist()
    return shares


def _in_range_throughout(x: AnyArray, log_weights: Numbers) -> bool:
    """Whether no product of fewer factors leaves the range of the numbers where one of more factors is within it."""
    xp = array_namespace(x)
    sizes, limits = xp.abs(constant(x)), xp.finfo(x.dtype)
    top = scalar(xp.max(sizes))
    low = scalar(xp.min(xp.where(sizes > 0, sizes, xp.full_like(sizes, top))))
    if top == 0:
        return True
    shares = _shares(log_weights)
    logs = [math.log(share) if share > 0 else -math.inf for share in shares]
    sums = list(accumulate(logs))
    # The products of the shares and components of one degree, and the same with one component more.
    steps = [(k + more, total) for k, total in enumerate(sums) for more in (0, 1)]
    largest = max(total + k * max(math.log(top), 0.0) for k, total in steps)
    least = min(total + k * min(math.log(low), 0.0) - math.lgamma(k + 1) / 2 for k, total in steps)
    ends = math.log(float(limits.smallest_normal)), math.log(float(limits.max))
    return ends[0] < min(least, *logs) and max(largest, *logs) < ends[1]


def _by_exponents(x: AnyArray, log_weights: Numbers) -> list[AnyArray]:
    """What `_monomials` gives, in double precision, with the powers of two of the numbers kept apart."""
    xp, powers = array_namespace(x), binary_exponents(x)
    mantissas = power_of_two(xp.astype(x, xp.float64), -powers)
    blocks, sums = _monomials(mantissas, [1.0] * len(log_weights)), [xp.zeros_like(powers[..., :1])]
    for parent, component, _ in _children(int(x.shape[-1]), len(log_weights)):
        take = [xp.asarray(index, device=device(x)) for index in (parent, component)]
        sums.append(xp.take(sums[-1], take[0], axis=-1) + xp.take(powers, take[1], axis=-1))
    roots = [0.0 if weight == -math.inf else weight / 2 / math.log(2) for weight in log_weights.tolist()]
    wholes = [math.floor(root) for root in roots]
    return [
        power_of_two(block * 2.0 ** (root - whole), power + whole)
        for block, power, root, whole in zip(blocks, sums, roots, wholes, strict=True)
    ]


@untraced
def _children(d: int, count: int) -> list[tuple[Numbers, Numbers, Numbers]]:
    """How the monomials of each degree from 1 on come from those of one degree less.

    A monomial of degree k is one of degree k - 1, the parent, times a component that does not come before its last
    one; the last number is how often this component then occurs.
    """
    found = []
    last, times = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)  # the last component, how often it occurs
    for _ in range(1, count):
        children = d - last
        parent = np.repeat(np.arange(len(last)), children)
        component = np.arange(len(parent)) - np.repeat(np.cumsum(children) - children, children) + last[parent]
        times = np.where(component == last[parent], times[parent] + 1, 1)
        last = component
        found.append((parent, component, times))
    return found


def _monomials(x: AnyArray, shares: Sequence[float]) -> list[AnyArray]:
    """x^a / sqrt(a!) for all multi-indices a of degree 0, 1, ..., times the shares of all degrees so far.

    The new component's multiplicity m divides by sqrt(m), and these factors make up sqrt(a!). Each degree is one block
    of the last axis.
    """
    xp = array_namespace(x)
    blocks = [xp.ones_like(x[..., :1]) * shares[0]]
    for share, (parent, component, times) in zip(shares[1:], _children(int(x.shape[-1]), len(shares)), strict=True):
        take = [xp.asarray(index, device=device(x)) for index in (parent, component)]
        factors = xp.astype(xp.asarray(_over_roots(share, times), device=device(x)), x.dtype)
        blocks.append(xp.take(blocks[-1], take[0], axis=-1) * xp.take(x, take[1], axis=-1) * factors)
    return blocks


@untraced
def _over_roots(share: float, times: Numbers) -> Numbers:
    return np.asarray(share / np.sqrt(times))


def _log_bound(s: Numbers, order: int | Numbers, sign: float) -> Numbers:
    """The logarithm of |s|^(p+1) / (p+1)! e^max(sign s, 0); -inf at s = 0."""
    with np.errstate(divide="ignore"):
        powers = (order + 1) * np.log(np.abs(s))
    return np.asarray(powers - special.gammaln(order + 2) + np.maximum(sign * s, 0))
