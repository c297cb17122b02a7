"""Section 5.5.1: row-stochastic matrices of symbolic size, and the small ones that decide a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp

from attnmath.derive.indices import collapse, index


def separated(expression: sp.Expr) -> sp.Expr:
    """Expand, and write a sum over several indices as a product of sums where its terms allow it.

    Sums are named by one index, so that equal ones cancel.

    >>> from attnmath.derive.indices import total
    >>> n, j, l = sp.Symbol("n", integer=True, positive=True), index("j"), index("l")
    >>> x = sp.MatrixSymbol("x", n, 1)
    >>> separated(total(x[j, 0] * x[l, 0], (j, n), (l, n)) - total(x[l, 0], (l, n)) ** 2)
    0
    """
    return sp.expand(collapse(expression).replace(lambda e: isinstance(e, sp.Sum), _product_of_sums))


def two_positions(p: Any, q: Any) -> sp.Matrix:
    """The row-stochastic matrix of two positions that pass on p and q to each other.

    >>> two_positions(*sp.symbols("p q"))
    Matrix([
    [1 - p,     p],
    [    q, 1 - q]])
    """
    return sp.Matrix([[1 - p, p], [q, 1 - q]])


def two_positions_power(p: Any, q: Any, k: Any) -> sp.Matrix:
    """The power A^k of `two_positions` in closed form, with a symbolic exponent: 1 pi^T + (1-p-q)^k (I - 1 pi^T).

    >>> p, q = sp.symbols("p q", positive=True)
    >>> sp.simplify(two_positions_power(p, q, 3) - two_positions(p, q) ** 3)
    Matrix([
    [0, 0],
    [0, 0]])
    """
    limit = sp.ones(2, 1) * sp.Matrix([[q, p]]) / (p + q)
    return limit + (1 - p - q) ** k * (sp.eye(2) - limit)


def defective_attention() -> sp.Matrix:
    """The positive row-stochastic matrix of three positions with two eigenvectors only.

    It is 1 pi^T with uniform pi, plus u v^T / 12 with u = (1, -1, 0) and v = (1, 1, -2): u, v and
    the vector of ones are orthogonal, so the second part has square 0.

    >>> sorted(defective_attention().eigenvals().items())
    [(0, 2), (1, 1)]
    """
    return sp.ones(3, 3) / 3 + sp.Matrix([1, -1, 0]) * sp.Matrix([[1, 1, -2]]) / 12


def one_hot(image: Sequence[int]) -> sp.Matrix:
    """The matrix whose row i is one-hot at image[i].

    >>> one_hot([0, 0])
    Matrix([
    [1, 0],
    [1, 0]])
    """
    return sp.Matrix(len(image), len(image), lambda i, j: int(image[i] == j))


def map_polynomial(cycles: Sequence[int], size: int, x: sp.Symbol) -> sp.Expr:
    """Characteristic polynomial of a one-hot matrix, from the cycles of its map: x^(n-m) prod (x^c - 1).

    cycles : the lengths c of the cycles; their sum m is the number of positions on cycles.

    >>> map_polynomial([1], 2, sp.Symbol("x"))
    x*(x - 1)
    """
    return x ** (size - sum(cycles)) * sp.Mul(*(x**length - 1 for length in cycles))


def circulant(first_row: Sequence[Any]) -> sp.Matrix:
    """The square matrix whose rows are the first one, shifted one place further each time.

    >>> circulant(sp.symbols("a b"))
    Matrix([
    [a, b],
    [b, a]])
    """
    size = len(first_row)
    return sp.Matrix(size, size, lambda i, j: first_row[(j - i) % size])


def _product_of_sums(total: sp.Sum) -> sp.Expr:
    """Split a sum whose factors depend on one index each; leave any other as it is."""
    groups: dict[Any, sp.Expr] = {limit[0]: sp.Integer(1) for limit in total.limits}
    for factor in sp.Mul.make_args(total.function):
        mine = [i for i in groups if i in factor.free_symbols]
        if len(mine) != 1:
            return total
        groups[mine[0]] *= factor
    name = index("j")
    return sp.Mul(*(
        sp.Sum(groups[i].subs(i, name), (name, low, high)) for i, low, high in total.limits
    ))  # fmt: skip
