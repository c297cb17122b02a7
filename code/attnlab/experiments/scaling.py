"""Experiments on section 5.1.4: what width does to scores, and what the division by sqrt(d_k) does to softmax rows.

Every estimate has one entry for each width. The draws of one width are independent of those of
another, and the same seed gives the same draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attnlab.experiments.arguments import several, widths_of
from attnmath import estimate
from attnmath.arrays import Numpy
from attnmath.checks import fits_memory, floats, non_negative_integer, one_of, positive
from attnmath.estimate import Estimate
from attnmath.operator import dot_product
from attnmath.operator.attention import entropy, softmax
from attnmath.operator.dot_product import COMPONENT_LAWS, ComponentLaw


def score_variance(
    widths: Sequence[int], *, law: str = "gaussian", sigma: float = 1.0, draws: int = 4000, seed: int = 514
) -> Estimate:
    """Estimate Var(q.k) at each width, for independent components; equation (5.1.5) predicts d_k sigma^4.

    law : a name of `attnmath.operator.dot_product.COMPONENT_LAWS`.  sigma : their standard deviation.
    draws : independent pairs (q, k) for each width.

    >>> abs(score_variance([16], draws=2000, seed=0).value[0] / 16 - 1) < 0.2
    np.True_
    """
    components, draws, sigma = _law(law), several(draws, "draws"), positive(sigma, "sigma")
    streams = _streams(widths, seed)
    return estimate.stack(
        [
            estimate.variance(dot_product.draws(components, d_k, draws, rng, sigma=sigma))
            for d_k, rng in zip(widths, streams, strict=True)
        ]
    )


def score_kurtosis(widths: Sequence[int], *, law: str = "gaussian", draws: int = 200_000, seed: int = 514) -> Estimate:
    """Estimate the excess kurtosis of q.k at each width.

    Mean 0 and variance d_k are known exactly, so E[(q.k)^4] / d_k^2 - 3 is a plain mean over the draws.
    """
    components, draws = _law(law), several(draws, "draws")

    def standardised(d_k: int, rng: np.random.Generator) -> Float[Numpy, "{draws}"]:
        return dot_product.draws(components, d_k, draws, rng) ** 4 / d_k**2 - 3

    streams = _streams(widths, seed)
    return estimate.stack([estimate.mean(standardised(d_k, rng)) for d_k, rng in zip(widths, streams, strict=True)])


def normal_rows(
    keys: Sequence[int], deviations: Sequence[float], *, rows: int = 200, seed: int = 514
) -> dict[str, Estimate]:
    """Estimate the mean entropy, Jacobian norm and collision of softmax rows of independent normal scores.

    keys : numbers of scores in a row.  deviations : the standard deviation of the scores, one for each of `keys`.
    rows : independent rows for each.

    The norm follows from power sums, ||diag(y) - y y^T||_F^2 = sum y^2 - 2 sum y^3 + (sum y^2)^2, which take n
    operations a row and not n^2; the collision is sum y^2. `attnmath.operator.gaussian_rows` computes two of the means.

    >>> float(normal_rows([1], [2.0], rows=2)["collision"].value[0])
    1.0
    """
    counts, rows = widths_of(keys, "keys"), several(rows, "rows")
    spreads = [positive(spread, "deviations", at_most=1e100) for spread in floats(deviations, "deviations", ndim=1)]
    if len(spreads) != len(counts):
        raise ValueError(f"keys, deviations: expected as many of both, got {len(counts)} and {len(spreads)}")
    found: dict[str, list[Estimate]] = {"entropy": [], "jacobian_norm": [], "collision": []}
    for n, spread, rng in zip(counts, spreads, _streams(counts, seed, "keys"), strict=True):
        fits_memory("keys, rows", rows, n)
        y = softmax(spread * rng.standard_normal((rows, n)))
        squares, cubes = (y**2).sum(axis=1), (y**3).sum(axis=1)
        found["entropy"].append(estimate.mean(entropy(y)))
        found["jacobian_norm"].append(estimate.mean(np.sqrt(np.maximum(squares - 2 * cubes + squares**2, 0))))
        found["collision"].append(estimate.mean(squares))
    return {name: estimate.stack(values) for name, values in found.items()}


def _law(name: str) -> ComponentLaw:
    return COMPONENT_LAWS[one_of(name, COMPONENT_LAWS, "law")]


def _streams(widths: Sequence[int], seed: int, name: str = "widths") -> list[np.random.Generator]:
    """Return one generator for each width; it depends on the seed and on the width alone."""
    seed = non_negative_integer(seed, "seed")
    return [np.random.default_rng((seed, d_k)) for d_k in widths_of(widths, name)]
