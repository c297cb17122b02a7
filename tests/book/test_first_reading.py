"""In each chapter the path of a first reading is short, holds what matters, and the rest is told in one line."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages.guide import needed
from pages.routes import FILE, labels, routes, step

from linewise.conventions import conventions_of
from linewise.ledger.coverage import read_sources, tags_of
from linewise.pages.first_reading import Section, heading_of, level_of, path, sections
from notebook_rules import COLLAPSED, Notebook, folded_sections, text

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted(notebook.relative_to(ROOT) for notebook in (ROOT / "chapters").glob("*/*.ipynb"))
NAMES = [notebook.stem for notebook in CHAPTERS]
#: So many words the path of a chapter may have, and so many those of all chapters.
WORDS, ALL = 1800, 75_000
FURTHER = "\n\n```{further}\nA line that tells it.\n```"


@cache
def notebook(chapter: Path) -> Notebook:
    return json.loads((ROOT / chapter).read_text(encoding="utf-8"))


def cells(chapter: Path) -> list[Notebook]:
    return notebook(chapter)["cells"]


def words(chapter: Path) -> int:
    return path(sections(cells(chapter))).words


def shown(parts: list[Section]) -> set[str]:
    """Return the numbers of the equations that stand open."""
    texts = [text(cell["source"]) for part in parts if not part.folded for cell in part.cells]
    return {
        number for display in re.findall(r"\$\$.*?\$\$", "\n".join(texts), re.DOTALL) for number in tags_of(display)
    }


def pictures(part: Section) -> int:
    """Return how many pictures a section has, those that a reader moves among them."""
    return sum(
        bool((cell["metadata"].get("mystnb") or {}).get("figure"))
        or (cell["cell_type"] == "markdown" and "{interactive}" in text(cell["source"]))
        for cell in part.cells
    )


@pytest.mark.parametrize("chapter", CHAPTERS, ids=NAMES)
def test_the_path_of_a_chapter_is_short(chapter: Path) -> None:
    assert words(chapter) <= WORDS
    longer = {"cell_type": "markdown", "metadata": {}, "source": " one more word" * WORDS}
    assert path(sections([*cells(chapter)[:1], longer])).words > WORDS


def test_the_path_of_all_chapters_is_short() -> None:
    assert sum(map(words, CHAPTERS)) <= ALL


@pytest.mark.parametrize("chapter", CHAPTERS, ids=NAMES)
def test_what_goes_further_is_told_in_one_line_and_folded_in_jupyter_too(chapter: Path) -> None:
    assert list(folded_sections(notebook(chapter))) == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=NAMES)
def test_the_opening_the_closing_and_a_picture_stand_open(chapter: Path) -> None:
    """Who reads no more than the path knows what the chapter asks, sees it in a picture, and has what to remember."""
    parts = sections(cells(chapter))
    opened = [part for part in parts if not part.folded]
    assert {parts[0].title, "What to remember", "Exercises"} <= {part.title for part in opened}
    assert any(map(pictures, opened))


def test_the_numbered_equations_of_the_sources_stand_open() -> None:
    """A reader of a source looks for its equations: none is folded away."""
    numbers = {number for source in read_sources(ROOT) for row in source.rows for number in row.equations}
    opened = [shown(sections(cells(chapter))) for chapter in CHAPTERS]
    assert len(numbers) > 50
    assert numbers - set().union(*opened) == set()


def test_an_equation_in_a_folded_section_does_not_stand_open() -> None:
    cell = {"cell_type": "markdown", "metadata": {}, "source": f"# T\n\n## S{FURTHER}\n\n$$x=1 \\tag{{5.1.5}}$$"}
    assert shown(sections([cell])) == set()
    assert shown(sections([cell | {"source": cell["source"].replace(FURTHER, "")}])) == {"5.1.5"}


# --- spoilt copies ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoilt", "fault"),
    [
        ("# T" + FURTHER, "is a title, or folded already"),
        ("Words." + FURTHER, "expected one block `further` right below a heading"),
        ("## S\n\nWords." + FURTHER, "expected one block `further` right below a heading"),
        ("## S" + FURTHER + FURTHER, "expected one block `further` right below a heading"),
        ("## S\n\n```{further}\nNo stop\n```", "expected a sentence on one line"),
        ("## S\n\n```{further}\nTwo\nlines.\n```", "expected a sentence on one line"),
        ("## S" + FURTHER + "\n\nWords.", "do not stand in a cell alone"),
        ("## S" + FURTHER + "\n\n## Next", "do not stand in a cell alone"),
    ],
)
def test_a_block_at_a_wrong_place_is_noticed(spoilt: str, fault: str) -> None:
    cell = {"cell_type": "markdown", "metadata": {COLLAPSED: True}, "source": spoilt}
    assert fault in "\n".join(folded_sections({"cells": [cell]}))


def test_a_fold_that_jupyter_does_not_know_is_noticed() -> None:
    cell: Notebook = {"cell_type": "markdown", "metadata": {COLLAPSED: True}, "source": "## S" + FURTHER}
    inside = cell | {"source": "### Inside" + FURTHER}
    ends = cell | {"source": "Words.\n\n## Next"}
    assert list(folded_sections({"cells": [cell, ends | {"source": "## Next"}]})) == []
    assert "JupyterLab does not fold 'S'" in "\n".join(folded_sections({"cells": [cell | {"metadata": {}}]}))
    assert "folded already" in "\n".join(folded_sections({"cells": [cell, inside]}))
    assert "'Next' ends a folded section and does not begin a cell" in "\n".join(
        folded_sections({"cells": [cell, ends]})
    )


# --- levels ------------------------------------------------------------------------------------------


def rank(cells_: list[Notebook]) -> int:
    return list(conventions_of(ROOT).levels).index(level_of(cells_))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=NAMES)
def test_a_chapter_asks_for_no_less_than_the_chapters_that_it_needs(chapter: Path) -> None:
    before = [Path(f"{page}.ipynb") for page in needed(ROOT / chapter, ROOT)]
    assert all(rank(cells(other)) <= rank(cells(chapter)) for other in before)


def test_every_level_is_used() -> None:
    assert {level_of(cells(chapter)) for chapter in CHAPTERS} == set(conventions_of(ROOT).levels)


# --- routes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", routes(ROOT), ids=lambda route: route.name)
def test_a_route_takes_no_longer_than_it_says(route: Any) -> None:
    assert route.steps and (not route.limit or route.minutes <= route.limit)
    assert len({step.page for step in route.steps}) == len(route.steps)


def test_a_route_follows_the_order_of_the_book() -> None:
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    order = [entry["file"] for part in contents["parts"] for entry in part["chapters"]]
    for route in routes(ROOT):
        at = [order.index(step.page) for step in route.steps]
        assert at == sorted(at), route.name


def test_an_exercise_or_a_page_that_is_not_there_is_noticed() -> None:
    entry = next(e for one in yaml.safe_load((ROOT / FILE).read_text()) for e in one["steps"] if isinstance(e, dict))
    assert set(entry["exercises"]) <= set(labels(cells(Path(f"{entry['page']}.ipynb"))))
    spoilt = copy.deepcopy(entry)
    spoilt["exercises"].append("exercise-none")
    with pytest.raises(ValueError, match="has no exercise exercise-none"):
        step(ROOT, spoilt)
    with pytest.raises(ValueError, match="no page 'chapters/none'"):
        step(ROOT, "chapters/none")


def test_a_whole_chapter_takes_longer_than_its_path() -> None:
    page = "chapters/matrix/rank"
    assert step(ROOT, {"page": page, "whole": True}).minutes > step(ROOT, page).minutes
    assert heading_of(text(cells(Path(f"{page}.ipynb"))[0]["source"])) is not None
