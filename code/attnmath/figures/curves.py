"""Curves: estimates with their error bars, and curves over a common grid."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Real
from matplotlib.axes import Axes

from attnmath.arrays import ArrayLike
from attnmath.checks import one_of
from attnmath.estimate import Estimate
from attnmath.figures.drawing import (
    SCALES,
    axes_or_new,
    dodged,
    estimated,
    labelled,
    legend,
    line_styles,
    number,
    numbers,
    pair,
    words,
)


def estimates_against(
    d_k: Real[ArrayLike, "N"],
    estimates: Mapping[str, Estimate],
    *,
    predictions: Mapping[str, Real[ArrayLike, "N"]] | None = None,
    ylabel: str = "",
    yscale: str = "log",
    dodge: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw estimates against d_k with bars of two standard errors, over thin predicted lines.

    d_k : positive.  estimates : label to `Estimate`, each with one value for each d_k.
    predictions : by label; with them the estimates are points, without, curves.
        A label that begins with an underscore stays out of the legend.
    yscale : "log" or "linear".  dodge : factor that sets neighbouring curves apart on the d_k axis.
    """
    x = numbers(d_k, "d_k", positive=True)
    ax = draw_estimates(x, estimates, predictions, ylabel, yscale, dodge, ax)
    ax.set(xlabel="$d_k$")
    ax.set_xscale("log", base=2)
    legend(ax)
    return ax


def draw_estimates(
    x: Real[ArrayLike, "N"], estimates: Mapping[str, Estimate], predictions: Mapping[str, Real[ArrayLike, "N"]] | None,
    ylabel: str, yscale: str, dodge: float, ax: Axes | None,
) -> Axes:  # fmt: skip
    """Check and draw estimates over predicted lines, for the functions that then give the axis of x its scale."""
    x, log = numbers(x, "x"), one_of(yscale, SCALES, "yscale") == "log"
    lines = [(label, numbers(values, name, size=x.size, positive=log))
             for label, values, name in labelled(predictions, "predictions", optional=True)]  # fmt: skip
    points = [(label, *estimated(value, name, x.size, positive=log))
              for label, value, name in labelled(estimates, "estimates")]  # fmt: skip
    places = dodged(x, dodge, len(points))
    words(ylabel, "ylabel")
    ax = axes_or_new(ax)
    for label, values in lines:
        ax.plot(x, values, color="0.35", linewidth=1, label=label, zorder=1)
    for at, (label, values, bars), style in zip(places, points, line_styles(), strict=False):
        style = style if predictions is None else style | {"linestyle": "none"}
        ax.errorbar(at, values, bars, label=label, capsize=2, **style)
    ax.set(ylabel=ylabel, yscale=yscale)
    return ax


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
        ax.plot(x, values, color="0.75", linewidth=5, label=label, zorder=1)
    for (label, values), style in zip(drawn, line_styles(), strict=False):
        ax.plot(x, values, label=label, linestyle=style["linestyle"])
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale=xscale, yscale=yscale)
    legend(ax, loc="upper right", bbox_to_anchor=corner)
    return ax
