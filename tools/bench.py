"""Time the book against its budgets: ``python tools/bench.py [--only notebooks|book] [--repeat N] [--dry-run]``.

Prints medians and rewrites the *Numbers* table of README.md. There each figure is a share of its budget and a
multiple of a fixed calibration workload, so that figures from different machines can be compared.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import execute
import stamps

TEST_BUDGET, BOOK_BUDGET, NOTEBOOK_BUDGET = 240.0, 10.0, 15.0
OWN_BUDGETS = {"sparsity/associative_recall": 60.0}  # it trains models, and is in no sum
#: The budgets of chapters that are executed one after another, and how their names begin.
SUMS: dict[str, tuple[float, tuple[str, ...]]] = {
    "the chapters of operator": (60.0, ("operator/",)),
    "the chapters of spectrum": (75.0, ("spectrum/",)),
    "the chapters of sparsity": (40.0, ("sparsity/",)),
    "the two model chapters": (20.0, ("operator/scaling", "sparsity/softmax_and_relu2")),
}
START, END = "<!-- numbers:start -->", "<!-- numbers:end -->"
HEAD = "| what | budget | used of the budget | multiple of the calibration |\n|---|---:|---:|---:|"
LIBRARIES = ("numpy", "scipy", "sympy", "matplotlib", "torch", "jupyter-book")


class Measurement(NamedTuple):
    """What was timed, its budget and its median, both in seconds."""

    what: str
    budget: float
    median: float


def seconds(work: Callable[[], object], repeat: int) -> float:
    """Return the median of the seconds that the work takes."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def calibrate() -> None:
    """Do a fixed amount of work, half in pure Python and half in numpy; about a second on a common machine."""
    import numpy as np

    total = 0
    for i in range(6_000_000):
        total = (total + i * i) % 1_000_003
    rng = np.random.default_rng(0)
    for _ in range(12):
        a = rng.standard_normal((500, 500))
        np.sort(np.exp(a @ a.T / 500), axis=1)


def notebooks(repeat: int) -> Iterator[Measurement]:
    """Each notebook's execution, kernel start included, in memory; then the sums."""
    medians: dict[str, float] = {}
    for path in stamps.notebooks():
        name = path.relative_to(stamps.ROOT / "chapters").with_suffix("").as_posix()
        medians[name] = seconds(partial(execute.run, path), repeat)
        yield Measurement(f"execute {name}", OWN_BUDGETS.get(name, NOTEBOOK_BUDGET), medians[name])
    yield from sums(medians)


def sums(medians: dict[str, float]) -> Iterator[Measurement]:
    """Return the sums over chapters.

    >>> [(m.what, m.median) for m in sums({"operator/scaling": 7.0, "sparsity/softmax_and_relu2": 5.0})][-1]
    ('execute the two model chapters', 12.0)
    """
    for what, (budget, starts) in SUMS.items():
        total = sum(s for name, s in medians.items() if name.startswith(starts) and name not in OWN_BUDGETS)
        yield Measurement(f"execute {what}", budget, total)


def book(repeat: int) -> Iterator[Measurement]:
    """The two commands in a fresh copy that shares this environment, then the second `make book`."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "book")
        shutil.copytree(stamps.ROOT, folder, ignore=lambda _, names: stamps.IGNORED & set(names))
        yield Measurement("`make test` after installation", TEST_BUDGET, seconds(lambda: make("test", folder), 1))
        yield Measurement("`make book`, nothing changed", BOOK_BUDGET, seconds(lambda: make("book", folder), repeat))


def make(target: str, folder: Path) -> None:
    """Run a make target in the folder, with this environment as it is."""
    command = ["make", target, f"VENV={sys.prefix}", "INSTALL=no"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: make {target} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")


def row(m: Measurement, unit: float) -> str:
    """Return a measurement's row of the README's table.

    >>> row(Measurement("x", 10.0, 2.0), 0.5)
    '| x | 10 s | 20 % | 4.0 |'
    """
    return f"| {m.what} | {m.budget:g} s | {100 * m.median / m.budget:.0f} % | {m.median / unit:.1f} |"


def rewrite(readme: str, rows: Sequence[str], machine: str) -> str:
    """Return the README with the table between its markers brought up to date: rows of the same kind are replaced."""
    before, start, rest = readme.partition(START)
    inside, end, after = rest.partition(END)
    if not start or not end:
        raise SystemExit(f"bench: README.md: expected the markers {START} and {END}")
    old = [line for line in inside.splitlines() if line.startswith("|")][2:]
    if any(r.startswith("| execute ") for r in rows):
        old = [r for r in old if not r.startswith("| execute ")]  # a chapter may be gone
    table = {r.split("|")[1]: r for r in (*old, *rows)}
    return "\n".join([before + START, HEAD, *table.values(), "", machine, END + after])


def machine() -> str:
    """Return what the figures were taken with, in one sentence that names no particular machine."""
    installed = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    versions = ", ".join(f"{n} {importlib.metadata.version(n)}" for n in LIBRARIES if n in installed)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"Medians on {cores} cores with Python {platform.python_version()}, {versions}."


def main(arguments: list[str] | None = None) -> int:
    """Run the benches asked for; return 1 when one is over its budget."""
    benches = {"notebooks": notebooks, "book": book}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=benches, default=list(benches), help="which (default: both)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each short measurement (default: 3)")
    parser.add_argument("--dry-run", action="store_true", help="leave README.md alone")
    options = parser.parse_args(arguments)
    execute.fix_environment()
    unit = seconds(calibrate, 5)
    print(f"calibration: {unit:.2f} s", flush=True)
    measurements = []
    for m in (m for name in options.only for m in benches[name](options.repeat)):
        print(f"{m.what}: {m.median:.2f} s of {m.budget:g} s", flush=True)
        measurements.append(m)
    if not options.dry_run:
        readme = stamps.ROOT / "README.md"
        new = rewrite(readme.read_text(encoding="utf-8"), [row(m, unit) for m in measurements], machine())
        stamps.write_atomically(readme, new)
    return int(any(m.median > m.budget for m in measurements))


if __name__ == "__main__":
    stamps.run(main)
