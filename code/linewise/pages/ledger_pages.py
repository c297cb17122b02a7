"""Pages that nobody writes: ledger, errata and coverage, from the claims, the executed notebooks and the tables.

Each page is a Markdown file that includes one of the ``templates``, which is filled with the book's rows when
Sphinx reads the page. Two roles serve the templates and everybody else: ``{verdict}`proved` `` prints a
badge, and ``{card}`5.1.5` `` links a claim's badge to its card; ``{card}`!5.1.5` `` adds grade and title. The directive
``{claim-entry} 5.1.5`` is an entry of such a page, and bears as data what ``claim_filter`` filters and sorts by, as far
as nobody sees it; the
role ``{claims}`12 <verdict=proved>` `` links to the ledger, filtered.

A long ledger is divided. The page ``ledger/sheet`` has the claims of the source whose table is ``sheet.yml`` in full,
``ledger/own`` the statements of our own; it includes the template ``ledger.md`` as the ledger does. The ledger then has
of each such claim the first line alone. What the line leaves out is in a script, which `claim_filter` loads when a
reader asks for it.
"""

from __future__ import annotations

import base64
import gzip
import re
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlencode

from docutils import nodes
from docutils.parsers.rst import directives
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sphinx.application import Sphinx
from sphinx.errors import NoUri
from sphinx.util import logging
from sphinx.util.docutils import ReferenceRole, SphinxDirective, SphinxRole
from sphinx.writers.html5 import HTML5Translator

from linewise.conventions import Conventions, conventions_of
from linewise.kernel.record import kernel_of
from linewise.ledger import Row, sentences
from linewise.ledger.card import classes_of
from linewise.ledger.claims import Claim
from linewise.ledger.coverage import Book
from linewise.ledger.faults import faults
from linewise.pages import findable, signs

logger = logging.getLogger(__name__)
PAGES = ("ledger", "errata", "coverage")
#: The pages of a divided ledger are in this folder.
PARTS = "ledger/"
#: The script with the entries of a divided ledger.
ENTRIES = "ledger-entries.js"
#: What the first line of an entry says or leads to: the script reads it there.
IN_VIEW = ("data-claim", "data-verdict", "data-chapter", "data-grade")


def markdown(text: str) -> str:
    r"""Return a sentence of a claim as Markdown: all but its formulas reads as it is written.

    >>> print(markdown("a_b < 2*c, but $a_b$ | <i>"))
    a{sub}`b` \< 2\*c, but $a_b$ \| \<i\>
    """
    return "".join(part if k % 2 else _words(part) for k, part in enumerate(re.split(r"(\$[^$]+\$)", text)))


def _words(text: str) -> str:
    """Return words without formulas as Markdown."""
    return "".join(
        re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", part) if kind == "text" else f"{{{kind}}}`{part}`"
        for kind, part in signs.split(text)
    )


@cache
def book_of(app: Sphinx) -> Book:
    """Return the book as it is in this build."""
    return Book(Path(app.srcdir), app.env.found_docs)


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill the templates of a page."""
    if docname in filled(app, app.env):
        loader = FileSystemLoader(Path(__file__).parent / "templates")
        templates = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        root = Path(app.srcdir)
        templates.filters |= {"md": markdown, "spoken": conventions_of(root).place, "plain": findable.plain}
        templates.globals["say"] = conventions_of(root).say
        templates.filters |= {"said": partial(sentences.markup, phrase=conventions_of(root).say)}
        templates.filters |= {
            "title_of": partial(findable.title_of, root),
            "chapters_of": partial(findable.chapters_of, root),
            "sections_of": findable.sections_of,
        }
        context = {"book": book_of(app), "words": word_lists(app), "on_site": app.builder.name == "html"}
        home, entries = homes(app), f"_static/{ENTRIES}" if parts(app.env) else ""
        context |= {
            "kernel": kernel_of(root),
            "page": docname,
            "home": home,
            "entries": entries,
        }
        app.emit("linewise-context", context)
        source[0] = templates.from_string(source[0]).render(context)
    if docname == next((page for page in PAGES if page in app.env.found_docs), None):
        for problem in faults(app.srcdir):
            logger.warning("ledger: %s", problem, location=docname)


def filled(app: Sphinx, env: Any) -> tuple[str, ...]:
    """Return the pages that are filled."""
    return (*PAGES, *parts(env), *app.config.linewise_filled_pages)


def parts(env: Any) -> list[str]:
    """Return the pages of a divided ledger."""
    return sorted(page for page in env.found_docs if page.startswith(PARTS))


@cache
def homes(app: Sphinx) -> dict[str, str]:
    """Return the page that says all of each claim: a part of the ledger where the book has one, or the ledger."""
    named = {section: PARTS + source.page for source in book_of(app).sources for section in source.shape}
    there = {page: page for page in parts(app.env)}
    part = {row.claim.id: PARTS + "own" if row.claim.is_own else named[row.claim.section] for row in book_of(app).rows}
    return {claim: there.get(page, "ledger") for claim, page in part.items()}


def entry_address(app: Sphinx, page: str, claim: Claim) -> str:
    """Return the address of a claim's entry in full, as a page sees it."""
    return f"{app.builder.get_relative_uri(page, homes(app)[claim.id])}#{entry_id(claim)}"


