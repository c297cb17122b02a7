"""The figures: drawn on the caller's Axes, in the book's style, and encoded byte for byte the same."""

from __future__ import annotations

import io
import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from attnmath.estimate import Estimate
from attnmath.figures import (
    against_prediction,
    attention_heatmap,
    curves,
    falling,
    family,
    letter_panels,
    mask_pattern,
    ordered_colours,
    show,
)
from attnmath.figures.show import STYLE, encode

DRAW = """
import sys
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
from attnmath.figures import curves, mask_pattern, show
{before}
figure, (left, right) = plt.subplots(1, 2)
curves([0, 1, 2], {{"$y$": [0.0, 1.0, 4.0]}}, ax=left)
mask_pattern([[True, False], [True, True]], ax=right)
picture = show(figure)
sys.stdout.buffer.write(picture.png + picture.svg.encode())
"""


def drawn_elsewhere(before: str = "") -> bytes:
    """The bytes of a figure with lines and an image, drawn in a process of its own."""
    command = [sys.executable, "-c", DRAW.format(before=before)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def test_a_figure_has_the_same_bytes_in_two_processes() -> None:
    first = drawn_elsewhere()
    assert first == drawn_elsewhere()
    # Figures that were drawn before in the same process leave no trace.
    assert first == drawn_elsewhere("show(curves([0, 1], {'$z$': [1.0, 2.0]}).figure)")
    assert first != drawn_elsewhere("matplotlib.rcParams['lines.linewidth'] = 3")


def test_a_picture_has_both_formats_and_a_notebook_stores_the_svg_alone_and_closes_the_figure() -> None:
    figure, ax = plt.subplots(figsize=(5, 3))
    ax.plot([0, 1])
    picture = show(figure)
    assert not plt.fignum_exists(figure.number)
    bundle = picture._repr_mimebundle_()
    assert bundle == {"image/svg+xml": picture.svg, "text/plain": "<figure: 1 panel, 5 x 3 in>"}
    assert repr(picture) == bundle["text/plain"]
    with plt.style.context(STYLE):
        dots = mpl.rcParams["savefig.dpi"]
    assert Image.open(io.BytesIO(picture.png)).size == (5 * dots, 3 * dots)
    assert 'width="360pt"' in picture.svg
    assert "dc:date" not in picture.svg


def test_a_colour_bar_is_not_a_panel() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    attention_heatmap(np.eye(3), ax=left)
    mask_pattern(np.eye(3, dtype=bool), ax=right)
    assert len(figure.axes) == 3
    assert repr(show(figure)) == "<figure: 2 panels, 8 x 4 in>"


def test_other_data_on_the_callers_axes_touches_no_global_state() -> None:
    plt.close("all")  # what another test has left open
    before = dict(mpl.rcParams)
    figure, ax = plt.subplots()
    assert curves([1, 2], {"$x$": [1, 2]}, ax=ax) is ax and len(plt.get_fignums()) == 1
    assert family([0, 1], {"a": [1, 2]}, reference={"b": [2, 1]}, xlabel="x", ylabel="y", ax=ax) is ax
    assert falling([1, 2], {"a": [1, 2]}, {"b": [2, 1]}, xlabel="x", ylabel="y").figure is not ax.figure
    show(figure)
    assert dict(mpl.rcParams) == before
    plt.close("all")


def test_the_style_survives_colour_blindness_and_grey_print() -> None:
    """Neighbouring colours of the cycle differ in luminance or are told apart by marker and dash."""
    with plt.style.context(STYLE):
        colours = [mpl.colors.to_rgb(c["color"]) for c in mpl.rcParams["axes.prop_cycle"]]
    luminance = [np.dot(c, (0.2126, 0.7152, 0.0722)) for c in colours]
    assert all(v < 0.75 for v in luminance), "a line must stand out from white"
    assert len(set(colours)) == len(colours)


def test_bad_input_is_named() -> None:
    with pytest.raises(TypeError, match="ax: expected a matplotlib Axes"):
        family([0], {"a": [0]}, xlabel="x", ylabel="y", ax="here")
    with pytest.raises(ValueError, match=r"curves\['x'\]: expected 2 values"):
        curves([1, 2], {"x": [1, 2, 3]})
    plt.close("all")
    figure, ax = plt.subplots()
    with pytest.raises(ValueError, match="format: expected one of png, svg, got 'gif'"):
        encode(figure, "gif")
    with pytest.raises(TypeError, match="figure: expected a matplotlib Figure, got Axes; an Axes has it"):
        show(ax)
    with pytest.raises(TypeError, match="figure: expected a matplotlib Figure, got NoneType$"):
        show(None)
    plt.close(figure)


TWO = Estimate(np.ones(2), np.full(2, 0.1))


def test_predictions_are_drawn_beneath_what_was_measured() -> None:
    _, ax = plt.subplots()
    against_prediction([1, 16], {"drawn": TWO}, {"law": lambda x: x**0, "_": [1, 1]}, xlabel="x", ylabel="y", ax=ax)
    law, other = (line for line in ax.get_lines() if line.get_color() == "0.35")
    assert law.get_xdata().size == 200 and other.get_xdata().size == 2
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["law", "drawn"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "16"]
    plt.close("all")


def test_ordered_families_have_ordered_colours_that_show_on_white() -> None:
    luminance = [np.dot(c[:3], (0.2126, 0.7152, 0.0722)) for c in ordered_colours(6)]
    assert luminance == sorted(luminance) and luminance[-1] < 0.75
    _, ax = plt.subplots()
    family([1, 2, 3], {"1": [1, 2, 3], "2": [2, 3, 4]}, xlabel="x", ylabel="y", yscale="log", title="n", ax=ax)
    assert [tuple(line.get_color()) for line in ax.get_lines()] == [tuple(c) for c in ordered_colours(2)]
    plt.close("all")


def test_panels_are_lettered() -> None:
    _, panels = plt.subplots(3)
    letter_panels(*panels)
    assert [ax.get_title(loc="left") for ax in panels] == ["a", "b", "c"]
    plt.close("all")


@pytest.mark.parametrize(
    ("draw", "error", "words"),
    [
        (
            lambda: against_prediction([1], {"a": TWO}, xlabel="", ylabel=""),
            ValueError,
            r"measured\['a'\]: expected 1 values",
        ),
        (lambda: against_prediction([1, 2], {"a": [1, 2]}, xlabel="", ylabel=""), TypeError, "expected an Estimate"),
        (
            lambda: against_prediction([1, 2], {"a": TWO}, {"p": [1]}, xlabel="", ylabel=""),
            ValueError,
            r"predicted\['p'\]",
        ),
        (lambda: against_prediction([1, np.nan], {"a": TWO}, xlabel="", ylabel=""), ValueError, "x: expected no NaN"),
        (lambda: family([1, 2], {"a": [1]}, xlabel="", ylabel=""), ValueError, r"curves\['a'\]: expected 2 values"),
        (lambda: family([1, 2], {"a": [1, np.inf]}, xlabel="", ylabel=""), ValueError, r"curves\['a'\]"),
        (lambda: family([1, 2], {}, xlabel="", ylabel="", xscale="square"), ValueError, "xscale: expected"),
        (
            lambda: falling([1, 2], {"a": [1]}, {}, xlabel="", ylabel=""),
            ValueError,
            r"values\['a'\]: expected 2 values",
        ),
        (lambda: letter_panels("a"), TypeError, r"panels\[0\]: expected a matplotlib Axes, got str"),
    ],
)
def test_bad_data_is_named(draw, error, words) -> None:
    with pytest.raises(error, match=words):
        draw()
    plt.close("all")


@pytest.mark.parametrize("stem, error", [(".", ValueError), ("", ValueError), (3, TypeError)])
def test_a_stem_is_the_name_of_a_file(stem: object, error: type[Exception], tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match="stem: expected"):
        show(plt.figure()).save(stem)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
