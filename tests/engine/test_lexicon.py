"""The lexicon of any book: what is wrong with its table or with the claims is named, and its page shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from linewise.conventions import ConventionError, conventions_of
from linewise.ledger import LedgerError, load_claims
from linewise.ledger.faults import faults
from linewise.ledger.lexicon import problems, read_lexicon

ENTRY: dict[str, Any] = {
    "original": ["少数几个"], "words": ["few"], "but": ["few data"], "reading": "Five.", "why": "A hand has five.",
    "weaker": "A tenth.", "changes": {"x/one": "proved"}, "departs": {"x/two": "It is ten there."},
}  # fmt: skip
CLAIM: dict[str, Any] = {
    "title": "t", "place": "beyond 2", "reading": "A few of them.", "verdict": "not decided", "reason": "r",
    "words": ["few"],
}  # fmt: skip


def book(root: Path, claims: dict[str, Any], entries: Any, lexicon: str = "words.yml") -> Path:
    """Make a book with a lexicon, and one chapter with claims that need no check."""
    (root / "chapters").mkdir()
    named = {"lexicon": {"table": lexicon, "page": "words"}} if lexicon else {}
    (root / "linewise.yml").write_text(json.dumps({"sources": []} | named), encoding="utf-8")
    (root / "words.yml").write_text(yaml.safe_dump(entries, allow_unicode=True), encoding="utf-8")
    (root / "chapters" / "one.claims.yml").write_text(yaml.safe_dump(claims), encoding="utf-8")
    return root


def without(mapping: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


BOTH = {"x/one": CLAIM, "x/two": CLAIM}


def test_a_sound_lexicon_has_no_problem(tmp_path: Path) -> None:
    root = book(tmp_path, BOTH, {"few": ENTRY})
    assert problems(root) == [] and faults(root) == []
    assert read_lexicon(root)["few"].departs == {"x/two": "It is ten there."}
    assert load_claims("one", root / "chapters")["x/one"].words == ("few",)


def test_a_book_needs_no_lexicon(tmp_path: Path) -> None:
    root = book(tmp_path, {"x/one": without(CLAIM, "words")}, {}, lexicon="")
    assert read_lexicon(root) == {} and problems(root) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            {"x/one": CLAIM | {"words": ["few", "fewer"]}},
            ["x/one: words: fewer: no such entry of the lexicon; did you"],
        ),
        (
            {"x/one": without(CLAIM, "words")},
            ['x/one: words: has "few" and does not name', "lexicon: few: speaks of x/one"],
        ),
        ({"x/three": CLAIM | {"title": "Few", "reading": "r"}}, []),
        ({"x/three": without(CLAIM, "words") | {"title": "Few", "reading": "r"}}, ['x/three: words: has "few"']),
        ({"x/three": without(CLAIM, "words") | {"reading": "With few data, fewer."}}, []),
    ],
)
def test_a_claim_names_the_words_that_it_has(tmp_path: Path, change: dict[str, Any], found: list[str]) -> None:
    problem = problems(book(tmp_path, BOTH | change, {"few": ENTRY}))
    assert len(problem) == len(found)
    assert all(given.startswith(expected) for given, expected in zip(problem, found, strict=True))


def test_what_holds_is_read_as_well(tmp_path: Path) -> None:
    amended = {"verdict": "amended", "grade": "missing hypothesis", "holds": "Few do."}
    claim = without(CLAIM, "words", "reason") | amended | {"reading": "All do."}
    assert problems(book(tmp_path, BOTH | {"x/three": claim}, {"few": ENTRY})) == [
        'x/three: words: has "few" and does not name the entry few of the lexicon'
    ]


def test_an_entry_is_used_and_speaks_of_claims_that_use_it(tmp_path: Path) -> None:
    unused = without(ENTRY, "words", "changes") | {"original": ["许多"], "departs": {"x/gone": "no"}}
    assert problems(book(tmp_path, BOTH, {"few": ENTRY, "many": unused})) == [
        "lexicon: many: no claim names it",
        "lexicon: many: speaks of x/gone, which is no claim",
    ]


def test_a_word_of_the_sources_stands_under_one_entry(tmp_path: Path) -> None:
    twice = without(ENTRY, "words", "changes", "departs") | {"original": ["前几个", "少数几个"]}
    claims = {"x/one": CLAIM | {"words": ["few", "first"]}, "x/two": CLAIM}
    assert problems(book(tmp_path, claims, {"few": ENTRY, "first": twice})) == [
        "lexicon: first: has 少数几个, which stands under few"
    ]


def test_words_without_a_lexicon_are_unknown(tmp_path: Path) -> None:
    [one, two] = problems(book(tmp_path, BOTH, {}, lexicon=""))
    assert one.startswith("x/one: words: few: no such entry") and two.startswith("x/two")


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "expected a mapping from ids to entries"),
        ({"few": without(ENTRY, "why")}, "few: why: missing"),
        ({"few": ENTRY | {"weeker": "x"}}, "few: weeker: no such key; did you mean weaker"),
        ({"few": ENTRY | {"words": "few"}}, "few: words: expected a list that is not empty, got 'few'"),
        ({"few": ENTRY | {"words": []}}, "few: words: expected a list that is not empty"),
        ({"few": ENTRY | {"original": [5]}}, "few: original: expected text, got int 5"),
        ({"few": ENTRY | {"changes": ["x/one"]}}, "few: changes: expected a dict that is not empty"),
        ({"few": ENTRY | {"departs": {"x/one": None}}}, "few: departs: expected text, got NoneType"),
        ({5: ENTRY}, "5: expected text, got int 5"),
    ],
)
def test_a_malformed_table_is_refused(tmp_path: Path, entries: Any, words: str) -> None:
    with pytest.raises(LedgerError, match=words):
        read_lexicon(book(tmp_path, BOTH, entries))


def test_a_missing_table_and_wrong_conventions_are_named(tmp_path: Path) -> None:
    root = book(tmp_path, BOTH, {"few": ENTRY}, lexicon="wrods.yml")
    with pytest.raises(FileNotFoundError, match=r"lexicon: expected the table wrods\.yml"):
        read_lexicon(root)
    (root / "words.yml").write_text("few: [", encoding="utf-8")
    (root / "linewise.yml").write_text("lexicon: {table: words.yml, page: w}", encoding="utf-8")
    with pytest.raises(LedgerError, match="expected YAML"):
        read_lexicon(root)
    (root / "linewise.yml").write_text("lexicon: {table: words.yml}  # no page", encoding="utf-8")
    with pytest.raises(ConventionError, match="lexicon: page: missing"):
        conventions_of(root)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("few", "expected a list of texts, got 'few'"),
        ([], "expected a list of texts"),
        ([5], "expected text, got int 5"),
        (["few", "few"], "few: stands twice"),
    ],
)
def test_the_words_of_a_claim_are_a_list(tmp_path: Path, words: Any, said: str) -> None:
    root = book(tmp_path, {"x/one": CLAIM | {"words": words}}, {"few": ENTRY})
    with pytest.raises(LedgerError, match=f"x/one: words: {said}"):
        load_claims("one", root / "chapters")
