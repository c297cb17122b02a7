r"""Cards and derivations on the pages: drawn from the records that stand beside them in a notebook's outputs.

Sphinx gets of such an output its record alone. What a builder shows is drawn when the page is written: as HTML on the
site and in the e-book, by `print_cards` on paper, as plain text elsewhere. On the site a card ends with links to its
entry in the ledger, and to its sentence in the coverage table. Below a derivation stands what a second kernel has
proved of it, if the book keeps a record of that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any, ClassVar

from docutils import nodes
from myst_nb.core.render import MimeData, NbElementRenderer, load_mime_renders
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from linewise.conventions import Conventions, conventions_of
from linewise.derive import display
from linewise.kernel.record import Kernel, kernel_of
from linewise.ledger import Claim, card
from linewise.pages import ledger_pages, signs
from linewise.pages.ledger_pages import book_of

#: What draws the record of each mime type.
DRAWS = {card.MIME: card, display.MIME: display}


class shown(nodes.Element):
    """A card or a derivation: the mime type of its record is `kind`."""


class Renderer:
    """Makes nodes of records; myst-nb asks it for each output."""

    mime_priority_overrides: ClassVar = [("*", kind, -1) for kind in DRAWS]

    @staticmethod
    def handle_mime(renderer: NbElementRenderer, data: MimeData, inline: bool) -> list[nodes.Element] | None:
        """Return a node for a record, and None for any other data."""
        if data.mime_type not in DRAWS:
            return None
        return [shown(kind=data.mime_type, record=json.loads(json.dumps(data.content)))]  # as plain dictionaries


def records_alone(notebook: dict[str, Any]) -> dict[str, Any]:
    """Leave of each output that has a record the record: everything else can be drawn from it."""
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", [])):
        data = output.get("data", {})
        if kept := {kind: data[kind] for kind in DRAWS if kind in data}:
            output["data"] = kept
    return notebook


def with_kernel(
    kind: str, record: dict[str, Any], kernel: Kernel | None, conventions: Conventions | None = None
) -> dict[str, Any]:
    """Return the record of a derivation, or of a card that shows some, with what a second kernel says of them."""
    if kernel is None:
        return record
    if kind == card.MIME:
        chains = [with_kernel(display.MIME, chain, kernel, conventions) for chain in record.get("derivations", ())]
        return record | ({"derivations": chains} if chains else {})
    also = kernel.sentence(record, conventions.say if conventions else str.format)
    return record | ({"also": also} if also else {})


def drawn(kind: str, record: dict[str, Any], conventions: Conventions, links: str = "") -> str:
    """Return a record as HTML in the style of the site, with the signs of a book, and links at the end of a card."""
    plain = card.html(record, conventions) if kind == card.MIME else display.html(record, conventions.say)
    html = signs.in_html(display.without_styles(plain))
    return f"{html.removesuffix('</details>')}{links}</details>" if links else html


def with_tex(shown: str, record: dict[str, Any]) -> str:
    """Return a derivation's HTML with its lines in TeX beside it, for whoever wants to copy them."""
    return shown.replace("<div ", f'<div data-tex="{escape(display.aligned(record))}" ', 1)


class Draw(SphinxPostTransform):
    """Draw the records where the builder writes HTML or text; LaTeX has a visitor of its own."""

    default_priority = 5  # behind myst-nb's choice among the data of an output

    def run(self, **kwargs: Any) -> None:
        """Visit the records of a page."""
        builder, conventions = self.app.builder, conventions_of(self.app.srcdir)
        for node in list(self.document.findall(shown)) if builder.format != "latex" else ():
            kind, record = node["kind"], node["record"]
            if builder.format != "html":
                text = DRAWS[kind].plain(record)
                node.replace_self(nodes.literal_block(text, text))
                continue
            if builder.name == "epub":  # no reader can be sure that a book unfolds
                html = drawn(kind, record, conventions).replace("<details", '<details open="open"')
            elif kind == card.MIME:
                html = drawn(kind, record, conventions, self.links(record))
            else:
                html = with_tex(drawn(kind, record, conventions), record)
            node.replace_self(nodes.raw("", html, format="html", classes=["output", "text_html"]))

    def links(self, record: dict[str, Any]) -> str:
        """Return the last line of a card on the site."""
        row = book_of(self.app).by_id.get(record["claim"])
        if row is None:
            return ""
        homes = {"ledger": ledger_pages.homes(self.app)[row.claim.id], "coverage": "coverage"}
        addresses: dict[str, str] = {
            kind: self.app.builder.get_relative_uri(self.env.docname, page)
            for kind, page in homes.items()
            if page in self.env.found_docs
        }
        return links_of(row.claim, addresses)


def links_of(claim: Claim, addresses: Mapping[str, str]) -> str:
    """Return the links from a card to its entry in the ledger, and to its sentence in the coverage, where they are."""
    links, say = [], claim.conventions.say
    if "ledger" in addresses:
        address = f"{addresses['ledger']}#{ledger_pages.entry_id(claim)}"
        links.append(f'<a href="{address}">{say("in the ledger")}</a>')
    if "coverage" in addresses and not claim.is_own:
        target = f"{addresses['coverage']}#coverage-{claim.section.replace('.', '-')}"
        said = say("{section}, sentence by sentence", section=claim.conventions.place(claim.section))
        links.append(f'<a href="{target}">{said}</a>')
    said = say("This claim {links}", links=say(", ").join(links))
    return f'<p class="claim-links">{said}</p>' if links else ""


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Hand Sphinx of a notebook's cards and derivations the records, with what a second kernel says of them."""
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        notebook, kernel = records_alone(json.loads(source[0])), kernel_of(app.srcdir)
        known = conventions_of(app.srcdir)
        for data in (o.get("data", {}) for cell in notebook["cells"] for o in cell.get("outputs", [])):
            data |= {kind: with_kernel(kind, data[kind], kernel, known) for kind in DRAWS if kind in data}
        source[0] = json.dumps(notebook)


def setup(app: Sphinx) -> None:
    """Register the node, what makes it and what draws it."""
    app.add_node(shown)
    if Renderer not in load_mime_renders():  # myst-nb's list, which an installed package would join by an entry point
        load_mime_renders().append(Renderer)
    app.connect("source-read", read)
    app.add_post_transform(Draw)
