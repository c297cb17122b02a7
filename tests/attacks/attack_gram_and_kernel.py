"""Attacks on what the chapter on scores as a Gram matrix and weights as a kernel says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import at_most, attack, equal, exactly_if, no_attack, rounding, true
from instances import Array, moderate, softmax


def norm(A: Array) -> Array:
    """The 2-norm of each matrix of a batch; 0 for a matrix without entries."""
    return np.linalg.norm(A, 2, axis=(1, 2)) if A.shape[1] else np.zeros(len(A))


def backward(A: Array) -> Array:
    """How far from A is the matrix whose eigenvalues were computed, in any of the norms."""
    return rounding(20 * A.shape[1] ** 1.5, np.linalg.norm(A, axis=(1, 2)))


def size_of(S: Array) -> Array:
    return np.abs(S).max(axis=(1, 2))


# Scores as a bilinear form ------------------------------------------------------------------------------------------


def times(*factors: Array) -> tuple[Array, Array]:
    """A product of matrices, and the sums of the sizes of its terms."""
    value, size = factors[0], np.abs(factors[0])
    for factor in factors[1:]:
        value, size = value @ factor, size @ np.abs(factor)
    return value, size


def T(A: Array) -> Array:
    return A.swapaxes(1, 2)


def same(one: tuple[Array, Array], other: tuple[Array, Array]):
    (x, size), (y, other_size) = one, other
    return equal(x, y, rounding(200, size + other_size))


law = instances.random_vectors.also(
    W_Q=lambda rng, x, p: instances.entries(rng, len(x), (x.shape[2], 2)),
    W_K=lambda rng, x, p, W_Q: instances.entries(rng, len(x), (x.shape[2], 3)),
)


def covariance_is(x, p, W_Q, W_K, formula):
    """Cov(q, k) with q = x W_Q and k = x W_K for a law with finitely many atoms, so that it is exact."""
    q, k = x @ W_Q, x @ W_K
    expected = formula(instances.covariance(p, x, x))
    total = np.abs(x).sum(axis=1)
    size = np.einsum("bd,bde,bf,bfg->beg", total, np.abs(W_Q), total, np.abs(W_K), optimize=True)
    return equal(instances.covariance(p, q, k), expected, rounding(100, size))


def over_columns(X, W_Q, W_K, means=1.0, scale=1.0):
    """The cross-covariance of W_Q and W_K over their columns against M / d_k less the product of mean columns."""
    d_k = W_Q.shape[2]
    off = [W - W.mean(axis=2, keepdims=True) for W in (W_Q, W_K)]
    product = W_Q.mean(axis=2)[:, :, None] * W_K.mean(axis=2)[:, None, :]
    size = np.abs(W_Q) @ T(np.abs(W_K)) / d_k + np.abs(W_Q).mean(axis=2)[:, :, None] * np.abs(W_K).mean(2)[:, None, :]
    found = off[0] @ T(off[1]) / d_k
    return equal(found, scale * W_Q @ T(W_K) / d_k - means * product, rounding(100, size))


@attack(
    "5.5.1/cross-covariance",
    on=law,
    wrong={
        "it is M, without the data": lambda x, p, W_Q, W_K: covariance_is(x, p, W_Q, W_K, lambda C: T(W_Q) @ W_K),
        "without subtracting means": lambda x, p, W_Q, W_K: covariance_is(
            x, p, W_Q, W_K, lambda C: T(W_Q) @ np.einsum("ba,bad,bae->bde", p, x, x) @ W_K
        ),
    },
)
def cross_covariance_of_query_and_key(x, p, W_Q, W_K):
    found = covariance_is(x, p, W_Q, W_K, lambda C: T(W_Q) @ C @ W_K)
    return found & true(np.full(len(x), instances.covariance(p, x @ W_Q, x @ W_K).shape[1:] == (2, 3)))


projections = instances.inputs.map("X W_Q W_K", lambda X, W_Q, W_K, W_V: (X, W_Q, W_K))


@attack(
    "5.5.1/cross-covariance",
    on=projections,
    wrong={
        "it is M over d_k": lambda X, W_Q, W_K: over_columns(X, W_Q, W_K, means=0.0),
        "it is M less the means": lambda X, W_Q, W_K: over_columns(X, W_Q, W_K, scale=W_Q.shape[2]),
    },
)
def cross_covariance_of_the_columns(X, W_Q, W_K):
    return over_columns(X, W_Q, W_K)


@attack(
    "5.5.1/map",
    "5.5.1/bilinear",
    on=projections,
    wrong={
        "M in place of its transpose": lambda X, W_Q, W_K: same(
            times(X, W_Q, T(W_K), T(X)), T2(times(X, W_Q, T(W_K), T(X)))
        ),
        "the plain dot product of the inputs": lambda X, W_Q, W_K: same(times(X, W_Q, T(W_K), T(X)), times(X, T(X))),
    },
)
def the_form_acts_on_the_inputs(X, W_Q, W_K):
    queries, keys = times(X, W_Q), times(X, W_K)
    M = W_Q @ T(W_K)
    looked_for = T(T(M) @ T(X))  # row i is M' x_i
    size = times(X, W_Q, T(W_K), T(X))[1]
    scores = queries[0] @ T(keys[0])
    return (
        equal(scores, looked_for @ T(X), rounding(200, size))
        & equal(scores, X @ M @ T(X), rounding(200, size))
        & true(np.full(len(X), M.shape[1:] == (X.shape[2], X.shape[2])))
    )


def T2(pair: tuple[Array, Array]) -> tuple[Array, Array]:
    return T(pair[0]), T(pair[1])


def symmetric_or_clearly_not(M: Array) -> Array:
    off = np.abs(M - T(M)).max(axis=(1, 2))
    return (off <= 1e-13 * size_of(M)) | (off > 1e-6 * size_of(M))


def symmetric(M: Array) -> Array:
    return np.abs(M - T(M)).max(axis=(1, 2)) <= 1e-9 * size_of(M)


half_symmetric = instances.square_matrices | instances.symmetric_matrices.map("M", lambda S: S)
forms = half_symmetric.such_that(symmetric_or_clearly_not).also(
    X=lambda rng, M: np.concatenate([np.eye(M.shape[1]) + 0 * M, rng.normal(size=M.shape)], axis=1)
)


def exchange(M, X, weights=lambda M: M):
    """Whether the form gives the same when its arguments are exchanged, for unit vectors and others."""
    form = X @ weights(M) @ T(X)
    return np.abs(form - T(form)).max(axis=(1, 2)) <= 1e-8 * size_of(M)


@attack(
    "5.5.1/inner-product",
    on=forms,
    wrong={
        "always": lambda M, X: true(exchange(M, X)),
        "exactly if it is diagonal": lambda M, X: exactly_if(
            exchange(M, X), np.abs(M * (1 - np.eye(M.shape[1]))).max((1, 2)) <= 1e-9 * size_of(M)
        ),
    },
)
def the_form_is_symmetric_exactly_if_its_matrix_is(M, X):
    return exactly_if(exchange(M, X), symmetric(M))


def some_vector_has_no_positive_square(W_Q, W_K):
    """The direction that W_K loses has x M x = 0, so that the form is not positive definite."""
    lost = np.linalg.svd(W_K)[0][:, :, -1]
    square = np.einsum("bd,bde,bfe,bf->b", lost, W_Q, W_K, lost, optimize=True)
    size = np.linalg.norm(W_Q, axis=(1, 2)) * np.linalg.norm(W_K, axis=(1, 2))
    return at_most(square, 0.0, rounding(100, size))


weights = projections.map("W_Q W_K", lambda X, W_Q, W_K: (W_Q, W_K))


@attack(
    "5.5.1/inner-product",
    on=weights.such_that(lambda W_Q, W_K: np.full(len(W_Q), W_Q.shape[2] < W_Q.shape[1])),
    wrong={"wide heads as well": weights.such_that(lambda W_Q, W_K: np.full(len(W_Q), W_Q.shape[2] >= W_Q.shape[1]))},
)
def a_narrow_head_has_no_inner_product(W_Q, W_K):
    return some_vector_has_no_positive_square(W_Q, W_K)


biased = projections.such_that(moderate(10)).also(
    b_Q=lambda rng, X, W_Q, W_K: rng.normal(size=(len(X), 1, W_Q.shape[2])),
    b_K=lambda rng, X, W_Q, W_K, b_Q: rng.normal(size=(len(X), 1, W_Q.shape[2])),
)


def weights_with_biases(X, W_Q, W_K, b_Q, b_K, seen):
    d_k = W_Q.shape[2]
    full, size = times(X @ W_Q + b_Q, T(X @ W_K + b_K))
    size = np.abs(full) + times(np.abs(X) @ np.abs(W_Q) + np.abs(b_Q), T(np.abs(X) @ np.abs(W_K) + np.abs(b_K)))[1]
    part = X @ W_Q @ T(X @ W_K) + seen
    slack = rounding(200, 1 + size.max(axis=(1, 2)))
    return equal(softmax(full / np.sqrt(d_k)), softmax(part / np.sqrt(d_k)), slack)


@attack(
    "gram_and_kernel/biases",
    on=biased,
    wrong={
        "the softmax sees none of them": lambda X, W_Q, W_K, b_Q, b_K: weights_with_biases(X, W_Q, W_K, b_Q, b_K, 0.0),
        "it sees the bias of the keys": lambda X, W_Q, W_K, b_Q, b_K: weights_with_biases(
            X, W_Q, W_K, b_Q, b_K, X @ W_Q @ T(b_K)
        ),
        "the query's bias meets the query's projection": lambda X, W_Q, W_K, b_Q, b_K: weights_with_biases(
            X, W_Q, W_K, b_Q, b_K, b_Q @ T(X @ W_Q)
        ),
    },
)
def the_softmax_sees_one_of_three_terms(X, W_Q, W_K, b_Q, b_K):
    return weights_with_biases(X, W_Q, W_K, b_Q, b_K, b_Q @ T(X @ W_K))


# Weights as a kernel ------------------------------------------------------------------------------------------------


def normalised(S, kernel=np.exp, axis=2, first=np.exp):
    K = kernel(S)
    slack = rounding(20 * S.shape[2], 1, 1 + size_of(S))
    return equal(softmax(S), K / K.sum(axis=axis, keepdims=True), slack)


@attack(
    "5.5.1/kernel",
    on=instances.score_matrices.such_that(moderate(300)),
    wrong={
        "a softmax of the kernel": lambda S: equal(softmax(S), softmax(np.exp(S)), rounding(20 * S.shape[2], 1, 301)),
        "columns are normalised": lambda S: normalised(S, axis=1),
    },
)
def weights_are_the_kernel_with_normalised_rows(S):
    return normalised(S)


def circulants(M: Array) -> Array:
    """Symmetric circulant matrices from the first rows: all row sums agree."""
    n = M.shape[1]
    row = M[:, 0] + np.roll(M[:, 0, ::-1], 1, axis=1)
    return np.stack([np.roll(row, i, axis=1) for i in range(n)], axis=1) / 2


def denominators_clear(S: Array) -> Array:
    D = np.exp(S).sum(axis=2)
    apart = np.ptp(D, axis=1) / D.max(axis=1)
    return (apart < 1e-14 * S.shape[1]) | (apart > 1e-6)


small = moderate(5)
symmetric_scores = (instances.symmetric_matrices | instances.square_matrices.map("S", circulants)).such_that(small)


@attack(
    "gram_and_kernel/symmetric-scores",
    on=symmetric_scores.such_that(denominators_clear),
    wrong={
        "always": lambda S: true(symmetric(softmax(S))),
        "exactly if the diagonal is constant": lambda S: exactly_if(
            symmetric(softmax(S)), np.ptp(np.diagonal(S, 0, 1, 2), axis=1) < 1e-9
        ),
        "for any scores": (
            lambda S: exactly_if(symmetric(softmax(S)), equal_denominators(S)),
            (instances.square_matrices.map("S", lambda M: M).such_that(small)),
        ),
    },
)
def weights_are_symmetric_exactly_if_denominators_agree(S):
    return exactly_if(symmetric(softmax(S)), equal_denominators(S))


def equal_denominators(S: Array) -> Array:
    D = np.exp(S).sum(axis=2)
    return np.ptp(D, axis=1) <= 1e-10 * D.max(axis=1)


def kernel(X: Array, M: Array) -> Array:
    return np.exp(X @ M @ T(X) / np.sqrt(M.shape[1]))


tame_forms = half_symmetric.such_that(lambda M: symmetric_or_clearly_not(M) & (size_of(M) > 0)).map(
    "M", lambda M: M / size_of(M)[:, None, None]
)


@attack(
    "gram_and_kernel/kernel-symmetric",
    on=tame_forms.also(X=lambda rng, M: np.concatenate([np.eye(M.shape[1]) + 0 * M, rng.normal(size=M.shape)], axis=1)),
    wrong={
        "always": lambda M, X: true(symmetric(kernel(X, M))),
        "on one pair of equal inputs": lambda M, X: exactly_if(symmetric(kernel(X[:, :1], M)), symmetric(M)),
    },
)
def the_kernel_is_symmetric_exactly_if_the_form_is(M, X):
    logs = np.log(kernel(X, M))
    return exactly_if(np.abs(logs - T(logs)).max(axis=(1, 2)) < 1e-8, symmetric(M))


def clear_sign(S: Array) -> Array:
    """The smallest eigenvalue is rounding or positive, or clearly negative, for matrices of norm 1."""
    low = np.linalg.eigvalsh(S)[:, 0]
    return (low > -1e-13) | (low < -1e-3)


def unit_norm(S: Array) -> Array:
    return S / norm(S)[:, None, None]


psd = instances.square_matrices.such_that(lambda M: norm(M) > 0).map("S", lambda M: M @ T(M))
any_sign = instances.symmetric_matrices | psd
signed = any_sign.such_that(lambda S: norm(S) > 0).map("S", unit_norm).such_that(clear_sign)
points = signed.also(X=lambda rng, S: rng.uniform(-2, 2, size=(len(S), 4, S.shape[1])))


def smallest_of_kernel(S, X):
    """The smallest eigenvalue of the kernel matrix of X, and of the pair u and -u along the lowest direction of M."""
    u = np.linalg.eigh(S)[1][:, :, 0]
    pair = np.stack([u, -u], axis=1)
    return np.minimum(*(np.linalg.eigvalsh(kernel(points, S))[:, 0] for points in (X, pair)))


def is_psd(S):
    return np.linalg.eigvalsh(S)[:, 0] > -1e-9


@attack(
    "proposition-kernel-psd",
    "gram_and_kernel/kernel-psd",
    on=points,
    wrong={
        "every symmetric form": lambda S, X: true(smallest_of_kernel(S, X) > -1e-9),
        "exactly if the entries are not negative": lambda S, X: exactly_if(
            smallest_of_kernel(S, X) > -1e-9, (S >= 0).all(axis=(1, 2))
        ),
        "exactly if the trace is not negative": lambda S, X: exactly_if(
            smallest_of_kernel(S, X) > -1e-9, np.trace(S, axis1=1, axis2=2) >= 0
        ),
    },
)
def the_kernel_is_semidefinite_exactly_if_the_form_is(S, X):
    return exactly_if(smallest_of_kernel(S, X) > -1e-9, is_psd(S))


def stationary_is(S, D):
    A = softmax(S)
    pi = D / D.sum(axis=1, keepdims=True)
    return equal(np.einsum("bi,bij->bj", pi, A), pi, rounding(40 * S.shape[1], 1, 1 + size_of(S)))


def eigenvalues_are_real(A, D):
    """D^(1/2) A D^(-1/2) is symmetric, so the eigenvectors of A have at most the condition (max D / min D)^(1/2)."""
    return equal(np.linalg.eigvals(A).imag, 0.0, backward(A) * np.sqrt(D.max(axis=1) / D.min(axis=1)))


def row_sums(S):
    return np.exp(S).sum(axis=2)


@attack(
    "theorem-reversible-attention",
    "gram_and_kernel/reversible",
    on=instances.symmetric_matrices.such_that(moderate(20)),
    wrong={
        "the stationary distribution is uniform": lambda S: stationary_is(S, np.ones(S.shape[:2])),
        "proportional to the inverse of the denominators": lambda S: stationary_is(S, 1 / row_sums(S)),
        "scores need not be symmetric": instances.square_matrices.map("S", lambda M: M).such_that(moderate(20)),
    },
)
def symmetric_scores_are_reversible(S):
    A, D = softmax(S), row_sums(S)
    similar = np.sqrt(D)[:, :, None] * A / np.sqrt(D)[:, None]
    alike = equal(similar, T(similar), rounding(40 * S.shape[1], similar.max(axis=(1, 2)), 1 + size_of(S)))
    return alike & eigenvalues_are_real(A, D) & stationary_is(S, D)


def eigenvalues_from(low, X, W_Q, sign):
    S = sign * X @ W_Q @ T(X @ W_Q)
    A, D = softmax(S), row_sums(S)
    values = np.linalg.eigvals(A)
    slack = backward(A) * np.sqrt(D.max(axis=1) / D.min(axis=1)) + rounding(40, 1 + size_of(S))
    return equal(values.imag, 0.0, slack) & at_most(low, values.real, slack) & at_most(values.real, 1.0, slack)


@attack(
    "exercise-gram_and_kernel-reversible",
    on=projections.such_that(lambda X, W_Q, W_K: size_of(X @ W_Q @ T(X @ W_Q)) < 20),
    wrong={"W_K = -W_Q": lambda X, W_Q, W_K: eigenvalues_from(0.0, X, W_Q, -1)},
)
def equal_projections_have_eigenvalues_from_0_to_1(X, W_Q, W_K):
    return eigenvalues_from(0.0, X, W_Q, 1)


def centred(S: Array) -> Array:
    S = S - S.mean(axis=2, keepdims=True)
    return S - S.mean(axis=1, keepdims=True)


def off_symmetry(S: Array) -> Array:
    """The size of the antisymmetric part of the doubly centred scores."""
    G = centred(S)
    return np.abs(G - T(G)).max(axis=(1, 2)) / 2


def off_balance(S: Array) -> Array:
    """The largest |log(pi_i A_ij) - log(pi_j A_ji)|, with pi as position 1 demands it of all others."""
    logs = S - np.log(np.exp(S).sum(axis=2))[:, :, None]
    log_pi = logs[:, 0, :] - logs[:, :, 0]
    flow = log_pi[:, :, None] + logs
    return np.abs(flow - T(flow)).max(axis=(1, 2))


def with_shifts(rng: np.random.Generator, M: Array) -> Array:
    """Scores; in half of the instances a symmetric matrix with a number for each row and each column added."""
    n = M.shape[1]
    S = (M + T(M)) / 2 + rng.normal(size=(len(M), n, 1)) + rng.normal(size=(len(M), 1, n))
    return np.where((np.arange(len(M)) % 2 == 0)[:, None, None], S, M)


def clearly(S: Array) -> Array:
    """Balanced up to rounding, or clearly not."""
    return np.array([(x < 1e-12) | (x > 1e-6) for x in (off_symmetry(S), off_balance(S))]).all(axis=0)


shifted = instances.square_matrices.such_that(moderate(5)).also(S=with_shifts).map("S", lambda M, S: S)


@attack(
    "theorem-reversible-attention",
    "gram_and_kernel/reversible",
    on=shifted.such_that(clearly),
    wrong={
        "symmetric scores only": lambda S: exactly_if(off_balance(S) < 1e-9, np.abs(S - T(S)).max((1, 2)) < 1e-9),
        "centred over rows only": lambda S: exactly_if(
            off_balance(S) < 1e-9, np.abs(rows_centred(S) - T(rows_centred(S))).max((1, 2)) < 1e-9
        ),
        "always": lambda S: true(off_balance(S) < 1e-9),
    },
)
def reversible_exactly_if_centred_scores_are_symmetric(S):
    return exactly_if(off_balance(S) < 1e-9, off_symmetry(S) < 1e-9)


def rows_centred(S: Array) -> Array:
    return S - S.mean(axis=2, keepdims=True)


def largest_triangle(S: Array) -> Array:
    N = S - T(S)
    return np.abs(N[:, :, :, None] + N[:, None, :, :] + T(N)[:, :, None, :]).max(axis=(1, 2, 3))


@attack(
    "exercise-gram_and_kernel-triangles",
    on=shifted.such_that(clearly),
    wrong={"for the pairs": lambda S: exactly_if(off_balance(S) < 1e-9, np.abs(S - T(S)).max((1, 2)) < 1e-9)},
)
def reversible_exactly_if_triangles_balance(S):
    return exactly_if(off_balance(S) < 1e-9, largest_triangle(S) < 1e-9)


no_attack(
    "gram_and_kernel/trained-symmetry",
    because="measured: shares of the symmetric part are compared in the shipped encoder and decoders.",
)
