"""What a line divides by: values that must not vanish, and that no page would name otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import sympy as sp

from linewise.derive.assumptions import Assumption
from linewise.derive.expectation import E
from linewise.derive.notation import known_by_range, non_negative, over_its_range, runs_upwards

# Behind these signs a value is met only on the way, if it depends on what they bind: it is compared with numbers where
# the sign is carried out.
_BEHIND = (sp.Integral, sp.Limit)


def divisors(line: Any) -> list[Assumption]:
    """Return what a line takes for granted to be defined: what it divides by is not 0, nor a logarithm that of 0.

    >>> x, a = sp.Symbol("x", real=True), sp.Symbol("a", positive=True)
    >>> [str(needed) for needed in divisors(1 / x + 1 / a + sp.log(x**2 + 1))]
    ['x != 0']
    """
    return list(dict.fromkeys(needed for part in _entries(line) for needed in _needed(part)))


def _entries(line: Any) -> Iterator[Any]:
    yield from line if isinstance(line, sp.MatrixBase) else (line,)


@lru_cache(maxsize=4096)
def _needed(expression: Any, every: frozenset[Any] = frozenset()) -> tuple[Assumption, ...]:
    if not expression.args:
        return ()
    if isinstance(expression, _BEHIND):
        own = {expression.args[1]} if isinstance(expression, sp.Limit) else {limit[0] for limit in expression.limits}
        return tuple(a for a in _needed(expression.args[0], every) if not own & a.left.free_symbols)
    found: list[Assumption] = []
    inner = every
    if isinstance(expression, sp.Product):
        inner = every | {limit[0] for limit in expression.limits}
    value = _must_not_vanish(expression)
    if value is not None and not never_zero(value):
        found += [Assumption("nonzero", b, None, every & b.free_symbols) for b in _factors(value)]
    elif isinstance(expression, sp.factorial) and not expression.args[0].is_nonnegative:
        found.append(Assumption("nonnegative", expression.args[0], None, every & expression.free_symbols))
    if isinstance(expression, sp.Sum):  # its indices are known by their ranges
        names = known_by_range(expression)
        back = {dummy: name for name, dummy in names.items()}
        inside = _needed(expression.function.xreplace(names), every | set(back))
        found += [
            replace(a, left=a.left.xreplace(back), every=frozenset(back.get(s, s) for s in a.every)) for a in inside
        ]
        return tuple(found)
    for part in expression.args:
        if isinstance(part, sp.Expr):
            found += _needed(part, inner)
    return tuple(found)


def _must_not_vanish(e: Any) -> Any:
    if isinstance(e, sp.Pow) and not e.exp.is_nonnegative:
        return e.base
    if isinstance(e, sp.log):
        return e.args[0]
    if isinstance(e, sp.tan | sp.sec):
        return sp.cos(e.args[0])
    if isinstance(e, sp.cot | sp.csc):
        return sp.sin(e.args[0])
    if isinstance(e, sp.MatrixExpr) and isinstance(e, sp.MatPow) and not e.exp.is_nonnegative:
        return sp.Determinant(e.base)
    if isinstance(e, sp.gamma | sp.loggamma) and not e.args[0].is_positive and e.args[0].is_integer is not False:
        return 1 / sp.gamma(e.args[0])
    return None


def _factors(value: Any) -> list[Any]:
    parts = sp.Mul.make_args(sp.factor_terms(value) if isinstance(value, sp.Mul) else value)
    return [p.base if isinstance(p, sp.Pow) and p.exp.is_positive else p for p in parts if not never_zero(p)]


def never_zero(e: Any) -> bool:
    """Return whether an expression is visibly not 0, from the assumptions on its symbols."""
    if e.is_zero is False or isinstance(e, sp.exp | sp.gamma) or e.is_infinite:
        return True
    if isinstance(e, sp.Mul | sp.Pow | sp.Product):
        parts = e.args if isinstance(e, sp.Mul) else (e.args[0],)
        return all(never_zero(part) for part in parts)
    return _positive(e) or (isinstance(e, sp.Add) and _positive(-e))


def _positive(e: Any) -> bool:
    """Return whether an expression is visibly positive; components without assumptions are real numbers."""
    if e.is_positive or (isinstance(e, sp.exp) and not e.has(sp.I)):
        return True
    if isinstance(e, sp.Add):
        return any(_positive(a) for a in e.args) and all(_positive(a) or non_negative(a) for a in e.args)
    if isinstance(e, sp.Mul):
        return all(_positive(a) for a in e.args)
    if isinstance(e, E):
        return _positive(e.args[0])
    if isinstance(e, sp.Pow):
        return _positive(e.base) and not e.exp.has(sp.I)
    if isinstance(e, sp.Sum):
        ends = all(len(limit) == 3 and (limit[2] - limit[1]).is_extended_nonnegative for limit in e.limits)
        return ends and runs_upwards(e) and _positive(over_its_range(e))
    return False
