"""The ledger fails when it should: wrong statements, idle controls, claims and checks that do not meet."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sp
from backends import torch_or_skip

from attnmath.estimate import Estimate
from linewise.__main__ import main
from linewise.conventions import Source, standard
from linewise.derive import Derivation, display, identity
from linewise.derive.display import fingerprint
from linewise.ledger import (
    Card,
    Claim,
    Evidence,
    LedgerError,
    agreement,
    audit,
    collate,
    counterexample,
    derived,
    load_claims,
    observation,
    sentences,
)
from linewise.ledger.card import MIME, html, latex, plain
from linewise.ledger.collate import Row

x = sp.Symbol("x", positive=True)
FOUR_SOURCES = dataclasses.replace(standard(), sources=(
    Source("s.yml"), Source("s.yml", "article", "part"), Source("s.yml", "note", "part", {"0": "opening"}),
    Source("s.yml", "report", "section", {"0": "abstract"})))  # fmt: skip
VERDICTS, GRADES = list(standard().verdicts), list(standard().grades)


def square() -> Derivation:
    wrong = ("no middle term", x**2 + 1)
    return identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand", mistake=wrong)


#: What `square` shows, and what two of them show.
PIN = {"shows": [{"left": "(x + 1)**2", "equals": "x**2 + 2*x + 1", "for": "x positive"}]}
TWICE = {"shows": 2 * PIN["shows"], "how": "They say the same."}
MORE = {
    "proved": {"scope": "for all $x$"},
    "amended": {"holds": "That.", "grade": GRADES[2]},
    "refuted": {"holds": "That.", "grade": GRADES[0]},
    "measured": {"outcome": "supported"},
    "not decided": {"reason": "A matter of taste."},
}


def claim(verdict: str = "proved", **fields: Any) -> Claim:
    more = MORE.get(verdict, {}) | fields
    return Claim("5.1.5", title="A square", place="5.1.4 p4 s4", reading="It is $x$.", verdict=verdict, **more)


def largest(x: list[float]) -> float:
    return max(x)


# --- derivations as evidence --------------------------------------------------------------------


def test_a_derivation_is_evidence() -> None:
    evidence = derived(square())
    assert evidence.kind == "derivation" and "one verified step" in evidence.text and "no middle term" in evidence.text


@pytest.mark.parametrize("bare", [0, sp.Integer(0), x - x, "0", None, sp.Eq(x, x), [0]])
def test_a_bare_zero_is_no_proof(bare) -> None:
    with pytest.raises(TypeError, match="a bare zero is no proof"):
        derived(bare)
    with pytest.raises(TypeError, match="a bare zero is no proof"):
        claim().prove(bare)


def test_a_derivation_without_steps_or_without_a_mistake_is_no_proof() -> None:
    with pytest.raises(LedgerError, match="at least one step"):
        derived(Derivation(x))
    with pytest.raises(LedgerError, match="common mistake"):
        derived(identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand"))
    with pytest.raises(LedgerError, match="at least one derivation"):
        claim().prove()


# --- agreements --------------------------------------------------------------------------------


def test_an_agreement_holds_within_four_standard_errors_or_a_stated_tolerance() -> None:
    assert agreement(Estimate(1.03, 0.01), 1.0, mistake=("twice", 2.0))
    exact = agreement(
        [1.0, 2.0], [1.0, 2.0 + 1e-15], mistake=("one more", [1.0, 3.0]), tolerance=1e-14, because="rounding"
    )
    assert "to within 1e-14 (rounding)" in exact.text and "one more" in exact.text
    assert "exactly (both are counts)" in agreement(3, 3, mistake=("4", 4), tolerance=0, because="both are counts").text
    several = agreement(Estimate(1.03, 0.01), 1.0, mistake=[("twice", 2.0), ("half", 0.5), ("the root of 2", 2**0.5)])
    assert several.text.endswith("The same check rejects twice (2), half (0.5) and the root of 2 (1.414).")
    twice = {"name": "twice", "value": 2.0, "off": 0.97, "allowed": 0.04}
    assert several.parts["mistake"] == twice and len(several.parts["neighbours"]) == 2


ONE = {"observed": [1.0], "expected": 1.0, "mistake": ("twice", 2.0), "tolerance": 0.1, "because": "rounding"}


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"observed": Estimate(1.05, 0.01), "tolerance": None, "because": ""}, LedgerError, "off by"),
        ({"observed": Estimate(1.0, 0.5), "tolerance": None, "because": ""}, LedgerError, "mistake .* passes"),
        ({"observed": Estimate(1.0, 0.5)}, TypeError, "expected neither for an Estimate"),
        ({"observed": Estimate(1.0, 0.0), "tolerance": None, "because": ""}, LedgerError, "positive standard errors"),
        ({"tolerance": None}, TypeError, "tolerance, because"),
        ({"because": "  "}, TypeError, "tolerance, because"),
        ({"tolerance": np.inf}, LedgerError, "tolerance: expected finite"),
        ({"tolerance": -1}, LedgerError, "non-negative"),
        ({"observed": [np.nan]}, LedgerError, "observed: expected finite"),
        ({"observed": []}, LedgerError, "observed"),
        ({"observed": ["1.0"]}, TypeError, "observed: expected real numbers"),
        ({"expected": "1.0"}, TypeError, "expected: expected real numbers"),
        ({"tolerance": "0.1"}, TypeError, "tolerance: expected real numbers"),
        ({"observed": [1 + 1j]}, TypeError, "observed: expected real numbers"),
        ({"observed": [x]}, TypeError, "observed: expected real numbers"),
        ({"observed": [[1.0], [1.0, 2.0]]}, TypeError, "observed: expected real numbers"),
        ({"observed": np.ma.masked_array([1.0], [True])}, TypeError, "observed: expected numbers, got a masked"),
        ({"observed": np.ones((2, 2)), "expected": [1.0, 1.0]}, LedgerError, r"expected: expected shape \(2, 2\)"),
        ({"observed": [1.0, 1.0], "tolerance": [[0.1], [9.0]]}, LedgerError, "tolerance: expected shape"),
        ({"because": 3}, TypeError, "because: expected words"),
        ({"of": None}, TypeError, "of: expected words"),
        ({"mistake": 2.0}, TypeError, "mistake: expected a name and a value"),
        ({"mistake": ("", 2.0)}, TypeError, "mistake: expected a name"),
        ({"mistake": ("twice", [2.0, 2.0])}, LedgerError, "mistake: expected shape"),
        ({"mistake": []}, TypeError, "mistake: expected a name and a value"),
        ({"mistake": [("twice", 2.0), 3.0]}, TypeError, "mistake: expected a name and a value"),
        ({"mistake": [("twice", 2.0), ("a little more", 1.05)]}, LedgerError, "mistake 'a little more' .* passes"),
        ({"expected": [[1.0], [1.0]]}, LedgerError, "expected: expected shape"),
    ],
)
def test_an_agreement_fails(change, error, words) -> None:
    with pytest.raises(error, match=words):
        agreement(**(ONE | change))


# --- counterexamples ---------------------------------------------------------------------------


def test_a_counterexample_computes_what_it_reports() -> None:
    shown = counterexample(largest, {"x": [0.5, 0.5]}, ">=", 0.9, obeys={"x": [0.95, 0.05]}, tolerance=1e-12, of="it")
    assert shown.text.startswith("It is 0.5 at x = (0.5, 0.5); the sentence requires at least 0.9.")
    assert "does hold at x = (0.95, 0.05), where the value is 0.95" in shown.text
    exact = counterexample(lambda n: sp.sqrt(n), {"n": 2}, "<=", 1, instead=lambda n: n, of="the root")
    assert "corrected statement gives at most 2" in exact.text and r"$\sqrt{2}$" in sentences.markup(exact.record())


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"at": {"x": [0.95]}}, LedgerError, "not a counterexample"),
        ({"obeys": {"x": [0.5]}}, LedgerError, "obeys: the sentence fails there too"),
        ({"obeys": None}, TypeError, "instead, obeys"),
        ({"obeys": None, "instead": 0.8}, LedgerError, "corrected statement fails"),
        ({"quantity": 0.5}, TypeError, "quantity: expected a function"),
        ({"quantity": lambda x: 0.5}, TypeError, "ignores"),
        ({"quantity": lambda x: max(x) * sp.nan}, (TypeError, LedgerError), "expected a"),
        ({"at": {}}, TypeError, "at: expected a mapping from the function's parameters"),
        ({"at": [0.5]}, TypeError, "at: expected a mapping"),
        ({"obeys": [0.95]}, TypeError, "obeys: expected a mapping"),
        ({"required": object()}, TypeError, "required: expected a real number"),
        ({"tolerance": np.inf}, ValueError, "tolerance: expected a non-negative finite"),
        ({"of": " "}, TypeError, "of: expected words"),
        ({"required": "print('x') or 3"}, TypeError, "expected a number, got the text"),
        ({"required": np.nan}, LedgerError, "NaN"),
        ({"tolerance": 0}, TypeError, "tolerance: expected a positive"),
        ({"tolerance": -1}, ValueError, "non-negative"),
        ({"relation": "≈"}, ValueError, "relation: expected one of"),
        ({"relation": ["=="]}, ValueError, "relation: expected one of"),
    ],
)
def test_a_counterexample_fails(change, error, words) -> None:
    good = {"quantity": largest, "at": {"x": [0.5, 0.5]}, "relation": ">=", "required": 0.9,
            "obeys": {"x": [0.95]}, "tolerance": 1e-12, "of": "it"}  # fmt: skip
    with pytest.raises(error, match=words):
        counterexample(**(good | change))


# --- observations ------------------------------------------------------------------------------

SHUFFLED = ("shuffled", Estimate(0.0, 0.1))


@pytest.mark.parametrize(
    "value, outcome", [(1.0, "supported"), (-1.0, "contradicted"), (0.1, "undecided"), (-0.1, "undecided")]
)
def test_an_observation_reports_what_it_saw(value, outcome) -> None:
    seen = observation(Estimate(value, 0.1), ">", 0, null=SHUFFLED, units="6 layers", of="the slope")
    assert seen.outcome == outcome and "6 layers" in seen.text and "shuffled" in seen.text


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"null": ("shuffled", Estimate(2.0, 0.1))}, LedgerError, "null 'shuffled'"),
        ({"null": Estimate(0.0, 0.1)}, TypeError, "null: expected a name"),
        ({"null": ("made up", Estimate(0.0, 0.0))}, LedgerError, "null: expected a positive standard error"),
        ({"observed": Estimate(1.0, 0.0)}, LedgerError, "what cannot vary is no measurement"),
        ({"observed": Estimate([1.0, 2.0], [0.1, 0.1])}, TypeError, "expected one Estimate"),
        ({"units": " "}, TypeError, "units: expected words"),
        ({"of": 3}, TypeError, "of: expected words"),
        ({"reference": [0.0, 1.0]}, LedgerError, "reference: expected a single number"),
        ({"reference": "0"}, TypeError, "reference: expected real numbers"),
        ({"reference": np.nan}, LedgerError, "reference: expected finite"),
        ({"relation": "=="}, ValueError, "relation"),
    ],
)
def test_an_observation_fails(change, error, words) -> None:
    good = {"observed": Estimate(1.0, 0.1), "relation": ">", "reference": 0.0, "null": SHUFFLED,
            "units": "6 layers", "of": "the slope"}  # fmt: skip
    with pytest.raises(error, match=words):
        observation(**(good | change))


# --- verdicts ----------------------------------------------------------------------------------


def test_a_card_is_one_line_that_unfolds_and_a_record() -> None:
    bundle = claim(**PIN).prove(square())._repr_mimebundle_()
    page = bundle["text/html"]
    assert bundle[MIME]["claim"] == "5.1.5" and bundle[MIME]["verdict"] == "proved"
    assert '<details class="claim-card verdict-proved' in page and 'id="claim-5.1.5"' in page
    assert "Section 5.1.4, paragraph 4, sentence 4" in page and "Scope:" in page
    assert page.index('<div class="derivation') < page.index('<details class="claim-card'), "the proof is in view"
    json.dumps(bundle[MIME])


def test_a_derivation_that_was_displayed_is_not_displayed_again() -> None:
    chain = square()
    chain._repr_mimebundle_()
    assert '<div class="derivation' not in claim(**PIN).prove(chain)._repr_mimebundle_()["text/html"]


def test_a_card_reads_as_english() -> None:
    """No word of the checker's own dialect reaches a reader."""
    cards = [claim(**PIN).prove(square()),
             claim("confirmed").confirm(Estimate(1.0, 0.1), 1.0, mistake=("three", 3.0), of="the mean"),
             claim("amended", **PIN).amend(WRONG, holds=square())]  # fmt: skip
    for card in cards:
        shown = card.html() + str(card)
        assert not re.search(r"residual|\bulps?\b|as printed|what holds gives|not >= oo", shown)


