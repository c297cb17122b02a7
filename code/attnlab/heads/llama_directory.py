"""Decoders in Llama's layout from a local directory of Hugging Face's kind, with its tokenizer.

The directory holds `config.json`, `tokenizer.json` and the weights, as `model.safetensors` or in several files that
`model.safetensors.index.json` lists. Nothing is downloaded and no pickle is loaded. What cannot be read exactly is
refused by name. Reading needs the packages safetensors and tokenizers (``pip install "attention-checked[model]"``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.heads.llama import Llama, checked, sizes_of
from attnlab.heads.tokens import Tokenizer, read_tokenizer
from attnlab.records import is_file, json_object
from attnmath.checks import path_to

#: The settings that are read, by the fields of `attnlab.heads.llama.Sizes`.
_SIZES = {
    "layers": "num_hidden_layers", "heads": "num_attention_heads", "key_heads": "num_key_value_heads",
    "width": "hidden_size", "d_k": "head_dim", "inner": "intermediate_size", "vocabulary": "vocab_size",
    "longest": "max_position_embeddings", "epsilon": "rms_norm_eps",
}  # fmt: skip
#: Settings that must have these values, which they have where they are left out.
_FIXED: dict[str, Any] = {
    "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "rope_scaling": None, "rope_interleaved": False,
    "is_encoder_decoder": False, "pretraining_tp": 1, "partial_rotary_factor": 1.0,
}  # fmt: skip
_READ = {
    "model_type",
    "architectures",
    "rope_theta",
    "rope_parameters",
    "tie_word_embeddings",
    *_SIZES.values(),
    *_FIXED,
}
#: Settings that change nothing of a pass: of training, of the generation of text, of what is returned, of the file.
_WITHOUT_EFFECT = {
    "attention_dropout", "initializer_range", "use_cache", "chunk_size_feed_forward", "dtype", "torch_dtype",
    "problem_type", "id2label", "label2id", "output_attentions", "output_hidden_states", "return_dict",
    "bos_token_id", "eos_token_id", "pad_token_id", "tokenizer_class", "is_llama_config", "transformers.js_config",
    "name_or_path", "_name_or_path", "_commit_hash", "_attn_implementation_autoset", "transformers_version",
}  # fmt: skip
#: How the formats of the weights are called, and what they are in memory.
_FORMATS: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
#: What a folder holds beside a model whose weights are to be changed before they are used.
_ADAPTER = "adapter_config.json"
_INDEX = "model.safetensors.index.json"


def load_directory(directory: str | Path, report: Callable[[], Any] = lambda: None) -> tuple[Llama, Tokenizer]:
    """Read the model and the tokenizer of a directory.

    report : called after each file of weights.
    Raises `FileNotFoundError` for a missing file and `ValueError` for what cannot be read exactly.
    """
    directory = path_to(directory, "directory")
    config = json_object(_file(directory, "config.json"), "directory")
    if (directory / _ADAPTER).exists():
        raise ValueError(f"directory: expected a model by itself, got {directory} with an adapter, {_ADAPTER}")
    formats: Counter[str] = Counter()
    arrays: dict[str, np.ndarray] = {}
    tied, found = _settings(config)
    for path in _weight_files(directory):
        for name, array in _arrays(path, formats).items():
            plain = name.removeprefix("model.")
            if plain in arrays:
                raise ValueError(f"directory: expected each parameter once, got {name} twice")
            arrays[plain] = array
        report()
    if found["layers"] > len(arrays):  # before as many shapes are made
        raise ValueError(f"directory: expected the parameters of {found['layers']} layers, got {len(arrays)} in all")
    head = arrays.get("lm_head.weight")
    if tied and head is not None:  # a copy, as some files have it
        if not np.array_equal(head, arrays.get("embed_tokens.weight", np.empty(0))):
            raise ValueError("directory: expected lm_head.weight to be tied to embed_tokens.weight, got another")
        del arrays["lm_head.weight"]
    # Old files hold the speeds of the rotation as well, which follow from the base in config.json.
    arrays = {name: array for name, array in arrays.items() if not name.endswith("rotary_emb.inv_freq")}
    sizes = sizes_of(found, tied, "directory: config.json")
    about = {"name": config.get("_name_or_path"), "licence": None, "parameters": dict(formats.most_common())}
    model = Llama(sizes, checked(sizes, arrays, "directory"), adjacent=False, about=about)
    return model, read_tokenizer(_file(directory, "tokenizer.json"))


def _weight_files(directory: Path) -> list[Path]:
    """The files of a directory that hold its weights, in the order of their names."""
    if not is_file(directory / _INDEX):
        return [_file(directory, "model.safetensors")]
    listed = json_object(directory / _INDEX, "directory").get("weight_map")
    if not isinstance(listed, dict) or not all(isinstance(name, str) for name in listed.values()):
        raise ValueError(
            f"directory: expected a weight_map from names to files in {_INDEX}, got {type(listed).__name__}"
        )
    if strange := [name for name in listed.values() if Path(name).name != name]:
        raise ValueError(f"directory: expected files beside {_INDEX}, got {strange[0]!r:.200}")
    return [_file(directory, name) for name in sorted(set(listed.values()))]


def _file(directory: Path, name: str) -> Path:
    if not is_file(directory / name):
        raise FileNotFoundError(f"directory: expected the file {name} in {str(directory)[:200]}, got none")
    return directory / name


def _settings(config: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether the output head is tied, and the settings by the fields of `Sizes`."""
    if config.get("model_type") != "llama":
        raise ValueError(f"directory: config.json: model_type: expected 'llama', got {config.get('model_type')!r}")
    classes = config.get("architectures") or ["LlamaForCausalLM"]
    if classes != ["LlamaForCausalLM"]:
        raise ValueError(f"directory: config.json: architectures: expected LlamaForCausalLM, got {classes!r}")
    for name, value in _FIXED.items():
        if name in config and config[name] != value:
            raise ValueError(f"directory: config.json: {name}: expected {value!r}, got {config[name]!r}")
    if unknown := sorted(set(config) - _READ - _WITHOUT_EFFECT):
        got = ", ".join(f"{name} = {config[name]!r:.50}" for name in unknown)
        raise ValueError(f"directory: config.json: expected settings that are known, got {got}")
    tied = config.get("tie_word_embeddings", False)
    if not isinstance(tied, bool):
        raise ValueError(f"directory: config.json: tie_word_embeddings: expected True or False, got {tied!r}")
    found = {name: config.get(key) for name, key in _SIZES.items()}
    heads, width = found["heads"], found["width"]
    if found["key_heads"] is None:
        found["key_heads"] = heads
    if found["d_k"] is None and isinstance(heads, int) and isinstance(width, int) and heads > 0 and not width % heads:
        found["d_k"] = width // heads
    found["epsilon"] = 1e-6 if found["epsilon"] is None else found["epsilon"]
    return tied, found | {"base": _base(config)}


