"""Performer attention: stable where plain features are 0/0, exact shifts, causal, signed, numpy and torch."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from backends import both_backends, make, torch_or_skip
from hypothesis import given, settings
from hypothesis import strategies as st

from attnmath.linear_cost.random_features import maps
from attnmath.linear_cost.random_features.performer import attention_estimate, kernel_estimate, performer_attention
from attnmath.operator.attention import causal_mask

OMEGA = np.random.default_rng(1).standard_normal((16, 4))
TURNED = np.diag([2.0, 1.0, 0.5, 1.0])
MAPS = {
    "trigonometric": maps.trigonometric(OMEGA),
    "positive": maps.positive(OMEGA),
    "hyperbolic": maps.hyperbolic(OMEGA),
    "gerf": maps.gerf(OMEGA, -0.2),
    "sderf": maps.sderf(OMEGA, [0.1, 0.0, -0.1, -0.3], np.diag(np.sqrt([0.6, 1.0, 1.4, 2.2]))),
    "aderf": maps.aderf(OMEGA, np.zeros(4), TURNED, np.linalg.inv(TURNED)),
}
POSITIVE = [name for name in MAPS if name != "trigonometric"]


def inputs(n: int, seed: int, norm: float = 1.0, d: int = 4) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    Q, K, V = rng.normal(size=(3, n, d))
    return [norm * Q / np.linalg.norm(Q, axis=1)[:, None], norm * K / np.linalg.norm(K, axis=1)[:, None], V]


def exact(Q, K, V, features, scale, causal=False) -> np.ndarray:
    """The same quotient in 60 digits, where nothing overflows or underflows."""
    root = np.sqrt(scale)
    F_q, F_k = features.queries(Q * root), features.keys(K * root)
    with mpmath.workdps(60):
        value = [
            [
                [mpmath.mpf(v) * mpmath.exp(mpmath.mpf(e)) for v, e in zip(*row, strict=True)]
                for row in zip(*F, strict=True)
            ]
            for F in (F_q, F_k)
        ]
        out = []
        for i, phi in enumerate(value[0]):
            keys = value[1][: i + 1] if causal else value[1]
            weights = [mpmath.fdot(phi, psi) for psi in keys]
            out.append(
                [mpmath.fdot(weights, V[: len(keys), c].tolist()) / mpmath.fsum(weights) for c in range(V.shape[1])]
            )
    return np.asarray(out, dtype=float)


@pytest.mark.parametrize("norm", [0.1, 2.0, 30.0])
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("causal", [False, True])
def test_it_is_the_exact_quotient_at_any_norm_and_chunk(causal: bool, name: str, norm: float) -> None:
    Q, K, V = inputs(7, 2, norm)
    expected = exact(Q, K, V, MAPS[name], 0.5, causal)
    # Signed weights cancel: rounding grows by the moduli over the sum, here by less than a thousand.
    tolerance = 1e-8 if name == "trigonometric" else 1e-11
    for backend in ("numpy", "torch"):
        for chunk in (1, 3, 256):
            arrays = [make(backend, a) for a in (Q, K, V)]
            found = performer_attention(*arrays, MAPS[name], scale=0.5, causal=causal, chunk=chunk)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


def plain(Q, K, V, scale):
    """The report's 3.3.3 as it is printed, in the dtype of its arguments."""
    Q, K = Q * Q.dtype.type(scale**0.5), K * K.dtype.type(scale**0.5)
    Omega = OMEGA.astype(Q.dtype)
    with np.errstate(all="ignore"):
        F_q, F_k = (np.exp(x @ Omega.T - (x * x).sum(axis=1, keepdims=True) / 2) for x in (Q, K))
        return F_q @ (F_k.T @ V) / (F_q @ F_k.sum(axis=0))[:, None]


