"""Attacks on what the chapter on query, match and aggregate says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, rounding, true
from instances import Array, moderate, softmax


def scores(Q: Array, K: Array) -> Array:
    """Scaled scores, shape (batch, n, m)."""
    return Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2])


def attend(Q: Array, K: Array, V: Array) -> Array:
    return softmax(scores(Q, K)) @ V


def score_rounding(Q: Array, K: Array) -> Array:
    """How far rounding may move a weight, relative to itself: it follows the absolute errors of its row of scores."""
    size = (np.abs(Q) @ np.abs(K).swapaxes(1, 2)).max(axis=(1, 2)) / np.sqrt(Q.shape[2])
    return rounding(4 * (Q.shape[2] + K.shape[1] + 4), 1 + size)


# The operator -------------------------------------------------------------------------------------------------------


def shapes_are(Q: Array, K: Array, V: Array, rows: int, columns: int) -> Array:
    weights, output = softmax(scores(Q, K)).shape[1:], attend(Q, K, V).shape[1:]
    return np.full(len(Q), weights == (rows, columns) and output == (rows, V.shape[2]))


@attack(
    "query_match_aggregate/rectangular",
    on=instances.attention,
    wrong={"as many keys as queries": lambda Q, K, V: shapes_are(Q, K, V, Q.shape[1], Q.shape[1])},
)
def weights_are_n_by_m(Q, K, V):
    return shapes_are(Q, K, V, Q.shape[1], K.shape[1])


def within_the_box(P, V):
    output = P @ V
    slack = rounding(2 * V.shape[1] + 2, np.abs(V).max(axis=(1, 2)))
    return at_most(V.min(axis=1)[:, None], output, slack) & at_most(output, V.max(axis=1)[:, None], slack)


@attack(
    "5.1.1/weighted-average",
    on=instances.attention,
    wrong={"without normalisation": lambda Q, K, V: within_the_box(np.exp(np.clip(scores(Q, K), -9, 9)), V)},
)
def an_average_stays_in_the_box(Q, K, V):
    return within_the_box(softmax(scores(Q, K)), V)


def along_a_direction(P, V):
    """Compare the output, measured along every direction from one value to another, with the values so measured."""
    directions = (V[:, :1] - V).swapaxes(1, 2)
    return within_the_box(P, V @ directions)


@attack(
    "5.1.1/weighted-average",
    on=instances.attention.such_that(moderate(10)),
    wrong={
        "weights of another sign": lambda Q, K, V: along_a_direction(1.5 * softmax(scores(Q, K)) - 0.5 / K.shape[1], V)
    },
)
def an_average_stays_in_the_convex_hull(Q, K, V):
    return along_a_direction(softmax(scores(Q, K)), V)


def no_output_is_longer(P, V, factor=1.0):
    longest = np.linalg.norm(V, axis=2).max(axis=1)
    return at_most(np.linalg.norm(P @ V, axis=2), factor * longest, rounding(4 * sum(V.shape[1:]), longest))


@attack(
    "exercise-query-hull",
    on=instances.attention,
    wrong={
        "weights that are not normalised": lambda Q, K, V: no_output_is_longer(np.ones((*Q.shape[:2], K.shape[1])), V),
        "strictly shorter by a tenth": lambda Q, K, V: no_output_is_longer(softmax(scores(Q, K)), V, factor=0.9),
    },
)
def averages_are_no_longer_than_values(Q, K, V):
    return no_output_is_longer(softmax(scores(Q, K)), V)


# Soft lookup --------------------------------------------------------------------------------------------------------


def leader(s: Array) -> tuple[Array, Array, Array, Array]:
    """Of each row: the lead of the best key, whether it leads, its nearest rivals' number, the lead over the others."""
    gaps = s.max(axis=1, keepdims=True) - s
    gaps = np.sort(gaps, axis=1)[:, 1:]
    lead = gaps.min(axis=1, initial=np.inf)
    rivals = (gaps == lead[:, None]).sum(axis=1)
    further = np.where(gaps > lead[:, None], gaps, np.inf).min(axis=1, initial=np.inf)
    return lead, lead > 1e-9 * np.abs(s).max(axis=1), rivals, further


