"""Curves over a common grid, over a reference."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Real
from matplotlib.axes import Axes

from attnmath.arrays import ArrayLike
from attnmath.checks import one_of
from attnmath.figures.drawing import (
    SCALES,
    axes_or_new,
    labelled,
    legend,
    line_styles,
    number,
    numbers,
    pair,
    words,
)
from attnmath.figures.lettering import legible


def curves(
    x: Real[ArrayLike, "N"], curves: Mapping[str, Real[ArrayLike, "N"]], *,
    reference: Mapping[str, Real[ArrayLike, "N"]] | None = None,
    xlabel: str = "$x$", ylabel: str = "", xscale: str = "linear", yscale: str = "linear",
    legend_at: tuple[float, float] = (1.0, 1.0), ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw curves over a common grid; a reference is a thick grey line beneath them.

    curves, reference : by label; NaN interrupts a line.
    xscale, yscale : "linear" or "log".
    legend_at : where the legend's upper right corner is, in fractions of the Axes.
    """
    x = numbers(x, "x", positive=one_of(xscale, SCALES, "xscale") == "log")
    log = one_of(yscale, SCALES, "yscale") == "log"
    behind = [(label, numbers(values, name, size=x.size, positive=log, gaps=True))
              for label, values, name in labelled(reference, "reference", optional=True)]  # fmt: skip
    drawn = [(label, numbers(values, name, size=x.size, positive=log, gaps=True))
             for label, values, name in labelled(curves, "curves")]  # fmt: skip
    words(xlabel, "xlabel")
    words(ylabel, "ylabel")
    corner = tuple(number(place, "legend_at") for place in pair(legend_at, "legend_at", "across and up"))
    ax = axes_or_new(ax)
    for label, values in behind:
        ax.plot(x, values, color="0.55", linewidth=5, label=label, zorder=1)
    for (label, values), style in zip(drawn, line_styles(), strict=False):
        ax.plot(x, values, label=label, linestyle=style["linestyle"])
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale=xscale, yscale=yscale)
    legend(ax, loc="upper right", bbox_to_anchor=corner)
    return legible(ax)
