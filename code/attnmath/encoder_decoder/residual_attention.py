"""Attention matrices of low rank, with a sparse residual and without one.

A matrix of full rank is stored more cheaply as a sum L + S of a matrix of low rank and a matrix with few entries
(Scatterbrain, Chen et al. 2021; robust PCA before it). Linformer (Wang et al. 2020) is the low-rank part alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Real
from numpy.typing import NDArray

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import floats, in_range, non_negative_integer, positive_integer, same_batches, silent, silently
from attnmath.operator.attention import softmax

Floats = NDArray[Any]


class LowRankPlusSparse(NamedTuple):
    """Two matrices whose sum approximates a third one."""

    low_rank: Float[Numpy, "*batch n m"]
    sparse: Float[Numpy, "*batch n m"]


def largest_entries(A: Real[ArrayLike, "... n m"], kept: int) -> Float[Numpy, "... n m"]:
    """A with all but its `kept` largest entries (by modulus) set to 0: the closest matrix with so few entries.

    kept : from 0 to n m. Of equal entries those in the earlier row, then in the earlier column, are kept first.

    >>> largest_entries([[0.75, 0.25], [0.5, 0.5]], 2)
    array([[0.75, 0.  ],
           [0.5 , 0.  ]])
    """
    matrices = floats(A, "A", at_least=2)
    return _largest(matrices, _count(kept, matrices))


def low_rank_plus_sparse(A: Real[ArrayLike, "... n m"], r: int, kept: int, *, rounds: int = 1) -> LowRankPlusSparse:
    """A matrix of rank r and one with `kept` entries, whose sum approximates A in the Frobenius norm.

    r : at least 0.  kept : as in `largest_entries`.
    rounds : at most 1000. One takes the best matrix of rank r, and of what is left the largest entries. Each further
        round takes the best matrix of rank r of A less the entries, and then the entries again, which never raises
        the error.

    >>> parts = low_rank_plus_sparse([[2.0, 1.0], [1.0, 1.0]], 0, 1)
    >>> parts.low_rank + parts.sparse
    array([[2., 0.],
           [0., 0.]])
    """
    matrices = floats(A, "A", at_least=2)
    kept, rounds = _count(kept, matrices), positive_integer(rounds, "rounds", at_most=1000)
    if non_negative_integer(r, "r") > min(matrices.shape[-2:]):
        raise ValueError(f"r: expected at most {min(matrices.shape[-2:])}, got {r}")
    low, sparse = np.zeros_like(matrices), np.zeros_like(matrices)
    for _ in range(rounds):
        with silent():
            U, sigma, Vt = np.linalg.svd(in_range(matrices - sparse, "A"), full_matrices=False)
            low = in_range((U[..., :r] * sigma[..., None, :r]) @ Vt[..., :r, :], "A")
            sparse = _largest(in_range(matrices - low, "A"), kept)
    return LowRankPlusSparse(low, sparse)


@silently
def linformer_weights(
    Q: Real[ArrayLike, "... n d_k"], K: Real[ArrayLike, "... m d_k"], E: Real[ArrayLike, "... r m"],
    F: Real[ArrayLike, "... r m"],
) -> Float[Numpy, "... n m"]:  # fmt: skip
    """The matrix softmax(Q (E K)^T / sqrt(d_k)) F by which Linformer multiplies the values.

    E, F : the projections of keys and values along the sequence, which the model learns. The rank of the result is at
    most r. Its rows sum to 1 if those of F do.

    >>> linformer_weights([[1.0], [0.0]], [[2.0], [4.0]], [[0.5, 0.5]], [[0.5, 0.5]])
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    queries, keys, of_keys, of_values = (
        floats(value, name, at_least=2) for name, value in (("Q", Q), ("K", K), ("E", E), ("F", F))
    )
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"Q, K: expected the same last axis d_k, got shapes {queries.shape} and {keys.shape}")
    if of_keys.shape[-2:] != of_values.shape[-2:] or of_keys.shape[-1] != keys.shape[-2]:
        raise ValueError(
            f"E, F: expected the shape (r, {keys.shape[-2]}) for both, got {of_keys.shape} and {of_values.shape}"
        )
    same_batches(Q=queries, K=keys, E=of_keys, F=of_values)
    with silent():
        projected = in_range(of_keys @ keys, "E, K")
        S = in_range((queries / np.sqrt(queries.shape[-1])) @ projected.swapaxes(-1, -2), "Q, E, K")
        return in_range(softmax(S) @ of_values, "F")


def _largest(matrices: Floats, kept: int) -> Floats:
    flat = np.abs(matrices).reshape(*matrices.shape[:-2], -1)
    if kept == 0:
        return np.zeros_like(matrices)
    least = np.partition(flat, flat.shape[-1] - kept, axis=-1)[..., flat.shape[-1] - kept, None]
    above, level = flat > least, flat == least
    # Of the entries as large as the last one that is kept, the first ones in the order of rows and columns.
    left = kept - above.sum(axis=-1, keepdims=True)
    chosen = above | (level & (np.cumsum(level, axis=-1) <= left))
    return np.where(chosen.reshape(matrices.shape), matrices, 0.0)


def _count(kept: int, matrices: Floats) -> int:
    most = matrices.shape[-2] * matrices.shape[-1]
    if non_negative_integer(kept, "kept") > most:
        raise ValueError(f"kept: expected at most {most}, got {kept}")
    return int(kept)
