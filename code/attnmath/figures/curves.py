"""Curves: estimates with their error bars, and curves over a common grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from attnmath.estimate import Estimate
from attnmath.figures.drawing import axes_or_new, line_styles


def estimates_against(
    d_k: Sequence[float],
    estimates: Mapping[str, Estimate],
    *,
    predictions: Mapping[str, ArrayLike] | None = None,
    ylabel: str = "",
    yscale: str = "log",
    dodge: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw estimates against d_k with bars of two standard errors, over thin predicted lines.

    estimates : label to `Estimate`, each with one value for each d_k.
    predictions : label to values at each d_k; with them the estimates are points, without, curves.
        A label that begins with an underscore stays out of the legend.
    dodge : factor that sets neighbouring curves apart on the d_k axis.
    """
    ax = axes_or_new(ax)
    for label, values in (predictions or {}).items():
        ax.plot(d_k, np.asarray(values), color="0.35", linewidth=1, label=label, zorder=1)
    for k, ((label, estimate), style) in enumerate(zip(estimates.items(), line_styles(), strict=False)):
        if np.shape(estimate.value) != np.shape(d_k):
            raise ValueError(f"estimates[{label!r}]: expected {len(d_k)} values, got {np.shape(estimate.value)}")
        style = style if predictions is None else style | {"linestyle": "none"}
        x = np.asarray(d_k, dtype=float) * dodge ** (k - (len(estimates) - 1) / 2)
        ax.errorbar(x, estimate.value, 2 * np.asarray(estimate.standard_error), label=label, capsize=2, **style)
    ax.set(xlabel="$d_k$", ylabel=ylabel, yscale=yscale)
    ax.set_xscale("log", base=2)
    ax.legend()
    return ax


def curves(
    x: ArrayLike, curves: Mapping[str, ArrayLike], *, reference: Mapping[str, ArrayLike] | None = None,
    xlabel: str = "$x$", ylabel: str = "", xscale: str = "linear", yscale: str = "linear",
    legend_at: tuple[float, float] = (1.0, 1.0), ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw curves over a common grid; a reference is a thick grey line beneath them.

    legend_at : where the legend's upper right corner stands, in fractions of the Axes.
    """
    ax = axes_or_new(ax)
    for label, values in (reference or {}).items():
        ax.plot(x, np.asarray(values), color="0.75", linewidth=5, label=label, zorder=1)
    for (label, values), style in zip(curves.items(), line_styles(), strict=False):
        ax.plot(x, np.asarray(values), label=label, linestyle=style["linestyle"])
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale=xscale, yscale=yscale)
    ax.legend(loc="upper right", bbox_to_anchor=legend_at)
    return ax
