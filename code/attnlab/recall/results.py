"""The shipped table of the sweep, and what it says: means over seeds with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attnlab import records
from attnlab.recall.table import ATTENTION_NAMES, TABLE
from attnlab.sweeps.tables import Row
from attnmath.arrays import Numpy
from attnmath.checks import flag, instance, number, one_of
from attnmath.estimate import Estimate, mean
from attnmath.estimate import interval as interval

_GROUP = ("attention", "parameter", "unit", "pairs", "head", "width")


class Cell(NamedTuple):
    """One setting of a design at its best learning rate; its runs differ by their seed only."""

    attention: str
    parameter: float
    unit: bool
    pairs: int
    head: int
    width: int
    rate: float
    runs: tuple[Row, ...]


def load_results() -> list[Row]:
    """The table that ships with the package, a row for each run, after checking its hash.

    >>> sorted({row["attention"] for row in load_results()})
    ['decay', 'elu+1', 'identity', 'relu^2', 'softmax']
    """
    return TABLE.shipped("recall")


def load_division() -> list[Row]:
    """The same for the runs of softmax with and without the division of its scores by sqrt(d_k)."""
    return TABLE.shipped("division")


def load_provenance() -> dict[str, Any]:
    """The command, versions, devices and settings behind the table of `load_results`."""
    return records.provenance("recall")


def best_cells(rows: Sequence[Row]) -> list[Cell]:
    """Group runs by everything but seed and learning rate, and keep the rate with the highest mean validation recall.

    Every setting gets the same choice of rates; of equal ones the smallest is kept. The recall on the test's sequences
    has no part in the choice.
    """
    rows = _runs(rows, "rows", (*_GROUP, "rate", "validation"))
    groups: dict[tuple[Any, ...], dict[float, list[Row]]] = {}
    for row in rows:
        by_rate = groups.setdefault(tuple(row[name] for name in _GROUP), {})
        by_rate.setdefault(row["rate"], []).append(row)
    cells = []
    for key, by_rate in groups.items():
        rate = max(sorted(by_rate), key=lambda r: float(np.mean([run["validation"] for run in by_rate[r]])))
        cells.append(Cell._make((*key, rate, tuple(by_rate[rate]))))
    return cells


def choose(
    cells: Sequence[Cell],
    *,
    attention: str | None = None,
    parameter: float | None = None,
    unit: bool | None = None,
    pairs: int | None = None,
    head: int | None = None,
    width: int | None = None,
) -> list[Cell]:
    """Return the cells with these settings (None: any), by growing parameter, pairs, head and width.

    >>> cells = [Cell("decay", rate, True, 4, 8, 32, 0.1, ()) for rate in (0.9, 0.3)]
    >>> [cell.parameter for cell in choose(cells, attention="decay", unit=True)]
    [0.3, 0.9]
    """
    cells = _cells(cells)
    sizes = {"parameter": parameter, "pairs": pairs, "head": head, "width": width}
    wanted: dict[str, Any] = {name: number(value, name) for name, value in sizes.items() if value is not None}
    if attention is not None:
        wanted["attention"] = one_of(attention, ATTENTION_NAMES, "attention")
    if unit is not None:
        wanted["unit"] = flag(unit, "unit")
    kept = [cell for cell in cells if all(getattr(cell, name) == value for name, value in wanted.items())]
    if not kept:
        raise ValueError(f"{', '.join(wanted)}: expected the settings of at least one of the cells, got {wanted}")
    return sorted(kept, key=lambda cell: (ATTENTION_NAMES.index(cell.attention), *cell[1:6]))


def by_seed(cells: Sequence[Cell], quantity: str) -> Float[Numpy, "cells seeds"]:
    """Return a measured quantity, cell by cell, seeds ascending. NaN where the run could not measure it.

    Models of one seed begin with the same random numbers, so that a column is one unit.

    >>> runs = ({"seed": 1, "S": 0.5}, {"seed": 0, "S": 0.25})
    >>> by_seed([Cell("decay", 0.9, True, 4, 8, 32, 0.1, runs)], "S").tolist()
    [[0.25, 0.5]]
    """
    one_of(quantity, TABLE.measures, "quantity")
    rows = [{run["seed"]: float(run[quantity]) for run in _runs(cell.runs, "cells", ("seed", quantity))}
            for cell in _cells(cells)]  # fmt: skip
    seeds = sorted(rows[0])
    if any(sorted(row) != seeds for row in rows):
        raise ValueError(f"cells: expected the same seeds in every cell, got {[sorted(row) for row in rows]}")
    return np.array([[row[seed] for seed in seeds] for row in rows])


def recall(cell: Cell) -> Estimate:
    """Mean recall over the seeds with its standard error."""
    runs = _runs(instance(cell, Cell, "cell").runs, "cell", ("recall",))
    if len(runs) < 2:
        raise ValueError("cell: expected at least 2 runs, got 1: one has no standard error")
    return mean([run["recall"] for run in runs])


def _cells(cells: Any) -> Sequence[Cell]:
    """Return the cells, at least one."""
    if isinstance(cells, str) or not isinstance(cells, Sequence):
        raise TypeError(f"cells: expected a list of Cell, got {type(cells).__name__}")
    if not cells:
        raise ValueError("cells: expected at least one Cell, got none")
    for cell in cells:
        instance(cell, Cell, "cells")
    return cells


def _runs(rows: Any, name: str, columns: Sequence[str]) -> Sequence[Row]:
    """Return rows of the table, at least one, that have these columns, with a number that is one for `validation`."""
    rows = TABLE.checked(rows, columns, name)
    if "validation" in columns and any(math.isnan(row["validation"]) for row in rows):
        raise ValueError(f"{name}['validation']: expected a share of right answers, got nan")
    return rows
