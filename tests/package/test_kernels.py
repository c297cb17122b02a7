"""Linear attention against its matrix, all at once, as a recurrence and in chunks, and bad input."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from backends import both_backends, make, torch_or_skip
from hypothesis import assume, given
from hypothesis import strategies as st

from attnmath.linear_cost import kernels
from attnmath.operator import cost
from attnmath.operator.attention import causal_mask


def inputs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, n, 3)), rng.normal(size=(2, n, 3)), rng.normal(size=(2, n, 4))


@both_backends
@given(n=st.integers(1, 9), seed=st.integers(0, 30), causal=st.booleans())
def test_linear_attention_is_its_matrix(backend: str, n: int, seed: int, causal: bool) -> None:
    Q, K, V = inputs(n, seed)
    weights = kernels.kernel_weights(Q, K) * (causal_mask(n) if causal else 1)
    expected = weights / weights.sum(axis=-1, keepdims=True) @ V
    arrays = [make(backend, a) for a in (Q, K, V)]
    found = kernels.linear_attention(*arrays, causal=causal)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-12)
    plain = kernels.linear_attention(*arrays, causal=causal, normalise=False)
    np.testing.assert_allclose(np.asarray(plain), weights @ V, rtol=1e-10, atol=1e-12)


@both_backends
@given(n=st.integers(1, 9), chunk=st.integers(1, 11), seed=st.integers(0, 30), normalise=st.booleans())
def test_the_recurrence_and_every_chunk_give_one_result(
    backend: str, n: int, chunk: int, seed: int, normalise: bool
) -> None:
    Q, K, V = inputs(n, seed)
    weights = kernels.kernel_weights(Q, K) * causal_mask(n)
    expected = weights @ V / (weights.sum(axis=-1, keepdims=True) if normalise else 1)
    arrays = [make(backend, a) for a in (Q, K, V)]
    recurrent = kernels.linear_attention_recurrent(*arrays, normalise=normalise)
    chunked = kernels.linear_attention(*arrays, causal=True, normalise=normalise, chunk=chunk)
    for found in (recurrent, chunked):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shapes", [((2, 1, 7, 3), (3, 7, 3), (7, 4)), ((7, 3), (2, 7, 3), (3, 1, 7, 4))])
def test_batches_broadcast_in_every_form(shapes) -> None:
    rng = np.random.default_rng(5)
    Q, K, V = (rng.standard_normal(shape) for shape in shapes)
    weights = kernels.kernel_weights(Q, K) * causal_mask(7)
    expected = weights / weights.sum(axis=-1, keepdims=True) @ V
    for found in (
        kernels.linear_attention_recurrent(Q, K, V),
        *(kernels.linear_attention(Q, K, V, causal=True, chunk=chunk) for chunk in (1, 3, 7)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_a_later_overflow_changes_nothing_before_it() -> None:
    Q, K, V = np.ones((3, 1)), np.asarray([[1.0], [1.0], [1e308]]), np.asarray([[1.0], [2.0], [0.0]])
    features = lambda x: np.where(x > 1e300, x, 1.0)  # noqa: E731
    before = kernels.linear_attention(Q[:2], K[:2], V[:2], features, causal=True)
    after = kernels.linear_attention(np.asarray([[1.0], [1.0], [0.5]]), K, V, features, causal=True)
    np.testing.assert_array_equal(after[:2], before)


def exact(Q, K, V, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Linear attention of features in fractions, and the sum of the weights' terms without signs over their sum."""
    F, G, W = ([[Fraction(float(x)) for x in row] for row in a] for a in (Q, K, V))
    out, lost = [], []
    for i, f in enumerate(F):
        terms = [[x * y for x, y in zip(f, g, strict=True)] for g in (G[: i + 1] if causal else G)]
        total = sum(map(sum, terms))
        out.append([float(sum(sum(t) * w[c] for t, w in zip(terms, W, strict=False)) / total) for c in range(2)])
        lost.append([float(sum(abs(x) for t in terms for x in t) / abs(total))])
    return np.asarray(out), np.asarray(lost)


