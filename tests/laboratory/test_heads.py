"""The real heads: loaded intact, re-made from the weights, and the forward pass checked against torch."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import os
import re
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backends import torch_or_skip

from attnlab.heads import extract
from attnlab.heads.encoder import Encoder, load_encoder, tokenize, weights_hash
from attnlab.heads.load import SAMPLES, Heads, load_heads, read_decoder, read_heads
from attnmath.operator.attention import attention_weights

DATA = Path(extract.__file__).parents[1] / "data"
MODEL = os.environ.get("ATTNMATH_MODEL")
LAYERS, HEADS, WIDTH, INNER, WORDS = 2, 3, 12, 20, ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "white", "rabbit", "##s", "ran"]


def toy_parameters(prefix: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    linear = {"attention.self.query": (WIDTH, WIDTH), "attention.self.key": (WIDTH, WIDTH),
              "attention.self.value": (WIDTH, WIDTH), "attention.output.dense": (WIDTH, WIDTH),
              "intermediate.dense": (INNER, WIDTH), "output.dense": (WIDTH, INNER)}  # fmt: skip
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (16, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
    }
    norms = ["embeddings", *(f"encoder.layer.{n}.{p}" for n in range(LAYERS) for p in ("attention.output", "output"))]
    shapes |= {f"{name}.LayerNorm.{part}": (WIDTH,) for name in norms for part in ("weight", "bias")}
    for n in range(LAYERS):
        for part, shape in linear.items():
            shapes |= {f"encoder.layer.{n}.{part}.weight": shape, f"encoder.layer.{n}.{part}.bias": shape[:1]}
    return {prefix + name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return make_toy(tmp_path / "model")


def make_toy(directory: Path, prefix: str = "", drop: str = "", **config: object) -> Path:
    """Write a tiny random model in Hugging Face's layout."""
    save_file = pytest.importorskip("safetensors.numpy").save_file
    tokenizers = pytest.importorskip("tokenizers")
    directory.mkdir()
    sizes = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_size": WIDTH}
    (directory / "config.json").write_text(json.dumps(sizes | {"intermediate_size": INNER} | config))
    save_file({k: v for k, v in toy_parameters(prefix).items() if k != drop}, directory / "model.safetensors")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory


