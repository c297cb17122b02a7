"""The comparison with public implementations, without the packages: its numbers, its table, its command."""

from __future__ import annotations

import hashlib
import json
import math
import sys
import types
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from backends import torch_or_skip

from attnlab.experiments import public_adapters, public_measures
from attnlab.experiments import public_implementations as comparison
from attnlab.experiments.public_adapters import METHODS, Method
from attnlab.experiments.public_implementations import LEVEL, RACE, TIMED, Task
from attnlab.experiments.public_measures import GROUPS, INPUTS, Number
from attnlab.heads import load_decoders, load_heads, load_pretrained
from attnmath.operator.attention import attention_weights

MISSING = (
    'performer-pytorch is not installed; it comes with the extra "compare": pip install "attention-checked[compare]"'
)


def softmax_of(scores: np.ndarray) -> np.ndarray:
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def exact(n: int, d: int, m: int, seed: int, causal: bool):
    def call(Q, K, V):
        S = Q.astype(float) @ K.T / math.sqrt(d)
        if causal:
            S[~np.tril(np.ones((n, n), bool))] = -np.inf
        return (softmax_of(S) @ V).astype(np.float32)

    return call


def leaks(n: int, d: int, m: int, seed: int, causal: bool):
    """Exact attention without a mask, whatever it is asked."""
    return exact(n, d, m, seed, False)


def noisy(n: int, d: int, m: int, seed: int, causal: bool):
    """Half of exact attention, and noise that falls with m."""
    noise = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    return lambda Q, K, V: exact(n, d, m, seed, causal)(Q, K, V) / 2 + noise / m**0.5


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "exact", Method("exact", "", "", True, True, exact))
    monkeypatch.setitem(METHODS, "narrow", Method("narrow", "", "", True, False, exact))
    monkeypatch.setitem(METHODS, "leaks", Method("leaks", "", "window", True, True, leaks))
    monkeypatch.setitem(METHODS, "noisy", Method("noisy", "", "features", True, False, noisy))


# Inputs ------------------------------------------------------------------------------------------------------------


def test_inputs_are_the_trained_head_over_and_over_and_gaussian_ones_of_its_norms() -> None:
    heads = load_heads("passage")
    Q, K, V = public_measures.inputs("trained", heads.n + 7)
    assert Q.dtype == K.dtype == V.dtype == np.float32 and Q.shape == K.shape == V.shape == (heads.n + 7, 32)
    np.testing.assert_array_equal(Q[: heads.n], heads.Q[5, 11].astype(np.float32))
    np.testing.assert_array_equal(K[heads.n :], K[:7])
    for kind in ("trained", "gaussian"):
        whole, half = public_measures.inputs(kind, 9), public_measures.inputs(f"{kind}, half", 9)
        np.testing.assert_array_equal(half.Q, whole.Q / 2)
        np.testing.assert_array_equal(half.K, whole.K / 2)
        np.testing.assert_array_equal(half.V, whole.V)
    Q = public_measures.inputs("gaussian", 4000).Q
    lengths = np.linalg.norm(Q, axis=1) / 64**0.25
    trained = np.linalg.norm(heads.Q, axis=-1).ravel() / 32**0.25
    assert np.quantile(lengths, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(trained, [0.1, 0.5, 0.9]), rel=0.05)
    nearest = np.abs(np.sort(trained)[np.searchsorted(np.sort(trained), lengths.astype(float)).clip(1) - 1] - lengths)
    assert np.quantile(nearest, 0.9) < 1e-2
    assert not np.array_equal(public_measures.inputs("gaussian", 9, 1).Q, public_measures.inputs("gaussian", 9).Q)


def test_inputs_name_what_they_cannot_use() -> None:
    with pytest.raises(ValueError, match="kind: expected one of trained"):
        public_measures.inputs("other", 3)
    with pytest.raises(ValueError, match="n: expected a positive integer"):
        public_measures.inputs("trained", 0)


