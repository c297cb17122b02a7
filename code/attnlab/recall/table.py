"""The table of results: its columns, and the settings of the shipped one; readable without torch."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attnlab.sweeps.tables import Table, Words, truth
from attnmath.checks import Fixed, number, one_of

#: The attentions under test, in the order of every table and figure.
ATTENTION_NAMES = ("softmax", "relu^2", "elu+1", "identity", "decay")
#: What the fixed parameter of each attention is: its name, and the values tried, from spread rows to concentrated ones.
PARAMETERS: Mapping[str, tuple[str, tuple[float, ...]]] = Fixed({
    "softmax": ("inverse temperature", (0.125, 0.25, 0.5, 1.0, 4.0)),
    "relu^2": ("bias", (8.0, 4.0, 2.0, 0.0, -1.0)),
    "elu+1": ("power of the features", (1.0, 2.0, 4.0, 8.0)),
    "identity": ("power of the score, its sign kept", (1.0, 2.0, 3.0)),
    "decay": ("rate", (0.999, 0.97, 0.9, 0.6, 0.3)),
})  # fmt: skip
#: The article's own forms: no temperature, no bias, no power. (It leaves the rate of decay open.)
STANDARD: Mapping[str, float] = Fixed({"softmax": 1.0, "relu^2": 0.0, "elu+1": 1.0, "identity": 1.0, "decay": 0.9})
#: The table: the settings of a run, what it measured, and where it ran.
TABLE = Table(
    {"attention": Words(ATTENTION_NAMES), "parameter": float, "unit": truth, "pairs": int, "head": int, "width": int,
     "seed": int, "steps": int, "batch": int, "rate": float},
    dict.fromkeys(("validation", "recall", "target", "S", "support"), float),
    order=("attention", "parameter", "unit", "pairs", "head", "width", "seed", "steps", "batch", "rate"),
)  # fmt: skip
#: The designs behind the table `recall`, and the one behind the table `division`.
DESIGNS, DIVISION = ("concentration", "width", "pairs"), "division"
#: The seeds and learning rates that each of their settings gets.
SEEDS, RATES = (0, 1, 2, 3, 4), (0.0027, 0.008, 0.024, 0.072, 0.216, 0.648)


def check_parameter(attention: str, parameter: float) -> float:
    """Return the parameter of an attention if it is one: of softmax and the powers above 0, of decay in (0, 1]."""
    one_of(attention, ATTENTION_NAMES, "attention")
    parameter = number(parameter, "parameter")
    if not math.isfinite(parameter):
        raise ValueError(f"parameter: expected a finite number, got {parameter}")
    if attention != "relu^2" and parameter <= 0:
        raise ValueError(f"parameter: expected a number above 0 for {attention}, got {parameter:g}")
    if attention == "decay" and parameter > 1:
        raise ValueError(f"parameter: expected a rate of decay of at most 1, got {parameter:g}")
    return parameter
