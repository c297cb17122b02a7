"""The card of a claim: its verdict and evidence, one line in the page that unfolds, and a record for machines.

The record is all that a card shows, as JSON beside it in the cell's output. `plain`, `html` and `latex` draw the card
from its record, byte for byte. It holds the claim (``claim`` is its id; ``title``, ``place``, ``reading``, ``verdict``,
and of ``outcome``, ``holds``, ``grade`` and ``scope`` what the verdict has), the parts of its ``evidence``
(`linewise.ledger.sentences`), and the records of the ``derivations`` that are shown above the card
(`linewise.derive.display`). Evidence that is a derivation names its record by ``derivation``, a fingerprint.
"""

from __future__ import annotations

import html as escaping
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from linewise.conventions import Conventions, standard
from linewise.derive import display, notation
from linewise.ledger import sentences
from linewise.ledger.evidence import Evidence, refuse_by_hand

#: The mime type under which a card leaves its record in the cell's output.
MIME = "application/vnd.linewise.verdict+json"
#: What a record holds.
Record = Mapping[str, Any]
# The colours of verdicts, by the check that gives them: white on each has a contrast of 5, and each has one of 3 on
# white and on black.
_COLOURS = {
    "prove": "#0b7a5e",
    "confirm": "#1d6bb3",
    "amend": "#a35f00",
    "refute": "#c4372b",
    "measure": "#9150ad",
}
_GREY = "#626e7a"
_CARD = "margin:0.6em 0;padding:0.1em 0 0.1em 0.7em"
_BADGE = "padding:0.1em 0.5em;border-radius:0.3em;color:#fff"
_PART = "margin:0.4em 0"
_NOTES = {"What holds": "holds", "Grade": "grade", "Scope": "scope"}


