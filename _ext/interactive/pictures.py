"""What an interactive figure shows before anybody moves it: in print, in a PDF, and where no script runs.

Each function draws the state in which the live figure begins, with numbers of the package. Captions and alternative
texts are in `play.yml` at the root of the book, and serve the live figure as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnlab.heads.example import four_tokens
from attnmath import figures, sparsity
from attnmath.fixed_attention import reachability
from attnmath.linear_cost.random_features import optimal, variance
from attnmath.matrix import mixing, patterns, rank
from attnmath.operator.attention import softmax, softmax_jacobian

from .tables import EPSILON, LENGTHS, Floats, models, tables

#: What the figures show, in words: a file of the book.
WORDS = "play.yml"

#: The state in which each live figure begins; `assets/figures.js` has the same numbers.
QUERY = 3
BETA, GAMMA, LENGTH = -1.0, 1.5, 64
NORM_OF_SUM, NORM_OF_DIFFERENCE = 2.0, 1.0
TEMPERATURES = np.geomspace(0.05, 20, 41)
WIDTH = 16
POSITIONS, STRIDE = 48, 7
VECTORS = ((1.2, 0.6), (0.8, -0.7))


def row() -> Figure:
    """Draw the weights of the query *it* of the small head, and their Jacobian."""
    head = four_tokens()
    weights = softmax((head.Q @ head.K.T)[QUERY] / np.sqrt(2))
    figure, (bars, matrix) = plt.subplots(1, 2, figsize=(7.6, 3.2), width_ratios=(3, 2))
    bars.bar(head.tokens, weights, width=0.6)
    bars.set(ylim=(0, 1), xlabel="key", ylabel="weight")
    bars.grid(visible=False, axis="x")
    figures.matrix_heatmap(softmax_jacobian(weights), limit=0.25, ax=matrix)
    matrix.set(xlabel="score that changes", ylabel="weight that responds")
    matrix.set_xticks(range(4), head.tokens, rotation=45)
    matrix.set_yticks(range(4), head.tokens)
    figures.letter_panels(bars, matrix)
    return figure


def laws() -> Figure:
    """Draw S of four kinds of attention against the standard deviation of the scores."""
    gammas = np.linspace(0.05, 6, 200)
    found = tables()["rows"]
    drawn = {  # the closed form, the grid of the drawn rows, and where on it they are looked up
        "softmax": (sparsity.exponential(gammas), "exp", found["gammas"], gammas),
        "squared ReLU": (sparsity.relu_squared(BETA, gammas), "relu^2", found["ratios"], BETA / gammas),
        "scores themselves": (sparsity.identity(BETA, gammas), "identity", found["ratios"], BETA / gammas),
    }
    figure, ax = plt.subplots(figsize=(6.4, 3.8))
    for (name, (limit, law, grid, at)), colour in zip(drawn.items(), ("C0", "C1", "C2"), strict=True):
        of_rows = np.array(found["S"][law][LENGTHS.index(LENGTH)], dtype=float)
        ax.plot(gammas, limit, color=colour, label=name)
        ax.plot(gammas, np.interp(at, grid, of_rows, left=np.nan, right=np.nan), ":", color=colour)
    ax.axhline(LENGTH**-0.5, color="0.4", linewidth=0.8, linestyle="--")
    ax.set(xlim=(0, 6), ylim=(0, 1), ylabel="sparsity S", xlabel="standard deviation of the scores $\\gamma$")
    ax.legend()
    return figure


def trained_head() -> Floats:
    """Return the scaled scores of the head that the figures of trained heads begin with."""
    heads, (layer, head) = models()["encoder"]
    return heads.scores()[layer, head]


def _singular_values(ax: Axes, matrices: dict[str, Floats]) -> None:
    """Draw the singular values of some matrices by falling size, on a logarithmic axis."""
    for (label, matrix), colour in zip(matrices.items(), figures.ordered_colours(len(matrices)), strict=True):
        sigma = rank.singular_values(matrix)
        ax.semilogy(np.arange(1, len(sigma) + 1), sigma, "o-", markersize=3, color=colour, label=label)
    ax.set(xlabel="number of the singular value", ylabel="singular value", ylim=(1e-4, 6))
    ax.legend()


def spectrum() -> Figure:
    """Draw the singular values of the trained head at three temperatures, and its ranks against temperature."""
    S = trained_head()
    figure, (values, ranks) = plt.subplots(1, 2, figsize=(7.6, 3.4))
    _singular_values(values, {f"T = {T:.2g}": softmax(S, temperature=float(T)) for T in TEMPERATURES[[10, 20, 30]]})
    sigma = np.stack([rank.singular_values(softmax(S, temperature=float(T))) for T in TEMPERATURES])
    for of, name, line in (
        (rank.entropy_rank(sigma), "entropy", "-"),
        (rank.effective_rank(sigma, EPSILON), "effective", "--"),
        (rank.stable_rank(sigma), "stable", ":"),
    ):
        ranks.semilogx(TEMPERATURES, of, line, label=f"{name} rank")
    ranks.set(xlabel="temperature T", ylabel="rank", ylim=(0, None))
    ranks.legend()
    figures.letter_panels(values, ranks)
    return figure


def mask() -> Figure:
    """Draw the weights of the trained head under a causal mask, and their singular values beside those without it."""
    S = trained_head()
    weights = softmax(np.where(np.tri(len(S), dtype=bool), S, -np.inf))
    figure, (matrix, values) = plt.subplots(1, 2, figsize=(7.6, 3.4), width_ratios=(2, 3))
    matrix.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    matrix.set(xlabel="key", ylabel="query", xticks=[], yticks=[])
    matrix.grid(visible=False)
    _singular_values(values, {"with the mask": weights, "without it": softmax(S)})
    figures.letter_panels(matrix, values)
    return figure


def powers() -> Figure:
    """Draw the weights of the trained head, and how fast the rows of their powers become equal."""
    A = softmax(trained_head())
    tau = [float(mixing.dobrushin(np.linalg.matrix_power(A, k))) for k in range(1, 41)]
    figure, (matrix, fall) = plt.subplots(1, 2, figsize=(7.6, 3.4), width_ratios=(2, 3))
    matrix.imshow(A, cmap="Blues", vmin=0, vmax=1)
    matrix.set(xlabel="key", ylabel="query", xticks=[], yticks=[])
    matrix.grid(visible=False)
    fall.semilogy(range(1, 41), tau, label="of the $k$-th power")
    fall.semilogy(range(1, 41), tau[0] ** np.arange(1, 41), "--", color="0.4", label="bound from one pass")
    fall.set(xlabel="passes $k$", ylabel="largest distance of two rows", ylim=(1e-6, 1.5))
    fall.legend()
    figures.letter_panels(matrix, fall)
    return figure


def widths() -> Figure:
    """Draw histograms of products of drawn queries and keys, as they are and divided by the root of the width."""
    found = tables()["widths"]
    one = next(of for of in found["drawn"] if of["width"] == WIDTH)
    ends = np.array(found["ends"])
    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    for key, label, line in (("plain", "$q\\cdot k$", "-"), ("divided", "$q\\cdot k/\\sqrt{d_k}$", "--")):
        ax.plot((ends[1:] + ends[:-1]) / 2, np.array(one[key]) / np.diff(ends), line, label=label)
    ax.set(xlabel="value", ylabel="share for each unit", xlim=(ends[0], ends[-1]), ylim=(0, None))
    ax.legend()
    return figure


def reach() -> Figure:
    """Draw through how many layers strided attention reaches each pair, and the share of the pairs by layers."""
    masks = np.stack(patterns.factorised_strided(POSITIONS, STRIDE))
    found = [
        reachability.reach(np.stack([masks[k % 2] for k in range(layers)]), residual=True) for layers in range(1, 9)
    ]
    lower = np.tri(POSITIONS, dtype=bool)
    needed = lower * (1 + sum(~np.array(each) for each in found[:2]))
    figure, (matrix, share) = plt.subplots(1, 2, figsize=(7.6, 3.4), width_ratios=(2, 3))
    matrix.imshow(np.where(lower, 1 / needed.clip(1), 0), cmap="Blues", vmin=0, vmax=1.2)
    matrix.set(xlabel="position that is heard of", ylabel="position that hears", xticks=[], yticks=[])
    matrix.grid(visible=False)
    known = np.eye(POSITIONS, dtype=bool)
    share.plot(range(9), [each[lower].mean() for each in (known, *found)], "o-")
    share.set(xlabel="layers", ylabel="share of the pairs", ylim=(0, 1.02))
    figures.letter_panels(matrix, share)
    return figure


def kernel() -> Figure:
    """Draw two vectors with their sum, and the relative variances of one projection against the length of the sum."""
    x, y = np.array(VECTORS)
    figure, (plane, variances) = plt.subplots(1, 2, figsize=(7.6, 3.4))
    for name, end, line in (("x", x, "o-"), ("y", y, "s-"), ("x + y", x + y, "--")):
        plane.plot([0, end[0]], [0, end[1]], line, markevery=[1], label=f"${name}$")
    plane.set(xlim=(-5, 5), ylim=(-5, 5), xlabel="first component", ylabel="second component", aspect="equal")
    plane.legend(loc="lower left")
    lengths, across = np.linspace(0.05, 5, 100), (x - y) / 2
    half = lengths[:, None] / 2 * np.array([1.0, 0.0])
    turned = np.hypot(*across) * np.array([1.0, 0.0])
    best = [variance.gerf_variance(h, h, float(optimal.optimal_coefficient(L**2 / 2)), relative=True)
            for h, L in zip(half, lengths, strict=True)]  # fmt: skip
    for name, values, line in (
        ("positive", variance.positive_variance(half, half, relative=True), "-"),
        ("hyperbolic", variance.hyperbolic_variance(half, half, relative=True), "--"),
        ("trigonometric", variance.trigonometric_variance(half + turned, half - turned, relative=True), ":"),
        ("positive, best A", best, "-."),
    ):
        variances.semilogy(lengths, values, line, label=name)
    variances.set(xlabel="length of $x+y$", ylabel="relative variance", ylim=(1e-3, 1e6))
    variances.legend()
    figures.letter_panels(plane, variances)
    return figure


def two_rows() -> Figure:
    """Draw the softmax row and the row of squared ReLU of the same scores."""
    head = four_tokens()
    scores = (head.Q @ head.K.T)[QUERY] / np.sqrt(2)
    rows = {"softmax": softmax(scores), "squared ReLU": np.maximum(scores, 0) ** 2}
    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    for k, (name, weights) in enumerate(rows.items()):
        label = f"{name}: S = {float(sparsity.sparsity(weights)):.3f}"
        ax.bar(np.arange(4) + 0.36 * k - 0.18, weights / weights.sum(), width=0.34, label=label)
    ax.set(ylim=(0, 1), xlabel="key", ylabel="share of the row")
    ax.set_xticks(range(4), head.tokens)
    ax.grid(visible=False, axis="x")
    ax.legend()
    return figure


def features() -> Figure:
    """Draw the error of a kernel entry by random features, and the spread of estimates by positive ones."""
    found = tables()["draws"]
    sizes = np.array(found["sizes"])
    lows, median, highs = np.array(found["estimates"][found["norms"].index(NORM_OF_SUM)]).T
    along, across = NORM_OF_SUM / 2, NORM_OF_DIFFERENCE / 2
    x, y = np.array([[along, across], [along, -across]])
    errors = {
        "positive": variance.positive_variance(x, y, relative=True),
        "hyperbolic": 2 * variance.hyperbolic_variance(x, y, relative=True),
        "trigonometric": 2 * variance.trigonometric_variance(x, y, relative=True),
    }
    figure, (error, spread) = plt.subplots(1, 2, figsize=(7.6, 3.4))
    for (name, of_one), line in zip(errors.items(), ("-", "--", ":"), strict=True):
        error.loglog(sizes, np.sqrt(of_one / sizes), line, label=name)
    error.axhline(0.1, color="0.4", linewidth=0.8)
    error.set(xlabel="features m", ylabel="relative standard error", ylim=(1e-3, 1e3))
    error.legend()
    spread.fill_between(sizes, lows, highs, alpha=0.25, label="nine estimates of ten")
    spread.loglog(sizes, median, label="median")
    spread.axhline(1, color="0.4", linewidth=0.8)
    spread.set(xlabel="positive features m", ylabel="estimate over kernel", ylim=(1e-2, 1e1))
    spread.legend(loc="lower right")
    for ax in (error, spread):
        ax.minorticks_off()
    figures.letter_panels(error, spread)
    return figure


#: The figures by name.
FIGURES: dict[str, Callable[[], Figure]] = {
    "row": row,
    "rows": two_rows,
    "laws": laws,
    "spectrum": spectrum,
    "features": features,
    "widths": widths,
    "mask": mask,
    "powers": powers,
    "reach": reach,
    "kernel": kernel,
}


@cache
def texts(path: Path) -> dict[str, dict[str, str]]:
    """Return alternative text and caption of each figure; `path` is the file of the book that has them."""
    described: dict[str, dict[str, str]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return described
