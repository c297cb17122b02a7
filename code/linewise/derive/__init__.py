"""Symbols: derivations whose lines are verified one by one, the rules they use, and results by module."""

from linewise.derive import rules
from linewise.derive.derivation import Derivation, DerivationError, collected, identity
from linewise.derive.expectation import E, RandomVariable, RandomVector, Var

__all__ = [
    "Derivation",
    "DerivationError",
    "E",
    "RandomVariable",
    "RandomVector",
    "Var",
    "collected",
    "identity",
    "rules",
]
