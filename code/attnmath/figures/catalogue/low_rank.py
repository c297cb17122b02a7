"""Numbers behind the figures of the chapter on what low rank buys and costs (section 5.5.3)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from attnmath import rank
from attnmath.attention import softmax
from attnmath.depth import attention_stack, relative_residual
from attnmath.figures.catalogue.rank import EXAMPLES
from attnmath.heads import load_heads

#: Random networks behind the figure of rank collapse: seeds, tokens and width, key width, layers.
SEEDS, TOKENS, KEY_WIDTH, DEPTH = 20, 32, 8, 10


def condition_by_temperature() -> dict[str, Any]:
    """Condition number of three heads, and of two tokens that prefer themselves, against temperature."""
    T = np.geomspace(0.05, 50, 25)
    scores = load_heads().scores()
    limit = 1 / np.finfo(float).eps

    def condition(S: Any) -> Any:
        return np.minimum([rank.condition_number(softmax(S, temperature=t)) for t in T], limit)

    heads = {f"$\\ell={layer + 1},\\ h={head + 1}$": condition(scores[layer, head]) for layer, head in EXAMPLES}
    return {
        "x": T,
        "curves": heads | {"$S=I_2$": condition(np.eye(2))},
        "reference": {r"$1/\varepsilon$": np.full_like(T, limit)},
        "xlabel": "$T$",
        "ylabel": r"$\kappa(A)$",
        "xscale": "log",
        "yscale": "log",
        "legend_at": (0.66, 0.93),
    }


@cache
def residuals(skip: bool) -> Any:
    """Relative residual after each of `DEPTH` layers in `SEEDS` random networks, shape (SEEDS, DEPTH)."""
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(TOKENS, TOKENS))
        layers = attention_stack(X, d_k=KEY_WIDTH, depth=DEPTH, rng=rng, skip=skip)
        found.append([relative_residual(after) for after in layers][1:])
    return np.asarray(found)


def collapse() -> dict[str, Any]:
    """Quartiles of the residual by layer, without and with a skip connection."""
    quartiles = {label: np.quantile(residuals(skip), [0.25, 0.5, 0.75], axis=0)
                 for label, skip in ((r"$X\leftarrow AXW$", False), (r"$X\leftarrow X+AXW$", True))}  # fmt: skip
    return {"bands": quartiles, "xlabel": r"$\ell$", "ylabel": r"$\|X-\mathbf{1}\bar{x}^{\top}\|_F\,/\,\|X\|_F$"}
