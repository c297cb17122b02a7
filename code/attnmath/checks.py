"""Checks on arguments: an error names the argument, what was given and what was expected.

Every array that a caller gives passes through `real_array` (any library, the dtype kept), `floats`
(numpy, float64), `integers` or `booleans`, so that one rule says what an array is.

Half precision is a format for what goes in and comes out: `wide` takes it to single precision, in which sums are kept,
and `rounded` takes the result back. A tolerance comes from `precision`, that of what the caller gave.

Every public function allocates at most `MULTIPLE` times the bytes that it takes and gives, counted in double precision,
and `WORKING_SPACE`; the weights of n queries and m keys count as a result, and tables of a chunk, a block or a width,
which the caller chooses, come on top. It works under `np.errstate(all="raise")`, `torch.autocast`,
`torch.inference_mode` and `torch.compile` (which fuses nothing: checks read numbers, so that `fullgraph=True` is not
supported), in threads, in spawned processes and under `python -OO`.
`torch.func.vmap` is not supported, and the error says so.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import wraps
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_torch_array
from numpy.typing import NDArray

from attnmath.arrays import AnyArray

#: Floating-point numbers in an array of numpy.
Floats: TypeAlias = NDArray[Any]
#: What a function takes and gives back.
Named = TypeVar("Named")
#: A function, whose types a decorator keeps, those that depend on its arguments as well.
Function = TypeVar("Function", bound=Callable[..., Any])

#: What stands in a table, and where.
Key = TypeVar("Key")
Value = TypeVar("Value")


class Fixed(Mapping[Key, Value]):
    """A table that nobody changes, and that can be copied and pickled, as types.MappingProxyType cannot.

    >>> dict(Fixed({"a": 1}))
    {'a': 1}
    """

    def __init__(self, items: Mapping[Key, Value]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: Key) -> Value:
        return self._items[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"Fixed({self._items})"


#: Largest integer below which every integer is a float64.
LARGEST_INTEGER = 2**53
#: Most numbers that one result may hold: 2 GiB in float64.
MOST_NUMBERS = 2**28
#: Most bytes that a function allocates for each byte of arguments and results, and beside them (for quadratures).
MULTIPLE, WORKING_SPACE = 12, 2**27


def describe(value: Any) -> str:
    """Say what an array is: its shape and dtype."""
    return f"shape {tuple(value.shape)}, dtype {value.dtype}"


def real_array(value: Any, name: str, *, ndim: int | None = None, at_least: int = 0) -> AnyArray:
    """Return `value` as a real floating array, leaving the library and the dtype as they are.

    Lists and Python numbers become float64 numpy arrays, and integer arrays the default
    floating dtype of their library. Booleans, complex numbers, other precisions, masked arrays,
    `numpy.matrix`, NaN and +inf raise an error (-inf is a masked logit; `finite` excludes it too).
    So do integers that the floating dtype does not hold exactly, and tensors within `torch.func.vmap`.
    """
    array = _plain_array(value, name, "an array of real numbers")
    xp = array_namespace(array)
    if xp.isdtype(array.dtype, "integral"):
        array = _as_floating(array, name)
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
    if _some(xp.isnan(array), name):
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
    array = _plain_array(value, name, "an array of real numbers")
    if is_torch_array(array) and array_namespace(array).isdtype(array.dtype, "integral"):
        array = as_numpy(array)  # float64 holds more of them than torch's default
    array = finite(real_array(array, name, ndim=ndim, at_least=at_least), name)
    if is_torch_array(array):
        if array.requires_grad:
            raise TypeError(f"{name}: expected numbers without a gradient, got a tensor that requires grad (detach it)")
        array = as_numpy(array.double())  # numpy knows no bfloat16
    return np.asarray(array, dtype=float)


def as_numpy(array: AnyArray) -> Floats:
    """Return an array, or a tensor without its gradient, as one of numpy."""
    if is_torch_array(array):
        array = array.detach().resolve_neg().cpu().numpy()
    return np.asarray(array)


def precision(*values: Any) -> float:
    """Machine epsilon of the coarsest dtype that the caller gave: so far, relatively, the numbers are rounded already.

    Integers are exact, and count as float64 like the numbers of Python. What is no array is left to `floats` to refuse.

    >>> precision(np.ones(2, np.float32), [1.0]) == 2.0**-23
    True
    """
    found = [float(np.finfo(float).eps)]
    for value in values:
        with suppress(TypeError, ValueError):
            array = _plain_array(value, "values", "arrays")
            xp = array_namespace(array)
            found += [float(xp.finfo(array.dtype).eps)] if _is_floating(xp, array.dtype) else []
    return max(found)


def wide(*arrays: AnyArray) -> list[AnyArray]:
    """Return arrays in at least single precision: in half precision a sum stops growing after a few hundred terms."""
    return [array_namespace(a).astype(a, array_namespace(a).float32) if a.dtype.itemsize < 4 else a for a in arrays]


def rounded(result: AnyArray, dtype: Any, names: str | None = None) -> AnyArray:
    """Return a result in the dtype of the arguments; with their names an overflow there is an error."""
    if result.dtype != dtype:
        with silent():
            result = array_namespace(result).astype(result, dtype)
    return result if names is None else in_range(result, names)


def as_given(array: AnyArray) -> Any:
    """Context in which arrays keep their dtype: `torch.autocast` would change it, or refuse one that is not its own."""
    if is_torch_array(array) and (torch := sys.modules["torch"]).is_autocast_enabled(array.device.type):
        return torch.autocast(array.device.type, enabled=False)
    return nullcontext()


def matmul(a: AnyArray, b: AnyArray) -> AnyArray:
    """Product of matrices in the dtype of its factors, under `torch.autocast` as well."""
    with as_given(a):
        return array_namespace(a, b).matmul(a, b)


def concat(arrays: Iterable[AnyArray], axis: int = 0) -> AnyArray:
    """Join arrays of one dtype along an axis, under `torch.autocast` as well."""
    arrays = list(arrays)
    with as_given(arrays[0]):
        return array_namespace(*arrays).concat(arrays, axis=axis)


def stack(arrays: Iterable[AnyArray], axis: int = 0) -> AnyArray:
    """Stack arrays of one dtype along a new axis, under `torch.autocast` as well."""
    arrays = list(arrays)
    with as_given(arrays[0]):
        return array_namespace(*arrays).stack(arrays, axis=axis)


def total(x: AnyArray, axis: int | tuple[int, ...], *, keepdims: bool = False) -> AnyArray:
    """Sum along axes. Numpy adds one number after the other unless they are neighbours: float32 needs a wider sum.

    >>> float(total(np.full((100_000, 2), 0.1, np.float32), axis=0)[0])
    10000.0
    """
    in_turn = isinstance(x, np.ndarray) and not (isinstance(axis, int) and x.strides[axis] == x.itemsize)
    if in_turn and x.dtype.itemsize < 8:
        return np.sum(x, axis=axis, dtype=float, keepdims=keepdims).astype(x.dtype)
    return array_namespace(x).sum(x, axis=axis, keepdims=keepdims)


def untraced(function: Function) -> Function:
    """Let `torch.compile` run a function of numpy as it is: traced, its numbers would be those of torch, in float32."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if "torch._dynamo" in sys.modules:  # not whether it traces now: it may give up here, and begin again inside
            return sys.modules["torch"].compiler.disable(function)(*args, **kwargs)
        return function(*args, **kwargs)

    return cast(Function, run)


