r"""The coverage of the sources: a row for each of their sentences, so that none is passed over in silence.

The conventions of a book (`linewise.conventions`) name the table of each source. It begins with the name and the shape
of its source, the number of sentences in each paragraph of each section, and has one row for each heading and each
sentence::

    source: Section 2.1 of a lecture
    shape: {"2.1": [2]}
    rows:
      - {at: 2.1 title, gist: "what a projection is", none: heading}
      - {at: 2.1 p1 s1, gist: "the formula of a projection", equations: ["2.1.1"]}
      - {at: 2.1 p1 s2, gist: "the same formula in words", none: repetition, of: 2.1 p1 s1}

A sentence is decided by the claims whose place names its row, or `none` says why nothing needs to decide it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from linewise.conventions import FILE, TABLES, Conventions, conventions_of
from linewise.entries import not_text, wrong_keys
from linewise.ledger.claims import Claim, each
from linewise.ledger.collate import Row, collate, prose_of
from linewise.ledger.evidence import LedgerError

_NEEDED, _OPTIONAL = ("at", "gist"), ("equations", "none", "of")


@dataclass(frozen=True)
class Sentence:
    """A row: where the sentence is, a few words of ours, the equations that it displays, or why it needs no claim."""

    at: str
    gist: str
    equations: tuple[str, ...] = ()
    none: str | None = None
    of: str | None = None

    @property
    def section(self) -> str:
        """The section that the sentence is in."""
        return self.at.split()[0]


@dataclass(frozen=True)
class Source:
    """The table of one source; `shape` holds the number of sentences in each paragraph of each section.

    `page` is the name of its table as that of a page.
    """

    name: str
    shape: dict[str, list[int]]
    rows: tuple[Sentence, ...]
    page: str = ""

    def places(self) -> Iterator[str]:
        """The headings and sentences that the shape promises, in order.

        >>> list(Source("s", {"5.1": [1, 2]}, ()).places())
        ['5.1 title', '5.1 p1 s1', '5.1 p2 s1', '5.1 p2 s2']
        """
        for section, paragraphs in self.shape.items():
            yield f"{section} title"
            for p, sentences in enumerate(paragraphs, start=1):
                yield from (f"{section} p{p} s{s}" for s in range(1, sentences + 1))


def read_sources(root: str | Path) -> list[Source]:
    """Return the tables of a book's sources, in the order of its conventions; several sources may share one.

    Raises `LedgerError` when tables are not there or not well-formed, with a line for each fault.
    """

    def read(table: str) -> Source:
        if not Path(root, table).is_file():
            below = f"expected a file below {Path(root).resolve()}, got {table!r}, which is not there"
            raise LedgerError(f"{FILE}: sources: {below}")
        return _source(Path(root, table))

    return each(read, dict.fromkeys(source.table for source in conventions_of(root).sources))


def deciding(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of the ledger by the sentences that they decide."""
    found = defaultdict(list)
    for row in rows:
        for place in row.claim.places:
            found[place].append(row)
    return dict(found)


class Book:
    """What the pages of the book list: the tables of the sources, and the ledger in the order of its places.

    `pages` are the pages that the site has; a claim of another one is left out. Claims decide the `treated` sentences,
    a reason spares the `spared` ones. `by_id` and `deciding` find the rows of the ledger by the claim and by the
    sentence; `verdicts`, `grades` and `reasons` say what each word means.
    """

    def __init__(self, root: Path, pages: Collection[str]) -> None:
        self.conventions = conventions_of(root)
        self.verdicts = {name: verdict.means for name, verdict in self.conventions.verdicts.items()}
        self.grades, self.reasons = self.conventions.grades, self.conventions.reasons
        self.sources = read_sources(root)
        self.sentences = [sentence for source in self.sources for sentence in source.rows]
        order = {sentence.at: rank for rank, sentence in enumerate(self.sentences)}
        rows = [row for row in collate(root) if row.page in pages]
        self.rows = sorted(rows, key=lambda row: order.get(row.claim.places[0], len(order)))
        self.deciding = deciding(self.rows)
        self.by_id = {row.claim.id: row for row in self.rows}
        self.spared = [sentence for sentence in self.sentences if sentence.none]
        self.treated = [s for s in self.sentences if not s.none and s.at in self.deciding]

    def counts(self) -> Counter[str]:
        """Return how often each verdict was given by a check that ran, and how many claims are not decided."""
        return Counter(r.claim.verdict for r in self.rows if r.record or not r.claim.is_decided)

    @property
    def part(self) -> str:
        """What the sections of all sources are called: the sources' own word, where they share one."""
        words = {source.section for source in self.conventions.sources}
        return words.pop() if len(words) == 1 else "section"

    def sections(self) -> Iterator[tuple[str, str, list[Row]]]:
        """Yield each section of the sources that has claims, what its heading says, if it has a row, and the claims."""
        gists = {s.section: s.gist for s in self.sentences if s.at.endswith("title")}
        for section in (section for source in self.sources for section in source.shape):
            if found := [row for row in self.rows if row.claim.section == section]:
                yield section, gists.get(section, ""), found

    def chapters(self) -> dict[str, Counter[str]]:
        """Return the number of treated sentences by chapter and section, both in the order of the sources."""
        found: dict[str, Counter[str]] = {}
        for sentence in self.sentences:
            for page in dict.fromkeys(row.page for row in self.deciding.get(sentence.at, [])):
                found.setdefault(page, Counter())[sentence.section] += 1
        return found


