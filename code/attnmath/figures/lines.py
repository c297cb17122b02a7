"""Lines and points: measurements on their predictions, and ordered families of curves.

Each function takes data, draws on the Axes it is given, and writes words on the axes. A family
that is ordered (by width, by length, by a parameter) has ordered colours, from dark to light; the
last of them is still dark enough for white paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from attnmath.checks import finite, real_array
from attnmath.estimate import Estimate
from attnmath.figures.drawing import axes_or_new, line_styles

Scale = Literal["linear", "log", "widths"]


def ordered_colours(count: int) -> list[Any]:
    """Colours for an ordered family, dark to light.

    >>> len(ordered_colours(3))
    3
    """
    return [mpl.colormaps["viridis"](position) for position in np.linspace(0.0, 0.82, count)]


def against_prediction(
    x: ArrayLike,
    measured: Mapping[str, Estimate],
    predicted: Mapping[str, ArrayLike | Callable[[Any], Any]] | None = None,
    *,
    xlabel: str,
    ylabel: str,
    xscale: Scale = "widths",
    yscale: Scale = "linear",
    dodge: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw measurements as points with bars of two standard errors, over thin lines of what was predicted.

    x : shape (N,).  measured : label to an `Estimate` of N values.  predicted : label to N values, or to a function
    of x, which is drawn on a fine grid; a label that begins with an underscore stays out of the legend.
    xscale : "widths" is logarithmic to base 2 with a tick at each x, written out.
    dodge : factor that sets neighbouring series apart along x.
    """
    ax, x = axes_or_new(ax), _numbers(x, "x")
    for label, values in (predicted or {}).items():
        grid = np.geomspace(x.min(), x.max(), 200) if callable(values) else x
        line = _numbers(values(grid) if callable(values) else values, f"predicted[{label!r}]", grid.size)
        ax.plot(grid, line, color="0.35", linewidth=1, label=label, zorder=1)
    for k, ((label, estimate), style) in enumerate(zip(measured.items(), line_styles(), strict=False)):
        if not isinstance(estimate, Estimate):
            raise TypeError(f"measured[{label!r}]: expected an Estimate, got {type(estimate).__name__}")
        y = _numbers(estimate.value, f"measured[{label!r}]", x.size)
        at = x * dodge ** (k - (len(measured) - 1) / 2)
        alone = {"linestyle": "none"} if predicted else {}
        ax.errorbar(at, y, 2 * np.asarray(estimate.standard_error), label=label, capsize=2, **style | alone)
    _axes(ax, xlabel, ylabel, xscale, yscale, x)
    ax.legend()
    return ax


def family(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    xlabel: str,
    ylabel: str,
    reference: Mapping[str, ArrayLike] | None = None,
    xscale: Scale = "linear",
    yscale: Scale = "linear",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw an ordered family of curves over one grid, in ordered colours, on grey dashed references.

    x : shape (N,).  curves, reference : label to N values.  title : what the labels of the legend are values of.
    """
    ax, x = axes_or_new(ax), _numbers(x, "x")
    for (label, values), dash in zip((reference or {}).items(), ("--", ":", "-."), strict=False):
        y = _numbers(values, f"reference[{label!r}]", x.size)
        ax.plot(x, y, color="0.45", linewidth=1.2, linestyle=dash, label=label, zorder=1)
    colours = ordered_colours(len(curves))
    for (label, values), colour, style in zip(curves.items(), colours, line_styles(), strict=False):
        y = _numbers(values, f"curves[{label!r}]", x.size)
        ax.plot(x, y, color=colour, linestyle=style["linestyle"], label=label)
    _axes(ax, xlabel, ylabel, xscale, yscale, x)
    ax.legend(title=title or None)
    return ax


def letter_panels(*panels: Axes) -> None:
    """Write a, b, c ... above the left corner of each panel.

    >>> import matplotlib.pyplot as plt
    >>> _, panels = plt.subplots(2)
    >>> letter_panels(*panels)
    >>> panels[1].get_title(loc="left")
    'b'
    """
    for letter, ax in zip("abcdefgh", panels, strict=False):
        axes_or_new(ax).set_title(letter, loc="left", fontweight="bold")


def _numbers(values: ArrayLike, argument: str, size: int | None = None) -> NDArray[Any]:
    array = np.asarray(finite(real_array(values, argument, ndim=1), argument), dtype=float)
    if size is not None and array.size != size:
        raise ValueError(f"{argument}: expected {size} values, got {array.size}")
    return array


def _axes(ax: Axes, xlabel: str, ylabel: str, xscale: Scale, yscale: Scale, x: NDArray[Any]) -> None:
    ax.set(xlabel=xlabel, ylabel=ylabel)
    for axis, scale, name in ((ax.xaxis, xscale, "xscale"), (ax.yaxis, yscale, "yscale")):
        setter = ax.set_xscale if axis is ax.xaxis else ax.set_yscale
        if scale == "widths":
            setter("log", base=2)
            axis.set_major_locator(FixedLocator(list(np.unique(x))))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(_plain))
        elif scale in {"linear", "log"}:
            setter(scale)
        else:
            raise ValueError(f"{name}: expected 'linear', 'log' or 'widths', got {scale!r}")


def _plain(value: float, position: int | None = None) -> str:
    return f"{value:g}"


def falling(
    x: ArrayLike,
    values: Mapping[str, ArrayLike],
    rates: Mapping[str, ArrayLike],
    *,
    xlabel: str,
    ylabel: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw exact positive numbers as points on logarithmic axes, on thin lines of known rate.

    x : shape (N,).  values, rates : label to N positive numbers.
    """
    ax, x = axes_or_new(ax), _numbers(x, "x")
    for (label, line), dash in zip(rates.items(), ("--", ":", "-."), strict=False):
        y = _numbers(line, f"rates[{label!r}]", x.size)
        ax.plot(x, y, color="0.35", linewidth=1, linestyle=dash, label=label, zorder=1)
    for (label, points), style in zip(values.items(), line_styles(), strict=False):
        y = _numbers(points, f"values[{label!r}]", x.size)
        ax.plot(x, y, marker=style["marker"], linestyle="none", label=label)
    _axes(ax, xlabel, ylabel, "widths", "log", x)
    ax.legend()
    return ax
