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

from attnmath.checks import flag, instance, non_negative_integer, one_of, path_to, positive, positive_integer
from attnmath.recall.table import (
    ATTENTION_NAMES,
    COLUMNS,
    PAIRS,
    RATES,
    SEEDS,
    SETTINGS,
    WIDTHS,
    locked,
    read_table,
    rounded,
    sort,
)
from attnmath.recall.training import Settings, run


def grid(
    attentions: Sequence[str] = ATTENTION_NAMES,
    pairs: Sequence[int] = PAIRS,
    widths: Sequence[int] = WIDTHS,
    seeds: Sequence[int] = SEEDS,
    rates: Sequence[float] = RATES,
    **fixed: Any,
) -> list[Settings]:
    """Every combination of the given values; `fixed` goes to `Settings` as it is.

    >>> len(grid())
    540
    """
    _each("attentions", attentions, lambda value, name: one_of(value, ATTENTION_NAMES, name))
    for name, values in (("pairs", pairs), ("widths", widths)):
        _each(name, values, positive_integer)
    _each("seeds", seeds, non_negative_integer)
    _each("rates", rates, positive)
    return [Settings(attention, number, width, seed, rate=rate, **fixed)
            for attention, number, width, seed, rate in product(attentions, pairs, widths, seeds, rates)]  # fmt: skip


def _each(name: str, values: Any, check: Callable[[Any, str], Any]) -> None:
    """Raise an error unless there are values, each once, that pass a check."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise TypeError(f"{name}: expected a list of values, got {type(values).__name__} {values!r}")
    checked = [check(value, name) for value in values]
    if not checked or len(set(checked)) != len(checked):
        raise ValueError(f"{name}: expected at least one value, each once, got {list(values)}")


def sweep(settings: Iterable[Settings], path: str | Path, *, jobs: int | None = None, progress: bool = True) -> int:
    """Carry out the runs that the table at `path` lacks, and return how many these were.

    Each finished run is written at once, so an interruption loses nothing but the runs under way. The table is
    locked meanwhile: a second sweep into it raises `ValueError`. A table with other columns raises `ValueError`
    and is left as it is. jobs : processes at a time, joblib's default unless given.
    """
    path, wanted = path_to(path, "path"), _wanted(settings)
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0):
        raise ValueError(f"jobs: expected a number of processes, -1 for all cores, or None, got {jobs!r}")
    flag(progress, "progress")
    with locked(path) as table:
        done = {_settings(row) for row in read_table(path)}
        missing = [s for s in wanted if s not in done]
        if not missing:
            return 0
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        bar = tqdm(total=len(wanted), initial=len(wanted) - len(missing), unit="run", disable=not progress)
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        with bar:
            for row in parallel(joblib.delayed(run)(s) for s in missing):
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
    """Write beside the table how it came about: the command, the versions, its hash, and every setting."""
    rows, target = read_table(path), Path(path).with_suffix(".json")
    settings = {name: sorted({row[name] for row in rows}) for name in SETTINGS}
    versions = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
                "joblib": joblib.__version__}  # fmt: skip
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    record = {"command": command, "versions": versions, "machine": platform.machine(), "sha256": digest,
              "runs": len(rows), **settings}  # fmt: skip
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return target


def _settings(row: Mapping[str, Any]) -> Settings:
    return Settings(**{name: row[name] for name in SETTINGS})


def command_line() -> str:
    """The command under which this program runs, for the record."""
    return " ".join(["python -m attnmath.recall", *sys.argv[1:]])
