"""The book on paper: what a cell stores as HTML arrives whole in LaTeX, and nobody keeps a PDF with a fault."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "_ext"))

import print_cards  # noqa: E402
from pages import descriptions  # noqa: E402
from paper import print_book  # noqa: E402

import typeset  # noqa: E402

CHAPTER = ROOT / "chapters" / "fixed_attention" / "comparison.ipynb"  # cards, derivations and tables


def stored_html(notebook: Path) -> list[str]:
    """Return what the cells of a notebook have stored as HTML."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    return ["".join(d["text/html"]) for d in data if "text/html" in d]


def words(text: str) -> Counter[str]:
    """Return the words and formulas of a text, without the marks that only one of two forms has."""
    return Counter(re.sub(r"\\displaystyle|\\[()]|[:\s]+", " ", text).split())


def lost(stored: str, made: list[nodes.Node]) -> Counter[str]:
    """Return what the HTML says and the nodes do not."""
    heads = [f"{n['verdict']} {n['outcome']} {n['key']}" for m in made for n in m.findall(print_cards.card)]
    said = " ".join([n.astext() for m in made for n in m.findall(nodes.Text)] + heads)
    return words(BeautifulSoup(stored, "html.parser").get_text(" ")) - words(said)


def test_no_word_and_no_formula_of_a_card_is_lost():
    stored = stored_html(CHAPTER)
    assert len(stored) > 10
    assert [words for html in stored if (words := lost(html, print_cards.from_html(html)))] == []


def test_a_lost_reason_is_noticed():
    stored = next(html for html in stored_html(CHAPTER) if "derivation-name" in html)
    made = print_cards.from_html(stored)
    line = next(m for chain in made for m in chain.findall(print_cards.derivation_line))
    line.remove(line[2])
    assert lost(stored, made)


@pytest.mark.parametrize(("builder", "described"), [("html", True), ("epub", False)])
def test_a_page_of_the_ebook_has_no_description(builder, described):
    app = SimpleNamespace(
        builder=SimpleNamespace(name=builder, format="html"), config=SimpleNamespace(html_title="Title")
    )
    context: dict[str, str] = {}
    page = nodes.document(None, None, nodes.title("", "A page"), nodes.paragraph("", "What it says."))
    descriptions.describe(app, "page", "page.html", context, page)
    assert ("metatags" in context) is described


@pytest.mark.parametrize("html", ["<p>by itself</p>", '<details class="claim-card" id="a"></details>'])
def test_what_is_no_card_is_an_error(html):
    with pytest.raises(ExtensionError, match="expected"):
        print_cards.from_html(html)


def test_a_broken_formula_is_the_formula():
    formulas = [f for html in stored_html(CHAPTER) for f in re.findall(r"\\\((.*?)\\\)", html)]
    assert formulas
    for formula in formulas:
        assert "".join(print_cards.pieces(formula)).replace(" ", "") == formula.replace(" ", "")


def test_every_page_of_the_table_of_contents_is_printed_or_left_out_on_purpose():
    listed = [c["file"] for part in yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"] for c in part["chapters"]]
    assert {"chapters/operator/scaling", "errata"} <= set(listed)
    assert [page for page in listed if page.startswith("chapters/") and not print_book.is_printed(page)] == []
    assert not print_book.is_printed("coverage")


def test_a_machine_without_latex_is_told_what_to_install(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert typeset.main(["pdf"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("make pdf needs more than Python: apt-get install --no-install-recommends texlive-xetex")
    assert "fonts-noto-cjk" in said


@pytest.mark.parametrize(
    ("command", "stderr", "says"),
    [
        ([sys.executable, "-c", ""], None, "pdf: Sphinx reports what is wrong above\n"),
        (
            ["pdftotext", "a.pdf"],
            b"Syntax Error: no page\n",
            "pdf: pdftotext reports what is wrong (Syntax Error: no page)\n",
        ),
    ],
)
def test_the_tool_that_failed_is_named(monkeypatch, capsys, command, stderr, says):
    def fails() -> list[str]:
        raise subprocess.CalledProcessError(1, command, stderr=stderr)

    monkeypatch.setattr(typeset, "missing", lambda kind: [])
    monkeypatch.setattr(typeset, "pdf", fails)
    assert typeset.main(["pdf"]) == 1
    assert capsys.readouterr().err == says
