"""Low rank and sparse parts against exhaustive search and closed forms, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnmath.encoder_decoder.residual_attention import largest_entries, linformer_weights, low_rank_plus_sparse
from attnmath.matrix import rank
from attnmath.operator.attention import attention_weights


@given(kept=st.integers(0, 6), seed=st.integers(0, 30))
def test_the_largest_entries_are_the_closest_sparse_matrix(kept: int, seed: int) -> None:
    A = np.random.default_rng(seed).standard_normal((2, 3))
    found = largest_entries(A, kept)
    assert np.count_nonzero(found) == kept
    masks = (np.isin(np.arange(6), chosen).reshape(2, 3) for chosen in itertools.combinations(range(6), kept))
    assert np.linalg.norm(A - found) == pytest.approx(min(np.linalg.norm(A * ~mask) for mask in masks))


def test_ties_keep_the_earlier_entries() -> None:
    np.testing.assert_array_equal(largest_entries([[1.0, -1.0], [1.0, 1.0]], 3), [[1, -1], [1, 0]])


@given(r=st.integers(0, 3), kept=st.integers(0, 20), rounds=st.integers(1, 4), seed=st.integers(0, 30))
def test_parts_have_their_sizes_and_a_round_never_raises_the_error(r: int, kept: int, rounds: int, seed: int) -> None:
    A = np.random.default_rng(seed).standard_normal((2, 5, 4))
    low, sparse = low_rank_plus_sparse(A, r, kept, rounds=rounds)
    assert np.all(rank.numerical_rank(low + 0.0, relative=1e-12).rank <= r) if r else not low.any()
    assert np.all(np.count_nonzero(sparse, axis=(-2, -1)) <= kept)
    after = sum(low_rank_plus_sparse(A, r, kept, rounds=rounds + 1))
    error, later = (np.linalg.norm(A - B, axis=(-2, -1)) for B in (low + sparse, after))
    assert np.all(later <= error + 1e-12)


def test_ends_are_the_best_approximations_alone() -> None:
    A = np.random.default_rng(1).standard_normal((3, 6, 5))
    np.testing.assert_allclose(low_rank_plus_sparse(A, 2, 0).low_rank, rank.best_approximation(A, 2), atol=1e-12)
    np.testing.assert_array_equal(low_rank_plus_sparse(A, 0, 7).sparse, largest_entries(A, 7))


def test_a_sum_of_both_kinds_is_found() -> None:
    rng = np.random.default_rng(2)
    A = np.outer(rng.random(20), rng.random(20)) + 5 * np.eye(20)
    assert np.linalg.norm(A - sum(low_rank_plus_sparse(A, 1, 20, rounds=60))) < 1e-3


@given(r=st.integers(1, 4), seed=st.integers(0, 30))
def test_linformer_has_rank_at_most_r_and_rows_that_sum_to_one(r: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Q, K, E = (rng.standard_normal(shape) for shape in ((2, 7, 3), (2, 6, 3), (r, 6)))
    F = rng.random((r, 6))
    A = linformer_weights(Q, K, E, F / F.sum(axis=1, keepdims=True))
    assert A.shape == (2, 7, 6) and np.all(rank.numerical_rank(A).rank <= r)
    np.testing.assert_allclose(A.sum(axis=-1), 1)


def test_linformer_without_a_projection_is_attention() -> None:
    Q, K = np.random.default_rng(3).standard_normal((2, 5, 2))
    np.testing.assert_allclose(linformer_weights(Q, K, np.eye(5), np.eye(5)), attention_weights(Q, K))


@pytest.mark.parametrize(
    "function, arguments, words",
    [
        (largest_entries, (np.eye(2), 5), "kept: expected at most 4, got 5"),
        (low_rank_plus_sparse, (np.eye(2), 3, 0), "r: expected at most 2, got 3"),
        (low_rank_plus_sparse, (np.eye(2), 1, -1), "kept: expected an integer of at least 0"),
        (linformer_weights, (np.eye(2), np.ones((2, 3)), np.eye(2), np.eye(2)), "Q, K: expected the same last axis"),
        (linformer_weights, (np.eye(2), np.eye(2), np.ones((1, 3)), np.ones((1, 3))), "E, F: expected the shape"),
        (linformer_weights, (np.eye(2), np.eye(2), np.ones((1, 2)), np.ones((3, 2))), "E, F: expected the shape"),
    ],
)
def test_what_does_not_fit_is_refused(function, arguments, words) -> None:
    with pytest.raises(ValueError, match=words):
        function(*arguments)
