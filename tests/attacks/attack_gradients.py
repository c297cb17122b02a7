"""Attacks on what the chapter on gradients says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding, true
from instances import entries, moderate, softmax

# Gradients ----------------------------------------------------------------------------------------------------------

gentle = (
    instances.inputs.such_that(moderate(3))
    .also(G=lambda rng, X, W_Q, W_K, W_V: rng.normal(size=(*X.shape[:2], W_V.shape[2])))
)  # fmt: skip


def forward(X, W_Q, W_K, W_V, scale=None):
    factor = 1 / np.sqrt(W_Q.shape[2]) if scale is None else scale
    P = softmax(factor * (X @ W_Q) @ (X @ W_K).swapaxes(1, 2))
    return P, P @ (X @ W_V)


def pulled_back(X, W_Q, W_K, W_V, G, scale=None, mean=1.0):
    """dL/dW_Q, dL/dW_K, dL/dW_V and dL/dQ by the theorem, written out here."""
    factor = 1 / np.sqrt(W_Q.shape[2]) if scale is None else scale
    P, _ = forward(X, W_Q, W_K, W_V, scale)
    M = G @ (X @ W_V).swapaxes(1, 2)
    D = P * (M - mean * (P * M).sum(axis=2, keepdims=True))
    dQ, dK = factor * D @ (X @ W_K), factor * D.swapaxes(1, 2) @ (X @ W_Q)
    T = X.swapaxes(1, 2)
    return T @ dQ, T @ dK, T @ (P.swapaxes(1, 2) @ G), dQ


def directional(X, W_Q, W_K, W_V, G, mean=1.0):
    """The slope of the loss along the closed form's own direction and along a fixed one, by central differences."""
    h = 1e-4
    found = pulled_back(X, W_Q, W_K, W_V, G, mean=mean)[:3]
    weights = (W_Q, W_K, W_V)
    verdict = true(np.full(len(X), True))
    for place in range(3):
        shape = weights[place].shape[1:]
        step = np.cos(np.arange(np.prod(shape))).reshape(shape)
        at = [(w + h * step if k == place else w, w - h * step if k == place else w) for k, w in enumerate(weights)]
        ahead, behind = ((G * forward(X, *(pair[side] for pair in at))[1]).sum(axis=(1, 2)) for side in (0, 1))
        size = 1 + np.abs(X).sum(axis=(1, 2)) * sum(np.abs(w).sum(axis=(1, 2)) for w in weights)
        loss_size = np.abs(G).sum(axis=(1, 2)) * (1 + size)
        slope = (found[place] * step).sum(axis=(1, 2))
        # The third derivative is bounded by the cube of the sizes; rounding is divided by the step.
        slack = 4 * h**2 * loss_size * (1 + size) ** 3 + rounding(256, loss_size * size) / h
        verdict = verdict & equal((ahead - behind) / (2 * h), slope, slack)
    return verdict


small = gentle.such_that(
    lambda X, W_Q, W_K, W_V, G: (
        np.max([np.abs(a).reshape(len(X), -1).sum(axis=1) for a in (X, W_Q, W_K, W_V)], axis=0) < 8
    )
)


@attack(
    "theorem-gradients-of-attention",
    "gradients/matrix-form",
    "gradients/autograd",
    on=small,
    wrong={"the row mean forgotten": lambda *given: directional(*given, mean=0.0)},
)
def the_closed_forms_are_the_slopes(X, W_Q, W_K, W_V, G):
    return directional(X, W_Q, W_K, W_V, G)


def covariance(X, W_Q, W_K, W_V, G, factor=1.0):
    P, _ = forward(X, W_Q, W_K, W_V)
    K, M = X @ W_K, G @ (X @ W_V).swapaxes(1, 2)
    centred = K[:, None] - (P @ K)[:, :, None]
    cov = np.einsum("bij,bij,bija->bia", P, M - (P * M).sum(axis=2, keepdims=True), centred)
    found = pulled_back(X, W_Q, W_K, W_V, G)[3]
    size = np.abs(M).max(axis=(1, 2)) * np.abs(K).max(axis=(1, 2))
    return equal(found, factor * cov / np.sqrt(W_Q.shape[2]), rounding(64 * (X.shape[1] + 4), size))


@attack(
    "theorem-gradient-is-covariance",
    on=gentle,
    wrong={"twice the covariance": lambda *given: covariance(*given, factor=2.0)},
)
def the_gradient_is_a_covariance(X, W_Q, W_K, W_V, G):
    return covariance(X, W_Q, W_K, W_V, G)


def flattened(X, W_Q, W_K, W_V, G, order="bij,kl->bikjl"):
    """vec(E) (X kron I) against vec(X^T E), rows first, for E of the shape of Q."""
    E = X @ W_Q
    eye = np.eye(E.shape[2])
    kron = np.einsum(order, X, eye).reshape(len(X), E.shape[1] * E.shape[2], -1)
    chain = E.reshape(len(X), 1, -1) @ kron
    size = np.abs(E).sum(axis=(1, 2)) * np.abs(X).sum(axis=(1, 2))
    return equal(chain[:, 0], (X.swapaxes(1, 2) @ E).reshape(len(X), -1), rounding(64, size))


@attack(
    "gradients/kronecker",
    "5.1.8/chain-rule",
    on=gentle,
    wrong={"the factors exchanged": lambda *given: flattened(*given, order="bij,kl->bkilj")},
)
def the_flattened_chain_is_a_product(X, W_Q, W_K, W_V, G):
    return flattened(X, W_Q, W_K, W_V, G)