def problems(root: str | Path) -> list[str]:
    """Return where the tables, the claims and the text of the book disagree; an empty list is a clean bill.

    Every sentence has its row, in order, and is decided or needs no decision; every claim, equation
    number, link and mention of a section names something that a table knows.
    """
    conventions, sources = conventions_of(root), read_sources(root)
    claims = [row.claim for row in collate(root)]
    prose = list(_prose(Path(root), claims, conventions))
    tags = Counter(tag for where, text in prose if ".ipynb" in where for tag in tags_of(text))
    found = [problem for source in sources for problem in _misplaced(source)]
    found += _undecided(sources, claims, conventions)
    found += _unmatched_equations(sources, claims, tags, conventions)
    known = _Known.of(sources, tags, conventions)
    return found + [f"{where}: {problem}" for where, text in prose for problem in _mentions(text, known)]


def tags_of(text: str) -> list[str]:
    r"""Return the numbers of all ``\tag{..}`` in a text.

    >>> tags_of(r"$$a \tag{5.1.3}$$ and $$b \tag*{ 5.1.4 }$$")
    ['5.1.3', '5.1.4']
    """
    return [number.strip() for number in re.findall(r"\\tag\*?\{([^{}]+)\}", text)]


def _source(path: Path) -> Source:
    try:
        table = yaml.load(path.read_text(encoding="utf-8"), Loader=TABLES)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path.name}: expected YAML in UTF-8, got {' '.join(str(error).split())}") from None
    if wrong := wrong_keys(table, ("source", "shape", "rows")):
        raise LedgerError(f"{path.name}: {wrong}")
    name, shape, rows = table["source"], table["shape"], table["rows"]
    if not isinstance(name, str) or not name.strip():
        raise LedgerError(f"{path.name}: source: {not_text(name)}")
    if not isinstance(shape, dict) or not shape:
        raise LedgerError(f"{path.name}: shape: expected a mapping from sections to lists, got {shape!r}")
    if not isinstance(rows, list):
        raise LedgerError(f"{path.name}: rows: expected a list, got {rows!r}")
    for section, paragraphs in shape.items():
        if not isinstance(section, str):  # 5.10 without quotes is the number 5.1
            raise LedgerError(f"{path.name}: shape: {section}: {not_text(section)}")
        if not isinstance(paragraphs, list) or any(type(p) is not int for p in paragraphs):
            expected = "expected a list with the number of sentences of each paragraph"
            raise LedgerError(f"{path.name}: shape: {section}: {expected}, got {paragraphs!r}")
    return Source(name, shape, tuple(each(lambda row: _sentence(row, path), rows)), path.stem.replace(".", "-"))


def _sentence(row: Any, path: Path) -> Sentence:
    if wrong := wrong_keys(row, _NEEDED, _OPTIONAL):
        at = row.get("at", f"the row {row}") if isinstance(row, dict) else "rows"
        raise LedgerError(f"{path.name}: {at}: {wrong}")
    equations = row.get("equations", [])
    texts = {name: value for name, value in row.items() if name != "equations"}
    if not isinstance(equations, list):
        raise LedgerError(f"{path.name}: {row['at']}: equations: expected a list, got {equations!r}")
    for name, value in [*texts.items(), *(("equations", number) for number in equations)]:
        if not isinstance(value, str) or not value.strip():  # an empty field is None, and 5.1 without quotes a number
            raise LedgerError(f"{path.name}: {row['at']}: {name}: {not_text(value)}")
    return Sentence(**texts, equations=tuple(equations))


def _misplaced(source: Source) -> Iterator[str]:
    """Compare the rows of a table with its shape."""
    places, given = list(source.places()), [row.at for row in source.rows]
    yield from (f"{place}: no row" for place in places if place not in given)
    yield from (f"{place}: {source.name} has no such sentence" for place in given if place not in places)
    yield from (f"{place}: {count} rows" for place, count in Counter(given).items() if count > 1)
    ranks = [places.index(place) for place in given if place in places]
    yield from (f"{places[b]}: out of order" for a, b in pairwise(ranks) if b < a)


