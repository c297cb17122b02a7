"""Claims and their verdicts: what the sources say, and which check decides it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import yaml

from linewise.conventions import TABLES, Conventions, conventions_of, is_own, split_places, standard
from linewise.derive.derivation import Derivation
from linewise.entries import meant, not_text, wrong_keys
from linewise.ledger import sentences
from linewise.ledger.card import Card, anchor_of
from linewise.ledger.evidence import Evidence, LedgerError, Z, agreement, checked, derived
from linewise.ledger.theorem import Theorem, entry_of, read_theorems, unpinned

OUTCOMES = ("supported", "contradicted", "undecided")
_ID = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_BEYOND = re.compile(r"beyond [\w. ]+")
#: The entry points by which an installed book names the folders of its claims.
BOOKS = "linewise.books"
#: How the name of a claims file ends, after the chapter's.
CLAIMS_SUFFIX = ".claims.yml"
#: The fields that a card shows, and its record holds, beside the id.
SHOWN = ("title", "place", "reading", "verdict", "outcome", "holds", "grade", "scope")
_NEEDED = ("title", "place", "reading", "verdict")
#: Fields that are lists of texts; a card does not show them.
_LISTS = ("words",)
_Given = TypeVar("_Given")
_Found = TypeVar("_Found")
#: Which further field a claim needs, by the check that gives its verdict; no other claim may have it.
_OWN = {
    "holds": ("amend", "refute"),
    "grade": ("amend", "refute"),
    "scope": ("prove",),
    "outcome": ("measure",),
    "reason": ("none",),
}
#: The checks that take derivations, and so the claims that may say what these show.
_DERIVES = ("prove", "confirm", "define", "amend", "refute")
_PINS = ("shows", "how")


@dataclass(frozen=True)
class Claim:
    """One checkable sentence or equation of a source, in this book's words.

    id : the equation's number, or ``section/slug`` for a sentence.
    title : what it is about, in a few words.
    place : where it is in its source: section, paragraph and sentence, as in "5.1.4 p4 s4" (several are
        separated by semicolons), or "beyond 5.1.4" for a statement of the book's own.
    reading : the sentence in our words, with its hypotheses and hedges.
    holds, grade : for amended and refuted claims, the statement that holds, and how the sentence is wrong.
    scope : for proved claims, what the proof covers.
    outcome : for measured claims: supported, contradicted or undecided.
    reason : for claims that are not decided, why no code decides them.
    words : the entries of the lexicon that it uses (`linewise.ledger.lexicon`).
    shows : what the derivations show that the check is given, in their order (`linewise.ledger.theorem`); the check
        refuses a derivation that shows anything else. From a claims file, or in Python, a list of mappings.
    how : how they give the claim, in words; where they are several it is needed.
    conventions : the book's: which verdicts and grades there are, and how its places are written.
    """

    id: str
    title: str
    place: str
    reading: str
    verdict: str
    holds: str | None = None
    grade: str | None = None
    scope: str | None = None
    outcome: str | None = None
    reason: str | None = None
    shows: tuple[Theorem, ...] = ()
    how: str | None = None
    chapter: str = ""
    words: tuple[str, ...] = ()
    conventions: Conventions = field(default_factory=standard, repr=False, compare=False)

    def __post_init__(self) -> None:
        texts = [f for f in fields(self) if f.name not in ("shows", "conventions", *_LISTS)]
        for name, optional in ((f.name, f.default is None) for f in texts):
            value = getattr(self, name)
            if not isinstance(value, str) and not (optional and value is None):
                raise LedgerError(f"{name}: {not_text(value)}")
        if not _ID.fullmatch(self.id):
            raise LedgerError(
                f"id: expected words of letters, digits, dots and hyphens between slashes, got {self.id!r}"
            )
        known = self.conventions
        if self.verdict not in known.verdicts:
            raise LedgerError(f"{self.id}: verdict: expected one of {', '.join(known.verdicts)}, got {self.verdict!r}")
        for place in self.places:
            if not known.place_pattern.fullmatch(place) and not _BEYOND.fullmatch(place):
                raise LedgerError(f"{self.id}: place: expected {known.examples} or 'beyond ...', got {place!r}")
        self._read_pins()
        allowed = {"grade": tuple(known.grades), "outcome": OUTCOMES}
        for name, checks in _OWN.items():
            given, due = getattr(self, name), known.verdicts[self.verdict].check in checks
            if due and not given:
                among = f", one of {', '.join(allowed[name])}" if name in allowed else ""
                raise LedgerError(f"{self.verdict} claims need {name}{among}; {self.id} has none")
            if given and not due:
                those = " and ".join(sorted(known.by_check(*checks))) or "no"
                raise LedgerError(f"{self.id}: {name}: for {those} claims alone, and the verdict is {self.verdict}")
        for name, among in allowed.items():
            given = getattr(self, name)
            if given and given not in among:
                raise LedgerError(f"{self.id}: {name}: expected one of {', '.join(among)}, got {given!r}")

    def _read_pins(self) -> None:
        """Read what the derivations show; how several of them give the claim must be said."""
        try:
            object.__setattr__(self, "shows", read_theorems(self.shows))
        except LedgerError as error:
            raise LedgerError(f"{self.id}: {error}") from None
        given = next((name for name in _PINS if getattr(self, name)), "")
        if given and self.conventions.verdicts[self.verdict].check not in _DERIVES:
            raise LedgerError(f"{self.id}: {given}: no derivation decides a claim that is {self.verdict}")
        if len(self.shows) > 1 and not self.how:
            raise LedgerError(f"{self.id}: how: expected words on how the {len(self.shows)} theorems give the claim")
        if self.how and not self.shows:
            raise LedgerError(f"{self.id}: how: expected with shows alone, and there is none")

    @property
    def places(self) -> list[str]:
        """The sentences of the source that the claim decides."""
        return split_places(self.place)

    @property
    def section(self) -> str:
        """The section of the first of them, or "beyond ..." for a statement of the book's own."""
        return self.places[0] if self.is_own else self.places[0].split()[0]

    @property
    def is_own(self) -> bool:
        """Whether the statement is the book's own, and no sentence of a source."""
        return is_own(self.place)

    @property
    def is_decided(self) -> bool:
        """Whether a check gives its verdict."""
        return self.conventions.verdicts[self.verdict].check != "none"

    @property
    def shown(self) -> dict[str, str]:
        """What a card shows of the claim, and its record holds, beside the id."""
        return {name: value for name in SHOWN if (value := getattr(self, name))}

    @property
    def anchor(self) -> str:
        """The id of this claim's card in a page."""
        return anchor_of(self.id)

    def prove(self, *chains: Derivation) -> Card:
        """Verdict *proved*: every chain is a derivation with a rejected mistake, see `linewise.ledger.derived`."""
        if not chains:
            raise LedgerError(f"{self.id}: chains: expected at least one derivation, got none")
        return self._judge("prove", *(derived(chain) for chain in chains))

    def confirm(self, observed: Any, expected: Any = None, *, mistake: Any = None, tolerance: Any = None,
                because: str = "", of: str = "", also: tuple[Any, ...] = ()) -> Card:  # fmt: skip
        """Verdict *confirmed*: an agreement, or the numbers and words that `linewise.ledger.agreement` makes one of."""
        if not isinstance(observed, Evidence | Derivation):
            check = agreement(observed, expected, mistake=mistake, tolerance=tolerance, because=because, of=of)
            return self._judge("confirm", check, *_also(self, also))
        more = {"expected": expected, "mistake": mistake, "tolerance": tolerance, "because": because or None,
                "of": of or None}  # fmt: skip
        if given := [name for name, value in more.items() if value is not None]:
            raise TypeError(f"{', '.join(given)}: expected with numbers alone, got evidence, which has its own")
        return self._judge("confirm", *_of_kind(self, (observed,), {"agreement"}), *_also(self, also))

    def define(self, *properties: Any) -> Card:
        """Verdict *defined*: the properties that the definition is said to have, each tested."""
        return self._judge("define", *_of_kind(self, properties, {"derivation", "agreement"}))

    def amend(self, printed: Evidence, *, holds: Any, also: tuple[Any, ...] = ()) -> Card:
        """Verdict *amended*: where the sentence fails, and a derivation or an agreement for the amended form."""
        return self._correct("amend", printed, holds, also)

    def refute(self, printed: Evidence, *, holds: Any, also: tuple[Any, ...] = ()) -> Card:
        """Verdict *refuted*: a counterexample, and a derivation or an agreement for what holds instead."""
        return self._correct("refute", printed, holds, also)

    def measure(self, *observations: Evidence) -> Card:
        """Verdict *measured*: observations whose joint outcome must be the one on file."""
        _of_kind(self, observations, {"observation"})
        outcomes = {o.outcome for o in observations}
        joint = outcomes.pop() if len(outcomes) == 1 else "undecided"
        if joint != self.outcome:
            seen = "; ".join(sentences.measured(o.parts, Z) for o in observations)
            said = f"the claims file says {self.outcome}, the observations {joint}"
            raise LedgerError(f"{self.id}: outcome: {said} ({seen})")
        return self._judge("measure", *observations)

    def _correct(self, check: str, printed: Evidence, holds: Any, also: tuple[Any, ...]) -> Card:
        first = _of_kind(self, (printed,), {"counterexample"})
        second = _of_kind(self, (holds,), {"derivation", "agreement"})
        return self._judge(check, *first, *second, *_also(self, also))

    def _judge(self, check: str, *evidence: Evidence) -> Card:
        given = self.conventions.by_check(check)
        if self.verdict not in given:
            gives = " or ".join(given) or f"no verdict of this book ({check})"
            raise LedgerError(f"{self.id}: the claims file says {self.verdict}, the check gives {gives}")
        shown = tuple(Theorem.of(e.block) for e in evidence if e.block)
        if wrong := unpinned(self.shows, shown):
            more = f"if this is what the claim says, its entry has\n{entry_of(shown)}" if shown else "leave shows out"
            raise LedgerError("\n".join([*(f"{self.id}: {said}" for said in wrong), more]))
        with checked():
            return Card({"claim": self.id, **self.shown}, evidence, self.conventions)


