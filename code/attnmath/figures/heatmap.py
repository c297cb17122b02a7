"""Heatmaps: attention weights with their tokens, and small matrices with signs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Real
from matplotlib.axes import Axes

from attnmath.arrays import ArrayLike
from attnmath.checks import flag, precision
from attnmath.figures.drawing import axes_or_new, number, numbers, token_labels, truths, words
from attnmath.figures.lettering import as_they_are, legible


def matrix_heatmap(matrix: Real[ArrayLike, "n m"], *, limit: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw a matrix with signs: blue is positive, red negative, white 0, entries written where they show.

    limit : the value of full colour (the largest modulus unless given).
    """
    values = numbers(matrix, "matrix", ndim=2)
    if limit is None and not np.any(values):
        raise ValueError("matrix: expected an entry other than 0, or a limit, got zeros")
    limit = number(np.abs(values).max() if limit is None else limit, "limit", positive=True)
    ax = axes_or_new(ax)
    ax.imshow(values, cmap="RdBu", vmin=-limit, vmax=limit)
    for (i, j), value in np.ndenumerate(values):
        if abs(value) >= limit / 50:
            ax.text(j, i, f"{value:.2f}".replace("-", "\N{MINUS SIGN}"), ha="center", va="center", fontsize=8,
                    color="white" if abs(value) > 0.6 * limit else "black")  # fmt: skip
    ax.set(xticks=range(values.shape[1]), yticks=range(values.shape[0]), xlabel="$j$", ylabel="$i$")
    ax.set_xticklabels([str(j + 1) for j in range(values.shape[1])])
    ax.set_yticklabels([str(i + 1) for i in range(values.shape[0])])
    ax.grid(visible=False)
    return ax


def attention_heatmap(
    weights: Real[ArrayLike, "n m"],
    *,
    query_labels: Sequence[str] | None = None,
    key_labels: Sequence[str] | None = None,
    title: str = "",
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw attention weights, one row for each query, dark for 0 and bright for 1.

    weights : rows that sum to 1.  query_labels, key_labels : n and m tokens, drawn as they are, in any script that a
    font is installed for; the title may hold mathematics.
    """
    P = numbers(weights, "weights", ndim=2)
    # The rows of a coarse format are as far off as its rounding makes them.
    allowed = min(0.5, max(1e-3, 4 * (P.shape[1] + 1) * precision(weights)))
    if np.any(P < 0) or np.any(np.abs(P.sum(axis=1) - 1) > allowed):
        raise ValueError("weights: expected non-negative rows that sum to 1")
    query_labels = token_labels(query_labels, "query_labels", P.shape[0])
    key_labels = token_labels(key_labels, "key_labels", P.shape[1])
    words(title, "title")
    colorbar = flag(colorbar, "colorbar")
    shown, lettering = as_they_are([*(query_labels or ()), *(key_labels or ())])
    ax = axes_or_new(ax)
    image = ax.imshow(P, cmap="Blues", vmin=0, vmax=1)  # white is 0, on paper and, inverted, in the dark
    if colorbar:
        ax.figure.colorbar(image, ax=ax, shrink=0.8)
    ax.set(xlabel="$k_j$", ylabel="$q_i$", title=title)
    if key_labels is not None:
        ax.set_xticks(range(P.shape[1]), [shown[label] for label in key_labels], rotation=90, fontsize=8, **lettering)
    if query_labels is not None:
        ax.set_yticks(range(P.shape[0]), [shown[label] for label in query_labels], fontsize=8, **lettering)
    ax.grid(visible=False)
    return legible(ax)


def mask_pattern(mask: Bool[ArrayLike, "n m"], *, ax: Axes | None = None) -> Axes:
    """Draw a boolean mask: bright where a query (row) may see a key (column), with lines between the positions."""
    visible = truths(mask, "mask")
    ax = axes_or_new(ax)
    ax.imshow(visible, cmap="cividis", vmin=0, vmax=1)
    ax.set_xticks(np.arange(visible.shape[1] + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(visible.shape[0] + 1) - 0.5, minor=True)
    ax.grid(visible=False)
    ax.grid(visible=True, which="minor", color="white", linewidth=1)
    ax.tick_params(which="both", length=0)
    ax.set(xlabel="$j$", ylabel="$i$")
    ax.set_xticks(range(visible.shape[1]), [str(j + 1) for j in range(visible.shape[1])])
    ax.set_yticks(range(visible.shape[0]), [str(i + 1) for i in range(visible.shape[0])])
    return ax
