"""Parameters of FAVOR++ and FAVOR# against their first-order conditions, perturbations and scipy's minimisers."""

from __future__ import annotations

import numpy as np
import pytest
from backends import both_backends, make
from scipy import linalg, optimize

from attnmath.linear_cost.random_features import optimal, variance

rng = np.random.default_rng(8)
D = 4
X = rng.standard_normal((60, D)) @ rng.standard_normal((D, D)) + [0.5, 0.0, -1.0, 0.2]
Y = 0.5 * rng.standard_normal((45, D)) @ rng.standard_normal((D, D)) + [0.3, 0.1, 0.0, -0.4]


def objective(A: np.ndarray, B_q: np.ndarray, B_k: np.ndarray) -> float:
    """Mean over all pairs of the log relative second moment."""
    logs = variance.aderf_variance(X[:, None], Y[None], A, B_q, B_k, relative=True, log=True)
    return float(np.logaddexp(0, logs).mean())


def at_coefficient(a: float) -> float:
    return float(np.logaddexp(0, variance.gerf_variance(X[:, None], Y[None], a, relative=True, log=True)).mean())


def test_one_coefficient_is_the_minimiser_that_scipy_finds() -> None:
    found = optimize.minimize_scalar(at_coefficient, bounds=(-50, 0.12), method="bounded", options={"xatol": 1e-10})
    assert optimal.optimal_gerf(X, Y) == pytest.approx(found.x, rel=1e-5)


@pytest.mark.parametrize("s", [0.0, 1e-12, 1e-3, 0.4999999, 0.5, 0.5000001, 3.0, 1e6, 1e100, 1e300])
def test_the_coefficient_solves_its_quadratic_equation(s: float) -> None:
    a = float(optimal.optimal_coefficient(s))
    assert a <= 0
    assert (1 - 8 * a) / (1 - 4 * a) * (-4 * a) == pytest.approx(2 * s, rel=1e-14)


def test_the_symmetric_optimum_beats_its_neighbours_and_every_rotation() -> None:
    A, B = optimal.optimal_sderf(X, Y)
    np.testing.assert_allclose(B.T @ np.diag(1 / (1 - 4 * A)) @ B, np.eye(D), atol=1e-12)
    best = objective(A, B, B)
    assert best < at_coefficient(optimal.optimal_gerf(X, Y))
    basis = B / np.sqrt(1 - 4 * A)[:, None]
    draws = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(20):
            skew = size * draws.standard_normal((D, D))
            rotated = linalg.expm(skew - skew.T) @ basis
            other = np.minimum(A + size * draws.standard_normal(D), 0.12)
            for a, Q in ((A, rotated), (other, basis), (other, rotated)):
                matrix = np.sqrt(1 - 4 * a)[:, None] * Q
                assert objective(a, matrix, matrix) > best


def test_the_linear_change_makes_second_moments_equal_and_their_trace_least() -> None:
    A, B_q, B_k = optimal.optimal_aderf(X, Y, ridge=0.0)
    root = np.sqrt(1 - 4 * A)[:, None]
    M, N = B_q / root, B_k / root
    np.testing.assert_allclose(M.T @ N, np.eye(D), atol=1e-10)
    U, V = X @ M.T, Y @ N.T
    np.testing.assert_allclose(U.T @ U / len(U), V.T @ V / len(V), atol=1e-10)

    moments = [R.T @ R / len(R) for R in (X, Y)]

    def trace(entries: np.ndarray) -> float:
        change = entries.reshape(D, D)
        P = change.T @ change
        return float(np.trace(P @ moments[0]) + np.trace(np.linalg.solve(P, moments[1])))

    found = optimize.minimize(trace, np.eye(D).ravel(), options={"gtol": 1e-9})
    assert trace(M.ravel()) == pytest.approx(found.fun, rel=1e-8)
    nuclear = np.linalg.svd(linalg.sqrtm(moments[0]) @ linalg.sqrtm(moments[1]), compute_uv=False).sum()
    assert trace(M.ravel()) == pytest.approx(2 * nuclear, rel=1e-10)