WRONG = counterexample(largest, {"x": [2]}, "<=", 1, obeys={"x": [1]}, of="the largest entry")
SEEN = observation(Estimate(1.0, 0.1), ">", 0, null=SHUFFLED, units="6 layers", of="it")


def test_a_measured_card_leads_with_its_outcome() -> None:
    seen = observation(Estimate(-1.0, 0.1), ">", 0, null=SHUFFLED, units="6 layers", of="it")
    card = claim("measured", outcome="contradicted").measure(seen)
    assert str(card).startswith("[measured, contradicted]") and ">contradicted</strong>" in card.html()


def test_html_is_escaped() -> None:
    card = Claim("1", "<b>", "5.1 p1 s1", "$a<b$ & <script>", "proved", scope="<i>", **PIN).prove(square())
    assert "<script>" not in card.html() and r"\(a&lt;b\)" in card.html() and "<b>" not in card.html()


def test_an_id_and_an_outcome_are_escaped_whatever_the_claim_holds() -> None:
    record = claim("measured").measure(SEEN).record() | dict.fromkeys(("claim", "outcome"), '<img src="x">')
    assert "<img" not in html(record) and html(record).count("&lt;img") == 3


def test_every_verdict_has_its_method_and_refuses_to_stand_in_for_another() -> None:
    calls = {
        "proved": lambda c: c.prove(square()),
        "confirmed": lambda c: c.confirm(Estimate(1.0, 0.1), 1.0, mistake=("three", 3.0)),
        "amended": lambda c: c.amend(WRONG, holds=square()),
        "refuted": lambda c: c.refute(WRONG, holds=square()),
        "measured": lambda c: c.measure(SEEN),
        "defined": lambda c: c.define(square()),
    }
    assert set(calls) | {"not decided"} == set(VERDICTS)
    for verdict in VERDICTS:
        for method, call in calls.items():
            shows = PIN if verdict in ("proved", "amended", "refuted", "defined") else {}
            if method == verdict:
                assert call(claim(verdict, **shows)).record()["verdict"] == verdict
            else:
                with pytest.raises(LedgerError):
                    call(claim(verdict, **shows))


def test_a_mistake_is_given_by_its_name() -> None:
    with pytest.raises(TypeError, match="positional"):
        claim("confirmed").confirm(1.0, 1.0, ("three", 3.0))
    assert claim("confirmed").confirm(Estimate(1.0, 0.1), expected=1.0, mistake=("three", 3.0))


