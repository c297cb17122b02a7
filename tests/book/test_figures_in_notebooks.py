"""The published figures are what the notebooks drew, and whatever is spoilt is noticed."""

from __future__ import annotations

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

import numpy as np
import pytest
from jaxtyping import Float
from matplotlib.figure import Figure
from PIL import Image

import execute
import publish
import stamps
from attnmath import figures
from fabricated import code, picture, printed
from notebook_rules import shown_figures
from page_rules import pictures
from tracked import tracked

NOTEBOOKS = stamps.notebooks()
PUBLISHED = stamps.ROOT / "figures"
Pixels = Float[np.ndarray, "height width 3"]
Colour = Float[np.ndarray, "rgb"]
#: The figures that the sources name.
SOURCES = {f"fig_{s}" for s in ("attention_heatmap", "attention_singular_values", "relu2_sparsity", "linear_sparsity")}
#: An SVG has at most so many characters.
HEAVIEST = 250_000
#: Elements and functions through which an SVG can load something.
LOADS = re.compile(r"url\(\s*['\"]?(?!#)|@import|<\?xml-stylesheet|<script|<foreignObject", re.IGNORECASE)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


# --- the book --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    """The SVG of every figure of the book, by the stem of its files."""
    return publish.collect(NOTEBOOKS)


def kept() -> dict[str, Path]:
    """The published files that are under git, by their names."""
    return {path.name: path for path in tracked() if path.parent == PUBLISHED}


def test_git_keeps_the_figures_that_are_named_or_shown_outside_of_the_notebooks_and_no_other() -> None:
    pages = {page: page.read_text(encoding="utf-8") for page in tracked() if page.suffix == ".md"}
    sources = [(page.parent / source).resolve() for page, text in pages.items() for source, _ in pictures(text)]
    shown = {source.stem for source in sources if source.parent == PUBLISHED}
    assert shown
    assert sorted(kept()) == sorted(stem + suffix for stem in shown | SOURCES for suffix in publish.SUFFIXES)


def test_the_kept_files_are_what_the_notebooks_drew(drawn: dict[str, str]) -> None:
    for stem in {path.stem for path in kept().values()}:
        assert publish.is_published(stem, drawn[stem], PUBLISHED), f"{stem}: run `make figures`"
        kept_png, now = (pixels(png) for png in ((PUBLISHED / f"{stem}.png").read_bytes(), publish.as_png(drawn[stem])))
        # Another processor may round a shade of an edge otherwise.
        assert kept_png.shape == now.shape and np.abs(kept_png - now).max() <= 2, f"{stem}: run `make figures ALL=1`"


def test_the_png_shows_what_matplotlib_would_draw() -> None:
    """Two programs soften edges in their own ways: the pictures agree where each is averaged over a few pixels."""
    figure, other = Figure(figsize=(4, 2)), Figure(figsize=(4, 2))
    for one, height in ((figure, 1.0), (other, 0.9)):
        left, right = one.subplots(1, 2)
        left.plot([0, 1, 2], [0, height, 0], label="a line")
        left.legend()
        right.imshow([[0, 1], [height, 0.2]])
    picture, wrong = figures.show(figure), figures.show(other)
    assert publish.as_png(picture.svg) == publish.as_png(picture.svg)
    ours, theirs, others = (pixels(png) for png in (publish.as_png(picture.svg), picture.png, wrong.png))
    assert ours.shape == theirs.shape == (400, 800, 3)
    assert np.abs(coarse(ours) - coarse(theirs)).max() < 30 < np.abs(coarse(ours) - coarse(others)).max()


def pixels(png: bytes) -> Pixels:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float)


