"""Numbers behind the figures of the chapter on decay (the article's part 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnmath import sparsity

RATES = (0.5, 0.9, 0.99, 0.999)


def support_by_length() -> dict[str, Any]:
    """Effective support n S^2 of geometric rows against their length, below the line n."""
    n = np.unique(np.geomspace(1, 10_000, 60).astype(int))
    return {
        "x": n,
        "curves": {rf"$\lambda={rate:g}$": n * sparsity.decay(rate, n) ** 2 for rate in RATES},
        "reference": {"$n$": n},
        "xlabel": "$n$",
        "ylabel": "$nS^2$",
        "xscale": "log",
        "yscale": "log",
        "legend_at": (0.3, 1.0),
    }
