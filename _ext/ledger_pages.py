"""Pages that nobody writes: ledger, errata and coverage, from the claims, the executed notebooks and the tables.

Each page is a Markdown file that includes a template of ``_ext/templates``, which is filled with the book's rows when
Sphinx reads the page. Two roles serve the templates and everybody else: ``{verdict}`proved` `` prints a
badge, and ``{card}`5.1.5` `` links a claim's badge to its card; ``{card}`!5.1.5` `` adds the title.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sphinx.application import Sphinx
from sphinx.errors import NoUri
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from attnmath.ledger import VERDICTS, Row, audit
from attnmath.ledger.claims import MIME, section_in_words
from attnmath.ledger.coverage import Book

logger = logging.getLogger(__name__)
PAGES = ("intro", "ledger", "errata", "coverage")


def markdown(text: str) -> str:
    r"""Return a sentence of a claim as Markdown: all but its formulas reads as it is written.

    >>> print(markdown("a_b < 2*c, but $a_b$ | <i>"))
    a\_b \< 2\*c, but $a_b$ \| \<i\>
    """
    return re.sub(r"(\$[^$]+\$)|([\\`*_{}\[\]<>|#~$])", lambda m: m[1] or f"\\{m[2]}", text)


def spoken(place: str) -> str:
    """Return a section, or a place in one, in words.

    >>> spoken("5.1"), spoken("5.1.4 p4 s3"), spoken("article.2 title")
    ('Section 5.1', 'Section 5.1.4, paragraph 4, sentence 3', 'Article, part 2, heading')
    """
    place = re.sub(r" p(\d+) s(\d+)", r", paragraph \1, sentence \2", place.replace(" title", ", heading"))
    return re.sub(r"^[\w.]+", lambda section: section_in_words(section[0]), place)


@cache
def book_of(app: Sphinx) -> Book:
    """Return the book as it is in this build."""
    return Book(Path(app.srcdir), app.env.found_docs)


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill the templates of a page, and hand Sphinx the notebooks without their records."""
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        source[0] = json.dumps(without_records(json.loads(source[0])))
    elif docname in PAGES:
        loader = FileSystemLoader(Path(__file__).parent / "templates")
        templates = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        templates.filters |= {"md": markdown, "spoken": spoken}
        source[0] = templates.from_string(source[0]).render(book=book_of(app))
    if docname == "ledger":
        for problem in audit(app.srcdir):
            logger.warning("ledger: %s", problem, location=docname)


def without_records(notebook: dict[str, Any]) -> dict[str, Any]:
    """Take the records out of a notebook: a page shows the card beside each, and Sphinx warns of what it cannot."""
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", [])):
        output.get("data", {}).pop(MIME, None)
    return notebook


def badge(verdict: str) -> nodes.inline:
    """Return a verdict as a coloured word; its icon comes from the style sheet."""
    return nodes.inline(verdict, verdict, classes=["verdict-badge", "verdict-" + verdict.replace(" ", "-")])


class VerdictRole(SphinxRole):
    """``{verdict}`proved` ``: a badge in running text."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the badge, or a message when there is no such verdict."""
        if self.text not in VERDICTS:
            message = f"verdict: expected one of {', '.join(VERDICTS)}, got {self.text!r}"
            return [], [self.inliner.reporter.error(message, line=self.lineno)]
        return [badge(self.text)], []


class CardRole(SphinxRole):
    """``{card}`5.1.5` ``: a claim's badge, which links to its card; after ``!`` with outcome, title and id."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the link, or a message when no page has the claim."""
        name = self.text.removeprefix("!")
        row = book_of(self.env.app).by_id.get(name)
        if row is None:
            return [], [self.inliner.reporter.error(f"card: no claim {name!r}", line=self.lineno)]
        claim = row.claim
        link = nodes.reference("", "", refuri=self.address(row), internal=True, classes=["claim-link"])
        if name == self.text:
            link["reftitle"] = claim.title.replace("$", "")
            link += badge(claim.verdict)
            return [link], []
        link += [nodes.math(p, p) if k % 2 else nodes.Text(p) for k, p in enumerate(claim.title.split("$"))]
        outcome = [nodes.strong("", claim.outcome, classes=["claim-outcome"])] if claim.outcome else []
        return [badge(claim.verdict), *outcome, link, nodes.inline(name, name, classes=["claim-id"])], []

    def address(self, row: Row) -> str:
        """Return where the card is; a claim that is not decided has none, and leads to its chapter."""
        try:
            page = self.env.app.builder.get_relative_uri(self.env.docname, row.page)
        except NoUri:  # a builder without pages, such as LaTeX
            return ""
        return page if row.claim.verdict == "not decided" else f"{page}#{row.anchor}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the roles and the event."""
    app.add_role("verdict", VerdictRole())
    app.add_role("card", CardRole())
    app.connect("source-read", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
