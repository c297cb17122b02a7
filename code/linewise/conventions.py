r"""The conventions of a book: what its sources are, how their places are written, which verdicts and grades there are.

A book keeps them in ``linewise.yml`` in its folder; what it leaves out is as in ``linewise/conventions.yml``::

    chapters: chapters              # notebooks, each beside its claims
    sources:                        # in the order in which the pages list them
      - table: sources/text.yml     # a row for each of its sentences (linewise.ledger.coverage)
        places: essay               # its places begin so: "essay.2 p1 s3"; without it they are numbers alone: "2 p1 s3"
        section: part               # what a section is called: "Essay, part 2"
        titles: {"0": opening}      # sections that have a title and no number: "Essay, opening"
        equations: E                # in the book its equations have this letter before their number: (E.3)
        read: read/text             # the page that follows it paragraph by paragraph (linewise.ledger.read_along)
    verdicts:                       # each with the check that gives it (`CHECKS`), and what it promises
      proved: {check: prove, means: a derivation whose lines are displayed and verified one by one}
    grades:                         # how a corrected sentence is wrong, gravest first, with its heading on the page
      slip of notation: {heading: Slips of notation, brief: yes}     # brief: an entry is what holds, and no more
    reasons: {heading: a title}     # why a sentence may need no claim
    kernel: kernel.json             # what a second kernel has proved of the derivations (linewise.kernel)
    texts: [guide]                  # further folders whose pages, notebooks and docstrings name places and equations
    lexicon: {table: sources/words.yml, page: words}    # how vague words are read, and which page shows it
    levels: {basic: what a reader has to know}          # how much a chapter asks for, the least first
    phrases: {"paragraph {number}": "Absatz {number}"}  # what the engine writes into pages, in the book's language
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from linewise.entries import not_text, wrong_keys

try:  # libyaml reads the tables ten times as fast, where it is
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

#: What reads the tables of a book.
TABLES = SafeLoader
#: The file of a book that holds its conventions.
FILE = "linewise.yml"
#: The checks that give a verdict, each a method of `linewise.ledger.Claim`; "none" is for sentences that none decides.
CHECKS = ("prove", "confirm", "define", "measure", "amend", "refute", "none")


class ConventionError(ValueError):
    """Conventions that are not well-formed."""


@dataclass(frozen=True)
class Source:
    """A source, and how its places and its equations are written.

    table : the file with a row for each of its sentences, below the book's folder.
    places : the word before the numbers of its sections; "" if they are numbers alone.
    section : what a section is called: section, part, chapter.
    titles : sections that have a title and no number.
    equations : the letter that the book puts before the numbers of its equations; "" if they stand as they are.
    read : the page that follows it paragraph by paragraph, without its suffix; "" if there is none.
    """

    table: str
    places: str = ""
    section: str = "section"
    titles: dict[str, str] = field(default_factory=dict)
    equations: str = ""
    read: str = ""

    def names(self, number: str, phrase: Callable[..., str] = str.format) -> str:
        """Return what a section is called in words.

        phrase : says a template in the language of the book.

        >>> Source("essay.yml", "essay", "part", {"0": "opening"}).names("2"), Source("t.yml").names("5.1")
        ('Essay, part 2', 'Section 5.1')
        """
        title = self.titles.get(number)
        words = phrase(title) if title else phrase(f"{self.section} {{number}}", number=number)
        said = phrase("{source}, {section}", source=phrase(self.places), section=words) if self.places else words
        return said[:1].upper() + said[1:]


@dataclass(frozen=True)
class Verdict:
    """A verdict: the check that gives it, and what it promises a reader."""

    check: str
    means: str


@dataclass(frozen=True)
class Grade:
    """How a corrected sentence is wrong: the heading of its errata; `brief` where an entry says what holds alone."""

    heading: str
    brief: bool = False


@dataclass(frozen=True)
class Lexicon:
    """Where the readings of vague words are: the table (`linewise.ledger.lexicon`), and the page that shows them."""

    table: str
    page: str


@dataclass(frozen=True)
class Conventions:
    """What a book has to say of itself before its ledger can be read; see the module."""

    sources: tuple[Source, ...]
    verdicts: dict[str, Verdict]
    grades: dict[str, Grade]
    reasons: dict[str, str]
    chapters: str = "chapters"
    texts: tuple[str, ...] = ()
    lexicon: Lexicon | None = None
    kernel: str = ""
    levels: dict[str, str] = field(default_factory=dict)
    phrases: dict[str, str] = field(default_factory=dict)

    def say(self, words: str, /, **places: object) -> str:
        """Say what the engine writes in the language of the book: words, or a template with what stands in its places.

        >>> german = Conventions((), {}, {}, {}, phrases={"at most {value}": "höchstens {value}"})
        >>> german.say("at most {value}", value=2)
        'höchstens 2'
        """
        said = self.phrases.get(words, words)
        return said.format(**places) if places else said

    def phrase(self, words: str) -> str:
        """Say words that have no places, whatever braces they have.

        >>> Conventions((), {}, {}, {}, phrases={"at {least}": "mindestens"}).phrase("at {least}")
        'mindestens'
        """
        return self.phrases.get(words, words)

    def by_check(self, *checks: str) -> list[str]:
        """Return the verdicts that one of the checks gives."""
        return [name for name, verdict in self.verdicts.items() if verdict.check in checks]

    def standard_names(self, verdict: str) -> list[str]:
        """Return the standard verdicts that the verdict's check gives: it looks like them.

        >>> own = Conventions((), {"seen": Verdict("measure", "measured on data")}, {}, {})
        >>> own.standard_names("seen"), standard().standard_names("proved")
        (['measured'], ['proved'])
        """
        return standard().by_check(self.verdicts[verdict].check) if verdict in self.verdicts else []

    def source_of(self, section: str) -> tuple[Source, str]:
        """Return the source that a section is of, and the section's number in it.

        Where no source bears the section's first word, it is taken for a section of a source of numbers alone.
        """
        word, _, number = section.partition(".")
        for source in self.sources:
            if source.places and source.places == word:
                return source, number
        return next((source for source in self.sources if not source.places), Source("")), section

    def section(self, section: str) -> str:
        """Return what a section is called in words.

        >>> standard().section("5.1.4")
        'Section 5.1.4'
        """
        source, number = self.source_of(section)
        return source.names(number, self.say)

    def place(self, place: str) -> str:
        """Return a place, or the section that it is, in words.

        >>> standard().place("5.1.4 p4 s3"), standard().place("2 title"), standard().place("2")
        ('Section 5.1.4, paragraph 4, sentence 3', 'Section 2, heading', 'Section 2')
        """
        section, *rest = place.split()
        words, said = {"p": "paragraph {number}", "s": "sentence {number}"}, self.section(section)
        for part in rest:
            inner = self.say("heading") if part == "title" else self.say(words[part[0]], number=part[1:])
            said = self.say("{outer}, {inner}", outer=said, inner=inner)
        return said

    def origin(self, place: str) -> str:
        """Say where a claim comes from.

        >>> standard().origin("5.1.4 p4 s4; 5.1.9 p2 s1"), standard().origin("beyond 5.1.4")
        ('Section 5.1.4, paragraph 4, sentence 4 and elsewhere', 'Our statement')
        """
        first, *others = split_places(place)
        if is_own(place):
            return self.say("Our statement")
        return self.say("{place} and elsewhere", place=self.place(first)) if others else self.place(first)

    @cached_property
    def place_pattern(self) -> re.Pattern[str]:
        """The pattern of a place in a source: "5.1.4 p4 s4", "5.1 title"."""
        words = [re.escape(source.places) for source in self.sources if source.places]
        return re.compile(rf"(?:{'|'.join([*words, '[0-9]+'])})(?:\.\d+)* (?:title|p\d+ s\d+)")

    @property
    def examples(self) -> str:
        """A place in each source, as an example.

        >>> standard().examples, Conventions((Source("t.yml"), Source("e.yml", "essay")), {}, {}, {}).examples
        ("'2 p1 s3'", "'2 p1 s3', 'essay.2 p1 s3'")
        """
        words = dict.fromkeys(source.places for source in self.sources) or {"": None}
        return ", ".join(f"'{word}.2 p1 s3'" if word else "'2 p1 s3'" for word in words)

    @property
    def letters(self) -> str:
        """The letters before the numbers of equations, all of them."""
        return "".join(source.equations for source in self.sources)


def split_places(place: str) -> list[str]:
    """Return the sentences that a place names, which stand between semicolons.

    >>> split_places("5.1.4 p4 s4; 5.1.9 p2 s1")
    ['5.1.4 p4 s4', '5.1.9 p2 s1']
    """
    return [part.strip() for part in place.split(";")]


def is_own(place: str) -> bool:
    """Return whether a statement is the book's own, and no sentence of a source."""
    return place.startswith("beyond")


