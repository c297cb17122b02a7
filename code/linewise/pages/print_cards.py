r"""Cards and derivations where no script runs: in the book on paper, and in the EPUB.

A notebook stores a card, and each line of a derivation, as HTML. On paper LaTeX sets them, and an e-book needs formulas
without scripts. So for these two builders the stored HTML becomes nodes of the document, with formulas that the builder
itself sets. What it cannot read is an error: nothing of the evidence goes missing in silence.

How they look on paper a style of the book says, which has to define the environments ``bookcard`` and
``bookderivation``, the commands ``derivationname``, ``derivationleft``, ``derivationline`` and ``longformula``, and
``piece``, a part of a formula before which a line may be broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.latex import LaTeXTranslator

#: Where a long formula may be broken, at the level of its outermost brackets.
OPERATORS = re.compile(r"[+\-=<>]|\\(?:le|ge|leq|geq|approx|pm|cdot|times|odot|in|to)(?![A-Za-z])")
DISPLAYSTYLE = r"\displaystyle"
OPENING, CLOSING = {"{", r"\left", r"\begin"}, {"}", r"\right", r"\end"}


class card(nodes.container):
    """A verdict with its evidence; `verdict` and `outcome` are words, the first child is the title, then the id."""


class card_title(nodes.inline):
    """What a card is about."""


class derivation(nodes.container):
    """A chain of lines: a heading, the lines, and the mistakes that the same check rejects."""


class derivation_name(nodes.inline):
    """What a derivation shows."""


class derivation_line(nodes.container):
    """A line of a derivation; its children are the left side, the right side, and the reason."""


def tokens(tex: str) -> list[str]:
    r"""Return a formula as commands, single characters, and scripts together with what bears them to a reader.

    >>> tokens(r"a_{1} + \frac{b}{2}")
    ['a', '_', '{', '1', '}', ' ', '+', ' ', '\\frac', '{', 'b', '}', '{', '2', '}']
    """
    return re.findall(r"\\[A-Za-z]+|\\.|.", tex, re.DOTALL)


def pieces(tex: str) -> list[str]:
    r"""Cut a formula before each operator that is in no bracket and in no argument.

    >>> pieces(r"= a + \left(b + c\right) d - \frac{e + 1}{2}")
    ['= a', '+ \\left(b + c\\right) d', '- \\frac{e + 1}{2}']
    >>> pieces(r"= -a \le 2 \cdot - 3")  # a sign is no operator
    ['= -a', '\\le 2', '\\cdot - 3']
    """
    cut, depth, before = [""], 0, ""
    for token in tokens(tex):
        depth -= token in CLOSING
        if depth == 0 and OPERATORS.fullmatch(token) and before and not OPERATORS.fullmatch(before):
            cut.append("")
        depth += token in OPENING
        cut[-1] += token
        before = token.strip() if token.strip() else before
        # The delimiter of a bracket, an opening bracket and a script are no left operand.
        if token in {"(", "[", "^", "_", ","}:
            before = ""
    return [part.strip() for part in cut if part.strip()]


def inner_pieces(tex: str) -> list[str]:
    r"""Cut a formula inside the longest of its outermost ``\left ... \right``; [] where there is nothing to cut.

    Each piece keeps the bracket's height, by a phantom of what the bracket holds.

    >>> inner_pieces(r"2 \left(a + b\right)^{2}")
    ['2 \\left(\\vphantom{a + b}a\\right.', '\\left.\\vphantom{a + b}{}+ b\\right)^{2}']
    >>> inner_pieces(r"\frac{a + b}{2}")
    []
    """
    spans, depth, position, start = [], 0, 0, 0
    for token in tokens(tex):
        position += len(token)
        if token in OPENING:
            start = position if depth == 0 and token == r"\left" else start
            depth += 1
        elif token in CLOSING:
            depth -= 1
            if depth == 0 and token == r"\right":
                spans.append((start, position - len(r"\right")))
    if not spans:
        return []
    start, end = max(spans, key=lambda span: span[1] - span[0])
    opening = tokens(tex[start:])[0]
    inside = tex[start + len(opening) : end]
    parts = pieces(inside)
    if len(parts) < 2:
        return []
    phantom = rf"\vphantom{{{inside}}}"
    first = rf"{tex[:start]}{opening}{phantom}{parts[0]}\right."
    middle = [rf"\left.{phantom}{{}}{part}\right." for part in parts[1:-1]]
    last = rf"\left.{phantom}{{}}{parts[-1]}{tex[end:]}"
    return [first, *middle, last]


def breakable(tex: str, depth: int = 2) -> str:
    r"""Return a formula as LaTeX that may be broken: ``\piece{part}{the part in smaller pieces}...``.

    >>> print(breakable("= a + b"))
    \piece{= a}{}\piece{{}+ b}{}
    """
    shown = []
    for k, part in enumerate(pieces(tex)):
        part = "{}" + part if k else part
        smaller = "".join(rf"\piece{{{p}}}{{}}" for p in inner_pieces(part)) if depth else ""
        shown.append(rf"\piece{{{part}}}{{{smaller}}}")
    return "".join(shown)


def inline(element: Tag | NavigableString) -> Iterator[nodes.Node]:
    r"""Yield running text of stored HTML as nodes: words, formulas between ``\(`` and ``\)``, and plain mark-up."""
    for child in element.children if isinstance(element, Tag) else [element]:
        if isinstance(child, NavigableString):
            for k, part in enumerate(re.split(r"\\\((.*?)\\\)", str(child), flags=re.DOTALL)):
                if part:
                    yield nodes.math(part, part) if k % 2 else nodes.Text(part)
        elif child.name in {"sub", "sup"}:
            yield (nodes.subscript if child.name == "sub" else nodes.superscript)("", "", *inline(child))
        elif child.name in {"strong", "em"}:
            yield {"strong": nodes.strong, "em": nodes.emphasis}[child.name]("", "", *inline(child))
        elif child.name in {"span", "small"}:
            yield nodes.inline("", "", *inline(child), classes=child.get("class", []))
        elif child.name == "br":
            yield nodes.Text(": ")
        else:
            raise ExtensionError(f"card: expected words and formulas, got <{child.name}>")


def found(element: Tag, selector: str) -> Tag:
    """Return the one element that a stored card or derivation must have."""
    match = element.select_one(selector)
    if match is None:
        raise ExtensionError(f"card: expected an element {selector}, got {str(element)[:200]}")
    return match


def bullets(element: Tag, *classes: str) -> nodes.bullet_list:
    """Return the items of a list."""
    items = [nodes.list_item("", nodes.paragraph("", "", *inline(li))) for li in element.find_all("li")]
    return nodes.bullet_list("", *items, classes=list(classes))


def mistakes_nodes(folded: Tag) -> nodes.Node:
    """Return the rejected mistakes of a derivation: one in a sentence, several in a list."""
    items, summary = folded.find_all("li"), inline(found(folded, "summary"))
    if len(items) == 1:
        shown = [nodes.paragraph("", "", *summary, nodes.Text(": "), *inline(items[0]))]
    else:
        shown = [nodes.paragraph("", "", *summary, nodes.Text(":")), bullets(folded)]
    return nodes.container("", *shown, classes=["mistakes"])


def derivation_nodes(block: Tag) -> nodes.Node:
    """Return a derivation as nodes."""
    chain = derivation(classes=["derivation"])
    if name := block.select_one(".derivation-name"):
        chain += derivation_name("", "", *inline(name), classes=["derivation-name"])
    for row in block.select(".line"):
        line = derivation_line(classes=["line"])
        for part in ("left", "right", "reason"):
            line += nodes.inline("", "", *inline(found(row, f".{part}")), classes=[part])
        chain += line
    if folded := block.select_one("details"):
        chain += mistakes_nodes(folded)
    return chain


def card_nodes(block: Tag) -> nodes.Node:
    """Return a card as nodes, unfolded."""
    verdict = found(block, ".claim-verdict").get_text()
    shown = card(classes=["claim-card", f"verdict-{verdict.replace(' ', '-')}"], ids=[block["id"]], verdict=verdict)
    outcome = block.select_one(".claim-outcome")
    shown["outcome"] = outcome.get_text() if outcome else ""
    shown["key"] = found(block, ".claim-id").get_text()
    shown += card_title("", "", *inline(found(block, ".claim-title")), classes=["claim-title"])
    for paragraph in block.find_all("p", recursive=False):
        shown += nodes.paragraph("", "", *inline(paragraph), classes=paragraph.get("class", []))
    shown += bullets(found(block, ".claim-evidence"), "claim-evidence")
    return shown


def table_nodes(block: Tag) -> nodes.Node:
    """Return a table as nodes; the first row of cells is its head."""
    rows = [row.find_all(["th", "td"]) for row in block.find_all("tr")]
    group = nodes.tgroup(cols=len(rows[0]))
    group += [nodes.colspec(colwidth=1) for _ in rows[0]]
    made = [nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *inline(cell))) for cell in row)) for row in rows]
    group += [nodes.thead("", made[0]), nodes.tbody("", *made[1:])]
    return nodes.table("", group, classes=["dataframe"])


def from_html(stored: str) -> list[nodes.Node]:
    """Return what a cell has stored as HTML as nodes; raise `ExtensionError` for what is none of the known kinds."""
    made = []
    for block in BeautifulSoup(stored, "html.parser").find_all(True, recursive=False):
        kinds = cast("list[str]", block.get("class", []))
        if "derivation" in kinds:
            made.append(derivation_nodes(block))
        elif "claim-card" in kinds:
            made.append(card_nodes(block))
        elif block.name == "table" or block.find("table"):
            made.append(table_nodes(block))
        else:
            raise ExtensionError(f"card: expected a derivation, a card or a table, got {str(block)[:200]}")
    return made


class StoredHtml(SphinxPostTransform):
    """Put nodes in place of the HTML that cells have stored, before myst-nb chooses what a page shows."""

    default_priority = 3
    builders = ("latex", "epub")

    def run(self, **kwargs: Any) -> None:
        """Visit the outputs of all cells."""
        for bundle in list(self.document.findall(nodes.container)):
            if bundle.get("nb_element") != "mime_bundle":
                continue
            for stored in bundle.children:
                if stored["mime_type"] == "text/html":
                    bundle.replace_self(from_html(stored.astext()))
                    break


def tex_of(node: nodes.Element) -> str:
    r"""Return the formulas of one side of a line, without the size that a page asks for."""
    return " ".join(m.astext().removeprefix(DISPLAYSTYLE).strip() for m in node.findall(nodes.math))


def visit_card_latex(self: LaTeXTranslator, node: card) -> None:
    """Begin a card: the writer sets title and body as it sets any text."""
    verdict, outcome, key = node["verdict"], node["outcome"], self.encode(node["key"])
    targets = "".join(self.hypertarget(name) for name in node["ids"])
    self.body.append(f"\n\\begin{{bookcard}}{{{verdict}}}{{{outcome}}}{{{key}}}{{{targets}}}")


def depart_card_latex(self: LaTeXTranslator, node: card) -> None:
    """End a card."""
    self.body.append("\\end{bookcard}\n")


def visit_card_title_latex(self: LaTeXTranslator, node: card_title) -> None:
    """Begin a card's title, an argument of its box."""
    self.body.append("{")


