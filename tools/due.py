"""List what is due, and why: ``python tools/due.py``. Nothing is run.

A line for each notebook to execute or to prove, and for each file of tests that ``make test`` would run, with the
inputs that have changed since.
"""

from __future__ import annotations

from collections.abc import Iterable

import due_tests
import stamps

SHOWN = 3


def reasons(changes: list[str]) -> str:
    """Return the first changes in a line, and how many more there are."""
    more = f" and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    return ", ".join(changes[:SHOWN]) + more


def table(title: str, due: dict[str, list[str]], total: int) -> Iterable[str]:
    """Yield the lines of one kind of work."""
    yield f"{title}: {len(due)} of {total}"
    for name, changes in due.items():
        yield f"  {name}: {reasons(changes)}"


def main() -> int:
    """Print what is due; return 0."""
    notebooks = stamps.inputs_of(stamps.notebooks(stamps.NOTEBOOKS))
    changed = {
        kind: {n: stamps.changes(stamps.stamp_of(kind, n), inputs) for n, inputs in notebooks.items()}
        for kind in ("executed", "proved")
    }
    tests = due_tests.inputs_of(due_tests.files())
    kinds = {
        # Either will do, so the one after which less has changed says why.
        "to execute (make execute)": {n: min((changed[k][n] for k in changed), key=len) for n in notebooks},
        "to prove (make book)": changed["proved"],
        "tests to run (make test)": {file: due_tests.changes(file, inputs) for file, inputs in tests.items()},
    }
    for title, found in kinds.items():
        print(*table(title, {due_tests.name_of(p): c for p, c in found.items() if c}, len(found)), sep="\n")
    return 0


if __name__ == "__main__":
    stamps.run(main)
