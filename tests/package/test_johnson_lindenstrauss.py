"""Johnson and Lindenstrauss in numbers: the exact law against draws and integrals, the bound, the dimensions."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from attnmath.fixed_attention import johnson_lindenstrauss as jl
from attnmath.linear_cost.random_features.projections import orthogonal


@pytest.mark.parametrize(("n", "epsilon", "k"), [(10**4, 0.1, 7895), (10**5, 0.1, 9869), (10**6, 0.1, 11842)])
def test_the_dimension_is_the_smallest_integer(n: int, epsilon: float, k: int) -> None:
    found = jl.needed_dimension(n, epsilon)
    bound = 4 * math.log(n) / (epsilon**2 / 2 - epsilon**3 / 3)
    assert found == k
    assert found - 1 < bound <= found


def test_one_point_needs_one_dimension() -> None:
    assert jl.needed_dimension(1, 0.5) == 1


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -0.5, math.nan])
def test_epsilon_lies_between_0_and_1(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon: expected"):
        jl.needed_dimension(3, epsilon)


def test_a_tiny_epsilon_is_an_error() -> None:
    with pytest.raises(ValueError, match="at most 2"):
        jl.needed_dimension(3, 1e-12)


@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 5), (3, 4), (64, 512), (150, 151)])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 0.9, 1.0, 1.5])
def test_the_failure_is_that_of_a_beta_law(k: int, d: int, epsilon: float) -> None:
    a, b, mean = mp.mpf(k) / 2, mp.mpf(d - k) / 2, mp.mpf(k) / d
    inside = mp.betainc(a, b, max(0, (1 - epsilon) * mean), min(1, (1 + epsilon) * mean), regularized=True)
    assert float(jl.pair_failure(epsilon, k, d)) == pytest.approx(float(1 - inside), rel=1e-9, abs=1e-14)


def test_the_failure_against_draws() -> None:
    rng = np.random.default_rng(0)
    k, d, draws = 3, 7, 20_000
    rows = orthogonal(d * draws, d, rng=rng, norms="one").reshape(draws, d, d)[:, :k]
    u = np.asarray([1.0, -2.0, 0.0, 0.0, 3.0, 0.0, 1.0])
    lengths = d / k * np.sum((rows @ (u / np.linalg.norm(u))) ** 2, axis=1)
    for epsilon in (0.3, 0.8, 1.1):
        exact = float(jl.pair_failure(epsilon, k, d))
        share = np.mean(np.abs(lengths - 1) > epsilon)
        assert abs(share - exact) < 4 * math.sqrt(exact / draws)


def test_nothing_fails_in_all_dimensions() -> None:
    assert np.all(jl.pair_failure([0.01, 1.0, 3.0], 5, 5) == 0)


def test_more_rows_than_dimensions_are_an_error() -> None:
    with pytest.raises(ValueError, match="k, d: expected at most d"):
        jl.pair_failure(0.5, 6, 5)


@pytest.mark.parametrize("d", [9, 65, 512, 10**6])
def test_the_bound_is_above_the_failure(d: int) -> None:
    epsilon = np.linspace(0.01, 2, 60)
    for k in (1, 8, d // 2, d - 1):
        assert np.all(jl.pair_failure(epsilon, k, d) <= jl.tail_bound(epsilon, k) * (1 + 1e-12))


@pytest.mark.parametrize("n", [2, 5, 17, 512, 10**5])
def test_the_needed_dimension_leaves_a_chance(n: int) -> None:
    for epsilon in np.linspace(0.02, 0.98, 25):
        k = jl.needed_dimension(n, float(epsilon))
        assert n * (n - 1) / 2 * jl.tail_bound(float(epsilon), k) <= 1 - 1 / n + 1e-12
        assert float(jl.union_failure(n, float(epsilon), k, 10 * k)) < 0.112


def test_the_smallest_dimension_is_enough_from_there_on() -> None:
    k = jl.smallest_dimension(512, 0.5, 512, error=0.1)
    failures = [float(jl.union_failure(512, 0.5, j, 512)) for j in range(k - 1, 513)]
    assert failures[0] > 0.1
    assert max(failures[1:]) <= 0.1


def test_the_guaranteed_epsilon_solves_for_the_error() -> None:
    epsilon = jl.guaranteed_epsilon(512, 64, 512, error=0.1)
    assert float(jl.union_failure(512, epsilon, 64, 512)) == pytest.approx(0.1, rel=1e-9)
    assert jl.guaranteed_epsilon(512, 512, 512, error=0.1) == 0
    assert jl.guaranteed_epsilon(1, 3, 512, error=0.1) == 0


def test_distortion_is_unscaled_and_in_the_order_of_pairs() -> None:
    rng = np.random.default_rng(1)
    X, Omega = rng.standard_normal((6, 4)), rng.standard_normal((3, 4))
    found = jl.distortion(X, Omega)
    expected = [
        np.sum((Omega @ (X[i] - X[j])) ** 2) / np.sum((X[i] - X[j]) ** 2) for i in range(6) for j in range(i + 1, 6)
    ]
    assert found == pytest.approx(expected)
    assert jl.distortion(1e300 * X, Omega) == pytest.approx(expected)
    assert jl.distortion(1e-300 * X, Omega) == pytest.approx(expected)


def test_equal_points_have_no_ratio() -> None:
    with pytest.raises(ValueError, match="X: expected rows that differ"):
        jl.distortion([[1.0, 2.0], [1.0, 2.0]], [[1.0, 0.0]])
