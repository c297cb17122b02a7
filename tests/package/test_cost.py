"""Counts against an independent count, one pass against the full matrix, and what both refuse."""

from __future__ import annotations

import numpy as np
import pytest
from backends import both_backends, make
from hypothesis import given
from hypothesis import strategies as st

from attnmath.attention import attention
from attnmath.cost import attention_operations, counted_attention, peak_memory, projection_operations, random_inputs
from attnmath.online import merge, online_attention, summarise


@given(n=st.integers(1, 5), d=st.integers(1, 4), d_v=st.integers(1, 3))
def test_counted_operations_follow_the_formulas(n: int, d: int, d_v: int) -> None:
    rng = np.random.default_rng(0)
    Q, K, V = rng.standard_normal((n, d)), rng.standard_normal((n, d)), rng.standard_normal((n, d_v))
    output, counts = counted_attention(Q, K, V)
    assert counts == attention_operations(n, d, d_v)
    np.testing.assert_allclose(output, attention(Q, K, V), rtol=0, atol=1e-13)


def test_projection_operations() -> None:
    assert projection_operations(2, 3, 4) == 2 * 4 * 5


@both_backends
@given(n=st.integers(1, 6), m=st.integers(1, 9), block=st.integers(1, 10), seed=st.integers(0, 50))
def test_one_pass_agrees_with_the_matrix(backend: str, n: int, m: int, block: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Q, K, V = (make(backend, 4 * rng.standard_normal(shape)) for shape in ((2, n, 3), (2, m, 3), (2, m, 2)))
    # Scores below about 200 carry an error of 200 ulps into the exponentials; values are below 20.
    np.testing.assert_allclose(
        np.asarray(online_attention(Q, K, V, block=block)), np.asarray(attention(Q, K, V)), rtol=0, atol=1e-11
    )


def test_extreme_scores_survive_the_merge() -> None:
    low, high = (summarise(np.asarray([[s]]), np.asarray([[v]])) for s, v in ((-1e300, 1.0), (1e300, 2.0)))
    with np.errstate(over="ignore"):
        joined = merge(low, high)
    assert joined.o / joined.l == 2.0


def test_peak_memory_sees_an_array() -> None:
    assert peak_memory(lambda: np.zeros(10**6)) == pytest.approx(8e6, rel=0.01)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: counted_attention([[1.0]], [[1.0, 2.0]], [[1.0]]), ValueError, "Q, K, V: expected shapes"),
        (lambda: online_attention(np.ones((1, 2)), np.ones((3, 2)), np.ones((2, 1))), ValueError, "V: expected 3 rows"),
        (lambda: online_attention(np.ones((1, 2)), np.ones((3, 2)), np.ones((3, 1)), block=0), ValueError, "block"),
        (lambda: online_attention(np.ones((1, 2)), np.full((3, 2), np.nan), np.ones((3, 1))), ValueError, "K: .*NaN"),
        (lambda: random_inputs(0, 1, np.random.default_rng(0)), ValueError, "n: expected a positive"),
    ],
)
def test_bad_input(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()
