"""Lines and points: measurements on their predictions, and ordered families of curves.

Each function takes data, draws on the Axes it is given, and writes words on the axes. A family
that is ordered (by width, by length, by a parameter) has ordered colours, from dark to light; the
last of them is still dark enough for white paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle
from string import ascii_lowercase
from typing import Any, Literal, get_args

import matplotlib as mpl
import numpy as np
from jaxtyping import Float, Real
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import about, one_of, positive_integer
from attnmath.estimate import Estimate
from attnmath.figures.drawing import (
    axes_or_new,
    dodged,
    estimated,
    existing_axes,
    labelled,
    legend,
    line_styles,
    numbers,
    words,
)
from attnmath.figures.lettering import legible

#: How an axis is scaled; "widths" are powers of two.
Scale = Literal["linear", "log", "widths"]
#: A curve: the places on the x axis go in, its heights come out.
Curve = Callable[[Float[Numpy, "points"]], Real[ArrayLike, "points"]]
_DASHES = ("--", ":", "-.")


def ordered_colours(count: int) -> list[tuple[float, float, float, float]]:
    """Colours for an ordered family of so many, dark to light; the lightest still has a contrast of 3:1 with white.

    >>> len(ordered_colours(3))
    3
    """
    return [mpl.colormaps["viridis"](position) for position in np.linspace(0.0, 0.58, positive_integer(count, "count"))]


def against_prediction(
    x: Real[ArrayLike, "N"],
    measured: Mapping[str, Estimate],
    predicted: Mapping[str, Real[ArrayLike, "N"] | Curve] | None = None,
    *,
    xlabel: str,
    ylabel: str,
    xscale: Scale = "widths",
    yscale: Scale = "linear",
    dodge: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw measurements as points with bars of two standard errors, over thin lines of what was predicted.

    measured : label to an `Estimate` of N values.  predicted : label to values at x, or to a function
    of x, which is drawn on a fine grid; a label that begins with an underscore stays out of the legend.
    xscale : "widths" is logarithmic to base 2 with a tick at each x, written out.
    dodge : factor that sets neighbouring series apart along x.
    """
    x = _prepared(x, xlabel, ylabel, xscale, yscale)
    lines = [
        (label, *_line(values, name, x, xscale, yscale))
        for label, values, name in labelled(predicted, "predicted", optional=True)
    ]
    points = [
        (label, *estimated(value, name, x.size, positive=yscale != "linear"))
        for label, value, name in labelled(measured, "measured")
    ]
    places = dodged(x, dodge, len(points))
    ax = axes_or_new(ax)
    for label, grid, line in lines:
        ax.plot(grid, line, color="0.35", linewidth=1, label=label, zorder=1)
    for at, (label, values, bars), style in zip(places, points, line_styles(), strict=False):
        alone = {"linestyle": "none"} if predicted else {}
        ax.errorbar(at, values, bars, label=label, capsize=2, **style | alone)
    _axes(ax, xlabel, ylabel, xscale, yscale, x)
    legend(ax)
    return legible(ax)


