"""Section 5.1.6: the summaries (m, l, o) of online softmax and their merger, in symbols.

The numerical twin is `attnmath.online`; the definitions are the same, with sympy's Max and exp.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sympy as sp


class Summary(NamedTuple):
    """The largest score m, the sum l of exp(s - m), and the sum o of exp(s - m) v."""

    m: Any
    l: Any  # noqa: E741  (the usual name of the running sum)
    o: Any


def one_key(s: Any, v: Any) -> Summary:
    """Summary of a single key with score s and value v.

    >>> one_key(*sp.symbols("s v"))
    Summary(m=s, l=1, o=v)
    """
    return Summary(s, sp.Integer(1), v)


def merge(first: Summary, second: Summary) -> Summary:
    """Summary of two blocks together.

    >>> s = sp.Symbol("s", real=True)
    >>> merge(one_key(s, 1), one_key(s, 2))
    Summary(m=s, l=2, o=3)
    """
    m = sp.Max(first.m, second.m)
    a, b = sp.exp(first.m - m), sp.exp(second.m - m)
    return Summary(m, a * first.l + b * second.l, a * first.o + b * second.o)


def totals(summary: Summary) -> tuple[sp.Expr, sp.Expr]:
    """The sums of exp(s) and of exp(s) v that a summary stands for: l exp(m) and o exp(m).

    >>> totals(one_key(*sp.symbols("s v")))
    (exp(s), v*exp(s))
    """
    factor = sp.exp(summary.m)
    return sp.expand(summary.l * factor), sp.expand(summary.o * factor)
