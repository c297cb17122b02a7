"""Figures of the spectrum: dots by layer, eigenvalues in the unit disc, decays beside predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from attnmath.figures.drawing import axes_or_new, line_styles


def dots_by_layer(values: ArrayLike, *, bounds: Sequence[float] = (), ylabel: str = "", ax: Axes | None = None) -> Axes:
    """Draw one dot for each head above its layer, with horizontal lines at known bounds.

    values : shape (layers, heads).
    """
    ax = axes_or_new(ax)
    dots = np.asarray(values, dtype=float)
    if dots.ndim != 2 or not np.all(np.isfinite(dots)):
        raise ValueError(f"values: expected finite numbers of shape (layers, heads), got shape {dots.shape}")
    for bound in bounds:
        ax.axhline(bound, color="0.6", linewidth=1.5)
    spread = np.linspace(-0.25, 0.25, dots.shape[1])
    for layer, row in enumerate(dots, start=1):
        ax.plot(layer + spread, row, "o", color="C0", alpha=0.8)
    ax.set(xlabel=r"$\ell$", ylabel=ylabel, xticks=range(1, len(dots) + 1))
    return ax


def unit_disc(values: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw complex numbers in the unit disc."""
    ax = axes_or_new(ax)
    points = np.ravel(np.asarray(values, dtype=complex))
    angle = np.linspace(0, 2 * np.pi, 361)
    ax.plot(np.cos(angle), np.sin(angle), color="0.6", linewidth=1.5)
    ax.plot(points.real, points.imag, "o", color="C0", markersize=3, alpha=0.4)
    ax.set(xlabel=r"$\mathrm{Re}\,\lambda$", ylabel=r"$\mathrm{Im}\,\lambda$", aspect="equal")
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