def family(
    x: Real[ArrayLike, "N"],
    curves: Mapping[str, Real[ArrayLike, "N"]],
    *,
    xlabel: str,
    ylabel: str,
    reference: Mapping[str, Real[ArrayLike, "N"]] | None = None,
    xscale: Scale = "linear",
    yscale: Scale = "linear",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw an ordered family of curves over one grid, in ordered colours, on grey dashed references.

    curves, reference : by label.  title : what the labels of the legend are values of.
    """
    x = _prepared(x, xlabel, ylabel, xscale, yscale)
    log = yscale != "linear"
    behind = [
        (label, numbers(values, name, size=x.size, positive=log))
        for label, values, name in labelled(reference, "reference", optional=True)
    ]
    drawn = [
        (label, numbers(values, name, size=x.size, positive=log)) for label, values, name in labelled(curves, "curves")
    ]
    words(title, "title")
    ax = axes_or_new(ax)
    for (label, y), dash in zip(behind, cycle(_DASHES), strict=False):
        ax.plot(x, y, color="0.45", linewidth=1.2, linestyle=dash, label=label, zorder=1)
    for (label, y), colour, style in zip(drawn, ordered_colours(len(drawn)), line_styles(), strict=False):
        ax.plot(x, y, color=colour, linestyle=style["linestyle"], label=label)
    _axes(ax, xlabel, ylabel, xscale, yscale, x)
    legend(ax, title=title or None)
    return legible(ax)


def letter_panels(*panels: Axes) -> None:
    """Write a, b, c ... above the left corner of each panel.

    >>> import matplotlib.pyplot as plt
    >>> _, panels = plt.subplots(2)
    >>> letter_panels(*panels)
    >>> panels[1].get_title(loc="left")
    'b'
    """
    if not 1 <= len(panels) <= len(ascii_lowercase):
        raise ValueError(f"panels: expected 1 to {len(ascii_lowercase)} Axes, got {len(panels)}")
    checked = [existing_axes(ax, f"panels[{place}]") for place, ax in enumerate(panels)]
    for letter, ax in zip(ascii_lowercase, checked, strict=False):
        ax.set_title(letter, loc="left", fontweight="bold")


def _prepared(x: ArrayLike, xlabel: str, ylabel: str, xscale: Scale, yscale: Scale) -> NDArray[Any]:
    """Return x after a check of it and of the words and scales of both axes."""
    words(xlabel, "xlabel")
    words(ylabel, "ylabel")
    one_of(yscale, get_args(Scale), "yscale")
    return numbers(x, "x", positive=one_of(xscale, get_args(Scale), "xscale") != "linear")


def _line(
    values: ArrayLike | Curve, name: str, x: NDArray[Any], xscale: Scale, yscale: Scale
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return where a prediction is drawn, and its values there: a function on a fine grid, values at x."""
    log = yscale != "linear"
    if not callable(values):
        return x, numbers(values, name, size=x.size, positive=log)
    spaced = np.geomspace if x.min() > 0 else np.linspace
    grid = spaced(x.min(), x.max(), 200)
    with about(name):
        line = values(grid)
    return grid, numbers(line, name, size=grid.size, positive=log)


def _axes(ax: Axes, xlabel: str, ylabel: str, xscale: Scale, yscale: Scale, x: NDArray[Any]) -> None:
    ax.set(xlabel=xlabel, ylabel=ylabel)
    for axis, scale in ((ax.xaxis, xscale), (ax.yaxis, yscale)):
        setter = ax.set_xscale if axis is ax.xaxis else ax.set_yscale
        if scale == "widths":
            setter("log", base=2)
            axis.set_major_locator(FixedLocator(list(np.unique(x))))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(_plain))
        else:
            setter(scale)


def _plain(value: float, position: int | None = None) -> str:
    return f"{value:g}"


def falling(
    x: Real[ArrayLike, "N"],
    values: Mapping[str, Real[ArrayLike, "N"]],
    rates: Mapping[str, Real[ArrayLike, "N"]],
    *,
    xlabel: str,
    ylabel: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw exact positive numbers as points on logarithmic axes, on thin lines of known rate.

    x, values, rates : positive; there may be no rates.
    """
    x = _prepared(x, xlabel, ylabel, "widths", "log")
    lines = [
        (label, numbers(line, name, size=x.size, positive=True))
        for label, line, name in labelled(rates, "rates", optional=True)
    ]
    exact = [
        (label, numbers(points, name, size=x.size, positive=True)) for label, points, name in labelled(values, "values")
    ]
    ax = axes_or_new(ax)
    for (label, y), dash in zip(lines, cycle(_DASHES), strict=False):
        ax.plot(x, y, color="0.35", linewidth=1, linestyle=dash, label=label, zorder=1)
    for (label, y), style in zip(exact, line_styles(), strict=False):
        ax.plot(x, y, marker=style["marker"], linestyle="none", label=label)
    _axes(ax, xlabel, ylabel, "widths", "log", x)
    legend(ax)
    return legible(ax)
