"""Decide whether a line equals another by given rules and algebra; never on numerical grounds alone.

`equal` says yes only to what sympy reduces to exactly 0. `differs` says yes to what has another number in a model of
what is assumed, and where no model has a number, to what rules and algebra do not make equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from linewise.derive import zero
from linewise.derive.assumptions import Assumption, remembering
from linewise.derive.exact import exact
from linewise.derive.expectation import E, Var
from linewise.derive.matrices import Inner
from linewise.derive.models import verdicts
from linewise.derive.normal_form import normal_form
from linewise.derive.rule import Rule

_UNEVALUATED = (
    E, Var, Inner, sp.Sum, sp.Integral, sp.Limit, sp.Derivative, sp.Product, sp.Subs, sp.Lambda, AppliedUndef,
    sp.Indexed,
)  # fmt: skip


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
    return [_with_symbols(normal_form(_left(before, after, rules)))]


def remainder(before: Any, after: Any, rules: Sequence[Rule]) -> list[sp.Expr]:
    """Return what the rules leave of the difference of two lines, entry by entry, for people to read.

    >>> x, y = sp.symbols("x y")
    >>> remainder(sp.exp(x) * y, y, [])
    [y*exp(x) - y]
    """
    if isinstance(before, sp.MatrixBase) or isinstance(after, sp.MatrixBase):
        if not isinstance(before, sp.MatrixBase) or not isinstance(after, sp.MatrixBase) or before.shape != after.shape:
            return []
        return [d for a, b in zip(before, after, strict=True) for d in remainder(a, b, rules)]
    left = sp.expand(_left(before, after, rules))
    return [left] if left != 0 else []


def _left(before: Any, after: Any, rules: Sequence[Rule]) -> Any:
    """Rewrite two lines by the rules, and return their difference."""
    left = _evaluated(before, rules) - _evaluated(after, rules)
    for rule in rules:
        if rule.on_difference:
            left = rule.rewrite(left)
    return left


def _evaluated(line: Any, rules: Sequence[Rule]) -> Any:
    """Apply the rules to a line: first those that tell what a symbol stands for, then the others in their order."""
    for rule in sorted(rules, key=lambda rule: not rule.tells):
        if not rule.on_difference:
            line = _rewritten(rule, line)
    return line


@remembering(2048)  # a step is checked with its rules, without each of them, and on its mistake
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


def differs(before: Any, after: Any, rules: Sequence[Rule] = (), assumptions: Sequence[Assumption] = ()) -> bool:
    """Return whether two lines have different numbers where all that is assumed holds (`linewise.derive.models`).

    Expectations are taken over small spaces, integrals by quadrature, unknown functions are drawn ones.

    >>> x = sp.Symbol("x", positive=True)
    >>> differs(x, x + 1), differs(x, sp.sqrt(x**2))
    (True, False)
    """
    return _breaks(before, after, "=", rules, assumptions, _FEW)


def is_exceeded(lower: Any, upper: Any, rules: Sequence[Rule] = (), assumptions: Sequence[Assumption] = ()) -> bool:
    """Return whether `lower <= upper` certainly fails: in a drawn model of what is assumed.

    >>> x = sp.Symbol("x", real=True)
    >>> is_exceeded(2 * x, x**2), is_exceeded(2 * x, x**2 + 1)
    (True, False)
    """
    return _breaks(lower, upper, "<=", rules, assumptions, _MANY)


#: The models that are tried: an equation that is wrong is so almost everywhere, a bound may fail at a few places.
_FEW, _MANY = (*range(10), -1), (*range(60), *range(-60, 0))


def _breaks(
    one: Any, other: Any, relation: str, rules: Sequence[Rule], assumptions: Sequence[Assumption], seeds: Sequence[int]
) -> bool:
    one, other = exact(one), exact(other)
    if isinstance(one, sp.MatrixBase) or isinstance(other, sp.MatrixBase):
        if not isinstance(one, sp.MatrixBase) or not isinstance(other, sp.MatrixBase) or one.shape != other.shape:
            return True
        return any(_breaks(a, b, relation, rules, assumptions, seeds) for a, b in zip(one, other, strict=True))
    assumed = tuple(dict.fromkeys([*assumptions, *(a for rule in rules for a in rule.assumes)]))
    told = False
    for a, b in ((one, other), (_evaluated(one, rules), _evaluated(other, rules))):
        for words in verdicts(a, b, relation, assumed, seeds, coarse=True):
            told = True
            if words:
                return True
        if told:
            return False
    return relation == "=" and not equal(one, other, rules)


def _with_symbols(expression: sp.Expr) -> sp.Expr:
    """Replace what stays unevaluated, and indexed components, by symbols."""
    names: dict[sp.Basic, sp.Symbol] = {}

    def name(part: sp.Basic) -> sp.Symbol:
        real = None if part.has(sp.I) else True  # what is written without the imaginary unit stands for a real number
        return names.setdefault(part, sp.Dummy(f"u{len(names)}", real=real, positive=part.is_positive))

    outer = _outermost(expression)
    return expression.xreplace({part: name(part) for part in outer})


def _outermost(expression: sp.Basic) -> set[sp.Basic]:
    if isinstance(expression, _UNEVALUATED):
        return {expression}
    return set().union(*(_outermost(a) for a in expression.args)) if expression.args else set()
