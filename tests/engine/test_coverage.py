"""The table of sentences fits its sources, the claims and the text of the book; and each misfit is noticed."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from linewise.conventions import standard
from linewise.ledger import LedgerError, collate, coverage
from linewise.ledger.coverage import Book, Sentence, deciding, problems, read_sources

# --- a small book, and what can be wrong with one ------------------------------------------------

ROWS: list[dict[str, Any]] = [
    {"at": "5.1 title", "gist": "the title", "none": "heading"},
    {"at": "5.1 p1 s1", "gist": "a formula", "equations": ["5.1.1"]},
    {"at": "5.1 p1 s2", "gist": "a property"},
    {"at": "5.1 p2 s1", "gist": "the formula again", "none": "repetition", "of": "5.1 p1 s1"},
    {"at": "article.1 title", "gist": "the introduction", "none": "heading"},
    {"at": "article.1 p1 s1", "gist": "a measure", "equations": ["A.1"]},
    {"at": "note.1 title", "gist": "a note", "none": "heading"},
    {"at": "note.1 p1 s1", "gist": "a definition", "none": "definition"},
    {"at": "report.2.1 title", "gist": "a heading alone", "none": "heading"},
    {"at": "report.2.1.1 title", "gist": "a cost", "none": "heading"},
    {"at": "report.2.1.1 p1 s1", "gist": "a product", "equations": ["R.6"]},
]
SHAPE = {"5.1": [2, 1], "article.1": [1], "note.1": [1], "report.2.1": [], "report.2.1.1": [1]}
PLACES = {
    "5.1.1": "5.1 p1 s1",
    "5.1/property": "5.1 p1 s2",
    "article/1": "article.1 p1 s1",
    "report/6": "report.2.1.1 p1 s1",
    "own/one": "beyond 5.1",
    "own/two": "beyond report.2.1",
}
#: Four sources in one table: numbers alone, parts, and sections; the equations of two have a letter.
CONVENTIONS = """
texts: [guide, code]
sources:
  - {table: chapters/sources/s.yml}
  - {table: chapters/sources/s.yml, places: article, section: part, equations: A}
  - {table: chapters/sources/s.yml, places: note, section: part}
  - {table: chapters/sources/s.yml, places: report, equations: R}
"""
PROSE = r"""
$$ x \tag{5.1.1} $$

$$ y \tag{A.1} $$

$$ w \tag{R.6} $$

$$ z \tag{S} $$

