"""Numbers behind the figures of the chapter on rank (section 5.5.2), from the trained heads."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from attnmath import rank
from attnmath.attention import softmax
from attnmath.figures.catalogue.spectrum import weights
from attnmath.heads import load_heads

#: Heads of a low, a middle and the last layer, counted from 0.
EXAMPLES = ((0, 2), (2, 3), (5, 11))


@cache
def singular_values() -> Any:
    """Singular values of the 72 heads on the passage, shape (6, 12, n)."""
    return rank.singular_values(weights())


def singular_values_by_layer() -> dict[str, Any]:
    """Quartiles over the heads of a layer of the singular values, relative to the largest."""
    relative = singular_values() / singular_values()[..., :1]
    quartiles = np.quantile(relative, [0.25, 0.5, 0.75], axis=1)
    return {
        "bands": {f"$\\ell={layer + 1}$": quartiles[:, layer] for layer in range(len(relative))},
        "mark": load_heads().d_k,
        "xlabel": "$i$",
        "ylabel": r"$\sigma_i/\sigma_1$",
    }


def entropy_ranks() -> dict[str, Any]:
    """Entropy rank of every head, shape (6, 12)."""
    return {
        "values": rank.entropy_rank(singular_values()),
        "bounds": (load_heads().d_k,),
        "ylabel": r"$e^{H(\sigma)}$",
    }


def entropy_rank_by_temperature() -> dict[str, Any]:
    """Entropy rank of three heads against the temperature of their softmax."""
    T = np.geomspace(0.05, 50, 25)
    scores = load_heads().scores()

    def ranks(which: tuple[int, int]) -> Any:
        A = np.stack([softmax(scores[which], temperature=t) for t in T])
        return rank.entropy_rank(rank.singular_values(A))

    return {
        "x": T,
        "curves": {f"$\\ell={which[0] + 1},\\ h={which[1] + 1}$": ranks(which) for which in EXAMPLES},
        "xlabel": "$T$",
        "ylabel": r"$e^{H(\sigma)}$",
        "xscale": "log",
        "yscale": "log",
    }
