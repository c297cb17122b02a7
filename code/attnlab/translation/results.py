"""The shipped table of the sweep: values by seed, and paired differences with their intervals. Needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attnlab import records
from attnlab.translation.table import DESIGN_NAMES, MEASURES, TABLE
from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import flag, floats, number, one_of, positive_integer, silent
from attnmath.estimate import interval, mean

#: A row of the table of runs, by the names of its columns.
Row = dict[str, Any]

#: What `by_seed` returns: the measures of the table, and two differences of losses.
QUANTITIES = (*MEASURES, "gap", "rise")


class Comparison(NamedTuple):
    """Paired differences, seed by seed, their mean, and Student's interval of that coverage."""

    differences: tuple[float, ...]
    mean: float
    low: float
    high: float
    coverage: float


def load_results() -> list[Row]:
    """The table that ships with the package, a row for each run, after checking its hash.

    >>> sorted({row["pairs"] for row in load_results()})
    [500, 1500, 5000, 15000, 50000]
    """
    return TABLE.parsed(records.shipped("translation"), "translation.csv")


def load_provenance() -> dict[str, Any]:
    """The command, versions, devices and settings behind the shipped table."""
    return records.provenance("translation")


def complete_seeds(rows: Sequence[Row]) -> list[int]:
    """The seeds that have every setting that occurs in the table: others belong to a sweep that was interrupted.

    >>> complete_seeds([{"design": d, "pairs": 500, "hidden": 128, "seed": s} for d, s in [("fixed", 0), ("single", 0),
    ...                                                                                  ("single", 1)]])
    [0]
    """
    found: dict[int, set[tuple[Any, ...]]] = {}
    for row in _rows(rows, ("design", "pairs", "hidden", "seed")):
        found.setdefault(row["seed"], set()).add((row["design"], row["pairs"], row["hidden"]))
    settings = set().union(*found.values())
    return sorted(seed for seed, own in found.items() if own == settings)


def by_seed(
    rows: Sequence[Row], design: str, pairs: int, quantity: str, *, equal: bool = False
) -> Float[Numpy, "seeds"]:
    """Return a quantity of the runs of one design and number of pairs, seeds ascending.

    quantity : one of `QUANTITIES`. gap : validation loss less training loss at the end of the run.  rise : validation
    loss at the end less the lowest one.  equal : of the control with as many trained parameters as eight learned heads
    have, in place of the design with the common feed-forward width.

    >>> row = {"design": "fixed", "pairs": 500, "hidden": 128}
    >>> by_seed([row | {"seed": 1, "bleu": 30.0}, row | {"seed": 0, "bleu": 20.0}], "fixed", 500, "bleu").tolist()
    [20.0, 30.0]
    """
    one_of(design, DESIGN_NAMES, "design")
    pairs = positive_integer(pairs, "pairs")
    one_of(quantity, QUANTITIES, "quantity")
    columns = {"gap": ("validation_last", "train_last"), "rise": ("validation_last", "validation_best")}
    parts = columns.get(quantity, (quantity,))
    rows = _rows(rows, ("design", "pairs", "hidden", "seed", *parts))
    smallest = min(row["hidden"] for row in rows)
    chosen = {row["seed"]: row for row in rows if row["design"] == design and row["pairs"] == pairs
              and (row["hidden"] > smallest) == flag(equal, "equal")}  # fmt: skip
    if not chosen:
        raise ValueError(f"pairs, equal: expected a setting of {design} in the table, got {pairs}, {equal}")
    values = [chosen[seed][parts[0]] - (chosen[seed][parts[1]] if len(parts) == 2 else 0) for seed in sorted(chosen)]
    return np.asarray(values, dtype=float)


def compare(differences: Float[ArrayLike, "seeds"], comparisons: int = 1) -> Comparison:
    """Mean of paired differences with Student's interval of coverage 1 - 0.05 / comparisons.

    >>> found = compare([1.0, 2.0, 3.0])
    >>> round(found.low, 2), found.mean, round(found.high, 2)
    (-0.48, 2.0, 4.48)
    """
    comparisons = positive_integer(comparisons, "comparisons")
    values = tuple(floats(differences, "differences", ndim=1).tolist())
    if len(values) < 2:
        raise ValueError(f"differences: expected at least 2 seeds, got {len(values)}")
    estimate, coverage = mean(values), 1 - 0.05 / comparisons
    with silent():
        low, high = interval(estimate, len(values), coverage)
    if not np.isfinite(high - low):
        raise ValueError(f"differences: expected numbers that keep their interval in range, got {list(values)}")
    return Comparison(values, float(estimate.value), float(low), float(high), coverage)


def _rows(rows: Any, columns: Sequence[str]) -> Sequence[Row]:
    """Return rows of the table, at least one, that have these columns."""
    if isinstance(rows, str) or not isinstance(rows, Sequence):
        raise TypeError(f"rows: expected rows of the table, got {type(rows).__name__}")
    if not rows:
        raise ValueError("rows: expected at least one run, got none")
    for row in rows:
        if not isinstance(row, dict):
            raise TypeError(f"rows: expected a row of the table, got {type(row).__name__} {row!r}")
        if missing := [column for column in columns if column not in row]:
            raise ValueError(f"rows: expected a row with {', '.join(columns)}, got one without {', '.join(missing)}")
        for column in columns:
            if column == "design":
                one_of(row[column], DESIGN_NAMES, f"rows[{column!r}]")
            else:
                number(row[column], f"rows[{column!r}]")
    return rows
