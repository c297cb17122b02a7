"""Norms, eigenvalues and limits of row-stochastic matrices: laws, closed forms, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
import sympy as sp
from backends import both_backends, make, stochastic
from hypothesis import given
from hypothesis import strategies as st

from attnmath import symbols as exact
from attnmath.figures import decays_beside_predictions, dots_by_layer, unit_disc
from attnmath.matrix import mixing, spectrum

sizes, seeds = st.integers(1, 7), st.integers(0, 99)


# --- the norm and the eigenvalues ----------------------------------------------------------------


@both_backends
@given(n=sizes, seed=seeds)
def test_the_norm_lies_between_its_bounds(backend: str, n: int, seed: int) -> None:
    A = make(backend, stochastic(n, seed))
    norm, (low, high) = float(spectrum.spectral_norm(A)), spectrum.norm_bounds(A)
    assert 1 - 1e-12 <= float(low) <= norm + 1e-12 and norm <= float(high) + 1e-12 <= np.sqrt(n) + 2e-12
    assert norm == pytest.approx(np.linalg.norm(np.asarray(A), 2), rel=1e-12)


def test_the_bounds_meet_at_doubly_stochastic_and_at_equal_one_hot_rows() -> None:
    circulant = np.asarray([np.roll([0.5, 0.3, 0.2], k) for k in range(3)])
    np.testing.assert_allclose([*spectrum.norm_bounds(circulant), spectrum.spectral_norm(circulant)], 1, atol=1e-14)
    same = np.eye(4)[[2] * 4]
    np.testing.assert_allclose([*spectrum.norm_bounds(same), spectrum.spectral_norm(same)], 2, atol=1e-14)


def test_singular_values_of_any_matrix() -> None:
    B = np.random.default_rng(1).standard_normal((2, 5, 3))
    np.testing.assert_allclose(spectrum.singular_values(B), np.linalg.svd(B, compute_uv=False), rtol=1e-13)


@both_backends
@given(n=sizes, seed=seeds)
def test_eigenvalues_fall_in_modulus_from_one(backend: str, n: int, seed: int) -> None:
    A = make(backend, stochastic(n, seed))
    found = np.asarray(spectrum.eigenvalues(A))
    moduli, tau = np.abs(found), float(mixing.dobrushin(A))
    assert np.iscomplexobj(found) and moduli[0] == pytest.approx(1, abs=1e-10)
    assert np.all(np.diff(moduli) <= 1e-12) and np.all(moduli[1:] <= tau + 1e-7)
    for first, second in pairwise(found):
        if first.imag and abs(first - second.conjugate()) < 1e-14:
            assert first.imag > 0 or second.imag > 0


def test_eigenvalues_of_a_cycle_are_the_roots_of_unity() -> None:
    found = spectrum.eigenvalues(np.roll(np.eye(5), 1, axis=1))
    np.testing.assert_allclose(
        np.sort_complex(found.round(12)), np.sort_complex(np.roots([1, 0, 0, 0, 0, -1]).round(12))
    )


def test_the_condition_of_eigenvectors() -> None:
    symmetric = np.asarray([[0.6, 0.4], [0.4, 0.6]])
    assert spectrum.eigenvector_condition(symmetric) == pytest.approx(1, abs=1e-12)
    defective = np.ones((3, 3)) / 3 + np.outer([1, -1, 0], [1, 1, -2]) / 12  # the second part has square 0
    assert spectrum.eigenvector_condition(defective) > 1e6


@both_backends
def test_log_determinants_survive_where_determinants_underflow(backend: str) -> None:
    A = make(backend, np.stack([np.eye(500) * 0.1, np.eye(500)]))
    sign, log = spectrum.log_determinant(A)
    np.testing.assert_allclose(np.asarray(log), [500 * np.log(0.1), 0], rtol=1e-13)
    assert np.all(np.asarray(sign) == 1) and np.linalg.det(np.eye(500) * 0.1) == 0
    assert float(spectrum.log_determinant(make(backend, np.ones((2, 2)) / 2))[1]) == -np.inf


# --- exact matrices ------------------------------------------------------------------------------


def test_small_exact_matrices() -> None:
    p, q = sp.symbols("p q", positive=True)
    assert exact.two_positions(p, q) * sp.ones(2, 1) == sp.ones(2, 1)
    assert exact.circulant([1, 2, 3]) == sp.Matrix([[1, 2, 3], [3, 1, 2], [2, 3, 1]])


# --- what is refused -----------------------------------------------------------------------------

HALF = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: spectrum.norm_bounds([[2.0, -1.0], [0.5, 0.5]]), ValueError, "A: expected non-negative entries"),
        (lambda: spectrum.eigenvalues([[np.nan, 1.0], [0.5, 0.5]]), ValueError, "A: expected no NaN"),
        (lambda: spectrum.eigenvalues(np.ones((2, 3))), ValueError, "A: expected square matrices"),
        (lambda: spectrum.eigenvalues([[-np.inf, 1.0], [0.5, 0.5]]), ValueError, "A: expected finite"),
        (lambda: spectrum.spectral_norm(HALF.astype(np.float16)), TypeError, "A: expected single or double precision"),
        (lambda: spectrum.singular_values([[True]]), TypeError, "A: expected real numbers"),
        (lambda: spectrum.log_determinant(np.ones((2, 1))), ValueError, "A: expected square"),
        (lambda: spectrum.eigenvector_condition(np.ones((2, 1))), ValueError, "A: expected square"),
        (lambda: dots_by_layer([1.0]), ValueError, "values: expected"),
        (lambda: dots_by_layer([[1.0]], intervals=([[0.0]], [[1.0, 2.0]])), ValueError, r"intervals: expected shape"),
        (lambda: unit_disc([np.nan]), ValueError, "values: expected"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()
    plt.close("all")


# --- figures -------------------------------------------------------------------------------------


def test_figures_draw_what_they_are_given() -> None:
    ax = dots_by_layer([[1.0, 2.0], [3.0, 4.0]], bounds=(1.0,), intervals=(np.ones((2, 2)), np.full((2, 2), 5.0)))
    assert len(ax.lines) == 3 and len(ax.collections[0].get_segments()) == 4
    labels = {layers: list(dots_by_layer(np.ones((layers, 2))).get_xticks()) for layers in (12, 30, 70)}
    assert labels == {12: [*range(1, 13)], 30: [*range(5, 31, 5)], 70: [*range(10, 71, 10)]}
    assert len(unit_disc([1, 0.5j]).lines) == 2 and len(unit_disc([1], reference=[1j]).lines) == 3
    assert len(decays_beside_predictions({"a": [0.5, 0.25]}, {"a": 0.5}).lines) == 2
    plt.close("all")


def test_rows_may_be_off_by_the_rounding_of_their_dtype() -> None:
    for dtype in (np.float32, np.float64):
        A = np.full((4, 4), 0.25, dtype)
        allowed = 4 * 5 * float(np.finfo(dtype).eps)
        for share, fits in ((0.9, True), (-0.9, True), (1.1, False), (-1.1, False)):
            moved = A.copy()
            moved[2, 1] += share * allowed
            if fits:
                np.testing.assert_array_equal(spectrum.row_stochastic(moved), moved)
            else:
                with pytest.raises(ValueError, match="W: expected rows that sum to 1, got one that is off by"):
                    spectrum.row_stochastic(moved, "W")
    with pytest.raises(ValueError, match="A: expected non-negative entries, got one of -0.25"):
        spectrum.row_stochastic([[1.25, -0.25], [0.5, 0.5]])


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (4, 2, 3)])
def test_square_matrices_are_square(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="W: expected square matrices, got shape"):
        spectrum.square(np.ones(shape), "W")
    assert spectrum.singular_values(np.ones(shape)).shape == (*shape[:-2], 2)
    for function in (spectrum.singular_values, spectrum.square):
        with pytest.raises(ValueError, match="A: expected at least 2 dimensions"):
            function(np.ones(3))


def test_bounds_and_values_of_an_uneven_matrix() -> None:
    A = np.asarray([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0, 0.5, 0.5]])
    columns = A.sum(axis=0)
    low, high = spectrum.norm_bounds(A)
    assert low == pytest.approx(np.sqrt(1 + columns.var()), rel=1e-14)
    assert high == pytest.approx(np.sqrt(columns.max()), rel=1e-14)
    np.testing.assert_allclose(spectrum.eigenvalues(A), [1, 0.375 + 0.125j, 0.375 - 0.125j], atol=1e-12)
    found = spectrum.eigenvalues(np.diag([0.25, -3.0, 1.0]))
    assert found.dtype == np.complex128 and found.tolist() == [-3, 1, 0.25]
    _, vectors = np.linalg.eig(A)
    assert spectrum.eigenvector_condition(A) == pytest.approx(np.linalg.cond(vectors), rel=1e-10)
    sign, log = spectrum.log_determinant(A)
    assert sign * np.exp(log) == pytest.approx(np.linalg.det(A), rel=1e-12)
    assert spectrum.log_determinant([[0.0, 1.0], [1.0, 0.0]])[0] == -1
    assert spectrum.spectral_norm([[3.0, 0.0], [0.0, -4.0]]) == pytest.approx(4)
    turn = spectrum.eigenvalues([[0.0, 1.0], [-1.0, 0.0]])
    np.testing.assert_allclose(turn, [1j, -1j], atol=1e-15)
    assert spectrum.eigenvector_condition([[0.0, 1.0], [0.0, 0.0]]) > 1e15


def test_eigenvectors_that_coincide_have_an_infinite_condition() -> None:
    stack = np.asarray([[[0.0, 1e300], [0.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]]])
    np.testing.assert_array_equal(spectrum.eigenvector_condition(stack), [np.inf, 1.0])


def test_hundreds_of_rows_are_square_as_few_are() -> None:
    assert spectrum.square(np.eye(300)).shape == (300, 300)


def test_a_determinant_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match="A: expected"):
        spectrum.log_determinant([[1e308, 1e308], [1e308, -1e308]])
    assert spectrum.log_determinant([[1.0, 1.0], [1.0, 1.0]]) == (0.0, -np.inf)
