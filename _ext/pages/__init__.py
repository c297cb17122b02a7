"""The finished look of every page of the site, and what a page gives: its references, its description, its download."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

PARTS = (
    "quicker_build", "numbers", "chapter_references", "tidy_html", "descriptions", "downloads", "chinese",
    "accessible_html", "light_pages", "guide", "routes",
)  # fmt: skip


def setup(app: Sphinx) -> dict[str, Any]:
    """Load the parts."""
    for part in PARTS:
        app.setup_extension(f"{__name__}.{part}")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
