"""Translation with little data: the languages' rules, the models, training, the sweep, and the verdicts' rules."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.translation import designs, results, task, verdicts
from attnlab.translation.__main__ import main
from attnlab.translation.bleu import corpus_bleu
from attnlab.translation.designs import DESIGNS, HEAD, WIDTH
from attnlab.translation.table import DESIGN_NAMES, EXTRA_PAIRS, MAIN, PAIRS, RATE, RATES, SEEDS, TABLE, TUNED, TUNED_ON
from attnlab.translation.task import BEGIN, END, KINDS, PAD, SOURCE, TARGET
from attnmath.fixed_attention.fixed_patterns import fixed_patterns

torch = pytest.importorskip(
    "torch", reason="torch is optional: install attention-checked[train] to test the experiment"
)
pytest.importorskip("joblib")
pytest.importorskip("tqdm")

from attnlab.translation import models, sweep, training  # noqa: E402
from attnlab.translation.models import Translator  # noqa: E402
from attnlab.translation.sweep import SWEEP  # noqa: E402

LANGUAGE = task.draw_language(np.random.default_rng(5))


def small(design: str = "fixed", seed: int = 0, **changes) -> training.Settings:
    return training.Settings(**{"design": design, "pairs": 60, "seed": seed, "steps": 4, "batch": 8} | changes)


def token(name: str, number: int = 0) -> int:
    return SOURCE[name] + number


def translated(*words: int) -> tuple[list[int], list[str]]:
    found = task.translate(np.asarray([words]), LANGUAGE)
    size = int((found.target[0] != PAD).sum())
    assert np.all(found.kind[0, size:] == -1) and np.all(found.kind[0, :size] >= 0)
    return found.target[0, :size].tolist(), [KINDS[kind] for kind in found.kind[0, :size]]


def the(number: int, plural: int, definite: int) -> int:
    """Target article of a noun."""
    return TARGET["article"] + 3 * (2 * definite + plural) + int(LANGUAGE.gender[number])


# --- the languages -------------------------------------------------------------------------------


def test_a_separable_verb_has_no_particle_in_one_of_four_sentences() -> None:
    sources = task.draw_sources(20_000, LANGUAGE, np.random.default_rng(7))
    verbs = np.isin(sources, SOURCE["verb"] + np.flatnonzero(LANGUAGE.separable)).any(axis=1)
    particles = ((sources >= SOURCE["particle"]) & (sources < SOURCE["particle"] + task.PARTICLES)).sum(axis=1)
    assert not particles[~verbs].any()
    share, count = np.mean(particles[verbs] == 0), verbs.sum()
    assert abs(share - 1 / (1 + task.PARTICLES)) < 4 * math.sqrt(share * (1 - share) / count)


def test_a_plain_sentence_is_translated_word_by_word_with_the_verb_at_the_end() -> None:
    verb = int(np.flatnonzero(~LANGUAGE.separable)[0])
    target, kinds = translated(token("article", 3), token("noun", 7), token("verb", verb), token("article"),
                               token("noun", 2), token("adverb", 4))  # fmt: skip
    assert target == [TARGET["adverb"] + 8, the(7, 1, 1), TARGET["noun"] + 15, the(2, 0, 0), TARGET["noun"] + 4,
                      TARGET["verb"] + 4 * verb, TARGET["verb ending"] + 2, END]  # fmt: skip
    assert kinds == ["long", "agreement", "sense", "agreement", "sense", "lexical", "long", "end"]


def test_words_depend_on_their_neighbours_and_on_far_words() -> None:
    verb, adjective = int(np.flatnonzero(LANGUAGE.separable)[1]), int(np.flatnonzero(LANGUAGE.ambiguous)[2])
    words = [token("question"), token("article", 2), token("noun", 9), token("preposition", 1), token("article"),
             token("adjective", adjective), token("noun", 3), token("verb", verb), token("article", 1),
             token("noun", 5), token("particle", 1)]  # fmt: skip
    target, kinds = translated(*words)
    classes, gender = LANGUAGE.noun_class, LANGUAGE.gender
    assert target[2] == TARGET["preposition"] + 4 + classes[9] and kinds[2] == "sense"
    assert target[4:7] == [TARGET["noun"] + 6, TARGET["adjective"] + 4 * adjective + classes[3],
                           TARGET["adjective ending"] + gender[3]]  # fmt: skip
    assert target[-3:] == [TARGET["verb"] + 4 * verb + 2, TARGET["verb ending"] + 3, END]
    assert kinds[4:7] == ["sense", "sense", "agreement"] and kinds[-3:] == ["long", "long", "end"]
    statement, _ = translated(*words[1:-1])  # neither question nor particle
    assert statement[-3:] == [TARGET["verb"] + 4 * verb, TARGET["verb ending"] + 2, END]
    assert statement[:-3] == target[:-3]


@given(seed=st.integers(0, 200))
def test_sentences_are_drawn_and_translated_by_the_seed_alone(seed: int) -> None:
    first, again = (task.draw_sources(9, LANGUAGE, np.random.default_rng(seed)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    lengths = (first != PAD).sum(axis=1)
    assert lengths.min() >= task.SHORTEST and lengths.max() <= task.SOURCE_SLOTS
    found, alone = task.translate(first, LANGUAGE), task.translate(first[3:4], LANGUAGE)
    np.testing.assert_array_equal(found[3:4].target, alone.target)
    assert np.all((found.target == END).sum(axis=1) == 1) and found.target.max() < task.TARGET_SIZE
    assert np.all((found.kind == KINDS.index("end")) == (found.target == END)) and len(found) == 9


def test_every_kind_occurs_and_frequent_words_come_first() -> None:
    found = task.translate(task.draw_sources(4000, LANGUAGE, np.random.default_rng(1)), LANGUAGE)
    assert set(np.unique(found.kind)) == {-1, 0, 1, 2, 3, 4}
    nouns = Counter(found.source[found.source >= SOURCE["noun"]].tolist())
    first, tenth = nouns[SOURCE["noun"]], nouns[SOURCE["noun"] + 9]
    assert first / tenth == pytest.approx(10, rel=0.2)  # Zipf's law


def test_held_out_sentences_are_new_and_sets_are_nested() -> None:
    small_one, large = task.corpus(3, 50), task.corpus(3, 300)
    rows = [{row.tobytes() for row in part.source} for part in (large.training, large.validation, large.test)]
    assert [len(part) for part in rows] == [300, task.VALIDATION, task.TEST]
    assert not rows[0] & rows[1] and not rows[0] & rows[2] and not rows[1] & rows[2]
    np.testing.assert_array_equal(small_one.training.target, large.training.target[:50])
    np.testing.assert_array_equal(small_one.test.source, large.test.source)
    assert not np.array_equal(task.corpus(4, 50).test.source, large.test.source)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([4, 170, 110, 5], "without a word that it needs"),
        ([4, 170, 5, 171, 110], "in another order|without a word"),
        ([4, 170, 110, 5, 171, 3], "in another order"),
        ([4, 170, 110, 5, 999], "no word"),
        ([4, 170, 12, 5, 110, 5, 171], "without a word that it needs"),
    ],
)
def test_what_is_no_sentence_is_not_translated(words: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=f"source: expected sentences of the source language, .*({message})"):
        task.translate(np.asarray([words]), LANGUAGE)


def test_words_are_made_up_once_for_each_token() -> None:
    for language, size in (("source", task.SOURCE_SIZE), ("target", task.TARGET_SIZE)):
        words = task.sentence(range(END + 1, size), language).split()
        assert len(words) == len(set(words)) == size - END - 1
    assert task.sentence([BEGIN, token("question"), END, PAD], "source") == "baq"
    with pytest.raises(ValueError, match="tokens: expected tokens of the source language"):
        task.sentence([task.SOURCE_SIZE], "source")


# --- BLEU ----------------------------------------------------------------------------------------


def test_bleu_of_known_cases() -> None:
    reference = ["the", "cat", "is", "on", "the", "mat"]
    assert corpus_bleu([reference], [reference]) == 100
    assert corpus_bleu([["the"] * 6], [reference]) == 0  # no pair is right
    # 5 of 6 words, 4 of 5 pairs, 3 of 4 triples, 2 of 3 fours
    assert corpus_bleu([["the", "cat", "is", "on", "the", "bed"]], [reference]) == pytest.approx(100 * (1 / 3) ** 0.25)
    # all right, but one word is missing at the end
    assert corpus_bleu([reference[:5]], [reference]) == pytest.approx(100 * math.exp(1 - 6 / 5))
    # n-grams are pooled over the corpus, not averaged over sentences
    both = corpus_bleu([reference, list("abcde")], [reference, list("abcdf")])
    assert both == pytest.approx(100 * (10 / 11 * 8 / 9 * 6 / 7 * 4 / 5) ** 0.25)
    assert corpus_bleu([list("abcdabcd")], [list("abcdxy")]) == pytest.approx(
        100 * (4 / 8 * 3 / 7 * 2 / 6 * 1 / 5) ** 0.25
    )


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=9), min_size=1, max_size=4), st.integers(0, 99))
def test_bleu_is_between_0_and_100_and_ignores_the_order_of_sentences(sentences: list[list[int]], seed: int) -> None:
    references = [sentence[::-1] for sentence in sentences]
    score, order = corpus_bleu(sentences, references), np.random.default_rng(seed).permutation(len(sentences))
    assert 0 <= score <= 100 + 1e-9
    again = corpus_bleu([sentences[i] for i in order], [references[i] for i in order])
    assert again == pytest.approx(score)


# --- the models ----------------------------------------------------------------------------------


def test_patterns_are_those_of_the_report_at_every_length() -> None:
    patterns = models._pattern_table(6)
    for m in range(1, 7):
        np.testing.assert_allclose(patterns[m, :, :m, :m], fixed_patterns(m), rtol=1e-6)
        assert patterns[m, :, m:].abs().sum() == patterns[m, :, :, m:].abs().sum() == 0
    # edge rows: nothing before the first word, nothing after the last
    assert patterns[4, 1, 0].tolist() == [1, 0, 0, 0, 0, 0] and patterns[4, 2, 3].tolist() == [0, 0, 0, 1, 0, 0]
    assert patterns[4, 3, 1].tolist() == [1, 0, 0, 0, 0, 0] and patterns[4, 4, 2].tolist() == [0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_models_ignore_padding_and_later_words(design: str) -> None:
    model = Translator(design, seed=1).eval().double()
    data = task.corpus(0, 60).test
    short = int((data.source != PAD).sum(axis=1).argmin())
    source, target = (torch.from_numpy(part[[short, 0]]) for part in (data.source, data.target))
    logits = model(source, training.shifted(target))
    n = int((source[0] != PAD).sum())
    alone = model(source[:1, :n], training.shifted(target[:1]))
    torch.testing.assert_close(alone[0], logits[0], rtol=1e-5, atol=1e-5)
    changed = training.shifted(target).clone()
    changed[:, 5] = 7
    others = model(source, changed)
    torch.testing.assert_close(others[:, :5], logits[:, :5])
    assert not torch.allclose(others[:, 5], logits[:, 5])
    _, weights = model.encode(source)
    for a in weights:
        assert a.shape[1] == DESIGNS[design].heads
        torch.testing.assert_close(a[0, :, :n].sum(-1), torch.ones(a.shape[1], n, dtype=a.dtype), rtol=1e-5, atol=1e-5)
        assert torch.all(a[0, :, :, n:] == 0)


def test_fixed_heads_have_their_pattern_and_learned_ones_look_at_the_words() -> None:
    model, data = Translator("fixed", seed=1).eval(), task.corpus(0, 60).test
    source = torch.from_numpy(data.source[:1])
    n = int((source != PAD).sum())
    other = source.clone()
    other[0, 1] += 1
    (before, _), (after, _) = (model.encode(words)[1] for words in (source, other))
    np.testing.assert_allclose(before[0, :7, :n, :n].detach(), fixed_patterns(n), rtol=1e-6)
    assert torch.equal(before[:, :7], after[:, :7]) and not torch.allclose(before[:, 7], after[:, 7], atol=1e-4)


def test_a_learned_head_is_scaled_dot_product_attention() -> None:
    layer = Translator("learned", seed=2).eval().encoder[0].attention
    x = torch.randn(1, 5, WIDTH, generator=torch.Generator().manual_seed(0))
    out, a = layer(x, torch.zeros(1, 1, 1, 5), None)
    part = slice(2 * HEAD, 3 * HEAD)  # the third head
    q, k, v = (x[0] @ matrix.weight[part].T for matrix in (layer.query, layer.key, layer.value))
    torch.testing.assert_close(a[0, 2], torch.softmax(q @ k.T / HEAD**0.5, -1), rtol=1e-5, atol=1e-5)
    heads = torch.cat([a[0, h] @ (x[0] @ layer.value.weight.T)[:, h * HEAD : (h + 1) * HEAD] for h in range(8)], dim=1)
    torch.testing.assert_close(out[0], heads @ layer.out.weight.T, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close((a[0, 2] @ v), heads[:, part], rtol=1e-4, atol=1e-5)


def test_frozen_matrices_are_orthogonal_or_gaussian_of_the_same_scale_and_no_parameters() -> None:
    orthogonal, gaussian, values = (Translator(d, seed=3) for d in ("orthogonal", "gaussian", "orthogonal_values"))
    for layer in orthogonal.encoder:
        for W in (layer.attention.frozen_query, layer.attention.frozen_key):
            torch.testing.assert_close(W @ W.T, torch.eye(WIDTH), rtol=1e-5, atol=1e-5)
    first, second = (layer.attention.frozen_query for layer in orthogonal.encoder)
    assert not torch.allclose(first, second)
    W = gaussian.encoder[0].attention.frozen_query
    assert not torch.allclose(W @ W.T, torch.eye(WIDTH), atol=0.1)
    assert float((W**2).sum() / WIDTH) == pytest.approx(1, rel=0.1)
    assert not hasattr(values.encoder[0].attention, "value")
    for model in (orthogonal, gaussian, values):
        assert not any("frozen" in name for name, _ in model.named_parameters())


def test_hybrid_heads_freeze_the_first_seven() -> None:
    hybrid, frozen = Translator("hybrid", seed=3).encoder[0].attention, Translator("orthogonal", seed=3)
    torch.testing.assert_close(hybrid.frozen_query, frozen.encoder[0].attention.frozen_query[: 7 * HEAD])
    assert hybrid.query.weight.shape == (HEAD, WIDTH)


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_designs_begin_alike_and_can_have_equally_many_parameters(design: str) -> None:
    reference, model = Translator("learned", seed=4), Translator(design, seed=4)
    for (name, ours), (_, theirs) in zip(model.state_dict().items(), reference.state_dict().items(), strict=False):
        if name.startswith(("embed", "decoder", "read")):
            assert torch.equal(ours, reference.state_dict()[name]), name
        del theirs
    assert torch.equal(model.encoder[0].forward_part[0].weight, reference.encoder[0].forward_part[0].weight)
    widened = Translator(design, designs.equal_hidden(design), seed=4)
    assert widened.trained_parameters() == reference.trained_parameters()
    count = sum(p.numel() for p in model.shared())
    assert count == sum(p.numel() for p in reference.shared()) < model.trained_parameters()


def test_trained_parameters_of_the_designs() -> None:
    counts = {name: Translator(name, seed=0).trained_parameters() for name in DESIGNS}
    full = counts["learned"]
    # Two layers: 7 of 8 heads without W_Q and W_K; all without; and also without W_V.
    assert full - counts["fixed"] == full - counts["hybrid"] == 2 * 2 * 7 * HEAD * WIDTH
    assert full - counts["orthogonal"] == full - counts["gaussian"] == 2 * 2 * WIDTH * WIDTH
    assert full - counts["orthogonal_values"] == 3 * 2 * WIDTH * WIDTH and full == counts["single"]
    assert full - counts["narrow"] == 4 * 2 * 7 * HEAD * WIDTH


# --- training ------------------------------------------------------------------------------------


def test_runs_repeat_and_differ_by_seed() -> None:
    threads = torch.get_num_threads()
    first, again, other = training.run(small()), training.run(small()), training.run(small(seed=1))
    assert first == again and set(first) == set(TABLE.columns) and torch.get_num_threads() == threads
    assert first["validation_last"] != other["validation_last"] and first["device"] == "cpu"
    assert first["best_step"] == 4 and first["train_best"] == first["train_last"]


def test_a_rate_at_which_training_diverges_is_named() -> None:
    with pytest.raises(ValueError, match=r"rate: expected a learning rate at which .* finite, got 1e\+300"):
        training.run(small(rate=1e300))


def test_training_moves_what_is_learned_and_leaves_what_is_frozen() -> None:
    settings = small("orthogonal_values")
    before = Translator("orthogonal_values", seed=0).state_dict()
    after = training.train(settings).last.state_dict()
    for name, values in before.items():
        assert torch.equal(values, after[name]) == ("frozen" in name), name


def test_a_short_training_learns_a_little_and_the_best_checkpoint_is_kept(monkeypatch) -> None:
    monkeypatch.setattr(training, "EVERY", 10)
    found = training.train(small("learned", pairs=30, steps=60, batch=32))
    steps, train, validation = found.losses.T
    assert steps.tolist() == [10, 20, 30, 40, 50, 60] and train[-1] < 0.8 * train[0]
    data = task.corpus(0, 30)
    with torch.no_grad():
        place = torch.device("cpu")
        assert float(training.loss(found.best, *training.tensors(data.validation, place))) == validation.min()
        assert float(training.loss(found.last, *training.tensors(data.validation, place))) == validation[-1]
    assert len(found.norms) == 60 and len(found.cosines) == 59 and np.all(np.abs(found.cosines) <= 1 + 1e-6)
    assert 0 <= found.clipped <= 1


def test_every_sentence_comes_once_before_any_comes_again() -> None:
    data = task.corpus(0, 64).training
    batches = training._batches(small(pairs=64, batch=4), data)
    seen = np.concatenate([next(batches) for _ in range(16)])
    assert sorted(seen.tolist()) == list(range(64))
    again = np.concatenate([next(batches) for _ in range(16)])
    assert sorted(again.tolist()) == list(range(64)) and again.tolist() != seen.tolist()
    lengths = (data.target != PAD).sum(1) + (data.source != PAD).sum(1)
    assert lengths[seen.reshape(16, 4)].std(axis=1).mean() < 0.5 * lengths.std()


def test_a_perfect_model_scores_100_and_kinds_are_counted_apart() -> None:
    data = task.corpus(0, 60).test[:20]

    class Oracle(Translator):
        wrong: int | None = None

        def decode(self, memory, source, shifted):
            target = torch.from_numpy(data.target)
            logits = torch.nn.functional.one_hot(target[:, : shifted.shape[1]], task.TARGET_SIZE).float()
            if self.wrong is not None:
                logits[torch.from_numpy(data.kind[:, : shifted.shape[1]] == self.wrong)] *= -1
            return logits

    model = Oracle("learned", seed=0).eval()
    found = training.measure(model, data)
    assert found["bleu"] == pytest.approx(100) and found["exact"] == found["accuracy"] == 1
    model.wrong = KINDS.index("long")
    found = training.measure(model, data)
    assert found["accuracy_long"] == 0 and found["accuracy_sense"] == found["accuracy_agreement"] == 1
    assert found["bleu"] < 90 and found["exact"] == 0
    assert found["accuracy"] == pytest.approx((data.kind[data.kind >= 0] != model.wrong).mean())


def test_statistics_of_the_gradient() -> None:
    norms = np.tile([1.0, math.e], 50)
    trained = training.Trained(None, None, np.zeros((1, 3)), norms, np.full(99, 0.25), 0.5)
    found = training.stability(trained)
    after = norms[10:]
    assert found["gradient_cv"] == pytest.approx(after.std() / after.mean())
    assert found["gradient_jitter"] == pytest.approx(1, rel=0.01) and found["gradient_cosine"] == 0.25
    assert found["clipped"] == 0.5
    trend = training.Trained(None, None, np.zeros((1, 3)), np.exp(-np.arange(100) / 10), np.zeros(99), 0.0)
    assert training.stability(trend)["gradient_jitter"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"design": "other"}, "design: expected one of"),
        ({"pairs": 0}, "pairs: expected"),
        ({"pairs": 10**7}, "pairs: expected at most 1000000"),
        ({"rate": -1.0}, "rate: expected"),
        ({"seed": -1}, "seed: expected"),
        ({"hidden": 1.5}, "hidden: expected"),
    ],
)
def test_settings_name_what_is_wrong(changes: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        small(**changes)


# --- the sweep -----------------------------------------------------------------------------------


def test_the_grid_goes_seed_by_seed_and_has_each_run_once() -> None:
    runs = sweep.grid()
    assert len(runs) == len(set(runs)) == 190 and [run.seed for run in runs] == sorted(run.seed for run in runs)
    main = sweep.grid(["main"], seeds=[7])
    assert {(run.design, run.pairs) for run in main} == {(design, n) for design in MAIN for n in PAIRS}
    assert {run.pairs for run in sweep.grid(["extra", "equal"])} == set(EXTRA_PAIRS)
    assert all(run.hidden == designs.equal_hidden(run.design) for run in sweep.grid(["equal"]))
    with pytest.raises(ValueError, match="parts: expected one of main, extra, equal"):
        sweep.grid(["other"])
    with pytest.raises(ValueError, match="seeds: expected at least one value, each once"):
        sweep.grid(seeds=[1, 1])


def test_an_interrupted_sweep_does_only_what_is_missing(tmp_path: Path) -> None:
    path, runs = tmp_path / "table.csv", [small(design) for design in ("learned", "fixed", "single")]
    done = []

    def interrupted(settings: training.Settings, device: str) -> dict:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(settings)
        return training.run(settings, device)

    with pytest.raises(KeyboardInterrupt):
        dataclasses.replace(SWEEP, run=interrupted).carry_out(runs, path, jobs=1, progress=False)
    assert len(TABLE.read(path)) == 2 and SWEEP.carry_out(runs, path, jobs=1, progress=False) == 1
    rows = TABLE.read(path)
    assert [row["design"] for row in rows] == ["learned", "fixed", "single"]
    assert SWEEP.carry_out(runs, path, jobs=1, progress=False) == 0
    record = json.loads(SWEEP.write_provenance(path, "a command").read_text())
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest() and record["runs"] == 3
    assert {name: row for name, row in rows[1].items() if name in TABLE.settings} == dataclasses.asdict(runs[1])


def test_the_command_writes_a_table_and_says_what_is_wrong(tmp_path: Path) -> None:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "attnlab.translation", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    out = tmp_path / "t.csv"
    good = call("--out", str(out), "--jobs", "1", "--parts", "main", "--pairs", "20", "--seeds", "0", "--steps", "1")
    assert good.returncode == 0 and "4 new runs" in good.stdout, good.stderr
    assert len(TABLE.read(out)) == 4 and json.loads(out.with_suffix(".json").read_text())["pairs"] == [20]
    bad = call("--out", str(tmp_path))
    assert bad.returncode == 2 and "expected a file to write, got the folder" in bad.stderr


# --- each design at its own learning rate --------------------------------------------------------


def rated(best: dict[str, float], **more: dict[float, float]) -> list[dict]:
    """Runs at every rate: the loss is least at a design's own, BLEU is as given for the rates or highest there too."""
    everywhere = [sweep.grid(["main", "extra"], rate=rate) for rate in RATES]
    rows = [dict.fromkeys(TABLE.columns, 1.0) | dataclasses.asdict(run) for runs in everywhere for run in runs]
    for row in rows:
        away = abs(math.log2(row["rate"] / best.get(row["design"], RATE)))
        row |= {"validation_best": 1.0 + away + 0.01 * row["seed"],
                "bleu": more.get(row["design"], {}).get(row["rate"], 50.0 - away)}  # fmt: skip
    return rows


