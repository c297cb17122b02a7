"""Pages to read along with a source: its paragraphs in order, with the verdict of each sentence as a small mark.

`linewise.ledger.read_along` says how such a page is written and what is asked of it. On the site a mark is the icon of
the verdict and a link to the card; in the e-book and as plain text it is the word, on paper the sign of the card.

* ``{paragraph} 2.1 p3 the first words`` is a section with the address ``#p-2.1-3``.
* ``{mark}`2.1/slope` `` is the mark of a claim.
* ``{instead} 2.1/slope`` holds what is true instead of an amended or refuted sentence.
* ``{numbered} 2.1.4`` shows a numbered equation of a chapter again, with its number and without a second address.
* ``{from-chapter} chapters/lines fig-slopes`` shows a picture of a chapter again, with the words of the directive below
  it and the chapter's number of the figure.
* ``{more} 2.1`` names the chapters that decide the sentences of a section, with the minutes of a first reading of each.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from linewise.ledger import Row
from linewise.ledger.card import classes_of
from linewise.ledger.claims import CLAIMS_SUFFIX
from linewise.ledger.coverage import tags_of
from linewise.ledger.read_along import place_and_opening
from linewise.pages import findable
from linewise.pages.first_reading import path, sections
from linewise.pages.ledger_pages import CardLink, CardRole, badge, book_of, titled

SVG = "image/svg+xml"
#: The class of a mark.
MARK = "verdict-mark"
_DISPLAY = re.compile(r"\$\$(.*?)\$\$", re.DOTALL)


def anchor_of(place: str) -> str:
    """Return the id of a paragraph.

    >>> anchor_of("5.1.4 p2")
    'p-5.1.4-2'
    """
    section, paragraph = place.split()
    return f"p-{section}-{paragraph.removeprefix('p')}"


@cache
def cells_of(notebook: Path, changed: int) -> list[dict[str, Any]]:
    """Return the cells of a notebook as it was when it changed last."""
    return json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def cells(root: Path, page: str) -> list[dict[str, Any]]:
    """Return the cells of a chapter."""
    path = root / f"{page}.ipynb"
    return cells_of(path, path.stat().st_mtime_ns) if path.is_file() else []


def title_in(cells: list[dict[str, Any]]) -> str:
    """Return the title of a chapter as it is written, with its formulas; "" where it has none.

    >>> title_in([{"cell_type": "markdown", "source": "# On $d_k$\\n\\nText."}])
    'On $d_k$'
    """
    texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return next((found[1].strip() for text in texts if (found := re.search(r"^# (.+)$", text, re.MULTILINE))), "")


def equation_in(cells: list[dict[str, Any]], number: str) -> str | None:
    r"""Return the display of a numbered equation in the cells of a chapter, as TeX.

    >>> equation_in([{"cell_type": "markdown", "source": r"So $$a = b \tag{2.1}$$ holds."}], "2.1")
    'a = b \\tag{2.1}'
    """
    texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    shown = (display.strip() for text in texts for display in _DISPLAY.findall(text))
    return next((display for display in shown if number in tags_of(display)), None)


def picture_in(cells: list[dict[str, Any]], name: str) -> tuple[str, str] | None:
    """Return the SVG and the alternative text of a figure in the cells of a chapter."""
    for cell in cells:
        described = cell.get("metadata", {}).get("mystnb", {})
        if described.get("figure", {}).get("name") == name:
            drawn = ["".join(output["data"][SVG]) for output in cell["outputs"] if SVG in output.get("data", {})]
            return (drawn[0], described["image"]["alt"]) if drawn else None
    return None


class Paragraph(SphinxDirective):
    """``{paragraph} 2.1 p3 the first words``: a section with an address."""

    required_arguments = 2
    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the section."""
        place, opening = place_and_opening(" ".join(self.arguments))
        if place not in {" ".join(sentence.at.split()[:2]) for sentence in book_of(self.env.app).sentences}:
            raise self.error(f"paragraph: no paragraph {place!r} in a source")
        number = place.rpartition(" p")[2]
        words, _ = self.parse_inline(f"{number} · {opening}" if opening else number, lineno=self.lineno)
        anchor = anchor_of(place)
        # A theme's script may look for the first id as a selector, in which a dot would begin a class.
        section = nodes.section(ids=[anchor.replace(".", "-"), anchor], names=[anchor], classes=["paragraph"])
        section += nodes.title("", "", *words)
        self.set_source_info(section)
        self.state.document.note_explicit_target(section, section)
        self.state.nested_parse(self.content, self.content_offset, section)
        for mark in [link for link in section.findall(CardLink) if MARK in link["classes"]]:
            keep_beside(mark)
        return [section]


