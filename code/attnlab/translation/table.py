"""The table of results and the runs that it has; readable without torch."""

from __future__ import annotations

from attnlab.sweeps.tables import Table, Words

#: The designs, the main comparison first, and the numbers of training pairs.
MAIN = ("learned", "fixed", "single", "orthogonal")
EXTRA = ("gaussian", "orthogonal_values", "hybrid", "narrow", "patterns", "alone")
DESIGN_NAMES = MAIN + EXTRA
PAIRS = (500, 1500, 5000, 15000, 50000)
#: Numbers of pairs of the extra designs and of the controls with equally many trained parameters.
EXTRA_PAIRS = (500, 5000)
CONTROLS = ("fixed", "orthogonal", "narrow")
SEEDS = (0, 1, 2, 3, 4)
#: The learning rate of the sweep; the rates that are tried, the designs that they are tried for, the seeds that choose.
RATE = 0.008
RATES = (0.004, RATE, 0.016)
TUNED = ("learned", "fixed", "single", "orthogonal", "narrow", "alone")
TUNED_ON = SEEDS[:2]
PARTS = ("main", "extra", "equal")
ACCURACIES = ("lexical", "agreement", "sense", "long", "end")
#: The table: the settings of a run, what it measured, and where it ran.
TABLE = Table(
    {"design": Words(DESIGN_NAMES), "pairs": int, "seed": int, "hidden": int, "steps": int, "batch": int,
     "rate": float},
    {"parameters": int,
     **dict.fromkeys(("bleu", "exact", "accuracy", *(f"accuracy_{kind}" for kind in ACCURACIES), "bleu_last"), float),
     "best_step": int,
     **dict.fromkeys(("train_best", "validation_best", "train_last", "validation_last", "gradient_cv",
                      "gradient_jitter", "gradient_cosine", "clipped"), float)},
    order=("design", "hidden", "pairs", "seed", "steps", "batch", "rate"),
)  # fmt: skip
