"""Prove the stored outputs: re-execute notebooks and compare every output with the stored one.

``python tools/prove.py [--all] [--jobs N] [PATHS]`` runs nbval, strictly, on the notebooks that
have changed since they were last proved, or whose package, claims or pins have. Pictures are
compared as well, byte for byte (see `compare_pictures`).
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import execute
import stamps


class Watch:
    """A pytest plugin that notes, for each notebook, its seconds and the cells that failed."""

    def __init__(self) -> None:
        self.failed: dict[str, list[str]] = defaultdict(list)
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add one cell's report; nbval counts the code cells from 0, this book from 1."""
        notebook, _, cell = report.nodeid.partition("::")
        self.seconds[notebook] += report.duration
        if report.failed or (report.when == "call" and report.skipped):
            self.failed[notebook].append(f"code cell {int(cell.removeprefix('Cell ')) + 1}")

    def pytest_collectreport(self, report: Any) -> None:
        """Note a notebook that could not even be read."""
        if report.failed:
            self.failed[report.nodeid].append("cannot be read")


def run_nbval(notebooks: list[Path], jobs: int) -> tuple[int, Watch]:
    """Run nbval over the notebooks and return pytest's exit code and what was seen."""
    import pytest

    os.environ.pop("MPLBACKEND", None)  # the kernel chooses its own, which draws into the page
    execute.fix_arithmetic()
    watch = Watch()
    workers = ["-n", str(min(jobs, len(notebooks))), "--dist", "loadscope"] if jobs > 1 else []
    code = pytest.main(
        ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=600", *workers, "-qq", "--no-header",
         "-p", "compare_pictures", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "filterwarnings=",
         f"--rootdir={stamps.ROOT}", *map(str, notebooks)],
        plugins=[watch],
    )  # fmt: skip
    return int(code), watch


def never_executed(notebook: Path) -> bool:
    """Say whether a code cell has no execution count: nbval would pass such a cell unchecked."""
    import json

    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return any(c["cell_type"] == "code" and c["execution_count"] is None for c in cells)


def prove(notebooks: list[Path], jobs: int, everything: bool) -> int:
    """Prove the notebooks that are due; return 0 when all stand proved."""
    keeper = stamps.NotebookStamps()
    due = {n: keeper.inputs(n) for n in notebooks if everything or not keeper.is_fresh("proved", n)}
    if not due:
        print(f"notebooks: all {len(notebooks)} proved before, nothing has changed since")
        return 0
    raw = [n for n in due if never_executed(n)]
    for notebook in raw:
        print(f"{os.path.relpath(notebook)}: holds code cells that were never executed; `make execute` runs them")
    if raw:
        return 1
    started = time.monotonic()
    code, watch = run_nbval(list(due), jobs)
    names = {n: os.path.relpath(n, stamps.ROOT) for n in due}
    for notebook, inputs in due.items():
        name = names[notebook]
        if name in watch.failed:
            print(f"NOT PROVED {name}: {', '.join(watch.failed[name])}")
        elif name in watch.seconds or code == 0:
            stamps.record(keeper.path("proved", notebook), inputs)
            print(f"proved {name} in {watch.seconds[name]:.1f} s")
    print(f"notebooks: {len(due)} of {len(notebooks)} executed in {time.monotonic() - started:.1f} s")
    if code:
        print("The stored outputs differ from what the code computes now (the differences stand above).\n"
              "If the change is meant, `make execute` refreshes stored outputs; then read `git diff`.")  # fmt: skip
    return code


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, and prove."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[stamps.ROOT / "chapters"])
    parser.add_argument("--all", action="store_true", help="also the notebooks that were proved before")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    notebooks = stamps.notebooks(p.absolute() for p in options.paths)
    if not notebooks:
        parser.error(f"found no notebook at or below {', '.join(map(str, options.paths))}")
    with stamps.only_one("proved"):
        return prove(notebooks, options.jobs, options.all)


if __name__ == "__main__":
    raise SystemExit(main())