def test_numbers_are_confirmed_as_they_are_or_as_evidence() -> None:
    numbers = {"expected": 1.0, "mistake": ("three", 3.0), "of": "the mean"}
    agreed = agreement(Estimate(1.0, 0.1), **numbers)
    made, given = claim("confirmed").confirm(Estimate(1.0, 0.1), **numbers), claim("confirmed").confirm(agreed)
    assert given.evidence == (agreed,) and given.record() == made.record()
    assert claim("confirmed").confirm(agreed, also=(SEEN,)).evidence == (agreed, SEEN)
    for wrong, words in ((square(), "derivation"), (WRONG, "counterexample"), (SEEN, "observation")):
        with pytest.raises(LedgerError, match=f"5.1.5: evidence: expected agreement, got {words}"):
            claim("confirmed").confirm(wrong)
    more = {"expected": 1.0, "mistake": ("three", 3.0), "tolerance": 0, "because": "counts", "of": "it"}
    for name, value in more.items():
        with pytest.raises(TypeError, match=f"^{name}: expected with numbers alone, got evidence"):
            claim("confirmed").confirm(agreed, **{name: value})
    with pytest.raises(TypeError, match="mistake: expected a name and a value, .* got None"):
        claim("confirmed").confirm(Estimate(1.0, 0.1), 1.0)
    with pytest.raises(TypeError, match="expected: expected real numbers, got None"):
        claim("confirmed").confirm(Estimate(1.0, 0.1), mistake=("three", 3.0))


def test_evidence_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(LedgerError, match="expected counterexample"):
        claim("refuted").refute(square(), holds=square())
    with pytest.raises(LedgerError, match="got nothing"):
        claim("defined").define()
    with pytest.raises(LedgerError, match="expected agreement or derivation, got int"):
        claim("amended").amend(WRONG, holds=0)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"verdict": "plausible"}, "verdict: expected one of"),
        (
            {"verdict": "refuted", "holds": ""},
            "^refuted claims need holds; 5.1.5 has none$",
        ),
        (
            {"verdict": "refuted", "grade": ""},
            f"^refuted claims need grade, one of {', '.join(GRADES)}; 5.1.5 has none$",
        ),
        ({"verdict": "amended", "grade": "rather wrong"}, "grade: expected one of"),
        (
            {"verdict": "proved", "holds": "That."},
            "5.1.5: holds: for amended and refuted claims alone, and the verdict is proved",
        ),
        ({"verdict": "proved", "scope": ""}, "proved claims need scope; 5.1.5 has none"),
        ({"verdict": "measured", "outcome": ""}, "measured claims need outcome, one of supported, .*; 5.1.5 has none"),
        ({"verdict": "measured", "outcome": "maybe"}, "outcome: expected one of"),
        (
            {"verdict": "proved", "outcome": "supported"},
            "5.1.5: outcome: for measured claims alone, and the verdict is proved",
        ),
        ({"verdict": "not decided", "reason": ""}, "not decided claims need reason"),
    ],
)
def test_a_malformed_claim_is_refused(fields, words) -> None:
    with pytest.raises(LedgerError, match=words):
        claim(**fields)


@pytest.mark.parametrize("field", ["id", "title", "reading", "verdict", "holds"])
def test_a_claim_is_made_of_text(field) -> None:
    good = {"id": "1", "title": "t", "place": "5.1 p1 s1", "reading": "r", "verdict": "defined"}
    with pytest.raises(LedgerError, match=f"{field}: expected text, got int 3"):
        Claim(**(good | {field: 3}))


def test_what_is_no_evidence_does_not_come_along() -> None:
    for also in (square(), (0,), ("seen",)):
        with pytest.raises(LedgerError, match=r"5.1.5: (also|evidence): expected"):
            claim("amended").amend(WRONG, holds=square(), also=also)
    assert len(claim("amended", **TWICE).amend(WRONG, holds=square(), also=(square(),)).evidence) == 3


@pytest.mark.parametrize("place", ["5.1.4", "page 3", "5.1.4 p4", "5.1.4 p4 s4, p5 s1", ""])
def test_a_place_names_a_sentence(place) -> None:
    with pytest.raises(LedgerError, match="place: expected"):
        Claim("1", "t", place, "r", "defined")


def test_places_of_several_sentences_and_of_the_books_own() -> None:
    two = Claim("1", "t", "5.1.4 p4 s4; 5.1.9 p2 s1", "r", "defined")
    own = Claim("1", "t", "beyond 5.1.4", "r", "defined")
    assert two.places == ["5.1.4 p4 s4", "5.1.9 p2 s1"] and two.section == "5.1.4" and not two.is_own
    assert own.is_own and own.section == "beyond 5.1.4"


@pytest.mark.parametrize("key", ['1" onclick="x', "<b>", "a b", "", "a//b"])
def test_an_id_is_made_of_words(key) -> None:
    with pytest.raises(LedgerError, match="id: expected words"):
        Claim(key, "t", "5.1 p1 s1", "r", "defined")


# --- the book as a whole -----------------------------------------------------------------------


def book(root: Path, claims: str, *records: dict) -> Path:
    """Make a book of one chapter with the given claims file and stored verdict records."""
    (root / "chapters").mkdir()
    (root / "linewise.yml").write_text("sources: []")
    (root / "chapters/one.claims.yml").write_text(claims)
    outputs = [{"output_type": "execute_result", "data": {MIME: r}} for r in records]
    cells = [{"cell_type": "code", "source": "", "outputs": outputs}, {"cell_type": "markdown", "source": ""}]
    (root / "chapters/one.ipynb").write_text(json.dumps({"cells": cells}))
    return root


CLAIMS = '"5.1.5": {title: t, place: 5.1.4 p4 s4, reading: "It is $x$.", verdict: proved, scope: all}\n'
CHECK: dict = {
    "claim": "5.1.5", "title": "t", "place": "5.1.4 p4 s4", "reading": "It is $x$.", "verdict": "proved",
    "scope": "all", "evidence": [],
}  # fmt: skip
DIFFER = "the claims file and the stored check differ; execute the chapter anew"


def test_a_sound_book_has_no_problem(tmp_path: Path, capsys) -> None:
    root = book(tmp_path, CLAIMS, CHECK)
    assert audit(root) == [] and main([str(root)]) == 0
    assert "1 proved" in capsys.readouterr().out
    (row,) = collate(root)
    assert (row.page, row.anchor, row.record) == ("chapters/one", "claim-5.1.5", CHECK)


@pytest.mark.parametrize(
    "claims, records, words",
    [
        (CLAIMS, [], "expected one executed check, found 0"),
        (CLAIMS, [CHECK, CHECK], "found 2"),
        (CLAIMS, [CHECK, {**CHECK, "claim": "9.9"}], "names no claim"),
        (CLAIMS, [{**CHECK, "verdict": "refuted"}], "5.1.5: verdict: the claims file and"),
    ],
)
def test_an_unsound_book_is_found_out(tmp_path: Path, claims, records, words, capsys) -> None:
    root = book(tmp_path, claims, *records)
    assert any(words in problem for problem in audit(root))
    assert main([str(root)]) == 1 and "problem" in capsys.readouterr().out


def test_a_claim_that_is_not_decided_has_no_check(tmp_path: Path) -> None:
    open_claim = '"5.1.5": {title: t, place: 5.1.4 p4 s4, reading: r, verdict: not decided, reason: taste}\n'
    assert audit(book(tmp_path, open_claim)) == []
    (tmp_path / "chapters/one.ipynb").unlink()
    book_with_check = tmp_path / "other"
    book_with_check.mkdir()
    problems = audit(book(book_with_check, open_claim, {**CHECK, "verdict": "not decided"}))
    assert any("has an executed check" in p for p in problems)


def test_two_cards_of_one_anchor_are_found_out(tmp_path: Path) -> None:
    line = '"{}": {{title: t, place: beyond 5.1.4, reading: r, verdict: not decided, reason: taste}}\n'
    assert audit(book(tmp_path, line.format("a/b-c") + line.format("a/b"))) == []
    other = tmp_path / "other"
    other.mkdir()
    [problem] = audit(book(other, line.format("a/b-c") + line.format("a-b/c")))
    assert problem == "a-b/c: its card would have the id of a/b-c: claim-a-b-c"