@both_backends
@given(
    n=st.integers(1, 9),
    r=st.integers(1, 3),
    chunk=st.sampled_from([None, 1, 3, 128]),
    kind=st.sampled_from(["positive", "signed", "sparse", "tiny", "huge"]),
    single=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_features_of_any_size_give_the_quotient(backend, n, r, chunk, kind, single, seed) -> None:
    rng = np.random.default_rng(seed)
    dtype, far = (np.float32, 115) if single else (np.float64, 1010)
    least, most = {"tiny": (-far, -far + 20), "huge": (far - 20, far)}.get(kind, (-far, far))
    F = rng.uniform(0.5, 1, (2, n, r)) * 2.0 ** rng.integers(least, most, (2, n, r))
    F = F * rng.choice([-1, 1], F.shape) if kind == "signed" else F
    F = F * (rng.random(F.shape) < 0.6) if kind == "sparse" else F
    F[..., 0] = np.where(F[..., 0] == 0, 2.0**-far, F[..., 0])  # no query without weights
    (Q, K), V = F.astype(dtype), rng.standard_normal((n, 2)).astype(dtype)
    expected, lost = exact(Q, K, V, causal=chunk is not None)
    assume(lost.max() < 100)
    options = {} if chunk is None else {"causal": True, "chunk": chunk}
    arrays = [make(backend, a, np.dtype(dtype).name) for a in (Q, K, V)]
    found = kernels.linear_attention(*arrays, lambda x: x, **options)
    assert np.asarray(found).dtype == dtype
    assert np.all(np.abs(np.asarray(found) - expected) <= 1000 * lost**2 * np.finfo(dtype).eps)


@both_backends
def test_queries_and_keys_whose_features_underflow_together_have_a_mean(backend: str) -> None:
    Q, V = make(backend, np.full((3, 1), -400.0)), make(backend, np.asarray([[1.0], [2.0], [6.0]]))
    for options, expected in (({}, [3.0, 3.0, 3.0]), ({"causal": True}, [1.0, 1.5, 3.0])):
        found = kernels.linear_attention(Q, Q, V, **options)
        np.testing.assert_allclose(np.asarray(found)[:, 0], expected, rtol=1e-14)
        assert np.all(np.asarray(kernels.linear_attention(Q, Q, V, normalise=False, **options)) == 0)
    with pytest.raises(ValueError, match="expected weights that do not sum to 0"):
        kernels.linear_attention_recurrent(Q, Q, V)


def test_scaling_by_powers_of_two_changes_no_bit() -> None:
    Q, K, V = inputs(300, 6)
    for causal in (False, True):
        usual = kernels.linear_attention(Q, K, V, causal=causal)
        for q, k in ((1e60, 1e60), (1e-60, 1e-60), (1e90, 1e-200)):
            q, k = (2.0 ** round(np.log2(x)) for x in (q, k))
            sizes = iter((q, k))
            scaled = kernels.linear_attention(
                Q, K, V, lambda x, sizes=sizes: kernels.elu_plus_one(x) * next(sizes), causal=causal
            )
            np.testing.assert_array_equal(scaled, usual)


def test_a_key_that_rises_far_does_not_change_what_came_before() -> None:
    rng = np.random.default_rng(8)
    K = np.exp(rng.normal(-300, 20, (40, 2)))
    Q, V = np.exp(rng.normal(-400, 20, (40, 2))), rng.standard_normal((40, 2))
    before = kernels.linear_attention(Q, K, V, lambda x: x, causal=True)
    K[30], V[30] = 1e300, -9.0
    after = kernels.linear_attention(Q, K, V, lambda x: x, causal=True)
    np.testing.assert_allclose(after[:30], before[:30], rtol=1e-12)
    np.testing.assert_allclose(after[30:], -9.0, rtol=1e-12)


def test_half_precision_is_summed_in_single() -> None:
    Q, V = np.full((2000, 8), 9.0, np.float16), np.full((2000, 1), 2.0, np.float16)
    for causal in (False, True):
        found = kernels.linear_attention(Q, Q, V, causal=causal)
        assert found.dtype == np.float16 and np.all(found == 2)


def test_gradients_are_finite_where_features_underflow_together() -> None:
    torch = torch_or_skip()
    X = torch.full((3, 1), -400.0, dtype=torch.float64, requires_grad=True)
    V = torch.tensor([[1.0], [2.0], [6.0]], dtype=torch.float64)
    out = kernels.linear_attention(X, X, V, torch.exp)
    (found,) = torch.autograd.grad(out.sum(), X)
    np.testing.assert_allclose(np.asarray(found)[:, 0], [-2, -1, 3], rtol=1e-12)


def test_gradients_flow_through_the_chunks() -> None:
    torch = torch_or_skip()
    Q, K, V = (torch.tensor(a, requires_grad=True) for a in inputs(7, 3))
    by_chunks, by_steps = (
        torch.autograd.grad(call.square().sum(), (Q, K, V))
        for call in (
            kernels.linear_attention(Q, K, V, torch_elu, causal=True, chunk=3),
            kernels.linear_attention_recurrent(Q, K, V, torch_elu),
        )
    )
    for a, b in zip(by_chunks, by_steps, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-11)


def torch_elu(x):
    return torch_or_skip().nn.functional.elu(x) + 1


def test_the_causal_form_holds_no_array_of_all_states() -> None:
    n, d = 2048, 32
    arrays = cost.random_inputs(n, d, np.random.default_rng(0))
    peak = cost.peak_memory(lambda: kernels.linear_attention(*arrays, causal=True))
    assert peak < 8 * n * (8 * d)  # a few arrays of n x d; the states of all positions would take n x d x d


@pytest.mark.parametrize("chunk, error", [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("8", TypeError)])
def test_a_chunk_is_a_positive_integer(chunk, error) -> None:
    with pytest.raises(error, match="chunk: expected a positive integer"):
        kernels.linear_attention(np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 1)), causal=True, chunk=chunk)


