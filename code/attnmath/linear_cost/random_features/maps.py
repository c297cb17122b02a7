"""Random features f(w, x) of the kernel exp(x . y): its expectation over w ~ N(0, I) is that of f(w, x) f(w, y).

Every map takes the projections, the rows of Omega (numpy, or what becomes an array of it), and gives `RandomFeatures`.
A feature is kept as a value times the exponential of an exponent, so that no feature overflows or underflows.
Attention takes x = q sqrt(scale) and y = k sqrt(scale), with scale = 1/sqrt(d_k).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Float, Real

from attnmath.arrays import AnyArray, Array, ArrayLike, Numpy
from attnmath.checks import (
    concat,
    describe,
    finite,
    floats,
    matmul,
    number,
    precision,
    real_array,
    rounded,
    silent,
    wide,
)


class Scaled(NamedTuple, Generic[Array]):
    """Features values * exp(exponents)."""

    values: Float[Array, "... n r"]
    exponents: Float[Array, "... n r"]


class Parts(NamedTuple, Generic[Array]):
    """Features values * exp(exponents + rows + offset), their sums not yet formed; the values None are all 1."""

    values: Float[Array, "... n r"] | None
    exponents: Float[Array, "... n _"]
    rows: Float[Array, "... n 1"]


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """A map with r features: value * exp(exponent), the exponent being w . B x + offset - |L x|^2 / 2.

    query_projections, key_projections : the rows B^T w, for queries and for keys.
    query_root, key_root : L, a matrix, or a number that multiplies the identity.
    offset : what the exponent of each feature has of its own, 1/sqrt(m) included.
    waves : the features are cos(w . x) and sin(w . x), in this order, times exp(offset + |x|^2 / 2).
    """

    query_projections: Float[Numpy, "projections d"]
    key_projections: Float[Numpy, "projections d"]
    query_root: Float[Numpy, "d d"] | Float[Numpy, ""]
    key_root: Float[Numpy, "d d"] | Float[Numpy, ""]
    offset: Float[Numpy, "projections"]
    waves: bool = False

    @property
    def d(self) -> int:
        """Size of the vectors x."""
        return int(self.query_projections.shape[1])

    def queries(self, X: Real[ArrayLike[Array], "... n d"]) -> Scaled[Array]:
        """Features of the queries x, the rows of X."""
        return self._scaled(X, "X", self.query_projections, self.query_root)

    def keys(self, Y: Real[ArrayLike[Array], "... n d"]) -> Scaled[Array]:
        """Features of the keys y, the rows of Y."""
        return self._scaled(Y, "Y", self.key_projections, self.key_root)

    def query_parts(self, X: Float[Array, "... n d"]) -> Parts[Array]:
        """Parts of the features of queries, unchecked: what differs between the features, and what a row shares."""
        return self._parts(X, self.query_projections, self.query_root)

    def key_parts(self, Y: Float[Array, "... n d"]) -> Parts[Array]:
        """For keys what `query_parts` is for queries."""
        return self._parts(Y, self.key_projections, self.key_root)

    def query_directions(
        self, X: Float[Array, "... n d"]
    ) -> tuple[Float[Array, "... n r"] | None, Float[Array, "... n _"]]:
        """The first two of `query_parts`, where what a row shares cancels."""
        return self._directions(X, self.query_projections)

    def offsets(self, like: Float[Array, "..."]) -> Float[Array, "..."]:
        """The offset in the library, dtype and device of an array; one number for waves, whose offsets are equal."""
        return _as(self.offset[:1] if self.waves else self.offset, like)

    def _scaled(self, X: AnyArray, name: str, projections: Numpy, root: Numpy) -> Scaled[AnyArray]:
        X = finite(real_array(X, name, at_least=2), name)
        self.check(X, name)
        xp, dtype = array_namespace(X), X.dtype
        (X,) = wide(X)
        with silent():
            values, exponents, rows = self._parts(X, projections, root)
            exponents = exponents + rows + self.offsets(X)
            values = xp.ones_like(exponents) if values is None else finite(values, f"{name}: the projections")
            exponents = finite(rounded(exponents + xp.zeros_like(values), dtype), f"{name}: the exponents")
            return Scaled(rounded(values, dtype), exponents)

    def check(self, X: Float[Array, "... n _"], name: str) -> None:
        """Raise an error unless the rows of X have the size d."""
        if X.shape[-1] != self.d:
            raise ValueError(f"{name}: expected {self.d} columns, as the projections have, got {describe(X)}")

    def _parts(self, X: AnyArray, projections: Numpy, root: Numpy) -> Parts[AnyArray]:
        xp = array_namespace(X)
        rooted = matmul(X, xp.matrix_transpose(_as(root, X))) if root.ndim else X
        half = xp.sum(rooted * rooted, axis=-1, keepdims=True) * (0.5 if root.ndim else float(root) ** 2 / 2)
        return Parts(*self._directions(X, projections), half if self.waves else -half)

    def _directions(self, X: AnyArray, projections: Numpy) -> tuple[AnyArray | None, AnyArray]:
        xp = array_namespace(X)
        projected = matmul(X, xp.matrix_transpose(_as(projections, X)))
        if self.waves:
            return concat([xp.cos(projected), xp.sin(projected)], axis=-1), xp.zeros_like(projected[..., :1])
        return None, projected


def trigonometric(Omega: Real[ArrayLike, "m d"]) -> RandomFeatures:
    """2m features exp(|x|^2 / 2) (cos(w . x), sin(w . x)) / sqrt(m): unbiased, of either sign (Rahimi and Recht 2007).

    >>> trigonometric([[0.0, 0.0]]).keys([[3.0, 4.0]])
    Scaled(values=array([[1., 0.]]), exponents=array([[12.5, 12.5]]))
    """
    Omega = _projections(Omega)
    return RandomFeatures(Omega, Omega, _ONE, _ONE, _offset(Omega), waves=True)


def positive(Omega: Real[ArrayLike, "m d"]) -> RandomFeatures:
    """FAVOR+, equation (R.12): m features exp(w . x - |x|^2 / 2) / sqrt(m), all positive.

    >>> positive([[1.0, 0.0]]).queries([[3.0, 4.0]])
    Scaled(values=array([[1.]]), exponents=array([[-9.5]]))
    """
    Omega = _projections(Omega)
    return RandomFeatures(Omega, Omega, _ONE, _ONE, _offset(Omega))


def hyperbolic(Omega: Real[ArrayLike, "m d"]) -> RandomFeatures:
    """2m features exp(+-w . x - |x|^2 / 2) / sqrt(2m): each projection with both signs.

    >>> hyperbolic([[1.0, 0.0]]).queries([[3.0, 4.0]]).exponents.round(3)
    array([[ -9.847, -15.847]])
    """
    Omega = _projections(Omega)
    return positive(np.concatenate([Omega, -Omega]))


def gerf(Omega: Real[ArrayLike, "m d"], A: float) -> RandomFeatures:
    """FAVOR++: m features D exp(A |w|^2 + sqrt(1 - 4A) w . x - |x|^2 / 2) / sqrt(m), with D = (1 - 4A)^(d/4).

    A : below 1/8 (the variance is infinite from there on); 0 gives FAVOR+.

    >>> gerf([[1.0, 0.0]], 0.0).queries([[3.0, 4.0]]).exponents
    array([[-9.5]])
    """
    A = number(A, "A")
    if not -math.inf < A < 1 / 8:
        raise ValueError(f"A: expected a number below 1/8, got {A}")
    Omega = _projections(Omega)
    with silent():
        stretched = math.sqrt(1 - 4 * A) * Omega
    return RandomFeatures(stretched, stretched, _ONE, _ONE, _offset(Omega, np.full(Omega.shape[1], A)))


def sderf(Omega: Real[ArrayLike, "m d"], A: Real[ArrayLike, "d"], B: Real[ArrayLike, "d d"]) -> RandomFeatures:
    """FAVOR# with one matrix for queries and keys: `aderf` with B_q = B_k = B, where B^T (I - 4A)^(-1) B = I."""
    return _dense(Omega, A, {"B": B})


