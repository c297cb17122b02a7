"""Keep every request of a reader's browser on this site: many readers cannot reach the usual CDNs.

MathJax comes from the `sphinx-mathjax-offline` package and is copied into the site; scripts and style
sheets of other hosts are dropped, and Thebe, which would load its code from one, is dropped with them.
So is FontAwesome's script, 1.5 MB for every page, whose icons its style sheet shows as well.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util.fileutil import copy_asset

ICON_SCRIPT = re.compile(r'<script src="[^"]*/fontawesome/[^"]*"></script>')
# What tex-chtml.js can ask for: its fonts, and TeX commands that it loads on first use.
MATHJAX_PARTS = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions")
MATHJAX_SETTINGS: dict[str, Any] = {
    "options": {"menuOptions": {"settings": {"assistiveMml": True, "explorer": False, "inTabOrder": False}}},
    "chtml": {"mtextInheritFont": False},
    "tex": {"tags": "none"},
}


def is_external(address: str) -> bool:
    """Return whether a browser would leave the site to fetch this address.

    >>> [is_external(a) for a in ("https://a.b/c.js", "//a.b/c.js", "_static/c.js", "data:image/png;base64,AA")]
    [True, True, False, False]
    """
    return address.startswith("//") or address.split(":", 1)[0].lower() in {"http", "https", "ftp"}


def mathjax_folder() -> Path:
    """Return the folder of the installed copy of MathJax."""
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise ExtensionError("offline: sphinx-mathjax-offline is not installed, so there is no local MathJax")
    return Path(spec.origin).parent / "static" / "mathjax"


def use_local_mathjax(app: Sphinx, config: Config) -> None:
    """Point Sphinx to the local MathJax."""
    config.mathjax_path = "mathjax/tex-chtml.js"  # type: ignore[attr-defined]
    config.mathjax3_config = MATHJAX_SETTINGS | (config.mathjax3_config or {})  # type: ignore[attr-defined]


def copy_mathjax(app: Sphinx, exception: Exception | None) -> None:
    """Copy into the site what its pages need of MathJax."""
    if exception is None and app.builder.format == "html":
        for part in MATHJAX_PARTS:
            source, target = mathjax_folder() / part, Path(app.outdir, "_static", "mathjax", part)
            copy_asset(str(source), str(target if source.is_dir() else target.parent))


def drop_icon_script(app: Sphinx, exception: Exception | None) -> None:
    """Remove FontAwesome's script from the pages: the theme's templates leave no earlier occasion."""
    for page in Path(app.outdir).rglob("*.html") if app.builder.format == "html" else ():
        page.write_text(ICON_SCRIPT.sub("", page.read_text(encoding="utf-8")), encoding="utf-8")


def wanted(asset: Any) -> bool:
    """Return whether a page may keep a script or a style sheet."""
    name = str(getattr(asset, "filename", asset) or "")
    body = str(getattr(asset, "attributes", {}).get("body") or "")
    return not is_external(name) and "thebe" not in name.lower() and "thebe" not in body.lower()


def drop_external_assets(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Remove unwanted scripts and style sheets from a page."""
    for kind in ("script_files", "css_files"):
        context[kind] = [asset for asset in context.get(kind, []) if wanted(asset)]


def drop_thebe(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Remove the settings that sphinx-thebe leaves at the end of a notebook's page."""
    for raw in list(doctree.findall(nodes.raw)):
        if raw.astext().lstrip().startswith(('<script type="text/x-thebe-config', "<script>kernelName")):
            raw.parent.remove(raw)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events; the last one must run after everyone else has added assets."""
    app.set_html_assets_policy("always")  # a page without formulas may still show a title that has one
    app.connect("config-inited", use_local_mathjax)
    app.connect("doctree-resolved", drop_thebe, priority=990)
    app.connect("html-page-context", drop_external_assets, priority=990)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", drop_icon_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
