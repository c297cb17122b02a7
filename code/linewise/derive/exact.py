"""What a caller gives becomes an expression of sympy here, and nowhere else: text would be evaluated as a program."""

from __future__ import annotations

from numbers import Number
from typing import Any

import sympy as sp


def exact(value: Any, argument: str = "value") -> Any:
    """Return a number, an expression or a matrix as sympy has it; text and containers of whatever else are refused.

    >>> exact(3), exact(sp.Symbol("x") + 1)
    (3, x + 1)
    >>> exact(["x"], "line")
    Traceback (most recent call last):
    TypeError: line: expected a number or an expression of sympy, got list ['x']
    """
    if not isinstance(value, Number | sp.Basic | sp.MatrixBase):
        raise TypeError(
            f"{argument}: expected a number or an expression of sympy, got {type(value).__name__} {value!r}"
        )
    return sp.sympify(value)