def with_temperature(rows: instances.Kind) -> instances.Kind:
    """Temperatures from twice the lead down to a thirtieth of it, and values."""

    def temperature(rng, s):
        return leader(s)[0] / rng.uniform(0.5, 30, size=len(s))

    return rows.also(T=temperature, v=lambda rng, s, T: instances.entries(rng, len(s), s.shape[1:]))


one_leads = with_temperature(instances.score_rows.such_that(lambda s: leader(s)[1] & (s.shape[1] > 1)))
tied = instances.score_rows.such_that(lambda s: (s == s.max(axis=1, keepdims=True)).sum(axis=1) > 1).also(
    T=lambda rng, s: 10.0 ** rng.uniform(-3, 3, size=len(s))
)


def lookup(s, T, v, rivals_matter=True, exponent=1.0):
    """The rest of the weight over r exp(-lead/T): its limit is 1, and both bounds tend to 1 as T falls."""
    lead, _, rivals, further = leader(s)
    r = rivals if rivals_matter else 1
    t, n = np.exp(-exponent * lead / T), s.shape[1]
    p, best = softmax(s / T[:, None]), np.arange(n) == s.argmax(axis=1)[:, None]
    rest = np.where(best, 0, p).sum(axis=1)
    slack = rounding(8 * n, 1, 1 + np.abs(s).max(axis=1) / T)
    beyond = np.where(np.isfinite(further), further, lead)  # where nobody is further, there is nothing to multiply
    upper = 1 + (n - 1 - rivals) / r * np.exp(-(beyond - lead) / T)
    ratio = rest / (r * t)
    there, apart = v[best], np.abs(v - v[best][:, None]).max(axis=1)
    mixture = (p * v).sum(axis=1)
    return (
        at_most(1 / (1 + (n - 1) * t), ratio, slack * ratio)
        & at_most(ratio, upper, slack * upper)
        & at_most(np.abs(mixture - there), rest * apart, rounding(4 * n, np.abs(v).max(axis=1)))
    )


@attack(
    "query_match_aggregate/lookup-rate",
    on=one_leads,
    wrong={
        "the number of rivals is forgotten": lambda s, T, v: lookup(s, T, v, rivals_matter=False),
        "half of the rate": lambda s, T, v: lookup(s, T, v, exponent=0.5),
        "twice the rate": lambda s, T, v: lookup(s, T, v, exponent=2.0),
    },
)
def the_mixture_tends_to_the_best_value(s, T, v):
    return lookup(s, T, v)


@attack(
    "query_match_aggregate/lookup-rate",
    on=tied,
    wrong={"the first of the tied keys wins": lambda s, T: at_most(0.9, softmax(s / T[:, None]).max(axis=1), 0.0)},
)
def tied_keys_share_at_every_temperature(s, T):
    p, top = softmax(s / T[:, None]), s == s.max(axis=1, keepdims=True)
    share = np.where(top, p, p.max(axis=1, keepdims=True))
    return equal(share, p.max(axis=1), 0.0) & at_most(share, 1 / top.sum(axis=1), rounding(8 * s.shape[1], 1))


def weight_when_stored_twice(s, formula):
    """The weight of the first key, and of both its copies."""
    p, twice = softmax(s)[:, 0], softmax(np.concatenate([s[:, :1], s], axis=1))[:, :2].sum(axis=1)
    return equal(twice, formula(p), rounding(8 * s.shape[1], 1))


@attack(
    "exercise-query-duplicate",
    on=instances.score_rows,
    wrong={
        "the weight doubles": lambda s: weight_when_stored_twice(s, lambda p: 2 * p),
        "the copies share the old weight": lambda s: weight_when_stored_twice(s, lambda p: p),
    },
)
def two_copies_have_2p_over_1_plus_p(s):
    return weight_when_stored_twice(s, lambda p: 2 * p / (1 + p))


# Projections --------------------------------------------------------------------------------------------------------

