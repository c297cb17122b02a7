"""Checks on arguments: an error names the argument, what was given and what was expected."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

#: An array of any library that follows the array API: numpy, torch, ...
Array: TypeAlias = Any


def describe(value: Any) -> str:
    """Say what an array is: its shape and dtype."""
    return f"shape {tuple(value.shape)}, dtype {value.dtype}"


def real_array(value: Any, name: str, *, ndim: int | None = None, at_least: int = 0) -> Array:
    """Return `value` as a real floating array, leaving the library and the dtype as they are.

    Lists and Python numbers become float64 numpy arrays, and integer arrays the default
    floating dtype of their library. Booleans, complex numbers, NaN and +inf are refused
    (-inf is a masked logit; a caller that cannot use one refuses it with `finite`).
    """
    try:
        array = value if is_array_api_obj(value) else np.asarray(value)
        xp = array_namespace(array)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: expected an array of real numbers, got {type(value).__name__} ({error})") from None
    if xp.isdtype(array.dtype, "integral"):
        array = xp.astype(array, xp.__array_namespace_info__().default_dtypes()["real floating"])
    if not _is_floating(xp, array.dtype):
        raise TypeError(f"{name}: expected real numbers, got {describe(array)}")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name}: expected {ndim} dimensions, got {describe(array)}")
    if array.ndim < at_least:
        raise ValueError(f"{name}: expected at least {at_least} dimensions, got {describe(array)}")
    if 0 in array.shape:
        raise ValueError(f"{name}: expected no empty axis, got {describe(array)}")
    if bool(xp.any(xp.isnan(array))):
        raise ValueError(f"{name}: expected no NaN, got {int(xp.sum(xp.astype(xp.isnan(array), xp.int64)))} of them")
    if bool(xp.any(array == math.inf)):
        raise ValueError(f"{name}: expected no +inf, got {describe(array)} that holds one")
    return array


def finite(array: Array, name: str) -> Array:
    """Return `array`, refusing infinite entries."""
    xp = array_namespace(array)
    if not bool(xp.all(xp.isfinite(array))):
        raise ValueError(f"{name}: expected finite numbers, got {describe(array)} with an infinite entry")
    return array


def positive(value: float, name: str) -> float:
    """Return `value` as a float, refusing anything but a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name}: expected a positive number, got {type(value).__name__} {value!r}")
    if not (0 < value < math.inf):
        raise ValueError(f"{name}: expected a positive finite number, got {value}")
    return float(value)


def positive_integer(value: int, name: str) -> int:
    """Return `value` as an int, refusing anything but an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: expected a positive integer, got {type(value).__name__} {value!r}")
    if value < 1:
        raise ValueError(f"{name}: expected a positive integer, got {value}")
    return int(value)


def same_dtype(**arrays: Array) -> None:
    """Refuse arrays of different libraries or dtypes, rather than promote one in silence."""
    kinds = {name: (type(a).__module__.split(".")[0], str(a.dtype)) for name, a in arrays.items()}
    if len(set(kinds.values())) > 1:
        got = ", ".join(f"{name}: {library} {dtype}" for name, (library, dtype) in kinds.items())
        raise TypeError(f"expected one array library and one dtype, got {got}")


def _is_floating(xp: Any, dtype: Any) -> bool:
    # The standard's predicate does not know every library's half precision.
    return bool(xp.isdtype(dtype, "real floating")) or str(dtype).removeprefix("torch.") in {"float16", "bfloat16"}