def _undecided(sources: list[Source], claims: list[Claim], conventions: Conventions) -> Iterator[str]:
    """Compare the rows with the places of the claims."""
    known = {row.at: row for source in sources for row in source.rows}
    sections = {section for source in sources for section in source.shape}
    decided = {place for claim in claims for place in claim.places}
    for at, row in known.items():
        if (at in decided) == bool(row.none):
            yield f"{at}: {'both a claim and' if row.none else 'neither a claim nor'} a reason against one"
        if row.none and row.none not in conventions.reasons:
            yield f"{at}: none: expected one of {', '.join(conventions.reasons)}, got {row.none!r}"
        if bool(row.of) != (row.none == "repetition"):
            yield f"{at}: of: expected a row exactly for a repetition, got {row.of!r} where none is {row.none!r}"
        if row.of and row.of not in known:
            yield f"{at}: of: no row {row.of}"
    for claim in claims:
        for place in claim.places:
            if place.startswith("beyond"):
                named = place.removeprefix("beyond ")
                if conventions.place_pattern.fullmatch(f"{named} title") and named not in sections:
                    yield f"{claim.id}: place: no section {named}"
            elif place not in known:
                yield f"{claim.id}: place: no row {place}"


def _unmatched_equations(
    sources: list[Source], claims: list[Claim], tags: Counter[str], conventions: Conventions
) -> Iterator[str]:
    """Compare the numbers that the rows display with those that the chapters show."""
    rows = {row.at: row for source in sources for row in source.rows}
    displayed = Counter(number for row in rows.values() for number in row.equations)
    yield from (f"({number}): {count} rows display it" for number, count in displayed.items() if count > 1)
    yield from (f"({number}): no chapter shows it" for number in displayed if not tags[number])
    for number, count in tags.items():
        if count > 1:
            yield f"({number}): shown {count} times"
        if number not in displayed and not _is_own(number, conventions.letters):
            yield f"({number}): no row displays it"
    for claim in claims:
        if claim.id in displayed and not any(claim.id in rows[at].equations for at in claim.places if at in rows):
            yield f"{claim.id}: place: no row of {claim.place} displays the equation"


def _is_own(number: str, letters: str) -> bool:
    """Return whether an equation's number is the book's own: it begins with a letter that is no source's.

    letters : those before the numbers of the sources' equations.

    >>> [_is_own(number, "AR") for number in ("5.1.5", "A.6", "R.7", "6", "B.1", "Var")]
    [False, False, False, False, True, True]
    """
    return number[0].isalpha() and not (number[0] in letters and number[1:2] == ".")


def anchor_of(number: str) -> str:
    """Return the id of an equation's anchor.

    >>> anchor_of("5.1.5"), anchor_of("A 2")
    ('equation-5.1.5', 'equation-A-2')
    """
    return "equation-" + re.sub(r"[^\w.\-]+", "-", number)


def _listed(item: str) -> str:
    """Return a pattern for one or several items: "5.1.9", "5.1.9 and 5.1.10", "(6) to (8)"."""
    return rf"(\(?{item}\)?(?:(?:,\s|,?\s(?:and|or|to)\s|–)\(?{item}\)?)*)"


_LINK = re.compile(r"\[([^\]]*)\]\([^)\s]*#equation-([^)\s]+)\)")


def _either_case(word: str) -> str:
    return f"[{word[0].upper()}{word[0].lower()}]{re.escape(word[1:])}"


@dataclass(frozen=True)
class _Of:
    """How a text speaks of one source, which `places` and `section` name as in its conventions."""

    places: str
    section: str
    sections: re.Pattern[str]
    sentences: re.Pattern[str]
    equations: re.Pattern[str] | None

    @classmethod
    def source(cls, places: str, section: str, letter: str) -> _Of:
        """Return the patterns: "part 2 of the essay", "essay, part 2, paragraph 1", "essay's equation (3)"."""
        word, number = _either_case(section), r"\d+(?:\.\d+)*"
        if not places:
            alone = re.compile(rf"\b{word}s?\s" + _listed(number))
            return cls(
                "", section, alone, re.compile(rf"{word}\s({number}), paragraph (\d+)(?:, sentence (\d+))?"), None
            )
        name = _either_case(places)
        return cls(
            places,
            section,
            re.compile(
                rf"{name}(?:['’]s)?,?\s{section}s?\s{_listed(number)}|\b{section}s?\s{_listed(number)} of the {places}"
            ),
            re.compile(rf"{name}, {section} ({number}), paragraph (\d+)(?:, sentence (\d+))?"),
            re.compile(rf"{name}(?:['’]s)?,?\sequations?\s" + _listed("[0-9]+")) if letter else None,
        )


