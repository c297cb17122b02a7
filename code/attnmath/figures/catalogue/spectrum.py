"""Numbers behind the figures of the chapter on the spectrum (section 5.5.1), from the trained heads."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from attnmath import mixing, spectrum
from attnmath.heads import load_heads

#: Heads that show how differently powers forget: (layer, head), counted from 0.
MIXING = ((0, 0), (0, 2), (2, 3), (5, 11))
#: The head that looks at the previous token: almost reducible and almost periodic at once.
CYCLIC = (0, 2)
STEPS = 60
#: Exponents of the powers behind the measured rates: 2^0 to 2^14.
DOUBLINGS = 14
#: Eigenvalues of each head in the left panel of the eigenvalues.
LEADING = 16


@cache
def weights() -> Any:
    """Attention weights of the 72 heads on the passage, shape (6, 12, n, n)."""
    return load_heads().weights()


@cache
def all_eigenvalues() -> Any:
    """Eigenvalues of the 72 heads by falling modulus, shape (6, 12, n)."""
    return spectrum.eigenvalues(weights())


@cache
def all_log_distances() -> Any:
    """Logarithm of the Frobenius distance of A^k from its limit, k = 1, 2, 4 ... 2^14, shape (6, 12, 15)."""
    return np.asarray([[mixing.log_distances(A, DOUBLINGS) for A in layer] for layer in weights()])


def norms() -> dict[str, Any]:
    """2-norms of all heads, between 1 and the root of n, and the bounds from each head's column sums."""
    return {
        "values": spectrum.spectral_norm(weights()),
        "bounds": (1.0, float(np.sqrt(weights().shape[-1]))),
        "intervals": spectrum.norm_bounds(weights()),
        "ylabel": r"$\|A\|_2$",
    }


def leading_eigenvalues() -> dict[str, Any]:
    """The sixteen largest eigenvalues of every head."""
    return {"values": all_eigenvalues()[..., :LEADING], "title": r"$\ell=1\ldots6,\ h=1\ldots12$"}


def cyclic_eigenvalues() -> dict[str, Any]:
    """All eigenvalues of one head, beside those of the one-hot matrix of its strongest weights."""
    lengths = mixing.cycle_lengths(weights()[CYCLIC].argmax(axis=-1))
    roots = [np.exp(2j * np.pi * np.arange(length) / length) for length in lengths]
    return {
        "values": all_eigenvalues()[CYCLIC],
        "reference": np.concatenate(roots),
        "title": rf"$\ell={CYCLIC[0] + 1},\ h={CYCLIC[1] + 1}$    ($\times$: $\lambda^{{{max(lengths)}}}=1$)",
    }


def mixing_curves() -> dict[str, Any]:
    """Distances to the limit and |lambda_2| for four heads."""
    labels = {which: f"$\\ell={which[0] + 1},\\ h={which[1] + 1}$" for which in MIXING}
    return {
        "decays": {labels[which]: mixing.distances_to_limit(weights()[which], STEPS) for which in MIXING},
        "rates": {labels[which]: float(np.abs(all_eigenvalues()[which][1])) for which in MIXING},
        "ylabel": r"$\max_{ij}|A^k-\mathbf{1}\pi^{\top}|_{ij}$",
    }


def rates() -> dict[str, Any]:
    """For every head, the measured loss of log distance per step from k = 2^13 to 2^14, and -log|lambda_2|."""
    logs = all_log_distances()
    return {
        "predicted": -np.log(np.abs(all_eigenvalues()[..., 1])),
        "measured": -(logs[..., -1] - logs[..., -2]) / 2 ** (DOUBLINGS - 1),
        "xlabel": r"$-\log|\lambda_2|$",
        "ylabel": r"$-\Delta\log\|A^k-\mathbf{1}\pi^{\top}\|_F\,/\,\Delta k$",
    }
