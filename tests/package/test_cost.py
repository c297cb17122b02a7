"""Counts against an independent count, one pass against the full matrix, and what both refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp
from backends import both_backends, make
from hypothesis import given
from hypothesis import strategies as st

from attnmath import checks
from attnmath.fixed_attention import mechanisms
from attnmath.linear_cost.kernels import linear_attention
from attnmath.operator import cost, online
from attnmath.operator.attention import attention
from attnmath.operator.cost import (
    attention_operations,
    counted_attention,
    linear_attention_operations,
    peak_memory,
    projection_operations,
    random_inputs,
)
from attnmath.operator.online import Summary, merge, online_attention, summarise


@given(n=st.integers(1, 5), d=st.integers(1, 4), d_v=st.integers(1, 3))
def test_counted_operations_follow_the_formulas(n: int, d: int, d_v: int) -> None:
    rng = np.random.default_rng(0)
    Q, K, V = rng.standard_normal((n, d)), rng.standard_normal((n, d)), rng.standard_normal((n, d_v))
    output, counts = counted_attention(Q, K, V)
    assert counts == attention_operations(n, d, d_v)
    np.testing.assert_allclose(output, attention(Q, K, V), rtol=0, atol=1e-13)


@given(
    n=st.integers(1, 6),
    r=st.integers(1, 3),
    d_v=st.integers(1, 3),
    form=st.sampled_from([{"causal": False}, {"causal": True}, *({"causal": True, "chunk": c} for c in (1, 2, 3, 9))]),
)
def test_counted_linear_attention_follows_its_formulas(n: int, r: int, d_v: int, form) -> None:
    rng = np.random.default_rng(0)
    Q, K = np.exp(rng.standard_normal((2, n, r)))
    V = rng.standard_normal((n, d_v))
    output, counts = cost.counted_linear_attention(Q, K, V, **form)
    assert counts == cost.linear_attention_operations(n, r, d_v, **form)
    expected = linear_attention(Q, K, V, lambda x: x, causal=form["causal"])
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-12)


def test_linear_attention_is_counted_in_symbols_as_in_numbers() -> None:
    n, r, d, c = sp.symbols("n r d c", positive=True, integer=True)
    for form in ({"causal": False}, {"causal": True}, {"causal": True, "chunk": c}):
        formula = sum(cost.linear_attention_operations(n, r, d, **form).values())
        numbers = {**form, "chunk": 3} if "chunk" in form else form
        found = sum(cost.linear_attention_operations(12, 5, 7, **numbers).values())
        assert formula.subs({n: 12, r: 5, d: 7, c: 3}) == found
    assert cost.linear_attention_operations(4, 2, 2) == {
        "table": 0,
        "sums": 2 * 2 * (4 + 3) + 2 * 3,
        "numerators": 4 * 2 * (2 + 1),
        "denominators": 4 * (2 + 1),
        "quotients": 4 * 2,
    }
    lengths = cost.linear_attention_operations(np.asarray([64.0, 128.0]), 4, 4, causal=True, chunk=32)["table"]
    assert lengths.tolist() == [2 * 32 * 32 * 7, 4 * 32 * 32 * 7]


def test_counted_linear_attention_names_bad_input() -> None:
    for arrays, words in (
        (([[1.0]], [[1.0, 2.0]], [[1.0]]), "Q, K, V: expected shapes"),
        (([[1.0], [1.0]], [[1.0], [-1.0]], [[1.0], [1.0]]), "Q, K: expected weights that do not sum to 0"),
        (([[1e200]], [[1e200]], [[1.0]]), "Q, K, V: expected a result within the range"),
    ):
        with pytest.raises(ValueError, match=words):
            cost.counted_linear_attention(*arrays)
    for causal in (False, True):
        with pytest.raises(ValueError, match="chunk: expected a positive integer"):
            cost.counted_linear_attention([[1.0]], [[1.0]], [[1.0]], causal=causal, chunk=0)
        with pytest.raises(ValueError, match="chunk: expected a positive integer"):
            cost.linear_attention_operations(4, 2, 2, causal=causal, chunk=-1)


def test_a_chunk_without_a_causal_mask_has_no_effect() -> None:
    assert cost.linear_attention_operations(4, 2, 2, chunk=2) == cost.linear_attention_operations(4, 2, 2)
    arrays = np.ones((3, 2)), np.ones((3, 2)), np.ones((3, 1))
    assert cost.counted_linear_attention(*arrays, chunk=2) == cost.counted_linear_attention(*arrays)


def test_projection_operations() -> None:
    assert projection_operations(2, 3, 4) == 2 * 4 * 5


@both_backends
@given(n=st.integers(1, 6), m=st.integers(1, 9), block=st.integers(1, 10), seed=st.integers(0, 50))
def test_one_pass_agrees_with_the_matrix(backend: str, n: int, m: int, block: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Q, K, V = (make(backend, 4 * rng.standard_normal(shape)) for shape in ((2, n, 3), (2, m, 3), (2, m, 2)))
    # Scores below about 200 carry an error of 200 ulps into the exponentials; values are below 20.
    np.testing.assert_allclose(
        np.asarray(online_attention(Q, K, V, block=block)), np.asarray(attention(Q, K, V)), rtol=0, atol=1e-11
    )


def test_extreme_scores_survive_the_merge() -> None:
    low, high = (summarise(np.asarray([[s]]), np.asarray([[v]])) for s, v in ((-1e300, 1.0), (1e300, 2.0)))
    with np.errstate(over="ignore"):
        joined = merge(low, high)
    assert joined.o / joined.l == 2.0


def test_peak_memory_sees_an_array() -> None:
    assert peak_memory(lambda: np.zeros(10**6)) == pytest.approx(8e6, rel=0.01)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: counted_attention([[1.0]], [[1.0, 2.0]], [[1.0]]), ValueError, "Q, K, V: expected shapes"),
        (lambda: online_attention(np.ones((1, 2)), np.ones((3, 2)), np.ones((2, 1))), ValueError, "V: expected 3 rows"),
        (lambda: online_attention(np.ones((1, 2)), np.ones((3, 2)), np.ones((3, 1)), block=0), ValueError, "block"),
        (lambda: summarise(np.ones((2, 1, 3)), np.ones((2, 2, 1))), ValueError, "V: expected 3 rows"),
        (lambda: merge(*(summarise(np.ones((1, 1)), np.ones((1, d_v))) for d_v in (2, 3))), ValueError, "of one shape"),
        (lambda: online_attention(np.ones((1, 2)), np.full((3, 2), np.nan), np.ones((3, 1))), ValueError, "K: .*NaN"),
        (lambda: random_inputs(0, 1, np.random.default_rng(0)), ValueError, "n: expected a positive"),
    ],
)
def test_bad_input(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint64])
def test_sizes_of_any_width_are_counted_exactly(kind) -> None:
    n = int(np.iinfo(kind).max)
    assert attention_operations(kind(n), kind(1), kind(1)) == attention_operations(n, 1, 1)
    assert projection_operations(kind(n), kind(n), kind(n)) == n * n * (2 * n - 1)


@pytest.mark.parametrize("size", [np.nan, 2.5, 2.0, True, "2", 0, -1])
def test_sizes_are_positive_integers_or_symbols(size) -> None:
    for count in (lambda: cost.dot_operations(size), lambda: attention_operations(3, 1, size)):
        with pytest.raises((TypeError, ValueError), match="d.*: expected"):
            count()


def test_counted_attention_takes_finite_numbers_only() -> None:
    for Q, words in (([[np.nan]], "Q: expected no NaN"), ([[1e200]], "Q, K: expected a result within the range")):
        with pytest.raises(ValueError, match=words):
            counted_attention(Q, [[1e200]], [[1.0]])


@pytest.mark.parametrize("scale", [None, 0.3, 2.0])
def test_online_attention_scales_as_attention_does(scale) -> None:
    Q, K, V = cost.random_inputs(7, 3, np.random.default_rng(1))
    np.testing.assert_allclose(
        online_attention(Q, K, V, block=2, scale=scale), attention(Q, K, V, scale=scale), rtol=1e-12
    )


def test_online_attention_overflows_where_attention_does() -> None:
    Q = np.full((2, 2), 1e200)
    for function in (attention, online_attention):
        with pytest.raises(ValueError, match="Q, K.*: expected a result within the range of float64"):
            function(Q, Q, np.eye(2))


def test_summaries_of_integers_are_floating() -> None:
    found = summarise(np.asarray([[200, 100]], np.uint8), np.ones((2, 1)))
    assert found.m.dtype == np.float64 and float(found.l[0, 0]) == pytest.approx(1)
    with pytest.raises(TypeError, match="second: expected an attnmath Summary, got tuple"):
        merge(found, tuple(found))
    with pytest.raises(TypeError, match="first: expected a summary of arrays, got int, int, int"):
        merge(Summary(1, 2, 3), found)


def test_arrays_of_sizes_are_counted_without_wrapping() -> None:
    found = attention_operations(np.asarray([3, 50000], dtype=np.int32), 1, 1)
    assert found["scores"].tolist() == [9, 50000**2]
    with pytest.raises(ValueError, match="n: expected sizes from 1 to 1e75"):
        attention_operations(np.asarray([0.5, 2.0]), 1, 1)


@pytest.mark.parametrize(
    ("of_sizes", "said"),
    [
        (
            lambda a, b: attention_operations(a, b, 1),
            r"n, d_k: expected shapes that broadcast, got n \(3,\), d_k \(2,\)",
        ),
        (lambda a, b: projection_operations(1, a, b), "d_model, d_out: expected shapes that broadcast"),
        (lambda a, b: linear_attention_operations(a, 1, 1, causal=True, chunk=b), "n, chunk: expected shapes"),
        (lambda a, b: mechanisms.head_operations("performer", a, 1, m=b), "n, m: expected shapes"),
        (lambda a, b: mechanisms.kept_numbers("standard", a, b), "n, d_k: expected shapes"),
        (lambda a, b: mechanisms.layer_parameters("fixed", a, 1, b), "d_model, d_k: expected shapes"),
        (lambda a, b: mechanisms.by_sums_operations("left", a, b), "n, d_v: expected shapes"),
    ],
)
def test_arrays_of_sizes_broadcast(of_sizes: Callable[..., Any], said: str) -> None:
    sizes = np.arange(3.0, 6.0), np.arange(1.0, 3.0)
    of_sizes(sizes[0], sizes[1][:, None])
    with pytest.raises(ValueError, match=said):
        of_sizes(*sizes)


@pytest.mark.parametrize("rows", [2, 4])
def test_one_value_for_each_key(rows: int) -> None:
    with pytest.raises(ValueError, match=r"V: expected 3 rows, one for each key, got shape"):
        online_attention(np.ones((1, 2)), np.ones((3, 2)), np.ones((rows, 1)))
    with pytest.raises(ValueError, match=r"V: expected 3 rows, one for each column of S, got shape"):
        summarise(np.ones((1, 3)), np.ones((rows, 1)))
    with pytest.raises(ValueError, match=r"Q, K, V: expected shapes \(n, d_k\), \(n, d_k\), \(n, d_v\)"):
        counted_attention(np.ones((3, 2)), np.ones((3, 2)), np.ones((rows, 1)))


def test_a_summary_holds_the_largest_score_the_sum_and_the_weighted_values() -> None:
    rng = np.random.default_rng(4)
    S, V = rng.standard_normal((2, 5)), rng.standard_normal((5, 3))
    weights = np.exp(S - S.max(axis=1, keepdims=True))
    whole = summarise(S, V)
    np.testing.assert_array_equal(whole.m, S.max(axis=1, keepdims=True))
    np.testing.assert_allclose(whole.l, weights.sum(axis=1, keepdims=True), rtol=1e-14)
    np.testing.assert_allclose(whole.o, weights @ V, rtol=1e-13)
    for cut in range(1, 5):
        for joined in (
            merge(summarise(S[:, :cut], V[:cut]), summarise(S[:, cut:], V[cut:])),
            merge(summarise(S[:, cut:], V[cut:]), summarise(S[:, :cut], V[:cut])),
        ):
            for part, expected in zip(joined, whole, strict=True):
                np.testing.assert_allclose(part, expected, rtol=1e-13)


def test_summaries_of_other_shapes_are_named() -> None:
    first = summarise(np.ones((2, 3)), np.ones((3, 1)))
    for second in (summarise(np.ones((1, 3)), np.ones((3, 1))), summarise(np.ones((2, 3)), np.ones((3, 2)))):
        for pair in ((first, second), (second, first)):
            with pytest.raises(ValueError, match="first, second: expected summaries of one shape, got shape"):
                merge(*pair)
    with pytest.raises(TypeError, match="first: expected an attnmath Summary, got int"):
        merge(1, first)


def test_a_block_is_sixty_four_keys_unless_given(monkeypatch) -> None:
    sizes = []
    monkeypatch.setattr(online, "summarise", lambda S, V: sizes.append(S.shape[-1]) or summarise(S, V))
    Q, K, V = cost.random_inputs(130, 2, np.random.default_rng(0))
    online_attention(Q, K, V)
    assert sizes == [64, 64, 2]


def test_every_stage_is_counted() -> None:
    n, d_k, d_v = 5, 3, 2
    assert attention_operations(n, d_k, d_v) == {
        "scores": n * n * (d_k + d_k - 1),
        "scaling": n * n,
        "softmax": n * ((n - 1) + n + n + (n - 1) + n),
        "values": n * d_v * (n + n - 1),
    }
    Q, K, V = cost.random_inputs(2, 3, np.random.default_rng(0))
    again = np.random.default_rng(0).standard_normal((3, 2, 3))
    np.testing.assert_array_equal([Q, K, V], again)


def test_sizes_in_arrays_run_from_one_to_the_largest() -> None:
    assert cost.dot_operations(np.asarray([1.0, 1e75])).tolist() == [1.0, 2e75]
    for sizes in ([0.99, 2.0], [1.0, 1.1e75]):
        with pytest.raises(ValueError, match="d: expected sizes from 1 to 1e75, got"):
            cost.dot_operations(np.asarray(sizes))
    assert cost.dot_operations(sp.Integer(3)) == 5 and type(cost.dot_operations(sp.Integer(3))) is int
    n = sp.Symbol("n")
    assert cost.attention_operations(n, 1, 1)["softmax"] == n * (5 * n - 2)
    for size in (True, sp.Rational(1, 2), sp.Float(2)):
        with pytest.raises(TypeError, match="d: expected an integer or a sympy expression, got"):
            cost.dot_operations(size)


def test_hundreds_of_keys_fit_as_few_do() -> None:
    Q, K, V = np.ones((300, 1)), np.ones((300, 1)), np.ones((300, 2))
    assert counted_attention(Q, K, V[:, :1])[1] == attention_operations(300, 1, 1)
    assert online_attention(Q, K, V, block=299).shape == (300, 2) and summarise(Q @ K.T, V).o.shape == (300, 2)


def test_three_matrices_must_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_NUMBERS", 12)
    assert cost.random_inputs(2, 2, np.random.default_rng(0))[2].shape == (2, 2)
    with pytest.raises(ValueError, match="n, d: expected a result of at most 12 numbers, got 3 x 5 x 1"):
        cost.random_inputs(5, 1, np.random.default_rng(0))
    for name, matrices in (("Q", (np.ones((1, 2, 2)),) * 3), ("V", (np.ones((2, 2)), np.ones((2, 2)), np.ones(2)))):
        with pytest.raises(ValueError, match=f"{name}: expected 2 dimensions, got shape"):
            counted_attention(*matrices)


def test_dimensions_that_are_not_those_of_a_formula_are_named() -> None:
    for call, words in (
        (lambda: online_attention(np.ones((1, 2)), np.ones(2), np.ones((2, 1))), "K: expected at least 2 dimensions"),
        (lambda: online_attention(np.ones((1, 2)), np.ones((2, 2)), np.ones(2)), "V: expected at least 2 dimensions"),
        (lambda: online_attention(np.ones(2), np.ones((2, 2)), np.ones((2, 1))), "Q: expected at least 2 dimensions"),
        (lambda: summarise(np.ones(2), np.ones((2, 1))), "S: expected at least 2 dimensions"),
        (lambda: summarise(np.ones((1, 2)), np.ones(2)), "V: expected at least 2 dimensions"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
