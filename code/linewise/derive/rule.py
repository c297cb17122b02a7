"""What a rule of a derivation is, and the guard on what it puts in the place of what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import sympy as sp
from sympy.core.expr import Expr
from sympy.core.function import AppliedUndef

from linewise.derive.assumptions import Assumption
from linewise.derive.exact import exact

#: What a rule does to a line.
Rewrite = Callable[[sp.Expr], sp.Expr]
# Only this package makes rules: a rule with any function could state anything. An author states equations, which a
# page shows as assumptions, with `linewise.derive.rules.hypothesis`.
_MAKES = ContextVar("makes a rule", default=False)


@dataclass(frozen=True)
class Rule:
    """A rule: its name in words, and what it does to a line. The functions of `linewise.derive.rules` make them.

    on_difference : the rule compares integrals, and so rewrites the difference of two lines instead of each.
    tells : the rule tells what a symbol stands for, and so comes before all that evaluate what holds the symbol.
    assumes : what the rule assumes, itself or through a derivation. (Of a line that it rewrites it may assume more.)
    states : the equations that it takes from derivations, each as left and right.
    """

    words: str
    rewrite: Rewrite = field(repr=False)
    on_difference: bool = False
    tells: bool = False
    assumes: tuple[Assumption, ...] = field(default=(), repr=False, compare=False)
    states: tuple[tuple[Any, Any], ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a rule that anybody else makes, a changed copy too."""
        if not _MAKES.get():
            raise TypeError(
                "rules: expected a named rule of linewise.derive.rules; a rule of one's own could state anything. "
                "What is assumed is stated by rules.hypothesis, and the page says so"
            )


def made(
    words: str,
    rewrite: Rewrite,
    *,
    on_difference: bool = False,
    tells: bool = False,
    assumes: Sequence[Assumption] = (),
    states: Sequence[tuple[Any, Any]] = (),
) -> Rule:
    """Make a rule of this package."""
    token = _MAKES.set(True)
    try:
        return Rule(words, rewrite, on_difference, tells, tuple(assumes), tuple(states))
    finally:
        _MAKES.reset(token)


#: The signs that bind a symbol: within them it is a place, and outside nothing is known of it.
BINDERS = (sp.Sum, sp.Product, sp.Integral, sp.Limit, sp.Derivative, sp.Subs, sp.Lambda)


def bound_symbols(line: Any) -> set[Any]:
    """Return the symbols, components and entries that the signs of a line bind.

    >>> x, y = sp.symbols("x y")
    >>> sorted(map(str, bound_symbols(sp.Integral(x, (x, 0, 1)) + sp.Limit(1 / y, y, sp.oo))))
    ['x', 'y']
    """
    return set().union(*(bound_by(sign) for sign in exact(line).atoms(*BINDERS)))


def bound_by(sign: Any) -> set[Any]:
    """Return the symbols, components and entries that a sign binds."""
    if isinstance(sign, sp.Limit):
        return {sign.args[1]}
    if isinstance(sign, sp.Derivative | sp.Subs | sp.Lambda):
        return set(sign.variables)
    return {limit[0] for limit in sign.limits}


def guard(line: Any, old: Any, new: Any, own: Any = frozenset(), name: str = "value") -> None:
    """Refuse to put `new` in the place of `old` where a sign of the line binds a symbol of either.

    own : symbols of `new` that stand for what is at their place in `old`, and so may be bound.
    """
    held = {sign for sign in line.atoms(*BINDERS) if _occurs_in(sign, old)}
    bound = set().union(*(bound_by(sign) for sign in held))
    if isinstance(old, sp.Symbol) and old in bound:
        raise ValueError(f"{name}: expected {old} to be free, and a sign of the line binds it: {line}")
    free = exact(new).free_symbols - set(own)
    caught = {b for b in bound if b in free or (isinstance(b, sp.Indexed) and b.base in {_base(f) for f in free})}
    if caught:
        words = ", ".join(sorted(map(str, caught)))
        raise ValueError(
            f"{name}: expected no symbol that the line sums or integrates over or differentiates by, got {words}"
        )


