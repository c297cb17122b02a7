"""Points at which an expression has a value, drawn within the assumptions on its symbols.

A point can show that two expressions differ or that a bound fails. No number of points proves anything.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import sympy as sp
from sympy.core.function import AppliedUndef

_TRIALS = 400
#: The length of the first sum, and how much longer each further one is: different lengths stay different.
_SIZES = ((2, 1), (3, 2))
#: What has no value at a point: the infinity is that of an unending sum.
NO_VALUE = (sp.Integral, sp.Limit, sp.Derivative, sp.Product, AppliedUndef, sp.oo)


def gaps(one: sp.Expr, other: sp.Expr) -> Iterator[sp.Expr]:
    """Yield the difference of two expressions at drawn points, wherever it is a real number."""
    expression, draw = one - other, random.Random(1)
    bound = {limit[0] for part in expression.atoms(sp.Sum) for limit in part.limits}
    names = sorted((s for s in expression.free_symbols - bound if s.is_integer and s.is_positive), key=str)
    cuts: list[sp.Expr] = []
    for trial in range(_TRIALS):
        if trial < len(_SIZES):
            first, apart = _SIZES[trial]
            sizes = {name: sp.Integer(first + apart * place) for place, name in enumerate(names)}
            cuts.append(_term_by_term(expression.subs(sizes)).doit())
        cut = cuts[trial % len(cuts)]
        value = sp.N(cut.xreplace(_point(cut, draw)), 30)
        if value.is_real and value.is_finite:
            yield value


def _term_by_term(expression: sp.Expr) -> sp.Expr:
    """Write sums of known length as their terms, which is quicker than to let sympy look for a closed form.

    >>> i, x = sp.Symbol("i", integer=True), sp.IndexedBase("x")
    >>> _term_by_term(2 * sp.Sum(x[i], (i, 1, 2)))
    2*x[1] + 2*x[2]
    >>> _term_by_term(sp.Sum(x[i], (i, 5, 3))).doit()
    -x[4]
    """
    if not expression.has(sp.Sum):
        return expression
    if not isinstance(expression, sp.Sum):
        return expression.func(*map(_term_by_term, expression.args))
    terms = _term_by_term(expression.function)
    for index, low, high in expression.limits:
        if not (low.is_Integer and high.is_Integer and low <= high + 1):
            return expression  # sympy takes a sum from 5 to 2 for minus the sum from 3 to 4
        terms = sp.Add(*(terms.xreplace({index: sp.Integer(k)}) for k in range(low, high + 1)))
    return terms


def _point(expression: sp.Expr, draw: random.Random) -> dict[sp.Basic, sp.Expr]:
    """Draw a number for each component and each symbol, within its assumptions."""
    components = expression.atoms(sp.Indexed)
    bases = {part.base.label for part in components}
    point: dict[sp.Basic, sp.Expr] = {}
    for part in sorted(components | (expression.atoms(sp.Symbol) - bases), key=str):
        number = sp.Rational(draw.randint(1, 30), draw.choice((10, 20)))  # moderate, so that no term is lost
        if part.is_integer:  # an index: small, so that two of them meet
            number = sp.Integer(draw.randint(1, 2))
        if not part.is_positive:  # the ends of what is allowed
            number *= draw.choice((1, 1, 0) if part.is_nonnegative else (1, -1))
        point[part] = number
    return point


def breaks_sign(value: sp.Expr, symbol: sp.Expr) -> bool:
    """Return whether a value has, at every drawn point, a sign that is ruled out for the symbol that it is given to.

    A value that has the right sign at some points may be given under a hypothesis, as C - t to a symbol that is
    positive. Free indices are 1 or 2, and sums have two or three terms.

    >>> x, r = sp.IndexedBase("x", positive=True), sp.Symbol("r", nonnegative=True)
    >>> (i, j), n = sp.symbols("i j", integer=True), sp.Symbol("n", integer=True, positive=True)
    >>> rest = sp.Sum(x[i], (i, 1, n)) - x[j]
    >>> breaks_sign(rest, r), breaks_sign(-rest, r)
    (False, True)
    """
    if not (symbol.is_nonnegative or symbol.is_nonpositive):
        return False
    if value.has(*NO_VALUE) or (value.is_nonnegative if symbol.is_nonnegative else value.is_nonpositive):
        return False
    bound = {limit[0] for part in value.atoms(sp.Sum) for limit in part.limits}
    indices = [s for s in value.free_symbols - bound if s.is_integer and not s.is_positive]
    places = (1, 2) if indices else (1,)
    found = False
    for place in places:
        for number in islice(gaps(value.subs(dict.fromkeys(indices, place)), sp.S.Zero), 20):
            found = True
            if number >= 0 if symbol.is_nonnegative else number <= 0:
                return False
    return found