def test_a_rate_is_chosen_by_the_loss_or_by_bleu_of_the_seeds_that_tune() -> None:
    rows = rated({"fixed": 0.016, "alone": 0.004}, fixed={0.004: 60.0})
    by_loss, by_bleu = (results.chosen_rates(rows, by) for by in ("validation_best", "bleu"))
    assert set(by_loss) == {(run.design, run.pairs) for run in sweep.rate_grid()}
    for (design, pairs), rate in by_loss.items():
        assert rate == {"fixed": 0.016, "alone": 0.004}.get(design, RATE)
        assert by_bleu[design, pairs] == (0.004 if design == "fixed" else rate)
    for row in rows:
        if row["seed"] not in TUNED_ON:
            row["validation_best"] = -row["rate"]
    assert results.chosen_rates(rows, "validation_best") == by_loss  # other seeds have no say
    lacking = [row for row in rows if (row["design"], row["rate"], row["seed"]) != ("fixed", 0.016, 0)]
    assert results.chosen_rates(lacking, "validation_best")["fixed", 500] == RATE
    with pytest.raises(ValueError, match=r"rows: expected the seeds \(0, 1\) of \('learned', 500\)"):
        results.chosen_rates([row for row in rows if row["seed"]], "bleu")
    with pytest.raises(ValueError, match="by: expected one of validation_best, bleu"):
        results.chosen_rates(rows, "accuracy")


