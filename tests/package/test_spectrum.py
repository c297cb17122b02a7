"""Norms, eigenvalues and limits of row-stochastic matrices: laws, closed forms, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnmath import spectrum
from attnmath.attention import softmax
from attnmath.figures import decays_beside_predictions, dots_by_layer, unit_disc


def stochastic(n: int, seed: int, spread: float = 2.0) -> np.ndarray:
    return softmax(spread * np.random.default_rng(seed).standard_normal((n, n)))


@given(n=st.integers(1, 7), seed=st.integers(0, 99))
def test_norm_eigenvalues_and_coefficient_obey_their_bounds(n: int, seed: int) -> None:
    A = stochastic(n, seed)
    norm, moduli, tau = spectrum.spectral_norm(A), np.abs(spectrum.eigenvalues(A)), spectrum.dobrushin(A)
    assert 1 - 1e-12 <= norm <= np.sqrt(n) + 1e-12
    assert norm == pytest.approx(np.linalg.norm(A, 2), rel=1e-12)
    assert moduli[0] == pytest.approx(1, abs=1e-10) and np.all(np.diff(moduli) <= 1e-12)
    assert np.all(moduli[1:] <= tau + 1e-7) and tau <= 1 - n * A.min() + 1e-12


@given(n=st.integers(1, 6), seed=st.integers(0, 99))
def test_dobrushin_is_submultiplicative(n: int, seed: int) -> None:
    A, B = stochastic(n, seed), stochastic(n, seed + 1000)
    assert spectrum.dobrushin(A @ B) <= spectrum.dobrushin(A) * spectrum.dobrushin(B) + 1e-12


@given(n=st.integers(1, 6), seed=st.integers(0, 99))
def test_powers_tend_to_the_stationary_distribution(n: int, seed: int) -> None:
    A = stochastic(n, seed, spread=1.0)
    pi = spectrum.stationary_distribution(A)
    np.testing.assert_allclose(pi @ A, pi, atol=1e-12)
    np.testing.assert_allclose(np.linalg.matrix_power(A, 400), np.tile(pi, (n, 1)), atol=1e-9)


def test_distances_are_those_of_the_powers() -> None:
    A = stochastic(4, 5)
    limit = np.tile(spectrum.stationary_distribution(A), (4, 1))
    direct = [np.abs(np.linalg.matrix_power(A, k) - limit).max() for k in (1, 2, 3)]
    np.testing.assert_allclose(spectrum.distances_to_limit(A, 3), direct, atol=1e-12)


def test_batches() -> None:
    A = np.stack([[stochastic(3, k) for k in range(2)] for _ in range(5)])
    assert spectrum.spectral_norm(A).shape == spectrum.dobrushin(A).shape == (5, 2)
    assert spectrum.eigenvalues(A).shape == (5, 2, 3)


def test_a_causal_matrix_ends_in_its_first_token() -> None:
    A = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    np.testing.assert_allclose(spectrum.stationary_distribution(A), [1, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: spectrum.spectral_norm(np.ones((2, 3)) / 3), "A: expected square"),
        (lambda: spectrum.spectral_norm(np.ones((2, 2))), "A: expected non-negative rows that sum to 1"),
        (lambda: spectrum.eigenvalues([[2.0, -1.0], [0.5, 0.5]]), "A: expected non-negative"),
        (lambda: spectrum.eigenvalues([[np.nan, 1.0], [0.5, 0.5]]), "A: expected no NaN"),
        (lambda: spectrum.stationary_distribution(np.eye(2)), "unique stationary distribution"),
        (lambda: spectrum.stationary_distribution(np.eye(1)[None]), "expected one matrix"),
        (lambda: spectrum.distances_to_limit(np.eye(1), 0), "steps: expected a positive integer"),
        (lambda: dots_by_layer([1.0]), r"values: expected finite numbers of shape \(layers, heads\)"),
    ],
)
def test_bad_input(call, words) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_figures_draw_what_they_are_given() -> None:
    import matplotlib.pyplot as plt

    assert len(dots_by_layer([[1.0, 2.0], [3.0, 4.0]], bounds=(1.0,)).lines) == 3
    assert len(unit_disc([1, 0.5j]).lines) == 2
    assert len(decays_beside_predictions({"a": [0.5, 0.25]}, {"a": 0.5}).lines) == 2
    plt.close("all")