rows_and_gradients = instances.probability_rows.also(dP=lambda rng, p: entries(rng, len(p), p.shape[1:]))


def shrinks(p, dP, share):
    dS = p * (dP - (p * dP).sum(axis=1, keepdims=True))
    before = np.linalg.norm(dP, axis=1)
    return at_most(np.linalg.norm(dS, axis=1), share * before, rounding(32 * p.shape[1], before))


@attack("gradients/half", on=rows_and_gradients,
        wrong={"to a quarter": lambda p, dP: shrinks(p, dP, 0.25)})  # fmt: skip
def the_softmax_halves_a_gradient(p, dP):
    return shrinks(p, dP, 0.5)


def absorbed(X, W_Q, W_K, W_V, G, growth):
    d_k = W_Q.shape[2]
    new = W_Q / np.sqrt(d_k)
    with_it, without = pulled_back(X, W_Q, W_K, W_V, G)[0], pulled_back(X, new, W_K, W_V, G, scale=1.0)[0]
    one, other = forward(X, W_Q, W_K, W_V)[1], forward(X, new, W_K, W_V, scale=1.0)[1]
    norms = [np.abs(a).sum(axis=(1, 2)) for a in (X, W_Q, W_K, W_V)]
    largest = (1 + norms[0] ** 2 * norms[1] * norms[2]) * (1 + norms[0] * norms[3])
    size = largest * np.abs(G).sum(axis=(1, 2)) * (1 + norms[0] ** 2 * norms[2])
    return equal(without, growth(d_k) * with_it, rounding(256, size)) & equal(one, other, rounding(256, largest))


@attack(
    "gradients/absorbed",
    on=gentle,
    wrong={"the same gradient": lambda *given: absorbed(*given, lambda d_k: 1.0)},
)
def the_division_is_a_change_of_variables(X, W_Q, W_K, W_V, G):
    return absorbed(X, W_Q, W_K, W_V, G, np.sqrt)


# Rows that are close ------------------------------------------------------------------------------------------------

near = instances.probability_rows.also(
    y=lambda rng, p: rng.normal(size=p.shape),
    z=lambda rng, p, y: rng.normal(size=p.shape),
    eps=lambda rng, p, y, z: 2.0 ** rng.uniform(-10, 0, size=len(p)),
)


def nearly_constant(p, y, z, eps, power):
    def cov(u, w):
        return (p * u * w).sum(axis=1) - (p * u).sum(axis=1) * (p * w).sum(axis=1)

    value, key = 3 + eps[:, None] * y, -2 + eps[:, None] * z
    return equal(cov(value, key), eps**power * cov(y, z), rounding(64, 10 + np.abs(y).max(1) * np.abs(z).max(1)))


@attack(
    "5.1.8/any-depth",
    on=near,
    wrong={"one power too few": lambda p, y, z, eps: nearly_constant(p, y, z, eps, 1)},
)
def a_covariance_of_nearly_constant_variables(p, y, z, eps):
    return nearly_constant(p, y, z, eps, 2)


spreading = (
    instances.inputs.such_that(moderate(2))
    .such_that(lambda X, W_Q, W_K, W_V: np.full(len(X), X.shape[2] <= 3))
    .also(c=lambda rng, X, W_Q, W_K, W_V: rng.uniform(-1, 1, size=(len(X), 1, X.shape[2])))
)


def cubed(X, W_Q, W_K, W_V, c, means=1.0, eps=2.0**-10):
    """Gaps over the cube of the spread, the next order taken out by a second spread, against the leading term."""

    def gaps(step):
        out = forward(c + step * X, W_Q, W_K, W_V)[1]
        return (out - out[:, :1]) / step**3

    mean = X.mean(axis=1, keepdims=True)
    C = X.swapaxes(1, 2) @ X / X.shape[1] - means * mean.swapaxes(1, 2) @ mean
    leading = (X - X[:, :1]) @ W_Q @ W_K.swapaxes(1, 2) @ C @ W_V / np.sqrt(W_Q.shape[2])
    x, v = sizes(X, c), np.abs(W_V).sum(axis=(1, 2))
    bilinear = x**2 * np.abs(W_Q).sum(axis=(1, 2)) * np.abs(W_K).sum(axis=(1, 2))
    slack = 64 * eps**2 * bilinear * (1 + bilinear) ** 2 * x * v
    return equal(2 * gaps(eps) - gaps(2 * eps), leading, slack + rounding(256, x * v * (1 + bilinear)) / eps**3)


def sizes(X, c):
    return np.abs(X).sum(axis=(1, 2)) + np.abs(c).sum(axis=(1, 2))


mild = spreading.such_that(
    lambda X, W_Q, W_K, W_V, c: sizes(X, c) ** 2 * np.abs(W_Q).sum(axis=(1, 2)) * np.abs(W_K).sum(axis=(1, 2)) < 30
)


@attack("theorem-cubic", "gradients/cubic", "5.1.8/any-depth", on=mild,
        wrong={"the means not subtracted": lambda *given: cubed(*given, means=0.0)})  # fmt: skip
def attention_cubes_the_spread(X, W_Q, W_K, W_V, c):
    return cubed(X, W_Q, W_K, W_V, c)


no_attack(
    "gradients/length",
    "5.1.8/any-length",
    because="exact: both laws are derived for symbolic lengths and widths, and drawn rows agree with them.",
)