def keep_beside(mark: nodes.Element) -> None:
    """Put a mark into one line with the last word of its sentence, or with its last formula.

    A no-break space alone does not keep it there, since a browser may break a line before each box.
    """
    line = mark.parent
    place = line.index(mark)
    before = line[place - 1] if place else None
    if not isinstance(before, nodes.Text):
        return
    words, last = last_word(before.rstrip())
    after_formula = place > 1 and isinstance(line[place - 2], nodes.math) and not words and not re.search(r"\w", last)
    start = place - 2 if after_formula else place - 1
    together = [*line[start : place - 1], nodes.Text(last + "\u00a0"), mark]
    rest = [nodes.Text(words)] if words else []
    line[start : place + 1] = [*rest, nodes.inline("", "", *together, classes=["with-mark"])]


def last_word(text: str) -> tuple[str, str]:
    """Return a text up to its last word, and the last word; a Han character is a word of its own.

    >>> last_word("one two."), last_word("最后一个词。"), last_word("。")
    (('one ', 'two.'), ('最后一个', '词。'), ('', '。'))
    """
    last = re.search(r"[\u4e00-\u9fff]?[^\s\u4e00-\u9fff]*$", text)
    assert last is not None, "it may be empty"
    return text[: last.start()], last[0]


def mark(row: Row, address: str, said: str) -> CardLink:
    """Return the verdict of a claim as a small icon, which says some words and links to the card."""
    look = classes_of(row.claim.verdict, row.claim.conventions)
    link = CardLink("", "", refuri=address, internal=True, classes=[MARK, *look], data={})
    link["reftitle"] = titled(row.claim, said)
    link += nodes.inline(said, said, classes=["mark", *look])
    return link


class MarkRole(CardRole):
    """``{mark}`5.1.5` ``: the verdict of a claim as a small icon, which links to the card."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the mark, or a message when no page has the claim."""
        row = book_of(self.env.app).by_id.get(self.text)
        if row is None:
            return [], [self.inliner.reporter.error(f"mark: no claim {self.text!r}", line=self.lineno)]
        depend(self.env, row)
        claim, say = row.claim, row.claim.conventions.say
        verdict = say(claim.verdict)
        if claim.outcome:
            verdict = say("{verdict}, {outcome}", verdict=verdict, outcome=say(claim.outcome))
        of_site = self.env.app.builder.name == "html"
        said = say("{one}: {other}", one=claim.id, other=verdict) if of_site else f"[{verdict}]"
        return [mark(row, self.address(row), said)], []


def depend(env: Any, row: Row) -> None:
    """Have Sphinx read a page anew when a claim has changed that it shows."""
    env.note_dependency(str(Path(env.srcdir, f"{row.page}{CLAIMS_SUFFIX}")))


class Instead(SphinxDirective):
    """``{instead} 2.1/slope``: what holds instead of a sentence, below its verdict and its grade."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the box."""
        row = book_of(self.env.app).by_id.get(self.arguments[0])
        if row is None or not row.claim.holds:
            raise self.error(f"instead: no amended or refuted claim {self.arguments[0]!r}")
        depend(self.env, row)
        claim = row.claim
        box = nodes.container(classes=["holds-instead", *classes_of(claim.verdict, claim.conventions)])
        self.state.nested_parse(self.content, self.content_offset, box)
        if not box.children or not isinstance(box[0], nodes.paragraph):
            raise self.error(f"instead: expected words on what holds instead of {claim.id}")
        grade = [nodes.inline("", claim.grade, classes=["claim-grade"]), nodes.Text(" ")] if claim.grade else []
        box[0].insert(0, [badge(claim.verdict, claim.conventions), nodes.Text(" "), *grade])
        return [box]


