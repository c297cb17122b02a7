"""Associative recall: the task's laws, causal models, a sweep that resumes and scales out, and the shipped table."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
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

from attnlab.recall import results, task
from attnlab.recall.table import (
    ATTENTION_NAMES,
    PARAMETERS,
    RATES,
    SEEDS,
    STANDARD,
    TABLE,
    check_parameter,
)
from attnmath import sparsity

resource = pytest.importorskip("resource")
torch = pytest.importorskip(
    "torch", reason="torch is optional: install attention-checked[train] to test the experiment"
)
joblib = pytest.importorskip("joblib")
from tqdm import tqdm  # noqa: E402

from attnlab.recall import models, sweep, training  # noqa: E402
from attnlab.recall.sweep import SWEEP  # noqa: E402
from attnlab.sweeps import tables  # noqa: E402
from attnlab.sweeps.training import must_be_finite, schedule  # noqa: E402


def small(seed: int = 0, **changes) -> training.Settings:
    base = {"attention": "softmax", "parameter": 1.0, "unit": False, "pairs": 2, "head": 4, "width": 8, "steps": 8}
    return training.Settings(**base | {"seed": seed} | changes)


def model_of(attention: str, *, parameter: float = 0.5, unit: bool = False, seed: int = 1) -> models.Recaller:
    return models.Recaller(attention, parameter, 4, 8, torch.Generator().manual_seed(seed), unit=unit)


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


@pytest.mark.parametrize("pairs", [1, 2, 3, 5])
def test_the_most_frequent_value_is_right_as_often_as_draws_say(pairs: int) -> None:
    counted = np.mean([max(np.bincount(row)) for row in product(range(4), repeat=pairs)]) / pairs
    law = task.VALUES
    try:
        task.VALUES = 4  # all sequences of four values can be counted
        assert task.most_frequent(pairs) == pytest.approx(counted, rel=1e-12)
    finally:
        task.VALUES = law
    answers = task.draw(4000, pairs, np.random.default_rng(pairs)).answers
    counts = (answers[:, :, None] == np.arange(law)).sum(axis=1).max(axis=1) / pairs
    assert abs(counts.mean() - task.most_frequent(pairs)) <= 4 * counts.std() / 4000**0.5


# --- the models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("attention", ATTENTION_NAMES)
def test_models_are_causal_and_rows_normalised(attention: str, unit: bool) -> None:
    model = model_of(attention, unit=unit).double()
    tokens = torch.from_numpy(task.draw(3, 4, np.random.default_rng(0)).tokens)
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % task.KEYS
    (logits, a), (others, _) = model(tokens), model(changed)
    torch.testing.assert_close(logits[:, :-1], others[:, :-1], rtol=1e-10, atol=1e-10)
    assert not torch.allclose(logits[:, -1], others[:, -1])
    assert torch.all(a.triu(1) == 0)
    totals = a.abs().sum(-1)
    assert torch.all((totals - 1).abs() < 1e-5) or attention in {"relu^2", "identity"}
    assert torch.all(totals < 1 + 1e-9)


@pytest.mark.parametrize("unit", [False, True])
def test_an_untrained_head_attends_from_its_own_tokens(unit: bool) -> None:
    head = model_of("softmax", parameter=0.5, unit=unit).double().attention
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    q, k = x @ head.query.weight.mT, x @ head.key.weight.mT
    if unit:
        q, k = (2 * part / part.norm(dim=-1, keepdim=True) for part in (q, k))
    hidden = torch.ones(5, 5).triu(1).bool()
    expected = torch.softmax((q @ k.mT / 4).masked_fill(hidden, -torch.inf), -1)
    torch.testing.assert_close(head(x)[1], expected, rtol=1e-7, atol=1e-7)


def test_a_fixed_length_cannot_undo_the_temperature() -> None:
    free, fixed = (model_of("softmax", unit=unit).double().attention for unit in (False, True))
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    before = [head(x)[1] for head in (free, fixed)]
    with torch.no_grad():
        for head in (free, fixed):
            head.query.weight.mul_(3)
    torch.testing.assert_close(fixed(x)[1], before[1])
    assert not torch.allclose(free(x)[1], before[0], atol=1e-3)


def test_decay_has_the_articles_row() -> None:
    q, k = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(2)).double()[:, None]
    row = models.ATTENTIONS["decay"](q, k, 0.6)[0, -1]
    assert sparsity.sparsity(row.numpy()) == pytest.approx(float(sparsity.decay(0.6, 6)), rel=1e-6)


def test_all_attentions_have_equally_many_parameters() -> None:
    counts = {sum(p.numel() for p in model_of(name).parameters()) for name in models.ATTENTIONS}
    assert len(counts) == 1 and tuple(models.ATTENTIONS) == ATTENTION_NAMES
    assert set(PARAMETERS) == set(STANDARD) == set(ATTENTION_NAMES)


# --- training and measuring ----------------------------------------------------------------------


def test_a_short_training_recalls_better_than_chance() -> None:
    row = training.run(small(width=16, steps=150, rate=3e-2))
    assert row["recall"] > 3 / task.VALUES and set(TABLE.columns) == set(row) and row["device"] == "cpu"
    assert 1 <= row["support"] <= 6 and 6**-0.5 <= row["S"] <= 1 and 1 / 6 < row["target"] <= 1
    assert row["validation"] != row["recall"] and abs(row["validation"] - row["recall"]) < 0.1


@pytest.mark.parametrize("attention", ["softmax", "decay"])
def test_a_rate_at_which_training_diverges_is_named(attention) -> None:
    parameter = {"softmax": 1.0, "decay": 0.9}[attention]
    with pytest.raises(ValueError, match=r"rate: expected a learning rate at which .* finite, got 1e\+300"):
        training.run(small(attention=attention, parameter=parameter, rate=1e300))


@pytest.mark.parametrize("arguments", [(None, 0.1), (torch.nn.Linear(2, 1), 0.0), (torch.nn.Linear(2, 1), "fast")])
def test_finite_weights_are_asked_of_a_model_and_a_rate(arguments) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^(model|rate): expected"):
        must_be_finite(*arguments)


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
    rates = [schedule(step, 100) for step in range(101)]
    assert rates[:10] == pytest.approx(np.arange(1, 11) / 10) and rates[10] == 1 and rates[100] == 0
    assert (np.diff(rates[10:]) < 0).all()


# --- the sweep -----------------------------------------------------------------------------------


def test_an_interrupted_sweep_does_only_what_is_missing(tmp_path: Path, monkeypatch) -> None:
    path, runs = tmp_path / "table.csv", [small(seed) for seed in range(4)]
    done = []

    def interrupted(settings, device):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(settings)
        return training.run(settings, device)

    with pytest.raises(KeyboardInterrupt), joblib.parallel_config(backend="sequential"):
        dataclasses.replace(SWEEP, run=interrupted).carry_out(runs, path, progress=False)
    assert len(TABLE.read(path)) == 2
    path.write_text(path.read_text() + "softmax,1,False,2,4,8,3,8", encoding="utf-8")  # as if cut off within a line
    bars = []
    monkeypatch.setattr("attnlab.sweeps.runs.tqdm", lambda **options: bars.append(options) or tqdm(**options))
    assert SWEEP.carry_out(runs, path, progress=False, jobs=1) == 2
    assert (bars[0]["initial"], bars[0]["total"]) == (2, 4)
    assert SWEEP.carry_out(runs, path, progress=False, jobs=1) == 0
    assert [row["seed"] for row in TABLE.read(path)] == [0, 1, 2, 3]


def test_a_local_dask_cluster_gives_the_same_table(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    runs = [small(seed) for seed in range(3)]
    SWEEP.carry_out(runs, tmp_path / "here.csv", progress=False, jobs=1)
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        assert SWEEP.carry_out(runs, tmp_path / "cluster.csv", progress=False) == 3
    assert (tmp_path / "cluster.csv").read_text() == (tmp_path / "here.csv").read_text()


def test_the_command_runs_and_describes_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attnlab.recall", "--out", str(tmp_path / "t.csv"), "--jobs", "1"]
    choice = ["--designs", "pairs", "--attentions", "decay", "--seeds", "0", "--rates", "0.01"]
    done = subprocess.run([*command, *choice, "--steps", "4"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3 new runs in") and "run" in done.stderr
    assert (tmp_path / "t.json").is_file()
    assert json.loads((tmp_path / "t.json").read_text())["devices"] == ["cpu"]
    for choice, words in (
        (["--rates", "0"], "argument --rates: expected a number above 0, got 0"),
        (["--device", "abacus"], "device: expected"),
    ):
        wrong = subprocess.run([*command, *choice], capture_output=True, text=True, check=False)
        assert wrong.returncode == 2 and words in wrong.stderr and "Traceback" not in wrong.stderr
    nobody = subprocess.run([*command[:-1], "0"], capture_output=True, text=True, check=False)
    assert nobody.returncode == 2 and "argument --jobs" in nobody.stderr


# --- the command when something goes wrong: one line, and the next run goes on ---

FEW = ["--designs", "pairs", "--attentions", "decay", "--rates", "0.01"]


def hear_ctrl_c() -> None:
    """Undo that Ctrl-C is ignored, as it is in a process that was started in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def command(*arguments: str, **options) -> subprocess.Popen:
    line = [sys.executable, "-m", "attnlab.recall", "--jobs", "1", *FEW, *arguments]
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
    assert status in (130, -signal.SIGINT) and len(lines) == 1  # see test_commands
    assert "interrupted" in lines[0] and str(path) in lines[0] and "same command" in lines[0]
    assert 2 <= len(TABLE.read(path)) < 1500


