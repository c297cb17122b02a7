r"""Cards, derivations and tables on paper.

Cards and derivations are drawn in LaTeX from their records. A table that a cell has stored as HTML becomes a table of
the document, for LaTeX and for the e-book. What cannot be read is an error: nothing goes missing in silence.

How they look on paper a style of the book says, which has to define the environments ``bookcard`` and
``bookderivation``, the commands ``derivationname``, ``derivationleft``, ``derivationline`` and ``longformula``, and
``piece``, a part of a formula before which a line may be broken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.latex import LaTeXTranslator

from linewise.conventions import Conventions, conventions_of
from linewise.derive import display
from linewise.ledger import card, sentences
from linewise.pages import signs
from linewise.pages.displays import shown

#: How characters become LaTeX: `encode` of the writer.
Encode = Callable[[str], str]
#: Where a long formula may be broken, at the level of its outermost brackets.
OPERATORS = re.compile(r"[+\-=<>]|:=|\\(?:le|ge|leq|geq|approx|pm|cdot|times|odot|in|to)(?![A-Za-z])")
OPENING, CLOSING = {"{", r"\left", r"\begin"}, {"}", r"\right", r"\end"}


def tokens(tex: str) -> list[str]:
    r"""Return a formula as commands, single characters, and scripts together with what bears them to a reader.

    >>> tokens(r"a_{1} + \frac{b}{2}")
    ['a', '_', '{', '1', '}', ' ', '+', ' ', '\\frac', '{', 'b', '}', '{', '2', '}']
    """
    return re.findall(r"\\[A-Za-z]+|\\.|:=|.", tex, re.DOTALL)


def pieces(tex: str) -> list[str]:
    r"""Cut a formula before each operator that is in no bracket and in no argument.

    >>> pieces(r"= a + \left(b + c\right) d - \frac{e + 1}{2}")
    ['= a', '+ \\left(b + c\\right) d', '- \\frac{e + 1}{2}']
    >>> pieces(r"= -a \le 2 \cdot - 3")  # a sign is no operator
    ['= -a', '\\le 2', '\\cdot - 3']
    >>> pieces("a_j := b - c")
    ['a_j', ':= b', '- c']
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


def words(text: str, encode: Encode = str) -> str:
    r"""Return words with formulas between dollar signs as running text of LaTeX, with the signs of a book.

    >>> words("d_k and $x^2$")
    'd$_{\\text{k}}$ and \\(x^2\\)'
    """
    marks = {"text": "{}", "sub": r"$_{{\text{{{}}}}}$", "sup": r"$^{{\text{{{}}}}}$"}
    said = ""
    for k, part in enumerate(text.split("$")):
        said += rf"\({part}\)" if k % 2 else "".join(marks[kind].format(encode(t)) for kind, t in signs.split(part))
    return said


def used(name: str, body: str) -> str:
    """Return what the style sets in its own way, by the name of a class."""
    return f"\\begin{{sphinxuseclass}}{{{name}}}\n{body}\n\\end{{sphinxuseclass}}\n"


def items(said: list[str]) -> str:
    """Return a list."""
    return "\n".join([r"\begin{itemize}", *(rf"\item {{}} \sphinxAtStartPar {one}" for one in said), r"\end{itemize}"])


def derivation_tex(record: dict[str, Any], encode: Encode, say: Callable[..., str] = str.format) -> str:
    """Return a derivation: TeX measures the parts of a line, and breaks what is too wide.

    say : says a template in the language of the book.
    """
    first, *rest = record["lines"]
    body = [rf"\derivationname{{{words(record['name'], encode)}}}"] if record["name"] else []
    body += [rf"\derivationleft{{{breakable(display.tex_of(first))}}}"]
    for line in rest:
        right = breakable(f"{display.relation_of(line)} {display.tex_of(line)}")
        body.append(rf"\derivationline{{{right}}}{{{words(display.reason_of(line, say), encode)}}}")
    if taken := display.assumptions_of(record):
        listed = say("; ").join(rf"\longformula{{{breakable(tex)}}}" for tex in taken)
        body.append(used("assumed", say("Assumed: {taken}.", taken=listed)))
    if also := record.get("also"):
        body.append(used("assumed", words(also, encode)))
    mistakes = record["mistakes"]
    named = [(words(m["name"], encode), rf"\longformula{{{breakable(display.tex_of(m))}}}") for m in mistakes]
    wrong = [say("{one}: {other}", one=one, other=other) for one, other in named]
    if wrong:
        told = f" {wrong[0]}" if len(wrong) == 1 else f"\n{items(wrong)}"
        body.append(used("mistakes", f"{say(display.heading_of(mistakes))}:{told}"))
    return "\n".join(["", r"\begin{bookderivation}", *body, r"\end{bookderivation}", ""])