def test_a_chunk_is_128_tokens_unless_given() -> None:
    arrays = cost.random_inputs(300, 3, np.random.default_rng(0))
    usual, as_said, other = (
        kernels.linear_attention(*arrays, causal=True, **options) for options in ({}, {"chunk": 128}, {"chunk": 7})
    )
    np.testing.assert_array_equal(usual, as_said)
    assert np.any(usual != other)


def test_the_recurrence_names_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="Q, K: expected as many queries as keys"):
        kernels.linear_attention_recurrent(np.ones((1, 2)), np.ones((2, 2)), np.ones((2, 1)))
    with pytest.raises(ValueError, match="feature: expected weights that do not sum to 0"):
        kernels.linear_attention_recurrent(np.ones((2, 1)), [[1.0], [-1.0]], np.ones((2, 1)), lambda x: x)
    with pytest.raises(ValueError, match="Q, K, V, feature: expected a result within the range"):
        kernels.linear_attention_recurrent([[1.0], [1.0]], [[1e308], [1e308]], [[1.0], [1.0]])


def test_a_later_token_does_not_change_what_came_before() -> None:
    Q, K, V = inputs(6, 1)
    before = kernels.linear_attention(Q, K, V, causal=True)
    K[:, -1], V[:, -1] = 9.0, -9.0
    np.testing.assert_array_equal(kernels.linear_attention(Q, K, V, causal=True)[:, :-1], before[:, :-1])


