"""Attacks on what the chapter on sinusoidal positions says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, less
from instances import Array, softmax

from attnmath.fixed_attention.positions import shift_matrix, sinusoidal


def angles(p: Array, d: int) -> Array:
    """Angles of the pairs of each position, written out from (R.4)."""
    return p[:, None] / 10000.0 ** (np.arange(0, d, 2) / d)


def encoded(p: Array, d: int) -> Array:
    """Encodings of real positions, one row each."""
    found = np.empty((len(p), d))
    found[:, ::2], found[:, 1::2] = np.sin(angles(p, d)), np.cos(angles(p, d))
    return found


def by_pairs(x: Array, k: Array, sign: float = 1.0) -> Array:
    """Each pair of components turned by the angles of a shift by k places."""
    turn, d = angles(k, x.shape[1]), x.shape[1]
    moved = np.empty_like(x)
    moved[:, ::2] = np.cos(turn) * x[:, ::2] + sign * np.sin(turn) * x[:, 1::2]
    moved[:, 1::2] = np.cos(turn) * x[:, 1::2] - sign * np.sin(turn) * x[:, ::2]
    assert d % 2 == 0
    return moved


# Real positions of either sign, and shifts.
places = instances.numbers(p=(0.01, 900), q=(0.01, 900), k=(0.01, 600)).map(
    "p q k", lambda p, q, k: (p - 300, q - 300, k - 200)
)
WIDTHS = (2, 6, 64)


def all_widths(compare):
    """The conjunction of a comparison over several widths."""
    first, *rest = (compare(d) for d in WIDTHS)
    for other in rest:
        first = first & other
    return first


def shifted(p, q, k, sign=1.0, same=lambda p: p):
    def compare(d):
        by_one = by_pairs(encoded(same(p), d), k, sign)
        return equal(encoded(p + k, d), by_one, 1e-11) & equal(
            np.linalg.norm(by_pairs(encoded(q, d), k, sign), axis=1), np.sqrt(d / 2), 1e-11
        )

    return all_widths(compare)


@attack(
    "sinusoidal_positions/shift",
    on=places,
    wrong={
        "the other direction": lambda p, q, k: shifted(p, q, k, -1.0),
        "from the next position": lambda p, q, k: shifted(p, q, k, same=lambda p: p + 1),
    },
)
def one_rotation_moves_every_encoding(p, q, k):
    return shifted(p, q, k)


def of_the_package(k: Array, less_by: int = 0) -> Array:
    """Error of the package's matrix on the encodings of twenty positions; k whole."""
    errors = {}
    for value in map(int, np.unique(k)):
        moved = encoded(np.arange(20) + value, 8)
        errors[value] = np.abs(sinusoidal(20, 8) @ shift_matrix(value - less_by, 8).T - moved).max()
    return np.array([errors[int(value)] for value in k])


@attack(
    "sinusoidal_positions/shift",
    on=instances.integers(k=(-60, 60)),
    wrong={"one place less": lambda k: at_most(of_the_package(k, 1), 0.0, 1e-12)},
)
def the_matrix_of_the_package_is_this_rotation(k):
    return at_most(of_the_package(k), 0.0, 1e-12)


def products(p, q, factor=4.0, against=lambda p, q: p - q):
    def compare(d):
        one, other = encoded(p, d), encoded(q, d)
        apart = angles(against(p, q), d)
        return (
            equal((one * other).sum(axis=1), np.cos(apart).sum(axis=1), 1e-10)
            & equal(((one - other) ** 2).sum(axis=1), factor * (np.sin(apart / 2) ** 2).sum(axis=1), 1e-10)
            & equal(np.linalg.norm(one, axis=1), np.sqrt(d / 2), 1e-12)
        )

    return all_widths(compare)


