"""Tiny random models in Llama's layout, written as GGUF files and as directories of safetensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.heads.llama import Sizes

#: Every size is another one.
SIZES = Sizes(layers=2, heads=6, key_heads=3, width=20, d_k=4, inner=28, vocabulary=260, longest=2048, epsilon=1e-5,
              base=500.0, tied=False)  # fmt: skip
MERGES = (("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "a"))
FORMATS = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}


def parameters(sizes: Sizes = SIZES, seed: int = 3) -> dict[str, np.ndarray]:
    """Random parameters under the names of Hugging Face's files, whose numbers bfloat16 can hold."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in sizes.shapes().items():
        numbers = 1.5 * rng.standard_normal(shape) * shape[-1] ** -0.5 if len(shape) == 2 else 1 + rng.random(shape)
        half = (np.asarray(numbers, dtype=np.float32).view(np.uint32) >> 16) << 16
        found[name if name == "lm_head.weight" else f"model.{name}"] = half.astype(np.uint32).view(np.float32)
    return found


def safetensors(path: Path, arrays: Mapping[str, np.ndarray], kind: str = "F32") -> None:
    """Write a file of safetensors: the length of a header, the header, the numbers."""
    header, content = {}, b""
    for name, array in arrays.items():
        plain = array.astype(np.float32).view(np.uint32) >> 16 if kind == "BF16" else array
        numbers = plain.astype(FORMATS[kind]).tobytes()
        place = [len(content), len(content) + len(numbers)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": place}
        content += numbers
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + content)


def tokens() -> list[str]:
    """The tokens of a tokenizer of byte pairs: the 256 bytes, and what the merges make."""
    pre_tokenizers = pytest.importorskip("tokenizers").pre_tokenizers
    return [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in MERGES)]


def directory(
    folder: Path, sizes: Sizes = SIZES, arrays: Mapping[str, np.ndarray] | None = None, kind: str = "F32",
    files: int = 1, **settings: Any,
) -> Path:  # fmt: skip
    """Write a model as a directory, its weights in one file or in several."""
    tokenizers = pytest.importorskip("tokenizers")
    arrays = parameters(sizes) if arrays is None else arrays
    folder.mkdir()
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
        "num_hidden_layers": sizes.layers, "num_attention_heads": sizes.heads, "num_key_value_heads": sizes.key_heads,
        "hidden_size": sizes.width, "head_dim": sizes.d_k, "intermediate_size": sizes.inner,
        "vocab_size": sizes.vocabulary, "max_position_embeddings": sizes.longest, "rms_norm_eps": sizes.epsilon,
        "rope_theta": sizes.base, "tie_word_embeddings": sizes.tied,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config | settings))
    names = [f"model-{part}-of-{files}.safetensors" for part in range(files)] if files > 1 else ["model.safetensors"]
    place = {name: names[number % files] for number, name in enumerate(arrays)}
    for file in names:
        safetensors(folder / file, {name: array for name, array in arrays.items() if place[name] == file}, kind)
    if files > 1:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": place}))
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE({token: number for number, token in enumerate(tokens())}, list(MERGES))
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.save(str(folder / "tokenizer.json"))
    return folder


NAMES = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
PARTS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}  # fmt: skip


def gguf_name(name: str) -> str:
    """The name that a GGUF file gives a parameter."""
    stem = name.removeprefix("model.").removesuffix(".weight")
    if stem in NAMES:
        return f"{NAMES[stem]}.weight"
    _, number, part = stem.split(".", 2)
    return f"blk.{number}.{PARTS[part]}.weight"


def permuted(name: str, array: np.ndarray, sizes: Sizes) -> np.ndarray:
    """Rows of queries and keys in the order of GGUF: coordinates that turn together stand beside each other."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return array
    return array.reshape(-1, 2, sizes.d_k // 2, sizes.width).swapaxes(1, 2).reshape(array.shape)


def gguf(
    path: Path, sizes: Sizes = SIZES, arrays: Mapping[str, np.ndarray] | None = None, *, architecture: str = "llama",
    kind: str = "F32", more: Mapping[str, np.ndarray] = {}, without: tuple[str, ...] = (), **settings: Any,
) -> Path:  # fmt: skip
    """Write a model as a GGUF file.

    kind : format of the matrices that allow it.  more : further tensors.  without : settings that are left out.
    settings : settings to add or change, with ``__`` for a dot.
    """
    library = pytest.importorskip("gguf")
    writer = library.GGUFWriter(path, architecture)
    given: dict[str, Any] = {
        "llama.block_count": sizes.layers, "llama.attention.head_count": sizes.heads,
        "llama.attention.head_count_kv": sizes.key_heads, "llama.embedding_length": sizes.width,
        "llama.attention.key_length": sizes.d_k, "llama.feed_forward_length": sizes.inner,
        "llama.vocab_size": sizes.vocabulary, "llama.context_length": sizes.longest,
        "llama.attention.layer_norm_rms_epsilon": sizes.epsilon, "llama.rope.freq_base": sizes.base,
        "llama.rope.dimension_count": sizes.d_k, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens(), "tokenizer.ggml.merges": [" ".join(pair) for pair in MERGES],
        "general.license": "none",
    }  # fmt: skip
    given |= {key.replace("__", "."): value for key, value in settings.items()}
    adders = {str: writer.add_string, bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32,
              list: writer.add_array}  # fmt: skip
    for key, value in given.items():
        if key not in without:
            adders[type(value)](key, value)
    arrays = parameters(sizes) if arrays is None else arrays
    wanted = library.GGMLQuantizationType[kind]
    for name, array in arrays.items():
        numbers = permuted(name, array, sizes)
        if kind != "F32" and array.ndim == 2 and not array.shape[1] % 32:
            writer.add_tensor(gguf_name(name), library.quants.quantize(numbers, wanted), raw_dtype=wanted)
        else:
            writer.add_tensor(gguf_name(name), numbers)
    for name, array in more.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
