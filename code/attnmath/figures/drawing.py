"""What the figure functions share: checks of their arguments, an Axes to draw on, line styles that survive grey print.

A drawing function checks all of its arguments first and draws then, so that an error leaves the Axes as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from array_api_compat import is_torch_array
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.mathtext import MathTextParser
from numpy.typing import NDArray

from attnmath.checks import floats
from attnmath.estimate import Estimate
from attnmath.figures.lettering import boxed

#: Larger moduli, and positive numbers below the reciprocal, overflow where matplotlib adds its margins.
LARGEST = 1e100
#: The scales that an axis can have.
SCALES = ("linear", "log")
_TYPESETTER: MathTextParser[Any] = MathTextParser("path")


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the caller's Axes, or those of a new figure."""
    if ax is None:
        return plt.figure().add_subplot()
    return existing_axes(ax, "ax", "a matplotlib Axes or None")


def existing_axes(ax: Any, name: str, expected: str = "a matplotlib Axes") -> Axes:
    """Return Axes that can be drawn on; `TypeError` for anything else, `ValueError` for Axes without a figure."""
    if not isinstance(ax, Axes):
        raise TypeError(f"{name}: expected {expected}, got {type(ax).__name__}")
    if ax.figure is None:
        raise ValueError(f"{name}: expected {expected}, got Axes that were removed from their figure")
    return ax


def numbers(
    value: Any, name: str, *, ndim: int | None = 1, size: int | None = None, positive: bool = False, gaps: bool = False
) -> NDArray[Any]:
    """Return real numbers that can be drawn, as a float64 array; every drawing function converts its data here.

    value : an array of any library, lists or a number.  ndim : of the array, any if None.
    size : entries along the first axis, any if None.  positive : for a logarithmic axis.
    gaps : NaN and infinities are allowed and returned as NaN, which interrupts a line.

    Raises `TypeError` for what is no array of real numbers; `ValueError` for another shape, an empty axis, NaN,
    infinities, and moduli beyond `LARGEST`.
    """
    given = _without_gradient(value)
    found = floats(_without_gaps(given) if gaps else given, name, ndim=ndim)
    if size is not None and len(found) != size:
        raise ValueError(f"{name}: expected {size} values, got {len(found)}")
    if np.any(np.abs(found) > LARGEST):
        raise ValueError(f"{name}: expected numbers of at most {LARGEST:g} in modulus, got {np.abs(found).max():g}")
    if gaps and not np.any(np.isfinite(np.asarray(given, dtype=float))):
        raise ValueError(f"{name}: expected at least one finite number, got none")
    if gaps:
        found = np.where(np.isfinite(np.asarray(given, dtype=float)), found, np.nan)
    least = float(np.nanmin(found))
    if positive and least <= 0:
        raise ValueError(f"{name}: expected positive numbers, got {least:g}")
    if positive and least < 1 / LARGEST:
        raise ValueError(f"{name}: expected numbers of at least {1 / LARGEST:g}, got {least:g}")
    return found


def number(value: Any, name: str, *, positive: bool = False) -> float:
    """Return one finite number as a float."""
    return float(numbers(value, name, ndim=0, positive=positive))


def complex_numbers(value: Any, name: str) -> NDArray[Any]:
    """Return finite complex numbers of any shape in one row."""
    given = _without_gradient(value)
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: expected an array of numbers, got {type(value).__name__} ({error})") from None
    for part in (array.real, array.imag) if array.dtype.kind == "c" else (given,):
        numbers(part, name, ndim=None)
    return np.ravel(np.asarray(array, dtype=complex))


