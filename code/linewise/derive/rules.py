"""The named rules of a derivation: what turns one line into the next, beyond plain algebra.

A rule rewrites both lines; the step holds when algebra makes them equal afterwards. (A rule on
integrals rewrites the difference of the lines, in which integrals may cancel.) Plain
algebra (expanding, renaming summation indices, multiplying sums out, simplifying what has no
summation sign) needs no rule. Expectation, sums of symbolic length, derivatives, integrals and
limits do: nothing happens to them unless a rule says so.

>>> from linewise.derive.expectation import E, RandomVariable
>>> x, c = RandomVariable("x"), sp.Symbol("c")
>>> linearity.rewrite(E(c * x + 1))
c*E(x) + 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from linewise.derive.assumptions import EQUATIONS, SIGNS, Assumption, assume, require
from linewise.derive.calculus import (
    at_point,
    by_parts,
    differentiate,
    hyperbolic,
    integrate,
    linear_integral,
    places_between,
    power_reduction,
    series,
    substitution,
    take_limit,
)
from linewise.derive.entailment import declared, may_be, moments_of, not_negative
from linewise.derive.exact import exact
from linewise.derive.expectation import E, RandomVariable, Var, is_random, random_atoms
from linewise.derive.models import has_other_sign, refutation, verdicts
from linewise.derive.normal_form import Reductions, normal_form
from linewise.derive.notation import non_negative
from linewise.derive.rule import Rewrite, Rule, bound_symbols, guard, made, places

__all__ = [
    "at_point",
    "by_parts",
    "collapse",
    "definition",
    "definition_of_variance",
    "derived",
    "differentiate",
    "hyperbolic",
    "hypothesis",
    "independent",
    "independent_exponentials",
    "induction",
    "integrate",
    "law",
    "linear_integral",
    "linearity",
    "log_of_product",
    "moments",
    "power_reduction",
    "same_law",
    "series",
    "split_range",
    "substitution",
    "take_limit",
    "telescoping",
]


def _reduction(**options: Any) -> Rewrite:
    return lambda line: normal_form(line, Reductions(**options))


# --- expectation and sums ---------------------------------------------------------------------

#: E[a X + b Y] = a E[X] + b E[Y], also under summation signs.
linearity = made("linearity of the expectation", _reduction(distribute=True))

#: Kronecker deltas decide sums, and a sum of equal terms is their number times the term. A free index is taken to be in
#: the range of a sum, like the i of "for each i from 1 to n"; one that lies outside is written so, as i + r beyond i.
collapse = made("carry out the sum", _reduction(collapse=True))


def independent(*groups: Any, words: str = "independence") -> Rule:
    """E[f(X) g(Y)] = E[f(X)] E[g(Y)] for the groups of random quantities named here.

    groups : random vectors or variables, or tuples of those that need not be independent of one another.

    >>> from linewise.derive.expectation import E, RandomVariable
    >>> x, y = RandomVariable("x"), RandomVariable("y")
    >>> independent(x, y).rewrite(E(x**2 * y))
    E(x**2)*E(y)
    """
    sets = tuple(frozenset(g) if isinstance(g, tuple) else frozenset({g}) for g in groups)
    if len(sets) < 2 or sum(map(len, sets)) != len(frozenset().union(*sets)):
        raise ValueError(f"groups: expected at least two groups without a common member, got {groups}")
    return made(words, _reduction(groups=sets), assumes=[Assumption("independence", sets, words=words)])


def moments(known: Mapping[Any, Any], words: str) -> Rule:
    """A hypothesis on expectations: each key E[x[i] x[j] ...] has the given value, for every value of its indices.

    known : from `E` of a product of components (or of one random number's power) to its value. The
    symbols that index the components in the key stand for any index.

    >>> from linewise.derive.expectation import E, RandomVector
    >>> q, i, j, m = RandomVector("q"), *sp.symbols("i j m", integer=True)
    >>> moments({E(q[i]): 0}, "mean 0").rewrite(E(q[m]) + 1)
    1
    """
    if not known or not all(isinstance(key, E) for key in known):
        raise ValueError(f"known: expected expectations E(...) as keys, got {list(known)}")
    assumes = [Assumption("moment", key, exact(value), _indices(key.args[0]), words) for key, value in known.items()]
    for assumption in assumes:
        _respect_sign(assumption.left, assumption.right)
    return made(words, _reduction(moments=moments_of(known)), assumes=assumes)


def _indices(expression: sp.Expr) -> frozenset[Any]:
    """The symbols at the places of components, which stand for any place."""
    return frozenset(i for part in expression.atoms(sp.Indexed) for i in part.indices if i.is_Symbol)


#: Var[X] = E[X^2] - E[X]^2.
definition_of_variance = made(
    "definition of the variance",
    lambda line: line.replace(Var, lambda x: E(sp.expand(x**2)) - E(x) ** 2 if _is_sum(x) else E(x**2) - E(x) ** 2),
)


def _is_sum(x: sp.Expr) -> bool:
    return isinstance(x, sp.Add)


def same_law(*variables: Any, words: str = "the variables have the same law") -> Rule:
    """Random numbers with one law: the expectation of a function of a single one of them is that of the first."""

    def rewrite(line: sp.Expr) -> sp.Expr:
        def first(argument: sp.Expr) -> sp.Expr:
            here = random_atoms(argument)
            if len(here) == 1 and here <= set(variables):
                return E(argument.xreplace({here.pop(): variables[0]}))
            return E(argument)

        return line.replace(E, first)

    return made(words, rewrite, assumes=[Assumption("same law", variables, words=words)])


def independent_exponentials(vector: Any, one: Any, words: str = "independent components of one law") -> Rule:
    """E[exp(sum of a_m X_m)] is the product of the E[exp(a_m X_1)], for independent components of one law.

    vector : the random vector X.  one : a derivation of E[exp(c X_1)], with a symbol c and a random number X_1 that
    has the law of a component.

    >>> from linewise.derive import Derivation, E, RandomVariable, RandomVector
    >>> X, m, n = RandomVector("X"), sp.Symbol("m", integer=True), sp.Symbol("n", integer=True)
    >>> a, c, G = sp.IndexedBase("a"), sp.Symbol("c"), sp.Symbol("G")
    >>> one = Derivation(E(sp.exp(c * RandomVariable("X_1"))))
    >>> one.step(sp.exp(c**2), hypothesis(one.result, sp.exp(c**2), "given", for_all=[c]))
    >>> independent_exponentials(X, one).rewrite(E(sp.exp(sp.Sum(a[m] * X[m], (m, 1, n)))))
    Product(exp(a[m]**2), (m, 1, n))
    """
    start = one.lines[0].value
    exponent = start.args[0].exp if isinstance(start, E) and isinstance(start.args[0], sp.exp) else None
    coefficient = exponent / random_atoms(exponent).pop() if exponent is not None and random_atoms(exponent) else None
    if not isinstance(coefficient, sp.Symbol) or any(line.relation != "=" for line in one.lines):
        raise ValueError(f"one: expected a derivation of E[exp(c X)] for a symbol c, got one of {start}")
    bound = {a for a in one.assumptions if coefficient in a.free_symbols}

    def rewrite(line: sp.Expr) -> sp.Expr:
        def factorised(argument: sp.Expr) -> sp.Expr:
            exponent = argument.exp if isinstance(argument, sp.exp) else sp.Integer(0)
            sums = [f for f in sp.Mul.make_args(exponent) if isinstance(f, sp.Sum)]
            if len(sums) != 1 or len(sums[0].limits) != 1:
                return E(argument)
            index = sums[0].limits[0][0]
            share = sp.expand(exponent / sums[0] * sums[0].function / vector[index])
            if is_random(share):
                return E(argument)
            _respect_assumptions({coefficient: share}, certain=_SURE)
            for assumption in bound:
                _move(assumption, {coefficient: share})
            guard(one.result, coefficient, share)
            return sp.Product(one.result.subs(coefficient, share), *sums[0].limits)

        return line.replace(E, factorised)

    fixed = [a for a in one.assumptions if a not in bound or a.kind not in SIGNS]
    return made(words, rewrite, assumes=[Assumption("components", vector, words=words), *fixed])


#: The logarithm of a product of positive factors is the sum of the logarithms.
log_of_product = made(
    "the logarithm of a product",
    lambda line: line.replace(
        lambda e: isinstance(e, sp.log) and isinstance(e.args[0], sp.Product) and bool(e.args[0].function.is_positive),
        lambda e: sp.Sum(sp.log(e.args[0].function), *e.args[0].limits),
    ),
)


def definition(symbol: Any, value: Any, words: str = "") -> Rule:
    """What a symbol or a function stands for: `symbol` is a Symbol, or f(k) for every k with a value in k.

    Arguments of the function and places of a component that are symbols stand for any; others must be met exactly.
    The definition is in force in the whole chain. A value that may break what is assumed of its symbol is a further
    assumption: "C - t > 0".

    >>> k = sp.Symbol("k")
    >>> M = sp.Function("M")
    >>> definition(M(k), k**2).rewrite(M(3))
    9
    """
    words, value = words or "definition", exact(value)
    own = places(symbol)
    if _is_loose(value, own) and not _is_loose(symbol, ()):
        raise ValueError(f"symbol: expected a RandomVariable for a random value, got {symbol}")
    if isinstance(symbol, sp.Symbol | sp.Indexed):
        assumption = Assumption("definition", symbol, value, words=words)
        signs = _respect_assumptions({symbol: value})

        def put(line: sp.Expr) -> sp.Expr:
            if line.has(symbol):
                guard(line, symbol, value, own)
                _used_for_all(line, [assumption, *signs], own)
            return line.xreplace({symbol: value})

        return made(words, put, tells=True, assumes=[assumption, *signs])
    if len(own) != len([a for a in symbol.args if a.is_Symbol]):
        raise ValueError(f"symbol: expected different arguments, got {symbol}")
    _respect_sign(symbol, value)

    def rewrite(line: sp.Expr) -> sp.Expr:
        if any(f.func == symbol.func for f in line.atoms(AppliedUndef)):
            guard(line, symbol, value, own)
        for f in line.atoms(AppliedUndef):
            if f.func == symbol.func and _meets(symbol.args, f.args):
                _require_declared(symbol.args, f.args, bound_symbols(line))
        return line.replace(
            lambda e: isinstance(e, AppliedUndef) and e.func == symbol.func and _meets(symbol.args, e.args),
            lambda e: _with_arguments(value, dict(zip(symbol.args, e.args, strict=True))),
        )

    return made(words, rewrite, tells=True, assumes=[Assumption("definition", symbol, value, own, words)])


def _require_declared(own: Sequence[Any], arguments: Sequence[Any], bound: set[Any]) -> None:
    """Take for granted that arguments are what the symbols are declared to be in whose place they stand."""
    for symbol, argument in zip(own, arguments, strict=True):
        if not may_be(argument, symbol):
            raise ValueError(f"{symbol}: expected an argument that is {' and '.join(declared(symbol))}, got {argument}")
        if symbol.is_Symbol and not argument.free_symbols & bound:
            for needed in _weakest([Assumption(k, argument) for k in declared(symbol) if k in SIGNS]):  # type: ignore[arg-type]
                require(needed, note=True)


def _used_for_all(line: Any, assumptions: Sequence[Assumption], own: frozenset[Any]) -> None:
    """Note that an equation is used at every place, where a sign of the line binds a symbol of the place."""
    if every := own & bound_symbols(line):
        for a in assumptions:
            if here := every & a.free_symbols:
                assume(replace(a, every=a.every | here))


def _is_loose(expression: Any, own: Any) -> bool:
    """Return whether something random occurs outside of every expectation."""
    outside = exact(expression).replace(lambda e: isinstance(e, E | Var), lambda e: sp.Dummy())
    return bool(random_atoms(outside) - set(own))


def _meets(pattern: Sequence[sp.Expr], arguments: Sequence[sp.Expr]) -> bool:
    return len(pattern) == len(arguments) and all(
        p.is_Symbol or p == a for p, a in zip(pattern, arguments, strict=True)
    )


def _with_arguments(value: sp.Expr, arguments: Mapping[Any, Any]) -> sp.Expr:
    """Put arguments into the value of a function; symbols that the value's signs bind step aside."""
    taken = set().union(*(exact(a).free_symbols for a in arguments.values()))
    aside = {s: sp.Dummy(s.name, **s.assumptions0) for s in bound_symbols(value) & taken if s not in arguments}
    if any(isinstance(sign, sp.Derivative) and set(sign.variables) & (set(aside) | set(arguments))
           for sign in value.atoms(sp.Derivative)):  # fmt: skip
        raise ValueError(f"value: expected no derivative by a symbol of the arguments, got {value}")
    return value.xreplace(aside).subs({k: v for k, v in arguments.items() if k.is_Symbol}, simultaneous=True)


def _respect_assumptions(values: Mapping[Any, Any], certain: bool = False) -> list[Assumption]:
    """Refuse a value that breaks what is assumed of its symbol (or, if `certain`, that may break it).

    Return what has to be assumed of the values.
    """
    needed = []
    for symbol, value in values.items():
        value = exact(value)
        for name in ("real", *declared(symbol)):
            wanted, given = getattr(symbol, f"is_{name}"), getattr(value, f"is_{name}")
            if wanted and (given is False or (certain and not given)):
                raise ValueError(f"{symbol}: expected a value that is {name}, got {value}")
            if wanted and not given and name in SIGNS:
                needed.append(Assumption(name, value))  # type: ignore[arg-type]
        _respect_sign(symbol, value)
    return [n for n in _weakest(needed) if not (n.kind == "nonnegative" and non_negative(n.left))]


def _weakest(needed: Sequence[Assumption]) -> list[Assumption]:
    """Return what is assumed of one value, without what follows from the rest of it."""
    kinds = {n.kind for n in needed}
    weaker = (
        {"nonnegative", "nonzero"} if "positive" in kinds else {"nonpositive", "nonzero"} if "negative" in kinds else ()
    )
    return [n for n in needed if n.kind not in weaker]


def _respect_sign(left: sp.Expr, right: sp.Expr) -> None:
    """Refuse a value whose sign the left side cannot have; what names no complex number stands for a real one."""
    if right.has(sp.I) and not left.has(sp.I) and left.is_real is None and (not left.is_Symbol or is_random(left)):
        raise ValueError(f"{left}: expected a real number, for which it stands, got {right}")
    seen = not_negative(left) if isinstance(left, E | Var) else non_negative(left)
    if has_other_sign(right, left) or (seen and right.is_negative):
        raise ValueError(f"{left}: expected a value of its sign, got {right}, which has the other one")


def derived(chain: Any, words: str = "", *, at: Sequence[Mapping[Any, Any]] = ({},)) -> Rule:
    """What a derivation has shown: its first line may be replaced by its last, under all that it assumes.

    chain : an `linewise.derive.Derivation` all of whose steps are equalities.
    at : values of the chain's free symbols at which the result is used; as it was written, unless given. A symbol that
        the chain has defined, or of which it assumes an equation, stays as it is.
    """
    if any(line.relation != "=" for line in chain.lines):
        raise ValueError("chain: expected a derivation whose steps are equalities")
    start, result = chain.lines[0].value, chain.result
    assumes: list[Assumption] = []
    for values in at:
        _respect_assumptions(values, certain=_SURE)
        if any(is_random(v) for v in values.values()):
            raise ValueError("at: expected values that are not random")
        if wrong := [s for s in values if not isinstance(s, sp.Symbol | sp.Indexed) or is_random(s)]:
            raise ValueError(f"at: expected symbols that are not random, got {wrong[0]}")
        for symbol, value in values.items():
            guard(start, symbol, value, name="at")
            guard(result, symbol, value, name="at")
        assumes += [moved for a in chain.assumptions if (moved := _move(a, values)) is not None]
    pairs = [(start.subs(values, simultaneous=True), result.subs(values, simultaneous=True)) for values in at]

    def rewrite(line: sp.Expr) -> sp.Expr:
        for left, right in pairs:
            new = line.subs(left, right)
            if new != line:
                guard(line, left, right, left.free_symbols, "chain")
                _used_for_all(line, assumes, left.free_symbols)
                line = new
        return line

    return made(words or chain.name or "derived above", rewrite, assumes=tuple(dict.fromkeys(assumes)), states=pairs)


#: A value must certainly have what is assumed of the symbol in whose place it stands.
_SURE = True


def _move(assumption: Assumption, values: Mapping[Any, Any]) -> Assumption | None:
    """Return what a chain assumes where its symbols have values, or None where that is certain; refuse what breaks it.

    An equation holds at its own symbols: where it speaks of one that moves, nothing is known.
    """
    moved = assumption.at(values)
    if moved == assumption:
        return assumption
    if assumption.kind in EQUATIONS:
        names = ", ".join(str(s) for s in values if s in assumption.free_symbols)
        raise ValueError(f"at: expected {names} to stay, of which the chain assumes {assumption}")
    return require(moved)


def hypothesis(left: Any, right: Any, words: str, *, for_all: Sequence[Any] = ()) -> Rule:
    """An equation that is assumed, and that the page shows as such: left may be replaced by right.

    A component is replaced at its own place, and at every place where the line sums over it.

    for_all : symbols for whose every value the equation is assumed.
    """
    left, right = exact(left), exact(right)
    own = places(left) | frozenset(for_all)
    if (left.is_number and right.is_number) or left == right:
        raise ValueError(f"left: expected an equation that may hold or not, got {left} = {right}")
    if left in for_all:
        raise ValueError(f"for_all: expected no {left}, of which one value is assumed")
    if _is_loose(right, own) and not _is_loose(left, ()):
        raise ValueError(f"right: expected nothing random for {left}, which is a constant, got {right}")
    if isinstance(left, RandomVariable) and not _is_loose(right, ()):
        raise ValueError(f"left: expected nothing random, got {left}, which would be a constant")
    signs = _respect_assumptions({left: right}) if isinstance(left, sp.Symbol | sp.Indexed) else ()
    _respect_sign(left, right)
    assumption = Assumption("hypothesis", left, right, frozenset(for_all), words)

    def put(line: sp.Expr) -> sp.Expr:  # sympy's subs does not reach what has the index of a sum
        inside = isinstance(left, AppliedUndef | sp.Indexed)
        new = line.xreplace({left: right}) if inside else line.subs(left, right)
        if new != line:
            guard(line, left, right, own | left.free_symbols, "right")
            _used_for_all(line, [assumption, *signs], own)
        return new

    return made(words, put, assumes=[assumption, *signs])


def law(
    variable: Any, density: Any, low: Any, high: Any, *, over: sp.Symbol | None = None, words: str = "its density"
) -> Rule:
    """The expectation of a function of one random number is the integral against its density.

    density : an expression in `variable`.  over : the variable of integration, by default one of the same name.

    >>> from linewise.derive.expectation import E, RandomVariable
    >>> x = RandomVariable("x", real=True)
    >>> law(x, sp.exp(-x), 0, sp.oo).rewrite(E(x**2))
    Integral(x**2*exp(-x), (x, 0, oo))
    """

    density = exact(density)
    _respect_law(variable, density, low, high)

    def rewrite(line: sp.Expr) -> sp.Expr:
        def integral(argument: sp.Expr) -> sp.Expr:
            if random_atoms(argument) != {variable}:
                return E(argument)
            plain = over or sp.Symbol(variable.name, **variable.assumptions0)
            if plain in argument.free_symbols - {variable}:
                raise ValueError(f"over: expected a symbol that the expectation does not hold, got {plain}")
            if plain in density.free_symbols or plain in argument.free_symbols:
                raise ValueError(f"over: expected a symbol that the density does not hold, got {plain}")
            if plain in bound_symbols(argument):
                raise ValueError(f"over: expected a symbol that the expectation does not bind, got {plain}")
            return sp.Integral((argument * density).xreplace({variable: plain}), (plain, low, high))

        return line.replace(E, integral)

    return made(words, rewrite, assumes=[Assumption("law", variable, sp.Tuple(density, low, high), words=words)])


def _respect_law(variable: Any, density: sp.Expr, low: Any, high: Any) -> None:
    """Refuse a density whose mass is certainly not 1, or that holds values which the variable cannot take."""
    low, high = exact(low), exact(high)
    if not isinstance(variable, RandomVariable):
        raise ValueError(f"variable: expected a RandomVariable, got {variable}")
    if random_atoms(density) - {variable}:
        raise ValueError(f"density: expected nothing random but {variable}, got {density}")
    if variable.is_integer:
        raise ValueError(f"variable: expected one that can take every value, got the integer {variable}")
    if (variable.is_nonnegative and low.is_extended_negative) or (
        variable.is_nonpositive and high.is_extended_positive
    ):
        raise ValueError(f"low, high: expected values that {variable} can take, got from {low} to {high}")
    at = sp.Dummy("x", real=True)
    mass = sp.Integral(density.xreplace({variable: at}), (at, low, high))
    told = [*verdicts(mass, sp.Integer(1), "=", ())]
    if density.has(AppliedUndef) and not told:
        return  # it is compared where the function is defined
    if any(told) or not told:
        words = next(filter(None, told), "none that a number could be found for")
        raise ValueError(f"density: expected the mass 1 from {low} to {high}, got {words}")
    for place in places_between(low, high):
        if words := refutation(sp.Integer(0), density.xreplace({variable: place}), "<=", ()):
            raise ValueError(f"density: expected one that is never negative, got {words} at {variable} = {place}")


def telescoping(term: Any, index: sp.Symbol) -> Rule:
    """The rule that sums of F(m) - F(m + 1) from m = low to high are F(low) - F(high + 1).

    term : F, an expression in `index`.

    >>> m, n = sp.symbols("m n", integer=True)
    >>> telescoping(m**2, m).rewrite(sp.Sum(m**2 - (m + 1) ** 2, (m, 1, n)))
    1 - (n + 1)**2
    """
    term = exact(term)
    difference = term - term.subs(index, index + 1)

    def summed(total: sp.Sum) -> sp.Expr:
        if len(total.limits) != 1 or total.limits[0][2].is_infinite:
            return total
        name, low, high = total.limits[0]
        if name in term.free_symbols - {index} or bound_symbols(term) & (low.free_symbols | high.free_symbols):
            raise ValueError(f"term: expected no symbol that the sum binds, or that binds its ends, got {term}")
        if sp.simplify(total.function - difference.subs(index, name)) != 0:
            return total
        _runs(low, high)
        return term.subs(index, low) - term.subs(index, high + 1)

    return made("the sum telescopes", lambda line: line.replace(lambda e: isinstance(e, sp.Sum), summed))


def _runs(low: sp.Expr, high: sp.Expr) -> None:
    """Take for granted that a range has integer ends and is not run through backwards."""
    require(Assumption("integer", high - low), note=True)
    require(Assumption("nonnegative", high - low + 1), note=True)


def split_range(at: Any, words: str = "split the range") -> Rule:
    """A sum or product from `low` to `high` is the one up to `at` with the one beyond, where `at` lies in the range.

    >>> m, n = sp.Symbol("m", integer=True), sp.Symbol("n", integer=True, positive=True)
    >>> x = sp.IndexedBase("x")
    >>> split_range(n).rewrite(sp.Product(x[m], (m, 1, n + 1)))
    x[n + 1]*Product(x[m], (m, 1, n))
    """
    at = exact(at)

    def split(sign: Any) -> sp.Expr:
        if len(sign.limits) != 1:
            return sign
        name, low, high = sign.limits[0]
        if high == at or low == at + 1 or high.is_infinite:
            return sign
        if (at - low + 1).is_nonnegative is False or (high - at).is_nonnegative is False:
            return sign
        guard(sign, sp.Dummy(), at)
        require(Assumption("nonnegative", at - low + 1), note=True)
        require(Assumption("nonnegative", high - at), note=True)
        require(Assumption("integer", at - low), note=True)
        join = sp.Add if isinstance(sign, sp.Sum) else sp.Mul
        rest = sign.func(sign.function, (name, at + 1, high))
        if sp.expand(high - at) == 1:
            rest = sign.function.subs(name, high)
        return join(sign.func(sign.function, (name, low, at)), rest)

    return made(words, lambda line: line.replace(lambda e: isinstance(e, sp.Sum | sp.Product), split))


def induction(base: Any, step: Any, index: sp.Symbol, words: str = "by induction") -> Rule:
    """What holds for 1, and for n + 1 where it holds for n, holds for every n from 1 on.

    base : a derivation of F(1) = f(1).  step : one of F(n + 1) = f(n + 1) with the hypothesis F(n) = f(n).
    index : n, a positive integer. What else the step assumes of n, it assumes of every n.

    >>> from linewise.derive import Derivation
    >>> n, F = sp.Symbol("n", integer=True, positive=True), sp.Function("F")
    >>> base, step = Derivation(F(1)), Derivation(F(n + 1))
    >>> base.step(2, hypothesis(F(1), 2, "begin with 2"))
    >>> step.step(2 * F(n), hypothesis(F(n + 1), 2 * F(n), "doubled"))
    >>> step.step(2 ** (n + 1), hypothesis(F(n), 2**n, "for n"))
    >>> [str(a) for a in induction(base, step, n).assumes]
    ['F(1) = 2', 'F(n + 1) = 2*F(n)']
    """
    if not (index.is_integer and index.is_positive):
        raise ValueError(f"index: expected a positive integer, got {index}")
    if any(line.relation != "=" for chain in (base, step) for line in chain.lines):
        raise ValueError("base, step: expected derivations whose steps are equalities")
    known = [a for a in step.assumptions if a.kind == "hypothesis" and not a.every]
    goals = {a: (a.left.subs(index, index + 1), a.right.subs(index, index + 1)) for a in known}
    proved = [a for a, goal in goals.items() if goal == (step.lines[0].value, step.result)]
    if len(proved) != 1 or not isinstance(proved[0].left, AppliedUndef):
        raise ValueError(
            f"step: expected a hypothesis for {index} that it proves for {index} + 1, got {step.assumptions}"
        )
    left, right = proved[0].left, proved[0].right
    first = left.subs(index, 1), right.subs(index, 1).doit()
    if first != (base.lines[0].value, exact(base.result).doit()):
        raise ValueError(
            f"base: expected a derivation of {first[0]} = {first[1]}, got {base.lines[0].value} = {base.result}"
        )
    if fixed := [a for a in base.assumptions if index in a.free_symbols]:
        raise ValueError(f"base: expected nothing that is assumed of {index}, got {fixed[0]}")
    held = [replace(a, every=a.every | {index}) if index in a.free_symbols else a
            for a in step.assumptions if a != proved[0]]  # fmt: skip
    assumes = [*base.assumptions, *held]

    def put(line: sp.Expr) -> sp.Expr:
        if line.has(left):
            guard(line, left, right, left.free_symbols, "step")
            _used_for_all(line, assumes, left.free_symbols)
        return line.xreplace({left: right})

    return made(words, put, assumes=assumes, states=[(left, right)])
