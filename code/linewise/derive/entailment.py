"""What the assumptions of a chain make of an expression, where no model has a number for it.

A model cannot draw an expectation that is known by its moments alone, nor a function that is known by an equation.
Here both are put in the place of what they equal, by the same algebra as the rules use, so that assumptions which
contradict one another are seen, and mistakes that are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from linewise.derive.assumptions import SIGNS, Assumption
from linewise.derive.exact import exact
from linewise.derive.expectation import E, RandomVariable, RandomVector, Var, random_atoms
from linewise.derive.normal_form import Reductions, normal_form
from linewise.derive.notation import non_negative
from linewise.derive.rule import guard

_EQUATIONS = ("definition", "hypothesis", "moment")
#: What no model may have a number of its own for.
_TIED = (E, Var, AppliedUndef)
_ROUNDS = 4
#: A value of what stands for any.
_PLACE = sp.Rational(7, 3)

#: From the factors of an expectation's argument to its value, or None.
Moments = Callable[[tuple[sp.Expr, ...]], sp.Expr | None]


def moments_of(known: Mapping[Any, Any]) -> Moments:
    """Return what finds the value of an expectation among known ones, whatever their indices are called."""
    patterns = [(factors_of(key.args[0]), exact(value)) for key, value in known.items()]

    def value_of(factors: tuple[sp.Expr, ...]) -> sp.Expr | None:
        target = [f for factor in factors for f in factors_of(factor)]
        found = (_match(pattern, value, target) for pattern, value in patterns)
        return next((value for value in found if value is not None), None)

    return value_of


def factors_of(product: sp.Expr) -> list[sp.Expr]:
    """The factors of a product, a positive integer power written out."""
    out: list[sp.Expr] = []
    for factor in sp.Mul.make_args(product):
        base, exponent = factor.as_base_exp()
        out += [base] * int(exponent) if exponent.is_Integer and exponent > 0 else [factor]
    return out


def _match(pattern: list[sp.Expr], value: sp.Expr, target: list[sp.Expr]) -> sp.Expr | None:
    """The value with the pattern's indices replaced by those of the target, or None where it does not fit."""
    if len(pattern) != len(target):
        return None
    for order in permutations(target):
        indices: dict[Any, Any] = {}
        if all(_fits(p, t, indices) for p, t in zip(pattern, order, strict=True)):
            return value.xreplace(indices)
    return None


def _fits(pattern: sp.Expr, target: sp.Expr, indices: dict[Any, Any]) -> bool:
    if not (isinstance(pattern, sp.Indexed) and isinstance(target, sp.Indexed)):
        return pattern == target
    if pattern.base != target.base or len(pattern.indices) != len(target.indices):
        return False
    return all(
        (indices.setdefault(p, t) == t and may_be(t, p)) if p.is_Symbol else p == t
        for p, t in zip(pattern.indices, target.indices, strict=True)
    )


#: Sympy's words for what a symbol may be declared to be.
_DECLARED = (
    "integer", "positive", "nonnegative", "negative", "nonpositive", "nonzero", "even", "odd", "prime", "composite",
    "rational", "irrational",
)  # fmt: skip


def declared(symbol: Any) -> list[str]:
    """Return what a symbol is declared to be, in sympy's words.

    >>> declared(sp.Symbol("n", odd=True))
    ['integer', 'nonzero', 'odd', 'rational']
    """
    return [name for name in _DECLARED if getattr(symbol, f"is_{name}")]


def may_be(value: Any, symbol: Any) -> bool:
    """Return whether a value may stand in the place of a symbol: it breaks nothing that the symbol is declared to be.

    >>> n = sp.Symbol("n", positive=True)
    >>> may_be(sp.Symbol("x"), n), may_be(sp.Integer(-2), n)
    (True, False)
    """
    return all(getattr(value, f"is_{name}") is not False for name in declared(symbol))


def entailed(expression: Any, assumptions: Sequence[Assumption]) -> Any:
    """Return what an expression is where the assumptions hold: each left side is replaced by its right one.

    >>> X, Y = RandomVariable("X"), RandomVariable("Y")
    >>> one, two = (Assumption("moment", E(v), sp.Integer(k)) for v, k in ((X, 1), (Y, 2)))
    >>> entailed(E(X + Y), (one, two)), entailed(E(X * Y), (one, two))
    (3, E(X*Y))
    >>> entailed(E(X * Y), (one, two, Assumption("independence", (frozenset({X}), frozenset({Y})))))
    2
    """
    reductions = [Reductions(distribute=True)]
    if moments := {a.left: a.right for a in assumptions if isinstance(a.left, E) and a.kind in _EQUATIONS}:
        reductions.append(Reductions(distribute=True, moments=moments_of(moments)))
    reductions += [
        Reductions(distribute=True, groups=a.left, moments=reductions[-1].moments)
        for a in assumptions
        if a.kind == "independence"
    ]
    value = exact(expression)
    for _ in range(_ROUNDS):
        before = value
        for a in assumptions:
            value = _with_equation(value, a)
        value = value.replace(Var, lambda x: E(sp.expand(x**2)) - E(x) ** 2)
        for reduction in reductions:
            value = normal_form(value, reduction)
        value = value.replace(sp.Derivative, lambda *args: _derived(sp.Derivative(*args)))
        if value == before:
            break
    return value


