"""attnmath: attention mathematics, derived, measured and tested.

Rooms, each named by what the textbook calls the thing:

* `attnmath.attention`: softmax, its Jacobian, scaled dot-product attention and its masks;
* `attnmath.estimate`: Monte Carlo estimates with their standard errors;
* `attnmath.derive`: the sympy derivations, one small module per result;
* `attnmath.ledger`: claims, verdicts, and the evidence a verdict needs;
* `attnmath.figures`: one function per published figure.

Numerical functions take numpy arrays and torch tensors alike; torch is optional.
"""

__version__ = "0.1.0"
