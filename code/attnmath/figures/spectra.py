"""Figures of the spectrum: dots by layer, eigenvalues in the unit disc, decays with predictions, bands of quantiles."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Num, Real
from matplotlib.axes import Axes

from attnmath.arrays import ArrayLike
from attnmath.figures.drawing import (
    axes_or_new,
    complex_numbers,
    labelled,
    legend,
    line_styles,
    number,
    numbers,
    pair,
    words,
)
from attnmath.figures.lettering import legible

#: Layers that have a label each; of more every fifth has one, or every tenth.
LABELLED = 12


def dots_by_layer(
    values: Real[ArrayLike, "layers heads"],
    *,
    bounds: Real[ArrayLike, "_"] = (),
    intervals: tuple[Real[ArrayLike, "layers heads"], Real[ArrayLike, "layers heads"]] | None = None,
    ylabel: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw one dot for each head above its layer, with horizontal lines at known bounds.

    intervals : lower and upper bounds of each head's value; drawn as bars.
    """
    dots = numbers(values, "values", ndim=2)
    levels = () if isinstance(bounds, tuple | list) and not bounds else numbers(bounds, "bounds")
    bars = None if intervals is None else [
        numbers(bound, "intervals", ndim=2) for bound in pair(intervals, "intervals", "lower and upper bounds")
    ]  # fmt: skip
    if bars is not None and not all(bar.shape == dots.shape for bar in bars):
        raise ValueError(f"intervals: expected shape {dots.shape} each, got {bars[0].shape} and {bars[1].shape}")
    words(ylabel, "ylabel")
    ax = axes_or_new(ax)
    for level in levels:
        ax.axhline(level, color="0.55", linewidth=1.5)
    x = np.arange(1, len(dots) + 1)[:, None] + np.linspace(-0.25, 0.25, dots.shape[1])
    if bars is not None:
        low, high = bars
        ax.vlines(x.ravel(), low.ravel(), high.ravel(), color="0.55", linewidth=2, zorder=1)
    for across, row in zip(x, dots, strict=True):
        ax.plot(across, row, "o", color="C0", alpha=0.8)
    step = 1 if len(dots) <= LABELLED else math.ceil(len(dots) / LABELLED / 5) * 5
    ax.set(xlabel=r"$\ell$", ylabel=ylabel, xticks=range(step, len(dots) + 1, step))
    return legible(ax)


def unit_disc(
    values: Num[ArrayLike, "..."],
    *,
    reference: Num[ArrayLike, "..."] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw complex numbers in the unit disc; reference values are small crosses."""
    points = complex_numbers(values, "values")
    crosses = None if reference is None else complex_numbers(reference, "reference")
    words(title, "title")
    ax = axes_or_new(ax)
    angle = np.linspace(0, 2 * np.pi, 361)
    ax.plot(np.cos(angle), np.sin(angle), color="0.55", linewidth=1.5)
    if crosses is not None:
        ax.plot(crosses.real, crosses.imag, "x", color="C1", markersize=5)
    ax.plot(points.real, points.imag, "o", color="C0", markersize=3, alpha=0.45, markeredgewidth=0)
    ax.set(xlabel=r"$\mathrm{Re}\,\lambda$", ylabel=r"$\mathrm{Im}\,\lambda$", aspect="equal", title=title)
    ticks = (-1, -0.5, 0, 0.5, 1)
    ax.set(xticks=ticks, yticks=ticks)
    return legible(ax)


def decays_beside_predictions(
    decays: Mapping[str, Real[ArrayLike, "_"]], rates: Mapping[str, float], *, ylabel: str = "", ax: Axes | None = None
) -> Axes:
    """Draw sequences that fall with k = 1, 2, ... over grey lines rate^k, on a logarithmic axis.

    decays : label to numbers of at least 0.  rates : the same labels to numbers from 0 to 1.
    """
    sequences = [(label, _at_least_0(numbers(v, name), name)) for label, v, name in labelled(decays, "decays")]
    predicted = {label: number(rate, name) for label, rate, name in labelled(rates, "rates")}
    if predicted.keys() != dict(sequences).keys():
        raise ValueError(f"rates: expected the labels {[s for s, _ in sequences]} of decays, got {list(predicted)}")
    for label, rate in predicted.items():
        if not 0 <= rate <= 1:
            raise ValueError(f"rates[{label!r}]: expected a number from 0 to 1, got {rate:g}")
    words(ylabel, "ylabel")
    ax = axes_or_new(ax)
    for (label, values), style in zip(sequences, line_styles(), strict=False):
        k = np.arange(1, len(values) + 1)
        ax.plot(k, predicted[label] ** k, color="0.55", linewidth=3, zorder=1)
        ax.plot(k, values, label=label, linestyle=style["linestyle"])
    ax.set(xlabel="$k$", ylabel=ylabel, yscale="log", ylim=(1e-13, 2))
    legend(ax, loc="lower right")
    return legible(ax)


def quantile_bands(
    bands: Mapping[str, Real[ArrayLike, "3 _"]], *, mark: float | None = None, xlabel: str = "", ylabel: str = "",
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw falling sequences as a median within a band, on a logarithmic axis.

    bands : label to lower quantile, median and upper quantile, positive.
    mark : an index to mark with a dotted line.
    """
    drawn = [(label, _band(values, name)) for label, values, name in labelled(bands, "bands")]
    place = None if mark is None else number(mark, "mark")
    words(xlabel, "xlabel")
    words(ylabel, "ylabel")
    ax = axes_or_new(ax)
    for label, (low, middle, high) in drawn:
        index = np.arange(1, len(middle) + 1)
        (line,) = ax.plot(index, middle, label=label)
        ax.fill_between(index, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    if place is not None:
        ax.axvline(place, color="0.3", linestyle=":", linewidth=1.2)
    ax.set(xlabel=xlabel, ylabel=ylabel, yscale="log")
    legend(ax)
    return legible(ax)


def _at_least_0(values: np.ndarray, name: str) -> np.ndarray:
    if np.any(values < 0):
        raise ValueError(f"{name}: expected numbers of at least 0, got {values.min():g}")
    return values


def _band(values: ArrayLike, name: str) -> np.ndarray:
    band = numbers(values, name, ndim=2, size=3, positive=True)
    if np.any(np.diff(band, axis=0) < 0):
        raise ValueError(f"{name}: expected lower quantile <= median <= upper quantile, got another order")
    return band