def card_tex(record: dict[str, Any], encode: Encode, target: str, conventions: Conventions) -> str:
    """Return a card, unfolded, below the derivations that it shows; `target` is where its links lead."""
    say = conventions.say
    above = [derivation_tex(chain, encode, say) for chain in record.get("derivations", ())]
    title = [record["verdict"], say(record.get("outcome", "")), encode(record["claim"]), target]
    opening = r"\begin{bookcard}" + "".join(f"{{{part}}}" for part in [*title, words(record["title"], encode)])
    body = [f"\n\\textbf{{{name}}} {words(text, encode)}\n" for name, text in card.told(record, conventions)]
    evidence = items([words(sentences.markup(parts, say), encode) for parts in record["evidence"]])
    return "\n".join([*above, "", opening, *body, evidence, r"\end{bookcard}", ""])


def visit_shown_latex(self: LaTeXTranslator, node: shown) -> None:
    """Draw a card or a derivation."""
    record = node["record"]
    if node["kind"] == card.MIME:
        target = self.hypertarget(card.anchor_of(record["claim"]))
        self.body.append(card_tex(record, self.encode, target, conventions_of(self.builder.srcdir)))
    else:
        self.body.append(derivation_tex(record, self.encode, conventions_of(self.builder.srcdir).say))
    raise nodes.SkipNode


def inline(element: Tag | NavigableString) -> Iterator[nodes.Node]:
    r"""Yield running text of stored HTML as nodes: words, formulas between ``\(`` and ``\)``, and plain mark-up."""
    children: Iterable[Any] = element.children if isinstance(element, Tag) else [element]
    for child in children:
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
            raise ExtensionError(f"table: expected words and formulas, got <{child.name}>")


def table_nodes(block: Tag) -> nodes.Node:
    """Return a table as nodes; the first row of cells is its head."""
    rows = [row.find_all(["th", "td"]) for row in block.find_all("tr")]
    group = nodes.tgroup(cols=len(rows[0]))
    group += [nodes.colspec(colwidth=1) for _ in rows[0]]
    made = [nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *inline(cell))) for cell in row)) for row in rows]
    group += [nodes.thead("", made[0]), nodes.tbody("", *made[1:])]
    return nodes.table("", group, classes=["dataframe"])


def from_html(stored: str) -> list[nodes.Node]:
    """Return the tables that a cell has stored as HTML as nodes; raise `ExtensionError` for anything else."""
    made: list[nodes.Node] = []
    for block in BeautifulSoup(stored, "html.parser").find_all(True, recursive=False):
        if block.name != "table" and not block.find("table"):
            raise ExtensionError(f"table: expected a table, got {str(block)[:200]}")
        made.append(table_nodes(block))
    return made


class StoredTables(SphinxPostTransform):
    """Put tables in place of the HTML that cells have stored, before myst-nb chooses what a page shows."""

    default_priority = 3
    builders = ("latex", "epub")

    def run(self, **kwargs: Any) -> None:
        """Visit the outputs of all cells."""
        for bundle in list(self.document.findall(nodes.container)):
            if bundle.get("nb_element") != "mime_bundle":
                continue
            for stored in bundle.children:
                if isinstance(stored, nodes.Element) and stored["mime_type"] == "text/html":
                    bundle.replace_self(from_html(stored.astext()))
                    break


def setup(app: Sphinx) -> None:
    """Register what draws a record in LaTeX, and the transform."""
    app.add_node(shown, override=True, latex=(visit_shown_latex, None))
    app.add_post_transform(StoredTables)
