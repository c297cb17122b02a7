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
from itertools import permutations
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from linewise.derive.calculus import by_parts, differentiate, integrate, linear_integral, substitution, take_limit
from linewise.derive.exact import exact
from linewise.derive.expectation import E, Var, is_random, random_atoms
from linewise.derive.normal_form import Reductions, normal_form
from linewise.derive.points import breaks_sign
from linewise.derive.rule import Rewrite, Rule, bound_symbols

__all__ = [
    "Rule",
    "by_parts",
    "collapse",
    "definition",
    "definition_of_variance",
    "derived",
    "differentiate",
    "hypothesis",
    "independent",
    "independent_exponentials",
    "integrate",
    "law",
    "linear_integral",
    "linearity",
    "log_of_product",
    "moments",
    "same_law",
    "substitution",
    "take_limit",
]


def _reduction(**options: Any) -> Rewrite:
    return lambda line: normal_form(line, Reductions(**options))


# --- expectation and sums ---------------------------------------------------------------------

#: E[a X + b Y] = a E[X] + b E[Y], also under summation signs.
linearity = Rule("linearity of the expectation", _reduction(distribute=True))

#: Kronecker deltas decide sums, and a sum of equal terms is their number times the term. A free index is taken to be in
#: the range of a sum, like the i of "for each i from 1 to n"; one that lies outside is written so, as i + r beyond i.
collapse = Rule("carry out the sum", _reduction(collapse=True))


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
    return Rule(words, _reduction(groups=sets))


def moments(known: Mapping[Any, Any], words: str) -> Rule:
    """A hypothesis on expectations: each key E[x[i] x[j] ...] has the given value, for every value of its indices.

    known : from `E` of a product of components (or of one random number's power) to its value. The
    symbols that index the components in the key stand for any index.

    >>> from linewise.derive.expectation import E, RandomVector
    >>> q, i, j, m = RandomVector("q"), *sp.symbols("i j m", integer=True)
    >>> moments({E(q[i]): 0}, "mean 0").rewrite(E(q[m]) + 1)
    1
    """
    patterns = [(_factors(key.args[0]), exact(value, "known")) for key, value in known.items() if isinstance(key, E)]
    if len(patterns) != len(known) or not patterns:
        raise ValueError(f"known: expected expectations E(...) as keys, got {list(known)}")

    def value_of(factors: tuple[sp.Expr, ...]) -> sp.Expr | None:
        target = [f for factor in factors for f in _factors(factor)]
        found = (_match(pattern, value, target) for pattern, value in patterns)
        return next((value for value in found if value is not None), None)

    return Rule(words, _reduction(moments=value_of))


def _factors(product: sp.Expr) -> list[sp.Expr]:
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
        indices.setdefault(p, t) == t if p.is_Symbol else p == t
        for p, t in zip(pattern.indices, target.indices, strict=True)
    )


