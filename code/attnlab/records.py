"""Files that commands write: tables whose rows are dataclasses, archives of arrays, and never half of one."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Shaped

Row = TypeVar("Row")
_DATA = resources.files("attnlab") / "data"
_KINDS = {"str": str, "int": int, "float": float}


def written(rows: Sequence[Any], kind: type) -> bytes:
    """Return a table with a column for each field of a dataclass."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in fields(kind)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return out.getvalue().encode()


def parsed(text: str, kind: type[Row], name: str) -> tuple[Row, ...]:
    """Return the rows of such a table; `ValueError` if it has other columns, or a value of another kind.

    name : of the table, for the error.
    """
    found = csv.DictReader(io.StringIO(text))
    columns: dict[str, Any] = {field.name: _KINDS[str(field.type)] for field in fields(kind)}  # type: ignore[arg-type]
    if found.fieldnames != list(columns):
        raise ValueError(f"{name}: expected the columns {', '.join(columns)}, got {found.fieldnames}")
    rows = []
    for row in found:
        try:
            rows.append(kind(**{column: read(row[column]) for column, read in columns.items()}))
        except (TypeError, ValueError):
            expected = f"{name}: expected words and numbers for {', '.join(columns)} in line {found.line_num}"
            raise ValueError(f"{expected}, got {row}") from None
    return tuple(rows)


def read(path: Path, kind: type[Row], name: str) -> tuple[Row, ...]:
    """Return the rows of a file, or none if there is no such file."""
    if not path.exists():
        return ()
    return parsed(text_of(path, name, "a table"), kind, name)


def is_file(path: Path) -> bool:
    """Whether a file is there; it is not where the system cannot look it up, as for a name that is too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def text_of(path: Path, name: str, kind: str = "a file") -> str:
    """Return the text of a file; `ValueError` if it is in another encoding than UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: expected {kind} in UTF-8, got {path} ({error})") from None


def json_object(path: Path, name: str) -> dict[str, Any]:
    """Return the JSON object that a file holds; `ValueError` if it holds anything else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: expected JSON in {path}, got {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{name}: expected a JSON object in {path}, got {type(found).__name__}")
    return found


def arrays_of(path: Path, expected: str, wanted: Callable[[str], bool] = bool) -> dict[str, Shaped[np.ndarray, "..."]]:
    """Return the arrays of an .npz file whose names are wanted; no pickle is loaded.

    expected : what the file should be, for the error. Whatever else it is, encrypted, cut off, or with a header that
    promises more than memory holds, is a `ValueError`; `FileNotFoundError` if it is not there.
    """
    try:
        with path.open("rb") as file:  # which numpy leaves open where it fails
            arrays = np.load(file, allow_pickle=False)
            if isinstance(arrays, np.ndarray):
                raise ValueError("one array, and no archive of several")
            found = {name: arrays[name] for name in arrays.files if wanted(name)}
    except FileNotFoundError:
        raise
    except Exception as error:  # numpy and zipfile raise errors of a dozen kinds
        raise ValueError(
            f"path: expected {expected}, got {str(path)[:200]} ({error or type(error).__name__})"
        ) from None
    if strange := [name for name, value in found.items() if not isinstance(value, np.ndarray)]:
        raise ValueError(f"path: expected arrays in {path}, got bytes for {', '.join(strange)}")
    return found


def provenance(name: str) -> dict[str, Any]:
    """Return the record ``data/NAME.json`` of a table that ships with the package: how it came about, and its hash."""
    record: dict[str, Any] = json.loads((_DATA / f"{name}.json").read_text(encoding="utf-8"))
    return record


def shipped(name: str) -> str:
    """Return the table ``data/NAME.csv``, which ships with the package, after checking the hash in its record."""
    content = (_DATA / f"{name}.csv").read_bytes()
    expected, found = provenance(name)["sha256"], hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ValueError(f"{name}.csv: expected a table with SHA-256 {expected}, as its record says, got {found}")
    return content.decode()


def archive(arrays: dict[str, Shaped[np.ndarray, "..."]]) -> bytes:
    """Encode arrays as an .npz file whose bytes depend on the arrays alone: no dates, no compression."""
    if not isinstance(arrays, dict) or not all(isinstance(name, str) for name in arrays):
        raise TypeError(f"arrays: expected a dictionary from names to arrays, got {type(arrays).__name__}")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as zipped:
        for name, array in arrays.items():
            member = io.BytesIO()
            if not isinstance(array, np.ndarray) or array.dtype.hasobject:
                raise TypeError(f"arrays: expected numpy arrays without objects, got {type(array).__name__} for {name}")
            np.lib.format.write_array(member, array, allow_pickle=False)
            zipped.writestr(zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0)), member.getvalue())
    return buffer.getvalue()


def replace(path: Path, content: bytes) -> None:
    """Write a file in one step: an interruption leaves the old content."""
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
