"""Derivations whose lines are verified one by one, the rules that they use, and random quantities as symbols."""

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
