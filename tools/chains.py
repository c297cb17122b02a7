"""The derivations of a notebook, begun anew from its source: its statements that build them are run, and no others."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
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
    source = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    namespace: dict[str, Any] = {"__name__": "derivations"}
    with collected() as found, taken_as_written(), chdir(notebook.parent):
        for statement in relevant(ast.parse(source).body):
            exec(compile(ast.Module([statement], []), notebook.name, "exec"), namespace)
    return found


def relevant(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that build derivations, and those that define what they use, in order.

    A derivation inside the call of a check is taken out of it, so that the check itself need not run.

    >>> source = "x = 1; y = 2; z = x; claims['a'].prove(identity(z, 1))"
    >>> [ast.unparse(s) for s in relevant(ast.parse(source).body)]
    ['x = 1', 'z = x', 'identity(z, 1)']
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


def _builders(statements: list[ast.stmt]) -> set[str]:
    """Return what builds derivations, the functions of a notebook that do among them."""
    found = set(_BUILDS)
    for function in (s for s in statements if isinstance(s, ast.FunctionDef)):
        if any(isinstance(n, ast.Name) and n.id in found for n in ast.walk(function)):
            found.add(function.name)
    return found


def _inner_builds(statement: ast.stmt, builders: set[str]) -> list[ast.stmt]:
    """Return the statement itself if it builds or extends a derivation, or the builds that a check holds."""
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    builds = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id in builders]
    extends = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in _EXTENDS]
    if isinstance(statement, ast.FunctionDef | ast.ImportFrom | ast.Import) or not (builds or extends):
        return []
    if isinstance(statement, ast.Expr) and builds and not extends:
        return [ast.copy_location(ast.Expr(c), statement) for c in builds]
    return [statement]
