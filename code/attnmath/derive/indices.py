"""Index calculus for matrices of symbolic size: sums over entries, and what Kronecker deltas do to them.

Sympy differentiates a sum with respect to one entry of a matrix symbol and leaves Kronecker deltas
behind. `collapse` carries out the sums that the deltas decide, so that a derivative of a matrix
expression can be compared, entry by entry, with a formula, for every size at once.
"""

from __future__ import annotations

from typing import Any

import sympy as sp


def index(name: str) -> sp.Symbol:
    """Name an index: an integer that is 0 or more.

    >>> index("i").is_nonnegative
    True
    """
    return sp.Symbol(name, integer=True, nonnegative=True)


def total(summand: sp.Expr, *ranges: tuple[sp.Symbol, Any]) -> sp.Expr:
    """Sum over indices that run from 0 to their size less one: total(f, (i, n), (j, m)).

    >>> i, n = index("i"), sp.Symbol("n", integer=True, positive=True)
    >>> total(i, (i, n))
    Sum(i, (i, 0, n - 1))
    """
    return sp.Sum(summand, *((index, 0, size - 1) for index, size in ranges))


def collapse(expression: sp.Expr) -> sp.Expr:
    """Expand, carry out every sum that a Kronecker delta decides, and pull constants out of the rest.

    Every index that stays free is taken to lie in its range. Sums of what does not depend on
    their index become a factor.

    >>> i, j = index("i"), index("j")
    >>> n = sp.Symbol("n", integer=True, positive=True)
    >>> x = sp.MatrixSymbol("x", 1, n)
    >>> collapse(total(sp.KroneckerDelta(i, j) * x[0, i], (i, n)))
    x[0, j]
    >>> collapse(total(sp.Integer(1), (i, n)))
    n
    """
    expression = sp.expand(expression)
    if isinstance(expression, sp.Sum):
        terms = sp.Add.make_args(sp.expand(collapse(expression.function)))
        return sp.expand(sp.Add(*(_collapse_term(term, expression.limits) for term in terms)))
    if expression.has(sp.Sum) and expression.args:
        return sp.expand(expression.func(*(collapse(argument) for argument in expression.args)))
    return expression


def derivative(expression: sp.Expr, entry: sp.Expr) -> sp.Expr:
    """Differentiate with respect to one entry of a matrix symbol, deltas carried out.

    >>> i, r = index("i"), index("r")
    >>> n = sp.Symbol("n", integer=True, positive=True)
    >>> x, y = sp.MatrixSymbol("x", 1, n), sp.MatrixSymbol("y", 1, n)
    >>> derivative(total(x[0, i] * y[0, i], (i, n)), x[0, r])
    y[0, r]
    """
    return collapse(sp.diff(expression, entry))


def softmax_entry(S: sp.MatrixSymbol, i: Any, j: Any) -> sp.Expr:
    """Entry (i, j) of the row-wise softmax of a matrix symbol, equation (5.1.6).

    The denominator sums over an index called l, which neither i nor j may hold.

    >>> n, m = sp.symbols("n m", integer=True, positive=True)
    >>> softmax_entry(sp.MatrixSymbol("S", n, m), 0, 1)
    exp(S[0, 1])/Sum(exp(S[0, l]), (l, 0, m - 1))
    """
    column = index("l")
    if column in sp.sympify(i).free_symbols | sp.sympify(j).free_symbols:
        raise ValueError(f"i, j: expected indices other than l, got {i} and {j}")
    return sp.exp(S[i, j]) / total(sp.exp(S[i, column]), (column, S.shape[1]))


def _collapse_term(term: sp.Expr, limits: tuple[Any, ...]) -> sp.Expr:
    """Sum one term: deltas first, then factors that do not depend on the indices."""
    for position, (index, low, high) in enumerate(limits):
        rest = (*limits[:position], *limits[position + 1 :])
        for delta in (f for f in sp.Mul.make_args(term) if isinstance(f, sp.KroneckerDelta)):
            first, second = delta.args[:2]
            if index in (first, second) and first != second:
                other = second if index == first else first
                return _collapse_term((term / delta).subs(index, other), rest)
        if index not in term.free_symbols:
            return _collapse_term(term * (high - low + 1), rest)
    if not limits:
        return term
    constant, dependent = sp.Mul(term).as_independent(*(index for index, _, _ in limits), as_Add=False)
    return constant * sp.Sum(dependent, *limits)
