"""The pages of `reference/`: the package's modules, the glossary and the notation, with the links that lead there."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Load the parts."""
    for part in ("api", "terms", "notation", "symbol_links"):
        app.setup_extension(f"{__name__}.{part}")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