combined = instances.inputs.map("W_Q W_K", lambda X, W_Q, W_K, W_V: (W_Q, W_K)).also(
    x=lambda rng, W, _: instances.entries(rng, len(W), W.shape[1:2]),
    z=lambda rng, W, *_: instances.entries(rng, len(W), W.shape[1:2]),
    y=lambda rng, W, *_: instances.entries(rng, len(W), W.shape[1:2]),
    a=lambda rng, W, *_: rng.normal(size=len(W)),
    b=lambda rng, W, *_: rng.normal(size=len(W)),
)


def score(x, W_Q, W_K, y):
    """The score of the query of x with the key of y, and the sum of the sizes of its terms."""
    value = np.einsum("bd,bde,bfe,bf->b", x, W_Q, W_K, y, optimize=True)
    size = np.einsum("bd,bde,bfe,bf->b", np.abs(x), np.abs(W_Q), np.abs(W_K), np.abs(y), optimize=True)
    return value, size


def same_score(one, other, W_Q):
    (value, size), (expected, other_size) = one, other
    return equal(value, expected, rounding(8 * sum(W_Q.shape[1:]), size + other_size))


def scaled(a, one):
    return a * one[0], np.abs(a) * one[1]


def linear_in_each(W_Q, W_K, x, z, y, a, b):
    sized = np.abs(a)[:, None] * np.abs(x) + np.abs(b)[:, None] * np.abs(z)
    mixed = a[:, None] * x + b[:, None] * z
    size = score(sized, np.abs(W_Q), np.abs(W_K), np.abs(y))[0]
    back = score(np.abs(y), np.abs(W_Q), np.abs(W_K), sized)[0]
    as_query = a * score(x, W_Q, W_K, y)[0] + b * score(z, W_Q, W_K, y)[0]
    as_key = a * score(y, W_Q, W_K, x)[0] + b * score(y, W_Q, W_K, z)[0]
    terms = 8 * sum(W_Q.shape[1:])
    return equal(score(mixed, W_Q, W_K, y)[0], as_query, rounding(terms, size)) & equal(
        score(y, W_Q, W_K, mixed)[0], as_key, rounding(terms, back)
    )


@attack(
    "query_match_aggregate/bilinear",
    on=combined,
    wrong={
        "the score of a token with itself is linear": lambda W_Q, W_K, x, z, y, a, b: same_score(
            score(a[:, None] * x, W_Q, W_K, a[:, None] * x), scaled(a, score(x, W_Q, W_K, x)), W_Q
        ),
        "the weights are linear as well": lambda W_Q, W_K, x, z, y, a, b: equal(
            np.exp(np.clip(score(x + z, W_Q, W_K, y)[0], -9, 9)),
            np.exp(np.clip(score(x, W_Q, W_K, y)[0], -9, 9)) + np.exp(np.clip(score(z, W_Q, W_K, y)[0], -9, 9)),
            1e-3,
        ),
    },
)
def the_score_is_linear_in_each_token(W_Q, W_K, x, z, y, a, b):
    q, k = np.einsum("bd,bde->be", x, W_Q), np.einsum("bd,bde->be", y, W_K)
    whole = score(x, W_Q, W_K, y)
    dot = np.einsum("be,be->b", q, k), np.zeros(len(x))
    return linear_in_each(W_Q, W_K, x, z, y, a, b) & same_score(whole, dot, W_Q)


def independent(X: Array) -> Array:
    """Whether the rows are linearly independent by a margin that rounding does not eat up."""
    values = np.linalg.svd(X, compute_uv=False)
    return (values[:, -1] > 1e-3 * values[:, 0]) & np.full(len(X), X.shape[1] <= X.shape[2])


embeddings = instances.inputs.map("X", lambda X, *_: X)
wanted = {"S": lambda rng, X: rng.normal(size=(len(X), X.shape[1], X.shape[1]))}
vocabularies = embeddings.such_that(independent).also(**wanted)


