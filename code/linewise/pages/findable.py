"""What a claim can be found and sorted by: pure functions from the book's folder and the rows of its ledger."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from linewise.conventions import TABLES
from linewise.ledger import Row
from linewise.ledger.card import MIME
from linewise.ledger.collate import records_of

_SIGNS = {
    r"\\sqrt\{([^{}]*)\}": r"√\1",
    r"\\(?:mathrm|text|operatorname)\{([^{}]*)\}": r"\1",
    r"\\ell\b": "l",
    r"\$": "",
}
# Words of Chinese, Japanese and Korean: a term in the language of the source is glossed in them.
_GLOSS = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")


def plain(text: str) -> str:
    r"""Return a sentence without the marks of its formulas, for a menu or a title that can show none.

    >>> plain(r"Why divide by $\sqrt{d_k}$?")
    'Why divide by √d_k?'
    """
    for sign, character in _SIGNS.items():
        text = re.sub(sign, character, text)
    return text


def _cells(root: Path, page: str) -> list[dict[str, Any]]:
    path = root / f"{page}.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))["cells"] if path.is_file() else []


@cache
def title_of(root: Path, page: str) -> str:
    """Return a chapter's title, as its first heading has it, or the name of its page where it has none."""
    text = "\n".join("".join(cell.get("source", "")) for cell in _cells(root, page)[:1])
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return plain(found[1].strip()) if found else page


def in_book_order(root: Path, rows: Iterable[Row]) -> list[str]:
    """Return the ids of the claims in the order of the book: its chapters, and in each the order of the checks.

    A claim that is not decided has no check, and comes last in its chapter.
    """
    contents = root / "_toc.yml"
    listed = yaml.load(contents.read_text(encoding="utf-8"), Loader=TABLES) if contents.is_file() else None
    pages = {page: rank for rank, page in enumerate(_files(listed))}
    rows = list(rows)
    checks: dict[str, int] = {}
    for page in dict.fromkeys(row.page for row in rows):
        checks |= {record["claim"]: rank for rank, record in enumerate(records_of(root / f"{page}.ipynb"))}
    key = {r.claim.id: (pages.get(r.page, len(pages)), r.page, checks.get(r.claim.id, len(rows))) for r in rows}
    return sorted(key, key=lambda name: key[name])


def _files(contents: Any) -> Iterator[str]:
    """Yield the pages that a table of contents lists, in its order, each as Sphinx names it.

    >>> list(_files({"root": "intro", "parts": [{"chapters": [{"file": "a/b.ipynb"}, {"url": "c"}, {"file": "d"}]}]}))
    ['a/b', 'd']
    """
    if isinstance(contents, dict):
        if isinstance(contents.get("file"), str):
            yield re.sub(r"\.(?:md|ipynb|rst)$", "", contents["file"])
        contents = list(contents.values())
    if isinstance(contents, list):
        for part in contents:
            yield from _files(part)


def sections_of(rows: Iterable[Row]) -> set[str]:
    """Return the sections of the sources that the claims of rows treat, and the sections that hold these."""
    treated = {tuple(place.split()[0].split(".")) for row in rows if not row.claim.is_own for place in row.claim.places}
    return {".".join(parts[:depth]) for parts in treated for depth in range(1, len(parts) + 1)}


def chapters_of(root: Path, rows: Iterable[Row]) -> list[str]:
    """Return the pages of the chapters that check the claims, in the order of the book."""
    page = {row.claim.id: row.page for row in rows}
    return list(dict.fromkeys(page[name] for name in in_book_order(root, rows)))


def glosses(root: Path, pages: Iterable[str]) -> dict[str, str]:
    """Return the glosses in the part of a chapter that checks a claim, from one heading to the next.

    A gloss is a term in Chinese, Japanese or Korean, the language of a source that a book in English checks.
    """
    found: dict[str, str] = {}
    for page in pages:
        for claims, words in _parts(_cells(root, page)):
            found |= dict.fromkeys(claims, " ".join(dict.fromkeys(words)))
    return {claim: words for claim, words in found.items() if words}


def _parts(cells: Iterable[dict[str, Any]]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the claims that each part of a chapter checks, and the glosses of its text."""
    claims: list[str] = []
    words: list[str] = []
    for cell in cells:
        source = "".join(cell.get("source", ""))
        if cell["cell_type"] == "markdown":
            if re.match(r"#{1,6} ", source):
                yield claims, words
                claims, words = [], []
            words += _GLOSS.findall(source)
        for output in cell.get("outputs", []):
            if MIME in output.get("data", {}):
                claims.append(output["data"][MIME]["claim"])
    yield claims, words
