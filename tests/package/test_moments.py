"""Symbolic moments against enumeration: the patterns of coinciding indices are counted right."""

from __future__ import annotations

import itertools

import pytest
import sympy as sp

from attnmath.derive import dot_product, moments

d_k, sigma = sp.symbols("d_k sigma", positive=True)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_moment_of_sum_matches_enumeration(d: int, order: int) -> None:
    """A variable on {-1, 0, 5} with weights 1/2, 1/3, 1/6, summed over every outcome of d copies."""
    law = {-1: sp.Rational(1, 2), 0: sp.Rational(1, 3), 5: sp.Rational(1, 6)}
    exact = sum(
        sp.prod(law[x] for x in outcome) * sp.Integer(sum(outcome)) ** order
        for outcome in itertools.product(law, repeat=d)
    )
    symbol = sp.Symbol("d", integer=True)
    formula = moments.moment_of_sum(order, symbol, lambda r: sum(w * sp.Integer(x) ** r for x, w in law.items()))
    assert formula.subs(symbol, d) == exact


def test_expectation_needs_only_moments() -> None:
    x, y, a = sp.symbols("x y a")
    assert moments.expectation((x + y) ** 3, {x: [1, 0, 1, a], y: [1, 0, 1, 0]}) == a
    with pytest.raises(ValueError, match="moments: expected moments up to order 3"):
        moments.expectation(x**3, {x: [1, 0, 1]})


def test_raw_and_central_moments_invert_each_other() -> None:
    mu, g, k = sp.symbols("mu g k")
    central = moments.central_moments(moments.raw_moments(mu, sigma, g, k))
    assert [sp.expand(c) for c in central] == [1, 0, sigma**2, sp.expand(g * sigma**3), sp.expand(k * sigma**4)]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_variance_of_two_valued_dot_products_by_enumeration(d: int) -> None:
    """Components 0 or 2: mean 1, variance 1, so the formula gives d (1 + 1 + 1)."""
    products = [
        sum(a * b for a, b in zip(q, k, strict=True))
        for q in itertools.product((0, 2), repeat=d)
        for k in itertools.product((0, 2), repeat=d)
    ]
    mean = sp.Rational(sum(products), len(products))
    exact = sp.Rational(sum(p**2 for p in products), len(products)) - mean**2
    assert dot_product.variance_of_dot_product(d, 1, mean_q=1, mean_k=1) == exact


def test_correlated_pair_reduces_to_the_known_ends() -> None:
    assert dot_product.moments_of_correlated_pair(0, sigma) == (0, sigma**4)
    assert dot_product.moments_of_correlated_pair(1, sigma) == (sigma**2, 2 * sigma**4)


def test_cosine_second_moment_at_integers() -> None:
    assert [dot_product.cosine_second_moment(sp.Integer(n)) for n in (2, 3, 10)] == [
        sp.Rational(1, 2),
        sp.Rational(1, 3),
        sp.Rational(1, 10),
    ]
