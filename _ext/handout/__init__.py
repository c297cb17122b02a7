"""What a lecturer and a writer take from a page: how to cite it, its formulas as TeX, its files, a handout on paper.

And what a reader looks up without leaving it: what a term or a symbol means, in a box beside the word.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from mathematics import plain_text
from paper.print_book import PRINTERS
from reference.terms import glossary_of
from sphinx.application import Sphinx
from sphinx.config import Config

from . import citation

ASSETS = Path(__file__).parent / "assets"


def publish(app: Sphinx, config: Config) -> None:
    """Have Sphinx copy the style sheet and the script."""
    config.html_static_path += [str(ASSETS / name) for name in ("handout.css", "handout.js")]


def write_terms(app: Sphinx, exception: Exception | None) -> None:
    """Write what each term means to a file, which a page loads when a reader asks for the first one."""
    if exception is not None or app.builder.name not in {"html", "dirhtml"}:
        return
    said = {
        f"term-{nodes.make_id(term.name)}": plain_text(term.says.replace("$", ""))
        for term in glossary_of(app.env).terms
    }
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, "_static", "terms.js").write_text(f"window.glossaryTerms = {text};\n", encoding="utf-8")


def complete(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Add the citation to the foot of a page, its parts to the head, and the files to the menu of downloads."""
    if app.builder.format != "html" or app.builder.name in PRINTERS or doctree is None:
        return
    app.add_css_file("handout.css")
    app.add_js_file("handout.js", loading_method="defer")
    work = citation.of_page(app, page)
    context["metatags"] = context.get("metatags", "") + "\n" + citation.metatags(work)
    context["body"] = citation.on_paper(work) + context.get("body", "") + citation.block(work)
    for button in context.get("header_buttons", []):
        if button.get("label") == "download-buttons":
            button["buttons"] += citation.downloads(work)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.connect("config-inited", publish)
    app.connect("html-page-context", complete, priority=900)  # after the theme has made its buttons
    app.connect("build-finished", write_terms)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
