"""Two small repairs of the pages: ids that stand twice, and TeX in the titles of browser tabs."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

REPEATED = {"exercise-content", "solution-content", "proof-content"}


class UniqueIds(SphinxPostTransform):
    """Strip the ids that sphinx-exercise and sphinx-proof repeat: an id may stand once on a page."""

    default_priority = 900

    def run(self, **kwargs: Any) -> None:
        """Visit the sections of one page."""
        for section in self.document.findall(nodes.section):
            section["ids"] = [name for name in section["ids"] if name not in REPEATED]


def plain_title(title: str) -> str:
    r"""Take the delimiters of MathJax out of a title: the tab of a browser shows them as they are.

    >>> plain_title(r"Why divide by \(d_k\)?")
    'Why divide by d_k?'
    """
    return title.replace(r"\(", "").replace(r"\)", "")


def tidy_title(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Tidy the title that a page gives to its tab."""
    if context.get("title"):
        context["title"] = plain_title(context["title"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register both repairs."""
    app.add_post_transform(UniqueIds)
    app.connect("html-page-context", tidy_title)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
