"""The forward pass of a decoder in Llama's layout, in numpy: queries, keys, values, residual stream and logits.

A layer adds attention and then a gated feed-forward part to the residual stream, each behind an RMS norm. Queries and
keys are turned by angles that grow with the position (rotary positions), and several query heads may share a key head.
`attnlab.heads.llama_gguf` and `attnlab.heads.llama_directory` read such models from files.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Integer
from numpy.typing import NDArray
from scipy import special

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import flag, floats, instance, integers, positive_integer
from attnmath.operator.attention import attention_weights, causal_mask

Floats = NDArray[Any]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model.

    heads, key_heads : in a layer; heads / key_heads query heads share a key head and its values.
    width : of the residual stream.  d_k : of a head.  inner : of the feed-forward part.  vocabulary : tokens.
    longest : tokens that the model was made for.  epsilon : of the RMS norms.  base : of the rotary angles.
    tied : whether the embeddings are the output head as well.
    """

    layers: int
    heads: int
    key_heads: int
    width: int
    d_k: int
    inner: int
    vocabulary: int
    longest: int
    epsilon: float
    base: float
    tied: bool

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every parameter, under the names of Hugging Face's Llama without the prefix ``model.``."""
        of_heads, of_keys = self.heads * self.d_k, self.key_heads * self.d_k
        layer: dict[str, tuple[int, ...]] = {
            "input_layernorm": (self.width,), "post_attention_layernorm": (self.width,),
            "self_attn.q_proj": (of_heads, self.width), "self_attn.k_proj": (of_keys, self.width),
            "self_attn.v_proj": (of_keys, self.width), "self_attn.o_proj": (self.width, of_heads),
            "mlp.gate_proj": (self.inner, self.width), "mlp.up_proj": (self.inner, self.width),
            "mlp.down_proj": (self.width, self.inner),
        }  # fmt: skip
        shapes: dict[str, tuple[int, ...]] = {
            "embed_tokens.weight": (self.vocabulary, self.width),
            "norm.weight": (self.width,),
        }
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocabulary, self.width)
        for number in range(self.layers):
            shapes |= {f"layers.{number}.{part}.weight": shape for part, shape in layer.items()}
        return shapes


@dataclass(frozen=True)
class Pass:
    """What a model computes of one text of n tokens.

    Q, K : after the rotation, as the scores take them.  residual : the stream before the first layer and after each.
    logits : of the token after each position.
    """

    Q: Float[Numpy, "layers heads n d_k"]
    K: Float[Numpy, "layers key_heads n d_k"]
    V: Float[Numpy, "layers key_heads n d_k"]
    residual: Float[Numpy, "layers+1 n width"]
    logits: Float[Numpy, "n vocabulary"]