def torch_queries_and_keys(directory: Path, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same forward pass, written with torch's own layers."""
    torch = torch_or_skip()
    from safetensors.torch import load_file

    F = torch.nn.functional
    config = json.loads((directory / "config.json").read_text())
    p = {k.removeprefix("bert."): v.double() for k, v in load_file(directory / "model.safetensors").items()}
    width, heads, eps = config["hidden_size"], config["num_attention_heads"], config.get("layer_norm_eps", 1e-12)
    ids = torch.asarray(ids)

    def norm(name, x):
        return F.layer_norm(x, (width,), p[f"{name}.weight"], p[f"{name}.bias"], eps)

    def linear(name, x):
        return F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])

    x = p["embeddings.word_embeddings.weight"][ids] + p["embeddings.token_type_embeddings.weight"][0]
    x = norm("embeddings.LayerNorm", x + p["embeddings.position_embeddings.weight"][: len(ids)])
    Qs, Ks = [], []
    for n in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{n}"
        Q, K, V = (
            linear(f"{name}.attention.self.{s}", x).unflatten(-1, (heads, -1)).transpose(0, 1)
            for s in ("query", "key", "value")
        )
        joined = F.scaled_dot_product_attention(Q[None], K[None], V[None])[0].transpose(0, 1).flatten(1)
        x = norm(f"{name}.attention.output.LayerNorm", x + linear(f"{name}.attention.output.dense", joined))
        inner = F.gelu(linear(f"{name}.intermediate.dense", x))
        x = norm(f"{name}.output.LayerNorm", x + linear(f"{name}.output.dense", inner))
        Qs.append(Q.numpy())
        Ks.append(K.numpy())
    return np.stack(Qs), np.stack(Ks)


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_the_forward_pass_agrees_with_torch(tmp_path: Path, prefix: str) -> None:
    directory = make_toy(tmp_path / "model", prefix)
    tokens, ids = tokenize(directory, "White rabbits ran", longest=16)
    assert tokens == ["[CLS]", "white", "rabbit", "##s", "ran", "[SEP]"]
    found = load_encoder(directory).queries_and_keys(ids)
    for ours, theirs in zip(found, torch_queries_and_keys(directory, ids), strict=True):
        assert ours.shape == (LAYERS, HEADS, 6, WIDTH // HEADS)
        # Entries of order ten after two layers of sums over at most 20 terms.
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def test_an_archive_has_no_date() -> None:
    with zipfile.ZipFile(io.BytesIO(extract.archive({"a": np.ones(2)}))) as zipped:
        assert {member.date_time for member in zipped.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_load(sample: str) -> None:
    heads = load_heads(sample)
    assert (heads.layers, heads.heads, heads.d_k, len(heads.tokens)) == (6, 12, 32, heads.n)
    assert heads.tokens[0] == "[CLS]" and heads.tokens[-1] == "[SEP]"
    np.testing.assert_allclose(heads.weights().sum(axis=-1), 1, atol=1e-12)


def test_the_passage_has_several_hundred_tokens_and_the_data_is_small() -> None:
    assert load_heads().n >= 256
    assert sum(path.stat().st_size for path in DATA.glob("*.npz")) < 14_000_000


def test_trained_heads_are_not_random() -> None:
    """A head that a model has learned looks one token back; chance would give 1/n to every key."""
    P = load_heads().weights()
    previous = np.einsum("lhii->lh", P[:, :, 1:, :-1]) / (P.shape[-1] - 1)
    assert previous.max() > 0.5 > 20 / P.shape[-1]


def test_the_command_makes_equal_bytes_and_checks_the_weights(toy: Path, tmp_path: Path, capsys) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("White rabbits ran")
    for folder in ("a", "b"):
        assert extract.main([str(toy), "--text", str(text), "--any-weights", "--out", str(tmp_path / folder)]) == 0
    first, second = ((tmp_path / folder / "mine.npz").read_bytes() for folder in "ab")
    assert first == second and "half precision changes" in capsys.readouterr().out
    heads = read_heads(tmp_path / "a/mine.npz")
    assert heads.weights().shape == (LAYERS, HEADS, 6, 6)
    assert extract.main([str(toy), "--out", str(tmp_path / "c")]) == 2
    assert f"expected weights with SHA-256 {extract.WEIGHTS}" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


@pytest.mark.skipif(not MODEL, reason="set ATTNMATH_MODEL to a directory of all-MiniLM-L6-v2 to re-make the data")
def test_the_samples_are_re_made_from_the_weights(tmp_path: Path) -> None:
    directory = Path(str(MODEL))
    assert weights_hash(directory) == extract.WEIGHTS
    assert extract.main([str(directory), "--out", str(tmp_path)]) == 0
    for sample in SAMPLES:
        ours, shipped = read_heads(tmp_path / f"{sample}.npz"), load_heads(sample)
        assert ours.tokens == shipped.tokens
        # Another machine may round a number that lies halfway between two halves the other way.
        np.testing.assert_allclose(ours.Q, shipped.Q, rtol=2**-10, atol=2**-24)
        np.testing.assert_allclose(ours.K, shipped.K, rtol=2**-10, atol=2**-24)
    _, ids = tokenize(directory, (DATA / "sentence.txt").read_text(), longest=512)
    Q, K = torch_queries_and_keys(directory, ids)
    ours, _ = load_encoder(directory).queries_and_keys(ids)
    np.testing.assert_allclose(ours, Q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(attention_weights(Q, K), load_heads("sentence").weights(), rtol=0, atol=1e-3)


def test_bad_models_and_texts_are_named(toy: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"directory: expected config.json, .* missing"):
        load_encoder(tmp_path)
    with pytest.raises(ValueError, match=r"text: expected from 1 word to 4 tokens, got 6"):
        tokenize(toy, "White rabbits ran", longest=4)
    with pytest.raises(ValueError, match="text: expected"):
        tokenize(toy, " ", longest=4)
    encoder = load_encoder(toy)
    for ids, words in (([99], "expected values from 0 to 7"), ([], "expected 1 to 16"), ([[1]], "expected 1 to 16")):
        with pytest.raises(ValueError, match=f"ids: {words}"):
            encoder.queries_and_keys(np.asarray(ids, dtype=int))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"drop": "encoder.layer.1.output.dense.bias"}, "encoder.layer.1.output.dense.bias"),
        ({"hidden_size": 13}, "multiple of num_attention_heads"),
        ({"hidden_size": 24}, "embeddings.word_embeddings.weight"),
        ({"num_hidden_layers": None}, "expected positive sizes"),
        ({"hidden_act": "relu"}, "gelu"),
    ],
)
def test_bad_configurations_are_named(tmp_path: Path, options, words) -> None:
    with pytest.raises(ValueError, match=f"directory: .*{words}"):
        load_encoder(make_toy(tmp_path / "model", **options))


