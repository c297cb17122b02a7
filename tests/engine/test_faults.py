"""All that is wrong with a book is said at once, by the command and by a build, in words that lead to the place."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from linewise.__main__ import main
from linewise.conventions import ConventionError, Conventions, Source, conventions_of, standard
from linewise.ledger import Claim, LedgerError, agreement, audit, load_claims, observation
from linewise.ledger.card import MIME
from linewise.ledger.coverage import Book, read_sources
from linewise.ledger.faults import faults

ROOT = Path(__file__).resolve().parents[2]
TABLE: dict[str, Any] = {
    "source": "A leaflet",
    "shape": {"1": [2, 1]},
    "rows": [
        {"at": "1 title", "gist": "growth", "none": "heading"},
        {"at": "1 p1 s1", "gist": "a force"},
        {"at": "1 p1 s2", "gist": "a sum"},
        {"at": "1 p2 s1", "gist": "a sum again", "none": "repetition", "of": "1 p1 s2"},
    ],
}
CLAIMS: dict[str, dict[str, str]] = {
    "1/force": {"title": "A force", "place": "1 p1 s1", "reading": "R", "verdict": "not decided", "reason": "taste"},
    "1/sum": {"title": "A sum", "place": "1 p1 s2", "reading": "R", "verdict": "refuted", "holds": "H",
              "grade": "false statement"},
    "own/halves": {"title": "Halves", "place": "beyond 1", "reading": "R", "verdict": "proved", "scope": "all"},
}  # fmt: skip


def record(claim: str) -> dict[str, Any]:
    return {"claim": claim, **CLAIMS[claim], "evidence": []}


def write(root: Path, claims: Any = None, rows: Any = None, outputs: list[dict[str, Any]] | None = None) -> Path:
    """Write a sound book of one chapter, with the parts that a test wants different."""
    (root / "chapters").mkdir()
    (root / "linewise.yml").write_text("sources: [{table: leaflet.yml}]")
    (root / "leaflet.yml").write_text(yaml.safe_dump(TABLE | {"rows": TABLE["rows"] if rows is None else rows}))
    (root / "chapters" / "one.claims.yml").write_text(yaml.safe_dump(claims or CLAIMS))
    checks = [{"output_type": "execute_result", "metadata": {}, "execution_count": 1, "data": {MIME: record(name)}}
              for name in ("1/sum", "own/halves")]  # fmt: skip
    notebook(root, checks if outputs is None else outputs)
    for page in ("ledger", "errata", "coverage"):
        (root / f"{page}.md").write_text(f'# The page {page}\n\n{{% include "{page}.md" %}}\n')
    return root


def notebook(root: Path, outputs: list[dict[str, Any]]) -> None:
    cells = [{"cell_type": "markdown", "source": "# One", "metadata": {}}]
    cells.append({"cell_type": "code", "source": "", "metadata": {}, "execution_count": None, "outputs": outputs})
    path = root / "chapters" / "one.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))


def changed(**fields: str) -> dict[str, dict[str, str]]:
    return CLAIMS | {"1/sum": CLAIMS["1/sum"] | fields}


def test_a_sound_book_has_no_fault_and_its_checks_are_counted(tmp_path: Path, capsys) -> None:
    assert main([str(write(tmp_path))]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["2 of the 2 claims to check have been checked"]
    notebook(tmp_path, [])
    assert main([str(tmp_path)]) == 1
    counts, checked, *problems = capsys.readouterr().out.splitlines()
    assert counts.startswith("1 proved, ") and checked == "0 of the 2 claims to check have been checked"
    assert len(problems) == 2


# --- the check is of another claim than the file now has ---------------------------------------------


@pytest.mark.parametrize("field", ["title", "place", "reading", "holds", "grade"])
def test_a_claim_that_changed_after_its_check_is_found_out(tmp_path: Path, field: str) -> None:
    other = {"place": "1 p1 s2; 1 p1 s1", "grade": "slip of notation"}.get(field, "The moon is a cheese.")
    differ = "the claims file and the stored check differ; execute the chapter anew"
    assert faults(write(tmp_path, changed(**{field: other}))) == [f"1/sum: {field}: {differ}"]


def test_a_changed_scope_and_several_changed_fields_are_named(tmp_path: Path) -> None:
    claims = changed(title="T", holds="I") | {"own/halves": CLAIMS["own/halves"] | {"scope": "for some"}}
    assert [fault.partition(": the")[0] for fault in faults(write(tmp_path, claims))] == [
        "1/sum: title, holds", "own/halves: scope",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([], "; one.ipynb has not been executed"),
        ([{"output_type": "stream", "text": "x"}], ""),
        (
            [{"output_type": "stream"}, {"output_type": "error", "ename": "KeyError", "evalue": "'own/\nhalfs'"}],
            "; one.ipynb: cell 1 stopped with KeyError: 'own/ halfs'",
        ),
        (None, "; there is no one.ipynb"),
    ],
)
def test_a_missing_check_is_explained(tmp_path: Path, outputs: list[dict[str, Any]] | None, words: str) -> None:
    write(tmp_path, outputs=outputs)
    if outputs is None:
        (tmp_path / "chapters" / "one.ipynb").unlink()
    assert audit(tmp_path)[0] == f"one.claims.yml: 1/sum: expected one executed check, found 0{words}"


# --- conventions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("other", "words"), [(None, ""), ("linewise.yaml", " (linewise.yaml is not read)")])
def test_a_book_without_conventions_is_a_problem(tmp_path: Path, other: str | None, words: str, capsys) -> None:
    path = write(tmp_path) / "linewise.yml"
    path.rename(path.with_name(other)) if other else path.unlink()
    assert main([str(tmp_path)]) == 1
    assert f"problem: no linewise.yml in {tmp_path}: no source is covered{words}\n" in capsys.readouterr().out


def test_conventions_of_a_folder_above_are_none_of_the_books_own(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    path = write(tmp_path / "book") / "linewise.yml"
    path.rename(tmp_path / "linewise.yml")
    assert faults(tmp_path / "book") == [f"no linewise.yml in {tmp_path / 'book'}: no source is covered"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("verdict: {}", "linewise.yml: verdict: no such key; did you mean verdicts?"),
        ("sources: [{tabel: s.yml}]", "linewise.yml: sources: tabel: no such key; did you mean table?"),
        ("sources: [{places: essay}]", "linewise.yml: sources: table: missing"),
        ("reasons: {5.1: a}", "linewise.yml: reasons: expected text, got float 5.1; put it in quotes"),
    ],
)
def test_a_wrong_key_of_the_conventions_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "linewise.yml").write_text(text)
    with pytest.raises(ConventionError, match=re.escape(words) + "$"):
        conventions_of(tmp_path)


@pytest.mark.parametrize(
    ("places", "words"),
    [((), "'2 p1 s3'"), (("leaflet",), "'leaflet.2 p1 s3'"), (("", "note", "note"), "'2 p1 s3', 'note.2 p1 s3'")],
)
def test_a_place_is_expected_as_the_book_has_it(places: tuple[str, ...], words: str) -> None:
    own = Conventions(tuple(Source("s.yml", place) for place in places), standard().verdicts, {}, {})
    with pytest.raises(LedgerError, match=f"^1: place: expected {words} or 'beyond ...', got 'page 3'$"):
        Claim("1", "t", "page 3", "r", "defined", conventions=own)


# --- claims that cannot be read -------------------------------------------------------------------------


def test_all_claims_that_cannot_be_read_are_named_with_their_files(tmp_path: Path, capsys) -> None:
    claims: dict[Any, Any] = {k: v | {"verdict": "prooved"} for k, v in CLAIMS.items()} | {1.1: {}}
    root = write(tmp_path, claims)
    (root / "chapters" / "two.claims.yml").write_text("a: {title: t, title: u}")
    (root / "leaflet.yml").write_text("source: s")
    assert main([str(root)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("python -m linewise: ") for line in lines) and "--help" not in "".join(lines)
    said = [line.removeprefix("python -m linewise: ").removeprefix(f"{root}/chapters/") for line in lines]
    assert [tuple(line.split(": ")[:2]) for line in said] == [
        *(("one.claims.yml", name) for name in ("1/force", "1/sum", "own/halves", "1.1")),
        ("two.claims.yml", "title"), ("leaflet.yml", "shape, rows"),
    ]  # fmt: skip
    assert said[4] == "two.claims.yml: title: stands twice, in line 1 and in line 1"


def test_a_word_that_yaml_takes_for_no_is_to_be_quoted(tmp_path: Path) -> None:
    claims: dict[str, Any] = {"1/sum": CLAIMS["1/sum"] | {"grade": False}}
    with pytest.raises(LedgerError, match="1/sum: grade: expected text, got bool False; put it in quotes$"):
        load_claims("one", write(tmp_path, claims) / "chapters")


def test_an_unknown_id_is_answered_with_one_that_is_like_it(tmp_path: Path) -> None:
    claims = load_claims("one", write(tmp_path) / "chapters")
    for key, words in (("own/halfs", "did you mean own/halves?"), ("x", "there are 1/force, 1/sum, own/halves")):
        with pytest.raises(KeyError) as error:
            claims[key]
        assert error.value.args == (f"{key}: no such claim in one.claims.yml; {words}",)


# --- evidence ---------------------------------------------------------------------------------------------


class Estimated:
    """A number and its error, of a class that is the reader's own."""

    def __init__(self, value: float, standard_error: float) -> None:
        self.value, self.standard_error = value, standard_error


