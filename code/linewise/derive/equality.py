"""Decide whether a line equals another by given rules and algebra; never on numerical grounds alone.

`equal` says yes only to what sympy reduces to exactly 0. `differs` says yes only to what is
certainly not 0, by a point at which the difference is evaluated to forty digits. Between the two
lies what cannot be decided, which is neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from linewise.derive import zero
from linewise.derive.exact import exact
from linewise.derive.expectation import E, Var
from linewise.derive.matrices import Inner
from linewise.derive.normal_form import normal_form
from linewise.derive.points import NO_VALUE, gaps
from linewise.derive.rules import Rule

_UNEVALUATED = (E, Var, Inner, sp.Sum, sp.Integral, sp.Limit, sp.Derivative, sp.Product, AppliedUndef, sp.Indexed)


def difference(before: Any, after: Any, rules: Sequence[Rule]) -> list[sp.Expr]:
    """Rewrite two lines by the rules, and return what is left of their difference, entry by entry.

    Whatever stays unevaluated (a sum, an expectation, an integral) is a symbol of its own in the
    result, the same wherever it occurs.
    """
    before, after = exact(before), exact(after)
    if isinstance(before, sp.MatrixBase) != isinstance(after, sp.MatrixBase):
        return [sp.Integer(1)]
    if isinstance(before, sp.MatrixBase):
        if before.shape != after.shape:
            return [sp.Integer(1)]
        return [d for a, b in zip(before, after, strict=True) for d in difference(a, b, rules)]
    before, after = _evaluated(before, rules), _evaluated(after, rules)
    left = before - after
    for rule in rules:
        if rule.on_difference:
            left = rule.rewrite(left)
    return [_with_symbols(normal_form(left))]


def _evaluated(line: Any, rules: Sequence[Rule]) -> Any:
    """Apply the rules to a line: first those that tell what a symbol stands for, then the others in their order."""
    for rule in sorted(rules, key=lambda rule: not rule.tells):
        if not rule.on_difference:
            line = _rewritten(rule, line)
    return line


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

    Sums of symbolic length are evaluated with two and three terms. Unequal expectations, integrals and unknown
    functions count as unequal numbers, since nothing more is known of them.

    >>> x = sp.Symbol("x", positive=True)
    >>> differs(x, x + 1), differs(x, sp.sqrt(x**2))
    (True, False)
    """
    if not any(zero.witness(r) is not None for r in difference(before, after, rules) if r != 0):
        return False
    if isinstance(before, sp.MatrixBase):
        return before.shape != exact(after).shape or any(
            _unequal(a, b, rules) for a, b in zip(before, after, strict=True)
        )
    return _unequal(before, after, rules)


def _unequal(one: Any, other: Any, rules: Sequence[Rule]) -> bool:
    """Return whether two lines have different values at a drawn point, or cannot be evaluated at any."""
    one, other = _evaluated(exact(one), rules), _evaluated(exact(other), rules)
    if one.has(E, *_UNKNOWN) or other.has(E, *_UNKNOWN):
        return True
    evaluated = False
    for gap in gaps(one, other):
        evaluated = True
        if abs(gap) > _ROUNDING:
            return True
    return not evaluated


def is_exceeded(lower: Any, upper: Any, rules: Sequence[Rule] = ()) -> bool:
    """Return whether `lower <= upper` certainly fails: at a drawn point, for sums of a few terms.

    Points obey the assumptions on the symbols, and expectations are those of variables that take one value. What
    cannot be evaluated (an integral, an unknown function) is not exceeded as far as is known.

    >>> x = sp.Symbol("x", real=True)
    >>> is_exceeded(2 * x, x**2), is_exceeded(2 * x, x**2 + 1)
    (True, False)
    """
    lower, upper = _evaluated(exact(lower), rules), _evaluated(exact(upper), rules)
    lower, upper = lower.replace(E, lambda x: x), upper.replace(E, lambda x: x)
    if lower.has(*_UNKNOWN) or upper.has(*_UNKNOWN):
        return False
    return any(gap > _ROUNDING for gap in gaps(lower, upper))


_ROUNDING = sp.Float(10) ** -9
_UNKNOWN = (Var, *NO_VALUE)


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