def _base(config: Mapping[str, Any]) -> Any:
    """The base of the rotary angles, which older and newer versions of the library write in two places."""
    rope = config.get("rope_parameters") or {}
    known = isinstance(rope, dict) and set(rope) <= {"rope_theta", "rope_type"}
    if not known or rope.get("rope_type", "default") != "default":
        expected = "expected rope_theta and the rope_type 'default' alone"
        raise ValueError(f"directory: config.json: rope_parameters: {expected}, got {rope!r:.200}")
    return rope.get("rope_theta", config.get("rope_theta", 10000.0))


def _arrays(path: Path, formats: Counter[str]) -> dict[str, np.ndarray]:
    """The arrays of one file, bfloat16 as the float32 that it is the upper half of; counts the formats."""
    from safetensors import SafetensorError, deserialize

    try:
        found = deserialize(path.read_bytes())
    except (SafetensorError, ValueError, OverflowError) as error:
        raise ValueError(f"directory: expected a whole file of safetensors in {path}, got {error}") from None
    arrays = {}
    for name, one in found:
        kind = one["dtype"]
        if kind not in _FORMATS:
            raise ValueError(f"directory: expected the parameter {name} in one of {', '.join(_FORMATS)}, got {kind}")
        array = np.frombuffer(one["data"], dtype=_FORMATS[kind]).reshape(one["shape"])
        arrays[name] = (array.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else array
        formats[kind] += array.size
    return arrays
