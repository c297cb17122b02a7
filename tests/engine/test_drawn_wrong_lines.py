"""Find the wrong line, from the record of any derivation: which mistakes are fit for a reader, and how it is drawn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sympy as sp
from bs4 import BeautifulSoup

from linewise.derive import Derivation, display, rules
from linewise.ledger.card import MIME as CARD
from linewise.pages import wrong_lines
from linewise.pages.wrong_lines import Exercise, exercises, is_fit, variants


def chain(mistake: Any = None, name: str = "A & $x$") -> dict[str, Any]:
    x = sp.Symbol("x", positive=True)
    made = Derivation((x + 1) ** 2 - 1, name)
    made.step(x**2 + 2 * x, because="expand", mistake=("the $2x$ forgotten", x**2 if mistake is None else mistake))
    made.step(x * (x + 2), because="take out $x$")
    return made.record()


def test_a_mistake_stands_in_the_place_of_its_line() -> None:
    record = chain()
    [exercise] = variants(record)
    assert [line["plain"] for line in exercise.lines] == ["(x + 1)**2 - 1", "x**2", "x*(x + 2)"]
    assert exercise.wrong == 2 and exercise.right == record["lines"][1]
    assert exercise.lines[1]["reason"] == "expand" and exercise.lines[1]["relation"] == "="
    assert is_fit(exercise)


def test_the_formula_of_the_right_line_is_not_left_beside_the_mistake() -> None:
    number = sp.Integer(7)  # it reads in TeX as it does in plain text, so its record has no TeX
    [exercise] = variants(chain(number))
    assert display.tex_of(exercise.lines[1]) == "7"


def spoilt(**changes: Any) -> Exercise:
    record = chain()
    record |= changes
    [exercise] = variants(record)
    return exercise


def test_what_is_not_fit() -> None:
    first, second, third = chain()["lines"]
    assert is_fit(spoilt(lines=[first, second, third]))
    assert not is_fit(spoilt(lines=[first, second]))  # nothing to look for
    assert not is_fit(spoilt(lines=[first, second, third | {"plain": "x**2", "tex": "x^{2}"}]))  # two lines are alike
    long = " + ".join(["x"] * 45)
    assert is_fit(spoilt(lines=[first, second, third | {"tex": long}]))
    assert not is_fit(spoilt(lines=[first, second, third | {"tex": f"{long} + x"}]))


@pytest.mark.parametrize(
    ("kind", "line", "fit"), [("hypothesis", 3, False), ("hypothesis", 2, True), ("definition", 3, True)]
)
def test_a_hypothesis_below_the_mistake_may_make_it_right(kind: str, line: int, fit: bool) -> None:
    assumed = [{"kind": kind, "line": line, "plain": "x = 0", "tex": "x = 0"}]
    assert is_fit(spoilt(assumed=assumed)) is fit


def test_such_a_hypothesis_is_in_the_record() -> None:
    v, w = sp.symbols("v w")
    none = rules.hypothesis(v, 0, "$v=0$")
    made = Derivation(w * (v + 2))
    made.step(v * w + 2 * w, because="multiply out", mistake=("the first product twice", 2 * v * w + 2 * w))
    made.step(2 * w, none)
    [exercise] = variants(made.record())
    assert not is_fit(exercise)


def notebook(folder: Path, *records: dict[str, Any], card: bool = False) -> Path:
    data = [{CARD: {"claim": "a", "verdict": "proved", "derivations": [r]}} if card else {display.MIME: r}
            for r in records]  # fmt: skip
    cells = [{"cell_type": "code", "source": "", "outputs": [{"data": d}]} for d in data]
    path = folder / "chapter.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# A"}, *cells]}), encoding="utf-8")
    return path


@pytest.mark.parametrize("card", [False, True])
def test_derivations_of_outputs_and_of_cards_give_exercises_each_once(tmp_path: Path, card: bool) -> None:
    found = exercises(notebook(tmp_path, chain(), chain(sp.Integer(7)), chain(), card=card))
    assert [display.tex_of(one.lines[1]) for one in found] == ["x^{2}", "7"]
    assert len({one.id for one in found}) == 2


def test_a_changed_notebook_gives_other_exercises(tmp_path: Path) -> None:
    [before] = exercises(notebook(tmp_path, chain()))
    path = notebook(tmp_path, chain(sp.Integer(7)))
    os.utime(path, ns=(1, 1))
    assert exercises(path) != [before]


def drawn(folds: bool = True) -> BeautifulSoup:
    [exercise] = variants(chain())
    return BeautifulSoup(wrong_lines.html(exercise, 4, folds=folds), "html.parser")


def test_html_has_a_line_for_each_line_and_the_solution_folded() -> None:
    article = drawn().article
    assert article and article["data-wrong"] == "2" and article.h3 and article.h3.text == "4. A & \\(x\\)"
    first, *rest = article.select("ol > li")
    assert first.select_one(".reason") is None and len(rest) == 2
    assert [line.select_one(".reason").text for line in rest] == ["expand", "take out \\(x\\)"]
    assert [line.select_one(".formula").text for line in rest] == [
        r"\(\displaystyle = x^{2}\)", r"\(\displaystyle = x \left(x + 2\right)\)"
    ]  # fmt: skip
    said = article.details.p.text
    assert said == r"Line 2: the \(2x\) forgotten. The right line: \(\displaystyle = x^{2} + 2 x\)"
    assert drawn(folds=False).details is None


def test_the_first_line_is_given_though_another_is_equal_to_it(tmp_path: Path) -> None:
    record = chain()
    record["lines"][2] = dict(record["lines"][0], relation="=", reason="go back")
    [exercise] = variants(record)
    shown = BeautifulSoup(wrong_lines.html(exercise, 1), "html.parser")
    assert [bool(line.select_one(".reason")) for line in shown.select("li")] == [False, True, True]


def test_latex_numbers_the_lines_and_lists_the_solution() -> None:
    [exercise] = variants(chain())
    tex = wrong_lines.tex(exercise, 4, lambda text: text.replace("&", r"\&"))
    assert r"\derivationname{4. A \& \(x\)}" in tex
    assert r"{expand\quad (2)}" in tex and r"{take out \(x\)\quad (3)}" in tex
    solved = wrong_lines.tex_solutions([exercise])
    assert r"1. Line 2: \emph{the \(2x\) forgotten}" in solved and "x^{2}}" in solved


def test_plain_text_numbers_the_lines() -> None:
    [exercise] = variants(chain())
    assert wrong_lines.plain(exercise, 4).splitlines()[1:] == [
        "  1. (x + 1)**2 - 1", "  2. = x**2    (expand)", "  3. = x*(x + 2)    (take out $x$)"
    ]  # fmt: skip


def test_finished_exercises_are_copied_and_old_copies_go(tmp_path: Path) -> None:
    [exercise] = variants(chain())
    shown = wrong_lines.html(exercise, 1)
    (tmp_path / "page.html").write_text(f"<p>{shown}</p>", encoding="utf-8")
    copies = tmp_path / "_static" / "wrong-lines"
    copies.mkdir(parents=True)
    (copies / "old.json").write_text("1", encoding="utf-8")
    app: Any = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(name="html"))
    wrong_lines.finish(app, None)
    [copy] = copies.iterdir()
    assert copy.stem == exercise.id.rpartition("-")[2] and json.loads(copy.read_text(encoding="utf-8")) == shown
    copy.unlink()
    wrong_lines.finish(app, ValueError())
    assert not list(copies.iterdir())


# --- a small book -----------------------------------------------------------------------------------


PAGE = """# A

