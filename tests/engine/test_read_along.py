"""A page to read along is asked for every claim and equation of its source; what a chapter takes is counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from linewise.conventions import ConventionError, conventions_of
from linewise.derive import display
from linewise.ledger import Claim
from linewise.ledger.coverage import Sentence, Source
from linewise.ledger.read_along import Passage, faults_of, passages, problems
from linewise.pages import read_along
from linewise.pages.reading_time import Length, length_of, minutes, words_of

SOURCE = Source(
    "A leaflet",
    {"2": [1], "2.1": [2, 1]},
    (
        Sentence("2 p1 s1", "a force"),
        Sentence("2.1 p1 s1", "a sum", ("2.1.1",)),
        Sentence("2.1 p1 s2", "a half"),
        Sentence("2.1 p2 s1", "a hope", none="motivation"),
    ),
)
CLAIMS = [
    Claim("2/force", "F", "2 p1 s1; 2.1 p1 s2", "r", "not decided", reason="taste"),
    Claim("2.1/sum", "S", "2.1 p1 s1", "r", "refuted", holds="h", grade="false statement"),
    Claim("own", "O", "beyond 2.1", "r", "proved", scope="s"),
]
PAGE = """# Two

:::{paragraph} 2 p1 The first
A force. {mark}`2/force`
:::

## 2.1

::::{paragraph} 2.1 p1
A sum. {mark}`2.1/sum` A half. {mark}`2/force`

```{numbered} 2.1.1
```

:::{instead} 2.1/sum
The difference.
:::
::::

