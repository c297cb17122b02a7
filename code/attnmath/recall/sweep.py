"""A grid of runs: in parallel, with a progress bar, and resumed where it was interrupted.

Runs go through joblib, so that a cluster takes one line around the call and no change within it:

    with joblib.parallel_config(backend="dask"):  # or "ray"; needs a connected client
        sweep(grid(), "recall.csv")
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from tqdm import tqdm

from attnmath.checks import flag, instance, non_negative_integer, one_of, path_to, positive
from attnmath.recall.table import (
    ATTENTION_NAMES,
    COLUMNS,
    DESIGNS,
    PARAMETERS,
    RATES,
    SEEDS,
    SETTINGS,
    STANDARD,
    locked,
    read_table,
    rounded,
    sort,
)
from attnmath.recall.training import Settings, run, torch_device


def grid(
    designs: Sequence[str] = DESIGNS,
    attentions: Sequence[str] = ATTENTION_NAMES,
    seeds: Sequence[int] = SEEDS,
    rates: Sequence[float] = RATES,
    **fixed: Any,
) -> list[Settings]:
    """Every setting of the designs, for each seed and learning rate; `fixed` goes to `Settings` as it is.

    concentration : each attention at each of its parameters (`PARAMETERS`), queries and keys of fixed length.
    width : the standard forms at four widths of the head in one model, and at three widths of the model with one head.
    pairs : the standard forms at three numbers of pairs.

    A setting that two designs share occurs once.

    >>> len(grid(["concentration"])), len(grid())
    (660, 1710)
    """
    _each("designs", designs, lambda value, name: one_of(value, DESIGNS, name))
    _each("attentions", attentions, lambda value, name: one_of(value, ATTENTION_NAMES, name))
    _each("seeds", seeds, non_negative_integer)
    _each("rates", rates, positive)
    wanted = [(attention, *setting) for design in designs for attention in attentions
              for setting in _settings_of(design, attention)]  # fmt: skip
    return [Settings(*setting, seed, rate=rate, **fixed)
            for setting in dict.fromkeys(wanted) for seed, rate in product(seeds, rates)]  # fmt: skip


def _settings_of(design: str, attention: str) -> list[tuple[float, bool, int, int, int]]:
    """Return parameter, unit, pairs, head and width of one attention in one design."""
    standard = STANDARD[attention]
    if design == "concentration":
        return [(parameter, True, 16, 8, 32) for parameter in PARAMETERS[attention][1]]
    if design == "pairs":
        return [(standard, False, pairs, 8, 32) for pairs in (4, 8, 16)]
    if attention == "decay":  # its weights depend on neither queries nor keys
        return []
    sizes = [(head, 32) for head in (4, 8, 16, 32)] + [(8, width) for width in (16, 64)]
    return [(standard, False, 16, head, width) for head, width in sizes]


def _each(name: str, values: Any, check: Callable[[Any, str], Any]) -> None:
    """Raise an error unless there are values, each once, that pass a check."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise TypeError(f"{name}: expected a list of values, got {type(values).__name__} {values!r}")
    checked = [check(value, name) for value in values]
    if not checked or len(set(checked)) != len(checked):
        raise ValueError(f"{name}: expected at least one value, each once, got {list(values)}")


def sweep(
    settings: Iterable[Settings],
    path: str | Path,
    *,
    jobs: int | None = None,
    device: str = "cpu",
    progress: bool = True,
) -> int:
    """Carry out the runs that the table at `path` lacks, and return how many these were.

    Each finished run is written at once, so an interruption loses nothing but the runs under way. The table is
    locked meanwhile: a second sweep into it raises `ValueError`. A table with other columns raises `ValueError`
    and is left as it is. jobs : processes at a time, joblib's default unless given.  device : where torch computes.
    A run that is in the table is not repeated for another device.
    """
    path, wanted = path_to(path, "path"), _wanted(settings)
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0):
        raise ValueError(f"jobs: expected a number of processes, -1 for all cores, or None, got {jobs!r}")
    flag(progress, "progress")
    torch_device(device)
    with locked(path) as table:
        done = {_settings(row) for row in read_table(path)}
        missing = [s for s in wanted if s not in done]
        if not missing:
            return 0
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        bar = tqdm(total=len(wanted), initial=len(wanted) - len(missing), unit="run", disable=not progress)
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        with bar:
            for row in parallel(joblib.delayed(run)(s, device) for s in missing):
                writer.writerow({name: rounded(row[name]) for name in COLUMNS})
                table.flush()
                os.fsync(table.fileno())
                bar.update()
        sort(path)
    return len(missing)


def _wanted(settings: Iterable[Settings]) -> list[Settings]:
    """Return the settings, each once."""
    if not isinstance(settings, Iterable):
        raise TypeError(f"settings: expected Settings, as `grid` returns them, got {type(settings).__name__}")
    wanted = list(settings)
    for one in wanted:
        instance(one, Settings, "settings")
    return list(dict.fromkeys(wanted))


def write_provenance(path: str | Path, command: str) -> Path:
    """Write beside the table how it came about: the command, versions, devices, its hash, and every setting."""
    rows, target = read_table(path), Path(path).with_suffix(".json")
    settings = {name: sorted({row[name] for row in rows}) for name in SETTINGS}
    versions = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
                "joblib": joblib.__version__}  # fmt: skip
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    devices = sorted({row["device"] for row in rows})
    record = {"command": command, "versions": versions, "machine": platform.machine(), "devices": devices,
              "sha256": digest, "runs": len(rows), **settings}  # fmt: skip
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return target


def _settings(row: Mapping[str, Any]) -> Settings:
    return Settings(**{name: row[name] for name in SETTINGS})


def command_line() -> str:
    """The command under which this program runs, for the record."""
    return " ".join(["python -m attnmath.recall", *sys.argv[1:]])
