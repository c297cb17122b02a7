"""Ledger, errata and coverage are filtered and sorted in the reader's browser.

The form is in the pages (``templates/filter.md``), hidden, and so are the data of each entry (``ledger_pages``).
The script shows the form and serves it; without scripts the pages are complete, in their own order. Of a divided ledger
it gets what the lines leave out when a reader types a word, unfolds a line or narrows the list (``ledger_pages``).
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from linewise.pages.ledger_pages import PAGES, PARTS


def add(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Load both on the pages that have a form, and on no other page."""
    if page in PAGES:
        app.add_js_file("formula_text.js", defer="defer")
        app.add_js_file("claim_filter.js", defer="defer")  # no module: a browser loads none from a file
    if page in PAGES or page.startswith(PARTS):
        app.add_css_file("claim_filter.css")


def setup(app: Sphinx) -> None:
    """Register the event."""
    app.connect("html-page-context", add)
