"""Limits of powers and how fast they are reached: laws, exact chains, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from backends import both_backends, make, stochastic, torch_or_skip
from hypothesis import given
from hypothesis import strategies as st

from attnmath import symbols as exact
from attnmath.matrix import mixing, spectrum
from attnmath.operator.attention import softmax

sizes, seeds = st.integers(1, 7), st.integers(0, 99)


@both_backends
@given(n=sizes, seed=seeds)
def test_dobrushin_is_the_worst_contraction_of_a_spread(backend: str, n: int, seed: int) -> None:
    A, B = stochastic(n, seed), stochastic(n, seed + 1000)
    tau, tau_B, both = (float(mixing.dobrushin(make(backend, M))) for M in (A, B, A @ B))
    overlaps = [np.minimum(a, b).sum() for a in A for b in A]
    assert tau == pytest.approx(1 - min(overlaps), abs=1e-12) and both <= tau * tau_B + 1e-12
    spreads = [np.ptp(A @ (np.arange(2**n)[k] >> np.arange(n) & 1)) for k in range(1, 2**n - 1)]
    assert tau == pytest.approx(max(spreads, default=0.0), abs=1e-12)
    assert tau <= float(mixing.doeblin(make(backend, A))) + 1e-12 <= 1 - n * A.min() + 2e-12


@both_backends
@given(n=sizes, seed=seeds)
def test_powers_tend_to_the_stationary_distribution(backend: str, n: int, seed: int) -> None:
    A = stochastic(n, seed, spread=1.0)
    pi = np.asarray(mixing.stationary_distribution(make(backend, A)))
    np.testing.assert_allclose(pi @ A, pi, rtol=1e-13)
    np.testing.assert_allclose(np.linalg.matrix_power(A, 400), np.tile(pi, (n, 1)), atol=1e-9)


def test_small_entries_of_pi_are_accurate() -> None:
    """A birth-death chain with pi falling by 10^-6 per step: rational arithmetic knows every digit."""
    n, up = 8, Fraction(1, 10**6)
    chain = [[Fraction(0)] * n for _ in range(n)]
    for k in range(n):
        if k + 1 < n:
            chain[k][k + 1] = up
        if k:
            chain[k][k - 1] = Fraction(1, 2)
        chain[k][k] = 1 - sum(chain[k])
    expected = [(2 * up) ** k for k in range(n)]
    expected = [float(e / sum(expected)) for e in expected]
    A = np.asarray(chain, dtype=float)
    np.testing.assert_allclose(mixing.stationary_distribution(A), expected, rtol=1e-9)
    values, vectors = np.linalg.eig(A.T)
    usual = vectors[:, np.argmax(values.real)].real
    assert not np.allclose(usual / usual.sum(), expected, rtol=1e-9, atol=0), "the usual way loses them"


def test_only_the_closed_class_keeps_weight() -> None:
    causal = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    np.testing.assert_array_equal(mixing.stationary_distribution(causal), [1, 0, 0, 0])
    swap_at_the_end = np.asarray([[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1], [0, 0, 1, 0.0]])
    np.testing.assert_allclose(mixing.stationary_distribution(swap_at_the_end), [0, 0, 0.5, 0.5])
    long_way = np.roll(np.eye(9), 1, axis=1)  # every position needs n - 1 steps to reach all others
    np.testing.assert_allclose(mixing.stationary_distribution(long_way), 1 / 9)


def test_the_stationary_distribution_has_a_gradient() -> None:
    torch = torch_or_skip()
    S = torch.asarray([[0.0, 1.0], [0.5, -0.5]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: mixing.stationary_distribution(softmax(s)), (S,))


@both_backends
def test_distances_are_those_of_the_powers(backend: str) -> None:
    A = stochastic(4, 5)
    limit = np.tile(mixing.stationary_distribution(A), (4, 1))
    rest = [np.linalg.matrix_power(A, k) - limit for k in (1, 2, 3, 4)]
    found = np.asarray(mixing.distances_to_limit(make(backend, A), 4))
    np.testing.assert_allclose(found, [np.abs(r).max() for r in rest], atol=1e-14)
    logs = np.asarray(mixing.log_distances(make(backend, A), 2))
    np.testing.assert_allclose(logs, [np.log(np.linalg.norm(rest[k - 1])) for k in (1, 2, 4)], rtol=1e-9)


def test_log_distances_reach_below_the_smallest_float() -> None:
    A = np.asarray([[0.75, 0.25], [0.25, 0.75]])
    np.testing.assert_allclose(mixing.log_distances(A, 20), 2.0 ** np.arange(21) * np.log(0.5), rtol=1e-12)
    assert np.all(mixing.log_distances(np.full((2, 2), 0.5), 3) == -np.inf)


def test_batches_and_precision() -> None:
    A = np.stack([[stochastic(3, k) for k in range(2)] for _ in range(5)])
    assert spectrum.spectral_norm(A).shape == mixing.dobrushin(A).shape == mixing.doeblin(A).shape == (5, 2)
    assert spectrum.eigenvalues(A).shape == (5, 2, 3) and spectrum.eigenvector_condition(A).shape == (5, 2)
    single = stochastic(3, 0).astype(np.float32)
    assert mixing.dobrushin(single).dtype == mixing.stationary_distribution(single).dtype == np.float32


@given(image=st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_cycles_give_the_eigenvalues_of_one_hot_rows(image: list[int]) -> None:
    x = sp.Symbol("x")
    predicted = exact.map_polynomial(mixing.cycle_lengths(image), 6, x)
    assert sp.expand(predicted - exact.one_hot(image).charpoly(x).as_expr()) == 0


# --- what is refused -----------------------------------------------------------------------------

HALF = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: mixing.dobrushin(np.ones((2, 3)) / 3), ValueError, "A: expected square matrices"),
        (lambda: mixing.dobrushin([0.5, 0.5]), ValueError, "A: expected at least 2 dimensions"),
        (lambda: mixing.doeblin(np.ones((2, 2))), ValueError, "A: expected rows that sum to 1, .* off by 1"),
        (lambda: mixing.stationary_distribution(np.eye(2)), ValueError, "unique stationary .* reducible"),
        (
            lambda: mixing.stationary_distribution([[0.2, 0.4, 0.4], [0, 1, 0], [0, 0, 1.0]]),
            ValueError,
            "unique stationary .* reducible",
        ),
        (lambda: mixing.stationary_distribution(HALF[None]), ValueError, "A: expected one matrix"),
        (lambda: mixing.distances_to_limit(np.eye(2), 3), ValueError, "reducible"),
        (lambda: mixing.distances_to_limit(HALF, 0), ValueError, "steps: expected a positive integer"),
        (lambda: mixing.log_distances(HALF, 1.5), TypeError, "doublings: expected a positive integer"),
        (lambda: mixing.cycle_lengths([0, 2]), ValueError, "image: expected positions from 0 to 1, got 0 to 2"),
        (lambda: mixing.cycle_lengths([0.5]), TypeError, "image: expected a non-empty sequence of integers"),
        (lambda: mixing.cycle_lengths([]), TypeError, "image: expected a non-empty sequence of integers"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


def test_distances_below_rounding_are_zero() -> None:
    """All rows alike to rounding, or nilpotent up to it: the limit is reached, and noise is not followed down."""
    row = softmax(np.random.default_rng(0).standard_normal(4))
    assert np.all(mixing.log_distances(np.tile(row, (4, 1)) * (1 + 1e-16 * np.arange(4))[:, None], 60) == -np.inf)
    steps = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.5, 0.25]]  # eigenvalues 1, 1/4, 0
    found = mixing.log_distances(steps, 60)
    assert found[-1] / 2.0**60 == pytest.approx(np.log(0.25), rel=1e-12)


def test_coefficients_are_their_definitions() -> None:
    A = np.asarray([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0, 0.5, 0.5]])
    distances = [np.abs(a - b).sum() / 2 for a in A for b in A]
    assert mixing.dobrushin(A) == pytest.approx(max(distances), rel=1e-15)
    assert mixing.doeblin(A) == pytest.approx(1 - A.min(axis=0).sum(), rel=1e-15)
    assert mixing.doeblin(np.full((3, 3), 1 / 3)) == 0 == mixing.dobrushin(np.full((3, 3), 1 / 3))
    assert mixing.doeblin(np.eye(3)) == 1 == mixing.dobrushin(np.eye(3))
    stack = np.stack([A, np.eye(3)])
    np.testing.assert_allclose(mixing.dobrushin(stack), [max(distances), 1], rtol=1e-15)
    np.testing.assert_allclose(mixing.doeblin(stack), [1 - A.min(axis=0).sum(), 1], rtol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 9])
def test_a_closed_class_is_found_however_long_the_way_to_it(n: int) -> None:
    line = np.eye(n, k=1)
    line[-1, -1] = 1.0  # each position goes to the next, and the last one stays
    assert mixing.stationary_distribution(line).tolist() == [0.0] * (n - 1) + [1.0]
    back = line[::-1, ::-1]
    assert mixing.stationary_distribution(back).tolist() == [1.0] + [0.0] * (n - 1)
    if n > 1:
        split = np.eye(n)
        with pytest.raises(ValueError, match="A: expected a unique stationary distribution, got a reducible matrix"):
            mixing.stationary_distribution(split)


def test_cycles_and_steps_have_their_bounds() -> None:
    assert mixing.cycle_lengths([0]) == (1,) and mixing.cycle_lengths([1, 2, 0, 4, 3, 0]) == (2, 3)
    assert mixing.cycle_lengths([1, 2, 3, 3]) == (1,) and mixing.cycle_lengths([1, 2, 3, 0]) == (4,)
    for image in ([-1, 0], [0, 2]):
        with pytest.raises(ValueError, match="image: expected positions from 0 to 1, got"):
            mixing.cycle_lengths(image)
    half = np.full((2, 2), 0.5)
    assert mixing.log_distances(half, 1000).shape == (1001,) and mixing.log_distances(half, 1).shape == (2,)
    with pytest.raises(ValueError, match="doublings: expected a positive integer, at most 1000, got 1001"):
        mixing.log_distances(half, 1001)
    assert mixing.distances_to_limit(np.eye(2)[[1, 0]] / 2 + half / 2, 1).shape == (1,)
    for function in (mixing.distances_to_limit, mixing.log_distances):
        with pytest.raises(ValueError, match="A: expected one matrix, got shape"):
            function(half[None], 2)


def test_weights_that_underflow_are_named() -> None:
    """The only way from the second position to the first has the weight 1e-200 twice."""
    chain = [[0.5, 0.5, 0.0], [0.0, 1.0, 1e-200], [1e-200, 1.0, 0.0]]
    with pytest.raises(ValueError, match="unique stationary distribution, got weights that underflow to 0"):
        mixing.stationary_distribution(chain)


def test_a_cycle_of_hundreds_of_positions_closes() -> None:
    assert mixing.cycle_lengths((np.arange(300) + 1) % 300) == (300,)
