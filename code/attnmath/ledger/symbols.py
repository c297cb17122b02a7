"""Decide whether a symbolic expression is zero, and find a point that shows when it is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import sympy as sp

# Points at which a residual is evaluated: small, distinct, and generic enough that a
# non-zero polynomial of the degrees met in this book does not vanish at all of them.
_POINTS = [sp.Rational(p, q) for p, q in [(7, 3), (5, 2), (11, 7), (3, 1), (13, 5), (2, 1), (17, 4), (9, 8)]]
_DIGITS = 40


def expressions(value: Any, argument: str) -> list[sp.Expr]:
    """Flatten an expression, a matrix, a mapping or an iterable of them into a list of expressions."""
    if isinstance(value, sp.MatrixBase):
        return [entry for entry in value]
    if isinstance(value, sp.Equality):
        return expressions(value.lhs, argument) + [-e for e in expressions(value.rhs, argument)]
    if isinstance(value, Mapping):
        return [e for item in value.values() for e in expressions(item, argument)]
    if isinstance(value, sp.Expr) and not value.has(sp.Float):
        return [value]
    if isinstance(value, int) and not isinstance(value, bool):
        return [sp.Integer(value)]
    if isinstance(value, Iterable) and not isinstance(value, str | sp.Basic):
        return [e for item in value for e in expressions(item, argument)]
    raise TypeError(
        f"{argument}: expected an exact sympy expression, a matrix or a collection of them, "
        f"got {type(value).__name__} {value!r}"
    )


def vanishes(expression: sp.Expr) -> bool:
    """Return True when sympy reduces the expression to exactly 0 (never on numerical grounds)."""
    if expression == 0:
        return True
    for reduce in (sp.expand, sp.simplify, lambda e: sp.simplify(e.rewrite(sp.erf)), sp.gammasimp):
        if reduce(expression) == 0:
            return True
    return False


def witness(expression: sp.Expr) -> dict[sp.Symbol, sp.Expr] | None:
    """Find a point, within the symbols' assumptions, at which the expression is certainly not zero."""
    symbols = sorted(expression.free_symbols, key=str)
    for shift in range(len(_POINTS)):
        point = {s: _value(s, k + shift) for k, s in enumerate(symbols)}
        value = expression.subs(point).doit()
        if not value.is_number:
            continue
        number = sp.N(value, _DIGITS)
        if number.is_finite and abs(number) > sp.Float(10) ** (-_DIGITS // 2):
            return point
    return None


def _value(symbol: sp.Symbol, k: int) -> sp.Expr:
    """A generic value that satisfies the symbol's assumptions."""
    integers = range(2 + k % 5, 60)
    candidates: Iterable[Any] = [*(_POINTS[(k + j) % len(_POINTS)] for j in range(len(_POINTS))), *integers]
    both = (sign * sp.sympify(c) for c in candidates for sign in (1, -1))
    for value in islice(both, 200):
        if all(getattr(value, f"is_{name}", None) == truth for name, truth in symbol.assumptions0.items()):
            return value
    return sp.Rational(1, 3)