def test_every_head_at_hand_has_inputs_of_its_own() -> None:
    heads, decoders = load_heads("passage"), load_decoders()
    for index in ((0, 0), (5, 3)):
        Q, K, V = public_measures.inputs("encoder {}.{}".format(*index), heads.n)
        np.testing.assert_array_equal(Q, heads.Q[index].astype(np.float32))
        half = public_measures.inputs("encoder {}.{}, half".format(*index), heads.n)
        np.testing.assert_array_equal(half.K, K / 2)
        np.testing.assert_array_equal(half.V, V)
    K = public_measures.inputs("decoders 3.1.2", decoders.n).K
    np.testing.assert_array_equal(K, decoders.K[3, 1, 2].astype(np.float32))
    names = [name for group in GROUPS for name in public_measures.heads_of(group)]
    numbers = {"encoder": 72, "decoders": 64, "pretrained": 90}
    assert len(set(names)) == 2 * sum(numbers.values())
    groups = [public_measures.group_of(name) for name in names]
    assert groups == [group for group in GROUPS for _ in range(numbers[group.partition(",")[0]])]
    assert len({public_measures.inputs(name, 3).V.tobytes() for name in names}) == sum(numbers.values())
    large = load_pretrained("passage")
    Q, K, _ = public_measures.inputs("pretrained 7.2, half", large.n)
    np.testing.assert_array_equal(Q, (large.Q[7, 6] / 2).astype(np.float32))
    np.testing.assert_array_equal(2 * K, large.K[7, 8].astype(np.float32))


def test_one_half_of_the_heads_chooses_and_the_other_judges() -> None:
    for group in GROUPS:
        names = public_measures.heads_of(group)
        assert sum(map(public_measures.choosing, names)) == len(names) / 2
    assert not any(map(public_measures.choosing, INPUTS))
    METHODS["exact"] = Method("exact", "", "", True, True, exact)
    try:
        judged = public_measures.head_errors("exact", "decoders", 20, 0, True, 1, judged=True)
        every = public_measures.head_errors("exact", "decoders", 20, 0, True, 1)
    finally:
        del METHODS["exact"]
    assert set(judged) == {name for name in every if not public_measures.choosing(name)}
    assert max(number.value for number in every.values()) < 1e-6


def test_the_mean_of_the_values_is_the_null() -> None:
    Q, K, V = public_measures.inputs("trained", 200)
    P = attention_weights(Q.astype(float), K.astype(float))
    expected = np.linalg.norm(V.mean(axis=0) - P @ V) / np.linalg.norm(P @ V)
    assert public_measures.mean_of_values("trained", 200) == pytest.approx(expected, rel=1e-6)
    expected = np.linalg.norm(1 / 200 - P) / np.linalg.norm(P)
    assert public_measures.mean_of_values("trained", 200, matrix=True) == pytest.approx(expected, rel=1e-6)


# Measurements, with fake methods -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize("causal", [False, True])
def test_exact_attention_has_no_error_and_no_bias(causal: bool) -> None:
    for method in ("exact", "narrow"):
        found = public_measures.output_error(method, "gaussian", 300, 0, causal, 4)["error"]
        assert found.value < 1e-6 and found.standard_error == 0
        matrix = public_measures.matrix_error(method, "gaussian, half", 100, 0, causal, 4)
        assert matrix["matrix error"].value < 1e-6
        assert matrix["contrast"].value == pytest.approx(1, abs=1e-6)
        assert matrix["row sum"].value == pytest.approx(1, abs=1e-6)


@pytest.mark.usefixtures("fakes")
def test_noise_and_bias_are_found_with_their_standard_errors() -> None:
    few, many = (public_measures.output_error("noisy", "trained", 64, m, False, 8)["error"] for m in (100, 10**8))
    assert few.value > many.value == pytest.approx(0.5, abs=1e-3)
    assert few.standard_error > many.standard_error > 0
    matrix = public_measures.matrix_error("noisy", "trained", 64, 10**10, False, 8)
    assert matrix["contrast"].value == pytest.approx(0.5, abs=0.02)
    assert matrix["row sum"].value == pytest.approx(0.5, abs=0.02)


