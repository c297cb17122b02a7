"""Figures of the article on sparsity: clouds under a bound, and errors and times of methods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from attnmath.figures.drawing import axes_or_new, line_styles


def clouds_over_diagonal(
    clouds: Mapping[str, tuple[ArrayLike, ArrayLike]], *, xlabel: str = "", ylabel: str = "",
    special: Mapping[str, tuple[float, float]] | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw clouds of points (x, y) beside the grey diagonal y = x.

    special : at most two single points that get a large marker and a label of their own.
    """
    ax = axes_or_new(ax)
    arrays = {label: tuple(np.ravel(np.asarray(v, dtype=float)) for v in pair) for label, pair in clouds.items()}
    for label, (x, y) in arrays.items():
        if x.shape != y.shape or not (np.all(np.isfinite(x)) and np.all(np.isfinite(y))):
            raise ValueError(f"clouds[{label!r}]: expected as many finite x as y, got {x.size} and {y.size}")
    everything = np.concatenate([values for pair in arrays.values() for values in pair])
    ends = [everything.min(), everything.max()]
    ax.plot(ends, ends, color="0.7", linewidth=3, zorder=1)
    for (label, (x, y)), style in zip(arrays.items(), line_styles(), strict=False):
        ax.plot(x, y, marker=style["marker"], linestyle="none", markersize=3.5, alpha=0.5, label=label)
    for (label, (at_x, at_y)), marker in zip((special or {}).items(), "*X", strict=False):
        ax.plot([at_x], [at_y], marker=marker, linestyle="none", markersize=11, color="0.1", label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel, aspect="equal")
    ax.legend()
    return ax


def errors_by_method(
    x: ArrayLike, errors: Mapping[str, ArrayLike], *, xlabel: str = "", ax: Axes | None = None
) -> Axes:
    """Draw relative errors as points on a logarithmic axis, between the rounding of a double and 1.

    x : shape (N,).  errors : label to N values. What is smaller than the rounding is drawn at the rounding; what
    is no number, or off by more than 1, is drawn at 1.
    """
    ax = axes_or_new(ax)
    rounding = float(np.finfo(float).eps)
    for (label, values), style in zip(errors.items(), line_styles(), strict=False):
        y = np.asarray(values, dtype=float)
        if y.shape != np.shape(x):
            raise ValueError(f"errors[{label!r}]: expected {np.size(x)} values, got {y.size}")
        y = np.clip(np.where(np.isfinite(y), y, 1.0), rounding, 1.0)
        ax.plot(x, y, label=label, linestyle="none", marker=style["marker"])
    ax.set(xlabel=xlabel, ylabel="relative error", yscale="log")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return ax


def times_by_method(times: Mapping[str, float], *, xlabel: str = "microseconds", ax: Axes | None = None) -> Axes:
    """Draw times as points on a logarithmic axis, one line for each method."""
    ax = axes_or_new(ax)
    values = np.asarray(list(times.values()), dtype=float)
    if values.size == 0 or not np.all(values > 0):
        raise ValueError(f"times: expected positive numbers, got {dict(times)}")
    places = np.arange(values.size)[::-1]
    ax.hlines(places, values.min() / 3, values, color="0.8", linewidth=2)
    ax.plot(values, places, "o", color="C0")
    ax.set(xlabel=xlabel, xscale="log", xlim=(values.min() / 3, values.max() * 3))
    ax.set_yticks(places, list(times))
    ax.grid(visible=False, axis="y")
    return ax
