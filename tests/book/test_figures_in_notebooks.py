"""The published figures are what the notebooks drew, and whatever is spoilt is noticed."""

from __future__ import annotations

import base64
import copy
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

import execute
import publish
import stamps
from fabricated import code, picture, printed
from notebook_rules import figure_names, shown_figures

NOTEBOOKS = stamps.notebooks()
PUBLISHED = stamps.ROOT / "figures"
#: Elements and functions through which an SVG can load something.
LOADS = re.compile(r"url\(\s*['\"]?(?!#)|@import|<\?xml-stylesheet|<script|<foreignObject", re.IGNORECASE)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def stored(path: Path) -> dict[str, bytes]:
    return {name + s: content for name, files in publish.pictures(read(path)) for s, content in files.items()}


# --- the book --------------------------------------------------------------------------------------


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_stored_pictures_are_the_published_files(notebook: Path) -> None:
    found = stored(notebook)
    assert found
    assert [n for n, content in found.items() if (PUBLISHED / n).read_bytes() != content] == []


def test_published_files_are_the_named_figures() -> None:
    names = [n.replace("-", "_") for p in NOTEBOOKS for n in figure_names(read(p))]
    assert sorted(p.name for p in PUBLISHED.iterdir()) == sorted(n + s for n in names for s in (".png", ".svg"))


def test_the_sources_four_figures_are_published() -> None:
    for name in ("attention_heatmap", "attention_singular_values", "relu2_sparsity", "linear_sparsity"):
        assert (PUBLISHED / f"fig_{name}.png").is_file()
        assert (PUBLISHED / f"fig_{name}.svg").is_file()


def loaded_from_elsewhere(svg: str) -> list[str]:
    """Return what an SVG would load: references that are neither its own ids nor data inside it."""
    faults = [match.group() for match in LOADS.finditer(svg)]
    for element in ElementTree.fromstring(svg).iter():
        for attribute, value in element.attrib.items():
            loads = attribute.rpartition("}")[2] in ("href", "src")
            if loads and not value.startswith(("#", "data:image/png;base64,")):
                faults.append(value)
    return faults


@pytest.mark.parametrize("svg", sorted(PUBLISHED.glob("*.svg")), ids=lambda p: p.stem)
def test_published_svg_loads_nothing_from_elsewhere(svg: Path) -> None:
    assert loaded_from_elsewhere(svg.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "content",
    [
        '<image xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="https://a.invalid/b.png"/>',
        '<image href="b.png"/>',
        '<use href="other.svg#glyph"/>',
        '<rect style="fill: url(https://a.invalid/#b)"/>',
        "<style>@import 'a.css';</style>",
        "<script>fetch('a')</script>",
    ],
)
def test_an_svg_that_loads_something_is_noticed(content: str) -> None:
    assert loaded_from_elsewhere(f'<svg xmlns="http://www.w3.org/2000/svg">{content}</svg>')
    assert not loaded_from_elsewhere('<svg xmlns="http://www.w3.org/2000/svg"><use href="#a" clip="url(#b)"/></svg>')


# --- spoilt copies of a chapter ----------------------------------------------------------------------


def figure_cell(notebook: Any) -> Any:
    return next(c for c in notebook["cells"] if (c["metadata"].get("mystnb") or {}).get("figure"))


def data(notebook: Any) -> dict[str, Any]:
    return figure_cell(notebook)["outputs"][0]["data"]


