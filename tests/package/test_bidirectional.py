"""Bidirectional and causal attention of the same scores, against hand-made cases and against other ways to compute."""

from __future__ import annotations

import numpy as np
import pytest
from backends import both_backends, make
from hypothesis import given
from hypothesis import strategies as st

from attnmath.encoder_decoder import bidirectional
from attnmath.matrix import rank
from attnmath.matrix.patterns import uniform_attention
from attnmath.operator.attention import attention_weights, causal_mask


def drawn(seed: int, n: int, *batch: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((*batch, n, n))


@both_backends
def test_pair_is_attention_with_and_without_the_mask(backend: str) -> None:
    rng = np.random.default_rng(0)
    Q, K = (make(backend, x, "float64") for x in rng.standard_normal((2, 3, 5, 4)))
    S = Q @ K.swapaxes(-1, -2) / 2.0
    both = bidirectional.at_equal_scores(S)
    mask = causal_mask(5, like=Q)
    assert np.allclose(both.bidirectional, attention_weights(Q, K))
    assert np.allclose(both.causal, attention_weights(Q, K, mask=mask))
    warm = bidirectional.at_equal_scores(S, temperature=3.0)
    assert np.allclose(warm.causal, attention_weights(Q / 3.0, K, mask=mask))


def test_last_rows_agree_and_first_rows_do_not() -> None:
    both = bidirectional.at_equal_scores(drawn(1, 6))
    assert np.array_equal(both.bidirectional[-1], both.causal[-1])
    assert np.array_equal(both.causal[0], np.eye(6)[0])
    assert np.all(both.bidirectional > 0)
    assert np.array_equal(both.causal > 0, np.tri(6, dtype=bool))


@given(n=st.integers(1, 7), seed=st.integers(0, 99), causal=st.booleans())
def test_rows_won_are_the_limit_of_low_temperature(n: int, seed: int, causal: bool) -> None:
    S = np.random.default_rng(seed).permutation(n * n).reshape(n, n).astype(float)
    won = bidirectional.rows_won(S, causal=causal)
    assert won.sum() == n
    cold = bidirectional.at_equal_scores(S, temperature=0.01)[int(causal)]
    assert np.allclose(rank.singular_values(cold), np.sort(np.sqrt(won))[::-1], atol=1e-12)


def test_rows_won_counts_the_first_of_equal_scores() -> None:
    assert bidirectional.rows_won(np.zeros((3, 3))).tolist() == [3, 0, 0]
    assert bidirectional.rows_won([[0.0, 2.0], [1.0, 0.0]], causal=True).tolist() == [2, 0]


def test_mean_row_cosine_is_the_mean_over_pairs() -> None:
    A = np.random.default_rng(2).uniform(size=(2, 4, 5, 3))
    units = A / np.linalg.norm(A, axis=-1, keepdims=True)
    pairs = [(units[..., i, :] * units[..., j, :]).sum(axis=-1) for i in range(5) for j in range(i)]
    assert np.allclose(bidirectional.mean_row_cosine(A), np.mean(pairs, axis=0))
    assert bidirectional.mean_row_cosine(np.eye(4)) == 0
    assert bidirectional.mean_row_cosine(np.full((4, 3), 1e-300)) == pytest.approx(1)


@given(n=st.integers(1, 60))
def test_bounds_hold_for_equal_scores_under_the_mask(n: int) -> None:
    sigma = rank.singular_values(uniform_attention(causal_mask(n)))
    lower, upper = bidirectional.uniform_causal_bounds(n)
    assert lower * (1 - 1e-9) <= sigma[-1] <= sigma[0] <= upper * (1 + 1e-9)
    assert lower * upper == pytest.approx(1 / n)


@given(a=st.floats(0.001, 0.999), b=st.floats(0.001, 0.999))
def test_margin_says_which_of_two_tokens_has_the_larger_ranks(a: float, b: float) -> None:
    margin = bidirectional.two_token_margin(a, b)
    S = np.log([[1 - a, a], [1 - b, b]])
    free, causal = (rank.singular_values(A) for A in bidirectional.at_equal_scores(S))
    if abs(margin) > 1e-6:
        assert (rank.stable_rank(causal) > rank.stable_rank(free)) == (margin > 0)
        assert (rank.entropy_rank(causal) > rank.entropy_rank(free)) == (margin > 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bidirectional.at_equal_scores(np.zeros((2, 3))), "S: expected square matrices"),
        (lambda: bidirectional.rows_won(np.zeros((2, 3))), "S: expected square matrices"),
        (lambda: bidirectional.mean_row_cosine([[1.0, 2.0]]), "A: expected at least two rows"),
        (lambda: bidirectional.mean_row_cosine([[1.0, 2.0], [0.0, 0.0]]), "A: expected no row of zeros"),
        (lambda: bidirectional.uniform_causal_bounds(0), "n: expected"),
        (lambda: bidirectional.two_token_margin(0.5, 1.0), "b: expected weights between 0 and 1"),
        (lambda: bidirectional.two_token_margin([0.5, 0.2], [0.1, 0.2, 0.3]), "a, b: expected shapes that broadcast"),
    ],
)
def test_refused(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