def test_runs_at_own_rates_are_judged_as_those_at_the_common_one() -> None:
    rows = rated({"fixed": 0.016})
    for row in rows:
        row["bleu"] += 0.1 * row["seed"] * (row["design"] == "fixed")
    own = results.at_own_rates(rows, "validation_best")
    assert {row["rate"] for row in own if row["design"] == "fixed"} == {0.016} and len(own) == 120
    assert results.by_seed(own, "fixed", 500, "bleu").tolist() == pytest.approx([50.0, 50.1, 50.2, 50.3, 50.4])
    assert verdicts.judge(own, "better in low resource").comparisons["500 pairs"].mean == pytest.approx(0.2)
    with pytest.raises(ValueError, match="rows: expected one run of fixed for each seed, got 15 for 5 seeds"):
        results.by_seed(rows, "fixed", 500, "bleu")


def test_own_rates_need_the_runs_that_the_sweep_lacks() -> None:
    tried = sweep.rate_grid()
    assert len(tried) == len(set(tried)) == 96 and {run.rate for run in tried} == set(RATES) - {RATE}
    assert {run.seed for run in tried} == set(TUNED_ON) and {run.design for run in tried} == set(TUNED)
    own = sweep.own_rate_grid(rated({"fixed": 0.016}, orthogonal={0.004: 60.0}), [500, 1500], [2, 3])
    assert {(run.design, run.rate) for run in own} == {("fixed", 0.016), ("orthogonal", 0.004)} and len(own) == 8
    assert sweep.own_rate_grid(rated({})) == []


