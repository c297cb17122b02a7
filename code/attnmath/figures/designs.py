"""Figures of the experiment on associative recall: recall beside concentration, and against the task's size."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any, Literal

import numpy as np
from jaxtyping import Real
from matplotlib.axes import Axes

from attnmath.arrays import ArrayLike
from attnmath.checks import flag, one_of
from attnmath.figures.drawing import (
    SCALES,
    axes_or_new,
    draw_intervals,
    intervals,
    labelled,
    numbers,
    only_ticks,
    words,
)
from attnmath.figures.drawing import legend as draw_legend
from attnmath.figures.lettering import legible


def recall_against(
    points: Mapping[str, Real[ArrayLike, "_ 4"]], *, connected: bool = False,
    baselines: Mapping[str, Real[ArrayLike, "_ 2"]] | None = None,
    xlabel: str = "", xscale: str = "linear", ticks: Real[ArrayLike, "_"] | None = None, title: str = "",
    legend: Literal["best", "center"] | None = "best", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw recall with its interval against a quantity, one marker for each kind of attention.

    points : label to rows of x, recall, lower and upper end of its interval.
    connected : join the points of a kind.  baselines : label to rows of x, recall of a rule that looks nothing up; they
    are joined by grey lines, and a single row is a line across the Axes.
    xscale : "linear" or "log".  ticks : the only marks of the horizontal axis.
    legend : its place, or None for no legend.
    """
    log = one_of(xscale, SCALES, "xscale") == "log"
    tables = [(label, _recall(rows, name, log)) for label, rows, name in labelled(points, "points")]
    connected = flag(connected, "connected")
    rules = [] if baselines is None else [(label, _baseline(rows, name, log))
                                          for label, rows, name in labelled(baselines, "baselines")]  # fmt: skip
    marks = None if ticks is None else numbers(ticks, "ticks", positive=log)
    words(xlabel, "xlabel")
    words(title, "title")
    if legend is not None:
        one_of(legend, ("best", "center"), "legend")
    ax = axes_or_new(ax)
    for (label, line), dashes in zip(rules, cycle(("-", (0, (1, 1.5)), (0, (4, 2)))), strict=False):
        grey: dict[str, Any] = {"color": "0.55", "linewidth": 1.2, "linestyle": dashes, "label": label, "zorder": 1}
        if len(line) == 1:
            ax.axhline(line[0, 1], **grey)
        else:
            ax.plot(*line.T, **grey)
    draw_intervals(ax, [(label, table.clip([-np.inf, 0, 0, 0], [np.inf, 1, 1, 1])) for label, table in tables],
                   connected=connected)  # fmt: skip
    ax.set(xlabel=xlabel, ylabel="$R$", xscale=xscale, ylim=(-0.03, 1.05), title=title)
    only_ticks(ax, marks)
    if legend is not None:
        draw_legend(ax, loc=legend)
    return legible(ax)


def _baseline(rows: ArrayLike, name: str, log: bool) -> np.ndarray:
    """Return rows of x, recall, with the recall between 0 and 1."""
    table = numbers(rows, name, ndim=2)
    if table.shape[1] != 2:
        raise ValueError(f"{name}: expected rows (x, recall), got shape {table.shape}")
    numbers(table[:, 0], name, positive=log)
    if np.any(table[:, 1] < 0) or np.any(table[:, 1] > 1):
        raise ValueError(f"{name}: expected a recall between 0 and 1, got {table.tolist()}")
    return table


def _recall(rows: ArrayLike, name: str, log: bool) -> np.ndarray:
    """Return rows of x, recall, low, high, with the recall between 0 and 1 and within its interval."""
    table = intervals(rows, name, positive=log)
    if np.any(table[:, 1] < 0) or np.any(table[:, 1] > 1):
        raise ValueError(f"{name}: expected a recall between 0 and 1, got {table.tolist()}")
    return table