@dataclass(frozen=True)
class _Known:
    """What the tables and the chapters know: sections, places of sentences, equations displayed, anchors shown."""

    sections: frozenset[str]
    places: frozenset[str]
    displayed: frozenset[str]
    targets: frozenset[str]
    sources: tuple[tuple[_Of, str], ...]
    numbers: str
    bracketed: re.Pattern[str]

    @classmethod
    def of(cls, sources: list[Source], tags: Iterable[str], conventions: Conventions) -> _Known:
        """Collect it once for all texts."""
        rows = [row for source in sources for row in source.rows]
        ways = dict.fromkeys((s.places, s.section, s.equations) for s in conventions.sources)
        lettered = rf"|[{conventions.letters}]\.\d+" if conventions.letters else ""
        return cls(
            sections=frozenset(section for source in sources for section in source.shape),
            places=frozenset(row.at for row in rows),
            displayed=frozenset(number for row in rows for number in row.equations),
            targets=frozenset(map(anchor_of, tags)),
            sources=tuple((_Of.source(*way), way[2]) for way in ways),
            numbers=rf"(?:\d+(?:\.\d+)+{lettered})",
            bracketed=re.compile(rf"\((\d+\.\d+\.\d+{lettered})\)"),  # two numbers are a decimal: relu(3.0)
        )


def _mentions(text: str, known: _Known) -> Iterator[str]:
    """Find the links, sections, sentences and equations in a text that no table knows."""
    text = " ".join(text.split())
    for words, target in _LINK.findall(text):
        named = known.bracketed.search(words)
        if f"equation-{target}" not in known.targets:
            yield f"a link to equation-{target}, which no chapter shows"
        if named and named[1] != target:
            yield f"a link from ({named[1]}) to equation-{target}"
    for of, letter in known.sources:
        yield from _mentions_of(of, letter, text, known)
    equations = re.findall(r"\b[Ee]quations?\s" + _listed(known.numbers), text)
    lists = [*equations, *(f"({number})" for number in known.bracketed.findall(text))]
    mentioned = dict.fromkeys(number for found in lists for number in re.findall(known.numbers, found))
    yield from (f"no equation ({number})" for number in mentioned if number not in known.displayed)


def _mentions_of(of: _Of, letter: str, text: str, known: _Known) -> Iterator[str]:
    """Find the sections, sentences and equations of one source that its table does not know."""
    dotted = f"{of.places}." if of.places else ""
    named = [" ".join(found) if isinstance(found, tuple) else found for found in of.sections.findall(text)]
    for number in re.findall(r"\d+(?:\.\d+)*", " ".join(named)):
        # "section 2.1" alone may be of any source that has sections.
        elsewhere = () if of.places else [f"{other.places}.{number}" for other, _ in known.sources if other.places]
        if not known.sections & {f"{dotted}{number}", *elsewhere}:
            yield f"no {of.section} {number}" + (f" of the {of.places}" if of.places else "")
    for section, paragraph, sentence in of.sentences.findall(text):
        elsewhere = () if of.places else [f"{other.places}." for other, _ in known.sources if other.places]
        if not any(f"{word}{section} p{paragraph} s{sentence or 1}" in known.places for word in (dotted, *elsewhere)):
            yield f"no sentence {section} p{paragraph} s{sentence or 1}"
    if of.equations and letter:
        numbers = re.findall(r"\d+", " ".join(of.equations.findall(text)))
        yield from (f"no {of.places} equation ({n})" for n in numbers if f"{letter}.{n}" not in known.displayed)


def _prose(root: Path, claims: list[Claim], conventions: Conventions) -> Iterator[tuple[str, str]]:
    """Yield every text of the book that may name a section or an equation, and where it is."""
    for claim in claims:
        parts = (claim.title, claim.reading, claim.holds, claim.scope, claim.how, claim.reason)
        yield f"claim {claim.id}", "\n".join(part for part in parts if part)
    folders = (conventions.chapters, *conventions.texts)
    for page in [*root.glob("*.md"), *_below(root, folders, "md")]:
        yield page.name, page.read_text(encoding="utf-8")
    for path in _below(root, folders, "ipynb"):
        yield from prose_of(path)
    for path in _below(root, conventions.texts, "py"):
        yield from ((f"{path.name}: {name}", text) for name, text in _docstrings(path.read_text(encoding="utf-8")))


def _below(root: Path, folders: Iterable[str], suffix: str) -> list[Path]:
    """Return the files of a kind below folders of a book; what an editor keeps of notebooks is left out."""
    found = [path for folder in folders for path in sorted(root.glob(f"{folder}/**/*.{suffix}"))]
    return [path for path in found if ".ipynb_checkpoints" not in path.parts]


@cache  # of a file's text: the book is read again and again while its sources stay as they are
def _docstrings(code: str) -> list[tuple[str, str]]:
    """Return the documented functions and classes of a module, and the module itself, with their docstrings."""
    documented = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    return [(getattr(node, "name", "module"), text) for node in documented if (text := ast.get_docstring(node))]
