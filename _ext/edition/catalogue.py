"""Catalogues: for each page of the book a PO file with its messages, and what they are in another language.

A message is known by its English text. When that changes, its translation becomes *stale* (fuzzy, as PO files say): it
is kept beside the new text for the translator, and not shown. A page with a message that is stale or missing is not
part of the edition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from babel.messages import Catalog
from babel.messages.pofile import read_po, write_po

from .blocks import blocks, translated

#: Where the catalogues of all languages are, below the root of the book.
FOLDER = "lang"
#: The catalogue of the words that no page holds: what programs, templates and scripts write into pages.
WORDS = "words"


@dataclass(frozen=True)
class Translation:
    """The catalogue of a page: what is translated, and which messages have no translation that fits."""

    known: dict[str, str]
    stale: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every message has a translation that fits."""
        return not self.stale and not self.missing

    def __call__(self, message: str) -> str:
        """Return a message in the other language, and as it is where it has no translation."""
        return self.known.get(message, message)


def path_of(root: Path, language: str, page: str) -> Path:
    """Return the file of a page's catalogue."""
    return root / FOLDER / language / f"{page}.po"


def pages_of(root: Path, language: str) -> list[str]:
    """Return the pages that have a catalogue, in the order of their names."""
    folder = root / FOLDER / language
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.po"))


def source_of(root: Path, page: str) -> Path:
    """Return the file of a page; raise ValueError where there is none."""
    for suffix in (".md", ".ipynb"):
        if (path := root / f"{page}{suffix}").is_file():
            return path
    raise ValueError(f"page: expected one of the book, such as read/note, got {page!r}")


def messages(path: Path) -> list[str]:
    """Return the messages of a page, each once, in order."""
    return list(dict.fromkeys(_messages(path)))


def _messages(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from (block.text for block in blocks(text))
        return
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "markdown":
            yield from (block.text for block in blocks("".join(cell["source"])))
        else:
            yield from (holder[key] for holder, key in _described(cell))


def _described(cell: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield where the caption and the alternative text of a cell's figure are."""
    described = cell["metadata"].get("mystnb") or {}
    for part, key in (("figure", "caption"), ("image", "alt")):
        if (described.get(part) or {}).get(key):
            yield described[part], key


def read(path: Path, wanted: list[str]) -> Translation:
    """Return what a catalogue knows of the messages of its page."""
    with path.open("rb") as file:
        found = {str(one.id): one for one in read_po(file) if one.id}
    known = {name: str(one.string) for name, one in found.items() if one.string and not one.fuzzy}
    stale = tuple(name for name in wanted if name in found and found[name].fuzzy)
    missing = tuple(name for name in wanted if name not in known and name not in stale)
    return Translation(known, stale, missing)


def of_page(root: Path, language: str, page: str) -> Translation:
    """Return the translation of a page."""
    return read(path_of(root, language, page), messages(source_of(root, page)))


def of_words(root: Path, language: str) -> dict[str, str]:
    """Return the words that no page holds, by their English ones."""
    path = path_of(root, language, WORDS)
    with path.open("rb") as file:
        return {str(one.id): str(one.string) for one in read_po(file) if one.id and one.string and not one.fuzzy}


def merge(path: Path, wanted: list[str], language: str) -> None:
    """Write a page's catalogue anew: with its messages as they are now, and the translations that there were."""
    template = Catalog(locale=language, fuzzy=False)
    for message in wanted:
        template.add(message)
    if path.is_file():
        with path.open("rb") as file:
            catalogue = read_po(file, locale=language)
        catalogue.update(template, no_fuzzy_matching=False, keep_user_comments=True)
    else:
        catalogue = template
    for one in catalogue:
        one.flags.discard("python-brace-format")  # braces are roles here
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        # Without dates and places: a line changes when its message does.
        write_po(
            file, catalogue, width=0, omit_header=True, no_location=True, include_previous=True, ignore_obsolete=True
        )


def translated_page(path: Path, translate: Callable[[str], str]) -> str:
    """Return the text of a page's file with its messages translated; code and outputs stay as they are."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return translated(text, translate)
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = translated("".join(cell["source"]), translate).splitlines(keepends=True)
        for holder, key in _described(cell) if cell["cell_type"] == "code" else ():
            holder[key] = translate(holder[key])
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def titles(text: str) -> list[str]:
    """Return the headings of a page in Markdown."""
    return re.findall(r"^#+ (.+)$", text, re.MULTILINE)
