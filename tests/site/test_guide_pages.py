"""The guide shows what the chapters hold, and the map of prerequisites runs forwards."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

sys.path.insert(0, str(ROOT / "_ext"))
from pages.guide import example, needed, title


def chapters() -> list[str]:
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    pages = [entry.get("file", "") for part in parts for entry in part["chapters"]]
    return [page for page in pages if page.startswith("chapters/")]


def backwards(order: list[str], builds_on: dict[str, list[str]]) -> list[str]:
    """Return the chapters that build on a chapter which does not come before them."""
    place = {page: k for k, page in enumerate(order)}
    return [page for page in order for other in builds_on[page] if place.get(other, len(order)) >= place[page]]


def test_a_chapter_builds_on_chapters_before_it():
    order = chapters()
    builds_on = {page: needed(ROOT / f"{page}.ipynb", ROOT) for page in order}
    assert backwards(order, builds_on) == []
    assert sum(map(bool, builds_on.values())) > len(order) / 2
    assert backwards(order, builds_on | {order[0]: [order[1]]}) == [order[0]]


def test_an_example_is_what_a_chapter_stored():
    shown = example(ROOT, "chapters/operator/scaling.ipynb", "5.1.4/contribution")
    assert "derivation" in shown and "claim-card" in shown and ' id="' not in shown
    with pytest.raises(ValueError, match="claim: expected one"):
        example(ROOT, "chapters/operator/scaling.ipynb", "5.1.4/nothing")


def test_prerequisites_are_the_links_below_their_heading(tmp_path: Path):
    text = "# A title\n\n[no](x.ipynb)\n\n**What you need:** [one](../b/one.ipynb), [two](two.ipynb#part)."
    text += "\n\n**What you get:** [three](three.ipynb)"
    cells = [{"cell_type": "markdown", "source": text}, {"cell_type": "code", "source": ""}]
    (tmp_path / "a").mkdir()
    path = tmp_path / "a" / "c.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert needed(path, tmp_path) == ["b/one"] and title(path) == "A title"
