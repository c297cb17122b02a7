"""Catalogues: for each page of the book a PO file with its messages, and what they are in another language.

A message is known by its English text. When that changes, its translation becomes *stale* (fuzzy, as PO files say): it
is kept beside the new text for the translator, and not shown. A page with a message that is stale or missing is not
part of the edition.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from babel.messages import Catalog
from babel.messages.pofile import read_po, write_po

from . import files

#: Where the catalogues of all languages are, below the root of the book.
FOLDER = "lang"
#: The catalogue of the words that no page holds: what programs, templates and scripts write into pages.
WORDS = "words"
#: The catalogues of what scripts write into pages, of the templates of the engine's sentences, and of the words in
#: pictures.
SCRIPTS, ENGINE, LABELS = "scripts", "engine", "labels"


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
    names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.po"))
    return [name for name in names if name not in (WORDS, SCRIPTS, ENGINE, LABELS)]


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
    return read(path_of(root, language, page), files.messages(root, page))


def of_words(root: Path, language: str, name: str = WORDS) -> dict[str, str]:
    """Return the words that no page holds, by their English ones; `name` is their catalogue."""
    path = path_of(root, language, name)
    with path.open("rb") as file:
        return {str(one.id): str(one.string) for one in read_po(file) if one.id and one.string and not one.fuzzy}


def merge(root: Path, language: str, page: str, path: Path | None = None) -> None:
    """Write a page's catalogue anew: with its messages as they are now, and the translations that there were.

    path : the catalogue, its own unless given.
    """
    path, wanted = path or path_of(root, language, page), files.messages(root, page)
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