class Numbered(SphinxDirective):
    """``{numbered} 2.1.4``: the equation of this number, as the chapter that checks its sentence shows it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the display."""
        number, book, root = self.arguments[0], book_of(self.env.app), Path(self.env.srcdir)
        for page in dict.fromkeys(row.page for row in book.rows):
            if tex := equation_in(cells(root, page), number):
                self.env.note_dependency(str(root / f"{page}.ipynb"))
                block = nodes.math_block(tex, tex, nowrap=True, number=None, label=None, docname=self.env.docname)
                block["again"] = True  # its address and its entry in the index are the chapter's
                self.set_source_info(block)
                return [block]
        raise self.error(f"numbered: no chapter shows the equation ({number})")


class FromChapter(SphinxDirective):
    """``{from-chapter} chapters/lines fig-slopes``: a picture of a chapter again."""

    required_arguments = 2
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the figure, without a number of its own."""
        page, name = self.arguments
        root = Path(self.env.srcdir)
        if (found := picture_in(cells(root, page), name)) is None:
            raise self.error(f"from-chapter: no figure {name!r} in {page!r}")
        self.env.note_dependency(str(root / f"{page}.ipynb"))
        svg, alt = found
        file = Path(self.env.doctreedir, "from-chapters", f"{name}.svg")
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_text(encoding="utf-8") != svg:
            file.write_text(svg, encoding="utf-8")
        uri = Path(os.path.relpath(file, Path(self.env.doc2path(self.env.docname)).parent)).as_posix()
        figure = nodes.figure("", nodes.image(uri=uri, alt=alt), classes=["from-chapter"])
        legend = nodes.legend()
        self.state.nested_parse(self.content, self.content_offset, legend)
        if legend.children and isinstance(legend[-1], nodes.paragraph):
            legend[-1] += [nodes.Text(" ("), reference("numref", name, self.env.docname), nodes.Text(")")]
        figure += legend
        self.set_source_info(figure)
        return [figure]


def reference(kind: str, target: str, docname: str, *words: nodes.Node) -> addnodes.pending_xref:
    """Return a link to a page (doc) or to a figure (numref), with these words, or else those that Sphinx finds."""
    shown = nodes.inline(target, "" if words else target, *words, classes=["xref", "std", f"std-{kind}"])
    about = {"refdomain": "std", "reftype": kind, "reftarget": target, "refdoc": docname}
    return addnodes.pending_xref("", shown, refexplicit=bool(words), refwarn=True, **about)


class More(SphinxDirective):
    """``{more} 2.1``: where the sentences of a section are checked."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a line with the chapters, in the order of the book."""
        section, book, root = self.arguments[0], book_of(self.env.app), Path(self.env.srcdir)
        rows = [r for r in book.rows if any(place.split()[0] == section for place in r.claim.places)]
        if not rows:
            raise self.error(f"more: no claim of section {section!r}")
        say = book.conventions.say
        line = nodes.paragraph("", say("More in "), classes=["read-more"])
        for k, page in enumerate(findable.chapters_of(root, rows)):
            self.env.note_dependency(str(root / f"{page}.ipynb"))
            title, _ = self.parse_inline(title_in(cells(root, page)), lineno=self.lineno)
            line += [nodes.Text(say("; ") if k else ""), reference("doc", f"/{page}", self.env.docname, *title)]
            line += nodes.Text(say(" ({minutes} min)", minutes=path(sections(cells(root, page))).minutes))
        return [line]


#: The directives by their names.
DIRECTIVES: dict[str, Any] = {
    "paragraph": Paragraph,
    "instead": Instead,
    "numbered": Numbered,
    "from-chapter": FromChapter,
    "more": More,
}


def setup(app: Sphinx) -> None:
    """Register the role and the directives."""
    app.add_role("mark", MarkRole())
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
