"""The two examples of the book: the head of four tokens against the text's numbers, and the trained head."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from attnlab.heads import example
from attnlab.heads.load import load_heads
from attnmath.operator.attention import attention_weights


def test_the_small_head_has_whole_numbers_for_pencil_and_paper() -> None:
    head = example.four_tokens()
    assert head.tokens == ("rabbit", "took", "watch", "it")
    assert head.X.shape == (4, 3) and head.W_Q.shape == head.W_K.shape == head.W_V.shape == (3, 2)
    assert head.Q.tolist() == [[0, 1], [2, -1], [1, 0], [1, 1]]
    assert head.K.tolist() == [[-1, 0], [1, -1], [2, 2], [1, 2]]
    assert head.V.tolist() == [[2, 0], [0, 2], [-1, 1], [1, 1]]
    assert all(a.dtype.kind == "i" for a in (head.X, head.W_Q, head.W_K, head.W_V, head.Q, head.K, head.V))
    np.testing.assert_array_equal(head.X[3], head.X[0] + head.X[2])  # "it" is a rabbit's and a watch's


def test_the_query_of_it_matches_the_key_of_watch_best() -> None:
    head = example.four_tokens()
    P = attention_weights(head.Q.astype(float), head.K.astype(float))
    assert head.tokens[int(P[3].argmax())] == "watch"


def test_the_small_head_cannot_be_changed_by_accident() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        example.four_tokens().X = np.zeros((4, 3))
    example.four_tokens().X[:] = 0
    assert example.four_tokens().X.any(), "each call makes the arrays anew"


def test_the_trained_head_is_the_last_of_the_last_layer() -> None:
    heads = load_heads("sentence")
    tokens, Q, K = example.trained_head()
    assert (heads.layers - 1, heads.heads - 1) == (example.LAYER, example.HEAD)
    assert tokens == heads.tokens and {"rabbit", "took", "watch", "it"} <= set(tokens)
    np.testing.assert_array_equal(Q, heads.Q[5, 11])
    np.testing.assert_array_equal(K, heads.K[5, 11])
