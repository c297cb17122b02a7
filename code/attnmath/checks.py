"""Checks on arguments: an error names the argument, what was given and what was expected.

Every array that a caller gives passes through `real_array` (any library, the dtype kept), `floats`
(numpy, float64), `integers` or `booleans`, so that one rule says what an array is.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_torch_array
from numpy.typing import NDArray

from attnmath.arrays import AnyArray

#: Floating-point numbers in an array of numpy.
Floats: TypeAlias = NDArray[Any]
#: What a function takes and gives back.
Named = TypeVar("Named")

#: Largest integer below which every integer is a float64.
LARGEST_INTEGER = 2**53
#: Most numbers that one result may hold: 2 GiB in float64.
MOST_NUMBERS = 2**28


def describe(value: Any) -> str:
    """Say what an array is: its shape and dtype."""
    return f"shape {tuple(value.shape)}, dtype {value.dtype}"


def real_array(value: Any, name: str, *, ndim: int | None = None, at_least: int = 0) -> AnyArray:
    """Return `value` as a real floating array, leaving the library and the dtype as they are.

    Lists and Python numbers become float64 numpy arrays, and integer arrays the default
    floating dtype of their library. Booleans, complex numbers, other precisions, masked arrays,
    `numpy.matrix`, NaN and +inf raise an error (-inf is a masked logit; `finite` excludes it too).
    """
    array = _plain_array(value, name, "an array of real numbers")
    xp = array_namespace(array)
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if xp.isdtype(array.dtype, "integral"):
        array = xp.astype(array, xp.__array_namespace_info__().default_dtypes()["real floating"])
    if not _is_floating(xp, array.dtype):
        raise TypeError(f"{name}: expected real numbers, got {describe(array)}")
    if not 2 <= array.dtype.itemsize <= 8:
        raise TypeError(f"{name}: expected half, single or double precision, got {describe(array)}")
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


def floats(value: Any, name: str, *, ndim: int | None = None, at_least: int = 0) -> Floats:
    """Return `value` as a finite float64 numpy array, whatever its library and precision.

    A tensor that requires grad raises an error: numpy would drop its history in silence.

    >>> floats([1, 2], "x")
    array([1., 2.])
    """
    array = finite(real_array(value, name, ndim=ndim, at_least=at_least), name)
    if is_torch_array(array):
        if array.requires_grad:
            raise TypeError(f"{name}: expected numbers without a gradient, got a tensor that requires grad (detach it)")
        array = array.double().cpu().numpy()  # numpy knows no bfloat16
    return np.asarray(array, dtype=float)


def integers(value: Any, name: str, *, like: AnyArray | None = None) -> AnyArray:
    """Return `value` as a one-dimensional array of integers, in the library and on the device of `like`."""
    array = _plain_array(value, name, "a one-dimensional array of integers", like=like)
    xp = array_namespace(array)
    if array.ndim != 1 or 0 in array.shape or not xp.isdtype(array.dtype, "integral"):
        raise TypeError(f"{name}: expected a non-empty sequence of integers, got {describe(array)}")
    if array.dtype.itemsize == 8 and bool(xp.any(array > LARGEST_INTEGER)):
        raise ValueError(f"{name}: expected integers of at most {LARGEST_INTEGER}, got a larger one")
    return xp.astype(array, xp.int64)  # differences of small types wrap around


def booleans(value: Any, name: str, *, like: AnyArray | None = None) -> AnyArray:
    """Return `value` as an array of booleans, in the library and on the device of `like`."""
    array = _plain_array(value, name, "booleans", like=like)
    if not array_namespace(array).isdtype(array.dtype, "bool"):
        raise TypeError(f"{name}: expected booleans (True: may attend), got {describe(array)}")
    return array


def finite(array: AnyArray, name: str) -> AnyArray:
    """Return `array`, or raise an error if it has an infinite entry."""
    xp = array_namespace(array)
    if not bool(xp.all(xp.isfinite(array))):
        raise ValueError(f"{name}: expected finite numbers, got {describe(array)} with an infinite entry")
    return array


def in_range(result: AnyArray, names: str) -> AnyArray:
    """Return a result, or raise an error that names the arguments if it is too large for its dtype.

    >>> in_range(np.asarray([np.inf]), "Q, K")
    Traceback (most recent call last):
    ValueError: Q, K: expected a result within the range of float64, got an overflow
    """
    xp = array_namespace(result)
    if not bool(xp.all(xp.isfinite(result))):
        raise ValueError(f"{names}: expected a result within the range of {result.dtype}, got an overflow")
    return result


def silent() -> Any:
    """Context in which numpy does not warn of overflow: for results that `in_range` judges, and for exp(-inf) = 0."""
    return np.errstate(over="ignore", under="ignore", invalid="ignore")


@contextmanager
def about(names: str) -> Iterator[None]:
    """Context in which an error of a function called on the way also names the caller's own arguments."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:  # torch's errors of linear algebra are RuntimeErrors
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{names}: {error}") from None


