"""The five mechanisms that the report compares (section 4.4): what they train, compute and keep.

A layer has `heads` heads of width d_k, and four matrices: Q, K and V from d_model to heads x d_k, and O back.

standard : softmax attention; all four matrices are trained.
fixed : the weights of a head are a given pattern of positions, so it has no Q and no K;
    `learned` of the heads are standard ones (in the report's experiment one of eight).
linear : linear attention with the features elu + 1, as many as components.
performer : positive random features exp(Omega x - |x|^2 / 2) with a frozen Omega (FAVOR+).
frozen : softmax attention whose Q and K are random orthogonal matrices that are never trained (section 4.2.1 of the
    report); with frozen_values V is frozen as well (as its table in 4.4 says).

Sizes may be numbers, arrays or symbols of sympy, as in `attnmath.operator.cost`: numbers give numbers, symbols
give formulas.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np
from jaxtyping import Float, Real

from attnmath.arrays import ArrayLike, Numpy, Size, SizeLike
from attnmath.checks import flag, floats, in_range, non_negative_integer, one_of, silent, sizes_or_symbols
from attnmath.fixed_attention.fixed_patterns import PATTERNS
from attnmath.operator.cost import Tally, attention_operations, dot_operations, linear_attention_operations

MECHANISMS = ("standard", "fixed", "linear", "performer", "frozen")
#: The pattern that the reversed sentence has in place of one of the last kind.
_MIRRORED = {"next": "previous", "right": "left", "start": "end"}


def layer_parameters(
    mechanism: str,
    d_model: SizeLike[Size],
    heads: SizeLike[Size],
    d_k: SizeLike[Size],
    *,
    learned: int = 1,
    m: SizeLike[Size] | None = None,
    frozen_values: bool = False,
    bias: bool = False,
) -> dict[str, Size | int]:
    """Numbers that a layer trains in its matrices Q, K, V and O, and numbers that it stores and never trains.

    learned : heads of "fixed" that have queries and keys, from 0 to `heads`; without effect for the others.
    m : random features of a "performer", one matrix for all heads of the layer; without effect for the others.
    frozen_values : whether V of "frozen" is frozen as well.  bias : whether the four maps have biases.
    The patterns of "fixed" are formulas of positions, and are not counted.

    >>> layer_parameters("standard", 512, 8, 64)
    {'Q': 262144, 'K': 262144, 'V': 262144, 'O': 262144, 'frozen': 0}
    >>> layer_parameters("fixed", 512, 8, 64)["Q"]
    32768
    """
    mechanism = one_of(mechanism, MECHANISMS, "mechanism")
    d_model, heads, d_k, features = _sizes(mechanism, m, d_model=d_model, heads=heads, d_k=d_k)
    frozen_values, bias = flag(frozen_values, "frozen_values"), flag(bias, "bias")
    inputs = d_model + 1 if bias else d_model
    compared = heads if mechanism != "fixed" else _learned_heads(learned, heads)
    trained = {
        "Q": inputs * compared * d_k,
        "K": inputs * compared * d_k,
        "V": inputs * heads * d_k,
        "O": (heads * d_k + 1 if bias else heads * d_k) * d_model,
    }
    frozen = 0 * d_model
    if mechanism == "performer":
        frozen = features * d_k
    for name in ("Q", "K", "V") if frozen_values else ("Q", "K"):
        if mechanism == "frozen":
            frozen, trained[name] = frozen + trained[name], 0 * d_model
    return {**trained, "frozen": frozen}


def head_operations(
    mechanism: str, n: SizeLike[Size], d_k: SizeLike[Size], *, m: SizeLike[Size] | None = None
) -> dict[str, Size | int]:
    """Operations of the stages of one head for n queries, keys and values of width d_k, which are given.

    "fixed" is the product of the pattern with the values, all of its n x n weights taken as numbers; a cheaper way is
    counted by `by_sums_operations`. The features of "linear" take two operations for each component. Those of a
    "performer" take a product with the m x d_k matrix Omega, half the squared norm, m subtractions and m exponentials
    for each query and key, after d_k multiplications by d_k^(-1/4).

    >>> sum(head_operations("fixed", 4, 2).values()), sum(head_operations("standard", 4, 2).values())
    (56, 192)
    """
    mechanism = one_of(mechanism, MECHANISMS, "mechanism")
    n, d_k, features = _sizes(mechanism, m, n=n, d_k=d_k)
    if mechanism == "fixed":
        return {"values": n * d_k * dot_operations(n)}
    if mechanism == "linear":
        return {"features": 4 * n * d_k, **linear_attention_operations(n, d_k, d_k)}
    if mechanism == "performer":
        of_a_token = features * dot_operations(d_k) + 2 * features + dot_operations(d_k) + 1 + d_k
        return {"features": 2 * n * of_a_token, **linear_attention_operations(n, features, d_k)}
    return attention_operations(n, d_k, d_k)


def kept_numbers(
    mechanism: str, n: SizeLike[Size], d_k: SizeLike[Size], *, m: SizeLike[Size] | None = None
) -> Size | int:
    """Numbers that depend on the input and that one head keeps from the forward pass for its gradients.

    Queries, keys, values and weights for "standard" and "frozen"; none for "fixed", whose output is linear in the
    values; and queries, keys, values, their features, the sums S and z, numerators and denominators for the others.
    The inputs of the four maps of the layer are not counted.

    >>> kept_numbers("standard", 100, 8), kept_numbers("linear", 100, 8), kept_numbers("fixed", 100, 8)
    (12400, 4972, 0)
    """
    mechanism = one_of(mechanism, MECHANISMS, "mechanism")
    n, d_k, features = _sizes(mechanism, m, n=n, d_k=d_k)
    if mechanism == "fixed":
        return 0 * n
    if mechanism in {"standard", "frozen"}:
        return 3 * n * d_k + n**2
    r = d_k if mechanism == "linear" else features
    return 3 * n * d_k + 2 * n * r + (n + r) * (d_k + 1)


def pattern_by_sums(V: Real[ArrayLike, "n d_v"], pattern: str) -> Float[Numpy, "n d_v"]:
    """Fixed attention in time O(n d_v): `fixed_pattern(pattern, n) @ V` by shifts and running sums.

    pattern : one of `fixed_patterns.PATTERNS`, with its standard edge rows and ends.

    >>> pattern_by_sums([[1.0], [2.0], [4.0]], "previous")
    array([[1.],
           [1.],
           [2.]])
    """
    V, pattern = floats(V, "V", ndim=2), one_of(pattern, PATTERNS, "pattern")
    if pattern in _MIRRORED:
        return pattern_by_sums(V[::-1], _MIRRORED[pattern])[::-1]
    n = len(V)
    if pattern == "current":
        return V.copy()
    if pattern == "previous":
        return V[np.maximum(np.arange(n) - 1, 0)]
    many = np.arange(1.0, n + 1)
    with silent():
        sums = np.cumsum(many[:, None] ** 3 * V, axis=0) / (many * (many + 1) / 2)[:, None] ** 2
    in_range(sums, "V")
    return sums[np.full(n, n - 1) if pattern == "end" else np.maximum(np.arange(n) - 2, 0)]


def by_sums_operations(pattern: str, n: SizeLike[Size], d_v: SizeLike[Size]) -> Size | int:
    """Operations of `pattern_by_sums`, with the cubes (j + 1)^3 and their sums given; to copy a number takes none.

    A context ends two positions away, so at most n - 2 positions are summed: for each column n - 2 products, n - 3
    additions and n - 2 quotients. An end takes n products, n - 1 additions and one quotient, for all tokens together.
    Symbols give the formula for n > 2.

    >>> [by_sums_operations(name, 10, 1) for name in ("previous", "left", "end")]
    [0, 23, 20]
    """
    pattern = one_of(pattern, PATTERNS, "pattern")
    n, d_v = sizes_or_symbols(n=n, d_v=d_v)
    if pattern in {"start", "end"}:
        return 2 * n * d_v
    if pattern in {"current", "previous", "next"} or (isinstance(n, int) and n <= 2):
        return 0 * n * d_v
    return (3 * n - 7) * d_v


def counted_pattern(V: Real[ArrayLike, "n d_v"], pattern: str) -> tuple[list[list[float]], int]:
    """Fixed attention by running sums, one scalar operation at a time: the output, in rows, and the operations.

    >>> counted_pattern([[1.0], [2.0], [4.0]], "end")
    ([[3.4722222222222223], [3.4722222222222223], [3.4722222222222223]], 6)
    """
    V, pattern = floats(V, "V", ndim=2), one_of(pattern, PATTERNS, "pattern")
    tally, n = Tally(), len(V)
    mirrored = pattern in _MIRRORED
    columns = []
    for column in (V[::-1] if mirrored else V).T.tolist():
        out = _column(tally, column, _MIRRORED.get(pattern, pattern), n)
        in_range(np.asarray(out), "V")
        columns.append(out[::-1] if mirrored else out)
    return [list(row) for row in zip(*columns, strict=True)], sum(tally.counts.values())


def counted_positive_features(
    X: Real[ArrayLike, "n d_k"], Omega: Real[ArrayLike, "m d_k"]
) -> tuple[list[list[float]], int]:
    """Positive features of the rows of d_k^(-1/4) X, one scalar operation at a time: rows of m, and the operations.

    >>> counted_positive_features([[0.0]], [[1.0], [2.0]])
    ([[1.0, 1.0]], 9)
    """
    X, Omega = floats(X, "X", ndim=2), floats(Omega, "Omega", ndim=2)
    if X.shape[1] != Omega.shape[1]:
        raise ValueError(f"X, Omega: expected rows of one width d_k, got {X.shape[1]} and {Omega.shape[1]}")
    tally, scale = Tally(), X.shape[1] ** -0.25
    rows = []
    with silent():
        for given in X.tolist():
            x = [tally(operator.mul, scale, a) for a in given]
            half = tally(operator.mul, 0.5, _dot(tally, x, x))
            exponents = [tally(operator.sub, _dot(tally, w, x), half) for w in Omega.tolist()]
            rows.append([float(tally(np.exp, a)) for a in exponents])
    in_range(np.asarray(rows), "X, Omega")
    return rows, sum(tally.counts.values())


def _column(tally: Tally, v: list[float], pattern: str, n: int) -> list[float]:
    if pattern == "current":
        return v
    if pattern == "previous":
        return [v[max(i - 1, 0)] for i in range(n)]
    last = n if pattern == "end" else n - 2  # positions that are summed
    if last < 1:
        return [v[0]] * n
    weighted = [tally(operator.mul, float(j + 1) ** 3, v[j]) for j in range(last)]
    sums = [weighted[0]]
    for value in weighted[1:]:
        sums.append(tally(operator.add, sums[-1], value))
    totals = [(many * (many + 1) / 2) ** 2 for many in range(1, last + 1)]
    if pattern == "end":
        return [tally(operator.truediv, sums[-1], totals[-1])] * n
    means = [tally(operator.truediv, s, total) for s, total in zip(sums, totals, strict=True)]
    return [v[0], v[0], *means]


def _dot(tally: Tally, a: list[float], b: list[float]) -> float:
    products = [tally(operator.mul, x, y) for x, y in zip(a, b, strict=True)]
    return reduce(lambda x, y: tally(operator.add, x, y), products)


def _learned_heads(learned: Any, heads: Any) -> int:
    learned = non_negative_integer(learned, "learned")
    if isinstance(heads, int) and learned > heads:
        raise ValueError(f"learned: expected at most heads = {heads}, got {learned}")
    return learned


def _sizes(mechanism: str, m: Any, **sizes: Any) -> list[Any]:
    """Return the sizes and, last, the number of random features; None for what is no performer."""
    if mechanism != "performer":
        return [*sizes_or_symbols(**sizes), None]
    if m is None:
        raise ValueError("m: expected the number of random features of a performer, got None")
    return sizes_or_symbols(**sizes, m=m)
