"""Numbers behind the figures of the chapter on measuring concentration (the article's first part)."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnmath.attention import entropy, softmax
from attnmath.heads import load_heads
from attnmath.sparsity import effective_support

#: Two rows that S and entropy order differently: 17, 4, 4 and 1, 1, 0, each over its sum.
PEAK, PAIR = np.asarray([0.68, 0.16, 0.16]), np.asarray([0.5, 0.5, 0.0])


def supports() -> dict[str, Any]:
    """Effective support n S^2 and exp(entropy) of random rows of three and of six entries."""
    rng = np.random.default_rng(9889)
    clouds = {}
    for n in (3, 6):
        rows = softmax(rng.normal(0, 2, (400, 1)) * rng.normal(size=(400, n)))
        clouds[f"$n={n}$"] = (effective_support(rows), np.exp(entropy(rows)))
    special = {label: (float(effective_support(row)), float(np.exp(entropy(row))))
               for label, row in ((r"$(\frac{17}{25},\frac{4}{25},\frac{4}{25})$", PEAK),
                                  (r"$(\frac{1}{2},\frac{1}{2},0)$", PAIR))}  # fmt: skip
    return {"clouds": clouds, "special": special, "xlabel": "$nS^2$", "ylabel": "$e^{H}$"}


def trained_supports() -> dict[str, Any]:
    """Mean effective support of the rows of every trained head, shape (6, 12)."""
    return {"values": effective_support(load_heads().weights()).mean(axis=-1), "ylabel": r"$\overline{nS^2}$"}