@attack(
    "sinusoidal_positions/products",
    on=places,
    wrong={
        "the sum of positions": lambda p, q, k: products(p, q, against=lambda p, q: p + q),
        "twice the squares": lambda p, q, k: products(p, q, factor=2.0),
    },
)
def products_depend_on_the_difference(p, q, k):
    return products(p, q)


heads = instances.integers(n=(2, 8), k=(-2, 2), half=(1, 3), scale=(-1, 5)).such_that(
    lambda n, k, half, scale: np.abs(k) < n
)


def each(function, *arguments):
    """Numbers that a function of whole numbers gives at each instance; each combination is computed once."""
    rows = np.stack(arguments, axis=1)
    different, where = np.unique(rows, axis=0, return_inverse=True)
    return np.array([function(*map(int, row)) for row in different], dtype=float)[where.ravel()].T


def head(n: int, k: int, d: int, alpha: float) -> float:
    """The smallest weight on the token k places back."""
    PE = encoded(np.arange(n, dtype=float), d)
    queries = by_pairs(PE, np.full(n, -float(k)))
    return float(np.diagonal(softmax(alpha * (queries @ PE.T)[None])[0], -k).min())


def gap_of(n: int, d: int) -> float:
    return float(d / 2 - np.cos(angles(np.arange(1.0, n), d)).sum(axis=1).max())


def bounded(n, k, half, scale, beyond=1.0, rivals=1):
    def found(n, k, half, scale):
        gap, alpha = gap_of(n, 2 * half), 2.0**scale
        return head(n, k, 2 * half, alpha), 1 / (1 + (n - rivals) * np.exp(-alpha * gap * beyond)), gap

    weight, bound, gap = each(found, n, k, half, scale)
    return at_most(bound, weight, 1e-9) & less(0.0, gap)


@attack(
    "sinusoidal_positions/shift-head",
    "theorem-shift-head",
    on=heads,
    wrong={
        "twice the gap": lambda *given: bounded(*given, beyond=2.0),
        "one rival less": lambda *given: bounded(*given, rivals=2),
    },
)
def the_head_gives_at_least_this_weight(n, k, half, scale):
    return bounded(n, k, half, scale)


def with_enough(n, k, half, scale, factor=1.0):
    def found(n, k, half, scale):
        eps = 0.9 * 2.0 ** -(scale + 2)
        alpha = max(factor * np.log((n - 1) * (1 - eps) / eps) / gap_of(n, 2 * half), 0.0)
        return 1 - eps, head(n, k, 2 * half, alpha)

    wanted, weight = each(found, n, k, half, scale)
    return at_most(wanted, weight, 1e-7)


@attack(
    "sinusoidal_positions/shift-head",
    on=heads,
    wrong={"a third of the norm": lambda *given: with_enough(*given, factor=1 / 3)},
)
def this_norm_is_enough(n, k, half, scale):
    return with_enough(n, k, half, scale)


contents = instances.integers(half=(1, 3), k=(1, 4), q=(0, 9), scale=(-3, 2))
PLACE = 5  # of the query


def moments(half: int, k: int, q: int, scale: int, double: float = 2.0) -> tuple[float, float, float, float]:
    """Mean and variance of the difference from its coefficients, beside the stated ones; alpha is 1."""
    width, sigma = 2 * half, 2.0**scale
    right, other = PLACE - k, q
    PE = encoded(np.arange(10.0), width)
    turned = by_pairs(np.eye(width), np.full(width, -float(k))).T  # its columns are the turned unit vectors
    # The difference is bilinear in the entries: constant, linear parts and products, whose squares add up.
    apart = PE[right] - PE[other]
    linear_query = turned.T @ apart
    linear_keys = by_pairs(PE[PLACE : PLACE + 1], np.array([-float(k)]))[0]
    variance = sigma**2 * (linear_query**2).sum() + 2 * sigma**2 * (linear_keys**2).sum()
    variance += 2 * sigma**4 * (turned**2).sum()
    gap = width / 2 - np.cos(angles(np.array([float(right - other)]), width)).sum()
    stated = 2 * sigma**2 * gap + sigma**2 * width + double * sigma**4 * width
    return float(linear_keys @ apart), float(gap), float(variance), float(stated)