def test_the_command_tries_rates_first_and_then_runs_the_best_ones(tmp_path: Path, monkeypatch, capsys) -> None:
    def at_once(settings: training.Settings, device: str) -> dict:
        loss = {"fixed": -settings.rate, "orthogonal": math.inf}.get(settings.design, settings.rate - 1)
        measured = dict.fromkeys(TABLE.columns, 0) | {"validation_best": loss, "bleu": -1.0, "device": device}
        return measured | dataclasses.asdict(settings)

    monkeypatch.setattr(sweep, "SWEEP", dataclasses.replace(SWEEP, run=at_once))
    out = tmp_path / "rates.csv"
    call = ["--own-rates", "--out", str(out), "--backend", "sequential", "--pairs", "1500", "--seeds", "2", "3"]
    assert main(call) == 0
    said = capsys.readouterr().out
    assert "16 new runs" in said and re.search(r"\b6 new runs", said)
    runs = [(row["design"], row["seed"], row["rate"]) for row in TABLE.read(out)]
    best = {"learned": 0.004, "fixed": 0.016, "single": 0.004}  # and of orthogonal heads the common one
    assert [run for run in runs if run[1] > 1] == [(name, seed, best[name]) for name in best for seed in (2, 3)]
    for wrong in (["--steps", "4"], ["--parts", "extra"], ["--pairs", "20"]):
        assert main([*call, *wrong]) != 0
        assert "own-rates: expected no --parts" in capsys.readouterr().err


