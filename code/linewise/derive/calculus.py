"""The rules on derivatives, integrals and limits; `linewise.derive.rules` has all rules under one roof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.matrices.expressions.matexpr import MatrixElement

from linewise.derive.exact import exact
from linewise.derive.rule import Rule, bound_symbols

#: Carry out the derivatives that the line writes; components of one vector give a Kronecker delta.
differentiate = Rule("differentiate", lambda line: line.replace(_is(sp.Derivative), lambda e: _differentiated(e)))

#: Carry out the integrals that the line writes, by sympy.
integrate = Rule("carry out the integral", lambda line: line.replace(_is(sp.Integral), _integrated))

#: Carry out the limits that the line writes, by sympy; of a function that no rule defines nothing is known.
take_limit = Rule("take the limit", lambda line: line.replace(_is(sp.Limit), lambda e: _limit(e)))


def _differentiated(derivative: sp.Derivative) -> sp.Expr:
    """Carry out a derivative; one by a symbol that does not occur is left alone, since it would show nothing.

    A derivative is taken under integral signs, which the reason on the page has to answer for.
    """
    shared = bound_symbols(derivative.expr) & set().union(*(v.free_symbols for v in derivative.variables))
    if shared or not all(_occurs(v, derivative.expr) for v in derivative.variables):
        return derivative  # an index that is both free and summed over would be taken for one
    return derivative.doit(deep=False)


def _limit(limit: sp.Limit) -> sp.Expr:
    return limit if limit.has(AppliedUndef) else limit.doit(deep=False)


def _occurs(variable: sp.Basic, expression: sp.Expr) -> bool:
    """Return whether a variable, or another component of its vector or matrix, occurs in an expression."""
    if isinstance(variable, sp.Indexed):
        return any(part.base == variable.base for part in expression.atoms(sp.Indexed))
    if isinstance(variable, MatrixElement):
        return any(part.parent == variable.parent for part in expression.atoms(MatrixElement))
    return bool(expression.has(variable))


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda e: isinstance(e, kind)


def _integrated(integral: sp.Integral) -> sp.Expr:
    return sp.simplify(integral.doit().rewrite(sp.erf))


#: Integrals over the same interval are one integral: of the sum, with constants inside. Each is taken to converge.
linear_integral = Rule("linearity of the integral", lambda line: _gathered(line), on_difference=True)


def _gathered(line: sp.Expr) -> sp.Expr:
    """Bring all integrals over one interval under one sign, their integrands simplified."""
    line = sp.expand(line)
    inside: dict[Any, sp.Expr] = {}
    rest = sp.Integer(0)
    for term in sp.Add.make_args(line):
        integrals = [f for f in sp.Mul.make_args(term) if isinstance(f, sp.Integral) and _is_definite(f)]
        if len(integrals) != 1:
            rest += term
            continue
        (integral,) = integrals
        name, *ends = integral.limits[0]
        common = _VARIABLES[_is_half_line(ends)]
        inside[tuple(ends)] = inside.get(tuple(ends), 0) + (term / integral) * integral.function.subs(name, common)
    for ends, integrand in inside.items():
        common = _VARIABLES[_is_half_line(ends)]
        integrand = sp.powsimp(sp.simplify(sp.expand(integrand)))
        rest += sp.Integral(integrand, (common, *ends)) if integrand != 0 else 0
    return rest


def _is_definite(integral: sp.Integral) -> bool:
    return len(integral.limits) == 1 and len(integral.limits[0]) == 3


def _is_half_line(ends: Sequence[sp.Expr]) -> bool:
    """Return whether the variable of integration is positive throughout."""
    return len(ends) == 2 and ends[0] == 0 and bool(ends[1].is_extended_positive)


# The variable of every gathered integral, so that equal ones look equal: one for positive ranges, one for the rest.
_VARIABLES = {True: sp.Dummy("u", positive=True), False: sp.Dummy("u", real=True)}


def substitution(old: sp.Symbol, new: sp.Symbol, value: Any, words: str = "") -> Rule:
    """Substitute old = value(new) in every integral over `old`; the ends are carried along as limits.

    value : an expression in `new`, monotone increasing on the interval.

    >>> z, u, c = sp.symbols("z u c", real=True)
    >>> substitution(z, u, u + c).rewrite(sp.Integral(sp.exp(-((z - c) ** 2)), (z, -sp.oo, sp.oo)))
    Integral(exp(-u**2), (u, -oo, oo))
    """
    value = exact(value)
    inverse = [s for s in sp.solve(sp.Eq(value, old), new) if s.is_real is not False]
    if len(inverse) != 1:
        raise ValueError(f"value: expected an expression that can be solved for {new} in one way, got {value}")
    if not sp.diff(value, new).is_positive:
        raise ValueError(f"value: expected an expression that increases with {new}, got {value}")

    def at(expression: sp.Expr, variable: sp.Symbol, end: sp.Expr) -> sp.Expr:
        return sp.limit(expression, variable, end) if end.is_infinite else expression.subs(variable, end)

    def change(integral: sp.Integral) -> sp.Expr:
        if len(integral.limits) != 1 or integral.limits[0][0] != old:
            return integral
        _, *ends = integral.limits[0]
        if new in integral.function.free_symbols:
            raise ValueError(f"new: expected a symbol that the integrand does not hold, got {new}")
        moved = [at(inverse[0], old, end) for end in ends]
        if [at(value, new, end) for end in moved] != ends:
            raise ValueError(f"value: expected one that reaches from {ends[0]} to {ends[1]}, got {value}")
        integrand = integral.function.subs(old, value) * sp.diff(value, new)
        return sp.Integral(sp.powsimp(sp.simplify(integrand)), (new, *moved))

    return Rule(words or f"substitute {old} = {value}", lambda line: line.replace(_is(sp.Integral), change))


def by_parts(primitive: Any, variable: sp.Symbol, low: Any, high: Any, words: str = "integrate by parts") -> Rule:
    """Integration by parts: the integral of the derivative of `primitive` is its difference between the ends.

    Each line is gathered into one integral over (low, high). A multiple of F' under the sign is
    traded for the same multiple of F(high) - F(low); which multiple, the lines themselves decide.

    >>> u = sp.Symbol("u", positive=True)
    >>> rule = by_parts(-u * sp.exp(-u), u, 0, sp.oo)
    >>> before, after = sp.Integral(u * sp.exp(-u), (u, 0, sp.oo)), sp.Integral(sp.exp(-u), (u, 0, sp.oo))
    >>> rule.rewrite(before - after)
    0
    """
    primitive = exact(primitive, "primitive")
    derivative = sp.diff(primitive, variable)
    boundary = sp.simplify(_at_end(primitive, variable, high, "-") - _at_end(primitive, variable, low, "+"))
    _require_no_jump(derivative, boundary, variable, exact(low, "low"), exact(high, "high"))

    def rewrite(line: sp.Expr) -> sp.Expr:
        gathered = _gathered(line)

        def trade(integral: sp.Integral) -> sp.Expr:
            name, *ends = integral.limits[0]
            if ends != [exact(low, "low"), exact(high, "high")]:
                return integral
            multiple = _constant(integral.function / derivative.subs(variable, name), name)
            return integral if multiple is None else multiple * boundary

        return gathered.replace(_is(sp.Integral), trade)

    return Rule(words, rewrite, on_difference=True)


def _require_no_jump(derivative: sp.Expr, boundary: sp.Expr, variable: sp.Symbol, low: sp.Expr, high: sp.Expr) -> None:
    """Refuse a primitive with a pole or a jump between the ends: its derivative's integral is not its difference there.

    Other symbols take values that their assumptions allow; a small positive integer where they are integers.
    """
    others = sorted((derivative.free_symbols | boundary.free_symbols) - {variable}, key=str)
    point = {s: sp.Integer(2) if s.is_integer else sp.Rational(3, 4) for s in others}
    ends = [float(end.subs(point)) for end in (low, high)]
    function = sp.lambdify(variable, derivative.subs(point), "mpmath")
    pieces = mpmath.linspace(max(ends[0], -40.0), min(ends[1], 40.0), 24)
    try:
        area = mpmath.quad(function, [ends[0], *pieces[1:-1], ends[1]])
        expected = mpmath.mpmathify(sp.N(boundary.subs(point), 20))
        agrees = bool(abs(area - expected) <= 1e-6 * (1 + abs(expected)))
    except (ZeroDivisionError, TypeError, ValueError):  # a pole at a node, or a boundary term that is no number
        agrees = False
    if not agrees:
        raise ValueError(f"primitive: expected one without a pole or a jump from {low} to {high}")


def _constant(quotient: sp.Expr, variable: sp.Symbol) -> sp.Expr | None:
    """Return the value of a quotient that does not depend on the variable, or None."""
    value = sp.simplify(quotient.rewrite(sp.exp))
    if value.has(variable) and sp.simplify(sp.diff(value, variable)) == 0:
        value = sp.simplify(value.subs(variable, 1))
    return None if value.has(variable) else value


def _at_end(expression: sp.Expr, variable: sp.Symbol, end: Any, side: str) -> sp.Expr:
    """Return the limit at one end of an interval."""
    if exact(end).is_infinite:
        return sp.limit(expression, variable, end)
    return sp.limit(expression, variable, end, side)
