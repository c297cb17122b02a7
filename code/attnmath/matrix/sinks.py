"""Attention sinks: a key that collects the weight of many queries, and the matrix without it (section 5.5.1).

A is row-stochastic, shape (..., n, n): every row is a distribution over the keys. Functions
take numpy arrays and torch tensors alike and answer in kind.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Float, Real

from attnmath.arrays import AnyArray, Array, ArrayLike
from attnmath.checks import describe, flag, non_negative_integer, silently
from attnmath.matrix.patterns import renormalised
from attnmath.matrix.spectrum import row_stochastic


@silently
def sink_weight(A: Real[ArrayLike[Array], "... n n"], key: int = 0, *, causal: bool = False) -> Float[Array, "..."]:
    """The mean weight that the other queries put on one key.

    causal : whether a query sees the keys up to its own alone; then only the queries after `key` count.

    >>> A = np.asarray([[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5, 0.25, 0.25]])
    >>> float(sink_weight(A)), float(sink_weight(A, 1, causal=True))
    (0.625, 0.25)
    """
    A = row_stochastic(A)
    key, n = _key(A, key), A.shape[-1]
    queries = list(range(key + 1, n)) if flag(causal, "causal") else _others(key, n)
    if not queries:
        raise ValueError(f"key: expected a key that a later query sees, got the last one, {key}")
    xp = array_namespace(A)
    return xp.mean(xp.take(A, xp.asarray(queries), axis=-2)[..., key], axis=-1)


@silently
def without_key(A: Real[ArrayLike[Array], "... n n"], key: int = 0) -> Float[Array, "... n-1 n-1"]:
    """Attention of the other queries among the other keys: one row and one column less, rows divided by their sums.

    It is the softmax of the scores of which the key is masked. A row whose weight lies on the key alone has no
    normalisation: `ValueError`. The derivative grows without bound as the weight of a row gathers on the key.

    >>> without_key([[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5, 0.25, 0.25]])
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    A = row_stochastic(A)
    key = _key(A, key)
    xp, others = array_namespace(A), _others(key, A.shape[-1])
    seen = np.ones(A.shape[-2:], dtype=bool)
    seen[others, key] = False
    rest = xp.asarray(others)
    return xp.take(xp.take(renormalised(A, seen), rest, axis=-2), rest, axis=-1)


def _key(A: AnyArray, key: int) -> int:
    n = A.shape[-1]
    if n < 2:
        raise ValueError(f"A: expected at least 2 positions, got {describe(A)}")
    return non_negative_integer(key, "key", at_most=n - 1)


def _others(key: int, n: int) -> list[int]:
    return [position for position in range(n) if position != key]