def scaled_product(a: AnyArray, b: AnyArray, scale: float, *, late: bool = False) -> AnyArray:
    """Return scale a b^T, infinite only where that is out of range, whatever the scale and the factors alone are.

    late : whether the scale multiplies the product, rather than its first factor.
    """
    xp = array_namespace(a, b)
    limits = xp.finfo(a.dtype)
    tiny, most = float(limits.smallest_normal), float(limits.max)
    rows = [xp.max(xp.abs(constant(x)), axis=-1, keepdims=True) for x in (a, b)]
    sizes = [xp.where(x > 0, x, xp.ones_like(x)) for x in rows]
    ends = [(scalar(xp.min(x)), scalar(xp.max(x))) for x in sizes]
    low, high = min(scale, scale * ends[0][0]), max(scale, scale * ends[0][1])
    if late:
        low, high = min(low, scale * ends[0][0] * ends[1][0]), max(high, ends[0][1] * ends[1][1] * a.shape[-1])
    if tiny / float(limits.eps) <= low and high <= most:
        b = xp.matrix_transpose(b)
        return scale * matmul(a, b) if late else matmul(a * scale, b)
    mantissa, power = math.frexp(scale)
    of_a, of_b = (binary_exponents(x) for x in rows)
    product = matmul(power_of_two(a, -of_a) * mantissa, xp.matrix_transpose(power_of_two(b, -of_b)))
    return power_of_two(product, of_a + xp.matrix_transpose(of_b) + power)


