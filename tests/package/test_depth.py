"""Attention upon attention: the residual, the random stack, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnmath.encoder_decoder.depth import attention_stack, relative_residual


@given(seed=st.integers(0, 99), scale=st.floats(1e-6, 1e6))
def test_the_residual_is_between_0_and_1_and_ignores_scale(seed: int, scale: float) -> None:
    X = np.random.default_rng(seed).normal(size=(5, 3))
    assert 0 < relative_residual(X) <= 1
    assert relative_residual(scale * X) == pytest.approx(relative_residual(X), rel=1e-12)
    assert relative_residual(np.tile(X[:1], (5, 1))) < 1e-15
    assert relative_residual(X - X.mean(axis=0)) == pytest.approx(1)


def test_a_stack_is_reproducible_and_keeps_its_size() -> None:
    X = np.random.default_rng(0).normal(size=(6, 4))
    runs = [list(attention_stack(X, d_k=2, depth=3, rng=np.random.default_rng(1))) for _ in range(2)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert len(runs[0]) == 4 and runs[0][0] is not None
    np.testing.assert_allclose([np.linalg.norm(after) for after in runs[0][1:]], np.sqrt(24))


def test_a_skip_connection_slows_the_collapse() -> None:
    X = np.random.default_rng(2).normal(size=(16, 16))
    last = [list(attention_stack(X, d_k=4, depth=5, rng=np.random.default_rng(3), skip=skip))[-1] for skip in (0, 1)]
    assert relative_residual(last[0]) < 0.1 * relative_residual(last[1])


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: relative_residual(np.zeros((2, 2))), ValueError, "X: expected a non-zero matrix"),
        (lambda: relative_residual([1.0]), ValueError, "X: expected at least 2 dimensions"),
        (lambda: relative_residual([[np.nan]]), ValueError, "X: expected no NaN"),
        (lambda: list(attention_stack(np.ones(3), d_k=1, depth=1, rng=None)), ValueError, "X: expected 2 dimensions"),
        (lambda: list(attention_stack(np.ones((2, 2)), d_k=0, depth=1, rng=None)), ValueError, "d_k: expected"),
        (lambda: list(attention_stack(np.ones((2, 2)), d_k=1, depth=0.5, rng=None)), TypeError, "depth: expected"),
        (lambda: list(attention_stack(np.ones((2, 2)), d_k=1, depth=1, rng=7)), TypeError, "rng: expected a numpy"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("scale", [1e-308, 1e-170, 1e160, 1e307])
def test_the_residual_does_not_depend_on_the_scale(scale: float) -> None:
    X = np.random.default_rng(0).standard_normal((3, 4))
    np.testing.assert_allclose(relative_residual(X * scale), relative_residual(X), rtol=1e-12)
    np.testing.assert_allclose(relative_residual([[scale], [-scale]]), 1)


def test_a_stack_starts_at_tiny_inputs_and_names_huge_ones() -> None:
    tiny, ordinary = (
        [
            relative_residual(x)
            for x in attention_stack(s * np.eye(3), d_k=2, depth=3, rng=np.random.default_rng(0), skip=True)
        ]
        for s in (1e-170, 1e-9)
    )
    np.testing.assert_allclose(tiny, ordinary, rtol=1e-6)
    with pytest.raises(ValueError, match="X, d_k: "):
        list(attention_stack(1e300 * np.eye(3), d_k=2, depth=1, rng=np.random.default_rng(0)))


def test_a_layer_is_attention_with_fresh_weights_scaled_back() -> None:
    X = np.random.default_rng(5).standard_normal((4, 3))
    for skip in (False, True):
        rng = np.random.default_rng(6)
        steps = list(attention_stack(X, d_k=2, depth=2, rng=np.random.default_rng(6), skip=skip))
        np.testing.assert_array_equal(steps[0], X)
        x = X
        for found in steps[1:]:
            W_Q, W_K, W_V = (rng.normal(0, 1 / np.sqrt(3), (3, width)) for width in (2, 2, 3))
            S = x @ W_Q @ (x @ W_K).T / np.sqrt(2)
            P = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
            x = P @ x @ W_V + (x if skip else 0)
            x = x * np.sqrt(12) / np.sqrt((x**2).sum())
            np.testing.assert_allclose(found, x, rtol=1e-9, atol=1e-12)
    assert len(list(attention_stack(X, d_k=1, depth=1, rng=np.random.default_rng(0)))) == 2
    once = [
        list(attention_stack(X, d_k=2, depth=1, rng=np.random.default_rng(0), **skip))[1]
        for skip in ({}, {"skip": False})
    ]
    np.testing.assert_array_equal(*once)


def test_the_residual_is_its_definition_for_each_matrix_of_a_stack() -> None:
    X = np.random.default_rng(5).standard_normal((2, 4, 3))
    rest = X - X.mean(axis=1, keepdims=True)
    expected = np.sqrt((rest**2).sum(axis=(1, 2)) / (X**2).sum(axis=(1, 2)))
    np.testing.assert_allclose(relative_residual(X), expected, rtol=1e-14)
    with pytest.raises(ValueError, match="X: expected a non-zero matrix, got one of zeros"):
        relative_residual(np.stack([np.eye(2), np.zeros((2, 2))]))
    with pytest.raises(ValueError, match="X: expected a non-zero matrix, got one of zeros"):
        list(attention_stack(np.zeros((2, 2)), d_k=1, depth=1, rng=np.random.default_rng(0)))
