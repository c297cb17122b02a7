"""What is wrong with a book, all in one list: the command prints it, and a build of the site warns of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from linewise.conventions import FILE, book_of
from linewise.ledger import coverage, lexicon, read_along
from linewise.ledger.claims import each
from linewise.ledger.collate import audit, collate


def faults(root: str | Path) -> list[str]:
    """Return what is wrong with a book; an empty list is a clean bill.

    It is asked of its conventions, ledger, coverage, lexicon and pages to read along.

    Raises `LedgerError` when claims, notebooks or tables are not well-formed, with a line for each.
    """
    unread = _no_conventions(Path(root).resolve())
    parts: list[Callable[[str | Path], list[Any]]] = [collate] if unread else [collate, coverage.read_sources]
    rows, *sources = each(lambda read: read(root), parts)
    found = [*unread, *([] if rows else ["no claims in the book"]), *audit(root), *lexicon.problems(root)]
    if not any(sources):
        return found
    return found + coverage.problems(root) + read_along.problems(root, [row.claim for row in rows])


def _no_conventions(folder: Path) -> list[str]:
    """Say where a book has no conventions of its own: those of a folder above it name no table in it."""
    if book_of(folder) == folder:
        return []
    other = Path(FILE).with_suffix(".yaml")
    named = f" ({other} is not read)" if (folder / other).is_file() else ""
    return [f"no {FILE} in {folder}: no source is covered{named}"]
