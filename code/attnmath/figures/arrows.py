"""The picture of a plane map: curves, and arrows from the origin."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Real
from matplotlib.axes import Axes

from attnmath.arrays import ArrayLike
from attnmath.figures.drawing import (
    axes_or_new,
    labelled,
    legend,
    line_styles,
    number,
    numbers,
    words,
)
from attnmath.figures.lettering import legible


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
    return legible(ax)


def _plane_points(value: ArrayLike, name: str) -> np.ndarray:
    points = numbers(value, name, ndim=2)
    if points.shape[1] != 2:
        raise ValueError(f"{name}: expected points of shape (N, 2), got shape {points.shape}")
    return points
