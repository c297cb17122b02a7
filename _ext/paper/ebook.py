"""The e-book: what Sphinx's EPUB builder needs to know, and what of the site's theme stays out of it.

`make epub` builds it, and epubcheck checks it. Which pages it has, and in which form, is decided with the book on paper
(`print_book`); its formulas are MathML, as on the site.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.builders.epub3 import Epub3Builder
from sphinx.config import Config

from .spoken import spoken

ROOT = Path(__file__).resolve().parents[2]
STATIC = Path(__file__).parent / "assets" / "ebook"
#: What adds buttons, search and scripts to the pages of the site. An e-book has a reader of its own.
FOR_SCREENS = (
    "sphinx_book_theme",
    "pydata_sphinx_theme",
    "sphinx_togglebutton",
    "sphinx_copybutton",
    "sphinx_comments",
)


def configure(app: Sphinx, config: Config) -> None:
    """Tell the EPUB builder what the book is."""
    project = tomllib.loads(Path(app.srcdir, "pyproject.toml").read_text(encoding="utf-8"))["project"]
    config["version"] = config["version"] or project["version"]
    config["epub_basename"] = "attention-checked"
    config["epub_language"] = config["language"].replace("_", "-")
    config["epub_title"] = config["html_title"]
    config["epub_contributor"] = config["author"]
    config["epub_author"] = config["epub_publisher"] = config["author"]
    licences = "Text and figures: CC BY 4.0. Code: MIT licence."
    config["epub_copyright"] = f"{config['copyright']} {config['author']}. {licences}"
    config["epub_description"] = "The mathematics of attention, derived line by line, measured, and put to the test"
    config["epub_identifier"] = config["epub_uid"] = "attention-checked"
    config["epub_show_urls"] = "no"
    config["epub_tocdepth"] = 2
    config["epub_cover"] = ("_static/cover.svg", "epub-cover.html")
    config["epub_css_files"] = [("ebook.css", {})]


def clean(svg: str) -> str:
    """Return a picture without what a picture in an e-book must not have.

    >>> clean('<?xml version="1.0"?><!DOCTYPE svg PUBLIC "a" "b"><svg><path id="p" style="x"/><path d="M0 0"/></svg>')
    '<?xml version="1.0"?><svg><path id="p" style="x" d=""/><path d="M0 0"/></svg>'
    """
    without_type = re.sub(r"<!DOCTYPE.*?>", "", svg, flags=re.DOTALL)
    return re.sub(r"<path((?:(?! d=)[^>])*?)/>", r'<path\1 d=""/>', without_type)


def with_mathml(manifest: str, pages: set[str]) -> str:
    """Return the list of an e-book's files, in which the pages with formulas are marked.

    >>> with_mathml('<item href="a.xhtml" id="a" /><item href="b.xhtml" />', {"a.xhtml"})
    '<item href="a.xhtml" id="a" properties="mathml" /><item href="b.xhtml" />'
    """

    def mark(item: re.Match[str]) -> str:
        return f'{item[1]} properties="mathml" />' if item[2] in pages else item[0]

    return re.sub(r'(<item [^>]*?href="([^"]*)"[^>]*?) />', mark, manifest)


class BookEpubBuilder(Epub3Builder):
    """Sphinx's builder, with pictures and a list of files as the standard has them."""

    def copy_image_files(self) -> None:
        """Copy the pictures, and clean them."""
        super().copy_image_files()
        for picture in Path(self.outdir, self.imagedir).glob("*.svg"):
            picture.write_text(clean(picture.read_text(encoding="utf-8")), encoding="utf-8")

    def build_content(self) -> None:
        """Write the list of files, and mark the pages with formulas."""
        super().build_content()
        pages = {name for name in self.files if name.endswith(".xhtml")}
        formulas = {name for name in pages if "<math" in Path(self.outdir, name).read_text(encoding="utf-8")}
        content = Path(self.outdir, "content.opf")
        content.write_text(with_mathml(content.read_text(encoding="utf-8"), formulas), encoding="utf-8")


def without_theme(app: Sphinx) -> None:
    """Take the site's buttons, scripts and styles out of the e-book."""
    if app.builder.name != "epub":
        return
    for listeners in app.events.listeners.values():
        listeners[:] = [one for one in listeners if not one.handler.__module__.startswith(FOR_SCREENS)]
    app.config["html_static_path"] = [str(STATIC)]
    app.config["html_additional_pages"] = {}


def plain_page(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Leave a page of the e-book its own styles, and no script."""
    if app.builder.name == "epub":
        own = {"pygments.css", "epub.css", "ebook.css"}
        context["css_files"] = [s for s in context["css_files"] if Path(str(s.filename)).name in own]
        context["script_files"] = []
        if "body" in context:  # the list of claims has no anchors: it has one line for each
            context["body"] = re.sub(r'(href="[^"#]*ledger\.xhtml)#ledger-[^"]*"', r'\1"', context["body"])
        if app.config.language != "en" and "body" in context:
            context["body"] = spoken(context["body"], app.config.language)
            context["title"] = spoken(context["title"], app.config.language)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.add_builder(BookEpubBuilder, override=True)
    app.connect("config-inited", configure, priority=950)
    app.connect("builder-inited", without_theme, priority=999)
    app.connect("html-page-context", plain_page, priority=999)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
