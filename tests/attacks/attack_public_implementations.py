"""Attacks on what the chapter on public implementations says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, less, no_attack, rounding
from instances import Array
from scipy import special

EPSILON = 1e-4
_PROJECTIONS = np.random.default_rng(2).standard_normal((5, 8))


def features(X: Array, epsilon: float = EPSILON) -> Array:
    """Features of a query, each row of X one, by the formula of the chapter."""
    dash = X @ _PROJECTIONS[:, : X.shape[1]].T
    return np.exp(dash - (X**2).sum(axis=1, keepdims=True) / 2 - dash.max(axis=1, keepdims=True)) + epsilon


def between(x: Array, half: float = 0.5):
    found = features(x)
    top = EPSILON + np.exp(-half * (x**2).sum(axis=1))
    return at_most(np.full(len(x), EPSILON), found.min(axis=1), 1e-18) & at_most(found.max(axis=1), top, 1e-15)


short = instances.numbers(a=(1e-3, 6.0), b=(1e-3, 6.0)).map(
    "x", lambda a, b: (np.stack([a * np.sign(np.sin(1e6 * b)), b, a - b], axis=1),)
)


@attack("public/epsilon", on=short, wrong={"the square not halved": lambda x: between(x, half=1.0)})
def a_feature_lies_between_epsilon_and_the_bound(x):
    return between(x)


def nearly_equal_weights(length: Array, key: Array, share: float = 100.0):
    """Weights of two keys for a long query, against those of a query whose features are all equal."""
    least = np.sqrt(2 * np.log(share / EPSILON))
    x = (least * (1 + length))[:, None] * np.array([[0.6, 0.8]])
    F_q = features(x)
    key_features = np.abs(np.sin(np.outer(1 + 1e3 * key, np.arange(1, 11)))).reshape(-1, 2, 5) + EPSILON
    weights = np.einsum("bf,bkf->bk", F_q, key_features)
    flat = key_features.sum(axis=2)
    ratio = (weights / weights.sum(axis=1, keepdims=True)) / (flat / flat.sum(axis=1, keepdims=True))
    return at_most(np.abs(np.log(ratio)).max(axis=1), np.log(1.01), 1e-12)


@attack(
    "public/epsilon",
    on=instances.numbers(length=(1e-6, 1.0), key=(1e-3, 1.0)),
    wrong={"a hundred times shorter in the feature": lambda length, key: nearly_equal_weights(length, key, share=1.0)},
)
def beyond_the_limit_the_weights_depend_on_the_keys_alone(length, key):
    return nearly_equal_weights(length, key)


def second(c: Array, epsilon: float = EPSILON) -> Array:
    keys = np.stack([np.zeros_like(c), np.ones_like(c), c], axis=1)
    found = np.exp(keys - keys**2 / 2 - keys.max(axis=1, keepdims=True)) + epsilon
    return found[:, 1] / (found[:, 0] + found[:, 1] + 1e-6)


futures = instances.numbers(a=(1.0, 12.0), b=(0.1, 4.0)).map("early later", lambda a, b: (a, a + b))


@attack(
    "public/future",
    on=futures,
    wrong={"the future hidden": lambda early, later: equal(second(early), second(later), 1e-12)},
)
def a_longer_third_key_lowers_the_second_output(early, later):
    return less(second(later), second(early))


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(120)


def one_sign(z: Array, factor: float = 2.0):
    top = np.maximum(z, 0) + 12
    t = top[:, None] * (_NODES + 1) / 2
    mean = np.exp(z[:, None] * t - t**2 / 2 - z[:, None] ** 2 / 2) @ _WEIGHTS * top / np.sqrt(2 * np.pi)
    return equal(mean, factor * special.ndtr(z), 1e-9)


@attack(
    "public/signs",
    on=instances.numbers(a=(1e-3, 5.0), b=(1e-3, 5.0)).map("z", lambda a, b: (a - b,)),
    wrong={"both signs": lambda z: one_sign(z, factor=1.0)},
)
def the_mean_with_one_sign_has_the_factor(z):
    return one_sign(z)


def padded(n: Array, p: Array, forgotten: bool = False):
    sums = n / (n + (0 if forgotten else p))
    scores = np.where(np.arange(40) < (n + p)[:, None], 0.0, -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return equal(np.where(np.arange(40) < n[:, None], weights, 0).sum(axis=1), sums, rounding(50, 1.0))


@attack(
    "public/padding",
    on=instances.numbers(x=(1.0, 20.0), y=(1.0, 20.0)).map("n p", lambda x, y: (np.floor(x), np.floor(y))),
    wrong={"zeros without weight": lambda n, p: padded(n, p, forgotten=True)},
)
def zeros_take_their_share(n, p):
    return padded(n, p)


def row_sums(x: Array, y: Array, power: float = 0.5):
    d = 3
    q = np.stack([x, y, x - y], axis=1)
    k = np.stack([np.stack([y, x * y, x], axis=1), np.stack([x, y - x, y], axis=1)], axis=1)
    phi_q = np.exp(q - q.max(axis=1, keepdims=True))
    phi_q = phi_q / phi_q.sum(axis=1, keepdims=True)
    phi_k = np.exp(k - k.max(axis=1, keepdims=True))
    phi_k = phi_k / phi_k.sum(axis=1, keepdims=True)
    return equal(np.einsum("bd,bnd->b", phi_q, phi_k) / np.sqrt(d), d**-power, rounding(100, 1.0))


@attack(
    "public/scale",
    on=instances.numbers(x=(1e-3, 5.0), y=(1e-3, 5.0)),
    wrong={"a sum of 1": lambda x, y: row_sums(x, y, power=0.0)},
)
def rows_sum_to_the_root_of_d(x, y):
    return row_sums(x, y)


no_attack("public/contrast", because="measured: It reports the stored weights of one head.")
no_attack("public/features", because="measured: It reports the stored errors on the heads that judge.")
