"""Of "What to remember", of tables and of solutions no change passes: what no other gate misses is stated twice."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import stamps
from fabricated import good_notebook
from formula_rules import Held, elsewhere, said_once, told, unheld, untrue
from near_misses import changes, missing, near_misses
from prose_numbers import in_phrases, miscounted, unprinted, unsolved
from stated import stated

NOTEBOOKS = {path.stem: path for path in stamps.notebooks()}
STATED = stated()
PHRASES, NUMBERS = STATED["phrases"], STATED["numbers"]


@cache
def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def held_in(name: str) -> Held:
    return elsewhere(read(NOTEBOOKS[name])) + told(STATED["formulas"].get(name, ()))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_could_be_changed_without_notice_is_stated_and_nothing_else(name: str) -> None:
    notebook, phrases = read(NOTEBOOKS[name]), PHRASES.get(name, [])
    found = [(words, set(range(*span))) for words, span in near_misses(notebook, held_in(name), NUMBERS.get(name, ()))]
    open_ = [words[min(span) : max(span) + 1] for words, span in found if not span <= in_phrases(words, phrases)]
    assert open_ == []
    needed = [p for p in phrases if any(span & in_phrases(words, [p]) for words, span in found)]
    assert needed == phrases
    assert missing(notebook, phrases) == []


def test_each_chapter_of_the_phrases_is_there() -> None:
    assert PHRASES.keys() <= NOTEBOOKS.keys()


def faults(name: str, notebook: Any) -> list[str]:
    """Return what the gates say of a notebook that stands for a chapter."""
    numbers = NUMBERS.get(name, ())
    found = unprinted(notebook, numbers) + unsolved(notebook, numbers) + miscounted(notebook)
    held = elsewhere(notebook) + told(STATED["formulas"].get(name, ()))
    found += untrue(notebook) + unheld(notebook, STATED["equations"]) + said_once(notebook, held)
    return found + missing(notebook, PHRASES.get(name, ()))


SPOILT = [
    ("concentration", "| $1/(k+1)$ | $3/2$ |", "| $0/(k+1)$ | $3/2$ |"),
    ("concentration", "| $3/2$ | $9/5$ |", "| $3/2$ | $9/6$ |"),
    ("gradients", r"| $n\times d_v$ |", r"| $n\times d_k$ |"),
    ("saturation", "tends to | $1+b^2$ |", "tends to | $1-b^2$ |"),
    ("fixed_patterns", "ranks are $n$, $n-1$, $n-1$", "ranks are $n$, $n-2$, $n-1$"),
    ("fixed_patterns", "Six of the seven have the", "Five of the seven have the"),
    ("remedies", "leaves the bound $d_k$", "leaves the bound $d_q$"),
    ("comparison", "with constants below 20", "with constants above 20"),
    ("sinusoidal_positions", "has the norm $\\sqrt{d/2}$.\n", "has the norm ${d/2}$.\n"),
    ("optimal_features", r"$\cosh|x-y|^2-1$ and $\cosh|x+y|^2-1$.", r"$\cosh|x+y|^2-1$ and $\cosh|x+y|^2-1$."),
    ("sinusoidal_positions", "so $i=123$, and", "so $i=122$, and"),
    ("linear_time", "lies between 64 and 65", "lies between 65 and 65"),
    ("masks", r"0 & j\le i", r"0 & i\le i"),
    ("decay", r"\qquad\lambda\in(0,1].", r"\qquad\lambda\notin(0,1]."),
]


@pytest.mark.parametrize(("chapter", "old", "new"), SPOILT, ids=[f"{name}: {new}" for name, _, new in SPOILT])
def test_a_near_miss_is_noticed(chapter: str, old: str, new: str) -> None:
    notebook = copy.deepcopy(read(NOTEBOOKS[chapter]))
    changed = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            changed += "".join(cell["source"]).count(old)
            cell["source"] = "".join(cell["source"]).replace(old, new)
    assert changed == 1
    assert faults(chapter, notebook)


# --- a small notebook ------------------------------------------------------------------------------


def tiny(remembered: str, elsewhere: str = "") -> Any:
    notebook = good_notebook()
    notebook["cells"][0]["source"] = f"{elsewhere}\n\n## What to remember\n\n{remembered}"
    return notebook


@pytest.mark.parametrize(
    ("remembered", "elsewhere", "open_"),
    [
        ("It is $n-1$.", "$n-1$", []),
        ("It is $n-1$.", "$n-1$, and $n-2$ as well.", ["$n-1$"]),
        ("It is at most $n-1$.", "At most $n-1$, and at least $n-1$.", ["$n-1$"]),
        ("There are three of 12.", "", ["three", "12"]),
        ("It is below half of them.", "", ["below", "half"]),
    ],
)
def test_what_could_be_another_thing_of_the_chapter_is_found(remembered: str, elsewhere: str, open_: list[str]) -> None:
    notebook = tiny(remembered, elsewhere)
    held = Held([elsewhere])
    found = [words[slice(*span)] for words, span in near_misses(notebook, held)]
    assert found == open_
    assert list(near_misses(notebook, held, [remembered])) == []
    assert missing(notebook, [remembered]) == []
    assert missing(tiny("Nothing."), [remembered]) == [remembered]


def test_a_number_of_a_solution_beside_a_printed_one_is_found() -> None:
    question = "```{exercise} A\n:label: a\nOf 12 and 13.\n```\n"
    notebook = tiny("Nothing.", question + "````{solution-start} a\n````\nIt is 12, not 40.\n````{solution-end}\n````")
    assert [words[slice(*span)] for words, span in near_misses(notebook, Held())] == ["12"]
    assert list(near_misses(notebook, Held(), ["is 12,"])) == []


@pytest.mark.parametrize(
    ("tex", "new"), [(r"\sqrt n", [" n", r"\sqrt d"]), (r"a\le2", [r"y\le2", r"a\ge 2", r"a\le3", r"a\le1"]),
                     ("q_i", ["k_i", "q_j"]), (r"Q^\top", [r"K^\top", "Q"]), (r"\mathrm{min}", [])]
)  # fmt: skip
def test_a_formula_is_changed_in_one_place(tex: str, new: list[str]) -> None:
    assert list(changes(tex)) == new
