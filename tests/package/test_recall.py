"""Associative recall: the task's laws, causal models, a sweep that resumes and scales out, and the shipped table."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from importlib import resources
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnmath import sparsity
from attnmath.recall import results, table, task
from attnmath.recall.table import ATTENTION_NAMES, COLUMNS, locked, read_table

resource = pytest.importorskip("resource")
torch = pytest.importorskip("torch", reason="torch is optional: install attnmath[train] to test the experiment")
joblib = pytest.importorskip("joblib")
from tqdm import tqdm  # noqa: E402

from attnmath.recall import models, sweep, training  # noqa: E402


def small(seed: int = 0, **changes) -> training.Settings:
    return training.Settings(**{"attention": "softmax", "pairs": 2, "width": 8, "seed": seed, "steps": 8} | changes)


# --- the task ------------------------------------------------------------------------------------


@given(pairs=st.integers(1, 12), seed=st.integers(0, 99))
def test_every_question_has_its_answer_among_the_pairs(pairs: int, seed: int) -> None:
    batch = task.draw(5, pairs, np.random.default_rng(seed))
    keys, values = batch.tokens[:, 0 : 2 * pairs : 2], batch.tokens[:, 1 : 2 * pairs : 2]
    assert keys.max() < task.KEYS <= values.min() and values.max() < task.KEYS + task.VALUES
    for row in range(5):
        book = dict(zip(keys[row], values[row] - task.KEYS, strict=True))
        assert len(book) == pairs
        assert [book[key] for key in batch.tokens[row, 2 * pairs :]] == batch.answers[row].tolist()
    again = task.draw(5, pairs, np.random.default_rng(seed))
    np.testing.assert_array_equal(batch.tokens, again.tokens)


# --- the models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", ATTENTION_NAMES)
def test_models_are_causal_and_rows_normalised(attention: str) -> None:
    model = models.Recaller(attention, 8, torch.Generator().manual_seed(1)).double()
    tokens = torch.from_numpy(task.draw(3, 4, np.random.default_rng(0)).tokens)
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % task.KEYS
    (logits, weights), (others, _) = model(tokens), model(changed)
    torch.testing.assert_close(logits[:, :-1], others[:, :-1], rtol=1e-10, atol=1e-10)
    assert not torch.allclose(logits[:, -1], others[:, -1])
    for a in weights:
        assert torch.all(a.triu(1) == 0)
        totals = a.abs().sum(-1)
        assert torch.all((totals - 1).abs() < 1e-5) or attention in {"relu^2", "identity"}
        assert torch.all(totals < 1 + 1e-9)


def test_an_untrained_layer_attends_from_its_own_tokens() -> None:
    layer = models.Recaller("softmax", 8, torch.Generator().manual_seed(1)).double().layers[0]
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    q, k = (layer.norm(x) @ layer.project[part].weight.mT for part in range(2))
    hidden = torch.ones(5, 5).triu(1).bool()
    expected = torch.softmax((q @ k.mT / 8**0.5).masked_fill(hidden, -torch.inf), -1)
    torch.testing.assert_close(layer(x)[1], expected, rtol=1e-7, atol=1e-7)


def test_decay_has_the_articles_row_and_softmax_is_softmax() -> None:
    q, k = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(2)).double()[:, None]
    rate = torch.tensor(0.5, dtype=torch.float64)
    row = models.ATTENTIONS["decay"](q, k, rate)[0, -1]
    lam = float(torch.sigmoid(rate))
    assert sparsity.sparsity(row.numpy()) == pytest.approx(float(sparsity.decay(lam, 6)), rel=1e-12)
    torch.testing.assert_close(models.ATTENTIONS["relu^2"](q, k, rate), torch.relu(q @ k.mT / 2) ** 2)
    a = models.ATTENTIONS["softmax"](q, k, rate).tril()
    expected = torch.softmax((q @ k.mT / 2).masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf), -1)
    torch.testing.assert_close(a / a.sum(-1, keepdim=True), expected)


def test_all_attentions_have_equally_many_parameters() -> None:
    counts = {sum(p.numel() for p in models.Recaller(name, 16, torch.Generator()).parameters())
              for name in models.ATTENTIONS}  # fmt: skip
    assert len(counts) == 1 and tuple(models.ATTENTIONS) == ATTENTION_NAMES


# --- training and measuring ----------------------------------------------------------------------


def test_a_short_training_recalls_better_than_chance() -> None:
    row = training.run(small(width=16, steps=150, rate=1e-2))
    assert row["recall"] > 3 / task.VALUES and set(COLUMNS) <= set(row)
    assert 1 <= row["support_1"] <= 6 and 6**-0.5 <= row["S_1"] <= 1


def test_runs_repeat_and_leave_the_threads_as_they_were() -> None:
    threads = torch.get_num_threads()
    assert training.run(small()) == training.run(small()) != training.run(small(seed=1))
    assert torch.get_num_threads() == threads


def test_concentration_is_that_of_the_causal_rows() -> None:
    rows = np.zeros((2, 2, 4))
    rows[:, 0, :3], rows[:, 1, :] = [1, 0, 0], [1, 1, 1, 1]
    S, support = training.concentration(rows)
    assert pytest.approx((3**-0.5 + 1) / 2) == S and support == pytest.approx((1 + 4) / 2)
    assert all(np.isnan(training.concentration(np.zeros((1, 1, 3)))))


def test_the_rate_rises_from_the_first_step_and_falls_to_zero() -> None:
    rates = [training._rate(step, 100) for step in range(101)]
    assert rates[:10] == pytest.approx(np.arange(1, 11) / 10) and rates[10] == 1 and rates[100] == 0
    assert (np.diff(rates[10:]) < 0).all()


# --- the sweep -----------------------------------------------------------------------------------


def test_an_interrupted_sweep_does_only_what_is_missing(tmp_path: Path, monkeypatch) -> None:
    path, runs = tmp_path / "table.csv", [small(seed) for seed in range(4)]
    done = []

    def interrupted(settings):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(settings)
        return training.run(settings)

    monkeypatch.setattr(sweep, "run", interrupted)
    with pytest.raises(KeyboardInterrupt), joblib.parallel_config(backend="sequential"):
        sweep.sweep(runs, path, progress=False)
    assert len(read_table(path)) == 2
    path.write_text(path.read_text() + "softmax,2,8,2,8,6", encoding="utf-8")  # as if cut off within a line
    monkeypatch.setattr(sweep, "run", training.run)
    bars = []
    monkeypatch.setattr(sweep, "tqdm", lambda **options: bars.append(options) or tqdm(**options))
    assert sweep.sweep(runs, path, progress=False, jobs=1) == 2
    assert (bars[0]["initial"], bars[0]["total"]) == (2, 4)
    assert sweep.sweep(runs, path, progress=False, jobs=1) == 0
    assert [row["seed"] for row in read_table(path)] == [0, 1, 2, 3]


def test_a_local_dask_cluster_gives_the_same_table(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    runs = [small(seed) for seed in range(3)]
    sweep.sweep(runs, tmp_path / "here.csv", progress=False, jobs=1)
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        assert sweep.sweep(runs, tmp_path / "cluster.csv", progress=False) == 3
    assert (tmp_path / "cluster.csv").read_text() == (tmp_path / "here.csv").read_text()


def test_the_command_runs_and_describes_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attnmath.recall", "--out", str(tmp_path / "t.csv"), "--jobs", "1"]
    choice = ["--attentions", "decay", "--pairs", "2", "--widths", "8", "--seeds", "0", "--rates", "0.01"]
    done = subprocess.run([*command, *choice, "--steps", "4"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("1 new runs in") and "run" in done.stderr
    assert (tmp_path / "t.json").is_file()
    wrong = subprocess.run([*command, "--pairs", "65"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "pairs: expected at most 64" in wrong.stderr
    nobody = subprocess.run([*command[:-1], "0"], capture_output=True, text=True, check=False)
    assert nobody.returncode == 2 and "argument --jobs" in nobody.stderr


# --- the command when something goes wrong: one line, and the next run goes on ---

FEW = ["--attentions", "decay", "--pairs", "2", "--widths", "8", "--rates", "0.01"]


def hear_ctrl_c() -> None:
    """Undo that Ctrl-C is ignored, as it is in a process that was started in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def command(*arguments: str, **options) -> subprocess.Popen:
    line = [sys.executable, "-m", "attnmath.recall", "--jobs", "1", *FEW, *arguments]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def last_lines(process: subprocess.Popen) -> tuple[int, list[str]]:
    """Exit status, and what is written beside the progress bar."""
    _, errors = process.communicate(timeout=100)
    return process.returncode, [line for line in errors.replace("\r", "\n").splitlines() if line and "run/s" not in line
                                and "s/run" not in line]  # fmt: skip


