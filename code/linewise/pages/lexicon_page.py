"""How a book reads vague words: the entries of its lexicon on a page, and links to them.

The page that the conventions name includes the template ``lexicon.md``. The directive ``{word-entry} few`` is an entry
there, with an address of its own, and the role ``{word}`few` `` links to it from any page.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import NoUri
from sphinx.util.docutils import SphinxDirective, SphinxRole

from linewise.conventions import conventions_of
from linewise.entries import meant
from linewise.ledger.lexicon import Word, read_lexicon
from linewise.pages.ledger_pages import book_of


@cache
def lexicon_of(app: Sphinx) -> dict[str, Word]:
    """Return the lexicon as it is in this build."""
    return read_lexicon(Path(app.srcdir))


def tell(app: Sphinx, context: dict[str, Any]) -> None:
    """Tell the templates of the lexicon, and of the claims that name each entry."""
    lexicon, rows = lexicon_of(app), book_of(app).rows
    context["lexicon"] = {word: [row for row in rows if word.id in row.claim.words] for word in lexicon.values()}


class WordDirective(SphinxDirective):
    """``{word-entry} few``: what the page says of an entry, with an address."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the box."""
        box = nodes.container(ids=[address_of(self.arguments[0])], classes=["word-entry"])
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


class WordRole(SphinxRole):
    """``{word}`few` ``: a link to the entry, or its name where the builder has no such page."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the link, or a message when there is no such entry."""
        known = lexicon_of(self.env.app)
        if self.text not in known:
            message = f"word: no entry {self.text!r} of the lexicon; {meant(self.text, known)}"
            return [], [self.inliner.reporter.error(message, line=self.lineno)]
        conventions, word = conventions_of(self.env.app.srcdir), known[self.text]
        shown = conventions.say("{words}", words=word.plain[0], original=word.original[0])
        place = conventions.lexicon
        if place is None or place.page not in self.env.found_docs:
            return [nodes.Text(shown)], []
        try:
            page = self.env.app.builder.get_relative_uri(self.env.docname, place.page)
        except NoUri:
            return [nodes.Text(shown)], []
        address = f"{page}#{address_of(self.text)}"
        return [nodes.reference("", shown, refuri=address, internal=True, classes=["word-link"])], []


def address_of(name: str) -> str:
    """Return the id of an entry in the page."""
    return f"word-{name}"


def setup(app: Sphinx) -> None:
    """Register the role, the directive and the event."""
    app.add_directive("word-entry", WordDirective)
    app.add_role("word", WordRole())
    app.connect("linewise-context", tell)
