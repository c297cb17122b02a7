"""Experiments on the article's two examples: the sparsity S of rows f(q.k_j) over Gaussian keys.

With beta = q.mu and gamma = sigma |q| the scores of a row are beta + gamma z with independent standard
normal z, so a row is drawn as f(beta + gamma z).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnmath import estimate
from attnmath.checks import finite, positive, positive_integer, real_array
from attnmath.estimate import Estimate
from attnmath.sparsity import sparsity

#: The functions that the article puts on the scores; softmax takes out the largest score, which S does not notice.
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda scores: np.exp(scores - scores.max(axis=-1, keepdims=True)),
    "relu^2": lambda scores: np.maximum(scores, 0) ** 2,
    "identity": lambda scores: scores,
}


def mean_sparsity(
    activation: str, beta: float, gamma: float, *, n: int = 20_000, rows: int = 200, seed: int = 2
) -> Estimate:
    """Estimate the mean of S over independent rows of n entries f(beta + gamma z).

    activation : "exp", "relu^2" or "identity".  rows : independent rows.

    >>> mean_sparsity("identity", 0.0, 1.0, n=1000, rows=10, seed=0).value.round(2)
    np.float64(0.8)
    """
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation: expected one of {', '.join(ACTIVATIONS)}, got {activation!r}")
    z = _normal(rows, n, seed)
    return estimate.mean(sparsity(ACTIVATIONS[activation](float(beta) + positive(gamma, "gamma") * z)))


def softmax_sparsity(gammas: ArrayLike, *, n: int, rows: int = 100, seed: int = 5) -> Estimate:
    """Estimate the mean of S over softmax rows of n entries, at each gamma, shape of `gammas`.

    The same z serve every gamma, so that a curve over gamma is smooth.
    """
    z = _normal(rows, n, seed)
    grid = np.asarray(finite(real_array(gammas, "gammas", ndim=1), "gammas"), dtype=float)
    return estimate.stack([estimate.mean(sparsity(ACTIVATIONS["exp"](gamma * z))) for gamma in grid])


def log_excess(gamma: float, *, n: int, rows: int = 100, seed: int = 0) -> Estimate:
    """Estimate how far log S of softmax rows of n entries lies above that of the closed form, -gamma^2 / 2."""
    z = _normal(rows, n, seed)
    gamma = positive(gamma, "gamma")
    return estimate.mean(np.log(sparsity(ACTIVATIONS["exp"](gamma * z))) + gamma**2 / 2)


def empty_share(t: float, *, n: int, rows: int = 4000, seed: int = 7) -> Estimate:
    """Estimate the share of rows of squared ReLU that are zero throughout, at t = beta / gamma."""
    weights = ACTIVATIONS["relu^2"](float(t) + _normal(rows, n, seed))
    return estimate.mean((weights == 0).all(axis=-1).astype(float))


def _normal(rows: int, n: int, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal((positive_integer(rows, "rows"), positive_integer(n, "n")))
