"""Claims, their verdicts, and the card that shows a verdict in a page and stores it for machines."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from attnmath.ledger.evidence import Evidence, LedgerError, agreement, proof

#: The six verdicts, and what each one promises.
VERDICTS = {
    "proved": "a derivation in general symbols whose residual is exactly zero",
    "confirmed": "a numerical experiment inside a tolerance that was derived",
    "amended": "true only with a hypothesis or factor that the source leaves out",
    "refuted": "a concrete counterexample, and the statement that holds instead",
    "measured": "an empirical sentence, measured on a trained model or a training run",
    "defined": "a definition: the code is it, and its stated properties are tested",
}
#: The mime type under which a card leaves its record in the cell's output.
MIME = "application/vnd.attnmath.verdict+json"
OUTCOMES = ("supported", "contradicted", "undecided")
_FIELDS = {"section", "statement", "verdict", "amended", "outcome"}


@dataclass(frozen=True)
class Claim:
    """One checkable sentence or equation of a source, in this book's words.

    id : the equation's number, or ``section/slug`` for a sentence.
    amended : for amended and refuted claims, the statement that holds.
    outcome : for measured claims: supported, contradicted or undecided.
    """

    id: str
    section: str
    statement: str
    verdict: str
    amended: str | None = None
    outcome: str | None = None
    chapter: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise LedgerError(f"{self.id}: verdict: expected one of {', '.join(VERDICTS)}, got {self.verdict!r}")
        if (self.verdict in {"amended", "refuted"}) != bool(self.amended):
            raise LedgerError(f"{self.id}: amended: expected exactly for amended and refuted claims")
        if (self.verdict == "measured") != (self.outcome in OUTCOMES):
            raise LedgerError(f"{self.id}: outcome: expected one of {', '.join(OUTCOMES)}, exactly for measured claims")

    @property
    def anchor(self) -> str:
        """The id of this claim's card in a page."""
        return "claim-" + self.id.replace("/", "-")

    def prove(self, residual: Any, *, control: Any, also: tuple[Evidence, ...] = ()) -> Card:
        """Verdict *proved*: see `attnmath.ledger.proof`; `also` holds further evidence."""
        return self._judge("proved", proof(residual, control=control), *also)

    def confirm(self, observed: Any, expected: Any, *, control: Any, tolerance: Any = None,
                because: str = "", also: tuple[Evidence, ...] = ()) -> Card:  # fmt: skip
        """Verdict *confirmed*: see `attnmath.ledger.agreement`."""
        check = agreement(observed, expected, control=control, tolerance=tolerance, because=because)
        return self._judge("confirmed", check, *also)

    def define(self, *properties: Evidence) -> Card:
        """Verdict *defined*: the properties that the definition is said to have, each tested."""
        return self._judge("defined", *_of_kind(self, properties, {"proof", "agreement"}))

    def amend(self, printed: Evidence, *, holds: Evidence, also: tuple[Evidence, ...] = ()) -> Card:
        """Verdict *amended*: where the printed form fails, and the evidence for the amended form."""
        _of_kind(self, (printed,), {"counterexample"}), _of_kind(self, (holds,), {"proof", "agreement"})
        return self._judge("amended", printed, holds, *also)

    def refute(self, printed: Evidence, *, holds: Evidence, also: tuple[Evidence, ...] = ()) -> Card:
        """Verdict *refuted*: a counterexample, and the evidence for what holds instead."""
        _of_kind(self, (printed,), {"counterexample"}), _of_kind(self, (holds,), {"proof", "agreement"})
        return self._judge("refuted", printed, holds, *also)

    def measure(self, *observations: Evidence) -> Card:
        """Verdict *measured*: observations whose joint outcome must be the one on file."""
        _of_kind(self, observations, {"observation"})
        outcomes = {o.outcome for o in observations}
        joint = outcomes.pop() if len(outcomes) == 1 else "undecided"
        if joint != self.outcome:
            raise LedgerError(f"{self.id}: outcome: the claims file says {self.outcome}, the observations {joint}")
        return self._judge("measured", *observations)

    def _judge(self, verdict: str, *evidence: Evidence) -> Card:
        if verdict != self.verdict:
            raise LedgerError(f"{self.id}: the claims file says {self.verdict}, the check gives {verdict}")
        return Card(self, evidence)


