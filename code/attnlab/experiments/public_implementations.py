"""``python -m attnlab.experiments.public_implementations --out DIR``: public packages and this one, side by side.

Attention in linear cost, on the same queries, keys and values: errors, bias, causality, time and memory. What is in the
table is not measured again; a table of other versions or of another machine is an error.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import multiprocessing
import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from attnlab import commands, records
from attnlab.experiments import public_measures
from attnlab.experiments.arguments import widths_of
from attnlab.experiments.public_adapters import DISTRIBUTIONS, METHODS, imported
from attnlab.experiments.public_measures import GROUPS, INPUTS, Number
from attnlab.threads import one_thread
from attnmath.checks import flag, instance, one_of, path_to, positive_integer

#: Lengths at which time and memory are measured.
LENGTHS = (256, 4096, 16384)
#: Sizes m for the errors; on the trained head those in `BETWEEN` as well.
SIZES = (64, 256, 1024)
BETWEEN = (32, 48, 96, 128, 192, 384, 512, 768)
#: Sizes m at which tokens are shuffled, and at which another sequence joins the batch.
SHUFFLED = (32, 256)
#: Sizes m on all heads at hand, and their lengths in tokens.
HEAD_SIZES = (32, 64, 128, 256)
HEAD_LENGTHS = {group: {"encoder": 304, "decoders": 128, "pretrained": 80}[group.partition(",")[0]] for group in GROUPS}
#: The methods whose contrast is measured on all heads as they are.
CONTRASTED = ("performer-pytorch", "attnmath aderf")
#: The heads on which methods are compared at equal error: a method's size is the smallest from which on the median
#: error of one half of these heads is at most the level. The other half judges it.
RACE, LEVEL = "encoder, half", 0.15
#: The size of a method that does not reach the level.
OTHERWISE = 256
#: The queries and keys with which time and memory are measured, and in how many processes each.
TIMED, REPEATS = "trained, half", 3
#: Length at which errors are measured, that of whole matrices, and that at which the heads that judge are repeated.
ERROR_LENGTH, MATRIX_LENGTH, LONG_LENGTH = 1024, 256, 4096
#: Draws of the projections: on one head, of whole matrices, and on each of all heads.
SEEDS, MATRIX_SEEDS, HEAD_SEEDS = 8, 16, 4
THREADS, LONGEST = 1, 1 << 20
COLUMNS = ("measure", "method", "inputs", "n", "m", "causal", "value", "standard_error")
#: The kinds of tasks, and the measures of each. A task is done when its last measure is in the table.
MEASURES = {
    "error": ("error",),
    "head": ("error on a head",),
    "contrasts": ("contrast on a head",),
    "matrix": ("matrix error", "contrast", "row sum"),
    "future": ("future",),
    "order": ("error shuffled",),
    "batch": ("change in a batch",),
    "instance": ("instance",),
    "speed": ("seconds", "fastest", "slowest", "mebibytes"),
    "long": ("error at length",),
}
_KINDS = {measure: kind for kind, measures in MEASURES.items() for measure in measures}


_COMMAND = commands.Command(
    "attnlab.experiments.public_implementations",
    __doc__,
    takes="some tens of minutes, most of them for the greatest lengths.",
    writes="public_implementations.csv in the folder --out, a row for each number; and public_implementations.json, a "
    "record of the command, versions, machine and settings.",
    kept="what was measured is in {out}, and the same command does the rest",
    extra="compare",
)


@dataclass(frozen=True)
class Task:
    """One measurement: what is done, with which method, on which inputs; m = 0 if it is chosen by the errors."""

    kind: str
    method: str
    inputs: str = ""
    n: int = 0
    m: int = 0
    causal: bool = False


def tasks(lengths: Sequence[int] = LENGTHS, distributions: Sequence[str] = tuple(DISTRIBUTIONS)) -> list[Task]:
    """All measurements for some packages, this one and exact attention always included, in the order of their work.

    >>> len(tasks([256], [])) < len(tasks([256]))
    True
    """
    lengths = sorted(set(widths_of(lengths, "lengths")))
    if lengths[-1] > LONGEST:
        raise ValueError(f"lengths: expected at most {LONGEST}, got {lengths[-1]}")
    if isinstance(distributions, str) or not isinstance(distributions, Sequence):
        raise TypeError(f"distributions: expected a list of names, got {type(distributions).__name__}")
    chosen = {"", "torch", *(one_of(name, DISTRIBUTIONS, "distributions") for name in distributions)}
    methods = [method for method in METHODS.values() if method.distribution in chosen]
    numeric = [method for method in methods if not _twin(method.name)]
    found = [Task("instance", name) for name in DISTRIBUTIONS if name in chosen and name != "torch"]
    for kind in INPUTS:
        for method in numeric:
            sizes = sorted(SIZES + (BETWEEN if kind.startswith("trained") else ()))
            for m in sizes if method.size else [0]:
                if method.size == "features" or m <= ERROR_LENGTH:
                    found.append(Task("error", method.name, kind, ERROR_LENGTH, m))
            found.append(Task("matrix", method.name, kind, MATRIX_LENGTH, OTHERWISE if method.size else 0))
            for m in SHUFFLED if method.size in ("landmarks", "window") else ():
                found.append(Task("order", method.name, kind, ERROR_LENGTH, m))
            for m in SHUFFLED if method.size == "landmarks" else ():
                found.append(Task("batch", method.name, kind, ERROR_LENGTH, m))
            if method.causal:
                found.append(Task("future", method.name, kind, MATRIX_LENGTH, OTHERWISE if method.size else 0, True))
    for group in GROUPS:
        n, causal = HEAD_LENGTHS[group], public_measures.causal(group)
        for method in numeric:
            for m in HEAD_SIZES if method.size else [0]:
                if (method.causal or not causal) and (method.size == "features" or m <= n):
                    found.append(Task("head", method.name, group, n, m, causal))
            if method.name in CONTRASTED and not group.endswith("half"):
                found.append(Task("contrasts", method.name, group, n, OTHERWISE, causal))
    for causal in (False, True):
        able = [method for method in methods if method.causal or not causal]
        timed = [method for method in able if method in numeric or _twin(method.name) == "attnmath expansion"]
        found += [Task("speed", method.name, TIMED, n, 0, causal) for n in lengths for method in timed]
        found += [Task("long", method.name, RACE, LONG_LENGTH, 0, causal) for method in able if method in numeric]
    return found


def _twin(name: str) -> str:
    """The method whose errors are those of a method, computed by another library; "" if it has none."""
    return name.removesuffix(", numpy") if name.endswith(", numpy") else ""


def carry_out(task: Task, rows: Sequence[dict[str, Any]] = (), threads: int = THREADS) -> list[dict[str, Any]]:
    """Carry out a measurement and return its rows; time and memory are measured in a process of their own."""
    instance(task, Task, "task")
    if task.kind == "instance":
        found = {name: ("instance", value) for name, value in public_measures.instances(task.method).items()}
        return [_row(measure, task, name, 0, value) for name, (measure, value) in found.items()]
    m = task.m
    if task.kind in ("speed", "long") and METHODS[task.method].size:
        m = smallest_size(rows, task.method) or OTHERWISE
    given = (task.method, task.inputs, task.n, m)
    if task.kind in ("head", "long"):
        long = task.kind == "long"
        errors = public_measures.head_errors(*given, task.causal, 1 if long else HEAD_SEEDS, judged=long)
        return [_row(MEASURES[task.kind][0], task, kind, m, value) for kind, value in errors.items()]
    if task.kind == "contrasts":
        contrasts = public_measures.head_contrasts(*given, task.causal, HEAD_SEEDS)
        return [_row("contrast on a head", task, kind, m, value) for kind, value in contrasts.items()]
    if task.kind == "error":
        values = public_measures.output_error(*given, task.causal, SEEDS)
    elif task.kind == "matrix":
        values = public_measures.matrix_error(*given, task.causal, MATRIX_SEEDS)
    elif task.kind == "future":
        values = public_measures.future(*given)
    elif task.kind == "order":
        values = public_measures.shuffled_error(*given, SEEDS)
    elif task.kind == "batch":
        values = public_measures.batch_change(*given)
    else:
        values = public_measures.over_processes([_in_a_process(task, m, threads) for _ in range(REPEATS)])
    return [_row(name, task, task.inputs, m, value) for name, value in values.items()]


def smallest_size(rows: Iterable[dict[str, Any]], method: str, level: float = LEVEL) -> int:
    """The smallest size from which on the median error of a method on the heads that choose is at most a level.

    These are the heads of `RACE` for which `public_measures.choosing` is true. It is 0 if there is no such size.

    >>> row = {"measure": "error on a head", "method": "a", "inputs": "encoder 5.0, half", "m": 64, "value": 0.1}
    >>> smallest_size([row], "a"), smallest_size([row], "a", level=0.05)
    (64, 0)
    """
    name = _twin(method) or method
    errors: dict[int, list[float]] = {}
    for row in rows:
        kind = row["inputs"]
        if (row["measure"], row["method"]) != ("error on a head", name) or public_measures.group_of(kind) != RACE:
            continue
        if public_measures.choosing(kind):
            errors.setdefault(row["m"], []).append(row["value"])
    smallest = 0
    for m in sorted(errors, reverse=True):
        if not statistics.median(errors[m]) <= level:
            break
        smallest = m
    return smallest


def _in_a_process(task: Task, m: int, threads: int) -> dict[str, Number]:
    """Measure time and memory in a fresh process, in which everything is imported but nothing has been computed."""
    kind = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(kind)
    if kind == "forkserver":
        context.set_forkserver_preload([*DISTRIBUTIONS.values(), "attnlab.experiments.public_measures"])
    given = (task.method, task.inputs, task.n, m, task.causal, threads)
    try:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(public_measures.speed, *given).result()
    except BrokenProcessPool:
        raise MemoryError(
            f"the process for {task.method} at n = {task.n} was ended, probably for want of memory"
        ) from None


def _row(measure: str, task: Task, inputs: str, m: int, value: Number) -> dict[str, Any]:
    return {"measure": measure, "method": task.method, "inputs": inputs, "n": task.n, "m": m, "causal": task.causal,
            "value": value.value, "standard_error": value.standard_error}  # fmt: skip


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it is written: numbers with four significant digits, instances with six."""
    digits = 6 if row["measure"] == "instance" else 4
    rounded = {name: f"{float(row[name]):.{digits}g}" for name in ("value", "standard_error")}
    return {**row, **rounded, "causal": int(row["causal"])}


