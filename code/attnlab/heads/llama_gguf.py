"""Decoders in Llama's layout from GGUF files, which may hold weights of few bits, with the tokenizer of the file.

Nothing is downloaded. What cannot be read exactly is refused by name: another architecture, a setting, a parameter or
a number format that is not known. Reading needs the packages gguf and tokenizers
(``pip install "attention-checked[model]"``).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.heads.llama import Llama, Sizes, checked, sizes_of
from attnlab.heads.tokens import Tokenizer, byte_pairs
from attnlab.records import is_file
from attnmath.checks import path_to

#: The settings of a file that are read, by the fields of `attnlab.heads.llama.Sizes`.
_SIZES = {
    "layers": "block_count", "heads": "attention.head_count", "key_heads": "attention.head_count_kv",
    "width": "embedding_length", "d_k": "attention.key_length", "inner": "feed_forward_length",
    "vocabulary": "vocab_size", "longest": "context_length", "epsilon": "attention.layer_norm_rms_epsilon",
    "base": "rope.freq_base",
}  # fmt: skip
#: Settings that must have these values where they are there.
_FIXED = {"rope.scaling.type": "none", "expert_count": 0, "expert_used_count": 0}
#: Settings that follow from others, and must agree with these.
_SAME = {"rope.dimension_count": "d_k", "attention.value_length": "d_k"}
#: What settings outside of ``llama.`` begin with that describe the file and its tokenizer alone.
_WITHOUT_EFFECT = re.compile(r"GGUF\.|general\.|tokenizer\.|quantize\.")
_TOKENIZER = "tokenizer.ggml."
#: The names of the file's parameters, and those of `Sizes.shapes`.
_NAMES = {"token_embd": "embed_tokens", "output_norm": "norm", "output": "lm_head"}
_PARTS = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def load_gguf(path: str | Path, report: Callable[[], Any] = lambda: None) -> tuple[Llama, Tokenizer]:
    """Read the model and the tokenizer of a GGUF file.

    report : called after each parameter.
    Raises `FileNotFoundError` for a missing file and `ValueError` for one that cannot be read exactly.
    """
    fields, tensors = _opened(path_to(path, "path"))
    sizes = _sizes(fields, tied="output.weight" not in {tensor.name for tensor in tensors})
    if sizes.layers > len(tensors):  # before as many names are made
        raise ValueError(f"path: expected the parameters of {sizes.layers} layers, got {len(tensors)} in all")
    formats: Counter[str] = Counter()
    arrays = {}
    for tensor in tensors:
        name = _name(tensor.name)
        if name in arrays:
            raise ValueError(f"path: expected each parameter once, got {tensor.name} as well")
        arrays[name] = _numbers(tensor)
        formats[tensor.tensor_type.name] += int(tensor.n_elements)
        report()
    given = {key.removeprefix(_TOKENIZER): value for key, value in fields.items() if key.startswith(_TOKENIZER)}
    about = {
        "name": fields.get("general.name"),
        "licence": fields.get("general.license"),
        "parameters": dict(formats.most_common()),
    }
    return Llama(sizes, checked(sizes, arrays, "path"), adjacent=True, about=about), byte_pairs(given)


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path_to(path, "path").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """Settings and tensors of a file; the tensors' numbers are read when they are asked for."""
    from gguf import GGUFReader

    if not is_file(path):
        raise FileNotFoundError(f"path: expected a GGUF file, got {str(path)[:200]}")
    try:
        reader = GGUFReader(path)
        return {key: one.contents() for key, one in reader.fields.items()}, list(reader.tensors)
    except Exception as error:  # the package raises errors of many kinds where a file ends or lies
        got = f"{str(path)[:200]} ({error or type(error).__name__})"
        raise ValueError(f"path: expected a whole GGUF file in formats that gguf knows, got {got}") from None


def _sizes(fields: Mapping[str, Any], *, tied: bool) -> Sizes:
    """The sizes of a model, once all settings of its file are known."""
    kind = fields.get("general.architecture")
    if kind != "llama":
        raise ValueError(f"path: general.architecture: expected 'llama', got {kind!r}")
    known = {f"llama.{key}" for key in (*_SIZES.values(), *_FIXED, *_SAME)}
    if unknown := sorted(key for key in fields if key not in known and not _WITHOUT_EFFECT.match(key)):
        got = ", ".join(f"{key} = {str(fields[key])[:50]}" for key in unknown)
        raise ValueError(f"path: expected settings that are known, got {got}")
    found = {name: fields.get(f"llama.{key}") for name, key in _SIZES.items()}
    heads, width, tokens = found["heads"], found["width"], fields.get("tokenizer.ggml.tokens")
    left_out: dict[str, Any] = {"key_heads": heads, "base": 10000.0}
    if isinstance(heads, int) and isinstance(width, int) and heads > 0 and not width % heads:
        left_out["d_k"] = width // heads
    if isinstance(tokens, list):
        left_out["vocabulary"] = len(tokens)
    for name, value in left_out.items():
        found[name] = value if found[name] is None else found[name]
    sizes = sizes_of(found, tied, "path: llama")
    for key, wanted in (_FIXED | {key: getattr(sizes, name) for key, name in _SAME.items()}).items():
        if (value := fields.get(f"llama.{key}", wanted)) != wanted:
            raise ValueError(f"path: llama.{key}: expected {wanted!r}, got {value!r}")
    return sizes


def _name(name: str) -> str:
    """The name of a parameter in `Sizes.shapes`; what has none there is refused."""
    stem, _, end = name.rpartition(".")
    if end == "weight" and stem in _NAMES:
        return f"{_NAMES[stem]}.weight"
    found = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name)
    if not found or found[2] not in _PARTS:
        raise ValueError(f"path: expected parameters of Llama's layout, got {name[:200]}")
    return f"layers.{int(found[1])}.{_PARTS[found[2]]}.weight"


def _numbers(tensor: Any) -> np.ndarray:
    from gguf import quants

    try:
        numbers = quants.dequantize(tensor.data, tensor.tensor_type)
    except NotImplementedError:
        expected = f"the parameter {tensor.name} in a format that gguf turns into float32"
        raise ValueError(f"path: expected {expected}, got {tensor.tensor_type.name}") from None
    return np.asarray(numbers, dtype=np.float32).reshape([int(size) for size in tensor.shape[::-1]])
