"""Attacks on what the chapter on masks says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, implies, less, rounding, true
from instances import Array, entries, moderate, softmax

# The causal mask ----------------------------------------------------------------------------------------------------


def causal(n: int, shift: int = 0) -> Array:
    return np.arange(n)[None, :] <= np.arange(n)[:, None] + shift


def masked_softmax(S: Array, seen: Array) -> Array:
    return softmax(np.where(seen, S, -np.inf))


def above(M: Array, count) -> Array:
    """Whether the additive mask of a square matrix of scores is as the chapter says. count : of its infinities."""
    n = M.shape[1]
    mask = np.where(causal(n), 0.0, -np.inf)
    lower = bool((np.triu(np.exp(mask), 1) == 0).all())
    return np.full(len(M), int(np.isneginf(mask).sum()) == count(n) and lower)


@attack(
    "5.1.7/lower-triangular",
    "exercise-masks-pairs",
    on=instances.square_matrices,
    wrong={
        "the diagonal counted as well": lambda M: above(M, lambda n: n * (n + 1) // 2),
        "all of them but the diagonal": lambda M: above(M, lambda n: n * (n - 1)),
    },
)
def infinities_are_above_the_diagonal(M):
    return above(M, lambda n: n * n - n * (n + 1) // 2)


tokens = instances.square_matrices.also(
    X=lambda rng, S: entries(rng, len(S), (S.shape[1], 3))[rng.permutation(len(S))],
    token=lambda rng, S, X: rng.integers(0, S.shape[1], size=len(S)),
    new=lambda rng, S, X, token: entries(rng, len(S), (3,))[rng.permutation(len(S))],
)


def untouched(S, X, token, new, seen):
    """Replace one token: no output of an earlier row changes, in any bit. Scores are those of the tokens and S."""
    n = S.shape[1]
    here = np.arange(n)[None, :] == token[:, None]

    def outputs(Y):
        P = masked_softmax(S + Y @ Y.swapaxes(1, 2), seen)
        return (P[:, :, :, None] * Y[:, None]).sum(axis=2)

    with np.errstate(over="ignore", invalid="ignore"):
        before, after = outputs(X), outputs(np.where(here[:, :, None], new[:, None], X))
    past = np.arange(n)[None, :] < token[:, None]
    return true((before == after).all(axis=2) | ~past)


@attack(
    "masks/future",
    "5.1.7/past-only",
    on=tokens,
    wrong={
        "no mask": lambda S, X, token, new: untouched(S, X, token, new, np.ones(S.shape[1:], bool)),
        "one position too many": lambda S, X, token, new: untouched(S, X, token, new, causal(S.shape[1], 1)),
    },
)
def the_past_does_not_change(S, X, token, new):
    return untouched(S, X, token, new, causal(S.shape[1]))


# Before and after ---------------------------------------------------------------------------------------------------

modest = instances.masked_scores.such_that(lambda mask, S: np.abs(S).reshape(len(S), -1).max(axis=1) <= 300)


def restricted(mask, S, again=True):
    full = softmax(S) * mask
    kept = full.sum(axis=2, keepdims=True)
    first, later = masked_softmax(S, mask), full / kept if again else full
    # A visible weight below the smallest normal number loses digits: compare only rows that keep some weight.
    enough = kept.min(axis=(1, 2)) > 1e-200
    slack = rounding(16 * S.shape[2], 1, 1 + np.abs(S).max(axis=(1, 2)))
    return implies(enough, equal(later, first, slack))


@attack(
    "masks/before-after",
    on=modest,
    wrong={"not normalised again": lambda mask, S: restricted(mask, S, again=False)},
)
def normalised_again_is_masked_first(mask, S):
    return restricted(mask, S)


moved = instances.masked_scores.such_that(moderate(20)).also(
    H=lambda rng, mask, S: S + (1 + rng.random(size=S.shape)) * (rng.random(size=(len(S), 1, 1)) < 0.9)
)


def influence(mask, S, H, before):
    """Rows whose visible weights change when the hidden scores are raised, against rows with a hidden score raised."""
    other = np.where(mask, S, H)

    def weights(scores):
        return masked_softmax(scores, mask) if before else softmax(scores) * mask

    changed = (weights(S) != weights(other)).any(axis=(1, 2))
    raised = (~mask & np.not_equal(S, other)).any(axis=(1, 2))
    return changed, raised


@attack(
    "masks/before-after",
    on=moved,
    wrong={"set to 0 after the softmax": lambda mask, S, H: true(~influence(mask, S, H, before=False)[0])},
)
def masked_scores_have_no_influence(mask, S, H):
    return true(~influence(mask, S, H, before=True)[0])


@attack(
    "masks/before-after",
    on=moved.such_that(lambda mask, S, H: np.abs(S).reshape(len(S), -1).max(axis=1) <= 5),
    wrong={
        "masked before the softmax": lambda mask, S, H: exactly_if(*influence(mask, S, H, before=True)),
    },
)
def hidden_scores_act_through_the_denominator(mask, S, H):
    return exactly_if(*influence(mask, S, H, before=False))


# A number instead of infinity ---------------------------------------------------------------------------------------

replaced = instances.masked_scores.such_that(moderate(50)).also(
    M=lambda rng, mask, S: -rng.uniform(0, 200, size=len(S))
)


def leaked(mask, S, M, gap_counts=True, divide=1.0):
    """The weight of a masked position is at most exp(M + g). A mask that hides nothing leaks nothing."""
    best = np.where(mask, S, -np.inf).max(axis=2, keepdims=True)
    g = S - best if gap_counts else np.zeros_like(S)
    P = softmax(S + np.where(mask, 0, M[:, None, None] / divide))
    bound = np.exp(np.minimum(M[:, None, None] + g, 50))
    slack = rounding(8 * S.shape[2], bound, 1 + np.abs(M)[:, None, None] + np.abs(S).max(axis=(1, 2))[:, None, None])
    return at_most(np.where(mask, 0, P), bound, slack)


@attack(
    "5.1.7/finite-instead",
    on=replaced,
    wrong={
        "the gap is forgotten": lambda mask, S, M: leaked(mask, S, M, gap_counts=False),
        "the mask is divided by 4": lambda mask, S, M: leaked(mask, S, M, divide=4.0),
    },
)
def the_leak_is_bounded(mask, S, M):
    return leaked(mask, S, M)


def order_of_scaling(mask, S, M, divide_mask=True):
    d_k, hidden = 16.0, np.where(mask, 0, M[:, None, None])
    later = softmax(S / np.sqrt(d_k) + (hidden / np.sqrt(d_k) if divide_mask else hidden))
    size = 1 + np.abs(M) + np.abs(S).max(axis=(1, 2))
    return equal(softmax((S + hidden) / np.sqrt(d_k)), later, rounding(8 * S.shape[2], 1, size))


@attack(
    "5.1.7/mask-and-scale",
    on=replaced,
    wrong={"the mask is not divided": lambda mask, S, M: order_of_scaling(mask, S, M, divide_mask=False)},
)
def the_division_shrinks_the_mask(mask, S, M):
    return order_of_scaling(mask, S, M)


def infinite_in_both_orders(mask, S, value):
    hidden = np.where(mask, 0, value)
    return equal(softmax((S + hidden) / 3), softmax(S / 3 + hidden), 0.0)


@attack(
    "5.1.7/mask-and-scale",
    on=instances.masked_scores,
    wrong={"a finite number": lambda mask, S: infinite_in_both_orders(mask, S, -10.0)},
)
def infinity_may_be_added_in_both_orders(mask, S):
    return infinite_in_both_orders(mask, S, -np.inf)


def _gaps(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    return -rng.uniform(0, 1500, size=(count, *shape)) * (rng.random(size=(count, *shape)) < 0.9)


deep = instances.kind(
    "s",
    lambda: ((f"a gap of {g}", (np.array([0.0, -g]),)) for g in (0.0, 103.0, 104.0, 708.0, 745.0, 745.2, 746.0, 1e9)),
    _gaps,
    [(n,) for n in (2, 3, 4, 6)],
)


def vanishes(s, smallest):
    """Weights are exactly 0 where exp(-g) is below half of the given number; 1e-9 allows for rounding of the gap."""
    g = s.max(axis=1, keepdims=True) - s
    below = g > np.log(2) - np.log(smallest) + 1e-9
    with np.errstate(under="ignore"):
        return true(~below | (softmax(s) == 0))


@attack(
    "5.1.7/finite-instead",
    on=deep,
    wrong={
        "half of the smallest normal number": lambda s: vanishes(s, np.finfo(float).tiny),
        "the rounding unit": lambda s: vanishes(s, np.finfo(float).eps),
    },
)
def weights_below_half_of_the_smallest_number_are_zero(s):
    return vanishes(s, np.finfo(float).smallest_subnormal)


# Two masks, determinant ---------------------------------------------------------------------------------------------

two_masks = instances.masks.also(other=lambda rng, mask: mask[rng.permutation(len(mask))])


def added(mask, other, combine):
    pattern = np.exp(np.where(mask, 0, -np.inf) + np.where(other, 0, -np.inf))
    return equal(pattern, combine(mask, other).astype(float), 0.0)


@attack(
    "5.1.7/stack",
    on=two_masks,
    wrong={"either mask allows it": lambda mask, other: added(mask, other, np.logical_or)},
)
def added_masks_are_a_logical_and(mask, other):
    return added(mask, other, np.logical_and)


padded = instances.square_matrices.also(left=lambda rng, M: rng.integers(0, M.shape[1] + 1, size=len(M)))


def empty_first_rows(M, left, rows):
    """Exactly the first `left` rows of the causal mask see padding only."""
    n = M.shape[1]
    seen = causal(n) & (np.arange(n) >= left[:, None, None])
    return exactly_if(~seen.any(axis=2), np.arange(n) < rows(left)[:, None])


@attack(
    "5.1.7/stack",
    on=padded.such_that(lambda M, left: np.full(len(M), M.shape[1] > 1)).map(
        "M left first", lambda M, left: (M, left, left > 0)
    ),
    wrong={"a row always keeps itself": lambda M, left, first: true(~first)},
)
def left_padding_empties_the_first_row(M, left, first):
    n = M.shape[1]
    seen = causal(n) & (np.arange(n) >= left[:, None, None])
    return exactly_if(~seen[:, 0].any(axis=1), first)


def product_of_diagonal(A, take):
    determinant, product = np.linalg.det(A), take(np.diagonal(A, axis1=1, axis2=2))
    return equal(determinant, product, rounding(8 * A.shape[1] ** 2, np.ones(len(A)))) & less(0.0, product)


@attack(
    "masks/determinant",
    on=instances.causal_stochastic,
    wrong={
        "the sum of the diagonal": lambda A: product_of_diagonal(A, lambda d: d.sum(axis=1)),
        "no causal mask": instances.positive_stochastic,
    },
)
def the_determinant_is_the_product_of_the_diagonal(A):
    return product_of_diagonal(A, lambda d: d.prod(axis=1))
