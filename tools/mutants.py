"""Mutation testing: change the package in one place at a time and see whether a test notices.

``python tools/mutants.py [--sample N] [--seed S] [--jobs N] [MODULES]`` asks Cosmic Ray for the mutants of the numeric,
ledger and recall modules, draws a sample, and runs for each the tests and the examples of its module in a copy of the
book. Results are kept as they come: an interrupted run goes on where it was (``--fresh`` begins anew). A mutant that
no test can notice is listed in tests/equivalent_mutants.yml, with the reason.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import yaml
from tqdm import tqdm

import stamps

FOLDER = stamps.ROOT / "_build" / "mutants"
EQUIVALENT = stamps.ROOT / "tests" / "equivalent_mutants.yml"
LEAST_KILLED, TIMEOUT = 0.95, 300.0


def modules() -> list[Path]:
    """Return the modules that are mutated, relative to the book: numbers, ledger and recall."""
    package = stamps.ROOT / "code" / "attnmath"
    found = [*package.glob("*.py"), *(package / "ledger").glob("*.py"), *(package / "recall").glob("*.py")]
    return sorted(p.relative_to(stamps.ROOT) for p in found if not p.stem.startswith("__"))


def tests_of(module: Path) -> list[str]:
    """Return the module, for its examples, and the test files that name it, those of its own name first."""
    name = re.compile(rf"\b{module.stem}\b")
    files = sorted((stamps.ROOT / "tests").glob("package/test_*.py"), key=lambda p: p.stem != f"test_{module.stem}")
    named = [p for p in files if name.search(p.read_text(encoding="utf-8"))]
    return [module.as_posix(), *(p.relative_to(stamps.ROOT).as_posix() for p in named)]


def try_mutant(mutation: Any, tests: list[str]) -> Any:
    """Run in a worker: apply one mutation to the worker's own copy of the book, and run the tests."""
    from cosmic_ray.mutating import mutate_and_test

    home = FOLDER / f"copy-{os.getpid()}"
    if not home.exists():
        for name in ("code", "tests", "tools", "chapters", "figures"):
            shutil.copytree(stamps.ROOT / name, home / name)
        shutil.copy2(stamps.ROOT / "pyproject.toml", home)
    os.chdir(home)
    os.environ |= {"PYTHONPATH": str(home / "code"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = f"{sys.executable} -m pytest -x -q --doctest-modules -p no:cacheprovider {' '.join(tests)}"
    return mutate_and_test([mutation], command, TIMEOUT)


def change(diff: str) -> list[str]:
    """Return the lines that a mutant takes away and puts in.

    >>> change("--- a\\n+++ b\\n@@ -1 +1 @@\\n-    x = 1\\n+    x = 2\\n")
    ['- x = 1', '+ x = 2']
    """
    lines = [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return [f"{line[0]} {line[1:].strip()}" for line in lines if line[1:].strip()]


def session(paths: list[Path], sample: int, seed: int, fresh: bool) -> Any:
    """Open the results so far; a new session holds a sample of the mutants of the modules."""
    from cosmic_ray.commands.init import init
    from cosmic_ray.work_db import WorkDB

    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("copy-*"):
        shutil.rmtree(old)
    file = FOLDER / "session.sqlite"
    if fresh:
        file.unlink(missing_ok=True)
    begun = file.exists()
    work = WorkDB(str(file), WorkDB.Mode.create)
    if not begun:
        init(paths, work, {})
        items = sorted(work.work_items, key=lambda item: str(item.mutations))
        drawn = random.Random(seed).sample(items, min(sample, len(items)))
        work.clear()
        work.add_work_items(drawn)
    return work


def report(work: Any) -> int:
    """Print the survivors that are not listed as equivalent, and the share that was killed."""
    known = {(m["module"], tuple(m["change"])) for m in yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8"))}
    places = {item.job_id: item.mutations[0] for item in work.work_items}
    counts = Counter[str]()
    for job, result in work.results:
        place, lines = places[job], change(result.diff or "")
        outcome = str(result.test_outcome.value) if result.test_outcome else "not tried"
        if outcome == "survived" and (place.module_path.as_posix(), tuple(lines)) in known:
            outcome = "equivalent"
        elif outcome == "survived":
            print(f"{place.module_path}:{place.start_pos[0]}", *lines, sep="\n    ")
        counts[outcome] += 1
    share = counts["killed"] / max(counts["killed"] + counts["survived"], 1)
    print(f"{dict(counts)}: {share:.1%} of the mutants that count were killed")
    return int(share < LEAST_KILLED)


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, try the mutants that are left, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path, help="modules below code/attnmath (default: all)")
    parser.add_argument("--sample", type=int, default=200, help="how many mutants (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="which sample (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--fresh", action="store_true", help="forget the results so far")
    options = parser.parse_args(arguments)
    os.chdir(stamps.ROOT)
    try:
        work = session(options.modules or modules(), options.sample, options.seed, options.fresh)
    except ModuleNotFoundError as missing:
        install = f"{sys.executable} -m pip install -e '.[mutants]'"
        raise SystemExit(f"mutants: {missing.name} is not installed: {install}") from None
    pending = [(item.job_id, item.mutations[0]) for item in work.pending_work_items]
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(try_mutant, m, tests_of(m.module_path)): job for job, m in pending}
        for future in tqdm(as_completed(jobs), total=len(jobs), desc="mutants"):
            work.set_result(jobs[future], future.result())
    return report(work)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit("\nmutants: interrupted; the next run goes on from here") from None
