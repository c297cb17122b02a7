"""The grid of runs, and the sweep that carries them out; see `attnlab.sweeps.runs`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from attnlab.recall.table import ATTENTION_NAMES, DESIGNS, DIVISION, PARAMETERS, RATES, SEEDS, STANDARD, TABLE
from attnlab.recall.training import Settings, run
from attnlab.sweeps import runs
from attnmath.checks import non_negative_integer, one_of, positive

SWEEP = runs.Sweep(run, Settings, TABLE)


def grid(
    designs: Sequence[str] = DESIGNS,
    attentions: Sequence[str] = ATTENTION_NAMES,
    seeds: Sequence[int] = SEEDS,
    rates: Sequence[float] = RATES,
    **fixed: Any,
) -> list[Settings]:
    """Every setting of the designs, for each seed and learning rate; `fixed` goes to `Settings` as it is.

    concentration : each attention at each of its parameters (`PARAMETERS`), queries and keys of fixed length.
    width : the standard forms at four widths of the head in one model, and at three widths of the model with one head.
    pairs : the standard forms at three numbers of pairs.
    division : softmax of q.k / sqrt(d_k) and of q.k (inverse temperature sqrt(d_k)), at three widths of the head.

    A setting that two designs share occurs once.

    >>> len(grid(["concentration"])), len(grid())
    (660, 1710)
    >>> len(grid(["division"]))
    180
    """
    runs.each("designs", designs, lambda value, name: one_of(value, (*DESIGNS, DIVISION), name))
    runs.each("attentions", attentions, lambda value, name: one_of(value, ATTENTION_NAMES, name))
    runs.each("seeds", seeds, non_negative_integer)
    runs.each("rates", rates, positive)
    wanted = [(attention, *setting) for design in designs for attention in attentions
              for setting in _settings_of(design, attention)]  # fmt: skip
    return [Settings(*setting, seed, rate=rate, **fixed)
            for setting in dict.fromkeys(wanted) for seed, rate in product(seeds, rates)]  # fmt: skip


def _settings_of(design: str, attention: str) -> list[tuple[float, bool, int, int, int]]:
    """Return parameter, unit, pairs, head and width of one attention in one design."""
    standard = STANDARD[attention]
    if design == "concentration":
        return [(parameter, True, 16, 8, 32) for parameter in PARAMETERS[attention][1]]
    if design == "pairs":
        return [(standard, False, pairs, 8, 32) for pairs in (4, 8, 16)]
    if design == DIVISION:
        heads = (16, 64, 256) if attention == "softmax" else ()
        return [(parameter, False, 8, head, 32) for head in heads for parameter in (1.0, math.sqrt(head))]
    if attention == "decay":  # its weights depend on neither queries nor keys
        return []
    sizes = [(head, 32) for head in (4, 8, 16, 32)] + [(8, width) for width in (16, 64)]
    return [(standard, False, 16, head, width) for head, width in sizes]