def reached(X, S, transposed=False):
    """The scores with W_Q = F S and W_K = F, where X F = I, are S."""
    F = np.linalg.pinv(X)
    found = (X @ F @ S) @ (X @ F).swapaxes(1, 2)
    size = 1e4 * (1 + np.abs(S).max(axis=(1, 2)))  # the inverse multiplies rounding by at most a thousand
    return equal(found, S.swapaxes(1, 2) if transposed else S, rounding(64 * sum(X.shape[1:]), size))


@attack(
    "5.1.1/nonlinear-matching",
    on=vocabularies,
    wrong={
        "need and supply exchanged": lambda X, S: reached(X, S, transposed=True),
        "dependent embeddings as well": embeddings.also(**wanted),
    },
)
def words_can_be_matched_in_every_way(X, S):
    return reached(X, S)


def halfway_key_leads(q, y, z, W_K, key=lambda rows: rows):
    """By how much the weight of the key halfway between two others exceeds the larger of theirs, and the rounding."""
    halfway = (y + z) / 2
    K = np.stack([key(rows) for rows in (y, halfway, z)], axis=1) @ W_K
    s = np.einsum("bd,bmd->bm", q, K)
    size = np.einsum("bd,bmd->bm", np.abs(q), np.abs(np.stack([y, halfway, z], axis=1)) @ np.abs(W_K)).max(axis=1)
    p = softmax(s)
    return p[:, 1] - np.maximum(p[:, 0], p[:, 2]), rounding(16 * sum(W_K.shape[1:]), 1 + size)


between = combined.such_that(moderate(10))


@attack(
    "query_match_aggregate/bilinear",
    on=between,
    wrong={
        "after a nonlinear layer as well": lambda W_Q, W_K, x, z, y, a, b: at_most(
            halfway_key_leads(np.einsum("bd,bde->be", x, W_Q), y, z, W_K, np.abs)[0], 0.0, 1e-6
        ),
        "it never has a larger weight than either": lambda W_Q, W_K, x, z, y, a, b: at_most(
            softmax(
                np.einsum(
                    "bd,bmd->bm",
                    np.einsum("bd,bde->be", x, W_Q),
                    np.stack([y, (y + z) / 2], axis=1) @ W_K,
                )
            )[:, 1],
            0.5,
            1e-6,
        ),
    },
)
def a_key_halfway_between_two_others_never_leads_both(W_Q, W_K, x, z, y, a, b):
    lead, slack = halfway_key_leads(np.einsum("bd,bde->be", x, W_Q), y, z, W_K)
    return at_most(lead, 0.0, slack)


def rank_is_at_most(M, size, r):
    """All singular values from the r-th on are rounding. size : of the terms of M, shape (batch,)."""
    beyond = np.linalg.svd(M, compute_uv=False)[:, r:]
    return at_most(beyond, 0.0, rounding(8 * sum(M.shape[1:]), size)) if beyond.shape[1] else np.full(len(M), True)


def narrow(W_Q, W_K, r):
    size = np.linalg.norm(W_Q, axis=(1, 2)) * np.linalg.norm(W_K, axis=(1, 2))
    return rank_is_at_most(W_Q @ W_K.swapaxes(1, 2), size * W_Q.shape[2], r)


weights = instances.inputs.map("W_Q W_K", lambda X, W_Q, W_K, W_V: (W_Q, W_K))


@attack(
    "proposition-narrow-head",
    on=weights,
    wrong={
        "one less than d_k": lambda W_Q, W_K: narrow(W_Q, W_K, W_Q.shape[2] - 1),
        "two heads have the rank of one": lambda W_Q, W_K: rank_is_at_most(
            W_Q @ W_K.swapaxes(1, 2) + np.roll(W_Q, 1, axis=0) @ np.roll(W_K, 1, axis=0).swapaxes(1, 2),
            2 * (np.linalg.norm(W_Q, axis=(1, 2)).max() * np.linalg.norm(W_K, axis=(1, 2))) * W_Q.shape[2],
            W_Q.shape[2],
        ),
    },
)
def the_form_has_rank_at_most_d_k(W_Q, W_K):
    return narrow(W_Q, W_K, W_Q.shape[2])


