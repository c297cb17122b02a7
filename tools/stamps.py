"""Stamps: remember that something was done for exactly these inputs, and notice when they change.

A stamp is a small file that holds hashes of the inputs' *contents* (never their dates), so that a checkout of an old
version, a copy, or a touched file are each seen for what they are. The stamp of a notebook names each input, so that
`make due` can say which one has changed; that of a step holds one hash of all.
Standard library only: the environment itself is installed behind a stamp.

``python tools/stamps.py NAME --inputs PATH... --output PATH [--remove PATH...] -- COMMAND...``
runs COMMAND when the output is missing or the inputs' contents, the interpreter or COMMAND itself
differ from those of its last success. With ``--remove`` the named paths go first, so that
nothing of an earlier run survives.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import reach

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, nothing keeps two runs of the same work apart
    fcntl = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parent.parent
STAMPS = ROOT / "_build" / "stamps"
#: What something depends on: the hash of each file's content by its name, and the version of Python.
Inputs = dict[str, str]
#: Where the notebooks are: the chapters, and the executed pages that are no chapters.
NOTEBOOKS = (ROOT / "chapters", ROOT / "guide")
#: Folders that hold no input of anything.
IGNORED = {
    ".git", ".venv", "_build", "__pycache__", ".ipynb_checkpoints", "node_modules", "results",
    ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis",
}  # fmt: skip


def files(paths: Iterable[Path]) -> list[Path]:
    """Return the files at or below the paths, sorted, without caches and build outputs; a path need not exist yet."""
    found: set[Path] = set()
    for path in paths:
        if path.is_file():
            found.add(path)
        for folder, subfolders, names in os.walk(path):
            subfolders[:] = [s for s in subfolders if s not in IGNORED and not s.endswith(".egg-info")]
            found.update(Path(folder, name) for name in names)
    return sorted(found)


def notebooks(paths: Iterable[Path] = NOTEBOOKS) -> list[Path]:
    """Return the notebooks at or below the paths."""
    return [p for p in files(paths) if p.suffix == ".ipynb"]


def digest(paths: Iterable[Path], *also: str) -> str:
    """Return the hash of the names and contents of the files at or below the paths, of `also` and of the Python."""
    total = hashlib.sha256()
    for word in (platform.python_version(), *also):
        total.update(f"{len(word)}:{word}\n".encode())
    for path in files(paths):
        name = os.path.relpath(path, ROOT)
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def hashes(paths: Iterable[Path], known: dict[Path, str] | None = None) -> dict[str, str]:
    """Return the hash of each file's content by its name below the root, in order; known hashes are not made again."""
    known = {} if known is None else known
    for path in paths:
        if path not in known:
            known[path] = hashlib.sha256(path.read_bytes()).hexdigest()
    return {os.path.relpath(path, ROOT).replace(os.sep, "/"): known[path] for path in sorted(paths)}


def inputs_of(notebooks: Iterable[Path]) -> dict[Path, Inputs]:
    """Return what each notebook's outputs depend on: itself, what it reaches (`reach`), pins, conventions, Python."""
    notebooks = list(notebooks)
    folders = {*NOTEBOOKS, *(n.parent for n in notebooks)}
    beside = {p for folder in folders for p in files([folder]) if p.suffix != ".ipynb" and not p.name.startswith(".")}
    sources = reach.Sources([ROOT / "code"], lambda root: files([root]), beside, STAMPS / "reach.json")
    pins = files([ROOT / "constraints.txt", ROOT / "linewise.yml"])  # the conventions say how a card reads
    known: dict[Path, str] = {}
    found = {}
    for notebook in notebooks:
        reached = {notebook, *pins, *sources.reached(notebook)}
        found[notebook] = {"Python": platform.python_version(), **hashes(reached, known)}
    sources.remember(write_atomically)
    return found


def stamp_of(kind: str, notebook: Path) -> Path:
    """Return the place of a notebook's stamp; kind is "executed" or "proved"."""
    return STAMPS / kind / (os.path.relpath(notebook, ROOT).replace(os.sep, "--") + ".stamp")


def is_fresh(stamp: Path, inputs: str) -> bool:
    """Return whether the stamp of a step records these inputs."""
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == inputs


def stamped(stamp: Path) -> Inputs:
    """Return the inputs that a stamp records; none if there is no such stamp, or one that cannot be read."""
    try:
        inputs = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return inputs if isinstance(inputs, dict) else {}


def write_stamp(stamp: Path, inputs: Inputs) -> None:
    """Record the inputs for which something was done, to be read by people as well."""
    write_atomically(stamp, json.dumps(inputs, indent=1, ensure_ascii=False) + "\n")


def changes(stamp: Path, inputs: Inputs) -> list[str]:
    """Return which inputs are not those that the stamp records, in words; [] if all are."""
    before = stamped(stamp)
    if not before:
        return ["never done"]
    words = []
    for name in sorted(before.keys() | inputs.keys()):
        if name not in before:
            words.append(f"{name} (new)")
        elif name not in inputs:
            words.append(f"{name} (no longer)")
        elif before[name] != inputs[name]:
            words.append(name)
    return words


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that no reader, and no interruption, ever leaves half of it; text goes out as UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        if path.exists():
            shutil.copymode(path, fresh)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


@contextlib.contextmanager
def only_one(name: str) -> Iterator[None]:
    """Let one process at a time do the named work; others wait for it, and say so. (On Windows nothing waits.)"""
    if fcntl is None:
        yield
        return
    STAMPS.mkdir(parents=True, exist_ok=True)
    with (STAMPS / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{name}: waiting for another run of the same work to end", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(main: Callable[[], int]) -> NoReturn:
    """Run a command. An interruption ends it without a traceback: the Makefile says what it means."""
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        os._exit(130)  # at once: a thread that waits for a kernel would hold an orderly exit up


def main(arguments: list[str] | None = None) -> int:
    """Run the command if it is due, and return its exit code (0 when it is not due)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--inputs", nargs="+", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--remove", nargs="*", type=Path, default=[])
    parser.add_argument("--stamp", type=Path, help="where the stamp is (default: _build/stamps/NAME.stamp)")
    parser.add_argument("command", nargs="+", help="the command, after --")
    options = parser.parse_args(arguments)
    stamp: Path = options.stamp or STAMPS / f"{options.name}.stamp"
    with only_one(options.name):
        inputs = digest(options.inputs, *options.command)
        if options.output.exists() and is_fresh(stamp, inputs):
            print(f"{options.name}: up to date")
            return 0
        stamp.unlink(missing_ok=True)
        for path in options.remove:
            shutil.rmtree(path, ignore_errors=True)
        started = time.monotonic()
        code = subprocess.run(options.command).returncode
        if code == 0:
            write_atomically(stamp, inputs)
            print(f"{options.name}: done in {time.monotonic() - started:.1f} s")
        return code


if __name__ == "__main__":
    run(main)
