"""Queries and keys of a trained encoder: a forward pass through any model in BERT's layout.

The model is a local directory in Hugging Face's layout: `config.json`, `tokenizer.json` and
`model.safetensors`. Nothing is downloaded and no pickle is loaded. Reading a directory
needs the packages safetensors and tokenizers (``pip install "attention-checked[model]"``).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Integer
from numpy.typing import NDArray
from scipy import special

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import path_to, positive_integer
from attnmath.operator.attention import attention_weights

Floats = NDArray[Any]
_FILES = ("config.json", "tokenizer.json", "model.safetensors")


@dataclass(frozen=True)
class Encoder:
    """A BERT-layout encoder: its sizes, and its parameters as float64 arrays without the prefix ``bert.``."""

    layers: int
    heads: int
    width: int
    epsilon: float
    parameters: Mapping[str, Float[Numpy, "..."]]

    @property
    def d_k(self) -> int:
        """Width of one head."""
        return self.width // self.heads

    @property
    def longest(self) -> int:
        """Number of positions that the model has embeddings for."""
        return len(self.parameters["embeddings.position_embeddings.weight"])

    def queries_and_keys(
        self, ids: Integer[ArrayLike, "n"]
    ) -> tuple[Float[Numpy, "layers heads n d_k"], Float[Numpy, "layers heads n d_k"]]:
        """Q and K of every head for one sequence of token ids."""
        ids = _token_ids(ids, self.longest, len(self.parameters["embeddings.word_embeddings.weight"]))
        X = self._embed(ids)
        found = []
        for layer in range(self.layers):
            Q, K, X = self._layer(f"encoder.layer.{layer}.", X)
            found.append((Q, K))
        return np.stack([Q for Q, _ in found]), np.stack([K for _, K in found])

    def _embed(self, ids: NDArray[np.int64]) -> Floats:
        words, positions, kinds = (
            self.parameters[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
        )
        return self._norm("embeddings.LayerNorm", words[ids] + positions[: len(ids)] + kinds[0])

    def _layer(self, name: str, X: Floats) -> tuple[Floats, Floats, Floats]:
        Q, K, V = (self._split(self._linear(f"{name}attention.self.{part}", X)) for part in ("query", "key", "value"))
        heads = attention_weights(Q, K) @ V
        joined = heads.transpose(1, 0, 2).reshape(X.shape)
        X = self._norm(f"{name}attention.output.LayerNorm", X + self._linear(f"{name}attention.output.dense", joined))
        H = self._linear(f"{name}intermediate.dense", X)
        H = H * special.ndtr(H)  # GELU
        return Q, K, self._norm(f"{name}output.LayerNorm", X + self._linear(f"{name}output.dense", H))

    def _split(self, X: Floats) -> Floats:
        return X.reshape(len(X), self.heads, self.d_k).transpose(1, 0, 2)

    def _linear(self, name: str, X: Floats) -> Floats:
        return X @ self.parameters[f"{name}.weight"].T + self.parameters[f"{name}.bias"]

    def _norm(self, name: str, X: Floats) -> Floats:
        centred = X - X.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + self.epsilon)
        return scaled * self.parameters[f"{name}.weight"] + self.parameters[f"{name}.bias"]


def load_encoder(directory: str | Path) -> Encoder:
    """Read the encoder in a model directory.

    Raises `FileNotFoundError` for a missing file and `ValueError` for a model of another
    architecture or with missing or misshapen parameters.
    """
    directory = model_directory(directory)
    config = _config(directory / "config.json")
    keys = ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size")
    sizes = {key: config.get(key) for key in keys}
    if not all(isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in sizes.values()):
        raise ValueError(f"directory: expected positive sizes in {directory / 'config.json'}, got {sizes}")
    layers, heads, width, inner = sizes.values()
    if width % heads:
        raise ValueError(f"directory: expected hidden_size to be a multiple of num_attention_heads, got {sizes}")
    if config.get("hidden_act", "gelu") != "gelu" or config.get("position_embedding_type", "absolute") != "absolute":
        raise ValueError("directory: expected a BERT-layout model with gelu and absolute positions")
    epsilon = config.get("layer_norm_eps", 1e-12)
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 <= epsilon < math.inf:
        raise ValueError(f"directory: expected layer_norm_eps of at least 0 in its config.json, got {epsilon!r}")
    parameters = _parameters(directory / "model.safetensors")
    _check_shapes(parameters, layers, width, inner)
    return Encoder(layers, heads, width, float(epsilon), parameters)


def tokenize(directory: str | Path, text: str, *, longest: int) -> tuple[list[str], Int[Numpy, "n"]]:
    """Tokens and ids of a text, with the model's own tokenizer; a text of more than `longest` tokens is refused."""
    from tokenizers import Tokenizer

    positive_integer(longest, "longest")
    if not isinstance(text, str):
        raise TypeError(f"text: expected a string, got {type(text).__name__}")
    file = model_directory(directory) / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the package raises bare Exceptions
        raise ValueError(f"directory: expected a tokenizer in {file}, got {error}") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    encoded = tokenizer.encode(text)
    if not text.strip() or len(encoded.ids) > longest:
        got = f"{len(encoded.ids)} tokens, of which the tokenizer adds those at the ends"
        raise ValueError(f"text: expected from 1 word to {longest} tokens, got {got}")
    return list(encoded.tokens), np.asarray(encoded.ids, dtype=np.int64)


