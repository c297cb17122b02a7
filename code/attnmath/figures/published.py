"""Published figures: panels side by side, drawn with their default data and written reproducibly.

Each panel is a drawing function and a function that computes its default arguments with a
fixed seed. Drawing knows no mathematics and computing knows no Axes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STYLE = "attnmath.figures.book"
FORMATS = ("png", "svg")
_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


@dataclass(frozen=True)
class Panel:
    """A drawing function, and a function from nothing to its keyword arguments."""

    draw: Callable[..., Axes]
    arguments: Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class PublishedFigure:
    """A figure of the book: panels side by side, and its size in inches."""

    panels: tuple[Panel, ...]
    size: tuple[float, float] = (6.4, 4.0)

    def draw(self) -> Figure:
        """Draw the figure in the book's style; the caller closes it."""
        with plt.style.context(STYLE):
            figure, axes = plt.subplots(1, len(self.panels), figsize=self.size, squeeze=False)
            for panel, ax in zip(self.panels, axes[0], strict=True):
                panel.draw(**panel.arguments(), ax=ax)
        return figure


def encode(figure: Figure, format: str) -> bytes:
    """Encode a figure so that equal figures give equal bytes: no date, no version, fixed ids."""
    if format not in FORMATS:
        raise ValueError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")
    buffer = io.BytesIO()
    with plt.style.context(STYLE):
        figure.savefig(buffer, format=format, metadata=_METADATA[format])
    return buffer.getvalue()


def publish(
    name: str, published: PublishedFigure, folder: str | Path, formats: tuple[str, ...] = FORMATS
) -> list[Path]:
    """Draw a published figure and write it to ``folder/name.format``; return the paths.

    A file is replaced only once its whole content is encoded, and left alone when equal.
    """
    figure = published.draw()
    try:
        contents = {Path(folder) / f"{name}.{format}": encode(figure, format) for format in formats}
    finally:
        plt.close(figure)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
    return list(contents)
