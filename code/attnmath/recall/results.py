"""The shipped table of the sweep, and what it says: means over seeds with their intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Real
from scipy import stats

from attnmath.arrays import Array, ArrayLike, Numpy
from attnmath.checks import about, floats, function, instance, number, one_of, positive_integer
from attnmath.estimate import Estimate, mean
from attnmath.recall.table import ATTENTION_NAMES, read_table

Row = dict[str, Any]
_GROUP = ("attention", "pairs", "width")


class Cell(NamedTuple):
    """One attention at one number of pairs and one width; its runs differ by their seed only."""

    attention: str
    pairs: int
    width: int
    rate: float
    runs: tuple[Row, ...]


def load_results() -> list[Row]:
    """The table that ships with the package, a row for each run.

    >>> sorted({row["attention"] for row in load_results()})
    ['decay', 'elu+1', 'identity', 'relu^2', 'softmax']
    """
    with resources.as_file(resources.files("attnmath") / "data" / "recall.csv") as path:
        return read_table(path)


def load_provenance() -> dict[str, Any]:
    """The command, versions and settings behind the shipped table."""
    return json.loads((resources.files("attnmath") / "data" / "recall.json").read_text(encoding="utf-8"))


def best_cells(rows: Sequence[Row]) -> list[Cell]:
    """Group runs by attention, pairs and width, and keep the learning rate with the higher mean recall.

    Every attention gets the same choice of rates.
    """
    rows = _runs(rows, "rows", (*_GROUP, "rate", "recall"))
    groups: dict[tuple[str, int, int], dict[float, list[Row]]] = {}
    for row in rows:
        by_rate = groups.setdefault((row["attention"], row["pairs"], row["width"]), {})
        by_rate.setdefault(row["rate"], []).append(row)
    cells = []
    for key, by_rate in groups.items():
        rate = max(by_rate, key=lambda r: float(np.mean([run["recall"] for run in by_rate[r]])))
        cells.append(Cell(*key, rate, tuple(by_rate[rate])))
    return cells


def concentration(run: Row) -> tuple[float, float]:
    """S and effective support of the rows in the more concentrated of the two layers.

    A layer whose rows are all zero counts as not concentrated.

    >>> concentration({"S_1": 0.5, "S_2": 0.2, "support_1": 3.0, "support_2": 1.1})
    (0.2, 1.1)
    """
    (run,) = _runs([run], "run", ("S_1", "S_2", "support_1", "support_2"))
    layers = [(run[f"S_{k}"], run[f"support_{k}"]) for k in (1, 2) if not math.isnan(run[f"S_{k}"])]
    return min(layers, default=(math.nan, math.nan), key=lambda layer: layer[1])


def recall(cell: Cell) -> Estimate:
    """Mean recall over the seeds with its standard error."""
    runs = _runs(instance(cell, Cell, "cell").runs, "cell", ("recall",))
    if len(runs) < 2:
        raise ValueError("cell: expected at least 2 runs, got 1: one has no standard error")
    return mean([run["recall"] for run in runs])


def by_width_and_seed(
    cells: Sequence[Cell], attention: str, quantity: Callable[[Row], float]
) -> Float[Numpy, "widths seeds"]:
    """Return the means over the numbers of pairs of a quantity of the runs, widths and seeds ascending.

    Runs of one width and one seed begin with the same weights, so they are averaged and count once.

    >>> cells = [Cell("decay", pairs, 8, 0.01, ({"seed": 0, "recall": 0.1 * pairs},)) for pairs in (4, 8)]
    >>> by_width_and_seed(cells, "decay", lambda run: run["recall"]).round(3).tolist()
    [[0.6]]
    """
    if isinstance(cells, str) or not isinstance(cells, Sequence):
        raise TypeError(f"cells: expected a list of Cell, got {type(cells).__name__}")
    one_of(attention, ATTENTION_NAMES, "attention")
    function(quantity, "quantity")
    found: dict[tuple[int, int], list[float]] = {}
    for cell in cells:
        if instance(cell, Cell, "cells").attention == attention:
            for run in _runs(cell.runs, "cells", ("seed",)):
                with about("quantity"):
                    value = float(quantity(run))
                found.setdefault((cell.width, run["seed"]), []).append(value)
    widths, seeds = sorted({width for width, _ in found}), sorted({seed for _, seed in found})
    if not found or len(found) != len(widths) * len(seeds):
        raise ValueError(f"cells: expected runs of {attention!r} with every seed at every width, got {sorted(found)}")
    return np.array([[np.mean(found[width, seed]) for seed in seeds] for width in widths])


def over_seeds(table: Real[ArrayLike, "widths seeds"]) -> Estimate:
    """Mean of a table with at least 2 seeds.

    The widths are fixed by the design. Models of one seed begin with the same random numbers at every width, so the
    seeds are the independent units, each with its mean over the widths.

    >>> print(over_seeds([[1.0, 3.0], [11.0, 13.0]]))
    7 ± 1
    """
    values = floats(table, "table", ndim=2)
    if values.shape[1] < 2:
        raise ValueError(f"table: expected at least 2 seeds, got shape {values.shape}")
    return mean(values.mean(axis=0))


def interval(
    estimate: Estimate, runs: int, coverage: float = 0.95
) -> tuple[Float[Array, "*shape"] | float, Float[Array, "*shape"] | float]:
    """Student's interval for a mean over so few runs.

    >>> low, high = interval(Estimate(0.5, 0.1), 3)
    >>> round(float(high - low), 3)
    0.861
    """
    instance(estimate, Estimate, "estimate")
    if positive_integer(runs, "runs") < 2:
        raise ValueError(f"runs: expected at least 2, got {runs}")
    if not 0 < number(coverage, "coverage") < 1:
        raise ValueError(f"coverage: expected a number between 0 and 1, got {coverage}")
    with about("estimate"):
        return estimate.interval(float(stats.t.ppf((1 + coverage) / 2, runs - 1)))


def _runs(rows: Any, name: str, columns: Sequence[str]) -> Sequence[Row]:
    """Return rows of the table, at least one, that have these columns: numbers, but for the attention's name."""
    if isinstance(rows, str) or not isinstance(rows, Sequence):
        raise TypeError(f"{name}: expected rows of the table, got {type(rows).__name__}")
    if not rows:
        raise ValueError(f"{name}: expected at least one run, got none")
    for row in rows:
        if not isinstance(row, dict):
            raise TypeError(f"{name}: expected a row of the table, got {type(row).__name__} {row!r}")
        if missing := [column for column in columns if column not in row]:
            raise ValueError(f"{name}: expected a row with {', '.join(columns)}, got one without {', '.join(missing)}")
        for column in columns:
            if column == "attention":
                one_of(row[column], ATTENTION_NAMES, f"{name}[{column!r}]")
            else:
                number(row[column], f"{name}[{column!r}]")
    return rows
