"""The table of results and the runs that it has; readable without torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.sweeps.tables import Table

#: The designs, the main comparison first, and the numbers of training pairs.
MAIN = ("learned", "fixed", "single", "orthogonal")
EXTRA = ("gaussian", "orthogonal_values", "hybrid", "narrow", "patterns", "alone")
DESIGN_NAMES = MAIN + EXTRA
PAIRS = (500, 1500, 5000, 15000, 50000)
#: Numbers of pairs of the extra designs and of the controls with equally many trained parameters.
EXTRA_PAIRS = (500, 5000)
CONTROLS = ("fixed", "orthogonal", "narrow")
SEEDS = (0, 1, 2, 3, 4)
PARTS = ("main", "extra", "equal")
#: Columns of the table: the settings of a run, what it measured, and where it ran.
SETTINGS = ("design", "pairs", "seed", "hidden", "steps", "batch", "rate")
ACCURACIES = ("lexical", "agreement", "sense", "long", "end")
MEASURES = (
    "parameters", "bleu", "exact", "accuracy", *(f"accuracy_{kind}" for kind in ACCURACIES), "bleu_last",
    "best_step", "train_best", "validation_best", "train_last", "validation_last",
    "gradient_cv", "gradient_jitter", "gradient_cosine", "clipped",
)  # fmt: skip
COLUMNS = (*SETTINGS, *MEASURES, "device")
_WHOLE = {"pairs", "seed", "hidden", "steps", "batch", "parameters", "best_step"}


def _parse(name: str, text: str) -> Any:
    if name == "device":
        return text + ""  # None, of a line that was cut short, is no device
    if name == "design":
        if text not in DESIGN_NAMES:
            raise ValueError(text)
        return text
    return int(text) if name in _WHOLE else float(text)


def _place(row: Mapping[str, object]) -> tuple[object, ...]:
    return DESIGN_NAMES.index(str(row["design"])), *(row[name] for name in ("hidden", "pairs", *SETTINGS[2:]))


TABLE = Table(COLUMNS, SETTINGS, _parse, _place)


def read_table(path: str | Path) -> list[dict[str, Any]]:
    """Read the rows of a table; a line that an interruption cut short is left out, and so is a run that occurs twice.

    Raises `ValueError` if the file is not such a table.
    """
    return TABLE.read(path)