Section 5.1 and [(5.1.1)](#equation-5.1.1) say it, and so does [the measure](#equation-A.1). See (A.1) and
[](#equation-S). In the article's part 1 and in article equation (1) it is $relu(3.0)$. Compare Section 5.1,
paragraph 1, sentence 2, equation 5.1.1, and Article, part 1, paragraph 1. The report's section 2.1 has (R.6) in
Report, section 2.1.1, paragraph 1, sentence 1.
"""


def claim(place: str) -> dict[str, str]:
    return {"title": "t", "place": place, "reading": "It is $x$.", "verdict": "confirmed"}


def cell(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": text, "metadata": {}}


def write(
    root: Path, rows: Any = None, places: Any = None, prose: str = PROSE, docstring: str = "", **more: Any
) -> Path:
    """Write a small book, with the parts that a test wants different."""
    shutil.rmtree(root, ignore_errors=True)
    (root / "chapters" / "sources").mkdir(parents=True)
    (root / "code").mkdir()
    (root / "linewise.yml").write_text(CONVENTIONS, encoding="utf-8")
    table = {"source": "The source", "shape": SHAPE, "rows": ROWS if rows is None else rows} | more
    (root / "chapters" / "sources" / "s.yml").write_text(yaml.safe_dump(table), encoding="utf-8")
    claims = {key: claim(place) for key, place in (PLACES if places is None else places).items()}
    (root / "chapters" / "c.claims.yml").write_text(yaml.safe_dump(claims), encoding="utf-8")
    (root / "chapters" / "c.ipynb").write_text(json.dumps({"cells": [cell(prose)]}), encoding="utf-8")
    (root / "code" / "m.py").write_text(f'def f():\n    r"""{docstring}"""\n', encoding="utf-8")
    (root / "page.md").write_text("# A page\n", encoding="utf-8")
    return root


def test_a_covered_book_has_no_problem(tmp_path: Path) -> None:
    assert problems(write(tmp_path / "book")) == []


def changed(at: str, **fields: Any) -> list[dict[str, Any]]:
    rows = [row | fields if row["at"] == at else row for row in ROWS]
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


#: Which rows name another.
ROW_OF = "of: expected a row exactly for a repetition, got"


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_a_missing_row_is_noticed(tmp_path: Path, row: int) -> None:
    found = problems(write(tmp_path / "book", rows=ROWS[:row] + ROWS[row + 1 :]))
    assert f"{ROWS[row]['at']}: no row" in found


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([*ROWS, {"at": "article.1 p1 s2", "gist": "g", "none": "notation"}], "has no such sentence"),
        ([*ROWS, {"at": "article.2 title", "gist": "g", "none": "heading"}], "has no such sentence"),
        ([ROWS[0], ROWS[0], *ROWS[1:]], "5.1 title: 2 rows"),
        ([ROWS[1], ROWS[0], *ROWS[2:]], "5.1 title: out of order"),
        (changed("5.1 title", none=None), "5.1 title: neither a claim nor a reason"),
        (changed("5.1 p1 s2", none="motivation"), "5.1 p1 s2: both a claim and a reason"),
        (changed("5.1 title", none="boring"), "5.1 title: none: expected one of"),
        (changed("5.1 p2 s1", of="5.1 p9 s9"), "5.1 p2 s1: of: no row 5.1 p9 s9"),
        (
            changed("5.1 p2 s1", of=None),
            f"5.1 p2 s1: {ROW_OF} None where none is 'repetition'",
        ),
        (
            changed("5.1 title", of="5.1 p1 s1"),
            f"5.1 title: {ROW_OF} '5.1 p1 s1' where none is 'heading'",
        ),
        (changed("5.1 p1 s1", equations=["5.1.1", "5.1.2"]), "(5.1.2): no chapter shows it"),
        (changed("5.1 p1 s2", equations=["5.1.1"]), "(5.1.1): 2 rows display it"),
        (changed("5.1 p1 s1", equations=None), "(5.1.1): no row displays it"),
        (changed("5.1 p1 s1", equations=["A.1"]), "(A.1): 2 rows display it"),
    ],
)
def test_a_bad_row_is_noticed(tmp_path: Path, rows: list[dict[str, Any]], problem: str) -> None:
    assert [found for found in problems(write(tmp_path / "book", rows=rows)) if problem in found]


@pytest.mark.parametrize(
    ("places", "problem"),
    [
        (PLACES | {"5.1/property": "5.1 p1 s3"}, "5.1/property: place: no row 5.1 p1 s3"),
        (PLACES | {"5.1/property": "5.1 p1 s2; 5.2 p1 s1"}, "5.1/property: place: no row 5.2 p1 s1"),
        (PLACES | {"5.1/title": "5.1 title"}, "5.1 title: both a claim and a reason"),
        (PLACES | {"own/one": "beyond 5.3"}, "own/one: place: no section 5.3"),
        (PLACES | {"own/one": "beyond article.4"}, "own/one: place: no section article.4"),
        (PLACES | {"own/one": "beyond note.2"}, "own/one: place: no section note.2"),
        (PLACES | {"own/two": "beyond report.2.2"}, "own/two: place: no section report.2.2"),
        ({k: v for k, v in PLACES.items() if k != "5.1/property"}, "5.1 p1 s2: neither a claim nor a reason"),
        (PLACES | {"5.1.1": "5.1 p1 s2", "x": "5.1 p1 s1"}, "5.1.1: place: no row of 5.1 p1 s2 displays the equation"),
    ],
)
def test_a_misplaced_claim_is_noticed(tmp_path: Path, places: dict[str, str], problem: str) -> None:
    assert [one for one in problems(write(tmp_path / "book", places=places)) if problem in one]


MISNUMBERED = [
    (r"$$ q \tag{5.1.7} $$", "(5.1.7): no row displays it"),
    (r"$$ q \tag{A.7} $$", "(A.7): no row displays it"),
    (r"$$ q \tag{R.7} $$", "(R.7): no row displays it"),
    (r"$$ q \tag{7} $$", "(7): no row displays it"),
    (r"$$ q \tag{5.1.1} $$", "(5.1.1): shown 2 times"),
    ("[(5.1.1)](#equation-A.1)", "a link from (5.1.1) to equation-A.1"),
    ("[(5.1.1)](#equation-5.1.2)", "a link to equation-5.1.2, which no chapter shows"),
    ("[the formula](other.ipynb#equation-5.1.2)", "a link to equation-5.1.2, which no chapter shows"),
]
MENTIONED = [
    ("Section 5.1.4 has it.", "no section 5.1.4"),
    ("They are in sections 5.1 and 5.2.", "no section 5.2"),
    ("It is in section\n5.3.", "no section 5.3"),
    ("Equation (5.1.5) has it.", "no equation (5.1.5)"),
    ("By equations 5.1.1 and 5.1.2 it holds.", "no equation (5.1.2)"),
    ("By equation 5.1 it holds.", "no equation (5.1)"),
    ("It follows (5.1.6).", "no equation (5.1.6)"),
    ("It follows (A.6).", "no equation (A.6)"),
    ("This is article equation (6).", "no article equation (6)"),
    ("These are the article’s equations (1) and (8).", "no article equation (8)"),
    ("This is the article's part 7.", "no part 7 of the article"),
    ("These are parts 1 and 2 of the article.", "no part 2 of the article"),
    ("See Section 5.1, paragraph 3.", "no sentence 5.1 p3 s1"),
    ("See Section 5.1, paragraph 1, sentence 4.", "no sentence 5.1 p1 s4"),
    ("See Article, part 1, paragraph 2.", "no sentence 1 p2 s1"),
    ("This is the note's part 6.", "no part 6 of the note"),
    ("These are parts 1 and 5 of the note.", "no part 5 of the note"),
    ("See Note, part 1, paragraph 3.", "no sentence 1 p3 s1"),
]


@pytest.mark.parametrize(("text", "problem"), MISNUMBERED + MENTIONED)
def test_an_unknown_number_in_a_notebook_is_noticed(tmp_path: Path, text: str, problem: str) -> None:
    found = problems(write(tmp_path / "book", prose=f"{PROSE}\n\n{text}"))
    assert [one for one in found if problem in one]


@pytest.mark.parametrize(("text", "problem"), MENTIONED)
def test_an_unknown_number_elsewhere_is_noticed(tmp_path: Path, text: str, problem: str) -> None:
    assert f"m.py: f: {problem}" in problems(write(tmp_path / "book", docstring=text))
    root = write(tmp_path / "book")
    (root / "page.md").write_text(text, encoding="utf-8")
    assert f"page.md: {problem}" in problems(root)
    captioned = cell("") | {"cell_type": "code", "outputs": [], "metadata": {"mystnb": {"figure": {"caption": text}}}}
    (write(root) / "chapters" / "c.ipynb").write_text(json.dumps({"cells": [cell(PROSE), captioned]}), encoding="utf-8")
    assert f"c.ipynb: cell 1: {problem}" in problems(root)


def test_an_unshown_equation_is_noticed(tmp_path: Path) -> None:
    assert "(5.1.1): no chapter shows it" in problems(write(tmp_path / "book", prose=PROSE.replace("tag{5.1.1}", "")))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"at": "5.1 p1 s1"}, "5.1 p1 s1: gist: missing"),
        ({"gist": "no place"}, "the row {'gist': 'no place'}: at: missing"),
        ({"at": "5.1 p1 s1", "gist": "g", "nnoe": "heading"}, "5.1 p1 s1: nnoe: no such key; did you mean none?"),
        ("text", "rows: expected a mapping of at, gist, equations, none, of, got 'text'"),
        ({"at": "5.1 p1 s1", "gist": "g", "equations": [1.1]},
         "5.1 p1 s1: equations: expected text, got float 1.1; put it in quotes"),
        ({"at": "5.1 p1 s1", "gist": "g", "equations": 1.1}, "5.1 p1 s1: equations: expected a list, got 1.1"),
    ],
)  # fmt: skip
def test_malformed_rows_are_refused_all_at_once(tmp_path: Path, row: Any, words: str) -> None:
    with pytest.raises(LedgerError) as error:
        read_sources(write(tmp_path / "book", rows=[row, *ROWS, {"at": "5.1 p9 s9"}]))
    assert str(error.value) == f"s.yml: {words}\ns.yml: 5.1 p9 s9: gist: missing"


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ({}, "expected a mapping from sections to lists, got {}"),
        (None, "expected a mapping from sections to lists, got None"),
        ({5.1: [2]}, "5.1: expected text, got float 5.1; put it in quotes"),
        ({"5.1": ["two"]}, "5.1: expected a list with the number of sentences of each paragraph, got ['two']"),
    ],
)
def test_a_table_without_a_shape_is_refused(tmp_path: Path, shape: Any, words: str) -> None:
    with pytest.raises(LedgerError) as error:
        read_sources(write(tmp_path / "book", shape=shape))
    assert str(error.value) == f"s.yml: shape: {words}"


def test_tables_that_are_not_there_are_named(tmp_path: Path) -> None:
    root = write(tmp_path / "book")
    (root / "linewise.yml").write_text("sources: [{table: a.yml}, {table: b.yml}]", encoding="utf-8")
    with pytest.raises(LedgerError) as error:
        read_sources(root)
    said = "linewise.yml: sources: expected a file below {}, got '{}.yml', which is not there"
    assert str(error.value).splitlines() == [said.format(root, name) for name in "ab"]


def test_rows_of_the_ledger_by_sentence(tmp_path: Path) -> None:
    root = write(tmp_path / "book", places={"a": "5.1 p1 s1; 5.1 p1 s2", "b": "5.1 p1 s1"})
    found = {place: [row.claim.id for row in rows] for place, rows in deciding(collate(root)).items()}
    assert found == {"5.1 p1 s1": ["a", "b"], "5.1 p1 s2": ["a"]}


def test_chapters_are_listed_in_the_order_of_the_sources() -> None:
    book = Book.__new__(Book)
    book.sentences = [Sentence("5.1 p1 s1", "a formula")]
    book.deciding = {"5.1 p1 s1": [SimpleNamespace(page=page) for page in "cadbehgfcc"]}  # type: ignore[misc]
    assert list(book.chapters().items()) == [(page, {"5.1": 1}) for page in "cadbehgf"]


# --- a fault is reported once, and nothing else is -------------------------------------------------


@pytest.mark.parametrize(("text", "problem"), MENTIONED)
def test_an_unknown_number_is_the_only_problem(tmp_path: Path, text: str, problem: str) -> None:
    assert problems(write(tmp_path / "book", prose=f"{PROSE}\n\n{text}")) == [f"c.ipynb: cell 0: {problem}"]


@pytest.mark.parametrize(
    ("rows", "places", "found"),
    [
        (changed("5.1 title", none=None), PLACES, ["5.1 title: neither a claim nor a reason against one"]),
        (changed("5.1 p1 s2", none="motivation"), PLACES, ["5.1 p1 s2: both a claim and a reason against one"]),
        (changed("5.1 p2 s1", of="5.1 p9 s9"), PLACES, ["5.1 p2 s1: of: no row 5.1 p9 s9"]),
        (changed("5.1 p2 s1", of=None), PLACES, [f"5.1 p2 s1: {ROW_OF} None where none is 'repetition'"]),
        (changed("5.1 title", of="5.1 p1 s1"), PLACES,
         [f"5.1 title: {ROW_OF} '5.1 p1 s1' where none is 'heading'"]),
        ([ROWS[1], ROWS[0], *ROWS[2:]], PLACES, ["5.1 title: out of order"]),
        ([ROWS[0], ROWS[0], *ROWS[1:]], PLACES, ["5.1 title: 2 rows"]),
        ([*ROWS[:2], ROWS[3], ROWS[2], *ROWS[4:]], PLACES, ["5.1 p1 s2: out of order"]),
        ([*ROWS, {"at": "article.1 p1 s2", "gist": "g", "none": "notation"}], PLACES,
         ["article.1 p1 s2: The source has no such sentence"]),
        (changed("5.1 title", none="boring"), PLACES,
         [f"5.1 title: none: expected one of {', '.join(standard().reasons)}, got 'boring'"]),
        (ROWS, PLACES | {"own/one": "beyond 5.3"}, ["own/one: place: no section 5.3"]),
        (ROWS, PLACES | {"own/one": "beyond article.1"}, []),
        (ROWS, PLACES | {"own/one": "beyond 5.1 and the rest"}, []),
        (ROWS, PLACES | {"5.1/more": "5.1 p1 s2; 5.1 p1 s1"}, []),
        (ROWS, PLACES | {"5.1.1": "5.1 p1 s2; 5.1 p1 s1"}, []),
        (ROWS, PLACES | {"5.1.1": "5.1 p1 s2", "x": "5.1 p1 s1"},
         ["5.1.1: place: no row of 5.1 p1 s2 displays the equation"]),
    ],
)  # fmt: skip
def test_a_fault_of_a_row_or_a_place_is_the_only_problem(tmp_path: Path, rows: Any, places: Any, found: Any) -> None:
    assert problems(write(tmp_path / "book", rows=rows, places=places)) == found


@pytest.mark.parametrize(
    ("more", "found"),
    [
        (r"$$ q \tag{5.1.7} $$", ["(5.1.7): no row displays it"]),
        (r"$$ q \tag{7} $$", ["(7): no row displays it"]),
        (r"$$ q \tag{B.7} $$ and $$ q \tag*{ Var } $$", []),
        (r"$$ q \tag{5.1.1} $$ and $$ q \tag{5.1.1} $$", ["(5.1.1): shown 3 times"]),
        ("[(5.1.1)](#equation-A.1)", ["c.ipynb: cell 0: a link from (5.1.1) to equation-A.1"]),
        ("[see](#equation-5.1.1) and [it (A.1)](c.ipynb#equation-A.1)", []),
        ("[see](#equation-5.1.2)", ["c.ipynb: cell 0: a link to equation-5.1.2, which no chapter shows"]),
        ("The value 5.1.9 of a version, relu(3.0), and Equations 5.1.1, A.1 and (5.1.1).", []),
        ("Sections 5.1, 5.1 and 5.1. Article, parts 1 and 1. Article, equations (1), (1) or (1).", []),
        ("Sections 5.1, 5.7 and 5.8.", ["c.ipynb: cell 0: no section 5.7", "c.ipynb: cell 0: no section 5.8"]),
        ("Section 5.1, paragraph 2, sentence 1, and paragraph 9.", []),
        ("Note, part 1, paragraph 1, sentence 1, and part 1 of the note.", []),
        ("Section 5.1, paragraph 2, sentence 2.", ["c.ipynb: cell 0: no sentence 5.1 p2 s2"]),
    ],
)
def test_what_a_text_may_name_and_what_not(tmp_path: Path, more: str, found: list[str]) -> None:
    assert problems(write(tmp_path / "book", prose=f"{PROSE}\n\n{more}")) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ({"source": "s", "shape": SHAPE}, "rows: missing"),
        ({"source": "s", "shape": SHAPE, "rows": [], "more": 1}, "more: no such key; there are source, shape, rows"),
        ([], "expected a mapping of source, shape, rows, got []"),
        ("text", "expected a mapping of source, shape, rows, got 'text'"),
        (None, "expected a mapping of source, shape, rows, got None"),
        ({"source": "s", "shape": SHAPE, "rows": None}, "rows: expected a list, got None"),
    ],
)
def test_a_table_has_three_keys(tmp_path: Path, text: Any, words: str) -> None:
    root = write(tmp_path / "book")
    (root / "chapters" / "sources" / "s.yml").write_text(yaml.safe_dump(text), encoding="utf-8")
    with pytest.raises(LedgerError) as error:
        read_sources(root)
    assert str(error.value) == f"s.yml: {words}"


def test_sources_come_in_the_order_of_the_conventions_and_every_field_is_read(tmp_path: Path) -> None:
    root = write(tmp_path / "book")
    sources = root / "chapters" / "sources"
    for name, section in (("a", "article.1"), ("b", "5.2"), ("c", "5.1")):
        row = {"at": f"{section} title", "gist": "g", "none": "heading", "equations": ["1", "2"], "of": "x"}
        (sources / f"{name}.yml").write_text(yaml.safe_dump({"source": name, "shape": {section: []}, "rows": [row]}))
    tables = [{"table": f"chapters/sources/{name}.yml"} for name in "bca"]
    (root / "linewise.yml").write_text(yaml.safe_dump({"sources": tables}), encoding="utf-8")
    found = read_sources(root)
    assert [source.name for source in found] == ["b", "c", "a"]
    assert found[0].rows == (Sentence("5.2 title", "g", ("1", "2"), "heading", "x"),)
    assert found[0].rows[0].section == "5.2" and Sentence("5.1 p1 s1", "g").equations == ()


def test_a_book_lists_its_sections_chapters_and_verdicts(tmp_path: Path) -> None:
    root = write(tmp_path / "book")
    book = Book(root, ["chapters/c"])
    assert [row.claim.id for row in book.rows] == [
        "5.1.1",
        "5.1/property",
        "article/1",
        "report/6",
        "own/one",
        "own/two",
    ]
    assert [(s, gist, [row.claim.id for row in rows]) for s, gist, rows in book.sections()] == [
        ("5.1", "the title", ["5.1.1", "5.1/property"]), ("article.1", "the introduction", ["article/1"]),
        ("report.2.1.1", "a cost", ["report/6"]),
    ]  # fmt: skip
    assert book.chapters() == {"chapters/c": {"5.1": 2, "article.1": 1, "report.2.1.1": 1}} and book.counts() == {}
    assert book.by_id["article/1"].claim.place == "article.1 p1 s1" and set(book.deciding) == set(PLACES.values())
    assert Book(root, ["chapters/other"]).rows == []
    (root / "chapters" / "c.claims.yml").write_text(
        yaml.safe_dump({"x": claim("5.1 p1 s1") | {"verdict": "not decided", "reason": "taste"}}), encoding="utf-8"
    )
    assert Book(root, ["chapters/c"]).counts() == {"not decided": 1}


def test_every_text_of_the_book_is_read(tmp_path: Path) -> None:
    """A wrong section in a claim, a page below chapters, a class, a function, a module and an alternative text."""
    root, wrong = write(tmp_path / "book"), "Section 9.9 has it."
    (root / "chapters" / "more.md").write_text(wrong, encoding="utf-8")
    (root / "code" / "m.py").write_text(
        f'"""{wrong}"""\nclass C:\n    """{wrong}"""\n    def f(self):\n        """{wrong}"""\n        "{wrong}"\n',
        encoding="utf-8",
    )
    claims = {key: claim(place) for key, place in PLACES.items()} | {"own/two": claim("beyond 5.1") | {"title": wrong}}
    (root / "chapters" / "c.claims.yml").write_text(yaml.safe_dump(claims), encoding="utf-8")
    image = {"cell_type": "code", "source": wrong, "metadata": {"mystnb": {"image": {"alt": wrong}}}}
    lines = {"cell_type": "markdown", "source": ["See Section\n", "9.9."], "metadata": {}}
    (root / "chapters" / "c.ipynb").write_text(json.dumps({"cells": [cell(PROSE), image | {"outputs": []}, lines]}))
    hidden = root / "chapters" / ".ipynb_checkpoints"
    hidden.mkdir()
    (hidden / "c.ipynb").write_text(json.dumps({"cells": [cell(wrong)]}), encoding="utf-8")
    places = ("claim own/two", "more.md", "c.ipynb: cell 1", "c.ipynb: cell 2", "m.py: module", "m.py: C", "m.py: f")
    assert problems(root) == [f"{place}: no section 9.9" for place in places]


def test_records_cannot_be_changed_by_accident() -> None:
    for record in (Sentence("5.1 p1 s1", "g"), coverage.Source("s", {}, ())):
        name = dataclasses.fields(record)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, None)
