"""The table of results: a row for each run, readable without torch, and never half written."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from attnmath.checks import path_to

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, two sweeps into one table are not noticed
    fcntl = None  # type: ignore[assignment]

#: The attentions under test, in the order of every table and figure.
ATTENTION_NAMES = ("softmax", "relu^2", "elu+1", "identity", "decay")
#: Columns of the table: the settings of a run, and what it measured.
SETTINGS = ("attention", "pairs", "width", "seed", "steps", "batch", "rate")
MEASURES = ("recall", "S_1", "S_2", "support_1", "support_2")
COLUMNS = (*SETTINGS, *MEASURES)
#: The grid behind the shipped table: every combination of the attentions and these, 540 runs.
PAIRS, WIDTHS, SEEDS, RATES = (4, 8, 16, 32), (8, 16, 32), (0, 1, 2), (3e-3, 1e-2, 3e-2)


def read_table(path: str | Path) -> list[dict[str, Any]]:
    """Read the rows of a table; a line that an interruption cut short is left out, and so is a run that occurs twice.

    Raises `ValueError` if the file is not such a table.
    """
    try:
        text = path_to(path, "path").read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = ""
    lines = text[: text.rfind("\n") + 1].splitlines()
    if not lines or tuple(lines[0].split(",")) != COLUMNS:
        raise ValueError(f"path: expected a table with the columns {', '.join(COLUMNS)} in {path}")
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for number, row in enumerate(csv.DictReader(lines), start=2):
        try:
            parsed = {name: _parsed(name, row[name]) for name in COLUMNS}
        except (TypeError, ValueError):
            raise ValueError(f"path: expected {len(COLUMNS)} values in line {number} of {path}, got {row}") from None
        found.setdefault(tuple(parsed[name] for name in SETTINGS), parsed)
    return list(found.values())


@contextmanager
def locked(path: Path) -> Iterator[IO[str]]:
    """Open a table to append to it, for this process alone: it exists then, and ends with a whole line.

    Raises `ValueError` while another process has the table open in this way, and for a file that is no such table,
    which is left as it was. A process that is killed gives the lock back.
    """
    path_to(path, "path").parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", newline="", encoding="utf-8") as table:
        _lock(table, path)
        if table.tell() == 0:
            table.write(",".join(COLUMNS) + "\n")
            table.flush()
        read_table(path)
        written = path.read_bytes()
        table.truncate(written.rfind(b"\n") + 1)
        yield table


def _lock(table: IO[str], path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(table, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = path.stat().st_ino == os.fstat(table.fileno()).st_ino
    except BlockingIOError:
        same = False
    except OSError:  # a file system without locks
        return
    if not same:  # locked by another sweep, or replaced by one that ended just now
        raise ValueError(f"path: expected a table that no other sweep writes, got {path}, which one is writing")


def sort(path: Path) -> None:
    """Put the rows into the order of their settings, whatever the order in which runs ended; each run once."""
    header, *rows = dict.fromkeys(path.read_text(encoding="utf-8").splitlines())
    names = list(ATTENTION_NAMES)

    def place(line: str) -> tuple[Any, ...]:
        attention, *rest = line.split(",")[: len(SETTINGS)]
        return names.index(attention), *map(float, rest)

    _replace(path, "\n".join([header, *sorted(rows, key=place)]) + "\n")


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def rounded(value: Any) -> Any:
    """Six significant digits of a number with decimals; anything else as it is.

    >>> rounded(1 / 3), rounded(7)
    ('0.333333', 7)
    """
    return f"{value:.6g}" if isinstance(value, float) else value


def _parsed(name: str, value: str) -> Any:
    if name == "attention":
        if value not in ATTENTION_NAMES:
            raise ValueError(value)
        return value
    return float(value) if name in {"rate", *MEASURES} else int(value)
