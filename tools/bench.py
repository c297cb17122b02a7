"""Measure what the README says of the book: ``python tools/bench.py [--only notebooks|book|pages]``.

Prints a row of Markdown for each notebook's execution, kernel start included, and for the commands of the README in a
fresh copy that shares this environment: a share of the budget, and a multiple of a fixed calculation, so that figures
from different machines can be compared. `pages`, which is not among the defaults, opens every page of the built site in
Debian's chromium with nothing in the cache, over a plain server that compresses nothing, and prints the README's row on
the weight of pages. Nothing is written; the tables of the README are kept by hand.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import execute
import stamps

BOOK_BUDGET, UNCHANGED_BUDGET, TEST_BUDGET, NOTEBOOK_BUDGET = 180.0, 10.0, 600.0, 15.0
OWN_BUDGETS = {"sparsity/associative_recall": 25.0}  # it trains models


def median(work: Callable[[], object], repeat: int = 3) -> float:
    """Return the median of the seconds that the work takes."""
    return statistics.median(timeit.repeat(work, number=1, repeat=repeat))


def calibrate() -> None:
    """Do a fixed amount of work, half in pure Python and half in numpy; about a second on a common machine."""
    total = 0
    for i in range(6_000_000):
        total = (total + i * i) % 1_000_003
    rng = np.random.default_rng(0)
    for _ in range(12):
        a = rng.standard_normal((500, 500))
        np.sort(np.exp(a @ a.T / 500), axis=1)


def benches(kinds: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    """Yield what is timed, its budget and its median, both in seconds: each notebook, then the README's commands."""
    for path in stamps.notebooks() if "notebooks" in kinds else ():
        name = path.relative_to(stamps.ROOT).with_suffix("").as_posix().removeprefix("chapters/")
        yield f"execute {name}", OWN_BUDGETS.get(name, NOTEBOOK_BUDGET), median(partial(execute.run, path))
    if "book" in kinds:
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent, "book")
            shutil.copytree(stamps.ROOT, folder, ignore=lambda _, names: stamps.IGNORED & set(names))
            first = median(partial(make, "book", folder), 1)
            yield "`make book`, the first time after installation", BOOK_BUDGET, first
            yield "`make book`, nothing changed", UNCHANGED_BUDGET, median(partial(make, "book", folder))
            then = median(partial(make, "test", folder), 1)
            yield "`make test` after `make book`", TEST_BUDGET, then
            yield "`make test` after installation", TEST_BUDGET, first + then


def make(target: str, folder: Path) -> None:
    """Run a make target in the folder, with this environment as it is."""
    command = ["make", target, f"VENV={sys.prefix}", "INSTALL=no"]
    done = subprocess.run(command, cwd=folder, env=os.environ | {"MAKEFLAGS": ""}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: make {target} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")


def weigh(site: Path) -> None:
    """Print the heaviest page of a built site, the most requests and the longest shift."""
    chromium = shutil.which("chromium")
    if not (site / "intro.html").is_file() or chromium is None:
        raise SystemExit(f"site: expected {site}/intro.html (run `make book`), and chromium on the path")
    sys.path.insert(0, str(stamps.ROOT / "tests" / "site"))
    import browser_checks as check
    from playwright.sync_api import sync_playwright

    names = [p.relative_to(site).as_posix() for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]
    names.remove("index.html")  # it only leads to another
    measured = []
    with check.served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=check.ARGUMENTS)
        for name in names:
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            weight = check.Weight(page)
            page.goto(address + name, timeout=120_000)
            check.settle(page)
            measured.append((name, *weight.measured()))
            page.context.close()
        browser.close()
    name, size, _, _ = max(measured, key=lambda row: row[1])
    requests, shift = max(row[2] for row in measured), max(row[3] for row in measured)
    print(f"heaviest of {len(measured)} pages: {name}, {size / 1e6:.2f} MB; most requests: {requests}; "
          f"longest shift: {shift:.0f} px")  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run the benches asked for; return 1 when something is over its budget."""
    kinds = ["notebooks", "book", "pages"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds[:2], help="which (default: the first two)")
    options = parser.parse_args(arguments)
    if "pages" in options.only:
        weigh(stamps.ROOT / "_build" / "html")
    if options.only == ["pages"]:
        return 0
    execute.fix_environment()
    unit = median(calibrate, 5)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, calibration {unit:.2f} s\n")
    print("| what | budget | used of the budget | multiple of the calibration |\n|---|---:|---:|---:|")
    slow = False
    for what, budget, seconds in benches(options.only):
        print(f"| {what} | {budget:g} s | {100 * seconds / budget:.0f} % | {seconds / unit:.1f} |", flush=True)
        slow |= seconds > budget
    return int(slow)


if __name__ == "__main__":
    stamps.run(main)
