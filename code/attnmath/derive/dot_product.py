"""Section 5.1.4: moments of the dot product q.k = sum_m q_m k_m, for symbolic d_k and sigma."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp

from attnmath.derive.moments import central_moments, expectation, moment_of_sum, raw_moments


def dot_product_moments(d_k: Any, q: Sequence[Any], k: Sequence[Any]) -> list[sp.Expr]:
    """Raw moments [1, E s, ..., E s^4] of s = q.k.

    q, k : raw moments up to order 4 of one component of either vector. All components of q
    and k are independent, so E[(q_m k_m)^r] = E[q_m^r] E[k_m^r].
    """
    return [sp.Integer(1)] + [moment_of_sum(r, d_k, lambda j: q[j] * k[j]) for r in range(1, 5)]


def mean_of_product(mean_q: Any, mean_k: Any) -> sp.Expr:
    """E[q_m k_m] for independent components, equation (5.1.4) when a mean is 0."""
    q, k = sp.symbols("q k")
    return expectation(q * k, {q: [1, mean_q], k: [1, mean_k]})


def variance_of_dot_product(d_k: Any, sigma: Any, *, sigma_k: Any = None, mean_q: Any = 0, mean_k: Any = 0) -> sp.Expr:
    """Var(q.k) for independent components, equation (5.1.5) with the defaults.

    sigma : standard deviation of the components of q, and of k unless `sigma_k` is given.

    >>> d, s = sp.symbols("d_k sigma", positive=True)
    >>> variance_of_dot_product(d, s)
    d_k*sigma**4
    """
    q = raw_moments(mean_q, sigma)
    k = raw_moments(mean_k, sigma if sigma_k is None else sigma_k)
    return sp.factor(central_moments(dot_product_moments(d_k, q, k))[2])


def shape_of_dot_product(d_k: Any, q: Sequence[Any], k: Sequence[Any]) -> tuple[sp.Expr, sp.Expr]:
    """Skewness and excess kurtosis of q.k, from the raw moments of one component of each.

    >>> d, s, m = sp.symbols("d_k sigma kappa", positive=True)
    >>> shape_of_dot_product(d, raw_moments(0, s), raw_moments(0, s))
    (0, (kappa**2 - 3)/d_k)
    """
    _, _, m2, m3, m4 = central_moments(dot_product_moments(d_k, q, k))
    return sp.simplify(m3 / m2 ** sp.Rational(3, 2)), sp.factor(sp.simplify(m4 / m2**2 - 3))


def variance_with_correlations(d_k: Any, sigma: Any, within_q: Any, within_k: Any) -> sp.Expr:
    """Var(q.k) for independent centred vectors whose components are equally correlated.

    within_q, within_k : correlation of any two components of q, and of k. There are d_k equal
    pairs of indices and d_k (d_k - 1) unequal ones; q and k are independent, so
    E[q_m k_m q_l k_l] = E[q_m q_l] E[k_m k_l].
    """
    same = sigma**2 * sigma**2
    unequal = within_q * sigma**2 * within_k * sigma**2
    return sp.factor(d_k * same + d_k * (d_k - 1) * unequal)


def moments_of_correlated_pair(rho: Any, sigma: Any) -> tuple[sp.Expr, sp.Expr]:
    """Mean and variance of q_m k_m for a Gaussian pair with correlation rho.

    The pair is k_m = rho q_m + sqrt(1 - rho^2) e_m with e_m an independent copy of q_m.
    """
    q, e = sp.symbols("q e")
    gaussian = raw_moments(0, sigma, kurtosis=3)
    product = q * (rho * q + sp.sqrt(1 - rho**2) * e)
    first, second = (expectation(product**r, {q: gaussian, e: gaussian}) for r in (1, 2))
    return sp.simplify(first), sp.factor(sp.simplify(second - first**2))


def cosine_second_moment(d: Any) -> sp.Expr:
    """E[cos^2] between independent isotropic directions in R^d: a ratio of beta integrals.

    The density of the cosine is proportional to (1 - t^2)^((d-3)/2); with u = t^2 the second
    moment is B(3/2, (d-1)/2) / B(1/2, (d-1)/2).

    >>> cosine_second_moment(sp.Symbol("d", positive=True))
    1/d
    """
    half = sp.Rational(1, 2)
    ratio = sp.beta(3 * half, (d - 1) / 2) / sp.beta(half, (d - 1) / 2)
    return sp.gammasimp(ratio.rewrite(sp.gamma))
