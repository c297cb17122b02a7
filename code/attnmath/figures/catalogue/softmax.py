"""Numbers behind the figures of the chapter on softmax (section 5.1.5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnmath.attention import entropy, jacobian_norm, softmax, softmax_jacobian

#: Rows of scores: a spread, one leader, and a tie of two leaders.
ROWS = {"$(3,2,1,0)$": [3.0, 2.0, 1.0, 0.0], "$(1,0,0,0)$": [1.0, 0.0, 0.0, 0.0], "$(1,1,0,0)$": [1.0, 1.0, 0.0, 0.0]}
TEMPERATURES = np.geomspace(0.04, 40, 241)


def entropy_by_temperature() -> dict[str, Any]:
    """Entropy of softmax(x / T) against T."""
    return {
        "x": TEMPERATURES,
        "curves": {s: [float(entropy(softmax(x, temperature=T))) for T in TEMPERATURES] for s, x in ROWS.items()},
        "xlabel": "$T$",
        "ylabel": "$H(y)$  [nat]",
        "xscale": "log",
        "legend_at": (1.0, 0.5),
    }


def norm_by_temperature() -> dict[str, Any]:
    """Frobenius norm of the Jacobian of softmax(x / T) with respect to x, against T."""
    return {
        "x": TEMPERATURES,
        "curves": {
            s: [float(jacobian_norm(softmax(x, temperature=T))) / T for T in TEMPERATURES] for s, x in ROWS.items()
        },
        "xlabel": "$T$",
        "ylabel": r"$\|\partial y/\partial x\|_F$",
        "xscale": "log",
        "yscale": "log",
    }


def hesitant_jacobian() -> dict[str, Any]:
    """Jacobian at a row with two equal leaders."""
    return {"matrix": softmax_jacobian(softmax([2.0, 2.0, 1.0, 0.0, 0.0, 0.0])), "limit": 0.25}


def saturated_jacobian() -> dict[str, Any]:
    """Jacobian at a row whose leader is four ahead of its rivals."""
    return {"matrix": softmax_jacobian(softmax([8.0, 4.0, 4.0, 0.0, 0.0, 0.0])), "limit": 0.25}
