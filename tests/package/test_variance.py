"""Exact variances of random-feature estimates, against quadrature, Monte Carlo and each other."""

from __future__ import annotations

import numpy as np
import pytest
from backends import both_backends, make

from attnmath.linear_cost.random_features import maps, variance
from attnmath.linear_cost.random_features.optimal import optimal_aderf, optimal_sderf

rng = np.random.default_rng(5)
D = 3
X, Y = 0.6 * rng.standard_normal((2, 40, D))


def hermite(d: int, nodes: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Nodes w, shape (n, d), and weights of the standard normal law."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(*[points] * d, indexing="ij"), axis=-1).reshape(-1, d)
    product = np.prod(np.stack(np.meshgrid(*[weights / weights.sum()] * d, indexing="ij"), axis=-1), axis=-1)
    return grid, product.ravel()


def feature(w: np.ndarray, x: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Dense exponential feature, straight from its definition."""
    C = -B.T @ np.diag(1 / (1 - 4 * A)) @ B / 2
    return np.prod(1 - 4 * A) ** 0.25 * np.exp((A * w**2).sum(-1) + w @ B @ x + x @ C @ x)


def moments(product: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    mean = float(weights @ product)
    return mean, float(weights @ product**2) - mean**2


@pytest.fixture(scope="module")
def dense() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return optimal_aderf(X * np.array([2.0, 1.0, 0.5]), Y)


def test_dense_variance_is_what_quadrature_gives(dense: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    A, B_q, B_k = dense
    w, weights = hermite(D)
    x, y = X[0], Y[1]
    mean, exact = moments(feature(w, x, A, B_q) * feature(w, y, A, B_k), weights)
    assert mean == pytest.approx(np.exp(x @ y), rel=1e-9)
    assert float(variance.aderf_variance(x, y, A, B_q, B_k)) == pytest.approx(exact, rel=1e-9)
    assert float(variance.aderf_variance(x, y, A, B_q, B_k, relative=True)) == pytest.approx(
        exact / np.exp(2 * x @ y), rel=1e-9
    )


@pytest.mark.parametrize("name", ["trigonometric", "positive", "hyperbolic", "gerf", "sderf", "aderf"])
def test_the_maps_of_the_package_have_these_variances(
    name: str, dense: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    A, B = optimal_sderf(X, Y)
    parameters = {"gerf": (-0.2,), "sderf": (A, B), "aderf": dense}.get(name, ())
    w, weights = hermite(D, 40)
    x, y = X[:1], Y[1:2]
    made = getattr(maps, name)(w, *parameters)
    query, key = (features.values * np.exp(features.exponents) for features in (made.queries(x), made.keys(y)))
    # One estimate for each projection, which may own two features, one in each half.
    estimates = (query * key).reshape(-1, len(w)).sum(axis=0) * len(w)
    mean, exact = moments(estimates, weights)
    assert mean == pytest.approx(float(np.exp(x[0] @ y[0])), rel=1e-8)
    assert float(getattr(variance, f"{name}_variance")(x[0], y[0], *parameters)) == pytest.approx(exact, rel=1e-7)


def test_a_positive_coefficient_is_allowed_below_an_eighth() -> None:
    A = np.array([0.1, -0.3, 0.02])
    B = np.diag(np.sqrt(1 - 4 * A))
    w, weights = hermite(D, 90)
    mean, exact = moments(feature(w, X[0], A, B) * feature(w, Y[0], A, B), weights)
    assert mean == pytest.approx(np.exp(X[0] @ Y[0]), rel=1e-9)
    assert float(variance.sderf_variance(X[0], Y[0], A, B)) == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("name, sign", [("trigonometric", -1), ("hyperbolic", 1), ("positive", 1)])
def test_classical_variances_are_what_quadrature_gives(name: str, sign: int) -> None:
    w, weights = hermite(D)
    x, y = X[2], Y[3]
    half, projected = (x @ x + y @ y) / 2, w @ (x + sign * y)
    product = {
        "trigonometric": np.exp(half) * np.cos(projected),
        "hyperbolic": np.exp(-half) * np.cosh(projected),
        "positive": np.exp(projected - half),
    }[name]
    mean, exact = moments(product, weights)
    assert mean == pytest.approx(np.exp(x @ y), rel=1e-9)
    assert float(getattr(variance, f"{name}_variance")(x, y)) == pytest.approx(exact, rel=1e-9)


def test_maps_agree_where_they_are_one_map() -> None:
    eye = np.eye(D)
    plain = variance.positive_variance(X, Y)
    np.testing.assert_allclose(variance.gerf_variance(X, Y, 0.0), plain, rtol=1e-13)
    np.testing.assert_allclose(variance.sderf_variance(X, Y, np.zeros(D), eye), plain, rtol=1e-12)
    np.testing.assert_allclose(
        variance.sderf_variance(X, Y, np.full(D, -0.5), np.sqrt(3) * eye),
        variance.gerf_variance(X, Y, -0.5),
        rtol=1e-12,
    )
    M = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 0.25]])
    np.testing.assert_allclose(
        variance.aderf_variance(X, Y, np.zeros(D), M, np.linalg.inv(M).T),
        variance.positive_variance(X @ M.T, Y @ np.linalg.inv(M)),
        rtol=1e-9,
    )


def test_relative_values_are_exact_where_the_kernel_overflows_and_near_zero() -> None:
    x = np.array([40.0, 0.0])
    assert float(variance.trigonometric_variance(x, x, relative=True)) == 0.0
    assert float(variance.gerf_variance(x, x, -1e4, relative=True)) == pytest.approx(
        40001**2 / 80001 * np.exp(6400 / 80001) - 1
    )
    with pytest.raises(ValueError, match="x, y"):
        variance.gerf_variance(x, x, -1e4)
    tiny = np.array([1e-9, 0.0])
    assert float(variance.positive_variance(tiny, tiny, relative=True)) == pytest.approx(4e-18, rel=1e-12)
    assert float(variance.hyperbolic_variance(tiny, tiny, relative=True)) == pytest.approx(8e-36, rel=1e-12)


@pytest.mark.parametrize("name", ["trigonometric", "positive", "hyperbolic"])
@pytest.mark.parametrize("relative", [False, True])
def test_logarithms_are_those_of_the_variance_and_stay_in_range(name: str, relative: bool) -> None:
    function = getattr(variance, f"{name}_variance")
    np.testing.assert_allclose(
        function(X, Y, relative=relative, log=True), np.log(function(X, Y, relative=relative)), rtol=1e-12, atol=1e-12
    )
    x = np.array([50.0, 0.0])
    y = -x if name == "trigonometric" else x
    half = 0.0 if name == "positive" else np.log(2)
    shift = 0.0 if relative else 2 * x @ y
    assert float(function(x, y, relative=relative, log=True)) == pytest.approx(1e4 - half + shift)
    assert float(function(x, -y, relative=relative, log=True)) == -np.inf


def test_batches_broadcast() -> None:
    pairs = variance.gerf_variance(X[:, None, :], Y[None, :5, :], -0.1)
    assert pairs.shape == (40, 5)
    assert pairs[7, 3] == variance.gerf_variance(X[7], Y[3], -0.1)


@both_backends
def test_both_libraries(backend: str, dense: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    given = [make(backend, a) for a in (X, Y, *dense)]
    got = variance.aderf_variance(*given)
    assert type(got) is type(given[0])
    np.testing.assert_allclose(np.asarray(got), variance.aderf_variance(X, Y, *dense), rtol=1e-12)


def test_infinite_variances_and_biased_features_are_errors() -> None:
    A, B = optimal_sderf(X, Y)
    with pytest.raises(ValueError, match="A: expected a number below 1/8"):
        variance.gerf_variance(X, Y, 0.125)
    with pytest.raises(ValueError, match="A: expected entries below 1/8"):
        variance.sderf_variance(X, Y, np.array([0.0, 0.0, 0.2]), np.eye(D))
    with pytest.raises(ValueError, match=r"B\^T \(I - 4A\)\^\(-1\) B = I"):
        variance.sderf_variance(X, Y, A, 1.01 * B)
    with pytest.raises(ValueError, match="B_q, B_k: expected"):
        variance.aderf_variance(X, Y, A, B, 2 * B)
    with pytest.raises(ValueError, match="B: expected a matrix of shape"):
        variance.sderf_variance(X, Y, A, B[:2])
    with pytest.raises(ValueError, match="x, y: expected"):
        variance.positive_variance(X, Y[:3])
