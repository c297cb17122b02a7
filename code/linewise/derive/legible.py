"""What a reader of a line would take for something else than what is checked: names and ranges.

A page shows a symbol by its name alone. Two symbols that differ in what they are declared to be look the same there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from linewise.derive.assumptions import Assumption
from linewise.derive.entailment import declared
from linewise.derive.expectation import RandomVariable
from linewise.derive.rule import BINDERS, bound_by


def illegible(line: Any) -> str:
    """Return in words what a line writes that cannot be meant, and "" if nothing is found.

    >>> n, k = sp.Symbol("n", integer=True, positive=True), sp.Symbol("k", integer=True, positive=True)
    >>> illegible(sp.Sum(k, (k, 1, n))), illegible(sp.Sum(k, (k, -1, n)))
    ('', 'k is declared to be positive, and runs from -1 to n')
    """
    for part in line if isinstance(line, sp.MatrixBase) else (line,):
        if any(s.is_commutative is False for s in part.atoms(sp.Symbol)):
            return "a product that depends on the order of its factors; matrices have letters of their own"
        for sign in part.atoms(*BINDERS):
            if words := next(_misdeclared(sign), ""):
                return words
    return ""


def _misdeclared(sign: Any) -> Iterator[str]:
    """Yield which symbol a sign lets take values that it is declared not to have."""
    if isinstance(sign, sp.Derivative):
        yield from (f"a derivative by {v}, which is an integer" for v in sign.variables if v.is_Symbol and v.is_integer)
    elif isinstance(sign, sp.Sum | sp.Product | sp.Integral):
        whole, places = not isinstance(sign, sp.Integral), [limit[0] for limit in sign.limits]
        if len(set(places)) < len(places):
            yield f"one sign that binds a symbol twice, {sign}"
        for name, *ends in sign.limits:
            yield from _out_of_range(name, ends, whole)
    elif isinstance(sign, sp.Limit) and sign.args[2].is_extended_real:
        _, name, at, side = sign.args
        near = sp.Rational(1, 100) if str(side) != "-" else -sp.Rational(1, 100)
        if any(getattr(at + near, f"is_extended_{kind}") is False for kind in _SIGNED if getattr(name, f"is_{kind}")):
            yield f"{name} is declared to be {' and '.join(declared(name))}, and goes to {at}"


_SIGNED = ("positive", "nonnegative", "negative", "nonpositive")


def _out_of_range(name: Any, ends: Sequence[Any], whole: bool) -> Iterator[str]:
    if isinstance(name, RandomVariable):
        yield f"{name} is random, and an index or a variable of integration"
    if not whole and name.is_integer:
        yield f"{name} is an integer, and a variable of integration"
    if whole and any(getattr(name, f"is_{kind}") for kind in ("even", "odd", "prime", "composite")):
        yield f"{name} is declared to be {' and '.join(declared(name))}, and an index"
    if len(ends) != 2:
        return
    for kind in _SIGNED:
        if not getattr(name, f"is_{kind}"):
            continue
        weak = {"positive": "nonnegative", "negative": "nonpositive"}.get(kind, kind) if not whole else kind
        met = ends[:1] if whole and kind in ("positive", "nonnegative") else ends[1:] if whole else ends
        if not all(getattr(end, f"is_extended_{weak}") for end in met):
            yield f"{name} is declared to be {kind}, and runs from {ends[0]} to {ends[1]}"


def namesakes(lines: Sequence[Any], assumptions: Sequence[Assumption]) -> str:
    """Return in words which different things of one name a chain speaks of, and "" if there are none.

    >>> namesakes([sp.Symbol("x") * sp.Symbol("x", real=True)], [])
    'x is the name of two different things'
    """
    known: dict[tuple[str, str], Any] = {}
    for thing in _things(lines, assumptions):
        key = _sort(thing), _name(thing)
        if known.setdefault(key, thing) != thing:
            return f"{key[1]} is the name of two different things"
    return ""


def _things(lines: Sequence[Any], assumptions: Sequence[Assumption]) -> Iterator[Any]:
    for line in lines:
        yield from _free(line, frozenset())
    for a in assumptions:
        for side in (a.left, a.right):
            if isinstance(side, sp.Basic):
                yield from _free(side, a.every)
            elif isinstance(side, tuple | frozenset):
                yield from (thing for part in side if isinstance(part, sp.Basic) for thing in _free(part, a.every))


def _free(expression: Any, every: frozenset[Any]) -> Iterator[Any]:
    """Yield the symbols, vectors, matrices and functions of an expression, bound ones where they meet free ones."""
    bases = expression.atoms(sp.IndexedBase)
    labels = {base.label for base in bases}
    free = expression.free_symbols - every - labels
    yield from (s for s in free if s.is_Symbol and not isinstance(s, sp.Dummy))
    yield from (*bases, *expression.atoms(sp.MatrixSymbol))
    yield from (f.func for f in expression.atoms(AppliedUndef))
    for sign in expression.atoms(*BINDERS):
        names = {str(s): s for s in sign.free_symbols}
        for symbol in bound_by(sign):
            if str(symbol) in names and symbol.is_Symbol:
                yield from (symbol, names[str(symbol)])


def _sort(thing: Any) -> str:
    if isinstance(thing, sp.IndexedBase):
        return "vector"
    return "matrix" if isinstance(thing, sp.MatrixSymbol) else "function" if isinstance(thing, type) else "symbol"


def _name(thing: Any) -> str:
    return thing.__name__ if isinstance(thing, type) else str(thing)
