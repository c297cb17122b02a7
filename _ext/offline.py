"""Keep every request of a reader's browser on this site: many readers cannot reach the usual CDNs.

MathJax comes from the `sphinx-mathjax-offline` package; what the pages need of it is copied to where `_config.yml`
says that it is. FontAwesome's script, 1.5 MB for every page, is dropped: its style sheet shows the icons as well.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset

ICON_SCRIPT = re.compile(r'<script src="[^"]*/fontawesome/[^"]*"></script>')
MATHJAX = Path(str(files("sphinx-mathjax-offline"))) / "static" / "mathjax"
# What tex-chtml.js can ask for: its fonts, and TeX commands that it loads on first use.
MATHJAX_PARTS = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions")


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Copy what the pages need of MathJax, and drop the script of icons: the theme's templates leave no occasion."""
    if exception is not None or app.builder.format != "html":
        return
    for part in MATHJAX_PARTS:
        source, target = MATHJAX / part, Path(app.outdir, "_static", "mathjax", part)
        copy_asset(str(source), str(target if source.is_dir() else target.parent))
    for page in Path(app.outdir).rglob("*.html"):
        page.write_text(ICON_SCRIPT.sub("", page.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event."""
    app.set_html_assets_policy("always")  # a page without formulas may still show a title that has one
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