def aderf(
    Omega: Real[ArrayLike, "m d"], A: Real[ArrayLike, "d"], B_q: Real[ArrayLike, "d d"], B_k: Real[ArrayLike, "d d"]
) -> RandomFeatures:
    """FAVOR#: m features D exp(w . A w + w . B x - x . B^T (I - 4A)^(-1) B x / 2) / sqrt(m), D = det(I - 4A)^(1/4).

    A : the entries of a diagonal matrix, each below 1/8.
    B_q, B_k : B for queries and for keys; unbiased if and only if B_q^T (I - 4A)^(-1) B_k = I, and else a `ValueError`
        (to 1e-6, or the square root of the precision of what is given if that is more).

    >>> aderf([[1.0, 0.0]], [0.0, 0.0], [[2.0, 0.0], [0.0, 1.0]], [[0.5, 0.0], [0.0, 1.0]]).keys([[3.0, 4.0]]).exponents
    array([[-7.625]])
    """
    return _dense(Omega, A, {"B_q": B_q, "B_k": B_k})


def _dense(Omega: ArrayLike, A: ArrayLike, matrices: dict[str, ArrayLike]) -> RandomFeatures:
    names = ", ".join(matrices)
    B_q, *others = (floats(B, name, ndim=2) for name, B in matrices.items())
    B_k = others[0] if others else B_q
    allowed = max(1e-6, math.sqrt(precision(A, *matrices.values())))
    Omega, A = _projections(Omega), floats(A, "A", ndim=1)
    d = Omega.shape[1]
    if A.shape != (d,):
        raise ValueError(f"A: expected {d} entries, as the projections have, got {describe(A)}")
    if not np.all(A < 1 / 8):
        raise ValueError(f"A: expected entries below 1/8, got {np.max(A)}")
    for B in (B_q, B_k):
        if B.shape != (d, d):
            raise ValueError(f"{names}: expected {d} x {d} entries, as A has {d}, got {describe(B)}")
    with silent():
        root = 1 / np.sqrt(1 - 4 * A)[:, None]
        off = np.max(np.abs((root * B_q).T @ (root * B_k) - np.eye(d)))
        if not off < allowed:
            raise ValueError(
                f"A, {names}: expected B_q^T (I - 4A)^(-1) B_k = I (else there is a bias), off by {off:.3g}"
            )
        return RandomFeatures(Omega @ B_q, Omega @ B_k, root * B_q, root * B_k, _offset(Omega, A))


_ONE = np.asarray(1.0)


def _projections(Omega: ArrayLike) -> Numpy:
    return floats(Omega, "Omega", ndim=2)


def _offset(Omega: Numpy, A: Numpy | None = None) -> Numpy:
    """Return log(D / sqrt(m)) + w . A w for each projection w."""
    m = Omega.shape[0]
    if A is None:
        return np.full(m, -math.log(m) / 2)
    with silent():
        offset = Omega**2 @ A + np.sum(np.log1p(-4 * A)) / 4 - math.log(m) / 2
    return finite(offset, "Omega, A: the exponents")


def _as(constant: Numpy, like: AnyArray) -> AnyArray:
    return array_namespace(like).asarray(constant, dtype=like.dtype, device=device(like))
