"""Figures of the experiment on associative recall: recall beside concentration, and against the task's size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from attnmath.figures.drawing import axes_or_new, line_styles


def recall_against(
    points: Mapping[str, ArrayLike], *, connected: bool = False, chance: float | None = None, xlabel: str = "",
    xscale: str = "linear", ticks: ArrayLike | None = None, title: str = "",
    legend: Literal["best", "center"] | None = "best", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw recall with its interval against a quantity, one marker for each kind of attention.

    points : label to rows of x, recall, lower and upper end of its interval, shape (N, 4).
    connected : join the points of a kind. chance : level of guessing, a grey line.
    ticks : the only marks of the horizontal axis. legend : its place, or None for no legend.
    """
    ax = axes_or_new(ax)
    if chance is not None:
        ax.axhline(chance, color="0.6", linewidth=1.2)
    for (label, rows), style in zip(points.items(), line_styles(), strict=False):
        table = np.asarray(rows, dtype=float)
        if table.ndim != 2 or table.shape[1] != 4 or not np.all(np.isfinite(table)):
            raise ValueError(f"points[{label!r}]: expected finite rows (x, recall, low, high), got {table.shape}")
        x, middle, low, high = table.T
        bars = np.abs(np.clip([low, high], 0, 1) - middle)
        line = style if connected else style | {"linestyle": "none"}
        ax.errorbar(x, middle, bars, label=label, capsize=2, markersize=5, elinewidth=1, alpha=0.85, **line)
    ax.set(xlabel=xlabel, ylabel="$R$", xscale=xscale, ylim=(-0.03, 1.05), title=title)
    if ticks is not None:
        ax.set_xticks(np.asarray(ticks), [f"{tick:g}" for tick in np.asarray(ticks)])
        ax.set_xticks([], minor=True)
    if legend is not None:
        ax.legend(loc=legend)
    return ax