def test_damaged_and_foreign_files_are_refused(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(ValueError, match="sample: expected one of passage, sentence, got 'poem'"):
        load_heads("poem")
    monkeypatch.setitem(SAMPLES, "sentence", "0" * 64)
    with pytest.raises(ValueError, match="SHA-256"):
        load_heads("sentence")
    np.savez(tmp_path / "bad.npz", Q=np.ones(3))
    with pytest.raises(ValueError, match="path: expected the arrays"):
        read_heads(tmp_path / "bad.npz")
    np.savez(tmp_path / "pickle.npz", Q=np.asarray([{}]), K=np.ones(1), tokens=np.ones(1))
    with pytest.raises(ValueError, match="allow_pickle"):
        read_heads(tmp_path / "pickle.npz")


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path, capsys) -> None:
    torch = torch_or_skip()
    save = pytest.importorskip("safetensors.torch").save_file
    directory = make_toy(tmp_path / "model")
    weights = directory / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="directory: expected a whole file of float32"):
        load_encoder(directory)
    save({"embeddings.word_embeddings.weight": torch.ones((8, 12), dtype=torch.bfloat16)}, weights)
    with pytest.raises(ValueError, match="directory: expected .*(float32|word_embeddings)"):
        load_encoder(directory)
    weights.write_bytes(whole)
    (directory / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="directory: expected a tokenizer in"):
        tokenize(directory, "White rabbits", longest=9)
    for config in ("{", "[]"):
        (directory / "config.json").write_text(config)
        with pytest.raises(ValueError, match="directory: expected .*JSON"):
            load_encoder(directory)
    (tmp_path / "no.npz").write_bytes(b"PK not a zip file")
    for path in (tmp_path / "no.npz", tmp_path):
        with pytest.raises(ValueError, match="path: expected a file of python -m attnlab.heads.extract"):
            read_heads(path)


@pytest.mark.parametrize(("of_Q", "of_K", "n"), [((1, 2, 3, 4), (1, 2, 3, 5), 3), ((1, 2, 3, 4), (1, 2, 3, 4), 2)])
def test_queries_keys_and_tokens_that_do_not_fit_are_named(tmp_path: Path, of_Q, of_K, n: int) -> None:
    np.savez(tmp_path / "heads.npz", Q=np.ones(of_Q), K=np.ones(of_K), tokens=np.array(["a"] * n))
    with pytest.raises(ValueError, match=rf"path: expected Q and K of shape \(layers, heads, {n}, d_k\)"):
        read_heads(tmp_path / "heads.npz")