def coarse(picture: Pixels, size: int = 16) -> Pixels:
    """Return the means over squares of pixels."""
    height, width, depth = picture.shape
    return picture.reshape(height // size, size, width // size, size, depth).mean(axis=(1, 3))


def loaded_from_elsewhere(svg: str) -> list[str]:
    """Return what an SVG would load: references that are neither its own ids nor data inside it."""
    faults = [match.group() for match in LOADS.finditer(svg)]
    for element in ElementTree.fromstring(svg).iter():
        for attribute, value in element.attrib.items():
            loads = attribute.rpartition("}")[2] in ("href", "src")
            if loads and not value.startswith(("#", "data:image/png;base64,")):
                faults.append(value)
    return faults


def test_no_svg_loads_anything_from_elsewhere(drawn: dict[str, str]) -> None:
    assert {stem: faults for stem, svg in drawn.items() if (faults := loaded_from_elsewhere(svg))} == {}


def test_no_svg_is_heavy(drawn: dict[str, str]) -> None:
    """What is heavier has thousands of marks or cells, which `rasterized=True` turns into one image."""
    assert {stem: len(svg) for stem, svg in drawn.items() if len(svg) > HEAVIEST} == {}


# A line that carries data can be seen: in the light on white, in the dark as the style sheet turns it.
LEAST_CONTRAST = 3
_SVG = "{http://www.w3.org/2000/svg}"


def dark(colour: Colour) -> Colour:
    """A colour behind ``filter: invert(0.9294) hue-rotate(180deg)``, as the specification of filters computes it."""
    grey = np.array([0.213, 0.715, 0.072])
    return np.clip((2 * grey - np.eye(3)) @ (0.9294 - 0.8588 * colour), 0, 1)


def contrast(one: Colour, other: Colour) -> float:
    """The contrast of two colours, by WCAG 2."""
    colours = np.array([one, other])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return float((high + 0.05) / (low + 0.05))


def lines(svg: str) -> set[str]:
    """The colours of the lines in the panels of a figure: no axis, no grid, no tick, no area."""
    found = set()

    def visit(element: ElementTree.Element, inside: bool) -> None:
        name = element.get("id", "")
        if name.startswith(("matplotlib.axis", "legend", "text")):
            return
        inside = inside or name.startswith(("line2d", "LineCollection"))
        style = element.get("style", "")
        if inside and element.tag == f"{_SVG}path" and "fill: none" in style:
            found.update(re.findall(r"stroke: (#[0-9a-f]{6})", style))
        for child in element:
            visit(child, inside)

    visit(ElementTree.fromstring(svg), False)
    return found


def pale(svg: str) -> list[str]:
    """The colours of lines that are hard to see on the page, in one of the two themes."""
    white, faults = np.ones(3), []
    for colour in sorted(lines(svg)):
        rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        if min(contrast(rgb, white), contrast(dark(rgb), dark(white))) < LEAST_CONTRAST:
            faults.append(colour)
    return faults


def test_every_line_can_be_seen_in_both_themes(drawn: dict[str, str]) -> None:
    assert len(set().union(*map(lines, drawn.values()))) > 5
    assert {stem: faults for stem, svg in drawn.items() if (faults := pale(svg))} == {}


@pytest.mark.parametrize(("colour", "seen"), [("#86d549", False), ("#e69f00", False), ("#0072b2", True)])
def test_a_pale_line_is_noticed(colour: str, seen: bool) -> None:
    line = f'<g id="line2d_1"><path style="fill: none; stroke: {colour}"/></g>'
    grid = '<g id="matplotlib.axis_1"><g id="line2d_2"><path style="fill: none; stroke: #eeeeee"/></g></g>'
    assert (pale(f'<svg xmlns="http://www.w3.org/2000/svg">{line}{grid}</svg>') == []) is seen


def test_white_is_the_background_of_the_dark_page() -> None:
    np.testing.assert_allclose(dark(np.ones(3)) * 255, 18, atol=0.01)


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


def other_picture(notebook: Any) -> None:
    cells = [c for c in notebook["cells"] if (c["metadata"].get("mystnb") or {}).get("figure")]
    cells[0]["outputs"] = copy.deepcopy(cells[1]["outputs"])


def changed_svg(notebook: Any) -> None:
    svg = "".join(data(notebook)["image/svg+xml"])
    data(notebook)["image/svg+xml"] = svg.replace("stroke-width: 1.6", "stroke-width: 1.7", 1)


def with_png(notebook: Any) -> None:
    data(notebook)["image/png"] = "aGVsbG8="


SPOILT: dict[str, Callable[[Any], object]] = {
    "another picture": other_picture,
    "a PNG beside it": with_png,
    "no SVG": lambda notebook: data(notebook).pop("image/svg+xml"),
    "an empty SVG": lambda notebook: data(notebook).update({"image/svg+xml": ""}),
    "a changed SVG": changed_svg,
    "half an SVG": lambda notebook: data(notebook).update({"image/svg+xml": "<svg "}),
    "no output": lambda notebook: figure_cell(notebook).update(outputs=[]),
    "another name": lambda notebook: figure_cell(notebook)["metadata"]["mystnb"]["figure"].update(name="fig-other"),
    "a second figure of the same name": lambda notebook: notebook["cells"].append(figure_cell(notebook) | {"id": "a"}),
}


def check(chapters: Path, folder: Path, *options: str) -> int:
    return publish.main([*options, "--notebooks", str(chapters), "--out", str(folder)])


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a chapter that has several figures, and their published files."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "chapters").mkdir()
    shutil.copy(next(p for p in NOTEBOOKS if p.stem == "rank"), folder / "chapters")
    assert check(folder / "chapters", folder / "figures") == 0
    return folder


@pytest.fixture
def copied(published: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the published chapter, and of its files."""
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
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
    published = {p.name: p.read_bytes() for p in folder.iterdir()}
    missing, other, *same = sorted(publish.collect([chapter]))
    for suffix in publish.SUFFIXES:
        (folder / f"{missing}{suffix}").unlink()
    (folder / f"{other}.svg").write_bytes(b"other")
    (folder / f"{other}.png").write_bytes(b"other")
    (folder / "fig_nobody_draws.svg").write_text("<svg/>")
    (folder / "notes.txt").write_text("not a picture")
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir() if path.stem in same}
    assert same and len(before) == 2 * len(same)
    assert check(chapter, folder, "--check") == 1
    assert "fig_nobody_draws.svg is drawn by no notebook" in capsys.readouterr().out
    assert check(chapter, folder) == 0
    said = capsys.readouterr().out
    for line in (f"added figures/{missing}", f"replaced figures/{other}", "removed figures/fig_nobody_draws.svg"):
        assert line in said
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == published | {"notes.txt": b"not a picture"}
    assert check(chapter, folder, "--check") == 0


def test_a_png_is_drawn_again_where_it_is_missing_and_on_request(copied: tuple[Path, Path]) -> None:
    chapter, folder = copied
    png = min(folder.glob("*.png"))
    true = png.read_bytes()
    png.unlink()
    assert check(chapter, folder, "--check") == 1
    assert check(chapter, folder) == 0 and png.read_bytes() == true
    png.write_bytes(b"of an older version")
    assert check(chapter, folder) == 0 and png.read_bytes() != true
    assert check(chapter, folder, "--all") == 0 and png.read_bytes() == true


def test_what_cannot_be_drawn_is_named(copied: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    chapter, folder = copied
    notebook = read(chapter)
    data(notebook)["image/svg+xml"] = "<svg "
    chapter.write_text(json.dumps(notebook), encoding="utf-8")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert check(chapter, folder) == 1
    assert "fig_exponential_sums: expected an SVG that can be drawn" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


# --- the proof compares pictures -----------------------------------------------------------------------

DRAWS = """from matplotlib.figure import Figure
from attnmath import figures
figure = Figure(figsize=(2, 1))
figure.add_subplot().plot([0, {0}])
figures.show(figure)"""

#: How each cell is spoilt, and whether the proof must notice it.
CELLS: list[tuple[str, bool]] = [
    ("true", False), ("a PNG beside it", True), ("no SVG", True), ("a changed SVG", True), ("an empty SVG", True),
    ("one machine", False), ("other words on one machine", True),
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
    elif how == "a PNG beside it":
        bundle["image/png"] = "aGVsbG8="
    elif how == "a changed SVG":
        bundle["image/svg+xml"][-2] += "<!-- changed -->\n"
    elif how == "an empty SVG":
        bundle["image/svg+xml"] = ""
    elif how == "no SVG":
        del bundle["image/svg+xml"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_prove_compares_pictures(spoilt: Path, jobs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes of their own: pytest inside pytest would share its state."""
    monkeypatch.setenv("PYTHONPATH", str(stamps.ROOT / "code"))
    command = [sys.executable, "tools/prove.py", "--jobs", jobs, "pictures.ipynb"]
    said = subprocess.run(command, cwd=spoilt, capture_output=True, text=True)
    noticed = [f"code cell {k}" for k, (_, wrong) in enumerate(CELLS, start=1) if wrong]
    assert said.returncode == 1
    assert f"NOT PROVED pictures.ipynb: {', '.join(noticed)}\n" in said.stdout
    assert "image/svg+xml: the stored picture is not the one that the cell draws now" in said.stdout


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
