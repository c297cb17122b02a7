"""Beside every card and derivation of a notebook stands a record, from which each of its forms is drawn again."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import stamps
from linewise.conventions import conventions_of
from linewise.derive import display
from linewise.ledger import card

CONVENTIONS = conventions_of(stamps.ROOT)
DRAWS = {card.MIME: card, display.MIME: display}
FORMS = ("plain", "html", "latex")
#: How the HTML of a card or a derivation is known: one that has no record is a fault.
SHOWN = re.compile(r'class="(?:claim-card|derivation)\b')


def drawing(kind: str, form: str) -> Callable[[Any], str]:
    """Return what draws a record in one of its forms; a card says its place as this book does."""
    draw = getattr(DRAWS[kind], form)
    return partial(draw, conventions=CONVENTIONS) if draw in (card.html, card.latex) else draw


def outputs_of(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the data of each output."""
    for cell in notebook["cells"]:
        yield from (output["data"] for output in cell.get("outputs", []) if "data" in output)


def faults(notebook: dict[str, Any]) -> list[str]:
    """Return what of a notebook's cards and derivations cannot be drawn again from its record."""
    found, known = [], set()
    for data in outputs_of(notebook):
        stored = {kind: "".join(text) for kind, text in data.items() if kind.startswith("text/")}
        records = {kind: data[kind] for kind in DRAWS if kind in data}
        if not records and SHOWN.search(stored.get("text/html", "")):
            found.append(f"no record: {stored['text/plain'][:60]}")
        for kind, record in records.items():
            chains = record.get("derivations", []) if kind == card.MIME else [record]
            known |= {display.fingerprint(chain) for chain in chains}
            drawn = {f"text/{form}": drawing(kind, form)(record) for form in FORMS}
            found += [f"{form}: {stored['text/plain'][:60]}" for form in drawn if drawn[form] != stored.get(form)]
            named = [parts["derivation"] for parts in record.get("evidence", []) if parts["kind"] == "derivation"]
            found += [f"{record['claim']}: no derivation {name} above" for name in named if name not in known]
    return found


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


@pytest.mark.parametrize("path", stamps.notebooks(), ids=lambda path: path.stem)
def test_what_a_notebook_shows_is_drawn_again_from_its_records(path: Path) -> None:
    assert faults(read(path)) == []


CHAPTER = stamps.ROOT / "chapters" / "operator" / "scaling.ipynb"


def first(notebook: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(data for data in outputs_of(notebook) if kind in data and data[kind].get("evidence", True))


SPOILT: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "a derivation without a record": (display.MIME, lambda data: data.pop(display.MIME)),
    "a card without a record": (card.MIME, lambda data: data.pop(card.MIME)),
    "a card without its LaTeX": (card.MIME, lambda data: data.pop("text/latex")),
    "another line": (display.MIME, lambda data: data[display.MIME]["lines"][-1].update(tex="0")),
    "another reason": (display.MIME, lambda data: data[display.MIME]["lines"][-1].update(reason="so it is")),
    "another reading": (card.MIME, lambda data: data[card.MIME].update(reading="It is so.")),
    "another derivation": (card.MIME, lambda data: data[card.MIME]["evidence"][0].update(derivation="0" * 12)),
    "HTML that was changed": (display.MIME, lambda data: data.update({"text/html": "<table></table>"})),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_record_that_says_something_else_is_noticed(what: str) -> None:
    kind, spoil = SPOILT[what]
    notebook = copy.deepcopy(read(CHAPTER))
    spoil(first(notebook, kind))
    assert faults(notebook)


def test_the_records_of_a_chapter_are_smaller_than_what_they_draw() -> None:
    """A formula stands in a record once in TeX and once in plain text, and no sentence does."""
    shown = [data for data in outputs_of(read(CHAPTER)) if set(DRAWS) & set(data)]
    records = sum(len(json.dumps(data[kind])) for data in shown for kind in DRAWS if kind in data)
    drawn = sum(len("".join(data[f"text/{form}"])) for data in shown for form in FORMS)
    assert len(shown) > 10 and records < drawn / 2
