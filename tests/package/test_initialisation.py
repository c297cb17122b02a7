"""Random weights: their moments against theory, another library's Xavier, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import torch_or_skip

from attnmath import checks, estimate
from attnmath.operator import initialisation
from attnmath.operator.initialisation import chain_gains, gains, measured_chain, measured_gains, scaled_scores


def within(found: estimate.Estimate, expected, errors: float = 4) -> bool:
    return bool(np.all(np.abs(found.value - expected) <= errors * np.asarray(found.standard_error)))


@pytest.mark.parametrize("law", initialisation.LAWS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (40, 3)])
def test_drawn_weights_have_the_variance_that_is_asked_for(law: str, shape: tuple[int, int]) -> None:
    W = initialisation.draw_weights(*shape, 2000, np.random.default_rng(1), law=law)
    assert W.shape == (2000, *shape)
    assert within(estimate.mean(W.ravel()), 0) and within(estimate.variance(W.ravel()), 2 / sum(shape))
    assert not within(estimate.variance(W.ravel()), 2 / (sum(shape) + 1))


def test_xavier_variance_is_what_torch_draws() -> None:
    torch = torch_or_skip()
    generator = torch.Generator().manual_seed(0)
    for draw in (torch.nn.init.xavier_normal_, torch.nn.init.xavier_uniform_):
        W = draw(torch.empty(300, 100), generator=generator)
        assert within(estimate.variance(np.asarray(W, dtype=float).ravel()), initialisation.xavier_variance(300, 100))


@pytest.mark.parametrize("law", initialisation.LAWS)
@pytest.mark.parametrize("d_in, d_out", [(1, 1), (4, 12), (12, 4)])
def test_measured_gains_are_the_predicted_ones(law: str, d_in: int, d_out: int) -> None:
    rng = np.random.default_rng(2)
    x, g = 1 + np.arange(d_in), np.linspace(-1, 2, d_out) + 0.1
    found = measured_gains(x, g, 6000, rng, law=law)
    assert all(within(f, p) for f, p in zip(found, gains(d_in, d_out), strict=True))


@pytest.mark.parametrize("rule", [initialisation.xavier_variance, initialisation.geometric_variance])
def test_a_measured_chain_follows_the_prediction(rule) -> None:
    widths = [8, 2, 6, 3]
    found = measured_chain(widths, rule, 20_000, np.random.default_rng(3))
    assert within(found, chain_gains(widths, rule))


def test_the_geometric_variance_undoes_itself_and_xaviers_does_not() -> None:
    assert chain_gains([9, 2, 5, 9], initialisation.geometric_variance)[-1] == pytest.approx(1)
    assert chain_gains([9, 2, 5, 9], initialisation.xavier_variance)[-1] < 0.9
    assert gains(5, 5) == (1, 1) and gains(4, 4, variance=0.5) == (2, 2)


@pytest.mark.parametrize("same", [True, False])
def test_scores_of_fixed_rows_have_the_predicted_variance(same: bool) -> None:
    x = np.asarray([1.0, -2.0, 0.5])
    y = x if same else np.asarray([3.0, 0.0, 1.0])
    scores = scaled_scores(x, y, 5, 20_000, np.random.default_rng(4), law="uniform")
    assert within(estimate.variance(scores), (2 / 8) ** 2 * (x @ x) * (y @ y)) and within(estimate.mean(scores), 0)


def test_blocks_do_not_change_how_many_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(initialisation, "_BLOCK", 10)
    assert scaled_scores([1.0, 2.0], [1.0, 2.0], 2, 7, np.random.default_rng(0)).shape == (7,)
    forward, _ = measured_gains(np.ones(30), np.ones(2), 7, np.random.default_rng(0))
    assert within(forward, gains(30, 2)[0], 6)


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: initialisation.xavier_variance(0, 2), ValueError, "d_in: expected a positive integer"),
        (lambda: initialisation.xavier_variance(2, 1.5), TypeError, "d_out: expected a positive integer"),
        (lambda: initialisation.geometric_variance(2, 0), ValueError, "d_out: expected a positive integer"),
        (lambda: gains(2, 2, variance=-1), ValueError, "variance: expected a positive"),
        (lambda: initialisation.draw_weights(2, 2, 1, RNG, law="cauchy"), ValueError, "law: expected one of normal"),
        (lambda: initialisation.draw_weights(2, 2, 0, RNG), ValueError, "size: expected a positive integer"),
        (lambda: measured_gains([0.0, 0.0], [1.0], 5, RNG), ValueError, "x: expected a vector that is not 0"),
        (lambda: measured_gains([1.0], [math.nan], 5, RNG), ValueError, "g: expected no NaN"),
        (lambda: measured_gains([[1.0]], [1.0], 5, RNG), ValueError, "x: expected 1 dimensions"),
        (lambda: scaled_scores([1.0], [1.0, 2.0], 3, 5, RNG), ValueError, "x, y: expected the same number"),
        (lambda: scaled_scores([1.0], [1.0], 0, 5, RNG), ValueError, "d_k: expected a positive integer"),
        (lambda: measured_chain([2, 2], gains, 0, RNG), ValueError, "size: expected a positive integer"),
        (lambda: chain_gains([], gains), ValueError, "widths: expected at least one width"),
        (lambda: measured_chain([], gains, 3, RNG), ValueError, "widths: expected at least one width"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


def test_matrices_are_drawn_one_after_the_other_with_the_root_of_the_variance() -> None:
    drawn = np.random.default_rng(8).standard_normal((5, 2, 3))
    draw = initialisation.draw_weights
    np.testing.assert_allclose(draw(2, 3, 5, np.random.default_rng(8)), np.sqrt(2 / 5) * drawn, rtol=1e-14)
    np.testing.assert_allclose(draw(2, 3, 5, np.random.default_rng(8), variance=9.0), 3 * drawn, rtol=1e-14)
    uniform = np.random.default_rng(8).uniform(-np.sqrt(3), np.sqrt(3), (5, 2, 3))
    np.testing.assert_allclose(
        draw(2, 3, 5, np.random.default_rng(8), law="uniform", variance=1.0), uniform, rtol=1e-14
    )


def test_gains_are_measured_on_every_matrix_and_component() -> None:
    x, g = np.asarray([1.0, 2.0, -0.5]), np.asarray([3.0, 1.0])
    W = np.sqrt(2 / 5) * np.random.default_rng(8).standard_normal((7, 3, 2))
    forward, backward = measured_gains(x, g, 7, np.random.default_rng(8))
    np.testing.assert_allclose(forward.value, ((x @ W) ** 2).mean() / (x**2).mean(), rtol=1e-12)
    np.testing.assert_allclose(backward.value, ((W @ g) ** 2).mean() / (g**2).mean(), rtol=1e-12)
    assert forward.standard_error == pytest.approx(((x @ W) ** 2 / (x**2).mean()).std(ddof=1) / np.sqrt(14))
    for pair in ((np.zeros(3), g), (x, np.zeros(2))):
        with pytest.raises(ValueError, match="[xg]: expected a vector that is not 0, got zeros throughout"):
            measured_gains(*pair, 7, np.random.default_rng(8))


def test_scores_and_chains_are_products_of_the_drawn_matrices() -> None:
    x, y = np.asarray([1.0, 2.0, -0.5]), np.asarray([3.0, 1.0, 1.0])
    rng = np.random.default_rng(8)
    W_Q, W_K = (np.sqrt(2 / 5) * rng.standard_normal((6, 3, 2)) for _ in range(2))
    expected = ((x @ W_Q) * (y @ W_K)).sum(axis=1) / np.sqrt(2)
    np.testing.assert_allclose(scaled_scores(x, y, 2, 6, np.random.default_rng(8)), expected, rtol=1e-12)
    for short in (x[:2], np.ones(4)):
        with pytest.raises(ValueError, match="x, y: expected the same number d_model of components, got 3 and"):
            scaled_scores(x, short, 2, 6, np.random.default_rng(8))
    rng = np.random.default_rng(8)
    row = rng.standard_normal((6, 1, 3))
    squares = [(row**2).mean(axis=(1, 2))]
    for a, b in ((3, 2), (2, 4)):
        row = row @ (np.sqrt(2 / (a + b)) * rng.standard_normal((6, a, b)))
        squares.append((row**2).mean(axis=(1, 2)))
    found = measured_chain([3, 2, 4], initialisation.xavier_variance, 6, np.random.default_rng(8))
    np.testing.assert_allclose(found.value, np.mean(squares, axis=1), rtol=1e-12)
    assert chain_gains([3], initialisation.xavier_variance).tolist() == [1.0]
    assert chain_gains([3, 2, 4], initialisation.xavier_variance).tolist() == pytest.approx([1, 6 / 5, 6 / 5 * 4 / 6])


def test_blocks_hold_as_many_matrices_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(initialisation, "_BLOCK", 10)
    assert initialisation._blocks(7, 3) == [3, 3, 1] and initialisation._blocks(6, 5) == [2, 2, 2]
    assert initialisation._blocks(3, 11) == [1, 1, 1] and initialisation._blocks(1, 10) == [1]


def test_a_rule_and_its_widths_are_named() -> None:
    for widths, error, words in (
        ([3, 0], ValueError, r"widths\[1\]: expected a positive integer, got 0"),
        ([3, 1.5], TypeError, r"widths: expected a sequence of integers, got list \(widths\[1\]: expected"),
        (3, TypeError, r"widths: expected a sequence of integers, got int"),
    ):
        with pytest.raises(error, match=words):
            chain_gains(widths, initialisation.xavier_variance)
    for rule in (lambda a, b: -1.0, lambda a, b: 1 / 0 if a < 0 else 0.0, lambda a: 1.0):
        with pytest.raises(
            (ValueError, TypeError), match="rule: expected a function of d_in and d_out, got an error: "
        ):
            chain_gains([3, 2], rule)
    with pytest.raises(ValueError, match="variance: expected a result within the range"):
        gains(100, 100, variance=1e307)


def test_hundreds_of_components_fit_as_few_do() -> None:
    assert scaled_scores(np.ones(300), np.ones(300), 1, 2, np.random.default_rng(0)).shape == (2,)


def test_dimensions_that_are_not_those_of_a_formula_are_named() -> None:
    for call, words in (
        (lambda: measured_gains([1.0], [[1.0]], 2, RNG), "g: expected 1 dimensions"),
        (lambda: scaled_scores([[1.0]], [1.0], 1, 2, RNG), "x: expected 1 dimensions"),
        (lambda: scaled_scores([1.0], [[1.0]], 1, 2, RNG), "y: expected 1 dimensions"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_blocks_are_drawn_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a block decides in which order numbers are drawn, so the same seed needs the same size."""
    assert initialisation._BLOCK == 2**21
    monkeypatch.setattr(initialisation, "_BLOCK", 13)
    x, y = np.asarray([1.0, 2.0, -0.5]), np.asarray([3.0, 1.0, 1.0])
    rng, expected = np.random.default_rng(8), []
    for count in (2, 2, 1):
        W_Q, W_K = (np.sqrt(2 / 5) * rng.standard_normal((count, 3, 2)) for _ in range(2))
        expected += (((x @ W_Q) * (y @ W_K)).sum(axis=1) / np.sqrt(2)).tolist()
    np.testing.assert_allclose(scaled_scores(x, y, 2, 5, np.random.default_rng(8)), expected, rtol=1e-12)
    seen = []
    draw = initialisation.draw_weights
    monkeypatch.setattr(initialisation, "draw_weights", lambda *a, **k: seen.append(a[2]) or draw(*a, **k))
    measured_gains(x, [1.0, 2.0], 5, np.random.default_rng(8))
    assert seen == [2, 2, 1]


def test_the_two_largest_widths_must_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_NUMBERS", 24)
    rng = np.random.default_rng(0)
    assert measured_chain([4, 2, 3], initialisation.xavier_variance, 2, rng).value.shape == (3,)
    assert measured_chain([2, 2, 2, 2, 2], initialisation.xavier_variance, 6, rng).value.shape == (5,)
    for call, words in (
        (lambda: measured_chain([4, 2, 4], initialisation.xavier_variance, 2, rng), "widths, size: expected a result"),
        (lambda: initialisation.draw_weights(5, 5, 1, rng), "d_in, d_out, size: expected a result of at most 24"),
        (lambda: measured_gains(np.ones(2), np.ones(3), 9, rng), "size, x, g: expected a result of at most 24 numbers"),
        (lambda: scaled_scores(np.ones(3), np.ones(3), 3, 3, rng), "d_k, size, x, y: expected a result of at most 24"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert measured_gains(np.ones(2), np.ones(3), 4, rng) and scaled_scores(np.ones(3), np.ones(3), 2, 4, rng).size == 4