def depart_card_title_latex(self: LaTeXTranslator, node: card_title) -> None:
    """End a card's title."""
    self.body.append("}\n")


def visit_derivation_latex(self: LaTeXTranslator, node: derivation) -> None:
    """Begin a derivation."""
    self.body.append("\n\\begin{bookderivation}\n")


def depart_derivation_latex(self: LaTeXTranslator, node: derivation) -> None:
    """End a derivation."""
    self.body.append("\\end{bookderivation}\n")


def visit_name_latex(self: LaTeXTranslator, node: derivation_name) -> None:
    """Begin the name of a derivation."""
    self.body.append("\\derivationname{")


def depart_name_latex(self: LaTeXTranslator, node: derivation_name) -> None:
    """End the name of a derivation."""
    self.body.append("}\n")


def visit_math_latex(self: LaTeXTranslator, node: nodes.math) -> None:
    r"""Set a formula in running text; a tall one, of a mistake, may be broken as the lines of derivations are."""
    tex = node.astext()
    if tex.startswith(DISPLAYSTYLE):
        self.body.append(rf"\longformula{{{breakable(tex.replace(DISPLAYSTYLE, '', 1).strip())}}}")
        raise nodes.SkipNode
    LaTeXTranslator.visit_math(self, node)


def visit_line_latex(self: LaTeXTranslator, node: derivation_line) -> None:
    """Set a line: TeX measures its parts, and breaks what is too wide."""
    left, right, reason = (cast(nodes.Element, child) for child in node.children)
    if tex := tex_of(left):
        self.body.append(f"\\derivationleft{{{breakable(tex)}}}\n")
    self.body.append(f"\\derivationline{{{breakable(tex_of(right))}}}{{")
    for child in reason.children:
        child.walkabout(self)
    self.body.append("}\n")
    raise nodes.SkipNode