def test_a_claim_in_two_chapters_and_a_check_without_a_claims_file_are_found_out(tmp_path: Path) -> None:
    root = book(tmp_path, CLAIMS, CHECK)
    for suffix in ("claims.yml", "ipynb"):
        (root / f"chapters/two.{suffix}").write_text((root / f"chapters/one.{suffix}").read_text())
    assert any("stands in one.claims.yml and in two.claims.yml" in p for p in audit(root))
    (root / "chapters/two.claims.yml").unlink()
    assert any("two.ipynb: the check of 5.1.5 names no claim" in p for p in audit(root))


@pytest.mark.parametrize(
    "text, words",
    [
        ("# one\n" + CLAIMS + CLAIMS, "one.claims.yml: 5.1.5: stands twice, in line 2 and in line 3"),
        ('"1": {place: "5.1 p1 s1", verdict: proved}', "one.claims.yml: 1: title, reading: missing"),
        ('"1": {title: t, place: 5.1 p1 s1, reading: s, verdict: proved, scopee: all}', "1: scopee: no such key; did"),
        ("[]", r"expected a mapping from claim ids to their fields, got \[\]"),
        ('"1": {title: [}', "expected YAML"),
    ],
)
def test_a_malformed_claims_file_is_refused(tmp_path: Path, text, words) -> None:
    (tmp_path / "one.claims.yml").write_text(text)
    with pytest.raises(LedgerError, match=words):
        load_claims("one", tmp_path)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="chapter: expected the claims of 'none'"):
        load_claims("none", tmp_path)
    with pytest.raises(FileNotFoundError, match="root: expected a folder that holds chapters/"):
        audit(tmp_path)
    assert main([str(tmp_path)]) == 2


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "expected a notebook"),
        ("{}", "expected a notebook"),
        ('{"cells": [{"cell_type": "code"}]}', "expected a notebook"),
        ("[1]", "expected a notebook"),
        (json.dumps({"cells": [{"cell_type": "code", "outputs": [{"data": {MIME: {"claim": "1"}}}]}]}), "a record"),
    ],
)
def test_what_is_no_notebook_is_named_in_one_line(tmp_path: Path, text: str, words: str, capsys) -> None:
    root = book(tmp_path, CLAIMS, CHECK)
    (root / "chapters/one.ipynb").write_text(text)
    assert main([str(root)]) == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if "one.ipynb" in line]
    assert "one.ipynb: expected" in line and words in line


@pytest.mark.parametrize(("relation", "required"), [(">", 1.0), ("<", 2.0)])
def test_a_strict_relation_that_holds_is_not_broken_by_a_wide_tolerance(relation: str, required: float) -> None:
    """1.5 is more than 1 and less than 2, however rough the numbers; at 1 or 2 itself both fail."""
    words = {"obeys": {"x": 100.0 if relation == ">" else -100.0}, "of": "x", "tolerance": 0.5, "relation": relation}
    with pytest.raises(LedgerError, match="not a counterexample"):
        counterexample(lambda x: x, at={"x": 1.5}, required=required, **words)
    assert counterexample(lambda x: x, at={"x": required}, required=required, **words)
    with pytest.raises(LedgerError, match="corrected statement fails"):
        counterexample(lambda x: x, at={"x": required}, required=required, instead=required, **words)


def test_an_instance_does_not_both_break_and_obey_a_sentence() -> None:
    values = iter([5, 4])
    with pytest.raises(LedgerError, match="obeys: expected another instance"):
        counterexample(lambda x: next(values) + x, {"x": 0}, "==", 4, obeys={"x": 0}, of="x")


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [(1.0, -0.5, "positive standard error"), (1.0, 0.0, "positive standard error"), (1.0, np.inf, "finite"),
     (np.nan, 0.1, "finite")],
)  # fmt: skip
def test_an_observation_takes_finite_numbers_and_positive_errors(value: float, error: float, words: str) -> None:
    """With an error of -0.5 the value 1 would support that it is above 2."""
    given, other = SimpleNamespace(value=value, standard_error=error), Estimate(0.0, 1.0)
    for one, null in ((given, other), (other, given)):
        with pytest.raises(LedgerError, match=words):
            observation(one, ">", 2.0, null=("none", null), units="30 runs", of="it")
    with pytest.raises(LedgerError, match="null: expected another estimate"):
        observation(other, ">", 2.0, null=("itself", other), units="30 runs", of="it")
    with pytest.raises(LedgerError, match="positive standard errors|finite"):
        agreement(given, 1.0, mistake=("far", 100.0), of="it")


# --- what readers see, word for word ------------------------------------------------------------


def test_evidence_reads_as_written() -> None:
    counts = {"tolerance": 0, "because": "both are counts", "of": "the number of keys"}
    one = agreement(3, 3, mistake=("one too many", 4), **counts)
    assert one.text == (
        "The number of keys: observed 3, expected 3; they agree exactly (both are counts). "
        "The same check rejects one too many (4)."
    )
    assert one.record() == {
        "kind": "agreement", "of": "the number of keys", "observed": 3.0, "expected": 3.0, "tolerance": 0.0,
        "because": "both are counts", "mistake": {"name": "one too many", "value": 4.0, "off": 1.0, "allowed": 0.0},
    }  # fmt: skip
    many = agreement([1.0, 2.5], [1.0, 2.0], mistake=("half", 0.5), tolerance=[0.25, 0.5], because="two halves")
    assert many.text == (
        "2 values, observed 1 to 2.5, expected 1 to 2; they agree to within 0.25 to 0.5 (two halves). "
        "The same check rejects half (0.5)."
    )
    assert many.parts["count"] == 2 and many.parts["observed"] == {"least": 1.0, "greatest": 2.5}
    drawn = agreement(Estimate(1.03, 0.01), 1.0, mistake=("twice", 2.0), of="the mean")
    assert drawn.text == (
        "The mean: observed 1.03 ± 0.01, expected 1; they agree to within 4 standard errors. "
        "The same check rejects twice (2)."
    )
    assert drawn.parts["observed"] == {"value": 1.03, "standard_error": 0.01}
    assert drawn.parts["tolerance"] == {"standard_errors": 4.0} and "because" not in drawn.parts
    drawn = agreement(Estimate([1.0, 1234.5678], [0.1, 0.1]), [1.0, 1234.5], mistake=("0", 0))
    assert drawn.text == (
        "2 values, observed 1 to 1235, expected 1 to 1234; they agree to within 4 standard errors. "
        "The same check rejects 0 (0)."
    )


#: What the engine writes into a card, in another language.
GERMAN = {
    "{of}: {count} values, observed {observed}, expected {expected}; {within}.":
        "{of}: {count} Werte, {observed} statt {expected}; {within}.",
    "{least} to {greatest}": "{least} bis {greatest}",
    "they agree exactly ({because})": "sie sind gleich ({because})",
    "The same check rejects {mistakes}.": "Dieselbe Probe verwirft {mistakes}.",
    "{one} and {last}": "{one} und {last}",
    "proved": "bewiesen",
    "Scope:": "Umfang:",
    "section {number}": "Abschnitt {number}",
    "paragraph {number}": "Absatz {number}",
    "{place}:": "{place} -",
    "Assumed: {taken}.": "Angenommen: {taken}.",
    "A common mistake, rejected": "Ein Fehler, verworfen",
}  # fmt: skip