def ignores(W_Q, W_K):
    """Whether some unit vector has no query, and some has no key."""
    lost = np.full(len(W_Q), True)
    for W in (W_Q, W_K):
        direction = np.linalg.svd(W)[0][:, :, -1]  # of the smallest singular value, or of none
        traces = np.abs(np.einsum("bd,bde->be", direction, W)).max(axis=1)
        lost &= traces <= rounding(16 * sum(W.shape[1:]), np.linalg.norm(W, axis=(1, 2)))
    return lost


@attack(
    "proposition-narrow-head",
    on=weights.such_that(lambda W_Q, W_K: np.full(len(W_Q), W_Q.shape[2] < W_Q.shape[1])),
    wrong={"a wide head as well": weights.such_that(lambda W_Q, W_K: np.full(len(W_Q), W_Q.shape[2] >= W_Q.shape[1]))},
)
def a_narrow_head_ignores_directions(W_Q, W_K):
    return true(ignores(W_Q, W_K))


# Order --------------------------------------------------------------------------------------------------------------

ordered = instances.inputs.such_that(moderate(10)).also(
    order=lambda rng, X, *_: rng.random(size=X.shape[:2]).argsort(axis=1)
)


def permuted(X, W_Q, W_K, W_V, order, values_too=True, outputs_too=True):
    """Compare the outputs for permuted tokens with the permuted outputs."""

    def taken(rows):
        return np.take_along_axis(rows, order[:, :, None], axis=1)

    tokens = taken(X)
    found = attend(tokens @ W_Q, tokens @ W_K, (tokens if values_too else X) @ W_V)
    expected = attend(X @ W_Q, X @ W_K, X @ W_V)
    # Products of three matrices of entries up to 10: the errors of Q, K and V enter through the sizes of their terms.
    size = (np.abs(X) @ np.abs(W_V)).max(axis=(1, 2))
    slack = score_rounding(np.abs(X) @ np.abs(W_Q), np.abs(X) @ np.abs(W_K)) * X.shape[2]
    return equal(found, taken(expected) if outputs_too else expected, slack * size)


@attack(
    "query_match_aggregate/equivariance",
    on=ordered,
    wrong={
        "the values stay behind": lambda *batch: permuted(*batch, values_too=False),
        "the outputs do not move": lambda *batch: permuted(*batch, outputs_too=False),
    },
)
def permuted_tokens_have_permuted_outputs(X, W_Q, W_K, W_V, order):
    return permuted(X, W_Q, W_K, W_V, order)


# Need and supply ----------------------------------------------------------------------------------------------------


def gram_like(Q, K, larger=np.maximum):
    """Whether the scores are symmetric, positive semidefinite, and no larger than one of the two on the diagonal."""
    S, size = Q @ K.swapaxes(1, 2), (np.abs(Q) @ np.abs(K).swapaxes(1, 2)).max(axis=(1, 2))
    own = np.einsum("bii->bi", S)
    slack = rounding(16 * (Q.shape[2] + Q.shape[1]), size)
    least = np.linalg.eigvalsh((S + S.swapaxes(1, 2)) / 2)[:, 0]
    return (
        equal(S, S.swapaxes(1, 2), slack)
        & at_most(0.0, least, slack * Q.shape[1])
        & at_most(S, larger(own[:, :, None], own[:, None, :]), slack)
    )


@attack(
    "proposition-one-matrix",
    "query_match_aggregate/two-matrices",
    on=instances.inputs.map("X W", lambda X, W_Q, W_K, W_V: (X, W_Q)),
    wrong={
        "for two matrices": instances.inputs.map("X W", lambda X, W_Q, W_K, W_V: (X, np.stack([W_Q, W_K], axis=1))),
        "the smaller of the two on the diagonal": lambda X, W: gram_like(X @ W, X @ W, np.minimum),
    },
)
def one_matrix_in_both_roles_makes_a_gram_matrix(X, W):
    W_Q, W_K = (W, W) if W.ndim == 3 else (W[:, 0], W[:, 1])
    return gram_like(X @ W_Q, X @ W_K)