@pytest.mark.usefixtures("fakes")
def test_equal_weights_have_no_contrast_and_a_half_of_exact_ones_half_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a causal form the contrast is that beyond equal weights on the keys that a query sees."""

    def half(n: int, d: int, m: int, seed: int, causal: bool):
        seen = np.tri(n) if causal else np.ones((n, n))
        equal = seen / seen.sum(axis=1, keepdims=True)
        return lambda Q, K, V: (exact(n, d, m, seed, causal)(Q, K, V) * m + equal @ V * (2 - m)) / 2

    monkeypatch.setitem(METHODS, "half", Method("half", "", "", True, True, half))
    for group in ("encoder", "pretrained"):
        form = public_measures.causal(group)
        for m in (0, 1, 2):
            found = public_measures.head_contrasts("half", group, 20, m, form, 1)
            assert set(found) == set(public_measures.heads_of(group))
            np.testing.assert_allclose([number.value for number in found.values()], m / 2, atol=1e-4)


@pytest.mark.usefixtures("fakes")
def test_the_future_changes_what_is_not_causal() -> None:
    assert public_measures.future("exact", "trained", 50, 0)["future"].value == 0
    assert public_measures.future("leaks", "trained", 50, 0)["future"].value > 0.01


@pytest.mark.usefixtures("fakes")
def test_the_first_query_is_left_out_of_causal_errors_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that is wrong about the first token alone has a causal error of 0."""

    def wrong_at_first(n: int, d: int, m: int, seed: int, causal: bool):
        def call(Q, K, V):
            out = exact(n, d, m, seed, causal)(Q, K, V)
            out[0] += 1
            return out

        return call

    monkeypatch.setitem(METHODS, "wrong", Method("wrong", "", "", True, True, wrong_at_first))
    whole, causal = (public_measures.output_error("wrong", TIMED, 300, 0, form, 1)["error"] for form in (False, True))
    assert causal.value < 1e-6 < 0.05 < whole.value


def test_the_mean_of_the_values_so_far_is_the_causal_null() -> None:
    Q, K, V = (a.astype(float) for a in public_measures.inputs(TIMED, 200))
    rows = np.arange(1, 200)
    P = np.stack([np.pad(attention_weights(Q[[i]], K[: i + 1])[0], (0, 199 - i)) for i in rows])
    so_far = (np.cumsum(V, axis=0) / np.arange(1, 201)[:, None])[rows]
    expected = np.linalg.norm(so_far - P @ V) / np.linalg.norm(P @ V)
    assert public_measures.mean_of_values(TIMED, 200, causal=True) == pytest.approx(expected, rel=1e-6)
    equal = np.tril(np.ones((200, 200)))[rows] / (rows[:, None] + 1)
    expected = np.linalg.norm(equal - P) / np.linalg.norm(P)
    assert public_measures.mean_of_values(TIMED, 200, matrix=True, causal=True) == pytest.approx(expected, rel=1e-6)