def test_a_card_speaks_the_language_of_its_book() -> None:
    german = dataclasses.replace(standard(), phrases=GERMAN)
    counted = agreement([1, 2], [1, 2], tolerance=0, because="Anzahlen", mistake=("alles", 3), of="die Zeilen")
    assert sentences.markup(counted.record(), german.say) == (
        "Die Zeilen: 2 Werte, 1 bis 2 statt 1 bis 2; sie sind gleich (Anzahlen). Dieselbe Probe verwirft alles (3)."
    )
    chain = {
        "name": "", "mistakes": [{"name": "falsch", "line": 1, "plain": "z"}], "assumed": [{"tex": "x>0"}],
        "lines": [{"plain": "x"}, {"plain": "y", "relation": "=", "rules": ["so"]}],
    }  # fmt: skip
    record = {
        "claim": "2/a", "title": "T", "place": "2 p1 s3", "reading": "R", "verdict": "proved", "scope": "immer",
        "derivations": [chain],
        "evidence": [{"kind": "derivation", "name": "N", "steps": 1, "mistakes": ["a", "b"]}],
    }  # fmt: skip
    shown = html(record, german)
    for words in (
        ">bewiesen</strong>", "Abschnitt 2, Absatz 1, sentence 3 -</strong> R", "<strong>Umfang:</strong> immer",
        r"Angenommen: \(x&gt;0\).", ">Ein Fehler, verworfen</summary>", "Dieselbe Probe verwirft a und b.",
    ):  # fmt: skip
        assert words in shown, words
    assert "verdict-proved" in shown and "bewiesen" not in html(record, standard())
    assert "Scope" not in latex(record, german) and "Scope" in plain(record)


def test_a_counterexample_reads_as_written_and_in_formulas() -> None:
    shown = counterexample(
        lambda n, xs: sp.sqrt(n) + sum(xs), {"n": 2, "xs": np.asarray([0, 1])}, "<", 2, instead=lambda n, xs: n + 1,
        obeys={"n": 1, "xs": [0]}, of="the sum",
    )  # fmt: skip
    assert shown.text == (
        "The sum is 1 + sqrt(2) at n = 2, xs = (0, 1); the sentence requires less than 2. "
        "The corrected statement gives less than 3. The sentence does hold at n = 1, xs = (0), where the value is 1."
    )
    assert sentences.markup(shown.record()) == (
        r"The sum is $1 + \sqrt{2}$ at n = 2, xs = (0, 1); the sentence requires less than 2. "
        "The corrected statement gives less than 3. The sentence does hold at n = 1, xs = (0), where the value is $1$."
    )
    assert shown.record() == {
        "kind": "counterexample", "of": "the sum", "at": [["n", 2], ["xs", [0, 1]]],
        "observed": {"exact": "1 + sqrt(2)", "tex": r"1 + \sqrt{2}"}, "relation": "<", "required": 2, "instead": 3,
        "obeys": {"at": [["n", 1], ["xs", [0]]], "observed": {"exact": "1"}},
    }  # fmt: skip
    named = counterexample(largest, {"x": [2.5]}, "==", 1.0, instead=2.5, tolerance=1e-9, of="it", where="the worst x")
    assert named.text == ("It is 2.5 at the worst x; the sentence requires 1. The corrected statement gives 2.5.")
    assert named.parts["where"] == "the worst x" and "at" not in named.parts
    assert (named.parts["relation"], named.parts["required"], named.parts["tolerance"]) == ("==", 1.0, 1e-9)


@pytest.mark.parametrize(
    ("relation", "side", "value", "outcome"),
    [(">", "more", 1.0, "supports"), ("<", "less", 1.0, "contradicts"), (">", "more", 0.3, "leaves open")],
)
def test_an_observation_reads_as_written(relation: str, side: str, value: float, outcome: str) -> None:
    null = ("shuffled", Estimate(0.0, 0.1))
    seen = observation(Estimate(value, 0.1), relation, 0, null=null, units="6 layers", of="the slope")
    assert seen.text == (
        f"The slope is {value:g} ± 0.1 over 6 layers; the sentence asks for {side} than 0, which the measurement "
        f"{outcome}. In the comparison (shuffled) the value is 0 ± 0.1, which would not support the sentence."
    )
    assert seen.record() == {
        "kind": "observation", "of": "the slope", "observed": {"value": value, "standard_error": 0.1},
        "relation": relation, "reference": 0.0, "units": "6 layers",
        "null": {"name": "shuffled", "value": 0.0, "standard_error": 0.1}, "outcome": seen.outcome,
    }  # fmt: skip


@pytest.mark.parametrize(("relation", "sign"), [(">", 1), ("<", -1)])
def test_an_outcome_needs_more_than_four_standard_errors(relation: str, sign: int) -> None:
    for errors, outcome in ((4.01, "supported"), (4.0, "undecided"), (-4.0, "undecided"), (-4.01, "contradicted")):
        seen = observation(
            Estimate(8.0 + sign * errors / 4, 0.25), relation, 8, null=("none", Estimate(8.0, 1.0)), units="u", of="it"
        )
        assert seen.outcome == outcome, errors


def test_an_agreement_may_be_off_by_its_tolerance_and_no_more() -> None:
    plain = {"mistake": ("far", 99.0), "because": "a half"}
    for observed, expected in ((1.5, 1.0), (0.5, 1.0)):
        assert agreement(observed, expected, tolerance=0.5, **plain)
        assert agreement(Estimate(observed, 0.125), expected, mistake=("far", 99.0))  # four standard errors
        for call in (
            lambda o=observed, e=expected: agreement(o, e, tolerance=0.4999, **plain),
            lambda o=observed, e=expected: agreement(Estimate(o, 0.1249), e, mistake=("far", 99.0)),
        ):
            with pytest.raises(LedgerError, match=r"off by 0\.5, allowed 0\.4"):
                call()
    with pytest.raises(LedgerError, match=r"the mistake 'near' \(1.5\) passes the same check"):
        agreement(1.0, 1.0, mistake=("near", 1.5), tolerance=0.5, because="a half")
    # One entry that the mistake misses is enough, and one that the expectation misses is too much.
    assert agreement([1.0, 2.0], [1.0, 2.0], mistake=("half", [1.0, 3.0]), tolerance=0.5, because="a half")
    with pytest.raises(LedgerError, match="off by"):
        agreement([1.0, 2.0], [1.0, 3.0], mistake=("half", [9.0, 9.0]), tolerance=0.5, because="a half")


@pytest.mark.parametrize(
    ("relation", "breaks", "holds"),
    [("==", 1.5, 1.25), ("==", 0.5, 0.75), ("<=", 1.5, 1.25), (">=", 0.5, 0.75), ("<", 1.0, 0.5), (">", 1.0, 1.5)],
)
def test_a_relation_leaves_its_tolerance_to_the_sentence(relation: str, breaks: float, holds: float) -> None:
    """At most and at least allow for the tolerance; less and more are broken where the numbers break them."""
    far = {"==": 1.0, "<=": -9.0, ">=": 9.0, "<": -9.0, ">": 9.0}[relation]
    words = {"relation": relation, "required": 1.0, "tolerance": 0.25, "obeys": {"x": far}, "of": "x"}
    assert counterexample(lambda x: x, {"x": breaks}, **words)
    if relation in {"==", "<=", ">="}:
        with pytest.raises(LedgerError, match="not a counterexample"):
            counterexample(lambda x: x, {"x": holds}, **words)
    else:
        with pytest.raises(LedgerError, match="not a counterexample"):
            counterexample(lambda x: x, {"x": holds - 0.01 if relation == "<" else holds + 0.01}, **words)


