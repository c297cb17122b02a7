"""Arithmetic that counts itself: implementations whose operations and depth are counted, not estimated.

Every number carries the length of the longest chain of operations that led to it. With enough
processors that chain is what a computation must wait for; the number of operations is what it
costs. Sums and maxima are taken in balanced trees, which changes the depth and not the number.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from attnmath.checks import describe, finite, real_array
from attnmath.cost import STAGES


class Term(NamedTuple):
    """A number, and the longest chain of operations behind it."""

    value: float
    depth: int = 0


@dataclass(frozen=True)
class Counted:
    """A result, the number of operations in each stage, and the longest chain of operations."""

    output: list[list[float]]
    operations: dict[str, int]
    depth: int


class Tally:
    """Applies operations to terms, and adds each of them to the count of the current stage.

    >>> tally = Tally("sum")
    >>> tally(operator.add, tally(operator.mul, Term(2.0), Term(3.0)), Term(1.0))
    Term(value=7.0, depth=2)
    >>> tally.counts["sum"]
    2
    """

    def __init__(self, stage: str) -> None:
        self.counts: Counter[str] = Counter()
        self.stage = stage

    def __call__(self, operation: Callable[..., float], *terms: Term) -> Term:
        """Apply an operation to the values of terms, and count it."""
        self.counts[self.stage] += 1
        return Term(operation(*(t.value for t in terms)), 1 + max(t.depth for t in terms))

    def tree(self, operation: Callable[..., float], terms: Sequence[Term]) -> Term:
        """Combine terms in a balanced tree: one operation fewer than there are terms."""
        if len(terms) == 1:
            return terms[0]
        middle = (len(terms) + 1) // 2
        return self(operation, self.tree(operation, terms[:middle]), self.tree(operation, terms[middle:]))

    def dot(self, a: Sequence[Term], b: Sequence[Term]) -> Term:
        """Multiply term by term, and sum in a tree."""
        return self.tree(operator.add, [self(operator.mul, x, y) for x, y in zip(a, b, strict=True)])

    def softmax(self, row: Sequence[Term]) -> list[Term]:
        """Softmax (5.1.6), shifted by the maximum."""
        top = self.tree(max, row)
        powers = [self(math.exp, self(operator.sub, s, top)) for s in row]
        total = self.tree(operator.add, powers)
        return [self(operator.truediv, p, total) for p in powers]


def counted_attention(Q: Any, K: Any, V: Any) -> Counted:
    """Attention (5.1.1) by the definition, one scalar operation at a time.

    Q : (n, d_k).  K : (n, d_k).  V : (n, d_v).  Counted are additions, subtractions,
    multiplications, divisions, exponentials and comparisons of numbers; 1/sqrt(d_k) is given.

    >>> counted_attention([[1.0]], [[1.0]], [[2.0]])
    Counted(output=[[2.0]], operations={'scores': 1, 'scaling': 1, 'softmax': 3, 'values': 1}, depth=6)
    """
    Q, K, V = _matrix(Q, "Q"), _matrix(K, "K"), _matrix(V, "V")
    if K.shape != Q.shape or len(V) != len(K):
        raise ValueError(
            f"Q, K, V: expected shapes (n, d_k), (n, d_k) and (n, d_v), got {Q.shape}, {K.shape} and {V.shape}"
        )
    tally, queries, keys, columns = Tally("scores"), _terms(Q), _terms(K), _terms(V.T)
    S = [[tally.dot(q, k) for k in keys] for q in queries]
    tally.stage, factor = "scaling", Term(1 / math.sqrt(Q.shape[1]))
    S = [[tally(operator.mul, s, factor) for s in row] for row in S]
    tally.stage = "softmax"
    P = [tally.softmax(row) for row in S]
    tally.stage = "values"
    return _counted(tally, [[tally.dot(row, column) for column in columns] for row in P], STAGES)


def counted_recurrence(X: Any, W: Any, U: Any) -> Counted:
    """The recurrent network h_t = tanh(h_{t-1} W + x_t U) with h_0 = 0, one operation at a time.

    X : (n, d).  W, U : (d, d).  Returns the states h_1 ... h_n.

    >>> counted_recurrence([[0.0], [0.0]], [[1.0]], [[1.0]])
    Counted(output=[[0.0], [0.0]], operations={'steps': 8}, depth=6)
    """
    X, W, U = _matrix(X, "X"), _matrix(W, "W"), _matrix(U, "U")
    d = X.shape[1]
    if W.shape != (d, d) or U.shape != (d, d):
        raise ValueError(f"W, U: expected shape ({d}, {d}) for inputs of {d} columns, got {W.shape} and {U.shape}")
    tally, state, states = Tally("steps"), [Term(0.0)] * d, []
    pairs = list(zip(_terms(W.T), _terms(U.T), strict=True))
    for x in _terms(X):
        state = [tally(math.tanh, tally(operator.add, tally.dot(state, w), tally.dot(x, u))) for w, u in pairs]
        states.append(state)
    return _counted(tally, states, ("steps",))


def counted_scan(a: Any, b: Any) -> Counted:
    """The linear recurrence h_t = a_t h_{t-1} + b_t with h_0 = 0, all steps at once.

    a, b : shape (n,). A step is a pair (a, b), and two steps in a row are the pair
    (a a', a' b + b'). In round r every position takes in the pair 2^r places before it, so after
    ceil(log2 n) rounds it holds all of its past. Returns the states as a column.

    >>> counted_scan([1.0, 2.0, 2.0], [1.0, 1.0, 1.0]).output
    [[1.0], [3.0], [7.0]]
    """
    a, b = (np.asarray(finite(real_array(x, name, ndim=1), name)) for x, name in ((a, "a"), (b, "b")))
    if a.shape != b.shape:
        raise ValueError(f"a, b: expected the same length, got {describe(a)} and {describe(b)}")
    tally, reach = Tally("steps"), 1
    steps = [(Term(x), Term(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    while reach < len(steps):
        joined = [_then(tally, past, step) for past, step in zip(steps, steps[reach:], strict=False)]
        steps, reach = steps[:reach] + joined, 2 * reach
    return _counted(tally, [[state] for _, state in steps], ("steps",))


def _then(tally: Tally, first: tuple[Term, Term], second: tuple[Term, Term]) -> tuple[Term, Term]:
    (a, b), (later_a, later_b) = first, second
    return tally(operator.mul, a, later_a), tally(operator.add, tally(operator.mul, later_a, b), later_b)


def _matrix(value: Any, name: str) -> Any:
    return np.asarray(finite(real_array(value, name, ndim=2), name))


def _terms(matrix: Any) -> list[list[Term]]:
    return [[Term(value) for value in row] for row in matrix.tolist()]


def _counted(tally: Tally, rows: list[list[Term]], stages: Sequence[str]) -> Counted:
    return Counted(
        [[term.value for term in row] for row in rows],
        {stage: tally.counts[stage] for stage in stages},
        max(term.depth for row in rows for term in row),
    )
