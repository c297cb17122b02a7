"""Derivations in sympy: each module takes one result from symbols to an expression."""
