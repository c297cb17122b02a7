"""The book on paper: what a cell stores as HTML arrives whole in LaTeX, and nobody keeps a PDF with a fault."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "_ext"))

from pages import descriptions  # noqa: E402
from paper import print_book  # noqa: E402

import typeset  # noqa: E402
from linewise.conventions import conventions_of  # noqa: E402
from linewise.derive import display  # noqa: E402
from linewise.ledger import card  # noqa: E402
from linewise.pages import print_cards  # noqa: E402

CHAPTER = ROOT / "chapters" / "operator" / "scaling.ipynb"
DRAWS = {card.MIME: card, display.MIME: display}


def records(notebook: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the records of a notebook's cards and derivations, each with its mime type."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    return [(kind, d[kind]) for d in data for kind in DRAWS if kind in d]


def on_paper(kind: str, record: dict[str, Any]) -> str:
    """Return a record as LaTeX."""
    if kind == card.MIME:
        return print_cards.card_tex(record, str, "", conventions_of(ROOT))
    return print_cards.derivation_tex(record, str)


def said(text: str) -> Counter[str]:
    """Return the words and formulas of a text, without the marks that only one of two forms has."""
    bare = re.sub(r"\\(?:displaystyle|piece|longformula|vphantom|text\w*)|\{\}", " ", text)
    bare = re.sub(r"[\\{}()$:_^]", " ", bare.replace("’", "'"))
    return Counter(bare.split())


def lost(html: str, tex: str) -> set[str]:
    """Return the words and parts of formulas that HTML says and LaTeX does not."""
    return set(said(BeautifulSoup(html, "html.parser").get_text(" "))) - set(said(tex))


def test_no_word_and_no_formula_of_a_card_is_lost():
    found = records(CHAPTER)
    assert {kind for kind, _ in found} == set(DRAWS) and len(found) > 10
    assert [words for kind, record in found if (words := lost(DRAWS[kind].html(record), on_paper(kind, record)))] == []


def test_a_lost_reason_is_noticed():
    kind, record = next((kind, record) for kind, record in records(CHAPTER) if kind == display.MIME)
    html, last = display.html(record), record["lines"][-1]
    last["reason"] = "so it is"
    assert lost(html, on_paper(kind, record))


@pytest.mark.parametrize(("builder", "described"), [("html", True), ("epub", False)])
def test_a_page_of_the_ebook_has_no_description(builder, described):
    app = SimpleNamespace(
        builder=SimpleNamespace(name=builder, format="html"), config=SimpleNamespace(html_title="Title")
    )
    context: dict[str, str] = {}
    page = nodes.document(None, None, nodes.title("", "A page"), nodes.paragraph("", "What it says."))
    descriptions.describe(app, "page", "page.html", context, page)
    assert ("metatags" in context) is described


def test_what_is_no_table_is_an_error():
    [table] = print_cards.from_html("<table><tr><th>a</th></tr><tr><td>b <em>c</em></td></tr></table>")
    assert table.astext().split() == ["a", "b", "c"]
    with pytest.raises(ExtensionError, match="expected a table"):
        print_cards.from_html("<p>by itself</p>")


def test_a_broken_formula_is_the_formula():
    chains = [record for kind, record in records(CHAPTER) if kind == display.MIME]
    formulas = [display.tex_of(line) for chain in chains for line in chain["lines"]]
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
    def fails(language: str) -> list[str]:
        raise subprocess.CalledProcessError(1, command, stderr=stderr)

    monkeypatch.setattr(typeset, "missing", lambda kind: [])
    monkeypatch.setattr(typeset, "pdf", fails)
    assert typeset.main(["pdf"]) == 1
    assert capsys.readouterr().err == says
