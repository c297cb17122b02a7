"""Repairs of the theme's and docutils' HTML, so that assistive technology reads each page as it is meant.

Landmarks hold the whole page, a button is called what it shows, and a list of references is not said to be an ARIA list
without items. What the keyboard needs beyond HTML is in ``_static/accessible.js`` and ``_static/accessible.css``.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from mathematics import plain_mathml
from sphinx.application import Sphinx
from sphinx.util import logging

from .finished import pages_of, rewrite

logger = logging.getLogger(__name__)


class Repair(NamedTuple):
    """What stands in a page, what shall stand there, and the page that has it (the theme's frame is on every page)."""

    found: str
    wanted: str
    page: str = "search.html"


#: The templates of sphinx-book-theme and pydata-sphinx-theme leave no other occasion.
REPAIRS = (
    Repair(
        '<div class="bd-sidebar-primary bd-sidebar">',
        '<div class="bd-sidebar-primary bd-sidebar" role="region" aria-label="The book">',
    ),
    Repair(
        '<nav class="bd-toc-nav page-toc">',
        '<nav class="bd-toc-nav page-toc" aria-label="On this page">',
        "ledger.html",
    ),
    Repair('<div role="list" class="citation-list">', '<div class="citation-list">', "references.html"),
    Repair(' role="doc-biblioentry">', ">", "references.html"),
    Repair('<summary aria-label="Toggle hidden content">', "<summary>", "chapters/operator/cost.html"),
    Repair(
        "<title>Attention, Checked &#8212; Attention, Checked</title>",
        "<title>Attention, Checked</title>",
        "intro.html",
    ),
)
# The field of the search page, which has the same id as the field of the dialog before it.
_SEARCH_FIELD = re.compile(r'(id="search-input".*?id="search-)input"', re.DOTALL)
# The button of the search is called what it shows, in whatever language.
_SEARCH_BUTTON = re.compile(r'(<button class="btn search-button-field[^"]*" title="[^"]*") aria-label="[^"]*"')
# A link of the contents of the book, and the triangle beside it.
_FOLD = re.compile(
    r'(?P<before><a class="reference internal"[^>]*>(?P<title>(?:(?!</a>).)*)</a>\s*<details[^>]*>\s*)<summary>'
    r'(?=\s*<span class="toctree-toggle")',
    re.DOTALL,
)
# What the theme, its parent and an extension each write once.
_REPEATED = re.compile(r'<meta name="viewport"[^>]*>|<script>var togglebuttonSelector = [^<]*</script>\n?')
# The title of a solution, whose link begins with the blank before it.
_BLANK = re.compile(r'(?<=Solution to)(<a class="reference internal" href="[^"]*">) ')
# The name of a module or a function in the contents of a page.
_LONG_NAME = re.compile(r'(?<=<a class="reference internal nav-link" href=")(#[^"]*">(?:<[^>]+>)*)([\w.]+)(?=[(<])')
_EMPTY_HEADER = re.compile(r"<th[^>]*>\s*(?:<p>\s*</p>)?\s*</th>")
_FORMULA_HEADER = re.compile(r"(<th\b[^>]*>\s*(?:<p>)?\s*)<math>((?:(?!</math>).)*)</math>(?=\s*(?:</p>)?\s*</th>)")
_SIGNATURE = re.compile(r'<dl>\s*((?:<dd><em class="sig-param">(?:(?!</dd>).)*</dd>\s*)+)</dl>', re.DOTALL)


def with_names(html: str) -> str:
    """Name the triangles in the contents of the book after the page whose parts they unfold.

    >>> fold = '<details><summary><span class="toctree-toggle"></span></summary>'
    >>> with_names(f'<a class="reference internal" href="#">The <em>guide</em></a>{fold}').partition("<summary")[2][:33]
    ' aria-label="Parts of The guide">'
    """

    def named(found: re.Match[str]) -> str:
        words = " ".join(re.sub(r"<[^>]+>", "", found["title"]).split())
        return f'{found["before"]}<summary aria-label="Parts of {words.replace(chr(34), "&quot;")}">'

    return _FOLD.sub(named, html)


def with_plain_signatures(html: str) -> str:
    """Show the lines of a long signature without a list: Sphinx makes one that has descriptions and no terms.

    >>> with_plain_signatures('<dt>f(<dl>\\n<dd><em class="sig-param">x</em>,</dd>\\n</dl>\\n)</dt>')
    '<dt>f(<span class="sig-lines"><span class="sig-line"><em class="sig-param">x</em>,</span></span>\\n)</dt>'
    """

    def lines(found: re.Match[str]) -> str:
        each = re.sub(r"<dd>(.*?)</dd>\s*", r'<span class="sig-line">\1</span>', found[1], flags=re.DOTALL)
        return f'<span class="sig-lines">{each}</span>'

    return _SIGNATURE.sub(lines, html)


def with_named_headers(html: str) -> str:
    """Name a formula that is all of a table's header: by itself it is no text for what lists headers.

    >>> with_named_headers("<th><p><math><mi>b</mi><mo>&lt;</mo><mn>1</mn></math></p></th>").partition("<mi>")[0]
    '<th><p><math role="math" aria-label="b &lt; 1">'
    """

    def named(found: re.Match[str]) -> str:
        label = escape(plain_mathml(f"<math>{found[2]}</math>").replace("_", " "))
        return f'{found[1]}<math role="math" aria-label="{label}">{found[2]}</math>'

    return _FORMULA_HEADER.sub(named, html)


def written_once(html: str) -> str:
    """Leave the first of what several extensions write into the head of a page.

    >>> written_once('<meta name="viewport" a><title>b</title><meta name="viewport" c>')
    '<meta name="viewport" a><title>b</title>'
    """
    seen: set[str] = set()

    def first(found: re.Match[str]) -> str:
        kind = found[0][:9]
        again = kind in seen
        seen.add(kind)
        return "" if again else found[0]

    return _REPEATED.sub(first, html)


def with_breaks(html: str) -> str:
    """Let a long name in the contents of a page go on in the next line behind a dot or an underscore.

    >>> with_breaks('<a class="reference internal nav-link" href="#m">a.b_c</a>').partition(">")[2]
    'a.<wbr>b_<wbr>c</a>'
    """
    return _LONG_NAME.sub(lambda found: found[1] + re.sub(r"(?<=[._])(?=\w)", "<wbr>", found[2]), html)


def repaired(html: str) -> str:
    """Return a page with all repairs; a page that has them already stays as it is."""
    for found, wanted, _ in REPAIRS:
        html = html.replace(found, wanted)
    html = _SEARCH_BUTTON.sub(r"\1", html)
    html = with_breaks(_BLANK.sub(r" \1", written_once(html)))
    html = _SEARCH_FIELD.sub(r'\1field"', with_named_headers(with_plain_signatures(with_names(html))))
    html = html.replace(
        '<summary><span class="toctree-toggle"', '<summary aria-label="Parts"><span class="toctree-toggle"'
    )
    return _EMPTY_HEADER.sub("<td></td>", html)  # a header without words names nothing


def unused(app: Sphinx, exception: Exception | None) -> None:
    """Report a repair that fits nothing: the theme is then another one."""
    pages = pages_of(app, exception) if app.config.language == "en" else ()  # another edition has other words
    for found, wanted, name in REPAIRS:
        page = Path(app.outdir, name)
        if page in pages and wanted not in page.read_text(encoding="utf-8"):
            logger.warning("accessible_html: %s: expected %s, found nothing to repair", name, found)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.connect("build-finished", rewrite(lambda page, _: repaired(page)))
    app.connect("build-finished", unused)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
