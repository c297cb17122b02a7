"""Section 5.1.6: leading terms and crossovers of operation counts, for symbolic n and d."""

from __future__ import annotations

from typing import Any

import sympy as sp

from attnmath.cost import layer_operations


def leading_term(expression: Any, *symbols: sp.Symbol) -> sp.Expr:
    """Terms of highest total degree in the symbols.

    >>> n, d = sp.symbols("n d")
    >>> leading_term(n**2 * (2 * d - 1), n, d)
    2*d*n**2
    """
    polynomial = sp.Poly(sp.expand(expression), *symbols)
    top = polynomial.total_degree()
    return sum(
        (c * sp.prod(s**e for s, e in zip(symbols, powers, strict=True)) for powers, c in polynomial.terms()
         if sum(powers) == top), start=sp.Integer(0))  # fmt: skip


def crossover(d: Any, *, heads: Any = 1, projections: int = 3) -> sp.Expr:
    """Length n at which the three stages take exactly as many operations as the projections.

    d, heads : as in `attnmath.cost.layer_operations`. Both parts are n times a polynomial of degree 1
    or less in n, so there is one such length.

    >>> crossover(sp.Symbol("d", positive=True))
    2*(3*d**2 - d + 1)/(4*d + 5)
    """
    n = sp.Symbol("n", positive=True)
    parts = layer_operations(n, sp.sympify(d), heads=sp.sympify(heads), projections=projections)
    balance = sp.Poly(sp.cancel((parts["stages"] - parts["projections"]) / n), n)
    slope, constant = balance.all_coeffs()
    return sp.factor(-constant / slope)
