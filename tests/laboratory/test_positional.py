"""Distances of heads from patterns of position, locality of text, and heads removed from the decoder that ships."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from importlib import resources
from pathlib import Path

import hostile
import numpy as np
import pytest
from backends import torch_or_skip
from hypothesis import given
from hypothesis import strategies as st

from attnlab import records
from attnlab.experiments import locality as experiment
from attnlab.heads import corpus, load, locality, positional, prune, removal
from attnlab.heads.load import load_decoder, load_decoders, read_decoder
from attnmath.fixed_attention.fixed_patterns import PATTERNS, fixed_patterns

DATA = resources.files("attnlab") / "data"


def stochastic(*shape: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).exponential(size=shape)
    return A / A.sum(axis=-1, keepdims=True)


# --- distances from patterns --------------------------------------------------------------------------


@given(st.integers(1, 7), st.integers(0, 99))
def test_the_distance_is_that_of_total_variation(n: int, seed: int) -> None:
    A, B = stochastic(2, n, n, seed=seed)
    rows = [max(abs(a[list(keys)].sum() - b[list(keys)].sum()) for r in range(n + 1)
                for keys in itertools.combinations(range(n), r)) for a, b in zip(A, B, strict=True)]  # fmt: skip
    assert positional.distance(A, B) == pytest.approx(np.mean(rows), abs=1e-12)
    assert positional.distance(A, A) == 0
    found = positional.distances(A, [B, np.eye(n)])
    np.testing.assert_allclose(found, [positional.distance(A, B), positional.distance(A, np.eye(n))], atol=1e-12)


def test_a_pattern_is_nearest_to_itself_and_batches_keep_their_axes() -> None:
    P = fixed_patterns(9)
    D = positional.distances(P.reshape(7, 1, 9, 9), P)
    assert D.shape == (7, 1, 7)
    np.testing.assert_allclose(positional.distance(P.reshape(7, 1, 9, 9), P[2]), D[..., 2], atol=1e-12)
    assert [PATTERNS[k] for k in D[:, 0].argmin(axis=-1)] == list(PATTERNS)
    np.testing.assert_allclose(np.diagonal(D[:, 0]), 0, atol=1e-12)


def test_a_mixture_is_found_again_and_beats_others() -> None:
    P = fixed_patterns(12)
    wanted = np.asarray([0.1, 0.4, 0.0, 0.2, 0.0, 0.3, 0.0])
    np.testing.assert_allclose(positional.mixture(np.tensordot(wanted, P, 1), P), wanted, atol=1e-6)
    A = stochastic(12, 12, seed=3)
    best = positional.mixture(A, P)
    assert best.min() >= 0 and best.sum() == pytest.approx(1)
    error = ((A - np.tensordot(best, P, 1)) ** 2).sum()
    others = stochastic(500, 7, seed=4)
    assert all(error <= ((A - np.tensordot(other, P, 1)) ** 2).sum() + 1e-12 for other in others)


def test_rows_without_the_place_are_left_out() -> None:
    previous = fixed_patterns(4)[PATTERNS.index("previous")]
    np.testing.assert_array_equal(positional.at_offsets(previous, [-1, 0, 3]), [1, 1 / 4, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: positional.distance(np.eye(2), np.eye(3)), "A, B: expected the same number of tokens"),
        (lambda: positional.distance(np.stack([np.eye(2)] * 2), np.stack([np.eye(2)] * 3)), "A, B: expected batch"),
        (lambda: positional.distances(np.eye(2), np.eye(2)), r"patterns: expected at least one matrix of shape \(2, 2"),
        (lambda: positional.distances(np.eye(2) * 2, [np.eye(2)]), "A: expected rows that sum to 1"),
        (lambda: positional.at_offsets(np.eye(2), [2]), "offsets: expected whole numbers between -1 and 1"),
    ],
)
def test_bad_matrices_are_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


# --- locality of text -----------------------------------------------------------------------------------


def test_mutual_information_of_known_sources() -> None:
    rng = np.random.default_rng(6)
    coin = rng.integers(2, size=100_000)
    assert locality.mutual_information(locality.pair_counts(coin, 3)[0]) < 1e-3
    # A symbol that repeats the one before it with probability 0.9 shares 1 - H(0.9) bits with it.
    chain = np.cumsum(rng.random(100_000) > 0.9) % 2
    expected = 1 + 0.9 * np.log2(0.9) + 0.1 * np.log2(0.1)
    found = locality.information_at(chain, 1, blocks=20)
    assert abs(found.value - expected) < 5 * found.standard_error and found.standard_error < 0.02
    assert locality.mutual_information(np.diag([1, 1, 1, 1])) == 2


def test_pairs_do_not_cross_blocks() -> None:
    counts = locality.pair_counts([0, 0, 1, 1], 1, blocks=2)
    np.testing.assert_array_equal(counts, [[[1, 0], [0, 0]], [[0, 0], [0, 1]]])


def test_words_are_ranked_by_frequency_and_then_by_the_alphabet() -> None:
    np.testing.assert_array_equal(locality.frequent_words("b a c, B a! the", 2), [1, 0, 2, 1, 0, 2])
    np.testing.assert_array_equal(locality.characters("bab"), [1, 0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: locality.pair_counts([0, 1], 2), "numbers, distance, blocks: expected blocks of more than 2 symbols"),
        (lambda: locality.pair_counts([-1, 1], 1), "numbers: expected whole numbers from 0 to 4095, got -1 to 1"),
        (lambda: locality.information_at([0, 1, 0], 1, blocks=1), "blocks: expected at least 2, got 1"),
        (lambda: locality.mutual_information([[0, 0], [0, 0]]), "counts: expected non-negative numbers, and one"),
        (lambda: locality.frequent_words("12", 3), "text: expected words, got '12'"),
        (lambda: locality.characters(""), "text: expected characters, got none"),
    ],
)
def test_bad_texts_are_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


# --- the decoder whose weights ship -----------------------------------------------------------------------


def test_the_text_that_ships_is_the_one_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    text = corpus.shipped_documentation()
    record = json.loads((DATA / "decoder.json").read_text(encoding="utf-8"))["text"]
    assert (len(text), record["sha256"]) == (record["characters"], corpus.DOCUMENTATION)
    monkeypatch.setattr(corpus, "DOCUMENTATION", "0")
    with pytest.raises(ValueError, match="documentation: expected a text with SHA-256 0, got f784"):
        corpus.shipped_documentation()


def test_the_weights_are_those_of_the_record_and_of_the_shipped_queries_and_keys() -> None:
    content = (DATA / "decoder_weights.npz").read_bytes()
    record = json.loads((DATA / "decoder_weights.json").read_text(encoding="utf-8"))
    assert hashlib.sha256(content).hexdigest() == record["sha256"] == load.WEIGHTS
    assert len(content) < 1_000_000 and record["command"] == "python -m attnlab.heads.weights --out code/attnlab/data"
    decoder, shipped = load_decoder(), load_decoders()
    assert record["parameters"] == sum(value.size for value in decoder.parameters.values()) == 478_183
    ids = decoder.numbers("".join(shipped.tokens) + " ")[None]
    A = removal.attention(decoder, ids)[0]
    assert np.abs(A - shipped.weights()[shipped.seeds.index(0)]).max() < 3e-3  # both are rounded to half precision
    held_out = removal.windows(decoder, corpus.split(corpus.shipped_documentation())[1], 40)
    assert removal.bits(decoder, held_out).mean() == pytest.approx(record["bits_per_character"]["held_out"], abs=0.2)


def test_the_forward_pass_is_that_of_the_trained_model() -> None:
    torch = torch_or_skip()
    from attnlab.heads.decoder import Decoder, Settings

    small = hostile.small_decoder()
    model = Decoder(Settings(0, 2, 2, 4, 5), 3, torch.Generator().manual_seed(0))
    model.load_state_dict({name: torch.tensor(value) for name, value in small.parameters.items()})
    ids = np.random.default_rng(7).integers(3, size=(40, 6))
    logits = model(torch.tensor(ids[:, :-1])).log_softmax(-1).detach().numpy()
    picked = -np.take_along_axis(logits, ids[:, 1:, None], axis=-1)[..., 0] / np.log(2)
    np.testing.assert_allclose(removal.bits(small, ids), picked, rtol=2e-5, atol=2e-5)


def test_a_removed_head_is_one_without_values() -> None:
    small, ids = hostile.small_decoder(), np.asarray([[0, 1, 2, 1, 0, 2]])
    values = {**small.parameters, "layers.1.project.2.weight": small.parameters["layers.1.project.2.weight"].copy()}
    values["layers.1.project.2.weight"][2:4] = 0
    other = load.TrainedDecoder(values, 2, small.alphabet)
    kept = removal.without(small, [(1, 1)])
    np.testing.assert_allclose(removal.bits(small, ids, kept=kept), removal.bits(other, ids), atol=1e-5)
    np.testing.assert_allclose(
        removal.bits(small, ids, kept=removal.projected(small, [0, 4], rng=np.random.default_rng(0))),
        removal.bits(small, ids, kept=removal.without(small, [(1, 0), (1, 1)])), atol=1e-4)  # fmt: skip


def test_replaced_weights_and_silent_units() -> None:
    small, ids = hostile.small_decoder(), np.asarray([[0, 1, 2, 1, 0, 2], [1, 1, 0, 2, 2, 0]])
    own = removal.attention(small, ids[:1])[0]
    np.testing.assert_allclose(own.sum(axis=-1), 1, atol=1e-12)
    assert not np.triu(own, 1).any()
    same = removal.bits(small, ids[:1], patterns={(0, 1): own[0, 1], (1, 0): own[1, 0]})
    np.testing.assert_allclose(same, removal.bits(small, ids[:1]), atol=1e-5)
    assert np.abs(removal.bits(small, ids, patterns={(0, 1): np.eye(5)}) - removal.bits(small, ids)).max() > 1e-3
    values = {
        **small.parameters,
        "layers.0.forward_part.2.weight": small.parameters["layers.0.forward_part.2.weight"] * 0,
    }
    silent = np.ones((2, 16))
    silent[0] = 0
    other = load.TrainedDecoder(values, 2, small.alphabet)
    np.testing.assert_allclose(removal.bits(small, ids, units=silent), removal.bits(other, ids), atol=1e-5)


def test_random_directions_are_orthonormal() -> None:
    small = hostile.small_decoder()
    one, two = removal.projected(small, [1, 3], rng=np.random.default_rng(1))
    for matrix, rank in ((one, 3), (two, 1)):
        np.testing.assert_allclose(matrix @ matrix, matrix, atol=1e-12)
        assert np.trace(matrix) == pytest.approx(rank)


def test_the_greedy_order_takes_the_cheapest_head_first() -> None:
    small, ids = hostile.small_decoder(), np.random.default_rng(8).integers(3, size=(9, 6))
    order = removal.greedy_order(small, ids)
    costs = {head: removal.bits(small, ids, kept=removal.without(small, [head])).mean() for head in order}
    assert order[0] == min(costs, key=lambda head: costs[head]) and sorted(order) == sorted(costs)


def test_windows_share_no_predicted_character() -> None:
    small = hostile.small_decoder()
    text = "abc" * 10
    every = removal.windows(small, text)
    np.testing.assert_array_equal(every[:, 1:].ravel(), small.numbers(text)[1 : 1 + 5 * len(every)])
    assert removal.windows(small, text, 2).tolist() == every[[0, 2]].tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d, ids: removal.bits(d, ids + 9), "ids: expected whole numbers from 0 to 2, got 9"),
        (lambda d, ids: removal.bits(d, ids[0]), r"ids: expected whole numbers of shape \(windows, 2 to 6\)"),
        (lambda d, ids: removal.bits(d, ids, kept=np.eye(4)), r"kept: expected shape \(2, 4, 4\), got \(4, 4\)"),
        (
            lambda d, ids: removal.bits(d, ids, patterns={(2, 0): np.eye(4)}),
            r"patterns: expected pairs \(layer, head\)",
        ),
        (
            lambda d, ids: removal.bits(d, ids, patterns={(0, 0): np.eye(5)}),
            r"patterns: expected matrices of shape \(3",
        ),
        (lambda d, ids: removal.bits(d, ids, units=np.ones((2, 4))), r"units: expected shape \(2, 16\), got \(2, 4\)"),
        (
            lambda d, ids: removal.without(d, [(0,)]),
            r"removed: expected pairs \(layer, head\) below \(2, 2\), got \(0,\)",
        ),
        (lambda d, ids: removal.projected(d, [5, 0], rng=np.random.default_rng(0)), "directions: expected 2 whole"),
        (lambda d, ids: removal.windows(d, "abc"), "text, count: expected from 1 to 0 windows of 5 characters, got 0"),
        (lambda d, ids: d.numbers("abd"), "text: expected the decoder's 3 characters, got 'd'"),
    ],
)
def test_bad_versions_are_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(hostile.small_decoder(), np.asarray([[0, 1, 2, 1]]))  # type: ignore[operator]


def saved(path: Path, **changes: np.ndarray) -> Path:
    small = hostile.small_decoder()
    arrays = {**small.parameters, "alphabet": np.asarray(small.alphabet), "heads": np.asarray(2)}
    np.savez(path, **{name: value for name, value in {**arrays, **changes}.items() if value.size})
    return path


def test_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    found, small = read_decoder(saved(tmp_path / "w.npz")), hostile.small_decoder()
    assert (found.heads, found.layers, found.width, found.context, found.alphabet) == (2, 2, 4, 5, ("a", "b", "c"))
    for name, value in small.parameters.items():
        np.testing.assert_array_equal(found.parameters[name], value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm.weight": np.ones(0)}, "path: expected the arrays .*missing norm.weight"),
        ({"norm.weight": np.ones(3)}, r"path: expected norm.weight of shape \(4,\), got \(3,\)"),
        ({"layers.1.norm.bias": np.ones(0)}, r"path: expected layers.1.norm.bias of shape \(4,\), got none"),
        ({"heads": np.asarray(3)}, "path: expected a number of heads that divides the width 4, got 3"),
        ({"read.bias": np.full(3, np.nan)}, "path: read.bias: expected no NaN"),
    ],
)
def test_weights_that_do_not_fit_are_named(tmp_path: Path, changes: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_decoder(saved(tmp_path / "w.npz", **changes))


def test_a_changed_file_of_weights_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "WEIGHTS", "0" * 64)
    with pytest.raises(ValueError, match=r"decoder: expected decoder_weights.npz with SHA-256 000"):
        load_decoder()


# --- the commands -----------------------------------------------------------------------------------------


def test_the_weights_command_trains_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch_or_skip()
    from attnlab.heads import weights

    arguments = ["--out", str(tmp_path), "--steps", "1"]
    assert weights.main(arguments) == 0
    first = (tmp_path / "decoder_weights.npz").stat().st_mtime_ns
    record = json.loads((tmp_path / "decoder_weights.json").read_text())
    assert record["settings"]["steps"] == 1 and record["distance_from_shipped"] is None
    assert weights.main(arguments) == 0 and (tmp_path / "decoder_weights.npz").stat().st_mtime_ns == first
    capsys.readouterr()
    assert weights.main(["--out", str(tmp_path), "--device", "abacus"]) == 2
    assert "python -m attnlab.heads.weights: error: device: expected one that torch finds" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match="2"):
        weights.main(["--out", str(tmp_path / "file"), "--steps", "1"])


def test_the_table_that_ships_is_the_one_of_the_record() -> None:
    rows = prune.load_pruning()
    record = json.loads((DATA / "pruning.json").read_text(encoding="utf-8"))
    assert record["weights"] == load.WEIGHTS
    wanted = [key for kind in prune.KINDS for key in prune._cases(kind)]
    assert [(row.kind, row.case, row.removed) for row in rows] == wanted
    everything = {row.bits for row in rows if row.removed == 16 and row.kind in ("greedy", "random", "directions")}
    assert max(everything) - min(everything) < 1e-3  # the same version three times: no attention at all


def test_a_row_of_the_table_is_measured_again() -> None:
    decoder = load_decoder()
    row = next(row for row in prune.load_pruning() if row.kind == "zero" and row.case == 13)
    held_out = corpus.split(corpus.shipped_documentation())[1]
    ids = removal.windows(decoder, held_out, prune.JUDGING)
    found = removal.bits(decoder, ids, kept=removal.without(decoder, [(3, 1)])).mean()
    assert (row.head, float(found)) == ("3.1", pytest.approx(row.bits, abs=2e-4))


def test_the_pruning_command_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prune, "CHOOSING", 1)
    monkeypatch.setattr(prune, "JUDGING", 2)
    monkeypatch.setattr(removal, "greedy_order", lambda decoder, ids: [(k // 4, k % 4) for k in range(16)])
    monkeypatch.setattr(prune, "_cases", lambda kind: iter([(kind, 0, 1)] if kind != "trained-on" else []))
    assert prune.main(["--out", str(tmp_path), "--kinds", "zero", "units"]) == 0
    assert prune.main(["--out", str(tmp_path)]) == 0
    rows = records.read(tmp_path / "pruning.csv", prune.Row, "pruning")
    assert [row.kind for row in rows] == [kind for kind in prune.KINDS if kind != "trained-on"]
    first = {row.kind: row.rise for row in rows}
    assert first["zero"] == first["greedy"] and first["zero"] != first["mean"]
    (tmp_path / "pruning.csv").write_text("a,b\n1,2\n")
    capsys.readouterr()
    assert prune.main(["--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "pruning: expected the columns kind, case, removed," in said and "got ['a', 'b']" in said


def test_units_with_the_weights_of_the_removed_heads_are_removed() -> None:
    units = prune._without_units(np.asarray([0, 1, 2, 4]), 8, 4, np.random.default_rng(0))
    assert units.shape == (4, 32) and set(units.flat) == {0, 1}
    assert (units == 0).sum(axis=1).tolist() == [0, 4, 8, 16]


def test_near_keys_are_counted_from_the_predicted_character() -> None:
    order = np.arange(5)
    found = experiment.near_keys(order, 2, in_text=False)
    np.testing.assert_array_equal(found, [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]])
    np.testing.assert_array_equal(experiment.near_keys(order, 2, in_text=True), found)
    scattered = experiment.near_keys(np.asarray([4, 0, 3, 1]), 1, in_text=True)
    np.testing.assert_array_equal(scattered, [[0, 0, 0], [1, 0, 0], [0, 1, 0]])


def test_the_locality_table_is_the_one_of_its_record() -> None:
    rows = experiment.load_locality()
    record = json.loads((DATA / "locality.json").read_text(encoding="utf-8"))
    assert record["text"] == corpus.DOCUMENTATION
    assert [(row.form, row.seed) for row in rows] == [(f, s) for f in experiment.FORMS for s in experiment.SEEDS]
    equal = experiment.near_keys(np.arange(33), experiment.NEAR, in_text=False) / np.arange(1, 33)[:, None]
    assert all(row.near_equal == pytest.approx(equal.sum(axis=1).mean(), abs=1e-4) for row in rows)
    assert all(row.near == row.near_in_text for row in rows if row.form != "scattered")


def test_locality_reads_the_weights_of_a_decoder() -> None:
    torch_or_skip()
    from attnlab.heads import decoder

    settings = decoder.Settings(0, layers=2, heads=2, width=12, context=5, steps=3, batch=4)
    ids = np.random.default_rng(3).integers(3, size=200)
    model, windows = decoder.train(settings, ids, 3), ids[:24].reshape(4, 6)
    again = load.TrainedDecoder({name: value.numpy() for name, value in model.state_dict().items()}, 2, "abc")
    A, bits = experiment._measured(model, windows, settings)
    np.testing.assert_allclose(A, removal.attention(again, windows).mean(axis=(0, 1, 2)), atol=1e-6)
    assert bits == pytest.approx(removal.bits(again, windows).mean(), rel=1e-5)


def test_the_locality_command_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch_or_skip()
    monkeypatch.setattr(experiment, "SIZES", {**experiment.SIZES, "steps": 1, "width": 8})
    monkeypatch.setattr(experiment, "WINDOWS", 4)
    assert experiment.main(["--out", str(tmp_path), "--seeds", "1"]) == 0
    first = records.read(tmp_path / "locality.csv", experiment.Row, "locality")
    assert [(row.form, row.seed) for row in first] == [(form, 1) for form in experiment.FORMS]
    monkeypatch.setattr(experiment, "one", lambda form, seed, text: experiment.Row(form, seed, 0, 0, 0, 0, 0))
    assert experiment.main(["--out", str(tmp_path), "--seeds", "1", "0"]) == 0
    again = records.read(tmp_path / "locality.csv", experiment.Row, "locality")
    assert set(first) < set(again) and len(again) == 6
    capsys.readouterr()
    assert experiment.main(["--out", str(tmp_path), "--seeds", "1", "1"]) == 2
    assert "seeds: expected at least one whole number from 0 on, each once" in capsys.readouterr().err


def test_a_window_can_be_read_in_another_order() -> None:
    torch = torch_or_skip()
    from attnlab.heads import decoder

    ids = np.random.default_rng(9).integers(3, size=200)
    settings = decoder.Settings(0, layers=1, heads=1, width=4, context=5, steps=2, batch=3)
    models = [decoder.train(settings, ids, 3, order=order) for order in (None, np.arange(6), np.arange(6)[::-1])]
    for one, same, _ in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, same, rtol=0, atol=0)
    assert any(not torch.equal(a, b) for a, b in zip(models[0].parameters(), models[2].parameters(), strict=True))
    with pytest.raises(ValueError, match="order: expected a permutation of 6 places"):
        decoder.train(settings, ids, 3, order=np.arange(5))
    start = decoder.initial(settings, 3)
    assert decoder.train(settings, ids, 3, start=start) is start


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_near_keys_are_near_in_every_type_of_integers(dtype: str) -> None:
    order = np.asarray([120, 3, 100], dtype=dtype)
    expected = experiment.near_keys(order.astype(int), 100, in_text=True)
    np.testing.assert_array_equal(experiment.near_keys(order, 100, in_text=True), expected)


def test_rows_of_another_study_are_refused_before_anything_is_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch_or_skip()
    header = ",".join(field.name for field in dataclasses.fields(prune.Row))
    row = ",".join({"kind": "elsewhere"}.get(field.name, "1") for field in dataclasses.fields(prune.Row))
    (tmp_path / "pruning.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    assert prune.main(["--out", str(tmp_path)]) == 2
    assert "out: expected versions of this command" in capsys.readouterr().err
    header = ",".join(field.name for field in dataclasses.fields(experiment.Row))
    row = ",".join({"form": "elsewhere"}.get(field.name, "1") for field in dataclasses.fields(experiment.Row))
    (tmp_path / "locality.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    assert experiment.main(["--out", str(tmp_path)]) == 2
    assert "out: expected forms of the text among" in capsys.readouterr().err
    (tmp_path / "locality.csv").write_bytes(b"\xff\xfe")
    assert experiment.main(["--out", str(tmp_path)]) == 2
    assert "locality: expected a table in UTF-8" in capsys.readouterr().err
