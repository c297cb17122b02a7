"""``{chapter-references}``: the works that a chapter cites, listed in full where the chapter ends.

A chapter cites with the ``cite`` role. The one bibliography with labels stands on the References page, so no
key is ever defined twice; this directive lists what the page itself cited, and the page's citations lead
to that list, so that nobody leaves a chapter to see what it leans on.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from pybtex.plugin import find_plugin
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinxcontrib.bibtex.transforms import node_text_transform

logger = logging.getLogger(__name__)


def keys_in_order(keys: list[str], entries: Any) -> list[str]:
    """Return each cited key once, by first author, then year; unknown keys are left out.

    (sphinxcontrib-bibtex has reported the unknown ones already.)
    """

    def order(key: str) -> tuple[str, str]:
        people = entries[key].persons.get("author", [])
        return " ".join(people[0].last_names if people else [key]).lower(), entries[key].fields.get("year", "")

    return sorted({key for key in keys if key in entries}, key=order)


class ChapterReferences(SphinxDirective):
    """List the works cited above this directive on its page."""

    def run(self) -> list[nodes.Node]:
        """Return a list with one item for each work."""
        domain = self.env.get_domain("cite")
        refs = [r for r in domain.citation_refs if r.docname == self.env.docname]  # type: ignore[attr-defined]
        entries = domain.bibdata.data.entries  # type: ignore[attr-defined]
        keys = keys_in_order([target.key for ref in refs for target in ref.targets], entries)
        if not keys:
            logger.warning("chapter-references: this page cites nothing above", location=self.get_location())
            return []
        style = find_plugin("pybtex.style.formatting", self.config.bibtex_default_style)()
        listing = nodes.bullet_list(classes=["chapter-references"])
        for key in keys:
            text = domain.backend.paragraph(style.format_entry(label="", entry=entries[key]))  # type: ignore[attr-defined]
            node_text_transform(text)
            listing += nodes.list_item("", text, ids=[f"ref-{key}"])
        return [listing]


def stay_on_page(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Lead a page's citations to its own list, where it has one."""
    listed = {
        name.removeprefix("ref-")
        for listing in doctree.findall(nodes.bullet_list)
        if "chapter-references" in listing["classes"]
        for item in listing
        for name in item["ids"]
    }
    for reference in doctree.findall(nodes.reference):
        key = reference.get("refuri", "").rpartition("#")[2]
        if reference.get("internal") and key in listed:
            del reference["refuri"]
            reference["refid"] = f"ref-{key}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the event."""
    app.add_directive("chapter-references", ChapterReferences)
    app.connect("doctree-resolved", stay_on_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
