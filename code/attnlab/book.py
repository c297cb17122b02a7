"""The book that the laboratory belongs to: where its claims are."""

from __future__ import annotations

from pathlib import Path

#: Where the build puts the claims of all chapters, and the book's conventions (setup.py).
INSTALLED = Path(__file__).parent / "claims"
#: The checkout that an editable installation runs from.
CHECKOUT = Path(__file__).parents[2]


def claims() -> list[Path]:
    """Return the folders that hold claims of the book: of the installation, or of the checkout.

    A notebook of the book finds its claims by them wherever it runs: the entry point of the group ``linewise.books``
    names this function.
    """
    return [INSTALLED] if INSTALLED.is_dir() else sorted(p for p in CHECKOUT.glob("chapters/*") if p.is_dir())
