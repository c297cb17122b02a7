"""What a derivation assumes: each assumption as a value that programs read and that a page shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import Any, Literal, TypeVar, cast

import sympy as sp

from linewise.derive.exact import exact

Call = TypeVar("Call", bound=Callable[..., Any])
#: What an assumption says of its left side. The signs and ``integer`` are sympy's words for the same.
Kind = Literal[
    "definition",  # left is short for right
    "hypothesis",  # left equals right
    "moment",  # the expectation on the left is the right side
    "law",  # the random number on the left has the density, from low to high, on the right
    "same law",  # the random numbers on the left have one law
    "independence",  # the groups on the left are independent of one another
    "components",  # the components of the random vector on the left are independent and of one law
    "range",  # the index on the left lies between the two ends on the right
    "integer", "positive", "nonnegative", "negative", "nonpositive", "nonzero",
]  # fmt: skip


@dataclass(frozen=True)
class Assumption:
    """One thing that a derivation assumes and does not derive.

    left, right : what it speaks of, and what it says of that (see `Kind`).
    every : the symbols in it that stand for any value; all others are those of the chain.
    words : what the author calls it.
    """

    kind: Kind
    left: Any
    right: Any = None
    every: frozenset[Any] = frozenset()
    words: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.right, int):
            object.__setattr__(self, "right", sp.Integer(self.right))

    def __str__(self) -> str:
        """Say the assumption in plain text."""
        left, right = _plain(self.left), _plain(self.right)
        said = {
            "definition": f"{left} := {right}",
            "hypothesis": f"{left} = {right}",
            "moment": f"{left} = {right}",
            "law": f"{left} has a density: {right}",
            "same law": f"{left} have one law",
            "independence": f"{left} are independent",
            "components": f"the components of {left} are independent and of one law",
            "range": f"{left} lies in {right}",
            "integer": f"{left} is an integer",
        }
        return said.get(self.kind) or f"{left} {_SIGNS_PLAIN[self.kind]} 0"

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols of the chain that the assumption speaks of, without those that stand for any value."""
        sides = (side for side in (self.left, self.right) if isinstance(side, sp.Basic))
        return set().union(*(side.free_symbols for side in sides)) - self.every

    def at(self, values: Mapping[Any, Any]) -> Assumption:
        """Return what is assumed where symbols of the chain have values."""
        moved = {s: v for s, v in values.items() if s not in self.every}
        if not moved or not any(s in self.free_symbols for s in moved):
            return self
        left, right = (side.subs(moved) if isinstance(side, sp.Basic) else side for side in (self.left, self.right))
        return replace(self, left=left, right=right)


_SIGNS_PLAIN = {"positive": ">", "nonnegative": ">=", "negative": "<", "nonpositive": "<=", "nonzero": "!="}


def _plain(side: Any) -> str:
    if isinstance(side, frozenset):  # a set has no order of its own, and a page needs one
        parts = sorted(map(_plain, side))
        return f"({', '.join(parts)})" if len(parts) > 1 else ", ".join(parts)
    if isinstance(side, tuple | sp.Tuple):
        return ", ".join(map(_plain, side))
    return str(side)


#: The assumptions that say what a symbol or an expression equals, and may not move to other values of its symbols.
EQUATIONS = ("definition", "hypothesis", "moment", "law")
#: The assumptions on the sign or the kind of a number, by sympy's words.
SIGNS = ("integer", "positive", "nonnegative", "negative", "nonpositive", "nonzero")

_NOTED: ContextVar[list[Assumption] | None] = ContextVar("noted", default=None)


def assume(assumption: Assumption) -> None:
    """Note what a rule takes for granted of the line that it rewrites just now."""
    noted = _NOTED.get()
    if noted is not None and assumption not in noted:
        noted.append(assumption)


def require(assumption: Assumption, note: bool = False) -> Assumption | None:
    """Return an assumption on a sign or range that is not certain, and None where it is; refuse what breaks it.

    note : note it as well, as what the rule that rewrites just now takes for granted.

    >>> n = sp.Symbol("n", integer=True, positive=True)
    >>> require(Assumption("nonnegative", n - 1)), str(require(Assumption("nonnegative", n - 2)))
    (None, 'n - 2 >= 0')
    """
    if assumption.kind == "range":
        low, high = assumption.right
        ends = [Assumption("nonnegative", assumption.left - low), Assumption("nonnegative", high - assumption.left)]
        if all(require(end) is None for end in ends):
            return None
    elif assumption.kind in SIGNS:
        known = getattr(exact(assumption.left), f"is_{assumption.kind}")
        if known:
            return None
        if known is False:
            raise ValueError(f"{assumption.left}: expected a value that is {assumption.kind}")
    if note:
        assume(assumption)
    return assumption


@contextmanager
def noted() -> Iterator[list[Assumption]]:
    """Collect what rules take for granted inside the block."""
    found: list[Assumption] = []
    token = _NOTED.set(found)
    try:
        yield found
    finally:
        _NOTED.reset(token)


def remembering(size: int) -> Callable[[Call], Call]:
    """Cache a function together with what it takes for granted, which each further call notes again."""

    def wrap(function: Call) -> Call:
        @lru_cache(maxsize=size)
        def kept(*arguments: Any) -> tuple[Any, tuple[Assumption, ...]]:
            with noted() as found:
                value = function(*arguments)
            return value, tuple(found)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            value, found = kept(*arguments)
            for assumption in found:
                assume(assumption)
            return value

        return cast(Call, call)

    return wrap
