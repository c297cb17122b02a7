"""Decide whether a symbolic expression is zero, and find a point that shows when it is not."""

from __future__ import annotations

from typing import Any

import sympy as sp

from linewise.derive.exact import exact

# Points at which a residual is evaluated: small, distinct, and generic enough that a
# non-zero polynomial of the degrees met in this book does not vanish at all of them.
_POINTS = [sp.Rational(p, q) for p, q in [(7, 3), (5, 2), (11, 7), (3, 1), (13, 5), (2, 1), (17, 4), (9, 8)]]
_DIGITS = 40


def vanishes(expression: sp.Expr) -> bool:
    """Return True when sympy reduces the expression to exactly 0 (never on numerical grounds)."""
    if expression == 0:
        return True
    if sp.expand(expression).as_dummy() == 0:  # sums that differ by the name of their index only
        return True
    # Rational functions first: that is quick, and decides more than half of what comes here.
    for reduce in (_as_quotient, sp.simplify, lambda e: sp.simplify(e.rewrite(sp.erf)), sp.gammasimp):
        if reduce(expression) == 0:
            return True
    return False


def _as_quotient(expression: sp.Expr) -> sp.Expr:
    return sp.cancel(sp.together(expression))


def witness(expression: sp.Expr) -> dict[sp.Symbol, sp.Expr] | None:
    """Find a point, within the symbols' assumptions, at which the expression is certainly not zero."""
    symbols = sorted((s for s in expression.free_symbols if s.is_commutative and s.is_scalar), key=str)
    for shift in range(len(_POINTS)):
        point = {s: _value(s, k + shift) for k, s in enumerate(symbols)}
        value = expression.subs(point).doit()
        number = sp.N(value.replace(sp.matrices.expressions.matexpr.MatrixElement, _entry), _DIGITS)
        if number.is_number and number.is_finite and abs(number) > sp.Float(10) ** (-_DIGITS // 2):
            return point
    return None


def _entry(matrix: Any, row: Any, column: Any) -> sp.Expr:
    """A generic number for the entry of a matrix symbol, the same wherever that entry stands."""
    return sp.Rational(sum(map(ord, str(matrix))) + 7 * row + 13 * column**2, 11)


def _value(symbol: sp.Symbol, k: int) -> sp.Expr:
    """A generic value that satisfies the symbol's assumptions; an index that may be 0 stays below 2."""
    if symbol.is_integer and symbol.is_nonnegative and not symbol.is_positive:
        return sp.Integer(k % 2)
    candidates = [*(_POINTS[(k + j) % len(_POINTS)] for j in range(len(_POINTS))), *range(2 + k % 5, 60)]
    for value in (sign * exact(c) for c in candidates for sign in (1, -1)):
        if all(getattr(value, f"is_{name}", None) == truth for name, truth in symbol.assumptions0.items()):
            return value
    return sp.Rational(1, 3)
