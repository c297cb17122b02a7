"""Decoders in Llama's layout: read from both kinds of files, refused by name, run, and extracted."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

import llama_files
import numpy as np
import pytest
from llama_files import SIZES

from attnlab import records
from attnlab.heads import extract, load, pretrained, prune_pretrained
from attnlab.heads.corpus import section
from attnlab.heads.llama import Llama, Pass, bits, continuation
from attnlab.heads.llama_directory import load_directory
from attnlab.heads.llama_gguf import file_hash, load_gguf
from attnlab.heads.load import load_pretrained, read_heads
from attnlab.heads.pretrained import bits_per_character, heads_of, load_llama, token_numbers
from attnlab.heads.removal import Row
from attnlab.records import provenance
from attnmath.operator.attention import attention_weights, causal_mask

pytest.importorskip("gguf", reason="gguf is optional: install attention-checked[model]")

GGUF = os.environ.get("ATTNMATH_MODEL_GGUF")
IDS = [0, 7, 7, 259, 31, 5, 7, 200, 1]


def weights(model: Llama, found: Pass) -> np.ndarray:
    group = model.sizes.heads // model.sizes.key_heads
    return attention_weights(found.Q, np.repeat(found.K, group, axis=1), mask=causal_mask(found.Q.shape[2]))


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return llama_files.gguf(tmp_path / "toy.gguf")


# --- the forward pass -------------------------------------------------------------------------------


def test_both_kinds_of_files_hold_one_model(toy: Path, tmp_path: Path) -> None:
    """GGUF turns adjacent coordinates of permuted rows, Hugging Face's files halves; the scores are the same."""
    (first, _), (second, _) = load_gguf(toy), load_directory(llama_files.directory(tmp_path / "model"))
    assert first.sizes == dataclasses.replace(second.sizes, epsilon=float(np.float32(1e-5))) and first.adjacent
    one, two = (model.run(IDS, double=True) for model in (first, second))
    np.testing.assert_allclose(weights(first, one), weights(second, two), rtol=0, atol=1e-9)
    for part in ("V", "residual", "logits"):
        np.testing.assert_allclose(getattr(one, part), getattr(two, part), rtol=0, atol=1e-7)
    assert np.abs(one.Q - two.Q).max() > 0.1  # another order of coordinates
    assert np.ptp(weights(first, one), axis=-1)[:, :, -1].max() > 0.5  # the scores are no small ones
    wrong = dataclasses.replace(first, adjacent=False).run(IDS, double=True)
    assert np.abs(weights(first, one) - weights(first, wrong)).max() > 0.1


def test_a_pass_has_its_shapes_and_its_precision(toy: Path) -> None:
    model, _ = load_gguf(toy)
    one, two = model.run(IDS), model.run(IDS, double=True)
    n = len(IDS)
    assert one.Q.shape == (2, 6, n, 4) and one.K.shape == one.V.shape == (2, 3, n, 4)
    assert one.residual.shape == (3, n, 20) and one.logits.shape == (n, 260)
    for part in ("Q", "K", "V", "residual", "logits"):
        single, double = getattr(one, part), getattr(two, part)
        assert single.dtype == np.float32 and double.dtype == np.float64
        assert 0 < np.abs(single - double).max() < 1e-4


def test_a_token_depends_on_those_before_it_alone(toy: Path) -> None:
    model, _ = load_gguf(toy)
    whole, part, other = (model.run(ids, double=True) for ids in (IDS, IDS[:4], [*IDS[:4], 9, 9]))
    for one in (part, other):
        np.testing.assert_allclose(one.residual[:, :4], whole.residual[:, :4], rtol=0, atol=1e-12)
    assert np.abs(other.logits[4] - whole.logits[4]).max() > 0.1


def test_scores_depend_on_the_distance_alone_where_tokens_are_equal(toy: Path) -> None:
    model, _ = load_gguf(toy)
    found = model.run([7] * 6, double=True)
    S = found.Q[0] @ np.repeat(found.K[0], 2, axis=0).transpose(0, 2, 1)
    np.testing.assert_allclose(S[:, 1:, 1:], S[:, :-1, :-1], rtol=0, atol=1e-12)
    assert np.abs(S[:, 1:, 0] - S[:, :-1, 0]).max() > 0.1
    norms = np.linalg.norm(found.K[0], axis=-1)
    np.testing.assert_allclose(norms, norms[:, :1].repeat(6, axis=1), rtol=1e-12)


