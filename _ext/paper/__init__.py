"""The book where no browser is: on paper, by way of LaTeX, and as an e-book."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Load the parts."""
    for part in ("print_book", "ebook", "spoken"):
        app.setup_extension(f"{__name__}.{part}")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
