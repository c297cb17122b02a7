"""Models of another library: what `attnlab.heads.encoder` accepts it reads exactly, and the rest it refuses by name.

The models are tiny, random, and made on the spot by the library transformers, whose queries and keys are the reference.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backends import torch_or_skip

from attnlab.heads.encoder import load_encoder
from attnlab.heads.layout import FAMILIES

torch = torch_or_skip()
transformers = pytest.importorskip(
    "transformers", reason="transformers is optional: install attention-checked[foreign] to compare with its models"
)

SIZES = {"vocab_size": 11, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3,
         "intermediate_size": 20, "max_position_embeddings": 16, "initializer_range": 0.5}  # fmt: skip
#: Text with the number of every padding token among the rest, since RoBERTa does not count these.
IDS = np.asarray([2, 5, 3, 0, 1, 7, 5])
#: What a model is called and what sits on top of it changes the names of the parameters alone.
MAKES = {
    **{kind: (kind, "AutoModel", {}) for kind in FAMILIES},
    "bert with a head": ("bert", "AutoModelForMaskedLM", {}),
    "roberta with a head": ("roberta", "AutoModelForMaskedLM", {}),
    "camembert that classifies": ("camembert", "AutoModelForSequenceClassification", {}),
    "bert of another epsilon": ("bert", "AutoModel", {"layer_norm_eps": 0.25, "pad_token_id": 5}),
    "roberta of another epsilon": ("roberta", "AutoModel", {"layer_norm_eps": 0.25}),
    "roberta of another padding": ("xlm-roberta", "AutoModel", {"pad_token_id": 5, "type_vocab_size": 1}),
    "roberta that pads with 0": ("roberta", "AutoModel", {"pad_token_id": 0}),
}


def make(directory: Path, kind: str, head: str = "AutoModel", **settings: Any) -> Path:
    """Write a tiny random model of the library into a folder; the tokenizer is not asked for."""
    torch.manual_seed(1)
    given = SIZES | settings
    model = getattr(transformers, head).from_config(transformers.AutoConfig.for_model(kind, **given))
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms as well, which begin as zeros and ones
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(directory)
    (directory / "tokenizer.json").write_text("{}")
    return directory


def reference(directory: Path, ids: np.ndarray = IDS) -> tuple[np.ndarray, np.ndarray]:
    """Q and K of the library's own model, in double precision, as its two linear maps return them."""
    model = transformers.AutoModel.from_pretrained(directory, dtype=torch.float64).eval()
    seen: dict[str, list[np.ndarray]] = {"query": [], "key": []}
    for name, module in model.named_modules():
        if (part := name.rpartition(".")[2]) in seen and ".self." in name:
            module.register_forward_hook(lambda _module, _given, out, part=part: seen[part].append(out[0].numpy()))
    with torch.no_grad():
        model(torch.asarray(ids)[None])
    heads = model.config.num_attention_heads
    return tuple(np.stack(rows).reshape(len(rows), len(ids), heads, -1).transpose(0, 2, 1, 3) for rows in seen.values())  # type: ignore[return-value]


def assert_equal(directory: Path, ids: np.ndarray = IDS) -> None:
    for ours, theirs in zip(load_encoder(directory).queries_and_keys(ids), reference(directory, ids), strict=True):
        assert np.abs(theirs).max() > 0.5 and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def rewritten(directory: Path, **settings: Any) -> Path:
    """Change settings in the file of a model that is there."""
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return directory


def renamed(directory: Path, names: dict[str, str]) -> Path:
    """Change parts of the names of the parameters in the file of a model that is there."""
    from safetensors.numpy import load_file, save_file

    found = {}
    for name, array in load_file(directory / "model.safetensors").items():
        for old, new in names.items():
            name = name.replace(old, new)
        found[name] = array
    save_file(found, directory / "model.safetensors", metadata={"format": "pt"})
    return directory


@pytest.mark.parametrize("make_of", MAKES)
def test_queries_and_keys_are_those_of_the_library(tmp_path: Path, make_of: str) -> None:
    kind, head, settings = MAKES[make_of]
    directory = make(tmp_path, kind, head, **settings)
    assert_equal(directory)
    longest, padding = load_encoder(directory).longest, settings.get("pad_token_id", 1)
    assert longest == 16 - (padding + 1 if FAMILIES[kind].after_padding else 0)
    assert_equal(directory, np.resize(IDS[padding != IDS], longest))