class Claims(dict[str, Claim]):
    """The claims of a chapter by their ids; an unknown id is answered with those that are like it."""

    def __missing__(self, key: object) -> Claim:
        chapter = next((claim.chapter for claim in self.values()), "")
        raise KeyError(f"{key}: no such claim in {chapter}{CLAIMS_SUFFIX}; {meant(key, self)}")


def each(read: Callable[[_Given], _Found], given: Iterable[_Given]) -> list[_Found]:
    """Return what is read of each; where one or more cannot be read, raise one `LedgerError` with a line for each."""
    found, wrong = [], []
    for one in given:
        try:
            found.append(read(one))
        except LedgerError as error:
            wrong.append(str(error))
    if wrong:
        raise LedgerError("\n".join(wrong))
    return found


def load_claims(chapter: str, folder: str | Path | None = None) -> dict[str, Claim]:
    """Read the claims of a chapter from ``<chapter>.claims.yml``.

    With a folder, the file in this folder counts, and no other. Without one it is the file in the working directory,
    where a notebook of the book runs beside its claims, or else that of a book that is installed, so that a copy of a
    notebook runs anywhere.

    Raises `FileNotFoundError` when there is no such file and `LedgerError` when entries are not well-formed, with a
    line for each.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> text = "x/one: {title: One, place: beyond 2, reading: One is one., verdict: defined}"
    >>> Path(folder, "numbers.claims.yml").write_text(text) > 0
    True
    >>> load_claims("numbers", folder)["x/one"].verdict
    'defined'
    """
    path = _claims_file(chapter) if folder is None else Path(folder) / f"{chapter}{CLAIMS_SUFFIX}"
    if not _is_file(path):
        where = path if folder is not None else f"{path} of the working directory or of an installed book"
        raise FileNotFoundError(f"chapter: expected the claims of {chapter!r} in {where}, found no such file")
    try:
        entries = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except LedgerError as error:
        raise LedgerError(f"{path}: {error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path}: expected YAML, got {' '.join(str(error).split())}") from None
    if not isinstance(entries, dict) or not entries:
        raise LedgerError(f"{path}: expected a mapping from claim ids to their fields, got {entries!r}")
    conventions = conventions_of(path.parent)
    found = each(lambda entry: _claim(*entry, path, conventions), entries.items())
    return Claims((claim.id, claim) for claim in found)


