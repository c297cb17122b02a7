"""How a page is cited: as a sentence, as BibTeX, and in the tags that reference managers read."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from mathematics import plain_node
from pages.downloads import repository_of
from sphinx.application import Sphinx


@dataclass(frozen=True)
class Work:
    """A page of the book as something to cite.

    address : of the page on the published site.  files : of the version, as its release has them.
    """

    key: str
    title: str
    book: str
    authors: str
    version: str
    released: datetime.date
    address: str
    files: str

    @property
    def date(self) -> str:
        """The date as a reader says it."""
        return f"{self.released.day} {self.released:%B %Y}"


@cache
def _about(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    return found


def site_of(repository: str) -> str:
    """Return the address at which GitHub publishes the pages of a repository; the repository's where it is elsewhere.

    >>> site_of("https://github.com/attention-checked/attention-checked")
    'https://attention-checked.github.io/attention-checked/'
    >>> site_of("https://example.org/book")
    'https://example.org/book/'
    """
    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+)", repository)
    return f"https://{found[1].lower()}.github.io/{found[2]}/" if found else f"{repository}/"


def of_page(app: Sphinx, page: str) -> Work:
    """Return a page as something to cite."""
    about = _about(Path(app.srcdir))
    repository, _ = repository_of(app)
    title = app.env.titles.get(page, nodes.title())
    name = re.sub(r"\W", "", page.rpartition("/")[2])
    number = str(about["version"])
    return Work(
        key=f"attentionchecked{number.replace('.', '')}{name}",
        title=plain_node(title),
        book=about["title"],
        authors=", ".join(author["name"] for author in about["authors"]),
        version=number,
        released=datetime.date.fromisoformat(about["date-released"]),
        address=f"{site_of(repository)}{page}.html",
        files=f"{repository}/releases/download/v{number}/attention-checked-{number}",
    )


def bibtex(work: Work) -> str:
    r"""Return a page as an entry of BibTeX.

    >>> day = datetime.date(2026, 11, 28)
    >>> page = Work("k", "Effective rank & heads", "Attention, Checked", "Us", "2.0.0", day, "https://a.b/", "f")
    >>> print(bibtex(page))
    @incollection{k,
      author    = {{Us}},
      title     = {{Effective rank \& heads}},
      booktitle = {{Attention, Checked}},
      year      = {2026},
      month     = nov,
      note      = {Version 2.0.0},
      url       = {https://a.b/},
    }
    """
    title = re.sub(r"([&%#_])", r"\\\1", work.title)
    fields = {
        "author": f"{{{{{work.authors}}}}}",
        "title": f"{{{{{title}}}}}",
        "booktitle": f"{{{{{work.book}}}}}",
        "year": f"{{{work.released.year}}}",
        "month": f"{work.released:%b}".lower(),
        "note": f"{{Version {work.version}}}",
        "url": f"{{{work.address}}}",
    }
    lines = "".join(f"  {name:<9} = {value},\n" for name, value in fields.items())
    return f"@incollection{{{work.key},\n{lines}}}"


def metatags(work: Work) -> str:
    """Return the tags by which a reference manager knows a page."""
    named = {
        "citation_title": work.title,
        "citation_author": work.authors,
        "citation_inbook_title": work.book,
        "citation_publication_date": f"{work.released:%Y/%m/%d}",
        "citation_public_url": work.address,
    }
    said = [f'<meta name="{name}" content="{escape(value)}">' for name, value in named.items()]
    return "\n".join([*said, f'<link rel="canonical" href="{escape(work.address)}">'])


def block(work: Work) -> str:
    """Return the folded block at the foot of a page."""
    sentence = f"{work.authors}: {work.title}. In: {work.book}, version {work.version}, {work.date}. {work.address}"
    return (
        '<details class="citation"><summary>Cite this page</summary>'
        f"<p>{escape(sentence)}</p>"
        f'<div class="highlight"><pre tabindex="0">{escape(bibtex(work))}</pre></div></details>\n'
    )


def on_paper(work: Work) -> str:
    """Return the line that stands above a printed page."""
    said = f"{work.book}, version {work.version}, {work.date}. Text and figures: CC BY 4.0. {work.address}"
    return f'<p class="printed-from">{escape(said)}</p>\n'


def downloads(work: Work) -> list[dict[str, Any]]:
    """Return the entries of the menu of downloads: the book as PDF and as an e-book, and the page without solutions."""
    files = [
        {
            "type": "link",
            "url": f"{work.files}.{kind}",
            "text": f"the book, .{kind}",
            "tooltip": f"Download the whole book as {kind.upper()}",
            "icon": "fas fa-book",
            "label": f"download-book-{kind}",
        }
        for kind in ("pdf", "epub")
    ]
    handout = {
        "type": "javascript",
        "javascript": "printWithoutSolutions()",
        "text": "handout",
        "tooltip": "Print without solutions",
        "icon": "fas fa-print",
        "label": "print-without-solutions",
    }
    return [*files, handout]