def test_another_outcome_comes_with_its_numbers() -> None:
    null = ("shuffled", Estimated(0.5, 0.1))
    seen = observation(Estimated(0.7, 0.1), ">", 0.5, null=null, units="22 years", of="the share")
    claim = Claim("3", "t", "beyond 1", "r", "measured", outcome="supported")
    with pytest.raises(LedgerError) as error:
        claim.measure(seen)
    assert str(error.value) == (
        "3: outcome: the claims file says supported, the observations undecided "
        "(undecided: 0.7 ± 0.1, asked for more than 0.5; 4 standard errors are 0.4)"
    )


def test_numbers_alone_are_told_what_an_estimate_is() -> None:
    with pytest.raises(TypeError, match=r"^observed: expected an estimate, with .value and .standard_error, or numbers "
                                        r"with tolerance and because, got \(1.0, 0.1\)$"):  # fmt: skip
        agreement((1.0, 0.1), 1.0, mistake=("two", 2))


# --- the site -----------------------------------------------------------------------------------------------


def built(root: Path) -> tuple[dict[str, str], list[str]]:
    """Build the site, and return the text of its pages and its warnings."""
    (root / "conf.py").write_text(
        "extensions = ['myst_nb', 'linewise.pages']\nnb_execution_mode = 'off'\nexclude_patterns = ['out']\n"
        "myst_enable_extensions = ['colon_fence', 'dollarmath']\nhtml_theme = 'basic'\n"
    )
    pages = ["ledger", "errata", "coverage"]
    (root / "index.md").write_text("# A\n\n```{toctree}\nchapters/one\n" + "\n".join(pages) + "\n```\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(root), str(root / "out")]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "code")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    texts = {name: (root / "out" / f"{name}.html").read_text(encoding="utf-8") for name in pages}
    said = {name: " ".join(re.sub(r"<[^>]+>", " ", text).split()) for name, text in texts.items()}
    return said, [line.partition("WARNING: ")[2] for line in done.stderr.splitlines() if "WARNING" in line]


def test_a_sound_book_is_built_without_a_warning(tmp_path: Path) -> None:
    said, warnings = built(write(tmp_path))
    assert warnings == []
    assert "Claims of this book treat 2 of them. The other 2 need no claim:" in said["coverage"]
    assert "says once more" in said["coverage"] and "introduces symbols" not in said["coverage"], "an unused reason"
    assert "refuted false statement A sum 1/sum" in said["ledger"] and "What holds: H" in said["ledger"]
    assert "refuted false statement A sum 1/sum" in said["errata"]


def test_a_build_warns_of_all_that_the_audit_finds(tmp_path: Path) -> None:
    rows = [*TABLE["rows"][1:3], {"at": "1 p2 s1", "gist": "a sum again"}]
    root = write(tmp_path, changed(place="1 p7 s1"), rows)
    said, warnings = built(root)
    assert warnings == [f"ledger: {fault}" for fault in faults(root)]
    assert {"1 title: no row", "1/sum: place: no row 1 p7 s1", "1 p1 s2: neither a claim nor a reason against one"} <= {
        *faults(root)
    }
    counts = "3 headings and sentences. Claims of this book treat 1 of them. 2 have neither a claim nor a reason"
    assert counts in said["coverage"] and "The other 0 need no claim:" in said["coverage"]


def test_sentences_are_treated_or_spared(tmp_path: Path) -> None:
    book = Book(write(tmp_path), ["chapters/one"])
    assert [[s.at for s in found] for found in (book.treated, book.spared)] == [
        ["1 p1 s1", "1 p1 s2"], ["1 title", "1 p2 s1"],
    ]  # fmt: skip
    assert Book(tmp_path, []).treated == []


def test_the_table_in_the_readme_is_one(tmp_path: Path) -> None:
    readme = (ROOT / "code" / "linewise" / "README.md").read_text(encoding="utf-8")
    [table] = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    [sources] = re.findall(r"`(sources: .*)`\.\n", readme)
    (tmp_path / "sources").mkdir()
    (tmp_path / "linewise.yml").write_text(sources, encoding="utf-8")
    (tmp_path / "sources" / "sheet.yml").write_text(textwrap.dedent(f"   {table.lstrip()}"), encoding="utf-8")
    [source] = read_sources(tmp_path)
    assert list(source.places()) == [row.at for row in source.rows]
