"""The pages of any book: the look of its own verdicts, what is read anew, and links to pages that it may not have."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from linewise.conventions import Conventions, Verdict, standard
from linewise.ledger import Claim
from linewise.ledger.card import MIME, classes_of
from linewise.pages import displays, findable, ledger_pages

OWN = Conventions((), {"seen in data": Verdict("measure", "m"), "proved": Verdict("prove", "p")}, {}, {})
RECORD = {"claim": "a", "title": "t", "place": "2 p1 s1", "reading": "r", "evidence": []}


def test_a_verdict_of_the_book_has_the_look_of_its_check() -> None:
    assert classes_of("seen in data", OWN) == ["verdict-seen-in-data", "verdict-measured"]
    assert classes_of("proved", OWN) == ["verdict-proved"]
    assert ledger_pages.badge("seen in data", OWN)["classes"][1:] == ["verdict-seen-in-data", "verdict-measured"]


@pytest.mark.parametrize(
    ("verdict", "conventions", "shown"),
    [
        ("seen in data", OWN, "verdict-seen-in-data verdict-measured"),
        ("proved", OWN, "verdict-proved"),
        ("measured", standard(), "verdict-measured"),
        ("unknown", OWN, "verdict-unknown"),
    ],
)
def test_a_card_gets_it_too(verdict: str, conventions: Conventions, shown: str) -> None:
    made = displays.drawn(MIME, RECORD | {"verdict": verdict}, conventions)
    assert f'<details class="claim-card {shown} mathjax_process' in made


def test_filled_pages_are_read_in_every_build() -> None:
    app: Any = SimpleNamespace(config=SimpleNamespace(linewise_filled_pages=["intro", "gone"]))
    env = SimpleNamespace(found_docs={"intro", "ledger", "chapter"})
    assert ledger_pages.read_anew(app, env, set(), set(), set()) == ["ledger", "intro"]


@pytest.mark.parametrize(
    ("there", "links"),
    [({"ledger", "coverage"}, 2), ({"ledger"}, 1), ({"coverage"}, 1), (set(), 0)],
)
def test_a_card_links_to_the_pages_that_the_book_has(there: set[str], links: int) -> None:
    claim = Claim("a", "t", "2.1 p1 s1", "r", "defined")
    made = displays.links_of(claim, {page: f"{page}.html" for page in there})
    assert made.count("<a ") == links and made.count("claim-links") == bool(links)
    own = Claim("a", "t", "beyond 2", "r", "defined")
    assert displays.links_of(own, {"coverage": "coverage.html"}) == ""


def test_glosses_are_words_of_the_sources_language(tmp_path) -> None:
    text = "# Rank (秩)\n\nThe 有效秩 and ランク, and 계수, but σ and naïve."
    cells = [{"cell_type": "markdown", "source": text}]
    outputs = [{"data": {MIME: {"claim": "a"}}}]
    cells.append({"cell_type": "code", "source": "", "outputs": outputs})
    (tmp_path / "page.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert findable.glosses(tmp_path, ["page"]) == {"a": "秩 有效秩 ランク 계수"}