@cache
def standard() -> Conventions:
    """Return the conventions of a book that states none: its places are numbers alone."""
    return _read(yaml.load(_standard_text(), Loader=TABLES), FILE)


def conventions_of(folder: str | Path) -> Conventions:
    """Return the conventions of the book that a folder belongs to: of the nearest ``linewise.yml`` in it or above.

    Raises `ConventionError` where the file is not well-formed; the standard ones count where there is none.
    """
    root = book_of(folder)
    return standard() if root is None else _of_file(root / FILE, (root / FILE).stat().st_mtime_ns)


def book_of(folder: str | Path) -> Path | None:
    """Return the book that a folder belongs to: itself or the nearest above it that holds ``linewise.yml``."""
    start = Path(folder).resolve()
    return next((path for path in (start, *start.parents) if (path / FILE).is_file()), None)


@cache  # by the time of its last change: the pages of a book ask again and again
def _of_file(path: Path, changed: int) -> Conventions:
    try:
        given = yaml.load(path.read_text(encoding="utf-8"), Loader=TABLES)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConventionError(f"{path}: expected YAML in UTF-8, got {' '.join(str(error).split())}") from None
    if not isinstance(given, dict):
        raise ConventionError(f"{path}: expected a mapping, got {type(given).__name__}")
    return _read(yaml.load(_standard_text(), Loader=TABLES) | given, str(path))


