"""What the ledger takes for a measured number: anything with a value and its standard error."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Estimate(Protocol):
    """A value, or an array of values, with its standard error in the same units.

    Every class with these two attributes serves, a named tuple as well.
    """

    @property
    def value(self) -> Any:
        """The number, or the numbers."""

    @property
    def standard_error(self) -> Any:
        """The standard error of each."""
