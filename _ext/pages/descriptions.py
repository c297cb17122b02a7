"""What search engines and messengers show of a page: its title and the beginning of its first paragraph."""

from __future__ import annotations

from html import escape
from textwrap import shorten
from typing import Any

from docutils import nodes
from mathematics import plain_node
from paper.print_book import PRINTERS
from sphinx.application import Sphinx

#: About as much is shown by those who show it.
LONGEST = 200
#: What stands before the text of some pages, and does not say what they are about.
_ASIDE = (nodes.Admonition, nodes.container, nodes.table, nodes.topic, nodes.list_item, nodes.sidebar)


def description(doctree: nodes.document) -> str:
    """Return the beginning of the first paragraph that is no part of a box, a list or a cell; "" where none is.

    >>> document = nodes.document(None, None)
    >>> document += nodes.note("", nodes.paragraph("", "Beside."))
    >>> document += nodes.paragraph("", "Why divide by ", nodes.math("", r"\\sqrt{d_k}"), nodes.Text("?"))
    >>> description(document)
    'Why divide by √d_k?'
    """
    for paragraph in doctree.findall(nodes.paragraph):
        above = paragraph.parent
        while above is not None and not isinstance(above, _ASIDE):
            above = above.parent
        if above is None and (text := plain_node(paragraph).strip()):
            return shorten(text, LONGEST, placeholder=" …")
    return ""


def describe(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """Put the description of a page into its head; a page of the e-book has no place for it."""
    if app.builder.format != "html" or app.builder.name in PRINTERS or doctree is None:
        return
    if not (about := description(doctree)):
        return
    title = "".join(map(plain_node, next(iter(doctree.findall(nodes.title)), nodes.title()).children))
    named = {"og:title": title, "og:description": about, "og:type": "article", "og:site_name": app.config.html_title}
    said = [f'<meta name="description" content="{escape(about)}">']
    said += [f'<meta property="{name}" content="{escape(value)}">' for name, value in named.items()]
    context["metatags"] = context.get("metatags", "") + "\n" + "\n".join(said)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event."""
    app.connect("html-page-context", describe)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