usable = contents.such_that(lambda half, k, q, scale: (q != PLACE) & (q != PLACE - k))


def compared(half, k, q, scale, double=2.0):
    mean, gap, variance, stated = each(lambda *given: moments(*given, double=double), half, k, q, scale)
    return equal(mean, gap, 1e-9) & equal(variance, stated, 1e-9 * (1 + variance))


@attack(
    "sinusoidal_positions/content-noise",
    on=usable,
    wrong={"the product once": lambda *given: compared(*given, double=1.0)},
)
def content_gives_this_mean_and_variance(half, k, q, scale):
    return compared(half, k, q, scale)


# Inputs, two pairs of factors of forms, a target for each row, and a place on the way from one form to the other.
forms = instances.numbers(size=(0.01, 3.0), t=(0.001, 1.0)).also(
    X=lambda rng, size, t: rng.normal(size=(len(size), 4, 3)),
    factors=lambda rng, size, t, X: size[:, None, None, None] * rng.normal(size=(len(size), 4, 3, 3)),
    target=lambda rng, size, t, X, factors: rng.integers(0, 4, size=(len(size), 4)),
)


def losses(X: Array, W: Array, target: Array) -> Array:
    """Mean cross-entropy of the rows to a key each."""
    S = X @ W @ X.swapaxes(1, 2)
    top = S.max(axis=2, keepdims=True)
    log_sum = np.log(np.exp(S - top).sum(axis=2)) + top[..., 0]
    return (log_sum - np.take_along_axis(S, target[..., None], axis=2)[..., 0]).mean(axis=1)


def along(t, X, factors, target, factored=False):
    """The loss between two forms is at most the chord."""
    Q, K, A, B = factors.swapaxes(0, 1)
    K, B, share = K.swapaxes(1, 2), B.swapaxes(1, 2), t[:, None, None]
    if factored:
        between = ((1 - share) * Q + share * A) @ ((1 - share) * K + share * B)
    else:
        between = (1 - share) * Q @ K + share * A @ B
    chord = (1 - t) * losses(X, Q @ K, target) + t * losses(X, A @ B, target)
    return at_most(losses(X, between, target), chord, 1e-9 * (1 + np.abs(chord)))


@attack(
    "sinusoidal_positions/convex",
    on=forms,
    wrong={"in the two factors": lambda size, t, X, factors, target: along(t, X, factors, target, True)},
)
def the_loss_is_convex_in_the_form(size, t, X, factors, target):
    return along(t, X, factors, target)


def trained_towards_zero(n, k, half, scale, factor=1.0):
    """The loss of the head for the previous token, beside the bound that goes to 0 with growing norm."""

    def found(n, k, half, scale):
        gap, alpha = gap_of(n, 2 * half), 2.0**scale
        PE = encoded(np.arange(n, dtype=float), 2 * half)
        S = alpha * by_pairs(PE, np.full(n, -1.0)) @ PE.T
        rows = np.log(np.exp(S - S.max(axis=1, keepdims=True)).sum(axis=1)) + S.max(axis=1)
        loss = float((rows[1:] - np.diagonal(S, -1)).mean())
        return loss, factor * np.log1p((n - 1) * np.exp(-alpha * gap))

    loss, bound = each(found, n, k, half, scale)
    return at_most(loss, bound, 1e-9) & at_most(0.0, loss, 1e-12)


@attack(
    "sinusoidal_positions/convex",
    on=heads,
    wrong={"half of the bound": lambda *given: trained_towards_zero(*given, factor=0.5)},
)
def the_loss_has_the_infimum_zero(n, k, half, scale):
    return trained_towards_zero(n, k, half, scale)
