"""Claims and their verdicts: what the sources say, and which check decides it."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

try:  # libyaml reads the tables ten times as fast, where it is
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

from linewise.derive.derivation import Derivation
from linewise.ledger.card import Card, anchor_of
from linewise.ledger.evidence import Evidence, LedgerError, agreement, derived
from linewise.ledger.places import is_own, split_places

#: What reads the book's tables.
TABLES = SafeLoader
#: The verdicts, and what each one promises.
VERDICTS = {
    "proved": "a derivation whose lines are displayed and verified one by one",
    "confirmed": "a numerical experiment inside a tolerance that was derived",
    "amended": "not true as it is written; a corrected statement is checked",
    "refuted": "a computed counterexample, and the statement that holds instead",
    "measured": "an empirical sentence, measured on a trained model or a training run",
    "defined": "a definition: the code is it, and its stated properties are tested",
    "not decided": "no code of this book decides it; the reason is given",
}
#: How an amended or refuted sentence is wrong, gravest first.
GRADES = (
    "wrong conclusion",
    "right conclusion by a wrong reason",
    "missing hypothesis",
    "degenerate case only",
    "slip of notation",
)
OUTCOMES = ("supported", "contradicted", "undecided")
_ID = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_PLACE = re.compile(r"(?:article|note|report|\d+)(?:\.\d+)* (?:title|p\d+ s\d+)|beyond [\w. ]+")
#: How the name of a claims file ends, after the chapter's.
CLAIMS_SUFFIX = ".claims.yml"
# The fields that a card shows, and its record holds, beside the id.
_SHOWN = ("title", "place", "reading", "verdict", "outcome", "holds", "grade", "scope")
_NEEDED = {"title", "place", "reading", "verdict"}
_FIELDS = _NEEDED | {"holds", "grade", "scope", "outcome", "reason"}
#: Which further field each verdict needs; no other verdict may have it.
_OWN = {
    "holds": {"amended", "refuted"},
    "grade": {"amended", "refuted"},
    "scope": {"proved"},
    "outcome": {"measured"},
    "reason": {"not decided"},
}


@dataclass(frozen=True)
class Claim:
    """One checkable sentence or equation of a source, in this book's words.

    id : the equation's number, or ``section/slug`` for a sentence.
    title : what it is about, in a few words.
    place : where it is in its source: section, paragraph and sentence, as in "5.1.4 p4 s4" (several are
        separated by semicolons), or "beyond 5.1.4" for a statement of the book's own.
    reading : the sentence in our words, with its hypotheses and hedges.
    holds, grade : for amended and refuted claims, the statement that holds, and how the sentence is wrong (`GRADES`).
    scope : for proved claims, what the proof covers.
    outcome : for measured claims: supported, contradicted or undecided.
    reason : for claims that are not decided, why no code decides them.
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
    chapter: str = ""

    def __post_init__(self) -> None:
        for field, optional in ((f.name, f.default is None) for f in fields(self)):
            value = getattr(self, field)
            if not isinstance(value, str) and not (optional and value is None):
                raise LedgerError(f"{field}: expected text, got {type(value).__name__} {value!r}")
        if not _ID.fullmatch(self.id):
            raise LedgerError(
                f"id: expected words of letters, digits, dots and hyphens between slashes, got {self.id!r}"
            )
        if self.verdict not in VERDICTS:
            raise LedgerError(f"{self.id}: verdict: expected one of {', '.join(VERDICTS)}, got {self.verdict!r}")
        for place in self.places:
            if not _PLACE.fullmatch(place):
                raise LedgerError(f"{self.id}: place: expected '5.1.4 p4 s4' or 'beyond ...', got {place!r}")
        for field, verdicts in _OWN.items():
            if bool(getattr(self, field)) != (self.verdict in verdicts):
                raise LedgerError(f"{self.id}: {field}: expected exactly for {' and '.join(sorted(verdicts))} claims")
        if self.grade and self.grade not in GRADES:
            raise LedgerError(f"{self.id}: grade: expected one of {', '.join(GRADES)}, got {self.grade!r}")
        if self.outcome and self.outcome not in OUTCOMES:
            raise LedgerError(f"{self.id}: outcome: expected one of {', '.join(OUTCOMES)}, got {self.outcome!r}")

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
    def anchor(self) -> str:
        """The id of this claim's card in a page."""
        return anchor_of(self.id)

    def prove(self, *chains: Derivation) -> Card:
        """Verdict *proved*: every chain is a derivation with a rejected mistake, see `linewise.ledger.derived`."""
        if not chains:
            raise LedgerError(f"{self.id}: chains: expected at least one derivation, got none")
        return self._judge("proved", *(derived(chain) for chain in chains))

    def confirm(self, observed: Any, expected: Any, *, mistake: tuple[str, Any], tolerance: Any = None,
                because: str = "", of: str = "", also: tuple[Any, ...] = ()) -> Card:  # fmt: skip
        """Verdict *confirmed*: see `linewise.ledger.agreement`."""
        check = agreement(observed, expected, mistake=mistake, tolerance=tolerance, because=because, of=of)
        return self._judge("confirmed", check, *_also(self, also))

    def define(self, *properties: Any) -> Card:
        """Verdict *defined*: the properties that the definition is said to have, each tested."""
        return self._judge("defined", *_of_kind(self, properties, {"derivation", "agreement"}))

    def amend(self, printed: Evidence, *, holds: Any, also: tuple[Any, ...] = ()) -> Card:
        """Verdict *amended*: where the sentence fails, and a derivation or an agreement for the amended form."""
        return self._correct("amended", printed, holds, also)

    def refute(self, printed: Evidence, *, holds: Any, also: tuple[Any, ...] = ()) -> Card:
        """Verdict *refuted*: a counterexample, and a derivation or an agreement for what holds instead."""
        return self._correct("refuted", printed, holds, also)

    def measure(self, *observations: Evidence) -> Card:
        """Verdict *measured*: observations whose joint outcome must be the one on file."""
        _of_kind(self, observations, {"observation"})
        outcomes = {o.outcome for o in observations}
        joint = outcomes.pop() if len(outcomes) == 1 else "undecided"
        if joint != self.outcome:
            raise LedgerError(f"{self.id}: outcome: the claims file says {self.outcome}, the observations {joint}")
        return self._judge("measured", *observations)

    def _correct(self, verdict: str, printed: Evidence, holds: Any, also: tuple[Any, ...]) -> Card:
        first = _of_kind(self, (printed,), {"counterexample"})
        second = _of_kind(self, (holds,), {"derivation", "agreement"})
        return self._judge(verdict, *first, *second, *_also(self, also))

    def _judge(self, verdict: str, *evidence: Evidence) -> Card:
        if verdict != self.verdict:
            raise LedgerError(f"{self.id}: the claims file says {self.verdict}, the check gives {verdict}")
        shown = {name: value for name in _SHOWN if (value := getattr(self, name))}
        return Card({"claim": self.id, **shown}, evidence)


