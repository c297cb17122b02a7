"""Prove the stored outputs: re-execute notebooks and compare every output with the stored one.

``python tools/prove.py [--all] [--jobs N] [PATHS]`` runs nbval, strictly, on the notebooks that
have changed since they were last proved, or whose package, claims or pins have. Pictures are
compared as well, byte for byte (see `compare_pictures`).
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import execute
import stamps


class Watch:
    """A pytest plugin that stamps each notebook whose code cells have all passed, and notes the cells that have not."""

    def __init__(self, due: dict[str, tuple[Path, str]], left: dict[str, int]) -> None:
        self.due, self.left, self.interrupted = due, left, False
        self.failed: dict[str, list[str]] = defaultdict(list)
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add one cell's report; nbval counts the code cells from 0, this book from 1."""
        name, _, cell = report.nodeid.partition("::")
        self.seconds[name] += report.duration
        if report.failed or (report.when == "call" and report.skipped):
            self.failed[name].append(f"code cell {int(cell.removeprefix('Cell ')) + 1}")
        self.left[name] -= report.when == "teardown"
        if not self.left[name] and name not in self.failed:
            notebook, inputs = self.due[name]
            stamps.write_atomically(stamps.stamp_of("proved", notebook), inputs)
            print(f"proved {name} in {self.seconds[name]:.1f} s", flush=True)

    def pytest_collectreport(self, report: Any) -> None:
        """Note a notebook that could not even be read."""
        if report.failed:
            self.failed[report.nodeid].append("cannot be read")

    def pytest_keyboard_interrupt(self) -> None:
        """Note an interruption, which pytest itself turns into an exit code like others."""
        self.interrupted = True


def code_cells(notebook: Path) -> list[Any]:
    """Return the code cells of a stored notebook."""
    return [c for c in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]


def prove(due: dict[str, tuple[Path, str]], left: dict[str, int], jobs: int) -> int:
    """Run nbval over the notebooks that are due, stamp what is proved, and return pytest's exit code."""
    import pytest

    watch = Watch(due, left)
    # A notebook goes to one worker as a whole, the last chapters first: they train models and take longest.
    spread = ["-n", str(min(jobs, len(due))), "--dist", "loadscope", "--no-loadscope-reorder"] if jobs > 1 else []
    code = pytest.main(
        ["--nbval", "--nbval-current-env", f"--nbval-cell-timeout={execute.CELL_TIMEOUT}", *spread, "-qq",
         "--no-header", "-p", "compare_pictures", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "filterwarnings=",
         f"--rootdir={stamps.ROOT}", *(str(notebook) for notebook, _ in reversed(due.values()))],
        plugins=[watch],
    )  # fmt: skip
    if watch.interrupted:
        raise KeyboardInterrupt
    for name, cells in watch.failed.items():
        print(f"NOT PROVED {name}: {', '.join(cells)}")
    return int(code)


def main(arguments: list[str] | None = None) -> int:
    """Prove the notebooks that are due; return 0 when all are proved."""
    notebooks, everything, jobs = execute.read_options(__doc__, arguments)
    execute.fix_environment()
    started = time.monotonic()
    with stamps.only_one("proved"):
        found = execute.due(notebooks, *(() if everything else ("proved",)))
        if not found:
            print(f"notebooks: all {len(notebooks)} proved before, nothing has changed since")
            return 0
        due = {os.path.relpath(n, stamps.ROOT): (n, inputs) for n, inputs in found.items()}
        cells = {name: code_cells(notebook) for name, (notebook, _) in due.items()}
        raw = [name for name, code in cells.items() if any(c["execution_count"] is None for c in code)]
        for name in raw:  # nbval would pass such a cell unchecked
            print(f"{name}: holds code cells that were never executed; `make execute` runs them")
        if raw:
            return 1
        code = prove(due, {name: len(cells) for name, cells in cells.items()}, jobs)
    print(f"notebooks: {len(due)} of {len(notebooks)} executed in {time.monotonic() - started:.1f} s")
    if code:
        print("The stored outputs differ from what the code computes now (the differences are shown above).\n"
              "If the change is meant, `make execute` refreshes stored outputs; then read `git diff`.")  # fmt: skip
    return code


if __name__ == "__main__":
    stamps.run(main)
