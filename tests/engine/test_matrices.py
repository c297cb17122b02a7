"""Inner products of matrices: what moves across, for every size, and what does not."""

from __future__ import annotations

import pytest
import sympy as sp

from linewise.derive import DerivationError, identity
from linewise.derive.matrices import Inner, entries, stands_for

n, d, m = sp.symbols("n d m", integer=True, positive=True)
A, B, C = sp.MatrixSymbol("A", n, m), sp.MatrixSymbol("B", n, d), sp.MatrixSymbol("C", d, m)


def test_a_factor_changes_sides_with_a_transposition() -> None:
    identity(Inner(A, B * C), Inner(B.T * A, C), entries)
    identity(Inner(A, B * C), Inner(A * C.T, B), entries)
    identity(Inner(A, 2 * B * C + A), 2 * Inner(B.T * A, C) + Inner(A, A), entries)
    square = sp.MatrixSymbol("S", n, n)
    identity(Inner(A, square * A), Inner(square.T * A, A), entries, mistake=("the factor lost", Inner(A, A)))
    with pytest.raises(DerivationError, match="does not follow"):
        identity(Inner(square * A, A), Inner(square, square), entries)


def test_nothing_moves_without_the_rule() -> None:
    with pytest.raises(DerivationError, match="does not follow"):
        identity(Inner(A, B * C), Inner(B.T * A, C), because="algebra")


def test_a_missing_transposition_is_rejected() -> None:
    one, two, three = (sp.MatrixSymbol(name, n, n) for name in "RST")
    identity(
        Inner(one, two * three), Inner(two.T * one, three), entries, mistake=("forgotten", Inner(two * one, three))
    )
    with pytest.raises(DerivationError, match="does not follow"):
        identity(Inner(one, two * three), Inner(two * one, three), entries)


def test_a_matrix_stands_for_another_of_its_shape() -> None:
    chain = identity(Inner(A, A), Inner(B * C, B * C), stands_for(A, B * C, "A is a product"))
    assert "A is a product" in str(chain) and r"\left\langle B C" in chain.latex()
    with pytest.raises(TypeError, match="a matrix of its shape"):
        stands_for(A, B, "no")


def test_shapes_and_kinds_are_checked() -> None:
    with pytest.raises(ValueError, match="matrices of one shape"):
        Inner(A, B)
    with pytest.raises(TypeError, match="products, sums and transposes"):
        entries.rewrite(Inner(A, sp.ZeroMatrix(n, m)))
