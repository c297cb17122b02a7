"""The numbers in a chapter's prose are numbers of its code, and a changed one is noticed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import stamps
from fabricated import good_notebook, printed
from prose_numbers import OPENING, REACH, occurs, stated, unprinted, within_reach

NOTEBOOKS = stamps.notebooks()
#: Numbers that no cell of the chapter prints, by chapter, each with the reason why that is right. Ten at most.
ELSEWHERE = {
    ("squared_relu", "100 000"): "a setting of the stored benchmark",
}


@cache
def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_numbers_in_the_prose_are_printed(notebook: Path) -> None:
    allowed = [f"nearby prints or holds {number} (" for chapter, number in ELSEWHERE if chapter == notebook.stem]
    found = unprinted(read(notebook))
    assert [fault for fault in found if not any(a in fault for a in allowed)] == []
    assert [a for a in allowed if not any(a in fault for fault in found)] == [], "an exception that nothing needs"


def test_exceptions_are_few() -> None:
    assert len(ELSEWHERE) <= 10
    assert {chapter for chapter, _ in ELSEWHERE} <= {p.stem for p in NOTEBOOKS}


def changed(number: str, by: int) -> str:
    """Return the number with its last digit changed."""
    last = max(place for place, character in enumerate(number) if character.isdigit())
    return number[:last] + str((int(number[last]) + by) % 10) + number[last + 1 :]


def test_most_changed_digits_in_the_book_are_noticed() -> None:
    """A changed number can be another number of its chapter, such as 0.99 for 0.999; not more than one in eight is."""
    noticed = []
    for notebook in NOTEBOOKS:
        values = within_reach(read(notebook))
        for cell, number, _ in stated(read(notebook)):
            if (notebook.stem, number) not in ELSEWHERE:
                noticed += [not occurs(changed(number, by), values[cell]) for by in (-2, -1, 1, 2)]
    assert len(noticed) > 100
    assert sum(noticed) > 7 / 8 * len(noticed)


PROSE = "Here $S=0.798$ for 200 000 draws, 2.5% of them at 1e-12. See Section 5.1.4 and (A.5)."


def tiny(prose: str = PROSE, shown: str = "0.79788 (0.0251)", source: str = "n = 200_000", **mystnb: Any) -> Any:
    """Return a notebook whose first cell states numbers, and whose third computes them."""
    notebook = good_notebook()
    notebook["cells"][0]["source"] = prose
    notebook["cells"][2] |= {"source": source, "outputs": [printed(shown)]}
    notebook["cells"][3]["metadata"]["mystnb"] |= mystnb
    return notebook


def test_numbers_that_the_code_printed_are_accepted() -> None:
    assert unprinted(tiny()) == []
    assert unprinted(tiny(source="n = 2 * 10**5; draws = 200_000", shown="0.7984, 2.5")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.798", "0.797"), ("0.798", "0.7978"), ("0.798", "0.80$ or $0.81"), ("200 000", "200 001"), ("2.5%", "2.6%"),
     ("200 000", "20 000"), ("200 000", "200,500"), ("See", "At 768 tokens, see")],
)  # fmt: skip
def test_a_changed_number_is_noticed_by_name(old: str, new: str) -> None:
    found = unprinted(tiny(PROSE.replace(old, new)))
    expected = {"0.80$ or $0.81": "0.81", "At 768 tokens, see": "768"}.get(new, new)
    assert len(found) == 1
    assert found[0].startswith(f"cell 0: no code cell nearby prints or holds {expected} (")


def test_captions_and_alt_texts_are_read() -> None:
    image = {"alt": "A line that rises from the lower left corner to 0.913 at the right."}
    figure = {"caption": "A line over 4096 keys.", "name": "fig-line"}
    found = unprinted(tiny(image=image, figure=figure))
    assert [fault.split(" (")[0] for fault in found] == [
        "cell 3: no code cell nearby prints or holds 4096",
        "cell 3: no code cell nearby prints or holds 0.913",
    ]


def test_a_number_that_is_printed_far_away_is_noticed_but_in_the_opening_and_the_closing() -> None:
    notebook = tiny("Nothing.")
    words = [{"cell_type": "markdown", "metadata": {}, "source": "Words."} for _ in range(REACH + OPENING)]
    far = {"cell_type": "markdown", "metadata": {}, "source": PROSE}
    assert unprinted({"cells": [*notebook["cells"], far]}) == []
    assert len(unprinted({"cells": [*notebook["cells"], *words, far]})) == 3
    assert unprinted({"cells": [*notebook["cells"], *words, far | {"source": f"## What to remember\n\n{PROSE}"}]}) == []
    assert unprinted({"cells": [far, *words, *notebook["cells"]]}) == []


@pytest.mark.parametrize(
    "prose",
    [
        "$$ x = 0.123 \\tag{5.1.5} $$",
        "```{exercise} One\n:label: one\nAt $n=1024$.\n```",
        "````{solution-start} one\n:class: dropdown\n````\nIt is 0.123.\n````{solution-end}\n````",
        "As sections 5.1.2, 5.2.3 and 5.5 say, equation (5.1.12), see [part 3.14](x.html#equation-5.1.12).",
        "{cite:t}`vaswani2017attention` and {numref}`fig-1234` say it, at https://example.org/2017/1234.",
        "Two of 12 heads; 3 in 4, 0.5.",
    ],
)
def test_definitions_exercises_and_references_are_let_be(prose: str) -> None:
    assert unprinted(tiny(prose)) == []
