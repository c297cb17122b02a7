"""What a Python function makes of its parameters, in letters: each call is a letter of its own."""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from numbers import Number
from types import CellType, CodeType, FunctionType
from typing import Any

import sympy as sp


class _UndecidedError(BaseException):
    """What letters cannot tell; no function that is run catches it."""


def depends(function: Callable[..., Any], parameters: Iterable[str]) -> bool | None:
    """Return whether the value of a function depends on its parameters; None where letters do not tell.

    The function is run on letters. Whatever it calls or looks up is a letter too, the same one for the same arguments,
    and nothing is called. A function that compares, loops over what it is given, or calls something for its effect
    alone is not decided.

    >>> depends(lambda x: abs(x) + 5 - abs(x), ["x"]), depends(lambda x: abs(x) - x, ["x"])
    (False, True)
    >>> depends(lambda x: 5 if x > 4 else 6, ["x"]) is None
    True
    """
    if not isinstance(function, FunctionType) or any(i.opname == "POP_TOP" for i in dis.get_instructions(function)):
        return None
    reads: dict[sp.Symbol, bool] = {}
    code, known = function.__code__, _values(function)
    scope = {name: known.get(name, _Letter(_new(("name", name), False, reads), reads)) for name in _names(code)}
    cells = tuple(CellType(known.get(name, _Letter(_new(("name", name), False, reads), reads)))
                  for name in code.co_freevars)  # fmt: skip
    copy = FunctionType(code, {**scope, "__builtins__": {}}, "traced", function.__defaults__, cells)
    copy.__kwdefaults__ = function.__kwdefaults__
    try:
        made = copy(**{name: _Letter(_new(("parameter", name), True, reads), reads) for name in parameters})
        value = sp.expand(made.value if isinstance(made, _Letter) else made)
    except (_UndecidedError, Exception):  # whatever a function does with what is no number
        return None
    return any(reads.get(s, False) for s in value.free_symbols) if isinstance(value, sp.Expr) else None


def _values(function: FunctionType) -> dict[str, Any]:
    """Return the numbers that a function looks up outside, by name."""
    found = {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a cell that nothing has filled
            found[name] = cell.cell_contents
    return {name: value for name, value in found.items() if isinstance(value, Number | sp.Expr)}


def _names(code: CodeType) -> set[str]:
    inner = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


def _new(key: Hashable, is_parameter: bool, reads: dict[sp.Symbol, bool]) -> sp.Symbol:
    letter = sp.Symbol(repr(key), commutative=False)  # it may be a matrix
    reads[letter] = reads.get(letter, False) or is_parameter
    return letter


def _arithmetic(name: str, of: Callable[..., Any] | None) -> Callable[..., Any]:
    def method(self: _Letter, *others: Any) -> Any:
        values = [other.value if isinstance(other, _Letter) else other for other in others]
        if of is None or not all(isinstance(value, Number | sp.Expr) for value in values):
            return self._made(name, others)
        return _Letter(sp.sympify(of(self.value, *map(sp.sympify, values))), self.reads)

    return method


class _Letter:
    """A value that is known by how it was made."""

    __slots__ = ("reads", "value")

    def __init__(self, value: sp.Expr, reads: dict[sp.Symbol, bool]) -> None:
        self.value, self.reads = value, reads

    def _made(self, how: str, arguments: Any) -> _Letter:
        parts: list[sp.Expr] = [self.value]
        key = (how, str(self.value), _key(arguments, parts))
        is_read = any(self.reads.get(s, False) for part in parts for s in part.free_symbols)
        return _Letter(_new(key, is_read, self.reads), self.reads)

    def __call__(self, *arguments: Any, **named: Any) -> _Letter:
        return self._made("call", (arguments, sorted(named.items())))

    def __getattr__(self, name: str) -> _Letter:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._made("attribute", name)

    def __getitem__(self, place: Any) -> _Letter:
        return self._made("item", place)

    def _undecided(self, *others: Any) -> Any:
        raise _UndecidedError

    __bool__ = __iter__ = __len__ = __contains__ = __index__ = __float__ = __int__ = _undecided
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _undecided


def _key(value: Any, parts: list[sp.Expr]) -> Any:
    """Return what tells a value from others, and gather the letters in it."""
    if isinstance(value, _Letter):
        parts.append(value.value)
        return ("letter", str(value.value))
    if isinstance(value, slice):
        return ("slice", _key((value.start, value.stop, value.step), parts))
    if isinstance(value, list | tuple):
        return (type(value).__name__, *(_key(part, parts) for part in value))
    if isinstance(value, dict):
        return ("dict", *(_key(part, parts) for item in value.items() for part in item))
    if isinstance(value, Number | str | bytes | sp.Basic | None):
        return (type(value).__name__, str(value))
    raise TypeError(f"a {type(value).__name__} in letters")


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _of = getattr(operator, _name)
    setattr(_Letter, f"__{_name}__", _arithmetic(_name, _of))
    setattr(_Letter, f"__r{_name}__", _arithmetic(f"r{_name}", lambda one, other, of=_of: of(other, one)))
for _name in ("mod", "floordiv", "matmul", "rmod", "rfloordiv", "rmatmul"):
    setattr(_Letter, f"__{_name}__", _arithmetic(_name, None))
for _name in ("neg", "pos"):
    setattr(_Letter, f"__{_name}__", _arithmetic(_name, getattr(operator, _name)))
del _name, _of
