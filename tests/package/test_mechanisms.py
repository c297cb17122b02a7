"""Parameters against modules of torch, operations against counters, and what torch keeps for its gradients."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from backends import torch_or_skip
from hypothesis import given
from hypothesis import strategies as st

from attnmath.fixed_attention import mechanisms
from attnmath.fixed_attention.fixed_patterns import PATTERNS, fixed_pattern
from attnmath.fixed_attention.mechanisms import MECHANISMS, head_operations, kept_numbers, layer_parameters
from attnmath.linear_cost.random_features import maps
from attnmath.linear_cost.random_features.performer import performer_attention
from attnmath.operator import cost


def trained(mechanism: str, *sizes, **options) -> int:
    counts = layer_parameters(mechanism, *sizes, **options)
    return sum(counts[name] for name in "QKVO")


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("heads, d_model", [(1, 6), (3, 12), (8, 64)])
def test_standard_parameters_are_those_of_torch(heads: int, d_model: int, bias: bool) -> None:
    torch = torch_or_skip()
    module = torch.nn.MultiheadAttention(d_model, heads, bias=bias)
    count = sum(p.numel() for p in module.parameters())
    for mechanism in ("standard", "linear", "performer"):
        assert trained(mechanism, d_model, heads, d_model // heads, bias=bias, m=4) == count


def test_parameters_by_hand() -> None:
    # Two heads of width 3 in a layer of width 5.
    assert layer_parameters("standard", 5, 2, 3) == {"Q": 30, "K": 30, "V": 30, "O": 30, "frozen": 0}
    assert layer_parameters("performer", 5, 2, 3, m=4)["frozen"] == 12
    assert layer_parameters("fixed", 5, 2, 3) == {"Q": 15, "K": 15, "V": 30, "O": 30, "frozen": 0}
    assert layer_parameters("fixed", 5, 2, 3, learned=0)["Q"] == 0
    assert layer_parameters("frozen", 5, 2, 3) == {"Q": 0, "K": 0, "V": 30, "O": 30, "frozen": 60}
    assert layer_parameters("frozen", 5, 2, 3, frozen_values=True) == {"Q": 0, "K": 0, "V": 0, "O": 30, "frozen": 90}
    assert layer_parameters("frozen", 5, 2, 3, bias=True) == {"Q": 0, "K": 0, "V": 36, "O": 35, "frozen": 72}


def test_symbols_and_arrays_give_what_numbers_give() -> None:
    n, m, d, h, w = sp.symbols("n m d h w", integer=True, positive=True)
    values = {n: 12, m: 5, d: 6, h: 2, w: 3}
    for mechanism in MECHANISMS:
        formula = layer_parameters(mechanism, d, h, w, m=m)
        assert {k: sp.sympify(v).subs(values) for k, v in formula.items()} == layer_parameters(mechanism, 6, 2, 3, m=5)
        for function in (lambda *a, m, k=mechanism: sum(head_operations(k, *a, m=m).values()),
                         lambda *a, m, k=mechanism: kept_numbers(k, *a, m=m)):  # fmt: skip
            assert sp.sympify(function(n, d, m=m)).subs(values) == function(12, 6, m=5)
            assert np.all(function(np.asarray([12.0, 12.0]), 6, m=5) == function(12, 6, m=5))
    for pattern in PATTERNS:
        formula = mechanisms.by_sums_operations(pattern, n, d)
        assert sp.sympify(formula).subs(values) == mechanisms.by_sums_operations(pattern, 12, 6)


@given(n=st.integers(1, 9), d=st.integers(1, 3), pattern=st.sampled_from(PATTERNS), seed=st.integers(0, 99))
def test_running_sums_are_the_product_with_the_pattern(n: int, d: int, pattern: str, seed: int) -> None:
    V = np.random.default_rng(seed).standard_normal((n, d))
    expected = fixed_pattern(pattern, n) @ V
    np.testing.assert_allclose(mechanisms.pattern_by_sums(V, pattern), expected, rtol=0, atol=1e-13)
    out, count = mechanisms.counted_pattern(V, pattern)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-13)
    assert count == mechanisms.by_sums_operations(pattern, n, d)


def test_running_sums_keep_their_precision_over_many_tokens() -> None:
    V = np.random.default_rng(0).standard_normal((3000, 2)) + 1
    for pattern in ("left", "right", "end", "start"):
        np.testing.assert_allclose(
            mechanisms.pattern_by_sums(V, pattern), fixed_pattern(pattern, 3000) @ V, rtol=0, atol=1e-11
        )


@given(n=st.integers(1, 4), d=st.integers(1, 3), m=st.integers(1, 4))
def test_operations_of_a_performer_are_those_counted(n: int, d: int, m: int) -> None:
    rng = np.random.default_rng(0)
    Q, K, V = rng.standard_normal((3, n, d))
    Omega = rng.standard_normal((m, d))
    F, of_queries = mechanisms.counted_positive_features(Q, Omega)
    G, of_keys = mechanisms.counted_positive_features(K, Omega)
    out, of_sums = cost.counted_linear_attention(F, G, V)
    assert of_queries + of_keys + sum(of_sums.values()) == sum(head_operations("performer", n, d, m=m).values())
    np.testing.assert_allclose(out, performer_attention(Q, K, V, maps.positive(Omega)), rtol=0, atol=1e-12)


def test_the_other_heads_cost_what_the_module_cost_counts() -> None:
    assert head_operations("standard", 5, 3) == head_operations("frozen", 5, 3) == cost.attention_operations(5, 3, 3)
    linear = head_operations("linear", 5, 3)
    assert linear.pop("features") == 2 * 5 * 3 * 2
    assert linear == cost.linear_attention_operations(5, 3, 3)
    assert head_operations("fixed", 5, 3) == {"values": 5 * 3 * 9}


def kept_by_torch(torch, mechanism: str, n: int, d: int, m: int) -> int:
    """Count the numbers that a head of torch saves for its gradients, each storage once, constants left out."""
    rng = np.random.default_rng(0)
    Q, K, V = (torch.tensor(rng.standard_normal((n, d)), requires_grad=True) for _ in "QKV")
    Omega, A = torch.tensor(rng.standard_normal((m, d))), torch.eye(n, dtype=torch.float64)
    constants = {Omega.untyped_storage().data_ptr(), A.untyped_storage().data_ptr()}
    kept: dict[int, object] = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    def positive(X):
        return torch.exp(X @ Omega.T - (X**2).sum(-1, keepdim=True) / 2)

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        if mechanism in {"standard", "frozen"}:
            out = torch.softmax(Q @ K.T / d**0.5, dim=-1) @ V
        elif mechanism == "fixed":
            out = A @ V
        else:
            feature = positive if mechanism == "performer" else lambda X: torch.nn.functional.elu(X) + 1
            F, G = feature(Q), feature(K)
            out = (F @ (G.T @ V)) / (F @ G.sum(0))[:, None]
    assert out.shape == (n, d)
    return sum(tensor.numel() for key, tensor in kept.items() if key not in constants)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kept_numbers_are_what_torch_keeps(mechanism: str) -> None:
    torch = torch_or_skip()
    for n, d, m in ((4, 2, 3), (9, 3, 5), (17, 5, 2)):
        assert kept_by_torch(torch, mechanism, n, d, m) == kept_numbers(mechanism, n, d, m=m)


def test_bad_input_is_named() -> None:
    for call, words in (
        (lambda: layer_parameters("nothing", 4, 2, 2), "mechanism: expected one of standard, fixed"),
        (lambda: layer_parameters("fixed", 4, 2, 2, learned=3), "learned: expected at most heads = 2, got 3"),
        (lambda: layer_parameters("performer", 4, 2, 2), "m: expected the number of random features"),
        (lambda: head_operations("performer", 4, 2), "m: expected the number of random features"),
        (lambda: kept_numbers("performer", 4, 2), "m: expected the number of random features"),
        (lambda: head_operations("linear", 0, 2), "n: expected a positive integer, got 0"),
        (lambda: mechanisms.pattern_by_sums([[1.0]], "hub"), "pattern: expected one of current"),
        (lambda: mechanisms.counted_positive_features([[1.0]], [[1.0, 2.0]]), "X, Omega: expected rows of one width"),
        (lambda: mechanisms.pattern_by_sums(np.full((9, 1), 1e308), "left"), "V: expected a result within the range"),
        (lambda: mechanisms.counted_pattern(np.full((9, 1), 1e308), "left"), "V: expected a result within the range"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
