"""A model that no longer sees its first token: the masks, the heads that go, the command, and its table."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import llama_files
import numpy as np
import pytest

from attnlab.experiments import sinks
from attnlab.heads import corpus, removal
from attnlab.heads.load import load_decoder
from attnmath.matrix.patterns import renormalised
from attnmath.operator.attention import causal_mask


def test_a_window_has_as_many_keys_whatever_is_kept() -> None:
    found = sinks._seen_keys(6, "window", 3, (0,))
    assert [list(np.flatnonzero(row)) for row in found] == [[0], [0, 1], [0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]]
    for kept in ((), (0,), (2,), (0, 1)):
        seen = sinks._seen_keys(20, "window", 5, kept)
        assert set(seen[8:].sum(axis=1)) == {5} and not np.any(seen & ~causal_mask(20))
    stride = sinks._seen_keys(20, "stride", 4, ())
    assert list(np.flatnonzero(stride[17])) == [1, 5, 9, 13, 14, 15, 16, 17]
    assert np.array_equal(sinks._seen_keys(20, "stride", 4, (0,)), (stride | (np.arange(20) == 0)) & causal_mask(20))


def subject(shares: np.ndarray) -> sinks._Subject:
    return sinks._Subject("m", "t", 20, 1.0, lambda change: 0.0, shares)


def test_the_heads_that_go_are_those_with_the_most_weight_or_as_many_at_random() -> None:
    shares = np.asarray([[0.1, 0.9, 0.8], [0.2, 0.3, 0.0], [0.7, 0.0, 0.1]])
    rng = np.random.default_rng(0)
    most = subject(shares)._chosen("most", 3, rng)
    assert list(map(tuple, np.argwhere(most))) == [(0, 1), (0, 2), (2, 0)]
    drawn = [subject(shares)._chosen(order, 3, rng) for order in ("random", "same layers") for _ in range(20)]
    assert {int(gone.sum()) for gone in drawn} == {3}
    assert {tuple(gone.sum(axis=1)) for gone in drawn[20:]} == {(2, 0, 1)} != {tuple(g.sum(axis=1)) for g in drawn[:20]}
    assert len({gone.tobytes() for gone in drawn[20:]}) > 3
    P = np.full((3, 2, 2), 0.5)
    assert list(sinks._without(most)(0, P).sum(axis=(1, 2))) == [2, 0, 0]


def test_a_change_of_weights_is_what_the_small_decoder_mixes_its_values_with() -> None:
    decoder = load_decoder()
    ids = removal.windows(decoder, corpus.split(corpus.shipped_documentation())[1], 2)
    whole = removal.bits(decoder, ids)
    np.testing.assert_array_equal(removal.bits(decoder, ids, weights=lambda layer, P: P), whole)
    gone = np.zeros((4, 4), dtype=bool)
    gone[1, 2] = True
    expected = removal.bits(decoder, ids, kept=removal.without(decoder, [(1, 2)]))
    np.testing.assert_allclose(removal.bits(decoder, ids, weights=sinks._without(gone)), expected, atol=2e-5)
    window = sinks._seen_keys(decoder.context, "window", 8, ())
    narrow = removal.bits(decoder, ids, weights=lambda layer, P: renormalised(P, window))
    np.testing.assert_allclose(narrow[:, :8], whole[:, :8], atol=1e-5)
    assert narrow[:, 8:].mean() > whole[:, 8:].mean()
    with pytest.raises(ValueError, match=r"weights: expected matrices of shape \(2, 4, 128, 128\), got \(2, 4, 128\)"):
        removal.bits(decoder, ids, weights=lambda layer, P: P[..., 0])
    with pytest.raises(TypeError, match="weights: expected a function"):
        removal.bits(decoder, ids, weights=3)


def test_the_command_measures_a_tiny_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gguf", reason="gguf is optional: install attention-checked[model]")
    sizes = dataclasses.replace(llama_files.SIZES, width=32, heads=8, key_heads=4, inner=64)
    path = llama_files.gguf(tmp_path / "toy.gguf", sizes)
    monkeypatch.setattr(sinks, "PARTS", 1)
    monkeypatch.setattr(sinks, "IN_PART", 2)
    monkeypatch.setattr(sinks, "SECTIONS", sinks.SECTIONS[:1])
    assert sinks.main([str(path), "--out", str(tmp_path / "out"), "--draws", "1"]) == 0
    record = json.loads((tmp_path / "out/sinks.json").read_text())
    rows = sinks.records.read(tmp_path / "out/sinks.csv", sinks.Row, "sinks")
    assert len(record["model"]) == 64 and record["settings"]["draws"] == 1
    assert {(row.model, row.text) for row in rows} == {
        ("own decoder", "held out 0"), ("pretrained decoder", "passage"), ("pretrained decoder", "documentation"),
        ("pretrained decoder", sinks.SECTIONS[0]),
    }  # fmt: skip
    of = {row.change: sum(r.change == row.change and r.text == "passage" for r in rows) for row in rows}
    assert of == {"whole": 1, "window": 16, "stride": 4, "heads": 6, "length": 2}
    assert {row.size for row in rows if row.text == sinks.SECTIONS[0] and row.change == "window"} == {sinks.ALONE}
    values = {(r.change, r.size, r.choice): r.value for r in rows if r.text == "passage" and r.change != "length"}
    assert len(set(values.values())) > 15 and min(values.values()) > 0


def test_the_table_ships_with_its_record() -> None:
    rows = sinks.load_sinks()
    assert {row.model for row in rows} == {"own decoder", "pretrained decoder"}
    whole = {row.text: row.value for row in rows if row.model == "pretrained decoder" and row.change == "whole"}
    judged = json.loads((Path(sinks.__file__).parents[1] / "data" / "pretrained.json").read_text())
    for name in ("passage", "documentation"):
        text = json.dumps(judged)
        assert f"{whole[name]:.3f}" in text or f"{whole[name]:.4f}" in text
