"""The seven fixed patterns: their formulas, their edge rows, and what is rejected."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnmath.fixed_attention.fixed_patterns import EDGES, ENDS, PATTERNS, cubic_weights, fixed_pattern, fixed_patterns

sizes = st.integers(1, 12)


def by_hand(name: str, i: int, n: int, ends: str) -> dict[int, Fraction]:
    """Return the weights of row i by the words of the report; none where a pattern leaves the sentence."""
    at, past, rest = {"current": i, "previous": i - 1, "next": i + 1}, range(i - 1), range(i + 2, n)
    if name in at:
        return {at[name]: Fraction(1)} if 0 <= at[name] < n else {}
    if ends == "point" and name in ("end", "start"):
        return {n - 1 if name == "end" else 0: Fraction(1)}
    where = {"left": past, "right": rest, "end": range(n), "start": range(n)}[name]
    energies = {j: (j + 1 if name in ("left", "end") else n - j) ** 3 for j in where}
    return {j: Fraction(energy, sum(energies.values())) for j, energy in energies.items()}


@given(n=sizes)
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("edges", EDGES)
def test_every_entry_is_what_the_words_say(edges: str, ends: str, n: int) -> None:
    for name, A in zip(PATTERNS, fixed_patterns(n, edges=edges, ends=ends), strict=True):
        np.testing.assert_array_equal(A, fixed_pattern(name, n, edges=edges, ends=ends))
        for i in range(n):
            weights = by_hand(name, i, n, ends)
            if not weights and edges == "nearest":
                weights = {0 if name in ("previous", "left") else n - 1: Fraction(1)}
            expected = [float(weights.get(j, 0)) for j in range(n)]
            np.testing.assert_allclose(A[i], expected, rtol=1e-14, atol=0)


@given(n=sizes)
def test_rows_sum_to_one_unless_edges_are_zero(n: int) -> None:
    np.testing.assert_allclose(fixed_patterns(n).sum(axis=-1), 1, rtol=1e-14)
    empty = {"previous": 1, "next": 1, "left": 2, "right": 2}
    sums = fixed_patterns(n, edges="zero").sum(axis=-1)
    assert [int((row == 0).sum()) for row in sums] == [min(n, empty.get(name, 0)) for name in PATTERNS]


def test_cubic_weights() -> None:
    np.testing.assert_array_equal(cubic_weights(1), [1.0])
    np.testing.assert_allclose(cubic_weights(4), np.array([1, 8, 27, 64]) / 100, rtol=1e-15)
    assert cubic_weights(5000).sum() == pytest.approx(1, rel=1e-12)


def test_results_may_be_changed_without_changing_others() -> None:
    first = fixed_pattern("start", 3)
    first[0, 0] = 7
    assert fixed_pattern("start", 3)[0, 0] < 1 and first[1, 0] < 1


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match="name: expected one of current, previous, next, left, right, end, start"):
        fixed_pattern("before", 3)
    with pytest.raises(ValueError, match="edges: expected one of nearest, zero, got 'wrap'"):
        fixed_pattern("current", 3, edges="wrap")
    with pytest.raises(ValueError, match="ends: expected one of cubic, point, got 'last'"):
        fixed_patterns(3, ends="last")
    with pytest.raises(ValueError, match="n: expected a positive integer, got 0"):
        fixed_patterns(0)
    with pytest.raises(ValueError, match=f"n: expected a result of at most {2**28} numbers, got 7 x 16384 x 16384"):
        fixed_patterns(16384)
    with pytest.raises(ValueError, match="m: expected a positive integer, got 0"):
        cubic_weights(0)
