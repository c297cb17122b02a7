"""Figures of the article on sparsity: clouds under a bound, and errors and times of methods."""

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
    pair,
    words,
)
from attnmath.figures.lettering import legible, named


def clouds_over_diagonal(
    clouds: Mapping[str, tuple[Real[ArrayLike, "..."], Real[ArrayLike, "..."]]], *, xlabel: str = "", ylabel: str = "",
    special: Mapping[str, tuple[float, float]] | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw clouds of points (x, y) beside the grey diagonal y = x.

    clouds : label to x and y, of one size.
    special : at most two single points that get a large marker and a label of their own.
    """
    arrays = [(label, *_cloud(points, name)) for label, points, name in labelled(clouds, "clouds")]
    singles = [
        (label, tuple(number(v, name) for v in pair(point, name, "x and y")))
        for label, point, name in labelled(special, "special", optional=True)
    ]
    if len(singles) > 2:
        raise ValueError(f"special: expected at most 2 points, got {len(singles)}")
    words(xlabel, "xlabel")
    words(ylabel, "ylabel")
    ax = axes_or_new(ax)
    everything = np.concatenate([values for _, x, y in arrays for values in (x, y)])
    ends = [everything.min(), everything.max()]
    ax.plot(ends, ends, color="0.55", linewidth=3, zorder=1)
    for (label, x, y), style in zip(arrays, line_styles(), strict=False):
        ax.plot(x, y, marker=style["marker"], linestyle="none", markersize=3.5, alpha=0.5, label=label)
    for (label, (at_x, at_y)), marker in zip(singles, "*X", strict=False):
        ax.plot([at_x], [at_y], marker=marker, linestyle="none", markersize=11, color="0.1", label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel, aspect="equal")
    legend(ax)
    return legible(ax)


def errors_by_method(
    x: Real[ArrayLike, "N"], errors: Mapping[str, Real[ArrayLike, "N"]], *, xlabel: str = "", ax: Axes | None = None
) -> Axes:
    """Draw relative errors as open points on a logarithmic axis, between the rounding of a double and 1.

    errors : by label. What is smaller than the rounding is drawn at the rounding; what
    is no number, or off by more than 1, is drawn at 1.
    """
    x = numbers(x, "x")
    given = [
        (label, numbers(values, name, size=x.size, gaps=True)) for label, values, name in labelled(errors, "errors")
    ]
    words(xlabel, "xlabel")
    ax = axes_or_new(ax)
    rounding = float(np.finfo(float).eps)
    for place, ((label, values), style) in enumerate(zip(given, line_styles(), strict=False)):
        y = np.clip(np.where(np.isfinite(values), values, 1.0), rounding, 1.0)
        marks = {"marker": style["marker"], "fillstyle": "none", "zorder": 3 - place / len(given)}  # the first on top
        ax.plot(x, y, label=label, linestyle="none", **marks)
    ax.set(xlabel=xlabel, ylabel="relative error", yscale="log")
    legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return legible(ax)


def times_by_method(times: Mapping[str, float], *, xlabel: str = "microseconds", ax: Axes | None = None) -> Axes:
    """Draw times as points on a logarithmic axis, one line for each method.

    times : label to a positive number.
    """
    given = [(label, number(value, name, positive=True)) for label, value, name in labelled(times, "times")]
    words(xlabel, "xlabel")
    labels, lettering = named([label for label, _ in given])
    ax = axes_or_new(ax)
    values = np.asarray([value for _, value in given])
    places = np.arange(values.size)[::-1]
    ax.hlines(places, values.min() / 3, values, color="0.55", linewidth=2)
    ax.plot(values, places, "o", color="C0")
    ax.set(xlabel=xlabel, xscale="log", xlim=(values.min() / 3, values.max() * 3))
    ax.set_yticks(places, labels, **lettering)
    ax.grid(visible=False, axis="y")
    return legible(ax)


def _cloud(points: tuple[ArrayLike, ArrayLike], name: str) -> tuple[np.ndarray, np.ndarray]:
    x, y = (np.ravel(numbers(values, name, ndim=None)) for values in pair(points, name, "x and y"))
    if x.size != y.size:
        raise ValueError(f"{name}: expected as many x as y, got {x.size} and {y.size}")
    return x, y
