"""What the chapters draw and number, gathered on pages of its own: the gallery of figures and the sheet of formulas.

Their pages include templates of ``assets``, which are filled when Sphinx reads a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sphinx.application import Sphinx
from sphinx.config import Config

ASSETS = Path(__file__).parent / "assets"
#: The first folder of a page, or its name, and the style sheets and scripts that it loads.
LOADED = {"gallery": ("gallery.css", "gallery.js"), "formulas": ("formulas.css",)}


def filled(text: str, filters: Mapping[str, Any], **known: Any) -> str:
    """Return the text of a page, and of the templates that it includes, filled with what is known."""
    loader = FileSystemLoader(ASSETS)
    templates = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    templates.filters |= filters
    return templates.from_string(text).render(known)


def publish(app: Sphinx, config: Config) -> None:
    """Have Sphinx copy the style sheets and the script."""
    config.html_static_path += [str(ASSETS / name) for names in LOADED.values() for name in names]


def load(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Load them on the pages that they are for."""
    for name in LOADED.get(page.partition("/")[0], ()):
        if name.endswith(".css"):
            app.add_css_file(name)
        else:
            app.add_js_file(name, loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Load the parts, and register the events."""
    for part in ("formulas", "figures"):
        app.setup_extension(f"{__name__}.{part}")
    app.connect("config-inited", publish)
    app.connect("html-page-context", load)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
