"""Figures of projections and gradients: a plane map's picture, and estimates against a quantity of one's choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
from jaxtyping import Real
from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter

from attnmath.arrays import ArrayLike
from attnmath.checks import one_of
from attnmath.estimate import Estimate
from attnmath.figures.curves import draw_estimates
from attnmath.figures.drawing import (
    SCALES,
    axes_or_new,
    labelled,
    legend,
    line_styles,
    number,
    numbers,
    words,
)

#: Where a legend goes.
Place = Literal["best", "lower left", "center left", "upper left", "upper right", "lower right"]


def curves_and_arrows(
    curves: Mapping[str, Real[ArrayLike, "_ 2"]], arrows: Mapping[str, Real[ArrayLike, "2"]], *,
    xlabel: str = "", ylabel: str = "", reach: float | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw plane curves, and arrows from the origin with their names at the tips, at equal scales.

    curves : label to points.  arrows : name to a point; there may be none.
    reach : the axes go from -reach to reach.
    """
    paths = [(label, _plane_points(points, name)) for label, points, name in labelled(curves, "curves")]
    tips = [(label, numbers(tip, name, size=2)) for label, tip, name in labelled(arrows, "arrows", optional=True)]
    words(xlabel, "xlabel")
    words(ylabel, "ylabel")
    ends = None if reach is None else number(reach, "reach", positive=True)
    ax = axes_or_new(ax)
    for (label, points), style in zip(paths, line_styles(), strict=False):
        x, y = points.T
        ax.plot(x, y, label=label, linestyle=style["linestyle"])
    for name, (x, y) in tips:
        ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "0.15", "shrinkA": 0, "shrinkB": 0})
        length = float(np.hypot(x, y)) or 1.0
        ax.annotate(name, (x, y), (13 * x / length, 13 * y / length), textcoords="offset points",
                    ha="center", va="center")  # fmt: skip
    ax.set(xlabel=xlabel, ylabel=ylabel, aspect="equal")
    if ends is not None:
        ax.set(xlim=(-ends, ends), ylim=(-ends, ends))
    legend(ax, loc="lower left")
    return ax


def estimates_over(
    x: Real[ArrayLike, "N"], estimates: Mapping[str, Estimate], *, xlabel: str, ylabel: str = "",
    predictions: Mapping[str, Real[ArrayLike, "N"]] | None = None, xscale: str = "log", yscale: str = "linear",
    yticks: Real[ArrayLike, "_"] | None = None, dodge: float = 1.0, legend_at: Place = "best", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw estimates with bars of two standard errors against any quantity, over thin predicted lines.

    As `attnmath.figures.estimates_against`; xscale : "log" (to base 2) or "linear" with a tick at each x.
    yticks : where the vertical axis has its ticks, shown as plain numbers; chosen for it unless given.
    """
    at = numbers(x, "x", positive=one_of(xscale, SCALES, "xscale") == "log")
    one_of(yscale, SCALES, "yscale")
    marks = None if yticks is None else numbers(yticks, "yticks", positive=yscale == "log")
    words(xlabel, "xlabel")
    one_of(legend_at, get_args(Place), "legend_at")
    ax = draw_estimates(at, estimates, predictions, ylabel, yscale, dodge, ax)
    ax.set_xlabel(xlabel)
    if xscale == "linear":
        ax.set_xscale("linear")
        ax.set_xticks(at)
        ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    else:
        ax.set_xscale("log", base=2)
    if marks is not None:
        ax.minorticks_off()
        ax.set_yticks(marks)
        ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    legend(ax, loc=legend_at)
    return ax


def _plane_points(value: ArrayLike, name: str) -> np.ndarray:
    points = numbers(value, name, ndim=2)
    if points.shape[1] != 2:
        raise ValueError(f"{name}: expected points of shape (N, 2), got shape {points.shape}")
    return points
