"""Heatmaps draw what they are given and refuse what is not a matrix of weights."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attnmath.figures import attention_heatmap, curves, mask_pattern, matrix_heatmap


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_attention_heatmap_labels_queries_and_keys() -> None:
    ax = attention_heatmap([[1.0, 0.0], [0.25, 0.75]], query_labels=["a", "b"], key_labels=["c", "d"])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["c", "d"]
    np.testing.assert_array_equal(ax.images[0].get_array(), [[1.0, 0.0], [0.25, 0.75]])


def test_matrix_heatmap_writes_the_entries_that_show() -> None:
    ax = matrix_heatmap([[1.0, -0.5, 0.001]])
    assert [t.get_text() for t in ax.texts] == ["1.00", "\N{MINUS SIGN}0.50"]


def test_curves_with_a_reference() -> None:
    assert len(curves([0, 1], {"$a$": [0, 1]}, reference={"$b$": [1, 0]}).lines) == 2


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: attention_heatmap([[0.5, 0.6]]), "weights: expected non-negative rows"),
        (lambda: attention_heatmap([0.5, 0.5]), "weights: expected 2 dimensions"),
        (lambda: attention_heatmap([[np.nan, 1.0]]), "weights: expected no NaN"),
        (lambda: attention_heatmap([[1.0]], key_labels=["a", "b"]), "key_labels: expected 1 labels, got 2"),
        (lambda: matrix_heatmap([[0.0]]), "matrix: expected an entry other than 0"),
        (lambda: matrix_heatmap([[1.0]], limit=0), "limit: expected positive"),
    ],
)
def test_bad_input(call, words) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_mask_pattern() -> None:
    ax = mask_pattern([[True, False], [True, True]])
    assert ax.images[0].get_array().tolist() == [[True, False], [True, True]]
    with pytest.raises(ValueError, match="mask: expected a boolean matrix"):
        mask_pattern([[1.0, 0.0]])
