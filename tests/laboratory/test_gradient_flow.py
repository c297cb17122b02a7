"""Gradients at random weights: the laws of the length, one position, one layer, and the same seed again."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from attnlab.experiments import gradient_flow
from attnmath.operator.attention import softmax
from attnmath.operator.gradients import attention_gradients, stack_gradients
from attnmath.operator.initialisation import draw_weights


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


def defaults(function) -> dict[str, object]:
    """What a call takes that says nothing."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def test_the_numbers_of_the_chapter_come_from_these_defaults() -> None:
    assert defaults(gradient_flow.query_gradient) == {
        "width": 32, "shared": True, "queries": 0.0, "scaled": True, "draws": 100, "seed": 518,
    }  # fmt: skip
    assert defaults(gradient_flow.weights_gradient) == {"width": 32, "queries": 0.0, "draws": 100, "seed": 518}
    assert defaults(gradient_flow.layer_gradients) == {
        "n": 16, "width": 32, "residual": False, "scaled": True, "draws": 24, "seed": 518,
    }  # fmt: skip


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("scaled", [True, False])
def test_the_gradient_of_a_query_is_that_of_the_drawn_matrices(shared: bool, scaled: bool) -> None:
    draws, n, d = 3, 4, 5
    rng = np.random.default_rng((9, n, shared, scaled))
    X = rng.standard_normal((draws, n, d))
    W_Q, W_K, W_V = (draw_weights(d, d, draws, rng) for _ in range(3))
    K, V = (X @ W_K, X @ W_V) if shared else rng.standard_normal((2, draws, n, d))
    G = rng.standard_normal((draws, 1, d))
    G = G / np.sqrt((G**2).sum(axis=-1, keepdims=True))
    expected = []
    for k in range(draws):
        factor = 1 / np.sqrt(d) if scaled else 1.0
        p = softmax(factor * (2.0 * X[k, :1] @ W_Q[k]) @ K[k].T)[0]
        through = p * (V[k] @ G[k, 0] - p @ V[k] @ G[k, 0])
        expected.append(((factor * through @ K[k]) ** 2).sum())
    found = gradient_flow.query_gradient([n], width=d, shared=shared, queries=2.0, scaled=scaled, draws=draws, seed=9)
    assert found.value[0] == pytest.approx(np.mean(expected), rel=1e-10)


def test_the_gradients_of_weights_and_layers_are_those_of_the_drawn_matrices() -> None:
    draws, n, d = 3, 4, 5
    rng = np.random.default_rng((9, n))
    X, G = rng.standard_normal((draws, n, d)), rng.standard_normal((draws, n, d)) / np.sqrt(d)
    W_Q, W_K, W_V = (draw_weights(d, d, draws, rng) for _ in range(3))
    one_by_one = [attention_gradients(X[k], 2 * W_Q[k], W_K[k], W_V[k], G[k]).W_Q for k in range(draws)]
    found = gradient_flow.weights_gradient([n], width=d, queries=2.0, draws=draws, seed=9)
    assert found.value[0] == pytest.approx(np.mean([(g**2).sum() for g in one_by_one]), rel=1e-10)
    layers = gradient_flow.layer_gradients(2, n=n, width=d, draws=draws, seed=9)
    rng = np.random.default_rng((9, 1))
    weights = [tuple(draw_weights(d, d, 3, rng)) for _ in range(2)]
    X, G = rng.standard_normal((2, n, d))
    stack = stack_gradients(X, weights, G / np.linalg.norm(G))
    np.testing.assert_allclose(layers[1], [np.linalg.norm(layer.W_Q) for layer in stack], rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: gradient_flow.layer_gradients(10**9), "depth, width, draws"),
        (lambda: gradient_flow.layer_gradients(2, n=10**9), "n, width, draws"),
        (lambda: gradient_flow.query_gradient([10**9]), "lengths, width, draws"),
        (lambda: gradient_flow.weights_gradient([4], width=10**6), "lengths, width, draws"),
    ],
)
def test_what_does_not_fit_into_memory_is_named_before_it_is_drawn(call, names) -> None:
    with pytest.raises(ValueError, match=f"{names}: expected a result of at most"):
        call()
