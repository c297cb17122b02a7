"""Stamps: remember that something was done for exactly these inputs, and notice when they change.

A stamp is a small file that holds the hash of the inputs' *contents* (never of their dates), so
that a checkout of an old version, a copy, or a touched file are each seen for what they are.
Standard library only: the environment itself is installed behind a stamp.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMPS = ROOT / "_build" / "stamps"
#: Folders that hold no input of anything.
IGNORED = {
    ".git", ".venv", "_build", "__pycache__", ".ipynb_checkpoints", "node_modules", "results",
    ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis",
}  # fmt: skip


def files(paths: Iterable[Path]) -> list[Path]:
    """Return the files at or below the paths, sorted, without caches and build outputs.

    A path that does not exist counts as absent, so that its later appearance is a change.
    """
    found: set[Path] = set()
    for path in paths:
        if path.is_file():
            found.add(path)
        elif path.is_dir():
            for folder, subfolders, names in os.walk(path):
                subfolders[:] = [s for s in subfolders if s not in IGNORED and not s.endswith(".egg-info")]
                found.update(Path(folder, name) for name in names)
    return sorted(found)


def digest(paths: Iterable[Path], *also: str) -> str:
    """Return the hash of the names and contents of the files at or below the paths, and of `also`."""
    total = hashlib.sha256()
    for word in also:
        total.update(f"{len(word)}:{word}\n".encode())
    for path in files(paths):
        name = os.path.relpath(path, ROOT)
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def python_version() -> str:
    """Return the interpreter's version, down to the patch."""
    return "python " + ".".join(map(str, sys.version_info[:3]))


def constraints_file() -> Path:
    """Return the pins for this interpreter."""
    return ROOT / "constraints" / f"python-{sys.version_info[0]}.{sys.version_info[1]}.txt"


def is_fresh(stamp: Path, inputs: str) -> bool:
    """Say whether the stamp records these inputs."""
    return stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == inputs


def record(stamp: Path, inputs: str) -> None:
    """Write the stamp, in one step."""
    write_atomically(stamp, inputs + "\n")


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that no reader, and no interruption, ever leaves half of it; text goes out as UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, delete=False) as stream:
        fresh = Path(stream.name)
        try:
            stream.write(content.encode("utf-8") if isinstance(content, str) else content)
            stream.flush()
            fresh.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def only_one(name: str, folder: Path | None = None) -> Iterator[None]:
    """Let one process at a time do the named work; others wait for it, and say so."""
    folder = folder or STAMPS
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{name}: waiting for another run of the same work to end", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def notebooks(paths: Iterable[Path] = (ROOT / "chapters",)) -> list[Path]:
    """Return the notebooks at or below the paths."""
    return [p for p in files(paths) if p.suffix == ".ipynb"]


class NotebookStamps:
    """What a notebook's outputs depend on: itself, its claims, the package, the pins, the Python."""

    def __init__(self) -> None:
        self._common = digest([ROOT / "code", constraints_file()], python_version())

    def inputs(self, notebook: Path) -> str:
        """Return the hash of everything that the notebook's outputs depend on, its outputs included."""
        data = [p for p in notebook.parent.iterdir() if p.is_file() and p.suffix != ".ipynb"]
        return digest([notebook, *data], self._common)

    def path(self, kind: str, notebook: Path) -> Path:
        """Return the stamp's place; kind is "executed" or "proved"."""
        return STAMPS / kind / (os.path.relpath(notebook, ROOT).replace(os.sep, "--") + ".stamp")

    def is_fresh(self, kind: str, notebook: Path) -> bool:
        """Say whether the notebook as it stands was executed, or proved."""
        return is_fresh(self.path(kind, notebook), self.inputs(notebook))