def test_a_result_that_cannot_be_written_ends_in_one_line(toy: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("White rabbits ran")
    arguments = [str(toy), "--text", str(tmp_path / "file"), "--any-weights", "--out", str(tmp_path / "file")]
    with pytest.raises(SystemExit):
        extract.main(arguments)
    assert "argument --out: expected a folder to write to, got" in capsys.readouterr().err


def test_heads_with_nan_are_an_error(tmp_path: Path) -> None:
    Q = np.full((1, 1, 2, 3), np.nan, dtype=np.float16)
    np.savez(tmp_path / "nan.npz", Q=Q, K=np.zeros_like(Q), tokens=np.asarray(["a", "b"]))
    with pytest.raises(ValueError, match="path: Q: expected no NaN"):
        read_heads(tmp_path / "nan.npz")


def test_extraction_without_its_extra_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'safetensors'", name="safetensors")

    monkeypatch.setattr("attnlab.heads.extract.weights_hash", absent)
    assert extract.main([str(tmp_path)]) == 1
    assert 'safetensors is not installed; it comes with the extra "model": pip install' in capsys.readouterr().err


def test_heads_know_their_sizes_which_all_differ() -> None:
    rng = np.random.default_rng(0)
    Q, K = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 3, 4, 5))
    heads = Heads(Q, K, ("a", "b", "c", "d"))
    assert (heads.layers, heads.heads, heads.n, heads.d_k) == (2, 3, 4, 5)
    S = np.einsum("lhid,lhjd->lhij", Q, K) / np.sqrt(5)
    np.testing.assert_allclose(heads.scores(), S, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(heads.weights(), np.exp(S) / np.exp(S).sum(axis=-1, keepdims=True), rtol=1e-12)


def test_what_is_read_is_what_was_written(toy: Path, tmp_path: Path) -> None:
    encoder = load_encoder(toy)
    assert (encoder.layers, encoder.heads, encoder.width, encoder.d_k, encoder.longest) == (2, 3, 12, 4, 16)
    assert encoder.epsilon == 1e-12
    other = load_encoder(make_toy(tmp_path / "other", layer_norm_eps=0.5))
    assert other.epsilon == 0.5
    tokens, ids = tokenize(toy, "White rabbits ran", longest=6)
    assert ids.tolist() == [1, 4, 5, 6, 7, 2] and ids.dtype == np.int64
    content, change = extract.extract(encoder, toy, "White rabbits ran")
    path = tmp_path / "heads.npz"
    path.write_bytes(content)
    heads, (Q, K) = read_heads(path), encoder.queries_and_keys(ids)
    np.testing.assert_array_equal(heads.Q, Q.astype(np.float16).astype(float))
    np.testing.assert_array_equal(heads.K, K.astype(np.float16).astype(float))
    assert heads.tokens == tuple(tokens)
    assert change == np.abs(heads.weights() - attention_weights(Q, K)).max() > 0
    for member in zipfile.ZipFile(path).infolist():
        assert member.compress_type == zipfile.ZIP_STORED
    with pytest.raises(ValueError, match="text: expected queries and keys within half precision, got an overflow"):
        large = dataclasses.replace(encoder, parameters={k: 1e5 * v for k, v in encoder.parameters.items()})
        extract.extract(large, toy, "White rabbits ran")


def test_the_norm_of_a_layer_has_its_epsilon(tmp_path: Path) -> None:
    directory = make_toy(tmp_path / "model", layer_norm_eps=0.5)
    _, ids = tokenize(directory, "ran", longest=16)
    found = load_encoder(directory).queries_and_keys(ids)
    for ours, theirs in zip(found, torch_queries_and_keys(directory, ids), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_hidden_layers": 0}, "expected positive sizes"),
        ({"num_attention_heads": True}, "expected positive sizes"),
        ({"intermediate_size": 20.0}, "expected positive sizes"),
        ({"hidden_size": -12}, "expected positive sizes"),
        ({"num_attention_heads": 24}, "multiple of num_attention_heads"),
        ({"intermediate_size": 19}, r"encoder.layer.0.intermediate.dense.weight of shape \(19, 12\), got \(20, 12\)"),
        ({"num_hidden_layers": 3}, "encoder.layer.2.attention.output.LayerNorm.weight of shape .*, got none"),
        ({"model_type": "ernie"}, "model_type: expected one of bert, roberta, xlm-roberta, camembert, got 'ernie'"),
        ({"model_type": None}, "model_type: expected one of .*, got None"),
        ({"pad_token_id": 1}, "model_type: expected one of .* beside pad_token_id = 1, got none"),
        ({"architectures": ["BertWithRotary"]}, "architectures: expected some of BertModel, "),
        ({"architectures": ["BertGenerationEncoder"]}, "architectures: expected some of BertModel, "),
        (
            {"model_type": "roberta", "architectures": ["RobertaPreLayerNormModel"]},
            "architectures: expected some of RobertaModel, ",
        ),
        ({"architectures": [["BertModel"]]}, "architectures: expected some of BertModel, "),
        ({"architectures": ["JinaBertModel"]}, "architectures: expected some of BertModel, "),
        ({"architectures": "BertModel"}, "architectures: expected some of BertModel, "),
        (
            {"position_embedding_type": "relative_key"},
            "position_embedding_type: .* got 'relative_key'",
        ),
        ({"position_embedding_type": "alibi"}, "position_embedding_type: expected 'absolute', got 'alibi'"),
        ({"hidden_act": "gelu_new"}, "hidden_act: expected 'gelu', got 'gelu_new'"),
        ({"is_decoder": True}, "is_decoder: expected False, got True"),
        ({"add_cross_attention": True}, "add_cross_attention: expected False, got True"),
        ({"pruned_heads": {"0": [1]}}, r"pruned_heads: expected \{\}, got \{'0': \[1\]\}"),
        ({"num_key_value_heads": 1}, "expected settings that are known to change nothing, got num_key_value_heads = 1"),
        ({"use_task_id": True}, "known to change nothing, got use_task_id = True"),
        ({"auto_map": {}}, "known to change nothing, got auto_map"),
        ({"quantization_config": {}}, "known to change nothing, got quantization_config"),
        ({"vocab_size": 9}, r"embeddings.word_embeddings.weight of shape \(9, 12\), got \(8, 12\)"),
        ({"max_position_embeddings": 0}, "max_position_embeddings: expected a positive size, got 0"),
        ({"type_vocab_size": 3}, r"token_type_embeddings.weight of shape \(3, 12\), got \(2, 12\)"),
        ({"num_hidden_layers": 1}, "parameters of 1 layers in BERT's layout, got one more, encoder.layer.1"),
        ({"model_type": "roberta", "pad_token_id": None}, "pad_token_id: expected the number of a token, got None"),
        ({"model_type": "roberta", "pad_token_id": 15}, "pad_token_id: expected less than 15, got 15"),
    ],
)
def test_a_model_of_another_make_is_named(tmp_path: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=f"directory: .*{words}"):
        load_encoder(make_toy(tmp_path / "model", **options))
    assert load_encoder(make_toy(tmp_path / "good", hidden_act="gelu", position_embedding_type="absolute")).layers == 2


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        (
            "embeddings.task_type_embeddings.weight",
            np.ones((3, WIDTH)),
            "got one more, embeddings.task_type",
        ),
        ("encoder.layer.0.attention.self.distance_embedding.weight", np.ones((31, 4)), "got one more, encoder.layer.0"),
        ("encoder.layer.0.crossattention.self.query.weight", np.ones((WIDTH, WIDTH)), "got one more, encoder.layer.0"),
        ("bert.embeddings.LayerNorm.weight", np.ones(WIDTH), "expected each parameter once, got"),
        ("embeddings.LayerNorm.weight", np.full(WIDTH, np.inf), "expected finite numbers in the parameter embeddings"),
        ("embeddings.LayerNorm.weight", np.ones(WIDTH, int), "LayerNorm.weight in floating-point numbers, got int64"),
    ],
)
def test_a_parameter_that_is_not_known_is_named(toy: Path, name: str, array: np.ndarray, words: str) -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    unread = {"embeddings.position_ids": np.arange(16), "pooler.dense.bias": np.ones(WIDTH), "cls.x": np.ones(2)}
    save_file(toy_parameters("") | unread, toy / "model.safetensors")
    load_encoder(toy)
    save_file(toy_parameters("") | {name: array}, toy / "model.safetensors")
    with pytest.raises(ValueError, match=f"directory: .*{words}"):
        load_encoder(toy)


