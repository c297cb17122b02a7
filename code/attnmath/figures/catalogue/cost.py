"""Numbers behind the figures of the chapter on cost (section 5.1.6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnmath.cost import attention_operations, projection_operations

WIDTH = 768


def operations() -> dict[str, Any]:
    """Operations of one layer of width 768 against the length of the sequence, by part."""
    n = np.geomspace(64, 16384, 200)
    stages = attention_operations(n, WIDTH, WIDTH)
    return {
        "x": n,
        "curves": {
            r"$QK^\top,\ PV$": stages["scores"] + stages["values"],
            r"$\mathrm{Softmax}$": stages["softmax"] + stages["scaling"],
            r"$XW_Q,\ XW_K,\ XW_V$": 3 * projection_operations(n, WIDTH, WIDTH),
        },
        "xlabel": "$n$",
        "ylabel": "flop",
        "xscale": "log",
        "yscale": "log",
        "legend_at": (0.4, 1.0),
    }