def members(session: int) -> list[str]:
    """The processes of a session that are there."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended meanwhile
            continue
        if int(sid) == session and state != "Z":
            found.append(stat.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_ctrl_c_three_times_leaves_no_process_and_says_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    given = ("--out", str(path), "--jobs", "2", "--steps", "4", "--seeds", *map(str, range(500)))
    process = command(*given, start_new_session=True, preexec_fn=hear_ctrl_c)
    while not path.exists() or path.read_text().count("\n") < 3:
        assert process.poll() is None
        time.sleep(0.02)
    for _ in range(3):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    status, lines = last_lines(process)
    assert status in (130, -signal.SIGINT) and len(lines) == 1 and "interrupted" in lines[0]
    end = time.monotonic() + 10
    while members(process.pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert members(process.pid) == []


def test_a_full_disk_is_one_line_and_the_next_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    few = ("--out", str(path), "--steps", "2", "--seeds", *map(str, range(20)))
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    status, lines = last_lines(command(*few, preexec_fn=limit))
    assert status == 1 and len(lines) == 1 and str(path) in lines[0] and "File too large" in lines[0]
    assert 0 < len(TABLE.read(path)) < 60 and not list(tmp_path.glob("*.part"))
    runs = sweep.grid(["pairs"], ["decay"], range(20), [0.01], steps=2)
    before = len(TABLE.read(path))
    assert SWEEP.carry_out(runs, path, progress=False, jobs=1) == 60 - before and len(TABLE.read(path)) == 60


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    status, lines = last_lines(command("--out", str(tmp_path)))
    said = f"argument --out: expected a file to write, got the folder {tmp_path} (--help lists the options)"
    assert status == 2 and lines == [f"python -m attnlab.recall: {said}"]
    (tmp_path / "file").touch()
    status, lines = last_lines(command("--out", str(tmp_path / "file" / "t.csv")))
    assert status == 2 and len(lines) == 1 and f"{tmp_path / 'file'} is a file" in lines[0]


@pytest.mark.parametrize("missing", ["joblib", "torch", "tqdm"])
def test_a_missing_extra_is_named(tmp_path: Path, missing: str) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError('', name={missing!r})")
    path = os.pathsep.join([str(tmp_path), str(Path(sweep.__file__).parents[2])])
    environment = os.environ | {"PYTHONPATH": path}
    status, lines = last_lines(command("--out", str(tmp_path / "t.csv"), env=environment))
    assert status == 1 and len(lines) == 1 and f"{missing} is not installed" in lines[0] and "[train]" in lines[0]
    help_alone = subprocess.run([sys.executable, "-m", "attnlab.recall", "--help"], env=environment, check=True,
                                capture_output=True, text=True)  # fmt: skip
    assert "1710 runs" in help_alone.stdout


def test_two_sweeps_into_one_table_do_not_repeat_a_run(tmp_path: Path) -> None:
    path, runs = tmp_path / "t.csv", [small(seed) for seed in range(2)]
    with TABLE.locked(path), pytest.raises(ValueError, match="path: expected a table that no other sweep writes"):
        SWEEP.carry_out(runs, path, progress=False, jobs=1)
    assert SWEEP.carry_out(runs, path, progress=False, jobs=1) == 2
    twice = path.read_text()
    path.write_text(twice + "".join(twice.splitlines(keepends=True)[1:]))
    assert len(TABLE.read(path)) == 2, "a run that occurs twice counts once"
    assert SWEEP.carry_out([*runs, small(2)], path, progress=False, jobs=1) == 1
    assert len(path.read_text().splitlines()) == 4


def test_a_table_replaced_while_it_is_opened_is_not_written(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "t.csv"
    with TABLE.locked(path):
        pass
    other, opened = tmp_path / "other.csv", Path.open
    other.write_text(path.read_text())

    def replaced(self, *arguments, **options):
        file = opened(self, *arguments, **options)
        other.replace(path)
        return file

    monkeypatch.setattr(Path, "open", replaced)
    with pytest.raises(ValueError, match="no other sweep"), TABLE.locked(path):
        pass


# --- the shipped table ---------------------------------------------------------------------------


def test_the_shipped_table_is_complete() -> None:
    rows, record = results.load_results(), results.load_provenance()
    assert len(rows) == record["runs"] and set(record["attention"]) == set(ATTENTION_NAMES)
    stored = resources.files("attnlab") / "data" / "recall.csv"
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == record["sha256"]
    assert record["command"].startswith("python -m attnlab.recall") and "torch" in record["versions"]
    assert record["devices"] == ["cpu"] and record["seed"] == list(SEEDS) and record["rate"] == list(RATES)
    assert {sweep.Settings(**{k: row[k] for k in TABLE.settings}) for row in rows} == set(sweep.grid())


def test_best_cells_choose_the_rate_by_validation() -> None:
    base = {"attention": "softmax", "parameter": 1.0, "unit": True, "pairs": 2, "head": 4, "width": 8}
    values = ((0, 0.1, 0.25, 0.9), (1, 0.1, 0.5, 0.7), (0, 0.2, 0.25, 1.0), (0, 0.05, 0.375, 0.5))
    rows = [base | {"seed": s, "rate": r, "validation": v, "recall": test} for s, r, v, test in values]
    (cell,) = results.best_cells(rows[:3])
    assert cell.rate == 0.1 and len(cell.runs) == 2 and results.recall(cell).value == pytest.approx(0.8)
    assert results.best_cells(rows)[0].rate == 0.05, "of equal rates the smallest"
    with pytest.raises(ValueError, match=r"rows\['validation'\]: expected a share of right answers, got nan"):
        results.best_cells([rows[0] | {"validation": float("nan")}])
    two = results.best_cells([*rows, rows[0] | {"unit": False}])
    assert len(two) == 2 and results.choose(two, unit=False)[0].rate == 0.1


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
        (lambda: small(parameter=0.0), ValueError, "parameter: expected a number above 0 for softmax, got 0"),
        (
            lambda: small(attention="decay", parameter=1.5),
            ValueError,
            "parameter: expected a rate of decay of at most 1",
        ),
        (lambda: small(parameter="1"), TypeError, "parameter: expected a number"),
        (lambda: small(unit="no"), TypeError, "unit: expected True or False"),
        (lambda: model_of("cosine"), ValueError, "attention: expected one of"),
        (
            lambda: training.run(small(), "abacus"),
            ValueError,
            "device: expected one that torch finds here, such as cpu",
        ),
        (lambda: training.run(small(), 3), TypeError, "device: expected"),
        (lambda: SWEEP.carry_out([], "t.csv", device="abacus"), ValueError, "device: expected one that torch finds"),
        (lambda: SWEEP.carry_out([1], "t.csv"), TypeError, "settings: expected an attnlab Settings, got int"),
        (lambda: SWEEP.carry_out([], 3), TypeError, "path: expected a path"),
        (lambda: SWEEP.carry_out([], "t.csv", jobs=0), ValueError, "jobs: expected a number of processes"),
        (lambda: training.run(None), TypeError, "settings: expected an attnlab Settings"),
        (lambda: training.measure(None, small()), TypeError, "model: expected an attnlab Recaller"),
        (lambda: models.Recaller("decay", 0.5, 4, 8, None), TypeError, "generator: expected an? torch Generator"),
        (lambda: sweep.grid(designs=("depth",)), ValueError, "designs: expected one of concentration, width, pairs"),
        (lambda: results.best_cells([{}]), ValueError, "rows: expected a row with attention"),
        (lambda: sweep.grid(designs=()), ValueError, "designs: expected at least one value"),
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
    [
        ("a,b\n", "expected a table"),
        ("\x00\x01\n", "expected a table"),
        (",".join(TABLE.columns) + "\nx,1\n", "in line 2"),
    ],
)
def test_a_foreign_table_is_refused_and_left_alone(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        SWEEP.carry_out([small()], path, progress=False, jobs=1)
    assert path.read_text(encoding="utf-8") == text


# --- settings, schedules and tables, value by value ------------------------------------------------


def test_settings_and_grids_have_the_values_that_the_table_names() -> None:
    made = training.Settings("decay", 0.5, True, 2, 4, 8, 0)
    assert (made.steps, made.batch, made.rate) == (300, 32, 0.024)
    assert small(pairs=64).pairs == 64 and small(attention="decay", parameter=1).parameter == 1
    assert small(attention="relu^2", parameter=-3.0).parameter == -3
    for name in ("pairs", "head", "width", "steps", "batch"):
        assert getattr(small(**{name: 1}), name) == 1
        with pytest.raises(ValueError, match=f"{name}: expected a positive integer, got 0"):
            small(**{name: 0})
    with pytest.raises(ValueError, match="pairs: expected at most 64, the number of keys, got 65"):
        small(pairs=65)
    assert (task.KEYS, task.VALUES) == (64, 16)
    assert task.draw(1, 64, np.random.default_rng(0)).tokens.shape == (1, 192)
    for change, words in (
        ({"attentions": "decay"}, "attentions: expected a list of values, got str 'decay'"),
        ({"rates": {0.1}}, "rates: expected a list of values, got set {0.1}"),
        ({"designs": ("pairs", "pairs")}, "designs: expected at least one value, each once, got"),
        ({"rates": (0.0,)}, "rates: expected a positive finite number"),
        ({"seeds": (-1,)}, "seeds: expected an integer of at least 0"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            sweep.grid(**change)


def test_the_designs_vary_one_thing_at_a_time() -> None:
    runs = sweep.grid(["concentration"], ["softmax", "decay"], [0, 1], [0.1], steps=3, batch=5)
    assert [(s.attention, s.parameter) for s in runs[::2]] == [
        (kind, value) for kind in ("softmax", "decay") for value in PARAMETERS[kind][1]
    ]
    assert [s.seed for s in runs] == [0, 1] * 10
    assert {(s.unit, s.pairs, s.head, s.width, s.rate, s.steps, s.batch) for s in runs} == {
        (True, 16, 8, 32, 0.1, 3, 5)
    }
    runs = sweep.grid(["width"], seeds=[0], rates=[0.1])
    sizes = [(4, 32), (8, 32), (16, 32), (32, 32), (8, 16), (8, 64)]
    assert [(s.attention, s.head, s.width) for s in runs] == [(k, *size) for k in ATTENTION_NAMES[:4] for size in sizes]
    assert {(s.unit, s.pairs) for s in runs} == {(False, 16)} and all(
        s.parameter == STANDARD[s.attention] for s in runs
    )
    runs = sweep.grid(["pairs"], seeds=[0], rates=[0.1])
    assert [(s.attention, s.pairs) for s in runs] == list(product(ATTENTION_NAMES, (4, 8, 16)))
    assert {(s.unit, s.head, s.width) for s in runs} == {(False, 8, 32)}
    assert len(sweep.grid()) == len(set(sweep.grid())) == 1710


@pytest.mark.parametrize(("steps", "warm"), [(1, 1), (5, 1), (10, 1), (19, 1), (20, 2), (1000, 100)])
def test_the_rate_warms_up_over_a_tenth_of_the_steps(steps: int, warm: int) -> None:
    rates = [schedule(step, steps) for step in range(steps + 1)]
    assert rates[:warm] == pytest.approx([(k + 1) / warm for k in range(warm)])
    rest = max(1, steps - warm)
    expected = [(1 + np.cos(np.pi * (k - warm) / rest)) / 2 for k in range(warm, steps + 1)]
    assert rates[warm:] == pytest.approx(expected)


def test_training_is_adamw_on_seeded_sequences() -> None:
    settings = small(steps=12, batch=3, rate=0.02, seed=5)
    model = models.Recaller("softmax", 1.0, 4, 8, torch.Generator().manual_seed(5))
    rng = np.random.default_rng([5, 0, 2])
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
    for step in range(12):
        for group in optimiser.param_groups:
            group["lr"] = 0.02 * schedule(step, 12)
        batch = task.draw(3, 2, rng)
        logits = model(torch.from_numpy(batch.tokens))[0][:, 4:]
        loss = torch.nn.functional.cross_entropy(logits.reshape(6, 16), torch.from_numpy(batch.answers).reshape(6))
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    for ours, theirs in zip(training.train(settings).parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("sequences", "stream"), [((), {}), ((7,), {"stream": 1})])
def test_measures_are_those_of_fresh_sequences(sequences: tuple[int, ...], stream: dict[str, int]) -> None:
    settings = small(seed=5)
    model = training.train(settings)
    batch = task.draw(*(sequences or (512,)), 2, np.random.default_rng([5, stream.get("stream", 2), 2]))
    with torch.no_grad():
        logits, a = model(torch.from_numpy(batch.tokens))
    found = training.measure(model, settings, *sequences, **stream)
    right = logits[:, 4:].argmax(-1).numpy() == batch.answers
    assert found["recall"] == pytest.approx(right.mean()) and set(found) == {"recall", "target", "S", "support"}
    S = [sparsity.sparsity(row) for row in (a[:, 4, :5].double().numpy(), a[:, 5, :6].double().numpy())]
    assert found["S"] == pytest.approx(np.concatenate(S).mean(), rel=1e-9)
    assert found["support"] == pytest.approx(np.concatenate([5 * S[0] ** 2, 6 * S[1] ** 2]).mean(), rel=1e-9)
    on_answers = [
        float(a[row, 4 + query, list(batch.tokens[row]).index(batch.tokens[row, 4 + query]) + 1])
        for row in range(len(batch.tokens))
        for query in range(2)
    ]
    assert found["target"] == pytest.approx(np.mean(on_answers), rel=1e-6)


def test_weights_before_training_do_not_depend_on_the_attention() -> None:
    one, other = (training.build(small(seed=3, attention=name, parameter=0.5)) for name in ("softmax", "decay"))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one.embed.weight, training.build(small(seed=4)).embed.weight)


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


@pytest.mark.parametrize("parameter", [0.3, 1.0])
def test_every_attention_is_its_formula(parameter: float) -> None:
    q, k = torch.randn(2, 3, 5, 4, generator=torch.Generator().manual_seed(2)).double()
    s = np.einsum("bid,bjd->bij", q.numpy(), k.numpy()) / 2
    phi = [np.where(a.numpy() > 0, a.numpy() + 1, np.exp(a.numpy())) ** parameter for a in (q, k)]
    past = np.tril(np.ones((5, 5)))
    top = np.where(past, s, -np.inf).max(axis=-1, keepdims=True)
    distance = np.arange(5)[:, None] - np.arange(5)
    expected = {
        "softmax": np.exp(parameter * (s - top)),
        "relu^2": np.where(s > -parameter, s + parameter, 0) ** 2,
        "elu+1": phi[0] @ phi[1].swapaxes(-1, -2),
        "identity": np.sign(s) * np.abs(s) ** parameter,
        "decay": np.broadcast_to(parameter ** np.maximum(distance, 0), s.shape),
    }
    for name, weigh in models.ATTENTIONS.items():
        found = weigh(q, k, parameter).numpy()
        np.testing.assert_allclose(found * past, expected[name] * past, rtol=1e-6, err_msg=name)
    huge = models.ATTENTIONS["softmax"](1e200 * q[:, :, :1], k[:, :, :1], parameter)
    assert torch.isfinite(huge).all() and huge.max() == 1


def test_a_model_mixes_with_the_token_before_and_keeps_its_input() -> None:
    model = models.Recaller("identity", 1.0, 3, 4, torch.Generator().manual_seed(4)).double()
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64))
    tokens = torch.from_numpy(task.draw(2, 3, np.random.default_rng(0)).tokens)

    def norm(x, part):
        return torch.nn.functional.layer_norm(x, (4,), part.weight, part.bias)

    x, head = model.embed.weight[tokens], model.attention
    normed = norm(x, model.norm)
    before = torch.cat([torch.zeros(2, 1, 4, dtype=torch.float64), normed[:, :-1]], dim=1)
    parts = (head.query, head.key, head.value)
    q, k, v = ((head.now[i] * normed + head.before[i] * before) @ part.weight.T for i, part in enumerate(parts))
    a = (q @ k.mT / 3**0.5).tril()
    a = a / a.abs().sum(-1, keepdim=True)
    y = x + (a @ v) @ head.out.weight.T
    up, _, down = model.forward_part
    y = y + torch.nn.functional.gelu(norm(y, model.norm_after) @ up.weight.T + up.bias) @ down.weight.T + down.bias
    found, weights = model(tokens)
    expected = norm(y, model.norm_read) @ model.read.weight.T + model.read.bias
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(weights, a, rtol=1e-6, atol=1e-8)
    assert up.weight.shape == (8, 4) and down.weight.shape == (4, 8) and head.query.weight.shape == (3, 4)
    fresh = model_of("decay").attention
    assert fresh.parameter == 0.5 and (fresh.now == 1).all() and (fresh.before == 0).all()


def test_weights_are_gaussian_with_the_variance_of_their_inputs() -> None:
    model = models.Recaller("softmax", 1.0, 32, 64, torch.Generator().manual_seed(0))
    assert model.attention.query.weight.shape == (32, 64) and model.attention.out.weight.shape == (64, 64)
    assert model.embed.weight.shape == (80, 64) and model.read.weight.shape == (16, 64)
    for part in model.modules():
        if isinstance(part, torch.nn.Linear):
            assert part.weight.std().item() == pytest.approx(part.in_features**-0.5, rel=0.1)
            assert part.bias is None or (part.bias == 0).all()
    assert model.embed.weight.std().item() == pytest.approx(1, rel=0.1)
    again = models.Recaller("softmax", 1.0, 32, 64, torch.Generator().manual_seed(0))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


# --- results, value by value -----------------------------------------------------------------------


def cell_of(attention: str = "decay", parameter: float = 0.9, head: int = 4, runs=()) -> results.Cell:
    return results.Cell(attention, parameter, True, 2, head, 8, 0.1, tuple(runs))


def test_results_are_in_the_order_of_cells_and_seeds() -> None:
    cells = [cell_of(head=head, runs=({"seed": s, "S": head + s / 10} for s in (2, 0))) for head in (16, 8)]
    assert results.by_seed(cells, "S").tolist() == [[16.0, 16.2], [8.0, 8.2]]
    assert np.isnan(results.by_seed([cell_of(runs=[{"seed": 0, "S": np.nan}])], "S")).all()
    mixed = [cell_of("decay", 0.9), cell_of("softmax", 4.0), cell_of("softmax", 0.5, 8), cell_of("softmax", 0.5)]
    assert results.choose(mixed) == [mixed[3], mixed[2], mixed[1], mixed[0]]
    assert results.choose(mixed, attention="softmax", head=4) == [mixed[3], mixed[1]]
    low, high = results.interval(results.Estimate(0.5, 0.1), 2, 0.5)
    assert (low, high) == pytest.approx((0.4, 0.6))  # the upper quartile of Cauchy's law is 1
    assert results.interval(results.Estimate(0.5, 0.1), 3) == results.interval(results.Estimate(0.5, 0.1), 3, 0.95)
    two = results.recall(cell_of(runs=({"recall": 0.25}, {"recall": 0.75})))
    assert (two.value, two.standard_error) == (0.5, 0.25)


def test_results_that_lack_something_are_named() -> None:
    run = {"seed": 0, "recall": 0.5}
    cell = cell_of(runs=[run])
    full = {"attention": "decay", "parameter": 0.9, "unit": True, "pairs": 2, "head": 4, "width": 8, "rate": 0.1,
            "validation": 0.5}  # fmt: skip
    for call, words in (
        (lambda: results.recall(cell), "cell: expected at least 2 runs, got 1: one has no standard error"),
        (lambda: results.recall(3), "cell: expected an attnlab Cell, got int"),
        (lambda: results.by_seed([cell, cell_of(runs=[{"seed": 1, "recall": 0.5}])], "recall"),
         r"cells: expected the same seeds in every cell, got \[\[0\], \[1\]\]"),
        (lambda: results.by_seed("ab", "S"), "cells: expected a list of Cell, got str"),
        (lambda: results.by_seed([], "S"), "cells: expected at least one Cell, got none"),
        (lambda: results.by_seed([cell], "loss"), "quantity: expected one of validation, recall"),
        (lambda: results.by_seed([cell], "S"), "cells: expected a row with seed, S, got one without S"),
        (lambda: results.choose([cell], attention="cosine"), "attention: expected one of softmax"),
        (lambda: results.choose([cell], unit="no"), "unit: expected True or False"),
        (lambda: results.choose([cell], head="4"), "head: expected a number"),
        (lambda: results.choose([cell], head=5, unit=True), "head, unit: expected the settings of at least one of the"),
        (lambda: results.choose([run]), "cells: expected an attnlab Cell, got dict"),
        (lambda: results.interval(results.Estimate(0.5, 0.1), 3, 0.0), "coverage: expected a number between 0 and 1"),
        (lambda: results.best_cells("ab"), "rows: expected rows of the table, got str"),
        (lambda: results.best_cells([3]), "rows: expected a row of the table, got int 3"),
        (lambda: results.best_cells([run]), "rows: expected a row with attention, parameter, unit, pairs, head, width, "
         "rate, validation, got one without attention, parameter, unit, pairs, head, width, rate, validation"),
        (lambda: results.recall(cell_of(runs=({"recall": "0.5"},) * 2)), r"cell\['recall'\]: exp"),
        (lambda: results.best_cells([full | {"attention": "cosine"}]), r"rows\['attention'\]: expected one of softmax"),
        (lambda: results.best_cells([full | {"unit": "no"}]), r"rows\['unit'\]: expected True or False"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=words):
            call()


def test_a_table_is_written_sorted_and_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "new" / "t.csv"
    runs = [small(1), small(0, attention="decay"), small(0), small(0, pairs=10), small(0, pairs=3),
            small(0, parameter=0.5), small(0, unit=True)]  # fmt: skip
    with joblib.parallel_config(backend="sequential"):
        assert SWEEP.carry_out([*runs, runs[0]], path, progress=False) == 7
    rows = TABLE.read(path)
    assert [(r["attention"], r["parameter"], r["unit"], r["pairs"], r["seed"]) for r in rows] == [
        ("softmax", 0.5, False, 2, 0), ("softmax", 1.0, False, 2, 0), ("softmax", 1.0, False, 2, 1),
        ("softmax", 1.0, False, 3, 0), ("softmax", 1.0, False, 10, 0), ("softmax", 1.0, True, 2, 0),
        ("decay", 1.0, False, 2, 0),
    ]  # fmt: skip
    assert all(isinstance(rows[0][name], int) for name in ("pairs", "head", "width", "seed", "steps", "batch"))
    assert all(isinstance(rows[0][name], float) for name in ("parameter", "rate", *TABLE.measures))
    text = path.read_text()
    assert text.startswith(",".join(TABLE.columns) + "\nsoftmax,0.5,False,2,4,8,0,8,32,0.024,") and text.endswith(
        ",cpu\n"
    )
    target = SWEEP.write_provenance(path, "the command")
    record = json.loads(target.read_text())
    assert target == path.with_suffix(".json") and record["command"] == "the command" and record["runs"] == 7
    assert record["attention"] == ["decay", "softmax"] and record["pairs"] == [2, 3, 10] and record["steps"] == [8]
    assert set(record["versions"]) == {"python", "numpy", "torch", "joblib"} and record["devices"] == ["cpu"]
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(text + "softmax,2,8", encoding="utf-8")
    assert TABLE.read(path) == rows
    whole = text.splitlines()[1]
    for line in ("softmax,2,8", whole.replace("softmax", "cosine"), whole.replace("False", "no"),
                 whole.replace(",2,4,", ",2.5,4,"), whole.removesuffix(",cpu")):  # fmt: skip
        path.write_text(f"{text}{line}\n", encoding="utf-8")
        with pytest.raises(ValueError, match="path: expected 16 values in line 9 of"):
            TABLE.read(path)


def test_what_a_sweep_takes_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for jobs in (0, True, 1.0, "2"):
        with pytest.raises(ValueError, match="jobs: expected a number of processes, -1 for all cores, or None, got"):
            SWEEP.carry_out([small()], path, jobs=jobs)
    for call, words in (
        (lambda: SWEEP.carry_out(small(), path), "settings: expected Settings, as `grid` returns them, got Settings"),
        (lambda: SWEEP.carry_out([small()], path, progress="yes"), "progress: expected True or False"),
    ):
        with pytest.raises(TypeError, match=words):
            call()
    assert not path.exists() and SWEEP.carry_out([], path, progress=False) == 0
    assert path.read_text() == ",".join(TABLE.columns) + "\n"


def test_names_and_numbers_that_are_made_while_a_program_runs_count_as_well() -> None:
    made = "".join(("de", "cay"))
    cell = cell_of(made, runs=({"seed": seed, "S": 0.5} for seed in range(300)))
    assert results.by_seed(results.choose([cell], attention="decay"), "S").shape == (1, 300)
    assert len(sweep.grid(["pairs"], [made], range(300), [0.1])) == 900
    assert len(sweep.grid(["width"], seeds=[0], rates=[0.1], attentions=[made, "softmax"])) == 6


def test_records_cannot_be_changed_by_accident() -> None:
    for record in (small(), task.draw(1, 1, np.random.default_rng(0))):
        name = dataclasses.fields(record)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, None)


def test_a_file_system_without_locks_serves_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError("No locks available")

    monkeypatch.setattr(tables.fcntl, "flock", no_locks)
    with TABLE.locked(tmp_path / "t.csv") as file:
        file.write("softmax")
    assert TABLE.read(tmp_path / "t.csv") == []
    with TABLE.locked(tmp_path / "t.csv"):
        pass
    assert (tmp_path / "t.csv").read_text() == ",".join(TABLE.columns) + "\n", "the cut line is gone"


@pytest.mark.parametrize("module", ["recall", "translation"])
def test_a_table_is_not_overwritten_by_its_record(module: str, tmp_path: Path) -> None:
    """The record of NAME.csv is NAME.json, so that a table of this name would be lost."""
    path = tmp_path / "runs.json"
    command = [sys.executable, "-m", f"attnlab.{module}", "--out", str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 2 and f"got {path}, its record" in said.stderr and said.stderr.count("\n") == 1
    with pytest.raises(ValueError, match="path: expected a table such as .*runs.csv, got .*runs.json"):
        SWEEP.write_provenance(path, "")
    with pytest.raises(ValueError, match="path: expected a table such as .*runs.csv, got .*runs.json"):
        SWEEP.carry_out([], path)


def test_a_choice_without_a_run_is_no_success(tmp_path: Path) -> None:
    line = ["--designs", "width", "--attentions", "decay", "--out", str(tmp_path / "r.csv")]
    said = subprocess.run([sys.executable, "-m", "attnlab.recall", *line], capture_output=True, text=True, check=False)
    assert said.returncode == 2 and "expected options that give at least one run" in said.stderr
    assert not list(tmp_path.iterdir())


def test_a_setting_of_many_digits_is_found_again(tmp_path: Path) -> None:
    close = [dataclasses.replace(small(0), rate=rate) for rate in (0.0123456789, 0.0123456999)]
    assert SWEEP.carry_out(close, tmp_path / "t.csv", progress=False, jobs=1) == 2
    assert SWEEP.carry_out(close, tmp_path / "t.csv", progress=False, jobs=1) == 0
    assert len(TABLE.read(tmp_path / "t.csv")) == 2


@pytest.mark.parametrize("parameter", [math.nan, math.inf])
def test_a_parameter_is_finite(parameter: float) -> None:
    with pytest.raises(ValueError, match="parameter: expected"):
        check_parameter("decay", parameter)


@pytest.mark.parametrize("device", ["meta", "hpu"])
def test_a_device_without_numbers_is_named(device: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"device: expected one that torch finds here, such as cpu, got '{device}'"):
        SWEEP.carry_out([small(0)], tmp_path / "t.csv", progress=False, jobs=1, device=device)
    assert not (tmp_path / "t.csv").exists()