# --- the shipped table and the verdicts ----------------------------------------------------------


def made_up(seeds: int = 5, **shift: float) -> list[dict]:
    """Rows of every setting of the sweep; `shift` adds to the BLEU of a design."""
    rng, rows = np.random.default_rng(0), []
    for run in sweep.grid(seeds=range(seeds)):
        row = dict.fromkeys(TABLE.columns, 1.0) | dataclasses.asdict(run) | {"device": "cpu"}
        rows.append(row | {"bleu": 50 + shift.get(run.design, 0.0) + 0.1 * rng.standard_normal()})
    return rows


def test_the_outcomes_follow_the_rules() -> None:
    def outcome(sentence: str, **shift: float) -> str:
        return verdicts.judge(made_up(**shift), sentence).outcome

    assert outcome("better in low resource", fixed=2.0) == "supported"
    assert outcome("better in low resource", fixed=-2.0) == "contradicted"
    assert outcome("better in low resource") == "not decided"
    assert outcome("as good in the standard setting") == "supported"
    assert outcome("as good in the standard setting", fixed=-3.0) == "contradicted"
    assert outcome("always better than one head", fixed=2.0) == "supported"
    assert outcome("always better than one head", single=2.0) == "contradicted"
    assert outcome("most of the information", fixed=-1.0, narrow=-4.0) == "supported"
    assert outcome("most of the information", fixed=-3.0, narrow=-4.0) == "contradicted"
    assert outcome("projections may stay untrained", orthogonal=-0.5) == "supported"
    assert outcome("projections may stay untrained", orthogonal=-3.0) == "contradicted"
    assert outcome("orthogonality is a good bias") == "contradicted"  # within the margin at both sizes
    assert outcome("orthogonality is a good bias", orthogonal=2.0) == "supported"
    assert outcome("orthogonal heads in low resource", orthogonal=-2.0) == "contradicted"


