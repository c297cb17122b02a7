"""Clouds, errors, times and recall draw what they are given, and refuse what cannot be drawn."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attnmath.figures import clouds_over_diagonal, errors_by_method, recall_against, times_by_method


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
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [np.finfo(float).eps, 1.0, 1.0])


def test_times_are_named() -> None:
    ax = times_by_method({"fast": 0.1, "slow": 10.0})
    assert [label.get_text() for label in ax.get_yticklabels()] == ["fast", "slow"]


def test_recall_has_its_interval_cut_at_the_ends_of_the_scale() -> None:
    ax = recall_against({"a": [[4.0, 0.9, 0.5, 1.4]]}, ticks=[4.0], legend=None)
    (bar,) = [segment for container in ax.containers for segment in container[2][0].get_segments()]
    np.testing.assert_allclose(bar[:, 1], [0.5, 1.0])
    assert ax.get_legend() is None and [label.get_text() for label in ax.get_xticklabels()] == ["4"]


def test_recall_is_drawn_over_the_rules_that_look_nothing_up() -> None:
    baselines = {"chance": [[1.0, 0.1]], "most frequent": [[2.0, 0.5], [4.0, 0.25]]}
    ax = recall_against({"a": [[4.0, 0.9, 0.5, 1.0]]}, baselines=baselines)
    across, falling = (line for line in ax.get_lines() if line.get_label() in baselines)
    assert list(across.get_ydata()) == [0.1, 0.1] and list(falling.get_ydata()) == [0.5, 0.25]
    assert across.get_linestyle() != falling.get_linestyle() and across.get_color() == falling.get_color()
    assert {"chance", "most frequent", "a"} == {label.get_text() for label in ax.get_legend().get_texts()}


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: recall_against({"a": [[1.0, 0.5, 0.4, 0.6]]}, baselines={"b": [[1.0, 1.5]]}), "between 0 and 1"),
        (
            lambda: recall_against({"a": [[1.0, 0.5, 0.4, 0.6]]}, baselines={"b": [[1.0]]}),
            "baselines.'b'.: expected rows",
        ),
        (lambda: clouds_over_diagonal({"a": ([1.0], [1.0, 2.0])}), "clouds.'a'.: expected as many"),
        (lambda: clouds_over_diagonal({"a": ([np.nan], [1.0])}), "clouds.'a'.: expected no NaN"),
        (lambda: errors_by_method([0.0], {"m": [1.0, 2.0]}), "errors.'m'.: expected 1 values, got 2"),
        (lambda: recall_against({"a": [[1.0, 0.5]]}), "points.'a'.: expected rows"),
        (lambda: recall_against({"a": [[np.nan, 0.5, 0.4, 0.6]]}), "points.'a'.: expected no NaN"),
        (lambda: times_by_method({"m": 0.0}), "times.'m'.: expected positive"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, words) -> None:
    with pytest.raises(ValueError, match=words):
        call()
