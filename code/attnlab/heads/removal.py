"""What heads are worth to a model: its own output with some of them removed, or replaced by fixed patterns.

The heads are those of the report's section 1.2.3. The model is a trained decoder whose weights are at hand
(`attnlab.heads.load_decoder`). Its output is judged in bits per character on windows of text that do not overlap, so
that two versions are compared window by window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Real
from numpy.typing import NDArray
from scipy import special

from attnlab.heads.load import TrainedDecoder
from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import floats, function, generator, instance, non_negative_integer
from attnmath.matrix.spectrum import row_stochastic

Floats = NDArray[Any]
#: A head by its layer and its number, both from 0.
Head = tuple[int, int]

_EPSILON = 1e-5  # of torch's LayerNorm
_TOGETHER = 32  # windows in one product
_LARGEST = 1e6


@dataclass(frozen=True)
class Row:
    """One version of the decoder.

    case : number of the random draw, or of the head (4 layer + head).  removed : how many heads, or as much as so many.
    head : the head that this row adds, as "layer.head", where there is one.
    bits : mean bits per character.  rise : its mean difference from the whole decoder, window by window, with its
    standard error over the windows.
    """

    kind: str
    case: int
    removed: int
    head: str
    bits: float
    rise: float
    standard_error: float


def windows(decoder: TrainedDecoder, text: str, count: int | None = None) -> Int[Numpy, "windows length"]:
    """Cut a text into windows of the decoder's context and the character after it; they share no predicted character.

    count : how many, evenly spread over the text (default: as many as there are).
    """
    ids, context = instance(decoder, TrainedDecoder, "decoder").numbers(text), decoder.context
    many = (len(ids) - 1) // context
    wanted = many if count is None else non_negative_integer(count, "count")
    if not 0 < wanted <= many:
        raise ValueError(f"text, count: expected from 1 to {many} windows of {context} characters, got {wanted}")
    starts = np.arange(wanted) * many // wanted * context
    return ids[starts[:, None] + np.arange(context + 1)]


def bits(
    decoder: TrainedDecoder,
    ids: Int[ArrayLike, "windows length"],
    *,
    kept: Real[ArrayLike, "layers width width"] | None = None,
    patterns: Mapping[Head, Real[ArrayLike, "n n"]] | None = None,
    units: Real[ArrayLike, "layers hidden"] | None = None,
    weights: Callable[[int, Float[Numpy, "windows heads n n"]], Float[Numpy, "windows heads n n"]] | None = None,
) -> Float[Numpy, "windows n"]:
    """Cross-entropy of each next character in bits, given the n = length - 1 characters of its window up to there.

    kept : a matrix for each layer, by which the joined outputs of its heads are multiplied (`without`, `projected`).
    patterns : attention matrices of n tokens that replace those of the named heads, (layer, head).
    units : factors of the hidden units of each layer's feed-forward part.
    weights : from the number of a layer and its attention weights on some windows to the matrices that mix the values
    in their place, as `attnlab.heads.llama.Llama.run` takes it.
    """
    ids = _ids(decoder, ids)
    given = _Version(decoder, ids.shape[1] - 1, kept, patterns, units, weights)
    found = [given.run(ids[start : start + _TOGETHER]) for start in range(0, len(ids), _TOGETHER)]
    return np.concatenate(found)


def attention(
    decoder: TrainedDecoder, ids: Int[ArrayLike, "windows length"]
) -> Float[Numpy, "windows layers heads n n"]:
    """Attention weights of every head on the first n = length - 1 characters of each window."""
    ids = _ids(decoder, ids)
    given = _Version(decoder, ids.shape[1] - 1, None, None, None)
    found = []
    for start in range(0, len(ids), _TOGETHER):
        weights: list[Floats] = []
        given.run(ids[start : start + _TOGETHER], weights)
        found.append(np.stack(weights, axis=1).astype(float))
    A = np.concatenate(found)
    A /= A.sum(axis=-1, keepdims=True)  # rows sum to 1 in double precision too
    return A


def without(decoder: TrainedDecoder, removed: Collection[Head]) -> Float[Numpy, "layers width width"]:
    """Matrices that set the outputs of the named heads, (layer, head), to 0 and keep the others.

    The keyword `kept` of `bits` takes them.
    """
    layers, heads, width = _sizes(decoder)
    gates = np.ones((layers, heads, width // heads))
    for layer, head in _heads(decoder, removed, "removed"):
        gates[layer, head] = 0
    return np.stack([np.diag(row.ravel()) for row in gates])


def projected(
    decoder: TrainedDecoder, directions: Int[ArrayLike, "layers"], *, rng: np.random.Generator
) -> Float[Numpy, "layers width width"]:
    """Matrices that remove as many random orthonormal directions of each layer's joined head outputs.

    The subspace is uniform. The keyword `kept` of `bits` takes the matrices.
    """
    layers, _, width = _sizes(decoder)
    many = floats(directions, "directions", ndim=1)
    if many.shape != (layers,) or np.any(many != np.round(many)) or many.min() < 0 or many.max() > width:
        raise ValueError(f"directions: expected {layers} whole numbers from 0 to {width}, got {many}")
    rng = generator(rng)
    found = []
    for count in many.astype(int):
        U = np.linalg.qr(rng.standard_normal((width, count)))[0]
        found.append(np.eye(width) - U @ U.T)
    return np.stack(found)


def greedy_order(decoder: TrainedDecoder, ids: Int[ArrayLike, "windows length"]) -> list[Head]:
    """Remove one head after the other, each time the one whose removal costs least on the given windows.

    Returns all heads, (layer, head), in the order of their removal. Judge the order on other windows than those that
    chose it.
    """
    layers, heads, _ = _sizes(decoder)
    left = [(layer, head) for layer in range(layers) for head in range(heads)]
    gone: list[Head] = []
    while left:
        costs = [float(bits(decoder, ids, kept=without(decoder, [*gone, one])).mean()) for one in left]
        gone.append(left.pop(int(np.argmin(costs))))
    return gone


class _Version:
    """A decoder with some of its parts replaced, ready to run on windows of n characters."""

    def __init__(
        self, decoder: TrainedDecoder, n: int, kept: Any, patterns: Any, units: Any, change: Any = None
    ) -> None:
        self.decoder, self.n = decoder, n
        self.change: Any = None if change is None else function(change, "weights")
        layers, _, width = _sizes(decoder)
        self.output = [self._parameter(layer, "project.3.weight").T for layer in range(layers)]
        if kept is not None:
            matrices = floats(kept, "kept")
            if matrices.shape != (layers, width, width):
                raise ValueError(f"kept: expected shape ({layers}, {width}, {width}), got {matrices.shape}")
            self.output = [_moderate(m, "kept") @ W for m, W in zip(matrices, self.output, strict=True)]
        self.patterns: dict[Head, Floats] = {}
        if not isinstance(patterns, Mapping | None):
            raise TypeError(f"patterns: expected a mapping from heads to matrices, got {type(patterns).__name__}")
        for head in _heads(decoder, patterns or {}, "patterns"):
            P = floats(row_stochastic((patterns or {})[head], "patterns"), "patterns")
            if P.shape != (n, n):
                raise ValueError(f"patterns: expected matrices of shape ({n}, {n}), got {P.shape}")
            self.patterns[head] = P.astype(np.float32)
        self.units = None
        if units is not None:
            self.units = _moderate(floats(units, "units"), "units")
            if self.units.shape != (layers, 4 * width):
                raise ValueError(f"units: expected shape ({layers}, {4 * width}), got {self.units.shape}")

    def run(self, ids: NDArray[np.int64], weights: list[Floats] | None = None) -> Floats:
        """Bits of each character of each window; the attention weights of each layer are appended to `weights`."""
        decoder, n = self.decoder, self.n
        layers, heads, width = _sizes(decoder)
        x = decoder.parameters["characters.weight"][ids[:, :-1]] + decoder.parameters["positions.weight"][:n]
        hidden = np.triu(np.full((n, n), -np.inf, dtype=np.float32), 1)
        for layer in range(layers):
            normed = self._norm(x, layer, "norm")
            Q, K, V = (
                (normed @ self._parameter(layer, f"project.{number}.weight").T)
                .reshape(len(ids), n, heads, width // heads)
                .swapaxes(1, 2)
                for number in range(3)
            )
            A = Q @ K.swapaxes(-1, -2) / np.float32(np.sqrt(width // heads)) + hidden
            A = np.exp(A - A.max(axis=-1, keepdims=True))
            A /= A.sum(axis=-1, keepdims=True)
            for (place, head), P in self.patterns.items():
                if place == layer:
                    A[:, head] = P
            if self.change is not None:
                A = self._changed(layer, A)
            if weights is not None:
                weights.append(A)
            x = x + (A @ V).swapaxes(1, 2).reshape(len(ids), n, width) @ self.output[layer]
            inner = self._norm(x, layer, "norm_after") @ self._parameter(layer, "forward_part.0.weight").T
            inner += self._parameter(layer, "forward_part.0.bias")
            inner *= 0.5 * (1 + special.erf(inner * np.float32(0.5**0.5)))
            if self.units is not None:
                inner *= self.units[layer]
            x = x + inner @ self._parameter(layer, "forward_part.2.weight").T
            x = x + self._parameter(layer, "forward_part.2.bias")
        logits = _normalised(x, decoder.parameters["norm.weight"], decoder.parameters["norm.bias"])
        logits = logits @ decoder.parameters["read.weight"].T + decoder.parameters["read.bias"]
        picked = np.take_along_axis(logits, ids[:, 1:, None], axis=-1)[..., 0]
        largest = logits.max(axis=-1)
        loss = np.log(np.exp(logits - largest[..., None]).sum(axis=-1, dtype=float)) + largest - picked
        found: Floats = loss / np.log(2)
        return found

    def _changed(self, layer: int, A: Floats) -> Floats:
        found = floats(self.change(layer, A), "weights")
        if found.shape != A.shape:
            raise ValueError(f"weights: expected matrices of shape {A.shape}, got {found.shape}")
        _moderate(found, "weights")
        return found.astype(np.float32)

    def _parameter(self, layer: int, name: str) -> Floats:
        return self.decoder.parameters[f"layers.{layer}.{name}"]

    def _norm(self, x: Floats, layer: int, name: str) -> Floats:
        return _normalised(x, self._parameter(layer, f"{name}.weight"), self._parameter(layer, f"{name}.bias"))


def _normalised(x: Floats, weight: Floats, bias: Floats) -> Floats:
    x = x - x.mean(axis=-1, keepdims=True)
    scaled: Floats = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(_EPSILON)) * weight + bias
    return scaled


def _moderate(factors: Floats, name: str) -> Floats:
    """Factors in single precision; those that could leave its range are a `ValueError`."""
    if np.abs(factors).max() > _LARGEST:
        raise ValueError(f"{name}: expected factors of at most {_LARGEST:g}, got one of {np.abs(factors).max():.3g}")
    small: Floats = np.where(np.abs(factors) < 1 / _LARGEST, 0, factors).astype(np.float32)
    return small


def _sizes(decoder: TrainedDecoder) -> tuple[int, int, int]:
    decoder = instance(decoder, TrainedDecoder, "decoder")
    return decoder.layers, decoder.heads, decoder.width


def _heads(decoder: TrainedDecoder, value: Any, name: str) -> list[Head]:
    layers, heads, _ = _sizes(decoder)
    if isinstance(value, str) or not isinstance(value, Collection):
        raise TypeError(f"{name}: expected heads as pairs (layer, head), got {type(value).__name__} {value!r}")
    for one in value:
        pair = isinstance(one, tuple) and len(one) == 2 and all(isinstance(k, int | np.integer) for k in one)
        if not pair or not (0 <= one[0] < layers and 0 <= one[1] < heads):
            raise ValueError(f"{name}: expected pairs (layer, head) below ({layers}, {heads}), got {one!r}")
    return list(value)


def _ids(decoder: TrainedDecoder, value: Any) -> NDArray[np.int64]:
    decoder, ids = instance(decoder, TrainedDecoder, "decoder"), floats(value, "ids")
    longest, alphabet = decoder.context + 1, len(decoder.alphabet)
    if ids.ndim != 2 or not 2 <= ids.shape[1] <= longest:
        raise ValueError(f"ids: expected whole numbers of shape (windows, 2 to {longest}), got shape {ids.shape}")
    if np.any(ids != np.round(ids)) or not 0 <= ids.min() <= ids.max() < alphabet:
        raise ValueError(f"ids: expected whole numbers from 0 to {alphabet - 1}, got {ids.min():g} to {ids.max():g}")
    return ids.astype(np.int64)