def test_positions_of_roberta_count_tokens_from_padding_on(tmp_path: Path) -> None:
    """The toy as RoBERTa is the toy as BERT with its table of positions shifted; padding has a row of its own."""
    bert = load_encoder(make_toy(tmp_path / "bert"))
    roberta = load_encoder(make_toy(tmp_path / "roberta", model_type="roberta", pad_token_id=2))
    assert (roberta.padding, roberta.longest, bert.padding, bert.longest) == (2, 13, None, 16)
    table = "embeddings.position_embeddings.weight"
    for ids, rows in (([1, 4, 5], [3, 4, 5]), ([1, 2, 4, 2, 5], [3, 2, 4, 2, 5])):
        shifted = dataclasses.replace(bert, parameters=bert.parameters | {table: bert.parameters[table][rows]})
        np.testing.assert_array_equal(roberta.queries_and_keys(ids), shifted.queries_and_keys(ids))


def test_an_adapter_and_a_second_type_are_named(toy: Path) -> None:
    tokenizer = json.loads((toy / "tokenizer.json").read_text())
    part = {"SpecialToken": {"id": "[CLS]", "type_id": 2}}, {"Sequence": {"id": "A", "type_id": 0}}
    special = {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}
    processor = {"type": "TemplateProcessing", "single": part, "pair": part, "special_tokens": special}
    (toy / "tokenizer.json").write_text(json.dumps(tokenizer | {"post_processor": processor}))
    with pytest.raises(ValueError, match=r"directory: .* gives one text the type 0, got \[2, 0\]"):
        tokenize(toy, "ran", longest=9)
    (toy / "adapter_config.json").write_text("{}")
    with pytest.raises(ValueError, match="directory: expected a model by itself, got .* with an adapter"):
        load_encoder(toy)


