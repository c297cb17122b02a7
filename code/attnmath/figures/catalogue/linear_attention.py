"""Numbers behind the figures of the chapter on linear attention (the article's parts 5 and 6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnmath import sparsity

BETAS = (0.0, 0.5, 1.0, 2.0, 4.0)
#: Noise to signal of one key feature in the figure of widths.
NOISE = (1.0, 3.0, 10.0)


def identity_curves() -> dict[str, Any]:
    """S of identity attention against gamma for several beta, over its infimum; the article's figure."""
    gamma = np.linspace(0.02, 6, 300)
    return {
        "x": gamma,
        "curves": {rf"$\beta={beta:g}$": sparsity.identity(beta, gamma) for beta in BETAS},
        "reference": {r"$\sqrt{2/\pi}$": np.full_like(gamma, np.sqrt(2 / np.pi))},
        "xlabel": r"$\gamma$",
        "ylabel": "$S$",
        "legend_at": (1.0, 0.98),
    }


def sparsity_by_width() -> dict[str, Any]:
    """S of non-negative linear attention against d, for a query with equal features and for a one-hot one."""
    d = np.asarray([1, 2, 4, 8, 16, 32, 64, 128])
    found = {}
    for noise in NOISE:
        found[rf"$\tilde\sigma/\tilde\mu={noise:g}$"] = [sparsity.linear_independent(np.ones(k), 1.0, noise) for k in d]
    one_hot = [sparsity.linear_independent([1.0], 1.0, NOISE[-1])] * len(d)
    return {
        "x": d,
        "curves": found,
        "reference": {rf"$\tilde{{q}}=e_1,\ \tilde\sigma/\tilde\mu={NOISE[-1]:g}$": one_hot},
        "xlabel": "$d$",
        "ylabel": "$S$",
        "xscale": "log",
        "legend_at": (1.0, 0.45),
    }
