r"""What of a notebook is read first, and what goes further.

A heading with the block ``{further}`` below it goes further: all that follows, up to the next heading of its level or
above, is folded, and the block says in one line what it shows.

    ### The tail of the law

    ```{further}
    Far from the mean the law of a score stays different from the normal law.
    ```

What is not folded is the path of a first reading. Nothing here needs Sphinx; `linewise.pages.folded_sections` shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from linewise.pages.reading_time import Length, length_of, words_of

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*\S)")
_FENCE = re.compile(r"(`{3,}|:{3,}|~{3,})")
_ANCHOR = re.compile(r"\([\w.-]+\)=")
_LEVEL = re.compile(r"^(?:`{3,}|:{3,})\{reading\}[ \t]*(.*\S)", re.MULTILINE)
#: The block below a heading: the group is its line.
FURTHER = re.compile(r"^(`{3,}|:{3,})\{further\}[ \t]*\n(?P<told>.*?)^\1[ \t]*$\n?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Section:
    """A part of a notebook: from a heading to the next heading of any level.

    level, title : of its heading, as it is written; the part before the first heading has level 0.
    told : what it shows, in one line, if it goes further itself.
    folded : whether it, or a section that holds it, goes further.
    cells : its cells; a cell with several headings is cut.
    """

    level: int
    title: str
    told: str
    folded: bool
    cells: tuple[Mapping[str, Any], ...]

    @property
    def length(self) -> Length:
        """What it holds, without the sections below it."""
        return length_of(self.cells)

    @property
    def in_view(self) -> Length:
        """What of it stands open to be read: all, or the heading and the line, or nothing; exercises are no reading."""
        if not self.folded:
            length = self.length
            return Length(0, 0, length.exercises) if length.exercises else length
        return Length(words_of(f"{self.title}\n{self.told}") if self.told else 0, 0, 0)


def sections(cells: Iterable[Mapping[str, Any]]) -> list[Section]:
    r"""Return the sections of a notebook, given the cells of its JSON.

    >>> text = "# Lines\n\nRead me.\n\n## Slopes\n\n```{further}\nA slope is a tangent.\n```\n\nThree more words."
    >>> parts = sections([{"cell_type": "markdown", "source": text}])
    >>> [(part.title, part.told, part.folded, part.in_view.words) for part in parts]
    [('Lines', '', False, 3), ('Slopes', 'A slope is a tangent.', True, 6)]
    """
    found: list[tuple[int, str, str, list[Mapping[str, Any]]]] = [(0, "", "", [])]
    for cell in cells:
        if cell["cell_type"] != "markdown":
            found[-1][3].append(cell)
            continue
        for text in cut("".join(cell["source"])):
            if heading := heading_of(text):
                found.append((*heading, told_in(text), []))
            found[-1][3].append({**cell, "source": text})
    parts, folded_from = [], 0  # the level from which on everything is folded
    for level, title, told, held in found if found[0][3] else found[1:]:
        if level <= folded_from:
            folded_from = 0
        if told and not folded_from:
            folded_from = level
        parts.append(Section(level, title, told, bool(folded_from), tuple(held)))
    return parts


def cut(text: str) -> list[str]:
    r"""Cut a text in Markdown before each of its headings; what a fence holds has none.

    >>> cut("Words.\n\n# One\n\n```\n# a remark\n```\n(two)=\n## Two")
    ['Words.\n\n', '# One\n\n```\n# a remark\n```\n', '(two)=\n## Two']
    """
    pieces, fence = [""], ""
    anchor = ""
    for line in text.splitlines(keepends=True):
        if found := _FENCE.match(line):
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence) and line.strip() == found[1]:
                fence = ""
        if not fence and _ANCHOR.fullmatch(line.strip()):
            anchor += line
            continue
        if not fence and _HEADING.match(line):
            pieces.append("")
        pieces[-1] += anchor + line
        anchor = ""
    pieces[-1] += anchor
    return [piece for piece in pieces if piece]


def heading_of(text: str) -> tuple[int, str] | None:
    r"""Return the level and the title of the heading with which a text begins, anchors aside.

    >>> heading_of("(two)=\n## Two times $2$\n\nWords."), heading_of("Words.")
    ((2, 'Two times $2$'), None)
    """
    for line in text.splitlines():
        if found := _HEADING.match(line):
            return len(found[1]), found[2]
        if line.strip() and not _ANCHOR.fullmatch(line.strip()):
            return None
    return None


def told_in(text: str) -> str:
    """Return the line of the block ``{further}`` in a text, or "" where it has none."""
    found = FURTHER.search(text)
    return " ".join(found["told"].split()) if found else ""


def path(parts: Iterable[Section]) -> Length:
    """Return the length of what stands open."""
    return total(part.in_view for part in parts)


def total(lengths: Iterable[Length]) -> Length:
    """Return the sum of lengths.

    >>> total([Length(1, 2, 3), Length(4, 0, 1)])
    Length(words=5, displays=2, exercises=4)
    """
    held = list(lengths)
    return Length(*(sum(getattr(one, name) for one in held) for name in ("words", "displays", "exercises")))


def level_of(cells: Iterable[Mapping[str, Any]]) -> str:
    """Return the level that a chapter states below its title, or "" where it states none."""
    texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return next((found[1] for text in texts if (found := _LEVEL.search(text))), "")


def in_words(parts: Iterable[Section]) -> list[str]:
    """Return how long a notebook takes: a first reading, all of it, and how many exercises it has."""
    held = list(parts)
    first, whole = path(held), total(part.length for part in held)
    said = [f"first reading {first.minutes} min"]
    if whole.words > first.words:
        said += [f"with all that goes further {whole.minutes} min"]
    if whole.exercises:
        said += [f"{whole.exercises} exercises"]
    return said
