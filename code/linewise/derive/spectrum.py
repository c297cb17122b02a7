"""Section 5.5.1: small exact matrices that decide a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp


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