def constant(array: AnyArray) -> AnyArray:
    """Return an array without its gradient: a shift, say, that has no part in the result."""
    return array.detach() if is_torch_array(array) else array


def derivable(array: AnyArray) -> AnyArray:
    """Return a tensor whose gradient is 0 where it comes out as NaN: at eigenvalues that coincide there is none."""
    if is_torch_array(array) and array.requires_grad:
        array = array.view_as(array)  # the hook is not the caller's
        array.register_hook(lambda gradient: None if gradient is None else gradient.nan_to_num(0.0, 0.0, 0.0))
    return array


def forward(result: AnyArray, names: str) -> AnyArray:
    """Return a result, or raise an error if forward mode (`torch.func.jvp`) finds no derivative: no hook reaches it."""
    if is_torch_array(result):
        tangent = sys.modules["torch"].autograd.forward_ad.unpack_dual(result).tangent
        if tangent is not None and not bool(tangent.isfinite().all()):
            raise ValueError(f"{names}: expected a point with a derivative, for forward mode, got one without")
    return result


def root(square: AnyArray) -> AnyArray:
    """Square root of non-negative numbers, whose derivative at 0 is taken as 0: of a norm that is a subgradient."""
    xp = array_namespace(square)
    return xp.where(square > 0, xp.sqrt(xp.where(square > 0, square, xp.ones_like(square))), xp.zeros_like(square))


def centred(x: Floats, axis: int = 0) -> Floats:
    """Return x less its mean along an axis.

    The mean is rounded, and the square of this error counts beside the variance: it is too large for points closer to
    one another than sqrt(eps). These are taken relative to the first, which rounds nothing.

    >>> centred(2.0**53 + np.asarray([0.0, 2.0, 4.0])).tolist()
    [-2.0, 0.0, 2.0]
    """
    first = np.take(x, [0], axis=axis)
    near = np.max(np.abs(x - first), axis=axis, keepdims=True) < 2.0**-25 * np.abs(first)
    moved = x - np.where(near, first, 0.0)
    return np.asarray(moved - moved.mean(axis=axis, keepdims=True))


def integers(value: Any, name: str, *, like: AnyArray | None = None) -> AnyArray:
    """Return `value` as a one-dimensional array of integers, in the library and on the device of `like`."""
    array = _plain_array(value, name, "a one-dimensional array of integers", like=like)
    xp = array_namespace(array)
    if array.ndim != 1 or 0 in array.shape or not xp.isdtype(array.dtype, "integral"):
        raise TypeError(f"{name}: expected a non-empty sequence of integers, got {describe(array)}")
    unsigned = xp.isdtype(array.dtype, "unsigned integer")
    array = xp.astype(array, xp.int64)  # differences of small types wrap around, and unsigned ones out of its range
    if _some((array > LARGEST_INTEGER) | ((array < 0) & unsigned), name):
        raise ValueError(f"{name}: expected integers of at most {LARGEST_INTEGER}, got a larger one")
    return array


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


