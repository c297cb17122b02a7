"""Random projections: their geometry exactly, and the laws of their rows by moments that tell them from wrong ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, stats

from attnmath.linear_cost.random_features import projections

SIZES = [(1, 1), (1, 5), (3, 5), (5, 5), (7, 5), (15, 5), (3, 1), (130, 64)]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def blocks(W: np.ndarray) -> list[np.ndarray]:
    d = W.shape[1]
    return [W[start : start + d] for start in range(0, len(W), d)]


@pytest.mark.parametrize("d", [1, 2, 3, 64])
def test_a_haar_matrix_is_orthogonal(d: int) -> None:
    Q = projections.haar(d, rng=rng())
    np.testing.assert_allclose(Q @ Q.T, np.eye(d), atol=1e-13)
    np.testing.assert_allclose(Q.T @ Q, np.eye(d), atol=1e-13)


def test_haar_is_gram_schmidt_of_the_rows() -> None:
    G = rng().standard_normal((4, 4))
    rows: list[np.ndarray] = []
    for g in G:
        left = g - sum(((g @ row) * row for row in rows), np.zeros(4))
        rows.append(left / np.linalg.norm(left))
    np.testing.assert_allclose(projections.haar(4, rng=rng()), rows, atol=1e-12)


def test_the_entries_of_a_haar_matrix_have_the_law_of_a_uniform_direction() -> None:
    """The square of an entry has the law Beta(1/2, (d-1)/2), and signs are fair, on the diagonal as well."""
    d, draws = 4, 5000
    W = projections.orthogonal(d * draws, d, rng=rng(), norms="one").reshape(draws, d, d)
    law = stats.beta(0.5, (d - 1) / 2)
    for i, j in ((0, 0), (1, 1), (3, 3), (0, 2), (3, 1)):
        entry = W[:, i, j]
        assert abs(np.mean(entry > 0) - 0.5) < 4 * 0.5 / np.sqrt(draws)
        assert stats.kstest(entry**2, law.cdf).pvalue > 1e-4
    # The trace of a Haar matrix has mean 0 and variance 1; without the signs of R the mean is far from 0.
    trace = np.trace(W, axis1=1, axis2=2)
    assert abs(trace.mean()) < 4 / np.sqrt(draws)
    assert abs(trace.var() - 1) < 4 * np.sqrt(2 / draws) * 1.5
    unsigned = np.linalg.qr(rng().standard_normal((draws, d, d)))[0]
    assert abs(np.trace(unsigned, axis1=1, axis2=2).mean()) > 0.3


@pytest.mark.parametrize(("m", "d"), SIZES)
def test_rows_within_a_block_are_orthogonal(m: int, d: int) -> None:
    for norms in projections.NORMS:
        W = projections.orthogonal(m, d, rng=rng(), norms=norms)
        assert W.shape == (m, d) and W.dtype == np.float64
        for block in blocks(W):
            gram = block @ block.T
            np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-11)
            if norms != "chi":
                np.testing.assert_allclose(np.diag(gram), d if norms == "sqrt_d" else 1)


def test_chi_norms_make_every_row_standard_normal() -> None:
    m, d = 15_000, 3
    for W in (projections.orthogonal(m, d, rng=rng(1)), projections.simplex(m, d, rng=rng(1))):
        for row in range(d):  # rows of different blocks are independent
            assert stats.kstest(np.sum(W[row::d] ** 2, axis=1), stats.chi2(d).cdf).pvalue > 1e-4
            assert stats.kstest(W[row::d] @ [0.6, 0.0, 0.8], stats.norm.cdf).pvalue > 1e-4
    norms = np.linalg.norm(projections.orthogonal(m, d, rng=rng(2)), axis=1)
    assert abs(np.corrcoef(norms[::d], norms[1::d])[0, 1]) < 4 / np.sqrt(m / d)


@pytest.mark.parametrize(("m", "d"), SIZES)
def test_a_simplex_has_equal_angles(m: int, d: int) -> None:
    W = projections.simplex(m, d, rng=rng())
    assert W.shape == (m, d)
    for block in blocks(W / np.linalg.norm(W, axis=1, keepdims=True)):
        expected = np.full((len(block),) * 2, -1 / (d - 1) if d > 1 else 0.0)
        np.fill_diagonal(expected, 1)
        np.testing.assert_allclose(block @ block.T, expected, atol=1e-12)


@pytest.mark.parametrize(("m", "d"), [(1, 1), (4, 4), (3, 8), (20, 8), (64, 64)])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_hadamard_rows_are_orthogonal_of_norm_sqrt_d(m: int, d: int, rounds: int) -> None:
    W = projections.hadamard(m, d, rng=rng(), rounds=rounds)
    assert W.shape == (m, d)
    for block in blocks(W):
        np.testing.assert_allclose(block @ block.T, d * np.eye(len(block)), atol=1e-10)
    if rounds == 1:
        np.testing.assert_allclose(np.abs(W), 1, atol=1e-12)


def test_hadamard_is_the_product_of_its_factors() -> None:
    """One sign matrix a round, in the order in which they are drawn, the first one outermost."""
    d, draw = 8, rng(3)
    signs = [draw.choice(np.asarray([-1.0, 1.0]), (1, 1, d)).ravel() for _ in range(2)]
    H = linalg.hadamard(d) / np.sqrt(d)
    expected = np.sqrt(d) * H @ np.diag(signs[0]) @ H @ np.diag(signs[1])
    np.testing.assert_allclose(projections.hadamard(d, d, rng=rng(3), rounds=2), expected, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 16, 256])
def test_the_fast_transform_is_the_product_with_the_matrix(d: int) -> None:
    X = rng().standard_normal((3, 2, d))
    np.testing.assert_allclose(projections.walsh_hadamard(X), X @ linalg.hadamard(d) / np.sqrt(d), atol=1e-12)
    np.testing.assert_allclose(projections.walsh_hadamard(projections.walsh_hadamard(X)), X, atol=1e-12)


def test_the_same_generator_gives_the_same_rows() -> None:
    for draw in (projections.gaussian, projections.orthogonal, projections.simplex, projections.hadamard):
        np.testing.assert_array_equal(draw(9, 4, rng=rng(5)), draw(9, 4, rng=rng(5)))
        assert not np.array_equal(draw(9, 4, rng=rng(5)), draw(9, 4, rng=rng(6)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: projections.gaussian(0, 3, rng=rng()), "m: expected a positive integer"),
        (lambda: projections.orthogonal(3, 3, rng=rng(), norms="unit"), "norms: expected one of chi"),
        (lambda: projections.orthogonal(3, 10**6, rng=rng()), "m, d: expected a result of at most"),
        (lambda: projections.hadamard(3, 6, rng=rng()), "d: expected a power of two"),
        (lambda: projections.walsh_hadamard(np.ones((2, 6))), "X: expected rows whose length is a power of two"),
    ],
)
def test_errors_say_what_is_expected(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
