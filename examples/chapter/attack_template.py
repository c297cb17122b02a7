"""Attacks on what the chapter that `make chapter` wrote says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import attack, equal, rounding
from instances import Array, moderate, softmax

MOST = 8
rows_and_counts = instances.score_rows.such_that(moderate(30)).also(
    m=lambda rng, s: rng.integers(2, MOST + 1, size=len(s))
)


def weights(s: Array, m: Array) -> tuple[Array, Array]:
    """The weight of m copies of the first key, and that of all other keys."""
    more = np.where(np.arange(1, MOST) < m[:, None], s[:, :1], -np.inf)
    A, n = softmax(np.concatenate([s, more], axis=1)), s.shape[1]
    return A[:, 0] + A[:, n:].sum(axis=1), A[:, 1:n].sum(axis=1)


def odds(s: Array, m: Array, times: Array):
    """W / (1 - W) = times * w / (1 - w), multiplied out: a row of one key has no others."""
    (W, rest), (w, rest_of_one) = weights(s, m), weights(s, np.ones(len(s)))
    return equal(W * rest_of_one, times * w * rest, rounding(4 * (s.shape[1] + MOST), MOST, 30))


@attack(
    "template/copies",
    on=rows_and_counts,
    wrong={
        "one copy more": lambda s, m: odds(s, m, m + 1),
        "copies do not count": lambda s, m: odds(s, m, np.ones(len(s))),
    },
)
def odds_of_copies_add_up(s, m):
    """The claim."""
    return odds(s, m, m)
