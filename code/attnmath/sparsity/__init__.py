"""The sparsity of attention rows (the article): the measure S, and its closed forms for random rows.

>>> from attnmath import sparsity
>>> float(sparsity.sparsity([1.0, 0.0, 0.0, 0.0]))
0.5
"""

from attnmath.sparsity.closed_forms import (
    decay,
    effective_support,
    exponential,
    identity,
    linear,
    linear_independent,
    relu_squared,
    sparsity,
)

__all__ = [
    "decay",
    "effective_support",
    "exponential",
    "identity",
    "linear",
    "linear_independent",
    "relu_squared",
    "sparsity",
]
