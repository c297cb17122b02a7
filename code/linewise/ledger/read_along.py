"""Pages to read along with a source: each marks every claim of its source in the paragraph where the sentence stands.

The conventions of a book name such a page beside the table of its source, ``read: read/section-2``. The page is
Markdown, with a block for each paragraph of the source, in order::

    :::{paragraph} 2.1 p3 the first words
    What the paragraph says, in our own words. {mark}`2.1/slope`

    ```{numbered} 2.1.4
    ```
    :::{instead} 2.1/slope
    What holds instead, in our own words.
    :::
    :::

A mark names a claim; its verdict and its title come from the ledger when the site is built (`linewise.pages`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from linewise.conventions import conventions_of
from linewise.entries import meant
from linewise.ledger.claims import Claim
from linewise.ledger.coverage import Source, read_sources

_BLOCK = r"^(?P<fence>:{{3,}}|`{{3,}})\{{{name}\}}[ ]+(?P<argument>[^\n]+)\n(?P<body>.*?)^(?P=fence)[ ]*$"
_PARAGRAPH, _INSTEAD, _NUMBERED = (
    re.compile(_BLOCK.format(name=name), re.MULTILINE | re.DOTALL) for name in ("paragraph", "instead", "numbered")
)
_MARK = re.compile(r"\{mark\}`([^`]+)`")


@dataclass(frozen=True)
class Passage:
    """What a page says of one paragraph.

    place : the section and the paragraph, "2.1 p3".
    opening : the first words of the paragraph in the source.
    marks : the claims that it marks, in order.
    instead : by the claim, what it says holds instead.
    equations : the numbers of the equations that it shows.
    """

    place: str
    opening: str
    marks: tuple[str, ...]
    instead: dict[str, str]
    equations: tuple[str, ...]


def place_and_opening(argument: str) -> tuple[str, str]:
    """Return the place of a block, and the first words of its paragraph.

    >>> place_and_opening("2.1 p3 the first words"), place_and_opening("2.1 p3")
    (('2.1 p3', 'the first words'), ('2.1 p3', ''))
    """
    section, paragraph, *opening = argument.split(maxsplit=2)
    return f"{section} {paragraph}", " ".join(opening)


def passages(text: str) -> list[Passage]:
    r"""Return the blocks of a page.

    >>> passages(":::{paragraph} 2 p1 First\nOne.{mark}`2/one`\n:::\n")
    [Passage(place='2 p1', opening='First', marks=('2/one',), instead={}, equations=())]
    """
    found = []
    for block in _PARAGRAPH.finditer(text):
        body = block["body"]
        instead = {corrected["argument"].strip(): corrected["body"].strip() for corrected in _INSTEAD.finditer(body)}
        equations = tuple(shown["argument"].strip() for shown in _NUMBERED.finditer(body))
        place, opening = place_and_opening(block["argument"])
        found.append(Passage(place, opening, tuple(_MARK.findall(body)), instead, equations))
    return found


def faults_of(text: str, source: Source, claims: Iterable[Claim]) -> Iterator[str]:
    """Yield what is wrong with a page that follows a source; the claims are those of the whole book."""
    known = {claim.id: claim for claim in claims}
    here = passages(text)
    yield from _paragraphs([passage.place for passage in here], source)
    if strays := _MARK.findall(_PARAGRAPH.sub("", text)):
        yield f"marks outside of a paragraph: {', '.join(strays)}"
    equations: dict[str, list[str]] = {passage.place: [] for passage in here}
    for row in source.rows:
        equations.setdefault(_paragraph(row.at), []).extend(row.equations)
    claimed: dict[str, set[str]] = {passage.place: set() for passage in here}
    for claim in known.values():
        for place in claim.places:
            claimed.setdefault(_paragraph(place), set()).add(claim.id)
    for passage in here:
        wanted = claimed[passage.place]
        yield from (f"{passage.place}: {problem}" for problem in _marks(passage, wanted, known))
        missing = [number for number in equations[passage.place] if number not in passage.equations]
        yield from (f"{passage.place}: does not show equation ({number})" for number in missing)
        others = [number for number in passage.equations if number not in equations[passage.place]]
        yield from (f"{passage.place}: equation ({number}) is not in this paragraph" for number in others)


def _paragraph(place: str) -> str:
    """Return the paragraph of a sentence: "2.1 p3 s1" is in "2.1 p3"."""
    return " ".join(place.split()[:2])


def _paragraphs(given: list[str], source: Source) -> Iterator[str]:
    """Yield which paragraphs of a source have no block, more than one, or one at another place."""
    wanted = [f"{section} p{k + 1}" for section, paragraphs in source.shape.items() for k in range(len(paragraphs))]
    yield from (f"{place}: no such paragraph of {source.name}" for place in given if place not in wanted)
    for place in wanted:
        if given.count(place) != 1:
            yield f"{place}: expected one block, got {given.count(place)}"
    ordered = [place for place in wanted if place in given]
    if ordered != [place for place in dict.fromkeys(given) if place in wanted]:
        yield "the paragraphs are not in the order of the source"


def _marks(passage: Passage, wanted: set[str], known: dict[str, Claim]) -> Iterator[str]:
    """Yield which claims of a paragraph have no mark, which marks are of other claims, and what holds unsaid."""
    yield from (f"no mark of {name}" for name in sorted(wanted - set(passage.marks)))
    for name in dict.fromkeys(passage.marks):
        if name not in known:
            yield f"a mark of no claim: {name}; {meant(name, known)}"
        elif name not in wanted:
            yield f"a mark of {name}, which is a claim of {known[name].place}"
        elif known[name].holds and not passage.instead.get(name):
            yield f"{name} is {known[name].verdict}: says not what holds instead"
    for name in passage.instead:
        if name not in passage.marks or name not in known or not known[name].holds:
            yield f"says what holds instead of {name}, which is not marked as amended or refuted here"


def problems(root: str | Path, claims: Iterable[Claim]) -> list[str]:
    """Return what is wrong with the pages to read along that a book has; an empty list is a clean bill."""
    pages = {source.table: source.read for source in conventions_of(root).sources if source.read}
    tables = dict(zip(dict.fromkeys(s.table for s in conventions_of(root).sources), read_sources(root), strict=True))
    claims, found = list(claims), []
    for table, page in pages.items():
        path = Path(root, f"{page}.md")
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            found += [f"{path.name}: {fault}" for fault in faults_of(text, tables[table], claims)]
        else:
            found.append(f"{page}.md: no such page")
    return found
