"""Prove the stored outputs: re-execute notebooks and compare every output with the stored one.

``python tools/prove.py [--all] [--jobs N] [PATHS]`` runs nbval, strictly, on the notebooks that have changed since they
were last proved, or whose package, claims or pins have. This module is also the plugin of pytest that makes nbval
strict: by itself it passes over pictures, and over cells whose tags or comments ask for it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import execute
import forked_kernels
import reach
import stamps

#: The tag of a cell whose picture shows seconds, or digits that the processor decides: its words alone are compared.
THIS_MACHINE = "this-machine"
PICTURE = "image/svg+xml"


def pytest_itemcollected(item: Any) -> None:
    """Prepare the comparison of one notebook cell."""
    item.options |= {"skip": False, "check": True}
    skipped = {key for key in item.parent.skip_compare if not key.startswith("image/")}
    if THIS_MACHINE in item.cell.metadata.get("tags", []):
        skipped.add(PICTURE)
    item.compare_outputs = partial(item.compare_outputs, skip_compare=skipped)
    item.format_output_compare = partial(report_difference, item, item.format_output_compare)


def report_difference(item: Any, report: Any, kind: str, stored: Any, drawn: Any) -> None:
    """Report a difference; of two pictures in one line, since a diff of them takes minutes and says nothing."""
    if kind.startswith("image/"):
        item.comparison_traceback.append(f"{kind}: the stored picture is not the one that the cell draws now")
    else:
        report(kind, stored, drawn)


class Judge:
    """A process that runs pytest on one notebook after another; that its imports are there already saves half a second.

    Each notebook still has a kernel of its own (`forked_kernels`). The process ends when its input does, and so with
    this one.
    """

    def __init__(self) -> None:
        command = [sys.executable, __file__, "--judge"]
        self._process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def __call__(self, notebook: Path) -> tuple[int, str]:
        """Return the exit status of pytest and what it said; -1 if it ended without an answer."""
        asked, answered = self._process.stdin, self._process.stdout
        assert asked and answered
        with contextlib.suppress(OSError):  # it may have ended before
            asked.write(json.dumps(str(notebook)).encode() + b"\n")
        code, said = json.loads(answered.readline() or b'[-1, "pytest ended without an answer\\n"]')
        return code, said

    def close(self) -> None:
        """Let the process end, and wait for it."""
        with self._process:
            pass


def judge() -> int:
    """Run pytest on each notebook that the input names, a line each, and answer with a line: its status, its words."""
    sys.path.insert(0, os.fspath(Path(__file__).parent))  # pytest imports this module as its plugin
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what others write to the output is no answer
    for line in sys.stdin:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = int(verdict_on(json.loads(line)))
        print(json.dumps([code, said.getvalue()]), file=answers, flush=True)
    return 0


def verdict_on(notebook: str) -> int:
    """Run pytest with nbval on a notebook, in this process."""
    import pytest

    code = (c for c in reach.notebook_of(Path(notebook).read_bytes())["cells"] if c["cell_type"] == "code")
    forked_kernels.use_for("".join(next(code, {"source": ""})["source"]))
    return pytest.main([
        "--disable-plugin-autoload", "-p", "nbval.plugin", "-p", "prove",
        "--nbval", "--nbval-current-env", f"--nbval-cell-timeout={execute.CELL_TIMEOUT}", "-qq", "--no-header", "-rfE",
        "-p", "no:cacheprovider", "-o", "addopts=", "-o", "filterwarnings=", f"--rootdir={stamps.ROOT}", notebook,
    ])  # fmt: skip


JUDGES = threading.local()
#: What jupyter_client says of a kernel that could not begin: another process had taken a port that was free.
NOT_BEGUN = "Kernel died before replying to kernel_info"


def prove(notebook: Path) -> str:
    """Run nbval on a notebook, in this thread's judge, and return how its outputs differ; "" if they do not."""
    name = os.path.relpath(notebook, stamps.ROOT)
    try:
        cells = reach.notebook_of(notebook.read_bytes())["cells"]
    except ValueError as error:
        return f"NOT PROVED {name}: {error}"
    counts = [c.get("execution_count") for c in cells if c["cell_type"] == "code"]
    if None in counts:  # nbval would pass such a cell
        return f"{name}: holds code cells that were never executed; `make execute` runs them"
    if not hasattr(JUDGES, "mine"):
        JUDGES.mine = Judge()
    code, said = JUDGES.mine(notebook)
    if NOT_BEGUN in said:
        code, said = JUDGES.mine(notebook)
    if code == 0:
        return ""
    if code == -1:
        JUDGES.mine.close()
        del JUDGES.mine
    # nbval counts the code cells from 0, this book from 1.
    differ = [f"code cell {int(k) + 1}" for k in re.findall(r"^(?:FAILED|ERROR) .*::Cell (\d+)", said, re.MULTILINE)]
    return f"{said}NOT PROVED {name}: {', '.join(differ) or 'cannot be read'}"


def main(arguments: list[str] | None = None) -> int:
    """Prove the notebooks that are due; return 0 when all are proved."""
    notebooks, everything, jobs = execute.read_options(__doc__, arguments)
    execute.fix_environment()
    started = time.monotonic()
    with stamps.only_one("proved"):
        due = execute.due(notebooks, *(() if everything else ("proved",)))
        if not due:
            print(f"notebooks: all {len(notebooks)} proved before, nothing has changed since")
            return 0
        faults = execute.each("proved", prove, due, jobs)
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"notebooks: {len(due)} of {len(notebooks)} executed in {time.monotonic() - started:.1f} s")
    if faults:
        print("The stored outputs differ from what the code computes now (the differences are shown above).\n"
              "If the change is meant, `make execute` refreshes stored outputs; then read `git diff`.")  # fmt: skip
    return int(bool(faults))


if __name__ == "__main__":
    stamps.run(judge if sys.argv[1:] == ["--judge"] else main)
