"""A claim pins what its derivations show: a derivation of anything else is refused, field by field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sympy as sp
import yaml
from sympy.parsing import sympy_parser

from linewise.derive import Derivation, E, RandomVariable, RandomVector, Var, identity, rules
from linewise.derive.display import MIME as CHAIN
from linewise.ledger import Claim, LedgerError, agreement, audit, counterexample, load_claims
from linewise.ledger.card import MIME
from linewise.ledger.theorem import Theorem, read_theorems

x = sp.Symbol("x", real=True)
d = sp.Symbol("d", integer=True, positive=True)
sigma = sp.Symbol("sigma", positive=True)
s, q, m = RandomVariable("s"), RandomVector("q"), sp.Symbol("m", integer=True)
WRONG = counterexample(lambda x: max(x), {"x": [2]}, "<=", 1, obeys={"x": [1]}, of="the largest entry")


def square(by: int = 1) -> Derivation:
    wrong = ("no middle term", x**2 + by**2)
    return identity((x + by) ** 2, x**2 + 2 * by * x + by**2, because="expand", mistake=wrong)


def variance() -> Derivation:
    """The variance of a score, from its second moment."""
    chain = Derivation(Var(s), "The variance of the score")
    chain.step(E(s**2) - E(s) ** 2, rules.definition_of_variance)
    chain.step(d * sigma**4, rules.moments({E(s): 0, E(s**2): d * sigma**4}, "moments of the score"),
               mistake=("the square of d", d**2 * sigma**4))  # fmt: skip
    return chain


VARIANCE = {"left": "Var(s)", "equals": "d*sigma**4", "for": "s random number; d positive integer; sigma positive",
            "assuming": "E(s) = 0; E(s**2) = d*sigma**4"}  # fmt: skip
SQUARE = {"left": "(x + 1)**2", "equals": "x**2 + 2*x + 1", "for": "x real"}


def claim(*shows: Any, verdict: str = "proved", **more: Any) -> Claim:
    more |= {"scope": "for every $d$"} if verdict == "proved" else {}
    more |= {"holds": "H.", "grade": "missing hypothesis"} if verdict in ("amended", "refuted") else {}
    more |= {"shows": list(shows)} if shows else {}
    return Claim("5.1.5", "Variance", "5.1.4 p4 s4", "The variance is $d\\sigma^4$.", verdict, **more)


def refusal(call: Callable[[], Any]) -> list[str]:
    """Return the lines of the error, without those that give the entry to paste."""
    with pytest.raises(LedgerError) as caught:
        call()
    return str(caught.value).partition("\nif this is what the claim says")[0].splitlines()


def test_a_claim_is_proved_by_the_derivation_that_it_pins() -> None:
    assert claim(VARIANCE).prove(variance()).record()["verdict"] == "proved"
    spaced = VARIANCE | {"assuming": "  E(s**2) = d*sigma**4;\n   E(s) = 0 "}
    assert claim(spaced).prove(variance()), "assumptions have no order, and lines may be folded"


def test_a_true_identity_does_not_prove_another_claim() -> None:
    assert refusal(lambda: claim(VARIANCE).prove(square())) == [
        "5.1.5: shows 1: left: the claims file says Var(s), the derivation begins with (x + 1)**2",
        "5.1.5: shows 1: equals: the claims file says d*sigma**4, the derivation ends with x**2 + 2*x + 1",
        "5.1.5: shows 1: for: the claims file says s random number; d positive integer; sigma positive, "
        "the derivation does not",
        "5.1.5: shows 1: for: the derivation has x real, the claims file does not",
        "5.1.5: shows 1: assuming: the claims file says E(s) = 0; E(s**2) = d*sigma**4, the derivation does not",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"left": "Var(2*s)"}, "left: the claims file says Var(2*s), the derivation begins with Var(s)"),
        ({"equals": "d*sigma**2"}, "equals: the claims file says d*sigma**2, the derivation ends with d*sigma**4"),
        ({"equals": None, "at most": "d*sigma**4"},
         "relation: the claims file says at most, the derivation shows equals"),
        ({"equals": None, "at least": "d*sigma**4"},
         "relation: the claims file says at least, the derivation shows equals"),
        ({"assuming": "E(s) = 0"}, "assuming: the derivation assumes E(s**2) = d*sigma**4, the claims file does not"),
        ({"assuming": None},
         "assuming: the derivation assumes E(s) = 0; E(s**2) = d*sigma**4, the claims file does not"),
        ({"assuming": "E(s) = 0; E(s**2) = d*sigma**4; d > 3"},
         "assuming: the claims file says d > 3, the derivation does not"),
        ({"for": "s random number; sigma positive"},
         "for: the derivation has d positive integer, the claims file does not"),
        ({"for": "s random number; d positive integer; sigma positive; x real"},
         "for: the claims file says x real, the derivation does not"),
        ({"through": "E(s**3)"},
         "through: the claims file says E(s**3), no line of the derivation between its ends"),
        ({"through": "Var(s)"},
         "through: the claims file says Var(s), no line of the derivation between its ends"),
    ],
)  # fmt: skip
def test_what_differs_is_named_with_both_sides(change: dict[str, Any], said: str) -> None:
    pin = {key: value for key, value in (VARIANCE | change).items() if value is not None}
    assert refusal(lambda: claim(pin).prove(variance())) == [f"5.1.5: shows 1: {said}"]


def test_a_line_between_the_ends_can_be_pinned() -> None:
    assert claim(VARIANCE | {"through": "-E(s)**2 + E(s**2)"}).prove(variance())


def test_the_sign_of_a_symbol_belongs_to_the_theorem() -> None:
    y = sp.Symbol("x", positive=True)
    narrow = identity((y + 1) ** 2, y**2 + 2 * y + 1, because="expand", mistake=("no middle term", y**2 + 1))
    assert claim(SQUARE).prove(square())
    assert refusal(lambda: claim(SQUARE).prove(narrow)) == [
        "5.1.5: shows 1: for: the claims file says x real, the derivation does not",
        "5.1.5: shows 1: for: the derivation has x positive, the claims file does not",
    ]


@pytest.mark.parametrize(
    ("shows", "chains", "said"),
    [
        ((), 1, "shows: the claims file has no theorems, the check 1 derivation"),
        ((SQUARE, SQUARE), 1, "shows: the claims file has 2 theorems, the check 1 derivation"),
        ((SQUARE,), 2, "shows: the claims file has 1 theorem, the check 2 derivations"),
    ],
)
def test_theorems_and_derivations_are_as_many(shows: tuple[Any, ...], chains: int, said: str) -> None:
    how = {"how": "They say the same."} if shows else {}
    made = claim(*shows, **how)
    assert refusal(lambda: made.prove(*(square() for _ in range(chains)))) == [f"5.1.5: {said}"]


def test_the_error_gives_the_entry_to_paste(tmp_path: Path) -> None:
    chains = (variance(), square())
    with pytest.raises(LedgerError) as caught:
        claim().prove(*chains)
    entry = str(caught.value).partition("its entry has\n")[2]
    assert entry.endswith("\n  how:"), "how several give the claim is for the author to say"
    head = '"5.1.5":\n  title: t\n  place: 5.1.4 p4 s4\n  reading: r\n  verdict: proved\n  scope: all\n'
    (tmp_path / "one.claims.yml").write_text(head + entry + "\n")
    with pytest.raises(LedgerError, match="5.1.5: how: expected text, got NoneType None"):
        load_claims("one", tmp_path)
    (tmp_path / "one.claims.yml").write_text(head + entry + " The first is one, the second another.\n")
    assert load_claims("one", tmp_path)["5.1.5"].prove(*chains)


@pytest.mark.parametrize("verdict", ["amended", "refuted", "defined", "confirmed"])
def test_every_derivation_of_a_check_is_pinned(verdict: str) -> None:
    agreed = agreement(3, 3, mistake=("4", 4), tolerance=0, because="counts")
    calls = {
        "amended": lambda c: c.amend(WRONG, holds=square()),
        "refuted": lambda c: c.refute(WRONG, holds=agreed, also=(square(),)),
        "defined": lambda c: c.define(agreed, square()),
        "confirmed": lambda c: c.confirm(agreed, also=(square(),)),
    }
    assert calls[verdict](claim(SQUARE, verdict=verdict))
    for pins, said in (((), "has no theorems"), ((VARIANCE,), "left: the claims file says Var(s)")):
        assert said in refusal(lambda pins=pins: calls[verdict](claim(*pins, verdict=verdict)))[0]


def test_without_a_derivation_there_is_nothing_to_pin() -> None:
    agreed = agreement(3, 3, mistake=("4", 4), tolerance=0, because="counts")
    assert claim(verdict="amended").amend(WRONG, holds=agreed)
    assert refusal(lambda: claim(SQUARE, verdict="amended").amend(WRONG, holds=agreed)) == [
        "5.1.5: shows: the claims file has 1 theorem, the check no derivations", "leave shows out",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shows": "x"}, "shows: expected a list of theorems, got str 'x'"),
        ({"shows": ["x"]}, "shows 1: expected a mapping of left, equals, .*, got 'x'"),
        ({"shows": [{"equals": "x"}]}, "shows 1: left: missing"),
        ({"shows": [{"left": "x"}]}, "shows 1: relation: expected one of equals, at most, at least, got none"),
        ({"shows": [{"left": "x", "equals": "x", "at most": "x"}]}, "shows 1: relation: .*, got equals and at most"),
        ({"shows": [{"left": "x", "equal": "x"}]}, "shows 1: equal: no such key; did you mean equals?"),
        ({"shows": [{"left": "x", "equals": 0}]}, "shows 1: equals: expected text, got int 0; put it in quotes"),
        ({"shows": [SQUARE, {"left": " ", "equals": "0"}]}, "shows 2: left: expected text, got str ' '"),
        ({"shows": [SQUARE | {"assuming": "a > 0;; b > 0"}]}, "shows 1: assuming: expected clauses between semicolons"),
        ({"shows": [SQUARE | {"assuming": "a > 0; a > 0"}]}, "shows 1: assuming: expected clauses between semicolons"),
        ({"shows": [SQUARE, SQUARE]}, "how: expected words on how the 2 theorems give the claim"),
        ({"how": "So."}, "how: expected with shows alone, and there is none"),
        ({"shows": [SQUARE], "verdict": "measured", "outcome": "supported"},
         "shows: no derivation decides a claim that is measured"),
        ({"how": "So.", "verdict": "not decided", "reason": "R"}, "how: no derivation decides a claim that is not dec"),
    ],
)  # fmt: skip
def test_a_malformed_pin_is_refused(fields: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=f"^5.1.5: {words}"):
        claim(**fields)
    entry = {"title": "t", "place": "5.1.4 p4 s4", "reading": "r", "verdict": "proved"} | fields
    entry |= {"scope": "all"} if entry["verdict"] == "proved" else {}
    (tmp_path / "one.claims.yml").write_text(yaml.safe_dump({"5.1.5": entry}))
    with pytest.raises(LedgerError, match=f"one.claims.yml: 5.1.5: {words}"):
        load_claims("one", tmp_path)


@pytest.mark.parametrize("empty", [None, [], {}, ""])
def test_an_empty_pin_is_named(tmp_path: Path, empty: Any) -> None:
    entry = {"title": "t", "place": "5.1.4 p4 s4", "reading": "r", "verdict": "defined", "shows": empty}
    (tmp_path / "one.claims.yml").write_text(yaml.safe_dump({"5.1.5": entry}))
    with pytest.raises(LedgerError, match=re.escape("one.claims.yml: 5.1.5: shows: expected a list of theorems, got")):
        load_claims("one", tmp_path)


def test_kinds_of_symbols_and_what_stands_for_any_value_are_said() -> None:
    a, v = sp.IndexedBase("a", nonnegative=True), sp.IndexedBase("v")
    f, g = sp.Function("f"), sp.Function("g", positive=True)
    W, z, n = sp.MatrixSymbol("W", d, 2), sp.Symbol("z"), sp.Symbol("n", integer=True, even=True)
    i = sp.Symbol("i", integer=True)
    total = sp.Sum(a[i] * v[i] * q[i] * f(i), (i, 1, d))
    chain = Derivation(total + g(x) * W[0, 1] + z + n)
    chain.step(chain.start + E(q[m]), rules.moments({E(q[m]): 0}, "q has mean 0"))
    shown = Theorem.of(chain)
    assert set("; ".join(shown.kinds).split("; ")) == {
        "a nonnegative array", "q random array", "d positive integer", "g positive function", "W d by 2 matrix",
        "x real", "n even integer", "m integer",
    }  # fmt: skip
    assert shown.assuming == ("E(q[m]) = 0 for any m",)


def test_what_a_theorem_says_is_read_back() -> None:
    for chain in (variance(), square()):
        shown = Theorem.of(chain)
        (read,) = read_theorems(yaml.safe_load(shown.yaml()))
        assert read == shown and list(read.differences(shown)) == []


def test_a_pin_that_changed_after_the_check_is_found_out(tmp_path: Path) -> None:
    fields = {"title": "t", "place": "5.1.4 p4 s4", "reading": "r", "verdict": "proved", "scope": "all"}
    chain = variance()
    outputs = [{"data": {CHAIN: chain.record()}}, {"data": {MIME: claim(VARIANCE).prove(chain).record() | fields}}]
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/one.ipynb").write_text(
        json.dumps({"cells": [{"cell_type": "code", "source": "", "outputs": outputs}]})
    )
    for pins, found in (
        ({"shows": [VARIANCE]}, []),
        ({}, ["5.1.5: shows: the claims file has no theorems, the check 1 derivation"]),
        ({"shows": [VARIANCE | {"equals": "d"}]},
         ["5.1.5: shows 1: equals: the claims file says d, the derivation ends with d*sigma**4"]),
        ({"shows": [VARIANCE | {"assuming": "E(s) = 0"}]},
         ["5.1.5: shows 1: assuming: the derivation assumes E(s**2) = d*sigma**4, the claims file does not"]),
    ):  # fmt: skip
        (tmp_path / "chapters/one.claims.yml").write_text(yaml.safe_dump({"5.1.5": fields | pins}))
        assert audit(tmp_path) == found


def test_text_of_a_pin_is_compared_and_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(sympy_parser, "parse_expr", lambda text, *_, **__: parsed.append(text) or sp.Integer(1))
    pin = dict.fromkeys(("left", "equals", "through", "for", "assuming"), "__import__('os').getpid()")
    assert len(refusal(lambda: claim(pin).prove(square()))) == 6 and not parsed
