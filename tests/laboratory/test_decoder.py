"""The decoders: their text, a causal model that learns, a command that resumes, and the queries and keys that ship."""

from __future__ import annotations

import hashlib
import json
import string
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from backends import torch_or_skip
from hypothesis import given
from hypothesis import strategies as st

from attnlab.heads import corpus, load, load_decoders, read_decoders
from attnmath.operator.attention import attention_weights, causal_mask

DATA = resources.files("attnlab") / "data"
RECORD = json.loads((DATA / "decoder.json").read_text(encoding="utf-8"))
UNIGRAMS = "unigrams of the part learned"


def words(seed: int, count: int) -> str:
    """Paragraphs in which each word follows from its first letter: easy to learn, and far below the unigram entropy."""
    rng = np.random.default_rng(seed)
    vocabulary = [letter + 3 * letter.lower() for letter in string.ascii_uppercase[:6]]
    return "\n\n".join(" ".join(rng.choice(vocabulary, size=12)) for _ in range(count))


# --- the text ------------------------------------------------------------------------------------


def test_python_documentation_is_english_and_no_paragraph_comes_twice() -> None:
    text = corpus.python_documentation()
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    assert len(set(paragraphs)) == len(paragraphs) and len(text) > 200_000
    assert text.count(" the ") > 1000


@given(st.lists(st.text("ab \n", max_size=6), max_size=8).map("\n\n".join).filter(str.strip))
def test_each_paragraph_stays_once_and_in_its_order(text: str) -> None:
    found = corpus.each_paragraph_once(text)
    assert found == corpus.each_paragraph_once(found)
    wanted = list(dict.fromkeys(" ".join(part.split()) for part in text.split("\n\n") if part.strip()))
    assert [" ".join(part.split()) for part in found.split("\n\n")] == wanted


def test_a_tenth_is_held_out_in_whole_paragraphs() -> None:
    text = "\n\n".join(f"paragraph {number}" for number in range(1000))
    learn, held_out = corpus.split(text)
    parts = [set(part.split("\n\n")) for part in (learn, held_out)]
    assert not parts[0] & parts[1] and parts[0] | parts[1] == set(text.split("\n\n"))
    assert len(parts[1]) == pytest.approx(100, abs=10)
    with pytest.raises(ValueError, match="text: expected paragraphs to learn, and some"):
        corpus.split("one paragraph")


def test_the_passage_is_prose() -> None:
    assert corpus.passage("short\n\nlower case words\n\nA sentence.\n\nB sentence.", 9) == "A sentenc"
    with pytest.raises(ValueError, match="text, length: expected a paragraph of prose with 12"):
        corpus.passage("A sentence.", 12)


def test_ngrams_count_what_they_have_seen() -> None:
    # Unigrams: P(a) = (3 + 1) / (4 + 2).
    assert corpus.ngram_bits("aaa", "aaab", 0) == pytest.approx(-np.log2(4 / 6))
    # Bigrams from aaa: P(a|a) = (2 + 1) / (2 + 2), P(b|a) = (0 + 1) / (2 + 2).
    assert corpus.ngram_bits("aab", "aaa", 1) == pytest.approx(-(np.log2(3 / 4) + np.log2(1 / 4)) / 2)
    for context, expected in ((0, 2.0), (1, 0.0)):
        cycle = "abcd" * 5000
        assert corpus.ngram_bits(cycle[:400], cycle, context) == pytest.approx(expected, abs=2e-3)
    with pytest.raises(ValueError, match="context: expected less than the 2 characters"):
        corpus.ngram_bits("ab", "ab", 2)


# --- the file that ships --------------------------------------------------------------------------


