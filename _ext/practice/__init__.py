"""What a reader can try: fields for the answers of exercises (`answers`), and "find the wrong line".

`practice.md` and ``practice/<folder>.md`` show where a line is wrong, in sets by chapter. They include a template of
``assets``, which is filled from the contents of the book when Sphinx reads the page; `linewise.pages.wrong_lines` draws
the exercises.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pages.guide import title
from sphinx.application import Sphinx
from sphinx.config import Config

from linewise.pages.wrong_lines import exercises

from .answers import SHIPPED

ASSETS = Path(__file__).parent / "assets"


class Chapter(NamedTuple):
    """A chapter with exercises: its page, its title in Markdown, and how many there are."""

    page: str
    title: str
    exercises: int


class Part(NamedTuple):
    """A part of the book: the folder of its chapters, its caption, and its chapters with exercises."""

    folder: str
    caption: str
    chapters: tuple[Chapter, ...]


@cache
def parts(root: Path) -> tuple[Part, ...]:
    """Return the parts of a book that have exercises, in the order of its contents."""
    return tuple(_parts(root))


def _parts(root: Path) -> Iterator[Part]:
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    for part in contents["parts"]:
        pages = [entry["file"] for entry in part["chapters"] if entry["file"].startswith("chapters/")]
        counts = {page: len(exercises(root / f"{page}.ipynb")) for page in pages}
        chapters = tuple(Chapter(page, title(root / f"{page}.ipynb"), n) for page, n in counts.items() if n)
        if chapters:
            yield Part(pages[0].split("/")[1], part["caption"], chapters)


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill the template of a page of exercises."""
    first, _, folder = docname.partition("/")
    if first == "practice":
        templates = Environment(
            loader=FileSystemLoader(ASSETS), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        known = {"parts": parts(Path(app.srcdir)), "folder": folder, "on_site": app.builder.name == "html"}
        source[0] = templates.from_string(source[0]).render(known)


def publish(app: Sphinx, config: Config) -> None:
    """Have Sphinx copy the script and the style sheet of the fields."""
    config.html_static_path += [str(ASSETS / name) for name in SHIPPED]


def setup(app: Sphinx) -> dict[str, Any]:
    """Load the fields, and register the events."""
    app.setup_extension(f"{__name__}.answers")
    app.connect("config-inited", publish)
    app.connect("source-read", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