def probabilities(p: AnyArray, name: str) -> AnyArray:
    """Return `p` as distributions along the last axis, to the rounding of its dtype."""
    p = finite(real_array(p, name, at_least=1), name)
    xp = array_namespace(p)
    off = scalar(xp.max(xp.abs(xp.sum(p, axis=-1) - 1)))
    allowed = min(rounding_of_sums(p), 0.5)  # in half precision the rounding of many terms may be more than 1
    if bool(xp.any(p < 0)) or off > allowed:
        raise ValueError(f"{name}: expected probabilities that sum to 1 along the last axis, off by {off:.3g}")
    return p


def rounding_of_sums(p: AnyArray) -> float:
    """How far the sum of n rounded quotients along the last axis may be off from 1.

    A sum of n rounded terms is off by at most about n ulp; the factor 4 covers the division before it.
    """
    return 4 * (p.shape[-1] + 1) * float(array_namespace(p).finfo(p.dtype).eps)


def scalar(value: AnyArray) -> float:
    """Return an array of one number as a float, without its gradient."""
    return float(value.detach() if is_torch_array(value) else value)


def positive(value: float, name: str, *, at_most: float = math.inf) -> float:
    """Return `value` as a float, or raise an error unless it is a positive finite number."""
    value = number(value, name, "a positive number")
    if not (0 < value < math.inf):
        raise ValueError(f"{name}: expected a positive finite number, got {value}")
    if value > at_most:
        raise ValueError(f"{name}: expected a positive finite number of at most {at_most:g}, got {value}")
    return value


def number(value: Any, name: str, expected: str = "a number") -> float:
    """Return a Python or numpy number as a float (inf if too large for one); NaN is left to the caller."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__} {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def positive_integer(value: int, name: str, *, at_most: int = LARGEST_INTEGER) -> int:
    """Return `value` as an int, or raise an error unless it is an integer from 1 to `at_most`."""
    return _integer(value, name, "a positive integer", 1, at_most)


def non_negative_integer(value: int, name: str, *, at_most: int = LARGEST_INTEGER) -> int:
    """Return `value` as an int, or raise an error unless it is an integer from 0 to `at_most`."""
    return _integer(value, name, "an integer of at least 0", 0, at_most)


def size_or_symbol(value: Any, name: str) -> Any:
    """Return a size as an int of Python, which cannot overflow, a sympy expression as it is, or an array in float64.

    Curves are drawn over sizes in between as well, so arrays need not hold integers.
    """
    if isinstance(value, np.ndarray) and value.ndim:
        sizes = floats(value, name)
        if np.any(sizes < 1) or np.any(sizes > 1e75):  # the fourth power stays in range
            raise ValueError(f"{name}: expected sizes from 1 to 1e75, got {sizes.min():g} to {sizes.max():g}")
        return sizes
    if hasattr(value, "free_symbols") and not getattr(value, "is_number", True):
        return value
    if getattr(value, "is_Integer", False):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: expected an integer or a sympy expression, got {type(value).__name__} {value!r}")
    if value < 1:
        raise ValueError(f"{name}: expected a positive integer, got {value}")
    return int(value)


def sizes_or_symbols(**values: Any) -> list[Any]:
    """Return several sizes, as `size_or_symbol` does; arrays among them must broadcast."""
    sizes = {name: size_or_symbol(value, name) for name, value in values.items()}
    broadcast(**{name: size for name, size in sizes.items() if isinstance(size, np.ndarray)})
    return list(sizes.values())


def fits_memory(names: str, *sizes: int) -> None:
    """Raise an error, naming the arguments, if an array of these sizes would hold more than `MOST_NUMBERS`."""
    if math.prod(sizes) > MOST_NUMBERS:
        got = " x ".join(str(size) for size in sizes)
        raise ValueError(f"{names}: expected a result of at most {MOST_NUMBERS} numbers, got {got}")


def flag(value: bool, name: str) -> bool:
    """Return `value` as a bool, or raise an error unless it is True or False (or 1 or 0)."""
    if not isinstance(value, int | np.integer | np.bool_) or value not in (0, 1):
        raise TypeError(f"{name}: expected True or False, got {type(value).__name__} {value!r}")
    return bool(value)


def one_of(value: str, options: Collection[str], name: str) -> str:
    """Return `value`, or raise an error unless it is one of the names in `options`."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name}: expected one of {', '.join(options)}, got {value!r}")
    return value