@both_backends
@pytest.mark.parametrize("causal", [False, True])
def test_single_precision_is_right_where_plain_features_are_not(backend, causal) -> None:
    Q, K, V = (a.astype("float32") for a in inputs(12, 3, 30.0))
    assert np.isnan(plain(Q, K, V, 1.0)).all()
    expected = exact(*(a.astype(float) for a in (Q, K, V)), MAPS["positive"], 1.0, causal)
    found = performer_attention(
        *(make(backend, a, "float32") for a in (Q, K, V)), MAPS["positive"], scale=1.0, causal=causal
    )
    # Exponents of some hundreds, rounded to 24 bits, are off by about 3e-5.
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", MAPS)
def test_where_plain_features_work_the_shifts_change_nothing(name) -> None:
    Q, K, V = inputs(9, 4, 1.5)
    F_q, F_k = MAPS[name].queries(Q), MAPS[name].keys(K)
    weights = (F_q.values * np.exp(F_q.exponents)) @ (F_k.values * np.exp(F_k.exponents)).T
    np.testing.assert_allclose(kernel_estimate(Q, K, MAPS[name]), weights, rtol=1e-11, atol=1e-12)
    P = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(attention_estimate(Q, K, MAPS[name], scale=1.0), P, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(performer_attention(Q, K, V, MAPS[name], scale=1.0), P @ V, rtol=1e-9, atol=1e-10)
    below = weights * causal_mask(9)
    P = below / below.sum(axis=1, keepdims=True)
    found = attention_estimate(Q, K, MAPS[name], scale=1.0, causal=True)
    np.testing.assert_allclose(found, P, rtol=1e-9, atol=1e-10)
    assert np.all(np.triu(found, 1) == 0)


@pytest.mark.parametrize("name", MAPS)
def test_the_default_scale_is_that_of_attention(name) -> None:
    Q, K, V = inputs(6, 5)
    given_scale = performer_attention(Q, K, V, MAPS[name], scale=0.5)
    np.testing.assert_array_equal(performer_attention(Q, K, V, MAPS[name]), given_scale)


@both_backends
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MAPS)
@settings(max_examples=25)
@given(seed=st.integers(0, 20), norm=st.sampled_from([0.5, 5.0, 40.0]), chunk=st.sampled_from([1, 4, 16, 256]))
def test_a_changed_future_does_not_change_the_past(name, dtype, backend, seed, norm, chunk) -> None:
    Q, K, V = inputs(20, seed, norm)
    before = [make(backend, a, dtype) for a in (Q, K, V)]
    at = seed % 19 + 1
    for a in (Q, K, V):
        a[at:] = 3 * norm * np.random.default_rng(seed).normal(size=a[at:].shape)
    after = [make(backend, a, dtype) for a in (Q, K, V)]
    calls = (performer_attention(*arrays, MAPS[name], causal=True, chunk=chunk) for arrays in (before, after))
    first, second = (np.asarray(out)[:at] for out in calls)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", MAPS)