def read_table(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a table; `ValueError` if it has other columns or a line that is none of its own."""
    path = path_to(path, "path")
    return _parsed(records.text_of(path, "path", "a table"), str(path)) if path.exists() else []


def _parsed(text: str, name: str) -> list[dict[str, Any]]:
    reader = csv.DictReader(text.splitlines())
    if reader.fieldnames is not None and tuple(reader.fieldnames) != COLUMNS:
        raise ValueError(f"{name}: expected the columns {', '.join(COLUMNS)}, got {', '.join(reader.fieldnames)}")
    # A last line without its end was cut off, perhaps within a number, and is measured again.
    whole = csv.DictReader(text[: text.rfind("\n") + 1].splitlines())
    return [_typed(row, f"{name}, line {whole.line_num}") for row in whole]


def _typed(row: Mapping[str, str], place: str) -> dict[str, Any]:
    if None in row or None in row.values():
        raise ValueError(f"{place}: expected {len(COLUMNS)} columns")
    found: dict[str, Any] = dict(row)
    for kind, names in ((float, ("value", "standard_error")), (int, ("n", "m", "causal"))):
        for name in names:
            try:
                found[name] = kind(row[name])
            except ValueError:
                expected = "a number" if kind is float else "an integer"
                raise ValueError(f"{place}: {name}: expected {expected}, got {row[name]!r}") from None
    return {**found, "causal": found["causal"] == 1}


def load_table() -> list[dict[str, Any]]:
    """The table that ships with the package, a row for each number, after checking its hash."""
    return _parsed(records.shipped("public_implementations"), "public_implementations.csv")


def load_provenance() -> dict[str, Any]:
    """How the table that ships with the package came about: command, versions, machine and settings."""
    return records.provenance("public_implementations")


def _keys(rows: Iterable[Mapping[str, Any]]) -> set[tuple[Any, ...]]:
    """What in a table is done: the tasks whose last measure is there."""
    return {
        _task_of(row)
        for row in rows
        if row["measure"] in _KINDS
        and row["measure"] == MEASURES[_KINDS[row["measure"]]][-1]
        and (row["measure"] != "instance" or row["inputs"] == public_measures.LAST_INSTANCE.get(row["method"]))
    }


def _task_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key of the task that a row comes from."""
    kind = _KINDS.get(row["measure"], "")
    inputs = "" if kind == "instance" else row["inputs"]
    if kind in ("head", "contrasts", "long"):
        inputs = public_measures.group_of(inputs)
    return (kind, row["method"], inputs, row["n"], 0 if kind in ("speed", "long") else row["m"], row["causal"])


def _key(task: Task) -> tuple[Any, ...]:
    return (task.kind, task.method, task.inputs, task.n, task.m, task.causal)


def compare(
    path: str | Path,
    todo: Sequence[Task],
    *,
    threads: int = THREADS,
    progress: bool = True,
    times_again: bool = False,
) -> int:
    """Carry out the measurements that the table at `path` lacks, write each at once, and return how many they were.

    times_again : measure time and memory anew. Old rows stay until the new ones of the same task are there.
    """
    from tqdm import tqdm

    path = path_to(path, "path")
    rows = read_table(path)
    _write(path, rows)
    done = {key for key in _keys(rows) if not (flag(times_again, "times_again") and key[0] == "speed")}
    missing = [task for task in todo if _key(task) not in done]
    with tqdm(total=len(todo), initial=len(todo) - len(missing), unit="task", disable=not progress) as bar:
        for task in missing:
            bar.set_postfix_str(" ".join(str(part) for part in _key(task)[:4] if part), refresh=False)
            new = [_line(row) for row in carry_out(task, rows, threads)]
            new = [{**row, "value": float(row["value"]), "causal": task.causal} for row in new]
            rows = [row for row in rows if _task_of(row) != _key(task)] + new
            _write(path, rows)
            bar.update()
    return len(missing)


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a table in the order of its columns, by way of a file beside it: it is whole at every moment."""
    order = sorted(rows, key=_identity)
    beside = path.with_suffix(".part")
    with beside.open("w", encoding="utf-8", newline="") as table:
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_line(row) for row in order)
        table.flush()
        os.fsync(table.fileno())
    beside.replace(path)


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in COLUMNS[:6])


def write_provenance(
    path: str | Path,
    command: str,
    threads: int,
    *,
    packages: Sequence[str] = (),
    here: bool = True,
    finished: bool = True,
) -> Path:
    """Write beside the table how it came about.

    packages : what is being measured, beside what the table holds.
    here : whether all of it was measured on this processor; if not, the processor is left out.
    finished : whether the table is; as long as it grows its hash is left out.
    """
    path = path_to(path, "path")
    record = {"command": command, **_circumstances(path, threads, packages)}
    if not here:
        record["processor"] = None
    record["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest() if finished else None
    target = path.with_suffix(".json")
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return target


def _circumstances(path: Path, threads: int, packages: Sequence[str] = ()) -> dict[str, Any]:
    """Return versions, machine and settings: of what the table holds the versions here, or else those on record."""
    used = {row["method"] for row in read_table(path)} | {"numpy", "einops", "torch", *packages}
    versions = {"python": platform.python_version()}
    known = _record(path).get("versions", {})
    for name in ("numpy", "einops", *DISTRIBUTIONS):
        if name in used:
            if _installed(name):
                versions[name] = metadata.version(name)
            elif name in known:
                versions[name] = known[name]
    return {
        "versions": versions, "machine": platform.machine(), "processor": _processor(), "cores": os.cpu_count(),
        "threads": threads, "repeats": REPEATS, "seeds": SEEDS, "matrix_seeds": MATRIX_SEEDS, "head_seeds": HEAD_SEEDS,
        "error_length": ERROR_LENGTH, "matrix_length": MATRIX_LENGTH, "long_length": LONG_LENGTH, "race": RACE,
        "level": LEVEL,
    }  # fmt: skip


def _record(path: Path) -> dict[str, Any]:
    beside = path.with_suffix(".json")
    return records.json_object(beside, "path") if beside.exists() else {}


def _processor() -> str:
    """Name the processor as well as the system can."""
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        said = ""
    names = [line.partition(":")[2].strip() for line in said.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _refuse_others(path: Path, threads: int) -> bool:
    """`ValueError` if a table was made otherwise than here; return whether all of it is known to be of this processor.

    A record that does not name a processor refuses none.
    """
    if not read_table(path):
        return True
    there, here = _record(path), _circumstances(path, threads)
    if not there:
        raise ValueError(f"{path}: no record {path.with_suffix('.json').name} beside it; choose another --out")
    there, here = ({**record, **record.get("versions", {})} for record in (there, here))
    for name in here:
        if name != "versions" and there.get(name) not in (None, here[name]):
            raise ValueError(
                f"{path} was measured otherwise: {name} {there[name]}, here {here[name]}; choose another --out"
            )
    return there.get("processor") == here["processor"]


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def main(arguments: list[str] | None = None) -> int:
    """Measure what the table lacks, and write the table and how it came about; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("--out", type=commands.folder, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--lengths", nargs="+", type=commands.whole(1), default=list(LENGTHS), metavar="N",
                        help="lengths at which time and memory are measured; "
                        f"default: {' '.join(map(str, LENGTHS))}")  # fmt: skip
    parser.add_argument("--packages", nargs="+", choices=tuple(DISTRIBUTIONS), default=list(DISTRIBUTIONS),
                        metavar="PACKAGE",
                        help=f"packages beside this one, of {', '.join(DISTRIBUTIONS)}; default: all")  # fmt: skip
    parser.add_argument("--times-again", action="store_true", help="measure time and memory anew")
    parser.add_argument("--threads", type=commands.whole(1), default=THREADS, metavar="N",
                        help=f"threads that compute while time is measured; default: {THREADS}")  # fmt: skip
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    positive_integer(given.threads, "threads", at_most=1024)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(given.threads)  # for the processes that measure time
    for distribution in dict.fromkeys(["torch", *given.packages]):
        _check(distribution)
    todo = tasks(given.lengths, given.packages)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "public_implementations.csv"
    known = _refuse_others(path, given.threads)
    write_provenance(path, line, given.threads, packages=given.packages, here=known, finished=False)
    with one_thread():  # again, now that torch is loaded
        count = compare(path, todo, threads=given.threads, times_again=given.times_again)
    # Errors are the same on every processor, times are not.
    times = {key for key in _keys(read_table(path)) if key[0] == "speed"}
    known |= given.times_again and times <= {_key(task) for task in todo}
    record = write_provenance(path, line, given.threads, here=known)
    return f"{count} new measurements in {path}, described in {record}"


def _check(distribution: str) -> None:
    """Import a package, so that a missing one is known before anything is measured."""
    try:
        imported(distribution)
    except ModuleNotFoundError as error:
        if error.name == DISTRIBUTIONS[distribution]:
            raise ModuleNotFoundError(str(error), name=distribution) from None
        raise
    import tqdm  # noqa: F401


if __name__ == "__main__":
    raise SystemExit(main())
