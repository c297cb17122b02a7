"""Associative recall: the task's laws, causal models, a sweep that resumes and scales out, and the shipped table."""

from __future__ import annotations

import functools
import hashlib
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
from attnmath.recall import results, task
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
