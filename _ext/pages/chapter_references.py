"""``{chapter-references}``: the works that a chapter cites, listed in full where the chapter ends.

A chapter cites with the ``cite`` role. The one bibliography with labels stands on the References page, so no
key is ever defined twice; this directive lists what the page itself cites, and the page's citations lead
to that list, so that nobody leaves a chapter to see what it leans on.
"""

from __future__ import annotations

from typing import Any, cast

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinxcontrib.bibtex.directives import BibliographyDirective
from sphinxcontrib.bibtex.domain import BibtexDomain

logger = logging.getLogger(__name__)


class ChapterReferences(BibliographyDirective):
    """A bibliography without labels of the works cited on its page, in the order of the References page."""

    def run(self) -> list[nodes.Node]:
        """Return what sphinxcontrib-bibtex turns into a list with one item for each work."""
        cited = cast(BibtexDomain, self.env.get_domain("cite")).citation_refs
        if all(ref.docname != self.env.docname for ref in cited):
            logger.warning("chapter-references: this page cites nothing above", location=self.get_location())
        self.options |= {"list": "bullet", "filter": "docname in docnames"}
        return list(super().run())


def stay_on_page(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Lead a page's citations to its own list, where it has one."""
    listed = {name: item for item in doctree.findall(nodes.list_item) if "docname" in item for name in item["ids"]}
    for item in listed.values():
        item.parent["classes"] = ["chapter-references"]
    for reference in doctree.findall(nodes.reference):
        key = reference.get("refuri", "").rpartition("#")[2]
        if reference.get("internal") and key in listed:
            del reference["refuri"]
            reference["refid"] = key


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the event."""
    app.add_directive("chapter-references", ChapterReferences)
    app.connect("doctree-resolved", stay_on_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
