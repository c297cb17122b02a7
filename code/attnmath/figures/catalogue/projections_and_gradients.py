"""Numbers behind the figures of the chapter on projections and gradients (section 5.1.8), with fixed seeds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from attnmath import estimate, initialisation
from attnmath.estimate import Estimate
from attnmath.gradients import stack_gradients, stage_gradients

SEED = 518
#: A map of the plane with singular values 3 and 1: x reads along 30 degrees, q is written along 110.
PLANE = (
    np.asarray([[np.cos(np.pi / 6), -np.sin(np.pi / 6)], [np.sin(np.pi / 6), np.cos(np.pi / 6)]])
    @ np.diag([3.0, 1.0])
    @ np.asarray(
        [[np.cos(11 * np.pi / 18), np.sin(11 * np.pi / 18)], [-np.sin(11 * np.pi / 18), np.cos(11 * np.pi / 18)]]
    )
)
#: Numbers of columns against a fixed number of 32 rows: ratios from 1/16 to 16.
FIXED, WIDTHS = 32, [2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512]
#: Widths of a chain of maps that shrinks and widens in turn.
CHAIN = [64, 16] * 4 + [64]
LENGTHS = [2**k for k in range(1, 10)]
WIDTH = 32
DEPTH = 4


def gather(estimates: list[Estimate]) -> Estimate:
    """Gather estimates of numbers into one of arrays."""
    return Estimate(*(np.asarray([getattr(e, f) for e in estimates]) for f in ("value", "standard_error")))


def circle_in_the_input() -> dict[str, Any]:
    """The unit circle of inputs x, and the two rows u_1, u_2 of U^T."""
    U, _, _ = oriented_svd(PLANE)
    return {
        "curves": {"$x$": circle()},
        "arrows": {"$u_1$": U[:, 0], "$u_2$": U[:, 1]},
        "xlabel": "$x_1$",
        "ylabel": "$x_2$",
        "reach": 3.9,
    }


def ellipse_in_the_output() -> dict[str, Any]:
    """The image x W of the circle, and the one that the factors give in the printed order."""
    _, s, Vt = oriented_svd(PLANE)
    return {
        "curves": {r"$x\,W=x\,U\,\Sigma\,V^\top$": circle() @ PLANE, r"$U\,\Sigma\,V^\top x$": circle() @ PLANE.T},
        "arrows": {r"$\sigma_1 v_1$": s[0] * Vt[0], r"$\sigma_2 v_2$": s[1] * Vt[1]},
        "xlabel": "$q_1$",
        "ylabel": "$q_2$",
        "reach": 3.9,
    }


def circle(points: int = 201) -> Any:
    """Points of the unit circle, shape (points, 2)."""
    angle = np.linspace(0, 2 * np.pi, points)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def oriented_svd(W: Any) -> tuple[Any, Any, Any]:
    """Singular value decomposition with signs that no library may choose: the rows of V^T sum to more than 0."""
    U, s, Vt = np.linalg.svd(W)
    signs = np.sign(Vt.sum(axis=1))
    return U * signs, s, signs[:, None] * Vt


def xavier_gains(size: int = 20_000) -> dict[str, Any]:
    """Forward and backward gain against d_out / d_in, from about `size` components each, over the predictions."""
    rng = np.random.default_rng(SEED)
    x = np.linspace(1, 3, FIXED)  # one fixed input, neither centred nor of unit size
    measured = [
        initialisation.measured_gains(x, np.linspace(-1, 2, width), max(8, size // width), rng) for width in WIDTHS
    ]
    predicted = np.asarray([initialisation.gains(FIXED, width) for width in WIDTHS]).T
    return {
        "x": [width / FIXED for width in WIDTHS],
        "estimates": {
            r"$x \to x\,W$": gather([forward for forward, _ in measured]),
            r"$g \to g\,W^\top$": gather([backward for _, backward in measured]),
        },
        "predictions": {
            r"$2d/(d_\mathrm{in}+d_\mathrm{out})$": predicted[0],
            "_backward": predicted[1],
        },
        "xlabel": r"$d_\mathrm{out}/d_\mathrm{in}$",
        "ylabel": r"$\mathbb{E}\,y_j^2\,/\,\overline{x_i^2}$",
        "legend_at": "center left",
    }


def chain_gains(draws: int = 2000) -> dict[str, Any]:
    """Mean square of a signal along a chain of widths 64, 16, 64, ..., for two variances of the weights."""
    rng = np.random.default_rng(SEED)
    rules = {
        r"$\mathrm{Var}(W)=2/(d_\mathrm{in}+d_\mathrm{out})$": initialisation.xavier_variance,
        r"$\mathrm{Var}(W)=1/\sqrt{d_\mathrm{in}d_\mathrm{out}}$": initialisation.geometric_variance,
    }
    predicted = [initialisation.chain_gains(CHAIN, rule) for rule in rules.values()]
    return {
        "x": list(range(len(CHAIN))),
        "estimates": {s: initialisation.measured_chain(CHAIN, rule, draws, rng) for s, rule in rules.items()},
        "predictions": {f"_{k}": values for k, values in enumerate(predicted)},
        "xlabel": r"$\ell$",
        "ylabel": r"$\overline{x_\ell^2}\,/\,\overline{x_0^2}$",
        "xscale": "linear",
        "yscale": "log",
        "yticks": [0.2, 0.5, 1, 2],
        "legend_at": "lower left",
    }


@cache
def query_gradient(
    n: int, *, shared: bool = True, queries: float = 0.0, scaled: bool = True, draws: int = 200
) -> Estimate:
    """E|dL/dq|^2 for one query over n keys, |g| = 1, in width 32 with square Xavier weights.

    shared : keys and values are projections of the same Gaussian rows; else independent
    Gaussian matrices.  queries : factor on the query's own Xavier weights; 0 makes attention uniform.
    """
    rng = np.random.default_rng((SEED, n, shared, scaled))
    X = rng.standard_normal((draws, n, WIDTH))
    W_Q, W_K, W_V = (initialisation.draw_weights(WIDTH, WIDTH, draws, rng) for _ in range(3))
    K, V = (X @ W_K, X @ W_V) if shared else rng.standard_normal((2, draws, n, WIDTH))
    G = rng.standard_normal((draws, 1, WIDTH))
    G /= np.linalg.norm(G, axis=-1, keepdims=True)
    dQ = stage_gradients(queries * X[:, :1] @ W_Q, K, V, G, scale=None if scaled else 1.0).Q
    return estimate.mean(np.sum(dQ**2, axis=(1, 2)))


def gradient_by_length() -> dict[str, Any]:
    """E|dL/dq|^2 against the number of keys, over the two predictions for uniform attention."""
    n = np.asarray(LENGTHS, dtype=float)
    series: dict[str, dict[str, Any]] = {
        "$W_Q=0$": {},
        "$W_Q=0$,  $K\\perp V$": {"shared": False},
        r"$QK^\top/\sqrt{d_k}$": {"queries": 1.0},
        "$QK^\\top$": {"queries": 1.0, "scaled": False},
    }
    return {
        "x": LENGTHS,
        "estimates": {s: gather([query_gradient(k, **how) for k in LENGTHS]) for s, how in series.items()},
        "predictions": {
            r"$(n-1)(n+d)/(n^2d)$": (n - 1) * (n + WIDTH) / (n**2 * WIDTH),
            "_independent": (n - 1) / n**2,
        },
        "xlabel": "$n$",
        "ylabel": r"$\mathbb{E}\,\|\partial\mathcal{L}/\partial q_i\|^2$",
        "yscale": "log",
        "legend_at": "lower left",
    }


@cache
def layer_gradients(*, residual: bool = False, scaled: bool = True, n: int = 16, draws: int = 24) -> Any:
    """Draw log10 |dL/dW_Q| for each of four layers of random weights, shape (draws, 4); |G| = 1."""
    found = []
    for draw in range(draws):
        rng = np.random.default_rng((SEED, draw))
        layers = [tuple(initialisation.draw_weights(WIDTH, WIDTH, 3, rng)) for _ in range(DEPTH)]
        X, G = rng.standard_normal((2, n, WIDTH))
        stack = stack_gradients(X, layers, G / np.linalg.norm(G), residual=residual, scale=None if scaled else 1.0)
        found.append([np.log10(np.linalg.norm(g.W_Q)) for g in stack])
    return np.asarray(found)


def gradient_by_layer() -> dict[str, Any]:
    """Mean log10 |dL/dW_Q| in each layer of a stack of four: plain, unscaled, and with residual connections."""
    series: dict[str, dict[str, bool]] = {
        r"$QK^\top/\sqrt{d_k}$": {},
        "$QK^\\top$": {"scaled": False},
        r"$X+\mathrm{Attn}(X)$": {"residual": True},
    }
    return {
        "x": list(range(1, DEPTH + 1)),
        "estimates": {s: estimate.mean(layer_gradients(**how)) for s, how in series.items()},
        "xlabel": r"$\ell$",
        "ylabel": r"$\log_{10}\|\partial\mathcal{L}/\partial W_Q^{(\ell)}\|_F$",
        "xscale": "linear",
    }