def read_anew(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Have Sphinx read the filled pages in every build: what fills them may have changed while they have not."""
    return [page for page in filled(app, env) if page in env.found_docs]


def badge(verdict: str, conventions: Conventions) -> nodes.inline:
    """Return a verdict as a coloured word; its icon comes from the style sheet."""
    return nodes.inline(verdict, verdict, classes=["verdict-badge", *classes_of(verdict, conventions)])


class VerdictRole(SphinxRole):
    """``{verdict}`proved` ``: a badge in running text."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the badge, or a message when there is no such verdict."""
        known = book_of(self.env.app).conventions
        if self.text not in known.verdicts:
            message = f"verdict: expected one of {', '.join(known.verdicts)}, got {self.text!r}"
            return [], [self.inliner.reporter.error(message, line=self.lineno)]
        return [badge(self.text, known)], []


class Entry(nodes.container):
    """A box about a claim, with what it can be found by as data; other builders than HTML show a plain container."""


class CardLink(nodes.reference):
    """A link to a card, with what its claim can be found by as data."""


def entry_id(claim: Claim) -> str:
    """Return the id of a claim's entry in the ledger."""
    return claim.anchor.replace("claim-", "ledger-", 1)


@cache
def words_of_all(app: Sphinx) -> dict[str, str]:
    """Return the glosses by which each claim can be found: those of the part of the chapter that checks it.

    In a book in the language of the glosses a claim says these words itself.
    """
    if str(app.config.language).startswith(("zh", "ja", "ko")):
        return {}
    return findable.glosses(Path(app.srcdir), dict.fromkeys(row.page for row in book_of(app).rows))


def word_lists(app: Sphinx) -> list[str]:
    """Return the different lists of such words: many claims share one, and a page has each once, in its form."""
    return list(dict.fromkeys(words_of_all(app).values()))


@cache
def data_of_all(app: Sphinx) -> dict[str, dict[str, str]]:
    """Return what each claim can be found and sorted by.

    `source` and `book` are its places in their orders, `words` the number of its list of words; a statement of our own
    has no `sections`.
    """
    root, rows = Path(app.srcdir), book_of(app).rows
    order = {name: rank for rank, name in enumerate(findable.in_book_order(root, rows))}
    number = {words: str(k) for k, words in enumerate(word_lists(app))}
    words = {name: number[found] for name, found in words_of_all(app).items()}
    equations = {sentence.at: sentence.equations for sentence in book_of(app).sentences}
    found = {}
    for rank, row in enumerate(rows):
        claim = row.claim
        sections = () if claim.is_own else dict.fromkeys(place.split()[0] for place in claim.places)
        optional = {
            "data-grade": claim.grade,
            "data-words": words.get(claim.id),
            "data-sections": " ".join(sections),
            "data-equations": " ".join(dict.fromkeys(e for at in claim.places for e in equations.get(at, ()))),
        }
        found[claim.id] = {name: value for name, value in optional.items() if value} | {
            "data-claim": claim.id,
            "data-verdict": claim.verdict,
            "data-chapter": row.page.rpartition("/")[2],
            "data-source": str(rank),
            "data-book": str(order[claim.id]),
        }
    return found


def visit_entry(translator: HTML5Translator, node: Entry) -> None:
    """Open the box."""
    translator.body.append(translator.starttag(node, "div", **node["data"]))


def depart_entry(translator: HTML5Translator, node: Entry) -> None:
    """Close the box."""
    translator.body.append("</div>\n")


def visit_link(translator: HTML5Translator, node: CardLink) -> None:
    """Open the link."""
    attributes = {"href": node["refuri"], **node["data"]}
    if "reftitle" in node:
        attributes["title"] = node["reftitle"]
    translator.body.append(translator.starttag(node, "a", "", **attributes))


def depart_link(translator: HTML5Translator, node: CardLink) -> None:
    """Close the link."""
    translator.body.append("</a>")


class EntryDirective(SphinxDirective):
    """``{claim-entry} 5.1.5``: what a page says of a claim; ``:class:`` gives its classes, ``:target:`` an id."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"class": directives.class_option, "target": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the box."""
        row = book_of(self.env.app).by_id.get(self.arguments[0])
        if row is None:
            raise self.error(f"claim-entry: no claim {self.arguments[0]!r}")
        page = self.env.docname
        seen = (*IN_VIEW, "data-source") if page == "ledger" else IN_VIEW  # the ledger is in that order
        known = {name: value for name, value in data_of_all(self.env.app)[row.claim.id].items() if name not in seen}
        if page.startswith(PARTS):  # nothing is filtered there
            known = {}
        if known.get("data-sections") == row.claim.id.partition("/")[0]:  # its id says so
            del known["data-sections"]
        ids = [entry_id(row.claim)] if "target" in self.options else []
        box = Entry(ids=ids, classes=["claim-entry", *self.options.get("class", [])], data=known)
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


class ClaimsRole(ReferenceRole):
    """``{claims}`12 <verdict=proved>` ``: a link to those claims in the ledger."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the link; a builder without pages shows its text alone."""
        try:
            page = self.env.app.builder.get_relative_uri(self.env.docname, "ledger")
        except NoUri:
            return [nodes.Text(self.title)], []
        address = f"{page or 'ledger.html'}?{urlencode(parse_qsl(self.target))}"
        return [nodes.reference("", self.title, refuri=address, internal=True, classes=["claims-link"])], []


def titled(claim: Claim, said: str) -> str:
    """Return what a link to a claim's card says when it is pointed at: the title, and more in brackets."""
    return claim.conventions.say("{title} ({said})", title=findable.plain(claim.title), said=said)


class CardRole(SphinxRole):
    """``{card}`5.1.5` ``: a claim's badge, which links to its card; after ``!`` with outcome or grade, title and id."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the link, or a message when no page has the claim."""
        name = self.text.removeprefix("!")
        row = book_of(self.env.app).by_id.get(name)
        if row is None:
            return [], [self.inliner.reporter.error(f"card: no claim {name!r}", line=self.lineno)]
        claim = row.claim
        link = CardLink("", "", refuri=self.address(row), internal=True, classes=["claim-link"], data={})
        if name == self.text:
            link["data"] = data_of_all(self.env.app)[row.claim.id] if self.env.docname == "coverage" else {}
            link["reftitle"] = titled(claim, claim.id)
            link += badge(claim.verdict, claim.conventions)
            return [link], []
        for k, part in enumerate(claim.title.split("$")):
            link += [nodes.math(part, part)] if k % 2 else list(signs.as_nodes(part))
        more = {"claim-outcome": claim.outcome}
        if self.env.app.builder.format == "html":  # on paper the line is too short
            more["claim-grade"] = claim.grade
        return [
            badge(claim.verdict, claim.conventions),
            *(nodes.strong("", said, classes=[kind]) for kind, said in more.items() if said),
            link,
            self.number(claim),
        ], []

    def number(self, claim: Claim) -> nodes.Element:
        """Return the id of a claim; in a divided ledger it leads to the entry in full."""
        app, page = self.env.app, self.env.docname
        if page == "ledger" != homes(app)[claim.id]:
            address = entry_address(app, page, claim)
            return nodes.reference("", claim.id, refuri=address, internal=True, classes=["claim-id"])
        return nodes.inline("", claim.id, classes=["claim-id"])

    def address(self, row: Row) -> str:
        """Return where the card is.

        A claim that is not decided has no card: its links lead to the ledger, which says why, and from there to its
        chapter.
        """
        decided, page = row.claim.is_decided, self.env.docname
        try:
            home = homes(self.env.app)[row.claim.id]
            if not decided and page not in ("ledger", home) and home in self.env.found_docs:
                return entry_address(self.env.app, page, row.claim)
            address = self.env.app.builder.get_relative_uri(page, row.page)
        except NoUri:  # the LaTeX builder knows its pages only when it joins them
            address = f"%{row.page}"
        return f"{address}#{row.anchor}" if decided else address


_ENTRY = re.compile(r'<div class="claim-entry[^"]*"[^>]*? id="[^"]+">(?:(?!<div\b).)*?</div>', re.DOTALL)


def entries_of(page: str) -> list[str]:
    """Return the entries of a part of the ledger; what they link to is seen from the folder above.

    >>> entries_of('<div class="claim-entry" id="ledger-a"><p>A <a href="../b.html">b</a></p></div><p>c</p>')
    ['<div class="claim-entry" id="ledger-a"><p>A <a href="b.html">b</a></p></div>']
    """
    found = [entry.replace(' href="../', ' href="') for entry in _ENTRY.findall(page)]
    if (count := page.count('class="claim-entry')) != len(found):
        raise ValueError(f"a part of the ledger: expected {count} entries without boxes in them, got {len(found)}")
    return found


def write_entries(app: Sphinx, exception: Exception | None) -> None:
    """Write the script with the entries of a divided ledger: the same bytes for the same pages."""
    if exception is not None or app.builder.name != "html" or not parts(app.env):
        return
    files = [Path(app.outdir, f"{page}.html") for page in parts(app.env)]
    entries = "".join(entry for file in files for entry in entries_of(file.read_text(encoding="utf-8")))
    packed = base64.b64encode(gzip.compress(entries.encode(), mtime=0)).decode()
    Path(app.outdir, "_static", ENTRIES).write_text(f'ledgerEntries("{packed}");\n', encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the roles, the directive and the event."""
    app.add_node(Entry, html=(visit_entry, depart_entry))
    app.add_node(CardLink, html=(visit_link, depart_link))
    app.add_directive("claim-entry", EntryDirective)
    app.add_role("claims", ClaimsRole())
    app.add_role("verdict", VerdictRole())
    app.add_role("card", CardRole())
    app.connect("env-get-outdated", read_anew)
    app.connect("source-read", fill)
    app.connect("build-finished", write_entries, priority=1000)  # after everything else that works on finished pages
