"""Ranks against exact small cases, and what is refused."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import sympy as sp
from attnmath.symbols import degrees_of_freedom, factorisation_jacobian
from hypothesis import given
from hypothesis import strategies as st

from attnmath.figures import quantile_bands
from attnmath.matrix import rank


@given(n=st.integers(1, 6), m=st.integers(1, 6), r=st.integers(1, 6), seed=st.integers(0, 50))
def test_numerical_rank_is_the_exact_rank_of_integer_matrices(n: int, m: int, r: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, (n, r)) @ rng.integers(-3, 4, (r, m))
    assert rank.numerical_rank(A.astype(float)).rank == sp.Matrix(A.tolist()).rank()


@given(values=st.lists(st.floats(0.01, 100), min_size=1, max_size=8), epsilon=st.floats(1e-6, 0.9))
def test_notions_of_rank_are_ordered(values: list[float], epsilon: float) -> None:
    sigma = np.sort(values)[::-1]
    n = len(sigma)
    for power in (1, 2):
        r = int(rank.effective_rank(sigma, epsilon, power=power))
        mass = sigma**power
        assert mass[:r].sum() >= (1 - epsilon) * mass.sum() * (1 - 1e-12)
        assert r == 1 or mass[: r - 1].sum() <= (1 - epsilon) * mass.sum() * (1 + 1e-12)
    assert rank.effective_rank(sigma, epsilon, power=2) <= rank.effective_rank(sigma, epsilon)
    assert 1 <= rank.stable_rank(sigma) <= rank.entropy_rank(sigma) + 1e-9 <= n + 2e-9


def test_equal_singular_values_count_fully() -> None:
    sigma = np.ones(7)
    assert rank.entropy_rank(sigma) == pytest.approx(7) and rank.stable_rank(sigma) == 7
    assert rank.effective_rank(sigma, 1e-9) == 7


@given(r=st.integers(1, 4), seed=st.integers(0, 50))
def test_best_approximation_errs_by_the_next_singular_value(r: int, seed: int) -> None:
    A = np.random.default_rng(seed).standard_normal((5, 6))
    B, sigma = rank.best_approximation(A, r), rank.singular_values(A)
    assert rank.numerical_rank(B).rank == r
    assert np.linalg.norm(A - B, 2) == pytest.approx(sigma[r], rel=1e-10)
    assert np.linalg.norm(A - B) == pytest.approx(np.sqrt((sigma[r:] ** 2).sum()), rel=1e-10)


def test_batches() -> None:
    A = np.random.default_rng(0).standard_normal((2, 3, 4, 4))
    counted = rank.numerical_rank(A)
    assert counted.rank.shape == counted.tolerance.shape == (2, 3)
    sigma = rank.singular_values(A)
    assert rank.entropy_rank(sigma).shape == rank.stable_rank(sigma).shape == (2, 3)
    assert rank.best_approximation(A, 2).shape == A.shape


@given(r=st.integers(1, 3), seed=st.integers(0, 20))
def test_truncated_keys_obey_their_bound(r: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Q, K = rng.standard_normal((2, 5, 3)), rng.standard_normal((2, 6, 3))
    left, right = rank.truncated_keys(Q, K, r)
    assert left.shape == (2, 5, r) and right.shape == (2, 6, r)
    missed = np.linalg.norm(Q @ K.swapaxes(-1, -2) - left @ right.swapaxes(-1, -2), 2, axis=(-2, -1))
    following = np.append(rank.singular_values(K), np.zeros((2, 1)), axis=-1)[:, r]
    assert np.all(missed <= rank.singular_values(Q)[:, 0] * following + 1e-12)


def test_condition_numbers() -> None:
    stack = np.asarray([np.eye(2), [[3.0, 0.0], [0.0, -1.0]], [[1.0, 0.0], [0.0, 0.0]]])
    np.testing.assert_array_equal(rank.condition_number(stack), [1, 3, np.inf])
    A = np.random.default_rng(4).standard_normal((5, 5))
    assert rank.condition_number(A) == pytest.approx(np.linalg.cond(A), rel=1e-10)


@pytest.mark.parametrize("n, m, r", [(1, 1, 1), (2, 4, 1), (3, 3, 2), (4, 3, 3)])
def test_the_dimension_of_matrices_of_rank_r(n: int, m: int, r: int) -> None:
    assert degrees_of_freedom(n, m, r) == (n + m) * r - r * r
    assert factorisation_jacobian(n, m, r).shape == (n * m, (n + m) * r)


def test_no_dimension_for_a_rank_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="r: expected at most 2, got 3"):
        degrees_of_freedom(2, 3, 3)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: rank.numerical_rank([1.0]), "A: expected at least 2 dimensions"),
        (lambda: rank.numerical_rank([[np.nan]]), "A: expected no NaN"),
        (lambda: rank.numerical_rank([[1.0]], relative=1.0), "relative: expected"),
        (lambda: rank.effective_rank([1.0], 0.0), "epsilon: expected"),
        (lambda: rank.effective_rank([1.0], np.nan), "epsilon: expected"),
        (lambda: rank.effective_rank([1.0, 2.0], 0.1), "sigma: expected singular values, falling"),
        (lambda: rank.entropy_rank([0.0, 0.0]), "not all 0"),
        (lambda: rank.stable_rank([1.0, -1.0]), "sigma: expected"),
        (lambda: rank.best_approximation(np.eye(2), 3), "r: expected at most 2"),
        (lambda: rank.best_approximation(np.eye(2), 0), "r: expected a positive integer"),
        (lambda: rank.truncated_keys(np.ones((2, 2)), np.ones((2, 3)), 1), "Q, K: expected the same last axis"),
        (lambda: rank.truncated_keys(np.ones((2, 2)), np.ones((2, 2)), 3), "r: expected at most 2, got 3"),
    ],
)
def test_bad_input(call, words) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_quantile_bands() -> None:
    ax = quantile_bands({"a": np.asarray([[1.0, 0.1], [2.0, 0.2], [3.0, 0.3]])}, mark=1)
    assert len(ax.lines) == 2 and ax.get_yscale() == "log"
    plt.close("all")


def test_effective_rank_is_the_definition_at_ties_and_at_every_scale() -> None:
    for sigma in ([a, b, c] for a in range(1, 7) for b in range(1, a + 1) for c in range(1, b + 1)):
        for tenths in range(1, 10):
            # (5.5.3) in integers: what is left out is at most so many tenths of the sum.
            expected = next(r for r in (1, 2, 3) if 10 * sum(sigma[r:]) <= tenths * sum(sigma))
            for scale in (1.0, 0.1, 1e-200, 1e200):
                assert rank.effective_rank(np.asarray(sigma) * scale, tenths / 10) == expected, (sigma, tenths, scale)


def test_ranks_do_not_depend_on_the_scale() -> None:
    assert rank.effective_rank([1e-200, 1e-201], 0.3, power=2) == rank.effective_rank([1e200, 1e199], 0.3, power=2) == 1
    assert rank.effective_rank([1e308, 1e308], 0.3) == rank.effective_rank([1.0, 1.0], 0.3, power=10**6) == 2
    assert rank.entropy_rank([1e308, 1e308]) == pytest.approx(2) == rank.entropy_rank([1e-308, 1e-308])
    assert rank.condition_number(np.zeros((2, 2))) == np.inf


def test_ranks_are_counted_above_their_tolerance() -> None:
    A = np.diag([4.0, 2.0, 1.0, 0.0])[:, :3]  # taller than wide
    found = rank.numerical_rank(A)
    assert found.rank == 3 and found.tolerance == 4 * 4 * np.finfo(float).eps
    assert rank.numerical_rank(A.T).tolerance == found.tolerance
    for relative, expected in ((0.0, 3), (0.24, 3), (0.25, 2), (0.49, 2), (0.5, 1), (0.99, 1)):
        assert rank.numerical_rank(A, relative=relative).rank == expected
        assert rank.numerical_rank(A, relative=relative).tolerance == 4 * relative
    assert rank.numerical_rank(np.diag([1.0, 0.0]), relative=0.0).rank == 1
    for relative in (-0.01, 1.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="relative: expected a number from 0 to 1, got"):
            rank.numerical_rank(A, relative=relative)
    for epsilon in (0.0, 1.0, -0.5, 2.0):
        with pytest.raises(ValueError, match="epsilon: expected a number between 0 and 1, got"):
            rank.effective_rank([2.0, 1.0], epsilon)


def test_ranks_are_their_formulas_on_uneven_values() -> None:
    sigma = np.asarray([[5.0, 2.0, 1.0, 0.0], [3.0, 3.0, 2.0, 2.0]])
    p = sigma / sigma.sum(axis=1, keepdims=True)
    expected = [np.prod([q**-q for q in row if q]) for row in p]
    np.testing.assert_allclose(rank.entropy_rank(sigma), expected, rtol=1e-13)
    np.testing.assert_allclose(rank.stable_rank(sigma), (sigma**2).sum(axis=1) / sigma[:, 0] ** 2, rtol=1e-14)
    assert rank.effective_rank(sigma, 0.3).tolist() == [2, 3] and rank.effective_rank(sigma, 0.9).tolist() == [1, 1]
    assert rank.effective_rank(sigma, 0.3, power=2).tolist() == [1, 3]
    for values in ([1.0, 2.0], [1.0, -1.0], [0.0, 0.0], [[2.0, 1.0], [0.0, 0.0]]):
        with pytest.raises(ValueError, match="sigma: expected singular values, falling and not all 0"):
            rank.stable_rank(values)


def test_the_factors_of_the_keys_are_those_of_their_own_decomposition() -> None:
    rng = np.random.default_rng(6)
    Q, K = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    U, sigma, Vt = np.linalg.svd(K, full_matrices=False)
    left, right = rank.truncated_keys(Q, K, 2)
    np.testing.assert_allclose(left @ right.T, Q @ (U[:, :2] * sigma[:2] @ Vt[:2]).T, rtol=1e-12)
    whole_left, whole_right = rank.truncated_keys(Q, K, 3)
    np.testing.assert_allclose(whole_left @ whole_right.T, Q @ K.T, rtol=1e-12)
    np.testing.assert_allclose(rank.best_approximation(K, 3), K, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(right, axis=0), sigma[:2], rtol=1e-12)
    for width in (2, 4):
        with pytest.raises(
            ValueError, match=r"Q, K: expected the same last axis d_k, got shapes \(4, \d\) and \(5, 3\)"
        ):
            rank.truncated_keys(np.ones((4, width)), K, 1)
    for call in (lambda: rank.truncated_keys(Q, K, 4), lambda: rank.best_approximation(K.T, 4)):
        with pytest.raises(ValueError, match="r: expected at most 3, got 4"):
            call()


def test_singular_matrices_have_an_infinite_condition() -> None:
    for A in (np.zeros((2, 3)), np.diag([1.0, 0.0])):
        assert rank.condition_number(A) == np.inf
    assert rank.condition_number([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]]) == pytest.approx(1.5)
    assert isinstance(rank.condition_number(np.eye(2)), np.float64)


def test_hundreds_of_columns_fit_as_few_do() -> None:
    left, right = rank.truncated_keys(np.ones((2, 300)), np.ones((3, 300)), 1)
    np.testing.assert_allclose(left @ right.T, 300, rtol=1e-12)


def test_no_share_is_so_small_that_no_value_holds_it() -> None:
    assert rank.effective_rank([2.0, 1.0], 1 - 2.0**-53) == 1 == rank.effective_rank([1.0], 5e-324)


def test_dimensions_that_are_not_those_of_a_formula_are_named() -> None:
    for call, words in (
        (lambda: rank.truncated_keys(np.ones(2), np.ones((2, 2)), 1), "Q: expected at least 2 dimensions"),
        (lambda: rank.truncated_keys(np.ones((2, 2)), np.ones(2), 1), "K: expected at least 2 dimensions"),
        (lambda: rank.best_approximation(np.ones(2), 1), "A: expected at least 2 dimensions"),
        (lambda: rank.stable_rank(1.0), "sigma: expected at least 1 dimensions"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_stack_of_many_matrices_has_the_bounds_of_each() -> None:
    stack = np.random.default_rng(0).standard_normal((9, 4, 3))
    found = rank.numerical_rank(stack)
    np.testing.assert_array_equal(found.tolerance, 4 * np.finfo(float).eps * rank.singular_values(stack)[:, 0])
    one = stack[:1]
    assert rank.best_approximation(one, 3).shape == (1, 4, 3) and rank.truncated_keys(one, one, 3)[1].shape == (1, 4, 3)
    for call in (lambda: rank.best_approximation(one, 4), lambda: rank.truncated_keys(one, one, 4)):
        with pytest.raises(ValueError, match="r: expected at most 3, got 4"):
            call()
