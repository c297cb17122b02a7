"""The ledger: every checkable sentence of the sources, the code that judged it, and the verdict.

A notebook loads the claims of its chapter and hands each one its evidence:

>>> import sympy as sp
>>> from attnmath.ledger import Claim
>>> d, s = sp.symbols("d sigma", positive=True)
>>> claim = Claim("5.1.5", section="5.1.4", statement="The variance is $d s^4$.", verdict="proved")
>>> print(claim.prove(d * s**4 - d * s**4, control=d * s**4 - d * s**2))
[proved] 5.1.5: The variance is $d s^4$.
  proof: the residual is exactly 0; the control d*sigma**2*(sigma - 1)*(sigma + 1) is not
"""

from attnmath.ledger.claims import VERDICTS, Card, Claim, load_claims
from attnmath.ledger.collate import Row, audit, collate
from attnmath.ledger.evidence import (
    Evidence,
    LedgerError,
    agreement,
    counterexample,
    observation,
    proof,
)

__all__ = [
    "VERDICTS",
    "Card",
    "Claim",
    "Evidence",
    "LedgerError",
    "Row",
    "agreement",
    "audit",
    "collate",
    "counterexample",
    "load_claims",
    "observation",
    "proof",
]
