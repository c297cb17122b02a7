"""Closed-form gradients against autograd of the same attention, against differences, and their laws."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from backends import both_backends, make, torch_or_skip
from hypothesis import given
from hypothesis import strategies as st

from attnmath.operator.attention import attention, causal_mask, padding_mask, softmax, softmax_jacobian
from attnmath.operator.gradients import attention_gradients, softmax_pullback, stack_gradients, stage_gradients

EPS = np.finfo(np.float64).eps
NAMES = ("X", "W_Q", "W_K", "W_V")


def problem(seed: int, n: int, d_model: int, d_k: int, d_v: int, batch: tuple[int, ...] = ()) -> list[np.ndarray]:
    """Random X, W_Q, W_K, W_V and G with entries of about unit size."""
    rng = np.random.default_rng(seed)
    W = [rng.standard_normal((d_model, d)) / np.sqrt(d_model) for d in (d_k, d_k, d_v)]
    return [rng.standard_normal((*batch, n, d_model)), *W, rng.standard_normal((*batch, n, d_v))]


def autograd(arrays: list[np.ndarray], dtype: str = "float64", **how) -> dict[str, np.ndarray]:
    """Gradients of sum(G * attention(X W_Q, X W_K, X W_V)) that torch finds by itself."""
    *inputs, G = (make("torch", a, dtype) for a in arrays)
    for tensor in inputs:
        tensor.requires_grad_(True)
    X, *W = inputs
    (G * attention(*(X @ w for w in W), **how)).sum().backward()
    return {name: np.asarray(t.grad) for name, t in zip(NAMES, inputs, strict=True)}


def scale_of(arrays: list[np.ndarray]) -> float:
    """The sum of the sizes that enter any entry of a gradient, times the rounding of the scores in exp."""
    X, W_Q, W_K, W_V, G = (np.abs(a) for a in arrays)
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    scores = float((Q @ np.swapaxes(K, -1, -2)).max())
    through = float(G.sum() * V.max() * max(Q.max(), K.max(), 1)) + float(G.sum())
    return (1 + scores) * through * float(max(X.max(), W_Q.max(), W_K.max(), W_V.max(), 1)) * X.shape[-1]


sizes = st.integers(1, 6)


@given(seed=st.integers(0, 999), n=sizes, d_model=sizes, d_k=sizes, d_v=sizes)
def test_gradients_agree_with_autograd(seed: int, n: int, d_model: int, d_k: int, d_v: int) -> None:
    torch_or_skip()
    arrays = problem(seed, n, d_model, d_k, d_v)
    found, expected = attention_gradients(*arrays), autograd(arrays)
    for name in NAMES:
        assert getattr(found, name).shape == expected[name].shape
        np.testing.assert_allclose(getattr(found, name), expected[name], rtol=0, atol=8 * EPS * scale_of(arrays))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["causal", "padding", "both"])
def test_masked_batches_on_torch_agree_with_autograd(kind: str, dtype: str) -> None:
    torch = torch_or_skip()
    arrays = problem(3, 5, 4, 3, 2, batch=(2,))
    causal, padding = causal_mask(5, like=torch.zeros(1)), padding_mask(torch.asarray([5, 2]), 5)
    mask = {"causal": causal, "padding": padding, "both": causal & padding}[kind]
    found = attention_gradients(*(make("torch", a, dtype) for a in arrays), mask=mask, scale=0.7)
    tolerance = float(torch.finfo(getattr(torch, dtype)).eps) * scale_of(arrays)
    for name, expected in autograd(arrays, dtype, mask=mask, scale=0.7).items():
        got = getattr(found, name)
        assert got.dtype == getattr(torch, dtype)
        np.testing.assert_allclose(np.asarray(got), expected, rtol=0, atol=tolerance)


def test_heads_broadcast_and_are_summed_back() -> None:
    torch_or_skip()
    rng = np.random.default_rng(8)
    X = rng.standard_normal((2, 1, 5, 6))
    W = [rng.standard_normal((3, 6, d)) for d in (4, 4, 2)]
    arrays = [X, *W, rng.standard_normal((2, 3, 5, 2))]
    found, expected = attention_gradients(*arrays), autograd(arrays)
    for name in NAMES:
        assert getattr(found, name).shape == expected[name].shape
        np.testing.assert_allclose(getattr(found, name), expected[name], rtol=0, atol=8 * EPS * scale_of(arrays))


def test_stages_broadcast_too() -> None:
    rng = np.random.default_rng(9)
    Q, K, V, G = (rng.standard_normal(s) for s in ((4, 2), (3, 2), (5, 3, 2), (5, 4, 2)))
    found = stage_gradients(Q, K, V, G)
    single = [stage_gradients(Q, K, v, g) for v, g in zip(V, G, strict=True)]
    np.testing.assert_allclose(found.Q, sum(s.Q for s in single), atol=64 * EPS)
    np.testing.assert_allclose(found.K, sum(s.K for s in single), atol=64 * EPS)
    np.testing.assert_allclose(found.V, [s.V for s in single], atol=64 * EPS)


def test_backends_agree_and_central_differences_confirm() -> None:
    arrays = problem(5, 4, 3, 2, 2)
    found = attention_gradients(*arrays)
    if torch := pytest.importorskip("torch"):
        tensors = attention_gradients(*(torch.asarray(a) for a in arrays))
        np.testing.assert_allclose(np.asarray(tensors.W_K), found.W_K, rtol=0, atol=8 * EPS * scale_of(arrays))
    h = 2.0**-17
    for k, name in enumerate(NAMES):
        for place in np.ndindex(arrays[k].shape):

            def loss(step: float, k: int = k, place: tuple[int, ...] = place) -> float:
                moved = [a.copy() for a in arrays]
                moved[k][place] += step
                X, *W, G = moved
                return float(np.sum(G * attention(*(X @ w for w in W))))

            # Truncation is h^2/6 times a third derivative, here below 100; rounding is eps / h times the loss's terms.
            slope = (loss(h) - loss(-h)) / (2 * h)
            allowed = 17 * h**2 + 16 * EPS / h * np.abs(arrays[-1]).sum()
            assert getattr(found, name)[place] == pytest.approx(slope, rel=0, abs=allowed)


@both_backends
@given(seed=st.integers(0, 999), n=st.integers(1, 7))
def test_the_pullback_is_the_jacobian_times_the_gradient(backend: str, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    P, dP = softmax(make(backend, 3 * rng.standard_normal((2, n)))), make(backend, rng.standard_normal((2, n)))
    dS = np.asarray(softmax_pullback(P, dP))
    J = np.asarray(softmax_jacobian(P))
    np.testing.assert_allclose(dS, np.einsum("bij,bj->bi", J, np.asarray(dP)), rtol=0, atol=16 * n * EPS)
    np.testing.assert_allclose(dS.sum(axis=-1), 0, atol=16 * n * EPS)
    sizes = np.linalg.norm(dS, axis=-1), np.linalg.norm(np.asarray(dP), axis=-1)
    assert np.all(sizes[0] <= sizes[1] / 2 + 16 * n * EPS)


@given(seed=st.integers(0, 999))
def test_weights_of_queries_and_keys_turn_together(seed: int) -> None:
    # W_Q A and W_K A^-T give the same scores, so the loss has no slope along that direction.
    arrays = problem(seed, 5, 4, 3, 2)
    g = attention_gradients(*arrays)
    np.testing.assert_allclose(arrays[1].T @ g.W_Q, g.W_K.T @ arrays[2], rtol=0, atol=8 * EPS * scale_of(arrays))


def test_masked_scores_and_a_lone_key_get_gradient_zero() -> None:
    arrays = problem(2, 4, 3, 2, 2)
    g = attention_gradients(*arrays, mask=causal_mask(4))
    assert np.all(np.triu(g.S, 1) == 0) and np.all(g.S[0] == 0) and np.all(g.Q[0] == 0) and np.any(g.Q[1] != 0)
    lone = attention_gradients(*problem(2, 1, 3, 2, 2))
    assert np.all(lone.W_Q == 0) and np.all(lone.W_K == 0) and np.any(lone.W_V != 0)


def test_unscaled_attention_with_smaller_queries_is_the_same_function() -> None:
    X, W_Q, W_K, W_V, G = problem(6, 5, 4, 4, 2)
    scaled, absorbed = attention_gradients(X, W_Q, W_K, W_V, G), attention_gradients(X, W_Q / 2, W_K, W_V, G, scale=1)
    np.testing.assert_allclose(absorbed.W_Q, 2 * scaled.W_Q, rtol=1e-12)
    np.testing.assert_allclose(absorbed.W_K, scaled.W_K, rtol=1e-12)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_a_stack_agrees_with_autograd(residual: bool, scale: float | None) -> None:
    torch = torch_or_skip()
    rng = np.random.default_rng(11)
    X, G = rng.standard_normal((2, 5, 3))
    layers = [tuple(rng.standard_normal((3, 3, 3)) / 2) for _ in range(3)]
    found = stack_gradients(X, layers, G, residual=residual, scale=scale)
    tensors = [[torch.asarray(W).clone().requires_grad_(True) for W in layer] for layer in layers]
    Y = torch.asarray(X)
    for W in tensors:
        Y = (Y if residual else 0) + attention(*(Y @ w for w in W), scale=scale)
    (torch.asarray(G) * Y).sum().backward()
    for got, layer in zip(found, tensors, strict=True):
        for name, W in zip(("W_Q", "W_K", "W_V"), layer, strict=True):
            np.testing.assert_allclose(getattr(got, name), np.asarray(W.grad), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("residual", [False, True])
def test_stacks_side_by_side_are_the_stacks_one_by_one(residual: bool) -> None:
    rng = np.random.default_rng(12)
    X, G = rng.standard_normal((2, 4, 5, 3))
    W = rng.standard_normal((2, 3, 4, 3, 3)) / 2
    together = stack_gradients(X, [tuple(layer) for layer in W], G, residual=residual)
    for k in range(4):
        alone = stack_gradients(X[k], [tuple(layer[:, k]) for layer in W], G[k], residual=residual)
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_allclose(one.W_Q[k], other.W_Q, rtol=1e-12)
            np.testing.assert_allclose(one.X[k], other.X, rtol=1e-12)


X, W, G = np.ones((3, 2)), np.ones((2, 2)), np.ones((3, 2))


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: softmax_pullback([0.5, 0.6], [1.0, 0.0]), ValueError, "P: expected probabilities"),
        (lambda: softmax_pullback([0.5, 0.5], [1.0]), ValueError, "dP: expected the shape of P"),
        (lambda: softmax_pullback([0.5, 0.5], [math.nan, 0.0]), ValueError, "dP: expected no NaN"),
        (lambda: softmax_pullback([0.5, 0.5], [-math.inf, 0.0]), ValueError, "dP: expected finite"),
        (lambda: attention_gradients(X, W, W, W, np.ones((3, 1))), ValueError, r"G: expected the shape \(3, 2\)"),
        (lambda: attention_gradients(X, W, W, W, np.ones(2)), ValueError, "G: expected the shape"),
        (lambda: attention_gradients(X, W, W, W, G * math.nan), ValueError, "G: expected no NaN"),
        (lambda: attention_gradients(X, W, W, W, G.astype(np.float32)), TypeError, "one dtype"),
        (lambda: attention_gradients(X, np.ones((3, 2)), W, W, G), ValueError, "W_Q: expected 2 rows"),
        (lambda: attention_gradients(X, W, W, np.ones((1, 2)), G), ValueError, "W_V: expected 2 rows"),
        (lambda: attention_gradients(X, np.ones((2, 1)), W, W, G), ValueError, "W_Q, W_K: expected the same number"),
        (lambda: attention_gradients(np.ones(2), W, W, W, G), ValueError, "X: expected at least 2 dimensions"),
        (lambda: attention_gradients(-np.inf * X, W, W, W, G), ValueError, "X: expected finite"),
        (lambda: attention_gradients(np.ones((0, 2)), W, W, W, G), ValueError, "X: expected no empty axis"),
        (lambda: attention_gradients(X, W, W, W, G, mask=np.zeros((3, 3), bool)), ValueError, "fully masked"),
        (lambda: attention_gradients(X, W, W, W, G, mask=np.ones((2, 2), bool)), ValueError, "mask: expected a shape"),
        (lambda: attention_gradients(X, W, W, W, G, scale=0), ValueError, "scale: expected a positive"),
        (lambda: stage_gradients(X, X, np.ones((2, 2)), G), ValueError, "V: expected 3 rows"),
        (lambda: stack_gradients(X, [], G), ValueError, "layers: expected at least one"),
        (lambda: stack_gradients(X, [(W, W)], G), ValueError, r"layers\[0\]: expected \(W_Q, W_K, W_V\)"),
        (lambda: stack_gradients(X, [(W, W, np.ones((2, 1)))], G), ValueError, r"layers\[0\]: expected W_V"),
        (lambda: stack_gradients(np.ones(3), [(W, W, W)], G), ValueError, "X: expected at least 2 dimensions"),
        (
            lambda: stack_gradients(np.ones((1, 3, 2)), [(W, W, W)], G),
            ValueError,
            r"layers\[0\]: expected the batch axes",
        ),
        (lambda: stack_gradients(X, [(W, W, W)], np.ones((2, 3, 2))), ValueError, "G: expected the batch axes of X"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    "layers, words",
    [
        ([(W, W, "ab")], r"layers\[0\]: expected"),
        ([(W, W, W), None], r"layers\[1\]: expected \(W_Q, W_K, W_V\), got NoneType"),
        ([(np.ones((3, 2)), W, W)], r"layers\[0\]: expected 2 rows"),
        ([(np.ones((2, 1)), W, W)], r"layers\[0\]: expected the same shape of W_Q and W_K"),
        ([(W, np.ones((2, 1)), W)], r"layers\[0\]: expected the same shape of W_Q and W_K"),
        ([(W.astype(np.float32), W, W)], r"layers\[0\].*: expected one array library and one dtype"),
        (None, "layers: expected at least one"),
    ],
)
def test_layers_are_checked_before_anything_is_computed(layers, words) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        stack_gradients(X, layers, G)


def test_overflow_names_the_arguments() -> None:
    with pytest.raises(ValueError, match="X, W_Q, W_K, W_V: "):
        attention_gradients(X * 1e200, W * 1e200, W * 1e200, W, G)
    with pytest.raises(ValueError, match="V, G: expected a result within the range"):
        stage_gradients(X, X, X * 1e200, np.full(X.shape, 1e200))


def test_every_stage_is_its_formula_at_sizes_that_all_differ() -> None:
    rng = np.random.default_rng(7)
    Q, K, V, G = (rng.standard_normal(s) for s in ((3, 2), (5, 2), (5, 4), (3, 4)))
    for scale in (None, 0.3):
        factor = 1 / np.sqrt(2) if scale is None else scale
        P = softmax(factor * Q @ K.T)
        dP = G @ V.T
        dS = P * (dP - (P * dP).sum(axis=1, keepdims=True))
        found = stage_gradients(Q, K, V, G, scale=scale)
        for name, expected in (
            ("P", dP), ("S", dS), ("Q", factor * dS @ K), ("K", factor * dS.T @ Q), ("V", P.T @ G),
        ):  # fmt: skip
            np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-11, atol=1e-13)
    X, W_Q, W_K, W_V, G = problem(3, 3, 6, 2, 4)
    whole, stages = attention_gradients(X, W_Q, W_K, W_V, G), stage_gradients(X @ W_Q, X @ W_K, X @ W_V, G)
    for name in "QKVSP":
        np.testing.assert_allclose(getattr(whole, name), getattr(stages, name), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(whole.W_Q, X.T @ stages.Q, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(whole.X, stages.Q @ W_Q.T + stages.K @ W_K.T + stages.V @ W_V.T, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("more", [-1, 1])
def test_a_shape_that_misfits_by_one_is_named(more: int) -> None:
    X, W_Q, W_K, W_V, G = problem(3, 3, 6, 2, 4)
    for call, words in (
        (lambda: attention_gradients(X, np.ones((6 + more, 2)), W_K, W_V, G), "W_Q: expected 6 rows, the columns of X"),
        (lambda: attention_gradients(X, W_Q, np.ones((6 + more, 2)), W_V, G), "W_K: expected 6 rows, the columns of X"),
        (lambda: attention_gradients(X, W_Q, W_K, np.ones((6 + more, 4)), G), "W_V: expected 6 rows, the columns of X"),
        (lambda: attention_gradients(X, W_Q, np.ones((6, 2 + more)), W_V, G),
         "W_Q, W_K: expected the same number of columns"),
        (lambda: attention_gradients(X, W_Q, W_K, W_V, np.ones((3, 4 + more))), r"G: expected the shape \(3, 4\)"),
        (lambda: attention_gradients(X, W_Q, W_K, W_V, np.ones((3 + more, 4))), r"G: expected the shape \(3, 4\)"),
        (lambda: softmax_pullback([0.25, 0.75], np.ones(2 + more)), "dP: expected the shape of P, got P shape"),
        (lambda: stack_gradients(X, [(W_Q, W_K, np.ones((6, 6 + more)))], X),
         r"layers\[0\]: expected W_V with as many columns as rows, got shape"),
        (lambda: stack_gradients(X, [(W_Q, np.ones((6, 2 + more)), np.eye(6))], X),
         r"layers\[0\]: expected the same shape of W_Q and W_K, got shape"),
        (lambda: stack_gradients(X, [(W_Q, W_K, np.eye(6)), (np.eye(6 + more),) * 3], X),
         r"layers\[1\]: expected 6 rows, the columns of X, in W_Q, W_K and W_V"),
        (lambda: stack_gradients(X, [(W_Q, W_K, np.eye(6), W_V)[: 3 + more]], X),
         rf"layers\[0\]: expected \(W_Q, W_K, W_V\), got {3 + more} arrays"),
        (lambda: stack_gradients(X, [(W_Q, W_K, np.eye(6))], np.ones((3, 6 + more))),
         r"X, layers\[0\], G: G: expected the shape \(3, 6\)"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            call()


def test_a_stack_of_one_layer_is_that_layer() -> None:
    X, W_Q, W_K, W_V, G = problem(3, 3, 4, 2, 4)
    one, alone = stack_gradients(X, [(W_Q, W_K, W_V)], G), attention_gradients(X, W_Q, W_K, W_V, G)
    assert len(one) == 1
    for name in (*NAMES, "Q", "K", "V", "S", "P"):
        np.testing.assert_array_equal(getattr(one[0], name), getattr(alone, name))
    (kept,) = stack_gradients(X, [(W_Q, W_K, W_V)], G, residual=True)
    np.testing.assert_array_equal(kept.X, alone.X)
    with pytest.raises(ValueError, match="layers: expected at least one layer, got list without any"):
        stack_gradients(X, [], G)
    with pytest.raises(TypeError, match="residual: expected True or False"):
        stack_gradients(X, [(W_Q, W_K, W_V)], G, residual="yes")


def test_hundreds_of_columns_fit_as_few_do() -> None:
    X, W = np.ones((2, 300)) / 300, np.ones((300, 300))
    assert attention_gradients(X, W, W, W, X).W_Q.shape == (300, 300)
    assert len(stack_gradients(X, [(W, W, W)] * 2, X)) == 2


def test_records_cannot_be_changed_by_accident() -> None:
    for record in (stage_gradients(X, X, X, G), attention_gradients(X, W, W, W, G)):
        name = dataclasses.fields(record)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, None)


def test_dimensions_that_are_not_those_of_a_formula_are_named() -> None:
    for call, words in (
        (lambda: softmax_pullback(1.0, 1.0), "P: expected at least 1 dimensions"),
        (lambda: attention_gradients(X, W[0], W, W, G), "W_Q: expected at least 2 dimensions"),
        (lambda: stack_gradients(X, [(W, W, W[0])], G), r"layers\[0\]: expected at least 2 dimensions"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
