"""Attacks on what the chapter on attention without an activation says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, implies, less, rounding
from instances import Array
from scipy import special


def sparsity(a: Array) -> Array:
    """Mean modulus over root mean square of each row, shape (batch,); rows are not zero."""
    a = np.abs(a) / np.abs(a).max(axis=1, keepdims=True)
    return a.mean(axis=1) / np.sqrt((a * a).mean(axis=1))


# No activation ------------------------------------------------------------------------------------------------------


def identity(beta: Array, gamma: Array) -> Array:
    """S of beta + gamma z for a standard normal z."""
    t = beta / gamma
    modulus = np.sqrt(2 / np.pi) * np.exp(-np.minimum(t * t, 1400) / 2) + t * special.erf(t / np.sqrt(2))
    return modulus / np.hypot(1, t)


signed = instances.numbers(size=(1e-3, 1e3), gamma=(1e-3, 1e3)).also(
    beta=lambda rng, size, gamma: size * rng.choice([-1.0, 0.0, 1.0], size=len(size))
)


def at_least(bound, beta, gamma):
    return at_most(bound, identity(beta, gamma), rounding(16, 1))


@attack(
    "theorem-identity-infimum",
    "article/7-bound",
    on=signed,
    wrong={
        "at least 0.8": lambda size, gamma, beta: at_least(0.8, beta, gamma),
        "equality for every mean": lambda size, gamma, beta: equal(
            identity(beta, gamma), np.sqrt(2 / np.pi), rounding(16, 1)
        ),
    },
)
def gaussian_keys_keep_S_above_its_infimum(size, gamma, beta):
    apart = np.abs(beta) > 0.01 * gamma  # nearer to 0 the difference, of order t^4, drowns in rounding
    bound = np.sqrt(2 / np.pi)
    with_equality = implies(beta == 0, equal(identity(beta, gamma), bound, rounding(16, 1)))
    return at_least(bound, beta, gamma) & implies(apart, less(bound, identity(beta, gamma))) & with_equality


def one_key_apart(Q, K, orthogonal=True):
    """S of a row where the first key is the query and all others are orthogonal to it."""
    q = Q[:, 0] / np.linalg.norm(Q[:, 0], axis=1, keepdims=True)
    others = K / np.maximum(np.linalg.norm(K, axis=2, keepdims=True), 1e-300)
    along = np.einsum("bnd,bd->bn", others, q)[:, :, None] * q[:, None]
    keys = np.concatenate([q[:, None], others - along if orthogonal else others], axis=1)
    n = keys.shape[1]
    return equal(sparsity(np.einsum("bnd,bd->bn", keys, q)), 1 / np.sqrt(n), rounding(32 * n * Q.shape[2], 1))


@attack(
    "identity/chosen-keys",
    on=instances.queries_and_keys.such_that(lambda Q, K: (np.abs(Q[:, 0]).max(axis=1) > 1e-30) & (Q.shape[2] > 1)),
    wrong={"the other keys as they are": lambda Q, K: one_key_apart(Q, K, orthogonal=False)},
)
def one_key_along_the_query_makes_a_one_hot_row(Q, K):
    return one_key_apart(Q, K)


# Rows of n scores -----------------------------------------------------------------------------------------------------

rows = instances.vectors.such_that(lambda x: np.abs(x).max(axis=1) > 0).also(
    scale=lambda rng, x: np.exp(rng.uniform(-2, 2, size=len(x))),
    more=lambda rng, x, scale: rng.uniform(0, 0.5, size=len(x)),
)


def one_mean(x, scale, more, one=1.0):
    """A row with S_n <= s has a mean of |a| - s (1 + a^2) / 2 of at most 0."""
    a = np.abs(x) / np.sqrt(np.mean((x / np.abs(x).max(axis=1, keepdims=True)) ** 2, axis=1, keepdims=True))
    a = a / np.abs(x).max(axis=1, keepdims=True) * scale[:, None]
    s = sparsity(x) + more
    size = s * (1 + scale**2)
    return at_most(a.mean(axis=1), s * (one + (a * a).mean(axis=1)) / 2, rounding(16 * x.shape[1], size))


@attack(
    "theorem-identity-rows",
    on=rows,
    wrong={"the forgotten 1": lambda x, scale, more: one_mean(x, scale, more, one=0.0)},
)
def a_sparse_row_has_a_mean_below_zero(x, scale, more):
    return one_mean(x, scale, more)


levels = instances.numbers(t=(1e-3, 30)).also(
    s=lambda rng, t: np.sqrt(2 / np.pi) * rng.uniform(0, 1, size=len(t)) * rng.choice([0, 1, 1], size=len(t))
)


def variance_of_X(t, s):
    """The variance of |a| - s a^2 / 2 for a = (t + z) / sqrt(1 + t^2), by the moments of the normal law."""
    r = np.hypot(1, t)
    decay, error = np.sqrt(2 / np.pi) * np.exp(-t * t / 2), special.erf(t / np.sqrt(2))
    first, third = decay + t * error, (t * t + 2) * decay + (t**3 + 3 * t) * error
    covariance = third / r**3 - first / r
    return 1 - (first / r) ** 2 + s * s / 4 * (2 + 4 * t * t) / r**4 - s * covariance


@attack(
    "theorem-identity-rows",
    on=levels,
    wrong={
        "the part of the modulus is forgotten": lambda t, s: at_most(variance_of_X(t, s), 1 / np.pi, 1e-12),
    },
)
def the_variance_is_below_its_bound(t, s):
    return at_most(variance_of_X(t, s), 1 - 1 / np.pi, 1e-12)
