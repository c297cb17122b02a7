"""How long a chapter takes, and its sections that go further: folded on the site, marked in a book.

* ``{reading} basic`` stands below a chapter's title. It shows the level, which the conventions explain (``levels``),
  and the minutes of a first reading, of all, and of the exercises.
* ``{further}`` stands below a heading and says in one line what the section shows (`linewise.pages.first_reading`). On
  the site the line has the marks of the amended and refuted sentences in the section, and the section is folded below
  it. In a book the line is set off, and nothing is folded.
* Every heading of a chapter on the site has its minutes below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from linewise.conventions import conventions_of
from linewise.ledger import card
from linewise.pages.first_reading import Section, in_words, path, sections, total
from linewise.pages.ledger_pages import book_of
from linewise.pages.read_along import cells, mark
from linewise.pages.reading_time import Length, minutes

#: The class of the line that says what a folded section shows.
LINE = "further-line"


class Reading(nodes.General, nodes.Element):
    """Stands for the line below a chapter's title until the page is written: no search finds it."""


class Folded(nodes.General, nodes.Element):
    """What is folded on the site."""


class ReadingTime(SphinxDirective):
    """``{reading} basic``: the level and the length of a chapter."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the place of the line."""
        level, known = self.arguments[0], conventions_of(Path(self.env.srcdir)).levels
        if level not in known:
            raise self.error(f"reading: expected a level of {', '.join(known)}, got {level!r}")
        return [Reading("", level=level)]


class Further(SphinxDirective):
    """``{further}``: what the section of the heading above shows, in one line."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the line."""
        box = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, box)
        if len(box.children) != 1 or not isinstance(line := box[0], nodes.paragraph):
            raise self.error("further: expected one line on what the section shows")
        line["classes"].append(LINE)
        return [line]


def reading_line(level: str, parts: list[Section]) -> nodes.container:
    """Return the line below a chapter's title."""
    said = [f"Level: {level}", *in_words(parts)]
    words = nodes.paragraph("", " · ".join(said))
    return nodes.container("", words, classes=["reading-time"])


def titled(document: nodes.document) -> Iterator[nodes.section]:
    """Yield the sections with a title: what a theorem or a proof says is a section without one."""
    for section in document.findall(nodes.section):
        if isinstance(next(iter(section.children), None), nodes.title):
            yield section


def length_below(parts: list[Section], place: int, *, whole: bool) -> Length:
    """Return the length of a section with the sections below it: the whole, or what of them stands open."""
    below = [parts[place]]
    for part in parts[place + 1 :]:
        if part.level <= parts[place].level:
            break
        below.append(part)
    return total(part.length for part in below) if whole else path(below)


def claims_below(parts: list[Section], place: int) -> Iterator[str]:
    """Yield the claims that are judged in a section or below it."""
    for k, part in enumerate(parts[place:]):
        if k and part.level <= parts[place].level:
            return
        for cell in part.cells:
            for output in cell.get("outputs", ()):
                if record := output.get("data", {}).get(card.MIME):
                    yield record["claim"]


def marks(app: Sphinx, docname: str, names: Iterator[str]) -> Iterator[nodes.Node]:
    """Yield the marks of those claims that do not stand as they are printed."""
    book = book_of(app)
    for name in dict.fromkeys(names):
        row = book.by_id.get(name)
        if row is None or not row.claim.holds:
            continue
        say = row.claim.conventions.say
        said = say("{one}: {other}", one=row.claim.id, other=say(row.claim.verdict))
        yield from (nodes.Text("\u00a0"), mark(row, f"#{row.anchor}", said))


def arrange(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Fill the line of a chapter, and fold what goes further where a reader can unfold it."""
    on_site = app.builder.format == "html" and app.builder.name != "epub"
    places = list(doctree.findall(Reading))
    parts = [part for part in sections(cells(Path(app.srcdir), docname)) if part.level] if places else []
    for place in places:
        place.replace_self(reading_line(place["level"], parts))
    if not on_site:
        further = conventions_of(app.srcdir).say("Further:")
        for line in list(doctree.findall(nodes.paragraph)):
            if LINE in line["classes"]:
                line.insert(0, [nodes.strong("", further), nodes.Text(" ")])
        return
    found = list(titled(doctree))
    if parts and len(found) != len(parts):
        raise ValueError(f"{docname}: expected {len(parts)} headings, as the notebook has, got {len(found)}")
    for place in reversed(range(len(parts))):
        told(app, docname, found[place], parts, place)


def told(app: Sphinx, docname: str, section: nodes.section, parts: list[Section], place: int) -> None:
    """Say at a heading how many minutes the section takes; fold it if it goes further."""
    part = parts[place]
    if part.level == 1:
        return
    line = section[1] if len(section) > 1 else None
    if isinstance(line, nodes.paragraph) and LINE in line["classes"]:
        rest = section.children[2:]
        if not part.folded or length_below(parts, place, whole=False).words > part.in_view.words:
            raise ValueError(f"{docname}: the section {part.title!r} is not folded as its notebook says")
        line.extend(marks(app, docname, claims_below(parts, place)))
        section.children[2:] = []
        section += Folded("", *rest, minutes=length_below(parts, place, whole=True).minutes)
        return
    length = length_below(parts, place, whole=part.folded)
    if length.exercises:
        said = f"{length.exercises} exercises, {minutes(0, 0, length.exercises)} min"
    elif length.words + length.displays > SHORT:
        said = f"{length.minutes} min"
    else:
        return
    section.insert(1, nodes.container("", nodes.paragraph("", said), classes=["section-minutes"]))


#: A section of so few words and displays, such as a list of works, has no minutes at its heading.
SHORT = 20


def visit_folded(self: Any, node: Folded) -> None:
    """Begin what is folded."""
    said = escape(f"Read this section ({node['minutes']} min)")
    self.body.append(f'<details class="further"><summary>{said}</summary>\n')


def depart_folded(self: Any, node: Folded) -> None:
    """End what is folded."""
    self.body.append("</details>\n")


def setup(app: Sphinx) -> None:
    """Register the directives and the event."""
    app.add_node(Folded, html=(visit_folded, depart_folded))
    app.add_directive("reading", ReadingTime)
    app.add_directive("further", Further)
    app.connect("doctree-resolved", arrange)
