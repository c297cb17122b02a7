"""Numbers behind the figures of the chapter on associative recall, from the shipped table of the sweep."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from attnmath.recall import results
from attnmath.recall.table import ATTENTION_NAMES
from attnmath.recall.task import VALUES


@cache
def cells() -> list[results.Cell]:
    """The cells of the shipped table, each at its better learning rate."""
    return results.best_cells(results.load_results())


def points(quantity: Callable[[results.Cell], float], chosen: list[results.Cell]) -> dict[str, Any]:
    """Rows (x, recall, low, high) of the chosen cells by attention; cells without rows to measure are left out."""
    found: dict[str, Any] = {}
    for attention in ATTENTION_NAMES:
        rows = []
        for cell in (c for c in chosen if c.attention == attention):
            estimate = results.recall(cell)
            rows.append([quantity(cell), estimate.value, *results.interval(estimate, len(cell.runs))])
        kept = [row for row in rows if np.isfinite(row[0])]
        if kept:
            found[attention] = np.asarray(kept)
    return found


def _mean_concentration(which: int) -> Callable[[results.Cell], float]:
    return lambda cell: float(np.mean([results.concentration(run)[which] for run in cell.runs]))


def by_sparsity() -> dict[str, Any]:
    """Recall against S of the more concentrated layer, all cells."""
    return {"points": points(_mean_concentration(0), cells()), "chance": 1 / VALUES, "xlabel": "$S$"}


def by_support() -> dict[str, Any]:
    """Recall against the effective support of the more concentrated layer, all cells."""
    return {
        "points": points(_mean_concentration(1), cells()),
        "chance": 1 / VALUES,
        "xlabel": "$nS^2$",
        "xscale": "log",
        "legend": None,
    }


def by_pairs(width: int) -> Callable[[], dict[str, Any]]:
    """Recall against the number of pairs for models of one width."""

    def arguments() -> dict[str, Any]:
        chosen = [cell for cell in cells() if cell.width == width]
        return {
            "points": points(lambda cell: cell.pairs, chosen),
            "connected": True,
            "chance": 1 / VALUES,
            "xlabel": "$D$",
            "xscale": "log",
            "ticks": sorted({cell.pairs for cell in chosen}),
            "title": f"$d={width}$",
            "legend": "center" if width == 32 else None,
        }

    return arguments
