"""What weights of 4 bits do: the rounding is that of the format, the error is as large, and the table compares both."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import llama_files
import numpy as np
import pytest

from attnlab.experiments import four_bits
from attnlab.experiments.four_bits import disturbed, load_four_bits, measures, rounded
from attnmath.operator.attention import softmax

W = np.random.default_rng(5).standard_normal((6, 96)).astype(np.float32)


def test_the_rounding_is_that_of_the_format() -> None:
    quants = pytest.importorskip("gguf.quants", reason="gguf is optional: install attention-checked[model]")
    kind = pytest.importorskip("gguf").GGMLQuantizationType.Q4_1
    expected = quants.dequantize(quants.quantize(W, kind), kind)
    assert np.mean(rounded(W) == expected) > 0.99  # the library divides in single precision
    np.testing.assert_allclose(rounded(W), expected, rtol=0, atol=np.ptp(W) / 15 * 1.01)
    np.testing.assert_array_equal(rounded(expected), expected)


def test_a_rounded_entry_is_one_of_sixteen_and_a_half_step_away_at_most() -> None:
    found = rounded(W).reshape(-1, 32)
    step = np.ptp(W.reshape(-1, 32), axis=1) / 15
    assert max(len(set(block)) for block in found) <= 16
    assert np.all(np.abs(found - W.reshape(-1, 32)).max(axis=1) <= 0.51 * step)
    np.testing.assert_array_equal(rounded(np.zeros((1, 32))), np.zeros((1, 32)))


def test_the_random_error_is_as_large_as_the_error_of_the_rounding() -> None:
    error = disturbed(W, rng=np.random.default_rng(0)) - W
    step = (np.ptp(W.reshape(-1, 32), axis=1) / 15)[:, None]
    scaled = error.reshape(-1, 32) / step
    assert np.abs(scaled).max() <= 0.5 and abs(scaled.std() - 12**-0.5) < 0.02
    rounding = ((rounded(W) - W).reshape(-1, 32) / step).std()
    assert abs(rounding / scaled.std() - 1) < 0.1
    assert abs(np.corrcoef(error.ravel(), (rounded(W) - W).ravel())[0, 1]) < 0.1


def test_measures_are_those_of_known_matrices() -> None:
    n = 8
    equal, identity = measures(np.full((n, n), 1 / n)), measures(np.eye(n))
    assert equal["row entropy"] == pytest.approx(np.log(n)) and identity["row entropy"] == 0
    assert equal["sparsity S"] == pytest.approx(1) and identity["sparsity S"] == pytest.approx(n**-0.5)
    assert equal["weight on the first token"] == pytest.approx(1 / n) and identity["weight on the first token"] == 0
    assert equal["effective rank"] == 1 and identity["effective rank"] == n
    assert equal["entropy rank"] == pytest.approx(1) and identity["entropy rank"] == pytest.approx(n)
    assert equal["log10 of the condition number"] == 16 > identity["log10 of the condition number"] == 0
    stacked = softmax(np.random.default_rng(1).standard_normal((2, 3, n, n)))
    assert all(value.shape == (2, 3) for value in measures(stacked).values())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.ones((2, 31)), "W: expected a multiple of 32 columns, got 31"),
        (np.ones(32), "W: expected"),
        (np.full((1, 32), 1e5), "W: expected entries within half precision"),
        (np.full((1, 32), np.nan), "W: expected no NaN"),
    ],
)
def test_what_is_no_matrix_of_blocks_is_named(given: np.ndarray, said: str) -> None:
    for call in (rounded, lambda W: disturbed(W, rng=np.random.default_rng(0))):
        with pytest.raises(ValueError, match=said):
            call(given)


def test_the_command_measures_a_tiny_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gguf", reason="gguf is optional: install attention-checked[model]")
    sizes = dataclasses.replace(llama_files.SIZES, width=32, heads=8, key_heads=4, inner=64)
    path = llama_files.gguf(tmp_path / "toy.gguf", sizes)
    monkeypatch.setattr(four_bits, "WINDOWS", 2)
    assert four_bits.main([str(path), "--out", str(tmp_path / "out"), "--draws", "1"]) == 0
    record = json.loads((tmp_path / "out/four_bits.json").read_text())
    rows = four_bits.records.read(tmp_path / "out/four_bits.csv", four_bits.Row, "four_bits")
    assert len(record["model"]) == 64 and record["settings"]["draws"] == 1
    assert {(row.model, row.text, row.change) for row in rows} == {
        ("own decoder", "held out", "rounded"), ("own decoder", "held out", "disturbed"),
        ("pretrained decoder", "passage", "disturbed"), ("pretrained decoder", "documentation", "disturbed"),
    }  # fmt: skip
    assert all(row.after != row.before for row in rows if row.measure == "bits per character")
    assert all(row.moved > 0 for row in rows if row.measure in ("row entropy", "weight at another place"))


def test_the_table_says_what_a_rounding_moves() -> None:
    """A head's measures move by less than heads differ, and the random error does what the rounding does."""
    rows = load_four_bits()
    heads = [row for row in rows if row.spread]
    assert all(row.moved < row.spread for row in heads)
    own = [row for row in rows if row.model == "own decoder"]
    for measure in ("row entropy", "sparsity S", "weight at another place"):
        of = {
            c: np.mean([r.moved for r in own if (r.change, r.measure) == (c, measure)])
            for c in ("rounded", "disturbed")
        }
        assert 0.5 < of["rounded"] / of["disturbed"] < 2, measure
    bits = [row for row in rows if row.measure == "bits per character"]
    assert all(row.moved > 0 for row in bits) and max(row.moved for row in bits) < 0.3
