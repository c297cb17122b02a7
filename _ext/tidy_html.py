"""Small repairs of the pages: ids that stand twice, pictures that do not enlarge, TeX in the titles of tabs."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.osutil import relative_uri

REPEATED = {"exercise-content", "solution-content", "proof-content"}


class UniqueIds(SphinxPostTransform):
    """Strip the ids that sphinx-exercise and sphinx-proof repeat: an id may stand once on a page."""

    default_priority = 900

    def run(self, **kwargs: Any) -> None:
        """Visit the sections and the proofs of one page."""
        for section in self.document.findall(nodes.section):
            section["ids"] = [name for name in section["ids"] if name not in REPEATED]
        for proof in self.document.findall(nodes.admonition):
            proof["ids"] = [name for name in proof["ids"] if name != "proof"]


def enlarge(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make each picture of a figure a link to its file, so that a click shows it alone and as large as one likes."""
    if app.builder.format != "html":
        return
    for figure in doctree.findall(nodes.figure):
        for image in list(figure.findall(nodes.image)):
            _, name = app.env.images.get(image["uri"], (None, ""))
            if name and not isinstance(image.parent, nodes.reference):
                folder = relative_uri(app.builder.get_target_uri(docname), app.builder.imagedir)  # type: ignore[attr-defined]
                link = nodes.reference("", "", refuri=f"{folder}/{name}", internal=True)
                image.replace_self(link)
                link += image


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
    """Register the repairs."""
    app.add_post_transform(UniqueIds)
    app.connect("doctree-resolved", enlarge)
    app.connect("html-page-context", tidy_title)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
