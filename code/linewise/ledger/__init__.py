"""The ledger: every checkable sentence of the sources, the code that judged it, and the verdict.

A notebook loads the claims of its chapter and hands each one its evidence:

>>> import sympy as sp
>>> from linewise.derive import identity
>>> from linewise.ledger import Claim
>>> x = sp.Symbol("x")
>>> claim = Claim("x/square", "A square", "beyond 5.1", "The square is $x^2+2x+1$.", "proved", scope="for all $x$",
...               shows=[{"left": "(x + 1)**2", "equals": "x**2 + 2*x + 1"}])
>>> square = identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand", mistake=("no middle term", x**2 + 1))
>>> print(claim.prove(square))
[proved] x/square (beyond 5.1): The square is $x^2+2x+1$.
  Scope: for all $x$
  Derived in one verified step. The same check rejects no middle term.
"""

from linewise.ledger.card import Card
from linewise.ledger.claims import Claim, load_claims
from linewise.ledger.collate import Row, audit, collate
from linewise.ledger.evidence import Evidence, LedgerError, agreement, counterexample, derived, observation

__all__ = [
    "Card",
    "Claim",
    "Evidence",
    "LedgerError",
    "Row",
    "agreement",
    "audit",
    "collate",
    "counterexample",
    "derived",
    "load_claims",
    "observation",
]
