"""Encodings of positions: (R.4), shifts, rotary positions, and what is rejected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import both_backends, make
from hypothesis import given
from hypothesis import strategies as st

from attnmath.fixed_attention.positions import frequencies, rotary, shift_matrix, sinusoidal

even = st.integers(1, 6).map(lambda half: 2 * half)


@given(n=st.integers(1, 9), d=even, base=st.floats(1.5, 1e6))
def test_entries_are_the_sines_and_cosines_of_the_formula(n: int, d: int, base: float) -> None:
    PE = sinusoidal(n, d, base)
    for position in range(n):
        for i in range(d // 2):
            angle = position / base ** (2 * i / d)
            assert PE[position, 2 * i] == pytest.approx(math.sin(angle), abs=1e-13)
            assert PE[position, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-13)


def test_the_usual_base() -> None:
    np.testing.assert_allclose(frequencies(8), [1, 0.1, 0.01, 0.001], rtol=1e-14)
    np.testing.assert_array_equal(sinusoidal(5, 6), sinusoidal(5, 6, 10000.0))
    np.testing.assert_array_equal(shift_matrix(2, 6), shift_matrix(2, 6, 10000.0))


@given(k=st.integers(-40, 40), m=st.integers(-40, 40), d=even)
def test_shifts_move_encodings_and_form_a_group(k: int, m: int, d: int) -> None:
    PE, M = sinusoidal(100, d, 50.0), shift_matrix(k, d, 50.0)
    moved = PE[max(k, 0) : 100 + min(k, 0)]
    np.testing.assert_allclose(PE[max(-k, 0) : 100 - max(k, 0)] @ M.T, moved, atol=1e-12)
    np.testing.assert_allclose(M @ shift_matrix(m, d, 50.0), shift_matrix(k + m, d, 50.0), atol=1e-12)
    np.testing.assert_allclose(M @ M.T, np.eye(d), atol=1e-14)


@both_backends
@given(seed=st.integers(0, 30), by=st.integers(-50, 50))
def test_rotated_products_depend_on_the_difference_of_positions(backend: str, seed: int, by: int) -> None:
    q, k = np.random.default_rng(seed).normal(size=(2, 1, 6))
    here = [np.asarray(rotary(make(backend, x), positions=make(backend, np.array([p]), "int64")))
            for x, p in ((q, 7), (k, 3), (q, 7 + by), (k, 3 + by))]  # fmt: skip
    np.testing.assert_allclose((here[0] * here[1]).sum(), (here[2] * here[3]).sum(), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(here[2]), np.linalg.norm(q), rtol=1e-13)


def test_rotary_is_a_complex_rotation_of_each_pair() -> None:
    X = np.random.default_rng(5).normal(size=(2, 3, 4, 6))
    pairs = X[..., ::2] + 1j * X[..., 1::2]
    expected = pairs * np.exp(1j * np.outer(np.arange(4), frequencies(6, 100.0)))
    turned = rotary(X, 100.0)
    np.testing.assert_allclose(turned[..., ::2] + 1j * turned[..., 1::2], expected, atol=1e-14)
    np.testing.assert_array_equal(rotary(X, 100.0, [0, 1, 2, 3]), turned)
    assert rotary(X.astype(np.float32)).dtype == np.float32


def test_errors_name_the_argument() -> None:
    for call in (lambda: frequencies(3), lambda: sinusoidal(2, 3), lambda: shift_matrix(1, 3)):
        with pytest.raises(ValueError, match="d: expected an even number of components, got 3"):
            call()
    for base in (1.0, 0.5, -2.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="base: expected a finite number above 1"):
            frequencies(4, base)
    with pytest.raises(ValueError, match="k: expected a finite number, got inf"):
        shift_matrix(math.inf, 4)
    with pytest.raises(ValueError, match="X: expected an even number of components, got shape"):
        rotary(np.ones((2, 3)))
    with pytest.raises(ValueError, match="positions: expected one for each of the 2 rows of X"):
        rotary(np.ones((2, 4)), positions=[1, 2, 3])
    with pytest.raises(ValueError, match="X: expected a result within the range of float64"):
        rotary(np.full((2, 2), 1.7e308), positions=[0, 5])
    with pytest.raises(ValueError, match="n, d: expected a result of at most"):
        sinusoidal(2**20, 2**10)


def test_positions_whose_angles_are_rounding_are_refused() -> None:
    X = np.ones((1, 2))
    assert rotary(X, positions=[2**30]).shape == (1, 2)
    assert shift_matrix(-(2.0**30), 2).shape == (2, 2)
    for call, name in (
        (lambda: rotary(X, positions=[10**12]), "positions"),
        (lambda: rotary(X, positions=[-(2**30) - 1]), "positions"),
        (lambda: shift_matrix(1e12, 2), "k"),
        (lambda: shift_matrix(-(2.0**30) - 1, 2), "k"),
    ):
        with pytest.raises(ValueError, match=f"^{name}: expected .* of at most 1073741824, got"):
            call()
