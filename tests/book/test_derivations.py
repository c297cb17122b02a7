"""Every line of every derivation in the book is changed, one at a time, and each change is rejected."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sympy as sp

import stamps
from chains import derivations
from derivations import changes, really_changed
from linewise.derive import Derivation, identity

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


def test_a_change_is_seen_for_what_it_is() -> None:
    x, y = sp.symbols("x y")
    u, i, n = sp.IndexedBase("u"), sp.Symbol("i", integer=True), sp.Symbol("n", integer=True, positive=True)
    kinds = {kind for kind, _ in changes(2 * x**2 - y * sp.Sum(u[i], (i, 1, n)))}
    assert kinds == {"factor", "sign", "exponent", "index", "limit", "term"}
    chain = identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand")
    assert really_changed(chain, chain.result, x**2 + 1) and not really_changed(chain, chain.result, (x + 1) ** 2)
    assert follows(chain, 1, (1 + x) ** 2) and not follows(chain, 0, x**2)
