"""Symbolic moments against enumeration: the patterns of coinciding indices are counted right."""

from __future__ import annotations

import itertools

import pytest
import sympy as sp

from attnmath.derive import moments


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


def test_raw_moments_expand_about_the_mean() -> None:
    mu, sigma, g, k = sp.symbols("mu sigma g k")
    z = [1, 0, 1, g, k]  # moments of the standardised variable
    for order, raw in enumerate(moments.raw_moments(mu, sigma, g, k)):
        expected = sum(sp.binomial(order, j) * mu ** (order - j) * sigma**j * z[j] for j in range(order + 1))
        assert sp.expand(raw - expected) == 0
