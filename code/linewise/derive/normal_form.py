"""A normal form for sums of symbolic length: two expressions that differ by algebra alone get the same one.

A term is a product of factors under summation signs. Products and powers of sums become sums
over several indices, indices are renamed in a canonical way, and constants stand in front.
Expectations, integrals, limits and derivatives are factors that nothing here looks into: what
they equal is the business of a named rule. A rule may ask for three more reductions:
`distribute` expectations over sums, `factorise` them over independent groups, and `collapse`
sums that a Kronecker delta decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, permutations, product
from typing import Any

import sympy as sp
from sympy.matrices.expressions.matexpr import MatrixElement

from linewise.derive.assumptions import Assumption, remembering, require
from linewise.derive.exact import exact
from linewise.derive.expectation import E, is_random, random_atoms

#: A summation index, and the first and the last value that it takes.
Limits = tuple[sp.Symbol, sp.Expr, sp.Expr]

# What only a named rule may look into.
_CLOSED = (sp.Integral, sp.Limit, sp.Derivative, sp.Product, sp.Subs, sp.Lambda)

# Renaming tries every order of the indices; beyond five that is more than 120 orders of one term.
_MOST_INDICES = 5


@dataclass(frozen=True)
class Term:
    """A product of factors, summed over indices."""

    factors: tuple[sp.Expr, ...]
    limits: tuple[Limits, ...] = ()

    @property
    def summand(self) -> sp.Expr:
        """The product of the factors."""
        return sp.Mul(*self.factors)


@dataclass(frozen=True)
class Reductions:
    """What a normal form may use beside algebra.

    distribute : E is linear.  groups : E of a product of functions of different groups factorises.
    moments : from the factors of an expectation's argument to its value, or None.
    collapse : carry out sums that a Kronecker delta decides, and sums of constants.
    """

    distribute: bool = False
    groups: tuple[frozenset[sp.Basic], ...] = ()
    moments: Callable[[tuple[sp.Expr, ...]], sp.Expr | None] | None = None
    collapse: bool = False


def normal_form(expression: Any, reductions: Reductions = Reductions()) -> sp.Expr:
    """Return the normal form of an expression.

    >>> x, (i, j) = sp.IndexedBase("x"), sp.symbols("i j", integer=True)
    >>> n = sp.Symbol("n", integer=True, positive=True)
    >>> square = sp.Sum(x[i], (i, 1, n)) ** 2
    >>> normal_form(square - sp.Sum(x[i] * x[j], (i, 1, n), (j, 1, n)))
    0
    """
    return sp.Add(*(_normal_term(term, reductions) for term in sp.Add.make_args(exact(expression))))


@remembering(8192)  # the lines of a derivation share most of their terms
def _normal_term(expression: sp.Expr, reductions: Reductions) -> sp.Expr:
    return sp.Add(*(_canonical(term) for term in _terms(expression, reductions)))


def _terms(expression: sp.Expr, reductions: Reductions) -> Iterator[Term]:
    for term in _split(expression, reductions):
        yield from _collapsed(term) if reductions.collapse else (term,)


def _split(expression: sp.Expr, reductions: Reductions) -> Iterator[Term]:
    """Write an expression as terms."""
    if isinstance(expression, sp.Add):
        for argument in expression.args:
            yield from _split(argument, reductions)
    elif isinstance(expression, sp.Mul):
        yield from _multiply([list(_split(argument, reductions)) for argument in expression.args])
    elif isinstance(expression, sp.Pow) and expression.exp.is_Integer and expression.exp > 0:
        if _opaque(expression.base):
            yield Term((expression,))
        else:
            yield from _multiply([list(_split(expression.base, reductions))] * int(expression.exp))
    elif isinstance(expression, sp.Sum) and not _is_finite_sum(expression):
        yield Term((expression,))
    elif isinstance(expression, sp.Sum):
        for _, low, _ in expression.limits:
            require(Assumption("integer", low), note=True)
        for term in _split(expression.function, reductions):
            fresh = {low[0]: sp.Dummy(low[0].name, integer=True) for low in expression.limits}
            limits = tuple(_limits_in_scope(expression.limits, fresh))
            yield Term(tuple(_renamed(f, fresh) for f in term.factors), term.limits + limits)
    elif isinstance(expression, E) and (reductions.distribute or reductions.groups or reductions.moments):
        yield from _expectation(expression.args[0], reductions)
    elif _opaque(expression):
        yield Term((expression,))
    else:
        yield from _inside(expression, reductions)


def _is_finite_sum(expression: sp.Sum) -> bool:
    """Return whether a sum has finite ends that are not random, so that it may be split and reordered."""
    ends = [end for limit in expression.limits for end in limit[1:]]
    if any(limit[1].is_integer is False for limit in expression.limits):
        return False  # the index is no integer
    return len(ends) == 2 * len(expression.limits) and not any(end.is_infinite or is_random(end) for end in ends)


def _limits_in_scope(limits: Sequence[Any], fresh: dict[Any, Any]) -> Iterator[Limits]:
    """Rename the indices of a sum; the ends of an index see the indices outside of it, and not itself."""
    for place, (index, low, high) in enumerate(limits):
        outer = {limit[0]: fresh[limit[0]] for limit in limits[place + 1 :]}
        yield fresh[index], _renamed(low, outer), _renamed(high, outer)


def _inside(expression: sp.Expr, reductions: Reductions) -> Iterator[Term]:
    """Bring the arguments of a function or of a power into normal form, and expand what that opens."""
    if isinstance(expression, _CLOSED):
        yield Term((expression,))
        return
    rebuilt = expression.func(*(normal_form(a, reductions) if isinstance(a, sp.Expr) else a for a in expression.args))
    expanded = _expand(rebuilt)
    if isinstance(expanded, sp.Add | sp.Mul) and expanded != expression:
        yield from _split(expanded, reductions)
    else:
        yield Term((expanded,))


def _expand(expression: sp.Expr, **hints: bool) -> sp.Expr:
    """Expand, but leave integrals, limits, derivatives and products as they are (sympy would split them)."""
    held = {part: sp.Dummy() for part in expression.atoms(*_CLOSED)}
    expanded = sp.expand(expression.xreplace(held), **hints)
    return expanded.xreplace({name: part for part, name in held.items()})


def _opaque(expression: sp.Expr) -> bool:
    return bool(expression.is_Atom) or isinstance(expression, sp.Indexed | sp.KroneckerDelta | MatrixElement)


def _multiply(parts: Sequence[Sequence[Term]]) -> Iterator[Term]:
    """Multiply sums of terms out; indices of different factors are told apart."""
    for choice in product(*parts):
        factors: list[sp.Expr] = []
        limits: list[Limits] = []
        for term in choice:
            fresh = {i: sp.Dummy(i.name, integer=True) for i, _, _ in term.limits}
            factors += [_renamed(f, fresh) for f in term.factors]
            limits += [(fresh[i], _renamed(low, fresh), _renamed(high, fresh)) for i, low, high in term.limits]
        yield Term(tuple(factors), tuple(limits))


def _expectation(argument: sp.Expr, reductions: Reductions) -> Iterator[Term]:
    """Apply to E[argument] what the reductions allow."""
    inner = list(_split(argument, reductions))
    infinite = any(end.is_infinite for term in inner for _, *ends in term.limits for end in ends)
    if infinite or (not reductions.distribute and (len(inner) > 1 or inner[0].limits)):
        yield Term((E(normal_form(argument, reductions)),))
        return
    for term in inner:
        flat = list(sp.Mul.make_args(_expand(term.summand, power_base=False)))
        constant = [f for f in flat if not is_random(f)]
        random = [f for f in flat if is_random(f)]
        if not reductions.distribute and constant:
            yield Term((E(term.summand),), term.limits)
            continue
        found: list[Term] = [Term((*constant, *_expectations(random, reductions)), term.limits)]
        if reductions.moments:  # a moment may bring sums and deltas of its own
            found = [Term(t.factors, term.limits + t.limits) for t in _split(found[0].summand, Reductions())]
        yield from found


def _expectations(random: Sequence[sp.Expr], reductions: Reductions) -> Iterator[sp.Expr]:
    """Yield the expectations whose product is the expectation of a product."""
    for group in _independent_parts(random, reductions.groups):
        value = reductions.moments(tuple(group)) if reductions.moments else None
        yield E(sp.Mul(*group)) if value is None else value


def _independent_parts(random: Sequence[sp.Expr], groups: Sequence[frozenset[sp.Basic]]) -> list[list[sp.Expr]]:
    """Sort factors into parts that depend on different groups.

    A factor of two groups joins them. A factor with a random quantity that no group names joins all: nothing is
    known of it.
    """
    parts: list[tuple[set[frozenset[sp.Basic]], list[sp.Expr]]] = []
    for factor in random:
        atoms = random_atoms(factor)
        named = atoms <= frozenset().union(*groups)
        mine = {g for g in groups if g & atoms} if named else set(groups)
        together = [p for p in parts if p[0] & mine or not mine]
        parts = [p for p in parts if not (p[0] & mine or not mine)]
        parts.append((mine.union(*(p[0] for p in together)), [f for p in together for f in p[1]] + [factor]))
    return [factors for _, factors in parts]


def _collapsed(term: Term) -> Iterator[Term]:
    """Carry out the sums that a delta decides, then the sums of what does not depend on their index."""
    expanded = _expand(term.summand)
    pieces = sp.Add.make_args(expanded)
    if len(pieces) > 1:
        for piece in pieces:
            yield from _collapsed(Term((piece,), term.limits))
        return
    factors = [_plain_delta(f) for f in sp.Mul.make_args(expanded)]
    ranges = {i: (low, high) for i, low, high in term.limits}
    for delta in (f for f in factors if isinstance(f, sp.KroneckerDelta)):
        for first, second in (delta.args[:2], delta.args[1::-1]):
            if first in ranges and _lies_outside(second, ranges[first]):
                low, high = ranges[first]
                if (high - low + 1).is_nonnegative:
                    return  # the delta is 0 at every index of the sum
                continue  # sympy takes a sum from 5 to 2 for minus the sum from 3 to 4
            # A free index lies in its range; a bound one must have the same range as its partner.
            if first in ranges and _lies_in(second, ranges[first], ranges):
                if second not in ranges:
                    require(Assumption("range", second, sp.Tuple(*ranges[first])), note=True)
                rest = tuple(limit for limit in term.limits if limit[0] != first)
                others = [f for f in factors if f is not delta]
                yield from _collapsed(Term(tuple(f.xreplace({first: second}) for f in others), rest))
                return
    for i, low, high in term.limits:
        elsewhere = [*factors, *(end for _, *ends in term.limits for end in ends)]
        size = high - low + 1
        if not any(i in e.free_symbols for e in elsewhere) and size.is_nonnegative and size.is_integer is not False:
            require(Assumption("integer", high - low), note=True)
            rest = tuple(limit for limit in term.limits if limit[0] != i)
            yield from _collapsed(Term((*factors, high - low + 1), rest))
            return
    yield Term(tuple(factors), term.limits)


def _plain_delta(factor: sp.Expr) -> sp.Expr:
    """A positive power of a delta is that delta."""
    base, exponent = factor.as_base_exp()
    return base if isinstance(base, sp.KroneckerDelta) and exponent.is_Integer and exponent > 0 else factor


def _lies_in(index: sp.Expr, wanted: tuple[sp.Expr, sp.Expr], ranges: dict[sp.Symbol, tuple[sp.Expr, sp.Expr]]) -> bool:
    """Return whether an index certainly lies in a range: a bound index of that range, a free one, a number within."""
    if index.is_Symbol:
        fixed = not any(end.free_symbols & set(ranges) for end in wanted)
        return ranges[index] == wanted if index in ranges else fixed
    return bool(index.is_integer and (index - wanted[0]).is_nonnegative and (wanted[1] - index).is_nonnegative)


def _lies_outside(index: sp.Expr, wanted: tuple[sp.Expr, sp.Expr]) -> bool:
    """Return whether an index certainly lies outside a range, whatever values its symbols have."""
    return bool((wanted[0] - index).is_positive or (index - wanted[1]).is_positive)


def _canonical(term: Term) -> sp.Expr:
    """Write a term with constants in front and its indices under names that depend on the term alone."""
    expanded = _expand(term.summand)
    if isinstance(expanded, sp.Add):
        return sp.Add(*(_canonical(Term((piece,), term.limits)) for piece in expanded.args))
    if not term.limits:
        return expanded
    bound = {i for i, _, _ in term.limits}
    constant, dependent = expanded.as_independent(*bound, as_Add=False)
    if len(bound) > _MOST_INDICES:
        raise ValueError(f"expression: expected sums over at most {_MOST_INDICES} indices, got one over {len(bound)}")
    summand, limits = min((_named(dependent, order) for order in _orders(dependent, term.limits)), key=sp.srepr)
    return sp.Mul(constant, sp.Sum(summand, *limits))


def _orders(summand: sp.Expr, limits: Sequence[Limits]) -> Iterator[tuple[Limits, ...]]:
    """Yield orders of the indices that depend on the term alone: by an index's part in it, and all orders of equals."""
    parts: dict[str, list[Limits]] = {}
    for limit in limits:
        part = "" if len(limits) == 1 else _part(limit[0], summand, limits)
        parts.setdefault(part, []).append(limit)
    alike = [permutations(parts[part]) for part in sorted(parts)]
    yield from (tuple(chain.from_iterable(order)) for order in product(*alike))


def _part(index: sp.Symbol, summand: sp.Expr, limits: Sequence[Limits]) -> str:
    """Return what an index does in a term, whatever the indices are called."""
    names = {i: sp.Symbol("this" if i == index else "other", integer=True) for i, _, _ in limits}
    ranges = sorted(sp.srepr(_renamed(sp.Tuple(*limit), names)) for limit in limits)
    return " ".join([sp.srepr(_renamed(summand, names)), *ranges])


def _named(summand: sp.Expr, order: Sequence[Limits]) -> sp.Tuple:
    # A name that no author writes, so that no free symbol is taken for an index.
    names = {i: sp.Symbol(f"index {k}", integer=True) for k, (i, _, _) in enumerate(order, start=1)}
    return sp.Tuple(_renamed(summand, names), _renamed(sp.Tuple(*(sp.Tuple(*limit) for limit in order)), names))


def _renamed(expression: sp.Expr, names: dict[Any, Any]) -> sp.Expr:
    return expression.xreplace(names) if names else expression
