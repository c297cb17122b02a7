"""The pages of any book: the look of its own verdicts, what is read anew, and links to pages that it may not have."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from linewise.conventions import Conventions, Verdict, standard
from linewise.pages import findable, ledger_pages

OWN = Conventions((), {"seen in data": Verdict("measure", "m"), "proved": Verdict("prove", "p")}, {}, {})
CARD = '<details class="claim-card verdict-{} x" id="claim-a">'


def test_a_verdict_of_the_book_has_the_look_of_its_check() -> None:
    assert ledger_pages.classes_of("seen in data", OWN) == ["verdict-seen-in-data", "verdict-measured"]
    assert ledger_pages.classes_of("proved", OWN) == ["verdict-proved"]
    assert ledger_pages.badge("seen in data", OWN)["classes"][1:] == ["verdict-seen-in-data", "verdict-measured"]


@pytest.mark.parametrize(
    ("kind", "conventions", "shown"),
    [
        ("seen-in-data", OWN, "seen-in-data verdict-measured"),
        ("proved", OWN, "proved"),
        ("measured", standard(), "measured"),
        ("unknown", OWN, "unknown"),
    ],
)
def test_a_stored_card_gets_it_too(kind: str, conventions: Conventions, shown: str) -> None:
    stored = {"cells": [{"outputs": [{"data": {"text/html": CARD.format(kind)}}]}]}
    made = ledger_pages.without_records(stored, conventions)["cells"][0]["outputs"][0]["data"]["text/html"]
    assert made == CARD.format(shown)


def test_filled_pages_are_read_in_every_build() -> None:
    app: Any = SimpleNamespace(config=SimpleNamespace(linewise_filled_pages=["intro", "gone"]))
    env = SimpleNamespace(found_docs={"intro", "ledger", "chapter"})
    assert ledger_pages.read_anew(app, env, set(), set(), set()) == ["ledger", "intro"]


@pytest.mark.parametrize(
    ("there", "links"),
    [({"ledger", "coverage"}, 2), ({"ledger"}, 1), ({"coverage"}, 1), (set(), 0)],
)
def test_a_card_links_to_the_pages_that_the_book_has(monkeypatch, there: set[str], links: int) -> None:
    claim = SimpleNamespace(is_own=False, places=["2.1 p1 s1"])
    book = SimpleNamespace(conventions=standard(), rows=[SimpleNamespace(anchor="claim-a", claim=claim)])
    monkeypatch.setattr(ledger_pages, "book_of", lambda app: book)
    builder = SimpleNamespace(get_relative_uri=lambda page, name: f"{name}.html")
    app: Any = SimpleNamespace(builder=builder, env=SimpleNamespace(found_docs=there))
    context = {"body": CARD.format("proved") + "</details>"}
    ledger_pages.link_cards(app, "chapter", "", context, None)
    assert context["body"].count("<a ") == links and context["body"].count("claim-links") == bool(links)


def test_glosses_are_words_of_the_sources_language(tmp_path) -> None:
    text = "# Rank (秩)\n\nThe 有效秩 and ランク, and 계수, but σ and naïve."
    cells = [{"cell_type": "markdown", "source": text}]
    outputs = [{"data": {findable.MIME: {"claim": "a"}}}]
    cells.append({"cell_type": "code", "source": "", "outputs": outputs})
    (tmp_path / "page.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert findable.glosses(tmp_path, ["page"]) == {"a": "秩 有效秩 ランク 계수"}
