"""Parameters of FAVOR++ and FAVOR# that fit given queries and keys (the report's section 2.2.4).

All three functions minimise one objective: the mean over all pairs (x_i, y_j) of the logarithm of the second moment
of one feature product. With c = M x + M^(-T) y it is, up to the mean of 2 x . y,

    sum_l log(1 - 4 a_l) - log(1 - 8 a_l) / 2 + mean(c_l^2) / (1 - 8 a_l),

so first and second moments of the rows decide, in O(n d^2). Nothing is said of a single pair, nor of the mean of the
variance itself. Computed in double precision: second moments double the digits that are lost. Where axes have equal
moments they are not unique, and have no derivative; autograd gives 0 there, and no NaN; forward
mode gives a `ValueError`.

X : n queries x, one a row.  Y : m keys y. Both already scaled, so that the kernel is exp(x . y).
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace
from jaxtyping import Float, Real

from attnmath.arrays import AnyArray, Array, ArrayLike
from attnmath.checks import (
    about,
    derivable,
    describe,
    finite,
    flag,
    forward,
    in_range,
    matmul,
    number,
    precision,
    real_array,
    rounded,
    same_dtype,
    scalar,
    silent,
)


def optimal_gerf(X: Real[ArrayLike, "n d"], Y: Real[ArrayLike, "m d"]) -> float:
    """Return the coefficient A of FAVOR++: `optimal_coefficient` at the mean of |x_i + y_j|^2 over d.

    >>> round(optimal_gerf([[1.0]], [[1.0]]), 6)
    -1.101884
    """
    X, Y, _ = _rows(X, Y)
    xp = array_namespace(X, Y)
    with silent(), about("X, Y"):
        moment = xp.sum(xp.linalg.diagonal(_second_moment_of_sum(X, Y))) / X.shape[1]
        return scalar(optimal_coefficient(in_range(moment, "their second moments")))


def optimal_sderf(
    X: Real[ArrayLike[Array], "n d"], Y: Real[ArrayLike[Array], "m d"]
) -> tuple[Float[Array, "d"], Float[Array, "d d"]]:
    """Return A and B of the symmetric FAVOR#: the eigenbasis of the second moment of x_i + y_j, one A for each axis.

    The minimum over all symmetric A and all B with B_q = B_k = B.

    >>> A, B = optimal_sderf([[1.0, 0.0]], [[1.0, 0.0]])
    >>> A.round(6).tolist()
    [0.0, -1.101884]
    """
    X, Y, dtype = _rows(X, Y)
    with silent(), about("X, Y"):
        A, basis = _by_axes(in_range(_second_moment_of_sum(X, Y), "their second moments"))
        return rounded(A, dtype), *_scaled(A, basis, dtype=dtype)


def optimal_aderf(
    X: Real[ArrayLike[Array], "n d"],
    Y: Real[ArrayLike[Array], "m d"],
    *,
    ridge: float | None = None,
    one_coefficient: bool = False,
) -> tuple[Float[Array, "d"], Float[Array, "d d"], Float[Array, "d d"]]:
    """Return A, B_q and B_k of the asymmetric FAVOR#.

    First x -> M x and y -> M^(-T) y that makes the second moments of both equal. With ridge = 0 the second moment of
    M x_i + M^(-T) y_j then has the smallest trace, and with one coefficient for all axes (the paper's ADERF) this is
    the minimum of the objective over all B_q and B_k. Otherwise `optimal_sderf` follows on the changed rows, which
    lowers the objective further; the minimum over all A, B_q and B_k together may be lower still.

    ridge : is added to both second moments, in units of their mean eigenvalue, and only to find M. A minimum above is
        then that of the rows with this second moment. The default, 1e-6 or 8 d^2 eps if that is larger (in single
        precision), is enough for rows of any rank. 0 needs matrices of full rank.
    one_coefficient : one coefficient for all axes, so that A holds one number d times.

    With ridge = 0 the objective is the same for x -> T x and y -> T^(-T) y, for every invertible T. With a ridge that
    holds for a multiple of an orthogonal T.

    >>> A, B_q, B_k = optimal_aderf([[4.0], [-4.0]], [[1.0], [-1.0]])
    >>> round(float(abs(B_k[0, 0] / B_q[0, 0])), 6)
    4.0
    """
    eps = precision(X, Y)
    X, Y, dtype = _rows(X, Y)
    xp = array_namespace(X, Y)
    d = X.shape[1]
    if ridge is None:
        ridge = min(1.0, max(1e-6, 8 * d * d * eps))
    elif not 0 <= (ridge := number(ridge, "ridge", "a number of at least 0")) <= 1:
        raise ValueError(f"ridge: expected a number from 0 to 1, got {ridge}")
    flag(one_coefficient, "one_coefficient")
    for name, R in (("X", X), ("Y", Y)):
        if not bool(xp.any(R != 0)):
            raise ValueError(f"{name}: expected rows that are not all 0, got {describe(R)} of zeros")
    with silent(), about("X, Y, ridge"):
        M_q, M_k = _equal_moments(_moment(X, ridge), _moment(Y, ridge))
        moment = _second_moment_of_sum(*(matmul(R, xp.matrix_transpose(M)) for R, M in ((X, M_q), (Y, M_k))))
        in_range(moment, "their second moments")
        if one_coefficient:
            a = optimal_coefficient(xp.sum(xp.linalg.diagonal(moment)) / d)
            A = a * xp.ones(d, dtype=X.dtype, device=getattr(X, "device", None))
            return rounded(A, dtype), *_scaled(A, M_q, M_k, dtype=dtype)
        A, basis = _by_axes(moment)
        return rounded(A, dtype), *_scaled(A, matmul(basis, M_q), matmul(basis, M_k), dtype=dtype)


def optimal_coefficient(moment: Real[ArrayLike[Array], "*shape"]) -> Float[Array, "*shape"]:
    """Return the a that minimises log(1 - 4a) - log(1 - 8a)/2 + s/(1 - 8a) for s >= 0: a root of 16a^2 + (4s - 2)a = s.

    moment : s, the mean of (x_l + y_l)^2 along one axis.

    >>> float(optimal_coefficient(0.5))
    -0.1767766952966369
    """
    s = finite(real_array(moment, "moment"), "moment")
    xp = array_namespace(s)
    if bool(xp.any(s < 0)):
        raise ValueError(f"moment: expected non-negative numbers, got one of {scalar(xp.min(s)):.3g}")
    with silent():
        sum_of_two = 2 * s + 1
        root = in_range(sum_of_two * xp.sqrt(1 + 8 * s / sum_of_two / sum_of_two), "moment")
        # Two forms of one root: each avoids the subtraction of nearly equal numbers on its side.
        small = xp.minimum(s, xp.full_like(s, 0.5))
        return xp.where(s < 0.5, (0 - s) / (1 - 2 * small + root), (1 - 2 * s - root) / 16)


def _rows(X: AnyArray, Y: AnyArray) -> tuple[AnyArray, AnyArray, Any]:
    """Return the rows in double precision, and the dtype that they came in."""
    X, Y = (finite(real_array(R, name, ndim=2), name) for R, name in ((X, "X"), (Y, "Y")))
    same_dtype(X=X, Y=Y)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X, Y: expected rows of one length d, got X {describe(X)} and Y {describe(Y)}")
    if X.dtype.itemsize < 4:
        raise TypeError(f"X, Y: expected single or double precision, got {describe(X)}")
    xp = array_namespace(X, Y)
    return derivable(xp.astype(X, xp.float64)), derivable(xp.astype(Y, xp.float64)), X.dtype


def _second_moment_of_sum(X: AnyArray, Y: AnyArray) -> AnyArray:
    """Mean of (x_i + y_j)(x_i + y_j)^T over all pairs: two covariance matrices, and the square of the mean sum."""
    xp = array_namespace(X, Y)
    mean_X, mean_Y = xp.mean(X, axis=0, keepdims=True), xp.mean(Y, axis=0, keepdims=True)
    mean = mean_X + mean_Y
    return _moment(X - mean_X) + _moment(Y - mean_Y) + matmul(xp.matrix_transpose(mean), mean)


def _moment(R: AnyArray, ridge: float = 0.0) -> AnyArray:
    xp = array_namespace(R)
    moment = matmul(xp.matrix_transpose(R), R) / R.shape[0]
    if ridge:
        size = ridge * xp.sum(xp.linalg.diagonal(moment)) / R.shape[1]
        moment = moment + size * xp.eye(R.shape[1], dtype=R.dtype, device=getattr(R, "device", None))
    return moment


def _equal_moments(moment_X: AnyArray, moment_Y: AnyArray) -> tuple[AnyArray, AnyArray]:
    """M and M^(-T) with M moment_X M^T = M^(-T) moment_Y M^(-1), a diagonal matrix."""
    xp = array_namespace(moment_X, moment_Y)
    (values_X, vectors_X), (values_Y, vectors_Y) = _eigen(moment_X), _eigen(moment_Y)
    roots_X, roots_Y = xp.sqrt(values_X), xp.sqrt(values_Y)
    U, singular, _ = xp.linalg.svd(roots_X[:, None] * matmul(xp.matrix_transpose(vectors_X), vectors_Y) * roots_Y)
    forward(U, "moments of the axes")
    root = xp.sqrt(singular)[:, None]
    M = in_range(root * xp.matrix_transpose(U) / roots_X, "their second moments")
    # The inverse of this very M, so that the features stay unbiased where M itself has few digits.
    inverse = in_range(xp.linalg.inv(M), "their second moments")
    back = xp.matrix_transpose(vectors_X)
    return matmul(M, back), matmul(xp.matrix_transpose(inverse), back)


def _eigen(moment: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Eigenvalues and eigenvectors (columns) of a second moment of full rank."""
    xp = array_namespace(moment)
    values, vectors = xp.linalg.eigh(in_range(moment, "their second moments"))
    forward(vectors, "moments of the axes")
    if not bool(values[0] > values.shape[0] * xp.finfo(moment.dtype).eps * values[-1]):
        raise ValueError("expected second moments of full rank, or a larger ridge, got a singular matrix")
    return values, vectors


def _by_axes(moment: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The best coefficient for each eigenvector of the second moment of a sum, and the eigenvectors as rows."""
    xp = array_namespace(moment)
    values, vectors = xp.linalg.eigh(moment)
    forward(vectors, "moments of the axes")
    return optimal_coefficient(xp.where(values > 0, values, xp.zeros_like(values))), xp.matrix_transpose(vectors)


def _scaled(A: AnyArray, *changes: AnyArray, dtype: Any) -> tuple[AnyArray, ...]:
    """The matrices B = (I - 4A)^(1/2) M of linear changes M.

    The sign of a row is free, and libraries of linear algebra differ in it; here the first matrix decides it.
    """
    xp = array_namespace(A, *changes)
    flip = xp.astype(xp.sum(changes[0], axis=1) < 0, A.dtype)
    scale = xp.sqrt(1 - 4 * A) * (1 - 2 * flip)
    return tuple(rounded(scale[:, None] * M, dtype) for M in changes)
