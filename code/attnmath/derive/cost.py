"""Section 5.1.6: the leading terms of operation counts, for symbolic n and d."""

from __future__ import annotations

from typing import Any

import sympy as sp


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
