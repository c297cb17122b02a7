"""The formulas that no derivation carries are held in a second place, and a changed one is noticed."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import stamps
from fabricated import good_notebook, shown
from formula_rules import (
    Held,
    elsewhere,
    numbered,
    read,
    records,
    said_once,
    second_places,
    told,
    unheld,
    untrue,
    wrong_numbers,
)
from formula_rules import formulas as formulas_of
from formulas import sides
from linewise.ledger.coverage import read_sources
from near_misses import changes
from stated import stated

CHAPTERS = {path.stem: path for path in stamps.notebooks([stamps.ROOT / "chapters"])}
NOTEBOOKS = {path.stem: path for path in stamps.notebooks()}
EQUATIONS, FORMULAS = stated()["equations"], stated()["formulas"]


@cache
def read_notebook(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def held_in(name: str) -> Held:
    return elsewhere(read_notebook(NOTEBOOKS[name]))


# --- this book -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_formulas_are_held(name: str) -> None:
    notebook = read_notebook(NOTEBOOKS[name])
    assert untrue(notebook) == []
    assert unheld(notebook, EQUATIONS) == []
    assert said_once(notebook, held_in(name) + told(FORMULAS.get(name, ()))) == []


def test_each_numbered_equation_is_displayed_and_held() -> None:
    """By the records of its chapter, or by `stated.yml`, which states no equation that the records hold."""
    shown_in = {number: name for name, path in CHAPTERS.items() for number in numbered(read_notebook(path))}
    assert shown_in.keys() == {n for source in read_sources(stamps.ROOT) for row in source.rows for n in row.equations}
    unrecorded = {
        fault[1 : fault.index(")")] for path in CHAPTERS.values() for fault in unheld(read_notebook(path), {})
    }
    assert unrecorded == EQUATIONS.keys()


def test_no_formula_is_stated_that_stands_elsewhere() -> None:
    assert [name for name in FORMULAS if name not in CHAPTERS] == []
    for name, listed in FORMULAS.items():
        for formula in listed:
            rest = [other for other in listed if other != formula]
            assert said_once(read_notebook(CHAPTERS[name]), held_in(name) + told(rest)), f"{name}: {formula}"


def test_all_formulas_that_are_compared_can_be_read() -> None:
    for path in CHAPTERS.values():
        notebook = read_notebook(path)
        compared = [tex for _, words in second_places(notebook) for tex in formulas_of(words)]
        for tex in (*compared, *numbered(notebook).values()):
            assert sides(tex), tex


# --- a change of any formula -----------------------------------------------------------------------


def noticed(held: Held, tex: str) -> bool:
    return not (found := list(read([tex]))) or bool(held.misses(found[0][1]))


def test_a_change_of_a_numbered_equation_is_noticed() -> None:
    tried = []
    for path in CHAPTERS.values():
        recorded = list(records(read_notebook(path)))
        for number, tex in numbered(read_notebook(path)).items():
            held = Held([*recorded, f"${EQUATIONS.get(number, '')}$"])
            tried += [noticed(held, changed) for changed in changes(re.sub(r"\\tag\{.*?\}", "", tex))]
    assert len(tried) > 600
    assert all(tried)


# --- spoilt copies ---------------------------------------------------------------------------------

SPOILT = [
    # equations with a textbook's number, definitions among them
    ("softmax", r"\frac{e^{x_i}}{\sum_{j=1}^n e^{x_j}} \tag", r"\frac{e^{x_i}}{\sum_{j=1}^n e^{-x_j}} \tag"),
    ("softmax", r"& i=j\\ -y_iy_j &", r"& i=j\\ y_iy_j &"),
    ("scaling", r"\mathbb{E}[q_m]\,\mathbb{E}[k_m] = 0 \tag", r"\mathbb{E}[q_m]\,\mathbb{E}[k_m] = 1 \tag"),
    ("scaling", r"= d_k\,\sigma^4. \tag", r"= d_k\,\sigma^2. \tag"),
    ("scaling", r"= d_k\,\sigma^4. \tag", r"= \sigma^4. \tag"),
    ("masks", r"-\infty & j>i", r"-\infty & j<i"),
    ("masks", r"= S + M \tag", r"= S - M \tag"),
    ("frozen_projections", r"\epsilon^2/2-\epsilon^3/3} . \tag", r"\epsilon^2/2+\epsilon^3/3} . \tag"),
    ("frozen_projections", r"k\ge\frac{4\log n}", r"k\le\frac{4\log n}"),
    ("identity_attention", r"}}+\beta\,\mathrm{erf}\bigl", r"}}-\beta\,\mathrm{erf}\bigl"),
    ("exponential", r"\bigl(-\tfrac12\sigma^2\lVert q\rVert^2\bigr). \t", r"\bigl(-\sigma^2\lVert q\rVert^2\bigr). \t"),
    ("query_match_aggregate", r"K=XW_K,\qquad V=XW_V \tag", r"K=W_KX,\qquad V=XW_V \tag"),
    # "What to remember"
    ("softmax", "of norm at most $2p(1-p)$", "of norm at most $p(1-p)$"),
    ("softmax", r"=y_i(\delta_{ij}-y_j)$, because", r"=y_i(\delta_{ij}+y_j)$, because"),
    ("stochastic_matrix", r"\lVert A\rVert_2^2\le\max_jc_j\le n$.", r"\lVert A\rVert_2\le\max_jc_j\le n$."),
    ("concentration", r"$1/\sqrt n\le S\le1$, and the effective", r"$1/n\le S\le1$, and the effective"),
    ("gradients", r"W_Q=X^\top\,\partial\mathcal{L}/\partial Q$, w", r"W_Q=X\,\partial\mathcal{L}/\partial Q$, w"),
    ("gram_and_kernel", "It is $XMX^\\top$ with $M=W_QW_K^\\top$", "It is $XMX^\\top$ with $M=W_KW_Q^\\top$"),
    ("cost", r"overtakes three projections at $n=\tfrac32d$", r"overtakes three projections at $n=\tfrac52d$"),
    ("powers", r"factor $1-m$ in each pass, with", r"factor $1+m$ in each pass, with"),
    ("sparse_and_dense", "the rank is at least $n-w$", "the rank is at most $n-w$"),
    ("random_features", r"$\cosh\lVert x-y\rVert^2-1$. The dimension", r"$\cosh\lVert x-y\rVert^2-2$. The dimension"),
    # tables
    ("concentration", "| $3/2$ | $9/5$ |", "| $3/2$ | $8/5$ |"),
    ("concentration", r"$\frac18(e^{2\gamma^2}-1)(3e", r"$\frac18(e^{2\gamma^2}-1)(2e"),
    ("saturation", "tends to | $1+b^2$ |", "tends to | $1+b^3$ |"),
    # formulas that hold nothing but numbers
    ("softmax", r"\frac{(1,\;2,\;32,\;16)}{51}", r"\frac{(1,\;2,\;32,\;16)}{41}"),
    ("scaling", r"$1\cdot2+1\cdot2=4$", r"$1\cdot2+1\cdot2=5$"),
    ("scaling", r"$\tfrac{24}{16}=\tfrac32$", r"$\tfrac{24}{16}=\tfrac52$"),
    ("linear_time", "$28+6+24+12+8=78$", "$28+6+24+12+9=78$"),
]  # fmt: skip


@pytest.mark.parametrize(("chapter", "old", "new"), SPOILT, ids=[f"{name}: {new}" for name, _, new in SPOILT])
def test_a_spoilt_copy_is_noticed(chapter: str, old: str, new: str) -> None:
    notebook = copy.deepcopy(read_notebook(CHAPTERS[chapter]))
    changed = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            changed += "".join(cell["source"]).count(old)
            cell["source"] = "".join(cell["source"]).replace(old, new)
    assert changed == 1
    held = elsewhere(notebook) + told(FORMULAS.get(chapter, ()))
    assert untrue(notebook) + unheld(notebook, EQUATIONS) + said_once(notebook, held)


# --- how formulas are read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2p(1-p)", r"2 p \left(1 - p\right)"),
        (r"\frac12x", r"x/2"),
        (r"1/2\pi", r"\frac{1}{2\pi}"),
        (r"\exp\bigl(-\tfrac12x^2\bigr)", "e^{-x^2/2}"),
        (r"{x}_{i,j} {y}_{m}^{2}", "x_{ij}y_m^2"),
        (r"\sqrt[4]{x}", r"\sqrt{\sqrt x}"),
        (r"\lVert x\rVert^2-\lVert x\rVert^2", "0"),
        (r"\sum_{j=1}^n (a_j+b_j)", r"\sum_{j=1}^n a_j+\sum_{j=1}^n b_j"),
        (r"S_{\text{masked}}", r"S_{\mathrm{masked}}"),
        ("200{,}000", r"2\cdot10^5"),
        ("(2,4)/2", "(1,2)"),
    ],
)
def test_formulas_that_say_the_same_are_the_same(one: str, other: str) -> None:
    assert sides(one)[0] == sides(other)[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2p(1-p)", "p(1-p)"),
        ("x_i", "x_j"),
        (r"q^\top k", r"qk"),
        ("XW_Q", "W_QX"),
        (r"\frac{QK^\top}{\sqrt{d_k}}V", r"\frac{K^\top Q}{\sqrt{d_k}}V"),
        (r"\sum_{j=1}^n a_j", r"\sum_{j=0}^n a_j"),
        (r"\mathbb{E}[x^2]", r"\mathbb{E}[x]^2"),
        (r"\lVert x+y\rVert", r"\lVert x-y\rVert"),
        ("(1,2)", "(2,1)"),
        (r"\begin{cases}a&i=j\\b&i\neq j\end{cases}", r"\begin{cases}b&i=j\\a&i\neq j\end{cases}"),
        (r"\cosh x^2-1", r"\cosh x^2+1"),
    ],
)
def test_formulas_that_say_something_else_differ(one: str, other: str) -> None:
    assert sides(one)[0] != sides(other)[0]


@pytest.mark.parametrize("tex", [r"\frac12+\frac13=\frac56", r"\sqrt2\approx1.41", "0.9^8=0.43",
                                 r"100e^4\approx5500", r"2<3\le3",
                                 r"n^2=4=2\cdot2", r"1/2.02\approx0.49", r"e^{-1}\approx\frac13"])  # fmt: skip
def test_a_true_statement_on_numbers_is_accepted(tex: str) -> None:
    assert wrong_numbers(f"So ${tex}$.") == []


@pytest.mark.parametrize("tex", [r"\frac12+\frac13=\frac46", r"\sqrt2\approx1.42", "0.9^8=0.45", r"100e^4\approx5700",
                                 r"2<3\le2", r"n^2=4=2\cdot3", r"x=2\cdot2\ge5"])  # fmt: skip
def test_a_false_statement_on_numbers_is_noticed(tex: str) -> None:
    assert len(wrong_numbers(f"So ${tex}$.")) == 1
    assert wrong_numbers(f"Then ${tex}$, which is false.") == []


def test_the_mistakes_of_a_record_hold_nothing() -> None:
    notebook = good_notebook()
    record = {"lines": [{"tex": "a+b"}, {"tex": "c", "relation": "="}], "mistakes": [{"tex": "a-b"}]}
    notebook["cells"][2]["outputs"] = [shown("", "text/plain")]
    notebook["cells"][2]["outputs"][0]["data"]["application/vnd.linewise.derivation+json"] = record
    for tex, faults in ((r"c=a+b", 0), (r"c=a-b", 1), (r"c\le a+b", 1)):
        notebook["cells"][0]["source"] = rf"$$ {tex} \tag{{1}} $$"
        assert len(unheld(notebook, {})) == faults
        assert unheld(notebook, {"1": tex}) == []
