"""The table of results: a row for each run, readable without torch, and never half written."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

#: The attentions under test, in the order of every table and figure.
ATTENTION_NAMES = ("softmax", "relu^2", "elu+1", "identity", "decay")
#: Columns of the table: the settings of a run, and what it measured.
SETTINGS = ("attention", "pairs", "width", "seed", "steps", "batch", "rate")
MEASURES = ("recall", "S_1", "S_2", "support_1", "support_2")
COLUMNS = (*SETTINGS, *MEASURES)


def read_table(path: str | Path) -> list[dict[str, Any]]:
    """Read the rows of a table; a line that an interruption cut short is left out.

    Raises `ValueError` if the file is not such a table.
    """
    text = Path(path).read_text(encoding="utf-8")
    lines = text[: text.rfind("\n") + 1].splitlines()
    if not lines or tuple(lines[0].split(",")) != COLUMNS:
        raise ValueError(f"path: expected a table with the columns {', '.join(COLUMNS)} in {path}")
    found = []
    for number, row in enumerate(csv.DictReader(lines), start=2):
        try:
            found.append({name: _parsed(name, row[name]) for name in COLUMNS})
        except (TypeError, ValueError):
            raise ValueError(f"path: expected {len(COLUMNS)} values in line {number} of {path}, got {row}") from None
    return found


def prepare(path: Path) -> None:
    """Make sure that the table exists and ends with a whole line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        _replace(path, whole)


def sort(path: Path) -> None:
    """Put the rows into the order of their settings, whatever the order in which runs ended."""
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    names = list(ATTENTION_NAMES)

    def place(line: str) -> tuple[Any, ...]:
        attention, *rest = line.split(",")[: len(SETTINGS)]
        return names.index(attention), *map(float, rest)

    _replace(path, "\n".join([header, *sorted(rows, key=place)]) + "\n")


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


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
