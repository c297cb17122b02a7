"""Symbols: derivations whose lines are verified one by one, the rules they use, and results by module."""

from attnmath.derive import rules
from attnmath.derive.derivation import Derivation, DerivationError, collected, identity
from attnmath.derive.expectation import E, RandomVariable, RandomVector, Var

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
