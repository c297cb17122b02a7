"""Arguments of every public function in every number format, short and long, and a bound on what rounding may do."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import hostile
import numpy as np

from attnmath.linear_cost.random_features import maps
from attnmath.operator.online import Summary

#: Axes that may be long, in the order in which they are chosen.
LONG_AXES = ("m", "b", "N", "length", "*shape", "*points", "*#shape", "pairs", "n", "E", "kinds", "...", "p")
#: Axes that are one and the same, or broadcast.
TOGETHER = ({"n", "m"}, {"*shape", "*#shape"})
_ARRAY = re.compile(r"ArrayLike(?:\[Array\])?, ['\"]([^'\"]*)['\"]")


def array_axes(function: Callable[..., Any]) -> dict[str, list[str]]:
    """Return the axes of each parameter that is an array, by the names in its annotation."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = str(parameter.annotation)
        if annotation.startswith("Summary"):
            found[name] = ["..."]
        elif match := _ARRAY.search(annotation):
            if not annotation.startswith("Sequence"):
                found[name] = match[1].split()
            else:
                found[name] = ["layers"]
    return found


def of_features(makes: Callable[..., Any], of: str) -> Callable[..., Any]:
    """Return the queries or the keys of a map as a function of what they are the features of."""

    def queries(X: Real[ArrayLike[Array], "... n d"]) -> Any:  # noqa: F722, F821
        return getattr(makes(hostile.rows(4, 2)), of)(X)

    return queries


FUNCTIONS = {name: function for name, function in hostile.public_functions().items() if array_axes(function)}
#: Methods of what a function returns, as functions.
METHODS = {
    f"maps.{kind}.{of}": of_features(getattr(maps, kind), of)
    for kind in ("trigonometric", "positive", "hyperbolic")
    for of in ("queries", "keys")
}
FUNCTIONS |= METHODS
#: Ordinary arguments that differ from those of the hostile input, which may be of no use together.
OWN: dict[str, dict[str, Callable[[], Any]]] = {
    "expansion.expanded_attention": {"order": lambda: 2, "causal": lambda: False},
}


def ordinary(name: str) -> dict[str, Any]:
    """Return ordinary arguments, arrays in float64; rows of probabilities are no dyadic fractions."""
    known = hostile.parameters(name, FUNCTIONS[name]) | OWN.get(name, {})
    arguments = {key: new() for key, new in known.items()}
    for key in array_axes(FUNCTIONS[name]):
        value = arguments[key]
        if isinstance(value, list | float) and key != "layers":
            value = np.asarray(value)
        if isinstance(value, np.ndarray) and is_stochastic(value):
            value = normalised(value + 0.1 * (value > 0) * np.sin(np.arange(value.size).reshape(value.shape)))
        arguments[key] = value
    return arguments


def is_stochastic(value: np.ndarray) -> bool:
    return value.dtype.kind == "f" and value.ndim > 0 and bool(np.all(value >= 0)) and np.allclose(value.sum(-1), 1)


def normalised(value: np.ndarray) -> np.ndarray:
    return value / value.sum(axis=-1, keepdims=True)


def mapped(value: Any, change: Callable[[np.ndarray], Any]) -> Any:
    """Return an argument with a change made to each of its floating arrays."""
    if isinstance(value, Summary):
        return Summary(*(mapped(part, change) for part in value))
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return [tuple(mapped(part, change) for part in layer) for layer in value]
    return change(value) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


def stretched(name: str, size: int, **chosen: Any) -> dict[str, Any]:
    """Return arguments whose first long axis has another size: what was there is interpolated, so that it keeps
    its order and its range; rows that sum to 1 do so again."""
    axes = array_axes(FUNCTIONS[name])
    arguments = ordinary(name) | chosen
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    for key in {"mask", "length"} & {*arguments}:  # those fit the ordinary size
        if parameters[key].default is None:
            arguments[key] = None
        elif name == "attention.masked":
            arguments[key] = np.ones((3, 1), bool)
    given = [axis for key in axes for axis in axes[key]]
    long = next((axis for axis in LONG_AXES if axis in given), None)
    tied = "causal" in axes or arguments.get("causal") is True or long in TOGETHER[1]
    both = next((pair for pair in TOGETHER if long in pair and tied), {long})
    for key, names in axes.items():
        value = arguments[key]
        if not isinstance(value, np.ndarray):
            continue
        stochastic = is_stochastic(value)
        for place, axis in enumerate(names[::-1]):
            if axis in both and place < value.ndim:
                value = _interpolated(value, value.ndim - 1 - place, size)
        arguments[key] = normalised(value) if stochastic else value
    return arguments


def _interpolated(value: np.ndarray, axis: int, size: int) -> np.ndarray:
    at = np.linspace(0, value.shape[axis] - 1, size) if size > 1 else np.zeros(1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, value.shape[axis] - 1)
    if value.dtype.kind != "f":
        return np.take(value, low, axis=axis)
    shape = [1] * value.ndim
    shape[axis] = size
    part = (at - low).reshape(shape)
    return np.take(value, low, axis=axis) * (1 - part) + np.take(value, high, axis=axis) * part


def numbers(result: Any) -> list[np.ndarray]:
    """Return all arrays and numbers in a result, as arrays of numpy."""
    if dataclasses.is_dataclass(result):
        result = tuple(vars(result).values())
    if inspect.isgenerator(result) or isinstance(result, list | tuple | Mapping):
        parts = result.values() if isinstance(result, Mapping) else result
        return [array for part in parts for array in numbers(part)]
    if hasattr(result, "detach"):
        result = result.detach().resolve_neg()
        result = (result.float() if result.dtype.itemsize == 2 else result).numpy()
    return [np.asarray(result)] if not (callable(result) or isinstance(result, str | bool | type(None))) else []


def sensitivity(name: str, arguments: Mapping[str, Any], result: Any) -> list[np.ndarray]:
    """Return how far the result in float64 moves, per unit, if its floating arguments move relatively.

    Each argument moves as a whole, and by random signs; what single moves do adds up. Rows of probabilities are
    normalised again.
    """
    step, rng = 1e-6, np.random.default_rng(1)
    base = numbers(result)
    total = [np.zeros(part.shape) for part in base]
    for key in array_axes(FUNCTIONS[name]):
        for signs in (None, *rng.integers(0, 2**31, 1 if getattr(arguments[key], "size", 0) > 1000 else 3)):

            def move(value: np.ndarray, signs: Any = signs) -> np.ndarray:
                by = 1.0 if signs is None else np.random.default_rng(signs).choice([-1.0, 1.0], value.shape)
                moved = value * (1 + step * by)
                return normalised(moved) if is_stochastic(value) else moved

            changed = renewed(arguments) | {key: mapped(arguments[key], move)}
            try:
                after = numbers(FUNCTIONS[name](**changed))
            except (TypeError, ValueError):  # a move out of the domain
                continue
            for k, (a, b) in enumerate(zip(base, after, strict=True)):
                if a.shape == b.shape and a.dtype.kind in "fc":
                    with np.errstate(all="ignore"):
                        total[k] = total[k] + np.nan_to_num(np.abs(b - a) / step, posinf=0.0)
    return total


def renewed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with a generator at its beginning, which a call before has drawn from."""
    return {key: hostile.rng() if isinstance(value, np.random.Generator) else value for key, value in arguments.items()}