def _base(symbol: Any) -> Any:
    return symbol.base if isinstance(symbol, sp.Indexed) else symbol


def _occurs_in(sign: Any, old: Any) -> bool:
    if isinstance(old, AppliedUndef):
        return any(f.func == old.func for f in sign.atoms(AppliedUndef))
    if isinstance(old, sp.Indexed):
        return any(part.base == old.base for part in sign.atoms(sp.Indexed))
    if isinstance(old, sp.Symbol):
        return old in sign.atoms(sp.Symbol)
    if isinstance(old, Expr) and not old.is_Atom and old.free_symbols:
        return bool(old.free_symbols & sign.atoms(sp.Symbol))
    return bool(sign.has(old))


def contradiction(assumptions: Sequence[Assumption]) -> str:
    """Return in words which two assumptions say different things of one thing, and "" if there are none.

    >>> x, y = sp.symbols("x y")
    >>> one, two, three = (Assumption("definition", *pair) for pair in ((x, 2 * y), (x, y), (y, x + 1)))
    >>> contradiction([one, two])
    'x is 2*y and y'
    >>> contradiction([one, three])
    'x is defined by itself'
    >>> contradiction([one])
    ''
    """
    equations = [a for a in dict.fromkeys(assumptions) if a.kind == "definition"]
    for k, later in enumerate(equations):
        for earlier in equations[:k]:
            one, two = at_one_place(earlier, later)
            if one == two:
                continue
            gap = sp.S.One if isinstance(one, sp.MatrixExpr) else sp.simplify(one - two)
            if gap.is_nonzero or (gap != 0 and not (isinstance(later.left, sp.Indexed) and later.left != earlier.left)):
                return f"{later.left} is {one} and {two}"
    heads = {_head(a.left) for a in equations}
    uses: dict[Any, set[Any]] = {head: set() for head in heads}
    for a in equations:
        own = set(a.left.args) if isinstance(a.left, AppliedUndef) else set()
        parts = {_head(part) for part in sp.preorder_traversal(exact(a.right)) if part not in own}
        uses[_head(a.left)] |= parts & heads
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        return f"{min(map(str, error.args[1]))} is defined by itself"
    return ""


def _head(symbol: Any) -> Any:
    return symbol.func if isinstance(symbol, AppliedUndef) else symbol


def at_one_place(one: Assumption, two: Assumption) -> tuple[Any, Any]:
    """Return the values that two equations give to the same thing, and a pair of zeros where there is no such thing.

    The arguments of a function and the places of a component that are symbols stand for any.
    """
    f, g = one.left, two.left
    if isinstance(f, sp.Indexed) and isinstance(g, sp.Indexed) and f.base == g.base:
        f_places, g_places = f.indices, g.indices
    elif isinstance(f, AppliedUndef) and isinstance(g, AppliedUndef) and f.func == g.func:
        f_places, g_places = f.args, g.args
    elif f == g:
        return one.right, two.right
    else:
        return 0, 0
    if len(f_places) != len(g_places):
        return 0, 0
    names = {b: sp.Dummy(b.name, **b.assumptions0) for b in g_places if b in two.every}
    g_places = [names.get(b, b) for b in g_places]
    pairs = list(zip(f_places, g_places, strict=True))
    if any(a not in one.every and b not in names.values() and a != b for a, b in pairs):
        return 0, 0
    of_f = {a: b for a, b in pairs if a in one.every}
    of_g = {b: a for a, b in pairs if b in names.values() and a not in one.every}
    g_value = exact(two.right).subs(names, simultaneous=True)
    return exact(one.right).subs(of_f, simultaneous=True), g_value.subs(of_g, simultaneous=True)


def places(left: Any) -> frozenset[Any]:
    """Return the symbols that stand for any argument of a function, or for any place of a component."""
    if isinstance(left, sp.Indexed):
        return frozenset().union(*(i.free_symbols for i in left.indices))
    return frozenset(a for a in left.args if a.is_Symbol) if isinstance(left, AppliedUndef) else frozenset()
