"""Attacks on what the chapter on frozen projections says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding
from instances import Array


def _turns(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    return np.linalg.qr(rng.standard_normal((count, *shape)))[0]


#: Orthogonal matrices.
turns = instances.kind(
    "U",
    lambda: ((f"the identity of size {n}", (np.eye(n),)) for n in (2, 3, 4)),
    _turns,
    [(n, n) for n in (2, 3, 4, 6)],
)
#: With a row vector for each, over many orders of magnitude.
turned = turns.also(x=lambda rng, U: rng.standard_normal(U.shape[:2]) * 10.0 ** rng.uniform(-6, 6, (len(U), 1)))


def squares(x: Array) -> Array:
    return (x**2).sum(axis=-1)


def slices_in_mean(U: Array, x: Array, share: float | None = None) -> object:
    """The slices of k rows, begun at each of the d rows, hold the share k/d of the square on average."""
    d = U.shape[1]
    images = np.einsum("bij,bj->bi", U, x) ** 2
    both = True
    for k in range(1, d):
        mean = sum(np.roll(images, s, axis=1)[:, :k].sum(axis=1) for s in range(d)) / d
        part = equal(mean, (k / d if share is None else share) * squares(x), rounding(50 * d, squares(x)))
        both = part if both is True else both & part
    return both


@attack(
    "report/25",
    on=turned,
    wrong={
        "a slice keeps lengths": lambda U, x: slices_in_mean(U, x, share=1.0),
        "half": lambda U, x: slices_in_mean(U, x, share=0.5),
    },
)
def slices_hold_their_share(U, x):
    return slices_in_mean(U, x)


def length_after(U: Array, x: Array, columns: int | None = None) -> object:
    image = np.einsum("bi,bij->bj", x, U[:, :, :columns])
    return equal(squares(image), squares(x), rounding(100, squares(x)))


@attack(
    "report/25",
    "report/stable-gradients",
    on=turned,
    wrong={"one column": lambda U, x: length_after(U, x, columns=1)},
)
def a_square_orthogonal_matrix_keeps_lengths(U, x):
    return length_after(U, x)


#: The corners of an icosahedron: means over them of polynomials up to degree 5 are those over the sphere.
_G = (1 + 5**0.5) / 2
_CORNERS = np.asarray([np.roll([0.0, a, b * _G], s) for a in (-1, 1) for b in (-1, 1) for s in range(3)])
CORNERS = _CORNERS / np.linalg.norm(_CORNERS, axis=1, keepdims=True)
in_space = instances.kind(
    "x y",
    lambda: [
        ("one axis", (np.eye(3)[0], np.eye(3)[0])),
        ("two axes", (np.eye(3)[0], np.eye(3)[1])),
        ("opposite", (np.ones(3), -np.ones(3))),
        ("a zero", (np.ones(3), np.zeros(3))),
    ],
    lambda rng, count, shape: tuple(rng.standard_normal((2, count, *shape))),
    [(3,)],
)


def moments(x: Array, y: Array, plus: float = 2.0, shared: bool = True) -> object:
    """Mean and variance in three dimensions for slices of one and of two columns."""
    d, dot, norms = 3, (x * y).sum(axis=1), squares(x) * squares(y)
    first, second = x @ CORNERS.T, y @ CORNERS.T
    lines = first * second  # one column; two columns are what is left of the identity
    room = rounding(400, norms)
    both = True
    for k, forms in ((1, lines), (2, dot[:, None] - lines)):
        variance = k * (d - k) / (d * (d - 1) * (d + plus)) * (norms + (1 - 2 / d) * dot**2)
        part = equal(forms.mean(axis=1), k / d * dot, np.sqrt(room * norms + room))
        part = part & equal(forms.var(axis=1), variance, room)
        both = part if both is True else both & part
    pairs = (first[:, :, None] * second[:, None, :]) ** 2  # two independent slices of one column
    expected = (1 if shared else d) / d**2 * norms
    return both & equal(pairs.mean(axis=(1, 2)), expected, room)


@attack(
    "frozen_projections/moments",
    on=in_space,
    wrong={
        "d + 1 in place of d + 2": lambda x, y: moments(x, y, plus=1.0),
        "1/d for independent slices": lambda x, y: moments(x, y, shared=False),
    },
)
def moments_on_the_corners_of_an_icosahedron(x, y):
    return moments(x, y)


#: Two frozen heads of width 1 in four dimensions, and the forms that are wanted.
halves = instances.kind(
    "W A",
    lambda: [("axes", (np.eye(4), np.eye(4))), ("axes exchanged", (np.eye(4), np.eye(4)[::-1].copy()))],
    lambda rng, count, shape: (_turns(rng, count, shape), rng.standard_normal((count, *shape))),
    [(4, 4)],
)


def reached(W: Array, A: Array, transposed: bool = True) -> object:
    """Columns 0 and 1 are queries, 2 and 3 keys: one map R makes both wanted forms."""
    R = A @ np.linalg.inv(W)
    both = True
    for head in (0, 1):
        form = W[:, :, head, None] * W[:, None, :, head + 2]
        wanted = A[:, :, head, None] * A[:, None, :, head + 2]
        made = R @ form @ (R.swapaxes(1, 2) if transposed else R)
        size = np.linalg.norm(A, axis=(1, 2)) ** 2 + 1
        part = equal(made, wanted, rounding(2000, size)[:, None, None])
        both = part if both is True else both & part
    return both


@attack(
    "theorem-frozen-half",
    "frozen_projections/half",
    "report/frozen-expressivity",
    on=halves,
    wrong={"R on both sides": lambda W, A: reached(W, A, transposed=False)},
)
def half_of_the_heads_reach_all_forms(W, A):
    return reached(W, A)


#: Two heads in the plane, and a map of the input.
planes = instances.kind(
    "WQ WK R",
    lambda: [("turned axes", (np.eye(2), np.asarray([[3.0, 4], [4, -3]]) / 5, np.asarray([[1.0, 2], [0, 1]])))],
    lambda rng, count, shape: tuple(rng.standard_normal((3, count, *shape))),
    [(2, 2)],
).such_that(lambda WQ, WK, R: np.min([abs(np.linalg.det(M)) for M in (WQ, WK, R)], axis=0) > 0.1)


def invariants(WQ: Array, WK: Array) -> tuple[Array, Array]:
    T = np.linalg.solve(WQ, WK)
    return np.stack([T[:, 0, 0] * T[:, 1, 1], T[:, 0, 1] * T[:, 1, 0]]), np.abs(T).max(axis=(1, 2)) ** 2


def unchanged(WQ: Array, WK: Array, R: Array) -> object:
    """T11 T22 : T12 T21 is the same after a map, and after other factors of the same forms."""
    (a, b), size = invariants(WQ, WK)
    factors = np.asarray([2.0, -0.25])
    (c, e), other = invariants(R @ WQ * factors, R @ WK / factors)
    condition = np.linalg.cond(R) * np.linalg.cond(WQ) ** 2
    return equal(a * e, b * c, rounding(1000, size * other, condition))


def turned_after(WQ: Array, WK: Array, R: Array) -> object:
    """A mistake: the map on the keys alone."""
    (a, b), size = invariants(WQ, WK)
    (c, e), other = invariants(WQ, R @ WK)
    return equal(a * e, b * c, rounding(1000, size * other))


@attack(
    "theorem-frozen-half",
    "report/frozen-expressivity",
    on=planes,
    wrong={"the map on the keys alone": turned_after},
)
def no_map_changes_the_ratio(WQ, WK, R):
    return unchanged(WQ, WK, R)


#: With a map to be approximated and a change of the best readout.
targets = turns.also(
    A=lambda rng, U: rng.standard_normal((len(U), 3, U.shape[1])),
    E=lambda rng, U, A: rng.standard_normal((len(U), 3, 1)) * 10.0 ** rng.uniform(-3, 1, (len(U), 1, 1)),
)


def missed(U: Array, A: Array, E: Array, extra: float = 0.0) -> object:
    """One row: no other readout misses less, and the mean over the d rows is the share 1 - 1/d."""
    d, total = U.shape[1], (A**2).sum(axis=(1, 2))
    losses = []
    for s in range(d):
        Omega = U[:, s : s + 1]
        best = A @ Omega.swapaxes(1, 2)
        losses.append(((A - best @ Omega) ** 2).sum(axis=(1, 2)))
        other = ((A - (best + E) @ Omega) ** 2).sum(axis=(1, 2))
    room = rounding(500, total + (E**2).sum(axis=(1, 2)))
    mean = sum(losses) / d
    return at_most(losses[-1], other, room) & equal(mean, (1 - (1 + extra) / d) * total, room)


@attack("report/any-linear-map", on=targets, wrong={"two rows": lambda U, A, E: missed(U, A, E, extra=1.0)})
def a_slice_misses_its_share(U, A, E):
    return missed(U, A, E)


#: Outputs of a frozen head on three sequences, five numbers each, with any labels.
readouts = instances.kind(
    "F c",
    lambda: [("axes", (np.eye(3, 5), np.asarray([1.0, -1.0, 1.0])))],
    lambda rng, count, shape: (rng.standard_normal((count, *shape)), rng.choice([-1.0, 1.0], (count, shape[0]))),
    [(3, 5)],
)
too_many = instances.kind(
    "F c",
    lambda: [("axes twice", (np.concatenate([np.eye(5), -np.eye(5)])[:7], np.ones(7)))],
    lambda rng, count, shape: (rng.standard_normal((count, *shape)), rng.choice([-1.0, 1.0], (count, shape[0]))),
    [(7, 5)],
)


@attack("report/overfitting-avoided", on=readouts, wrong={"seven sequences": too_many})
def a_readout_repeats_any_labels(F, c):
    readout = np.linalg.pinv(F) @ c[:, :, None]
    return equal((F @ readout)[:, :, 0], c, rounding(500, 1.0, np.linalg.cond(F))[:, None])


def dimension(U: Array, plus: int = -1) -> Array:
    """The rank of S -> U (S - S^T), the directions in which an orthogonal matrix can move."""
    d = U.shape[1]
    S = np.eye(d * d).reshape(d * d, d, d)
    moves = np.einsum("bij,sjk->bsik", U, S - S.swapaxes(1, 2)).reshape(len(U), d * d, d * d)
    return np.sum(np.linalg.svd(moves, compute_uv=False) > 1e-9, axis=1) == d * (d + plus) // 2


@attack(
    "theorem-frozen-circuit",
    "report/fast-products",
    on=instances.kind("U", lambda: [("the identity", (np.eye(4),))], _turns, [(2, 2), (3, 3)]),
    wrong={"the symmetric directions": lambda U: dimension(U, plus=1)},
)
def orthogonal_matrices_have_half_of_the_dimensions(U):
    return dimension(U)


no_attack("frozen_projections/conditioning", because="measured: It compares condition numbers of twenty drawn heads.")
