"""Random projections for random features: rows w_1, ..., w_m in d dimensions, independent or coupled.

A random feature estimates E f(w) for a standard normal vector w by the mean of f over the rows. The mean is right if
every row by itself is standard normal; how the rows hang together decides the variance alone.
Rows are coupled in blocks of at most d, and blocks are independent, so that any number m of rows can be had.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Real

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import describe, fits_memory, floats, generator, in_range, one_of, positive_integer, silent

#: Norms of the rows: those of standard normal vectors (chi), or fixed ones.
NORMS = ("chi", "sqrt_d", "one")


def gaussian(m: int, d: int, *, rng: np.random.Generator) -> Float[Numpy, "{m} {d}"]:
    """Independent standard normal rows.

    >>> gaussian(5, 3, rng=np.random.default_rng(0)).shape
    (5, 3)
    """
    m, d = _sizes(m, d)
    return generator(rng).standard_normal((m, d))


def haar(d: int, *, rng: np.random.Generator) -> Float[Numpy, "{d} {d}"]:
    """Orthogonal matrix from the Haar measure, the law that no rotation changes.

    The rows are those of a Gaussian matrix after Gram-Schmidt. A program for QR is free in the signs of the rows;
    without the signs of R's diagonal its result is orthogonal, but not from the Haar measure.

    >>> Q = haar(3, rng=np.random.default_rng(0))
    >>> bool(np.allclose(Q @ Q.T, np.eye(3)))
    True
    """
    d = positive_integer(d, "d")
    fits_memory("d", d, d)
    return _gram_schmidt(generator(rng).standard_normal((d, d)))


def orthogonal(m: int, d: int, *, rng: np.random.Generator, norms: str = "chi") -> Float[Numpy, "{m} {d}"]:
    """Orthogonal rows with uniform directions, in independent blocks of d rows (the last one of what is left).

    norms : "chi" (independent norms of standard normal vectors, so that each row is standard normal),
        "sqrt_d" or "one" (fixed norms, which bias a random feature).

    >>> W = orthogonal(2, 3, rng=np.random.default_rng(0))
    >>> abs(float(W[0] @ W[1])) < 1e-12
    True
    >>> np.linalg.norm(orthogonal(4, 3, rng=np.random.default_rng(0), norms="one"), axis=1).round(12)
    array([1., 1., 1., 1.])
    """
    m, d = _sizes(m, d)
    rng, norms = generator(rng), one_of(norms, NORMS, "norms")
    full, rest = divmod(m, d)
    # The last block needs only the rows that are left.
    parts = [rng.standard_normal((full, d, d)), rng.standard_normal((1, rest, d))]
    blocks = [_gram_schmidt(part).reshape(-1, d) for part in parts if part.size]
    return np.concatenate(blocks) * _norms(m, d, norms, rng)


def hadamard(m: int, d: int, *, rng: np.random.Generator, rounds: int = 3) -> Float[Numpy, "{m} {d}"]:
    """Rows of sqrt(d) H D_1 H D_2 ... with random signs D and the orthonormal Walsh-Hadamard matrix H, in blocks.

    d : a power of two (fill vectors up with zeros otherwise).
    rounds : how many factors H D. With one, a row is a vector of d independent signs.

    Within a block rows are orthogonal, of norm sqrt(d). A product with all d rows of a block takes
    rounds * d log2(d) additions by `walsh_hadamard`. The rows are not normal: a random feature is biased.

    >>> hadamard(2, 4, rng=np.random.default_rng(0), rounds=1)
    array([[ 1.,  1.,  1., -1.],
           [ 1., -1.,  1.,  1.]])
    """
    m, d = _sizes(m, d)
    rng, rounds = generator(rng), positive_integer(rounds, "rounds", at_most=64)
    if d & (d - 1):
        raise ValueError(f"d: expected a power of two (fill vectors up with zeros), got {d}")
    rows = np.arange(m)
    W = np.zeros((m, d))
    W[rows, rows % d] = 1.0
    for _ in range(rounds):
        signs = rng.choice(np.asarray([-1.0, 1.0]), (-(-m // d), d))
        W = walsh_hadamard(W)
        for block, sign in enumerate(signs):
            W[block * d : (block + 1) * d] *= sign
    return math.sqrt(d) * W


def walsh_hadamard(X: Real[ArrayLike, "*rows d"]) -> Float[Numpy, "*rows d"]:
    """X H with the orthonormal Walsh-Hadamard matrix H, by d log2(d) additions a row in place of d^2 products.

    X : rows whose length d is a power of two.

    >>> walsh_hadamard(np.asarray([[1.0, 0.0, 0.0, 0.0]]))
    array([[0.5, 0.5, 0.5, 0.5]])
    """
    X = floats(X, "X", at_least=1)
    d = X.shape[-1]
    if d & (d - 1):
        raise ValueError(f"X: expected rows whose length is a power of two, got {describe(X)}")
    half = 1
    with silent():
        while half < d:
            pairs = X.reshape(*X.shape[:-1], d // (2 * half), 2, half)
            first, second = pairs[..., 0, :], pairs[..., 1, :]
            # Divided in every round, so that no sum is larger than the vector.
            X = np.stack([first + second, first - second], axis=-2).reshape(X.shape) / math.sqrt(2)
            half *= 2
        return in_range(X, "X")


def simplex(m: int, d: int, *, rng: np.random.Generator) -> Float[Numpy, "{m} {d}"]:
    """Rows towards the corners of a randomly turned regular simplex (Reid et al. 2023), with chi norms, in blocks of d.

    Two directions of a block have the cosine -1/(d - 1), the smallest that d directions can have in common. For d = 1
    a block is one row, and the rows are independent.

    >>> W = simplex(3, 3, rng=np.random.default_rng(0))
    >>> W /= np.linalg.norm(W, axis=1, keepdims=True)
    >>> (W @ W.T).round(12)
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """
    m, d = _sizes(m, d)
    rng = generator(rng)
    full, rest = divmod(m, d)
    if d == 1:
        return _gram_schmidt(rng.standard_normal((m, d, d))).reshape(-1, d) * _norms(m, d, "chi", rng)
    blocks = []
    if full:
        turned = _gram_schmidt(rng.standard_normal((full, d, d)))
        blocks.append(turned - turned.mean(axis=-2, keepdims=True))
    if rest:
        # The sum of the d - rest rows that are not drawn is orthogonal to those that are: one row stands for them.
        rows = _gram_schmidt(rng.standard_normal((1, rest + 1, d)))
        centre = (rows[:, :rest].sum(axis=-2, keepdims=True) + math.sqrt(d - rest) * rows[:, rest:]) / d
        blocks.append(rows[:, :rest] - centre)
    # The basis less its centre, brought to length 1.
    corners = np.concatenate([math.sqrt(d / (d - 1)) * block.reshape(-1, d) for block in blocks])
    return corners * _norms(m, d, "chi", rng)


def _gram_schmidt(G: Float[Numpy, "*blocks rows d"]) -> Float[Numpy, "*blocks rows d"]:
    """Gram-Schmidt on the rows of G: QR of the transpose, with the diagonal of R made positive."""
    Q, R = np.linalg.qr(np.swapaxes(G, -1, -2))
    signs = np.where(np.diagonal(R, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return np.swapaxes(Q * signs[..., None, :], -1, -2)


def _norms(m: int, d: int, norms: str, rng: np.random.Generator) -> Float[Numpy, "{m} 1"]:
    if norms == "chi":
        return np.sqrt(rng.chisquare(d, (m, 1)))
    return np.full((m, 1), math.sqrt(d) if norms == "sqrt_d" else 1.0)


def _sizes(m: int, d: int) -> tuple[int, int]:
    m, d = positive_integer(m, "m"), positive_integer(d, "d")
    # What is drawn: the rows, and at most one whole block.
    fits_memory("m, d", m + d, d)
    return m, d
