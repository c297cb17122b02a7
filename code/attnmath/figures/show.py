"""Show a figure in a notebook as the book keeps it: as SVG, with the same bytes on every run, and as PNG on demand."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from attnmath.checks import path_to

STYLE = "attnmath.figures.book"
FORMATS = ("png", "svg")
_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


@dataclass(frozen=True, repr=False)
class Picture:
    """A drawn figure; a notebook shows and stores its SVG, and `save` writes its PNG as well.

    svg : the text of the SVG.
    summary : what stands for the picture where there are only words.
    figure : what was drawn.
    """

    svg: str
    summary: str
    figure: Figure = field(compare=False)

    @cached_property
    def png(self) -> bytes:
        """The bytes of the PNG, drawn when they are first asked for: a notebook never needs them."""
        return encode(self.figure, "png")

    def __repr__(self) -> str:
        return self.summary

    def save(self, stem: str | Path) -> Picture:
        """Write the picture to ``stem.png`` and ``stem.svg``, and return it.

        `ValueError` where there is no folder to write into.
        """
        stem = path_to(stem, "stem")
        if not stem.parent.is_dir() or stem.is_dir() or not stem.name:
            expected = "the name of a file, without its ending, in a folder that exists"
            raise ValueError(f"stem: expected {expected}, got {str(stem)!r}")
        Path(f"{stem}.png").write_bytes(self.png)
        Path(f"{stem}.svg").write_bytes(self.svg.encode("utf-8"))
        return self

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the SVG and the summary by media type, as Jupyter asks for them.

        A PNG beside the SVG would be most of what a notebook weighs, and no page shows it.
        """
        return {"image/svg+xml": self.svg, "text/plain": self.summary}


def show(figure: Figure) -> Picture:
    """Encode a figure as SVG, close it, and return what a notebook displays.

    It ends the cell that draws a figure. Equal figures give equal bytes.
    `TypeError` for anything but a `matplotlib.figure.Figure`.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 4))
    >>> picture = show(figure)
    >>> picture
    <figure: 2 panels, 9.2 x 4 in>
    >>> list(picture._repr_mimebundle_())
    ['image/svg+xml', 'text/plain']
    >>> plt.fignum_exists(figure.number)
    False
    >>> show(left)
    Traceback (most recent call last):
    TypeError: figure: expected a matplotlib Figure, got Axes; an Axes has it as its attribute `figure`
    """
    _expect_figure(figure)
    try:
        svg = encode(figure, "svg").decode("utf-8")
    finally:
        plt.close(figure)
    return Picture(svg, _summary(figure), figure)


def encode(figure: Figure, format: str) -> bytes:
    """Encode a figure so that equal figures give equal bytes: no date, no version, fixed ids.

    The first encoding lays the figure out, for the PNG's resolution; later ones, in either format, keep that layout.
    `ValueError` for a format other than "png" and "svg", `TypeError` for anything but a `matplotlib.figure.Figure`.
    """
    _expect_figure(figure)
    if format not in FORMATS:
        raise ValueError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")
    buffer = io.BytesIO()
    with plt.style.context([STYLE, {"figure.constrained_layout.use": False}]):  # or savefig would lay it out again
        _lay_out(figure)
        figure.savefig(buffer, format=format, metadata=_METADATA[format])
    return buffer.getvalue()


def _lay_out(figure: Figure) -> None:
    """Place the axes once and take the layout engine away, which makes every `savefig` draw the figure twice."""
    engine = figure.get_layout_engine()
    if engine is not None:
        figure.dpi = plt.rcParams["savefig.dpi"]
        engine.execute(figure)
        figure.set_layout_engine(None)


def _expect_figure(figure: Figure) -> None:
    if not isinstance(figure, Figure):
        hint = "; an Axes has it as its attribute `figure`" if hasattr(figure, "figure") else ""
        raise TypeError(f"figure: expected a matplotlib Figure, got {type(figure).__name__}{hint}")


def _summary(figure: Figure) -> str:
    panels = sum(ax.get_label() != "<colorbar>" for ax in figure.axes)
    width, height = figure.get_size_inches()
    return f"<figure: {panels} panel{'' if panels == 1 else 's'}, {width:g} x {height:g} in>"
