"""What an interactive figure shows before anybody moves it: in print, in a PDF, and where no script runs.

Each function draws the state in which the live figure begins, with numbers of the package. Captions and alternative
texts are in `assets/figures.yml`, and serve the live figure as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import yaml
from matplotlib.figure import Figure

from attnlab.heads.example import four_tokens
from attnmath import figures, sparsity
from attnmath.linear_cost.random_features import variance
from attnmath.operator.attention import softmax, softmax_jacobian

from .tables import LENGTHS, TEMPERATURES, tables

WORDS = Path(__file__).parent / "assets" / "figures.yml"

#: The state in which each live figure begins; `assets/figures.js` has the same numbers.
QUERY = 3
BETA, GAMMA, LENGTH = -1.0, 1.5, 64
NORM_OF_SUM, NORM_OF_DIFFERENCE = 2.0, 1.0


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


def spectrum() -> Figure:
    """Draw the singular values of the trained head at three temperatures, and its ranks against temperature."""
    layer, head = tables()["head"]["trained"]
    found = tables()[f"spectra-{layer}"]
    sigma = 10 ** (np.array(found["sigma"][head - 1]) / 1000)
    figure, (values, ranks) = plt.subplots(1, 2, figsize=(7.6, 3.4))
    count = np.arange(1, sigma.shape[1] + 1)
    middle = len(TEMPERATURES) // 2
    for k, colour in zip((middle - 10, middle, middle + 10), figures.ordered_colours(3), strict=True):
        label = f"T = {TEMPERATURES[k]:.2g}"
        values.semilogy(count, sigma[k], "o-", markersize=3, color=colour, label=label)
    values.set(xlabel="number of the singular value", ylabel="singular value", ylim=(1e-4, 6))
    values.legend()
    for key, name, line in (("entropy", "entropy", "-"), ("share", "effective", "--"), ("stable", "stable", ":")):
        ranks.semilogx(TEMPERATURES, found[key][head - 1], line, label=f"{name} rank")
    ranks.set(xlabel="temperature T", ylabel="rank", ylim=(0, None))
    ranks.legend()
    figures.letter_panels(values, ranks)
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
}


@cache
def texts() -> dict[str, dict[str, str]]:
    """Return alternative text and caption of each figure."""
    described: dict[str, dict[str, str]] = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
    return described