#: Var[X] = E[X^2] - E[X]^2.
definition_of_variance = Rule(
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

    return Rule(words, rewrite)


def independent_exponentials(vector: Any, one: Any, words: str = "independent components of one law") -> Rule:
    """E[exp(sum of a_m X_m)] is the product of the E[exp(a_m X_1)], for independent components of one law.

    vector : the random vector X.  one : a derivation of E[exp(c X_1)], with a symbol c and a random number X_1 that
    has the law of a component.

    >>> from linewise.derive import Derivation, E, RandomVariable, RandomVector
    >>> X, m, n = RandomVector("X"), sp.Symbol("m", integer=True), sp.Symbol("n", integer=True)
    >>> a, c, G = sp.IndexedBase("a"), sp.Symbol("c"), sp.Symbol("G")
    >>> one = Derivation(E(sp.exp(c * RandomVariable("X_1"))))
    >>> one.step(sp.exp(c**2), hypothesis(one.result, sp.exp(c**2), "given"))
    >>> independent_exponentials(X, one).rewrite(E(sp.exp(sp.Sum(a[m] * X[m], (m, 1, n)))))
    Product(exp(a[m]**2), (m, 1, n))
    """
    start = one.lines[0].value
    exponent = start.args[0].exp if isinstance(start, E) and isinstance(start.args[0], sp.exp) else None
    coefficient = exponent / random_atoms(exponent).pop() if exponent is not None and random_atoms(exponent) else None
    if not isinstance(coefficient, sp.Symbol) or any(line.relation != "=" for line in one.lines):
        raise ValueError(f"one: expected a derivation of E[exp(c X)] for a symbol c, got one of {start}")

    def rewrite(line: sp.Expr) -> sp.Expr:
        def factorised(argument: sp.Expr) -> sp.Expr:
            exponent = argument.exp if isinstance(argument, sp.exp) else sp.Integer(0)
            sums = [f for f in sp.Mul.make_args(exponent) if isinstance(f, sp.Sum)]
            if len(sums) != 1 or len(sums[0].limits) != 1:
                return E(argument)
            index = sums[0].limits[0][0]
            share = sp.expand(exponent / sums[0] * sums[0].function / vector[index])
            return E(argument) if is_random(share) else sp.Product(one.result.subs(coefficient, share), *sums[0].limits)

        return line.replace(E, factorised)

    return Rule(words, rewrite)


#: The logarithm of a product of positive factors is the sum of the logarithms.
log_of_product = Rule(
    "the logarithm of a product",
    lambda line: line.replace(
        lambda e: isinstance(e, sp.log) and isinstance(e.args[0], sp.Product) and bool(e.args[0].function.is_positive),
        lambda e: sp.Sum(sp.log(e.args[0].function), *e.args[0].limits),
    ),
)


def definition(symbol: Any, value: Any, words: str = "") -> Rule:
    """What a symbol or a function stands for: `symbol` is a Symbol, or f(k) for every k with a value in k.

    Arguments of the function that are symbols stand for any argument; others must be met exactly.

    >>> k = sp.Symbol("k")
    >>> M = sp.Function("M")
    >>> definition(M(k), k**2).rewrite(M(3))
    9
    """
    words, value = words or "definition", exact(value)
    if isinstance(symbol, sp.Symbol | sp.Indexed):
        _respect_assumptions({symbol: value})
        own = symbol.free_symbols if isinstance(symbol, sp.Indexed) else set()

        def replace(line: sp.Expr) -> sp.Expr:
            caught = (value.free_symbols - own) & bound_symbols(line)
            if caught and line.has(symbol):
                raise ValueError(f"value: expected no symbol that the line sums or integrates over, got {caught}")
            return line.xreplace({symbol: value})

        return Rule(words, replace, tells=True, meanings=((symbol, value),))
    names = [a for a in symbol.args if a.is_Symbol]
    if len(set(names)) != len(names):
        raise ValueError(f"symbol: expected different arguments, got {symbol}")

    def rewrite(line: sp.Expr) -> sp.Expr:
        free = value.free_symbols - set(names)
        if free & bound_symbols(line):
            raise ValueError(
                f"value: expected no symbol that the line sums or integrates over, got {free & bound_symbols(line)}"
            )
        return line.replace(
            lambda e: isinstance(e, AppliedUndef) and e.func == symbol.func and _meets(symbol.args, e.args),
            lambda e: _with_arguments(value, dict(zip(symbol.args, e.args, strict=True))),
        )

    return Rule(words, rewrite, tells=True, meanings=((symbol, value),))


def _meets(pattern: Sequence[sp.Expr], arguments: Sequence[sp.Expr]) -> bool:
    return len(pattern) == len(arguments) and all(
        p.is_Symbol or p == a for p, a in zip(pattern, arguments, strict=True)
    )


def _with_arguments(value: sp.Expr, arguments: Mapping[Any, Any]) -> sp.Expr:
    """Put arguments into the value of a function; symbols that the value sums or integrates over step aside."""
    taken = set().union(*(exact(a).free_symbols for a in arguments.values()))
    aside = {s: sp.Dummy(s.name, **s.assumptions0) for s in bound_symbols(value) & taken}
    return value.xreplace(aside).subs({k: v for k, v in arguments.items() if k.is_Symbol}, simultaneous=True)


def _respect_assumptions(values: Mapping[Any, Any], certain: bool = False) -> None:
    """Refuse a value that breaks what is assumed of its symbol (or, if `certain`, that may break it)."""
    for symbol, value in values.items():
        for name in ("integer", "real", "positive", "nonnegative", "negative", "nonzero"):
            wanted, given = getattr(symbol, f"is_{name}"), getattr(exact(value), f"is_{name}")
            if wanted and (given is False or (certain and not given)):
                raise ValueError(f"{symbol}: expected a value that is {name}, got {value}")
        if breaks_sign(exact(value), symbol):
            raise ValueError(f"{symbol}: expected a value of its sign, got {value}, which has the other one")


def derived(chain: Any, words: str = "", *, at: Sequence[Mapping[Any, Any]] = ({},)) -> Rule:
    """What a derivation has shown: its first line may be replaced by its last.

    chain : an `linewise.derive.Derivation` all of whose steps are equalities.
    at : values of the chain's free symbols at which the result is used; as it was written, unless given.
    """
    if any(line.relation != "=" for line in chain.lines):
        raise ValueError("chain: expected a derivation whose steps are equalities")
    start, result = chain.lines[0].value, chain.result
    at = [{exact(k, "at"): exact(v, "at") for k, v in values.items()} for values in at]
    for values in at:
        _respect_assumptions(values, certain=True)
        if any(is_random(v) for v in values.values()):
            raise ValueError("at: expected values that are not random")
    pairs = [(start.subs(values), result.subs(values)) for values in at]
    words = words or chain.name or "derived above"
    return Rule(words, lambda line: line.subs(pairs), meanings=chain.meanings)


def hypothesis(left: Any, right: Any, words: str) -> Rule:
    """An equation that is assumed, and that the reason on the page calls so: left may be replaced by right."""
    if not isinstance(left, AppliedUndef | sp.Indexed):
        left, right = exact(left, "left"), exact(right, "right")
        return Rule(words, lambda line: line.subs(left, right))

    def replace(line: sp.Expr) -> sp.Expr:  # sympy's subs does not reach what has the index of a sum
        caught = (exact(right).free_symbols - left.free_symbols) & bound_symbols(line)
        if caught and line.has(left):
            raise ValueError(f"right: expected no symbol that the line sums or integrates over, got {caught}")
        return line.xreplace({left: right})

    return Rule(words, replace)


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

    def rewrite(line: sp.Expr) -> sp.Expr:
        def integral(argument: sp.Expr) -> sp.Expr:
            if random_atoms(argument) != {variable}:
                return E(argument)
            plain = over or sp.Symbol(variable.name, **variable.assumptions0)
            if plain in argument.free_symbols - {variable}:
                raise ValueError(f"over: expected a symbol that the expectation does not hold, got {plain}")
            return sp.Integral((argument * density).xreplace({variable: plain}), (plain, low, high))

        return line.replace(E, integral)

    return Rule(words, rewrite)


def telescoping(term: Any, index: sp.Symbol) -> Rule:
    """The rule that sums of F(m) - F(m + 1) from m = low to high are F(low) - F(high + 1).

    term : F, an expression in `index`.

    >>> m, n = sp.symbols("m n", integer=True)
    >>> telescoping(m**2, m).rewrite(sp.Sum(m**2 - (m + 1) ** 2, (m, 1, n)))
    1 - (n + 1)**2
    """
    difference = term - term.subs(index, index + 1)

    def summed(total: sp.Sum) -> sp.Expr:
        if len(total.limits) != 1:
            return total
        name, low, high = total.limits[0]
        if sp.simplify(total.function - difference.subs(index, name)) != 0:
            return total
        return term.subs(index, low) - term.subs(index, high + 1)

    return Rule("the sum telescopes", lambda line: line.replace(lambda e: isinstance(e, sp.Sum), summed))
