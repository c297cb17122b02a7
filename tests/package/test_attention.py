"""Softmax and attention on both backends: their laws, their extremes, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import both_backends, make, torch_or_skip
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnmath.operator.attention import (
    attention,
    attention_weights,
    causal_mask,
    entropy,
    jacobian_norm,
    masked,
    padding_mask,
    scores,
    softmax,
    softmax_jacobian,
)

EPS = np.finfo(np.float64).eps
logits = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=8),
    elements=st.floats(-1e4, 1e4),
)
extreme_logits = hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(-1.7e308, 1.7e308))
moderate = st.floats(-8, 8)


@st.composite
def qkv(draw: st.DrawFn) -> tuple[np.ndarray, ...]:
    n, m, d_k, d_v = (draw(st.integers(1, 6)) for _ in range(4))
    return tuple(draw(hnp.arrays(np.float64, shape, elements=moderate)) for shape in ((n, d_k), (m, d_k), (m, d_v)))


def sum_tolerance(n: int) -> float:
    """Rounding of a sum of n positive terms, and of the quotients that went into it."""
    return (n + 2) * EPS


@both_backends
@given(x=logits)
def test_rows_are_distributions(backend: str, x: np.ndarray) -> None:
    y = np.asarray(softmax(make(backend, x)))
    assert np.all(y >= 0)
    np.testing.assert_allclose(y.sum(axis=-1), 1, rtol=0, atol=sum_tolerance(x.shape[-1]))


@both_backends
@given(x=extreme_logits)
def test_extreme_logits_stay_finite(backend: str, x: np.ndarray) -> None:
    y = np.asarray(softmax(make(backend, x)))
    assert np.all(np.isfinite(y)) and y[np.argmax(x)] >= 1 / len(x) - sum_tolerance(len(x))


@both_backends
@given(x=logits, shift=st.floats(-1e4, 1e4))
def test_a_common_shift_changes_nothing(backend: str, x: np.ndarray, shift: float) -> None:
    # Adding the shift rounds each logit by half an ulp of the sum, which exp turns into a relative error.
    moved = np.asarray(softmax(make(backend, x + shift)))
    rounding = EPS * (np.abs(x).max() + abs(shift) + 4 * x.shape[-1])
    np.testing.assert_allclose(moved, np.asarray(softmax(make(backend, x))), rtol=4 * rounding, atol=1e-300)


@both_backends
@given(x=logits, seed=st.integers(0, 99))
def test_permuting_logits_permutes_weights(backend: str, x: np.ndarray, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(x.shape[-1])
    left = np.asarray(softmax(make(backend, x[..., order])))
    right = np.asarray(softmax(make(backend, x)))[..., order]
    np.testing.assert_allclose(left, right, rtol=sum_tolerance(x.shape[-1]), atol=0)


@both_backends
def test_axis_and_temperature(backend: str) -> None:
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(np.asarray(softmax(make(backend, x), axis=0)).sum(axis=0), 1, atol=4 * EPS)
    hot, cold = (np.asarray(softmax(make(backend, x), temperature=t)) for t in (1e9, 1e-3))
    np.testing.assert_allclose(hot, 1 / 3, atol=1e-8)
    np.testing.assert_array_equal(cold, [[0, 0, 1], [0, 0, 1]])


@given(x=hnp.arrays(np.float64, st.integers(1, 7), elements=st.floats(-20, 20)))
def test_jacobian_is_the_derivative_that_autograd_finds(x: np.ndarray) -> None:
    torch = torch_or_skip()
    tensor = make("torch", x)
    found = torch.autograd.functional.jacobian(softmax, tensor)
    np.testing.assert_allclose(
        np.asarray(softmax_jacobian(softmax(tensor))), np.asarray(found), atol=8 * len(x) * EPS, rtol=0
    )


@both_backends
@given(x=hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 7)), elements=st.floats(-20, 20)))
def test_jacobian_is_symmetric_semidefinite_and_kills_constants(backend: str, x: np.ndarray) -> None:
    y = softmax(make(backend, x))
    J = np.asarray(softmax_jacobian(y))
    np.testing.assert_array_equal(J, np.swapaxes(J, -1, -2))
    np.testing.assert_allclose(J.sum(axis=-1), 0, atol=4 * x.shape[-1] * EPS)
    assert np.linalg.eigvalsh(J).min() >= -4 * x.shape[-1] * EPS
    np.testing.assert_allclose(np.asarray(jacobian_norm(y)), np.linalg.norm(J, axis=(-2, -1)), atol=1e-14)


def test_jacobian_norm_is_accurate_where_the_matrix_rounds_to_zero() -> None:
    y = softmax(np.asarray([0.0, 50.0]))
    assert jacobian_norm(y) == pytest.approx(2 * math.exp(-50), rel=1e-12, abs=0)
    assert np.linalg.norm(softmax_jacobian(y)) != pytest.approx(2 * math.exp(-50), rel=1e-3, abs=0)


@both_backends
def test_entropy(backend: str) -> None:
    p = make(backend, [[0.25] * 4, [1.0, 0, 0, 0]])
    np.testing.assert_allclose(np.asarray(entropy(p)), [math.log(4), 0], atol=4 * EPS)


@given(arrays=qkv())
def test_attention_agrees_with_torch(arrays: tuple[np.ndarray, ...]) -> None:
    torch = torch_or_skip()
    Q, K, V = (make("torch", a) for a in arrays)
    expected = torch.nn.functional.scaled_dot_product_attention(Q, K, V)
    # The scores are at most 64 sqrt(d_k) in size; their rounding is amplified by exp and by V.
    bound = 64 * Q.shape[1] ** 1.5 * 16 * EPS * float(V.abs().max() + 1)
    np.testing.assert_allclose(np.asarray(attention(Q, K, V)), np.asarray(expected), rtol=0, atol=bound)
    np.testing.assert_allclose(attention(*arrays), np.asarray(expected), rtol=0, atol=bound)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float64", 1e-14)])
def test_masked_attention_agrees_with_torch(dtype: str, tolerance: float) -> None:
    torch = torch_or_skip()
    rng = np.random.default_rng(7)
    Q, K, V = (make("torch", rng.standard_normal((2, 3, 6, 4)), dtype) for _ in range(3))
    mask = causal_mask(6, like=Q) & padding_mask(torch.asarray([6, 3]), 6)[:, None]
    expected = torch.nn.functional.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    np.testing.assert_allclose(np.asarray(attention(Q, K, V, mask=mask)), np.asarray(expected), atol=tolerance)


@both_backends
@given(arrays=qkv(), seed=st.integers(0, 99))
def test_attention_is_permutation_equivariant(backend: str, arrays: tuple[np.ndarray, ...], seed: int) -> None:
    Q, K, V = arrays
    rng = np.random.default_rng(seed)
    rows, keys = rng.permutation(len(Q)), rng.permutation(len(K))
    plain = np.asarray(attention(*(make(backend, a) for a in arrays)))
    moved = np.asarray(attention(*(make(backend, a) for a in (Q[rows], K[keys], V[keys]))))
    np.testing.assert_allclose(moved, plain[rows], rtol=0, atol=64 * Q.shape[1] ** 1.5 * 16 * EPS * 9)


@both_backends
def test_masked_positions_get_weight_zero(backend: str) -> None:
    Q = make(backend, np.random.default_rng(3).standard_normal((5, 2)))
    P = np.asarray(attention_weights(Q, Q, mask=causal_mask(5, like=Q)))
    assert np.all(np.triu(P, 1) == 0) and np.all(np.tril(P).sum(axis=1) == pytest.approx(1))


def test_half_precision_is_served_on_both_backends() -> None:
    torch = torch_or_skip()
    for dtype in ("float16", "bfloat16"):
        y = softmax(make("torch", [1.0, 2.0, 3.0], dtype))
        assert y.dtype == getattr(torch, dtype) and float(y.sum()) == pytest.approx(1, abs=0.02)
    assert softmax(np.asarray([1, 2], dtype=np.float16)).dtype == np.float16


def test_integers_and_lists_become_floating() -> None:
    np.testing.assert_allclose(softmax([0, 0]), [0.5, 0.5])
    torch = torch_or_skip()
    assert softmax(torch.asarray([1, 1])).dtype == torch.float32


def test_keys_may_be_fewer_than_queries() -> None:
    assert scores(np.ones((5, 2)), np.ones((3, 2))).shape == (5, 3)


NAN, INF = math.nan, math.inf
ONES = np.ones((2, 2))


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: softmax([1.0, NAN]), ValueError, "x: expected no NaN"),
        (lambda: softmax([1.0, INF]), ValueError, "x: expected no \\+inf"),
        (lambda: softmax([-INF, -INF]), ValueError, "fully masked"),
        (lambda: softmax([]), ValueError, "x: expected no empty axis"),
        (lambda: softmax(3.0), ValueError, "x: expected at least 1 dimension"),
        (lambda: softmax([True, False]), TypeError, "x: expected real numbers"),
        (lambda: softmax([1j]), TypeError, "x: expected real numbers"),
        (lambda: softmax("abc"), TypeError, "x: expected"),
        (lambda: softmax([1.0], temperature=0), ValueError, "temperature: expected a positive"),
        (lambda: softmax([1.0], temperature=NAN), ValueError, "temperature: expected a positive"),
        (lambda: softmax([1.0], temperature="1"), TypeError, "temperature: expected a positive"),
        (lambda: softmax([1.0], axis=1), ValueError, "axis: expected"),
        (lambda: softmax_jacobian([0.5, 0.6]), ValueError, "y: expected probabilities"),
        (lambda: entropy([-0.5, 1.5]), ValueError, "p: expected probabilities"),
        (lambda: scores(ONES, np.ones((2, 3))), ValueError, "Q, K: expected the same last axis"),
        (lambda: scores(ONES[0], ONES), ValueError, "Q: expected at least 2 dimensions"),
        (lambda: scores(np.ones((2, 0)), np.ones((2, 0))), ValueError, "Q: expected no empty axis"),
        (lambda: scores(ONES * INF, ONES), ValueError, "Q: expected no \\+inf"),
        (lambda: scores(-ONES * INF, ONES), ValueError, "Q: expected finite"),
        (lambda: scores(ONES, ONES.astype(np.float32)), TypeError, "one dtype"),
        (lambda: scores(ONES, ONES, scale=-1), ValueError, "scale: expected a positive"),
        (lambda: attention(ONES, ONES, np.ones((3, 1))), ValueError, "V: expected 2 rows"),
        (lambda: attention(ONES, ONES, ONES * NAN), ValueError, "V: expected no NaN"),
        (lambda: attention_weights(ONES, ONES, mask=ONES), TypeError, "mask: expected booleans"),
        (lambda: attention_weights(ONES, ONES, mask=np.ones((3, 3), bool)), ValueError, "mask: expected a shape"),
        (lambda: attention_weights(ONES, ONES, mask=np.zeros((2, 2), bool)), ValueError, "fully masked"),
        (lambda: masked(ONES, np.ones((5, 2, 2), bool)), ValueError, "mask: expected a shape"),
        (lambda: causal_mask(0), ValueError, "n: expected a positive integer"),
        (lambda: causal_mask(2.0), TypeError, "n: expected a positive integer"),
        (lambda: padding_mask([0], 3), ValueError, "lengths: expected values from 1 to 3"),
        (lambda: padding_mask([1.5], 3), TypeError, "lengths: expected"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


def test_mixed_libraries_are_refused() -> None:
    with pytest.raises(TypeError, match="one array library|Multiple namespaces"):
        scores(ONES, make("torch", ONES))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("temperature", [5e-324, 1e-46, 1e-8, 1e-4, 3.0, 1e5, 1e39, 1e308])
def test_every_temperature_gives_one_answer_on_both_backends(dtype: str, temperature: float) -> None:
    x = np.asarray([0.0, -1.0, 0.0, -math.inf]) * (1.0 if temperature < 1 else 4.0)
    found = [np.asarray(softmax(make(backend, x, dtype), temperature=temperature)) for backend in ("numpy", "torch")]
    np.testing.assert_allclose(found[0], found[1], rtol=4 * float(np.finfo(dtype).eps))
    expected = softmax(make("numpy", x), temperature=temperature)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=4 * float(np.finfo(dtype).eps))


@both_backends
def test_scores_beyond_the_floats_are_an_error(backend: str) -> None:
    Q, K = (make(backend, a) for a in ([[1e200, 1e200]], [[1e200, -1e200]]))
    with pytest.raises(ValueError, match="Q, K: expected a result within the range"):
        scores(Q, K)
    with pytest.raises(ValueError, match="Q, K, scale: expected a result within the range"):
        scores(make(backend, [[3.0]], "float32"), make(backend, [[1.0]], "float32"), scale=1e300)


@both_backends
def test_batches_that_do_not_broadcast_are_named(backend: str) -> None:
    two, three = make(backend, np.ones((2, 4, 3))), make(backend, np.ones((3, 4, 3)))
    with pytest.raises(ValueError, match="Q, K: expected batch axes that broadcast"):
        scores(two, three)
    with pytest.raises(ValueError, match="V: expected batch axes that broadcast"):
        attention(two, two, three)


def test_gradients_flow_through_and_no_warning_is_given() -> None:
    torch = torch_or_skip()
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    entropy(softmax(x)).backward()
    assert x.grad is not None and bool(x.grad.isfinite().all())


@pytest.mark.parametrize("d_k", [1, 3])
def test_queries_and_keys_of_other_widths_are_named_whichever_is_wider(d_k: int) -> None:
    with pytest.raises(ValueError, match=rf"Q, K: expected the same last axis d_k, got Q shape \(2, {d_k}\)"):
        scores(np.ones((2, d_k)), ONES)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_value_for_each_key_no_more_and_no_less(rows: int) -> None:
    with pytest.raises(ValueError, match=rf"V: expected 2 rows, one for each key, got shape \({rows}, 2\)"):
        attention(np.ones((4, 2)), ONES, np.ones((rows, 2)))


def test_lengths_run_from_one_to_n() -> None:
    assert padding_mask([1, 3], 3).shape == (2, 1, 3) and padding_mask([1, 3], 3).sum() == 4
    for lengths in ([0, 3], [1, 4]):
        with pytest.raises(ValueError, match=r"lengths: expected values from 1 to 3, got"):
            padding_mask(lengths, 3)
    with pytest.raises(TypeError, match="like: expected an array, got list"):
        causal_mask(2, like=[1.0])
    assert causal_mask(1).tolist() == [[True]]


def test_one_row_of_scores_may_be_masked() -> None:
    assert masked([1.0, 2.0], [True, False]).tolist() == [1.0, -math.inf]
    assert masked(np.ones((2, 2)), [True, False]).tolist() == [[1.0, -math.inf]] * 2
    with pytest.raises(ValueError, match=r"mask: expected a shape that broadcasts to \(2,\), got shape \(2, 2\)"):
        masked([1.0, 2.0], np.ones((2, 2), bool))


def test_a_scale_is_one_over_the_root_of_the_width_unless_given() -> None:
    rng = np.random.default_rng(5)
    Q, K, V = rng.standard_normal((2, 3)), rng.standard_normal((4, 3)), rng.standard_normal((4, 5))
    S = Q @ K.T
    np.testing.assert_allclose(scores(Q, K), S / np.sqrt(3), rtol=1e-14)
    np.testing.assert_allclose(scores(Q, K, scale=0.25), S / 4, rtol=1e-14)
    np.testing.assert_allclose(attention_weights(Q, K, scale=0.25), softmax(S / 4), rtol=1e-14)
    np.testing.assert_allclose(attention(Q, K, V, scale=0.25), softmax(S / 4) @ V, rtol=1e-13)
    np.testing.assert_allclose(softmax(S), np.exp(S) / np.exp(S).sum(axis=1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(softmax(S, axis=0, temperature=2.0), softmax(S.T / 2).T, rtol=1e-14)


def test_the_row_that_sees_nothing_is_named_by_its_mask() -> None:
    with pytest.raises(ValueError, match=r"mask: x: expected a finite logit in every slice"):
        attention_weights(ONES, ONES, mask=np.asarray([[True, True], [False, False]]))


def test_hundreds_of_keys_and_columns_fit_as_few_do() -> None:
    Q, K, V = np.ones((2, 300)), np.ones((400, 300)), np.ones((400, 3))
    assert scores(Q, K).shape == (2, 400)
    np.testing.assert_allclose(attention(Q, K, V), np.ones((2, 3)), rtol=1e-12)


def test_one_dimension_too_few_is_named() -> None:
    for call, words in (
        (lambda: scores(ONES, ONES[0]), "K: expected at least 2 dimensions, got shape"),
        (lambda: attention(ONES, ONES, ONES[0]), "V: expected at least 2 dimensions, got shape"),
        (lambda: masked(1.0, True), "S: expected at least 1 dimensions, got shape"),
        (lambda: entropy(1.0), "p: expected at least 1 dimensions, got shape"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.parametrize("dtype, large", [("float64", 1.5e308), ("float32", 3e38), ("float16", 6e4)])
def test_softmax_divides_differences_that_are_out_of_range(dtype: str, large: float) -> None:
    found = softmax(np.asarray([large, -large], dtype=dtype), temperature=large)
    np.testing.assert_allclose(found, [1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))], rtol=2e-3)
    np.testing.assert_array_equal(softmax(np.asarray([large, -large], dtype=dtype)), [1, 0])


def test_softmax_at_a_high_temperature_has_the_digits_of_the_plain_quotient() -> None:
    x = np.random.default_rng(4).normal(size=(50, 7)) * 40
    shifted = np.exp((x - x.max(axis=-1, keepdims=True)) / 3)
    np.testing.assert_array_equal(softmax(x, temperature=3.0), shifted / shifted.sum(axis=-1, keepdims=True))


def test_half_precision_has_room_for_many_keys() -> None:
    n = 70_000  # more than the largest number of half precision
    assert float(softmax(np.zeros(n, np.float16)).sum(dtype=np.float64)) == pytest.approx(1, rel=1e-2)
    torch = torch_or_skip()
    for dtype in (torch.float16, torch.bfloat16):
        assert float(softmax(torch.zeros(n, dtype=dtype)).double().sum()) == pytest.approx(1, rel=1e-2)


def test_the_norm_of_a_jacobian_near_saturation_is_no_zero() -> None:
    for dtype, tiny in (("float64", 1e-200), ("float32", 1e-25), ("float16", 1e-4)):
        found = jacobian_norm(np.asarray([1.0, tiny], dtype=dtype))
        assert float(found) == pytest.approx(2 * tiny, rel=2e-3)
    y = softmax(np.random.default_rng(5).normal(size=(6, 9)) * 3)
    np.testing.assert_allclose(jacobian_norm(y), np.linalg.norm(softmax_jacobian(y), axis=(-2, -1)), rtol=1e-13)
