"""Cards that notebooks issue for what was measured, and how to issue one again for made-up data.

A card is the last expression of its cell. What this expression needs is executed as the notebook has it, statement by
statement, back to the names that are given: these stand for the data, and nothing that would compute them runs.
"""

from __future__ import annotations

import ast
import json
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import stamps
from linewise.ledger import card

#: Methods that change what they are called on.
CHANGING = {"append", "extend", "insert", "setdefault", "update", "add"}


class Names(NamedTuple):
    """What a statement needs, what it binds, and what it changes."""

    needs: frozenset[str]
    binds: frozenset[str]
    changes: frozenset[str]


@dataclass(frozen=True)
class Card:
    """What one observes for a claim: its record, and the statements of its notebook up to the card, which is last."""

    record: dict[str, Any]
    statements: tuple[str, ...]

    @property
    def observations(self) -> list[dict[str, Any]]:
        return [parts for parts in self.record["evidence"] if parts["kind"] == "observation"]

    def issue(self, given: Mapping[str, Any]) -> None:
        """Execute the card with these names, and before it what it needs of the notebook besides."""
        space = dict(given)
        for place in self.needed(given):
            exec(_compiled(self.statements[place]), space)
            space |= given

    def needed(self, given: Mapping[str, Any]) -> list[int]:
        """Return which statements the card needs where these names are given."""
        found, waiting = set(), {len(self.statements) - 1}
        while waiting:
            place = waiting.pop()
            found.add(place)
            waiting |= set(self._sources(place, given)) - found
        return sorted(found)

    def _sources(self, place: int, given: Mapping[str, Any]) -> Iterator[int]:
        for name in names_of(self.statements[place]).needs - set(given):
            for earlier in range(place - 1, -1, -1):
                if name in (source := self.statements[earlier]):
                    names = names_of(source)
                    if name in names.binds | names.changes:
                        yield earlier
                    if name in names.binds:
                        break


def cards() -> dict[str, Card]:
    """Return the card of every claim with an observation, by claim."""
    return {one.record["claim"]: one for path in stamps.notebooks() for one in _cards_of(path)}


def _cards_of(path: Path) -> Iterator[Card]:
    statements: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            statements += _statements("".join(cell["source"]))
            records = [out["data"][card.MIME] for out in cell["outputs"] if card.MIME in out.get("data", {})]
            for record in records:
                if any(parts["kind"] == "observation" for parts in record["evidence"]):
                    yield Card(record, tuple(statements))


def _statements(source: str) -> list[str]:
    starts = [min([node, *getattr(node, "decorator_list", [])], key=lambda part: part.lineno).lineno - 1
              for node in ast.parse(source).body]  # fmt: skip
    lines = source.splitlines()
    return ["\n".join(lines[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=True)]


@cache
def _compiled(source: str) -> Any:
    return compile(source, "notebook", "exec")


@cache
def names_of(source: str) -> Names:
    """Return the names of a statement.

    >>> [sorted(part) for part in names_of("x[y] = [f(z) for z in w]")]
    [['f', 'w', 'x', 'y'], [], ['x']]
    >>> [sorted(part) for part in names_of("for z in w: x = f(z); x.append(y)")]
    [['f', 'w', 'x', 'y'], ['x', 'z'], ['x']]
    """
    (node,) = ast.parse(source).body
    table = symtable.symtable(source, "notebook", "exec")
    symbols = table.get_symbols()
    stored = {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}
    read = {one.get_name() for one in symbols if one.is_referenced()} | _read_within(table)
    called = [part.value.func for part in ast.walk(node) if isinstance(part, ast.Expr)
              and isinstance(part.value, ast.Call)]  # fmt: skip
    parts = [part for part in ast.walk(node) if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)]
    parts += [func for func in called if isinstance(func, ast.Attribute) and func.attr in CHANGING]
    changes = {part.value.id for part in parts if isinstance(part.value, ast.Name)}
    if isinstance(node, ast.AugAssign):
        changes, stored = changes | stored, set()
    own = stored if isinstance(node, ast.For | ast.With) else set()  # its own variables
    return Names(frozenset(read - own | changes), frozenset(stored), frozenset(changes))


def _read_within(table: symtable.SymbolTable) -> set[str]:
    found = {one.get_name() for child in table.get_children() for one in child.get_symbols() if one.is_global()}
    return found.union(*map(_read_within, table.get_children()))
