"""Moments of sums of independent random variables, for symbolic numbers of terms.

Nothing here knows a distribution: a variable enters through its moments alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.utilities.iterables import partitions

Moment = Callable[[int], sp.Expr]


def raw_moments(mean: Any, sigma: Any, skewness: Any = 0, kurtosis: Any = None) -> list[sp.Expr]:
    """Raw moments [1, E x, E x^2, E x^3, E x^4] of a variable with the given standardised shape.

    kurtosis : E[((x - mean)/sigma)^4]; a free symbol unless given.

    >>> mu, s = sp.symbols("mu sigma")
    >>> raw_moments(mu, s)[2]
    mu**2 + sigma**2
    """
    standard = [1, 0, 1, skewness, sp.Symbol("kappa", positive=True) if kurtosis is None else kurtosis]
    return [
        sp.expand(sum(sp.binomial(r, j) * mean ** (r - j) * sigma**j * standard[j] for j in range(r + 1)))
        for r in range(5)
    ]


def moment_of_sum(order: int, d: Any, moment: Moment) -> sp.Expr:
    """E[(X_1 + ... + X_d)^order] for d independent copies of X, with d a symbol.

    Expanding the power gives one term for each choice of an index for every factor. Choices
    that repeat indices in the same pattern have the same expectation, and a pattern with b
    distinct indices occurs d (d-1) ... (d-b+1) times for each way to split the factors into
    b blocks. Summing over the patterns is exact for every integer d >= 0.

    moment : maps r to E[X^r].

    >>> d, v = sp.symbols("d v")
    >>> sp.factor(moment_of_sum(2, d, lambda r: {1: 0, 2: v}[r]))
    d*v
    """
    total = sp.Integer(0)
    for pattern in partitions(order):
        blocks = sum(pattern.values())
        ways = sp.factorial(order)
        for size, count in pattern.items():
            ways /= sp.factorial(size) ** count * sp.factorial(count)
        expected = sp.prod(sp.sympify(moment(size)) ** count for size, count in pattern.items())
        total += ways * sp.expand(sp.ff(d, blocks), func=True) * expected
    return sp.expand(total)