@dataclass(frozen=True)
class Card:
    """A verdict with its evidence: renders as HTML and plain text, and leaves a record."""

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
        outcome = f": {self.claim.outcome}" if self.claim.outcome else ""
        lines = [f"[{self.claim.verdict}{outcome}] {self.claim.id}: {self.claim.statement}"]
        if self.claim.amended:
            lines.append(f"  holds: {self.claim.amended}")
        return "\n".join(lines + [f"  {e.kind}: {e.text}" for e in self.evidence])

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": str(self), "text/html": self.html(), MIME: self.record()}

    def html(self) -> str:
        """Return the card as an HTML fragment; mathematics is marked up for MathJax."""
        claim = self.claim
        outcome = f' <strong class="claim-outcome">{claim.outcome}</strong>' if claim.outcome else ""
        parts = [
            f'<div class="claim-card verdict-{claim.verdict} mathjax_process tex2jax_process" id="{claim.anchor}">',
            f'<div class="claim-head"><span class="claim-verdict">{claim.verdict}</span>{outcome} '
            f'<a class="claim-id" href="#{claim.anchor}">{html.escape(claim.id)}</a></div>',
            f'<div class="claim-statement">{_markup(claim.statement)}</div>',
        ]
        if claim.amended:
            parts.append(f'<div class="claim-holds"><strong>What holds:</strong> {_markup(claim.amended)}</div>')
        items = "".join(f"<li><em>{e.kind}</em>: {_markup(e.markup or e.text)}</li>" for e in self.evidence)
        return "\n".join([*parts, f'<ul class="claim-evidence">{items}</ul></div>'])


def load_claims(chapter: str, folder: str | Path = ".") -> dict[str, Claim]:
    """Read the claims of a chapter from ``<folder>/<chapter>.claims.yml``.

    Raises `FileNotFoundError` when there is no such file and `LedgerError` when an entry is
    not well-formed.
    """
    path = Path(folder) / f"{chapter}.claims.yml"
    if not path.is_file():
        raise FileNotFoundError(f"chapter: expected the claims of {chapter!r} in {path}, found no such file")
    entries = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    if not isinstance(entries, dict) or not entries:
        raise LedgerError(f"{path}: expected a mapping from claim ids to their fields")
    return {str(key): _claim(str(key), fields, path) for key, fields in entries.items()}


class _UniqueKeys(yaml.SafeLoader):
    """A YAML loader that refuses a key given twice, where YAML itself would drop the first."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(k, deep=deep) for k, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise LedgerError(f"{key}: this key stands twice, the second time near{node.start_mark}")
        return super().construct_mapping(node, deep=deep)


def _claim(key: str, fields: Any, path: Path) -> Claim:
    if not isinstance(fields, dict) or not {"section", "statement", "verdict"} <= set(fields) <= _FIELDS:
        raise LedgerError(
            f"{path}: {key}: expected section, statement, verdict (and amended or outcome), got {fields!r}"
        )
    text = {name: " ".join(str(value).split()) for name, value in fields.items()}
    return Claim(id=key, chapter=path.name.removesuffix(".claims.yml"), **text)


def _of_kind(claim: Claim, evidence: tuple[Evidence, ...], kinds: set[str]) -> tuple[Evidence, ...]:
    if not evidence or any(e.kind not in kinds for e in evidence):
        got = ", ".join(e.kind for e in evidence) or "nothing"
        raise LedgerError(f"{claim.id}: evidence: expected {' or '.join(sorted(kinds))}, got {got}")
    return evidence


def _markup(text: str) -> str:
    """Escape for HTML, and turn `$...$` into the delimiters that MathJax looks for."""
    return re.sub(r"\$([^$]+)\$", r"\\(\1\\)", html.escape(text))