def neighbours(n: int, d: int, m: int, seed: int, causal: bool):
    """The mean of the values of the m tokens of a query's block."""
    return lambda Q, K, V: np.repeat(V.reshape(n // m, m, -1).mean(axis=1), m, axis=0)


@pytest.mark.usefixtures("fakes")
def test_the_order_of_the_tokens_does_not_matter_to_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of all tokens the order is of no account, and the error is that of the mean of the values."""
    assert public_measures.shuffled_error("exact", TIMED, 96, 0, 4)["error shuffled"].value < 1e-6
    monkeypatch.setitem(METHODS, "blocks", Method("blocks", "", "window", True, False, neighbours))
    one = public_measures.shuffled_error("blocks", TIMED, 96, 96, 4)["error shuffled"]
    assert one.value == pytest.approx(public_measures.mean_of_values(TIMED, 96), rel=1e-5)


def in_order_only(n: int, d: int, m: int, seed: int, causal: bool):
    """Exact attention if the tokens come in the order of the inputs, and zeros otherwise."""
    first = public_measures.inputs(TIMED, n).Q
    return lambda Q, K, V: exact(n, d, m, seed, causal)(Q, K, V) * np.array_equal(Q, first)


def test_the_tokens_are_shuffled_and_a_standard_error_is_over_the_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "in order", Method("in order", "", "window", True, False, in_order_only))
    assert public_measures.output_error("in order", TIMED, 96, 8, False, 1)["error"].value < 1e-6
    assert public_measures.shuffled_error("in order", TIMED, 96, 8, 4)["error shuffled"] == Number(1.0, 0.0)
    monkeypatch.setitem(METHODS, "blocks", Method("blocks", "", "window", True, False, neighbours))
    assert public_measures.shuffled_error("blocks", TIMED, 96, 8, 4)["error shuffled"].standard_error > 0.01


@pytest.mark.parametrize("shared", [False, True])
def test_the_batch_counts_where_a_maximum_is_taken_over_it(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention whose scores are divided by their maximum, over the sequence or over the batch."""

    def scaled(n: int, d: int, m: int, seed: int, causal: bool):
        def call(Q, K, V):
            S = Q @ K.swapaxes(-1, -2)
            top = S.max() if shared else S.max(axis=(-2, -1), keepdims=True)
            P = np.exp(S / top)
            return P / P.sum(axis=-1, keepdims=True) @ V

        return call

    monkeypatch.setitem(METHODS, "scaled", Method("scaled", "", "landmarks", True, False, scaled))
    change = public_measures.batch_change("scaled", TIMED, 60, 8)["change in a batch"].value
    assert change > 0.01 if shared else change < 1e-6


def test_this_package_is_causal_in_every_map() -> None:
    for name in public_adapters.MAPS:
        found = public_measures.future(f"attnmath {name}, numpy", "trained", 40, 16)["future"]
        assert found.value == 0, name


def test_this_package_gives_one_answer_on_both_backends_and_comes_nearer_with_more_features() -> None:
    torch_or_skip()
    for name in public_adapters.MAPS:
        ours, theirs = (public_measures.output_error(f"attnmath {name}{kind}", TIMED, 64, 64, False, 2)["error"]
                        for kind in ("", ", numpy"))  # fmt: skip
        assert ours.value == pytest.approx(theirs.value, rel=1e-3), name
    few, many = (public_measures.output_error("attnmath aderf, numpy", TIMED, 304, m, False, 4)["error"].value
                 for m in (32, 512))  # fmt: skip
    assert many < few / 2


def test_torch_computes_exact_attention() -> None:
    torch_or_skip()
    for causal in (False, True):
        assert public_measures.output_error("softmax, torch", "gaussian", 70, 0, causal, 1)["error"].value < 1e-5


@pytest.mark.usefixtures("fakes")
def test_time_and_memory_are_positive() -> None:
    torch = torch_or_skip()
    threads = torch.get_num_threads()
    try:
        found = public_measures.speed("noisy", TIMED, 500, 64, False, 1)
    finally:
        torch.set_num_threads(threads)
    assert set(found) == {"seconds", "mebibytes"}
    assert 0 < found["seconds"].value < 60 and found["mebibytes"].value >= 0


def test_a_measurement_in_a_process_of_its_own() -> None:
    torch_or_skip()
    rows = comparison.carry_out(Task("speed", "attnmath positive, numpy", TIMED, 128), threads=1)
    assert [row["measure"] for row in rows] == ["seconds", "fastest", "slowest", "mebibytes"]
    assert {row["m"] for row in rows} == {comparison.OTHERWISE}
    assert 0 < rows[1]["value"] <= rows[0]["value"] <= rows[2]["value"]


# Adapters, with fake packages --------------------------------------------------------------------------------------


def fake_package(monkeypatch: pytest.MonkeyPatch, name: str, **content: object) -> None:
    module = types.ModuleType(name)
    module.__dict__.update(content)
    monkeypatch.setitem(sys.modules, name, module)


def module_of_one_input(torch, *, joint: bool):
    """A fake attention module that projects its input itself, as one of the two packages that do."""

    class Fake(torch.nn.Module):
        def __init__(self, dim: int, *args: object, dim_head: int, heads: int, **options: object) -> None:
            super().__init__()
            self.options = options
            for part in ("to_qkv",) if joint else ("to_q", "to_k", "to_v"):
                setattr(self, part, torch.nn.Linear(dim, dim_head, bias=False))
            self.to_out = torch.nn.Linear(dim_head, dim)

        def forward(self, x, mask=None):
            assert mask is None or mask.shape == x.shape[:2]
            q, k, v = self.to_qkv(x).chunk(3, dim=-1) if joint else (self.to_q(x), self.to_k(x), self.to_v(x))
            return self.to_out(torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v)

    return Fake


@pytest.mark.parametrize("method", ["linformer", "nystrom-attention"])
def test_modules_that_project_their_input_attend_with_the_given_queries(method: str, monkeypatch) -> None:
    torch = torch_or_skip()
    fake = module_of_one_input(torch, joint=method == "nystrom-attention")
    fake_package(monkeypatch, "linformer", LinformerSelfAttention=fake)
    fake_package(monkeypatch, "nystrom_attention", NystromAttention=fake)
    found = public_measures.output_error(method, "trained", 20, 8, False, 2)["error"]
    assert found.value < 1e-6
    if method == "nystrom-attention":
        assert public_measures.batch_change(method, "trained", 24, 8)["change in a batch"].value < 1e-6
    assert public_measures.matrix_error(method, "trained", 40, 8, False, 2)["matrix error"].value < 1e-6


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "performer_pytorch", None)
    with pytest.raises(ModuleNotFoundError) as problem:
        public_adapters.imported("performer-pytorch")
    assert problem.value.name == "performer_pytorch"
    with pytest.raises(ValueError, match="distribution: expected one of torch, performer-pytorch"):
        public_adapters.imported("numpy")


# The plan, the table ------------------------------------------------------------------------------------------------


def test_tasks_are_for_the_chosen_packages_lengths_and_forms() -> None:
    every = comparison.tasks()
    assert len(every) == len(set(every))
    assert {task.method for task in every if task.kind == "error"} == {m for m in METHODS if not m.endswith("numpy")}
    assert {task.inputs for task in every if task.kind == "matrix"} == set(INPUTS)
    assert {(task.method, task.n, task.causal) for task in every if task.kind == "speed"} == {
        (name, n, causal) for name, method in METHODS.items() for n in comparison.LENGTHS for causal in (False, True)
        if (method.causal or not causal) and (not name.endswith("numpy") or "expansion" in name)
    }  # fmt: skip
    heads = [task for task in every if task.kind == "head"]
    assert {task.inputs for task in heads} == set(GROUPS)
    assert all(task.causal == (not task.inputs.startswith("encoder")) for task in heads)
    local = {(task.inputs, task.m) for task in heads if task.method == "local-attention" and task.causal}
    assert local == {(group, m) for group in GROUPS for m in (32, 64, 128) if m <= comparison.HEAD_LENGTHS[group]} - {
        (group, m) for group in ("encoder", "encoder, half") for m in (32, 64, 128)
    }
    contrasts = [(task.method, task.inputs) for task in every if task.kind == "contrasts"]
    assert sorted(contrasts) == sorted((m, g) for m in comparison.CONTRASTED for g in GROUPS if "half" not in g)
    assert {task.n for task in every if task.kind == "long"} == {comparison.LONG_LENGTH}
    few = comparison.tasks([64, 32, 64], ["linformer"])
    assert [task.n for task in few if task.kind == "speed" and task.method == "linformer"] == [32, 64]
    assert not [task for task in few if "performer" in task.method or task.method == "local-attention"]
    assert [task.method for task in few if task.kind == "instance"] == ["linformer"]
    for bad, kind in (([], ValueError), ("256", TypeError), ([2**21], ValueError)):
        with pytest.raises(kind, match="lengths: expected"):
            comparison.tasks(bad)
    with pytest.raises(ValueError, match="distributions: expected one of"):
        comparison.tasks([64], ["other"])


def row_of(m: int, value: float, method: str = "a", **other: object) -> dict[str, object]:
    row = {"measure": "error on a head", "method": method, "inputs": "encoder 2.4, half", "n": 304, "m": m}
    return row | {"causal": False, "value": value, "standard_error": 0.01} | other


def test_the_smallest_size_is_the_one_from_which_on_the_median_of_the_choosing_heads_is_below_the_level() -> None:
    rows = [row_of(32, 0.1), row_of(64, 0.3), row_of(128, LEVEL), row_of(256, 0.1)]
    assert comparison.smallest_size(rows, "a") == 128
    assert comparison.smallest_size(rows, "a, numpy") == 128
    assert comparison.smallest_size(rows, "b") == 0
    assert comparison.smallest_size([*rows, row_of(512, 0.2)], "a") == 0
    assert comparison.smallest_size([*rows, row_of(512, math.nan)], "a") == 0
    two = [row_of(64, 0.01, inputs=f"encoder 1.{head}, half") for head in (2, 6)]
    assert comparison.smallest_size([*rows, *two], "a") == 32
    for judging in ("encoder 2.5, half", "encoder 2.4", "decoders 0.0.0", "trained, half"):
        assert comparison.smallest_size([*rows, row_of(512, 9.0, inputs=judging)], "a") == 128


def small(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """Replace the measurements by numbers, and return the tasks that are done.

    The table is written after each, so only those of packages and of one function of the book are asked for.
    """
    done: list[Task] = []
    all_tasks = comparison.tasks

    def few(lengths, packages):
        return [task for task in all_tasks(lengths, packages) if task.method in {*packages, "attnmath expansion"}]

    def carry_out(task, rows=(), threads=2):
        done.append(task)
        inputs = public_measures.LAST_INSTANCE[task.method] if task.kind == "instance" else task.inputs
        if task.kind in ("head", "contrasts", "long"):
            inputs = public_measures.heads_of(task.inputs)[0]
        m = comparison.smallest_size(rows, task.method) if task.kind == "speed" else task.m
        value = Number(1 / (1 + task.m), 0.0)
        return [comparison._row(measure, task, inputs, m, value) for measure in comparison.MEASURES[task.kind]]

    monkeypatch.setattr(comparison, "carry_out", carry_out)
    monkeypatch.setattr(comparison, "tasks", few)
    return done


def test_the_table_is_written_at_once_and_not_measured_again(tmp_path: Path, monkeypatch) -> None:
    done, path = small(monkeypatch), tmp_path / "table.csv"
    todo = comparison.tasks([64], ["linformer"])
    assert comparison.compare(path, todo[:5], progress=False) == 5
    assert comparison.compare(path, todo, progress=False) == len(todo) - 5
    assert sorted(map(repr, done)) == sorted(map(repr, todo))
    assert comparison.compare(path, todo, progress=False) == 0
    rows = comparison.read_table(path)
    assert rows == sorted(rows, key=lambda row: tuple(row[name] for name in comparison.COLUMNS[:6]))
    assert {row["m"] for row in rows if row["measure"] == "seconds" and row["method"] == "linformer"} == {32}
    assert all(isinstance(row["causal"], bool) and row["value"] <= 1 for row in rows)


@pytest.mark.parametrize("left", [3, -2, -1])
def test_a_last_line_without_its_end_is_measured_again(tmp_path: Path, monkeypatch, left: int) -> None:
    small(monkeypatch)
    path, todo = tmp_path / "table.csv", comparison.tasks([64], ["linformer"])
    comparison.compare(path, todo, progress=False)
    whole = path.read_text(encoding="utf-8")
    lines = whole.splitlines(keepends=True)
    # The last measure of a task in time, wherever it stands in the table.
    (last,) = (line for line in lines if line.startswith("row sum,attnmath expansion,gaussian,"))
    lines.remove(last)
    path.write_text("".join(lines) + last[:left], encoding="utf-8")
    assert len(comparison.read_table(path)) == len(lines) - 1
    assert comparison.compare(path, todo, progress=False) == 1
    assert path.read_text(encoding="utf-8") == whole


def test_a_task_is_done_when_its_last_measure_is_there(tmp_path: Path, monkeypatch) -> None:
    done, path = small(monkeypatch), tmp_path / "table.csv"
    todo = comparison.tasks([64], ["linformer", "nystrom-attention"])
    comparison.compare(path, todo, progress=False)
    rows = comparison.read_table(path)
    lasts = ("error", "error on a head", "row sum", "future", "error shuffled", "change in a batch", "mebibytes",
             "error at length", "instance")  # fmt: skip
    for last in lasts:
        gone = next(row for row in rows if row["measure"] == last)
        comparison._write(path, [row for row in rows if row is not gone])
        done.clear()
        assert comparison.compare(path, todo, progress=False) == 1
        assert comparison._key(done[0]) == comparison._task_of(gone)
        assert comparison.read_table(path) == rows


def test_the_last_instances_are_the_last() -> None:
    """In the shipped table each package has its last instance, and its own code names it last."""
    rows = comparison.load_table()
    assert set(public_measures.LAST_INSTANCE) == set(public_measures._INSTANCES)
    for method, name in public_measures.LAST_INSTANCE.items():
        assert any((row["measure"], row["method"], row["inputs"]) == ("instance", method, name) for row in rows)


@pytest.mark.parametrize(
    "line, said",
    [
        ("error,a,trained,x,64,0,0.1,0.01", "line 3: n: expected an integer, got 'x'"),
        ("error,a,trained,1024,64,0,0.1?,0.01", "line 3: value: expected a number, got '0.1\\?'"),
        ("error,a,trained,1024,64,0,0.1", "line 3: expected 8 columns"),
        ("error,a,trained,1024,64,0,0.1,0.01,7", "line 3: expected 8 columns"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "table.csv"
    text = f"{','.join(comparison.COLUMNS)}\nerror,a,trained,1024,32,0,0.1,0.01\n{line}\n"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"table.csv, {said}"):
        comparison.compare(path, [], progress=False)
    assert path.read_text(encoding="utf-8") == text


def test_another_table_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="expected the columns measure, method, .* got a, b"):
        comparison.compare(path, [], progress=False)
    assert path.read_text(encoding="utf-8") == "a,b\n1,2\n"


# The command --------------------------------------------------------------------------------------------------------


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["public_implementations", *map(str, arguments)])
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    return comparison.main()


def test_the_command_writes_the_table_and_how_it_was_made(tmp_path: Path, monkeypatch, capsys) -> None:
    small(monkeypatch)
    monkeypatch.setattr(comparison, "imported", lambda name: types.ModuleType(name))
    assert command(monkeypatch, "--out", tmp_path, "--lengths", 64, "--packages", "linformer", "--threads", 3) == 0
    table = (tmp_path / "public_implementations.csv").read_bytes()
    record = json.loads((tmp_path / "public_implementations.json").read_text(encoding="utf-8"))
    assert record["sha256"] == hashlib.sha256(table).hexdigest()
    assert record["command"].startswith("python -m attnlab.experiments.public_implementations --out ")
    assert (record["threads"], record["race"], record["level"]) == (3, RACE, LEVEL)
    assert {"python", "numpy"} <= set(record["versions"])
    assert "new measurements in" in capsys.readouterr().out


def test_times_are_measured_again_on_request_and_nothing_else(tmp_path: Path, monkeypatch) -> None:
    done = small(monkeypatch)
    monkeypatch.setattr(comparison, "imported", lambda name: types.ModuleType(name))
    given = ("--out", tmp_path, "--lengths", 64, "--packages", "linformer")
    assert command(monkeypatch, *given) == 0
    path = tmp_path / "public_implementations.csv"
    before = comparison.read_table(path)
    times = [row for row in before if row["measure"] == "seconds"]
    first, second = times[0], times[1]
    first["value"], second["value"] = 1e-6, 1e6
    comparison._write(path, before)
    done.clear()
    assert command(monkeypatch, *given, "--times-again") == 0
    assert {task.kind for task in done} == {"speed"}
    first["value"] = second["value"] = 1.0  # new times are kept, be they shorter or longer
    assert comparison.read_table(path) == before


def test_old_times_stay_until_new_ones_are_there(tmp_path: Path, monkeypatch) -> None:
    small(monkeypatch)
    path, todo = tmp_path / "table.csv", comparison.tasks([64], ["linformer"])
    comparison.compare(path, todo, progress=False)
    before = comparison.read_table(path)

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "carry_out", interrupted)
    with pytest.raises(KeyboardInterrupt):
        comparison.compare(path, todo, progress=False, times_again=True)
    assert comparison.read_table(path) == before


@pytest.mark.parametrize("name", ["numpy", "processor", "cores", "threads", "seeds"])
def test_a_table_of_other_versions_or_of_another_machine_is_refused(name: str, tmp_path, monkeypatch, capsys) -> None:
    small(monkeypatch)
    monkeypatch.setattr(comparison, "imported", lambda name: types.ModuleType(name))
    given = ("--out", tmp_path, "--lengths", 64, "--packages", "linformer")
    assert command(monkeypatch, *given) == 0
    path = tmp_path / "public_implementations.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    (record["versions"] if name == "numpy" else record)[name] = "another"
    path.write_text(json.dumps(record), encoding="utf-8")
    capsys.readouterr()
    assert command(monkeypatch, *given) == command(monkeypatch, *given, "--times-again") == 2
    assert f"was measured otherwise: {name} another, here " in capsys.readouterr().err
    path.unlink()
    assert command(monkeypatch, *given) == 2
    assert "no record public_implementations.json beside it" in capsys.readouterr().err


def test_times_of_an_unknown_processor_are_replaced(tmp_path: Path, monkeypatch) -> None:
    small(monkeypatch)
    monkeypatch.setattr(comparison, "imported", lambda name: types.ModuleType(name))
    given = ("--out", tmp_path, "--lengths", 64, "--packages", "linformer")
    assert command(monkeypatch, *given) == 0
    path = tmp_path / "public_implementations.csv"
    rows = comparison.read_table(path)
    comparison._write(path, [{**row, "value": 1e-6} if row["measure"] == "seconds" else row for row in rows])
    record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    del record["processor"]
    path.with_suffix(".json").write_text(json.dumps(record), encoding="utf-8")
    assert command(monkeypatch, *given, "--times-again") == 0
    assert comparison.read_table(path) == rows


def test_the_command_says_in_one_line_what_is_missing(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "performer_pytorch", None)
    monkeypatch.setitem(sys.modules, "torch", sys.modules.get("torch") or types.ModuleType("torch"))
    assert command(monkeypatch, "--out", tmp_path, "--packages", "performer-pytorch") == 1
    said = capsys.readouterr().err
    assert said == f"python -m attnlab.experiments.public_implementations: {MISSING}\n"
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_says_how_to_go_on(tmp_path: Path, monkeypatch, capsys) -> None:
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "imported", lambda name: types.ModuleType(name))
    monkeypatch.setattr(comparison, "carry_out", interrupted)
    assert command(monkeypatch, "--out", tmp_path) == 130
    said = capsys.readouterr().err
    assert "interrupted; what was measured is in" in said and "the same command does the rest" in said


