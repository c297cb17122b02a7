"""Default data of the published figures: calls into the package with fixed seeds, no drawing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from attnmath import dot_product, estimate
from attnmath.attention import entropy, jacobian_norm
from attnmath.dot_product import COMPONENT_LAWS
from attnmath.estimate import Estimate

#: The widths of the chapter on scaling, from 1 to 4096.
WIDTHS = [4**k for k in range(7)]
SEED = 514


def per_width(statistic: Callable[[Any], Estimate], samples: Callable[[int], Any], widths: list[int]) -> Estimate:
    """Estimate a statistic at every width, and gather the estimates into one of arrays."""
    estimates = [statistic(samples(d_k)) for d_k in widths]
    return Estimate(*(np.asarray([getattr(e, f) for e in estimates]) for f in ("value", "standard_error")))


def by_law(statistic: Callable[[Any], Estimate], size: int, seed: int = SEED) -> dict[str, Estimate]:
    """Estimate a statistic of q.k for each component law at each of `WIDTHS`; keys are the laws' symbols."""
    rng = np.random.default_rng(seed)
    return {
        law.symbol: per_width(statistic, lambda d, law=law: dot_product.draws(law, d, size, rng), WIDTHS)
        for law in COMPONENT_LAWS.values()
    }


def score_variance(size: int = 4000) -> dict[str, Any]:
    """Var(q.k) against d_k for four component laws, over the line d_k that (5.1.5) predicts."""
    return {
        "d_k": WIDTHS,
        "estimates": by_law(estimate.variance, size),
        "predictions": {r"$d_k\sigma^4$": WIDTHS},
        "ylabel": r"$\mathrm{Var}(q\cdot k)$",
    }


def score_kurtosis(size: int = 40_000) -> dict[str, Any]:
    """Absolute excess kurtosis of q.k at small widths, over the predicted (m4^2 - 3) / d_k."""
    rng, widths = np.random.default_rng(SEED), [1, 2, 4, 8, 16]
    laws = [COMPONENT_LAWS[name] for name in ("gaussian", "uniform", "rademacher")]
    return {
        "d_k": widths,
        "estimates": {
            law.symbol: per_width(
                estimate.excess_kurtosis, lambda d, law=law: dot_product.draws(law, d, size, rng), widths
            )
            for law in laws
        },
        "predictions": {
            "" if k else r"$(m_4^2-3)/d_k$": [dot_product.predicted_excess_kurtosis(law, d) for d in widths]
            for k, law in enumerate(laws)
        },
        "ylabel": r"$\kappa_4(q\cdot k)\,/\,\kappa_2^2$",
        "yscale": "linear",
    }


def score_densities() -> dict[str, Any]:
    """Density of q.k / sqrt(d_k) for Gaussian components at four widths, over the normal density."""
    x = np.linspace(-4, 4, 400)
    return {
        "x": x,
        "densities": {f"$d_k={d}$": dot_product.gaussian_density(x, d) for d in (2, 4, 16)},
        "reference": {r"$\mathcal{N}(0,1)$": stats.norm.pdf(x)},
        "xlabel": r"$q\cdot k\,/\sqrt{d_k}$",
    }


def score_distances() -> dict[str, Any]:
    """Kolmogorov distance of q.k / sqrt(d_k) from the normal law, beside the two rates."""
    widths = np.asarray(WIDTHS, dtype=float)
    names = ("gaussian", "rademacher")
    return {
        "d_k": WIDTHS,
        "distances": {
            COMPONENT_LAWS[n].symbol: [dot_product.kolmogorov_distance(n, d) for d in WIDTHS] for n in names
        },
        "rates": {
            r"$0.138\,/\,d_k$": dot_product.EDGEWORTH_RATE / widths,
            r"$1/\sqrt{2\pi d_k}$": 1 / np.sqrt(2 * np.pi * widths),
        },
        "ylabel": r"$\sup_x|F(x)-\Phi(x)|$",
    }


def attention_statistics(
    statistic: Callable[[Any], Any], *, n: int = 64, rows: int = 100, seed: int = SEED
) -> dict[str, Estimate]:
    """Mean of a row statistic of attention at each of `WIDTHS`, with and without the division by sqrt(d_k)."""
    labels = {r"$q\cdot k$": False, r"$q\cdot k\,/\sqrt{d_k}$": True}
    return {
        label: per_width(
            lambda P: estimate.mean(statistic(P)),
            lambda d, s=scaled: dot_product.attention_rows(d, n, rows, np.random.default_rng((seed, d)), scaled=s),
            WIDTHS,
        )
        for label, scaled in labels.items()
    }


def row_entropy() -> dict[str, Any]:
    """Mean entropy of an attention row over 64 Gaussian keys, against d_k."""
    return {
        "d_k": WIDTHS,
        "estimates": attention_statistics(entropy),
        "ylabel": "$H(P_i)$  [nat]",
        "yscale": "linear",
    }


def row_jacobian_norm() -> dict[str, Any]:
    """Mean Frobenius norm of the softmax Jacobian over 64 Gaussian keys, against d_k."""
    return {
        "d_k": WIDTHS,
        "estimates": attention_statistics(jacobian_norm),
        "ylabel": r"$\|\mathrm{diag}(P_i)-P_iP_i^{\top}\|_F$",
        "yscale": "linear",
    }


def cosine_densities() -> dict[str, Any]:
    """Density of the cosine between independent isotropic directions, in five dimensions."""
    t = np.linspace(-0.999, 0.999, 801)
    return {
        "x": t,
        "densities": {f"$d={d}$": dot_product.cosine_density(t, d) for d in (2, 3, 8, 64, 512)},
        "xlabel": r"$\cos\angle(q,k)$",
    }
