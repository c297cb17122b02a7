"""Small repairs of the pages: ids that stand twice, and pictures that do not enlarge."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

#: The ids that sphinx-exercise and sphinx-proof give to each of their boxes, by the node that bears them.
REPEATED = {nodes.section: {"exercise-content", "solution-content", "proof-content"}, nodes.admonition: {"proof"}}


def unique_ids(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Strip the ids that are repeated: an id may stand once on a page."""
    for kind, repeated in REPEATED.items():
        for node in doctree.findall(kind):
            node["ids"] = [name for name in node["ids"] if name not in repeated]


def enlarge(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make each picture of a figure a link to its file, so that a click shows it alone and as large as one likes."""
    on_site = app.builder.format == "html" and app.builder.name != "epub"
    for figure in doctree.findall(nodes.figure) if on_site else ():
        for image in list(figure.findall(nodes.image)):
            candidates: dict[str, str] = image.get("candidates", {})
            uri = candidates.get("image/svg+xml", image["uri"])  # of `picture.*`, what a site shows
            _, name = app.env.images.get(uri, (None, ""))
            if name and not isinstance(image.parent, nodes.reference):
                folder = relative_uri(app.builder.get_target_uri(docname), app.builder.imagedir)
                link = nodes.reference("", "", refuri=f"{folder}/{name}", internal=True)
                image.replace_self(link)
                link += image


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the repairs."""
    app.connect("doctree-resolved", unique_ids)
    app.connect("doctree-resolved", enlarge)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
