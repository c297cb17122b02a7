"""Experiments on section 5.1.4: what width does to scores, and what the division by sqrt(d_k) does to softmax rows.

Every estimate has one entry for each width. The draws of one width are independent of those of
another, and the same seed gives the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from attnlab.experiments.arguments import several, widths_of
from attnmath import estimate
from attnmath.arrays import Numpy
from attnmath.checks import fits_memory, flag, floats, non_negative_integer, one_of, positive, positive_integer
from attnmath.estimate import Estimate
from attnmath.operator import dot_product
from attnmath.operator.attention import entropy, jacobian_norm, softmax
from attnmath.operator.dot_product import COMPONENT_LAWS, ComponentLaw

#: Statistics of an attention row, by name: from the weights to one number a row.
ROW_STATISTICS: dict[str, Callable[[Float[Numpy, "rows keys"]], Float[Numpy, "rows"]]] = {
    "entropy": entropy,
    "jacobian_norm": jacobian_norm,
    "saturated": lambda weights: (weights.max(axis=1) > 0.9).astype(float),
}


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


def row_statistics(
    widths: Sequence[int], *, keys: int = 64, rows: int = 200, sigma: float = 1.0, seed: int = 514
) -> dict[str, tuple[Estimate, Estimate]]:
    """Estimate the mean entropy and Jacobian norm of softmax rows over Gaussian keys, and the share of saturated rows.

    A row is saturated when one weight exceeds 0.9. Every estimate has an entry for each width.

    keys : length of a row.  rows : independent rows, each with a query and keys of its own.  sigma : standard
    deviation of every component.

    Returns, for each statistic of `ROW_STATISTICS`, the estimates without and with the division of the scores by
    sqrt(d_k); both come from the same queries and keys.
    """
    keys, rows, sigma = positive_integer(keys, "keys"), several(rows, "rows"), positive(sigma, "sigma")
    fits_memory("keys, rows", keys, rows)
    found: dict[str, tuple[list[Estimate], list[Estimate]]] = {name: ([], []) for name in ROW_STATISTICS}
    for d_k, rng in zip(widths, _streams(widths, seed), strict=True):
        scores = dot_product.score_rows(d_k, keys, rows, rng, sigma=sigma)
        for place, weights in enumerate((softmax(scores), softmax(scores / np.sqrt(d_k)))):
            for name, statistic in ROW_STATISTICS.items():
                found[name][place].append(estimate.mean(statistic(weights)))
    return {name: (estimate.stack(raw), estimate.stack(scaled)) for name, (raw, scaled) in found.items()}


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


def gain_without_scaling(
    d_k: int, *, keys: int = 64, rows: int = 200, seed: int = 514, exchanged: bool = False
) -> Estimate:
    """Estimate how much larger the mean Jacobian norm of a row is without the division by sqrt(d_k) than with it.

    The two norms of a row come from the same query and keys, so the mean is over paired differences.
    exchanged : exchange the two versions of each row at random, so that there is no effect.
    """
    d_k, keys, rows = positive_integer(d_k, "d_k"), positive_integer(keys, "keys"), several(rows, "rows")
    fits_memory("keys, rows", keys, rows)
    exchanged = flag(exchanged, "exchanged")
    (rng,) = _streams([d_k], seed)
    scores = dot_product.score_rows(d_k, keys, rows, rng)
    gains = jacobian_norm(softmax(scores)) - jacobian_norm(softmax(scores / np.sqrt(d_k)))
    return estimate.mean(gains * (2 * rng.integers(0, 2, size=rows) - 1) if exchanged else gains)


def variance_ratios(
    nu: float, *, d_k: int = 16, draws: int = 4000, repeats: int = 40, seed: int = 5
) -> Float[Numpy, "{repeats}"]:
    """Repeat the measurement of Var(q.k) / d_k with Student components.

    nu : degrees of freedom, more than 2.
    """
    d_k, draws = positive_integer(d_k, "d_k"), several(draws, "draws")
    law, rng = dot_product.student_t(nu), np.random.default_rng(non_negative_integer(seed, "seed"))
    samples = (dot_product.draws(law, d_k, draws, rng) for _ in range(positive_integer(repeats, "repeats")))
    return np.asarray([estimate.variance(x).value / d_k for x in samples])


def _law(name: str) -> ComponentLaw:
    return COMPONENT_LAWS[one_of(name, COMPONENT_LAWS, "law")]


def _streams(widths: Sequence[int], seed: int, name: str = "widths") -> list[np.random.Generator]:
    """Return one generator for each width; it depends on the seed and on the width alone."""
    seed = non_negative_integer(seed, "seed")
    return [np.random.default_rng((seed, d_k)) for d_k in widths_of(widths, name)]
