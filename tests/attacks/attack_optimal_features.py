"""Attacks on what the chapter on FAVOR++ and FAVOR# says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, less, no_attack, rounding
from instances import Array


def h(r: Array, s: Array) -> Array:
    """Log of the relative second moment on one axis."""
    return np.log((1 + r) / (2 * np.sqrt(r))) + s / r


def best(s: Array) -> Array:
    return (1 + 2 * s + np.sqrt((1 + 2 * s) ** 2 + 8 * s)) / 2


def H(s: Array) -> Array:
    return h(best(s), s)


# One axis against quadrature ----------------------------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def product(r: Array, u: Array, v: Array) -> Array:
    """The product of two features of one axis at the nodes, from their definition."""
    p, a = (1 + r) / 2, (1 - r) / 8
    root = np.sqrt(p)[:, None]
    exponent = 2 * a[:, None] * _NODES**2 + root * _NODES * (u + v)[:, None] - ((u**2 + v**2) / 2)[:, None]
    return root * np.exp(exponent)


def one_axis(r: Array, u: Array, v: Array, power: float = 1.0):
    drawn = product(r, u, v)
    mean, second = drawn @ _WEIGHTS, drawn**2 @ _WEIGHTS
    # Quadrature of a bell of width 1 / sqrt(r) is exact to about 1e-7 for 1/2 <= r <= 2 and u + v of order 1.
    closed = ((1 + r) / (2 * np.sqrt(r))) ** power * np.exp((u + v) ** 2 / r + 2 * u * v)
    return equal(mean, np.exp(u * v), 1e-6 * np.exp(u * v)) & equal(second, closed, 1e-6 * closed)


axes = instances.numbers(r=(0.5, 2.0), u=(1e-3, 1.0), v=(1e-3, 1.0)).map(
    "r u v", lambda r, u, v: (r, u * np.sign(np.sin(1e6 * v)), v)
)


@attack(
    "optimal_features/second-moment",
    "theorem-dense-variance",
    on=axes,
    wrong={"the factor in front dropped": lambda r, u, v: one_axis(r, u, v, power=0.0)},
)
def the_second_moment_on_one_axis_is_as_displayed(r, u, v):
    return one_axis(r, u, v)


def dense(M: Array, x: Array, y: Array, inverse: bool = True):
    """The general formula against the one in A, B and C, for A = -M M^T / (8 |M|^2) and B_q = (I - 4A)^(1/2) M."""
    n = M.shape[1]
    eye = np.eye(n)
    A = -M @ M.swapaxes(1, 2) / (8 * np.linalg.norm(M, axis=(1, 2))[:, None, None] ** 2)
    values, vectors = np.linalg.eigh(eye - 4 * A)
    root = vectors * np.sqrt(values)[:, None] @ vectors.swapaxes(1, 2)
    key = np.linalg.inv(M).swapaxes(1, 2) if inverse else M
    B_q, B_k = root @ M, root @ key
    R4, R8 = np.linalg.inv(eye - 4 * A), np.linalg.inv(eye - 8 * A)
    b = np.einsum("bij,bj->bi", B_q, x) + np.einsum("bij,bj->bi", B_k, y)

    def form(matrix: Array, w: Array) -> Array:
        return np.einsum("bi,bij,bj->b", w, matrix, w)

    own = [form(B.swapaxes(1, 2) @ R4 @ B, w) for B, w in ((B_q, x), (B_k, y))]
    raw = 2 * form(R8, b) - own[0] - own[1] - 2 * np.einsum("bi,bi->b", x, y)
    c = np.einsum("bij,bj->bi", M, x) + np.einsum("bij,bj->bi", key, y)
    size = form(eye + 0 * A, b) + own[0] + own[1] + 1
    return equal(raw, form(R8, c), 1e-9 * size)


changes = instances.square_matrices.such_that(
    lambda M: (np.abs(M).max((1, 2)) > 0.1) & (np.abs(M).max((1, 2)) < 10) & (np.linalg.cond(M) < 1e3)
).also(
    x=lambda rng, M, *_: rng.normal(size=M.shape[:2]),
    y=lambda rng, M, *_: rng.normal(size=M.shape[:2]),
)


@attack(
    "theorem-dense-variance",
    on=changes,
    wrong={"one matrix for both": lambda M, x, y: dense(M, x, y, inverse=False)},
)
def the_exponent_depends_on_the_changed_sum_alone(M, x, y):
    return dense(M, x, y)


# The report's rows ----------------------------------------------------------------------------------------------------


def two_bounds(x: Array, y: Array, threshold: float = np.log(2) / 4):
    score = np.sum(x * y, axis=1)
    plus, minus = np.sum((x + y) ** 2, axis=1), np.sum((x - y) ** 2, axis=1)
    trigonometric, positive = np.cosh(minus) - 1, np.expm1(plus)
    slack = rounding(40 * (1 + x.shape[1]), 1 + np.cosh(minus) + np.exp(plus), 1 + plus + minus)
    above = at_most(np.where(score >= 0, trigonometric, 0), np.where(score >= 0, positive, 1), slack)
    low = score <= -threshold
    return above & at_most(np.where(low, positive, 0), np.where(low, trigonometric, 1), slack)


@attack(
    "optimal_features/trigonometric",
    on=instances.vector_pairs.such_that(instances.moderate(4.0)),
    wrong={"for every negative score": lambda x, y: two_bounds(x, y, threshold=1e-12)},
)
def the_sign_of_the_score_decides_between_trigonometric_and_positive(x, y):
    return two_bounds(x, y)


def gain_grows(s: Array, step: Array, factor: float = 1.0):
    slack = rounding(40, 1 + s + step)
    return at_most(factor * (s - H(s)), (s + step) - H(s + step), slack) & at_most(0, s - H(s), slack)


means = instances.numbers(s=(1e-6, 1e4), step=(1e-6, 10.0))


@attack(
    "report/favor-plus-plus",
    on=means,
    wrong={"it grows by a quarter": lambda s, step: gain_grows(s, step, factor=1.25)},
)
def the_gain_is_not_negative_and_grows(s, step):
    return gain_grows(s, step)


def unbounded(s: Array, limit: float = np.inf):
    return at_most(H(s), 0.5 * np.log1p(2 * s) + 0.2, rounding(40, 1 + np.log1p(s))) & less(
        0.5 * np.log(np.maximum(s, 1)) + 0.15 - 1e-12, np.maximum(H(s), 0.2)
    ) & at_most(H(s), limit, 0.0)  # fmt: skip


@attack(
    "optimal_features/gain",
    on=instances.numbers(s=(1.0, 1e12)),
    wrong={"at most 10": lambda s: unbounded(s, limit=10.0)},
)
def the_least_log_second_moment_grows_like_half_a_logarithm(s):
    return unbounded(s)


def at_both_ends(s: Array, leading: float = 2.0):
    small = s - H(s)
    return at_most(np.abs(small - leading * s**2), 60 * s**3, rounding(200, 1.0))


@attack(
    "optimal_features/gain",
    on=instances.numbers(s=(1e-4, 1e-2)),
    wrong={"one instead of two": lambda s: at_both_ends(s, leading=1.0)},
)
def the_gain_begins_with_two_s_squared(s):
    return at_both_ends(s)


def invariant(M: Array, X: Array, Y: Array, inverse: bool = True):
    """The scores, and the nuclear norm of G_q^T G_k from eigenvalues of the second moments, after the change."""

    def nuclear(one: Array, two: Array) -> Array:
        moments = one.swapaxes(1, 2) @ one @ two.swapaxes(1, 2) @ two
        return np.sqrt(np.maximum(np.linalg.eigvals(moments).real, 0)).sum(1)

    one, two = X @ M.swapaxes(1, 2), Y @ (np.linalg.inv(M) if inverse else M.swapaxes(1, 2))
    kept = X @ Y.swapaxes(1, 2)
    size = np.linalg.norm(X, axis=(1, 2)) * np.linalg.norm(Y, axis=(1, 2))
    scores = equal(one @ two.swapaxes(1, 2), kept, 1e-9 * (size + 1))
    norms = np.linalg.svd(kept, compute_uv=False).sum(1)
    # Roots of eigenvalues near 0 keep half of the digits.
    return scores & equal(nuclear(one, two), norms, 1e-4 * (size + 1))


tables = instances.square_matrices.such_that(
    lambda M: (np.abs(M).max((1, 2)) > 0.1) & (np.abs(M).max((1, 2)) < 10) & (np.linalg.cond(M) < 1e3)
).also(
    X=lambda rng, M, *_: rng.normal(size=(len(M), 3, M.shape[1])),
    Y=lambda rng, M, *_: rng.normal(size=(len(M), 4, M.shape[1])),
)


@attack(
    "optimal_features/scale",
    on=tables,
    wrong={"the keys changed by M too": lambda M, X, Y: invariant(M, X, Y, inverse=False)},
)
def scores_and_the_least_trace_do_not_change_under_a_linear_change(M, X, Y):
    return invariant(M, X, Y)


# The best parameters --------------------------------------------------------------------------------------------------


def minimal(s: Array, r: Array, weight: float = 2.0):
    other = (1 + weight * s + np.sqrt((1 + weight * s) ** 2 + 8 * s)) / 2
    return at_most(h(other, s), h(r, s), rounding(40, 1 + s / r + s))


@attack(
    "theorem-best-coefficient",
    "optimal_features/coefficient",
    on=instances.numbers(s=(1e-6, 1e4), r=(1e-3, 1e5)),
    wrong={"s in the place of 2s": lambda s, r: minimal(s, r, weight=1.0)},
)
def no_other_coefficient_is_better(s, r):
    return minimal(s, r)


def concave(s: Array, t: Array, sign: float = 1.0):
    gap = H((s + t) / 2) - (H(s) + H(t)) / 2
    slack = rounding(40, 1 + s + t)
    return at_most(-sign * gap, 0.0, slack) & at_most(H(np.minimum(s, t)), H(np.maximum(s, t)), slack)


@attack(
    "theorem-best-coefficient",
    on=instances.numbers(s=(1e-6, 1e4), t=(1e-6, 1e4)),
    wrong={"convex": lambda s, t: concave(s, t, sign=-1.0)},
)
def the_minimum_is_concave_and_increases(s, t):
    return concave(s, t)


def directions(M: Array, Q: Array, best_axes: bool = True):
    S = M @ M.swapaxes(1, 2)
    values = np.maximum(np.linalg.eigvalsh(S), 0)
    axes, _ = np.linalg.qr(Q)
    along = np.maximum(np.einsum("bij,bik,bkj->bj", axes, S, axes), 0)
    here, there = H(values).sum(1), H(along).sum(1)
    mean = values.mean(axis=1)
    slack = rounding(200 * S.shape[1], 1 + values.sum(1), 10.0) + 1e-7 * np.sqrt(values.max(1))
    ordered = at_most(here, there, slack) if best_axes else at_most(there, here, slack)
    return ordered & at_most(here, S.shape[1] * H(mean), slack)


turned = instances.square_matrices.such_that(lambda M: np.abs(M).max((1, 2)) < 1e3).also(
    Q=lambda rng, M, *_: rng.normal(size=M.shape)
)


@attack(
    "theorem-best-directions",
    "optimal_features/directions",
    on=turned,
    wrong={"the eigenvectors are the worst": lambda M, Q: directions(M, Q, best_axes=False)},
)
def no_other_axes_are_better_than_eigenvectors(M, Q):
    return directions(M, Q)


def trace_bound(M: Array, X: Array, Y: Array, twice: float = 2.0):
    G_q, G_k = X.swapaxes(1, 2) / np.sqrt(X.shape[1]), Y.swapaxes(1, 2) / np.sqrt(Y.shape[1])
    P, R = M @ G_q, np.linalg.inv(M).swapaxes(1, 2) @ G_k
    trace = np.sum(P**2, axis=(1, 2)) + np.sum(R**2, axis=(1, 2))
    nuclear = np.linalg.svd(G_q.swapaxes(1, 2) @ G_k, compute_uv=False).sum(1)
    return at_most(twice * nuclear, trace, 1e-9 * (1 + trace))


@attack(
    "theorem-best-directions",
    "optimal_features/linear-change",
    on=tables,
    wrong={"twice as much": lambda M, X, Y: trace_bound(M, X, Y, twice=4.0)},
)
def the_trace_is_at_least_twice_the_nuclear_norm(M, X, Y):
    return trace_bound(M, X, Y)


def at_zero(r: Array, sign: float = 1.0):
    return less(0.0, sign * ((np.sqrt(r) - 1) ** 2 / (2 * np.sqrt(r)) + 1e-300)) & equal(
        np.exp(h(r, np.zeros_like(r))) - 1,
        (np.sqrt(r) - 1) ** 2 / (2 * np.sqrt(r)),
        rounding(20, 1 + np.exp(h(r, 0 * r))),
    )


@attack(
    "optimal_features/one-pair",
    on=instances.numbers(r=(1e-3, 1e3)).such_that(lambda r: np.abs(r - 1) > 1e-9),
    wrong={"it is negative": lambda r: at_zero(r, sign=-1.0)},
)
def every_other_coefficient_has_a_variance_at_zero(r):
    return at_zero(r)


no_attack(
    "optimal_features/variances",
    because="instance: it compares six formulas with draws for one named pair of a query and a key.",
)
no_attack(
    "optimal_features/heads",
    because="measured: it says what the heads of one trained encoder do on one passage.",
)
