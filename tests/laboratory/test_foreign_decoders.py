"""Decoders of another library: weights and logits of `attnlab.heads.llama` are those of its Llama.

The models are tiny, random, and made on the spot by the library transformers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import llama_files
import numpy as np
import pytest
from backends import torch_or_skip

from attnlab.heads.llama import Sizes
from attnlab.heads.pretrained import heads_of, load_llama
from attnmath.operator.attention import attention_weights, causal_mask

torch = torch_or_skip()
transformers = pytest.importorskip(
    "transformers", reason="transformers is optional: install attention-checked[foreign] to compare with its models"
)

IDS = np.asarray([3, 250, 7, 7, 0, 91, 14, 259, 33, 7, 102])
TEXT = "the white Rabbit took 12 watches"


def make(directory: Path, kind: str = "float32", **settings: Any) -> Path:
    """Write a tiny random model of the library into a folder, with a tokenizer of byte pairs."""
    torch.manual_seed(4)
    given = {"vocab_size": 260, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 6,
             "intermediate_size": 40, "max_position_embeddings": 64, "initializer_range": 0.3,
             "tie_word_embeddings": False} | settings  # fmt: skip
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**given))
    with torch.no_grad():
        for parameter in model.parameters():  # norms as well, which begin as ones
            parameter.add_(0.1 * torch.randn_like(parameter))
    other = llama_files.directory(directory.with_name("tokenizer"))
    shards = {"max_shard_size": "20KB"} if kind == "shards" else {}
    model.to(torch.bfloat16 if kind == "bfloat16" else torch.float32).save_pretrained(directory, **shards)
    (directory / "tokenizer.json").write_bytes((other / "tokenizer.json").read_bytes())
    return directory


def reference(directory: Path, ids: np.ndarray = IDS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attention weights, logits and residual stream of the library's own model, in double precision."""
    model = transformers.LlamaForCausalLM.from_pretrained(directory, dtype=torch.float64, attn_implementation="eager")
    with torch.no_grad():
        found = model.eval()(torch.asarray(ids)[None], output_attentions=True, output_hidden_states=True)
    weights = torch.stack(found.attentions)[:, 0].numpy()
    return weights, found.logits[0].numpy(), torch.stack(found.hidden_states[:-1])[:, 0].numpy()


def assert_equal(path: Path, theirs: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """The last hidden state of the library has gone through the last norm, so that it is compared by the logits."""
    model, _ = load_llama(path)
    for double in (False, True):
        ours = model.run(IDS, double=double)
        K = np.repeat(ours.K, model.sizes.heads // model.sizes.key_heads, axis=1)
        weights = attention_weights(ours.Q, K, mask=causal_mask(len(IDS)))
        np.testing.assert_allclose(weights, theirs[0], rtol=0, atol=1e-5)
        np.testing.assert_allclose(ours.logits, theirs[1], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(ours.residual[:-1], theirs[2], rtol=1e-5, atol=1e-5)
    assert np.ptp(theirs[0][-1, :, -1], axis=-1).max() > 0.5 and np.ptp(theirs[1]) > 1


#: What the library's configuration calls grouped keys, tied embeddings, the base of the angles and the width of a head.
MAKES: dict[str, dict[str, Any]] = {
    "a key head for each": {"num_key_value_heads": 6},
    "three key heads": {"num_key_value_heads": 3},
    "one key head": {"num_key_value_heads": 1},
    "tied": {"num_key_value_heads": 2, "tie_word_embeddings": True},
    "another base": {"rope_parameters": {"rope_theta": 50.0, "rope_type": "default"}},
    "wide heads": {"head_dim": 10, "num_key_value_heads": 2},
    "another epsilon": {"rms_norm_eps": 0.5},
}


@pytest.mark.parametrize("make_of", MAKES)
def test_weights_and_logits_are_those_of_the_library(tmp_path: Path, make_of: str) -> None:
    directory = make(tmp_path / "model", **MAKES[make_of])
    theirs = reference(directory)
    assert_equal(directory, theirs)
    assert_equal(as_gguf(directory, tmp_path / "model.gguf"), theirs)


@pytest.mark.parametrize("kind", ["bfloat16", "shards"])
def test_other_files_are_read_as_the_library_reads_them(tmp_path: Path, kind: str) -> None:
    directory = make(tmp_path / "model", kind, num_key_value_heads=3)
    assert (len(list(directory.glob("*.safetensors"))) > 1) == (kind == "shards")
    assert_equal(directory, reference(directory))


def as_gguf(directory: Path, path: Path) -> Path:
    """Write a directory's model as a GGUF file."""
    model, _ = load_llama(directory)
    assert not model.adjacent
    return llama_files.gguf(path, model.sizes, {f"model.{name}".replace("model.lm_head", "lm_head"): array
                                                for name, array in model.parameters.items()})  # fmt: skip


def test_heads_of_a_text_meet_the_tokens_of_the_library(tmp_path: Path) -> None:
    directory = make(tmp_path / "model", num_key_value_heads=2)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"))
    heads = heads_of(*load_llama(directory), TEXT)
    ids = np.asarray(tokenizer(TEXT)["input_ids"])
    assert "".join(heads.tokens) == TEXT and len(ids) == heads.n and heads.group == 3
    np.testing.assert_allclose(heads.weights(), reference(directory, ids)[0], rtol=0, atol=1e-5)


def others(value: Any) -> list[Any]:
    """Other values of a setting, of the same kind where it has one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value * 2]
    return ["relu", {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}, 1, ["X"], True]


def test_a_changed_setting_is_refused_or_changes_what_the_library_changes(tmp_path: Path) -> None:
    """Every setting that the library knows, with a value of another model, whatever it may mean."""
    directory = make(tmp_path / "model", num_key_value_heads=3)
    text = (directory / "config.json").read_text()
    known = transformers.LlamaConfig().to_dict() | {"sliding_window": None, "rope_scaling": None} | json.loads(text)
    refused, read = set(), set()
    for name, value in known.items():
        for other in others(value):
            (directory / "config.json").write_text(json.dumps(json.loads(text) | {name: other}))
            try:
                model, _ = load_llama(directory)
            except ValueError as error:
                assert str(error).startswith("directory: "), (name, other)
                refused.add(name)
                continue
            read.add(name)
            try:
                theirs = reference(directory)
            except Exception:  # a setting that the library cannot make a model of: nothing to compare with
                continue
            ours = model.run(IDS, double=True).logits
            np.testing.assert_allclose(ours, theirs[1], rtol=1e-5, atol=1e-5, err_msg=f"{name} = {other!r}")
    assert {"hidden_act", "attention_bias", "mlp_bias", "model_type", "sliding_window", "rope_scaling"} <= refused
    assert {"rms_norm_eps", "initializer_range", "attention_dropout", "use_cache"} <= read


#: Decoders of other layouts, some of which differ from Llama's in what their settings alone say.
FOREIGN = ("gemma", "gemma2", "gpt2", "gpt_neox", "granite", "mistral", "mixtral", "olmo2", "phi3", "qwen2", "qwen3",
           "smollm3")  # fmt: skip


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_model_of_another_layout_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    transformers.AutoConfig.for_model(kind).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=f"model_type: expected 'llama', got '{kind}'"):
        load_llama(tmp_path)


def test_sizes_are_those_that_the_library_writes(tmp_path: Path) -> None:
    model, _ = load_llama(make(tmp_path / "model", num_key_value_heads=3))
    assert model.sizes == Sizes(3, 6, 3, 24, 4, 40, 260, 64, 1e-6, 10000.0, tied=False)
