"""Mutation testing: change a package in one place at a time and see whether a test notices.

``python tools/mutants.py [--sample N] [--seed S] [--jobs N] [MODULES]`` asks Cosmic Ray for the mutants of the modules
that compute, judge or measure (but of no `|`: nearly all are in annotations, which nothing evaluates), and runs for
each of a sample the tests and the examples of its module in a copy of the book. An interrupted run goes on where it
was, as long as neither modules nor tests change. tests/equivalent_mutants.yml lists those that no test can
notice, and why.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import yaml
from tqdm import tqdm

import stamps

#: Below code/.
MUTATED = (
    "attnmath/**/*.py",
    "linewise/ledger/*.py",
    "attnlab/*.py",
    "attnlab/experiments/*.py",
    "attnlab/heads/*.py",
    "attnlab/recall/*.py",
)
#: Modules and rooms of attnmath that no numeric test judges.
SPARED = {"figures", "symbols"}
#: The folders whose tests are run.
TESTS = tuple(Path("tests", folder) for folder in ("package", "engine", "laboratory"))
LEAST_KILLED, TIMEOUT = 0.97, 300
#: What takes seconds to import, and is not of the book.
LIBRARIES = ("scipy.stats", "scipy.optimize", "sympy", "matplotlib.pyplot", "torch")


def move_to_copy(folder: str) -> None:
    """Give a worker a copy of the book of its own, in which it may change the package, and the libraries once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interruption is the main process's to handle
    home = Path(folder, str(os.getpid()))
    shutil.copytree(stamps.ROOT, home, ignore=lambda _, names: stamps.IGNORED & set(names))
    os.chdir(home)
    os.environ |= {"PYTHONPATH": str(home / "code"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    sys.path[:] = [path.replace(str(stamps.ROOT), str(home), 1) for path in sys.path]
    for library in LIBRARIES:
        importlib.import_module(library)


def mutated() -> list[Path]:
    """Return the modules whose mutants are tried.

    >>> found = {path.stem for path in mutated()}
    >>> {"closed_forms", "evidence", "load"} <= found, {"symbols", "curves", "__init__"} & found
    (True, set())
    """
    found = {path for pattern in MUTATED for path in Path("code").glob(pattern)}
    return sorted(p for p in found if not p.stem.startswith("_") and not SPARED & {p.stem, p.parent.name})


def naming(module: Path) -> list[Path]:
    """Return the test files that name a module, or the package that hands its functions on; its own come first.

    >>> [path.name for path in naming(Path("code", "attnmath", "sparsity", "closed_forms.py"))][:1]
    ['test_sparsity.py']
    """
    names = [module.stem]
    if f".{module.stem} import " in Path(module.parent, "__init__.py").read_text(encoding="utf-8"):
        names.append(module.parent.name)
    texts = {p: p.read_text(encoding="utf-8") for folder in TESTS for p in folder.glob("test_*.py")}
    found = {p: len(re.findall(rf"\b({'|'.join(names)})\b", words)) for p, words in texts.items()}
    own = {f"test_{name}" for name in names}
    return sorted((p for p in found if found[p]), key=lambda p: (p.stem not in own, -found[p], p))


def try_mutant(item: Any) -> tuple[str, Any]:
    """Run in a worker: apply a mutation to its copy of the book, run the tests, and return the job and its result.

    The tests are the examples of the module and the test files that name it, those of its own name first.
    """
    import cosmic_ray.plugins
    from cosmic_ray.mutating import use_mutation
    from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

    place = item.mutations[0]
    operator = cosmic_ray.plugins.get_operator(place.operator_name)(**place.operator_args)
    with use_mutation(place.module_path, operator, place.occurrence) as (before, after):
        tests = [place.module_path, *naming(place.module_path)]
        passed = pass_in_a_fork(tests[:2]) and pass_in_a_fork(tests[2:])  # the second need not be collected for most
    diff = "\n".join(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm=""))
    outcome = TestOutcome.SURVIVED if passed else TestOutcome.KILLED
    return item.job_id, WorkResult(worker_outcome=WorkerOutcome.NORMAL, test_outcome=outcome, diff=diff)


def pass_in_a_fork(tests: list[Path]) -> bool:
    """Return whether tests pass in a process of their own, which has the libraries, and of the book nothing."""
    if not tests:
        return True
    child = os.fork()
    if not child:
        try:
            import resource  # which Windows lacks, as it lacks forks

            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT, TIMEOUT))  # of its own work: others may hold it up
            signal.alarm(10 * TIMEOUT)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            book = [n for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(str(stamps.ROOT))]
            for name in book:
                del sys.modules[name]
            import pytest

            os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *map(str, tests)]))
        finally:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a test that ran too long has left
    return status == 0


def change(diff: str) -> list[str]:
    """Return the lines that a mutant takes away and puts in.

    >>> change("--- a\\n+++ b\\n@@ -1 +1 @@\\n-    x = 1\\n+    x = 2\\n")
    ['- x = 1', '+ x = 2']
    """
    return [f"{m[1]} {m[2].strip()}" for m in re.finditer(r"^([+-])(?!\+\+|--)(.*\S)", diff, re.MULTILINE)]


def session(paths: list[Path], sample: int, seed: int) -> Any:
    """Open the results so far for these modules and tests as they are now; a new session holds a sample of mutants."""
    from cosmic_ray.commands.init import init
    from cosmic_ray.work_db import WorkDB

    Path("_build", "mutants").mkdir(parents=True, exist_ok=True)
    inputs = stamps.digest([*paths, *TESTS], str(sample), str(seed))
    work = WorkDB(f"_build/mutants/{inputs[:16]}.sqlite", WorkDB.Mode.create)
    if not work.num_work_items:
        init(paths, work, {})
        found = [item for item in work.work_items if "BitOr_" not in item.mutations[0].operator_name]
        items = sorted(found, key=lambda item: str(item.mutations))
        work.clear()
        work.add_work_items(random.Random(seed).sample(items, min(sample, len(items))))
    return work


def report(work: Any) -> int:
    """Print the survivors that are not listed as equivalent, and the share that was killed; return 1 if it is low."""
    listed = yaml.safe_load(Path("tests", "equivalent_mutants.yml").read_text(encoding="utf-8"))
    known = {(mutant["module"], *mutant["change"]) for mutant in listed}
    counts = Counter[str]()
    for item, result in work.completed_work_items:
        place, lines = item.mutations[0], change(result.diff or "")
        outcome = str(result.test_outcome.value) if result.test_outcome else "not tried"
        if outcome == "survived" and (place.module_path.as_posix(), *lines) in known:
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
    parser.add_argument("modules", nargs="*", type=Path, help="modules, relative to the book (default: all)")
    parser.add_argument("--sample", type=int, default=200, help="how many mutants (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="which sample (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    os.chdir(stamps.ROOT)
    work = session(options.modules or mutated(), options.sample, options.seed)
    with tempfile.TemporaryDirectory() as folder, Pool(options.jobs, move_to_copy, [folder]) as pool:
        pending = work.pending_work_items
        for job, result in tqdm(pool.imap_unordered(try_mutant, pending), total=len(pending), desc="mutants"):
            work.set_result(job, result)
    return report(work)


if __name__ == "__main__":
    stamps.run(main)
