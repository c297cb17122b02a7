"""Figures of the chapter on the spectrum (section 5.5.1), from the trained heads."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from attnmath import spectrum
from attnmath.figures.published import Panel, PublishedFigure
from attnmath.figures.spectrum import decays_beside_predictions, dots_by_layer, unit_disc
from attnmath.heads import load_heads

#: Heads whose powers forget at different speeds: (layer, head) from 0; the first token of the second keeps to itself.
MIXING = ((0, 0), (0, 2), (2, 3), (5, 11))
STEPS = 60
LAYER = 3


@cache
def weights() -> Any:
    """Attention weights of the 72 heads on the passage, shape (6, 12, n, n)."""
    return load_heads().weights()


def norms() -> dict[str, Any]:
    """2-norms of all heads, between 1 and the root of n."""
    return {
        "values": spectrum.spectral_norm(weights()),
        "bounds": (1.0, float(np.sqrt(weights().shape[-1]))),
        "ylabel": r"$\|A\|_2$",
    }


def eigenvalues() -> dict[str, Any]:
    """Eigenvalues of the twelve heads of the fourth layer."""
    return {"values": spectrum.eigenvalues(weights()[LAYER])}


@cache
def distances(layer: int, head: int) -> Any:
    """Distance of A^k from its limit for k = 1 ... 60."""
    return spectrum.distances_to_limit(weights()[layer, head], STEPS)


@cache
def second_eigenvalue(layer: int, head: int) -> float:
    """Modulus of the second eigenvalue."""
    return float(np.abs(spectrum.eigenvalues(weights()[layer, head])[1]))


def mixing() -> dict[str, Any]:
    """Distances to the limit and |lambda_2| for four heads."""
    labels = {which: f"$\\ell={which[0] + 1},\\ h={which[1] + 1}$" for which in MIXING}
    return {
        "decays": {labels[which]: distances(*which) for which in MIXING},
        "rates": {labels[which]: second_eigenvalue(*which) for which in MIXING},
        "ylabel": r"$\max_{ij}|A^k-\mathbf{1}\pi^{\top}|$",
    }


def mixing_of_heads(floor: float = 1e-11) -> dict[str, Any]:
    """For the same heads: the last distance above rounding, its step, |lambda_2|, and the eigenvectors' condition."""
    last = [int(np.sum(distances(*which) > floor)) for which in MIXING]
    return {
        "heads": MIXING,
        "steps": np.asarray(last),
        "distance": np.asarray([distances(*which)[k - 1] for which, k in zip(MIXING, last, strict=True)]),
        "second": np.asarray([second_eigenvalue(*which) for which in MIXING]),
        "kappa": np.asarray([np.linalg.cond(np.linalg.eig(weights()[which])[1]) for which in MIXING]),
    }


FIGURES = {
    "fig_attention_eigenvalues": PublishedFigure((Panel(unit_disc, eigenvalues),), size=(5.2, 5.0)),
    "fig_attention_mixing": PublishedFigure((Panel(decays_beside_predictions, mixing),)),
    "fig_attention_norms": PublishedFigure((Panel(dots_by_layer, norms),)),
}