def test_the_asymmetric_optimum_is_below_one_coefficient_for_all_axes() -> None:
    A, B_q, B_k = optimal.optimal_aderf(X, Y)
    root = np.sqrt(1 - 4 * A)[:, None]
    shared = optimal.optimal_gerf(X @ (B_q / root).T, Y @ (B_k / root).T)
    scale = np.sqrt(1 - 4 * shared)
    one = objective(np.full(D, shared), scale * B_q / root, scale * B_k / root)
    paper = optimal.optimal_aderf(X, Y, one_coefficient=True)
    np.testing.assert_allclose(paper[0], np.full(D, shared), rtol=1e-12)
    assert objective(*paper) == pytest.approx(one, rel=1e-10)
    assert objective(A, B_q, B_k) < one < at_coefficient(optimal.optimal_gerf(X, Y))
    draws = np.random.default_rng(2)
    for size in (1e-2, 0.1):
        for _ in range(20):
            change = linalg.expm(size * draws.standard_normal((D, D)))
            moved = scale * B_q / root @ change, scale * B_k / root @ np.linalg.inv(change).T
            a = optimal.optimal_gerf(X @ (moved[0] / scale).T, Y @ (moved[1] / scale).T)
            fresh = np.sqrt(1 - 4 * a) / scale
            assert objective(np.full(D, a), fresh * moved[0], fresh * moved[1]) >= one - 1e-12


@both_backends
def test_both_libraries(backend: str) -> None:
    given = [make(backend, a) for a in (X, Y)]
    A, B_q, B_k = optimal.optimal_aderf(*given)
    assert type(A) is type(B_q) is type(B_k) is type(given[0])
    np.testing.assert_allclose(np.asarray(B_q), optimal.optimal_aderf(X, Y)[1], rtol=1e-9, atol=1e-12)
    assert optimal.optimal_gerf(*given) == pytest.approx(optimal.optimal_gerf(X, Y), rel=1e-12)


def test_few_rows_need_a_ridge() -> None:
    with pytest.raises(ValueError, match="X, Y, ridge: expected second moments of full rank"):
        optimal.optimal_aderf(X[:2], Y, ridge=0.0)
    A, B_q, B_k = optimal.optimal_aderf(X[:2], Y)
    np.testing.assert_allclose(B_q.T @ np.diag(1 / (1 - 4 * A)) @ B_k, np.eye(D), atol=1e-9)


@both_backends
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("one_coefficient", [False, True])
@pytest.mark.parametrize("d", [3, 9, 32, 64])
def test_the_default_ridge_is_enough_for_rows_of_any_rank(
    backend: str, dtype: str, one_coefficient: bool, d: int
) -> None:
    draws = np.random.default_rng(d)
    lines = [draws.standard_normal((20, 1)) @ draws.standard_normal((1, d)) for _ in range(2)]
    for one, other in ((np.eye(d)[:1], np.eye(d)[1:2]), lines, (lines[0], lines[0])):
        rows = [make(backend, R.astype(dtype)) for R in (one, other)]
        A, B_q, B_k = optimal.optimal_aderf(*rows, one_coefficient=one_coefficient)
        # The variance accepts the matrices: B_q^T (I - 4A)^(-1) B_k = I to the root of the precision.
        logs = variance.aderf_variance(rows[0][0], rows[1][0], A, B_q, B_k, relative=True, log=True)
        assert np.isfinite(float(logs))


def test_a_linear_change_that_scores_do_not_see_changes_nothing_without_a_ridge() -> None:
    T = np.diag([100.0, 1.0, 1.0, 0.01])
    values = {}
    for ridge in (0.0, 1e-6):
        A, B_q, B_k = optimal.optimal_aderf(X @ T, Y @ np.linalg.inv(T), ridge=ridge)
        values[ridge] = objective(A, B_q @ T, B_k @ np.linalg.inv(T))
    plain = objective(*optimal.optimal_aderf(X, Y, ridge=0.0))
    assert values[0.0] == pytest.approx(plain, rel=1e-7)
    assert values[1e-6] > plain + 0.1
    A, B_q, B_k = optimal.optimal_aderf(1e3 * X, 1e-3 * Y)
    assert objective(A, 1e3 * B_q, 1e-3 * B_k) == pytest.approx(objective(*optimal.optimal_aderf(X, Y)), rel=1e-9)


@pytest.mark.parametrize("name", ["X", "Y"])
def test_rows_that_are_all_zero(name: str) -> None:
    given = {"X": X, "Y": Y} | {name: np.zeros((3, D))}
    for ridge in (None, 0.0, 1.0):
        with pytest.raises(ValueError, match=f"^{name}: expected rows that are not all 0"):
            optimal.optimal_aderf(**given, ridge=ridge)
    assert optimal.optimal_gerf(**given) < 0


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="one_coefficient: expected True or False"):
        optimal.optimal_aderf(X, Y, one_coefficient="yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="X, Y: expected rows of one length d"):
        optimal.optimal_gerf(X, Y[:, :2])
    with pytest.raises(ValueError, match="ridge: expected a number from 0 to 1"):
        optimal.optimal_aderf(X, Y, ridge=-1.0)
    with pytest.raises(ValueError, match="moment: expected non-negative"):
        optimal.optimal_coefficient([-1.0])