def test_ids_run_over_the_vocabulary_and_the_positions(toy: Path) -> None:
    encoder = load_encoder(toy)
    for ids in ([0], [7], [3] * 16):
        assert encoder.queries_and_keys(np.asarray(ids))[0].shape == (2, 3, len(ids), 4)
    for ids, words in (
        ([-1], "expected values from 0 to 7, got -1 to -1"),
        ([0, 8], "expected values from 0 to 7, got 0 to 8"),
        ([3] * 17, r"expected 1 to 16 integers, got shape \(17,\)"),
        ([1.0], r"expected 1 to 16 integers, got shape \(1,\), dtype float64"),
        ([[1, 2]], r"expected 1 to 16 integers, got shape \(1, 2\)"),
    ):
        with pytest.raises(ValueError, match=f"ids: {words}"):
            encoder.queries_and_keys(np.asarray(ids))
    for longest, fits in ((6, True), (5, False)):
        if fits:
            assert len(tokenize(toy, "White rabbits ran", longest=longest)[0]) == 6
        else:
            with pytest.raises(ValueError, match="text: expected from 1 word to 5 tokens, got 6 tokens"):
                tokenize(toy, "White rabbits ran", longest=longest)


def test_what_is_no_array_is_not_archived(tmp_path: Path) -> None:
    for arrays, words in (
        ([np.ones(1)], "expected a dictionary from names to arrays, got list"),
        ({1: np.ones(1)}, "expected a dictionary from names to arrays, got dict"),
        ({"a": [1.0]}, "expected numpy arrays without objects, got list for a"),
        ({"a": np.asarray([None])}, "expected numpy arrays without objects, got ndarray for a"),
    ):
        with pytest.raises(TypeError, match=f"arrays: {words}"):
            extract.archive(arrays)
    good = {"Q": np.ones((1, 1, 2, 3)), "K": np.ones((1, 1, 2, 3)), "tokens": np.asarray(["a", "b"])}
    for name in good:
        np.savez(tmp_path / "less.npz", **{key: value for key, value in good.items() if key != name})
        with pytest.raises(ValueError, match=f"path: expected the arrays Q, K and tokens in .*, missing {name}"):
            read_heads(tmp_path / "less.npz")
    for change in ({"Q": np.ones((1, 2, 3))}, {"K": np.ones((1, 1, 3, 3))}, {"tokens": np.asarray(["a"] * 3)},
                   {"Q": np.ones((1, 2, 3)), "K": np.ones((1, 2, 3)), "tokens": np.asarray(["a"] * 3)}):  # fmt: skip
        np.savez(tmp_path / "other.npz", **good | change)
        with pytest.raises(ValueError, match=r"path: expected Q and K of shape \(layers, heads, \d, d_k\)"):
            read_heads(tmp_path / "other.npz")


