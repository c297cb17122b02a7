"""The array libraries that one definition must serve, each with its own way to make an array."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from attnmath.operator.attention import softmax


@cache
def torch_or_skip() -> Any:
    """Return torch, or skip the test where the optional library is not installed."""
    return pytest.importorskip(
        "torch", reason="torch is optional: install attention-checked[torch] to test this backend"
    )


def make(backend: str, values: Any, dtype: str = "float64") -> Any:
    """Make an array of the backend from nested lists or a numpy array."""
    values = np.asarray(values)
    if backend == "numpy":
        return values.astype(dtype)
    torch = torch_or_skip()
    return torch.asarray(values).to(getattr(torch, dtype))


both_backends = pytest.mark.parametrize("backend", ["numpy", "torch"])


def stochastic(n: int, seed: int, spread: float = 2.0) -> np.ndarray:
    """Return a positive row-stochastic matrix, shape (n, n)."""
    return softmax(spread * np.random.default_rng(seed).standard_normal((n, n)))