```{wrong-lines} chapter
```

```{wrong-lines-solutions} chapter
```

```{wrong-lines-sets}
a chapter
```
"""
SPOILT = PAGE.replace("} chapter", "} gone").replace("a chapter", "chapter") + "\n```{wrong-lines-today} none\n```\n"


@pytest.mark.parametrize(
    ("builder", "file", "said"),
    [
        ("html", "a.html", ['<article class="wrong-line"', "<summary>Solution</summary>", 'href="#wrong-line-',
                            '<li data-set="chapter">', "wrong_lines.js", '<p class="wrong-line-score">1 exercise</p>']),
        ("epub", "a.xhtml", ['<article class="wrong-line"', '<ol class="wrong-line-solutions">', "Line 2:"]),
        ("latex", "a.tex", [r"\derivationname{1. A \& \(x\)}", r"{expand\quad (2)}", r"1. Line 2: \emph"]),
        ("text", "a.txt", ["2. = x**2    (expand)", "Line 2: the $2x$ forgotten: = x**2 + 2*x"]),
    ],
)  # fmt: skip
def test_each_builder_shows_the_exercises_and_their_solutions(
    tmp_path: Path, builder: str, file: str, said: list[str]
) -> None:
    notebook(tmp_path, chain())
    (tmp_path / "a.md").write_text(PAGE, encoding="utf-8")
    (tmp_path / "chapters").mkdir()
    (tmp_path / "conf.py").write_text(
        'extensions = ["myst_parser", "linewise.pages"]\nroot_doc = "a"\nproject = "a"\nversion = "1"\n'
        'source_suffix = {".md": "markdown"}\nlatex_documents = [("a", "a.tex", "", "", "manual")]\n'
        'latex_engine = "xelatex"\nepub_copyright = "1"\n',
        encoding="utf-8",
    )
    out = tmp_path / "out"
    options = ["-q", "-W", "-b", builder, "-d", str(tmp_path / "read"), str(tmp_path), str(out)]
    run = [sys.executable, "-m", "sphinx", *options]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (out / file).read_text(encoding="utf-8")
    assert [words for words in said if words not in page] == []
    assert ("<details" in page) == (builder == "html")
    assert bool(list(out.glob("_static/wrong-lines/*.json"))) == (builder == "html")


def test_a_set_of_no_notebook_and_a_list_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    notebook(tmp_path, chain())
    (tmp_path / "chapters").mkdir()
    (tmp_path / "a.md").write_text(SPOILT, encoding="utf-8")
    (tmp_path / "conf.py").write_text(
        'extensions = ["myst_parser", "linewise.pages"]\nroot_doc = "a"\n', encoding="utf-8"
    )
    run = [sys.executable, "-m", "sphinx", "-q", str(tmp_path), str(tmp_path / "out")]
    said = subprocess.run(run, capture_output=True, text=True, check=False).stderr
    assert "expected the page of a notebook, such as chapters/name, got 'gone'" in said
    assert "expected the page of a set and a notebook, got 'chapter'" in said
    assert "expected a number from 1, got 'none'" in said