def one_pixel_changed(png: str) -> str:
    """Return a picture, base64 in and out, that differs in one pixel by one grey level."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")
    red, *rest = image.getpixel((7, 7))
    image.putpixel((7, 7), (red - 1, *rest))
    buffer = io.BytesIO()
    image.save(buffer, "png")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def other_picture(notebook: Any) -> None:
    cells = [c for c in notebook["cells"] if (c["metadata"].get("mystnb") or {}).get("figure")]
    cells[0]["outputs"] = copy.deepcopy(cells[1]["outputs"])


def changed_svg(notebook: Any) -> None:
    svg = "".join(data(notebook)["image/svg+xml"])
    data(notebook)["image/svg+xml"] = svg.replace("stroke-width: 1.6", "stroke-width: 1.7", 1)


def pixel(notebook: Any) -> None:
    data(notebook)["image/png"] = one_pixel_changed(data(notebook)["image/png"])


SPOILT: dict[str, Callable[[Any], object]] = {
    "another picture": other_picture,
    "no PNG": lambda notebook: data(notebook).pop("image/png"),
    "no SVG": lambda notebook: data(notebook).pop("image/svg+xml"),
    "an empty SVG": lambda notebook: data(notebook).update({"image/svg+xml": ""}),
    "a changed SVG": changed_svg,
    "one pixel": pixel,
    "broken base64": lambda notebook: data(notebook).update({"image/png": "???"}),
    "no output": lambda notebook: figure_cell(notebook).update(outputs=[]),
    "another name": lambda notebook: figure_cell(notebook)["metadata"]["mystnb"]["figure"].update(name="fig-other"),
    "a second figure of the same name": lambda notebook: notebook["cells"].append(figure_cell(notebook)),
}


def check(chapters: Path, folder: Path, *options: str) -> int:
    return publish.main([*options, "--notebooks", str(chapters), "--out", str(folder)])


@pytest.fixture
def copied(tmp_path: Path) -> tuple[Path, Path]:
    """A chapter with several figures, and their published files, in a temporary folder."""
    (tmp_path / "chapters").mkdir()
    chapter = next(p for p in NOTEBOOKS if p.stem == "rank")
    shutil.copy(chapter, tmp_path / "chapters" / "rank.ipynb")
    (tmp_path / "figures").mkdir()
    for name in stored(chapter):
        shutil.copy(PUBLISHED / name, tmp_path / "figures")
    return tmp_path / "chapters" / "rank.ipynb", tmp_path / "figures"


def test_a_true_copy_passes(copied: tuple[Path, Path]) -> None:
    chapter, folder = copied
    before = {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}
    assert check(chapter, folder, "--check") == 0
    assert check(chapter, folder) == 0
    assert {p.name: p.stat().st_mtime_ns for p in folder.iterdir()} == before


@pytest.mark.parametrize("how", SPOILT)
def test_a_spoilt_notebook_is_noticed(copied: tuple[Path, Path], how: str, capsys: pytest.CaptureFixture[str]) -> None:
    chapter, folder = copied
    notebook = read(chapter)
    SPOILT[how](notebook)
    assert notebook != read(chapter)
    chapter.write_text(json.dumps(notebook), encoding="utf-8")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert check(chapter, folder, "--check") == 1
    said = capsys.readouterr()
    assert "fig_exponential_sums" in (said.err + said.out).replace("-", "_")
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


@pytest.mark.parametrize("end", ["plt.show()", "figure", "picture = figures.show(figure)", ""])
def test_a_figure_cell_that_does_not_end_in_show_is_noticed(end: str) -> None:
    notebook = read(next(p for p in NOTEBOOKS if p.stem == "rank"))
    assert shown_figures(notebook) == []
    cell = figure_cell(notebook)
    cell["source"] = "".join(cell["source"]).replace("figures.show(figure)", end)
    assert len(shown_figures(notebook)) == 1


def test_publishing_adds_replaces_and_removes(copied: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    chapter, folder = copied
    missing, other, *same = sorted(p.name for p in folder.iterdir())
    (folder / missing).unlink()
    (folder / other).write_bytes(b"other")
    (folder / "fig_nobody_draws.svg").write_text("<svg/>")
    (folder / "notes.txt").write_text("not a picture")
    before = {name: (folder / name).stat().st_mtime_ns for name in same}
    assert check(chapter, folder, "--check") == 1
    assert "fig_nobody_draws.svg is drawn by no notebook" in capsys.readouterr().out
    assert check(chapter, folder) == 0
    said = capsys.readouterr().out
    for line in (f"added figures/{missing}", f"replaced figures/{other}", "removed figures/fig_nobody_draws.svg"):
        assert line in said
    assert {name: (folder / name).stat().st_mtime_ns for name in same} == before
    assert sorted(p.name for p in folder.iterdir()) == sorted([missing, other, *same, "notes.txt"])
    assert check(chapter, folder, "--check") == 0


# --- the proof compares pictures -----------------------------------------------------------------------

DRAWS = """from matplotlib.figure import Figure
from attnmath import figures
figure = Figure(figsize=(2, 1))
figure.add_subplot().plot([0, {0}])
figures.show(figure)"""

#: How each cell is spoilt, and whether the proof must notice it.
CELLS: list[tuple[str, bool]] = [
    ("true", False), ("one pixel", True), ("no PNG", True), ("no SVG", True), ("a changed SVG", True),
    ("an empty SVG", True), ("one machine", False), ("other words on one machine", True),
]  # fmt: skip


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tools and a notebook that was executed, and then spoilt in each of the ways of `CELLS`."""
    folder = tmp_path_factory.mktemp("spoilt")
    shutil.copytree(stamps.ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    notebook["cells"] = [code(DRAWS.format(k), None) for k in range(len(CELLS))]
    path = folder / "pictures.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("PYTHONPATH", str(stamps.ROOT / "code"))
        assert execute.execute(path) == ""

    notebook = read(path)
    for cell, (how, _) in zip(notebook["cells"], CELLS, strict=True):
        spoil(cell, how)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return folder


def spoil(cell: dict[str, Any], how: str) -> None:
    """Spoil the picture of an executed cell."""
    bundle = cell["outputs"][0]["data"]
    if "one machine" in how:
        cell["metadata"]["tags"] = ["this-machine"]
        cell["outputs"] = [picture(svg="<svg>another machine's</svg>")]
        words = "another text" if "words" in how else bundle["text/plain"]
        cell["outputs"][0]["data"]["text/plain"] = words
    elif how == "one pixel":
        bundle["image/png"] = one_pixel_changed(bundle["image/png"])
    elif how == "a changed SVG":
        bundle["image/svg+xml"][-2] += "<!-- changed -->\n"
    elif how == "an empty SVG":
        bundle["image/svg+xml"] = ""
    elif how.startswith("no "):
        del bundle[{"no PNG": "image/png", "no SVG": "image/svg+xml"}[how]]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_prove_compares_pictures(spoilt: Path, jobs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes of their own: pytest inside pytest would share its state."""
    monkeypatch.setenv("PYTHONPATH", str(stamps.ROOT / "code"))
    command = [sys.executable, "tools/prove.py", "--jobs", jobs, "pictures.ipynb"]
    said = subprocess.run(command, cwd=spoilt, capture_output=True, text=True)
    noticed = [f"code cell {k}" for k, (_, wrong) in enumerate(CELLS, start=1) if wrong]
    assert said.returncode == 1
    assert f"NOT PROVED pictures.ipynb: {', '.join(noticed)}\n" in said.stdout
    assert "image/png: the stored picture is not the one that the cell draws now" in said.stdout


def test_the_kernel_has_one_thread_whatever_the_callers_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of sums, and so the last digits of an eigenvalue near zero, depends on the number of threads."""
    shutil.copytree(stamps.ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    source = 'import os\nprint(*(os.environ.get(f"{k}_NUM_THREADS") for k in ("OMP", "OPENBLAS", "MKL")))'
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [code(source, 1, printed("1 1 1\n"))]}
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    for tool in ("execute.py", "prove.py"):
        command = [sys.executable, f"tools/{tool}", "--jobs", "1", "--all", "a.ipynb"]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert said.returncode == 0, said.stdout
        assert read(tmp_path / "a.ipynb")["cells"][0]["outputs"][0]["text"] in (["1 1 1\n"], "1 1 1\n")
