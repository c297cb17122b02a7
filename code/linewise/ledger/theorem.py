"""What a derivation shows, as a claims file pins it: first line, relation, last line, kinds of symbols, assumptions.

Formulas are sympy's plain texts, as records hold them. They are compared as texts, and never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sympy as sp
import yaml
from sympy.core.function import AppliedUndef

from linewise.derive.assumptions import Assumption
from linewise.derive.derivation import Derivation
from linewise.derive.expectation import RandomVariable, RandomVector
from linewise.entries import not_text, wrong_keys
from linewise.ledger.evidence import LedgerError

#: The relation of the last line to the first, by the sign of a derivation's lines.
RELATIONS = {"=": "equals", "<=": "at most", ">=": "at least"}
_NEEDED = ("left",)
_OPTIONAL = (*RELATIONS.values(), "through", "for", "assuming")
_SIGNS = ("zero", "positive", "negative", "nonnegative", "nonpositive", "nonzero")
_SETS = ("integer", "rational", "real", "imaginary")
_FURTHER = ("even", "odd", "prime", "irrational")
_ANY = " for any "
#: How long the lines of an entry are, where they can be broken.
_WIDTH = 114


@dataclass(frozen=True)
class Theorem:
    """``left`` equals, is at most or is at least ``right``, for symbols of some kinds, under assumptions.

    kinds : what the symbols are, where they are not just any numbers: "d_k, n positive integer", "q random array".
    assuming : what the derivation assumes and does not derive.
    through : on file, lines between the first and the last that the claim needs too; of a derivation, all of them.
    """

    left: str
    relation: str
    right: str
    kinds: tuple[str, ...] = ()
    assuming: tuple[str, ...] = ()
    through: tuple[str, ...] = ()

    @classmethod
    def of(cls, chain: Derivation) -> Theorem:
        """Return what a derivation shows.

        >>> from linewise.derive import Derivation, rules
        >>> n, c, f = sp.Symbol("n", integer=True), sp.Symbol("c", positive=True), sp.Function("f")
        >>> chain = Derivation(f(n) + 1)
        >>> chain.step(c + 1, rules.hypothesis(f(n), c, "constant"))
        >>> print(Theorem.of(chain).yaml())
        - left: f(n) + 1
          equals: c + 1
          for: n integer; c positive
          assuming: f(n) = c
        """
        signs = [line.relation for line in chain.lines[1:]]
        relation = RELATIONS[next((sign for sign in signs if sign != "="), "=")]
        kinds = tuple(_kinds(chain.start, chain.result, *chain.assumptions))
        first, *inner, last = (_text(line.value) for line in chain.lines)
        return cls(first, relation, last, kinds, _once(map(_said, chain.assumptions)), tuple(inner))

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Theorem:
        """Return what the record of a derivation says that it shows; it says nothing of the kinds of symbols."""
        sign = next((line["relation"] for line in record["lines"][1:] if line["relation"] != "="), "=")
        first, *inner, last = (_text(line["plain"]) for line in record["lines"])
        assumed = _once(a["plain"] for a in record.get("assumed", ()))
        return cls(first, RELATIONS[sign], last, (), assumed, tuple(inner))

    @classmethod
    def read(cls, entry: Any) -> Theorem:
        """Read an entry of a claims file: ``left``, one relation, and ``through``, ``for`` and ``assuming`` if any.

        Raises `LedgerError` when it is not well-formed.
        """
        if wrong := wrong_keys(entry, _NEEDED, _OPTIONAL):
            raise LedgerError(wrong)
        for key, value in entry.items():
            if not isinstance(value, str) or not value.strip():
                raise LedgerError(f"{key}: {not_text(value)}")
        given = [name for name in RELATIONS.values() if name in entry]
        if len(given) != 1:
            among = ", ".join(RELATIONS.values())
            raise LedgerError(f"relation: expected one of {among}, got {' and '.join(given) or 'none'}")
        text = {key: " ".join(value.split()) for key, value in entry.items()}
        further = (_clauses(text.get(key, ""), key) for key in ("for", "assuming", "through"))
        return cls(text["left"], given[0], text[given[0]], *further)

    @property
    def as_recorded(self) -> Theorem:
        """What of the theorem the record of its derivation holds."""
        return replace(self, kinds=(), assuming=_once(a.split(_ANY)[0] for a in self.assuming))

    def differences(self, shown: Theorem) -> Iterator[str]:
        """Say, field by field, where a theorem on file and what a derivation shows differ."""
        if self.left != shown.left:
            yield f"left: the claims file says {self.left}, the derivation begins with {shown.left}"
        if self.relation != shown.relation:
            yield f"relation: the claims file says {self.relation}, the derivation shows {shown.relation}"
        if self.right != shown.right:
            yield f"{self.relation}: the claims file says {self.right}, the derivation ends with {shown.right}"
        if absent := [line for line in self.through if line not in shown.through]:
            yield f"through: the claims file says {'; '.join(absent)}, no line of the derivation between its ends"
        for field, filed, found, has in (("for", self.kinds, shown.kinds, "has"),
                                         ("assuming", self.assuming, shown.assuming, "assumes")):  # fmt: skip
            if alone := [clause for clause in filed if clause not in found]:
                yield f"{field}: the claims file says {'; '.join(alone)}, the derivation does not"
            if more := [clause for clause in found if clause not in filed]:
                yield f"{field}: the derivation {has} {'; '.join(more)}, the claims file does not"

    def yaml(self) -> str:
        """Return the entry of a claims file that says so."""
        entry = {"left": self.left, self.relation: self.right}
        entry |= {"through": "; ".join(self.through)} if self.through else {}
        entry |= {"for": "; ".join(self.kinds)} if self.kinds else {}
        entry |= {"assuming": "; ".join(self.assuming)} if self.assuming else {}
        text = yaml.safe_dump([entry], sort_keys=False, width=10**6, allow_unicode=True)
        return "\n".join(map(_folded, text.splitlines()))


def read_theorems(entries: Any) -> tuple[Theorem, ...]:
    """Read the field ``shows`` of a claim, a list of entries; raises `LedgerError` when it is not well-formed."""
    if not isinstance(entries, list | tuple):
        raise LedgerError(f"shows: expected a list of theorems, got {type(entries).__name__} {entries!r}")
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append(entry if isinstance(entry, Theorem) else Theorem.read(entry))
        except LedgerError as error:
            raise LedgerError(f"shows {number}: {error}") from None
    return tuple(found)


def entry_of(theorems: Iterable[Theorem]) -> str:
    """Return the fields of a claim that pin some theorems, as its file holds them."""
    shown = [replace(theorem, through=()).yaml() for theorem in theorems]
    lines = ["shows:", *"\n".join(shown).splitlines(), *(["how:"] if len(shown) > 1 else [])]
    return "\n".join(f"  {line}" for line in lines)


def unpinned(filed: tuple[Theorem, ...], shown: tuple[Theorem, ...]) -> list[str]:
    """Say where the theorems on file and what derivations show differ; nothing where they agree."""
    if len(filed) != len(shown):
        return [f"shows: the claims file has {_count(filed, 'theorem')}, the check {_count(shown, 'derivation')}"]
    return [
        f"shows {number}: {said}"
        for number, (theorem, other) in enumerate(zip(filed, shown, strict=True), 1)
        for said in theorem.differences(other)
    ]


def _count(things: tuple[Theorem, ...], name: str) -> str:
    return f"{len(things) or 'no'} {name}{'' if len(things) == 1 else 's'}"


def _clauses(text: str, key: str) -> tuple[str, ...]:
    """Return the clauses between semicolons; there is none in the text of an assumption."""
    parts = [part.strip() for part in text.split(";")] if text else []
    if not all(parts) or len(set(parts)) < len(parts):
        raise LedgerError(f"{key}: expected clauses between semicolons, each once, got {text!r}")
    return tuple(parts)


def _folded(line: str) -> str:
    """Break a long line of YAML after a semicolon or a sign, where a reader would."""
    first, *parts = re.split(r"(?<=;) |(?<=[^ ] [+-]) ", line)
    lines = [first]
    for part in parts:
        if len(lines[-1]) + len(part) < _WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(f"    {part}")
    return "\n".join(lines)


def _text(value: Any) -> str:
    return " ".join(str(value).split())


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(text.split()) for text in texts))


def _said(assumption: Assumption) -> str:
    """Say an assumption, and which symbols in it stand for any value."""
    every = ", ".join(sorted(map(str, assumption.every)))
    return f"{assumption}{_ANY}{every}" if every and assumption.kind != "definition" else str(assumption)


def _kinds(*parts: Any) -> Iterator[str]:
    """Say of what kinds the symbols are, those of one kind together; what is just any number is not named."""
    named: dict[str, set[str]] = {}
    for part in parts:
        every = part.every if isinstance(part, Assumption) else frozenset()
        for thing in _symbols((part.left, part.right) if isinstance(part, Assumption) else part):
            if thing not in every and (kind := _kind(thing)):
                named.setdefault(kind, set()).add(str(getattr(thing, "func", thing) if _is_function(thing) else thing))
    for kind, names in named.items():
        yield f"{', '.join(sorted(names))} {kind}"


def _symbols(value: Any) -> Iterator[Any]:
    """Yield the free symbols, arrays and unknown functions of an expression, or of several, in one order."""
    if isinstance(value, frozenset | tuple):
        for part in sorted(value, key=str) if isinstance(value, frozenset) else value:
            yield from _symbols(part)
    elif isinstance(value, sp.Basic):
        bases = value.atoms(sp.IndexedBase)
        labels = {base.label for base in bases}
        free = {s for s in value.free_symbols if isinstance(s, sp.Symbol | sp.MatrixSymbol)} - labels
        yield from sorted(free | bases | value.atoms(AppliedUndef), key=str)


def _is_function(thing: Any) -> bool:
    return isinstance(thing, AppliedUndef)


def _kind(thing: Any) -> str:
    """Say of what kind a symbol is; "" if it stands for any number, array or function."""
    if isinstance(thing, sp.MatrixSymbol):
        return f"{thing.rows} by {thing.cols} matrix"
    sign = next((word for word in _SIGNS if getattr(thing, f"is_{word}")), "")
    numbers = next((word for word in _SETS if getattr(thing, f"is_{word}")), "")
    words = [sign, *(word for word in _FURTHER if getattr(thing, f"is_{word}"))]
    words += [numbers] if numbers and not (numbers == "real" and sign) else []
    if isinstance(thing, RandomVector):
        return " ".join([*filter(None, words), "random array"])
    if isinstance(thing, RandomVariable):
        return " ".join([*filter(None, words), "random number"])
    known = " ".join(filter(None, words))
    noun = "array" if isinstance(thing, sp.IndexedBase) else "function" if _is_function(thing) else ""
    return f"{known} {noun}".strip() if known else ""
