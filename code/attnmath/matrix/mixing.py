"""Powers of an attention matrix (section 5.5.1): their limit, and how fast they forget where they began.

A is row-stochastic, shape (..., n, n): every row is a distribution over the keys. Functions
take numpy arrays and torch tensors alike and answer in kind.
"""

from __future__ import annotations

import math

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Float, Integer, Real

from attnmath.arrays import AnyArray, Array, ArrayLike
from attnmath.checks import (
    as_numpy,
    concat,
    describe,
    fits_memory,
    integers,
    matmul,
    positive_integer,
    root,
    silently,
    stack,
)
from attnmath.matrix.spectrum import row_stochastic


@silently
def stationary_distribution(A: Real[ArrayLike[Array], "n n"]) -> Float[Array, "n"]:
    """The distribution pi with pi^T A = pi^T, for one row-stochastic matrix.

    It is unique when the positions have a single closed class, always so for a positive matrix;
    positions outside of that class get 0. Two closed classes: `ValueError`.

    Within the class the elimination of Grassmann, Taksar and Heyman (1985) uses no subtraction, so
    small entries of pi are as accurate as large ones.

    >>> stationary_distribution([[0.5, 0.5], [0.25, 0.75]])
    array([0.33333333, 0.66666667])
    >>> stationary_distribution([[1.0, 0.0], [0.5, 0.5]])
    array([1., 0.])
    """
    A = _one_matrix(row_stochastic(A))
    xp = array_namespace(A)
    if bool(xp.all(A > 0)):
        return _eliminate(A)
    # Positions outside of the class come last, and are eliminated first: their 0 has its derivative, too.
    order = xp.argsort(xp.astype(~_closed_class(A), xp.int64), stable=True)
    pi = _eliminate(xp.take(xp.take(A, order, axis=0), order, axis=1))
    return xp.take(pi, xp.argsort(order), axis=0)


@silently
def dobrushin(A: Real[ArrayLike[Array], "... n n"]) -> Float[Array, "..."]:
    """Dobrushin's coefficient tau(A): half the largest l1 distance of two rows, in [0, 1].

    It is the smallest tau with max(A x) - min(A x) <= tau (max x - min x) for every x. Hence
    tau(A B) <= tau(A) tau(B), and every eigenvalue but one simple 1 has modulus at most tau.
    Where entries of two rows are equal it has a kink; its derivative is a subgradient there.

    >>> float(dobrushin([[0.75, 0.25], [0.25, 0.75]]))
    0.5
    """
    A = row_stochastic(A)
    xp = array_namespace(A)
    if A.ndim > 2:  # one matrix at a time stays in the cache
        return stack([dobrushin(A[i, ...]) for i in range(A.shape[0])])
    rows = [xp.max(xp.sum(xp.abs(A[i:, :] - A[i, None, :]), axis=-1)) for i in range(A.shape[0])]
    return xp.max(stack(rows)) / 2


@silently
def doeblin(A: Real[ArrayLike[Array], "... n n"]) -> Float[Array, "..."]:
    """Doeblin's bound 1 - sum_j min_i A_ij on Dobrushin's coefficient.

    It is below 1 as soon as one column is positive throughout, and at most 1 - n min A.
    Where a column has its minimum twice there is a kink; the derivative is a subgradient there.

    >>> float(doeblin([[0.75, 0.25], [0.25, 0.75]]))
    0.5
    """
    A = row_stochastic(A)
    xp = array_namespace(A)
    common = xp.sum(xp.min(A, axis=-2), axis=-1)
    return xp.where(common < 1, 1 - common, xp.zeros_like(common))


@silently
def distances_to_limit(A: Real[ArrayLike[Array], "n n"], steps: int) -> Float[Array, "{steps}"]:
    """Largest entry of |A^k - 1 pi^T| for k = 1 ... steps, for one matrix.

    The limit is subtracted first: (A - 1 pi^T)^k = A^k - 1 pi^T, so nothing cancels.
    Where two entries are as large, or the largest is 0, the derivative is a subgradient.

    >>> distances_to_limit([[0.75, 0.25], [0.25, 0.75]], 2)
    array([0.25 , 0.125])
    """
    rest, steps = _without_limit(A), positive_integer(steps, "steps")
    fits_memory("A, steps", steps, *rest.shape)
    xp = array_namespace(rest)
    power, found = rest, []
    for _ in range(steps):
        found.append(xp.max(xp.abs(power)))
        power = matmul(power, rest)
    return stack(found)


