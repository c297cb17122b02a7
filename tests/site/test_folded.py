"""Sections that go further, as each builder shows them, and numbers that count within a page."""

from __future__ import annotations

import json
from pathlib import Path

import forked_sphinx
import pytest
from bs4 import BeautifulSoup

CONFIGURATION = """
extensions = ["myst_parser", "mathematics", "linewise.pages", "pages.numbers"]
html_math_renderer = "mathml"
root_doc = "a"
numfig = True
"""
BOOK = """
levels: {easy: nothing, hard: much}
"""
FIGURE = "```{{figure}} a.svg\n:name: fig-{name}\n:alt: A line.\n\nA line that rises.\n```\n"
CHAPTER = (
    "# Lines\n\n```{reading} easy\n```\n\nWords to read.\n\n## Slopes\n\n```{further}\nA slope is a number.\n```\n\n"
    "Far words.\n\n### Steeper\n\nSteep words.\n\n## Next\n\n"
    + "Open words. " * 12
    + "\n\n"
    + FIGURE.format(name="one")
)
OTHER = "# Other\n\n{numref}`fig-two` and {numref}`fig-one`; {numref}`fig-one` of the chapter.\n\n"


def built(folder: Path, builder: str, chapter: str = CHAPTER) -> tuple[Path, str]:
    """Build a chapter and another page; return the folder of the pages, and the warnings."""
    (folder / "chapters").mkdir()
    (folder / "linewise.yml").write_text(BOOK, encoding="utf-8")
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
    for place in ("a.svg", "chapters/a.svg"):
        (folder / place).write_text(svg, encoding="utf-8")
    cells = [{"cell_type": "markdown", "metadata": {}, "source": chapter}]
    (folder / "chapters" / "two_lines.md").write_text(chapter, encoding="utf-8")
    (folder / "chapters" / "two_lines.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    (folder / "a.md").write_text("# A\n\n```{toctree}\nchapters/two_lines\nother\n```\n", encoding="utf-8")
    (folder / "other.md").write_text(OTHER + FIGURE.format(name="two"), encoding="utf-8")
    (folder / "conf.py").write_text(CONFIGURATION, encoding="utf-8")
    said = forked_sphinx.build("-q", "-E", "-b", builder, str(folder), str(folder / "out"), said=folder / "said")
    return folder / "out", said


def page(folder: Path, name: str) -> BeautifulSoup:
    return BeautifulSoup((folder / name).read_text(encoding="utf-8"), "html.parser")


def words(soup: BeautifulSoup, selector: str) -> list[str]:
    return [" ".join(found.get_text(" ").split()) for found in soup.select(selector)]


def test_on_the_site_a_section_is_folded_below_its_line(tmp_path: Path) -> None:
    out, said = built(tmp_path, "html")
    assert said == ""
    chapter = page(out, "chapters/two_lines.html")
    assert words(chapter, "section#slopes > p.further-line") == ["A slope is a number."]
    assert words(chapter, "section#slopes > details.further > summary") == ["Read this section (1 min)"]
    assert chapter.select_one("details.further section#steeper") is not None
    assert chapter.select_one("details.further section#next") is None
    assert "Far words." in words(chapter, "details.further > p")
    assert words(chapter, ".reading-time") == ["Level: easy · first reading 1 min · with all that goes further 1 min"]
    assert words(chapter, "section#next > .section-minutes") == ["1 min"]


def test_in_a_book_nothing_is_folded_and_the_line_is_set_off(tmp_path: Path) -> None:
    out, _ = built(tmp_path, "epub")
    chapter = page(out, "chapters/two_lines.xhtml")
    assert chapter.select_one("details") is None
    assert words(chapter, "p.further-line") == ["Further: A slope is a number."]


def test_figures_count_within_their_page_and_a_link_from_another_page_names_the_chapter(tmp_path: Path) -> None:
    out, _ = built(tmp_path, "html")
    assert words(page(out, "chapters/two_lines.html"), ".caption-number") == ["Fig. 1"]
    other = page(out, "other.html")
    assert words(other, ".caption-number") == ["Fig. 1"]
    assert words(other, "section#other > p") == [
        "Fig. 1 and Fig. 1 of the chapter on two lines ; Fig. 1 of the chapter."
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{reading} easy", "{reading} simple", "reading: expected a level of easy, hard, got 'simple'"),
        ("A slope is a number.\n", "", "further: expected one line on what the section shows"),
    ],
)
def test_an_unknown_level_and_an_empty_line_are_reported(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert says in built(tmp_path, "html", CHAPTER.replace(old, new))[1]
