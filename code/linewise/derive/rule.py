"""What a rule of a derivation is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from linewise.derive.exact import exact

#: What a rule does to a line.
Rewrite = Callable[[sp.Expr], sp.Expr]


@dataclass(frozen=True)
class Rule:
    """A rule: its name in words, and what it does to a line.

    on_difference : the rule compares integrals, and so rewrites the difference of two lines instead of each.
    tells : the rule tells what a symbol stands for, and so comes before all that evaluate what holds the symbol.
    meanings : what the rule takes symbols to stand for, itself or through a derivation, as pairs of symbol and value.
    """

    words: str
    rewrite: Rewrite = field(repr=False)
    on_difference: bool = False
    tells: bool = False
    meanings: tuple[tuple[Any, Any], ...] = field(default=(), repr=False, compare=False)


def bound_symbols(line: sp.Expr) -> set[sp.Symbol]:
    """Return the symbols over which a line sums or integrates."""
    signs = line.atoms(sp.Sum, sp.Product, sp.Integral)
    return {limit[0] for sign in signs for limit in sign.limits}


def contradiction(meanings: Sequence[tuple[Any, Any]]) -> str:
    """Return in words which symbol has two different values or depends on itself, and "" if there is none.

    >>> x, y = sp.symbols("x y")
    >>> contradiction([(x, 2 * y), (x, y)])
    'x is 2*y and y'
    >>> contradiction([(x, 2 * y), (y, x + 1)])
    'x is defined by itself'
    >>> contradiction([(x, 2 * y), (y, 3)])
    ''
    """
    # Chains that build on chains bring the same definition many times; each is compared once.
    different = [m for k, m in enumerate(meanings) if m not in meanings[:k]]
    for k, later in enumerate(different):
        for earlier in different[:k]:
            one, two = _at_one_place(earlier, later)
            if one != two and (isinstance(one, sp.MatrixExpr) or sp.simplify(one - two) != 0):
                return f"{later[0]} is {one} and {two}"
    heads = {_head(symbol) for symbol, _ in meanings}
    uses: dict[Any, set[Any]] = {head: set() for head in heads}
    for symbol, value in meanings:
        own = set(symbol.args) if isinstance(symbol, AppliedUndef) else set()
        parts = {_head(part) for part in sp.preorder_traversal(exact(value)) if part not in own}
        uses[_head(symbol)] |= parts & heads
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        return f"{min(map(str, error.args[1]))} is defined by itself"
    return ""


def _head(symbol: Any) -> Any:
    return symbol.func if isinstance(symbol, AppliedUndef) else symbol


def _at_one_place(one: tuple[Any, Any], two: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the values that two definitions give to the same thing, and a pair of zeros where there is no such thing.

    The arguments of a function that are symbols stand for any argument.
    """
    (f, f_value), (g, g_value) = one, two
    if _head(f) != _head(g) or len(f.args) != len(g.args):
        return 0, 0
    if not isinstance(f, AppliedUndef):
        return f_value, g_value
    g_arguments = [sp.Dummy(a.name, **a.assumptions0) if a.is_Symbol else a for a in g.args]
    pairs = list(zip(f.args, g_arguments, strict=True))
    if any(not a.is_Symbol and not b.is_Symbol and a != b for a, b in pairs):
        return 0, 0
    g_value = exact(g_value).subs(dict(zip(g.args, g_arguments, strict=True)), simultaneous=True)
    f_value = exact(f_value).subs({a: b for a, b in pairs if a.is_Symbol}, simultaneous=True)
    return f_value, g_value.subs({b: a for a, b in pairs if b.is_Symbol and not a.is_Symbol}, simultaneous=True)
