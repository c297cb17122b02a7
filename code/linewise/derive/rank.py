"""Section 5.5.3: how many numbers a matrix of rank r depends on, by the Jacobian of its factorisation."""

from __future__ import annotations

import sympy as sp

from attnmath.checks import positive_integer


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