def test_exact_values_need_no_tolerance_and_a_function_must_use_its_instance() -> None:
    assert counterexample(lambda n: sp.Rational(1, n), {"n": 3}, ">", 1, obeys={"n": sp.Rational(1, 2)}, of="it")
    for quantity in (lambda x: 0.5, lambda x, y: 1, lambda *, x: 2):
        with pytest.raises(TypeError, match=r"quantity: expected a function of the instance, got one that ignores \("):
            counterexample(quantity, {"x": 1}, ">", 3, obeys={"x": 4}, of="it")
    five = 5
    pretending = (lambda x: x * 0 + 5, lambda x: x - x + five, lambda x: 0 * x + 5, lambda x: five + x**0 - 1,
                  lambda x: x / x + 4, lambda x: float(x) * 0 + 5, lambda x: abs(x) ** 0 + 4,
                  lambda x: 0 * abs(x) + 5, lambda x: 5 + 0.0 * math.sqrt(x), lambda x: abs(x) - abs(x) + 5,
                  lambda x: abs(x) + five - abs(x), lambda x: math.sqrt(x + 1) / math.sqrt(1 + x) + 4,
                  lambda x: (abs(x) + 1) * (abs(x) - 1) - abs(x) ** 2 + 6, lambda x: float(abs(x) * 0 + 5),
                  lambda x: np.ones(x)[:2].sum() - np.ones(x)[:2].sum() + 5, lambda x: max(0 * x, 5))  # fmt: skip
    for quantity in pretending:
        with pytest.raises(TypeError, match=r"one whose value does not depend on it"):
            counterexample(quantity, {"x": 4}, "<=", 3, instead=6, tolerance=1e-9, of="it")

    def by_effect(x):
        made = []
        made.append(x)
        return made[0] + 1

    for honest in (by_effect, lambda x: 5 * x, lambda x: 5 if x == 4 else 0, lambda x: x % 2 + 5,
                   lambda x: np.ones(x).sum() + 1, lambda x: abs(x) - math.sqrt(x) + 5, lambda x: 0 * abs(x) + x,
                   lambda x: abs(x) - abs(x + 1) + x + 5, lambda x: np.ones(x)[0] - np.ones(x)[1] + 5,
                   lambda x: sum(k - k for k in range(x)) + 5,
                   lambda x: (sp.eye(2) * sp.ones(2) * x - sp.ones(2) * x * sp.eye(2))[0, 0] + 5):  # fmt: skip
        assert counterexample(honest, {"x": 4}, "<=", 3, instead=20, tolerance=1e-9, of="it")
    kept = counterexample(lambda x, y: y, {"x": 1, "y": 2}, ">", 3, obeys={"x": 1, "y": 4}, of="it")
    assert kept.record()["at"] == [["x", 1], ["y", 2]]
    for words, value in (("NaN", np.float32("nan")), ("expected a real number", 1j), ("expected a real number", [1])):
        with pytest.raises((LedgerError, TypeError), match=f"quantity: .*{words}"):
            counterexample(lambda x: x, {"x": value}, ">", 3, obeys={"x": 4}, tolerance=1e-9, of="it")


@pytest.mark.parametrize("wrap", [list, tuple, set, frozenset, lambda texts: dict.fromkeys(texts, 1), np.asarray])
def test_no_text_is_evaluated_wherever_it_stands(wrap, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr("builtins.print", lambda *words: called.append(words))
    for value in (wrap(["print('seen') or 3"]), wrap(["3"])):
        with pytest.raises(TypeError, match=r"required: expected a real number, got \w+"):
            counterexample(lambda n: n, {"n": 2}, "<=", value, obeys={"n": 1}, of="it")
    assert not called


@pytest.mark.parametrize("two", [2, 2.0, sp.Integer(2), Fraction(2), np.int64(2), np.float32(2), np.asarray(2.0)])
def test_numbers_of_every_kind_are_compared_exactly(two) -> None:
    at = {"at": {"n": 2}, "obeys": {"n": 3}, "tolerance": sp.Rational(1, 10**30), "of": "it"}
    assert counterexample(lambda n: two + n - 2, relation=">", required=sp.Rational(5, 2), **at)
    with pytest.raises(LedgerError, match="not a counterexample"):
        counterexample(lambda n: two + n - 2, relation=">=", required=2, **at)


def test_an_error_says_what_was_given() -> None:
    for call, words in (
        (lambda: agreement([2.0], 1.0, mistake=("far", 9.0), tolerance=0.5, because="a half"),
         "observed 2, expected 1: off by 1, allowed 0.5 (a half)"),
        (lambda: agreement(1.0, 1.0, mistake=("far", 9.0), because="a half"),
         "tolerance, because: expected both for plain numbers: how far off, and why that far, got None and 'a half'"),
        (lambda: agreement(Estimate(1.0, 0.1), 1.0, mistake=("far", 9.0), tolerance=2),
         "tolerance, because: expected neither for an Estimate: its standard errors are the tolerance, got 2 and ''"),
        (lambda: agreement(Estimate([1.0, 1.0], [0.5, 0.0]), 1.0, mistake=("far", 9.0)),
         "observed: expected positive standard errors, got 0 to 0.5; exact numbers take tolerance=0 and a reason"),
        (lambda: derived(identity((x + 1) ** 2, x**2 + 2 * x + 1, because="expand")),
         "chain: expected a common mistake that one of the steps rejects, got none in 1"),
    ):  # fmt: skip
        with pytest.raises((LedgerError, TypeError)) as error:
            call()
        assert str(error.value) == words


def test_a_derivation_reads_as_written() -> None:
    one = square()
    assert derived(one).text == "Derived in one verified step. The same check rejects no middle term."
    assert derived(one).record() == {
        "kind": "derivation", "name": "", "steps": 1, "mistakes": ["no middle term"],
        "derivation": fingerprint(one.record()),
    }  # fmt: skip
    assert derived(one).block is one
    more = Derivation(x * (x + 1), "The product")
    more.step(x**2 + x, because="expand", mistake=("no second term", x**2))
    more.step((x + 1) ** 2 - x - 1, because="complete", mistake=("a sign", (x + 1) ** 2 - x + 1))
    assert derived(more).text == (
        "The product: derived in 2 verified steps. The same check rejects no second term and a sign."
    )
    more.step(x * (1 + x), because="factor", mistake=("twice", 2 * x * (1 + x)))
    assert derived(more).text.endswith("in 3 verified steps. The same check rejects no second term, a sign and twice.")


# --- a card, word for word ------------------------------------------------------------------------


def test_a_card_has_a_line_for_each_part() -> None:
    card = claim("amended", **PIN).amend(WRONG, holds=square())
    head, holds, grade, *evidence = str(card).splitlines()
    assert head == "[amended] 5.1.5 (5.1.4 p4 s4): It is $x$." and repr(card) == str(card)
    assert (holds, grade) == ("  What holds: That.", f"  Grade: {GRADES[2]}")
    assert evidence == [f"  {e.text}" for e in card.evidence]
    assert card.record() == {
        "claim": "5.1.5", "title": "A square", "place": "5.1.4 p4 s4", "reading": "It is $x$.", "verdict": "amended",
        "holds": "That.", "grade": GRADES[2], "evidence": [e.record() for e in card.evidence],
    }  # fmt: skip
    page = display.without_styles(card.html())
    assert '<p class="claim-holds"><strong>What holds:</strong> That.</p>' in page
    assert f'<p class="claim-grade"><strong>Grade:</strong> {GRADES[2]}</p>' in page
    assert '<strong class="claim-verdict">amended</strong> <span class="claim-title">A square</span>' in page
    assert '<small class="claim-id">5.1.5</small>' in page and "<strong>Section 5.1.4, paragraph 4, sentence 4:" in page
    assert page.count("<li>") == len(card.evidence) == 2 and r"It is \(x\)." in page
    open_claim = claim("not decided")
    assert open_claim.anchor == "claim-5.1.5" and Claim("a/b", "t", "5.1 title", "r", "defined").anchor == "claim-a-b"


@pytest.mark.parametrize(
    ("place", "origin"),
    [
        ("5.1.4 p4 s12", "Section 5.1.4, paragraph 4, sentence 12"),
        ("5.1.4 p14 s2; 5.2 p1 s1", "Section 5.1.4, paragraph 14, sentence 2 and elsewhere"),
        ("5.1 title", "Section 5.1, heading"),
        ("article.2 p3 s1", "Article, part 2, paragraph 3, sentence 1"),
        ("article.2 title", "Article, part 2, heading"),
        ("report.2.1.3 p1 s1", "Report, section 2.1.3, paragraph 1, sentence 1"),
        ("report.0 p1 s2", "Report, abstract, paragraph 1, sentence 2"),
        ("note.0 p2 s1", "Note, opening, paragraph 2, sentence 1"),
        ("note.3 p1 s1", "Note, part 3, paragraph 1, sentence 1"),
        ("beyond 5.1.4", "Our statement"),
    ],
)
def test_a_card_says_where_its_sentence_is(place: str, origin: str) -> None:
    made = Claim("1", "t", place, "r", "defined", conventions=FOUR_SOURCES, **PIN)
    assert f"<strong>{origin}:</strong>" in made.define(square()).html()
    assert made.section == (place if place.startswith("beyond") else place.split()[0])


def test_evidence_of_each_kind_has_its_place() -> None:
    agreed = agreement(3, 3, mistake=("4", 4), tolerance=0, because="counts")
    assert claim("defined", **PIN).define(square(), agreed).evidence[1] is agreed
    assert claim("refuted").refute(WRONG, holds=agreed, also=[SEEN, WRONG]).evidence[1:] == (agreed, SEEN, WRONG)
    for wrong, words in (
        (lambda: claim("defined").define(WRONG), "expected agreement or derivation, got counterexample"),
        (lambda: claim("measured").measure(agreed), "expected observation, got agreement"),
        (lambda: claim("measured").measure(), "expected observation, got nothing"),
        (lambda: claim("refuted").refute(agreed, holds=agreed), "expected counterexample, got agreement"),
        (lambda: claim("amended").amend(WRONG, holds=WRONG), "expected agreement or derivation, got counterexample"),
    ):
        with pytest.raises(LedgerError, match=f"5.1.5: evidence: {words}"):
            wrong()
    against = observation(Estimate(-1.0, 0.1), ">", 0, null=SHUFFLED, units="6 layers", of="it")
    assert claim("measured", outcome="undecided").measure(SEEN, against).record()["outcome"] == "undecided"
    with pytest.raises(LedgerError, match=r"says supported, the observations undecided \(supported: 1 "):
        claim("measured").measure(SEEN, against)
    assert claim("measured").measure(SEEN, SEEN)


def test_a_claims_file_gives_text_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "one.claims.yml").write_text(
        '"5.1":\n  title: two\n   lines\n  place: 5.1 p1 s1\n  reading: |\n    a\n    b\n  verdict: defined\n'
    )
    found = load_claims("one", tmp_path)
    assert list(found) == ["5.1"] and found["5.1"] == Claim(
        "5.1", "two lines", "5.1 p1 s1", "a b", "defined", chapter="one"
    )


