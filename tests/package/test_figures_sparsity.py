"""Clouds, errors and times draw what they are given, and refuse what cannot be drawn."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attnmath.figures import clouds_over_diagonal, errors_by_method, times_by_method


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_clouds_and_special_points() -> None:
    ax = clouds_over_diagonal({"a": ([1.0, 2.0], [1.5, 2.5])}, special={"p": (1.0, 2.0)})
    assert [len(line.get_xdata()) for line in ax.lines] == [2, 2, 1]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1.0, 2.5])


def test_lost_digits_stand_at_one() -> None:
    ax = errors_by_method([0.0, 1.0, 2.0], {"m": [0.0, np.inf, 3.0]})
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [1e-18, 1.0, 1.0])


def test_times_are_named() -> None:
    ax = times_by_method({"fast": 0.1, "slow": 10.0})
    assert [label.get_text() for label in ax.get_yticklabels()] == ["fast", "slow"]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: clouds_over_diagonal({"a": ([1.0], [1.0, 2.0])}), "clouds.'a'.: expected as many"),
        (lambda: clouds_over_diagonal({"a": ([np.nan], [1.0])}), "clouds.'a'.: expected as many finite"),
        (lambda: errors_by_method([0.0], {"m": [1.0, 2.0]}), "errors.'m'.: expected 1 values, got 2"),
        (lambda: times_by_method({"m": 0.0}), "times: expected positive"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, words) -> None:
    with pytest.raises(ValueError, match=words):
        call()