@pytest.mark.parametrize("trained", [True, False])
def test_the_shipped_decoders_are_causal_and_their_rows_are_distributions(trained: bool) -> None:
    decoders = load_decoders(trained=trained)
    seeds, n = len(decoders.seeds), decoders.n
    assert decoders.trained is trained and seeds >= 3 and n == len(decoders.tokens) == 128
    P = decoders.weights()
    assert P.shape == (seeds, decoders.layers, decoders.heads, n, n) == decoders.scores().shape
    np.testing.assert_allclose(P.sum(axis=-1), 1, atol=1e-12)
    assert P.min() >= 0 and not np.triu(P, 1).any()


def test_the_record_is_that_of_the_shipped_file() -> None:
    content = (DATA / "decoder.npz").read_bytes()
    assert hashlib.sha256(content).hexdigest() == RECORD["sha256"] == load.DECODERS
    assert len(content) < 2_500_000
    decoders, settings = load_decoders(), RECORD["settings"]
    assert tuple(run["seed"] for run in RECORD["runs"]) == decoders.seeds
    assert decoders.Q.shape[1:] == (settings["layers"], settings["heads"], settings["context"], decoders.d_k)
    assert decoders.d_k * decoders.heads == settings["width"]
    assert RECORD["command"] == "python -m attnlab.heads.train --out code/attnlab/data"
    assert {"python", "torch", "numpy"} == set(RECORD["versions"])


def test_the_passage_is_one_and_the_seeds_are_several() -> None:
    after, before = load_decoders(), load_decoders(trained=False)
    assert after.tokens == before.tokens and after.seeds == before.seeds
    for one in (after, before):
        assert all(np.abs(one.Q[0] - other).max() > 0.5 for other in one.Q[1:])
    assert np.abs(after.Q - before.Q).max() > 0.5


def test_training_has_beaten_the_ngrams_on_text_that_was_held_out() -> None:
    baselines = RECORD["bits_per_character"]
    for run in RECORD["runs"]:
        bits = run["bits_per_character"]
        assert bits["held_out"] < min(baselines.values()) < baselines[UNIGRAMS] < bits["untrained"]


def test_a_changed_file_and_bad_arguments_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="trained: expected True or False, got str 'yes'"):
        load_decoders(trained="yes")  # type: ignore[arg-type]
    monkeypatch.setattr(load, "DECODERS", "0" * 64)
    with pytest.raises(ValueError, match=r"decoders: expected decoder.npz with SHA-256 000"):
        load_decoders()


def arrays(**changes: np.ndarray) -> dict[str, np.ndarray]:
    shape = (2, 1, 3, 5, 4)
    return {name: np.zeros(shape, np.float16) for name in ("Q", "K", "Q_untrained", "K_untrained")} | {
        "tokens": np.asarray(list("abcde")), "seeds": np.asarray([7, 9])} | changes  # fmt: skip


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    written = arrays(Q_untrained=rng.standard_normal((2, 1, 3, 5, 4)).astype(np.float16))
    np.savez(tmp_path / "d.npz", **written)
    found = read_decoders(tmp_path / "d.npz", trained=False)
    np.testing.assert_array_equal(found.Q, written["Q_untrained"].astype(float))
    assert (found.seeds, found.tokens, found.trained) == ((7, 9), tuple("abcde"), False)
    assert (found.layers, found.heads, found.n, found.d_k) == (1, 3, 5, 4)
    mask = causal_mask(5)
    np.testing.assert_array_equal(found.weights()[1, 0, 2], attention_weights(found.Q[1, 0, 2], np.zeros((5, 4)),
                                                                              mask=mask))  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": np.asarray([1])}, r"path: expected Q and K of shape \(1, layers, heads, 5, d_k\), got \(2, 1, 3"),
        ({"tokens": np.asarray(["a"])}, r"path: expected Q and K of shape \(2, layers, heads, 1, d_k\)"),
        ({"K": np.zeros((2, 1, 3, 5, 3))}, "path: expected Q and K of shape"),
        ({"Q": np.full((2, 1, 3, 5, 4), np.nan)}, "path: Q: expected no NaN"),
        ({"seeds": np.asarray([0.5, 1.5])}, "path: expected integers as seeds, got float64"),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path: Path, changes: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "d.npz", **arrays(**changes))
    with pytest.raises(ValueError, match=message):
        read_decoders(tmp_path / "d.npz")