@silently
def log_distances(A: Real[ArrayLike[Array], "n n"], doublings: int) -> Float[Array, "{doublings}+1"]:
    """log of the Frobenius norm of A^k - 1 pi^T at k = 1, 2, 4, ..., 2^doublings, for one matrix.

    Powers are renormalised after each squaring, so the distance may fall far below the smallest
    float; -inf where the distance is 0, or lost in rounding: where a power or a square
    is not larger than n ulp of what it was computed from (its derivative is 0 there).

    >>> log_distances([[0.75, 0.25], [0.25, 0.75]], 10)[-1] / 1024 / np.log(0.5)
    np.float64(1.0)
    """
    power, doublings = _without_limit(A), positive_integer(doublings, "doublings", at_most=1000)
    xp = array_namespace(power)
    floor = power.shape[0] * float(xp.finfo(power.dtype).eps)
    log, found = xp.zeros((), dtype=power.dtype, device=device(power)), []
    for _ in range(doublings + 1):
        size = root(xp.sum(power**2))
        positive = size > floor
        with np.errstate(divide="ignore"):
            log = log + xp.log(xp.where(positive, size, xp.zeros_like(size)))
        found.append(log)
        power = power / xp.where(positive, size, xp.ones_like(size))
        power, log = matmul(power, power), 2 * log
    return stack(found)


def cycle_lengths(image: Integer[ArrayLike, "n"]) -> tuple[int, ...]:
    """Lengths of the cycles of the map i -> image[i], in increasing order.

    The matrix whose row i is one-hot at image[i] has the characteristic polynomial
    x^(n - m) prod (x^length - 1), m being the number of positions on cycles. It is a
    permutation when m = n.

    >>> cycle_lengths([0, 0, 3, 2])
    (1, 2)
    """
    f = as_numpy(integers(image, "image"))
    if f.min() < 0 or f.max() >= f.size:
        raise ValueError(f"image: expected positions from 0 to {f.size - 1}, got {f.min()} to {f.max()}")
    ends = np.arange(f.size)
    steps = f
    for _ in range(f.size.bit_length()):  # after 1 + 2 + 4 + ... >= n steps every position has run into its cycle
        ends, steps = steps[ends], steps[steps]
    remaining, lengths = set(ends.tolist()), []
    while remaining:
        start = position = remaining.pop()
        length = 1
        while (position := int(f[position])) != start:
            remaining.discard(position)
            length += 1
        lengths.append(length)
    return tuple(sorted(lengths))


def _without_limit(A: AnyArray) -> AnyArray:
    A = _one_matrix(row_stochastic(A))
    return A - stationary_distribution(A)[None, :]


def _one_matrix(A: AnyArray) -> AnyArray:
    if A.ndim != 2:
        raise ValueError(f"A: expected one matrix, got {describe(A)}")
    return A


def _closed_class(A: AnyArray) -> AnyArray:
    """Mark the positions of the only closed class, shape (n,): once inside, no step with positive weight leaves it."""
    xp = array_namespace(A)
    n = A.shape[0]
    reach = (A > 0) | xp.astype(xp.eye(n, dtype=A.dtype, device=device(A)), xp.bool)
    for _ in range(max(1, math.ceil(math.log2(n)))):
        steps = xp.astype(reach, A.dtype)
        reach = matmul(steps, steps) > 0
    closed = xp.all(~reach | xp.matrix_transpose(reach), axis=-1)
    # Each closed class is what any one of its members reaches.
    first = int(xp.argmax(xp.astype(closed, xp.int64)))
    if not bool(xp.all(closed == reach[first, :])):
        raise ValueError(
            "A: expected a unique stationary distribution, got a reducible matrix: "
            "its positions fall into several classes that exchange nothing"
        )
    return closed


def _eliminate(P: AnyArray) -> AnyArray:
    """Stationary distribution of an irreducible matrix by subtraction-free elimination."""
    xp = array_namespace(P)
    inward = []
    for k in range(P.shape[0] - 1, 0, -1):
        leaving = xp.sum(P[k, :k])
        if not bool(leaving > 0):
            raise ValueError("A: expected a unique stationary distribution, got weights that underflow to 0")
        inward.append(P[:k, k] / leaving)
        P = P[:k, :k] + inward[-1][:, None] * P[k, None, :k]
    pi = xp.ones(1, dtype=P.dtype, device=device(P))
    for column in reversed(inward):
        pi = concat([pi, xp.sum(pi * column)[None]])
        pi = pi / xp.max(pi)
    return pi / xp.sum(pi)