@dataclass(frozen=True)
class Card:
    """A verdict with its evidence.

    A derivation that no cell has displayed yet is displayed above the card, in full view.

    claim : what the card shows of the claim, as its record holds it.
    conventions : the book's: how the claim's place is said, and which check gives its verdict.
    """

    claim: Record
    evidence: tuple[Evidence, ...]
    conventions: Conventions = field(default_factory=standard, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a verdict that no check of a claim has given, a changed copy too."""
        refuse_by_hand("card", "a check of a claim, such as claim.prove(...),")
        object.__setattr__(self, "claim", MappingProxyType(dict(self.claim)))

    def record(self) -> dict[str, Any]:
        """Return the machine-readable record: claim, verdict and evidence."""
        return {**self.claim, "evidence": [e.record() for e in self.evidence]}

    def __str__(self) -> str:
        return plain(self.record())

    __repr__ = __str__

    def html(self) -> str:
        """Return the card as an HTML fragment; mathematics is marked up for MathJax."""
        return html(self.record(), self.conventions)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        blocks = [e.block for e in self.evidence if e.block and not e.block.displayed]
        for block in blocks:
            block.displayed = True
        record = self.record() | ({"derivations": [block.record() for block in blocks]} if blocks else {})
        drawn = {"text/html": html(record, self.conventions), "text/latex": latex(record, self.conventions)}
        return {"text/plain": plain(record), **drawn, MIME: record}


def anchor_of(claim: str) -> str:
    """Return the id of a claim's card in a page.

    >>> anchor_of("5.1/rank")
    'claim-5.1-rank'
    """
    return "claim-" + claim.replace("/", "-")


def notes(record: Record) -> list[tuple[str, str]]:
    """Return what a card says between the claim and its evidence: names, and words with formulas between dollars."""
    return [(name, record[field]) for name, field in _NOTES.items() if record.get(field)]


def told(record: Record, conventions: Conventions) -> list[tuple[str, str]]:
    """Return what a card says above its evidence, in the book's language: a place or a name, and words."""
    say = conventions.say
    first = (say("{place}:", place=conventions.origin(record["place"])), record["reading"])
    return [first, *((say(f"{name}:"), say(text)) for name, text in notes(record))]


def plain(record: Record) -> str:
    """Return a card as plain text."""
    verdict = f"{record['verdict']}, {record['outcome']}" if record.get("outcome") else record["verdict"]
    lines = [f"[{verdict}] {record['claim']} ({record['place']}): {record['reading']}"]
    lines += [f"  {name}: {text}" for name, text in notes(record)]
    return "\n".join(lines + [f"  {sentences.plain(parts)}" for parts in record["evidence"]])


def classes_of(verdict: str, conventions: Conventions) -> list[str]:
    """Return the classes of a verdict: its own, and that of the standard verdict of its check, which has a look.

    >>> classes_of("not decided", standard())
    ['verdict-not-decided']
    """
    names = [verdict, *(name for name in conventions.standard_names(verdict) if name != verdict)]
    return ["verdict-" + name.replace(" ", "-") for name in names]


def html(record: Record, conventions: Conventions | None = None) -> str:
    """Return a card as HTML, below the derivations that it shows: one line that unfolds.

    conventions : the book's, the standard ones unless given.

    The verdict is white on its colour, and the colour is at the left of the card: that can be read on a white page and
    on a black one. A page with a style sheet takes the inline styles out (`linewise.derive.display.without_styles`).
    """
    known = conventions or standard()
    shown = "".join(display.html(chain, known.say) for chain in record.get("derivations", ()))
    verdict = record["verdict"]
    colour = _COLOURS.get(known.verdicts[verdict].check if verdict in known.verdicts else "", _GREY)
    outcome = escaping.escape(known.say(record.get("outcome", "")))
    outcome = f' <strong class="claim-outcome">{outcome}</strong>' if outcome else ""
    sentence = partial(sentences.markup, phrase=known.say)
    said = "".join(f"<li>{notation.html_words(sentence(parts))}</li>" for parts in record["evidence"])
    kinds = ["statement", *(name.split()[-1].lower() for name, _ in notes(record))]
    noted = "".join(
        f'<p class="claim-{kind}" style="{_PART}"><strong>{name}</strong> {notation.html_words(text)}</p>'
        for kind, (name, text) in zip(kinds, told(record, known), strict=True)
    )
    key, anchor = escaping.escape(record["claim"]), escaping.escape(anchor_of(record["claim"]))
    title = notation.html_words(record["title"])
    kind = " ".join(["claim-card", *classes_of(verdict, known), display.TYPESET])
    badge = f'<strong class="claim-verdict" style="{_BADGE};background:{colour}">{known.say(verdict)}</strong>'
    name = f'<span class="claim-title">{title}</span> <small class="claim-id" style="opacity:0.8">{key}</small>'
    return shown + "\n".join(
        [
            f'<details class="{kind}" id="{anchor}" style="{_CARD};border-left:0.25em solid {colour}">',
            f'<summary style="{display.SUMMARY}">{badge}{outcome} {name}</summary>',
            noted,
            f'<ul class="claim-evidence" style="{_PART}">{said}</ul></details>',
        ]
    )


def latex(record: Record, conventions: Conventions | None = None) -> str:
    """Return a card as a paragraph of LaTeX and the list of its evidence, below the derivations that it shows."""
    known = conventions or standard()
    words = notation.latex_words
    verdict = ", ".join(known.say(record[part]) for part in ("verdict", "outcome") if record.get(part))
    head = rf"\textsc{{{verdict}}} \textbf{{{words(record['title'])}}} \texttt{{{words(record['claim'])}}}"
    body = [rf"\textbf{{{name}}} {words(text)}" for name, text in told(record, known)]
    items = [rf"\item {words(sentences.markup(parts, known.say))}" for parts in record["evidence"]]
    listed = "\n".join([r"\begin{itemize}", *items, r"\end{itemize}"])
    return "\n\n".join(
        [*(display.latex(chain, known.say) for chain in record.get("derivations", ())), head, *body, listed]
    )
