"""Time the book against its budgets: ``python tools/bench.py [--only NAME...] [--repeat N] [--dry-run]``.

Prints a table of medians and rewrites the *Numbers* table of README.md, where each figure stands
as a share of its budget and as a multiple of a fixed calibration workload, so that figures from
different machines can be compared. A new bench is a function that yields measurements:

    @bench("lint")
    def lint(options): yield measure("`make lint`", 30, lambda: ..., options.repeat)
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import execute
import stamps

TEST_BUDGET, BOOK_BUDGET, NOTEBOOK_BUDGET = 240.0, 10.0, 15.0
PART_BUDGETS = {"operator": 60.0, "spectrum": 75.0, "sparsity": 40.0}  # the chapters of a part, one after another
OWN_BUDGETS = {"sparsity/associative_recall": 60.0}  # it trains models, and stays out of its part's sum
START, END = "<!-- numbers:start -->", "<!-- numbers:end -->"
HEAD = "| what | budget | used of the budget | multiple of the calibration |\n|---|---:|---:|---:|"
_SUMS = "| execute the "
LIBRARIES = ("numpy", "scipy", "sympy", "matplotlib", "torch", "jupyter-book")


@dataclass(frozen=True)
class Measurement:
    """What was timed, its budget, and the seconds of each run."""

    what: str
    budget: float
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the runs, in seconds."""
        return statistics.median(self.seconds)


Bench = Callable[[argparse.Namespace], Iterable[Measurement]]
BENCHES: dict[str, Bench] = {}


def bench(name: str) -> Callable[[Bench], Bench]:
    """Register a bench under a name for ``--only``."""

    def register(function: Bench) -> Bench:
        BENCHES[name] = function
        return function

    return register


def measure(what: str, budget: float, work: Callable[[], object], repeat: int) -> Measurement:
    """Time the work `repeat` times."""
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return Measurement(what, budget, tuple(seconds))


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


@bench("notebooks")
def notebooks(options: argparse.Namespace) -> Iterator[Measurement]:
    """Each notebook's execution, kernel start included, in memory; then the sum of each part."""
    parts: dict[str, list[float]] = {}
    for path in stamps.notebooks():
        name = path.relative_to(stamps.ROOT / "chapters").with_suffix("").as_posix()
        budget = OWN_BUDGETS.get(name, NOTEBOOK_BUDGET)
        one = measure(f"execute {name}", budget, partial(execute.run, path), options.repeat)
        if name not in OWN_BUDGETS:
            parts.setdefault(name.split("/")[0], []).append(one.median)
        yield one
    for part, medians in parts.items():
        if part in PART_BUDGETS:
            yield Measurement(f"execute the {len(medians)} chapters of {part}", PART_BUDGETS[part], (sum(medians),))


@bench("book")
def book(options: argparse.Namespace) -> Iterator[Measurement]:
    """The two commands in a fresh clone that shares this environment, then the second `make book`."""
    with fresh_copy() as folder:
        yield measure("`make test` after installation", TEST_BUDGET, lambda: make("test", folder), 1)
        yield measure("`make book`, nothing changed", BOOK_BUDGET, lambda: make("book", folder), options.repeat)