def _claims_file(chapter: str) -> Path:
    """Return where the claims of a chapter are: in the working directory, or in a book that is installed.

    An installed book names the folders of its claims by an entry point of the group ``linewise.books``: a function
    that returns them.
    """
    name = Path(f"{chapter}{CLAIMS_SUFFIX}")
    if _is_file(name):
        return name
    installed = (folder for book in metadata.entry_points(group=BOOKS) for folder in book.load()())
    return next((Path(folder) / name for folder in installed if _is_file(Path(folder) / name)), name)


def _is_file(path: Path) -> bool:
    """Whether a file is there; it is not where the system cannot look it up, as for a name that is too long."""
    try:
        return path.is_file()
    except OSError:
        return False


class _UniqueKeys(TABLES):
    """A YAML loader that refuses a key given twice, where YAML itself would drop the first."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [(self.construct_object(k, deep=deep), k.start_mark.line + 1) for k, _ in node.value]
        for number, (key, line) in enumerate(keys):
            for _, first in (before for before in keys[:number] if before[0] == key):
                raise LedgerError(f"{key}: stands twice, in line {first} and in line {line}")
        return super().construct_mapping(node, deep=deep)


def _claim(key: Any, fields: Any, path: Path, conventions: Conventions) -> Claim:
    if not isinstance(key, str):  # 5.10 without quotes is the number 5.1
        raise LedgerError(f"{path}: {key}: expected a claim's id in quotes, got {type(key).__name__}")
    if wrong := wrong_keys(fields, _NEEDED, (*_OWN, *_PINS, *_LISTS)):
        raise LedgerError(f"{path}: {key}: {wrong}")
    if "shows" in fields and not fields["shows"]:
        raise LedgerError(f"{path}: {key}: shows: expected a list of theorems, got {fields['shows']!r}")
    found: dict[str, Any] = {"chapter": path.name.removesuffix(CLAIMS_SUFFIX), "conventions": conventions}
    for name, value in fields.items():
        if name == "shows":
            found[name] = value
        elif name in _LISTS:
            found[name] = _texts(value, f"{path}: {key}: {name}")
        elif not isinstance(value, str) or not value.strip():  # an empty field is None, and 5.1 without quotes a number
            raise LedgerError(f"{path}: {key}: {name}: {not_text(value)}")
        else:
            found[name] = " ".join(value.split())
    try:
        return Claim(id=key, **found)
    except LedgerError as error:
        raise LedgerError(f"{path}: {error}") from None


def _texts(value: Any, where: str) -> tuple[str, ...]:
    """Return the texts of a list, each of which stands in it once."""
    if not isinstance(value, list) or not value:
        raise LedgerError(f"{where}: expected a list of texts, got {value!r}")
    for number, text in enumerate(value):
        if not isinstance(text, str) or not text.strip():
            raise LedgerError(f"{where}: {not_text(text)}")
        if text in value[:number]:
            raise LedgerError(f"{where}: {text}: stands twice")
    return tuple(value)


def _evidence(value: Any) -> Evidence:
    """Return evidence as it is, and a derivation as the evidence that it is."""
    return derived(value) if isinstance(value, Derivation) else value


def _of_kind(claim: Claim, evidence: tuple[Any, ...], kinds: set[str]) -> tuple[Evidence, ...]:
    found = tuple(map(_evidence, evidence))
    if not found or any(not isinstance(e, Evidence) or e.kind not in kinds for e in found):
        got = ", ".join(e.kind if isinstance(e, Evidence) else type(e).__name__ for e in found) or "nothing"
        raise LedgerError(f"{claim.id}: evidence: expected {' or '.join(sorted(kinds))}, got {got}")
    return found


def _also(claim: Claim, evidence: Any) -> tuple[Evidence, ...]:
    """Return further evidence of any kind, or none."""
    if not isinstance(evidence, tuple | list):
        raise LedgerError(f"{claim.id}: also: expected a tuple of evidence, got {type(evidence).__name__}")
    kinds = {"derivation", "agreement", "counterexample", "observation"}
    return _of_kind(claim, tuple(evidence), kinds) if evidence else ()
