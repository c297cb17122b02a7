"""The index calculus against explicit matrices, and the derivation of the gradients in one stroke."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sp

from attnmath.derive.gradients import (
    attention_entry,
    centred_products,
    output_entry,
    projected_covariance,
    query_gradient_at_uniform_attention,
    score_variance,
    weighted_covariance,
)
from attnmath.derive.indices import collapse, derivative, index, softmax_entry, total
from attnmath.derive.zero import vanishes, witness
from attnmath.gradients import attention_gradients

n, m, d_k, d_v = sp.symbols("n m d_k d_v", integer=True, positive=True)
i, j, r, s, c = map(index, "ijrsc")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_collapse_agrees_with_writing_the_sum_out(size: int) -> None:
    A, x = sp.MatrixSymbol("A", size, size), sp.MatrixSymbol("x", 1, size)
    k = sp.Integer(size)
    summand = (A[i, j] * x[0, j] + 3) * sp.KroneckerDelta(i, r) + x[0, i] * 2
    expression = total(summand, (i, k), (j, k))
    for row in range(size):
        written = sum(summand.subs({i: a, j: b, r: row}) for a, b in itertools.product(range(size), repeat=2))
        assert sp.expand(collapse(expression).subs(r, row).doit() - written) == 0


def test_a_derivative_of_a_product_of_sums() -> None:
    x = sp.MatrixSymbol("x", 1, n)
    square = total(x[0, i], (i, n)) ** 2
    assert sp.expand(derivative(square, x[0, r]) - 2 * total(x[0, i], (i, n))) == 0


def test_softmax_entry_refuses_its_own_index() -> None:
    with pytest.raises(ValueError, match="i, j: expected indices other than l"):
        softmax_entry(sp.MatrixSymbol("S", n, m), i, index("l"))


def test_the_output_differentiated_in_one_stroke_is_a_covariance() -> None:
    Q, K, V = sp.MatrixSymbol("Q", n, d_k), sp.MatrixSymbol("K", m, d_k), sp.MatrixSymbol("V", m, d_v)
    found = derivative(output_entry(Q, K, V, i, c), Q[r, s])
    covariance = weighted_covariance(lambda j: attention_entry(Q, K, i, j), lambda j: V[j, c], lambda j: K[j, s], m)
    expected = sp.KroneckerDelta(i, r, (0, n - 1)) * covariance / sp.sqrt(d_k)
    assert vanishes(found - expected)
    assert witness((found - sp.sqrt(d_k) * expected).subs(r, i)) is not None


@pytest.mark.parametrize("sizes", [(2, 1, 1, 1), (2, 2, 1, 1), (2, 1, 2, 1)])
def test_explicit_matrices_differentiated_entry_by_entry_agree_with_the_closed_form(sizes: tuple[int, ...]) -> None:
    rows, d_model, width, out = sizes
    names = {"X": (rows, d_model), "W_Q": (d_model, width), "W_K": (d_model, width), "W_V": (d_model, out)}
    M = {name: sp.Matrix(*shape, sp.symbols(f"{name}:{shape[0] * shape[1]}")) for name, shape in names.items()}
    G = sp.Matrix(rows, out, [2, -3][: rows * out])
    S = (M["X"] * M["W_Q"] * (M["X"] * M["W_K"]).T) / sp.sqrt(width)
    E = S.applyfunc(sp.exp)
    P = sp.Matrix(rows, rows, lambda a, b: E[a, b] / sum(E[a, :]))
    loss = (G.T * P * M["X"] * M["W_V"]).trace()
    rng = np.random.default_rng(1)
    point = {x: sp.Rational(int(v), 8) for A in M.values() for x, v in zip(A, rng.integers(-16, 16, 99), strict=False)}
    numbers = [np.asarray(A.subs(point), dtype=float) for A in M.values()]
    found = attention_gradients(*numbers, np.asarray(G, dtype=float))
    for name, A in M.items():
        expected = [float(loss.diff(x).subs(point)) for x in A]
        np.testing.assert_allclose(getattr(found, name).ravel(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [2, 3])
def test_centred_products_by_enumeration(size: int) -> None:
    """Entries -1 or 1 have kurtosis 1."""
    H = np.eye(size) - 1 / size
    signs = np.asarray(list(itertools.product((-1, 1), repeat=size)))
    same, different = (float(e.subs(sp.Symbol("n"), size)) for e in centred_products(sp.Symbol("n"), 1))
    forms = signs @ H @ signs.T
    assert same == pytest.approx((np.diag(forms) ** 2).mean()) and different == pytest.approx((forms**2).mean())


@pytest.mark.parametrize("rows, width", [(2, 1), (2, 2), (3, 1)])
def test_mean_query_gradient_by_enumeration(rows: int, width: int) -> None:
    """Every matrix of signs once; |g| = 1 in one value column."""
    total_square, count = 0.0, 0
    signs = [np.asarray(v, dtype=float) for v in itertools.product((-1, 1), repeat=rows * width + 2 * width)]
    for v in signs:
        X, W_K, W_V = v[: rows * width].reshape(rows, width), v[-2 * width : -width, None], v[-width:, None]
        g = attention_gradients(X, np.zeros((width, 1)), W_K, W_V, np.eye(rows)[:, :1])
        total_square, count = total_square + float(g.Q[0, 0] ** 2), count + 1
    expected = query_gradient_at_uniform_attention(rows, width, 1, 1, 1, kappa=1)
    assert total_square / count == pytest.approx(float(expected), rel=1e-12)


def test_score_variance_by_enumeration() -> None:
    """Weights -1 or 1, two input components, two output components."""
    x, y = np.asarray([1.0, 2.0]), np.asarray([3.0, -1.0])
    weights = [np.reshape(w, (2, 2)) for w in itertools.product((-1, 1), repeat=4)]
    scores = [x @ A @ B.T @ y / np.sqrt(2) for A in weights for B in weights]
    X, Y = sp.MatrixSymbol("x", 1, 2), sp.MatrixSymbol("y", 1, 2)
    values = {X[0, k]: x[k] for k in range(2)} | {Y[0, k]: y[k] for k in range(2)}
    expected = score_variance(X, Y, 1, 1, sp.Integer(2)).doit().subs(values)
    assert np.var(scores) == pytest.approx(float(expected)) and np.mean(scores) == pytest.approx(0)
    assert projected_covariance(X, Y, 1, index("m"), index("m")).doit().subs(values) == pytest.approx(x @ y)
