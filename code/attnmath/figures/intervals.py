"""Measured values with their intervals against a quantity: one line for each setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from jaxtyping import Real
from matplotlib.axes import Axes

from attnmath.arrays import ArrayLike
from attnmath.checks import flag, one_of
from attnmath.figures.drawing import (
    SCALES,
    axes_or_new,
    dodged,
    draw_intervals,
    intervals,
    labelled,
    legend,
    number,
    numbers,
    only_ticks,
    words,
)
from attnmath.figures.lettering import legible

#: Where a legend goes.
Place = Literal["best", "lower right", "upper right", "upper left", "lower left"]


def values_with_intervals(
    points: Mapping[str, Real[ArrayLike, "_ 4"]], *, xlabel: str = "", ylabel: str = "",
    xscale: str = "linear", ticks: Real[ArrayLike, "_"] | None = None, level: float | None = None, dodge: float = 1.0,
    connected: bool = True, place: Place | None = "best", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw values with their intervals against a quantity, a line for each label.

    points : label to rows of x, value, lower and upper end of its interval.
    xscale : "linear" or "log".  ticks : the only marks of the horizontal axis.  level : a grey line across the Axes.
    dodge : factor between the x of two labels, so that bars do not hide one another.
    connected : join the points of a label by lines.  place : of the legend, or None for none.
    """
    log = one_of(xscale, SCALES, "xscale") == "log"
    tables = [(label, intervals(rows, name, positive=log)) for label, rows, name in labelled(points, "points")]
    marks = None if ticks is None else numbers(ticks, "ticks", positive=log)
    words(xlabel, "xlabel")
    words(ylabel, "ylabel")
    height = None if level is None else number(level, "level")
    connected = flag(connected, "connected")
    if place is not None:
        one_of(place, ("best", "lower right", "upper right", "upper left", "lower left"), "place")
    moved = [dodged(table[:, 0], dodge, len(tables))[at] for at, (_, table) in enumerate(tables)]
    ax = axes_or_new(ax)
    if height is not None:
        ax.axhline(height, color="0.55", linewidth=1.2, zorder=1)
    apart = [(label, np.column_stack([x, table[:, 1:]])) for x, (label, table) in zip(moved, tables, strict=True)]
    draw_intervals(ax, apart, connected=connected)
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale=xscale)
    only_ticks(ax, marks)
    if place is not None:
        legend(ax, loc=place)
    return legible(ax)
