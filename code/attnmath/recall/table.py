"""The table of results: a row for each run, readable without torch, and never half written."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from attnmath.checks import number, one_of, path_to

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, two sweeps into one table are not noticed
    fcntl = None  # type: ignore[assignment]

#: The attentions under test, in the order of every table and figure.
ATTENTION_NAMES = ("softmax", "relu^2", "elu+1", "identity", "decay")
#: What the fixed parameter of each attention is: its name, and the values tried, from spread rows to concentrated ones.
PARAMETERS: Mapping[str, tuple[str, tuple[float, ...]]] = MappingProxyType({
    "softmax": ("inverse temperature", (0.125, 0.25, 0.5, 1.0, 4.0)),
    "relu^2": ("bias", (8.0, 4.0, 2.0, 0.0, -1.0)),
    "elu+1": ("power of the features", (1.0, 2.0, 4.0, 8.0)),
    "identity": ("power of the score, its sign kept", (1.0, 2.0, 3.0)),
    "decay": ("rate", (0.999, 0.97, 0.9, 0.6, 0.3)),
})  # fmt: skip
#: The article's own forms: no temperature, no bias, no power. (It leaves the rate of decay open.)
STANDARD: Mapping[str, float] = MappingProxyType(
    {"softmax": 1.0, "relu^2": 0.0, "elu+1": 1.0, "identity": 1.0, "decay": 0.9}
)
#: Columns of the table: the settings of a run, what it measured, and where it ran.
SETTINGS = ("attention", "parameter", "unit", "pairs", "head", "width", "seed", "steps", "batch", "rate")
MEASURES = ("validation", "recall", "target", "S", "support")
COLUMNS = (*SETTINGS, *MEASURES, "device")
#: The designs behind the shipped table, and the seeds and learning rates that each of their settings gets.
DESIGNS = ("concentration", "width", "pairs")
SEEDS, RATES = (0, 1, 2, 3, 4), (0.0027, 0.008, 0.024, 0.072, 0.216, 0.648)


def check_parameter(attention: str, parameter: float) -> float:
    """Return the parameter of an attention if it is one: of softmax and the powers above 0, of decay in (0, 1]."""
    one_of(attention, ATTENTION_NAMES, "attention")
    parameter = number(parameter, "parameter")
    if attention != "relu^2" and parameter <= 0:
        raise ValueError(f"parameter: expected a number above 0 for {attention}, got {parameter:g}")
    if attention == "decay" and parameter > 1:
        raise ValueError(f"parameter: expected a rate of decay of at most 1, got {parameter:g}")
    return parameter


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
    for line, row in enumerate(csv.DictReader(lines), start=2):
        try:
            parsed = {name: _parsed(name, row[name]) for name in COLUMNS}
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"path: expected {len(COLUMNS)} values in line {line} of {path}, got {row}") from None
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
        row = dict(zip(COLUMNS, line.split(","), strict=False))
        return names.index(row["attention"]), *(_parsed(name, row[name]) for name in SETTINGS[1:])

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
    if name == "unit":
        return {"True": True, "False": False}[value]
    if name == "device":
        return value + ""  # None, of a line that was cut short, is no device
    if name == "attention":
        if value not in ATTENTION_NAMES:
            raise ValueError(value)
        return value
    return float(value) if name in {"parameter", "rate", *MEASURES} else int(value)
