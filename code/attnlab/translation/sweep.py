"""The runs of the experiment, and the sweep that carries them out; see `attnlab.sweeps.runs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnlab.sweeps import runs
from attnlab.sweeps.tables import Row
from attnlab.translation.designs import HIDDEN, equal_hidden
from attnlab.translation.results import CHOICES, chosen_rates
from attnlab.translation.table import (
    CONTROLS,
    EXTRA,
    EXTRA_PAIRS,
    MAIN,
    PAIRS,
    PARTS,
    RATE,
    RATES,
    SEEDS,
    TABLE,
    TUNED,
    TUNED_ON,
)
from attnlab.translation.training import Settings, run
from attnmath.checks import non_negative_integer, one_of, positive_integer

SWEEP = runs.Sweep(run, Settings, TABLE)


def grid(
    parts: Sequence[str] = PARTS, pairs: Sequence[int] = PAIRS, seeds: Sequence[int] = SEEDS, **fixed: Any
) -> list[Settings]:
    """Every run of the parts, seed by seed; `fixed` goes to `Settings` as it is.

    main : the four designs of the comparison at each number of pairs.
    extra : the other six at `EXTRA_PAIRS`, as far as these are among the pairs.
    equal : designs with fewer trained parameters, there too, the encoder's feed-forward parts widened until the numbers
        of trained parameters are equal.

    >>> len(grid(["main"])), len(grid())
    (100, 190)
    """
    runs.each("parts", parts, lambda value, name: one_of(value, PARTS, name))
    runs.each("pairs", pairs, positive_integer)
    runs.each("seeds", seeds, non_negative_integer)
    few = [n for n in pairs if n in EXTRA_PAIRS]
    plan = {
        "main": [(design, n, HIDDEN) for n in pairs for design in MAIN],
        "extra": [(design, n, HIDDEN) for n in few for design in EXTRA],
        "equal": [(design, n, equal_hidden(design)) for n in few for design in CONTROLS],
    }
    return [Settings(design, n, seed, hidden, **fixed)
            for seed in seeds for part in parts for design, n, hidden in plan[part]]  # fmt: skip


def rate_grid(pairs: Sequence[int] = PAIRS, **fixed: Any) -> list[Settings]:
    """The designs of `TUNED` at the learning rates that the sweep lacks, with the seeds that choose among them.

    >>> len(rate_grid())
    96
    """
    return _tuned(pairs, TUNED_ON, **fixed)


def own_rate_grid(
    rows: Sequence[Row], pairs: Sequence[int] = PAIRS, seeds: Sequence[int] = SEEDS, **fixed: Any
) -> list[Settings]:
    """The runs that the sweep lacks of the designs of `TUNED`, each at the learning rates that a table chooses for it.

    rows : the sweep's table and that of `rate_grid`. Each of `results.CHOICES` chooses a rate.
    """
    chosen = [chosen_rates(rows, by) for by in CHOICES]
    return [run for run in _tuned(pairs, seeds, **fixed)
            if run.rate in [rates.get((run.design, run.pairs)) for rates in chosen]]  # fmt: skip


def _tuned(pairs: Sequence[int], seeds: Sequence[int], **fixed: Any) -> list[Settings]:
    """The designs of `TUNED` at every rate but that of the sweep."""
    others = [rate for rate in RATES if rate != RATE]
    runs_of = [run for rate in others for run in grid(["main", "extra"], pairs, seeds, rate=rate, **fixed)]
    return [run for run in runs_of if run.design in TUNED]