def test_batches_are_one_by_one(name) -> None:
    Q, K, V = (np.stack([a, 2 * a, 9 * a]) for a in inputs(7, 6))
    for causal in (False, True):
        found = performer_attention(Q, K, V, MAPS[name], causal=causal, chunk=3)
        for i in range(3):
            one = performer_attention(Q[i], K[i], V[i], MAPS[name], causal=causal, chunk=3)
            np.testing.assert_allclose(found[i], one, rtol=1e-10, atol=1e-11)
    shared = performer_attention(Q, K[0], V[0], MAPS[name])
    np.testing.assert_allclose(shared[2], performer_attention(Q[2], K[0], V[0], MAPS[name]), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", MAPS)
def test_the_gradient_is_that_of_the_quotient(name, causal) -> None:
    torch = torch_or_skip()
    Q, K, V = (torch.asarray(a).requires_grad_() for a in inputs(6, 7, 1.5))
    assert torch.autograd.gradcheck(
        lambda *a: performer_attention(*a, MAPS[name], causal=causal, chunk=4), (Q, K, V), atol=1e-5, rtol=1e-4
    )


def test_half_precision_is_computed_in_single() -> None:
    Q, K, V = (a.astype("float16") for a in inputs(30, 8, 6.0))
    found = performer_attention(Q, K, V, MAPS["positive"])
    assert found.dtype == np.float16
    expected = performer_attention(*(a.astype(float) for a in (Q, K, V)), MAPS["positive"])
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_signs_are_kept_and_a_sum_of_zero_is_an_error() -> None:
    quarter = maps.trigonometric([[1.0]])
    found = performer_attention([[0.0]], [[np.pi], [0.0]], [[1.0], [0.0]], quarter, scale=1.0)
    kernel = np.asarray([-np.exp(np.pi**2 / 2), 1.0])
    np.testing.assert_allclose(found, [[kernel[0] / kernel.sum()]], rtol=1e-12)
    assert found > 1
    assert performer_attention([[0.0]], [[np.pi]], [[2.0]], quarter, scale=1.0) == 2.0
    # cos(q - k) is the weight; two keys of equal norm on either side of a quarter turn cancel.
    with pytest.raises(ValueError, match="Q, K, features: expected weights that do not sum to 0"):
        performer_attention(np.zeros((1, 2)), [[0.0, 0.0], [np.pi, 0.0]], np.ones((2, 1)), cancelling(), scale=1.0)


def cancelling() -> maps.RandomFeatures:
    """A map of waves whose exponents are 0, so that cos(0) + cos(pi) is 0 in floating point."""
    return maps.RandomFeatures(np.eye(2)[:1], np.eye(2)[:1], np.asarray(0.0), np.asarray(0.0), np.zeros(1), waves=True)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", POSITIVE)
def test_rows_are_means_of_the_values(name, causal) -> None:
    """A constant is kept, and no output leaves the range of the values: the weights are positive and sum to 1."""
    Q, K, V = inputs(40, 9, 25.0)
    V[:, 0] = 7.0
    out = performer_attention(Q, K, V, MAPS[name], causal=causal, chunk=8)
    np.testing.assert_allclose(out[:, 0], 7.0, rtol=1e-12)
    assert np.all((out >= V.min(axis=0) - 1e-12) & (out <= V.max(axis=0) + 1e-12))


def test_rising_norms_are_followed_by_the_causal_form() -> None:
    """Each key lifts the exponents by hundreds, so that shifts are renewed within one chunk."""
    n = 12
    Q, K, V = inputs(n, 10)
    Omega = 40 * np.abs(OMEGA)
    K = np.abs(K) * np.arange(1, n + 1)[:, None]
    features = maps.positive(Omega)
    expected = exact(Q, K, V, features, 0.5, causal=True)
    for chunk in (1, 5, 64):
        found = performer_attention(Q, K, V, features, causal=True, chunk=chunk)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_kernel_estimate_holds_from_tiny_to_huge() -> None:
    X = np.asarray([[26.0, 0, 0, 0]])
    estimate = kernel_estimate(X, [[-20.0, 1, 1, 0], [20.0, 0, 1, 0]], MAPS["positive"])
    exponents = (
        MAPS["positive"].queries(X).exponents + MAPS["positive"].keys([[-20.0, 1, 1, 0], [20.0, 0, 1, 0]]).exponents
    )
    np.testing.assert_allclose(np.log(estimate[0]), np.log(np.exp(exponents + 300).sum(axis=1)) - 300, rtol=1e-10)
    with pytest.raises(ValueError, match="X, Y, features: expected a result within the range of float32"):
        kernel_estimate(np.ones((1, 4), "float32"), np.ones((1, 4), "float32"), maps.positive(60 * np.ones((1, 4))))


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: performer_attention(x, x, x, len), TypeError, "features: expected an attnmath RandomFeatures"),
        (lambda x: performer_attention(x[:, :3], x[:, :3], x, MAPS["positive"]), ValueError, "Q: expected 4 columns"),
        (lambda x: performer_attention(x, x[:, :3], x, MAPS["positive"]), ValueError, "K: expected 4 columns"),
        (lambda x: performer_attention(x, x, x[1:], MAPS["positive"]), ValueError, "V: expected 5 rows"),
        (lambda x: performer_attention(x[1:], x, x, MAPS["positive"], causal=True), ValueError, "causal: expected as"),
        (lambda x: performer_attention(x, x, x, MAPS["positive"], chunk=0), ValueError, "chunk: expected a positive"),
        (lambda x: performer_attention(x, x, x, MAPS["positive"], scale=-1.0), ValueError, "scale: expected a pos"),
        (lambda x: performer_attention(x, 1e200 * x, x, MAPS["positive"]), ValueError, "Q, K, .*features: expected"),
        (lambda x: attention_estimate(x, x[:, :3], MAPS["positive"]), ValueError, "K: expected 4 columns"),
        (lambda x: kernel_estimate(x, x[:, :3], MAPS["positive"]), ValueError, "Y: expected 4 columns"),
        (lambda x: performer_attention(x, x, x.astype("float32"), MAPS["positive"]), TypeError, "K, V: expected one"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call(np.ones((5, 4)))
