"""Tables of runs: a row for each, written while others run, readable without torch, and never half written."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from attnlab.records import replace, shipped
from attnmath.checks import flag, number, one_of, path_to

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, two sweeps into one table are not noticed
    fcntl = None  # type: ignore[assignment]


#: What reads the text of a value; raises KeyError, TypeError or ValueError for a text that is none.
Reader = Callable[[str], Any]
#: A row of a table, by the names of its columns.
Row = dict[str, Any]


@dataclass(frozen=True)
class Words:
    """Reads one of some words, which are in the order that rows are sorted by.

    >>> Words(("softmax", "decay"))("decay")
    'decay'
    """

    names: tuple[str, ...]

    def __call__(self, text: str) -> str:
        """Return the text if it is one of the words."""
        return self.names[self.names.index(text)]


@dataclass(frozen=True)
class Table:
    """The form of a table: its settings, which tell one run from another, what was measured, and the device.

    told, measured : what reads each setting and each measure, in the order of the columns.
    order : the settings by which rows are sorted, the gravest first.
    """

    told: Mapping[str, Reader]
    measured: Mapping[str, Reader]
    order: tuple[str, ...]

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the columns that tell one run from another."""
        return tuple(self.told)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the columns of what a run measured."""
        return tuple(self.measured)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return (*self.told, *self.measured, "device")

    def shipped(self, name: str) -> list[Row]:
        """Return the rows of the table ``data/NAME.csv`` of the package, after checking its hash."""
        return self.parsed(shipped(name), f"{name}.csv")

    def read(self, path: str | Path) -> list[Row]:
        """Read the rows; a line that an interruption cut short is left out, and so is a run that occurs twice.

        Raises `ValueError` if the file is not such a table.
        """
        try:
            text = path_to(path, "path").read_text(encoding="utf-8")
        except UnicodeDecodeError:
            text = ""
        return self.parsed(text, str(path))

    def parsed(self, text: str, name: str) -> list[Row]:
        """Return the rows of such a table, as `read` does.

        name : of the table, for the error.
        """
        lines = text[: text.rfind("\n") + 1].splitlines()
        if not lines or tuple(lines[0].split(",")) != self.columns:
            raise ValueError(f"path: expected a table with the columns {', '.join(self.columns)} in {name}")
        readers, found = self._readers(), dict[tuple[Any, ...], Row]()
        for line, row in enumerate(csv.DictReader(lines), start=2):
            try:
                parsed = {column: read(row[column]) for column, read in readers.items()}
            except (KeyError, TypeError, ValueError):
                raise ValueError(
                    f"path: expected {len(self.columns)} values in line {line} of {name}, got {row}"
                ) from None
            found.setdefault(tuple(parsed[column] for column in self.settings), parsed)
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
        readers = {name: read.names.index if isinstance(read, Words) else read for name, read in self.told.items()}

        def place(line: str) -> tuple[Any, ...]:
            texts = dict(zip(self.columns, line.split(","), strict=False))
            return tuple(readers[name](texts[name]) for name in self.order)

        replace(path, ("\n".join([header, *sorted(rows, key=place)]) + "\n").encode())

    def _readers(self) -> dict[str, Reader]:
        return {**self.told, **self.measured, "device": _text}

    def checked(self, rows: Any, columns: Sequence[str], name: str = "rows") -> Sequence[Row]:
        """Return rows of the table, at least one, that have these columns; numbers may be of any kind.

        name : of the rows, for the errors.
        """
        if isinstance(rows, str) or not isinstance(rows, Sequence):
            raise TypeError(f"{name}: expected rows of the table, got {type(rows).__name__}")
        if not rows:
            raise ValueError(f"{name}: expected at least one run, got none")
        for row in rows:
            if not isinstance(row, dict):
                raise TypeError(f"{name}: expected a row of the table, got {type(row).__name__} {row!r}")
            if missing := [column for column in columns if column not in row]:
                wanted = f"{name}: expected a row with {', '.join(columns)}"
                raise ValueError(f"{wanted}, got one without {', '.join(missing)}")
            for column in columns:
                value, place, read = row[column], f"{name}[{column!r}]", self.told.get(column)
                if isinstance(read, Words):
                    one_of(value, read.names, place)
                elif read is truth:
                    flag(value, place)
                else:
                    number(value, place)
        return rows


def truth(text: str) -> bool:
    """Read True or False.

    >>> truth("False")
    False
    """
    return {"True": True, "False": False}[text]


def _text(text: str) -> str:
    return text + ""  # None, of a line that was cut short, is no text


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
