"""Tables of runs: a row for each, written while others run, readable without torch, and never half written."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from attnlab.records import replace
from attnmath.checks import path_to

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, two sweeps into one table are not noticed
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Table:
    """The form of a table.

    columns : names of its columns.  settings : those of them that tell one run from another.
    parse : the value of a column, from its name and its text; raises KeyError, TypeError or ValueError for another.
    place : what rows are sorted by.
    """

    columns: tuple[str, ...]
    settings: tuple[str, ...]
    parse: Callable[[str, str], object]
    place: Callable[[Mapping[str, object]], tuple[object, ...]]

    def read(self, path: str | Path) -> list[dict[str, Any]]:
        """Read the rows; a line that an interruption cut short is left out, and so is a run that occurs twice.

        Raises `ValueError` if the file is not such a table.
        """
        try:
            text = path_to(path, "path").read_text(encoding="utf-8")
        except UnicodeDecodeError:
            text = ""
        return self.parsed(text, str(path))

    def parsed(self, text: str, name: str) -> list[dict[str, Any]]:
        """Return the rows of such a table, as `read` does.

        name : of the table, for the error.
        """
        lines = text[: text.rfind("\n") + 1].splitlines()
        if not lines or tuple(lines[0].split(",")) != self.columns:
            raise ValueError(f"path: expected a table with the columns {', '.join(self.columns)} in {name}")
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        for line, row in enumerate(csv.DictReader(lines), start=2):
            try:
                parsed = {name: self.parse(name, row[name]) for name in self.columns}
            except (KeyError, TypeError, ValueError):
                raise ValueError(
                    f"path: expected {len(self.columns)} values in line {line} of {name}, got {row}"
                ) from None
            found.setdefault(tuple(parsed[name] for name in self.settings), parsed)
        return list(found.values())

    @contextmanager
    def locked(self, path: Path) -> Iterator[IO[str]]:
        """Open a table to append to it, for this process alone: it exists then, and ends with a whole line.

        Raises `ValueError` while another process has the table open in this way, and for a file that is no such table,
        which is left as it was. A process that is killed gives the lock back.
        """
        path_to(path, "path").parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+", newline="", encoding="utf-8") as table:
            _lock(table, path)
            if table.tell() == 0:
                table.write(",".join(self.columns) + "\n")
                table.flush()
            self.read(path)
            written = path.read_bytes()
            table.truncate(written.rfind(b"\n") + 1)
            yield table

    def sort(self, path: Path) -> None:
        """Put the rows into their order, whatever the order in which runs ended; each run once."""
        header, *rows = dict.fromkeys(path.read_text(encoding="utf-8").splitlines())

        def place(line: str) -> tuple[Any, ...]:
            texts = dict(zip(self.columns, line.split(","), strict=False))
            return self.place({name: self.parse(name, texts[name]) for name in self.settings})

        replace(path, ("\n".join([header, *sorted(rows, key=place)]) + "\n").encode())


def rounded(value: Any) -> Any:
    """Six significant digits of a number with decimals; anything else as it is.

    >>> rounded(1 / 3), rounded(7)
    ('0.333333', 7)
    """
    return f"{value:.6g}" if isinstance(value, float) else value


def exact(value: Any) -> Any:
    """As `rounded`, with all digits where six are not the number: a setting is found again by its value.

    >>> exact(0.0027), exact(0.0123456789)
    ('0.0027', '0.0123456789')
    """
    return str(float(value)) if isinstance(value, float) and float(rounded(value)) != value else rounded(value)


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
