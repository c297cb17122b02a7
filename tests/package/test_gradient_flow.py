"""Gradients at random weights: the laws of the length, one position, one layer, and the same seed again."""

from __future__ import annotations

import numpy as np
import pytest

from attnmath.experiments import gradient_flow


def within(estimate, expected, errors: float = 5.0) -> bool:
    return bool(np.all(np.abs(estimate.value - expected) <= errors * estimate.standard_error))


def test_a_query_over_uniform_weights_follows_its_law() -> None:
    lengths, d = [2, 5, 16], 6
    n = np.asarray(lengths)
    shared = gradient_flow.query_gradient(lengths, width=d, draws=1500, seed=1)
    assert within(shared, (n - 1) * (n + d) / (n**2 * d)) and not within(shared, (n - 1) / n**2)
    apart = gradient_flow.query_gradient(lengths, width=d, draws=1500, seed=1, shared=False)
    assert within(apart, (n - 1) / n**2)
    without = gradient_flow.query_gradient(lengths, width=d, draws=1500, seed=1, scaled=False)
    assert within(without, (n - 1) * (n + d) / n**2)


def test_the_weights_gather_all_queries() -> None:
    lengths, d = [2, 8], 4
    n = np.asarray(lengths)
    found = gradient_flow.weights_gradient(lengths, width=d, draws=20_000, seed=2)
    assert within(found, (n * d + 4) * (n - 1) * (n + d) / (n**2 * d))
    assert not within(found, n * d * (n - 1) * (n + d) / (n**2 * d))
    other = gradient_flow.weights_gradient(lengths, width=d, queries=1.0, draws=100, seed=2)
    assert not np.array_equal(other.value, found.value)


def test_one_position_has_no_gradient() -> None:
    assert gradient_flow.query_gradient([1], width=3, queries=1.0, draws=5).value[0] == 0


def test_layers_of_a_stack() -> None:
    plain = gradient_flow.layer_gradients(3, n=6, width=8, draws=6)
    assert plain.shape == (6, 3) and np.all(plain[:, 2] < plain[:, 0])
    assert np.array_equal(plain, gradient_flow.layer_gradients(3, n=6, width=8, draws=6))
    kept = gradient_flow.layer_gradients(3, n=6, width=8, draws=6, residual=True)
    unscaled = gradient_flow.layer_gradients(3, n=6, width=8, draws=6, scaled=False)
    assert np.median(kept[:, 2]) > 10 * np.median(plain[:, 2]) and not np.array_equal(unscaled, plain)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="draws: expected at least 2"):
        gradient_flow.query_gradient([2], draws=1)
    with pytest.raises(TypeError, match="scaled: expected True"):
        gradient_flow.layer_gradients(2, scaled="no")
