"""Derivations in sympy: each module takes one result from symbols to an expression."""

from attnmath.derive import cost, dot_product, moments

__all__ = ["cost", "dot_product", "moments"]
