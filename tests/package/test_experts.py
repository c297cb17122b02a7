"""Gates and mixtures of experts: laws, the block matrix, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from backends import both_backends, make
from hypothesis import given
from hypothesis import strategies as st

from attnmath.matrix import experts
from attnmath.operator.attention import softmax


@both_backends
@given(k=st.integers(1, 6), seed=st.integers(0, 30))
def test_the_gate_keeps_the_k_largest(backend: str, k: int, seed: int) -> None:
    logits = np.random.default_rng(seed).normal(size=(4, 6))
    gate = np.asarray(experts.top_k_gate(make(backend, logits), k))
    dense = softmax(logits)
    kept = gate > 0
    assert np.all(kept.sum(axis=-1) == k)
    assert np.all(np.where(kept, dense, 1).min(axis=-1) >= np.where(kept, 0, dense).max(axis=-1))
    np.testing.assert_allclose(gate, np.where(kept, dense, 0) / (dense * kept).sum(axis=-1, keepdims=True), atol=1e-14)


def test_ties_go_to_the_first() -> None:
    np.testing.assert_array_equal(experts.top_k_gate(np.zeros(4), 2), [0.5, 0.5, 0, 0])


@both_backends
def test_a_mixture_is_its_gated_sum(backend: str) -> None:
    rng = np.random.default_rng(0)
    x, W = rng.normal(size=(5, 3)), rng.normal(size=(4, 3, 2))
    gates = experts.top_k_gate(rng.normal(size=(5, 4)), 2)
    expected = [sum(g * x[i] @ W[e] for e, g in enumerate(gates[i])) for i in range(5)]
    found = experts.mixture(*(make(backend, a) for a in (x, gates, W)))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


def test_the_block_matrix_carries_each_token_to_its_expert() -> None:
    rng = np.random.default_rng(1)
    x, W, choice = rng.normal(size=(5, 3)), rng.normal(size=(4, 3, 2)), np.asarray([3, 0, 0, 1, 3])
    expected = experts.mixture(x, np.eye(4)[choice], W)
    np.testing.assert_allclose(x.ravel() @ experts.block_matrix(choice, W), expected.ravel(), rtol=1e-12)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: experts.top_k_gate([1.0, 2.0], 3), ValueError, "k: expected at most the number of experts, 2, got 3"),
        (lambda: experts.top_k_gate([1.0], 0), ValueError, "k: expected a positive integer"),
        (lambda: experts.top_k_gate([np.nan], 1), ValueError, "logits: expected no NaN"),
        (lambda: experts.mixture(np.ones((2, 3)), np.ones((2, 4)), np.ones((4, 2, 2))), ValueError, "x, gates, exp"),
        (lambda: experts.block_matrix([0.5], np.ones((1, 1, 1))), TypeError, "choice: expected"),
        (lambda: experts.block_matrix([1], np.ones((1, 1, 1))), ValueError, "choice: expected experts from 0 to 0"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


def test_gates_are_probabilities() -> None:
    for gates in ([[5.0, -3.0]], [[2.0, -1.0]], [[0.5, 0.25]]):
        with pytest.raises(ValueError, match="gates: expected probabilities"):
            experts.mixture([[1.0]], gates, np.ones((2, 1, 1)))


def test_ties_go_to_the_first_experts_at_any_number_of_them() -> None:
    logits = np.zeros((2, 40))
    logits[1, ::2] = -1.0
    gate = experts.top_k_gate(logits, 7)
    np.testing.assert_allclose(gate[0], [1 / 7] * 7 + [0] * 33, rtol=1e-15)
    np.testing.assert_allclose(gate[1], [0, 1 / 7] * 7 + [0] * 26, rtol=1e-15)
    assert np.count_nonzero(experts.top_k_gate(np.arange(3.0), 3)) == 3
    with pytest.raises(ValueError, match="k: expected at most the number of experts, 3, got 4"):
        experts.top_k_gate(np.arange(3.0), 4)


def test_a_mixture_is_its_definition_and_its_block_matrix() -> None:
    rng = np.random.default_rng(3)
    x, W = rng.standard_normal((3, 2)), rng.standard_normal((4, 2, 5))
    gates = rng.dirichlet(np.ones(4), size=3)
    expected = sum(gates[:, e, None] * (x @ W[e]) for e in range(4))
    np.testing.assert_allclose(experts.mixture(x, gates, W), expected, rtol=1e-12)
    choice = [3, 0, 3]
    matrix = experts.block_matrix(choice, W)
    assert matrix.shape == (6, 15)
    np.testing.assert_allclose(
        x.ravel() @ matrix, np.concatenate([r @ W[c] for r, c in zip(x, choice, strict=True)]), rtol=1e-12
    )
    for bad in ([-1, 0], [0, 4]):
        with pytest.raises(ValueError, match="choice: expected experts from 0 to 3, got"):
            experts.block_matrix(bad, W)
    for shapes in (((2, 2), (3, 4)), ((3, 2), (3, 3)), ((3, 2), (3, 5)), ((3, 1), (3, 4)), ((3, 3), (3, 4))):
        with pytest.raises(ValueError, match=r"x, gates, experts: expected shapes \(n, d\), \(n, E\), \(E, d, d_out\)"):
            experts.mixture(*(np.ones(shape) for shape in shapes), W)


def test_hundreds_of_columns_fit_as_few_do() -> None:
    assert experts.mixture(np.ones((1, 300)), [[1.0]], np.ones((1, 300, 1))).tolist() == [[300.0]]


def test_dimensions_that_are_not_those_of_the_formula_are_named() -> None:
    x, gates, W = np.ones((1, 2)), np.ones((1, 1)), np.ones((1, 2, 2))
    for call, words in (
        (lambda: experts.top_k_gate(1.0, 1), "logits: expected at least 1 dimensions"),
        (lambda: experts.mixture(x[0], gates, W), "x: expected 2 dimensions"),
        (lambda: experts.mixture(x, gates[0], W), "gates: expected 2 dimensions"),
        (lambda: experts.mixture(x, gates, W[0]), "experts: expected 3 dimensions"),
        (lambda: experts.block_matrix([0], W[0]), "experts: expected 3 dimensions"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