def visit_card_html(self: Any, node: card) -> None:
    """Begin a card in an e-book: a box under a line with verdict, title and id."""
    self.body.append(self.starttag(node, "div"))
    outcome = f' <strong class="claim-outcome">{node["outcome"]}</strong>' if node["outcome"] else ""
    self.body.append(f'<p class="claim-head"><span class="claim-verdict">{node["verdict"]}</span>{outcome} ')


def visit_card_title_html(self: Any, node: card_title) -> None:
    """Begin a card's title."""
    self.body.append('<span class="claim-title">')


def depart_card_title_html(self: Any, node: card_title) -> None:
    """End a card's title, and its line with the id."""
    self.body.append(f'</span> <span class="claim-id">{self.encode(node.parent["key"])}</span></p>')


def visit_div(self: Any, node: nodes.Element) -> None:
    """Begin a block."""
    self.body.append(self.starttag(node, "div"))


def depart_div(self: Any, node: nodes.Element) -> None:
    """End a block."""
    self.body.append("</div>\n")


def setup(app: Sphinx) -> None:
    """Register the nodes and the transform."""
    html = (visit_div, depart_div)
    app.add_node(card, latex=(visit_card_latex, depart_card_latex), html=(visit_card_html, depart_div))
    titles = {"latex": (visit_card_title_latex, depart_card_title_latex)}
    app.add_node(card_title, html=(visit_card_title_html, depart_card_title_html), **titles)
    app.add_node(derivation, latex=(visit_derivation_latex, depart_derivation_latex), html=html)
    app.add_node(derivation_name, latex=(visit_name_latex, depart_name_latex), html=html)
    app.add_node(nodes.math, override=True, latex=(visit_math_latex, None))
    app.add_node(derivation_line, latex=(visit_line_latex, None), html=html)
    app.add_post_transform(StoredHtml)