@pytest.mark.parametrize(
    "field", ["title", "place", "reading", "verdict", "holds", "grade", "scope", "outcome", "reason", "how"]
)
@pytest.mark.parametrize(("written", "got"), [("", "NoneType None"), ("5.1", "float 5.1"), ("[a]", "list")])
def test_a_field_of_a_claims_file_is_text(tmp_path: Path, field: str, written: str, got: str) -> None:
    """An empty field is nothing, and not the word None."""
    entry = {"title": "t", "place": "5.1 p1 s1", "reading": "r", "verdict": "defined"} | {field: written}
    lines = "".join(f"  {name}: {text}\n" for name, text in entry.items())
    (tmp_path / "one.claims.yml").write_text(f'"1":\n{lines}')
    with pytest.raises(LedgerError, match=rf"one\.claims\.yml: 1: {field}: expected text, got {got}"):
        load_claims("one", tmp_path)


# --- records -----------------------------------------------------------------------------------------


def test_a_card_is_drawn_again_from_its_record_alone() -> None:
    """Through JSON, as a notebook stores it: plain text, HTML and LaTeX are the same to the byte."""
    chain = Derivation((x + 1) ** 2, "The $<$ square")
    chain.at_least(2 * x + 1, gap=x**2, because="a square is not negative & 100 %", mistake=("too much", x**2 + 9 * x))
    agreed = agreement([0.1, 3.0], [0.1, 3.0], mistake=("4", 4), tolerance=1e-9, because="rounding")
    odd = counterexample(lambda n, f: sp.oo * int(n), {"n": True, "f": square()}, "<", sp.oo, obeys={"n": -1, "f": []},
                         of="the count of d_k")  # fmt: skip
    least = [{"left": "(x + 1)**2", "at least": "2*x + 1", "for": "x positive"}]
    for made in (lambda: claim(shows=least).prove(chain),
                 lambda: claim("amended").amend(odd, holds=agreed, also=(SEEN, WRONG))):  # fmt: skip
        bundle = made()._repr_mimebundle_()
        record = json.loads(json.dumps(bundle[MIME], allow_nan=False))
        assert bundle == {"text/plain": plain(record), "text/html": html(record), "text/latex": latex(record),
                          MIME: record}  # fmt: skip
    shown = json.loads(json.dumps(chain._repr_mimebundle_()))
    record = shown.pop(display.MIME)
    assert shown == {
        f"text/{kind}": getattr(display, kind)(record) for kind in ("plain", "html", "latex")
    } and record["lines"][1] == {
        "plain": "2*x + 1", "tex": "2 x + 1", "relation": ">=", "rules": [],
        "reason": "a square is not negative & 100 %", "gap": {"plain": "x**2", "tex": "x^{2}"},
    }  # fmt: skip


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG has it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_verdict_can_be_read_on_a_light_and_on_a_dark_page(verdict: str) -> None:
    record = claim("measured").measure(SEEN).record() | {"verdict": verdict}
    [badge] = re.findall(r"color:#fff;background:(#\w{6})", html(record))
    assert f"solid {badge}" in html(record)
    assert 1.05 / (luminance(badge) + 0.05) > 4.5, "white letters on the badge"
    assert (luminance(badge) + 0.05) / (luminance("#111111") + 0.05) > 3, "the badge on the dark page of JupyterLab"


def test_a_card_holds_the_derivations_that_it_displays_and_no_others() -> None:
    chain = square()
    first, second = (claim(**PIN).prove(chain)._repr_mimebundle_()[MIME] for _ in range(2))
    assert first["derivations"] == [chain.record()] and "derivations" not in second
    assert first["evidence"] == second["evidence"]
    assert first["evidence"][0]["derivation"] == fingerprint(chain.record())
    assert fingerprint(chain.record() | {"name": "another"}) != fingerprint(chain.record())


def test_numbers_of_a_record_have_the_digits_that_are_said() -> None:
    """Further digits differ from machine to machine, and a stored record is compared to the byte."""
    one, other = (
        agreement(Estimate(1.0 + e, 0.1 + e), 1.0 + e, mistake=("far", 9.0 + e)).record() for e in (0.0, 1e-9)
    )
    assert one == other


# --- problems of a book, word for word --------------------------------------------------------------


def test_each_problem_of_a_book_is_reported_once(tmp_path: Path) -> None:
    for number, (claims, records, found) in enumerate([
        (CLAIMS, [], ["one.claims.yml: 5.1.5: expected one executed check, found 0; one.ipynb has not been executed"]),
        (CLAIMS, [CHECK, CHECK], ["one.claims.yml: 5.1.5: expected one executed check, found 2"]),
        (CLAIMS, [CHECK, CHECK | {"claim": "9.9"}], ["one.ipynb: the check of 9.9 names no claim"]),
        (CLAIMS, [CHECK | {"verdict": "refuted"}], [f"5.1.5: verdict: {DIFFER}"]),
        (CLAIMS.replace("verdict: proved, scope: all", "verdict: not decided, reason: r"),
         [CHECK | {"verdict": "not decided"}],
         ["one.claims.yml: 5.1.5: is not decided, and yet has an executed check"]),
    ]):  # fmt: skip
        (tmp_path / str(number)).mkdir()
        assert audit(book(tmp_path / str(number), claims, *records)) == found


