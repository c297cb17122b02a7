"""Figures of the spectrum: dots by layer, eigenvalues in the unit disc, decays and rates beside predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from attnmath.figures.drawing import axes_or_new, line_styles


def dots_by_layer(
    values: ArrayLike,
    *,
    bounds: Sequence[float] = (),
    intervals: tuple[ArrayLike, ArrayLike] | None = None,
    ylabel: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw one dot for each head above its layer, with horizontal lines at known bounds.

    values : shape (layers, heads).
    intervals : lower and upper bounds of each head's value, of the same shape; drawn as bars.
    """
    ax = axes_or_new(ax)
    dots = _by_layer(values, "values")
    for bound in bounds:
        ax.axhline(bound, color="0.6", linewidth=1.5)
    x = np.arange(1, len(dots) + 1)[:, None] + np.linspace(-0.25, 0.25, dots.shape[1])
    if intervals is not None:
        low, high = (_by_layer(bound, "intervals") for bound in intervals)
        if low.shape != dots.shape or high.shape != dots.shape:
            raise ValueError(f"intervals: expected shape {dots.shape} each, got {low.shape} and {high.shape}")
        ax.vlines(x.ravel(), low.ravel(), high.ravel(), color="0.75", linewidth=2, zorder=1)
    for across, row in zip(x, dots, strict=True):
        ax.plot(across, row, "o", color="C0", alpha=0.8)
    ax.set(xlabel=r"$\ell$", ylabel=ylabel, xticks=range(1, len(dots) + 1))
    return ax


def unit_disc(
    values: ArrayLike, *, reference: ArrayLike | None = None, title: str = "", ax: Axes | None = None
) -> Axes:
    """Draw complex numbers in the unit disc; reference values are small crosses."""
    ax = axes_or_new(ax)
    angle = np.linspace(0, 2 * np.pi, 361)
    ax.plot(np.cos(angle), np.sin(angle), color="0.6", linewidth=1.5)
    if reference is not None:
        crosses = np.ravel(np.asarray(reference, dtype=complex))
        ax.plot(crosses.real, crosses.imag, "x", color="C1", markersize=5)
    points = np.ravel(np.asarray(values, dtype=complex))
    if not np.all(np.isfinite(points)):
        raise ValueError("values: expected finite numbers")
    ax.plot(points.real, points.imag, "o", color="C0", markersize=3, alpha=0.45, markeredgewidth=0)
    ax.set(xlabel=r"$\mathrm{Re}\,\lambda$", ylabel=r"$\mathrm{Im}\,\lambda$", aspect="equal", title=title)
    ticks = (-1, -0.5, 0, 0.5, 1)
    ax.set(xticks=ticks, yticks=ticks)
    return ax


def decays_beside_predictions(
    decays: Mapping[str, ArrayLike], rates: Mapping[str, float], *, ylabel: str = "", ax: Axes | None = None
) -> Axes:
    """Draw sequences that fall with k = 1, 2, ... over grey lines rate^k, on a logarithmic axis."""
    ax = axes_or_new(ax)
    for (label, values), style in zip(decays.items(), line_styles(), strict=False):
        k = np.arange(1, len(np.asarray(values)) + 1)
        ax.plot(k, float(rates[label]) ** k, color="0.7", linewidth=3, zorder=1)
        ax.plot(k, np.asarray(values), label=label, linestyle=style["linestyle"])
    ax.set(xlabel="$k$", ylabel=ylabel, yscale="log", ylim=(1e-13, 2))
    ax.legend(loc="lower right")
    return ax


def rates_on_the_diagonal(
    predicted: ArrayLike, measured: ArrayLike, *, xlabel: str = "", ylabel: str = "", ax: Axes | None = None
) -> Axes:
    """Draw positive measured rates against predicted ones on logarithmic axes, over the diagonal."""
    ax = axes_or_new(ax)
    x, y = (np.ravel(np.asarray(values, dtype=float)) for values in (predicted, measured))
    if x.shape != y.shape or not (np.all(x > 0) and np.all(y > 0)):
        raise ValueError(f"predicted, measured: expected as many positive rates of each, got {len(x)} and {len(y)}")
    ends = [min(x.min(), y.min()), max(x.max(), y.max())]
    ax.plot(ends, ends, color="0.7", linewidth=3, zorder=1)
    ax.plot(x, y, "o", color="C0", alpha=0.6)
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale="log", yscale="log", aspect="equal")
    return ax


def quantile_bands(
    bands: Mapping[str, ArrayLike], *, mark: float | None = None, xlabel: str = "", ylabel: str = "",
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw falling sequences as a median within a band, on a logarithmic axis.

    bands : label to lower quantile, median and upper quantile, shape (3, n).
    mark : an index to mark with a dotted line.
    """
    ax = axes_or_new(ax)
    for label, values in bands.items():
        low, middle, high = np.asarray(values, dtype=float)
        index = np.arange(1, len(middle) + 1)
        (line,) = ax.plot(index, middle, label=label)
        ax.fill_between(index, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    if mark is not None:
        ax.axvline(mark, color="0.3", linestyle=":", linewidth=1.2)
    ax.set(xlabel=xlabel, ylabel=ylabel, yscale="log")
    ax.legend()
    return ax


def _by_layer(values: ArrayLike, name: str) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 2 or not np.all(np.isfinite(array)):
        raise ValueError(f"{name}: expected finite numbers of shape (layers, heads), got shape {array.shape}")
    return array
