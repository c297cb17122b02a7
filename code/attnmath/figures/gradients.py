"""Figures of projections and gradients: a plane map's picture, and estimates against a quantity of one's choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter
from numpy.typing import ArrayLike

from attnmath.estimate import Estimate
from attnmath.figures.curves import estimates_against
from attnmath.figures.drawing import axes_or_new, line_styles

Place = Literal["best", "lower left", "center left", "upper left", "upper right", "lower right"]


def curves_and_arrows(
    curves: Mapping[str, ArrayLike], arrows: Mapping[str, ArrayLike], *,
    xlabel: str = "", ylabel: str = "", reach: float | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw plane curves, and arrows from the origin with their names at the tips, at equal scales.

    curves : label to points of shape (N, 2).  arrows : name to a point of shape (2,).
    reach : the axes go from -reach to reach.
    """
    ax = axes_or_new(ax)
    for (label, points), style in zip(curves.items(), line_styles(), strict=False):
        x, y = np.asarray(points).T
        ax.plot(x, y, label=label, linestyle=style["linestyle"])
    for name, tip in arrows.items():
        x, y = np.asarray(tip)
        ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "0.15", "shrinkA": 0, "shrinkB": 0})
        length = float(np.hypot(x, y)) or 1.0
        ax.annotate(name, (x, y), (13 * x / length, 13 * y / length), textcoords="offset points",
                    ha="center", va="center")  # fmt: skip
    ax.set(xlabel=xlabel, ylabel=ylabel, aspect="equal")
    if reach is not None:
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    ax.legend(loc="lower left")
    return ax


def estimates_over(
    x: Sequence[float], estimates: Mapping[str, Estimate], *, xlabel: str, ylabel: str = "",
    predictions: Mapping[str, ArrayLike] | None = None, xscale: str = "log", yscale: str = "linear",
    yticks: Sequence[float] | None = None, dodge: float = 1.0, legend_at: Place = "best", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw estimates with bars of two standard errors against any quantity, over thin predicted lines.

    As `attnmath.figures.estimates_against`; xscale : "log" (to base 2) or "linear" with a tick at each x.
    yticks : where the vertical axis has its ticks, shown as plain numbers; chosen for it unless given.
    """
    ax = estimates_against(x, estimates, predictions=predictions, ylabel=ylabel, yscale=yscale, dodge=dodge, ax=ax)
    ax.set_xlabel(xlabel)
    if xscale == "linear":
        ax.set_xscale("linear")
        ax.set_xticks(np.asarray(x))
        ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    if yticks is not None:
        ax.minorticks_off()
        ax.set_yticks(np.asarray(yticks))
        ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    ax.legend(loc=legend_at)
    return ax