def test_samples_are_written_into_a_folder_that_may_be_new_or_old(
    toy: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("White rabbits ran")
    out = tmp_path / "new" / "folder"
    for _ in range(2):
        assert extract.main([str(toy), "--text", str(text), "--any-weights", "--out", str(out)]) == 0
    line, change, *_ = capsys.readouterr().out.splitlines()
    content = (out / "mine.npz").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert line == f"{out / 'mine.npz'}  {len(content)} bytes  sha256 {digest}"
    assert re.fullmatch(r"  half precision changes an attention weight by \d\.\de-\d\d at most", change)
    monkeypatch.setattr(extract, "WEIGHTS", weights_hash(toy))
    assert extract.main([str(toy), "--text", str(text), "--out", str(out)]) == 0
    assert weights_hash(toy) == hashlib.sha256((toy / "model.safetensors").read_bytes()).hexdigest()
    assert set(extract.shipped_texts()) == set(SAMPLES)


def test_records_cannot_be_changed_by_accident() -> None:
    for record in (Heads(np.ones((1, 1, 1, 1)), np.ones((1, 1, 1, 1)), ("a",)), Encoder(1, 1, 1, 0.0, {})):
        name = dataclasses.fields(record)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, None)


def test_an_empty_file_holds_no_heads(tmp_path: Path) -> None:
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(ValueError, match="path: expected a file of python -m attnlab.heads.extract, got"):
        read_heads(tmp_path / "empty.npz")
    with pytest.raises(FileNotFoundError):
        read_heads(tmp_path / "none.npz")


def test_files_that_are_no_archives_of_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(ValueError, match="path: expected a file of .*one array, and no archive"):
        read_heads(tmp_path / "one.npy")
    names = {"Q": np.ones((1, 1, 400, 3)), "K": np.ones((1, 1, 400, 3)), "tokens": np.asarray(["a"] * 400)}
    np.savez_compressed(tmp_path / "torn.npz", **names)
    content = bytearray((tmp_path / "torn.npz").read_bytes())
    begin = content.index(b"Q.npy") + 60
    content[begin : begin + 40] = bytes(40)
    (tmp_path / "torn.npz").write_bytes(content)
    with pytest.raises(ValueError, match="path: expected a file of"):
        read_heads(tmp_path / "torn.npz")


@pytest.mark.parametrize(
    "change",
    [
        {"heads": np.asarray([4, 4])}, {"heads": np.asarray(4.7)}, {"characters.weight": np.asarray(1.0)},
        {"positions.weight": np.ones(3)}, {"layers.x.norm": np.ones(3)}, {"layers.999999999.norm.weight": np.ones(3)},
    ],
)  # fmt: skip
def test_weights_of_another_shape_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with resources.as_file(resources.files("attnlab") / "data/decoder_weights.npz") as path, np.load(path) as given:
        weights = {name: given[name] for name in given.files}
    np.savez(tmp_path / "same.npz", **weights)
    assert read_decoder(tmp_path / "same.npz").heads == int(weights["heads"])
    np.savez(tmp_path / "other.npz", **(weights | change))
    with pytest.raises(ValueError, match="path: expected"):
        read_decoder(tmp_path / "other.npz")


@pytest.mark.parametrize("epsilon", ["abc", -1000, True, math.inf])
def test_an_epsilon_that_is_none_is_named(tmp_path: Path, epsilon: object) -> None:
    with pytest.raises(ValueError, match="directory: expected layer_norm_eps of at least 0"):
        load_encoder(make_toy(tmp_path / "model", layer_norm_eps=epsilon))


def test_a_text_in_another_encoding_is_named(toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "latin.txt").write_bytes("Gödel".encode("latin-1"))
    given = [str(toy), "--text", str(tmp_path / "latin.txt"), "--any-weights", "--out", str(tmp_path / "out")]
    assert extract.main(given) == 2
    assert "text: expected a file in UTF-8" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
