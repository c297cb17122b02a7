"""The folder of data says of each file what reads it, which hash it has, and what its columns are."""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import attnlab
from attnlab import records

DATA = Path(attnlab.__file__).parent / "data"
README = (DATA / "README.md").read_text(encoding="utf-8")
TABLES = sorted(DATA.glob("*.csv"))


def listed(readme: str) -> dict[str, tuple[str, str]]:
    """What the page says of each file: what reads it, and its hash."""
    rows = re.findall(r"^\| `([\w.]+)` \| `attnlab\.([\w.]+)\([^`]*\)` \| `([0-9a-f]{64})` \|$", readme, re.MULTILINE)
    return {name: (reader, digest) for name, reader, digest in rows}


def columns(readme: str, table: str) -> list[tuple[str, str]]:
    """The columns of a table with their meanings, as the page has them."""
    sections = [part for part in readme.split("\n### ") if f"`{table}`" in part.partition("\n")[0]]
    section = sections[0].partition("\n## ")[0] if sections else ""
    return re.findall(r"^\| `(\w+)` \| [^|]*\| ([^|]+) \|$", section, re.MULTILINE)


def test_every_file_is_listed_with_what_reads_it_and_its_hash() -> None:
    found = listed(README)
    assert set(found) == {path.name for kind in ("npz", "csv", "xz") for path in DATA.glob(f"*.{kind}")}
    for name, (reader, digest) in found.items():
        assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == digest, name
        module, _, function = reader.rpartition(".")
        assert callable(getattr(importlib.import_module(f"attnlab.{module}"), function)), reader


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_every_column_has_a_meaning_and_the_record_its_hash(table: Path) -> None:
    with table.open(encoding="utf-8", newline="") as file:
        head = next(csv.reader(file))
    assert [name for name, _ in columns(README, table.name)] == head
    record = json.loads(table.with_suffix(".json").read_text(encoding="utf-8"))
    assert record["sha256"] == listed(README)[table.name][1] and record["versions"]["python"]


def test_a_page_that_lacks_a_column_or_a_file_is_another() -> None:
    assert "seed" not in dict(columns(README.replace("| `seed` | |", "| seed | |"), "locality.csv"))
    assert "recall.csv" not in listed(README.replace("attnlab.recall.results.load_results()", "a function"))


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_a_table_that_was_changed_is_not_read(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, _, function = f"attnlab.{listed(README)[table.name][0]}".rpartition(".")
    read = getattr(importlib.import_module(module), function)
    assert read()
    (tmp_path / table.with_suffix(".json").name).write_bytes(table.with_suffix(".json").read_bytes())
    (tmp_path / table.name).write_bytes(table.read_bytes().replace(b"0", b"1", 1))
    monkeypatch.setattr(records, "_DATA", tmp_path)
    with pytest.raises(ValueError, match=f"{table.name}: expected a table with SHA-256 [0-9a-f]+, as its record says"):
        read()


# --- what writes and reads the tables of dataclasses ------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A row with a field of each kind."""

    word: str
    count: int
    share: float


ROWS = (Row("a", 1, 0.5), Row("b, c", 2, 1e-3))


def test_rows_come_back_as_they_were_written() -> None:
    assert records.parsed(records.written(ROWS, Row).decode(), Row, "rows") == ROWS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("word,count\na,1\n", "rows: expected the columns word, count, share, got"),
        ("word,count,share\na,one,0.5\n", "rows: expected words and numbers for word, count, share in line 2, got"),
        ("word,count,share\na,1\n", "in line 2, got"),
    ],
)
def test_another_table_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        records.parsed(text, Row, "rows")


def test_a_file_that_cannot_be_replaced_stays(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("old")
    (tmp_path / "t.csv.part").mkdir()
    with pytest.raises(OSError):
        records.replace(tmp_path / "t.csv", b"new")
    assert (tmp_path / "t.csv").read_text() == "old"
    (tmp_path / "t.csv.part").rmdir()
    records.replace(tmp_path / "t.csv", b"new")
    assert (tmp_path / "t.csv").read_text() == "new" and len(list(tmp_path.iterdir())) == 1
