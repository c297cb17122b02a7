"""Sweeps: runs in parallel through joblib, with a progress bar, written to a table and resumed where one stopped.

A cluster takes one line around the call and no change within it:

    with joblib.parallel_config(backend="dask"):  # needs a connected client
        SWEEP.carry_out(grid(), "recall.csv")
"""

from __future__ import annotations

import csv
import hashlib
import json
import multiprocessing
import os
import platform
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import joblib
import numpy as np
import torch
from tqdm import tqdm

from attnlab.devices import torch_device
from attnlab.records import replace
from attnlab.sweeps.tables import Table, exact, rounded
from attnlab.threads import in_main_thread
from attnmath.checks import flag, instance, path_to

#: What one run is told: a dataclass whose fields are columns of the table.
Setting = TypeVar("Setting")


@dataclass(frozen=True)
class Sweep(Generic[Setting]):
    """What carries out the runs of one kind of small models, and describes the table that they are written to.

    run : from settings and device to a row of the table.  kind : class of the settings, whose fields are
    `table.settings`.
    """

    run: Callable[[Setting, str], Mapping[str, Any]]
    kind: type[Setting]
    table: Table

    def carry_out(
        self,
        settings: Iterable[Setting],
        path: str | Path,
        *,
        jobs: int | None = None,
        device: str = "cpu",
        progress: bool = True,
    ) -> int:
        """Carry out the runs that the table at `path` lacks, in their order, and return how many these were.

        jobs : processes at a time, joblib's default unless given.  device : where torch computes; a run that is in the
        table is not repeated for another device.

        Each finished run is written at once, so an interruption loses nothing but the runs under way. The table is
        locked meanwhile: a second sweep into it raises `ValueError`. A table with other columns raises `ValueError`
        and is left as it is.
        """
        path, wanted, table = _table_path(path), _wanted(settings, self.kind), self.table
        if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0):
            raise ValueError(f"jobs: expected a number of processes, -1 for all cores, or None, got {jobs!r}")
        flag(progress, "progress")
        torch_device(device)
        with table.locked(path) as file:
            done = {self.kind(**{name: row[name] for name in table.settings}) for row in table.read(path)}
            missing = [s for s in wanted if s not in done]
            if not missing:
                return 0
            parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
            writer = csv.DictWriter(file, table.columns, lineterminator="\n")
            with tqdm(total=len(wanted), initial=len(wanted) - len(missing), unit="run", disable=not progress) as shown:
                for row in parallel(joblib.delayed(_uninterrupted)(self.run, s, device) for s in missing):
                    digits = {name: exact if name in table.settings else rounded for name in table.columns}
                    writer.writerow({name: write(row[name]) for name, write in digits.items()})
                    file.flush()
                    os.fsync(file.fileno())
                    shown.update()
            table.sort(path)
        return len(missing)

    def write_provenance(self, path: str | Path, command: str) -> Path:
        """Write beside the table how it came about: the command, versions, devices, its hash, and every setting."""
        path = _table_path(path)
        rows, target = self.table.read(path), path.with_suffix(".json")
        settings = {name: sorted({row[name] for row in rows}) for name in self.table.settings}
        versions = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
                    "joblib": joblib.__version__}  # fmt: skip
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        devices = sorted({row["device"] for row in rows})
        record = {"command": command, "versions": versions, "machine": platform.machine(), "devices": devices,
                  "sha256": digest, "runs": len(rows), **settings}  # fmt: skip
        replace(target, (json.dumps(record, indent=2) + "\n").encode())
        return target


def _uninterrupted(
    run: Callable[[Setting, str], Mapping[str, Any]], setting: Setting, device: str
) -> Mapping[str, Any]:
    """Do one run; a process that was made for it leaves Ctrl-C to the one that made it, and will end it."""
    if multiprocessing.parent_process() is not None and in_main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return run(setting, device)


def _wanted(settings: Iterable[Setting], kind: type[Setting]) -> list[Setting]:
    """Return the settings, each once."""
    if not isinstance(settings, Iterable):
        raise TypeError(f"settings: expected Settings, as `grid` returns them, got {type(settings).__name__}")
    wanted = list(settings)
    for one in wanted:
        instance(one, kind, "settings")
    return list(dict.fromkeys(wanted))


def each(name: str, values: Any, check: Callable[[Any, str], Any]) -> None:
    """Raise an error unless there are values, each once, that pass a check."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise TypeError(f"{name}: expected a list of values, got {type(values).__name__} {values!r}")
    checked = [check(value, name) for value in values]
    if not checked or len(set(checked)) != len(checked):
        raise ValueError(f"{name}: expected at least one value, each once, got {list(values)}")


def _table_path(path: str | Path) -> Path:
    """Return the path of a table, whose record has the same name and ends in .json."""
    found = path_to(path, "path")
    if found.suffix.lower() == ".json":
        raise ValueError(f"path: expected a table such as {found.with_suffix('.csv')}, got {found}, its record")
    return found
