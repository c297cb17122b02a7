"""Frozen heads: orthonormal slices, moments of their logits, and what inputs can make of them."""

from __future__ import annotations

import numpy as np
import pytest

from attnmath.fixed_attention.frozen_heads import frozen_projection, inputs_for, invariant, logit_moments, logits
from attnmath.linear_cost.random_features.projections import orthogonal


def heads(h: int, d_k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pairs = [[frozen_projection(h * d_k, d_k, rng=rng) for _ in range(h)] for _ in range(2)]
    return np.asarray(pairs[0]), np.asarray(pairs[1])


@pytest.mark.parametrize(("d", "k"), [(1, 1), (5, 1), (5, 5), (64, 8)])
def test_the_form_has_singular_values_0_and_1(d: int, k: int) -> None:
    rng = np.random.default_rng(0)
    W_Q, W_K = (frozen_projection(d, k, rng=rng) for _ in range(2))
    sigma = np.linalg.svd(W_Q @ W_K.T, compute_uv=False)
    assert sigma == pytest.approx([1.0] * k + [0.0] * (d - k), abs=1e-12)


def test_no_more_columns_than_rows() -> None:
    with pytest.raises(ValueError, match="d_k, d_model: expected"):
        frozen_projection(3, 4, rng=np.random.default_rng(0))


def test_logits_of_a_batch() -> None:
    rng = np.random.default_rng(2)
    X, W_Q, W_K = rng.standard_normal((2, 3, 5)), rng.standard_normal((5, 2)), rng.standard_normal((5, 2))
    expected = np.einsum("bid,dk,ek,bje->bij", X, W_Q, W_K, X) / np.sqrt(2)
    assert logits(X, W_Q, W_K) == pytest.approx(expected)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("d", "k"), [(2, 1), (5, 2), (4, 3), (3, 3)])
def test_moments_against_draws(d: int, k: int, shared: bool) -> None:
    rng, draws = np.random.default_rng([d, k]), 20_000
    x, y = rng.standard_normal((2, d))
    y = y + x
    blocks = orthogonal(2 * d * draws, d, rng=rng, norms="one").reshape(2, draws, d, d)[:, :, :k]
    keys = blocks[0] if shared else blocks[1]
    values = np.sum((blocks[0] @ x) * (keys @ y), axis=1)
    mean, variance = logit_moments(x, y, k, shared=shared)
    error = np.sqrt(float(variance) / draws) + 1e-12
    assert abs(values.mean() - float(mean)) < 4 * error
    spread = np.std((values - values.mean()) ** 2) / np.sqrt(draws)
    assert abs(values.var() - float(variance)) < 4 * spread + 1e-12


def test_a_shared_form_on_one_vector_has_the_moments_of_a_beta_law() -> None:
    d, k = 12, 5
    a, b = k / 2, (d - k) / 2
    mean, variance = logit_moments(np.eye(d)[0], np.eye(d)[0], k, shared=True)
    assert float(mean) == pytest.approx(a / (a + b))
    assert float(variance) == pytest.approx(a * b / ((a + b) ** 2 * (a + b + 1)))


def test_in_one_dimension_nothing_is_random_in_a_shared_form() -> None:
    assert logit_moments([2.0], [3.0], 1, shared=True) == (6.0, 0.0)


def test_every_pair_of_queries_and_keys_has_an_input() -> None:
    rng = np.random.default_rng(3)
    W_Q, W_K = (frozen_projection(8, 4, rng=rng) for _ in range(2))
    Q, K = rng.standard_normal((2, 20, 4))
    X = inputs_for(Q, K, W_Q, W_K)
    assert abs(X @ W_Q - Q).max() < 1e-10
    assert abs(X @ W_K - K).max() < 1e-10
    with pytest.raises(ValueError, match="W_Q, W_K: expected independent columns"):
        inputs_for(Q, K, W_Q, W_Q)


@pytest.mark.parametrize(("h", "d_k"), [(1, 3), (2, 1), (2, 3), (4, 2)])
def test_the_invariant_survives_a_linear_map_of_the_input(h: int, d_k: int) -> None:
    W_Q, W_K = heads(h, d_k, seed=4)
    R = np.random.default_rng(5).standard_normal((h * d_k, h * d_k))
    assert invariant(R @ W_Q, R @ W_K) == pytest.approx(invariant(W_Q, W_K), abs=1e-7)


def test_blocks_of_the_invariant() -> None:
    W_Q, W_K = heads(2, 2, seed=6)
    T = invariant(W_Q, W_K)
    stacked = np.linalg.solve(np.concatenate(list(W_Q), axis=1), np.concatenate(list(W_K), axis=1))
    assert T[0, 1] == pytest.approx(stacked[:2, 2:])
    G = np.random.default_rng(7).standard_normal((2, 2, 2))
    other = invariant(W_Q @ G, W_K @ np.linalg.inv(G).swapaxes(-1, -2))
    assert other[0, 1] == pytest.approx(np.linalg.inv(G[0]) @ T[0, 1] @ np.linalg.inv(G[1]).T)


def test_dependent_queries_have_no_invariant() -> None:
    W_Q, W_K = heads(2, 1, seed=8)
    with pytest.raises(ValueError, match="W_Q: expected independent columns"):
        invariant(np.stack([W_Q[0], W_Q[0]]), W_K)
    with pytest.raises(ValueError, match="heads . d_k = d_model"):
        invariant(W_Q[:1], W_K[:1])
