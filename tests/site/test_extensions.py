"""The site's own Sphinx extensions: their small functions, and a build of two pages that must go wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

EXTENSIONS = Path(__file__).resolve().parents[2] / "_ext"
sys.path.insert(0, str(EXTENSIONS))

import chapter_references  # noqa: E402
import ledger_pages  # noqa: E402
import offline  # noqa: E402
import textbook_equations  # noqa: E402
import tidy_html  # noqa: E402


def test_equation_numbers():
    assert textbook_equations.tags_of(r"a &= b \tag{5.1.3} \\ c &= d \tag*{ 5.1.10 }") == ["5.1.3", "5.1.10"]
    assert textbook_equations.tags_of(r"\text{tag}{5.1.3}") == []
    assert textbook_equations.anchor_of("5.1.5") == "equation-5.1.5"
    numbers = ["A.1", "5.1.10", "5.1.9", "5.2", "article"]
    assert sorted(numbers, key=textbook_equations.natural_key) == ["5.1.9", "5.1.10", "5.2", "A.1", "article"]


@pytest.mark.parametrize(
    ("asset", "kept"),
    [
        (SimpleNamespace(filename="_static/book.js", attributes={}), True),
        (SimpleNamespace(filename="https://cdn.example/x.js", attributes={}), False),
        (SimpleNamespace(filename="//cdn.example/x.js", attributes={}), False),
        (SimpleNamespace(filename="_static/sphinx-thebe.js", attributes={}), False),
        (SimpleNamespace(filename=None, attributes={"body": "const THEBE_JS_URL = 'x'"}), False),
        (SimpleNamespace(filename=None, attributes={"body": "window.MathJax = {}"}), True),
    ],
)
def test_only_local_scripts_stay(asset, kept):
    assert offline.wanted(asset) is kept


def test_local_mathjax_is_there():
    assert all((offline.mathjax_folder() / part).exists() for part in offline.MATHJAX_PARTS)


def test_records_are_taken_out_and_cards_stay():
    data = {"text/html": "<div>", "application/vnd.attnmath.verdict+json": {}}
    notebook = {"cells": [{"outputs": [{"data": data}, {"text": "x"}]}, {"source": "prose"}]}
    assert ledger_pages.without_records(notebook)["cells"][0]["outputs"][0]["data"] == {"text/html": "<div>"}


def test_rows_are_grouped_by_section_in_natural_order():
    rows = [SimpleNamespace(claim=SimpleNamespace(section=s)) for s in ("5.1.10", "article", "5.1.9", "5.1.10")]
    assert [(name, len(group)) for name, group in ledger_pages.by_section(rows)] == [
        ("5.1.9", 1),
        ("5.1.10", 2),
        ("article", 1),
    ]
    assert ledger_pages.section_title("5.1.9") == "Section 5.1.9"


def test_references_are_listed_once_by_author():
    def entry(name: str, year: str) -> SimpleNamespace:
        return SimpleNamespace(persons={"author": [SimpleNamespace(last_names=[name])]}, fields={"year": year})

    entries = {"b": entry("Berry", "1941"), "a2": entry("Arora", "2024"), "a1": entry("Arora", "2023")}
    assert chapter_references.keys_in_order(["b", "a2", "gone", "a1", "b"], entries) == ["a1", "a2", "b"]


def test_titles_of_tabs_have_no_delimiters():
    assert tidy_html.plain_title(r"Why divide by \(d_k\)?") == "Why divide by d_k?"


CONFIGURATION = """
extensions = ["myst_parser", "textbook_equations"]
myst_enable_extensions = ["dollarmath"]
root_doc = "a"
"""


def build(folder: Path, **pages: str) -> tuple[str, str]:
    """Build pages with the equations' extension; return what page `a` became, and the warnings."""
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "conf.py").write_text(CONFIGURATION, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-n", "-q", "-E", str(folder), str(folder / "out")],
        env=os.environ | {"PYTHONPATH": str(EXTENSIONS)},
        capture_output=True,
        text=True,
        check=True,
    )
    return (folder / "out" / "a.html").read_text(encoding="utf-8"), done.stderr


PAGE_A = "# A\n\nSee [(5.1.5)](#equation-5.1.5).\n\n```{toctree}\nb\n```\n\n```{equation-index}\n```\n"
PAGE_B = "# B\n\n$$\n\\begin{aligned} x &= y \\\\ &= z \\end{aligned} \\tag{5.1.5}\n$$\n"


def test_an_equation_is_found_from_another_page(tmp_path):
    html, warnings = build(tmp_path, a=PAGE_A, b=PAGE_B)
    assert warnings == ""
    assert html.count('href="b.html#equation-5.1.5"') == 2, "one link in the text, one in the table"
    page = (tmp_path / "out" / "b.html").read_text(encoding="utf-8")
    assert 'id="equation-5.1.5"' in page
    assert "split" not in page, "MathJax allows no tag in a split environment"


def test_a_link_to_no_equation_is_reported(tmp_path):
    assert "equation-5.1.6" in build(tmp_path, a=PAGE_A.replace("5.1.5", "5.1.6"), b=PAGE_B)[1]


def test_a_number_used_twice_is_reported(tmp_path):
    assert "equation (5.1.5) is also numbered in" in build(tmp_path, a=PAGE_A + PAGE_B[4:], b=PAGE_B)[1]
