"""Exact forms in sympy that chapters prove something about: small matrices, a Jacobian, a printed equation.

This is the one module of the package that needs the extra ``symbols``. No other module imports it: a number must not
be right because the algebra that predicts it was used to compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp

from attnmath.checks import positive_integer


def two_positions(p: Any, q: Any) -> sp.Matrix:
    """The row-stochastic matrix of two positions that pass on p and q to each other.

    >>> two_positions(*sp.symbols("p q"))
    Matrix([
    [1 - p,     p],
    [    q, 1 - q]])
    """
    return sp.Matrix([[1 - p, p], [q, 1 - q]])


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


def factorisation_jacobian(n: int, m: int, r: int) -> sp.Matrix:
    """Jacobian of (U, V) -> U V^T, shape (n m, (n + m) r), as a polynomial matrix in the entries of U and V.

    U : n x r.  V : m x r.

    >>> factorisation_jacobian(1, 1, 1)
    Matrix([[v_00, u_00]])
    """
    n, m, r = (positive_integer(value, name) for value, name in ((n, "n"), (m, "m"), (r, "r")))
    U = sp.Matrix(n, r, lambda i, k: sp.Symbol(f"u_{i}{k}"))
    V = sp.Matrix(m, r, lambda j, k: sp.Symbol(f"v_{j}{k}"))
    return (U * V.T).reshape(n * m, 1).jacobian([*U, *V])


def degrees_of_freedom(n: int, m: int, r: int) -> int:
    """Dimension of the n x m matrices of rank r: the rank of the Jacobian at a point of full column rank.

    The point has the rows (1, x, x^2, ...) with distinct x, so any r of its rows are independent.

    >>> degrees_of_freedom(3, 3, 1), degrees_of_freedom(3, 3, 3)
    (5, 9)
    """
    jacobian = factorisation_jacobian(n, m, r)
    if r > min(n, m):
        raise ValueError(f"r: expected at most {min(n, m)}, got {r}")
    point = {sp.Symbol(f"u_{i}{k}"): (i + 1) ** k for i in range(n) for k in range(r)}
    point |= {sp.Symbol(f"v_{j}{k}"): (-j - 2) ** k for j in range(m) for k in range(r)}
    return int(jacobian.subs(point).rank())


def printed_identity(beta: Any, gamma: Any) -> sp.Expr:
    """Article equation (7), S for the identity, as it is printed.

    >>> printed_identity(0, 1)
    sqrt(2)/sqrt(pi)
    """
    top = sp.sqrt(2 / sp.pi) * gamma * sp.exp(-(beta**2) / (2 * gamma**2)) + beta * sp.erf(beta / (sp.sqrt(2) * gamma))
    return top / sp.sqrt(beta**2 + gamma**2)
