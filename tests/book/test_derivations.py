"""Every line of every derivation in the book is changed, one at a time, and each change is rejected."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sympy as sp

import stamps
from chains import derivations
from derivations import changes, really_changed
from linewise.derive import Derivation, display, identity
from linewise.kernel.record import digest
from linewise.ledger import card

NOTEBOOKS = stamps.notebooks([stamps.ROOT / "chapters"])
#: Changes of one kind that must be rejected on one line.
MOST = 1


def follows(chain: Derivation, number: int, changed: Any) -> bool:
    """Return whether a line that is changed still follows (the first line: whether the next follows from it)."""
    if number == 0:
        return chain.follows(changed, chain.lines[1])
    return chain.follows(chain.lines[number - 1].value, replace(chain.lines[number], value=changed))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_changed_line_is_rejected(notebook: Path) -> None:
    accepted, tried = [], 0
    for chain in derivations(notebook):
        for number, line in enumerate(chain.lines):
            rejected: Counter[str] = Counter()
            for kind, changed in changes(line.value):
                if rejected[kind] >= MOST:
                    continue
                if not follows(chain, number, changed):
                    rejected[kind] += 1
                elif really_changed(chain, line.value, changed):
                    accepted.append(f"{chain.name}, line {number + 1}, {kind}: {changed}")
            assert rejected, f"{chain.name}, line {number + 1}: no change was rejected"
            tried += rejected.total()
    assert accepted == []
    assert tried, "a chapter without a derivation"


def recorded(notebook: Path) -> dict[str, str]:
    """Return the names of the derivations in a notebook's records and below its cards, by their digest."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    shown = [data[display.MIME] for data in outputs if display.MIME in data]
    below = [record for data in outputs for record in data.get(card.MIME, {}).get("derivations", [])]
    return {digest(record): record["name"] for record in (*shown, *below)}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_derivation_of_the_records_is_built_again(notebook: Path) -> None:
    """What `derivations` does not build, the tests of derivations, models and the kernel do not see."""
    records, built = recorded(notebook), {digest(chain.record()) for chain in derivations(notebook)}
    assert records
    assert [name for known, name in records.items() if known not in built] == []


BUILDS_AT_A_CALL = """
import sympy as sp
from linewise.derive import identity
x = sp.Symbol("x")
def f(k):
    return identity(2 * x + k * x, (2 + k) * x, because="collect")
def g(k):
    return f(k)
"""


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("claims['a'].prove(f(2))", 1), ("claims['a'].prove(*(f(k) for k in (2, 3)))", 2),
        ("made = [f(k) for k in (2, 3)]", 2), ("for k in (2, 3):\n    f(k)", 2),
        ("made = {'two': g(2), 'three': g(3)}", 2), ("claims['a'].prove(outer=g(2))", 1), ("f", 0),
    ],
)  # fmt: skip
def test_a_function_builds_where_it_is_called(source: str, number: int, tmp_path: Path) -> None:
    notebook = tmp_path / "some.ipynb"
    notebook.write_text(json.dumps({"cells": [{"cell_type": "code", "source": BUILDS_AT_A_CALL + source}]}))
    assert len(derivations(notebook)) == number


def test_a_change_is_seen_for_what_it_is() -> None:
    x, y = sp.symbols("x y")
    u, i, n = sp.IndexedBase("u"), sp.Symbol("i", integer=True), sp.Symbol("n", integer=True, positive=True)
    kinds = {kind for kind, _ in changes(2 * x**2 - y * sp.Sum(u[i], (i, 1, n)))}
    assert kinds == {"factor", "sign", "exponent", "index", "limit", "term"}
    chain = identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand")
    assert really_changed(chain, chain.result, x**2 + 1) and not really_changed(chain, chain.result, (x + 1) ** 2)
    assert follows(chain, 1, (1 + x) ** 2) and not follows(chain, 0, x**2)