def instance(value: Any, kind: type[Named], name: str) -> Named:
    """Return `value`, or raise an error unless it is of the class `kind`."""
    if not isinstance(value, kind):
        library = kind.__module__.split(".")[0]
        article = "an" if library[0] in "aeiou" else "a"
        raise TypeError(f"{name}: expected {article} {library} {kind.__name__}, got {type(value).__name__}")
    return value


def path_to(value: str | Path, name: str) -> Path:
    """Return `value` as a path, or raise an error unless it names one."""
    if not isinstance(value, str | os.PathLike) or "\0" in str(value):
        raise TypeError(f"{name}: expected a path, got {type(value).__name__} {value!r}")
    return Path(value)


def generator(rng: np.random.Generator, name: str = "rng") -> np.random.Generator:
    """Return `rng`, or raise an error unless it is a numpy Generator."""
    return instance(rng, np.random.Generator, name)


def function(value: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return `value`, or raise an error unless it can be called."""
    if not callable(value):
        raise TypeError(f"{name}: expected a function, got {type(value).__name__}")
    return value


def axis_of(array: AnyArray, axis: int, name: str) -> int:
    """Return `axis` as an int, or raise an error unless it is an axis of the array called `name`."""
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise TypeError(f"axis: expected an integer, got {type(axis).__name__} {axis!r}")
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"axis: expected an axis of {name} ({describe(array)}), got {axis}")
    return int(axis)


def same_dtype(**arrays: AnyArray) -> None:
    """Raise an error for arrays of different libraries or dtypes, rather than promote one in silence."""
    kinds = {name: (type(a).__module__.split(".")[0], str(a.dtype)) for name, a in arrays.items()}
    if len(set(kinds.values())) > 1:
        got = ", ".join(f"{name}: {library} {dtype}" for name, (library, dtype) in kinds.items())
        raise TypeError(f"{', '.join(kinds)}: expected one array library and one dtype, got {got}")


def same_batches(**arrays: AnyArray) -> None:
    """Raise an error unless the axes in front of the last two broadcast."""
    try:
        np.broadcast_shapes(*(tuple(a.shape[:-2]) for a in arrays.values()))
    except ValueError:
        got = ", ".join(f"{name} {tuple(a.shape)}" for name, a in arrays.items())
        raise ValueError(f"{', '.join(arrays)}: expected batch axes that broadcast, got {got}") from None


def broadcast(**arrays: Floats) -> list[Floats]:
    """Return the arrays in their common shape, or raise an error that names them."""
    try:
        return list(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        got = ", ".join(f"{name} {a.shape}" for name, a in arrays.items())
        raise ValueError(f"{', '.join(arrays)}: expected shapes that broadcast, got {got}") from None


def exponent(x: Floats, axis: int | tuple[int, ...] | None = None) -> NDArray[Any]:
    """Binary exponent of the largest modulus (along an axis, kept with size 1); 0 for zeros.

    Scaled by this power of two, as `unit_scaled` does, squares neither overflow nor underflow, and nothing is rounded.

    >>> exponent(np.asarray([3.0, -0.25])).tolist()
    [2]
    """
    top = np.max(np.abs(x), axis=axis, keepdims=axis is not None)
    return np.atleast_1d(np.frexp(top)[1])


def unit_scaled(x: Floats, axis: int | tuple[int, ...] | None = None) -> Floats:
    """Return x times the power of two that brings its largest modulus (along an axis) between 1/2 and 1."""
    scaled: Floats = np.ldexp(x, -exponent(x, axis))
    return scaled


def _plain_array(value: Any, name: str, expected: str, *, like: AnyArray | None = None) -> AnyArray:
    """Return `value` as an array of the library of `like` (numpy, or its own, unless given)."""
    if isinstance(value, np.ma.MaskedArray | np.matrix):
        raise TypeError(f"{name}: expected {expected}, got a {type(value).__name__} (pass a plain array)")
    if is_torch_array(value) and (value.is_nested or value.is_meta or str(value.layout) != "torch.strided"):
        kind = "a nested" if value.is_nested else "a meta" if value.is_meta else f"a {value.layout}"
        raise TypeError(f"{name}: expected {expected}, got {kind} tensor (pass a dense one)")
    try:
        if like is not None:
            return array_namespace(like).asarray(value, device=device(like))
        array = value if is_array_api_obj(value) else np.asarray(value)
        array_namespace(array)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__} ({error})") from None
    return array


def _integer(value: Any, name: str, expected: str, low: int, at_most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__} {value!r}")
    if value < low:
        raise ValueError(f"{name}: expected {expected}, got {value}")
    if value > at_most:
        raise ValueError(f"{name}: expected {expected}, at most {at_most}, got {value}")
    return int(value)


def _is_floating(xp: Any, dtype: Any) -> bool:
    # The standard's predicate does not know every library's half precision.
    return bool(xp.isdtype(dtype, "real floating")) or str(dtype).removeprefix("torch.") in {"float16", "bfloat16"}