def test_ctrl_c_says_how_to_resume(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    process = command(
        "--out",
        str(path),
        "--steps",
        "4",
        "--seeds",
        *map(str, range(500)),
        start_new_session=True,
        preexec_fn=hear_ctrl_c,
    )
    while not path.exists() or path.read_text().count("\n") < 3:
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    status, lines = last_lines(process)
    assert status == 130 and len(lines) == 1
    assert "interrupted" in lines[0] and str(path) in lines[0] and "same command" in lines[0]
    assert 2 <= len(read_table(path)) < 500


def test_a_full_disk_is_one_line_and_the_next_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    few = ("--out", str(path), "--steps", "2", "--seeds", *map(str, range(20)))
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    status, lines = last_lines(command(*few, preexec_fn=limit))
    assert status == 1 and len(lines) == 1 and str(path) in lines[0] and "File too large" in lines[0]
    assert 0 < len(read_table(path)) < 20 and not list(tmp_path.glob("*.part"))
    runs = sweep.grid(["decay"], [2], [8], range(20), [0.01], steps=2)
    before = len(read_table(path))
    assert sweep.sweep(runs, path, progress=False, jobs=1) == 20 - before and len(read_table(path)) == 20


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    status, lines = last_lines(command("--out", str(tmp_path)))
    assert status == 2 and lines == [
        f"python -m attnmath.recall: argument --out: expected a file, got the folder {tmp_path}"
    ]
    (tmp_path / "file").touch()
    status, lines = last_lines(command("--out", str(tmp_path / "file" / "t.csv")))
    assert status == 1 and len(lines) == 1 and "cannot write" in lines[0]


@pytest.mark.parametrize("missing", ["joblib", "torch", "tqdm"])
def test_a_missing_extra_is_named(tmp_path: Path, missing: str) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError('', name={missing!r})")
    path = os.pathsep.join([str(tmp_path), str(Path(sweep.__file__).parents[2])])
    environment = os.environ | {"PYTHONPATH": path}
    status, lines = last_lines(command("--out", str(tmp_path / "t.csv"), env=environment))
    assert status == 1 and len(lines) == 1 and f"{missing} is not installed" in lines[0] and ".[train]" in lines[0]
    help_alone = subprocess.run([sys.executable, "-m", "attnmath.recall", "--help"], env=environment, check=True,
                                capture_output=True, text=True)  # fmt: skip
    assert "540 runs" in help_alone.stdout


def test_two_sweeps_into_one_table_do_not_repeat_a_run(tmp_path: Path) -> None:
    path, runs = tmp_path / "t.csv", [small(seed) for seed in range(2)]
    with locked(path), pytest.raises(ValueError, match="path: expected a table that no other sweep writes"):
        sweep.sweep(runs, path, progress=False, jobs=1)
    assert sweep.sweep(runs, path, progress=False, jobs=1) == 2
    twice = path.read_text()
    path.write_text(twice + "".join(twice.splitlines(keepends=True)[1:]))
    assert len(read_table(path)) == 2, "a run that occurs twice counts once"
    assert sweep.sweep([*runs, small(2)], path, progress=False, jobs=1) == 1
    assert len(path.read_text().splitlines()) == 4


def test_a_table_replaced_while_it_is_opened_is_not_written(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "t.csv"
    with locked(path):
        pass
    other, opened = tmp_path / "other.csv", Path.open
    other.write_text(path.read_text())

    def replaced(self, *arguments, **options):
        file = opened(self, *arguments, **options)
        other.replace(path)
        return file

    monkeypatch.setattr(Path, "open", replaced)
    with pytest.raises(ValueError, match="no other sweep"), locked(path):
        pass


# --- the shipped table ---------------------------------------------------------------------------


def test_the_shipped_table_is_complete() -> None:
    rows, record = results.load_results(), results.load_provenance()
    wanted = list(product(*(record[name] for name in ("attention", "pairs", "width", "seed", "rate"))))
    found = [tuple(row[name] for name in ("attention", "pairs", "width", "seed", "rate")) for row in rows]
    assert sorted(found) == sorted(wanted) and len(found) == record["runs"]
    assert set(record["attention"]) == set(ATTENTION_NAMES)
    assert len(record["pairs"]) >= 3 and len(record["width"]) >= 2 and len(record["seed"]) >= 3
    stored = resources.files("attnmath") / "data" / "recall.csv"
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == record["sha256"]
    assert record["command"].startswith("python -m attnmath.recall") and "torch" in record["versions"]
    assert {sweep.Settings(**{k: row[k] for k in COLUMNS[:7]}) for row in rows} == set(sweep.grid())


def test_best_cells_choose_the_rate_by_mean_recall() -> None:
    base = {"attention": "softmax", "pairs": 2, "width": 8}
    rows = [base | {"seed": s, "rate": r, "recall": v} for s, r, v in ((0, 0.1, 0.2), (1, 0.1, 0.4), (0, 0.2, 0.25))]
    (cell,) = results.best_cells(rows)
    assert cell.rate == 0.1 and len(cell.runs) == 2 and results.recall(cell).value == pytest.approx(0.3)
    dead = {"S_1": np.nan, "S_2": 0.5, "support_1": np.nan, "support_2": 3.0}
    assert results.concentration(dead) == (0.5, 3.0)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: task.draw(1, 65, np.random.default_rng(0)), ValueError, "pairs: expected at most 64"),
        (lambda: task.draw(0, 1, np.random.default_rng(0)), ValueError, "size: expected"),
        (lambda: small(attention="cosine"), ValueError, "attention: expected one of softmax"),
        (lambda: small(pairs=0), ValueError, "pairs: expected"),
        (lambda: small(seed=-1), ValueError, "seed: expected an integer of at least 0"),
        (lambda: small(rate=0.0), ValueError, "rate: expected"),
        (lambda: models.Recaller("cosine", 8, torch.Generator()), ValueError, "attention: expected one of"),
        (lambda: sweep.sweep([1], "t.csv"), TypeError, "settings: expected an? attnmath Settings, got int"),
        (lambda: sweep.sweep([], 3), TypeError, "path: expected a path"),
        (lambda: sweep.sweep([], "t.csv", jobs=0), ValueError, "jobs: expected a number of processes"),
        (lambda: training.run(None), TypeError, "settings: expected an? attnmath Settings"),
        (lambda: training.measure(None, small()), TypeError, "model: expected an? attnmath Recaller"),
        (lambda: models.Recaller("decay", 8, None), TypeError, "generator: expected an? torch Generator"),
        (lambda: sweep.grid(widths=(0,)), ValueError, "widths: expected a positive integer"),
        (lambda: results.best_cells([{}]), ValueError, "rows: expected a row with attention"),
        (lambda: sweep.grid(pairs=()), ValueError, "pairs: expected at least one value"),
        (lambda: sweep.grid(seeds=(1, 1)), ValueError, "seeds: expected at least one value, each once"),
        (lambda: results.best_cells([]), ValueError, "rows: expected at least one run"),
        (lambda: results.interval(results.Estimate(0.5, 0.1), 1), ValueError, "runs: expected at least 2"),
        (lambda: results.interval(results.Estimate(0.5, 0.1), 3, 1.0), ValueError, "coverage: expected"),
    ],
)
def test_bad_input_gets_an_error_that_teaches(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    "text, words",
    [("a,b\n", "expected a table"), ("\x00\x01\n", "expected a table"), (",".join(COLUMNS) + "\nx,1\n", "in line 2")],
)
def test_a_foreign_table_is_refused_and_left_alone(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        sweep.sweep([small()], path, progress=False, jobs=1)
    assert path.read_text(encoding="utf-8") == text


# --- settings, schedules and tables, value by value ------------------------------------------------


def test_settings_and_grids_have_the_values_that_the_table_names() -> None:
    made = training.Settings("decay", 2, 8, 0)
    assert (made.steps, made.batch, made.rate) == (1000, 64, 5e-3)
    assert small(pairs=64).pairs == 64
    for name in ("pairs", "width", "steps", "batch"):
        assert getattr(small(**{name: 1}), name) == 1
        with pytest.raises(ValueError, match=f"{name}: expected a positive integer, got 0"):
            small(**{name: 0})
    with pytest.raises(ValueError, match="pairs: expected at most 64, the number of keys, got 65"):
        small(pairs=65)
    assert (task.KEYS, task.VALUES) == (64, 16)
    assert task.draw(1, 64, np.random.default_rng(0)).tokens.shape == (1, 192)
    runs = sweep.grid(["decay", "softmax"], [2, 4], [8], [0, 1], [0.1], steps=3, batch=5)
    assert [(s.attention, s.pairs, s.seed) for s in runs] == list(product(["decay", "softmax"], [2, 4], [0, 1]))
    assert all((s.width, s.rate, s.steps, s.batch) == (8, 0.1, 3, 5) for s in runs)
    for change, words in (
        ({"attentions": "decay"}, "attentions: expected a list of values, got str 'decay'"),
        ({"rates": {0.1}}, "rates: expected a list of values, got set {0.1}"),
        ({"widths": (8, 8)}, r"widths: expected at least one value, each once, got \[8, 8\]"),
        ({"rates": (0.0,)}, "rates: expected a positive finite number"),
        ({"seeds": (-1,)}, "seeds: expected an integer of at least 0"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            sweep.grid(**change)


@pytest.mark.parametrize(("steps", "warm"), [(1, 1), (5, 1), (10, 1), (19, 1), (20, 2), (1000, 100)])
def test_the_rate_warms_up_over_a_tenth_of_the_steps(steps: int, warm: int) -> None:
    rates = [training._rate(step, steps) for step in range(steps + 1)]
    assert rates[:warm] == pytest.approx([(k + 1) / warm for k in range(warm)])
    rest = max(1, steps - warm)
    expected = [(1 + np.cos(np.pi * (k - warm) / rest)) / 2 for k in range(warm, steps + 1)]
    assert rates[warm:] == pytest.approx(expected)


def test_training_is_adamw_on_seeded_sequences() -> None:
    settings = small(steps=12, batch=3, rate=0.02, seed=5)
    model = models.Recaller("softmax", 8, torch.Generator().manual_seed(5))
    rng = np.random.default_rng([5, 2, 8])
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
    for step in range(12):
        for group in optimiser.param_groups:
            group["lr"] = 0.02 * training._rate(step, 12)
        batch = task.draw(3, 2, rng)
        logits = model(torch.from_numpy(batch.tokens))[0][:, 4:]
        loss = torch.nn.functional.cross_entropy(logits.reshape(6, 16), torch.from_numpy(batch.answers).reshape(6))
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    for ours, theirs in zip(training.train(settings).parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sequences", [(), (7,)])
def test_measures_are_those_of_fresh_sequences(sequences: tuple[int, ...]) -> None:
    settings = small(seed=5)
    model = training.train(settings)
    batch = task.draw(*(sequences or (512,)), 2, np.random.default_rng([5, 1, 2, 0]))
    with torch.no_grad():
        logits, weights = model(torch.from_numpy(batch.tokens))
    found = training.measure(model, settings, *sequences)
    right = logits[:, 4:].argmax(-1).numpy() == batch.answers
    assert found["recall"] == right.mean() and set(found) == {"recall", "S_1", "S_2", "support_1", "support_2"}
    for layer, a in enumerate(weights, start=1):
        rows = [a[:, 4, :5].double().numpy(), a[:, 5, :6].double().numpy()]
        S = [sparsity.sparsity(row) for row in rows]
        assert found[f"S_{layer}"] == pytest.approx(np.concatenate(S).mean(), rel=1e-9)
        support = np.concatenate([5 * S[0] ** 2, 6 * S[1] ** 2])
        assert found[f"support_{layer}"] == pytest.approx(support.mean(), rel=1e-9)


def test_rows_of_zeros_are_left_out_of_the_concentration() -> None:
    rows = np.zeros((3, 2, 5))
    rows[0, 0, :4], rows[1, 1], rows[2, 1] = [1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1]
    rows[0, 0, 4] = 9.0  # masked for this query
    S, support = training.concentration(rows)
    assert pytest.approx((2**-0.5 + 5**-0.5 + 1) / 3) == S and support == pytest.approx((2 + 1 + 5) / 3)
    assert training.concentration(np.ones((1, 3, 3)))[0] == pytest.approx(1)
    with pytest.raises(
        ValueError, match=r"rows: expected shape \(size, pairs, n\) with n at least pairs, got \(1, 3, 2\)"
    ):
        training.concentration(np.ones((1, 3, 2)))


def test_every_attention_is_its_formula() -> None:
    q, k = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(2)).double()
    rate = torch.tensor(0.3, dtype=torch.float64)
    s = np.einsum("bid,bjd->bij", q.numpy(), k.numpy()) / 2
    phi = [np.where(a.numpy() > 0, a.numpy() + 1, np.exp(a.numpy())) for a in (q, k)]
    past = np.tril(np.ones((5, 5)))
    top = np.where(past, s, -np.inf).max(axis=-1, keepdims=True)
    distance = np.arange(5)[:, None] - np.arange(5)
    expected = {
        "softmax": np.exp(s - top),
        "relu^2": np.where(s > 0, s, 0) ** 2,
        "elu+1": phi[0] @ phi[1].swapaxes(-1, -2),
        "identity": s,
        "decay": np.broadcast_to((1 / (1 + np.exp(-0.3))) ** np.maximum(distance, 0), s.shape),
    }
    for name, weigh in models.ATTENTIONS.items():
        found = weigh(q, k, rate).numpy()
        np.testing.assert_allclose(found * past, expected[name] * past, rtol=1e-12, err_msg=name)
    huge = models.ATTENTIONS["softmax"](1e200 * q[:, :, :1], k[:, :, :1], rate)
    assert torch.isfinite(huge).all() and huge.max() == 1


def test_a_layer_mixes_with_the_token_before_and_keeps_its_input() -> None:
    layer = models.Layer("identity", 4).double()
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64))
    x = torch.randn(2, 5, 4, generator=generator, dtype=torch.float64)
    normed = torch.nn.functional.layer_norm(x, (4,), layer.norm.weight, layer.norm.bias)
    before = torch.cat([torch.zeros(2, 1, 4, dtype=torch.float64), normed[:, :-1]], dim=1)
    q, k, v = ((layer.now[i] * normed + layer.before[i] * before) @ layer.project[i].weight.T for i in range(3))
    a = (q @ k.mT / 2).tril()
    a = a / a.abs().sum(-1, keepdim=True)
    y = x + (a @ v) @ layer.project[3].weight.T
    up, _, down = layer.forward_part
    inner = torch.nn.functional.gelu(layer.norm_after(y) @ up.weight.T + up.bias)
    expected = y + inner @ down.weight.T + down.bias
    found, weights = layer(x)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(weights, a, rtol=1e-6, atol=1e-8)
    assert up.weight.shape == (8, 4) and down.weight.shape == (4, 8) and layer.now.shape == (3, 4)
    fresh = models.Layer("decay", 4)
    assert fresh.rate.item() == 2.0 and (fresh.now == 1).all() and (fresh.before == 0).all()


def test_weights_are_gaussian_with_the_variance_of_their_inputs() -> None:
    model = models.Recaller("softmax", 64, torch.Generator().manual_seed(0))
    assert len(model.layers) == 2 and model.embed.weight.shape == (80, 64) and model.read.weight.shape == (16, 64)
    for part in model.modules():
        if isinstance(part, torch.nn.Linear):
            assert part.weight.std().item() == pytest.approx(part.in_features**-0.5, rel=0.1)
            assert part.bias is None or (part.bias == 0).all()
    assert model.embed.weight.std().item() == pytest.approx(1, rel=0.1)
    again = models.Recaller("softmax", 64, torch.Generator().manual_seed(0))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


# --- results, value by value -----------------------------------------------------------------------


def test_results_are_means_over_what_is_independent() -> None:
    base = {"attention": "decay", "rate": 0.1, "recall": 0.0}
    cells = [
        results.Cell("decay", pairs, width, 0.1, tuple(base | {"seed": s, "v": pairs * width + s} for s in (2, 0)))
        for width in (16, 8)
        for pairs in (2, 6)
    ]
    cells.append(results.Cell("softmax", 2, 8, 0.1, ({"seed": 0, "v": 99.0},)))
    table = results.by_width_and_seed(cells, "decay", lambda run: run["v"])
    assert table.tolist() == [[32, 34], [64, 66]]  # widths 8 and 16, seeds 0 and 2, means over 2 and 6 pairs
    found = results.over_seeds([[1.0, 2.0, 6.0], [3.0, 4.0, 2.0]])
    means = np.asarray([2.0, 3.0, 4.0])
    assert (found.value, found.standard_error) == pytest.approx((3, means.std(ddof=1) / 3**0.5))
    low, high = results.interval(results.Estimate(0.5, 0.1), 2, 0.5)
    assert (low, high) == pytest.approx((0.4, 0.6))  # the upper quartile of Cauchy's law is 1
    assert results.interval(results.Estimate(0.5, 0.1), 3) == results.interval(results.Estimate(0.5, 0.1), 3, 0.95)
    run = {"S_1": 0.5, "S_2": 0.9, "support_1": 3.0, "support_2": 1.5}
    assert results.concentration(run) == (0.9, 1.5)
    assert results.concentration(run | {"S_2": np.nan, "support_2": np.nan}) == (0.5, 3.0)
    assert np.isnan(results.concentration(dict.fromkeys(run, np.nan))).all()
    two = results.recall(results.Cell("decay", 2, 8, 0.1, ({"recall": 0.25}, {"recall": 0.75})))
    assert (two.value, two.standard_error) == (0.5, 0.25)


def test_results_that_lack_something_are_named() -> None:
    run = {"seed": 0, "recall": 0.5}
    cell = results.Cell("decay", 2, 8, 0.1, (run,))
    for call, words in (
        (lambda: results.recall(cell), "cell: expected at least 2 runs, got 1: one has no standard error"),
        (lambda: results.recall(3), "cell: expected an attnmath Cell, got int"),
        (lambda: results.over_seeds([[1.0], [2.0]]), r"table: expected at least 2 seeds, got shape \(2, 1\)"),
        (lambda: results.by_width_and_seed([cell], "softmax", len), "cells: expected runs of .softmax. with every"),
        (lambda: results.by_width_and_seed([cell, results.Cell("decay", 2, 16, 0.1, ({"seed": 1},))], "decay", len),
         "cells: expected runs of 'decay' with every seed at every width"),
        (lambda: results.by_width_and_seed("ab", "decay", len), "cells: expected a list of Cell, got str"),
        (lambda: results.by_width_and_seed(iter([cell]), "decay", len), "cells: expected a list of Cell, got list"),
        (lambda: results.by_width_and_seed([cell], "decay", lambda run: float("x")), "quantity: could not convert"),
        (lambda: results.interval(results.Estimate(0.5, 0.1), 3, 0.0), "coverage: expected a number between 0 and 1"),
        (lambda: results.best_cells("ab"), "rows: expected rows of the table, got str"),
        (lambda: results.best_cells([3]), "rows: expected a row of the table, got int 3"),
        (lambda: results.best_cells([run]), "rows: expected a row with attention, pairs, width, rate, recall, got one "
         "without attention, pairs, width, rate"),
        (lambda: results.recall(results.Cell("decay", 2, 8, 0.1, ({"recall": "0.5"},) * 2)), r"cell\['recall'\]: exp"),
        (lambda: results.best_cells([dict.fromkeys(("attention", "pairs", "width", "rate", "recall"), 1)]),
         r"rows\['attention'\]: expected one of softmax"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=words):
            call()


def test_a_table_is_written_sorted_and_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "new" / "t.csv"
    runs = [small(1), small(0, attention="decay"), small(0), small(0, pairs=10), small(0, pairs=3)]
    with joblib.parallel_config(backend="sequential"):
        assert sweep.sweep([*runs, runs[0]], path, progress=False) == 5
    rows = read_table(path)
    assert [(r["attention"], r["pairs"], r["seed"]) for r in rows] == [
        ("softmax", 2, 0), ("softmax", 2, 1), ("softmax", 3, 0), ("softmax", 10, 0), ("decay", 2, 0),
    ]  # fmt: skip
    assert all(isinstance(rows[0][name], int) for name in ("pairs", "width", "seed", "steps", "batch"))
    assert all(isinstance(rows[0][name], float) for name in ("rate", "recall", "S_1", "S_2", "support_1", "support_2"))
    text = path.read_text()
    assert text.startswith(",".join(COLUMNS) + "\nsoftmax,2,8,0,8,64,0.005,") and text.endswith("\n")
    target = sweep.write_provenance(path, "the command")
    record = json.loads(target.read_text())
    assert target == path.with_suffix(".json") and record["command"] == "the command" and record["runs"] == 5
    assert record["attention"] == ["decay", "softmax"] and record["pairs"] == [2, 3, 10] and record["steps"] == [8]
    assert set(record["versions"]) == {"python", "numpy", "torch", "joblib"}
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(text + "softmax,2,8", encoding="utf-8")
    assert read_table(path) == rows
    for line, number in (("softmax,2,8", 7), ("cosine,2,8,0,8,64,0.005,0,0,0,0,0", 7), ("softmax,2.5" + ",1" * 10, 7)):
        path.write_text(f"{text}{line}\n", encoding="utf-8")
        with pytest.raises(ValueError, match=f"path: expected 12 values in line {number} of"):
            read_table(path)


def test_what_a_sweep_takes_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for jobs in (0, True, 1.0, "2"):
        with pytest.raises(ValueError, match="jobs: expected a number of processes, -1 for all cores, or None, got"):
            sweep.sweep([small()], path, jobs=jobs)
    for call, words in (
        (lambda: sweep.sweep(small(), path), "settings: expected Settings, as `grid` returns them, got Settings"),
        (lambda: sweep.sweep([small()], path, progress="yes"), "progress: expected True or False"),
    ):
        with pytest.raises(TypeError, match=words):
            call()
    assert not path.exists() and sweep.sweep([], path, progress=False) == 0
    assert path.read_text() == ",".join(COLUMNS) + "\n"


def test_names_and_numbers_that_are_made_while_a_program_runs_count_as_well() -> None:
    made = "".join(("de", "cay"))
    cell = results.Cell(made, 2, 8, 0.1, tuple({"seed": seed} for seed in range(300)))
    assert results.by_width_and_seed([cell], "decay", len).shape == (1, 300)
    assert len(sweep.grid([made], [2], [8], range(300), [0.1])) == 300


def test_records_cannot_be_changed_by_accident() -> None:
    for record in (small(), task.draw(1, 1, np.random.default_rng(0))):
        name = dataclasses.fields(record)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, None)


def test_a_file_system_without_locks_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError("No locks available")

    monkeypatch.setattr(table.fcntl, "flock", no_locks)
    with locked(tmp_path / "t.csv") as file:
        file.write("softmax")
    assert read_table(tmp_path / "t.csv") == []
    with locked(tmp_path / "t.csv"):
        pass
    assert (tmp_path / "t.csv").read_text() == ",".join(COLUMNS) + "\n", "the cut line is gone"
