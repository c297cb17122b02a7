"""Experiments: the same seed gives the same numbers, another seed others, and what is known is met."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from attnmath import gaussian_rows, sparsity
from attnmath.attention import jacobian_norm, softmax
from attnmath.estimate import Estimate
from attnmath.experiments import scaling, sparse_rows


def within(estimate, expected, errors: float = 5.0) -> bool:
    """Five standard errors: a right experiment fails once in two million."""
    return bool(np.all(np.abs(estimate.value - expected) <= errors * estimate.standard_error))


def test_variances_follow_the_width_and_the_seed() -> None:
    widths = [2, 16, 64]
    first = scaling.score_variance(widths, law="uniform", draws=3000, seed=1)
    assert within(first, widths) and not within(first, np.square(widths))
    assert np.array_equal(first.value, scaling.score_variance(widths, law="uniform", draws=3000, seed=1).value)
    assert not np.array_equal(first.value, scaling.score_variance(widths, law="uniform", draws=3000, seed=2).value)
    alone = scaling.score_variance([16], law="uniform", draws=3000, seed=1)
    assert alone.value[0] == first.value[1], "a width's draws do not depend on the other widths"


def test_kurtosis_of_the_score() -> None:
    assert within(scaling.score_kurtosis([2, 8], law="gaussian", draws=50_000, seed=3), [3.0, 0.75])


def test_row_statistics_pair_the_same_rows() -> None:
    rows = scaling.row_statistics([1, 64], keys=16, rows=50, seed=4)
    for raw, scaled in rows.values():
        assert raw.value[0] == scaled.value[0], "at width 1 there is nothing to divide"
    raw, scaled = rows["entropy"]
    assert raw.value[1] < scaled.value[1] <= np.log(16)
    unsaid, said = (scaling.row_statistics([4], rows=3, **keys)["entropy"][0].value for keys in ({}, {"keys": 64}))
    assert unsaid == said, "64 keys unless given"
    gain = scaling.gain_without_scaling(64, keys=16, rows=50, seed=4)
    difference = rows["jacobian_norm"][0].value[1] - rows["jacobian_norm"][1].value[1]
    assert gain.value == pytest.approx(difference, abs=1e-12)


def test_heavy_tails_miss_their_variance() -> None:
    assert np.median(scaling.variance_ratios(2.1, draws=500, repeats=10)) < 0.5
    assert np.median(scaling.variance_ratios(30, draws=500, repeats=10)) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("exp", sparsity.exponential(0.5)),
        ("relu^2", sparsity.relu_squared(0.2, 0.5)),
        ("identity", sparsity.identity(0.2, 0.5)),
    ],
)
def test_long_rows_have_the_closed_form(activation: str, expected: float) -> None:
    assert within(sparse_rows.mean_sparsity(activation, 0.2, 0.5, n=20_000, rows=50, seed=1), expected)


def test_normal_rows_agree_with_the_jacobian_and_the_quadrature() -> None:
    rows = scaling.normal_rows([4, 64], [0.5, 3.0], rows=400, seed=7)
    for place, (n, spread) in enumerate([(4, 0.5), (64, 3.0)]):
        found = {name: Estimate(e.value[place], e.standard_error[place]) for name, e in rows.items()}
        assert within(found["entropy"], gaussian_rows.mean_entropy(spread, n))
        assert within(found["collision"], gaussian_rows.mean_collision(spread, n))
    y = softmax(0.5 * np.random.default_rng((7, 4)).standard_normal((400, 4)))
    assert rows["jacobian_norm"].value[0] == pytest.approx(jacobian_norm(y).mean(), rel=1e-12)


def test_finite_rows_of_softmax() -> None:
    curve = sparse_rows.softmax_sparsity([0.1, 1.0, 9.0], n=64, rows=40, seed=1)
    assert np.all(np.diff(curve.value) < 0) and curve.value[-1] >= 1 / 8
    excess = sparse_rows.log_excess(0.2, n=4096, rows=40, seed=1)
    assert within(excess, 0.0)


def test_share_of_empty_rows() -> None:
    assert within(sparse_rows.empty_share(-2.0, n=16, rows=4000, seed=1), special.ndtr(2.0) ** 16)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: scaling.score_variance([4], law="normal"), "law: expected one of gaussian"),
        (lambda: scaling.score_variance([0]), "widths: expected a positive integer"),
        (lambda: scaling.score_variance([]), "widths: expected at least one"),
        (lambda: scaling.row_statistics([4], keys=0), "keys: expected a positive integer"),
        (lambda: scaling.row_statistics([4], sigma=-1.0), "sigma: expected a positive"),
        (lambda: scaling.normal_rows([], []), "keys: expected at least one"),
        (lambda: scaling.normal_rows([4, 8], [1.0]), "keys, deviations: expected as many of both, got 2 and 1"),
        (lambda: scaling.normal_rows([4], [-1.0]), "deviations: expected a positive"),
        (lambda: scaling.variance_ratios(2.0), "nu: expected more than 2"),
        (lambda: sparse_rows.mean_sparsity("relu", 0, 1), "activation: expected one of exp"),
        (lambda: sparse_rows.mean_sparsity("exp", 0, 0), "gamma: expected a positive"),
        (lambda: sparse_rows.softmax_sparsity([np.nan], n=4), "gammas: expected no NaN"),
        (lambda: sparse_rows.empty_share(0.0, n=0), "n: expected a positive integer"),
    ],
)
def test_bad_parameters_are_named(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
