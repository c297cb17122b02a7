"""The pictures of pages that somebody wrote say what one sees, and one that does not is noticed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import stamps
from page_rules import dead_paths, pictures, poor_pictures

PAGES = [*sorted(stamps.ROOT.glob("*.md")), *sorted(stamps.ROOT.glob("guide/*.md")), *stamps.notebooks()]
README = stamps.ROOT / "README.md"


def prose(page: Path) -> str:
    """Return what a page says: its text, or that of a notebook's markdown cells."""
    if page.suffix != ".ipynb":
        return page.read_text(encoding="utf-8")
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pictures_say_what_one_sees(page: Path) -> None:
    assert poor_pictures(prose(page), page.parent) == []


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_that_a_page_names_are_there(page: str) -> None:
    assert dead_paths(prose(stamps.ROOT / page), stamps.ROOT) == []


@pytest.mark.parametrize("path", ["`tools/gone.py`", "`gone/sub/`", "[the tools](tools/gone.md)", "`code/gone/`"])
def test_a_path_that_is_not_there_is_noticed(path: str) -> None:
    assert dead_paths(f"See {path} and `tools/stamps.py`.", stamps.ROOT) == [path.strip("`").split("](")[-1].strip(")")]


def test_commands_that_a_page_names_are_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (stamps.ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        named = re.findall(r"(?:`|^)make ([a-z]+)", prose(stamps.ROOT / page), re.MULTILINE)
        assert named
        assert set(named) <= targets


def test_the_readme_has_a_picture() -> None:
    assert [source for source, _ in pictures(prose(README))] == ["figures/fig_softmax_saturation.png"]


@pytest.mark.parametrize("alt", ["", "A plot.", "fig_softmax_saturation.png_fig_softmax_saturation"])
def test_the_readmes_picture_without_alt_text_is_noticed(alt: str) -> None:
    spoilt = re.sub(r"!\[[^\]]*\]", f"![{alt}]", prose(README))
    assert poor_pictures(spoilt, README.parent) == [
        f"figures/fig_softmax_saturation.png: the alt text is no sentence: {alt!r}"
    ]


GOOD = "A line that rises from zero to six over fifty steps."


@pytest.mark.parametrize(
    ("picture", "good"),
    [
        (f"![{GOOD}](README.md)", True),
        (f"```{{figure}} README.md\n:name: fig-a\n:alt: {GOOD}\nA line.\n```", True),
        (f"<img src='README.md' alt='{GOOD}'>", True),
        ("![](README.md)", False),
        ("```{figure} README.md\n:name: fig-a\nA line.\n```", False),
        (":::{image} README.md\n:::", False),
        ("<img src='README.md'>", False),
        (f"![{GOOD}](no_such_file.png)", False),
        (f"![{GOOD}](https://a.invalid/b.png)", False),
        (f"![{GOOD}](//a.invalid/b.png)", False),
    ],
)
def test_a_poor_picture_is_noticed(picture: str, good: bool) -> None:
    assert (poor_pictures(f"# A page\n\n{picture}\n", stamps.ROOT) == []) is good
