"""Pages that nobody types: the ledger, its summary and the errata, collated from the executed notebooks.

``{ledger-summary}`` counts the verdicts, ``{ledger}`` lists every claim by section of its source with a link
to its card, ``{errata}`` shows the amended and refuted ones, and ``{verdict}`proved` `` prints a badge.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from table_nodes import Cell, inline, link, paragraph, table
from textbook_equations import natural_key

if TYPE_CHECKING:
    from attnmath.ledger import Row

logger = logging.getLogger(__name__)
ERRATA = ("refuted", "amended")


def inputs(root: Path) -> list[str]:
    """Return the files that the ledger is made from, relative to the root of the book."""
    found = [*root.glob("chapters/**/*.claims.yml"), *root.glob("chapters/**/*.ipynb")]
    return sorted(p.relative_to(root).as_posix() for p in found if ".ipynb_checkpoints" not in p.parts)


def without_records(notebook: dict[str, Any]) -> dict[str, Any]:
    """Take the machine-readable records out of a notebook: a page shows the card beside each one.

    Nothing is suppressed by this: Sphinx would rightly warn of a mime type that it cannot show.
    """
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            for mime in [m for m in output.get("data", {}) if m.startswith("application/vnd.attnmath.")]:
                del output["data"][mime]
    return notebook


def read_without_records(app: Sphinx, docname: str, source: list[str]) -> None:
    """Hand Sphinx the notebooks without their records."""
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        source[0] = json.dumps(without_records(json.loads(source[0])))


def badge(verdict: str) -> nodes.inline:
    """Return a verdict as a coloured word; its icon comes from the style sheet."""
    return inline(verdict, "verdict-badge", f"verdict-{verdict}")


def section_title(name: str) -> str:
    """Return the heading over a group of claims.

    >>> section_title("5.1.4"), section_title("article")
    ('Section 5.1.4', 'Article')
    """
    return f"Section {name}" if name[:1].isdigit() else name[:1].upper() + name[1:]


def by_section(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """Group rows by the section of their source, sections in natural order, rows as the chapters have them."""
    names = sorted({row.claim.section for row in rows}, key=natural_key)
    return [(name, [row for row in rows if row.claim.section == name]) for name in names]


class LedgerDirective(SphinxDirective):
    """What the three directives share: the rows, and links to the cards."""

    def run(self) -> list[nodes.Node]:
        """Read the ledger, note what it depends on, and render it."""
        from attnmath.ledger import audit, collate

        root = Path(self.env.srcdir)
        self.env.note_dependency(str(root / "_ext" / "ledger_pages.py"))
        for name in inputs(root):
            self.env.note_dependency(str(root / name))
        pages = getattr(self.env, "ledger_pages", set())
        self.env.ledger_pages = pages | {self.env.docname}  # type: ignore[attr-defined]
        rows = collate(root)
        for problem in audit(root) if self.audits else []:
            logger.warning("ledger: %s", problem, location=self.get_location())
        return self.render([row for row in rows if row.page in self.env.found_docs])

    audits = False

    def render(self, rows: list[Row]) -> list[nodes.Node]:
        """Return the nodes of the page."""
        raise NotImplementedError

    def markdown(self, text: str) -> list[nodes.Node]:
        """Return a sentence of a claim, its mathematics included, as inline nodes."""
        return list(self.state.inline_text(text, self.lineno)[0])

    def card_link(self, row: Row) -> nodes.reference:
        """Return the link from a claim to its card in the chapter."""
        page = self.env.app.builder.get_relative_uri(self.env.docname, row.page)
        return link(row.claim.id, f"{page}#{row.anchor}", "claim-id")

    def section(self, prefix: str, name: str, *content: nodes.Node) -> nodes.section:
        """Return a section with a heading for one section of a source."""
        title = section_title(name)
        identifier = f"{prefix}-{re.sub(r'[^a-z0-9]+', '-', name.lower())}"  # the theme's script allows no dot
        section = nodes.section("", nodes.title(title, title), *content, ids=[identifier])
        section["names"].append(f"{prefix} {name}")
        return section


class LedgerSummary(LedgerDirective):
    """``{ledger-summary}``: the six verdicts, what each one promises, and how often it was given."""

    def render(self, rows: list[Row]) -> list[nodes.Node]:
        """Return one table."""
        from attnmath.ledger import VERDICTS

        counts = Counter(row.claim.verdict for row in rows if row.record)
        lines: list[list[Cell]] = [
            [[paragraph(badge(v))], [paragraph(nodes.Text(text))], [paragraph(nodes.Text(str(counts[v])))]]
            for v, text in VERDICTS.items()
        ]
        return [table(["Verdict", "What ran", "Claims"], lines, "verdict-summary")]


class Ledger(LedgerDirective):
    """``{ledger}``: every claim of the book."""

    audits = True

    def render(self, rows: list[Row]) -> list[nodes.Node]:
        """Return a section with a table for each section of the sources."""
        headers = ["Verdict", "Claim", "Statement"]
        return [
            self.section("ledger", name, table(headers, map(self.line, group), "ledger-table"))
            for name, group in by_section(rows)
        ]

    def line(self, row: Row) -> list[Cell]:
        """Return the cells of one claim."""
        claim = row.claim
        verdict = [paragraph(badge(claim.verdict))]
        if claim.outcome:
            verdict.append(paragraph(inline(claim.outcome, "claim-outcome")))
        statement = [paragraph(*self.markdown(claim.statement))]
        if claim.amended:
            holds = nodes.strong("", "What holds: ")
            statement.append(paragraph(holds, *self.markdown(claim.amended), classes=["claim-holds"]))
        if not row.record:
            statement.append(paragraph(inline("No executed check yet.", "claim-unchecked")))
        return [verdict, [paragraph(self.card_link(row))], statement]


class Errata(LedgerDirective):
    """``{errata}``: what is printed, what holds, and why."""

    def render(self, rows: list[Row]) -> list[nodes.Node]:
        """Return a section for each section of the sources that has an erratum."""
        wrong = [row for row in rows if row.claim.verdict in ERRATA]
        if not wrong:
            return [paragraph(nodes.Text("Nothing amended or refuted so far."))]
        return [self.section("errata", name, *map(self.entry, group)) for name, group in by_section(wrong)]

    def entry(self, row: Row) -> nodes.Node:
        """Return one erratum."""
        claim = row.claim
        head = paragraph(badge(claim.verdict), nodes.Text(" "), self.card_link(row), classes=["erratum-head"])
        items = [self.item("Printed", paragraph(*self.markdown(claim.statement)))]
        if claim.amended:
            items.append(self.item("What holds", paragraph(*self.markdown(claim.amended))))
        evidence = (row.record or {}).get("evidence", [])
        why = [paragraph(nodes.Text(e["text"])) for e in evidence if e["kind"] == "counterexample"]
        if why:
            items.append(self.item("Why", *why))
        body = nodes.definition_list("", *items)
        return nodes.container("", head, body, classes=["erratum", f"verdict-{claim.verdict}"])

    def item(self, term: str, *content: nodes.Node) -> nodes.definition_list_item:
        """Return one labelled part of an erratum."""
        return nodes.definition_list_item("", nodes.term("", term), nodes.definition("", *content))


class VerdictRole(SphinxRole):
    """``{verdict}`proved` ``: a badge in running text."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the badge, or a message when there is no such verdict."""
        from attnmath.ledger import VERDICTS

        if self.text not in VERDICTS:
            message = f"verdict: expected one of {', '.join(VERDICTS)}, got {self.text!r}"
            return [], [self.inliner.reporter.error(message, line=self.lineno)]
        return [badge(self.text)], []


def outdated(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Read the ledger's pages again when a claims file or a notebook has come or gone."""
    current = inputs(Path(env.srcdir))
    stale = getattr(env, "ledger_inputs", None) != current
    env.ledger_inputs = current  # type: ignore[attr-defined]
    return sorted(getattr(env, "ledger_pages", set()) & set(env.found_docs)) if stale else []


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """Join what parallel readers have found."""
    pages = getattr(env, "ledger_pages", set()) | getattr(other, "ledger_pages", set())
    env.ledger_pages = pages  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives, the role and the events."""
    app.add_directive("ledger-summary", LedgerSummary)
    app.add_directive("ledger", Ledger)
    app.add_directive("errata", Errata)
    app.add_role("verdict", VerdictRole())
    app.connect("source-read", read_without_records)
    app.connect("env-get-outdated", outdated)
    app.connect("env-merge-info", merge)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
