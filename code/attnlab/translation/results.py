"""The shipped table of the sweep: values by seed, and paired differences with their intervals. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attnlab import records
from attnlab.sweeps.tables import Row
from attnlab.translation.table import DESIGN_NAMES, TABLE, TUNED, TUNED_ON
from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import Fixed, flag, floats, one_of, positive_integer, silent
from attnmath.estimate import interval, mean

#: What `by_seed` returns: the measures of the table, and two differences of losses.
QUANTITIES = (*TABLE.measures, "gap", "rise")
#: By what a learning rate is chosen, and which value is the best one.
CHOICES: Mapping[str, Callable[..., float]] = Fixed({"validation_best": min, "bleu": max})


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
    return TABLE.shipped("translation")


def load_provenance() -> dict[str, Any]:
    """The command, versions, devices and settings behind the shipped table."""
    return records.provenance("translation")


def load_rates() -> list[Row]:
    """The shipped table of runs at other learning rates, a row for each run, after checking its hash."""
    return TABLE.shipped("translation_rates")


def chosen_rates(rows: Sequence[Row], by: str) -> dict[tuple[str, int], float]:
    """Return the best learning rate of each design of `TUNED` and number of pairs, by the mean over `TUNED_ON`.

    by : one of `CHOICES`. validation_best : the lowest loss on validation sentences.  bleu : the highest BLEU.

    A rate that lacks one of these seeds is no candidate. Of equal ones the first in the table is taken.

    >>> row = {"design": "fixed", "pairs": 500, "hidden": 128}
    >>> runs = {(0, 0.004): 1.9, (1, 0.004): 1.8, (0, 0.008): 1.7, (1, 0.008): 1.6, (0, 0.016): 1.0}
    >>> rows = [row | {"seed": s, "rate": r, "validation_best": loss} for (s, r), loss in runs.items()]
    >>> chosen_rates(rows, "validation_best")
    {('fixed', 500): 0.008}
    """
    best = CHOICES[one_of(by, CHOICES, "by")]
    values: dict[tuple[str, int], dict[float, list[float]]] = {}
    for row in _tuned(TABLE.checked(rows, ("design", "pairs", "hidden", "seed", "rate", by))):
        if row["seed"] in TUNED_ON:
            values.setdefault((row["design"], row["pairs"]), {}).setdefault(row["rate"], []).append(row[by])
    found = {}
    for setting, tried in values.items():
        means = {rate: float(np.mean(of)) for rate, of in tried.items() if len(of) == len(TUNED_ON)}
        if not means:
            raise ValueError(f"rows: expected the seeds {TUNED_ON} of {setting} at one learning rate, got no such two")
        found[setting] = best(means, key=means.__getitem__)
    return found


def at_own_rates(rows: Sequence[Row], by: str) -> list[Row]:
    """Return the runs of the designs of `TUNED`, each at the learning rate that `chosen_rates` gives for it."""
    chosen = chosen_rates(rows, by)
    return [row for row in _tuned(rows) if row["rate"] == chosen.get((row["design"], row["pairs"]))]


def _tuned(rows: Sequence[Row]) -> list[Row]:
    """The runs of the designs of `TUNED` with the common width of the feed-forward parts."""
    common = min((row["hidden"] for row in rows), default=0)
    return [row for row in rows if row["design"] in TUNED and row["hidden"] == common]


def complete_seeds(rows: Sequence[Row]) -> list[int]:
    """The seeds that have every setting that occurs in the table: others belong to a sweep that was interrupted.

    >>> complete_seeds([{"design": d, "pairs": 500, "hidden": 128, "seed": s} for d, s in [("fixed", 0), ("single", 0),
    ...                                                                                  ("single", 1)]])
    [0]
    """
    found: dict[int, set[tuple[Any, ...]]] = {}
    for row in TABLE.checked(rows, ("design", "pairs", "hidden", "seed")):
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
    rows = TABLE.checked(rows, ("design", "pairs", "hidden", "seed", *parts))
    smallest = min(row["hidden"] for row in rows)
    runs = [row for row in rows if row["design"] == design and row["pairs"] == pairs
            and (row["hidden"] > smallest) == flag(equal, "equal")]  # fmt: skip
    if not runs:
        raise ValueError(f"pairs, equal: expected a setting of {design} in the table, got {pairs}, {equal}")
    chosen = {row["seed"]: row for row in runs}
    if len(chosen) < len(runs):
        raise ValueError(f"rows: expected one run of {design} for each seed, got {len(runs)} for {len(chosen)} seeds")
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
