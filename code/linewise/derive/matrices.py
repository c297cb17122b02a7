r"""Inner products of matrices: how a differential finds its gradient, in matrix letters and for every size.

A loss answers to a small change dY of a matrix Y by <G, dY>, the sum of the products of their entries, and the
matrix G that stands there is the gradient with respect to Y:

>>> import sympy as sp
>>> from linewise.derive import identity
>>> n, d = sp.symbols("n d", integer=True, positive=True)
>>> G, dV, P = sp.MatrixSymbol("G", n, d), sp.MatrixSymbol("dV", n, d), sp.MatrixSymbol("P", n, n)
>>> print(identity(Inner(G, P * dV), Inner(P.T * G, dV), entries))
derivation, 1 steps
    Inner(G, P*dV)
  = Inner(P.T*G, dV)    (the sums over the entries are the same)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import sympy as sp

from linewise.derive.assumptions import Assumption
from linewise.derive.rule import Rule, guard, made


class Inner(sp.Expr):  # type: ignore[misc]
    """The inner product <A, B> of two matrices of one shape: the sum of the products of their entries.

    It stays as it is written; the rule `entries` writes it out.
    """

    is_commutative = True

    def __new__(cls, left: sp.MatrixExpr, right: sp.MatrixExpr) -> Inner:
        """Join two matrices of one shape."""
        if left.shape != right.shape:
            raise ValueError(f"left, right: expected matrices of one shape, got {left.shape} and {right.shape}")
        made: Inner = sp.Expr.__new__(cls, left, right)
        return made

    def _latex(self, printer: Any) -> str:
        left, right = (printer._print(part) for part in self.args)
        return rf"\left\langle {left},\; {right} \right\rangle"


def stands_for(symbol: sp.MatrixSymbol, value: sp.MatrixExpr, words: str) -> Rule:
    """What a matrix stands for: `symbol` may be replaced by `value`, a matrix of the same shape.

    >>> n = sp.Symbol("n", integer=True, positive=True)
    >>> Q, X, W = (sp.MatrixSymbol(name, n, n) for name in "QXW")
    >>> stands_for(Q, X * W, "definition of Q").rewrite(Inner(Q, Q))
    Inner(X*W, X*W)
    """
    if not isinstance(symbol, sp.MatrixSymbol) or not isinstance(value, sp.MatrixExpr) or symbol.shape != value.shape:
        raise TypeError(f"symbol, value: expected a matrix symbol and a matrix of its shape, got {symbol} and {value}")

    def replace(line: sp.Expr) -> sp.Expr:
        if line.has(symbol):
            guard(line, symbol, value)
        return line.xreplace({symbol: value})

    return made(words, replace, tells=True, assumes=[Assumption("definition", symbol, value, words=words)])


def _written_out(line: sp.Expr) -> sp.Expr:
    """Write every inner product as a sum over the entries of the matrices under it."""
    fresh = (sp.Dummy(f"i_{number}", integer=True) for number in count())

    def total(product: Inner) -> sp.Expr:
        (left, right), row, column = product.args, next(fresh), next(fresh)
        rows, columns = left.shape
        summand = _entry(left, row, column, fresh) * _entry(right, row, column, fresh)
        return sp.Sum(summand, (row, 1, rows), (column, 1, columns))

    return line.replace(lambda e: isinstance(e, Inner), total)


def _entry(matrix: Any, row: Any, column: Any, fresh: Iterator[sp.Dummy]) -> sp.Expr:
    """Entry (row, column) of a matrix expression, with its sums over fresh indices; both are counted from 1."""
    if isinstance(matrix, sp.MatrixSymbol):
        return sp.IndexedBase(matrix.name)[row, column]
    if isinstance(matrix, sp.Transpose):
        return _entry(matrix.arg, column, row, fresh)
    if isinstance(matrix, sp.MatAdd):
        return sp.Add(*(_entry(part, row, column, fresh) for part in matrix.args))
    if isinstance(matrix, sp.MatMul):
        factor, (first, *rest) = matrix.as_coeff_matrices()
        if not rest:
            return factor * _entry(first, row, column, fresh)
        middle = next(fresh)
        product = _entry(first, row, middle, fresh) * _entry(sp.MatMul(*rest), middle, column, fresh)
        return factor * sp.Sum(product, (middle, 1, first.shape[1]))
    raise TypeError(f"matrix: expected products, sums and transposes of matrix symbols, got {matrix}")


#: Inner products are what the sums over the entries of their matrices are.
entries = made("the sums over the entries are the same", _written_out)
