"""The dot product of random vectors: component laws, draws, and its distance from a Gaussian.

Section 5.1.4 asks how q.k is distributed when the components of q and k are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Real
from numpy.typing import NDArray
from scipy import integrate, special, stats

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import (
    Fixed,
    fits_memory,
    floats,
    generator,
    in_range,
    instance,
    one_of,
    positive,
    positive_integer,
    silent,
)

Floats = NDArray[Any]
#: A law of components: a generator and a shape go in, draws come out.
Sampler = Callable[[np.random.Generator, tuple[int, ...]], Float[Numpy, "..."]]

#: Limit of d_k times the Kolmogorov distance for Gaussian components: the first Edgeworth term is
#: kappa_4 / 24 |x^3 - 3x| phi(x) with kappa_4 = 6 / d_k, and is largest at x^2 = 3 - sqrt(6).
EDGEWORTH_RATE = float(0.25 * np.sqrt(6 * (3 - np.sqrt(6))) * np.exp((np.sqrt(6) - 3) / 2) / np.sqrt(2 * np.pi))

_ROOT3 = float(np.sqrt(3))  # half the width of the uniform law of variance 1

# Entries of one random block: 4 Mi float64, 32 MiB, whatever the number of draws asked for.
_BLOCK = 2**22

# Points at a time of a quadrature, which keeps some dozen values for each.
_POINTS = 4096

# From this d_k on the normal law with its first Edgeworth term, off by less than 1 / d_k^2, takes the place of
# the quadrature, whose own rounding grows with d_k.
_WIDE = 10**6


@dataclass(frozen=True)
class ComponentLaw:
    """A law for one component of q or k, standardised to mean 0 and variance 1.

    fourth_moment : E[x^4], which is the kurtosis of the law; inf where it does not exist.
    symbol : how figures label the law.
    """

    name: str
    symbol: str
    sample: Sampler
    fourth_moment: float


def student_t(nu: float) -> ComponentLaw:
    """Student's t law with nu > 2 degrees of freedom, scaled to variance 1.

    Its tails fall like |x|^-(nu+1), so the fourth moment 3 (nu-2)/(nu-4) needs nu > 4.

    >>> student_t(5).fourth_moment
    9.0
    """
    nu = positive(nu, "nu", at_most=1e300)
    if nu <= 2:
        raise ValueError(f"nu: expected more than 2 degrees of freedom (no variance below), got {nu:g}")
    scale = np.sqrt((nu - 2) / nu)
    fourth = 3 * (nu - 2) / (nu - 4) if nu > 4 else np.inf
    return ComponentLaw(f"Student t, {nu:g} d.o.f.", f"$t_{{{nu:g}}}$", partial(_student, nu, scale), fourth)


def _student(nu: float, scale: float, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return scale * rng.standard_t(nu, shape)


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.standard_normal(shape)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return _ROOT3 * rng.uniform(-1, 1, shape)


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return 2.0 * rng.integers(0, 2, shape) - 1.0


#: The four laws of the chapter: light, bounded, two-valued, and heavy-tailed.
COMPONENT_LAWS = Fixed({
    "gaussian": ComponentLaw("Gaussian", r"$\mathcal{N}$", _normal, 3.0),
    "uniform": ComponentLaw("uniform", r"$\mathcal{U}$", _uniform, 9 / 5),
    "rademacher": ComponentLaw("Rademacher", r"$\pm1$", _signs, 1.0),
    "student_t5": student_t(5),
})  # fmt: skip


def draws(
    law: ComponentLaw, d_k: int, size: int, rng: np.random.Generator, *, sigma: float = 1.0
) -> Float[Numpy, "{size}"]:
    """Draw `size` independent values of q.k, where q and k have d_k independent components.

    sigma : the standard deviation of every component.

    >>> draws(COMPONENT_LAWS["rademacher"], 1, 3, np.random.default_rng(0)) ** 2
    array([1., 1., 1.])
    """
    d_k, size = positive_integer(d_k, "d_k"), positive_integer(size, "size")
    sigma = positive(sigma, "sigma")
    instance(law, ComponentLaw, "law")
    generator(rng)
    fits_memory("d_k", d_k)
    fits_memory("size", size)
    rows = max(1, _BLOCK // d_k)
    blocks = [min(rows, size - start) for start in range(0, size, rows)]

    def vectors(count: int) -> Floats:
        drawn = floats(law.sample(rng, (count, d_k)), "law")
        if drawn.shape != (count, d_k):
            raise ValueError(f"law: expected draws of shape ({count}, {d_k}), got {drawn.shape}")
        return sigma * drawn

    with silent():
        return in_range(np.concatenate([np.einsum("nd,nd->n", vectors(b), vectors(b)) for b in blocks]), "law, sigma")


def gaussian_cdf(x: Real[ArrayLike, "*points"], d_k: int) -> Float[Numpy, "*points"]:
    """P(q.k / sqrt(d_k) <= x) for standard Gaussian components, to about 1e-9.

    >>> gaussian_cdf([0.0], 3).round(9)
    array([0.5])
    """
    s, d_k = _scaled_points(x, d_k)
    if d_k > _WIDE:
        with silent():
            z = s / np.sqrt(d_k)
            return np.asarray(special.ndtr(z) - (z**2 - 3) * z / (4 * d_k) * _normal_density(z))
    return _over_norm(s, lambda part, r: special.ndtr(part / r), d_k)


def gaussian_density(x: Real[ArrayLike, "*points"], d_k: int) -> Float[Numpy, "*points"]:
    """Density of q.k / sqrt(d_k) for standard Gaussian components, to about 1e-9.

    At d_k = 2 it is Laplace's density; at d_k = 1 it has a pole at 0, which is refused.

    >>> gaussian_density([1.0], 2) / (np.exp(-np.sqrt(2)) / np.sqrt(2))
    array([1.])
    """
    s, d_k = _scaled_points(x, d_k)
    if d_k > _WIDE:
        with silent():
            z = s / np.sqrt(d_k)
            return np.asarray((1 + ((z**2 - 6) * z**2 + 3) / (4 * d_k)) * _normal_density(z))
    if d_k == 1 and np.any(s == 0):
        raise ValueError("x: expected no 0 where d_k = 1, the density has a pole there")
    return _over_norm(s, lambda part, r: _normal_density(part / r) / r * np.sqrt(d_k), d_k)


def _scaled_points(x: ArrayLike, d_k: int) -> tuple[Floats, int]:
    """x sqrt(d_k), and d_k. Beyond 1e70 both tails are 0 in floating point, and fourth powers far from overflow."""
    d_k = positive_integer(d_k, "d_k")
    with silent():
        return np.clip(floats(x, "x", at_least=1), -1e70, 1e70) * np.sqrt(d_k), d_k


def _normal_density(z: Floats) -> Floats:
    with silent():
        return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def _over_norm(s: Floats, conditional: Callable[[Floats, float], Floats], d_k: int) -> Floats:
    """Average a function of points and |q| over the chi law of d_k degrees of freedom, some points at a time.

    Given q, the dot product q.k is normal with standard deviation |q|; this undoes the
    conditioning. The interval leaves out a probability of at most 2e-14; of two components the density
    at 0 weighs all norms alike, so that even fewer of the short ones may be missing.
    """
    low, high = stats.chi.ppf(1e-20 if d_k == 2 else 1e-14, d_k), stats.chi.isf(1e-14, d_k)
    constant = (d_k / 2 - 1) * math.log(2) + math.lgamma(d_k / 2)

    def weighted(
        r: float, part: Floats
    ) -> Any:  # scipy's own density checks its arguments at each of some hundred points
        return math.exp((d_k - 1) * math.log(r) - r**2 / 2 - constant) * conditional(part, r)

    flat = s.reshape(-1)
    parts = [flat[k : k + _POINTS] for k in range(0, flat.size, _POINTS)]
    with silent():
        values = [integrate.quad_vec(weighted, low, high, epsabs=1e-10, args=(part,))[0] for part in parts]
    return np.concatenate(values).reshape(s.shape)


def kolmogorov_distance(law_name: str, d_k: int) -> float:
    """Largest distance between the distribution functions of q.k / sqrt(d_k) and the normal law.

    law_name : "gaussian" (quadrature on a grid of step 1/200, so low by at most about 1e-5
    of itself) or "rademacher" (exact: q.k is a shifted binomial).

    >>> round(kolmogorov_distance("rademacher", 1), 6)
    0.341345
    """
    d_k = positive_integer(d_k, "d_k")
    if one_of(law_name, ("gaussian", "rademacher"), "law_name") == "gaussian":
        x = np.linspace(0, 4, 801)
        return float(np.max(np.abs(gaussian_cdf(x, d_k) - special.ndtr(x))))
    # The largest distance is at the middle of the lattice, at whichever width: a few heads to each side are enough.
    heads = np.arange(max(0, d_k // 2 - 8), min(d_k, d_k // 2 + 8) + 1)
    normal = special.ndtr((2 * heads - d_k) / np.sqrt(d_k))
    below, upto = stats.binom.cdf(heads - 1, d_k, 0.5), stats.binom.cdf(heads, d_k, 0.5)
    return float(np.max(np.abs([normal - below, normal - upto])))


def score_rows(
    d_k: int, n: int, rows: int, rng: np.random.Generator, *, sigma: float = 1.0
) -> Float[Numpy, "{rows} {n}"]:
    """Draw rows of unscaled scores: n Gaussian keys for each of `rows` independent queries and key sets.

    sigma : standard deviation of every component.
    """
    d_k, n, rows = positive_integer(d_k, "d_k"), positive_integer(n, "n"), positive_integer(rows, "rows")
    generator(rng)
    fits_memory("d_k, n", d_k, n)
    fits_memory("d_k, n, rows", rows, max(n, d_k))
    queries = positive(sigma, "sigma", at_most=1e150) ** 2 * rng.standard_normal((rows, d_k))
    return np.stack([rng.standard_normal((n, d_k)) @ query for query in queries])


def cosine_density(t: Real[ArrayLike, "*points"], d: int) -> Float[Numpy, "*points"]:
    """Density of the cosine between two independent isotropic directions in R^d, d >= 2.

    The density is (1 - t^2)^((d-3)/2) / B(1/2, (d-1)/2) on (-1, 1).

    >>> cosine_density(np.asarray([0.0, 0.5]), 3)
    array([0.5, 0.5])
    """
    d = positive_integer(d, "d")
    if d < 2:
        raise ValueError(f"d: expected at least 2 (in one dimension the cosine is -1 or 1), got {d}")
    t = floats(t, "t")
    if np.any(np.abs(t) >= 1):
        raise ValueError("t: expected cosines strictly between -1 and 1")
    with silent():
        return np.asarray((1 - t**2) ** ((d - 3) / 2) / special.beta(0.5, (d - 1) / 2))
