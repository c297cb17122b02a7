"""Figures that the reader moves: a picture in the page, which a script turns into sliders and charts.

    ```{interactive} row
    :name: fig-play-row
    ```

puts the figure `row` of `pictures.FIGURES` on a page, under a name that the text refers to. A browser without scripts,
print, and every builder but HTML show the picture. The scripts and the tables come with the pages that have such a
figure, and no other page loads them; Chart.js, which draws, comes when the reader nears the first figure.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.pyplot as plt
from docutils import nodes
from docutils.parsers.rst import directives
from paper.print_book import PRINTERS
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attnmath.figures.show import STYLE, encode

from .pictures import FIGURES, WORDS, texts

ASSETS = Path(__file__).parent / "assets"
#: What a page with a figure loads at once, as one file, with the small head that two figures share between its parts.
PARTS = (
    "formulas.js", "matrices.js", "frame.js", "figures/rows.js", "figures/heads.js", "figures/patterns.js",
    "figures/features.js", "figures/begin.js",
)  # fmt: skip
SHIPPED = ("interactive.css", "vendor/chart.umd.js")


class InteractiveDirective(SphinxDirective):
    """``{interactive} NAME``: a figure with a caption and a name, whose classes tell the script what to make of it."""

    required_arguments = 1
    option_spec: ClassVar = {"name": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Return the figure."""
        kind = self.arguments[0]
        if kind not in FIGURES:
            raise self.error(f"interactive: expected one of {', '.join(FIGURES)}, got {kind!r}")
        if "name" not in self.options:
            raise self.error(f"interactive: expected a name to refer to {kind!r} by, such as `:name: fig-play-{kind}`")
        words_of_figures = Path(self.env.srcdir) / WORDS
        described = texts(words_of_figures)[kind]
        self.env.note_dependency(str(words_of_figures))
        uri = os.path.relpath(pictures_of(self.env.app), Path(self.env.doc2path(self.env.docname)).parent)
        image = nodes.image(uri=f"{Path(uri).as_posix()}/interactive-{kind}.*", alt=described["alt"])
        said = ["caption", "on_paper"] if self.env.app.builder.name in PRINTERS else ["caption"]
        caption = " ".join(described[part] for part in said if part in described)
        words, messages = self.parse_inline(caption, lineno=self.lineno)
        figure = nodes.figure("", image, classes=["interactive", f"interactive-{kind}"])
        figure += nodes.caption(caption, "", *words)
        self.set_source_info(figure)
        self.set_source_info(figure[1])
        self.add_name(figure)
        return [figure, *messages]


def pictures_of(app: Sphinx) -> Path:
    """Return where the pictures of a build are."""
    return Path(app.doctreedir, "interactive")


def prepare(app: Sphinx) -> None:
    """Draw the pictures, and put scripts and tables where the pages of a site find them."""
    folder = pictures_of(app)
    folder.mkdir(parents=True, exist_ok=True)
    with plt.style.context(STYLE):
        for kind, draw in FIGURES.items():
            figure = draw()
            (folder / f"interactive-{kind}.svg").write_bytes(encode(figure, "svg"))
            if app.builder.format == "latex":
                figure.savefig(folder / f"interactive-{kind}.pdf", metadata={"CreationDate": None})
            plt.close(figure)
    if app.builder.name == "html":
        from .tables import scripts

        target = Path(app.outdir, "_static", "interactive")
        target.mkdir(parents=True, exist_ok=True)
        for name in SHIPPED:
            shutil.copy(ASSETS / name, target)
        tables = dict(scripts())
        parts = [tables.pop("head.js"), *((ASSETS / part).read_text(encoding="utf-8") for part in PARTS)]
        for name, text in {"interactive.js": "".join(parts), **tables}.items():
            (target / name).write_text(text, encoding="utf-8")


def load(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Let the pages that have an interactive figure load its script and its style."""
    figures = doctree.findall(nodes.figure) if doctree is not None and app.builder.name == "html" else ()
    if any("interactive" in figure["classes"] for figure in figures):
        app.add_css_file("interactive/interactive.css")
        app.add_js_file("interactive/interactive.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the events."""
    app.add_directive("interactive", InteractiveDirective)
    app.connect("builder-inited", prepare)
    app.connect("html-page-context", load)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