def model_directory(directory: str | Path) -> Path:
    """Return the directory as a path, once it is known to hold a model."""
    directory = path_to(directory, "directory")
    if missing := [name for name in _FILES if not (directory / name).is_file()]:
        raise FileNotFoundError(f"directory: expected {', '.join(_FILES)} in {directory}, missing {', '.join(missing)}")
    return directory


def weights_hash(directory: str | Path) -> str:
    """SHA-256 of the model's weights, in hexadecimal."""
    with (model_directory(directory) / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _config(path: Path) -> Any:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"directory: expected JSON in {path}, got {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"directory: expected a JSON object in {path}, got {type(config).__name__}")
    return config


def _parameters(path: Path) -> dict[str, Floats]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(path)
    except (SafetensorError, KeyError, TypeError, AttributeError, ValueError) as error:
        kind = type(error).__name__
        raise ValueError(
            f"directory: expected a whole file of float32, float16 or float64 in {path}, got {kind}: {error}"
        ) from None
    return {name.removeprefix("bert."): array.astype(np.float64) for name, array in arrays.items()
            if np.issubdtype(array.dtype, np.floating)}  # fmt: skip


def _check_shapes(parameters: Mapping[str, Floats], layers: int, width: int, inner: int) -> None:
    for name, shape in _shapes(layers, width, inner).items():
        got = parameters[name].shape if name in parameters else None
        if got is None or len(got) != len(shape) or any(s not in (None, g) for s, g in zip(shape, got, strict=True)):
            raise ValueError(f"directory: expected the parameter {name} of shape {shape}, got {got or 'none'}")


def _shapes(layers: int, width: int, inner: int) -> dict[str, tuple[int | None, ...]]:
    """Shape of every parameter that the forward pass reads; None stands for any size."""
    linear = {f"attention.{part}": (width, width) for part in ("self.query", "self.key", "self.value", "output.dense")}
    linear |= {"intermediate.dense": (inner, width), "output.dense": (width, inner)}
    norms = [f"encoder.layer.{n}.{part}" for n in range(layers) for part in ("attention.output", "output")]
    shapes: dict[str, tuple[int | None, ...]] = {
        f"embeddings.{kind}_embeddings.weight": (None, width) for kind in ("word", "position", "token_type")
    }
    for prefix in ["embeddings", *norms]:
        shapes |= {f"{prefix}.LayerNorm.{part}": (width,) for part in ("weight", "bias")}
    for n in range(layers):
        for part, shape in linear.items():
            shapes |= {f"encoder.layer.{n}.{part}.weight": shape, f"encoder.layer.{n}.{part}.bias": shape[:1]}
    return shapes


def _token_ids(ids: Any, longest: int, vocabulary: int) -> NDArray[np.int64]:
    ids = np.asarray(ids)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer) or not 0 < len(ids) <= longest:
        raise ValueError(f"ids: expected 1 to {longest} integers, got shape {ids.shape}, dtype {ids.dtype}")
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise ValueError(f"ids: expected values from 0 to {vocabulary - 1}, got {ids.min()} to {ids.max()}")
    return ids
