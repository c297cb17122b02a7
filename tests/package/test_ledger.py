"""The ledger fails when it should: wrong statements, idle controls, claims and checks that do not meet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from attnmath.estimate import Estimate
from attnmath.ledger import (
    VERDICTS,
    Claim,
    LedgerError,
    agreement,
    audit,
    collate,
    counterexample,
    load_claims,
    observation,
    proof,
)
from attnmath.ledger.__main__ import main
from attnmath.ledger.claims import MIME

x, y = sp.symbols("x y", positive=True)
n, d = sp.symbols("n d", integer=True, positive=True)
i = sp.Symbol("i", integer=True, nonnegative=True)


def claim(verdict: str = "proved", **fields: str) -> Claim:
    return Claim("5.1.5", section="5.1.4", statement="It is $x$.", verdict=verdict, **fields)


# --- proofs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "residual, control",
    [
        (sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1, sp.sin(x) ** 2 - 1),
        ([x - x, sp.expand((x + y) ** 2) - x**2 - 2 * x * y - y**2], (x + y) ** 2 - x**2),
        (sp.Matrix([[0, 0]]), sp.Matrix([[0, x]])),
        (sp.Eq((x + 1) ** 2, x**2 + 2 * x + 1), sp.Eq((x + 1) ** 2, x**2 + 1, evaluate=False)),
        (sp.Sum(x**i, (i, 0, n)) - sp.Sum(x**d, (d, 0, n)), sp.Sum(x**i, (i, 1, n))),
    ],
)
def test_a_proof_holds(residual, control) -> None:
    assert proof(residual, control=control).kind == "proof"


@pytest.mark.parametrize(
    "residual, control, words",
    [
        (x - y, x + y, "does not vanish"),
        ([0, x - 1], x, "does not vanish"),
        (sp.Integer(0), sp.Integer(0), "general symbols"),
        (sp.Integer(0), sp.Integer(1), "general symbols"),
        (sp.Integer(0), (x + 1) ** 2 - x**2 - 2 * x - 1, "control passes"),
        (sp.Integer(0), sp.sqrt(x**2) - x + 0 * y, "general symbols"),
        ([], x, "at least one"),
    ],
)
def test_a_proof_fails(residual, control, words) -> None:
    with pytest.raises(LedgerError, match=words):
        proof(residual, control=control)


@pytest.mark.parametrize("residual", [0.0, sp.Float(0), np.float64(0), "0", True, None])
def test_a_proof_is_exact_or_nothing(residual) -> None:
    with pytest.raises(TypeError, match="residual: expected an exact sympy expression"):
        proof(residual, control=x)


def test_a_residual_that_is_only_small_is_not_zero() -> None:
    with pytest.raises(LedgerError, match="does not vanish"):
        proof(x * sp.Rational(1, 10**60), control=x)


def test_matrix_symbols_have_witnesses() -> None:
    Q, K = sp.MatrixSymbol("Q", n, d), sp.MatrixSymbol("K", n, d)
    j, m = sp.symbols("j m", integer=True, nonnegative=True)
    entry = (Q * K.T)[i, j]
    right, wrong = sp.Sum(Q[i, m] * K[j, m], (m, 0, d - 1)), sp.Sum(Q[i, m] * K[m, j], (m, 0, d - 1))
    assert proof(entry - right, control=entry - wrong)
    with pytest.raises(LedgerError, match="control passes"):
        proof(entry - right, control=entry - right)


# --- agreements --------------------------------------------------------------------------------


def test_an_agreement_holds_within_four_standard_errors_or_a_stated_tolerance() -> None:
    assert agreement(Estimate(1.03, 0.01), 1.0, control=2.0)
    assert agreement([1.0, 2.0], [1.0, 2.0 + 1e-15], control=[1.0, 3.0], tolerance=1e-14, because="a few ulps")


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (({"observed": Estimate(1.05, 0.01), "expected": 1.0, "control": 2.0}), LedgerError, "off by"),
        (({"observed": Estimate(1.0, 0.5), "expected": 1.0, "control": 2.0}), LedgerError, "control .* passes"),
        (({"observed": [1.0], "expected": 1.0, "control": 2.0}), TypeError, "tolerance, because"),
        (({"observed": [1.0], "expected": 1.0, "control": 2.0, "tolerance": 0.1}), TypeError, "because"),
        (
            ({"observed": [1.0], "expected": 1.0, "control": 2.0, "tolerance": np.inf, "because": "?"}),
            LedgerError,
            "finite",
        ),
        (
            ({"observed": [np.nan], "expected": 1.0, "control": 2.0, "tolerance": 1, "because": "?"}),
            LedgerError,
            "observed: expected finite",
        ),
        (({"observed": [], "expected": 1.0, "control": 2.0, "tolerance": 1, "because": "?"}), LedgerError, "observed"),
    ],
)
def test_an_agreement_fails(arguments, error, words) -> None:
    with pytest.raises(error, match=words):
        agreement(**arguments)


# --- counterexamples ---------------------------------------------------------------------------


def test_a_counterexample_holds() -> None:
    assert counterexample(sp.sqrt(2), "<=", 1, instead=sp.sqrt(2), at="A")
    assert counterexample(2.0, "==", 1.0, instead=2.0, at="A", tolerance=1e-9)


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ((1, "<=", 1), LedgerError, "not a counterexample"),
        ((2, "<=", 1), LedgerError, "corrected statement fails"),
        ((2.5, "==", 1), TypeError, "tolerance"),
        ((2, "≈", 1), ValueError, "relation: expected one of"),
    ],
)
def test_a_counterexample_fails(arguments, error, words) -> None:
    with pytest.raises(error, match=words):
        counterexample(*arguments, instead=1, at="here")


# --- observations ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, outcome", [(1.0, "supported"), (-1.0, "contradicted"), (0.1, "undecided"), (-0.1, "undecided")]
)
def test_an_observation_reports_what_it_saw(value, outcome) -> None:
    assert observation(Estimate(value, 0.1), ">", 0, control=Estimate(0.0, 0.1)).outcome == outcome


def test_an_observation_whose_control_shows_the_effect_fails() -> None:
    with pytest.raises(LedgerError, match="control"):
        observation(Estimate(1.0, 0.1), ">", 0, control=Estimate(2.0, 0.1))
    with pytest.raises(ValueError, match="relation"):
        observation(Estimate(1.0, 0.1), "==", 0, control=Estimate(0.0, 0.1))


# --- verdicts ----------------------------------------------------------------------------------


def test_a_card_shows_and_stores_the_verdict() -> None:
    bundle = claim().prove(x - x, control=x)._repr_mimebundle_()
    assert bundle[MIME]["claim"] == "5.1.5" and bundle[MIME]["verdict"] == "proved"
    assert r"\(x\)" in bundle["text/html"] and 'id="claim-5.1.5"' in bundle["text/html"]
    json.dumps(bundle[MIME])


def test_a_measured_card_leads_with_its_outcome() -> None:
    seen = observation(Estimate(-1.0, 0.1), ">", 0, control=Estimate(0.0, 0.1))
    card = claim("measured", outcome="contradicted").measure(seen)
    assert str(card).startswith("[measured: contradicted]") and ">contradicted</strong>" in card.html()


def test_html_is_escaped() -> None:
    card = Claim("1", section="1", statement="$a<b$ & <script>", verdict="proved").prove(x - x, control=x)
    assert "<script>" not in card.html() and r"\(a&lt;b\)" in card.html()


def test_every_verdict_has_its_method_and_refuses_to_stand_in_for_another() -> None:
    shown, holds = counterexample(2, "<=", 1, instead=2, at="A"), proof(x - x, control=x)
    seen = observation(Estimate(1.0, 0.1), ">", 0, control=Estimate(0.0, 0.1))
    calls = {
        "proved": lambda c: c.prove(x - x, control=x),
        "confirmed": lambda c: c.confirm(Estimate(1.0, 0.1), 1.0, control=3.0),
        "amended": lambda c: c.amend(shown, holds=holds),
        "refuted": lambda c: c.refute(shown, holds=holds),
        "measured": lambda c: c.measure(seen),
        "defined": lambda c: c.define(holds),
    }
    assert set(calls) == set(VERDICTS)
    extra = {"amended": {"amended": "That."}, "refuted": {"amended": "That."}, "measured": {"outcome": "supported"}}
    for verdict in VERDICTS:
        for method, call in calls.items():
            if method == verdict:
                assert call(claim(verdict, **extra.get(verdict, {}))).claim.verdict == verdict
            else:
                with pytest.raises(LedgerError):
                    call(claim(verdict, **extra.get(verdict, {})))


def test_evidence_of_the_wrong_kind_is_refused() -> None:
    holds = proof(x - x, control=x)
    with pytest.raises(LedgerError, match="expected counterexample"):
        claim("refuted", amended="That.").refute(holds, holds=holds)
    with pytest.raises(LedgerError, match="got nothing"):
        claim("defined").define()


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"verdict": "plausible"}, "verdict: expected one of"),
        ({"verdict": "refuted"}, "amended: expected"),
        ({"verdict": "proved", "amended": "That."}, "amended: expected"),
        ({"verdict": "measured"}, "outcome: expected"),
        ({"verdict": "proved", "outcome": "supported"}, "outcome: expected"),
    ],
)
def test_a_malformed_claim_is_refused(fields, words) -> None:
    with pytest.raises(LedgerError, match=words):
        claim(**fields)


# --- the book as a whole -----------------------------------------------------------------------


def book(root: Path, claims: str, *records: dict) -> Path:
    """Make a book of one chapter with the given claims file and stored verdict records."""
    (root / "chapters").mkdir()
    (root / "chapters/one.claims.yml").write_text(claims)
    outputs = [{"output_type": "execute_result", "data": {MIME: r}} for r in records]
    cells = [{"cell_type": "code", "source": "", "outputs": outputs}, {"cell_type": "markdown", "source": ""}]
    (root / "chapters/one.ipynb").write_text(json.dumps({"cells": cells}))
    return root


CLAIMS = '"5.1.5": {section: "5.1.4", statement: "It is $x$.", verdict: proved}\n'
CHECK = {"claim": "5.1.5", "verdict": "proved", "evidence": []}


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
        (CLAIMS, [{**CHECK, "verdict": "refuted"}], "the file says proved"),
    ],
)
def test_an_unsound_book_is_found_out(tmp_path: Path, claims, records, words, capsys) -> None:
    root = book(tmp_path, claims, *records)
    assert any(words in problem for problem in audit(root))
    assert main([str(root)]) == 1 and "problem" in capsys.readouterr().out


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
        (CLAIMS + CLAIMS, "stands twice"),
        ('"1": {section: "1", verdict: proved}', "expected section, statement, verdict"),
        ('"1": {section: "1", statement: s, verdict: proved, colour: red}', "expected section"),
        ("[]", "expected a mapping"),
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
    with pytest.raises(SystemExit):
        main([str(tmp_path)])


def test_this_book_is_sound() -> None:
    """Every claim of the book has one executed check of its verdict, and every check a claim."""
    root = Path(__file__).parents[2]
    assert audit(root) == []
    assert len(collate(root)) >= 22
