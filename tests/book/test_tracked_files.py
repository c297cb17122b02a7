"""No file of the project mentions a registry's host or a place on one machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stamps
import tracked


def test_no_tracked_file_mentions_a_machine_or_a_registry() -> None:
    own = {Path(__file__).name, "test_notebooks.py"}  # the negative controls live there
    assert tracked.faults([p for p in tracked.tracked() if p.name not in own]) == []


@pytest.mark.parametrize("notebook", stamps.notebooks(), ids=lambda p: p.name)
def test_no_cell_mentions_a_machine_or_a_registry(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert [m for c in cells for m in tracked.mentions("".join(c["source"]))] == []


@pytest.mark.parametrize(
    "text",
    ["pip install -i https://" + "py" + "pi.org/simple x", "in /home/someone/book", "(/root/x)", "'/Users/me/book'"],
)
def test_a_mention_is_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    assert tracked.faults(tracked.tracked(tmp_path))


@pytest.mark.parametrize("text", ["the root/spectrum of A", "https://example.org/home/page", "a/work/b", "/home"])
def test_innocent_words_are_let_be(text: str) -> None:
    assert tracked.mentions(text) == []


def test_without_git_the_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "_build").mkdir()
    for name in ("a.md", "_build/b.html"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert tracked.tracked(tmp_path) == [tmp_path / "a.md"]
