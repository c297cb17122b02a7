"""Decide whether a line equals another by given rules and algebra; never on numerical grounds alone.

`equal` says yes only to what sympy reduces to exactly 0. `differs` says yes only to what is
certainly not 0, by a point at which the difference is evaluated to forty digits. Between the two
lies what cannot be decided, which is neither.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from attnmath.derive import zero
from attnmath.derive.expectation import E, Var
from attnmath.derive.normal_form import normal_form
from attnmath.derive.rules import Rule

_UNEVALUATED = (E, Var, sp.Sum, sp.Integral, sp.Limit, sp.Derivative, sp.Product, AppliedUndef, sp.Indexed)


def difference(before: Any, after: Any, rules: Sequence[Rule]) -> list[sp.Expr]:
    """Rewrite two lines by the rules, and return what is left of their difference, entry by entry.

    Whatever stays unevaluated (a sum, an expectation, an integral) is a symbol of its own in the
    result, the same wherever it occurs.
    """
    before, after = sp.sympify(before), sp.sympify(after)
    if isinstance(before, sp.MatrixBase) != isinstance(after, sp.MatrixBase):
        return [sp.Integer(1)]
    if isinstance(before, sp.MatrixBase):
        if before.shape != after.shape:
            return [sp.Integer(1)]
        return [d for a, b in zip(before, after, strict=True) for d in difference(a, b, rules)]
    for rule in rules:
        if not rule.on_difference:
            before, after = _rewritten(rule, before), _rewritten(rule, after)
    left = before - after
    for rule in rules:
        if rule.on_difference:
            left = rule.rewrite(left)
    return [_with_symbols(normal_form(left))]


@lru_cache(maxsize=2048)  # a step is checked with its rules, without each of them, and on its mistake
def _rewritten(rule: Rule, line: Any) -> Any:
    return rule.rewrite(line)


def equal(before: Any, after: Any, rules: Sequence[Rule] = ()) -> bool:
    """Return whether the rules and algebra make the lines equal, exactly.

    >>> x = sp.Symbol("x")
    >>> equal((x + 1) ** 2, x**2 + 2 * x + 1), equal((x + 1) ** 2, x**2 + 1)
    (True, False)
    """
    remainders = [r for r in difference(before, after, rules) if r != 0]
    if any(zero.witness(r) is not None for r in remainders):
        return False
    return all(zero.vanishes(r) for r in remainders)


def differs(before: Any, after: Any, rules: Sequence[Rule] = ()) -> bool:
    """Return whether the rules and algebra leave a difference that is certainly not zero.

    >>> x = sp.Symbol("x", positive=True)
    >>> differs(x, x + 1), differs(x, sp.sqrt(x**2))
    (True, False)
    """
    return any(zero.witness(r) is not None for r in difference(before, after, rules) if r != 0)


def is_exceeded(lower: Any, upper: Any, rules: Sequence[Rule] = ()) -> bool:
    """Return whether `lower <= upper` certainly fails: at a drawn point, for sums of two or three terms.

    Points obey the assumptions on the symbols, and expectations are those of variables that take one value. What
    cannot be evaluated (an integral, an unknown function) is not exceeded as far as is known.

    >>> x = sp.Symbol("x", real=True)
    >>> is_exceeded(2 * x, x**2), is_exceeded(2 * x, x**2 + 1)
    (True, False)
    """
    for rule in rules:
        if not rule.on_difference:
            lower, upper = _rewritten(rule, sp.sympify(lower)), _rewritten(rule, sp.sympify(upper))
    draw = random.Random(1)
    for trial in range(_TRIALS):
        gap = _at_a_point(sp.sympify(lower) - sp.sympify(upper), draw, size=2 + trial % 2)
        if gap is None:
            return False
        if gap > sp.Float(10) ** -9:
            return True
    return False


_TRIALS = 200


def _at_a_point(expression: sp.Expr, draw: random.Random, size: int) -> sp.Expr | None:
    """Return the value of an expression at a drawn point, sums of symbolic length cut to `size` terms."""
    bound = {limit[0] for part in expression.atoms(sp.Sum, sp.Product) for limit in part.limits}
    sizes = {s: sp.Integer(size) for s in expression.free_symbols - bound if s.is_integer and s.is_positive}
    certain = expression.replace(E, lambda x: x)  # of a variable that takes one value only
    if certain.has(Var, sp.Integral, sp.Limit, AppliedUndef):
        return None
    whole = certain.subs(sizes).doit()
    points: dict[sp.Basic, sp.Expr] = {}
    for part in sorted(whole.atoms(sp.Indexed) | whole.free_symbols, key=str):
        if isinstance(part, sp.Indexed) or (part.is_Symbol and not isinstance(part, sp.IndexedBase)):
            number = sp.Rational(draw.randint(1, 99), draw.choice((10, 100, 100, 1000)))
            points[part] = number if part.is_positive or part.is_nonnegative else draw.choice((1, -1)) * number
    value = sp.N(whole.xreplace({p: v for p, v in points.items() if isinstance(p, sp.Indexed)}).xreplace(points), 30)
    return value if value.is_real and value.is_finite else None


def _with_symbols(expression: sp.Expr) -> sp.Expr:
    """Replace what stays unevaluated, and indexed components, by symbols."""
    names: dict[sp.Basic, sp.Symbol] = {}

    def name(part: sp.Basic) -> sp.Symbol:
        return names.setdefault(part, sp.Dummy(f"u{len(names)}", real=True, positive=part.is_positive))

    outer = _outermost(expression)
    return expression.xreplace({part: name(part) for part in outer})


def _outermost(expression: sp.Basic) -> set[sp.Basic]:
    if isinstance(expression, _UNEVALUATED):
        return {expression}
    return set().union(*(_outermost(a) for a in expression.args)) if expression.args else set()
