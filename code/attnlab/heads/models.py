"""One model of each kind under its name, so that a program draws a figure of trained heads with any of them.

The small decoder is that of seed 0. A decoder sees those tokens up to itself alone, so its heads on the beginning of a
text are the beginning of its heads on the text.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from attnlab.heads.example import HEAD, LAYER
from attnlab.heads.load import Decoders, Heads, load_decoders, load_heads, load_pretrained
from attnmath.arrays import Numpy
from attnmath.checks import one_of, positive_integer
from attnmath.operator.attention import causal_mask

#: The layer and the head that a figure of one head shows of each model, counted from 0.
START = {"encoder": (LAYER, HEAD), "small decoder": (1, 0), "pretrained decoder": (9, 0)}

#: A "sentence" has so many tokens, as many as that of the encoder.
SENTENCE = 18


def heads_of(model: str = "encoder", text: str = "passage") -> Heads:
    """Return the heads of a model, one of `START`, on the text on which the book measures them.

    text : "passage" (all that is shipped) or "sentence": the encoder's sentence, and a decoder's first 18 tokens.

    >>> [(heads_of(model).Q.shape, heads_of(model, "sentence").n) for model in START]
    [((6, 12, 304, 32), 18), ((4, 4, 128, 24), 18), ((30, 9, 80, 64), 18)]
    """
    one_of(model, START, "model")
    one_of(text, ("passage", "sentence"), "text")
    if model == "encoder":
        return load_heads(text)
    if model == "small decoder":
        small = load_decoders()
        heads = Heads(small.Q[0], small.K[0], small.tokens, causal=True)
    else:
        heads = load_pretrained()
    length = SENTENCE if text == "sentence" else heads.n
    return replace(heads, Q=heads.Q[:, :, :length], K=heads.K[:, :, :length], tokens=heads.tokens[:length])


def seeds_of(model: str = "small decoder") -> Decoders:
    """Return the heads of a model with an axis of seeds in front: four of the small decoders, one of the others.

    >>> [seeds_of(model).Q.shape[0] for model in START]
    [1, 4, 1]
    """
    if model == "small decoder":
        return load_decoders()
    heads = heads_of(model)
    return Decoders(heads.Q[None], heads.K[None], heads.tokens, seeds=(0,), trained=True)


def head_of(model: str = "encoder") -> tuple[tuple[str, ...], Float[Numpy, "n d_k"], Float[Numpy, "n d_k"]]:
    """Return the 18 tokens of the sentence of a model, and queries and keys of its head in `START` on it.

    >>> ["".join(head_of(model)[0][:3]) for model in START]
    ['[CLS]therabbit', 'The', 'Alice was beginning']
    """
    heads = heads_of(model, "sentence")
    return heads.tokens, heads.Q[START[model]], heads.K[START[model]]


def mask_of(model: str, n: int) -> Bool[Numpy, "n n"]:
    """Return which of n keys each of n queries of a model may see: all of them in the encoder.

    >>> [int(mask_of(model, 2).sum()) for model in START]
    [4, 3, 3]
    """
    one_of(model, START, "model")
    n = positive_integer(n, "n")
    return np.ones((n, n), dtype=bool) if model == "encoder" else causal_mask(n)
