"""Figures of the chapter on cost (section 5.1.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from attnmath.cost import attention_operations, layer_operations
from attnmath.derive.cost import crossover
from attnmath.figures.cost import curves_with_crossings
from attnmath.figures.published import Panel, PublishedFigure

WIDTH = 768
#: Width of the layers whose shares are drawn, and their numbers of d x d matrices: those of Q, K and V;
#: with that of the output; with a feed-forward part of width 4 d, whose two matrices have 8 d^2 entries.
WIDE, MATRICES = 4096, {3: "$3/2$", 4: "$2$", 12: "$6$"}


def operations() -> dict[str, Any]:
    """Operations of one layer of width 768 with one head against the length of the sequence, by part."""
    n = np.geomspace(64, 16384, 200)
    layer = layer_operations(n, WIDTH)
    stages = attention_operations(n, WIDTH, WIDTH)
    meeting = float(crossover(sp.Integer(WIDTH)))
    return {
        "x": n,
        "parts": {
            r"$QK^\top,\ \mathrm{Softmax},\ PV$": layer["stages"],
            r"$\mathrm{Softmax}$": stages["softmax"] + stages["scaling"],
            r"$XW_Q,\ XW_K,\ XW_V$": layer["projections"],
        },
        "crossings": {rf"$n^*={meeting:.0f}$": (meeting, layer_operations(meeting, WIDTH)["projections"])},
        "xlabel": "$n$",
        "ylabel": "flop",
        "xscale": "log",
        "yscale": "log",
        "legend_at": (0.62, 1.02),
    }


def shares() -> dict[str, Any]:
    """Share of the three stages in the operations of a layer, against n/d, for 3, 4 and 12 matrices of d^2 entries."""
    ratio = np.geomspace(1 / 16, 64, 200)

    def share(matrices: int) -> Any:
        layer = layer_operations(ratio * WIDE, WIDE, projections=matrices)
        return layer["stages"] / (layer["stages"] + layer["projections"])

    return {
        "x": ratio,
        "parts": {f"${matrices}\\,d^2$": share(matrices) for matrices in MATRICES},
        "crossings": {
            label: (float(crossover(sp.Integer(WIDE), projections=matrices)) / WIDE, 0.5)
            for matrices, label in MATRICES.items()
        },
        "to_the_left": [MATRICES[3]],
        "level": 0.5,
        "xlabel": "$n/d$",
        "ylabel": r"flop$(QK^\top,\ \mathrm{Softmax},\ PV)$ / flop",
        "xscale": "log",
        "legend_at": (0.4, 1.02),
    }


FIGURES = {
    "fig_attention_cost": PublishedFigure(
        (Panel(curves_with_crossings, operations), Panel(curves_with_crossings, shares)), size=(9.2, 4.0)
    )
}
