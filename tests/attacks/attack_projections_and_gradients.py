"""Attacks on what the chapter on projections and their gradients says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, no_attack, rounding, true
from instances import Array, entries, moderate, softmax

# Projections --------------------------------------------------------------------------------------------------------


def _tall(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Matrices from their factors, with known singular values between 1/2 and 2, and rows."""
    d_model, d_k = shape
    left = np.linalg.qr(rng.normal(size=(count, d_model, d_model)))[0]
    right = np.linalg.qr(rng.normal(size=(count, d_k, d_k)))[0]
    values = np.exp2(rng.uniform(-1, 1, size=(count, min(shape))))
    size = min(shape)
    return (left[:, :, :size] * values[:, None]) @ right[:, :size], rng.normal(size=(count, d_model))


def _named_tall():
    for d_model, d_k in WIDTHS:
        yield f"identity, {d_model} x {d_k}", (np.eye(d_model, d_k), np.arange(1.0, d_model + 1))
        yield f"shifted identity, {d_model} x {d_k}", (np.roll(np.eye(d_model, d_k), 1, axis=0), np.ones(d_model))


WIDTHS = ((1, 1), (2, 1), (3, 1), (3, 2), (4, 4), (5, 2), (6, 3), (2, 4))
projections = instances.kind("W x", _named_tall, _tall, WIDTHS)


def in_order(W, x, row=True):
    """The query from the factors: U first for a row, V^T first for a column."""
    U, sigma, Vt = np.linalg.svd(W)
    Sigma = np.zeros(W.shape)
    steps = np.arange(sigma.shape[1])
    Sigma[:, steps, steps] = sigma
    first, last = (U, Vt) if row else (Vt.swapaxes(1, 2), U.swapaxes(1, 2))
    middle = Sigma if row else Sigma.swapaxes(1, 2)
    found = x[:, None, :] @ first @ middle @ last
    size = np.abs(x).sum(axis=1) * 4 * W.shape[1]
    return equal(found[:, 0], (x[:, None, :] @ W)[:, 0], rounding(64, size))


square = projections.such_that(lambda W, x: np.full(len(W), W.shape[1] == W.shape[2]))


@attack("5.1.8/query-svd", on=projections,
        wrong={"the order of a column": (lambda W, x: in_order(W, x, row=False), square)})  # fmt: skip
def a_row_meets_u_first(W, x):
    return in_order(W, x)


def blind_directions(W, x, count):
    """The input directions without a trace form the null space of the transpose of W."""
    values = np.linalg.eigvalsh(W @ W.swapaxes(1, 2))  # at least 1/4 where not 0
    return (values < 1e-9).sum(axis=1) == count(W.shape[1], W.shape[2])


compressing = projections.such_that(lambda W, x: np.full(len(W), W.shape[1] > W.shape[2]))


@attack(
    "projections_and_gradients/invisible-directions",
    on=compressing,
    wrong={"as many as query components": lambda W, x: blind_directions(W, x, lambda d_model, d_k: d_k)},
)
def the_blind_directions_are_counted(W, x):
    return blind_directions(W, x, lambda d_model, d_k: d_model - d_k)


changes = instances.inputs.such_that(moderate(30)).also(
    A=lambda rng, X, W_Q, W_K, W_V: (
        np.linalg.qr(rng.normal(size=(len(X), W_Q.shape[2], W_Q.shape[2])))[0]
        * rng.uniform(0.5, 2, size=(len(X), 1, W_Q.shape[2]))
    )
)


def scores_after(X, W_Q, W_K, A, change):
    other = np.linalg.inv(A).swapaxes(1, 2) if change else A
    before = X @ W_Q @ (X @ W_K).swapaxes(1, 2)
    after = X @ W_Q @ A @ (X @ W_K @ other).swapaxes(1, 2)
    size = [np.abs(M).sum(axis=(1, 2)) for M in (X, W_Q, X, W_K)]
    return equal(after, before, rounding(256, np.prod(size, axis=0), 16))


@attack(
    "projections_and_gradients/gauge",
    on=changes,
    wrong={"the same matrix on both": lambda X, W_Q, W_K, W_V, A: scores_after(X, W_Q, W_K, A, False)},
)
def a_change_of_basis_keeps_the_scores(X, W_Q, W_K, W_V, A):
    return scores_after(X, W_Q, W_K, A, True)


# Xavier's variance --------------------------------------------------------------------------------------------------