def _standard_text() -> str:
    return (resources.files("linewise") / "conventions.yml").read_text(encoding="utf-8")


def _read(given: dict[str, Any], where: str) -> Conventions:
    if wrong := wrong_keys(given, (), [f.name for f in fields(Conventions)]):
        raise ConventionError(f"{where}: {wrong}")
    kinds = {
        "sources": list,
        "verdicts": dict,
        "grades": dict,
        "reasons": dict,
        "chapters": str,
        "texts": list,
        "kernel": str,
        "levels": dict,
        "phrases": dict,
    }
    for name, kind in kinds.items():
        if name in given and not isinstance(given[name], kind):
            raise ConventionError(f"{where}: {name}: expected a {kind.__name__}, got {given[name]!r}")
    for name in (*given["verdicts"], *given["grades"]):
        _text(name, f"{where}: verdicts, grades")
    verdicts = {name: _entry(Verdict, entry, f"{where}: verdicts: {name}") for name, entry in given["verdicts"].items()}
    for name, verdict in verdicts.items():
        if verdict.check not in CHECKS:
            expected = ", ".join(CHECKS)
            raise ConventionError(
                f"{where}: verdicts: {name}: check: expected one of {expected}, got {verdict.check!r}"
            )
    grades = {name: _entry(Grade, entry, f"{where}: grades: {name}") for name, entry in given["grades"].items()}
    for key in ("reasons", "levels", "phrases"):
        for name, what in given.get(key, {}).items():
            _text(what, f"{where}: {key}: {_text(name, f'{where}: {key}')}")
    return Conventions(
        tuple(_entry(Source, entry, f"{where}: sources") for entry in given["sources"]),
        verdicts,
        grades,
        given["reasons"],
        _text(given.get("chapters", "chapters"), f"{where}: chapters"),
        tuple(_text(folder, f"{where}: texts") for folder in given.get("texts", ())),
        _entry(Lexicon, given["lexicon"], f"{where}: lexicon") if "lexicon" in given else None,
        _text(given.get("kernel", ""), f"{where}: kernel", blank=True),
        given.get("levels", {}),
        given.get("phrases", {}),
    )


def _text(value: Any, where: str, *, blank: bool = False) -> str:
    """Return text that says something; an empty field of YAML is None, and 5.1 without quotes a number."""
    if not isinstance(value, str) or not (blank or value.strip()):
        raise ConventionError(f"{where}: {not_text(value)}")
    return value


def _entry(kind: Any, entry: Any, where: str) -> Any:
    """Return a mapping of the file as the dataclass that it describes."""
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    if wrong := wrong_keys(entry, needed, [f.name for f in fields(kind) if f.name not in needed]):
        raise ConventionError(f"{where}: {wrong}")
    for name, value in entry.items():
        if name == "brief" and not isinstance(value, bool):
            raise ConventionError(f"{where}: brief: expected yes or no, got {value!r}")
        if name == "titles" and not isinstance(value, dict):
            raise ConventionError(f"{where}: titles: expected a mapping from sections to titles, got {value!r}")
        texts = [*value, *value.values()] if name == "titles" else [] if name == "brief" else [value]
        for text in texts:
            _text(text, f"{where}: {name}", blank=name in ("places", "equations", "read"))
    return kind(**entry)
