"""Numbers behind the figures of the chapter on masks (section 5.1.7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnmath.attention import causal_mask, padding_mask, softmax

N, LENGTH = 8, 6


def causal() -> dict[str, Any]:
    """The causal pattern of eight positions."""
    return {"mask": causal_mask(N)}


def padding() -> dict[str, Any]:
    """The padding pattern of a sequence of six tokens among eight positions."""
    return {"mask": np.broadcast_to(padding_mask([LENGTH], N)[0], (N, N))}


def both() -> dict[str, Any]:
    """Both patterns together."""
    return {"mask": causal()["mask"] & padding()["mask"]}


def leak() -> dict[str, Any]:
    """Logarithm of the weight of a masked position beside a visible one of equal score, against -M."""
    sizes = np.linspace(1, 800, 3197)

    def leaked(dtype: Any) -> Any:
        rows = np.stack([np.zeros_like(sizes), -sizes], axis=-1).astype(dtype)
        weights = softmax(rows)[:, 1].astype(float)
        return np.log10(np.where(weights > 0, weights, np.nan))

    formats = {"float64": np.float64, "float32": np.float32, "float16": np.float16}
    return {
        "x": sizes,
        "curves": {name: leaked(dtype) for name, dtype in formats.items()},
        "xlabel": "$-M$",
        "ylabel": r"$\log_{10}P_{ij}$",
        "xscale": "log",
        "legend_at": (0.3, 0.45),
    }
