"""How a package names its modules: each is imported when it is first asked for."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType


def rooms_of(package: str, path: Iterable[str]) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, which know its public modules.

    package : its ``__name__``.  path : its ``__path__``.

    >>> __getattr__, __dir__ = rooms_of("attnmath", import_module("attnmath").__path__)
    >>> __getattr__("checks").__name__
    'attnmath.checks'
    """

    def names() -> list[str]:
        return sorted(found.name for found in pkgutil.iter_modules(path) if not found.name.startswith("_"))

    def __getattr__(name: str) -> ModuleType:
        if name not in names():
            raise AttributeError(f"module {package}: expected one of its modules, {', '.join(names())}, got {name}")
        return import_module(f"{package}.{name}")

    return __getattr__, names
