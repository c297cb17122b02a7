"""Derivations in sympy: each module takes one result from symbols to an expression."""

from attnmath.derive import dot_product, moments

__all__ = ["dot_product", "moments"]
