"""Small builders of docutils nodes that the book's page extensions share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from docutils import nodes

Cell = Sequence[nodes.Node]


def paragraph(*children: nodes.Node, classes: Iterable[str] = ()) -> nodes.paragraph:
    """Return a paragraph of the given inline nodes."""
    return nodes.paragraph("", "", *children, classes=list(classes))


def inline(text: str, *classes: str) -> nodes.inline:
    """Return `text` in a span with the given classes."""
    return nodes.inline(text, text, classes=list(classes))


def link(text: str, uri: str, *classes: str) -> nodes.reference:
    """Return a link to a page of this site, given its relative address."""
    return nodes.reference("", text, refuri=uri, internal=True, classes=list(classes))


def table(headers: Sequence[str], rows: Iterable[Sequence[Cell]], *classes: str) -> nodes.table:
    """Return a table with one header row; each cell is a sequence of block nodes."""
    group = nodes.tgroup(cols=len(headers))
    group += [nodes.colspec(colwidth=1) for _ in headers]
    head, body = nodes.thead(), nodes.tbody()
    head += _row([[paragraph(nodes.Text(text))] for text in headers])
    body += [_row(cells) for cells in rows]
    group += [head, body]
    return nodes.table("", group, classes=list(classes))


def _row(cells: Iterable[Cell]) -> nodes.row:
    return nodes.row("", *[nodes.entry("", *cell) for cell in cells])
