"""Attention sinks: the weight on a key, the matrix without it, and what the chapter derives of the two."""

from __future__ import annotations

import numpy as np
import pytest
from backends import both_backends, make, stochastic
from hypothesis import given
from hypothesis import strategies as st

from attnmath.matrix import sinks
from attnmath.matrix.rank import numerical_rank, stable_rank
from attnmath.matrix.spectrum import singular_values
from attnmath.operator.attention import causal_mask, entropy, softmax

SMALL = np.asarray([[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5, 0.25, 0.25]])


def causal(n: int, seed: int) -> np.ndarray:
    scores = 2 * np.random.default_rng(seed).normal(size=(2, n, n))
    return softmax(np.where(causal_mask(n), scores, -np.inf))


def test_the_weight_is_the_mean_over_the_other_queries() -> None:
    assert sinks.sink_weight(SMALL) == 0.625 and sinks.sink_weight(SMALL, 1) == 0.125
    assert sinks.sink_weight(SMALL, causal=True) == 0.625 and sinks.sink_weight(SMALL, 1, causal=True) == 0.25
    assert sinks.sink_weight(np.eye(4), 2) == 0 and sinks.sink_weight(np.eye(4)[[1] * 4], 1) == 1
    np.testing.assert_allclose(sinks.sink_weight(np.full((5, 2, 4, 4), 0.25), 3), np.full((5, 2), 0.25))


@both_backends
@given(n=st.integers(2, 7), seed=st.integers(0, 30), data=st.data())
def test_without_a_key_is_the_softmax_of_the_other_scores(backend: str, n: int, seed: int, data) -> None:
    scores, key = np.random.default_rng(seed).normal(size=(2, n, n)), data.draw(st.integers(0, n - 1))
    rest = np.delete(np.delete(scores, key, axis=-1), key, axis=-2)
    found = np.asarray(sinks.without_key(make(backend, softmax(scores)), key))
    np.testing.assert_allclose(found, softmax(rest), atol=1e-14)
    weight = np.asarray(sinks.sink_weight(make(backend, softmax(scores)), key))
    np.testing.assert_allclose(weight, np.delete(softmax(scores)[..., key], key, axis=-1).mean(axis=-1), rtol=1e-14)


@given(n=st.integers(2, 8), seed=st.integers(0, 50))
def test_a_causal_matrix_is_its_first_column_and_the_rest(n: int, seed: int) -> None:
    A = causal(n, seed)
    B, w = sinks.without_key(A), A[..., 1:, 0]
    np.testing.assert_allclose(A[..., 1:, 1:], (1 - w)[..., None] * B, atol=1e-15)
    np.testing.assert_array_equal(numerical_rank(A).rank, 1 + numerical_rank(B).rank)
    binary = entropy(np.stack([w, 1 - w], axis=-1))
    np.testing.assert_allclose(entropy(A)[..., 1:], binary + (1 - w) * entropy(B), atol=1e-12)
    first = 1 + (w**2).sum(axis=-1)
    assert np.all(stable_rank(singular_values(A)) <= (1 + ((1 - w) ** 2).sum(axis=-1) / first) * (1 + 1e-12))


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: sinks.sink_weight(SMALL, 2, causal=True), ValueError, "a later query sees, got the last one, 2"),
        (lambda: sinks.sink_weight(SMALL, 3), ValueError, "key: expected an integer of at least 0, at most 2, got 3"),
        (lambda: sinks.sink_weight(SMALL, -1), ValueError, "key: expected"),
        (lambda: sinks.sink_weight(SMALL, 0.0), TypeError, "key: expected an integer"),
        (lambda: sinks.sink_weight(SMALL, causal="yes"), TypeError, "causal: expected"),
        (lambda: sinks.sink_weight([[1.0]]), ValueError, "A: expected at least 2 positions"),
        (lambda: sinks.without_key([[1.0]]), ValueError, "A: expected at least 2 positions"),
        (lambda: sinks.without_key(np.ones((2, 2))), ValueError, "A: expected rows that sum to 1"),
        (lambda: sinks.without_key(np.eye(3)[[0] * 3]), ValueError, "some weight left in every row"),
        (lambda: sinks.without_key(stochastic(3, 0), 5), ValueError, "key: expected"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()
