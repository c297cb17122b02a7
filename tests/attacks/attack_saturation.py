"""Attacks on what the chapter on saturation says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding
from instances import Array
from scipy import special


def same_rows(q: Array, k: Array, divide: bool = True):
    """At sigma^2 = sqrt(d) the scaled scores of sigma q, sigma k are the plain scores of q, k."""
    d = q.shape[1]
    sigma = d**0.25
    scaled = ((sigma * q) * (sigma * k)).sum(axis=1) / (np.sqrt(d) if divide else 1.0)
    return equal(scaled, (q * k).sum(axis=1), rounding(20 * d, (np.abs(q) * np.abs(k)).sum(axis=1) * np.sqrt(d)))


@attack(
    "5.1.9/saturation",
    on=instances.vector_pairs.such_that(lambda x, y: np.full(len(x), x.shape[1] > 1)),
    wrong={"without the division": lambda x, y: same_rows(x, y, divide=False)},
)
def scaling_leaves_the_dependence_on_sigma(x, y):
    return same_rows(x, y)


def means_of_two(tau: Array) -> tuple[Array, Array, Array]:
    """Mean entropy, mean log Z and mean collision of two scores, from the law of their gap alone."""
    nodes, weights = special.roots_hermite(120)
    gap = np.abs(2 * tau[:, None] * nodes)  # the gap is normal with variance 2 tau^2
    less = np.exp(-gap) / (1 + np.exp(-gap))
    of_gap = np.log1p(np.exp(-gap)) + gap * less, gap / 2 + np.log1p(np.exp(-gap)), less**2 + (1 - less) ** 2
    entropy, log_sum, collision = ((values * weights).sum(axis=1) / np.sqrt(np.pi) for values in of_gap)
    return entropy, log_sum, collision


def entropy_of_two(tau: Array, collisions: float = 1.0, lowered: float = 1.0):
    H, log_sum, C = means_of_two(tau)
    allowed = 1e-6 * tau**2  # the functions of the gap are even and smooth, so the quadrature is far better than this
    low, high = np.log(2) - lowered * tau**2 / 2, np.log(2) - tau**2 / 2 + collisions * tau**2 * C
    same = equal(H, log_sum - tau**2 * (1 - collisions * C), allowed)
    return same & at_most(low, H, allowed) & at_most(H, high, allowed)


@attack(
    "theorem-saturation-entropy",
    "saturation/row-entropy",
    on=instances.numbers(tau=(1e-3, 1.5)),
    wrong={
        "the collisions forgotten": lambda tau: entropy_of_two(tau, collisions=0.0),
        "a quarter of the lower bound's distance": lambda tau: entropy_of_two(tau, lowered=0.25),
    },
)
def the_entropy_of_two_scores_obeys_its_equation_and_bounds(tau):
    return entropy_of_two(tau)


def log_sum_of_two(tau: Array, factor: float = 2.0):
    """The bounds on E log Z in the proof, and the growth of the collision probability with the scale."""
    log_sum, collision = means_of_two(tau)[1:]
    frozen = np.where(tau >= np.sqrt(2 * np.log(2)), tau * np.sqrt(factor * np.log(2)), np.inf)
    bound = np.minimum(np.log(2) + tau**2 / 2, frozen)
    return at_most(log_sum, bound, 1e-6) & at_most(collision, means_of_two(1.1 * tau)[2], 1e-6)


@attack(
    "theorem-saturation-regimes",
    "saturation/regimes",
    on=instances.numbers(tau=(1e-2, 2.0)),
    wrong={"the 2 below the fraction bar": lambda tau: log_sum_of_two(tau, factor=0.5)},
)
def the_bounds_of_the_proof_hold_for_two_scores(tau):
    return log_sum_of_two(tau)


no_attack("saturation/fixed-scale", because="exact: The limits are derived for all scales at once, by large numbers.")
no_attack(
    "saturation/gain", because="measured: It reports two drawn differences at two named widths, with their errors."
)