def test_chapters_are_collated_in_order_and_checkpoints_are_not_read(tmp_path: Path) -> None:
    root = book(tmp_path, CLAIMS, CHECK)
    (root / "chapters/a").mkdir()
    line = '"{}": {{title: t, place: beyond 5.1.4, reading: r, verdict: not decided, reason: taste}}\n'
    (root / "chapters/a/zero.claims.yml").write_text(line.format("b") + line.format("a"))
    hidden = root / "chapters/.ipynb_checkpoints"
    hidden.mkdir()
    (hidden / "x.ipynb").write_text((root / "chapters/one.ipynb").read_text().replace("5.1.5", "9.9"))
    assert audit(root) == []
    assert [(row.page, row.claim.id, row.record) for row in collate(root)] == [
        ("chapters/a/zero", "b", None), ("chapters/a/zero", "a", None), ("chapters/one", "5.1.5", CHECK),
    ]  # fmt: skip
    (root / "chapters/two.ipynb").write_text((root / "chapters/one.ipynb").read_text().replace("5.1.5", "9.9"))
    assert audit(root) == ["two.ipynb: the check of 9.9 names no claim"]
    (root / "chapters/two.claims.yml").write_text(line.format("b"))
    assert audit(root)[0] == "b: stands in zero.claims.yml and in two.claims.yml"


@pytest.mark.parametrize("record", [{"claim": "5.1.5"}, {"verdict": "proved"}, "text", ["claim", "verdict"]])
def test_a_record_has_its_claim_and_verdict(tmp_path: Path, record) -> None:
    with pytest.raises(LedgerError, match=r"one\.ipynb: expected a record with its claim and verdict, got"):
        collate(book(tmp_path, CLAIMS, record))


def test_entries_of_a_claims_file_have_their_fields(tmp_path: Path) -> None:
    good = "{title: t, place: 5.1 p1 s1, reading: r, verdict: defined}"
    for text, words in (
        (f'"1": {good.replace("title: t, ", "")}', "1: title: missing"),
        (f'"1": {good[:-1]}, more: 1}}', "1: more: no such key; there are title, place"),
        ('"1": text', "1: expected a mapping of title, .*, got 'text'"),
        ("text", "expected a mapping from claim ids to their fields"),
        ("{}", "expected a mapping from claim ids to their fields"),
        ("", "expected a mapping from claim ids to their fields"),
    ):
        (tmp_path / "one.claims.yml").write_text(text)
        with pytest.raises(LedgerError, match=words):
            load_claims("one", tmp_path)
    (tmp_path / "one.claims.yml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(LedgerError, match="expected YAML, got"):
        load_claims("one", tmp_path)


def test_exact_numbers_agree_and_disagree() -> None:
    halves = [sp.Rational(1, 2), sp.sqrt(2)]
    assert agreement(halves, [0.5, 2**0.5], mistake=("ones", [1, 1]), tolerance=1e-15, because="rounding")
    with pytest.raises(TypeError, match="observed: expected real numbers, got"):
        agreement([sp.Rational(1, 2), "1"], 0.5, mistake=("one", 1), tolerance=1, because="rounding")


@pytest.mark.parametrize(("relation", "breaks"), [("==", 9.0), ("<=", 9.0), (">=", -9.0), ("<", 9.0), (">", -9.0)])
def test_what_is_far_on_the_wrong_side_breaks_a_relation(relation: str, breaks: float) -> None:
    good = 1.0 if relation == "==" else -breaks
    words = {"required": 1.0, "tolerance": 0.25, "of": "x"}
    assert counterexample(lambda x: x, {"x": breaks}, relation, obeys={"x": good}, **words)
    with pytest.raises(LedgerError, match="obeys: the sentence fails there too"):
        counterexample(lambda x: x, {"x": breaks}, relation, obeys={"x": breaks}, **words)


def test_two_cards_of_one_anchor_are_found_in_either_order(tmp_path: Path) -> None:
    line = '"{}": {{title: t, place: beyond 5.1.4; beyond 5.2, reading: r, verdict: not decided, reason: taste}}\n'
    [problem] = audit(book(tmp_path, line.format("a-b/c") + line.format("a/b-c")))
    assert problem == "a/b-c: its card would have the id of a-b/c: claim-a-b-c"
    assert load_claims("one", tmp_path / "chapters")["a-b/c"].section == "beyond 5.1.4"


def test_claims_that_are_read_from_a_file_can_be_judged(tmp_path: Path) -> None:
    pinned = CLAIMS.replace("scope: all", f"scope: all, shows: {json.dumps(PIN['shows'])}")
    root = book(
        tmp_path, pinned + '"m": {title: t, place: 5.1 p1 s1, reading: r, verdict: measured, outcome: supported}'
    )
    claims = load_claims("one", root / "chapters")
    assert claims["5.1.5"].prove(square()) and claims["m"].measure(SEEN)


def test_a_claim_in_two_chapters_is_one_problem(tmp_path: Path) -> None:
    line = '"b": {title: t, place: beyond 5.1.4, reading: r, verdict: not decided, reason: taste}\n'
    root = book(tmp_path, line)
    (root / "chapters/two.claims.yml").write_text(line)
    assert audit(root) == ["b: stands in one.claims.yml and in two.claims.yml"]


def test_records_cannot_be_changed_by_accident() -> None:
    for record in (claim(), claim(**PIN).prove(square()), WRONG, Row(claim(), None, "page")):
        name = dataclasses.fields(record)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, None)


def test_a_float_is_the_number_that_it_is() -> None:
    """The double next to the root of 2 is larger than the root, by 1e-16."""
    words = {"at": {"x": 2.0}, "obeys": {"x": 1.0}, "of": "the root"}
    shown = counterexample(lambda x: x**0.5, relation="<=", required=sp.sqrt(2), tolerance=1e-20, **words)
    assert shown.parts["observed"] == 1.41421 and shown.parts["required"]["exact"] == "sqrt(2)"


def test_tensors_with_a_gradient_are_no_numbers() -> None:
    torch = torch_or_skip()
    with pytest.raises(TypeError, match="observed: expected real numbers, got tensor"):
        agreement(torch.ones(1, requires_grad=True), 1, mistake=("two", 2), tolerance=0, because="counts")


def test_exact_numbers_are_compared_exactly() -> None:
    """As doubles 2^60 and its successor are one number."""
    large = 2**60
    for one, other in ((large, large + 1), (sp.Rational(large, 3), sp.Rational(large + 1, 3))):
        with pytest.raises(LedgerError, match="off by"):
            agreement(one, other, mistake=("twice", 2 * other), tolerance=0, because="both are exact")
        assert agreement(one, one, mistake=("the next", other), tolerance=0, because="both are exact")


def test_a_mistake_with_the_range_of_the_right_numbers_is_shown_by_the_entry_that_is_farthest_beyond() -> None:
    turned = agreement([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], mistake=("turned round", [4.0, 2.0, 1.0]),
                       tolerance=[1.0, 1.0, 2.5], because="wide")  # fmt: skip
    assert turned.text.endswith("The same check rejects turned round (1 to 4, off by 3).")
    assert {"off": 3.0, "allowed": 1.0}.items() <= turned.parts["mistake"].items()
    large = agreement([2**60, 1], [2**60, 1], mistake=("the next", [2**60 + 1, 1]), tolerance=0, because="counts")
    assert large.parts["mistake"]["off"] == 1.0  # as doubles the two are one number
    drawn = agreement(Estimate([1.0, 2.0], [0.1, 0.2]), [1.0, 2.0], mistake=("turned round", [2.0, 1.0]))
    assert {"off": 1.0, "allowed": 0.4}.items() <= drawn.parts["mistake"].items()


def test_neither_evidence_nor_a_card_is_made_by_hand() -> None:
    seen = agreement(1.0, 1, mistake=("two", 2), tolerance=1e-9, because="rounding", of="it")
    claim = Claim("x/one", "One", "beyond 5.1", "One is one.", "confirmed")
    card = claim.confirm(seen)
    for made in (
        lambda: Card(card.record(), (seen,)),
        lambda: dataclasses.replace(card, claim=card.claim | {"verdict": "proved"}),
        lambda: Evidence("agreement", seen.parts | {"expected": 2}),
        lambda: dataclasses.replace(seen, kind="derivation"),
    ):
        with pytest.raises(TypeError, match="made by hand, it rests on no check"):
            made()
    for kept, name in ((card.claim, "verdict"), (seen.parts, "expected")):
        with pytest.raises(TypeError, match="does not support item assignment"):
            kept[name] = "proved"
    assert card.record()["verdict"] == "confirmed"