def _derived(derivative: Any) -> Any:
    if not isinstance(derivative, sp.Derivative) or derivative.expr.has(*_TIED, sp.Sum, sp.Integral):
        return derivative
    return derivative.doit(deep=False)


def _with_equation(value: Any, a: Assumption) -> Any:
    """Put the right side of an assumption in the place of its left one, wherever no sign binds what it speaks of."""
    if a.kind == "same law":
        first = a.left[0]
        return value.replace(E, lambda x: E(_as_first(x, a.left, first)))
    if a.kind not in _EQUATIONS or isinstance(a.left, sp.MatrixSymbol | E) or not isinstance(a.left, sp.Expr):
        return value
    try:
        guard(value, a.left, a.right, a.every)
    except ValueError:
        return value
    if isinstance(a.left, AppliedUndef) and a.every:
        return value.replace(a.left.func, lambda *arguments: _at(a, arguments))
    return value.xreplace({a.left: exact(a.right)})


def _as_first(argument: Any, alike: Any, first: Any) -> Any:
    here = random_atoms(argument)
    return argument.xreplace({next(iter(here)): first}) if len(here) == 1 and here <= set(alike) else argument


def _at(a: Assumption, arguments: Sequence[Any]) -> Any:
    """Return the value of a function that an equation gives at arguments, or the function as it is."""
    own: dict[Any, Any] = {}
    for pattern, argument in zip(a.left.args, arguments, strict=True):
        symbol = next(iter(pattern.free_symbols & a.every), None)
        found = argument if symbol is None else argument - (pattern - symbol)
        if (symbol is None and pattern != argument) or (symbol in own and own[symbol] != found):
            return a.left.func(*arguments)
        if symbol is not None:
            if not (pattern - symbol).is_number or any(not getattr(found, f"is_{name}") for name in declared(symbol)):
                return a.left.func(*arguments)
            own[symbol] = found
    return exact(a.right).subs(own, simultaneous=True)


def impossible(assumptions: Sequence[Assumption]) -> Iterator[str]:
    """Yield in words which assumption the others make impossible.

    >>> X = RandomVariable("X")
    >>> list(impossible([Assumption("nonzero", E(X)), Assumption("moment", E(X), sp.Integer(0))]))
    ['E(X) != 0, and what else is assumed makes it 0']
    """
    equations = [a for a in assumptions if a.kind in (*_EQUATIONS, "independence", "same law")]
    sides = [side for a in assumptions for side in (a.left, a.right) if isinstance(side, sp.Basic)]
    if not equations or not any(side.has(*_TIED) for side in sides):
        return
    for a in assumptions:
        if a.kind in SIGNS and not a.every and a.left.has(*_TIED):
            value = _plain(entailed(a.left, equations))
            if value is not None and getattr(value, f"is_{a.kind}") is False:
                yield f"{a}, and what else is assumed makes it {value}"
    for a in equations:
        if a.kind not in _EQUATIONS or isinstance(a.left, sp.MatrixSymbol):
            continue
        others = [other for other in equations if other is not a]
        if not (a.every and a.kind == "definition"):
            gap = _plain(entailed(a.left, others) - entailed(a.right, others))
            places = {s: _PLACE for s in a.every if not s.is_integer and s.is_negative is not True}
            if gap is not None and gap.subs(places).is_zero is False:
                yield f"{a}, and what else is assumed makes the difference {gap}"
        if isinstance(a.left, E | Var) and not_negative(a.left):
            value = _plain(entailed(a.right, others))
            if value is not None and value.is_negative:
                yield f"{a}, and what else is assumed makes it {value}"
    for variable in {atom for a in equations for atom in _variables(a)}:
        spread = _plain(entailed(Var(variable), equations))
        if spread is not None and spread.is_negative:
            yield f"what is assumed makes the variance of {variable} {spread}"


def _variables(a: Assumption) -> set[Any]:
    sides = [side for side in (a.left, a.right) if isinstance(side, sp.Basic)]
    return {atom for side in sides if side.has(E, Var) for atom in side.atoms(RandomVariable)}


def _plain(value: Any) -> Any:
    """Return a value that no expectation and no unknown function is left in, simplified, and None where one is."""
    return None if value.has(*_TIED, sp.Derivative, RandomVariable) or _has_component(value) else sp.simplify(value)


def _has_component(value: Any) -> bool:
    return any(isinstance(part.base, RandomVector) for part in value.atoms(sp.Indexed))


def not_negative(expectation: Any) -> bool:
    """Return whether an expectation or a variance is visibly non-negative; what is random is a real number.

    >>> not_negative(E(RandomVariable("X") ** 2)), not_negative(Var(RandomVariable("X")))
    (True, True)
    """
    if isinstance(expectation, Var):
        return not expectation.has(sp.I)
    names: dict[Any, Any] = {
        atom: sp.Dummy(str(atom), real=True)
        for atom in {*expectation.atoms(RandomVariable), *expectation.atoms(sp.Indexed)}
        if atom.is_real is None and random_atoms(atom)
    }
    return non_negative(expectation.xreplace(names))
