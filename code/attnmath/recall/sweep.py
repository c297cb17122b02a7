"""A grid of runs: in parallel, with a progress bar, and resumed where it was interrupted.

Runs go through joblib, so that a cluster takes one line around the call and no change within it:

    with joblib.parallel_config(backend="dask"):  # or "ray"; needs a connected client
        sweep(grid(), "recall.csv")
"""

from __future__ import annotations

import csv
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from tqdm import tqdm

from attnmath.recall.models import ATTENTIONS
from attnmath.recall.training import Settings, run

#: Columns of the table: the settings of a run, and what it measured.
MEASURES = ("recall", "S_1", "S_2", "support_1", "support_2")
COLUMNS = (*(field.name for field in fields(Settings)), *MEASURES)


def grid(
    attentions: Sequence[str] = tuple(ATTENTIONS),
    pairs: Sequence[int] = (4, 8, 16, 32),
    widths: Sequence[int] = (8, 16, 32),
    seeds: Sequence[int] = (0, 1, 2),
    rates: Sequence[float] = (3e-3, 1e-2),
    **fixed: Any,
) -> list[Settings]:
    """Every combination of the given values; `fixed` goes to `Settings` as it is.

    >>> len(grid())
    360
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
    _prepare(path)
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    bar = tqdm(total=len(wanted), initial=len(wanted) - len(missing), unit="run", disable=not progress)
    with bar, path.open("a", newline="", encoding="utf-8") as table:
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        for row in parallel(joblib.delayed(run)(s) for s in missing):
            writer.writerow({name: _rounded(row[name]) for name in COLUMNS})
            table.flush()
            os.fsync(table.fileno())
            bar.update()
    _sort(path)
    return len(missing)


def read_table(path: str | Path) -> list[dict[str, Any]]:
    """Read the rows of a table; a line that an interruption cut short is left out.

    Raises `ValueError` if the file is not such a table.
    """
    text = Path(path).read_text(encoding="utf-8")
    lines = text[: text.rfind("\n") + 1].splitlines()
    if not lines or tuple(lines[0].split(",")) != COLUMNS:
        raise ValueError(f"path: expected a table with the columns {', '.join(COLUMNS)} in {path}")
    return [{name: _parsed(name, value) for name, value in row.items()} for row in csv.DictReader(lines)]


def write_provenance(path: str | Path, command: str) -> Path:
    """Write beside the table how it came about: the command, the versions, and the values of every setting."""
    rows, target = read_table(path), Path(path).with_suffix(".json")
    settings = {field.name: sorted({row[field.name] for row in rows}) for field in fields(Settings)}
    versions = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
                "joblib": joblib.__version__}  # fmt: skip
    record = {"command": command, "versions": versions, "machine": platform.machine(), "runs": len(rows), **settings}
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return target


def _prepare(path: Path) -> None:
    """Make sure that the table exists and ends with a whole line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        _replace(path, whole)


def _sort(path: Path) -> None:
    """Put the rows into the order of their settings, whatever the order in which runs ended."""
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    names = list(ATTENTIONS)

    def place(line: str) -> tuple[Any, ...]:
        attention, *rest = line.split(",")[: len(fields(Settings))]
        return names.index(attention), *map(float, rest)

    _replace(path, "\n".join([header, *sorted(rows, key=place)]) + "\n")


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _settings(row: Mapping[str, Any]) -> Settings:
    return Settings(**{field.name: row[field.name] for field in fields(Settings)})


def _rounded(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _parsed(name: str, value: str) -> Any:
    if name == "attention":
        return value
    return float(value) if name in {"rate", *MEASURES} else int(value)


def command_line() -> str:
    """The command under which this program runs, for the record."""
    return " ".join(["python -m attnmath.recall", *sys.argv[1:]])
