"""Section 5.1.8: attention written as sums over entries, ready to be differentiated, and the moments behind Xavier.

Matrices are sympy matrix symbols of symbolic size; see `attnmath.derive.indices`.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from attnmath.derive.indices import collapse, index, softmax_entry, total
from attnmath.derive.moments import moment_of_sum, raw_moments


def output_entry(Q: sp.MatrixSymbol, K: sp.MatrixSymbol, V: sp.MatrixSymbol, i: Any, c: Any) -> sp.Expr:
    """Entry (i, c) of O = softmax(Q K^T / sqrt(d_k)) V, equation (5.1.1), for symbolic sizes.

    >>> Q = K = V = sp.MatrixSymbol("A", 1, 1)
    >>> output_entry(Q, K, V, 0, 0).doit()
    A[0, 0]
    """
    j = index("j")
    return total(attention_entry(Q, K, i, j) * V[j, c], (j, V.shape[0]))


def attention_entry(Q: sp.MatrixSymbol, K: sp.MatrixSymbol, i: Any, j: Any) -> sp.Expr:
    """Entry (i, j) of the weights softmax(Q K^T / sqrt(d_k)) for symbolic sizes.

    >>> Q = K = sp.MatrixSymbol("A", 1, 1)
    >>> attention_entry(Q, K, 0, 0).doit()
    1
    """
    S = sp.MatrixSymbol("S", Q.shape[0], K.shape[0])
    a = index("a")

    def score(row: Any, column: Any) -> sp.Expr:
        return total(Q[row, a] * K[column, a], (a, Q.shape[1])) / sp.sqrt(Q.shape[1])

    return softmax_entry(S, i, j).replace(lambda e: isinstance(e, sp.matrices.expressions.matexpr.MatrixElement),
                                          lambda e: score(*e.args[1:]))  # fmt: skip


def weighted_covariance(weights: Any, a: Any, b: Any, size: Any) -> sp.Expr:
    """Covariance sum_j w_j a_j b_j - (sum_j w_j a_j)(sum_j w_j b_j) of two functions of an index.

    weights, a, b : functions from an index to an expression; the weights sum to 1.

    >>> n = sp.Integer(2)
    >>> weighted_covariance(lambda j: sp.Rational(1, 2), lambda j: j, lambda j: j, n).doit()
    1/4
    """
    j = index("j")
    mean_a, mean_b = total(weights(j) * a(j), (j, size)), total(weights(j) * b(j), (j, size))
    return collapse(total(weights(j) * a(j) * b(j), (j, size))) - collapse(mean_a) * collapse(mean_b)


def projected_covariance(x: sp.MatrixSymbol, y: sp.MatrixSymbol, v: Any, m: Any, r: Any) -> sp.Expr:
    """Covariance over W of the entries (x W)_m and (y W)_r, for rows x, y of symbolic length.

    The entries of W are centred and uncorrelated with variance v, so E[W_am W_br] is v where
    a = b and m = r, and else 0.

    >>> D = sp.Symbol("D", integer=True, positive=True)
    >>> x = sp.MatrixSymbol("x", 1, D)
    >>> projected_covariance(x, x, sp.Symbol("v"), index("m"), index("m"))
    v*Sum(x[0, a]**2, (a, 0, D - 1))
    """
    a, b = index("a"), index("b")
    D = x.shape[1]
    return collapse(total(x[0, a] * y[0, b] * v * sp.KroneckerDelta(a, b) * sp.KroneckerDelta(m, r), (b, D), (a, D)))


def score_variance(x: sp.MatrixSymbol, y: sp.MatrixSymbol, v_Q: Any, v_K: Any, d_k: Any) -> sp.Expr:
    """Variance over W_Q and W_K of the scaled score (x W_Q).(y W_K) / sqrt(d_k) of two fixed rows.

    The two matrices are independent and centred, so the mean is 0 and E[q_m k_m q_r k_r] is
    E[q_m q_r] E[k_m k_r]; nothing changes when x and y are the same row.

    >>> d = sp.Symbol("d", integer=True, positive=True)
    >>> one = sp.MatrixSymbol("x", 1, 1)
    >>> score_variance(one, one, 1, 1, d).doit()
    x[0, 0]**4
    """
    m, r = index("m"), index("r")
    pairs = projected_covariance(x, x, v_Q, m, r) * projected_covariance(y, y, v_K, m, r)
    # The square of a Kronecker delta is the delta.
    once = pairs.replace(lambda e: e.is_Pow and isinstance(e.base, sp.KroneckerDelta), lambda e: e.base)
    return collapse(total(once, (m, d_k), (r, d_k))) / d_k


def centred_products(n: Any, kappa: Any) -> tuple[sp.Expr, sp.Expr]:
    """E[(x^T H x)^2] and E[(x^T H y)^2] for n independent standardised entries, H = I - 11^T/n.

    kappa : kurtosis of an entry of x; y is an independent copy of x.

    x^T H x = p2 - p1^2/n with the power sums p1 and p2, and E[(x^T H y)^2] is the sum of the
    squared entries of H: n of them on the diagonal, n (n - 1) off it.

    >>> n = sp.Symbol("n", positive=True)
    >>> sp.factor(centred_products(n, 3)[0]), sp.factor(centred_products(n, 3)[1])
    ((n - 1)*(n + 1), n - 1)
    """
    t, u = sp.symbols("t u")
    entry = [*raw_moments(0, 1, sp.Symbol("gamma"), kappa), sp.Symbol("E5"), sp.Symbol("E6"), *sp.symbols("E7 E8")]

    def moment(order: int) -> sp.Expr:
        """E[(t x + u x^2)^order]."""
        return sum(sp.binomial(order, k) * t ** (order - k) * u**k * entry[order + k] for k in range(order + 1))

    def mixed(ones: int, twos: int) -> sp.Expr:
        """E[p1^ones p2^twos], read off the generating polynomial E[(t p1 + u p2)^(ones + twos)]."""
        order = ones + twos
        polynomial = sp.Poly(moment_of_sum(order, n, moment), t, u)
        return polynomial.coeff_monomial(t**ones * u**twos) / sp.binomial(order, twos)

    same = mixed(0, 2) - 2 * mixed(2, 1) / n + mixed(4, 0) / n**2
    different = n * (1 - 1 / n) ** 2 + n * (n - 1) / n**2
    return sp.factor(sp.simplify(same)), sp.factor(sp.simplify(different))


def query_gradient_at_uniform_attention(
    n: Any, d_model: Any, d_k: Any, v_K: Any, v_V: Any, *, kappa: Any = 3, scale: Any = None
) -> sp.Expr:
    """E|dL/dq_i|^2 / |g_i|^2 when row i of the weights is uniform, over random X, W_K and W_V.

    The gradient is scale * alpha^T C W_K with alpha = W_V g_i and C = X^T H X / n. Entries of X
    are independent and standardised with kurtosis kappa; those of W_K and W_V are centred and
    uncorrelated with variances v_K and v_V. So the mean is scale^2 d_k v_K v_V E tr(C^2).

    >>> n, d = sp.symbols("n d", positive=True)
    >>> sp.factor(query_gradient_at_uniform_attention(n, d, d, 1 / d, 1 / d))
    (d + n)*(n - 1)/(d*n**2)
    """
    scale = 1 / sp.sqrt(d_k) if scale is None else scale
    same, different = centred_products(n, kappa)
    trace = d_model * same + d_model * (d_model - 1) * different
    return sp.factor(sp.simplify(scale**2 * d_k * v_K * v_V * trace / n**2))
