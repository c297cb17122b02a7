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
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from tqdm import tqdm

from attnmath.recall.models import ATTENTIONS
from attnmath.recall.table import COLUMNS, SETTINGS, prepare, read_table, rounded, sort
from attnmath.recall.training import Settings, run


def grid(
    attentions: Sequence[str] = tuple(ATTENTIONS),
    pairs: Sequence[int] = (4, 8, 16, 32),
    widths: Sequence[int] = (8, 16, 32),
    seeds: Sequence[int] = (0, 1, 2),
    rates: Sequence[float] = (3e-3, 1e-2, 3e-2),
    **fixed: Any,
) -> list[Settings]:
    """Every combination of the given values; `fixed` goes to `Settings` as it is.

    >>> len(grid())
    540
    """
    for name, values in (("attentions", attentions), ("pairs", pairs), ("widths", widths), ("seeds", seeds),
                         ("rates", rates)):  # fmt: skip
        if len(values) == 0 or len(set(values)) != len(values):
            raise ValueError(f"{name}: expected at least one value, each once, got {list(values)}")
    return [Settings(attention, number, width, seed, rate=rate, **fixed)
            for attention, number, width, seed, rate in product(attentions, pairs, widths, seeds, rates)]  # fmt: skip


def sweep(settings: Iterable[Settings], path: str | Path, *, jobs: int | None = None, progress: bool = True) -> int:
    """Carry out the runs that the table at `path` lacks, and return how many these were.

    Each finished run is written at once, so an interruption loses nothing but the runs under way. A table
    with other columns is refused and left as it is. jobs : processes at a time, joblib's default unless given.
    """
    path, wanted = Path(path), list(dict.fromkeys(settings))
    done = {_settings(row) for row in read_table(path)} if path.exists() else set()
    missing = [s for s in wanted if s not in done]
    if not missing:
        return 0
    prepare(path)
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    bar = tqdm(total=len(wanted), initial=len(wanted) - len(missing), unit="run", disable=not progress)
    with bar, path.open("a", newline="", encoding="utf-8") as table:
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        for row in parallel(joblib.delayed(run)(s) for s in missing):
            writer.writerow({name: rounded(row[name]) for name in COLUMNS})
            table.flush()
            os.fsync(table.fileno())
            bar.update()
    sort(path)
    return len(missing)


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
