"""Numbers behind the figures of the chapter on scaling (section 5.1.4), with fixed seeds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import stats

from attnmath import dot_product, estimate
from attnmath.attention import entropy, jacobian_norm, softmax
from attnmath.dot_product import COMPONENT_LAWS, ComponentLaw
from attnmath.estimate import Estimate

#: The widths of the chapter on scaling, from 1 to 4096.
WIDTHS = [4**k for k in range(7)]
SEED = 514


def per_width(statistic: Callable[[Any], Estimate], samples: Callable[[int], Any], widths: list[int]) -> Estimate:
    """Estimate a statistic at every width, and gather the estimates into one of arrays."""
    estimates = [statistic(samples(d_k)) for d_k in widths]
    return Estimate(*(np.asarray([getattr(e, f) for e in estimates]) for f in ("value", "standard_error")))


def score_variance(law: ComponentLaw, size: int = 4000) -> Estimate:
    """Estimate Var(q.k) at each of `WIDTHS` for one component law, with sigma = 1."""
    rng = np.random.default_rng(SEED)
    return per_width(estimate.variance, lambda d_k: dot_product.draws(law, d_k, size, rng), WIDTHS)


def variance_growth() -> dict[str, Any]:
    """Var(q.k) against d_k for Gaussian components, before and after the division by sqrt(d_k)."""
    raw = score_variance(COMPONENT_LAWS["gaussian"])
    scaled = Estimate(raw.value / WIDTHS, raw.standard_error / WIDTHS)
    return {
        "d_k": WIDTHS,
        "estimates": {r"$q\cdot k$": raw, r"$q\cdot k\,/\sqrt{d_k}$": scaled},
        "predictions": {r"$d_k\,\sigma^4$": WIDTHS, r"$\sigma^4$": np.ones(len(WIDTHS))},
        "ylabel": r"$\mathrm{Var}$",
    }


def variance_ratio() -> dict[str, Any]:
    """Var(q.k) over the d_k sigma^4 of (5.1.5), against d_k, for four component laws."""
    laws = {law.symbol: score_variance(law) for law in COMPONENT_LAWS.values()}
    return {
        "d_k": WIDTHS,
        "estimates": {s: Estimate(e.value / WIDTHS, e.standard_error / WIDTHS) for s, e in laws.items()},
        "predictions": {"_": np.ones(len(WIDTHS))},
        "ylabel": r"$\mathrm{Var}(q\cdot k)\,/\,(d_k\,\sigma^4)$",
        "yscale": "linear",
        "dodge": 1.25,
    }


def score_kurtosis(size: int = 200_000) -> dict[str, Any]:
    """Excess kurtosis of q.k at small widths, over the predicted (m4^2 - 3) / d_k.

    Mean 0 and variance d_k are known exactly, so E[(q.k)^4] / d_k^2 - 3 is a plain mean.
    """
    rng, widths = np.random.default_rng(SEED), [1, 2, 4, 8, 16]
    laws = [COMPONENT_LAWS[name] for name in ("gaussian", "uniform", "rademacher")]

    def standardised_fourth_powers(law: ComponentLaw, d_k: int) -> Any:
        return dot_product.draws(law, d_k, size, rng) ** 4 / d_k**2 - 3

    return {
        "d_k": widths,
        "estimates": {
            law.symbol: per_width(estimate.mean, partial(standardised_fourth_powers, law), widths) for law in laws
        },
        "predictions": {
            f"_{k}" if k else r"$(m_4^2-3)\,/\,d_k$": [dot_product.predicted_excess_kurtosis(law, d) for d in widths]
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
        "distances": {COMPONENT_LAWS[n].symbol: [dot_product.kolmogorov_distance(n, d) for d in WIDTHS] for n in names},
        "rates": {
            r"$0.138\,/\,d_k$": dot_product.EDGEWORTH_RATE / widths,
            r"$1/\sqrt{2\pi d_k}$": 1 / np.sqrt(2 * np.pi * widths),
        },
        "ylabel": r"$\sup_x|F(x)-\Phi(x)|$",
    }


@cache
def gaussian_scores(d_k: int, n: int = 64, rows: int = 200) -> Any:
    """Draw the unscaled scores behind the figures of entropy and Jacobian norm, shape (rows, n)."""
    return dot_product.score_rows(d_k, n, rows, np.random.default_rng((SEED, d_k)))


def row_statistics(statistic: Callable[[Any], Any]) -> dict[str, Estimate]:
    """Mean of a statistic of attention rows at each of `WIDTHS`, with and without the division by sqrt(d_k)."""

    def raw(d_k: int) -> Any:
        return softmax(gaussian_scores(d_k))

    def scaled(d_k: int) -> Any:
        return softmax(gaussian_scores(d_k) / np.sqrt(d_k))

    curves = {r"$q\cdot k$": raw, r"$q\cdot k\,/\sqrt{d_k}$": scaled}
    return {s: per_width(lambda P: estimate.mean(statistic(P)), rows, WIDTHS) for s, rows in curves.items()}


def row_entropy() -> dict[str, Any]:
    """Mean entropy of an attention row over 64 Gaussian keys, against d_k."""
    return {
        "d_k": WIDTHS,
        "estimates": row_statistics(entropy),
        "ylabel": "$H(P_i)$  [nat]",
        "yscale": "linear",
    }


def row_jacobian_norm() -> dict[str, Any]:
    """Mean Frobenius norm of the softmax Jacobian over 64 Gaussian keys, against d_k."""
    return {
        "d_k": WIDTHS,
        "estimates": row_statistics(jacobian_norm),
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
        "legend_at": (0.95, 1.0),
    }