def test_files_of_another_kind_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_decoders(tmp_path / "none.npz")
    np.savez(tmp_path / "d.npz", Q=np.zeros(2))
    with pytest.raises(
        ValueError, match="path: expected the arrays Q, K, tokens and seeds in .*, missing K, seeds, to"
    ):
        read_decoders(tmp_path / "d.npz")
    (tmp_path / "d.npz").write_bytes(b"PK no archive")
    with pytest.raises(ValueError, match=r"path: expected a file of python -m attnlab.heads.train, got"):
        read_decoders(tmp_path / "d.npz")


# --- the model, its training and the command, with torch ---------------------------------------------


def tiny(seed: int = 0, **changes: float) -> object:
    torch_or_skip()
    from attnlab.heads.decoder import Settings

    sizes = {"layers": 2, "heads": 2, "width": 16, "context": 16, "steps": 6, "batch": 4}
    return Settings(seed, **sizes | changes)


def test_later_characters_do_not_change_earlier_rows() -> None:
    torch = torch_or_skip()
    from attnlab.heads.decoder import initial

    model = initial(tiny(), 9).double()
    ids = torch.as_tensor(np.random.default_rng(2).integers(9, size=(1, 16)))
    changed = ids.clone()
    changed[0, 11:] = (changed[0, 11:] + 1) % 9
    torch.testing.assert_close(model(ids)[:, :11], model(changed)[:, :11], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(model(ids)[:, 11], model(changed)[:, 11])
    for ours, others in zip(model.queries_and_keys(ids[0]), model.queries_and_keys(changed[0]), strict=True):
        assert ours.shape == (2, 2, 16, 8)
        np.testing.assert_allclose(ours[:, :, :11], others[:, :, :11], rtol=1e-12, atol=1e-12)


def test_a_layer_attends_with_the_weights_of_the_package() -> None:
    torch = torch_or_skip()
    from attnlab.heads.decoder import initial
    from attnmath.operator.attention import attention

    layer = initial(tiny(), 9).double().layers[0]
    x = torch.randn(3, 7, 16, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found, Q, K = layer(x)
    V = layer.project[2](layer.norm(x)).unflatten(-1, (2, 8)).transpose(1, 2)
    joined = attention(Q, K, V, mask=causal_mask(7, like=Q)).transpose(1, 2).flatten(2)
    middle = x + layer.project[3](joined)
    torch.testing.assert_close(found, middle + layer.forward_part(layer.norm_after(middle)), rtol=1e-12, atol=1e-12)


def test_a_short_training_falls_below_the_unigrams_and_repeats() -> None:
    torch = torch_or_skip()
    from attnlab.heads import decoder

    text = words(0, 60)
    letters = sorted(set(text))
    ids = np.asarray([letters.index(letter) for letter in text])
    learn, held_out = ids[:2000], ids[2000:]
    losses: list[float] = []
    settings = tiny(steps=80, batch=8, rate=1e-2)
    first = decoder.train(settings, learn, len(letters), report=lambda step, loss: losses.append(loss))
    assert decoder.bits_per_character(first, held_out) < 0.75 * corpus.ngram_bits(text[2000:], text[:2000], 0)
    before = decoder.initial(settings, len(letters))
    assert decoder.bits_per_character(before, held_out) > decoder.bits_per_character(first, held_out) + 1
    assert len(losses) == 80 and losses[-1] < losses[0]
    few = tiny(steps=3)
    again, other = (decoder.train(tiny(seed, steps=3), learn, len(letters)) for seed in (0, 1))
    same = decoder.train(few, learn, len(letters))
    for a, b, c in zip(again.parameters(), same.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
        assert a.ndim == 1 or not torch.allclose(a, c)


def test_bits_per_character_is_the_mean_over_whole_windows() -> None:
    torch = torch_or_skip()
    from attnlab.heads import decoder

    model = decoder.initial(tiny(), 5)
    ids = np.random.default_rng(4).integers(5, size=16 * 3 + 9)
    logits = model(torch.as_tensor(ids[:48].reshape(3, 16))).log_softmax(-1).detach().numpy()
    picked = np.take_along_axis(logits, ids[1:49].reshape(3, 16, 1), axis=-1)
    assert decoder.bits_per_character(model, ids) == pytest.approx(-picked.mean() / np.log(2), rel=1e-5)


def test_the_rate_rises_and_falls_to_zero() -> None:
    torch_or_skip()
    from attnlab.heads.decoder import _rate

    rates = [_rate(step, 100) for step in range(101)]
    assert rates[:10] == pytest.approx(np.arange(1, 11) / 10) and rates[10] == 1 and rates[100] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 15}, "width: expected a multiple of the 2 heads, got 15"),
        ({"seed": -1}, "seed: expected an integer of at least 0"),
        ({"steps": 0}, "steps: expected a positive integer"),
        ({"rate": 0.0}, "rate: expected"),
    ],
)
def test_bad_settings_are_named(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny(**changes)


def test_bad_text_is_named() -> None:
    torch_or_skip()
    from attnlab.heads import decoder

    for ids, message in (([1] * 16, "more than 16 integers"), ([0.5] * 20, "more than 16"), ([9] * 20, "from 0 to 8")):
        with pytest.raises(ValueError, match=f"ids: expected .*{message}"):
            decoder.train(tiny(), np.asarray(ids), 9)
    with pytest.raises(TypeError, match="settings: expected"):
        decoder.train(None, np.zeros(20, int), 9)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make the command train tiny models, and return a text for it."""
    torch_or_skip()
    pytest.importorskip("tqdm")
    from attnlab.heads import decoder

    class Small(decoder.Settings):
        def __init__(self, seed: int, *, steps: int) -> None:
            super().__init__(seed, layers=2, heads=2, width=16, context=16, steps=steps, batch=4)

    monkeypatch.setattr(decoder, "Settings", Small)
    (tmp_path / "words.txt").write_text(words(1, 120) + "\n\n" + words(2, 30), encoding="utf-8")
    return tmp_path / "words.txt"


def test_the_command_resumes_and_its_file_can_be_read(small: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    from attnlab.heads import train

    out, line = tmp_path / "out", ["--text", str(small), "--seeds", "3", "5", "--steps", "2"]
    one_seed, done = train.one_seed, []

    def interrupted(settings, *rest):
        if done:
            raise KeyboardInterrupt
        done.append(settings.seed)
        return one_seed(settings, *rest)

    monkeypatch.setattr(train, "one_seed", interrupted)
    assert train.main(["--out", str(out), *line]) == 130
    assert "the same command does the others" in capsys.readouterr().err and not (out / "decoder.npz").exists()
    monkeypatch.setattr(
        train, "one_seed", lambda settings, *rest: done.append(settings.seed) or one_seed(settings, *rest)
    )
    assert train.main(["--out", str(out), *line]) == 0
    assert done == [3, 5] and [path.name for path in sorted(out.iterdir())] == [
        "decoder.json", "decoder.npz", "decoder.parts"]  # fmt: skip
    decoders, record = read_decoders(out / "decoder.npz"), json.loads((out / "decoder.json").read_text())
    assert decoders.seeds == (3, 5) and decoders.n == 16
    assert record["sha256"] == hashlib.sha256((out / "decoder.npz").read_bytes()).hexdigest()
    assert [run["seed"] for run in record["runs"]] == [3, 5] and record["settings"]["steps"] == 2
    assert train.main(["--out", str(tmp_path / "again"), *line]) == 0
    assert (tmp_path / "again/decoder.npz").read_bytes() == (out / "decoder.npz").read_bytes()
    done.clear()
    assert train.main(["--out", str(out), *line[:2], "--seeds", "3", "5", "7", "--steps", "2"]) == 0
    assert done == [7], "a seed that is done is not repeated"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--device", "nowhere"], "device: expected one that torch finds here"),
        (["--seeds", "1", "1"], "seeds: expected at least one, each once"),
    ],
)
def test_the_command_names_what_is_wrong(small: Path, tmp_path: Path, more: list[str], message: str, capsys) -> None:
    from attnlab.heads import train

    assert train.main(["--out", str(tmp_path / "out"), *more]) == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.count("\n") == 1


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch, capsys) -> None:
    from attnlab.heads import train

    def absent(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("", name="torch")

    monkeypatch.setattr(train, "run", absent)
    assert train.main(["--out", str(tmp_path)]) == 1
    assert 'torch is not installed; it comes with the extra "train"' in capsys.readouterr().err


def test_half_precision_is_checked() -> None:
    from attnlab.heads import train

    with pytest.raises(ValueError, match="steps: expected queries and keys within half precision"):
        train.half(np.asarray([1e6]))
    Q = np.random.default_rng(0).standard_normal((2, 4, 3))
    assert 0 < train.rounding(Q, Q) < 1e-2 and train.rounding(train.half(Q), train.half(Q)) == 0


def test_stretches_are_cut_by_the_characters_before_a_paragraph() -> None:
    """Every tenth of 100 stretches, by hand from the place where each paragraph begins in the text."""
    parts = [c * (5 + 7 * k % 23) for k, c in enumerate(string.ascii_letters * 4)]
    text = "\n\n".join(parts)
    begins = [len("\n\n".join([*parts[:k], ""])) if k else 0 for k in range(len(parts))]
    tenth = [begin * 100 // len(text) % 10 == 9 for begin in begins]
    learn, held_out = corpus.split(text)
    assert learn.split("\n\n") == [part for part, held in zip(parts, tenth, strict=True) if not held]
    assert held_out.split("\n\n") == [part for part, held in zip(parts, tenth, strict=True) if held]


def test_settings_are_those_of_the_shipped_decoders() -> None:
    torch_or_skip()
    from attnlab.heads.decoder import Settings

    made = Settings(7)
    assert (made.seed, made.layers, made.heads, made.width, made.context) == (7, 4, 4, 96, 128)
    assert (made.steps, made.batch, made.rate, made.decay) == (1000, 16, 3e-3, 0.1)


@pytest.mark.parametrize(("steps", "warm"), [(1, 1), (9, 1), (19, 1), (20, 2), (250, 25)])
def test_the_rate_warms_up_over_a_tenth_of_the_steps(steps: int, warm: int) -> None:
    torch_or_skip()
    from attnlab.heads.decoder import _rate

    rates = [_rate(step, steps) for step in range(steps + 1)]
    assert rates[:warm] == pytest.approx([(k + 1) / warm for k in range(warm)])
    rest = max(1, steps - warm)
    expected = [(1 + np.cos(np.pi * (k - warm) / rest)) / 2 for k in range(warm, steps + 1)]
    assert rates[warm:] == pytest.approx(expected)


def test_the_command_ends_with_the_status_of_what_is_wrong(small: Path, tmp_path: Path, capsys) -> None:
    from attnlab.heads import train

    given = ["--text", str(small), "--steps", "1"]
    with pytest.raises(SystemExit, match="2"):
        train.main(["--out", str(tmp_path / "wrong"), "--seeds", "-1", *given])
    assert "argument --seeds: expected a whole number of at least 0, got -1" in capsys.readouterr().err
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "decoder.parts").touch()
    assert train.main(["--out", str(tmp_path / "file"), "--seeds", "0", *given]) == 1
    assert "cannot read or write" in capsys.readouterr().err
