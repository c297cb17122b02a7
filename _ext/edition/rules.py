"""What translations into a language must keep: its file ``rules.yml``, and the glossary of the book."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml
from reference.terms import PAGE as GLOSSARY
from reference.terms import read_glossary
from search.documents import ASKED, asked_of, plain

from . import catalogue
from .faults import faults

Names = dict[str, list[str]]


class Rules(NamedTuple):
    """The names that each term may have, and the words that each word may become, by the pattern that finds it."""

    terms: Names
    logic: Names


@cache
def rules_of(root: Path, language: str) -> Rules:
    """Return the rules of a language."""
    found = yaml.safe_load((root / catalogue.FOLDER / language / "rules.yml").read_text(encoding="utf-8"))
    terms = {
        rf"{re.escape(name)}(?:s|es)?": [*term.chinese, *found["terms"].get(term.name, []), term.name]
        for term in read_glossary(root / f"{GLOSSARY}.yml").terms
        for name in term.english
    }
    return Rules(terms, found["logic"])


@cache
def asked(root: Path, language: str) -> dict[str, dict[str, list[str]]]:
    """Return what is asked of the pages in a language."""
    return asked_of(root / catalogue.FOLDER / language)


def faults_of(root: Path, language: str, page: str) -> Iterator[str]:
    """Yield what is wrong with the translation of a page, message by message, and with what is asked of the page."""
    terms, logic = rules_of(root, language)
    translation = catalogue.of_page(root, language, page)
    if not translation.complete:
        first = (*translation.missing, *translation.stale)[0]
        said = f"{len(translation.missing)} messages are missing, {len(translation.stale)} are stale"
        yield f"{page}: the page stays in English: {said}, such as {first[:60]!r}"
    titles = {plain(said) for said in translation.known.values()}
    for title in asked(root, language).get(page, {}):
        if translation.complete and title not in titles:
            yield f"{page}: no section {title!r}, of which {ASKED} asks"
    for message, said in translation.known.items():
        yield from (f"{page}: {fault}, in {message[:60]!r}" for fault in faults(message, said, terms, logic))
