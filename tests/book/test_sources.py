"""The tables of this book fit its sources, its claims and its text; and a number that is wrong anywhere is noticed."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import yaml

from linewise.ledger import audit, collate, coverage, lexicon
from linewise.ledger.coverage import problems, read_sources

ROOT = Path(__file__).resolve().parents[2]


def test_this_book_is_covered() -> None:
    assert problems(ROOT) == []


def test_this_book_is_sound() -> None:
    """Every claim of the book has one executed check of its verdict, and every check a claim."""
    assert audit(ROOT) == []
    assert len(collate(ROOT)) >= 22


def test_this_book_reads_its_words() -> None:
    assert lexicon.problems(ROOT) == []


def test_a_claim_of_this_book_without_its_words_is_noticed(tmp_path: Path) -> None:
    """A claim without its entries is found by the words of its reading, and by what an entry says of it."""
    shutil.copytree(ROOT / "chapters", tmp_path / "chapters", ignore=shutil.ignore_patterns("*.ipynb", "__pycache__"))
    shutil.copyfile(ROOT / "linewise.yml", tmp_path / "linewise.yml")
    path = tmp_path / "chapters" / "matrix" / "effective_rank.claims.yml"
    text = path.read_text(encoding="utf-8")
    assert lexicon.problems(tmp_path) == []
    path.write_text(re.sub(r"(\"5\.5\.2/about-dk\":\n(?:  .*\n)*?)  words: .*\n", r"\1", text), encoding="utf-8")
    problems = lexicon.problems(tmp_path)
    assert '5.5.2/about-dk: words: has "slightly" and does not name the entry slightly of the lexicon' in problems
    assert "lexicon: may: speaks of 5.5.2/about-dk, which does not name it" in problems
    path.write_text(text.replace("words: [may, slightly", "words: [may, slighty"), encoding="utf-8")
    assert any("slighty: no such entry of the lexicon; did you mean slightly?" in p for p in lexicon.problems(tmp_path))


# --- the real table, with a claim for each sentence, and spoilt in one place ----------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables, the prose and the docstrings of this book, under one invented claim for each sentence."""
    root = tmp_path_factory.mktemp("whole")
    shutil.copytree(ROOT / "chapters" / "sources", root / "chapters" / "sources")
    shutil.copyfile(ROOT / "linewise.yml", root / "linewise.yml")
    shutil.copytree(ROOT / "code", root / "code", ignore=lambda _, names: [n for n in names if n == "__pycache__"])
    for path in sorted(ROOT.glob("chapters/*/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        kept = [{key: one[key] for key in ("cell_type", "source", "metadata")} for one in cells]
        kept = [one if one["cell_type"] == "markdown" else one | {"source": "", "outputs": []} for one in kept]
        (root / "chapters" / path.name).write_text(json.dumps({"cells": kept}), encoding="utf-8")
    rows = [row for source in read_sources(root) for row in source.rows if not row.none]
    known = {"title": "t", "reading": "It is $x$.", "verdict": "confirmed"}
    claims = {f"claim/{number}": known | {"place": row.at} for number, row in enumerate(rows)}
    (root / "chapters" / "all.claims.yml").write_text(yaml.safe_dump(claims), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def before(whole: Path) -> list[str]:
    return problems(whole)


def test_the_real_table_fits_its_prose(before: list[str]) -> None:
    assert before == []


def test_any_deleted_row_of_the_real_table_is_noticed(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = whole.parent / "empty"
    (empty / "chapters").mkdir(parents=True, exist_ok=True)
    for source in read_sources(ROOT):
        for row in source.rows:
            rest = replace(source, rows=tuple(other for other in source.rows if other is not row))
            monkeypatch.setattr(coverage, "read_sources", lambda _, rest=rest: [rest])
            assert f"{row.at}: no row" in problems(empty)


#: In which files, what is renumbered: the first match of the first three files that have one.
RENUMBERED = {
    "a tag": ("chapters/*.ipynb", r"tag\{((?:5\.\d+\.|A\.)\d+)\}"),
    "the text of a link": ("chapters/*.ipynb", r"\[\(((?:5\.\d+\.|A\.)\d+)\)\]\(#equation"),
    "the target of a link": ("chapters/*.ipynb", r"\(#equation-((?:5\.\d+\.|A\.)\d+)\)"),
    "a plain number": ("chapters/*.ipynb", r"(?<!\[)\(((?:5\.\d+\.|A\.)\d+)\)"),
    "a section": ("chapters/*.ipynb", r"[Ss]ection (5\.\d+\.\d+)"),
    "a place": ("chapters/all.claims.yml", r"place: ((?:5|article)\.[\d.]+ p\d+ s\d+)"),
    "a number in a docstring": ("code/attnmath/**/*.py", r"equation (?:\()?((?:5\.\d+\.|A\.)\d+)"),
    "an equation of a row": ("chapters/sources/*.yml", r'equations: \["([^"]+)"'),
}


@pytest.mark.parametrize("what", RENUMBERED)
def test_renumbering_in_the_real_book_is_noticed(whole: Path, before: list[str], what: str) -> None:
    files, pattern = RENUMBERED[what]
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(whole.glob(files))}
    found = {path: match for path, text in texts.items() if (match := re.search(pattern, text))}
    assert found, f"nothing to renumber: {what}"
    for path, match in islice(found.items(), 3):
        path.write_text(f"{match.string[: match.end(1)]}77{match.string[match.end(1) :]}", encoding="utf-8")
        after = problems(whole)
        path.write_text(match.string, encoding="utf-8")
        assert set(after) - set(before), f"{path.name}: {match[0]}"