def test_every_sentence_has_as_many_comparisons_as_the_page_of_predictions_says() -> None:
    page = (Path(task.__file__).parent / "PREDICTIONS.md").read_text(encoding="utf-8")
    said = [int(line.split("|")[2]) for line in page.splitlines() if line.startswith("| ") and line[2].isdigit()]
    found = {name: verdicts.judge(made_up(), name).comparisons for name in verdicts.SENTENCES}
    assert [len(comparisons) for comparisons in found.values()] == said
    assert sum(said) == 36 and len(said) == 12 and "36 comparisons in twelve families" in page
    for comparisons in found.values():
        assert {c.coverage for c in comparisons.values()} == {1 - 0.05 / len(comparisons)}


def test_losses_are_compared_with_the_smaller_one_as_the_better_one() -> None:
    rows = made_up()
    for row in rows:
        noise = 0.001 * row["seed"]
        better = row["design"] == "fixed"
        row.update(validation_last=2.0 + noise, validation_best=1.5 - 0.5 * better + noise * better,
                   train_last=1.0 + 0.5 * better, gradient_jitter=1.0 - 0.5 * better + noise * better)  # fmt: skip
    for sentence in ("less overfitting", "better generalisation", "more stable gradients"):
        found = verdicts.judge(rows, sentence)
        assert found.outcome == "supported" and all(c.low > 0 for c in found.comparisons.values())


