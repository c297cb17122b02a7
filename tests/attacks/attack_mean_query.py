"""Attacks on what the chapter on attention near its mean query says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding
from instances import Array, softmax

# Queries and keys of moderate scores; the centre is 0, or as near as the queries, or far from them.
heads = instances.queries_and_keys.such_that(instances.moderate(4.0)).also(
    c=lambda rng, Q, K: rng.choice([0.0, 1.0, 8.0], size=(len(Q), 1)) * rng.normal(size=(len(Q), Q.shape[2]))
)


def parts(Q: Array, K: Array, c: Array, scale: float = 0.5) -> tuple[Array, Array, Array]:
    """The row p of the centre, t for every query and key, and the mean key."""
    p = softmax(scale * np.einsum("bd,bjd->bj", c, K))
    b = np.einsum("bj,bjd->bd", p, K)
    t = scale * np.einsum("bid,bjd->bij", Q - c[:, None], K - b[:, None])
    return p[:, None], t, b


def exact(Q: Array, K: Array, scale: float = 0.5) -> Array:
    return softmax(scale * np.einsum("bid,bjd->bij", Q, K))


def size(t: Array) -> Array:
    return 1 + np.abs(t).max(axis=(1, 2))


def split_weights(Q, K, c, centred=True):
    """Weights p e^t over their sum are those of softmax, and p (1 + t) sums to 1 and is the covariance form."""
    p, t, b = parts(Q, K, c)
    if not centred:
        t = 0.5 * np.einsum("bid,bjd->bij", Q - c[:, None], K)
    slack = rounding(1000 * K.shape[1] * K.shape[2], size(t) ** 2)
    first = p * (1 + t)
    covariance = np.einsum("bj,bjd->bdj", p[:, 0], K - b[:, None])  # the values are the rows of the identity
    output = p + 0.5 * np.einsum("bid,bdj->bij", Q - c[:, None], covariance)
    return (
        equal(softmax(np.log(np.maximum(p, 1e-300)) + t), exact(Q, K), slack)
        & equal(first.sum(axis=2), 1.0, slack)
        & equal(first, output, slack)
    )


@attack(
    "mean_query/first-order",
    on=heads,
    wrong={"the keys not centred": lambda Q, K, c: split_weights(Q, K, c, centred=False)},
)
def the_split_is_exact_and_the_first_order_sums_to_one(Q, K, c):
    return split_weights(Q, K, c)


def derivative(Q, K, c, centred=True):
    """The covariance form against a central difference of softmax attention at the centre."""
    p, _, b = parts(Q, K, c)
    keys = K - b[:, None] if centred else K
    slope = 0.5 * np.einsum("bj,bjd->bdj", p[:, 0], keys)
    h = 1e-4
    steps = h * np.eye(K.shape[2])
    there = exact(c[:, None] + steps, K) - exact(c[:, None] - steps, K)
    reach = np.abs(K).max(axis=(1, 2))
    return equal(there / (2 * h), slope, h**2 * (1 + reach) ** 3 * K.shape[2] ** 2 + 1e-10)


@attack(
    "mean_query/first-order",
    on=heads,
    wrong={"the second term forgotten": lambda Q, K, c: derivative(Q, K, c, centred=False)},
)
def the_covariance_is_the_derivative_at_the_centre(Q, K, c):
    return derivative(Q, K, c)


def logarithms(Q: Array, K: Array) -> Array:
    """A(q), the logarithm of the denominator."""
    scores = 0.5 * np.einsum("bid,bjd->bij", Q, K)
    top = scores.max(axis=2, keepdims=True)
    return (top + np.log(np.exp(scores - top).sum(axis=2, keepdims=True)))[..., 0]


def divergences(p: Array, t: Array) -> Array:
    top = t.max(axis=2, keepdims=True)
    return (top + np.log((p * np.exp(t - top)).sum(axis=2, keepdims=True)))[..., 0]


def three_forms(Q, K, c, turned=False, tangent=True):
    p, t, b = parts(Q, K, c)
    logs = np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(exact(Q, K), 1e-300))
    kl = (-exact(Q, K) * logs if turned else p * logs).sum(axis=2)
    bregman = logarithms(Q, K) - logarithms(c[:, None], K)
    if tangent:
        bregman = bregman - 0.5 * np.einsum("bid,bd->bi", Q - c[:, None], b)
    slack = rounding(1000 * K.shape[1] * K.shape[2], size(t) + np.abs(logarithms(Q, K)).max(axis=1))
    D = divergences(p, t)
    return equal(kl, D, slack) & equal(bregman, D, slack) & at_most(0.0, D, slack)


@attack(
    "mean_query/divergence",
    on=heads,
    wrong={
        "the two rows exchanged": lambda Q, K, c: three_forms(Q, K, c, turned=True),
        "the tangent forgotten": lambda Q, K, c: three_forms(Q, K, c, tangent=False),
    },
)
def three_forms_of_the_divergence_agree(Q, K, c):
    return three_forms(Q, K, c)


def bounds(Q, K, c, with_negative=True, power=1.0):
    p, t, _ = parts(Q, K, c)
    D, first, row = divergences(p, t), p * (1 + t), exact(Q, K)
    N = np.maximum(-first, 0).sum(axis=2)
    off = np.abs(first - row).sum(axis=2) / 2
    slack = rounding(1000 * K.shape[1] * K.shape[2], size(t)[:, None] ** 2)
    upper = (1 + N * with_negative) * -np.expm1(-power * D)
    return at_most(N, off, slack) & at_most(off, upper, slack) & at_most(upper, np.expm1(D), slack * (1 + np.expm1(D)))


@attack(
    "mean_query/error",
    "theorem-mean-query-error",
    on=heads,
    wrong={
        "the negative weights forgotten": lambda Q, K, c: bounds(Q, K, c, with_negative=False),
        "half of the divergence": lambda Q, K, c: bounds(Q, K, c, power=0.5),
    },
)
def the_error_lies_between_its_bounds(Q, K, c):
    return bounds(Q, K, c)


def decomposition(Q, K, c, turned=False, centre=lambda Q: Q.mean(axis=1)):
    middle = centre(Q)
    to_c, to_middle = (divergences(*parts(Q, K, point)[:2]).mean(axis=1) for point in (c, middle))
    one, other = (middle, c) if turned else (c, middle)
    between = divergences(*parts(other[:, None], K, one)[:2])[:, 0]
    slack = rounding(2000 * K.shape[1] * K.shape[2], size(parts(Q, K, c)[1]) + np.abs(logarithms(Q, K)).max(axis=1))
    return equal(to_c, to_middle + between, slack) & at_most(to_middle, to_c, slack)


@attack(
    "mean_query/best-centre",
    on=heads,
    wrong={
        "the divergence of the centres turned round": lambda Q, K, c: decomposition(Q, K, c, turned=True),
        "the first query": lambda Q, K, c: decomposition(Q, K, c, centre=lambda Q: Q[:, 0]),
    },
)
def no_centre_has_a_smaller_mean_divergence_than_the_mean_query(Q, K, c):
    return decomposition(Q, K, c)


no_attack(
    "mean_query/trained",
    "mean_query/trained-second",
    because="measured: the sentence is about the heads of one trained encoder on one passage.",
)
no_attack(
    "mean_query/causal",
    because="measured: the sentence compares two computations on the heads of four given decoders.",
)
