"""Checks on what several experiments take: widths, and numbers of draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnmath.checks import positive_integer


def several(value: Any, name: str) -> int:
    """Return a number of independent draws: at least 2, since one has no standard error."""
    count = positive_integer(value, name)
    if count < 2:
        raise ValueError(f"{name}: expected at least 2, got {count}")
    return count


def widths_of(widths: Any, name: str = "widths") -> list[int]:
    """Return positive integers, at least one."""
    if isinstance(widths, str) or not isinstance(widths, Sequence | np.ndarray):
        raise TypeError(f"{name}: expected a list of positive integers, got {type(widths).__name__} {widths!r}")
    if len(widths) == 0:
        raise ValueError(f"{name}: expected at least one, got none")
    return [positive_integer(width, name) for width in widths]
