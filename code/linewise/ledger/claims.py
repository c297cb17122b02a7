"""Claims, their verdicts, and the card that shows a verdict in a page and stores it for machines."""

from __future__ import annotations

import html
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
from linewise.ledger.evidence import Evidence, LedgerError, agreement, derived

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
#: The mime type under which a card leaves its record in the cell's output.
MIME = "application/vnd.attnmath.verdict+json"
# The classes under which MathJax typesets the mathematics of a fragment.
_TYPESET = "mathjax_process tex2jax_process"
# The parts of a source that come before its first number.
_UNNUMBERED = {"note.0": "Note, opening", "report.0": "Report, abstract"}
OUTCOMES = ("supported", "contradicted", "undecided")
_ID = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_PLACE = re.compile(r"(?:article|note|report|\d+)(?:\.\d+)* (?:title|p\d+ s\d+)|beyond [\w. ]+")
#: How the name of a claims file ends, after the chapter's.
CLAIMS_SUFFIX = ".claims.yml"
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
#: The words of the fields that have not just any text.
_ALLOWED = {"grade": GRADES, "outcome": OUTCOMES}


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
            given = getattr(self, field)
            if bool(given) != (self.verdict in verdicts):
                words = f"one of {', '.join(_ALLOWED[field])}" if field in _ALLOWED else "text"
                expected = f"{words} exactly for {' and '.join(sorted(verdicts))} claims"
                raise LedgerError(
                    f"{self.id}: {field}: expected {expected}, got {given!r} where the verdict is {self.verdict}"
                )
        for field, allowed in _ALLOWED.items():
            given = getattr(self, field)
            if given and given not in allowed:
                raise LedgerError(f"{self.id}: {field}: expected one of {', '.join(allowed)}, got {given!r}")

    @property
    def places(self) -> list[str]:
        """The sentences of the source that the claim decides."""
        return [place.strip() for place in self.place.split(";")]

    @property
    def section(self) -> str:
        """The section of the first of them, or "beyond ..." for a statement of the book's own."""
        return self.places[0] if self.is_own else self.places[0].split()[0]

    @property
    def is_own(self) -> bool:
        """Whether the statement is the book's own, and no sentence of a source."""
        return self.place.startswith("beyond")

    @property
    def anchor(self) -> str:
        """The id of this claim's card in a page."""
        return "claim-" + self.id.replace("/", "-")

    def prove(self, *chains: Derivation) -> Card:
        """Verdict *proved*: every chain is a derivation with a rejected mistake, see `linewise.ledger.derived`."""
        if not chains:
            raise LedgerError(f"{self.id}: chains: expected at least one derivation, got none")
        return self._judge("proved", *(derived(chain) for chain in chains))

    def confirm(self, observed: Any, expected: Any = None, *, mistake: Any = None, tolerance: Any = None,
                because: str = "", of: str = "", also: tuple[Any, ...] = ()) -> Card:  # fmt: skip
        """Verdict *confirmed*: an agreement, or the numbers and words that `linewise.ledger.agreement` makes one of."""
        if not isinstance(observed, Evidence | Derivation):
            check = agreement(observed, expected, mistake=mistake, tolerance=tolerance, because=because, of=of)
            return self._judge("confirmed", check, *_also(self, also))
        more = {"expected": expected, "mistake": mistake, "tolerance": tolerance, "because": because or None,
                "of": of or None}  # fmt: skip
        if given := [name for name, value in more.items() if value is not None]:
            raise TypeError(f"{', '.join(given)}: expected with numbers alone, got evidence, which has its own")
        return self._judge("confirmed", *_of_kind(self, (observed,), {"agreement"}), *_also(self, also))

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
            each = ", ".join(o.outcome or "" for o in observations)
            said = f"the claims file says {self.outcome}, the observations {joint}"
            raise LedgerError(f"{self.id}: outcome: {said} ({each})")
        return self._judge("measured", *observations)

    def _correct(self, verdict: str, printed: Evidence, holds: Any, also: tuple[Any, ...]) -> Card:
        first = _of_kind(self, (printed,), {"counterexample"})
        second = _of_kind(self, (holds,), {"derivation", "agreement"})
        return self._judge(verdict, *first, *second, *_also(self, also))

    def _judge(self, verdict: str, *evidence: Evidence) -> Card:
        if verdict != self.verdict:
            raise LedgerError(f"{self.id}: the claims file says {self.verdict}, the check gives {verdict}")
        return Card(self, evidence)


