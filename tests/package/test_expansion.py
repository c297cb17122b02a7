"""Softmax attention expanded about one query: what is exact, what is second order, and what it must not see."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import both_backends, make, torch_or_skip
from hypothesis import given
from hypothesis import strategies as st

from attnmath.linear_cost.expansion import expanded_attention
from attnmath.operator.attention import attention, softmax


def inputs(n: int = 7, m: int = 9, seed: int = 0, size: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return size * rng.normal(size=(n, 4)) + 1, size * rng.normal(size=(m, 4)) + 2, rng.normal(size=(m, 3))


def by_definition(Q, K, V, c, order: int, causal: bool = False) -> np.ndarray:
    """Row by row: p, the mean key under p, and the Taylor polynomial of what is left of the score."""
    rows = []
    for i, q in enumerate(Q):
        keys, values = (K[: i + 1], V[: i + 1]) if causal else (K, V)
        p = softmax(keys @ c / 2)
        t = (keys - p @ keys) @ (q - c) / 2
        weights = p * sum(t**k / math.factorial(k) for k in range(order + 1))
        rows.append(weights @ values / weights.sum())
    return np.array(rows)


@both_backends
@given(order=st.integers(0, 5), seed=st.integers(0, 20))
def test_weights_are_the_polynomial_times_those_of_the_centre(backend: str, order: int, seed: int) -> None:
    Q, K, V = inputs(seed=seed, size=0.5)
    found = expanded_attention(*(make(backend, a) for a in (Q, K, V)), order=order)
    np.testing.assert_allclose(np.asarray(found), by_definition(Q, K, V, Q.mean(axis=0), order), rtol=1e-9, atol=1e-9)


@both_backends
@given(n=st.integers(1, 9), seed=st.integers(0, 20))
def test_the_causal_form_takes_the_keys_up_to_each_query(backend: str, n: int, seed: int) -> None:
    Q, K, V = inputs(n, n, seed)
    c = np.array([1.0, -1.0, 0.5, 0.0])
    found = expanded_attention(*(make(backend, a) for a in (Q, K, V)), centre=make(backend, c), causal=True)
    np.testing.assert_allclose(np.asarray(found), by_definition(Q, K, V, c, 1, causal=True), rtol=1e-9, atol=1e-9)


def test_the_future_changes_no_bit_of_the_past() -> None:
    Q, K, V = (a.astype(np.float32) for a in inputs(400, 400))
    c = np.zeros(4, dtype=np.float32)
    before = expanded_attention(Q, K, V, centre=c, causal=True)
    for a in (Q, K, V):
        a[300:] = 30 * a[300:] + 1
    after = expanded_attention(Q, K, V, centre=c, causal=True)
    assert np.array_equal(before[:300], after[:300]) and not np.array_equal(before[300:], after[300:])


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_the_centre_has_its_exact_row_and_the_error_has_the_next_order(order: int) -> None:
    Q, K, V = inputs()
    c = Q[0]
    at_centre = expanded_attention(Q[:1], K, V, centre=c, order=order)
    np.testing.assert_allclose(at_centre, attention(Q[:1], K, V), rtol=1e-12)
    errors = []
    for size in (0.02, 0.01):
        near = c + size * (Q - c)
        errors.append(np.abs(expanded_attention(near, K, V, centre=c, order=order) - attention(near, K, V)).max())
    # Halving the distance divides the error by 2^(order + 1), to first order in the distance.
    assert 0.9 < errors[0] / errors[1] / 2 ** (order + 1) < 1.1


def test_a_vector_on_all_keys_changes_nothing_and_large_scores_are_in_range() -> None:
    Q, K, V = inputs()
    moved = expanded_attention(Q, K + np.array([3.0, 1.0, -2.0, 5.0]), V)
    np.testing.assert_allclose(moved, expanded_attention(Q, K, V), rtol=1e-10, atol=1e-12)
    far = expanded_attention(Q + 1000.0, K + 1000.0, V)  # scores of 2e6, which no exponential holds
    np.testing.assert_allclose(far, by_definition(Q + 1000.0, K + 1000.0, V, Q.mean(axis=0) + 1000.0, 1), rtol=1e-6)


def test_batches_broadcast_and_single_precision_stays() -> None:
    rng = np.random.default_rng(1)
    Q, K, V = rng.normal(size=(2, 1, 5, 4)), rng.normal(size=(3, 6, 4)), rng.normal(size=(6, 2))
    found = expanded_attention(Q, K, V, order=2)
    assert found.shape == (2, 3, 5, 2)
    np.testing.assert_allclose(found[1, 2], expanded_attention(Q[1, 0], K[2], V, order=2), rtol=1e-12)
    single = (a.astype(np.float32) for a in (Q, K, V))
    assert expanded_attention(*single).dtype == np.float32


def test_gradients_are_those_of_differences() -> None:
    torch = torch_or_skip()
    arrays = [make("torch", a).requires_grad_() for a in inputs(5, 5)]
    centre = make("torch", np.ones(4))
    torch.autograd.gradcheck(lambda *a: expanded_attention(*a), arrays)
    torch.autograd.gradcheck(lambda *a: expanded_attention(*a, centre=centre, causal=True), arrays)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"causal": True, "centre": None}, r"^centre: expected a query to expand about"),
        ({"causal": True, "order": 2}, r"^causal: expected the order 1 and as many queries as keys, got the order 2"),
        ({"centre": np.ones(3)}, r"^centre: expected 4 entries, as Q has columns, got"),
        ({"order": -1}, r"^order: expected"),
        ({"scale": 0.0}, r"^scale: expected"),
        ({"V": np.ones((4, 2))}, r"^V: expected 7 rows, one for each key, got"),
        ({"K": np.ones((7, 3))}, r"^Q, K: expected the same last axis d_k, got"),
        ({"K": np.ones((7, 4), dtype=np.float32)}, r"Q|K"),
        ({"causal": True, "K": 1e3 * np.arange(28.0).reshape(7, 4), "centre": np.ones(4)}, r"Q, K, V, scale, centre"),
    ],
)
def test_bad_input_is_named(changed, message: str) -> None:
    Q, K, V = inputs(7, 7)
    arguments = {"Q": Q, "K": K, "V": V, "centre": np.zeros(4)} | changed
    with pytest.raises((ValueError, TypeError), match=message):
        expanded_attention(**arguments)


def test_a_vector_on_all_keys_costs_the_causal_form_no_digits() -> None:
    Q, K, V = inputs(50, 50)
    K = np.round(K * 2.0**20) / 2.0**20  # so that both sums are exact
    moved = K + 2.0**24
    centre = np.zeros(4)  # the scores of the centre are 0 with and without the vector
    found = expanded_attention(Q, moved, V, centre=centre, causal=True)
    np.testing.assert_allclose(found, expanded_attention(Q, K, V, centre=centre, causal=True), rtol=1e-12)