@contextmanager
def fresh_copy() -> Iterator[Path]:
    """Yield a clone of the last commit in a temporary folder (or a copy, where there is no git)."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "book")
        clone = ["git", "clone", "--quiet", "--no-hardlinks", str(stamps.ROOT), str(folder)]
        if not (stamps.ROOT / ".git").exists() or subprocess.run(clone).returncode:
            shutil.copytree(stamps.ROOT, folder, ignore=lambda _, names: stamps.IGNORED & set(names))
        elif subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=stamps.ROOT).returncode:
            print("note: the clone holds the last commit, without your uncommitted changes")
        yield folder


def make(target: str, folder: Path) -> None:
    """Run a make target in the folder, with this environment as it stands."""
    command = ["make", target, f"VENV={sys.prefix}", "INSTALL=no"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: make {target} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")


def row(measurement: Measurement, unit: float) -> str:
    """Return a measurement's row of the README's table.

    >>> row(Measurement("x", 10.0, (1.0, 4.0, 2.0)), 0.5)
    '| x | 10 s | 20 % | 4.0 |'
    """
    m = measurement
    return f"| {m.what} | {m.budget:g} s | {100 * m.median / m.budget:.0f} % | {m.median / unit:.1f} |"


def merge(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the old rows with those of the same name replaced, and the new ones behind them.

    New sums over a part's chapters replace the old ones, whatever the number of chapters was.

    >>> merge(["| a | 1 |", "| b | 2 |"], ["| b | 3 |", "| c | 4 |"])
    ['| a | 1 |', '| b | 3 |', '| c | 4 |']
    >>> merge(["| execute the 2 chapters of x | 1 |"], ["| execute the 3 chapters of x | 4 |"])
    ['| execute the 3 chapters of x | 4 |']
    """
    if any(r.startswith(_SUMS) for r in new):
        old = [r for r in old if not r.startswith(_SUMS)]
    rows = {r.split("|")[1].strip(): r for r in (*old, *new)}
    return list(rows.values())


def rewrite(readme: str, rows: Sequence[str], machine: str) -> str:
    """Return the README with its table brought up to date between the markers."""
    before, start, rest = readme.partition(START)
    inside, end, after = rest.partition(END)
    if not start or not end:
        raise SystemExit(f"bench: README.md: expected the markers {START} and {END}")
    kept = [line for line in inside.splitlines() if line.startswith("|")][2:]
    table = "\n".join([HEAD, *merge(kept, rows)])
    return f"{before}{START}\n{table}\n\n{machine}\n{END}{after}"


def machine() -> str:
    """Return what the figures were taken with, in one sentence that names no particular machine."""
    installed = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    versions = ", ".join(f"{n} {importlib.metadata.version(n)}" for n in LIBRARIES if n in installed)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"Medians on {cores} cores with Python {platform.python_version()}, {versions}."


def report(measurements: Sequence[Measurement], unit: float) -> str:
    """Return the table for the terminal, in seconds."""
    width = max(len(m.what) for m in measurements)
    lines = [f"{'what':{width}}  {'median':>8} {'budget':>8} {'used':>6} {'x calibration':>14}"]
    for m in measurements:
        used = f"{100 * m.median / m.budget:.0f} %"
        lines.append(f"{m.what:{width}}  {m.median:6.2f} s {m.budget:6g} s {used:>6} {m.median / unit:14.1f}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the benches asked for; return 1 when one is over its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=BENCHES, default=list(BENCHES), metavar="NAME",
                        help=f"some of: {', '.join(BENCHES)} (default: all)")  # fmt: skip
    parser.add_argument("--repeat", type=int, default=3, help="runs of each short measurement (default: 3)")
    parser.add_argument("--dry-run", action="store_true", help="leave README.md alone")
    options = parser.parse_args(arguments)
    execute.fix_arithmetic()
    unit = measure("calibration", 1, calibrate, 5).median
    print(f"calibration: {unit:.2f} s", flush=True)
    measurements = []
    for measurement in (m for name in options.only for m in BENCHES[name](options)):
        print(f"{measurement.what}: {measurement.median:.2f} s", flush=True)
        measurements.append(measurement)
    if not measurements:
        raise SystemExit("bench: nothing to measure: there is no notebook under chapters/")
    print(report(measurements, unit), machine(), sep="\n")
    if not options.dry_run:
        readme = stamps.ROOT / "README.md"
        new = rewrite(readme.read_text(encoding="utf-8"), [row(m, unit) for m in measurements], machine())
        stamps.write_atomically(readme, new)
    return int(any(m.median > m.budget for m in measurements))


if __name__ == "__main__":
    raise SystemExit(main())