@dataclass(frozen=True)
class Llama:
    """A decoder: its sizes, and its parameters in float32 under the names of `Sizes.shapes`.

    adjacent : whether the rotation turns the coordinates 2 i and 2 i + 1 of a head together, as GGUF files of this
    layout have them, or i and i + d_k / 2, as Hugging Face's have them.
    about : what the file says of itself, for a record.
    """

    sizes: Sizes
    parameters: Mapping[str, Float[Numpy, "..."]]
    adjacent: bool
    about: Mapping[str, Any] = field(default_factory=dict)

    def run(
        self,
        ids: Integer[ArrayLike, "n"],
        *,
        double: bool = False,
        weights: Callable[[int, Float[Numpy, "heads n n"]], Float[Numpy, "heads n n"]] = lambda layer, P: P,
        report: Callable[[], Any] = lambda: None,
    ) -> Pass:
        """Compute the pass of one text, given as the numbers of its tokens.

        double : in float64 instead of float32.
        weights : from the number of a layer and its attention weights, shape (heads, n, n), to the matrices that mix
        the values in their place; a matrix of zeros takes a head away.
        report : called after each layer.
        """
        ids, dtype = self._numbers(ids), np.float64 if flag(double, "double") else np.float32
        X = self._parameter("embed_tokens", dtype)[ids]
        turn = _angles(len(ids), self.sizes)
        found, residual = [], [X]
        for number in range(self.sizes.layers):
            Q, K, V, X = self._layer(f"layers.{number}.", X, turn, functools.partial(weights, number))
            found.append((Q, K, V))
            residual.append(X)
            report()
        head = self._parameter("embed_tokens" if self.sizes.tied else "lm_head", dtype)
        Q, K, V = (np.stack(part) for part in zip(*found, strict=True))
        return Pass(Q, K, V, np.stack(residual), self._norm("norm", X) @ head.T)

    def _layer(
        self, name: str, X: Floats, turn: tuple[Floats, Floats], weights: Callable[[Floats], Floats]
    ) -> tuple[Floats, Floats, Floats, Floats]:
        H = self._norm(f"{name}input_layernorm", X)
        Q, K, V = (self._split(self._linear(f"{name}self_attn.{part}_proj", H)) for part in "qkv")
        Q, K = (_rotated(part, turn, adjacent=self.adjacent) for part in (Q, K))
        group = self.sizes.heads // self.sizes.key_heads
        P = attention_weights(Q, np.repeat(K, group, axis=0), mask=causal_mask(len(X)))
        shape = P.shape
        P = floats(weights(P), "weights").astype(X.dtype)
        if P.shape != shape:
            raise ValueError(f"weights: expected matrices of shape {shape}, got {P.shape}")
        joined = (P @ np.repeat(V, group, axis=0)).transpose(1, 0, 2).reshape(len(X), -1)
        X = X + self._linear(f"{name}self_attn.o_proj", joined)
        H = self._norm(f"{name}post_attention_layernorm", X)
        gate, up = (self._linear(f"{name}mlp.{part}_proj", H) for part in ("gate", "up"))
        return Q, K, V, X + self._linear(f"{name}mlp.down_proj", gate * special.expit(gate) * up)

    def _split(self, X: Floats) -> Floats:
        return X.reshape(len(X), -1, self.sizes.d_k).transpose(1, 0, 2)

    def _linear(self, name: str, X: Floats) -> Floats:
        return X @ self._parameter(name, X.dtype).T

    def _norm(self, name: str, X: Floats) -> Floats:
        size = np.sqrt((X.astype(np.float64) ** 2).mean(axis=1, keepdims=True) + self.sizes.epsilon)
        return (X / size).astype(X.dtype) * self._parameter(name, X.dtype)

    def _parameter(self, name: str, dtype: Any) -> Floats:
        return self.parameters[f"{name}.weight"].astype(dtype, copy=False)

    def _numbers(self, ids: Any) -> NDArray[np.int64]:
        ids = np.asarray(integers(ids, "ids"))
        if len(ids) > self.sizes.longest:
            raise ValueError(f"ids: expected at most {self.sizes.longest} tokens, got {len(ids)}")
        if ids.min() < 0 or ids.max() >= self.sizes.vocabulary:
            got = f"{ids.min()} to {ids.max()}"
            raise ValueError(f"ids: expected values from 0 to {self.sizes.vocabulary - 1}, got {got}")
        return ids


def bits(logits: Float[ArrayLike, "n vocabulary"], ids: Integer[ArrayLike, "n"]) -> Float[Numpy, "n-1"]:
    """Bits that each token but the first costs, given the logits at the position before it.

    >>> bits(np.zeros((2, 8)), [3, 5])
    array([3.])
    """
    ids, given = np.asarray(integers(ids, "ids")), np.asarray(logits)
    if given.ndim != 2 or given.dtype.kind != "f" or len(given) != len(ids):
        raise ValueError(f"logits: expected floats of shape ({len(ids)}, vocabulary), got shape {given.shape}")
    if ids.min() < 0 or ids.max() >= given.shape[1]:
        raise ValueError(f"ids: expected values from 0 to {given.shape[1] - 1}, got {ids.min()} to {ids.max()}")
    logs = special.log_softmax(given[:-1].astype(np.float64), axis=1)
    return np.asarray(-logs[np.arange(len(ids) - 1), ids[1:]] / math.log(2))


