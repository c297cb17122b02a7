"""The spectrum of an attention matrix (section 5.5.1): norm, eigenvalues, determinant.

A is row-stochastic, shape (..., n, n): every row is a distribution over the keys. Functions
take numpy arrays and torch tensors alike and answer in kind. What powers of A tend to is in
`attnmath.matrix.mixing`.
"""

from __future__ import annotations

import math

from array_api_compat import array_namespace, device
from jaxtyping import Complex, Float, Real

from attnmath.arrays import AnyArray, Array, ArrayLike
from attnmath.checks import (
    about,
    derivable,
    describe,
    finite,
    forward,
    in_range,
    real_array,
    rounding_of_sums,
    scalar,
    silent,
    total,
)


def row_stochastic(A: Real[ArrayLike[Array], "... n n"], name: str = "A") -> Float[Array, "... n n"]:
    """Return A, refusing what is not square and non-negative with rows that sum to 1.

    Rows may be off by the rounding of their own dtype.

    >>> row_stochastic([[0.5, 0.5], [0.0, 1.0]])
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    A = square(A, name)
    xp = array_namespace(A)
    if bool(xp.any(A < 0)):
        raise ValueError(f"{name}: expected non-negative entries, got one of {scalar(xp.min(A)):.3g}")
    with silent():
        off = scalar(xp.max(xp.abs(xp.sum(A, axis=-1) - 1)))
    if off > rounding_of_sums(A):
        raise ValueError(f"{name}: expected rows that sum to 1, got one that is off by {off:.3g}")
    return A


def square(A: Real[ArrayLike[Array], "... n n"], name: str = "A") -> Float[Array, "... n n"]:
    """Return A, refusing what is not a finite square matrix (or a stack of them) in single or double precision."""
    A = finite(real_array(A, name, at_least=2), name)
    if A.shape[-1] != A.shape[-2]:
        raise ValueError(f"{name}: expected square matrices, got {describe(A)}")
    return _precise(A, name)


def singular_values(A: Real[ArrayLike[Array], "... n m"]) -> Float[Array, "... min(n,m)"]:
    """Singular values of any matrix, largest first.

    Where two coincide, or one is 0, they have no derivative; autograd takes that for one choice of singular vectors.

    >>> singular_values([[3.0, 0.0], [4.0, 0.0]]).round(12)
    array([5., 0.])
    """
    A = _precise(finite(real_array(A, "A", at_least=2), "A"), "A")
    with silent(), about("A"):
        return in_range(array_namespace(A).linalg.svdvals(A), "A")


def spectral_norm(A: Real[ArrayLike[Array], "... n m"]) -> Float[Array, "..."]:
    """The 2-norm of any matrix, its largest singular value.

    For a row-stochastic matrix it lies between 1 and sqrt(n); see `norm_bounds`.

    >>> round(float(spectral_norm([[0.875, 0.125], [0.875, 0.125]])), 12)
    1.25
    """
    return singular_values(A)[..., 0]


def norm_bounds(A: Real[ArrayLike[Array], "... n n"]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Bounds on the 2-norm of a row-stochastic matrix from its column sums c.

    They are sqrt(1 + Var c), the variance being over the n columns, and sqrt(max c). Both are 1
    exactly when the matrix is doubly stochastic. Where two sums are the largest, the derivative is a subgradient.

    >>> [round(float(b), 6) for b in norm_bounds([[0.875, 0.125], [0.875, 0.125]])]
    [1.25, 1.322876]
    """
    A = row_stochastic(A)
    xp = array_namespace(A)
    columns = total(A, axis=-2)
    return xp.sqrt(1 + xp.mean((columns - 1) ** 2, axis=-1)), xp.sqrt(xp.max(columns, axis=-1))


def eigenvalues(A: Real[ArrayLike[Array], "... n n"]) -> Complex[Array, "... n"]:
    """Eigenvalues of a square matrix, by falling modulus.

    Of a conjugate pair the one with positive imaginary part comes first. For a row-stochastic
    matrix the first has modulus 1. Where two coincide they have no derivative; autograd gives any number, but no NaN,
    and in forward mode a `ValueError`.

    >>> eigenvalues([[0.75, 0.25], [0.25, 0.75]]).real.round(12)
    array([1. , 0.5])
    """
    A = square(A)
    xp = array_namespace(A)
    with silent(), about("A"):
        found = in_range(xp.linalg.eigvals(derivable(A)), "A")
    forward(found, "A")
    found = xp.astype(found, xp.result_type(found.dtype, xp.complex64))  # older libraries give real numbers as such
    # LAPACK returns conjugate pairs side by side, so a stable order keeps them so.
    return xp.take_along_axis(found, xp.argsort(-xp.abs(found), axis=-1, stable=True), axis=-1)


def eigenvector_condition(A: Real[ArrayLike[Array], "... n n"]) -> Float[Array, "..."]:
    """Condition number of the matrix of unit eigenvectors.

    It bounds how far powers of A may stray from powers of its eigenvalues. A matrix that is not
    diagonalisable gets a huge number or inf, as rounding decides. Where eigenvalues coincide it has no derivative;
    autograd gives any number, but no NaN, and in forward mode a `ValueError`.

    >>> round(float(eigenvector_condition([[0.75, 0.25], [0.25, 0.75]])), 12)
    1.0
    """
    A = square(A)
    xp = array_namespace(A)
    with silent(), about("A"):
        _, vectors = xp.linalg.eig(derivable(A))
        values = in_range(xp.linalg.svdvals(in_range(vectors, "A")), "A")
    smallest = values[..., -1]
    with silent():
        ratio = values[..., 0] / xp.where(smallest > 0, smallest, xp.ones_like(smallest))
    return forward(xp.where(smallest > 0, ratio, xp.full_like(ratio, math.inf)), "A")


def log_determinant(A: Real[ArrayLike[Array], "... n n"]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Sign and logarithm of the modulus of the determinant.

    A singular matrix gets 0 and -inf, and 0 as derivative (it has none). The determinant itself underflows for all but
    small matrices: the example has one of exp(-921).

    >>> import numpy as np
    >>> sign, log = log_determinant(np.diag(np.full(400, 0.1)))
    >>> float(sign), round(float(log), 3), float(np.linalg.det(np.diag(np.full(400, 0.1))))
    (1.0, -921.034, 0.0)
    """
    A = square(A)
    xp = array_namespace(A)
    with silent():
        sign, log = xp.linalg.slogdet(A)
        singular = sign == 0
        if bool(xp.any(singular)):  # the identity in their place has a derivative, which is not taken
            eye = xp.eye(A.shape[-1], dtype=A.dtype, device=device(A))
            regular = xp.linalg.slogdet(xp.where(singular[..., None, None], eye, A))
            zeros = xp.zeros_like(log)
            sign, log = xp.where(singular, zeros, regular[0]), xp.where(singular, zeros, regular[1])
        in_range(log, "A")
    return sign, xp.where(singular, xp.full_like(log, -math.inf), log)


def _precise(A: AnyArray, name: str) -> AnyArray:
    if str(A.dtype).removeprefix("torch.") in {"float16", "bfloat16"}:
        raise TypeError(f"{name}: expected single or double precision, got {describe(A)}")
    return A
