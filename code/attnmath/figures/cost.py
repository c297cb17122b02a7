"""Costs against the length of the sequence, with the lengths at which one part overtakes another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from attnmath.figures.curves import curves


def curves_with_crossings(
    x: ArrayLike, parts: Mapping[str, ArrayLike], crossings: Mapping[str, tuple[float, float]],
    *, to_the_left: Collection[str] = (), level: float | None = None, ax: Axes | None = None, **options: Any,
) -> Axes:  # fmt: skip
    """Draw curves over a common grid, and an open circle with a label where two of them meet.

    crossings : label to the point (x, y). The label stands below and to the right of its circle,
        above and to the left for those in `to_the_left`.
    level : a thin horizontal line at this height.  options : as in `attnmath.figures.curves`.
    """
    ax = curves(x, parts, ax=ax, **options)
    if level is not None:
        ax.axhline(level, color="0.6", linewidth=1, zorder=1)
    for label, point in crossings.items():
        ax.plot(*point, marker="o", markersize=8, markerfacecolor="white", markeredgecolor="0.15", linestyle="none")
        left = label in to_the_left
        where: dict[str, Any] = (
            {"xytext": (-9, 4), "va": "bottom", "ha": "right"}
            if left
            else {"xytext": (9, -4), "va": "top", "ha": "left"}
        )
        ax.annotate(label, point, textcoords="offset points", **where)
    return ax