def truths(value: Any, name: str) -> NDArray[Any]:
    """Return a matrix of truth values."""
    try:
        array = np.asarray(_without_gradient(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: expected a boolean matrix, got {type(value).__name__} ({error})") from None
    if array.ndim != 2 or array.size == 0 or array.dtype != bool:
        raise ValueError(f"{name}: expected a boolean matrix, got shape {array.shape}, dtype {array.dtype}")
    return array


def estimated(value: Any, name: str, size: int, *, positive: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the values of an `Estimate` of so many numbers, and the bars of two standard errors."""
    if not isinstance(value, Estimate):
        raise TypeError(f"{name}: expected an Estimate, got {type(value).__name__}")
    values = numbers(value.value, name, size=size, positive=positive)
    errors = numbers(value.standard_error, name, ndim=None)
    if errors.shape not in {(), values.shape}:
        raise ValueError(f"{name}: expected a standard error for each of {size} values, got shape {errors.shape}")
    return values, 2 * errors


def labelled(value: Any, name: str, *, optional: bool = False) -> list[tuple[str, Any, str]]:
    """Return the label, the item, and the item's name in an error, for each item of a mapping.

    optional : the mapping may be empty or None.
    """
    if value is None and optional:
        return []
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: expected a mapping from labels, got {type(value).__name__}")
    if not value and not optional:
        raise ValueError(f"{name}: expected at least one label, got an empty mapping")
    return [(words(label, f"{name}: label"), item, f"{name}[{label!r}]") for label, item in value.items()]


def words(value: Any, name: str) -> str:
    """Return text that can be typeset, with or without mathematics between dollar signs."""
    value = _text(value, name)
    if is_math_text(value):
        try:
            _TYPESETTER.parse(boxed(value))  # what its fonts lack is no fault of the mathematics
        except ValueError:
            raise ValueError(f"{name}: expected mathematics that matplotlib can typeset, got {value!r}") from None
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected text, got {type(value).__name__} {value!r}")
    return value


def token_labels(value: Any, name: str, size: int) -> Sequence[str] | None:
    """Return so many labels, or None; they are data, so that any text will do, and none is mathematics."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise TypeError(f"{name}: expected {size} labels, got {type(value).__name__} {value!r}")
    if len(value) != size:
        raise ValueError(f"{name}: expected {size} labels, got {len(value)}")
    return [_text(label, f"{name}[{place}]") for place, label in enumerate(value)]


def pair(value: Any, name: str, expected: str) -> tuple[Any, Any]:
    """Return two things; `expected` names them in an error."""
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str) or len(value) != 2:
        raise TypeError(f"{name}: expected two things, {expected}, got {type(value).__name__} {value!r}")
    return value[0], value[1]


def dodged(x: NDArray[Any], dodge: Any, count: int) -> list[NDArray[Any]]:
    """Return x for each of several series, set apart by a factor between 1/10 and 10."""
    factor = number(dodge, "dodge")
    if not 0.1 <= factor <= 10:
        raise ValueError(f"dodge: expected a factor between 0.1 and 10, got {factor:g}")
    return [x * factor ** (k - (count - 1) / 2) for k in range(count)]


def intervals(rows: Any, name: str, *, positive: bool = False) -> NDArray[Any]:
    """Return rows of x, value, low, high, with the value within its interval; positive: every x."""
    table = numbers(rows, name, ndim=2)
    if table.shape[1] != 4:
        raise ValueError(f"{name}: expected rows (x, value, low, high), got shape {table.shape}")
    numbers(table[:, 0], name, positive=positive)
    _, middle, low, high = table.T
    if np.any(low > middle) or np.any(high < middle):
        raise ValueError(f"{name}: expected values within their intervals, got {table.tolist()}")
    return table


def draw_intervals(ax: Axes, tables: Iterable[tuple[str, NDArray[Any]]], *, connected: bool) -> None:
    """Draw for each label its rows of x, value, low, high: markers with bars, joined by lines or not."""
    for (label, table), style in zip(tables, line_styles(), strict=False):
        x, middle, low, high = table.T
        line = style if connected else style | {"linestyle": "none"}
        ax.errorbar(x, middle, [middle - low, high - middle], label=label, capsize=2, markersize=5, elinewidth=1,
                    alpha=0.85, **line)  # fmt: skip


def only_ticks(ax: Axes, marks: NDArray[Any] | None) -> None:
    """Let the horizontal axis have these marks alone; None leaves it as it is."""
    if marks is not None:
        ax.set_xticks(marks, [f"{tick:g}" for tick in marks])
        ax.set_xticks([], minor=True)


def line_styles() -> Iterator[dict[str, Any]]:
    """Endless markers and dashes, so that curves differ by more than their colour."""
    return cycle(
        {"marker": marker, "linestyle": dash}
        for marker, dash in [("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", "-"), ("P", "--")]
    )


def legend(ax: Axes, **placed: Any) -> None:
    """Draw a legend where there is a label to show: one that begins with an underscore stays out."""
    if ax.get_legend_handles_labels()[1]:
        ax.legend(**placed)


def _without_gradient(value: Any) -> Any:
    """Return a tensor of torch without its gradient, in a format that numpy knows; anything else as it is."""
    if not is_torch_array(value):
        return value
    plain = value.detach().cpu()
    return plain.double() if plain.is_floating_point() else plain


def _without_gaps(value: Any) -> Any:
    """Return data with ones instead of NaN and infinities; what is no plain floating array is returned as it is."""
    if isinstance(value, np.ma.MaskedArray | np.matrix):
        return value
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return value
    return np.where(np.isfinite(array), array, 1.0) if array.dtype.kind == "f" else value