def test_the_command_names_bad_arguments(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(comparison, "imported", lambda name: types.ModuleType(name))
    (tmp_path / "file").touch()
    assert command(monkeypatch, "--out", tmp_path, "--threads", 1025) == 2
    assert "threads: expected a positive integer, at most 1024" in capsys.readouterr().err
    for arguments, words in (
        (("--out", tmp_path, "--lengths", 0), "argument --lengths: expected a whole number of at least 1, got 0"),
        (("--out", tmp_path / "file"), "argument --out: expected a folder to write to, got"),
        (("--out", tmp_path, "--packages", "other"), "argument --packages: invalid choice"),
    ):
        with pytest.raises(SystemExit):
            command(monkeypatch, *arguments)
        assert words in capsys.readouterr().err


# The shipped table --------------------------------------------------------------------------------------------------


def test_the_shipped_table_holds_every_measurement() -> None:
    rows, record = comparison.load_table(), comparison.load_provenance()
    data = resources.files("attnlab") / "data" / "public_implementations.csv"
    assert hashlib.sha256(data.read_bytes()).hexdigest() == record["sha256"]
    assert {comparison._key(task) for task in comparison.tasks()} == comparison._keys(rows)
    assert {"performer-pytorch", "linformer", "torch", "numpy"} <= set(record["versions"])
    assert (record["race"], record["level"], record["seeds"]) == (RACE, LEVEL, comparison.SEEDS)
    times = [row for row in rows if row["measure"] == "seconds"]
    assert all(row["value"] > 0 for row in times)
    assert all(row["m"] == (comparison.smallest_size(rows, row["method"]) or comparison.OTHERWISE)
               for row in times if METHODS[row["method"]].size)  # fmt: skip


def test_the_shipped_errors_of_this_package_are_what_it_finds() -> None:
    rows = {
        (row["method"], row["inputs"], row["m"]): row for row in comparison.load_table() if row["measure"] == "error"
    }
    stored = rows["attnmath aderf", TIMED, 64]
    found = public_measures.output_error(
        "attnmath aderf, numpy", TIMED, comparison.ERROR_LENGTH, 64, False, comparison.SEEDS
    )["error"]
    assert found.value == pytest.approx(stored["value"], rel=1e-2)
    assert found.standard_error == pytest.approx(stored["standard_error"], rel=5e-2)
