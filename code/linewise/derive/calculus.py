"""The rules on derivatives, integrals, limits and sums in closed form; `linewise.derive.rules` has all rules.

What sympy integrates, limits, splits or sums is compared with numbers, at several drawn values of its parameters
(`linewise.derive.models`). What has another number somewhere, or none, is refused: a pole, a divergent part, an
antiderivative with a jump. A parameter that must stay away from a pole is declared so, or defined by one that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.matrices.expressions.matexpr import MatrixElement

from linewise.derive.assumptions import Assumption, require
from linewise.derive.exact import exact
from linewise.derive.expectation import E
from linewise.derive.models import compared, settles
from linewise.derive.rule import Rule, bound_symbols, guard, made

_INFINITE = (sp.oo, -sp.oo, sp.zoo, sp.nan)


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda e: isinstance(e, kinds)


def _confirmed(before: sp.Expr, after: sp.Expr, what: str) -> sp.Expr:
    """Return what sympy has made of an expression, when numbers say the same; refuse it when they do not."""
    if after == before:
        return before
    if after.replace(_is(sp.Integral, sp.Sum, sp.Limit), lambda e: sp.Dummy()).has(*_INFINITE):
        raise ValueError(f"{what}: expected a finite value, got {after}")
    words = compared(before, after)
    if words is None:
        raise ValueError(f"{what}: expected one that numbers can confirm, got {before}, which has none")
    if words:
        raise ValueError(f"{what}: expected the value that numbers give, got {after} for {before}: {words}")
    return after


def _differentiated(derivative: sp.Derivative) -> sp.Expr:
    """Carry out a derivative; one by a symbol that does not occur is left alone, since it would show nothing."""
    if any(v.is_integer and v.is_Symbol for v in derivative.variables):
        raise ValueError(f"differentiate: expected a variable that is no integer, got {derivative}")
    shared = bound_symbols(derivative.expr) & set().union(*(v.free_symbols for v in derivative.variables))
    if shared or not all(_occurs(v, derivative.expr) for v in derivative.variables):
        return derivative  # an index that is both free and summed over would be taken for one
    for kink in _kinks(derivative):
        every = frozenset(kink.free_symbols & bound_symbols(derivative.expr))
        require(Assumption("nonzero", kink, None, every), note=True)
    endless = any(limit[2].is_infinite for total in derivative.expr.atoms(sp.Sum) for limit in total.limits)
    if not endless and not derivative.expr.has(sp.Integral, sp.Limit):
        return derivative.doit(deep=False)
    if derivative.expr.has(AppliedUndef, E):
        return derivative  # of what stands under the sign nothing is known
    return _confirmed(derivative, derivative.doit(deep=False), "differentiate under the sign")


def _kinks(derivative: sp.Derivative) -> Iterator[sp.Expr]:
    """Yield what must not vanish, so that a modulus, a sign, a step or a maximum has a derivative."""
    for part in derivative.expr.atoms(sp.Abs, sp.sign, sp.Heaviside, sp.Max, sp.Min):
        if any(_occurs(v, part) for v in derivative.variables):
            ends = part.args if isinstance(part, sp.Max | sp.Min) else (part.args[0], sp.Integer(0))
            yield from (one - other for one, other in combinations(ends, 2))


#: Carry out the derivatives that the line writes; components of one vector give a Kronecker delta.
differentiate = made("differentiate", lambda line: line.replace(_is(sp.Derivative), _differentiated))


def _placed(subs: sp.Subs) -> sp.Expr:
    for variable, point in zip(subs.variables, subs.point, strict=True):
        if variable in bound_symbols(subs.expr):
            return subs
        guard(subs.expr, variable, point, name="at_point")
    return subs.doit(deep=False)


#: Put the value in, where the line writes an expression at a point: d/dt f(t) at t = 0, once it is differentiated.
at_point = made("put the value in", lambda line: line.replace(_is(sp.Subs), _placed))


def _limit(limit: sp.Limit) -> sp.Expr:
    if limit.has(AppliedUndef, E):
        return limit
    try:
        value = limit.doit(deep=False)
    except NotImplementedError:
        return limit
    return _confirmed(limit, value, "limit")


#: Carry out the limits that the line writes, by sympy; of a function that no rule defines nothing is known.
take_limit = made("take the limit", lambda line: line.replace(_is(sp.Limit), _limit))


@lru_cache(maxsize=512)
def _integrated(integral: sp.Integral) -> sp.Expr:
    return _confirmed(integral, sp.simplify(integral.doit().rewrite(sp.erf)), "integral")


#: Carry out the integrals that the line writes, by sympy.
integrate = made("carry out the integral", lambda line: line.replace(_is(sp.Integral), _integrated))


def _closed(total: Any) -> sp.Expr:
    """Return a finite sum or product of one index in closed form, or as it is where sympy knows none."""
    if len(total.limits) != 1 or total.limits[0][2].is_infinite:
        return total
    _, low, high = total.limits[0]
    value = total.doit()
    if isinstance(value, sp.Piecewise) and len(value.args) == 2 and isinstance(value.args[0][1], sp.Eq):
        equation = value.args[0][1]
        require(Assumption("nonzero", equation.lhs - equation.rhs), note=True)
        value = value.args[1][0]
    if value.has(sp.Piecewise, sp.Sum, sp.Product) or value == total:
        return total
    require(Assumption("integer", low), note=True)
    require(Assumption("integer", high), note=True)
    require(Assumption("nonnegative", high - low + 1), note=True)
    return _confirmed(total, value, "series")


#: Carry out finite sums and products of one index that have a closed form: arithmetic and geometric series.
series = made("the closed form of the sum", lambda line: line.replace(_is(sp.Sum, sp.Product), _closed))


def _reduced(power: sp.Pow) -> sp.Expr:
    sign = 1 if isinstance(power.base, sp.cos) else -1
    return (1 + sign * sp.cos(2 * power.base.args[0])) / 2


#: The squares of cosine and sine by the doubled angle: cos^2 x = (1 + cos 2x)/2.
power_reduction = made(
    r"the doubled angle",
    lambda line: line.replace(
        lambda e: isinstance(e, sp.Pow) and e.exp == 2 and isinstance(e.base, sp.cos | sp.sin), _reduced
    ),
)

#: Hyperbolic functions by exponentials: tanh x = (1 - e^{-2x})/(1 + e^{-2x}).
hyperbolic = made(
    "the hyperbolic functions by exponentials",
    lambda line: (
        line.replace(sp.tanh, lambda x: (1 - sp.exp(-2 * x)) / (1 + sp.exp(-2 * x)))
        .replace(sp.coth, lambda x: (1 + sp.exp(-2 * x)) / (1 - sp.exp(-2 * x)))
        .replace(sp.sinh, lambda x: (sp.exp(x) - sp.exp(-x)) / 2)
        .replace(sp.cosh, lambda x: (sp.exp(x) + sp.exp(-x)) / 2)
    ),
)


def _occurs(variable: sp.Basic, expression: sp.Expr) -> bool:
    """Return whether a variable, or another component of its vector or matrix, occurs in an expression."""
    if isinstance(variable, sp.Indexed):
        return any(part.base == variable.base for part in expression.atoms(sp.Indexed))
    if isinstance(variable, MatrixElement):
        return any(part.parent == variable.parent for part in expression.atoms(MatrixElement))
    return bool(expression.has(variable))


#: Integrals over the same interval are one integral: of the sum, with constants inside. Each of them must converge.
linear_integral = made("linearity of the integral", lambda line: _gathered(line), on_difference=True)


def _gathered(line: sp.Expr) -> sp.Expr:
    """Bring all integrals over one interval under one sign, their integrands simplified."""
    for integral in _outermost(line):  # before sympy splits them, and parts may cancel
        if _is_definite(integral):
            _require_finite(integral)
    line = sp.expand(line)
    inside: dict[Any, sp.Expr] = {}
    rest = sp.Integer(0)
    for term in sp.Add.make_args(line):
        integrals = [f for f in sp.Mul.make_args(term) if isinstance(f, sp.Integral) and _is_definite(f)]
        if len(integrals) != 1:
            rest += term
            continue
        (integral,) = integrals
        _require_finite(integral)
        name, *ends = integral.limits[0]
        common = _VARIABLES[_is_half_line(ends)]
        inside[tuple(ends)] = inside.get(tuple(ends), 0) + (term / integral) * integral.function.subs(name, common)
    for ends, integrand in inside.items():
        common = _VARIABLES[_is_half_line(ends)]
        integrand = sp.powsimp(sp.simplify(sp.expand(integrand)))
        rest += sp.Integral(integrand, (common, *ends)) if integrand != 0 else 0
    return rest


def _outermost(line: sp.Expr) -> Iterator[sp.Integral]:
    """Yield the integrals of a line that stand under no other sign."""
    if isinstance(line, sp.Integral):
        yield line
    elif isinstance(line, sp.Add | sp.Mul | sp.Pow):
        for part in line.args:
            yield from _outermost(part)


@lru_cache(maxsize=1024)
def _require_finite(integral: sp.Integral) -> None:
    """Refuse an integral that does not settle; of one with an unknown function it is a visible assumption."""
    if integral.function.has(AppliedUndef, E):
        return
    if not settles(integral):
        raise ValueError(f"integral: expected one that converges, got {integral}")


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
        guard(integral.function, old, value)
        if value.free_symbols & set(ends):
            raise ValueError(f"value: expected no symbol of the ends, got {value}")
        if new in integral.function.free_symbols:
            raise ValueError(f"new: expected a symbol that the integrand does not hold, got {new}")
        moved = [at(inverse[0], old, end) for end in ends]
        if [at(value, new, end) for end in moved] != ends:
            raise ValueError(f"value: expected one that reaches from {ends[0]} to {ends[1]}, got {value}")
        integrand = integral.function.subs(old, value) * sp.diff(value, new)
        changed = sp.Integral(sp.powsimp(sp.simplify(integrand)), (new, *moved))
        if integral.function.has(AppliedUndef, E):
            return changed
        return _confirmed(integral, changed, "substitution")

    return made(words or f"substitute {old} = {value}", lambda line: line.replace(_is(sp.Integral), change))


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
    primitive, low, high = exact(primitive), exact(low), exact(high)
    derivative = sp.diff(primitive, variable)
    boundary = sp.simplify(_at_end(primitive, variable, high, "-") - _at_end(primitive, variable, low, "+"))
    area = sp.Integral(derivative, (variable, low, high))
    if boundary.has(*_INFINITE) or compared(area, boundary) != "":
        raise ValueError(f"primitive: expected one without a pole or a jump from {low} to {high}")

    def rewrite(line: sp.Expr) -> sp.Expr:
        gathered = _gathered(line)

        def trade(integral: sp.Integral) -> sp.Expr:
            name, *ends = integral.limits[0]
            if ends != [low, high]:
                return integral
            multiple = _constant(integral.function / derivative.subs(variable, name), name, low, high)
            return integral if multiple is None else multiple * boundary

        return gathered.replace(_is(sp.Integral), trade)

    return made(words, rewrite, on_difference=True)


def _constant(quotient: sp.Expr, variable: sp.Symbol, low: sp.Expr, high: sp.Expr) -> sp.Expr | None:
    """Return the value of a quotient that does not depend on the variable, or None.

    One whose derivative vanishes may still jump: it has the same value at places all over the interval.
    """
    value = sp.simplify(quotient.rewrite(sp.exp))
    if value.has(variable) and sp.simplify(sp.diff(value, variable)) == 0:
        value, *others = (sp.simplify(value.subs(variable, place)) for place in places_between(low, high))
        if any(compared(value, other) != "" for other in others):
            return None
    return None if value.has(variable) else value


_SHARES = [sp.Rational(k, 97) for k in (3, 20, 41, 59, 80, 95)]


def places_between(low: sp.Expr, high: sp.Expr) -> list[sp.Expr]:
    """Return places all over an interval, near its ends as well."""
    return [_between(low, high, share) for share in _SHARES]


def _between(low: sp.Expr, high: sp.Expr, share: sp.Rational) -> sp.Expr:
    """Return a place in an interval, by its share of the way."""
    if low.is_infinite and high.is_infinite:
        return share / (1 - share) if 2 * share > 1 else -(1 - share) / share
    if high.is_infinite:
        return low + share / (1 - share)
    return high - share / (1 - share) if low.is_infinite else low + share * (high - low)


def _at_end(expression: sp.Expr, variable: sp.Symbol, end: Any, side: str) -> sp.Expr:
    """Return the limit at one end of an interval."""
    if exact(end).is_infinite:
        return sp.limit(expression, variable, end)
    return sp.limit(expression, variable, end, side)
