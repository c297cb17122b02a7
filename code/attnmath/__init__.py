"""attnmath: attention mathematics, derived, measured and tested.

Rooms, each named by what the textbook calls the thing, among them:

* `attnmath.operator.attention`: softmax, its Jacobian, scaled dot-product attention and its masks;
* `attnmath.operator.dot_product`: the laws of a score with random components;
* `attnmath.operator.online` and `attnmath.operator.cost`: attention in linear memory, and what attention costs;
* `attnmath.operator.gradients` and `attnmath.operator.initialisation`: closed-form gradients, and how signals start out;
* `attnmath.matrix.spectrum` and `attnmath.matrix.rank`: the attention matrix as an operator, and its ranks;
* `attnmath.sparsity`: the l1/l2 sparsity of attention in closed forms that are accurate everywhere;
* `attnlab.heads`: queries and keys of a trained encoder and of small decoders;
* `attnmath.estimate`: Monte Carlo estimates with their standard errors;
* `attnlab.experiments` and `attnlab.recall`: seeded experiments, and the models that are trained to look up pairs;
* `linewise.derive`: derivations whose lines are verified one by one, and the rules that they use;
* `linewise.ledger`: claims, verdicts, and the evidence a verdict needs;
* `attnmath.figures`: functions that draw on given Axes, and `show`, which ends a figure cell.

What attention itself computes takes numpy arrays and torch tensors alike; torch is optional. A module directly
below this one is imported when it is first named:

>>> import attnmath
>>> attnmath.operator.attention.softmax([0.0, 0.0])
array([0.5, 0.5])

``python -m attnlab`` lists the commands.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

__version__ = "1.0.0"


def __getattr__(name: str) -> ModuleType:
    if name not in _modules():
        raise AttributeError(f"module attnmath: expected one of its modules, {', '.join(_modules())}, got {name}")
    return import_module(f"attnmath.{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_modules()])


def _modules() -> list[str]:
    return [found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")]
