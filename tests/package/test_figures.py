"""The figures: as published, drawn on the caller's Axes, and written byte for byte the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from attnmath.estimate import Estimate
from attnmath.figures import decay_with_rates, density_curves, estimates_against
from attnmath.figures.__main__ import main
from attnmath.figures.catalogue import FIGURES
from attnmath.figures.published import STYLE, encode, publish

PUBLISHED = Path(__file__).parents[2] / "figures"


def image_test(name: str):
    """A test that draws one published figure and compares it with the published image."""

    # Text is hinted by the platform's font engine; a root mean square of 2 grey levels lets that through.
    @pytest.mark.mpl_image_compare(filename=f"{name}.png", tolerance=2, style=STYLE, savefig_kwargs={"dpi": 200})
    def test() -> plt.Figure:
        return FIGURES[name].draw()

    return test


for _name in FIGURES:
    globals()[f"test_{_name}_is_as_published"] = image_test(_name)


def test_published_files_and_the_catalogue_are_the_same_set() -> None:
    for suffix in ("png", "svg"):
        assert {p.stem for p in PUBLISHED.glob(f"*.{suffix}")} == set(FIGURES)


def test_figures_are_written_byte_for_byte_in_two_processes(tmp_path: Path) -> None:
    name = "fig_cosine_density"
    for folder in ("a", "b"):
        command = [sys.executable, "-m", "attnmath.figures", name, "--out", str(tmp_path / folder)]
        assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.count(name) == 2
    for suffix in ("png", "svg"):
        first, second = ((tmp_path / folder / f"{name}.{suffix}").read_bytes() for folder in "ab")
        assert first == second


def test_other_data_on_the_callers_axes_touches_no_global_state() -> None:
    before = dict(mpl.rcParams)
    _, ax = plt.subplots()
    drawn = estimates_against([1, 2], {"$x$": Estimate(np.ones(2), np.zeros(2))}, predictions={"$p$": [1, 1]}, ax=ax)
    assert drawn is ax and len(plt.get_fignums()) == 1 and dict(mpl.rcParams) == before
    assert density_curves([0, 1], {"$a$": [1, 2]}, reference={"$b$": [2, 1]}, ax=ax) is ax
    assert decay_with_rates([1, 2], {"$a$": [1, 2]}).figure is not ax.figure
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
        density_curves([0], {}, ax="here")
    with pytest.raises(ValueError, match=r"estimates\['x'\]: expected 2 values"):
        estimates_against([1, 2], {"x": Estimate(np.ones(3), np.zeros(3))})
    plt.close("all")
    figure = plt.figure()
    with pytest.raises(ValueError, match="format: expected one of png, svg, got 'gif'"):
        encode(figure, "gif")
    plt.close(figure)


def test_the_command_lists_and_refuses(tmp_path: Path, capsys) -> None:
    assert main(["--list"]) == 0 and capsys.readouterr().out.split() == sorted(FIGURES)
    with pytest.raises(SystemExit):
        main(["fig_of_nothing"])
    assert "expected a name that --list prints, got fig_of_nothing" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        main(["fig_cosine_density", "--out", str(tmp_path / "file")])
    assert "--out: expected a folder" in capsys.readouterr().err


def test_an_unchanged_figure_is_not_rewritten(tmp_path: Path) -> None:
    name = "fig_cosine_density"
    (path,) = publish(name, FIGURES[name], tmp_path, ("svg",))
    stamp = path.stat().st_mtime_ns
    publish(name, FIGURES[name], tmp_path, ("svg",))
    assert path.stat().st_mtime_ns == stamp
