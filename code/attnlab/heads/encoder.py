"""Queries and keys of a trained encoder: a forward pass through any model in BERT's or RoBERTa's layout.

The model is a local directory in Hugging Face's layout: `config.json`, `tokenizer.json` and
`model.safetensors`. Nothing is downloaded and no pickle is loaded. What cannot be read exactly is refused by name
(`attnlab.heads.layout`). Reading a directory needs the packages safetensors and tokenizers
(``pip install "attention-checked[model]"``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Integer
from numpy.typing import NDArray
from scipy import special

from attnlab.heads.layout import Layout, layout
from attnlab.records import is_file, json_object
from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import path_to, positive_integer
from attnmath.operator.attention import attention_weights

Floats = NDArray[Any]
_FILES = ("config.json", "tokenizer.json", "model.safetensors")
#: What a folder holds beside a model whose weights are to be changed before they are used.
_ADAPTER = "adapter_config.json"


@dataclass(frozen=True)
class Encoder:
    """An encoder: its sizes, and its parameters as float64 arrays under BERT's names, without the prefix ``bert.``.

    padding : the number of the padding token where positions count from it on, as RoBERTa's do; None for BERT's.
    """

    layers: int
    heads: int
    width: int
    epsilon: float
    parameters: Mapping[str, Float[Numpy, "..."]]
    padding: int | None = None

    @property
    def d_k(self) -> int:
        """Width of one head."""
        return self.width // self.heads

    @property
    def longest(self) -> int:
        """Number of tokens that the model has positions for."""
        first = 0 if self.padding is None else self.padding + 1
        return len(self.parameters["embeddings.position_embeddings.weight"]) - first

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
        return self._norm("embeddings.LayerNorm", words[ids] + positions[self._positions(ids)] + kinds[0])

    def _positions(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        """The row of each token in the table of positions: its place, or RoBERTa's count of tokens from padding on."""
        if self.padding is None:
            return np.arange(len(ids))
        token = ids != self.padding
        return np.where(token, token.cumsum(), 0) + self.padding

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

    Accepted are BERT's layout and RoBERTa's: the model types of `attnlab.heads.layout.FAMILIES`, with the activation
    gelu and absolute positions. Raises `FileNotFoundError` for a missing file and `ValueError` for anything else:
    another architecture, a setting or a parameter that is not known, missing, misshapen or infinite parameters.
    """
    directory = model_directory(directory)
    found = layout(json_object(directory / "config.json", "directory"))
    parameters = _parameters(directory / "model.safetensors", found)
    encoder = Encoder(found.layers, found.heads, found.width, found.epsilon, parameters, found.padding)
    if encoder.longest < 1:
        rows = len(parameters["embeddings.position_embeddings.weight"])
        raise ValueError(f"directory: config.json: pad_token_id: expected less than {rows - 1}, got {found.padding}")
    return encoder


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
    if any(encoded.type_ids):
        raise ValueError(f"directory: expected a tokenizer that gives one text the type 0, got {encoded.type_ids}")
    if not text.strip() or len(encoded.ids) > longest:
        got = f"{len(encoded.ids)} tokens, of which the tokenizer adds those at the ends"
        raise ValueError(f"text: expected from 1 word to {longest} tokens, got {got}")
    return list(encoded.tokens), np.asarray(encoded.ids, dtype=np.int64)


def model_directory(directory: str | Path) -> Path:
    """Return the directory as a path, once it is known to hold a model."""
    directory = path_to(directory, "directory")
    if missing := [name for name in _FILES if not is_file(directory / name)]:
        where = str(directory)[:200]
        raise FileNotFoundError(f"directory: expected {', '.join(_FILES)} in {where}, missing {', '.join(missing)}")
    if (directory / _ADAPTER).exists():
        raise ValueError(f"directory: expected a model by itself, got {directory} with an adapter, {_ADAPTER}")
    return directory


def weights_hash(directory: str | Path) -> str:
    """SHA-256 of the model's weights, in hexadecimal."""
    with (model_directory(directory) / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parameters(path: Path, layout: Layout) -> dict[str, Floats]:
    """Return the parameters that the forward pass reads, once all of the file are known."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(path)
    except (SafetensorError, KeyError, TypeError, AttributeError, ValueError) as error:
        kind = type(error).__name__
        raise ValueError(
            f"directory: expected a whole file of float32, float16 or float64 in {path}, got {kind}: {error}"
        ) from None
    names, parameters = layout.names(arrays), {}
    for name, shape in layout.shapes().items():
        array = arrays.get(names.get(name, ""))
        if array is None or not _fits(array.shape, shape):
            got = "none" if array is None else array.shape
            raise ValueError(f"directory: expected the parameter {name} of shape {shape}, got {got}")
        if not np.issubdtype(array.dtype, np.floating):
            raise ValueError(f"directory: expected the parameter {name} in floating-point numbers, got {array.dtype}")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"directory: expected finite numbers in the parameter {name}, got infinity or NaN")
        parameters[name] = array.astype(np.float64)
    return parameters


def _fits(got: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether a shape is the wanted one, with one row at least where any number will do."""
    return len(got) == len(wanted) and all(
        size > 0 if expected is None else size == expected for size, expected in zip(got, wanted, strict=True)
    )


def _token_ids(ids: Any, longest: int, vocabulary: int) -> NDArray[np.int64]:
    ids = np.asarray(ids)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer) or not 0 < len(ids) <= longest:
        raise ValueError(f"ids: expected 1 to {longest} integers, got shape {ids.shape}, dtype {ids.dtype}")
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise ValueError(f"ids: expected values from 0 to {vocabulary - 1}, got {ids.min()} to {ids.max()}")
    return ids
