"""The six maps: their definitions, that they are unbiased, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from backends import both_backends, make

from attnmath.linear_cost.random_features import maps
from attnmath.linear_cost.random_features.performer import kernel_estimate

X = np.asarray([[0.3, -0.5, 0.2], [0.0, 0.4, 0.9]])
Y = np.asarray([[-0.2, 0.6, 0.1], [0.5, 0.5, -0.5], [1.0, 0.0, 0.0]])
A = np.asarray([0.05, -0.1, -0.4])
TURN = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 3)))[0]
B = np.diag(np.sqrt(1 - 4 * A)) @ TURN
STRETCH = np.asarray([[1.5, 0.2, 0.0], [0.0, 0.8, 0.1], [0.3, 0.0, 1.1]])
B_Q = np.diag(np.sqrt(1 - 4 * A)) @ STRETCH
B_K = np.diag(np.sqrt(1 - 4 * A)) @ np.linalg.inv(STRETCH).T
KINDS = {
    "trigonometric": maps.trigonometric,
    "positive": maps.positive,
    "hyperbolic": maps.hyperbolic,
    "gerf": lambda Omega: maps.gerf(Omega, -0.15),
    "sderf": lambda Omega: maps.sderf(Omega, A, B),
    "aderf": lambda Omega: maps.aderf(Omega, A, B_Q, B_K),
}


def quadrature(d: int, nodes: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the expectation over N(0, I)."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(*[x] * d), axis=-1).reshape(-1, d)
    weights = np.stack(np.meshgrid(*[w / w.sum()] * d), axis=-1).reshape(-1, d).prod(axis=1)
    return grid, weights


@pytest.mark.parametrize("name", KINDS)
def test_every_map_is_unbiased(name) -> None:
    """The expectation, by quadrature, of one projection's estimate is exp(x . y)."""
    Omega, weights = quadrature(3)
    features = KINDS[name](Omega)
    F = [features.queries(X), features.keys(Y)]
    F_q, F_k = (part.values * np.exp(part.exponents) for part in F)
    copies = F_q.shape[1] // len(Omega)
    each = np.tile(weights, copies) * len(Omega)  # in place of the mean over projections
    np.testing.assert_allclose((F_q * each) @ F_k.T, np.exp(X @ Y.T), rtol=1e-7)


@pytest.mark.parametrize("s", [0.0, 0.1])
def test_a_map_is_its_formula(s) -> None:
    Omega = np.asarray([[0.3, -1.2, 0.7], [1.1, 0.4, -0.2]])
    diagonal = A + s / 10
    inverse = 1 / (1 - 4 * diagonal)
    B_q = np.diag(1 / np.sqrt(inverse)) @ STRETCH
    B_k = np.diag(1 / np.sqrt(inverse)) @ np.linalg.inv(STRETCH).T
    features = maps.aderf(Omega, diagonal, B_q, B_k)
    for F, Z, turn in ((features.queries(X), X, B_q), (features.keys(Y), Y, B_k)):
        D = np.prod(1 - 4 * diagonal) ** 0.25
        C = -turn.T @ np.diag(inverse) @ turn / 2
        linear = np.exp(np.sum(Omega**2 * diagonal, axis=1) + Z @ turn.T @ Omega.T)
        expected = D / np.sqrt(2) * linear * np.exp(np.sum(Z @ C * Z, axis=1))[:, None]
        np.testing.assert_allclose(F.values * np.exp(F.exponents), expected, rtol=1e-12)


def test_maps_that_are_special_cases() -> None:
    Omega = np.random.default_rng(2).standard_normal((5, 3))
    eye = np.eye(3)
    plain = kernel_estimate(X, Y, maps.positive(Omega))
    for same in (maps.gerf(Omega, 0.0), maps.sderf(Omega, np.zeros(3), eye), maps.aderf(Omega, np.zeros(3), eye, eye)):
        np.testing.assert_allclose(kernel_estimate(X, Y, same), plain, rtol=1e-13)
    for A in (0.1, 0.1249):  # any number below 1/8
        dense = maps.sderf(Omega, np.full(3, A), np.sqrt(1 - 4 * A) * eye)
        np.testing.assert_allclose(kernel_estimate(X, Y, dense), kernel_estimate(X, Y, maps.gerf(Omega, A)))
    both = (plain + kernel_estimate(X, Y, maps.positive(-Omega))) / 2
    np.testing.assert_allclose(kernel_estimate(X, Y, maps.hyperbolic(Omega)), both, rtol=1e-13)
    z = (X[:, None] - Y[None]) @ Omega.T
    norms = np.sum(X**2, axis=1)[:, None] / 2 + np.sum(Y**2, axis=1) / 2
    expected = np.exp(norms) * np.cos(z).mean(axis=-1)
    np.testing.assert_allclose(kernel_estimate(X, Y, maps.trigonometric(Omega)), expected, rtol=1e-12)


@both_backends
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KINDS)
def test_features_come_in_the_dtype_and_library_of_their_argument(name, dtype, backend) -> None:
    Omega = np.random.default_rng(3).standard_normal((5, 3))
    features = KINDS[name](Omega)
    for F, expected in (
        (features.queries(make(backend, X, dtype)), features.queries(X)),
        (features.keys(make(backend, X, dtype)), features.keys(X)),
    ):
        for part, right in zip(F, expected, strict=True):
            assert str(part.dtype).removeprefix("torch.") == dtype
            assert part.shape == right.shape == (2, 10 if name in ("trigonometric", "hyperbolic") else 5)
            np.testing.assert_allclose(np.asarray(part), right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: maps.positive([1.0]), ValueError, "Omega: expected 2 dimensions"),
        (lambda: maps.positive([[np.inf]]), ValueError, "Omega: expected"),
        (lambda: maps.gerf([[1.0]], 0.125), ValueError, "A: expected a number below 1/8, got 0.125"),
        (lambda: maps.gerf([[1.0]], np.nan), ValueError, "A: expected a number below 1/8"),
        (lambda: maps.gerf([[1.0]], "a"), TypeError, "A: expected a number"),
        (lambda: maps.sderf([[1.0]], [0.2], [[1.0]]), ValueError, "A: expected entries below 1/8"),
        (lambda: maps.sderf([[1.0]], [0.1, 0.1], [[1.0]]), ValueError, "A: expected 1 entries"),
        (lambda: maps.sderf([[1.0]], [0.0], [[2.0]]), ValueError, "A, B: expected .* = I .*off by 3"),
        (lambda: maps.aderf([[1.0]], [0.0], [[2.0]], [[2.0]]), ValueError, "A, B_q, B_k: expected .* = I"),
        (lambda: maps.aderf([[1.0]], [0.0], np.eye(2), [[1.0]]), ValueError, "B_q, B_k: expected 1 x 1"),
        (lambda: maps.positive(np.eye(2)).queries([[1.0]]), ValueError, "X: expected 2 columns"),
        (lambda: maps.positive(np.eye(2)).keys([[1e200, 0.0]]), ValueError, "Y: the exponents: expected finite"),
        (lambda: maps.gerf([[1e200]], 0.1), ValueError, "Omega, A: the exponents: expected finite"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()