def test_layers_are_reported_one_by_one(toy: Path) -> None:
    seen: list[int] = []
    model, _ = load_gguf(toy, lambda: seen.append(0))
    assert len(seen) == len(SIZES.shapes())
    model.run(IDS, report=lambda: seen.append(1))
    assert seen.count(1) == SIZES.layers


def test_other_matrices_may_mix_the_values(toy: Path) -> None:
    model, _ = load_gguf(toy)
    plain = model.run(IDS, double=True)
    seen: list[np.ndarray] = []

    def without_a_head(layer: int, P: np.ndarray) -> np.ndarray:
        seen.append(P)
        return P * (np.arange(6)[:, None, None] != 4) if layer == 1 else P

    found = model.run(IDS, double=True, weights=without_a_head)
    np.testing.assert_array_equal(np.stack(seen), weights(model, plain))
    name = "layers.1.self_attn.o_proj.weight"
    output = model.parameters[name] * (np.arange(24) // 4 != 4)
    expected = dataclasses.replace(model, parameters={**model.parameters, name: output}).run(IDS, double=True)
    np.testing.assert_allclose(found.logits, expected.logits, rtol=0, atol=1e-12)
    assert np.abs(found.logits - plain.logits).max() > 0.1
    with pytest.raises(ValueError, match=r"weights: expected matrices of shape \(6, 9, 9\), got \(9, 9\)"):
        model.run(IDS, weights=lambda layer, P: P[0])


def test_bits_and_continuation_are_those_of_the_logits(toy: Path) -> None:
    model, _ = load_gguf(toy)
    logits = model.run(IDS).logits.astype(float)
    P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = [-np.log2(P[place, IDS[place + 1]]) for place in range(len(IDS) - 1)]
    np.testing.assert_allclose(bits(logits, IDS), expected, rtol=1e-12)
    text = list(IDS)
    for number in continuation(model, IDS, 3):
        assert number == model.run(text).logits[-1].argmax()
        text.append(int(number))


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([], "ids: expected a non-empty sequence of integers"),
        ([0.5], "ids: expected a non-empty sequence of integers"),
        ([260], "ids: expected values from 0 to 259, got 260 to 260"),
        ([-1], "ids: expected values from 0 to 259, got -1 to -1"),
        ([1] * 2049, "ids: expected at most 2048 tokens, got 2049"),
        (None, "ids: "),
    ],
)
def test_numbers_that_are_no_tokens_are_named(toy: Path, ids: Any, said: str) -> None:
    model, tokenizer = load_gguf(toy)
    for call in (model.run, lambda ids: continuation(model, ids, 1)):
        with pytest.raises((TypeError, ValueError), match=said):
            call(ids)
    with pytest.raises(TypeError, match="double: "):
        model.run([1], double="yes")  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError), match="count: "):
        continuation(model, [1], 0)
    for logits, numbers in ((np.ones((2, 3)), [0, 3]), (np.ones((2, 3)), [0]), (np.ones(3), [0])):
        with pytest.raises(ValueError, match="^(ids|logits): expected"):
            bits(logits, numbers)
    for text in ("", "the" * 3000):
        with pytest.raises(ValueError, match="text: expected from 1 to 2048 tokens, got"):
            token_numbers(model, tokenizer, text)
    with pytest.raises(TypeError, match="text: expected a string, got int"):
        token_numbers(model, tokenizer, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tokenizer: expected"):
        token_numbers(model, tokenizer.inner, "the")
    with pytest.raises(ValueError, match="ids: expected at least 2 tokens, got 1"):
        bits_per_character(model, tokenizer, [1])
    with pytest.raises(ValueError, match="ids: expected characters after those of the first token, got 'é'"):
        bits_per_character(model, tokenizer, tokenizer.numbers("é"))


# --- files ------------------------------------------------------------------------------------------


def test_a_model_with_what_files_may_leave_out(tmp_path: Path) -> None:
    """As many key heads as heads, a tied output head, heads that divide the width, and the usual base."""
    sizes = dataclasses.replace(SIZES, heads=5, key_heads=5, tied=True, base=10000.0)
    left_out = ("attention.head_count_kv", "attention.key_length", "vocab_size", "rope.freq_base")
    path = llama_files.gguf(tmp_path / "a.gguf", sizes, without=tuple(f"llama.{name}" for name in left_out))
    folder = llama_files.directory(tmp_path / "a", sizes, head_dim=None, num_key_value_heads=None)
    config = json.loads((folder / "config.json").read_text())
    del config["rope_theta"]
    (folder / "config.json").write_text(json.dumps(config))
    (one, _), (two, _) = load_llama(path), load_llama(folder)
    assert one.sizes == dataclasses.replace(two.sizes, epsilon=one.sizes.epsilon)
    assert two.sizes == sizes
    np.testing.assert_allclose(one.run(IDS).logits, two.run(IDS).logits, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("kind", "files"), [("F32", 3), ("F16", 1), ("BF16", 2)])
def test_files_of_several_formats_hold_the_same_numbers(tmp_path: Path, kind: str, files: int) -> None:
    model, _ = load_directory(llama_files.directory(tmp_path / "model", kind=kind, files=files))
    assert list(model.about["parameters"]) == [kind]
    for name, array in llama_files.parameters().items():
        close = 0 if kind != "F16" else 2**-11
        np.testing.assert_allclose(model.parameters[name.removeprefix("model.")], array, rtol=close, atol=1e-6)


def test_weights_of_few_bits_are_those_of_the_library(tmp_path: Path) -> None:
    quants = pytest.importorskip("gguf.quants")
    kinds = pytest.importorskip("gguf").GGMLQuantizationType
    sizes = dataclasses.replace(SIZES, width=32, inner=64)
    arrays = llama_files.parameters(sizes)
    for kind in ("Q4_1", "Q8_0", "F16", "BF16"):
        model, _ = load_gguf(llama_files.gguf(tmp_path / f"{kind}.gguf", sizes, kind=kind))
        assert set(model.about["parameters"]) == {kind, "F32"}
        given = arrays["model.layers.1.mlp.down_proj.weight"]
        expected = quants.dequantize(quants.quantize(given, kinds[kind]), kinds[kind])
        found = model.parameters["layers.1.mlp.down_proj.weight"]
        np.testing.assert_array_equal(found, expected)
        assert np.abs(found - given).max() < 0.1 * np.abs(given).max()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"architecture": "qwen2"}, "general.architecture: expected 'llama', got 'qwen2'"),
        ({"llama__attention__sliding_window": 4}, "settings that are known, got llama.attention.sliding_window = 4"),
        ({"llama__rope__scaling__type": "yarn"}, "llama.rope.scaling.type: expected 'none', got 'yarn'"),
        ({"llama__rope__scaling__factor": 2.0}, "settings that are known, got llama.rope.scaling.factor = 2.0"),
        ({"llama__expert_count": 8}, "llama.expert_count: expected 0, got 8"),
        ({"llama__rope__dimension_count": 2}, "llama.rope.dimension_count: expected 4, got 2"),
        ({"llama__attention__value_length": 8}, "llama.attention.value_length: expected 4, got 8"),
        ({"llama__attention__head_count_kv": 4}, "heads that the number of key heads divides, got 6 and 4"),
        ({"llama__attention__key_length": 3}, "heads of an even width, got 3"),
        ({"llama__block_count": 0}, "expected positive sizes"),
        ({"llama__block_count": 10**6}, "the parameters of 1000000 layers, got 21 in all"),
        ({"llama__block_count": 1}, "parameters of 1 layers in Llama's layout, got 9 more: layers.1"),
        ({"llama__feed_forward_length": 30}, r"layers.0.mlp.gate_proj.weight of shape \(30, 20\), got \(28, 20\)"),
        ({"llama__rope__freq_base": 0.0}, "a base of the rotary angles above 0, got 0.0"),
        ({"split__count": 2}, "settings that are known, got split.count = 2"),
        ({"more": {"blk.0.attn_q.bias": np.ones(24, np.float32)}}, "Llama's layout, got blk.0.attn_q.bias"),
        ({"more": {"rope_freqs.weight": np.ones(2, np.float32)}}, "Llama's layout, got rope_freqs.weight"),
        (
            {"more": {"blk.0.attn_q_norm.weight": np.ones(4, np.float32)}},
            "Llama's layout, got blk.0.attn_q_norm.weight",
        ),
        ({"more": {"norm.weight": np.ones(20, np.float32)}}, "Llama's layout, got norm.weight"),
        ({"more": {"blk.9.ffn_up.weight": np.ones(2, np.int8)}}, "the parameter blk.9.ffn_up.weight .*, got I8"),
        ({"more": {"blk.00.ffn_up.weight": np.ones(2, np.float32)}}, "each parameter once, got blk.00.ffn_up.weight"),
        ({"tokenizer__ggml__model": "llama"}, "tokenizer.ggml.model: expected one of gpt2, got 'llama'"),
        ({"tokenizer__ggml__pre": "llama-bpe"}, "tokenizer.ggml.pre: expected one of gpt-2, smollm, got 'llama-bpe'"),
        ({"tokenizer__ggml__add_eos_token": True}, "tokenizer.ggml.add_eos_token: expected False, got True"),
        ({"tokenizer__ggml__merges": ["x yz"]}, "a tokenizer of byte pairs in the file, got"),
        ({"without": ("tokenizer.ggml.merges",)}, "a tokenizer of byte pairs in the file, got"),
        ({"without": ("llama.attention.layer_norm_rms_epsilon",)}, "an epsilon of the norms above 0, got None"),
    ],
)
def test_a_gguf_file_of_another_layout_is_refused_by_name(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^path: .*{said}"):
        load_gguf(llama_files.gguf(tmp_path / "other.gguf", **options))


def spoilt(arrays: dict[str, np.ndarray], name: str, value: Any) -> dict[str, np.ndarray]:
    return {key: array for key, array in (arrays | {name: value}).items() if array is not None}


Q = "model.layers.0.self_attn.q_proj"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model_type": "mistral"}, "model_type: expected 'llama', got 'mistral'"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "architectures: expected LlamaForCausalLM, got"),
        ({"hidden_act": "gelu"}, "hidden_act: expected 'silu', got 'gelu'"),
        ({"attention_bias": True}, "attention_bias: expected False, got True"),
        ({"mlp_bias": True}, "mlp_bias: expected False, got True"),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling: expected None, got"),
        ({"rope_interleaved": True}, "rope_interleaved: expected False, got True"),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 2}}, "rope_parameters: .* alone, got .*llama3"),
        ({"rope_parameters": {"factor": 2}}, "rope_parameters: .* alone, got {'factor': 2}"),
        ({"rope_parameters": [1]}, "rope_parameters: .*, got"),
        ({"sliding_window": 4}, "settings that are known, got sliding_window = 4"),
        ({"quantization_config": {}}, "settings that are known, got quantization_config"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings: expected True or False, got 1"),
        ({"tie_word_embeddings": True}, "lm_head.weight to be tied to embed_tokens.weight, got another"),
        ({"num_key_value_heads": 4}, "heads that the number of key heads divides, got 6 and 4"),
        ({"num_hidden_layers": True}, "expected positive sizes"),
        ({"num_hidden_layers": 10**8}, "the parameters of 100000000 layers, got 21 in all"),
        ({"num_hidden_layers": 3}, "layers.2.input_layernorm.weight of shape .*, got none"),
        ({"head_dim": 3}, "heads of an even width, got 3"),
        ({"head_dim": 8}, r"self_attn.q_proj.weight of shape \(48, 20\), got \(24, 20\)"),
        ({"rms_norm_eps": "small"}, "an epsilon of the norms above 0, got 'small'"),
        ({"arrays": spoilt(llama_files.parameters(), f"{Q}.bias", np.ones(24))}, "got 1 more: layers.0.self_attn"),
        ({"arrays": spoilt(llama_files.parameters(), f"{Q}.weight", None)}, r"q_proj.weight of shape .*, got none"),
        ({"arrays": spoilt(llama_files.parameters(), f"{Q}.weight", np.full((24, 20), np.nan))}, "expected finite"),
        ({"arrays": spoilt(llama_files.parameters(), "norm.weight", np.ones(20))}, "each parameter once, got"),
        ({"kind": "F64"}, "in one of F32, F16, BF16, got F64"),
    ],
)  # fmt: skip
def test_a_directory_of_another_layout_is_refused_by_name(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^directory: .*{said}"):
        load_directory(llama_files.directory(tmp_path / "model", **settings))


def test_a_copy_of_the_embeddings_and_old_buffers_are_known(tmp_path: Path) -> None:
    sizes = dataclasses.replace(SIZES, tied=True)
    arrays = llama_files.parameters(sizes)
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"]
    arrays["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(2, np.float32)
    model, _ = load_directory(llama_files.directory(tmp_path / "model", sizes, arrays))
    assert set(model.parameters) == set(sizes.shapes())


def test_a_file_that_was_cut_off_is_named(toy: Path, tmp_path: Path) -> None:
    content = toy.read_bytes()
    for size in (0, 3, 30, 300, len(content) // 2, len(content) - 40):
        toy.write_bytes(content[:size])
        with pytest.raises(ValueError, match="^path: expected a whole GGUF file"):
            load_gguf(toy)
    folder = llama_files.directory(tmp_path / "model", files=2)
    part = folder / "model-1-of-2.safetensors"
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.raises(ValueError, match="^directory: expected a whole file of safetensors in"):
        load_directory(folder)
    part.unlink()
    with pytest.raises(FileNotFoundError, match="directory: expected the file model-1-of-2.safetensors in"):
        load_directory(folder)
    for listed, said in (([], "a weight_map from names to files"), ({"a": "../b"}, "files beside")):
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))
        with pytest.raises(ValueError, match=f"^directory: expected {said}"):
            load_directory(folder)
    whole = llama_files.directory(tmp_path / "whole")
    (whole / "adapter_config.json").write_text("{}")
    with pytest.raises(ValueError, match="^directory: expected a model by itself, got .* with an adapter"):
        load_directory(whole)
    (whole / "adapter_config.json").unlink()
    (whole / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="^directory: expected a tokenizer in"):
        load_directory(whole)
    for path in (tmp_path / "none", tmp_path / ("x" * 5000)):
        with pytest.raises((FileNotFoundError, ValueError), match="^(path|directory): expected"):
            load_llama(path)
    with pytest.raises(FileNotFoundError, match="directory: expected the file config.json"):
        load_llama(tmp_path)
    with pytest.raises(TypeError, match="path: "):
        load_llama(3)  # type: ignore[arg-type]


# --- the tokenizer ----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["the hat", " the  them\n\n\tthe", "1865 a 3.14", "“Alice’s” 我 é", "<|im_end|>"])
def test_what_is_cut_into_tokens_comes_back(toy: Path, text: str) -> None:
    _, tokenizer = load_gguf(toy)
    ids = tokenizer.numbers(text)
    assert tokenizer.text(ids) == text
    if text.isascii():
        assert "".join(tokenizer.pieces(ids)) == text


def test_byte_pairs_are_merged_and_digits_stand_alone(toy: Path, tmp_path: Path) -> None:
    _, tokenizer = load_gguf(toy)
    assert tokenizer.pieces(tokenizer.numbers("the them")) == ("the", " the", "m")
    digits = {"tokenizer__ggml__tokens": [*llama_files.tokens(), "12"], "llama__vocab_size": 261,
              "tokenizer__ggml__merges": ["1 2"]}  # fmt: skip
    sizes = dataclasses.replace(SIZES, vocabulary=261)
    for cut, expected in (("smollm", ("1", "2")), ("gpt-2", ("12",))):
        path = llama_files.gguf(tmp_path / f"{cut}.gguf", sizes, tokenizer__ggml__pre=cut, **digits)
        _, tokenizer = load_gguf(path)
        assert tokenizer.pieces(tokenizer.numbers("12")) == expected


def test_a_first_token_is_added_where_the_file_asks_for_it(tmp_path: Path) -> None:
    asked = {"tokenizer__ggml__add_bos_token": True, "tokenizer__ggml__bos_token_id": 5}
    _, tokenizer = load_gguf(llama_files.gguf(tmp_path / "a.gguf", **asked))
    plain = load_gguf(llama_files.gguf(tmp_path / "b.gguf"))[1].numbers("the")
    assert tokenizer.numbers("the") == [5, *plain]


# --- extraction -------------------------------------------------------------------------------------


def test_heads_of_a_text_are_those_of_the_pass(toy: Path) -> None:
    model, tokenizer = load_llama(toy)
    heads = heads_of(model, tokenizer, "the white rabbit", length=5)
    ids = token_numbers(model, tokenizer, "the white rabbit", 5)
    found = model.run(ids, double=True)
    assert heads.tokens == ("the", " ", "w", "h", "i") and heads.causal and heads.group == 2
    np.testing.assert_array_equal(heads.Q, found.Q)
    np.testing.assert_array_equal(heads.weights(), weights(model, found))
    np.testing.assert_array_equal(heads.K[:, 0], heads.K[:, 1])
    logits = bits(model.run(ids).logits, ids)
    assert bits_per_character(model, tokenizer, ids) == pytest.approx(logits.sum() / len(" whi"))


@pytest.mark.parametrize("kind", ["gguf", "directory"])
def test_the_command_extracts_a_decoder(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = getattr(llama_files, kind)(tmp_path / "model")
    text = tmp_path / "mine.txt"
    text.write_text("the white rabbit ran")
    asked = [str(model), "--text", str(text), "--any-weights", "--length", "7"]
    for folder in "ab":
        assert extract.main([*asked, "--out", str(tmp_path / folder)]) == 0
    assert "half precision changes" in capsys.readouterr().out
    first, second = ((tmp_path / folder / "mine.npz").read_bytes() for folder in "ab")
    assert first == second and [path.name for path in (tmp_path / "a").iterdir()] == ["mine.npz"]
    heads = read_heads(tmp_path / "a/mine.npz")
    assert heads.Q.shape == heads.K.shape == (2, 6, 7, 4) and heads.causal and heads.group == 2
    assert np.load(tmp_path / "a/mine.npz")["K"].shape == (2, 3, 7, 4)
    assert np.all(np.triu(heads.weights(), 1) == 0)
    assert extract.main([str(model), "--text", str(text), "--out", str(tmp_path / "c")]) == 2
    assert f"expected weights with SHA-256 {pretrained.WEIGHTS}" in capsys.readouterr().err


def test_the_samples_of_a_decoder_have_a_record(toy: Path, tmp_path: Path) -> None:
    assert extract.main([str(toy), "--any-weights", "--length", "3", "--out", str(tmp_path / "out")]) == 0
    record = json.loads((tmp_path / "out/pretrained.json").read_text())
    assert record["model"]["sha256"] == file_hash(toy) and record["model"]["licence"] == "none"
    assert {name: one["tokens"] for name, one in record["texts"].items()} == {"passage": 304, "documentation": 304}
    assert all(one["bits_per_character"] > 5 for one in record["texts"].values())  # a random model of 260 tokens
    for name, one in record["files"].items():
        assert file_hash(tmp_path / "out" / name) == one["sha256"]
        assert read_heads(tmp_path / "out" / name).n == 3


def test_what_the_command_cannot_extract_is_named(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = llama_files.directory(tmp_path / "other", model_type="gpt2")
    text = tmp_path / "text.txt"
    text.write_text("the")
    for model, options, said in (
        (folder, [], "error: MODEL: config.json: model_type: expected one of bert, .*, llama, got 'gpt2'"),
        (tmp_path, [], "expected config.json, tokenizer.json, model.safetensors in"),
        (tmp_path, ["--length", "3"], "error: length: expected a decoder"),
        (text, ["--any-weights"], "error: MODEL: expected a whole GGUF file"),
    ):
        assert extract.main([str(model), "--text", str(text), "--out", str(tmp_path / "out"), *options]) in (1, 2)
        error = capsys.readouterr().err
        assert re.search(said, error), error
    assert not (tmp_path / "out").exists()


# --- what ships -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", load.PRETRAINED)
def test_the_shipped_heads_are_those_of_a_causal_decoder(text: str) -> None:
    heads, record = load_pretrained(text), provenance("pretrained")
    assert (heads.layers, heads.heads, heads.n, heads.d_k, heads.group) == (30, 9, pretrained.TOKENS, 64, 3)
    assert pretrained.texts()[text].startswith("".join(heads.tokens))
    P = heads.weights()
    np.testing.assert_allclose(P.sum(axis=-1), 1, atol=1e-12)
    assert np.all(np.triu(P, 1) == 0)
    assert P[2:, :, 40:, 0].mean() > 0.3 > 10 / 40  # an attention sink; equal weights would be 1/40 at most
    assert np.all(heads.K[:, ::3] == heads.K[:, 2::3]) and not np.any(
        np.all(heads.K[:, 0] == heads.K[:, 3], axis=(1, 2))
    )
    assert record["files"][f"pretrained_{text}.npz"]["sha256"] == load.PRETRAINED[text]
    assert record["model"]["sha256"] == pretrained.WEIGHTS and record["model"]["licence"] == "apache-2.0"


def test_the_record_has_the_loss_of_a_model_that_reads() -> None:
    record = provenance("pretrained")
    assert {name: one["bits_per_character"] for name, one in record["texts"].items()} == {
        "passage": pytest.approx(1.07, abs=0.01), "documentation": pytest.approx(0.82, abs=0.01)}  # fmt: skip
    assert record["continuations"]["The capital of France is"].startswith(" Paris")


def test_a_shipped_text_that_is_not_there_or_was_changed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="text: expected one of passage, documentation, got 'poem'"):
        load_pretrained("poem")
    monkeypatch.setitem(load.PRETRAINED, "passage", "0" * 64)
    with pytest.raises(ValueError, match=r"text: expected pretrained_passage.npz with SHA-256 000"):
        load_pretrained()


@pytest.mark.parametrize(
    ("of_K", "causal", "said"),
    [
        ((1, 4, 3, 2), np.asarray(1), "causal: expected True or False"),
        ((1, 4, 3, 2), np.asarray([True]), "causal: expected True or False"),
        ((1, 3, 3, 2), np.asarray(True), "expected Q and K of shape"),
        ((1, 0, 3, 2), np.asarray(True), "K: expected no empty axis"),
        ((1, 8, 3, 2), np.asarray(True), "expected Q and K of shape"),
        ((4, 3, 2), np.asarray(True), "expected Q and K of shape"),
    ],
)
def test_key_heads_that_do_not_fit_are_named(tmp_path: Path, of_K: Any, causal: Any, said: str) -> None:
    np.savez(tmp_path / "a.npz", Q=np.ones((1, 4, 3, 2)), K=np.ones(of_K), tokens=np.array(list("abc")), causal=causal)
    with pytest.raises(ValueError, match=f"^path: .*{said}"):
        read_heads(tmp_path / "a.npz")


def test_a_section_ends_at_the_next_title() -> None:
    text = pretrained.texts()["documentation"]
    assert text.startswith('The "try" statement\n===') and '"finally"' in text and text.count("\n====") == 1
    with pytest.raises(ValueError, match="text, title: expected a section with the title 'No', got none"):
        section("Nothing\n=======\n", "No")


@pytest.mark.skipif(not GGUF, reason="set ATTNMATH_MODEL_GGUF to the file of SmolLM2-135M-Instruct to re-make the data")
def test_the_shipped_heads_are_re_made_from_the_weights(tmp_path: Path) -> None:
    assert extract.main([str(GGUF), "--out", str(tmp_path)]) == 0
    for text in load.PRETRAINED:
        ours, shipped = read_heads(tmp_path / f"pretrained_{text}.npz"), load_pretrained(text)
        assert ours.tokens == shipped.tokens
        # Another machine may round a number that lies halfway between two halves the other way.
        np.testing.assert_allclose(ours.Q, shipped.Q, rtol=2**-10, atol=2**-24)
        np.testing.assert_allclose(ours.K, shipped.K, rtol=2**-10, atol=2**-24)
    ours, shipped_record = json.loads((tmp_path / "pretrained.json").read_text()), provenance("pretrained")
    assert ours["texts"] == shipped_record["texts"] and ours["continuations"] == shipped_record["continuations"]
    _, tokenizer = load_llama(str(GGUF))
    for text in pretrained.texts().values():
        assert tokenizer.text(tokenizer.numbers(text)) == text


def test_the_shipped_texts_are_there() -> None:
    assert pretrained.texts()["passage"] == (resources.files("attnlab") / "data/passage.txt").read_text("utf-8")


# Heads removed --------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CHOOSING": 1, "JUDGING": 2, "LENGTH": 12, "DRAWS": 2}.items():
        monkeypatch.setattr(prune_pretrained, name, value)
    monkeypatch.setattr(prune_pretrained, "REMOVED", {"order": (1, 12), "random": (3, 12)})


@pytest.mark.usefixtures("few_windows")
def test_heads_of_a_tiny_model_are_removed_and_what_is_done_is_kept(tmp_path: Path, capsys) -> None:
    pytest.importorskip("gguf", reason="gguf is optional: install attention-checked[model]")
    path, out = llama_files.gguf(tmp_path / "toy.gguf"), tmp_path / "out"
    assert prune_pretrained.main([str(path), "--out", str(out)]) == 0
    table = (out / "pretrained_pruning.csv").read_bytes()
    rows = {(r.kind, r.case, r.removed): r for r in records.read(out / "pretrained_pruning.csv", Row, "table")}
    alone = [rows["alone", head, 1].rise for head in range(12)]
    assert rows["order", 0, 1].head == f"{np.argmin(alone) // 6}.{np.argmin(alone) % 6}"
    everything = {rows[kind, case, 12].bits for kind, case in (("order", 0), ("random", 0), ("random", 1))}
    assert len(everything) == 1  # without any head the order is of no account
    (out / "pretrained_pruning.csv").write_bytes(table[: table.rfind(b"random,0")])
    assert prune_pretrained.main([str(path), "--out", str(out)]) == 0
    assert (out / "pretrained_pruning.csv").read_bytes() == table
    (out / "pretrained_pruning.csv").write_bytes(table.replace(b"alone,0,1", b"alone,99,1"))
    assert prune_pretrained.main([str(path), "--out", str(out)]) == 2
    assert "expected versions of this command" in capsys.readouterr().err


def test_a_removed_head_is_one_of_the_model(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="gguf is optional: install attention-checked[model]")
    model, tokenizer = pretrained.load_llama(llama_files.gguf(tmp_path / "toy.gguf"))
    (ids,) = prune_pretrained.windows(model, tokenizer, "the theatre at the lake " * 20, 1)
    whole = prune_pretrained.without(model, tokenizer, ids, [])
    assert whole == pytest.approx(pretrained.bits_per_character(model, tokenizer, ids))
    assert prune_pretrained.without(model, tokenizer, ids, [(1, 5)]) != whole
    with pytest.raises(ValueError, match=r"removed: expected pairs below \(2, 6\), got \(2, 0\)"):
        prune_pretrained.without(model, tokenizer, ids, [(2, 0)])
    with pytest.raises(ValueError, match="text: expected 3 windows of 80 tokens, got 1 tokens"):
        prune_pretrained.windows(model, tokenizer, "a", 3)


def test_the_table_of_removed_heads_is_whole() -> None:
    rows = prune_pretrained.load_pretrained_pruning()
    assert [(row.kind, row.case, row.removed) for row in rows] == list(prune_pretrained._cases(270))
    alone = sorted((row.rise, row.case) for row in rows if row.kind == "alone")
    first = {row.removed: row.head for row in rows if row.kind == "order"}
    assert all(head == f"{alone[k - 1][1] // 9}.{alone[k - 1][1] % 9}" for k, head in first.items())
