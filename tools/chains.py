"""The derivations of a notebook, begun anew from its source: its statements that build them are run, and no others."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Set
from contextlib import chdir, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from figure_scripts import names
from linewise.derive import Derivation, collected
from linewise.derive.derivation import Line

_BUILDS = {"Derivation", "identity"}
_EXTENDS = {"step", "at_most", "at_least"}


@contextmanager
def taken_as_written() -> Iterator[None]:
    """Let derivations take their lines without a check, which the execution of the notebook has made.

    Of what they assume they keep what their rules state.
    """

    def take(chain: Derivation, line: Line) -> None:
        stated = dict.fromkeys(a for rule in line.rules for a in rule.assumes)
        chain._lines.append(replace(line, assumes=tuple(a for a in stated if a not in chain.assumptions)))

    verified = Derivation._add
    Derivation._add = take  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Derivation._add = verified  # type: ignore[method-assign]


def derivations(notebook: Path) -> list[Derivation]:
    """Run the statements of a notebook that its derivations depend on, and no others; return the derivations."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return list(_built("\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code"), notebook))


@cache  # five tests ask for those of every notebook
def _built(source: str, notebook: Path) -> tuple[Derivation, ...]:
    namespace: dict[str, Any] = {"__name__": "derivations"}
    with collected() as found, taken_as_written(), chdir(notebook.parent):
        for statement in relevant(ast.parse(source).body):
            exec(compile(ast.Module([statement], []), notebook.name, "exec"), namespace)
    return tuple(found)


def relevant(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that build derivations, and those that define what they use, in order.

    A derivation inside the call of a check is taken out of it, so that the check itself need not run. A function that
    builds one builds it where it is called.

    >>> source = "x = 1; y = 2; z = x; claims['a'].prove(identity(z, 1))"
    >>> [ast.unparse(s) for s in relevant(ast.parse(source).body)]
    ['x = 1', 'z = x', 'identity(z, 1)']
    >>> source = "def f(n): return identity(n, 1)\\ng = len(f)\\nclaims['a'].prove(f(2), *[f(k) for k in (3, 4)])"
    >>> [ast.unparse(s).replace("\\n    ", " ") for s in relevant(ast.parse(source).body)]
    ['def f(n): return identity(n, 1)', 'f(2)', '[f(k) for k in (3, 4)]']
    """
    kept: list[ast.stmt] = []
    live: set[str] = set()
    builders = _builders(statements)
    for statement in reversed(statements):
        inner = _inner_builds(statement, builders)
        reads, binds = names(statement)
        if not inner and not (binds & live):
            continue
        if isinstance(statement, ast.Assign | ast.FunctionDef):  # their names have nothing of their earlier values
            live -= binds
        live = live.union(*(names(s)[0] for s in inner)) if inner else live | reads
        kept[:0] = inner or [statement]
    return kept


def _builders(statements: list[ast.stmt]) -> frozenset[str]:
    """Return the names whose call begins a derivation: those of the engine, and the functions here that call them."""
    found = set(_BUILDS)
    functions = [s for s in statements if isinstance(s, ast.FunctionDef)]
    while more := {f.name for f in functions if f.name not in found and _calls(f, found)}:
        found |= more
    return frozenset(found)


def _calls(node: ast.AST, builders: Set[str]) -> bool:
    """Return whether a node begins a derivation, or is a function that does when it is called."""
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(isinstance(called, ast.Name) and called.id in builders for called in calls)


def _extends(node: ast.AST) -> bool:
    """Return whether a node adds a line to a derivation."""
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(isinstance(called, ast.Attribute) and called.attr in _EXTENDS for called in calls)


def _inner_builds(statement: ast.stmt, builders: frozenset[str]) -> list[ast.stmt]:
    """Return the statement itself if it builds or extends a derivation, or the builds that a check holds."""
    builds, extends = _calls(statement, builders), _extends(statement)
    if isinstance(statement, ast.FunctionDef | ast.ImportFrom | ast.Import) or not (builds or extends):
        return []
    if isinstance(statement, ast.Expr) and builds and not extends:
        return [ast.copy_location(ast.Expr(part), statement) for part in _outermost(statement.value, builders)]
    return [statement]


def _outermost(node: ast.AST, builders: frozenset[str]) -> Iterator[ast.expr]:
    """Yield the calls that build, each with the comprehension around it and none inside another."""
    called = node.func if isinstance(node, ast.Call) else None
    of_many = isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
    if (isinstance(called, ast.Name) and called.id in builders) or (of_many and _calls(node, builders)):
        assert isinstance(node, ast.expr)
        yield _all_of(node)
        return
    for part in ast.iter_child_nodes(node):
        yield from _outermost(part, builders)


def _all_of(node: ast.expr) -> ast.expr:
    """Return an expression that runs to its end: a list for a generator."""
    if not isinstance(node, ast.GeneratorExp):
        return node
    return ast.copy_location(ast.ListComp(node.elt, node.generators), node)
