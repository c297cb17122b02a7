"""Answers on the page: what is declared right is what the solution gives, and no page shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from practice.answers import SUFFIX, Answer, AnswerError, digest, faults, form, read, rounded, solutions, value

import stamps

ROOT = stamps.ROOT
NOTEBOOKS = sorted(ROOT.glob("chapters/**/*.ipynb"))
#: A solution, as a notebook holds it, and an answer that it gives.
SOLVED = {
    "cells": [
        {"cell_type": "markdown", "source": "```{exercise}\n:label: a\nHow many?\n```\n\n"
                                            "````{solution-start} a\n:class: dropdown\n````\n\n"
                                            "It is $\\sqrt2\\approx1.41$."},
        {"cell_type": "code", "source": "print(2)", "outputs": [{"output_type": "stream", "text": "squared: 2\n"}]},
        {"cell_type": "markdown", "source": "````{solution-end}\n````\n\nNot of it: 5."},
    ]
}  # fmt: skip
GOOD: dict[str, Any] = {"ask": "How many?", "right": "sqrt(2)", "digits": 3, "says": "It is $\\sqrt2\\approx1.41$",
                        "mistakes": {"2": "its square"}}  # fmt: skip


def labels(notebook: Any) -> list[str]:
    text = "\n".join("".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown")
    return re.findall(r"^`{3,}\{exercise\}[^\n]*\n:label: (\S+)", text, re.MULTILINE)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_each_exercise_has_a_field_or_a_word_why_not_and_its_solution_gives_the_answer(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    solved, given = solutions(notebook), read(path.with_name(path.stem + SUFFIX))
    assert list(given) == labels(notebook)
    assert [
        fault for label, answers in given.items() for a in answers for fault in faults(label, a, solved[label])
    ] == []


@pytest.mark.parametrize("entry", ["riddle", "[]", "3", "{}"])
def test_an_entry_is_answers_or_a_word_why_there_are_none(tmp_path: Path, entry: str) -> None:
    path = tmp_path / f"c{SUFFIX}"
    path.write_text(f"exercise-a: {entry}\n", encoding="utf-8")
    with pytest.raises(AnswerError, match="exercise-a: expected answers, or one of explanation, program, proof, got "):
        read(path)


def test_the_solution_is_its_text_and_what_its_cells_print() -> None:
    assert solutions(SOLVED) == {"a": "It is $\\sqrt2\\approx1.41$. squared: 2"}
    assert list(faults("a", Answer(**GOOD), solutions(SOLVED)["a"])) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"right": "sqrt(3)"}, "is not sqrt(3)"),
        ({"says": "It is $1.42$"}, "does not say"),
        ({"says": "squared: 2"}, "is not sqrt(2)"),
        ({"mistakes": {"1.4142": "a decimal"}}, "is the right answer"),
        ({"mistakes": {"2": "its square", "4/2": "again"}}, "is its square"),
        ({"right": "root(2)"}, "expected a formula"),
        ({"right": "x", "names": ["y"]}, "expected a formula"),
        ({"right": "2", "choices": ["1", "3"], "mistakes": {}}, "none of the choices"),
        ({"right": "1.415", "says": "1.41"}, "lies between"),
    ],
)
def test_a_wrong_declaration_is_noticed(change: dict[str, Any], said: str) -> None:
    assert any(said in fault for fault in faults("a", Answer(**GOOD | change), solutions(SOLVED)["a"] + " 1.415"))


def test_no_field_shows_its_answer() -> None:
    shown = form("a", 0, Answer(**GOOD | {"right": "12345.678", "digits": 8, "mistakes": {"54321": "turned round"}}))
    assert "12345" not in shown and "54321" not in shown and "turned round" in shown
    assert digest("a-0", rounded(12345.678, 8)) in shown


def test_a_field_says_how_many_digits_it_wants() -> None:
    asked: dict[str, Any] = {"right": "sqrt(2)", "says": "s"}
    assert "to 3 digits" in form("a", 0, Answer(ask="How long?", digits=3, **asked))
    assert "to 1 digit<" in form("a", 0, Answer(ask="How long?", digits=1, **asked))
    for spoken in (Answer(ask="How long, one digit?", digits=1, **asked), Answer(ask="Exactly?", **asked)):
        assert "<small>" not in form("a", 0, spoken)


def test_a_choice_does_not_say_which_one_it_is() -> None:
    asked: dict[str, Any] = {"ask": "Which?", "says": "s", "choices": ["one", "two"]}
    one, two = (form("a", 0, Answer(right=right, **asked)) for right in ("one", "two"))
    known = [json.loads(re.search(r'data-answer="([^"]*)"', s)[1].replace("&quot;", '"')) for s in (one, two)]  # type: ignore[index]
    assert known[0] != known[1] and one.replace(known[0]["right"][0], "") == two.replace(known[1]["right"][0], "")


@pytest.mark.parametrize("formula", ["__import__('os')", "x.y", "sqrt(1, 2)", "1/0", "(", "'a'", "[1]"])
def test_a_formula_is_no_program(formula: str) -> None:
    with pytest.raises(AnswerError):
        value(formula)