def test_unfinished_seeds_are_known() -> None:
    rows = made_up(3)
    assert results.complete_seeds(rows) == [0, 1, 2] and results.complete_seeds(rows[:-1]) == [0, 1]


def test_controls_are_told_from_their_designs() -> None:
    rows = made_up(2)
    for row in rows:
        row["bleu"] = float(row["hidden"])
    assert results.by_seed(rows, "fixed", 500, "bleu").tolist() == [128, 128]
    assert results.by_seed(rows, "fixed", 500, "bleu", equal=True).tolist() == [184, 184]
    with pytest.raises(ValueError, match="pairs, equal: expected a setting of single"):
        results.by_seed(rows, "single", 500, "bleu", equal=True)


def test_the_shipped_table_is_the_one_of_its_record() -> None:
    record, rows = results.load_provenance(), results.load_results()
    path = Path(results.__file__).parents[1] / "data" / "translation.csv"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == record["sha256"] and len(rows) == record["runs"]
    assert set(record["design"]) == set(DESIGN_NAMES) and record["pairs"] == list(PAIRS)
    wanted = {(run.design, run.pairs, run.hidden, run.seed) for run in sweep.grid(seeds=results.complete_seeds(rows))}
    assert wanted <= {(row["design"], row["pairs"], row["hidden"], row["seed"]) for row in rows}
    assert TABLE.read(path) == rows


def test_the_shipped_rates_are_what_each_design_needs_at_its_own_rates() -> None:
    rows, main_rows = results.load_rates(), results.load_results()
    runs = {training.Settings(**{name: row[name] for name in TABLE.settings}) for row in rows}
    tried, both = sweep.rate_grid(), [*main_rows, *rows]
    assert runs == {*tried, *sweep.own_rate_grid(both)} and len(runs) == len(rows) and len(runs) > len(tried)
    assert not runs & {training.Settings(**{name: row[name] for name in TABLE.settings}) for row in main_rows}
    for by in results.CHOICES:
        own = results.at_own_rates(both, by)
        assert results.complete_seeds(own) == list(SEEDS)
        assert {(row["design"], row["pairs"]): row["rate"] for row in own} == results.chosen_rates(both, by)


@pytest.mark.parametrize("gone", [[("fixed", 0)], [("fixed", 0), ("learned", 4)]])
def test_a_verdict_pairs_runs_of_one_seed(gone) -> None:
    rows = [row for row in results.load_results() if (row["design"], row["seed"]) not in gone]
    with pytest.raises(ValueError, match="rows: expected every setting for each of the seeds"):
        verdicts.judge(rows, "better in low resource")
