"""Experiments on the article's two examples: the sparsity S of rows f(q.k_j) over Gaussian keys.

With beta = q.mu and gamma = sigma |q| the scores of a row are beta + gamma z with independent standard
normal z, so a row is drawn as f(beta + gamma z).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Real

from attnlab.experiments.arguments import several
from attnmath import estimate
from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import fits_memory, floats, non_negative_integer, one_of, positive, positive_integer
from attnmath.estimate import Estimate
from attnmath.sparsity import sparsity

#: The functions that the article puts on the scores; softmax takes out the largest score, which S does not notice.
ACTIVATIONS: dict[str, Callable[[Float[Numpy, "rows n"]], Float[Numpy, "rows n"]]] = {
    "exp": lambda scores: np.exp(scores - scores.max(axis=1, keepdims=True)),
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
    activation = one_of(activation, ACTIVATIONS, "activation")
    beta, gamma = float(floats(beta, "beta", ndim=0)), positive(gamma, "gamma")
    weights = ACTIVATIONS[activation](_scores(beta, gamma, _normal(rows, n, seed), "beta, gamma"))
    if not np.all(np.any(weights != 0, axis=1)):
        raise ValueError(f"beta, gamma: expected rows that are not all zero, got one at beta = {beta}, gamma = {gamma}")
    return estimate.mean(sparsity(weights))


def softmax_sparsity(gammas: Real[ArrayLike, "N"], *, n: int, rows: int = 100, seed: int = 5) -> Estimate:
    """Estimate the mean of S over softmax rows of n entries, at each gamma.

    The same z serve every gamma, so that a curve over gamma is smooth.
    """
    z = _normal(rows, n, seed)
    grid = floats(gammas, "gammas", ndim=1)
    return estimate.stack(
        [estimate.mean(sparsity(ACTIVATIONS["exp"](_scores(0.0, gamma, z, "gammas")))) for gamma in grid]
    )


def log_excess(gamma: float, *, n: int, rows: int = 100, seed: int = 0) -> Estimate:
    """Estimate how far log S of softmax rows of n entries lies above that of the closed form, -gamma^2 / 2."""
    z = _normal(rows, n, seed)
    gamma = positive(gamma, "gamma")
    return estimate.mean(np.log(sparsity(ACTIVATIONS["exp"](_scores(0.0, gamma, z, "gamma")))) + gamma**2 / 2)


def empty_share(t: float, *, n: int, rows: int = 4000, seed: int = 7) -> Estimate:
    """Estimate the share of rows of squared ReLU that are zero throughout, at t = beta / gamma."""
    weights = ACTIVATIONS["relu^2"](_scores(float(floats(t, "t", ndim=0)), 1.0, _normal(rows, n, seed), "t"))
    return estimate.mean((weights == 0).all(axis=1).astype(float))


#: Scores beyond it would overflow in their squares, and in the sums of these.
_LARGEST = 1e75


def _scores(beta: float, gamma: float, z: np.ndarray, names: str) -> np.ndarray:
    """Return beta + gamma z."""
    if max(abs(beta), abs(gamma)) > _LARGEST:
        raise ValueError(f"{names}: expected scores of at most {_LARGEST:g} in modulus, got {beta:g} + {gamma:g} z")
    return beta + gamma * z


def _normal(rows: int, n: int, seed: int) -> np.ndarray:
    shape = several(rows, "rows"), positive_integer(n, "n")
    fits_memory("rows, n", *shape)
    return np.random.default_rng(non_negative_integer(seed, "seed")).standard_normal(shape)