:::{paragraph} 2.1 p2 A hope
Hope.
:::
"""


def test_a_page_is_read_paragraph_by_paragraph() -> None:
    first, second, third = passages(PAGE)
    assert first == Passage("2 p1", "The first", ("2/force",), {}, ())
    assert second == Passage("2.1 p1", "", ("2.1/sum", "2/force"), {"2.1/sum": "The difference."}, ("2.1.1",))
    assert third == Passage("2.1 p2", "A hope", (), {}, ())


def test_a_page_that_follows_its_source_has_no_fault() -> None:
    assert list(faults_of(PAGE, SOURCE, CLAIMS)) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("A force. {mark}`2/force`", "A force.", "2 p1: no mark of 2/force"),
        ("A half. {mark}`2/force`", "A half.", "2.1 p1: no mark of 2/force"),
        ("Hope.", "Hope. {mark}`2.1/sum`", "2.1 p2: a mark of 2.1/sum, which is a claim of 2.1 p1 s1"),
        ("Hope.", "Hope. {mark}`own`", "2.1 p2: a mark of own, which is a claim of beyond 2.1"),
        ("A sum. {mark}`2.1/sum`", "{mark}`2.1/sums`", "2.1 p1: a mark of no claim: 2.1/sums; did you mean 2.1/sum?"),
        ("# Two\n", "# Two\n{mark}`2/force`", "marks outside of a paragraph: 2/force"),
        ("```{numbered} 2.1.1\n```\n", "", "2.1 p1: does not show equation (2.1.1)"),
        ("Hope.\n", "```{numbered} 2.1.1\n```\n", "2.1 p2: equation (2.1.1) is not in this paragraph"),
        ("The difference.\n", "", "2.1 p1: 2.1/sum is refuted: says not what holds instead"),
        (":::{instead} 2.1/sum\nThe difference.\n:::\n", "",
         "2.1 p1: 2.1/sum is refuted: says not what holds instead"),
        (":::{paragraph} 2.1 p2 A hope\nHope.\n", "::::{paragraph} 2.1 p2\n:::{instead} 2.1/sum\nNo.\n:::\n:",
         "2.1 p2: says what holds instead of 2.1/sum, which is not marked as amended or refuted here"),
        (":::{paragraph} 2.1 p2 A hope\nHope.\n:::\n", "", "2.1 p2: expected one block, got 0"),
        ("{paragraph} 2.1 p2 A hope", "{paragraph} 2.1 p3 A hope", "2.1 p3: no such paragraph of A leaflet"),
    ],
)  # fmt: skip
def test_a_spoilt_page_is_noticed(old: str, new: str, fault: str) -> None:
    assert old in PAGE
    assert fault in list(faults_of(PAGE.replace(old, new), SOURCE, CLAIMS))


def test_paragraphs_out_of_order_and_twice_are_noticed() -> None:
    first = PAGE[PAGE.index(":::{paragraph} 2 p1") : PAGE.index("## 2.1")]
    moved = PAGE.replace(first, "") + first
    assert list(faults_of(moved, SOURCE, CLAIMS)) == ["the paragraphs are not in the order of the source"]
    assert list(faults_of(PAGE + first, SOURCE, CLAIMS)) == ["2 p1: expected one block, got 2"]


def test_a_book_names_its_pages(tmp_path: Path) -> None:
    conventions = tmp_path / "linewise.yml"
    conventions.write_text("sources: [{table: a.yml, read: read/a}, {table: b.yml}]", encoding="utf-8")
    for name in ("a", "b"):
        (tmp_path / f"{name}.yml").write_text(f'{{source: {name}, shape: {{"2": [1]}}, rows: []}}', encoding="utf-8")
    assert [source.read for source in conventions_of(tmp_path).sources] == ["read/a", ""]
    assert problems(tmp_path, CLAIMS) == ["read/a.md: no such page"]
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / "a.md").write_text(":::{paragraph} 2 p1\n{mark}`own`\n:::\n", encoding="utf-8")
    assert problems(tmp_path, CLAIMS) == [
        "a.md: 2 p1: no mark of 2/force",
        "a.md: 2 p1: a mark of own, which is a claim of beyond 2.1",
    ]
    conventions.write_text("sources: [{table: a.yml, read: 5}]", encoding="utf-8")
    with pytest.raises(ConventionError, match="sources: read: expected text, got int 5"):
        conventions_of(tmp_path)


# --- what a page takes from a chapter ---------------------------------------------------------------


def markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": [text]}


def code(*outputs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": "x", "metadata": metadata, "outputs": [{"data": data} for data in outputs]}


def test_an_equation_and_a_picture_are_found_in_a_chapter() -> None:
    described = {"mystnb": {"figure": {"name": "fig-a"}, "image": {"alt": "A line."}}}
    cells = [markdown(r"$$a$$ and $$b \tag{2.1}$$"), code({"image/svg+xml": ["<svg", "/>"]}, **described)]
    assert read_along.equation_in(cells, "2.1") == r"b \tag{2.1}"
    assert read_along.equation_in(cells, "2.2") is None
    assert read_along.picture_in(cells, "fig-a") == ("<svg/>", "A line.")
    assert read_along.picture_in(cells, "fig-b") is None


# --- how long a chapter takes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("The rank of $QK^\\top$ is at most two.", 8),
        ("One $$a = b$$ two", 2),
        ("# A title\n\n:::{note}\n:name: n\nOne, [two](three.md) {ref}`four`.\n:::", 4),
        ("(here)=\n<!-- not this --> <b>one</b> well-trained 10.5", 3),
        ("注意力", 2),
    ],
)
def test_words_are_what_a_reader_reads(text: str, number: int) -> None:
    assert words_of(text) == number


def test_what_is_folded_is_not_counted() -> None:
    exercise = "```{exercise} E\n:label: e\n\nFive words are not counted.\n```\n"
    hint = "````{admonition} Hint\n:class: dropdown\nNor a hint.\n````\n"
    solution = "````{solution-start} e\n:class: dropdown\n````\n\nNor this."
    chain = {display.MIME: {"lines": [{}, {}, {}]}, "text/html": "<div>"}
    picture = {"image/svg+xml": "<svg/>", "text/plain": "Figure"}
    cells = [
        markdown("Three words stand. $$a$$"),
        code(chain, picture, {"text/plain": "12"}),
        markdown(f"{exercise}\n{hint}\n{solution}"),
        code(chain),
        markdown("Still not.\n\n````{solution-end}\n````\n\nTwo more."),
    ]
    assert length_of(cells) == Length(words=5, displays=5, exercises=1)


@pytest.mark.parametrize("change", [lambda n: (n + 2000, 5, 1), lambda n: (n, 105, 1), lambda n: (n, 5, 6)])
def test_each_part_takes_time(change: Callable[[int], tuple[int, int, int]]) -> None:
    assert minutes(*change(200)) > minutes(200, 5, 1) == 8


def test_minutes_of_nothing_and_of_less() -> None:
    assert minutes(0, 0, 0) == 1 and Length(1000, 10, 2).minutes == minutes(1000, 10, 0) == 7
    assert [minutes(words, 0, 0) % 5 for words in range(4000, 9000, 100)] == [0] * 50
    with pytest.raises(ValueError, match="expected no negative number, got words -1, displays 0, exercises 0"):
        minutes(-1, 0, 0)