def _signed(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    return entries(rng, count, shape[:1], scaled=False), entries(rng, count, shape[1:], scaled=False)


signed = instances.kind(
    "x g",
    lambda: ((f"ones, {a} to {b}", (np.ones(a), np.ones(b))) for a, b in ((1, 1), (2, 1), (1, 3), (2, 3))),
    _signed,
    ((1, 1), (1, 2), (2, 1), (3, 1), (1, 3), (2, 2)),
)


def gains(x, g, forward):
    """Mean squares over all signs of the entries: exact for uncorrelated entries of Xavier's variance."""
    a, b = x.shape[1], g.shape[1]
    signs = 2.0 * np.array(list(np.ndindex(*[2] * (a * b)))).reshape(-1, a, b) - 1
    W = np.sqrt(2 / (a + b)) * signs
    ahead = ((x[:, None, None] @ W) ** 2).mean(axis=(1, 2, 3))
    back = ((g[:, None, None] @ W.swapaxes(1, 2)) ** 2).mean(axis=(1, 2, 3))
    in_x, in_g = (x**2).mean(axis=1), (g**2).mean(axis=1)
    slack = rounding(64 * a * b, in_x + in_g)
    one = equal(ahead, 2 * forward(a, b) / (a + b) * in_x, slack)
    return one & equal(back, 2 * forward(b, a) / (a + b) * in_g, slack)


@attack(
    "5.1.8/xavier-stable",
    "projections_and_gradients/measured-gains",
    on=signed,
    wrong={"the two gains exchanged": lambda x, g: gains(x, g, lambda here, there: there)},
)
def the_gains_are_those_of_the_widths(x, g):
    return gains(x, g, lambda here, there: here)


chains = instances.kind(
    "widths",
    lambda: ((f"widths {w}", (np.array(w, dtype=float),)) for w in ((4, 4, 4), (4, 1, 4), (1, 9, 1), (3, 5, 2))),
    lambda rng, c, shape: rng.integers(1, 600, size=(c, *shape)).astype(float),
    [(k,) for k in (2, 3, 4, 6)],
)


def chain(widths, share, returns=False):
    """The product of the gains against the formula of the proposition."""
    a, b = widths[:, :-1], widths[:, 1:]
    if returns:
        a, b = np.concatenate([a, widths[:, -1:]], axis=1), np.concatenate([b, widths[:, :1]], axis=1)
    found = np.prod(2 * a / (a + b), axis=1)
    formula = np.sqrt(a[:, 0] / b[:, -1]) * np.prod(share(a, b), axis=1)
    slack = rounding(64, np.maximum(found, formula))
    kept = np.prod(a / np.sqrt(a * b), axis=1)
    ratio = np.sqrt(a[:, 0] / b[:, -1])
    bounded = at_most(found, 1.0, rounding(64, 1 + found)) if returns else true(np.full(len(a), True))
    return equal(found, formula, slack) & equal(kept, ratio, rounding(64, 1 + ratio)) & bounded


def lost(a, b):
    return 1 - (np.sqrt(a) - np.sqrt(b)) ** 2 / (a + b)


@attack(
    "proposition-change-of-width",
    "projections_and_gradients/chain",
    on=chains,
    wrong={"nothing is lost": lambda widths: chain(widths, lambda a, b: np.ones_like(a))},
)
def every_change_of_width_costs(widths):
    means = chain(widths, lambda a, b: np.sqrt(a * b) / ((a + b) / 2))
    return means & chain(widths, lost) & chain(widths, lost, returns=True)


same_width = chains.map("widths", lambda widths: np.repeat(widths[:, :1], widths.shape[1], axis=1))


@attack("proposition-change-of-width", on=same_width | chains,
        wrong={"all chains that return": lambda widths: keeps_its_size(widths, widths[:, 0] > 0)})  # fmt: skip
def only_equal_widths_lose_nothing(widths):
    return keeps_its_size(widths, widths.max(axis=1) == widths.min(axis=1))


def keeps_its_size(widths, expected):
    following = np.roll(widths, -1, axis=1)
    product = np.prod(2 * widths / (widths + following), axis=1)
    return (product > 1 - 1e-9) == expected


def score_spread(x, y, d_k, power):
    """Variance of a scaled score over all signs of W_Q and W_K, exact for every law with these moments."""
    d = x.shape[1]
    signs = 2.0 * np.array(list(np.ndindex(*[2] * (d * d_k)))).reshape(-1, d, d_k) - 1
    W = np.sqrt(2 / (d + d_k)) * signs
    q, k = x[:, None, None] @ W, y[:, None, None] @ W  # all W_Q, all W_K
    scores = q[:, :, 0] @ k[:, :, 0].swapaxes(1, 2) / np.sqrt(d_k)
    found = (scores**2).mean(axis=(1, 2))
    lengths = (x**2).sum(axis=1) * (y**2).sum(axis=1)
    return equal(found, (2 / (d + d_k)) ** power * lengths, rounding(256, d * lengths))


pairs = instances.vector_pairs.such_that(moderate(1e3)).such_that(lambda x, y: np.full(len(x), x.shape[1] <= 3))


def all_widths(x, y, power=2):
    one = score_spread(x, y, 1, power) & score_spread(x, x, 1, power)
    return one & score_spread(x, y, 2, power) if x.shape[1] < 3 else one


@attack(
    "5.1.8/score-variance", on=pairs, wrong={"one power of Xavier's variance": lambda x, y: all_widths(x, y, power=1)}
)
def the_variance_follows_the_lengths(x, y):
    return all_widths(x, y)


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
    "projections_and_gradients/matrix-form",
    "projections_and_gradients/autograd",
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
    "5.1.8/query-jacobian",
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


@attack("projections_and_gradients/half", on=rows_and_gradients,
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
    "projections_and_gradients/absorbed",
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


@attack("theorem-cubic", "projections_and_gradients/cubic", "5.1.8/any-depth", on=mild,
        wrong={"the means not subtracted": lambda *given: cubed(*given, means=0.0)})  # fmt: skip
def attention_cubes_the_spread(X, W_Q, W_K, W_V, c):
    return cubed(X, W_Q, W_K, W_V, c)


no_attack(
    "5.1.8/any-length",
    because="exact: both laws are derived for symbolic lengths and widths, and drawn rows agree with them.",
)
