"""What the figure functions share: an Axes to draw on, line styles that survive grey print."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the caller's Axes, or those of a new figure."""
    if ax is None:
        return plt.figure().add_subplot()
    if not isinstance(ax, Axes):
        raise TypeError(f"ax: expected a matplotlib Axes or None, got {type(ax).__name__}")
    return ax


def line_styles() -> Iterator[dict[str, Any]]:
    """Endless markers and dashes, so that curves differ by more than their colour."""
    return cycle(
        {"marker": marker, "linestyle": dash}
        for marker, dash in [("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", "-"), ("P", "--")]
    )
