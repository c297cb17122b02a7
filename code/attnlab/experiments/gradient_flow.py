"""Experiments on section 5.1.8: how large the gradients of attention are, by length and by depth, at random weights.

The widths are square: d_model = d_k = d_v. Rows are Gaussian with entries of variance 1, weights have Xavier's
variance. The same seed gives the same draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attnlab.experiments.arguments import several, widths_of
from attnmath import estimate
from attnmath.arrays import Numpy
from attnmath.checks import about, fits_memory, flag, non_negative_integer, number, positive_integer
from attnmath.estimate import Estimate
from attnmath.operator.gradients import attention_gradients, stack_gradients, stage_gradients
from attnmath.operator.initialisation import draw_weights


def _of_length(lengths: Sequence[int], width: int, draws: int) -> list[int]:
    """Return the lengths, if rows, scores and weights of all draws fit into memory at each of them."""
    lengths = widths_of(lengths, "lengths")
    fits_memory("lengths, width, draws", draws, max(*lengths, width), max(*lengths, width))
    return lengths


def query_gradient(
    lengths: Sequence[int], *, width: int = 32, shared: bool = True, queries: float = 0.0, scaled: bool = True,
    draws: int = 100, seed: int = 518,
) -> Estimate:  # fmt: skip
    """Estimate E|dL/dq|^2 of one query at each number of keys, with a gradient of length 1 at the output.

    shared : keys and values are projections of the same rows; otherwise independent Gaussian matrices.
    queries : factor on the query's own weights; 0 makes attention uniform.  scaled : divide scores by sqrt(width).
    """
    width, draws, seed = positive_integer(width, "width"), several(draws, "draws"), non_negative_integer(seed, "seed")
    shared, scaled, queries = flag(shared, "shared"), flag(scaled, "scaled"), number(queries, "queries")
    lengths = _of_length(lengths, width, draws)

    def squares(n: int) -> Float[Numpy, "{draws}"]:
        rng = np.random.default_rng((seed, n, shared, scaled))
        X = rng.standard_normal((draws, n, width))
        W_Q, W_K, W_V = (draw_weights(width, width, draws, rng) for _ in range(3))
        K, V = (X @ W_K, X @ W_V) if shared else rng.standard_normal((2, draws, n, width))
        G = rng.standard_normal((draws, 1, width))
        G /= np.linalg.norm(G, axis=-1, keepdims=True)
        found = stage_gradients(queries * X[:, :1] @ W_Q, K, V, G, scale=None if scaled else 1.0).Q
        return np.sum(np.square(found), axis=(1, 2))

    with np.errstate(all="ignore"), about("queries"):
        return estimate.stack([estimate.mean(squares(n)) for n in lengths])


def weights_gradient(
    lengths: Sequence[int], *, width: int = 32, queries: float = 0.0, draws: int = 100, seed: int = 518
) -> Estimate:
    """Estimate E|dL/dW_Q|^2 at each length, for losses that are added over the positions.

    The rows of dL/dO are independent, with mean 0 and covariance I / width.
    queries : factor on W_Q; 0 makes attention uniform.
    """
    width, draws, seed = positive_integer(width, "width"), several(draws, "draws"), non_negative_integer(seed, "seed")
    queries = number(queries, "queries")
    lengths = _of_length(lengths, width, draws)

    def squares(n: int) -> Float[Numpy, "{draws}"]:
        rng = np.random.default_rng((seed, n))
        X = rng.standard_normal((draws, n, width))
        G = rng.standard_normal((draws, n, width)) / np.sqrt(width)
        W_Q, W_K, W_V = (draw_weights(width, width, draws, rng) for _ in range(3))
        found = attention_gradients(X, queries * W_Q, W_K, W_V, G).W_Q
        return np.sum(np.square(found), axis=(1, 2))

    with np.errstate(all="ignore"), about("queries"):
        return estimate.stack([estimate.mean(squares(n)) for n in lengths])


def layer_gradients(
    depth: int, *, n: int = 16, width: int = 32, residual: bool = False, scaled: bool = True, draws: int = 24,
    seed: int = 518,
) -> Float[Numpy, "{draws} {depth}"]:  # fmt: skip
    """Draw |dL/dW_Q| of every layer of a stack, from the first layer to the last, with |dL/dY| = 1 at its output Y.

    residual : each layer adds its input to its output.  scaled : divide scores by sqrt(width).
    """
    depth, n, width = positive_integer(depth, "depth"), positive_integer(n, "n"), positive_integer(width, "width")
    residual, scaled, draws = flag(residual, "residual"), flag(scaled, "scaled"), several(draws, "draws")
    fits_memory("depth, width, draws", draws, depth, 3, width, width)
    fits_memory("n, width, draws", draws, 2, n, max(n, width))
    drawn = []
    for draw in range(draws):
        rng = np.random.default_rng((non_negative_integer(seed, "seed"), draw))
        weights = [draw_weights(width, width, 3, rng) for _ in range(depth)]
        drawn.append((np.stack(weights), rng.standard_normal((2, n, width))))
    W, ends = (np.stack(arrays) for arrays in zip(*drawn, strict=True))
    layers = [(W[:, layer, 0], W[:, layer, 1], W[:, layer, 2]) for layer in range(depth)]
    X, G = ends[:, 0], ends[:, 1] / np.linalg.norm(ends[:, 1], axis=(1, 2), keepdims=True)
    stack = stack_gradients(X, layers, G, residual=residual, scale=None if scaled else 1.0)
    return np.stack([np.linalg.norm(layer.W_Q, axis=(1, 2)) for layer in stack], axis=1)