def silently(function: Function) -> Function:
    """Run all of a function within `silent`: one that takes products of numbers of any size throughout."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with silent():
            return function(*args, **kwargs)

    return cast(Function, run)


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
    off = scalar(xp.max(xp.abs(xp.sum(wide(p)[0], axis=-1) - 1)))
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
    if any(isinstance(size, np.ndarray) for size in sizes.values()):
        for name, size in sizes.items():
            if isinstance(size, int) and size > 1e75:
                raise ValueError(f"{name}: expected a size of at most 1e75 beside an array, got a larger one")
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


def power_of_two(array: AnyArray, by: AnyArray) -> AnyArray:
    """Return an array times 2^by, for whole numbers of any size; in three steps, as 2^by itself may be out of range."""
    xp, limit = array_namespace(array), math.frexp(float(array_namespace(array).finfo(array.dtype).max))[1] - 8
    by = xp.clip(by, min=-3 * limit, max=3 * limit)
    for share in (by // 3, by // 3, by - by // 3 * 2):
        array = array * xp.ldexp(xp.ones(share.shape, dtype=array.dtype, device=device(array)), share)
    return array


def binary_exponents(array: AnyArray) -> AnyArray:
    """Return the e with 2^(e-1) <= |number| < 2^e of each number, as constants; 0 for 0."""
    return array_namespace(array).frexp(constant(array))[1]


@silently
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
        array = value if is_array_api_obj(value) else np.asarray(value)
        if isinstance(array, np.ndarray) and not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if like is not None:  # torch takes no array of numpy that is read-only, or runs backwards
            array = np.array(array) if is_torch_array(like) and not is_torch_array(array) else array
            array = array_namespace(like).asarray(array, device=device(like))
        array_namespace(array)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__} ({error})") from None
    if array is not value and not is_array_api_obj(value) and isinstance(array, np.ndarray):
        _exact_list(value, array, name)
    return array


def _exact_list(value: Any, array: Floats, name: str) -> None:
    """Raise an error for integers in a list that the numbers beside them made floats, if that changed one of them."""
    if array.dtype.kind == "f" and bool(np.any(np.abs(array) >= LARGEST_INTEGER)):
        given = np.asarray(value, dtype=object).ravel()
        if any(isinstance(each, Integral) and int(each) != float(each) for each in given):
            raise ValueError(f"{name}: expected integers of at most {LARGEST_INTEGER}, got a larger one")


def _as_floating(array: AnyArray, name: str) -> AnyArray:
    """Return integers in the default floating dtype of their library, which has to hold each of them exactly."""
    xp = array_namespace(array)
    dtype = xp.__array_namespace_info__().default_dtypes()["real floating"]
    most = int(2 / xp.finfo(dtype).eps)
    if 2 ** (8 * array.dtype.itemsize) > most:
        whole = xp.astype(array, xp.int64)  # beyond its range unsigned ones become negative
        least = 0 if xp.isdtype(array.dtype, "unsigned integer") else -most
        if _some((whole > most) | (whole < least), name):
            raise ValueError(f"{name}: expected integers of at most {most}, as {dtype} holds, got a larger one")
    return xp.astype(array, dtype)


def _some(condition: AnyArray, name: str) -> bool:
    """Return whether a condition on an argument holds somewhere: every argument's first look at its numbers."""
    try:
        return bool(array_namespace(condition).any(condition))
    except RuntimeError:
        raise TypeError(
            f"{name}: expected a tensor whose numbers can be read, got one within torch.func.vmap "
            "(which is not supported; batch axes stand in front)"
        ) from None


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
