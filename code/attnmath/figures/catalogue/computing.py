"""Numbers behind the figures of the chapter on computing with low rank and sparsity (sections 5.5.4 and 5.5.5)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from attnmath import patterns, rank
from attnmath.attention import softmax
from attnmath.figures.catalogue.rank import singular_values
from attnmath.figures.catalogue.spectrum import weights
from attnmath.heads import load_heads

#: Ranks in the figure of truncated scores, the size and widths of the windows, the width of the mask.
RANKS = (1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32)
SIZE, WIDTHS = 256, (1, 3, 8)
LOCAL = 16


@cache
def truncation_errors() -> Any:
    """Relative Frobenius error of every head: truncated keys, truncated scores, best rank r, shape (3, 11, 72)."""
    heads, A = load_heads(), weights()
    size = np.linalg.norm(A, axis=(-2, -1))
    U, sigma, Vt = np.linalg.svd(heads.scores(), full_matrices=False)
    found = []
    for r in RANKS:
        left, right = rank.truncated_keys(heads.Q, heads.K, r)
        by_keys = softmax(left @ right.swapaxes(-1, -2) / np.sqrt(heads.d_k))
        by_scores = softmax((U[..., :r] * sigma[..., None, :r]) @ Vt[..., :r, :])
        best = np.sqrt((singular_values()[..., r:] ** 2).sum(axis=-1))
        found.append([np.linalg.norm(M - A, axis=(-2, -1)) / size for M in (by_keys, by_scores)] + [best / size])
    return np.moveaxis(np.asarray(found), 1, 0).reshape(3, len(RANKS), -1)


def truncated_scores() -> dict[str, Any]:
    """Medians over the heads of the three errors, by rank."""
    labels = (r"$\mathrm{softmax}(QK_r^{\top})$", r"$\mathrm{softmax}(S_r)$", "$A_r$")
    return {
        "x": RANKS,
        "curves": dict(zip(labels, np.median(truncation_errors(), axis=-1), strict=True)),
        "xlabel": "$r$",
        "ylabel": r"$\|\cdot-A\|_F\,/\,\|A\|_F$",
    }


def band_eigenvalues() -> dict[str, Any]:
    """Sorted eigenvalues of uniform window attention, over the sorted values of the Toeplitz symbol."""
    angle = (np.arange(SIZE) + 0.5) * np.pi / SIZE
    found = {}
    for width in WIDTHS:
        A = patterns.uniform_attention(patterns.window_mask(SIZE, width))
        found[f"$w={width}$"] = np.sort(np.linalg.eigvals(A).real)[::-1]
    symbols = {f"_{width}": np.sort(patterns.window_symbol(angle, width))[::-1] for width in WIDTHS}
    return {
        "x": np.arange(1, SIZE + 1),
        "curves": found,
        "reference": symbols,
        "xlabel": "$i$",
        "ylabel": r"$\lambda_i$",
    }


@cache
def masked_entropy_ranks() -> Any:
    """Entropy rank of every head behind a window of `LOCAL` tokens on either side, shape (6, 12)."""
    mask = patterns.window_mask(load_heads().n, LOCAL)
    return rank.entropy_rank(rank.singular_values(patterns.renormalised(weights(), mask)))


def rank_ratios() -> dict[str, Any]:
    """Entropy rank of every head behind the window, relative to that without it."""
    return {
        "values": masked_entropy_ranks() / rank.entropy_rank(singular_values()),
        "bounds": (1.0,),
        "ylabel": r"$r_H(A_{\mathrm{sparse}})\,/\,r_H(A)$",
    }