def test_old_names_of_the_parts_of_a_norm_are_read(tmp_path: Path) -> None:
    directory = make(tmp_path, "bert", "AutoModelForMaskedLM")
    assert_equal(renamed(directory, {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}))


def test_half_precision_is_read_as_the_numbers_that_it_holds(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    path = make(tmp_path, "roberta") / "model.safetensors"
    save_file({name: array.astype(np.float16) for name, array in load_file(path).items()}, path, {"format": "pt"})
    assert_equal(tmp_path)


def others(value: Any) -> list[Any]:
    """Other values of a setting, of the same kind where it has one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value * 2]
    return ["relu", "relative_key", "alibi", 1, {"0": [1]}, ["X"], True]


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_a_changed_setting_is_refused_or_changes_what_the_library_changes(tmp_path: Path, kind: str) -> None:
    """Every setting that the library knows, with a value of another model, whatever it may mean."""
    plain = make(tmp_path, kind)
    text = (plain / "config.json").read_text()
    known = transformers.AutoConfig.for_model(kind, **SIZES).to_dict()
    refused, read = set(), set()
    for name, value in ({"position_embedding_type": "absolute", "use_task_id": False} | known).items():
        for other in others(value):
            (plain / "config.json").write_text(text)
            rewritten(plain, **{name: other})
            try:
                load_encoder(plain)
            except ValueError as error:
                assert str(error).startswith("directory: "), (name, other)
                refused.add(name)
                continue
            read.add(name)
            try:
                theirs = reference(plain)
            except Exception:  # a setting that the library cannot make a model of: nothing to compare with
                continue
            for a, b in zip(load_encoder(plain).queries_and_keys(IDS), theirs, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-10, err_msg=f"{name} = {other!r}")
    assert {"hidden_act", "is_decoder", "add_cross_attention", "position_embedding_type", "model_type"} <= refused
    assert {"layer_norm_eps", "pad_token_id", "chunk_size_feed_forward", "num_attention_heads"} <= read | {kind}


#: Encoders and decoders of other layouts.
FOREIGN = (
    "albert", "bert-generation", "big_bird", "convbert", "data2vec-text", "deberta-v2", "distilbert", "electra",
    "ernie", "gpt2", "ibert", "layoutlm", "llama", "megatron-bert", "modernbert", "mpnet", "nomic_bert", "roc_bert",
    "roberta-prelayernorm", "roformer", "xlm-roberta-xl", "xmod",
)  # fmt: skip


def test_a_model_of_another_layout_is_refused_by_name(tmp_path: Path) -> None:
    for kind in FOREIGN:
        (tmp_path / kind).mkdir()
        for name in ("tokenizer.json", "model.safetensors"):
            (tmp_path / kind / name).write_bytes(b"{}")
        config = transformers.AutoConfig.for_model(kind)
        config.save_pretrained(tmp_path / kind)
        with pytest.raises(ValueError, match=rf"model_type: expected one of bert, .*, got '{kind}'"):
            load_encoder(tmp_path / kind)
        with warnings.catch_warnings():  # one that only calls itself BERT says more than BERT has settings for
            warnings.simplefilter("ignore")
            rewritten(tmp_path / kind, model_type="bert")
        with pytest.raises(ValueError, match="directory: "):
            load_encoder(tmp_path / kind)


@pytest.mark.parametrize(("kind", "settings"), [("ernie", {"use_task_id": True}), ("electra", {}), ("xmod", {})])
def test_parameters_of_another_layout_are_refused_by_name(tmp_path: Path, kind: str, settings: dict[str, Any]) -> None:
    """Models whose parameters are called as BERT's or RoBERTa's, under the settings of those."""
    posed = "roberta" if kind == "xmod" else "bert"
    directory = make(tmp_path, kind, **settings)
    config = transformers.AutoConfig.for_model(posed, **SIZES)
    (directory / "config.json").unlink()
    config.save_pretrained(directory)
    with pytest.raises(ValueError, match=r"directory: expected the parameter"):
        load_encoder(directory)
