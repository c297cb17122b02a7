"""Every statement of the book's own is attacked, or says why it needs no attack."""

from __future__ import annotations

import functools
import importlib
import json
import re
from pathlib import Path

import hunt
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path.stem for path in Path(__file__).parent.glob("attack_*.py"))
for module in MODULES:
    importlib.import_module(module)

PROOFS = re.compile(r"\{prf:(theorem|proposition|lemma|corollary)\}[^\n]*\n(?::label: *(\S+))?")
EXERCISES = re.compile(r"\{exercise(?:-start)?\}[^\n]*\n:label: *(\S+)")


@functools.cache
def notebook_texts() -> dict[str, str]:
    """The markdown of every chapter, by name."""
    texts = {}
    for path in sorted(ROOT.glob("chapters/*/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts[path.stem] = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return texts


def theorems(text: str) -> list[str]:
    """Labels of theorems, propositions, lemmas and corollaries; a missing label is named so that it is found."""
    return [label or f"a {what} without a label" for what, label in PROOFS.findall(text)]


def is_own(claim: dict[str, object]) -> bool:
    """Whether the book itself says it: what holds instead of a claim, or a statement beyond the source."""
    place = str(claim.get("place", claim.get("section", "")))
    return "holds" in claim or "amended" in claim or place.startswith("beyond")


@functools.cache
def claims() -> dict[str, dict[str, dict[str, object]]]:
    """The claims of every chapter, by chapter and id."""
    paths = sorted(ROOT.glob("chapters/*/*.claims.yml"))
    return {path.name.removesuffix(".claims.yml"): yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths}


def own_statements() -> dict[str, str]:
    """The id of every statement that needs an attack, with its chapter."""
    found = {label: chapter for chapter, text in notebook_texts().items() for label in theorems(text)}
    for chapter, its_claims in claims().items():
        found.update({name: chapter for name, claim in its_claims.items() if is_own(claim)})
    return found


def all_statements() -> set[str]:
    """Every id that an attack may name: claims, theorems, exercises."""
    names = set(own_statements())
    for text in notebook_texts().values():
        names.update(EXERCISES.findall(text))
    for its_claims in claims().values():
        names.update(its_claims)
    return names


def attacked() -> set[str]:
    return {statement for attack in hunt.ATTACKS.values() for statement in attack.statements}


def test_the_book_is_found() -> None:
    chapters = notebook_texts()
    own = own_statements()
    assert len(chapters) >= 15
    assert {chapter for label, chapter in own.items() if label.startswith("theorem-")} <= set(chapters)
    assert "theorem-norm-row-stochastic" in own


@pytest.mark.parametrize("chapter", sorted(set(own_statements().values())))
def test_every_statement_is_attacked_or_says_why_not(chapter: str) -> None:
    here = {name for name, place in own_statements().items() if place == chapter}
    missing = sorted(here - attacked() - set(hunt.UNATTACKED))
    assert not missing, f"{chapter}: neither attacked nor excused: {missing}"


def test_every_entry_names_a_statement_of_the_book() -> None:
    unknown = sorted((attacked() | set(hunt.UNATTACKED)) - all_statements())
    assert not unknown, f"not in the book: {unknown}"


def test_nothing_is_both_attacked_and_excused() -> None:
    assert not attacked() & set(hunt.UNATTACKED)


def test_every_reason_is_its_own() -> None:
    by_sentence: dict[str, set[str]] = {}
    for entry in hunt.UNATTACKED.values():
        by_sentence.setdefault(entry.sentence, set()).add(entry.statement)
    shared = {sentence: names for sentence, names in by_sentence.items() if len(names) > 3}
    assert not shared, f"one sentence excuses more than three statements: {shared}"


@pytest.mark.parametrize("name", sorted(hunt.ATTACKS))
def test_attack(name: str) -> None:
    outcome = hunt.ATTACKS[name].run()
    assert outcome.random >= 10_000 and outcome.structured > 0
