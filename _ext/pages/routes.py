"""Routes through the book: which pages a reader with an hour, an evening or six weeks reads, and how long each takes.

`guide/routes.yml` has the routes; the page `guide/routes` and the landing page show them. Minutes are computed from the
pages as they are, and none is written down.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from sphinx.application import Sphinx

from linewise.pages.first_reading import Section, in_words, level_of, path, sections, total
from linewise.pages.ledger_pages import book_of
from linewise.pages.read_along import title_in
from linewise.pages.reading_time import minutes, words_of

FILE = "guide/routes.yml"


@dataclass(frozen=True)
class Step:
    """A page of a route.

    page, title : which page, and what it is called, in Markdown.
    whole : whether all of it is read, or what stands open alone.
    minutes : of reading.
    assigned : the labels of the exercises that belong to it here.
    """

    page: str
    title: str
    whole: bool
    minutes: int
    assigned: tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """A way through the book.

    name, says : what it is called, and for whom it is.
    limit : how many minutes it may take; 0 where nothing limits it.
    steps : its pages.
    weekly : whether it is a week of the course.
    """

    name: str
    says: str
    limit: int
    steps: tuple[Step, ...]
    weekly: bool = False

    @property
    def minutes(self) -> int:
        """The minutes of all pages."""
        return sum(step.minutes for step in self.steps)

    @property
    def exercises(self) -> int:
        """The minutes of the exercises."""
        count = sum(len(step.assigned) for step in self.steps)
        return minutes(0, 0, count) if count else 0


def cells_of(root: Path, page: str) -> list[dict[str, Any]]:
    """Return the cells of a page: those of a notebook, or its Markdown as one cell.

    Raises ValueError where there is no such page.
    """
    notebook, markdown = root / f"{page}.ipynb", root / f"{page}.md"
    if notebook.is_file():
        return json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    if not markdown.is_file():
        raise ValueError(f"routes: no page {page!r}")
    return [{"cell_type": "markdown", "metadata": {}, "source": markdown.read_text(encoding="utf-8")}]


def labels(cells: list[dict[str, Any]]) -> list[str]:
    """Return the labels of the exercises of a page, in their order."""
    texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return [label for text in texts for label in re.findall(r"\{exercise\}[^\n]*\n:label: (\S+)", text)]


def step(root: Path, entry: str | dict[str, Any]) -> Step:
    """Return a step; an entry is a page, or a page with what is done there."""
    about = {"page": entry} if isinstance(entry, str) else entry
    cells = cells_of(root, about["page"])
    parts, assigned = sections(cells), tuple(about.get("exercises", ()))
    if unknown := set(assigned) - set(labels(cells)):
        raise ValueError(f"routes: {about['page']} has no exercise {', '.join(sorted(unknown))}")
    whole = bool(about.get("whole", False))
    length = total(part.length for part in parts) if whole else path(parts)
    return Step(about["page"], title_in(cells), whole, length.minutes, assigned)


def routes(root: Path) -> list[Route]:
    """Return the routes of a book."""
    listed = yaml.safe_load((root / FILE).read_text(encoding="utf-8"))
    return [
        Route(
            one["name"],
            one["says"],
            one.get("minutes", 0),
            tuple(step(root, entry) for entry in one["steps"]),
            one.get("weekly", False),
        )
        for one in listed
    ]


def errata_minutes(app: Sphinx) -> int:
    """Return how long the amended and refuted sentences take, each with what holds instead."""
    claims = [row.claim for row in book_of(app).rows if row.claim.holds]
    return minutes(sum(words_of(f"{claim.reading} {claim.holds}") for claim in claims), 0, 0)


def parts_of(root: Path, page: str) -> list[Section]:
    """Return the sections of a chapter."""
    return sections(cells_of(root, page))


def lengths(root: Path, page: str) -> tuple[str, str]:
    """Return a chapter's level, and how long it takes, in words."""
    cells = cells_of(root, page)
    return level_of(cells), ", ".join(in_words(sections(cells))[:2])


def book_words(root: Path) -> Iterator[int]:
    """Yield how many words the path of each chapter has."""
    for notebook in sorted((root / "chapters").glob("*/*.ipynb")):
        yield path(parts_of(root, notebook.relative_to(root).with_suffix("").as_posix())).words


def tell(app: Sphinx, context: dict[str, Any]) -> None:
    """Tell the templates."""
    root = Path(app.srcdir)
    context |= {
        "routes": partial(routes, root),
        "errata_minutes": partial(errata_minutes, app),
        "lengths": partial(lengths, root),
        "words_of_the_path": lambda: sum(book_words(root)),
    }


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event of the engine's pages."""
    app.connect("linewise-context", tell)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