@dataclass(frozen=True)
class Card:
    """A verdict with its evidence: one line in the page that unfolds, and a record for machines.

    A derivation that no cell has displayed yet is displayed above the card, in full view.
    """

    claim: Claim
    evidence: tuple[Evidence, ...]

    def record(self) -> dict[str, Any]:
        """Return the machine-readable record: claim, verdict and evidence."""
        return {
            "claim": self.claim.id,
            "verdict": self.claim.verdict,
            "evidence": [e.record() for e in self.evidence],
        }

    def __str__(self) -> str:
        claim = self.claim
        verdict = f"{claim.verdict}, {claim.outcome}" if claim.outcome else claim.verdict
        lines = [f"[{verdict}] {claim.id} ({claim.place}): {claim.reading}"]
        lines += [f"  {name}: {text}" for name, text in self._notes()]
        return "\n".join(lines + [f"  {e.text}" for e in self.evidence])

    __repr__ = __str__

    def _notes(self) -> list[tuple[str, str]]:
        claim = self.claim
        notes = [("What holds", claim.holds), ("Grade", claim.grade), ("Scope", claim.scope)]
        return [(name, text) for name, text in notes if text]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        blocks = [e.block for e in self.evidence if e.block and not e.block.displayed]
        shown = "".join(block.html() for block in blocks)
        for block in blocks:
            block.displayed = True
        return {"text/plain": str(self), "text/html": shown + self.html(), MIME: self.record()}

    def html(self) -> str:
        """Return the card as an HTML fragment; mathematics is marked up for MathJax."""
        claim = self.claim
        outcome = f' <strong class="claim-outcome">{html.escape(claim.outcome)}</strong>' if claim.outcome else ""
        items = "".join(f"<li>{_markup(e.markup or e.text)}</li>" for e in self.evidence)
        notes = "".join(
            f'<p class="claim-{name.split()[-1].lower()}"><strong>{name}:</strong> {_markup(text)}</p>'
            for name, text in self._notes()
        )
        key, anchor = html.escape(claim.id), html.escape(claim.anchor)
        kind = claim.verdict.replace(" ", "-")
        opening = f'<details class="claim-card verdict-{kind} {_TYPESET}" id="{anchor}">'
        name = f'<span class="claim-title">{_markup(claim.title)}</span> <span class="claim-id">{key}</span>'
        return "\n".join(
            [
                opening,
                f'<summary><span class="claim-verdict">{claim.verdict}</span>{outcome} {name}</summary>',
                f'<p class="claim-statement"><strong>{_origin(claim)}:</strong> {_markup(claim.reading)}</p>{notes}',
                f'<ul class="claim-evidence">{items}</ul></details>',
            ]
        )


def section_in_words(section: str) -> str:
    """Name a section of a source.

    >>> section_in_words("5.1.4"), section_in_words("article.2"), section_in_words("report.2.1")
    ('Section 5.1.4', 'Article, part 2', 'Report, section 2.1')
    >>> section_in_words("note.3"), section_in_words("note.0"), section_in_words("report.0")
    ('Note, part 3', 'Note, opening', 'Report, abstract')
    """
    source, _, number = section.partition(".")
    if section in _UNNUMBERED:
        return _UNNUMBERED[section]
    words = {"article": "Article, part", "note": "Note, part", "report": "Report, section"}
    return f"{words[source]} {number}" if source in words else f"Section {section}"


def _origin(claim: Claim) -> str:
    """Say where a claim comes from.

    >>> _origin(Claim("5.1.5", "t", "5.1.4 p4 s4", "r", "defined"))
    'Section 5.1.4, paragraph 4, sentence 4'
    """
    if claim.is_own:
        return "Our statement"
    section, *rest = claim.places[0].split()
    name = section_in_words(section)
    if len(rest) < 2:
        return f"{name}, heading"
    more = " and elsewhere" if len(claim.places) > 1 else ""
    return f"{name}, paragraph {rest[0][1:]}, sentence {rest[1][1:]}{more}"


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
        raise LedgerError(f"{path}: expected a mapping from claim ids to their fields, got {entries!r}")
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
    for name, value in fields.items():
        if not isinstance(value, str):  # an empty field is None, and 5.1 without quotes a number
            raise LedgerError(f"{path}: {key}: {name}: expected text, got {type(value).__name__} {value!r}")
    text = {name: " ".join(value.split()) for name, value in fields.items()}
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


def _markup(text: str) -> str:
    """Escape for HTML, and turn `$...$` into the delimiters that MathJax looks for."""
    return re.sub(r"\$([^$]+)\$", r"\\(\1\\)", html.escape(text))
