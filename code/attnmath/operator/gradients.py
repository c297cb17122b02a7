"""Closed-form gradients of scaled dot-product attention, equation by equation (section 5.1.8).

A scalar loss L enters through G = dL/dO, its gradient at the output O = P V. Every function
returns dL/dY in the shape of Y, so all transposes stand where they belong:

    dL/dV = P^T G                    dL/dP = G V^T
    dL/dS = P * (dL/dP - rowsum(P * dL/dP))
    dL/dQ = scale * (dL/dS) K        dL/dK = scale * (dL/dS)^T Q
    dL/dW_Q = X^T (dL/dQ)            and so for W_K and W_V

Here S = scale * Q K^T are the scaled scores. numpy arrays and torch tensors are answered in kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from array_api_compat import array_namespace
from jaxtyping import Bool, Float, Real

from attnmath.arrays import AnyArray, Array, ArrayLike
from attnmath.checks import (
    about,
    describe,
    finite,
    flag,
    in_range,
    matmul,
    probabilities,
    real_array,
    rounded,
    same_batches,
    same_dtype,
    scaled_product,
    silent,
    total,
    wide,
)
from attnmath.operator.attention import attention, attention_weights, scores


@dataclass(frozen=True)
class StageGradients(Generic[Array]):
    """The gradients dL/dQ, dL/dK, dL/dV, dL/dS and dL/dP, each named and shaped as its variable.

    S are the scaled scores, and P their softmax.
    """

    Q: Float[Array, "... n d_k"]
    K: Float[Array, "... m d_k"]
    V: Float[Array, "... m d_v"]
    S: Float[Array, "... n m"]
    P: Float[Array, "... n m"]


@dataclass(frozen=True)
class Gradients(StageGradients[Array]):
    """The gradients of every stage, and dL/dX, dL/dW_Q, dL/dW_K, dL/dW_V."""

    X: Float[Array, "... n d_model"]
    W_Q: Float[Array, "... d_model d_k"]
    W_K: Float[Array, "... d_model d_k"]
    W_V: Float[Array, "... d_model d_v"]


def softmax_pullback(
    P: Real[ArrayLike[Array], "*shape"], dP: Real[ArrayLike[Array], "*shape"]
) -> Float[Array, "*shape"]:
    """Carry a gradient back through a row-wise softmax: P * (dP - rowsum(P * dP)).

    P : the softmax's output, probabilities along the last axis.  dP : dL/dP.
    Returns dL/dS, the Jacobian (5.1.8) of each row times its dP.

    The rows of the result sum to 0, and a dP that is constant along a row gives 0.

    >>> import numpy as np
    >>> softmax_pullback(np.asarray([0.25, 0.75]), np.asarray([0.0, 4.0]))
    array([-0.75,  0.75])
    """
    P, dP = probabilities(P, "P"), finite(real_array(dP, "dP", at_least=1), "dP")
    same_dtype(P=P, dP=dP)
    if tuple(P.shape) != tuple(dP.shape):
        raise ValueError(f"dP: expected the shape of P, got P {describe(P)} and dP {describe(dP)}")
    xp, dtype = array_namespace(P, dP), P.dtype
    P, dP = wide(P, dP)
    with silent():
        return rounded(P * (dP - xp.sum(P * dP, axis=-1, keepdims=True)), dtype, "P, dP")


def stage_gradients(
    Q: Real[ArrayLike[Array], "... n d_k"],
    K: Real[ArrayLike[Array], "... m d_k"],
    V: Real[ArrayLike[Array], "... m d_v"],
    G: Real[ArrayLike[Array], "... n d_v"],
    *,
    mask: Bool[ArrayLike, "..."] | None = None,
    scale: float | None = None,
) -> StageGradients[Array]:
    """Gradients of L with respect to the stages of attention, given G = dL/dO.

    mask, scale : as in `attnmath.operator.attention.attention`; masked scores get gradient 0.

    >>> import numpy as np
    >>> g = stage_gradients(np.zeros((1, 1)), np.asarray([[0.0], [2.0]]), np.asarray([[0.0], [4.0]]), np.ones((1, 1)))
    >>> g.Q  # the covariance of (0, 4) and (0, 2) under equal weights
    array([[2.]])
    """
    O = attention(Q, K, V, mask=mask, scale=scale)  # noqa: E741 (the textbook's name), and it checks all arguments
    G = finite(real_array(G, "G"), "G")
    Q, K, V = (real_array(a, name) for a, name in ((Q, "Q"), (K, "K"), (V, "V")))
    same_dtype(Q=Q, K=K, V=V, G=G)
    if tuple(G.shape) != tuple(O.shape):
        raise ValueError(f"G: expected the shape {tuple(O.shape)} of the output, got {describe(G)}")
    xp, dtype = array_namespace(Q, K, V, G), Q.dtype
    Q, K, V, G = wide(Q, K, V, G)
    factor = Q.shape[-1] ** -0.5 if scale is None else float(scale)
    P = attention_weights(Q, K, mask=mask, scale=scale)
    with silent():
        # Batches may broadcast: P then lacks axes that only V has.
        dP = in_range(_summed_to(matmul(G, xp.matrix_transpose(V)), P.shape), "V, G")
        with about("V, G"):
            dS = softmax_pullback(P, dP)
        dQ = scaled_product(dS, xp.matrix_transpose(K), factor, late=True)
        dK = scaled_product(xp.matrix_transpose(dS), xp.matrix_transpose(Q), factor, late=True)
        return StageGradients(
            Q=rounded(_summed_to(dQ, Q.shape), dtype, "K, V, G"),
            K=rounded(_summed_to(dK, K.shape), dtype, "Q, V, G"),
            V=rounded(_summed_to(matmul(xp.matrix_transpose(P), G), V.shape), dtype, "G"),
            S=rounded(dS, dtype, "V, G"),
            P=rounded(dP, dtype, "V, G"),
        )


def attention_gradients(
    X: Real[ArrayLike[Array], "... n d_model"],
    W_Q: Real[ArrayLike[Array], "... d_model d_k"],
    W_K: Real[ArrayLike[Array], "... d_model d_k"],
    W_V: Real[ArrayLike[Array], "... d_model d_v"],
    G: Real[ArrayLike[Array], "... n d_v"],
    *,
    mask: Bool[ArrayLike, "..."] | None = None,
    scale: float | None = None,
) -> Gradients[Array]:
    """Gradients of L at O = attention(X W_Q, X W_K, X W_V), equation (5.1.2), given G = dL/dO.

    mask, scale : as in `attention`.

    Batch axes broadcast (heads, say: X of shape (b, 1, n, d_model) and weights of shape
    (h, d_model, d_k)), and each gradient is summed back to the shape of its variable.

    >>> import numpy as np
    >>> X, W = np.asarray([[0.0], [1.0]]), np.ones((1, 1))
    >>> g = attention_gradients(X, np.log(3.0) * W, W, W, np.asarray([[0.0], [1.0]]))
    >>> g.W_Q  # the weights of the second row are 1/4 and 3/4
    array([[0.1875]])
    """
    named = {"X": X, "W_Q": W_Q, "W_K": W_K, "W_V": W_V}
    X, W_Q, W_K, W_V = (finite(real_array(a, name, at_least=2), name) for name, a in named.items())
    same_dtype(X=X, W_Q=W_Q, W_K=W_K, W_V=W_V)
    for name, W in (("W_Q", W_Q), ("W_K", W_K), ("W_V", W_V)):
        if W.shape[-2] != X.shape[-1]:
            raise ValueError(f"{name}: expected {X.shape[-1]} rows, the columns of X, got {describe(W)}")
    if W_Q.shape[-1] != W_K.shape[-1]:
        raise ValueError(f"W_Q, W_K: expected the same number of columns, got {describe(W_Q)} and {describe(W_K)}")
    for name, W in (("W_Q", W_Q), ("W_K", W_K), ("W_V", W_V)):
        same_batches(**{"X": X, name: W})
    xp, dtype = array_namespace(X, W_Q, W_K, W_V), X.dtype
    G = finite(real_array(G, "G"), "G")
    same_dtype(X=X, G=G)
    X, W_Q, W_K, W_V, G = wide(X, W_Q, W_K, W_V, G)
    with silent():
        Q, K, V = (in_range(matmul(X, W), "X, W_Q, W_K, W_V") for W in (W_Q, W_K, W_V))
        with about("X, W_Q, W_K, W_V"):
            same_batches(Q=Q, K=K, V=V)
            scores(Q, K, scale=scale)
        stages = stage_gradients(Q, K, V, G, mask=mask, scale=scale)
        X_T = xp.matrix_transpose(X)
        pairs = ((stages.Q, W_Q), (stages.K, W_K), (stages.V, W_V))
        dX = sum(_summed_to(matmul(d, xp.matrix_transpose(W)), X.shape) for d, W in pairs)
        dW = [_summed_to(matmul(X_T, d), W.shape) for d, W in pairs]
    return _rounded(Gradients(**vars(stages), X=dX, W_Q=dW[0], W_K=dW[1], W_V=dW[2]), dtype)


def stack_gradients(
    X: Real[ArrayLike[Array], "... n d"],
    layers: Sequence[
        tuple[Real[ArrayLike[Array], "... d _"], Real[ArrayLike[Array], "... d _"], Real[ArrayLike[Array], "... d d"]]
    ],
    G: Real[ArrayLike[Array], "... n d"],
    *,
    residual: bool = False,
    scale: float | None = None,
) -> list[Gradients[Array]]:
    """Gradients in a stack of attention layers, from the first layer to the last.

    X : input of the first layer.  layers : (W_Q, W_K, W_V) of each layer, d_k its own and
    d_v = d.  G : dL/dY at the output Y of the last layer.
    residual : each layer adds its input to its output.

    Batch axes (stacks of one shape, side by side) are the same in all arrays.

    >>> import numpy as np
    >>> W = np.eye(1)
    >>> first, second = stack_gradients(np.asarray([[0.0], [2.0]]), [(0 * W, W, W), (W, W, W)], np.ones((2, 1)))
    >>> second.W_Q  # the first layer made its rows equal
    array([[0.]])
    """
    residual = flag(residual, "residual")
    x = finite(real_array(X, "X", at_least=2), "X")
    dtype, stack = x.dtype, [wide(*weights) for weights in _layers(layers, x)]
    G = finite(real_array(G, "G"), "G")
    same_dtype(X=x, G=G)
    x, G = wide(x, G)
    inputs = [x]
    for number, (W_Q, W_K, W_V) in enumerate(stack):
        with silent(), about(f"X, layers[{number}]"):
            y = attention(matmul(x, W_Q), matmul(x, W_K), matmul(x, W_V), scale=scale)
        x = in_range(x + y if residual else y, "X, layers")
        inputs.append(x)
    if G.shape[:-2] != x.shape[:-2]:
        raise ValueError(f"G: expected the batch axes of X, got {describe(G)}")
    found = []
    for number, x in reversed(list(enumerate(inputs[:-1]))):
        W_Q, W_K, W_V = stack[number]
        with about(f"X, layers[{number}], G"):
            found.append(attention_gradients(x, W_Q, W_K, W_V, G, scale=scale))
            G = in_range(G + found[-1].X if residual else found[-1].X, "G")
    return [_rounded(gradients, dtype) for gradients in found[::-1]]


def _rounded(gradients: Gradients[AnyArray], dtype: Any) -> Gradients[AnyArray]:
    return Gradients(**{name: rounded(gradient, dtype, "X, G") for name, gradient in vars(gradients).items()})


def _layers(layers: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]], X: AnyArray) -> list[list[AnyArray]]:
    """Return the three arrays of each layer, once they are known to fit X and to keep its shape."""
    if not isinstance(layers, Sequence) or not layers:
        raise ValueError(f"layers: expected at least one layer, got {type(layers).__name__} without any")
    found = []
    for number, weights in enumerate(layers):
        if not hasattr(weights, "__len__") or len(weights) != 3:
            got = len(weights) if hasattr(weights, "__len__") else type(weights).__name__
            raise ValueError(f"layers[{number}]: expected (W_Q, W_K, W_V), got {got} arrays")
        name = f"layers[{number}]"
        W_Q, W_K, W_V = (finite(real_array(W, name, at_least=2), name) for W in weights)
        same_dtype(**{"X": X, f"{name} W_Q": W_Q, "W_K": W_K, "W_V": W_V})
        if {W.shape[-2] for W in (W_Q, W_K, W_V)} != {X.shape[-1]}:
            raise ValueError(f"{name}: expected {X.shape[-1]} rows, the columns of X, in W_Q, W_K and W_V")
        if {W.shape[:-2] for W in (W_Q, W_K, W_V)} != {X.shape[:-2]}:
            raise ValueError(f"{name}: expected the batch axes of X in W_Q, W_K and W_V, got {describe(W_Q)}")
        if W_Q.shape != W_K.shape:
            raise ValueError(f"{name}: expected the same shape of W_Q and W_K, got {describe(W_Q)} and {describe(W_K)}")
        if W_V.shape[-2] != W_V.shape[-1]:
            raise ValueError(f"{name}: expected W_V with as many columns as rows, got {describe(W_V)}")
        found.append([W_Q, W_K, W_V])
    return found


def _summed_to(a: AnyArray, shape: Sequence[int]) -> AnyArray:
    """Undo broadcasting: sum over the axes along which an array of `shape` was repeated."""
    extra = a.ndim - len(shape)
    if extra:
        a = total(a, axis=tuple(range(extra)))
    repeated = tuple(k for k, size in enumerate(shape) if size == 1 and a.shape[k] > 1)
    return total(a, axis=repeated, keepdims=True) if repeated else a
