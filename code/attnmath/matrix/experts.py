"""A mixture of experts as a gated sum (section 5.5.5): O = sum_e G_e(x) Expert_e(x)."""

from __future__ import annotations

import operator
from functools import reduce

from array_api_compat import array_namespace, device
from jaxtyping import Float, Integer, Real

from attnmath.arrays import Array, ArrayLike
from attnmath.checks import (
    finite,
    fits_memory,
    integers,
    matmul,
    positive_integer,
    probabilities,
    real_array,
    rounded,
    same_dtype,
    silent,
    silently,
    wide,
)
from attnmath.operator.attention import masked, softmax


def top_k_gate(logits: Real[ArrayLike[Array], "... E"], k: int) -> Float[Array, "... E"]:
    """Sparse gate: the softmax over the k largest logits, and 0 for all others.

    Among equal logits the first ones are taken.

    >>> import numpy as np
    >>> top_k_gate(np.asarray([0.0, np.log(3.0), -9.0]), 2)
    array([0.25, 0.75, 0.  ])
    """
    logits = finite(real_array(logits, "logits", at_least=1), "logits")
    xp = array_namespace(logits)
    experts = logits.shape[-1]
    if positive_integer(k, "k") > experts:
        raise ValueError(f"k: expected at most the number of experts, {experts}, got {k}")
    order = xp.argsort(-logits, axis=-1, stable=True)
    place = xp.argsort(order, axis=-1)  # the rank of each expert, from 0
    return softmax(masked(logits, place < k))


@silently
def mixture(
    x: Real[ArrayLike[Array], "n d"], gates: Real[ArrayLike[Array], "n E"], experts: Real[ArrayLike[Array], "E d d_out"]
) -> Float[Array, "n d_out"]:
    """Gated sum of linear experts, O = sum_e G_e x W_e.

    gates : one distribution for each row of x.  experts : W.

    >>> import numpy as np
    >>> mixture(np.ones((1, 1)), np.asarray([[0.25, 0.75]]), np.asarray([[[4.0]], [[8.0]]]))
    array([[7.]])
    """
    x, gates = (finite(real_array(a, name, ndim=2), name) for a, name in ((x, "x"), (gates, "gates")))
    experts = finite(real_array(experts, "experts", ndim=3), "experts")
    same_dtype(x=x, gates=gates, experts=experts)
    if gates.shape != (x.shape[0], experts.shape[0]) or x.shape[1] != experts.shape[1]:
        raise ValueError(
            "x, gates, experts: expected shapes (n, d), (n, E), (E, d, d_out), "
            f"got {tuple(x.shape)}, {tuple(gates.shape)}, {tuple(experts.shape)}"
        )
    gates = probabilities(gates, "gates")
    dtype = x.dtype
    x, gates, experts = wide(x, gates, experts)
    with silent():
        parts = (gates[:, e, None] * matmul(x, experts[e, ...]) for e in range(experts.shape[0]))
        return rounded(reduce(operator.add, parts), dtype, "x, experts")


def block_matrix(
    choice: Integer[ArrayLike, "n"], experts: Real[ArrayLike[Array], "E d d_out"]
) -> Float[Array, "n*d n*d_out"]:
    """The matrix of a mixture with one expert for each token: a block for each.

    choice : the expert of each token.
    It maps the rows of x, written one after the other, to the rows of the output.

    >>> import numpy as np
    >>> block_matrix(np.asarray([1, 0]), np.asarray([[[4.0]], [[8.0]]]))
    array([[8., 0.],
           [0., 4.]])
    """
    experts = finite(real_array(experts, "experts", ndim=3), "experts")
    xp = array_namespace(experts)
    choice = xp.astype(integers(choice, "choice", like=experts), xp.int64)
    if bool(xp.any(choice < 0)) or bool(xp.any(choice >= experts.shape[0])):
        raise ValueError(f"choice: expected experts from 0 to {experts.shape[0] - 1}, got {choice}")
    n, d, d_out = choice.shape[0], experts.shape[1], experts.shape[2]
    fits_memory("choice, experts", n, d, n, d_out)
    blocks = xp.take(experts, choice, axis=0)
    spread = blocks[:, :, None, :] * xp.eye(n, dtype=experts.dtype, device=device(experts))[:, None, :, None]
    return xp.reshape(spread, (n * d, n * d_out))