def load_claims(chapter: str, folder: str | Path | None = None) -> dict[str, Claim]:
    """Read the claims of a chapter from ``<chapter>.claims.yml``.

    With a folder, the file in this folder counts, and no other. Without one it is the file in the working directory,
    where a notebook of the book runs beside its claims, or else the file that comes with the package, so that a copy of
    a notebook runs anywhere.

    Raises `FileNotFoundError` when there is no such file and `LedgerError` when an entry is
    not well-formed.

    >>> load_claims("scaling")["5.1.5"].verdict
    'proved'
    """
    path = _claims_file(chapter) if folder is None else Path(folder) / f"{chapter}{CLAIMS_SUFFIX}"
    if not path.is_file():
        where = path if folder is not None else f"{path} of the working directory or of the package"
        raise FileNotFoundError(f"chapter: expected the claims of {chapter!r} in {where}, found no such file")
    try:
        entries = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path}: expected YAML, got {' '.join(str(error).split())}") from None
    if not isinstance(entries, dict) or not entries:
        raise LedgerError(f"{path}: expected a mapping from claim ids to their fields")
    return {str(key): _claim(str(key), fields, path) for key, fields in entries.items()}


def _claims_file(chapter: str) -> Path:
    """Return where the claims of a chapter are: in the working directory, in the package, or in its checkout.

    The build copies every claims file into the package (setup.py). A package that runs from its checkout has no copies:
    the files beside the notebooks are the only ones.
    """
    name = Path(f"{chapter}{CLAIMS_SUFFIX}")
    if name.is_file():
        return name
    package = Path(str(resources.files("attnmath")))
    checkout = package.parents[1] / "chapters"
    found = [package / "claims" / name, *sorted(checkout.glob(f"*/{name}"))]
    return next((path for path in found if path.is_file()), name)


class _UniqueKeys(SafeLoader):
    """A YAML loader that refuses a key given twice, where YAML itself would drop the first."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(k, deep=deep) for k, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise LedgerError(f"{key}: this key stands twice, the second time near{node.start_mark}")
        return super().construct_mapping(node, deep=deep)


def _claim(key: str, fields: Any, path: Path) -> Claim:
    if not isinstance(fields, dict) or not _NEEDED <= set(fields) <= _FIELDS:
        raise LedgerError(
            f"{path}: {key}: expected {', '.join(sorted(_NEEDED))}, and of {', '.join(sorted(_FIELDS - _NEEDED))} "
            f"what the verdict needs, got {fields!r}"
        )
    text = {name: " ".join(str(value).split()) for name, value in fields.items()}
    return Claim(id=key, chapter=path.name.removesuffix(CLAIMS_SUFFIX), **text)


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