def continuation(model: Llama, ids: Integer[ArrayLike, "n"], count: int) -> Int[Numpy, "{count}"]:
    """Return the numbers of the `count` tokens that follow a text if each is the likeliest one."""
    instance(model, Llama, "model")
    found = [int(number) for number in np.asarray(integers(ids, "ids"))]
    for _ in range(positive_integer(count, "count")):
        found.append(int(model.run(found).logits[-1].argmax()))
    return np.asarray(found[-count:])


def checked(sizes: Sizes, arrays: Mapping[str, Float[Numpy, "..."]], name: str) -> dict[str, Float[Numpy, "..."]]:
    """Return the parameters of a model in float32, once each is known to be there, of its shape and finite.

    name : of the argument that named the file, for the errors.  Raises `ValueError`.
    """
    shapes = instance(sizes, Sizes, "sizes").shapes()
    if strange := sorted(set(arrays) - set(shapes)):
        expected = f"the parameters of {sizes.layers} layers in Llama's layout"
        raise ValueError(f"{name}: expected {expected}, got {len(strange)} more: {', '.join(strange[:5])}")
    found = {}
    for parameter, shape in shapes.items():
        array = arrays.get(parameter)
        if array is None or array.shape != shape:
            got = "none" if array is None else array.shape
            raise ValueError(f"{name}: expected the parameter {parameter} of shape {shape}, got {got}")
        if array.dtype not in (np.float16, np.float32):
            expected = f"the parameter {parameter} in float32 or a shorter format"
            raise ValueError(f"{name}: expected {expected}, got {array.dtype}")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name}: expected finite numbers in the parameter {parameter}, got infinity or NaN")
        found[parameter] = array.astype(np.float32, copy=False)
    return found


def sizes_of(found: Mapping[str, Any], tied: bool, name: str) -> Sizes:
    """Return the sizes that a file gives under the names of `Sizes`; `ValueError` if they are none of a model.

    name : of the argument that named the file, and of the place in it, for the errors.
    """
    numbers = {key: value for key, value in found.items() if key not in ("epsilon", "base")}
    if not all(isinstance(v, int) and not isinstance(v, bool) and 0 < v < 2**31 for v in numbers.values()):
        raise ValueError(f"{name}: expected positive sizes, got {numbers}")
    if found["heads"] % found["key_heads"]:
        got = f"{found['heads']} and {found['key_heads']}"
        raise ValueError(f"{name}: expected a number of heads that the number of key heads divides, got {got}")
    if found["d_k"] % 2:
        raise ValueError(f"{name}: expected heads of an even width, got {found['d_k']}")
    for key, what in (("epsilon", "an epsilon of the norms"), ("base", "a base of the rotary angles")):
        value = found[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise ValueError(f"{name}: expected {what} above 0, got {value!r}")
    return Sizes(**numbers, epsilon=float(found["epsilon"]), base=float(found["base"]), tied=tied)


def _angles(n: int, sizes: Sizes) -> tuple[Floats, Floats]:
    """Cosines and sines, shape (n, d_k / 2), of the angle t base^(-2 i / d_k) at position t."""
    speed = sizes.base ** (-np.arange(0, sizes.d_k, 2) / sizes.d_k)
    angle = np.arange(n)[:, None] * speed
    return np.cos(angle), np.sin(angle)


def _rotated(X: Floats, turn: tuple[Floats, Floats], *, adjacent: bool) -> Floats:
    """Turn the pairs of coordinates of heads, shape (heads, n, d_k)."""
    cosine, sine = (part.astype(X.dtype) for part in turn)
    half = X.shape[-1] // 2
    first, second = (X[..., ::2], X[..., 1::2]) if adjacent else (X[..., :half], X[..., half:])
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    return np.stack(turned, axis=-1).reshape(X.shape) if adjacent else np.concatenate(turned, axis=-1)
