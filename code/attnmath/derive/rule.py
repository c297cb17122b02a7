"""What a rule of a derivation is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import sympy as sp

Rewrite = Callable[[sp.Expr], sp.Expr]


@dataclass(frozen=True)
class Rule:
    """A rule: its name in words, and what it does to a line.

    on_difference : the rule compares integrals, and so rewrites the difference of two lines instead of each.
    tells : the rule tells what a symbol stands for, and so comes before all that evaluate what holds the symbol.
    """

    words: str
    rewrite: Rewrite = field(repr=False)
    on_difference: bool = False
    tells: bool = False


def bound_symbols(line: sp.Expr) -> set[sp.Symbol]:
    """Return the symbols over which a line sums or integrates."""
    signs = line.atoms(sp.Sum, sp.Product, sp.Integral)
    return {limit[0] for sign in signs for limit in sign.limits}
