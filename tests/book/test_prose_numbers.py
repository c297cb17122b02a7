"""The numbers in a chapter's prose, solutions and counts are numbers of its code, and a changed one is noticed."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import stamps
from attnlab.heads import load_decoders, load_heads
from attnlab.translation import designs, sweep
from attnmath.fixed_attention import fixed_patterns
from fabricated import good_notebook, printed
from prose_numbers import (
    COUNTED,
    OPENING,
    REACH,
    exercises,
    miscounted,
    occurs,
    stated,
    unprinted,
    unsolved,
    within_reach,
)
from stated import stated as stated_in_file

NOTEBOOKS = stamps.notebooks()
#: Numbers that somebody has read, by chapter, each with the words around it.
PHRASES = stated_in_file()["numbers"]


@cache
def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_numbers_in_the_prose_are_printed(notebook: Path) -> None:
    phrases = PHRASES.get(notebook.stem, ())
    assert unprinted(read(notebook), phrases) == []
    assert unsolved(read(notebook), phrases) == []
    assert miscounted(read(notebook)) == []


def test_no_phrase_stands_in_the_file_that_nothing_needs() -> None:
    chapters = {path.stem: path for path in NOTEBOOKS}
    assert [name for name in PHRASES if name not in chapters] == []
    for name, phrases in PHRASES.items():
        faults = unprinted(read(chapters[name])) + unsolved(read(chapters[name]))
        bare = " ".join(re.sub(r"\s+", "", fault) for fault in faults)
        for phrase in phrases:
            numbers = re.findall(r"\d+(?:\.\d+)?", phrase)
            assert any(f"holds{number}" in bare or f"yields{number}" in bare for number in numbers), f"{name}: {phrase}"


def changed(number: str, by: int) -> str:
    """Return the number with its last digit changed."""
    last = max(place for place, character in enumerate(number) if character.isdigit())
    return number[:last] + str((int(number[last]) + by) % 10) + number[last + 1 :]


def test_most_changed_digits_in_the_book_are_noticed() -> None:
    """A changed number can be another one of its chapter, such as 0.99 for 0.999: one in seven at most of those with
    decimals or three digits, and 35 in a hundred at most of the shorter ones, which are in more outputs.
    """
    noticed: dict[bool, list[bool]] = {True: [], False: []}
    for notebook in NOTEBOOKS:
        values = within_reach(read(notebook))
        for cell, number, _ in stated(read(notebook)):
            digits = re.sub(r"[^\d]", "", number).lstrip("0")
            long = len(digits) >= (2 if "." in number else 3)
            noticed[long] += [not occurs(changed(number, by), values[cell]) for by in (-2, -1, 1, 2)]
    assert len(noticed[True]) > 2000 and len(noticed[False]) > 2000
    assert sum(noticed[True]) > 6 / 7 * len(noticed[True])
    assert sum(noticed[False]) > 0.65 * len(noticed[False])


def test_the_book_counts_what_there_is() -> None:
    encoder, decoders = load_heads("sentence"), load_decoders()
    assert set(COUNTED.values()) == {
        len(decoders.seeds), len(fixed_patterns.PATTERNS), len(sweep.SEEDS), encoder.layers * encoder.heads,
        encoder.layers, encoder.heads, encoder.n, load_heads("passage").n, designs.DESIGNS["learned"].learned, 95,
    }  # fmt: skip


SPOILT = [
    # numbers of one or two digits
    ("softmax", "off by as much as 0.01", "off by as much as 0.001"),
    ("associative_recall", "have 29 observations", "have 27 observations"),
    ("powers", "positions 11 to 20 take", "positions 12 to 20 take"),
    ("positional_heads", "that 38 of its 48 heads", "that 39 of its 48 heads"),
    ("scaling", "a key of length 2 at 45 degrees", "a key of length 2 at 54 degrees"),
    # solutions
    ("softmax", "With $b=2$ they are $(1,32,16,4)/53$", "With $b=2$ they are $(1,32,16,4)/35$"),
    ("softmax", "above it at $T=100$, and", "above it at $T=200$, and"),
    ("scaling", "divided by $\\sqrt2$ they are $-1.41$", "divided by $\\sqrt2$ they are $-1.14$"),
    ("comparison", "lies between 106 and 107", "lies between 106 and 109"),
    ("feature_maps", "*took* has only $0.25$", "*took* has only $0.35$"),
    ("frozen_projections", "this is $n\\le e^{5.33}$", "this is $n\\le e^{5.34}$"),
    ("masks", "all 72 heads", "all 27 heads"),
    ("orthogonal_features", "with 24 components", "with 42 components"),
    # counts
    ("softmax", "Two panels", "Three panels"),
    ("effective_rank", "four small decoders", "five small decoders"),
    ("saturation", "layer 6, head 12, counted", "layer 6, head 11, counted"),
    ("low_rank", "On the sentence of 18 tokens", "On the sentence of 81 tokens"),
    ("low_resource", "five language pairs", "six language pairs"),
    ("comparison", "fixed patterns", "eight fixed patterns"),
]


@pytest.mark.parametrize(("chapter", "old", "new"), SPOILT, ids=[f"{name}: {new}" for name, _, new in SPOILT])
def test_a_spoilt_copy_is_noticed(chapter: str, old: str, new: str) -> None:
    notebook = copy.deepcopy(read(next(path for path in NOTEBOOKS if path.stem == chapter)))
    changes = 0
    for cell in notebook["cells"]:
        mystnb = cell["metadata"].get("mystnb") or {}
        image, figure = mystnb.get("image") or {}, mystnb.get("figure") or {}
        for holder, key in ((cell, "source"), (image, "alt"), (figure, "caption")):
            words = "".join(holder.get(key) or "")
            if old in words and (holder is not cell or cell["cell_type"] == "markdown") and not changes:
                holder[key], changes = words.replace(old, new, 1), 1
    phrases = PHRASES.get(chapter, ())
    assert changes == 1
    assert unprinted(notebook, phrases) + unsolved(notebook, phrases) + miscounted(notebook)


def test_an_exercise_has_its_solution_and_its_cells() -> None:
    first, *_ = exercises(good_notebook())
    assert (first.label, first.cells) == ("tiny-one", [])
    assert "Show it for one." in first.asked and "It is one." in first.answered
    asked, answered = "```{exercise} A\n:label: a\nAt 12.\n```\n", "````{solution-start} a\n````\nIt is 12, not 13."
    notebook = tiny(asked + answered)
    assert [fault.split(" (")[0] for fault in unsolved(notebook)] == ["the solution of a: nothing yields 13"]
    assert unsolved(notebook, ["not 13"]) == []


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
    words = [{"cell_type": "code", "metadata": {}, "source": "pass", "outputs": []} for _ in range(REACH + OPENING)]
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
        "Two of seven heads; 3 in 4, $2^{12}$, $10^{-16}$.",
    ],
)
def test_definitions_exercises_and_references_are_let_be(prose: str) -> None:
    assert unprinted(tiny(prose)) == []
