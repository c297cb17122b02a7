"""Experiments: the same seed gives the same numbers, another seed others, and what is known is met."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy import special

from attnlab.experiments import arguments, scaling, sparse_rows
from attnmath import sparsity
from attnmath.estimate import Estimate
from attnmath.operator import gaussian_rows
from attnmath.operator.attention import jacobian_norm, softmax


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
        (lambda: scaling.normal_rows([], []), "keys: expected at least one"),
        (lambda: scaling.normal_rows([4, 8], [1.0]), "keys, deviations: expected as many of both, got 2 and 1"),
        (lambda: scaling.normal_rows([4], [-1.0]), "deviations: expected a positive"),
        (lambda: sparse_rows.mean_sparsity("relu", 0, 1), "activation: expected one of exp"),
        (lambda: sparse_rows.mean_sparsity("exp", 0, 0), "gamma: expected a positive"),
        (lambda: sparse_rows.softmax_sparsity([np.nan], n=4), "gammas: expected no NaN"),
        (lambda: sparse_rows.empty_share(0.0, n=0), "n: expected a positive integer"),
    ],
)
def test_bad_parameters_are_named(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def defaults(function) -> dict[str, object]:
    """What a call takes that says nothing."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def test_the_numbers_of_the_chapters_come_from_these_defaults() -> None:
    """The chapters call the experiments so, and quote what they print: other defaults are other numbers."""
    assert defaults(scaling.score_variance) == {"law": "gaussian", "sigma": 1.0, "draws": 4000, "seed": 514}
    assert defaults(scaling.score_kurtosis) == {"law": "gaussian", "draws": 200_000, "seed": 514}
    assert defaults(scaling.normal_rows) == {"rows": 200, "seed": 514}
    assert defaults(sparse_rows.mean_sparsity) == {"n": 20_000, "rows": 200, "seed": 2}
    assert defaults(sparse_rows.softmax_sparsity) == {"rows": 100, "seed": 5}
    assert defaults(sparse_rows.log_excess) == {"rows": 100, "seed": 0}
    assert defaults(sparse_rows.empty_share) == {"rows": 4000, "seed": 7}


def test_the_draws_depend_on_the_seed_and_the_width_alone() -> None:
    """Each experiment again, by hand from the generator of its seed and width."""
    rng = np.random.default_rng((9, 3))
    q, k = 2.0 * rng.standard_normal((40, 3)), 2.0 * rng.standard_normal((40, 3))
    scores = (q * k).sum(axis=1)
    found = scaling.score_variance([3], sigma=2.0, draws=40, seed=9)
    assert found.value[0] == pytest.approx(scores.var(ddof=1), rel=1e-12)
    rng = np.random.default_rng((9, 3))
    unit = np.einsum("nd,nd->n", rng.standard_normal((40, 3)), rng.standard_normal((40, 3)))
    found = scaling.score_kurtosis([3], draws=40, seed=9)
    assert found.value[0] == pytest.approx((unit**4).mean() / 9 - 3, rel=1e-12)


def test_rows_of_the_article_are_functions_of_seeded_scores() -> None:
    z = np.random.default_rng(9).standard_normal((6, 50))
    rows = {
        "exp": np.exp(0.5 + 2 * z),
        "relu^2": np.where(0.5 + 2 * z > 0, 0.5 + 2 * z, 0) ** 2,
        "identity": 0.5 + 2 * z,
    }
    for name, row in rows.items():
        found = sparse_rows.mean_sparsity(name, 0.5, 2.0, n=50, rows=6, seed=9)
        assert found.value == pytest.approx(sparsity.sparsity(row).mean(), rel=1e-12), name
    curve = sparse_rows.softmax_sparsity([0.5, 2.0], n=50, rows=6, seed=9)
    of_exp = [sparsity.sparsity(np.exp(g * z)) for g in (0.5, 2.0)]
    np.testing.assert_allclose(curve.value, np.mean(of_exp, axis=1), rtol=1e-12)
    excess = sparse_rows.log_excess(2.0, n=50, rows=6, seed=9)
    assert excess.value == pytest.approx(np.log(of_exp[1]).mean() + 2, rel=1e-12)
    few = np.random.default_rng(9).standard_normal((40, 3))
    share = sparse_rows.empty_share(-0.5, n=3, rows=40, seed=9)
    assert share.value == np.mean([max(row) <= 0.5 for row in few]) and 0 < share.value < 1


def test_numbers_of_draws_and_widths_have_their_bounds() -> None:
    assert arguments.several(2, "rows") == 2
    with pytest.raises(ValueError, match="rows: expected at least 2, got 1"):
        arguments.several(1, "rows")
    assert arguments.widths_of([1]) == [1] == arguments.widths_of(np.asarray([1])) == arguments.widths_of((1,))
    for value, words in (("12", "str '12'"), ({1}, "set {1}"), (3, "int 3")):
        with pytest.raises(TypeError, match=f"keys: expected a list of positive integers, got {words}"):
            arguments.widths_of(value, "keys")
    with pytest.raises(ValueError, match="widths: expected at least one, got none"):
        arguments.widths_of([])
    with pytest.raises(ValueError, match="widths: expected a positive integer, got 0"):
        arguments.widths_of([1, 0])


def test_scores_have_a_largest_size() -> None:
    for beta, gamma in ((1e75, 1.0), (-1e75, 1.0), (0.0, 1e75)):
        assert sparse_rows.mean_sparsity("identity", beta, gamma, n=3, rows=2).value <= 1
    for beta, gamma in ((1.1e75, 1.0), (-1.1e75, 1.0), (0.0, 1.1e75)):
        with pytest.raises(ValueError, match="beta, gamma: expected scores of at most 1e[+]75 in modulus, got"):
            sparse_rows.mean_sparsity("identity", beta, gamma, n=3, rows=2)
    with pytest.raises(ValueError, match="beta, gamma: expected rows that are not all zero, got one at beta = -50.0"):
        sparse_rows.mean_sparsity("relu^2", -50.0, 1.0, n=3, rows=2)
    for keys, spreads in (([4], [1.0, 2.0]), ([4, 8], [1.0])):
        with pytest.raises(ValueError, match="keys, deviations: expected as many of both"):
            scaling.normal_rows(keys, spreads)


def test_hundreds_of_rows_have_their_deviations() -> None:
    assert scaling.normal_rows([2] * 300, [1.0] * 300, rows=2)["entropy"].value.shape == (300,)


def test_dimensions_that_are_not_those_of_the_formula_are_named() -> None:
    for call, words in (
        (lambda: sparse_rows.mean_sparsity("exp", [0.0], 1.0, n=2, rows=2), "beta: expected 0 dimensions"),
        (lambda: sparse_rows.softmax_sparsity([[1.0]], n=2, rows=2), "gammas: expected 1 dimensions"),
        (lambda: sparse_rows.empty_share([0.0], n=2, rows=2), "t: expected 0 dimensions"),
        (lambda: scaling.normal_rows([4], [[1.0]], rows=2), "deviations: expected 1 dimensions"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