def test_the_feature_map_is_positive_and_smooth_at_0() -> None:
    x = np.asarray([-800.0, -1.0, -1e-9, 0.0, 1e-9, 5.0])
    np.testing.assert_allclose(kernels.elu_plus_one(x), [0, np.exp(-1), 1, 1, 1, 6], rtol=1e-8)
    assert np.all(np.diff(kernels.elu_plus_one(np.linspace(-5, 5, 101))) > 0)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: kernels.linear_attention(np.ones((2, 2)), np.ones((2, 3)), np.ones((2, 1))), ValueError, "Q, K: "),
        (lambda: kernels.linear_attention(np.ones((2, 2)), np.ones((2, 2)), np.ones((3, 1))), ValueError, "V: expect"),
        (
            lambda: kernels.linear_attention(np.ones((1, 2)), np.ones((2, 2)), np.ones((2, 1)), causal=True),
            ValueError,
            "causal: expected as many queries as keys",
        ),
        (
            lambda: kernels.linear_attention(np.ones((1, 1)), [[1.0], [-1.0]], np.ones((2, 1)), lambda x: x),
            ValueError,
            "feature: expected weights that do not sum to 0",
        ),
        (lambda: kernels.kernel_weights([[1.0]], [[np.nan]]), ValueError, "K: expected no NaN"),
        (lambda: kernels.kernel_weights([[1.0]], [[1.0]], lambda x: x[0]), ValueError, "feature: expected features"),
        (lambda: kernels.elu_plus_one([np.inf]), ValueError, "x: expected"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


def test_overflow_names_its_arguments() -> None:
    for causal in (False, True):
        with pytest.raises(ValueError, match="Q, K, V, feature: expected a result within the range"):
            kernels.linear_attention([[1.0], [1.0]], [[1.0], [1.0]], [[1.6e308], [1.6e308]], causal=causal)
    with pytest.raises(ValueError, match="Q, K, V, feature: expected a result within the range"):
        kernels.linear_attention([[1.0]], [[1e308], [1e308]], [[1.0], [1.0]], normalise=False)
    with pytest.raises(TypeError, match="feature: expected a function, got NoneType"):
        kernels.kernel_weights([[1.0]], [[1.0]], None)


def test_features_and_values_that_do_not_fit_are_named() -> None:
    Q, K, V = np.ones((3, 2)), np.ones((4, 2)), np.ones((4, 5))
    for d_k in (1, 3):
        with pytest.raises(ValueError, match="Q, K: expected the same last axis d_k, got Q shape"):
            kernels.kernel_weights(np.ones((3, d_k)), K)
    for rows in (3, 5):
        with pytest.raises(ValueError, match="V: expected 4 rows, one for each key, got shape"):
            kernels.linear_attention(Q, K, np.ones((rows, 5)))
    for queries in (3, 5):
        with pytest.raises(ValueError, match="causal: expected as many queries as keys, got shape"):
            kernels.linear_attention(np.ones((queries, 2)), K, V, causal=True)
    lost = {  # features of fewer rows, of another width for the keys, and of none
        "rows": lambda x: x[:1],
        "widths": lambda x: x[:, : len(x) - 2],
    }
    for feature in lost.values():
        with pytest.raises(ValueError, match="feature: expected features along the last axis, got shape"):
            kernels.kernel_weights(Q, K, feature)
    with pytest.raises(TypeError, match="feature: expected a function, got int"):
        kernels.kernel_weights(Q, K, 3)


def test_linear_attention_is_a_normalised_mean_unless_said_otherwise() -> None:
    rng = np.random.default_rng(2)
    Q, K, V = rng.standard_normal((3, 2)), rng.standard_normal((4, 2)), rng.standard_normal((4, 5))
    phi = [np.where(a > 0, a + 1, np.exp(a)) for a in (Q, K)]
    weights = phi[0] @ phi[1].T
    np.testing.assert_allclose(kernels.kernel_weights(Q, K), weights, rtol=1e-14)
    expected = weights / weights.sum(axis=1, keepdims=True) @ V
    np.testing.assert_allclose(kernels.linear_attention(Q, K, V), expected, rtol=1e-13)
    squares = kernels.kernel_weights(Q, K, np.square)
    np.testing.assert_allclose(squares, Q**2 @ (K**2).T, rtol=1e-14)
    with pytest.raises(ValueError, match="Q, K, feature: expected weights that do not sum to 0"):
        kernels.linear_attention(np.ones((1, 1)), np.asarray([[1.0], [-1.0]]), np.ones((2, 1)), lambda x: x)
    plain = kernels.linear_attention(
        np.ones((1, 1)), np.asarray([[1.0], [-1.0]]), np.asarray([[3.0], [5.0]]), lambda x: x, normalise=False
    )
    assert plain.tolist() == [[-2.0]]


def test_hundreds_of_keys_and_features_fit_as_few_do() -> None:
    Q, K, V = np.ones((300, 400)), np.ones((300, 400)), np.ones((300, 2))
    for causal in (False, True):
        np.testing.assert_allclose(kernels.linear_attention(Q, K, V, causal=causal), V, rtol=1e-12)


def test_dimensions_that_are_not_those_of_a_formula_are_named() -> None:
    for call, words in (
        (lambda: kernels.kernel_weights(np.ones(2), np.ones((2, 2))), "Q: expected at least 2 dimensions"),
        (lambda: kernels.kernel_weights(np.ones((2, 2)), np.ones(2)), "K: expected at least 2 dimensions"),
        (
            lambda: kernels.linear_attention(np.ones((2, 2)), np.ones((2, 2)), np.ones(2)),
            "V: expected at least 2 dimensions",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()
