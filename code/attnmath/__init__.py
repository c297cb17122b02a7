"""attnmath: attention mathematics, derived, measured and tested.

Rooms, each named by what the textbook calls the thing:

* `attnmath.attention`: softmax, its Jacobian, scaled dot-product attention and its masks;
* `attnmath.dot_product`: the laws of a score with random components;
* `attnmath.online` and `attnmath.cost`: attention in linear memory, and what attention costs;
* `attnmath.gradients` and `attnmath.initialisation`: closed-form gradients, and how signals start out;
* `attnmath.spectrum` and `attnmath.rank`: the attention matrix as an operator, and its ranks;
* `attnmath.sparsity`: the l1/l2 sparsity of attention in closed forms that are accurate everywhere;
* `attnmath.heads`: queries and keys of a trained encoder; `python -m attnmath.heads.extract` makes them;
* `attnmath.estimate`: Monte Carlo estimates with their standard errors;
* `attnmath.experiments` and `attnmath.recall`: seeded experiments, and the models that are trained to look up pairs;
* `attnmath.derive`: the sympy derivations, one small module per result;
* `attnmath.ledger`: claims, verdicts, and the evidence a verdict needs;
* `attnmath.figures`: functions that draw on given Axes, and `show`, which ends a figure cell.

What attention itself computes takes numpy arrays and torch tensors alike; torch is optional.
"""

__version__ = "0.1.0"
