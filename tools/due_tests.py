"""Run the tests that a change can reach: ``python tools/due_tests.py [--all] [--jobs N]``.

A file of tests is left out while nothing that it reaches has changed since all of its tests last passed: the modules
that it imports (`reach`), the data that these name, its `conftest` files, the pins and the settings of the project. A
file that asks where it lies may read anything, so that every file of the book counts for it, the built site included.
Where each test is about one page or one notebook (`PARTS`), those are left out whose page or notebook is as it was.
With ``--all``, or where a machine runs the tests (``CI`` is set), nothing is left out.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

import reach
import stamps

#: How many tests a file has, beside its inputs in its stamp.
TESTS = "tests"
#: Files in which the id of a test names the page or the notebook that it is about, and how that file's name ends.
PARTS = {"tests/site/test_browser.py": ".html", "tests/book/test_derivations.py": ".ipynb"}
#: How many files are named that took the most time.
SHOWN = 5
#: What the report of a test says that is skipped for a reason that lies in the machine (`tests/conftest.py`).
OF_THE_MACHINE = ("skipped", "of the machine")

#: The built site.
SITE = stamps.ROOT / "_build" / "html"


@functools.cache
def settings() -> dict[str, Any]:
    """Return the settings of pytest."""
    project = tomllib.loads((stamps.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, Any] = project["tool"]["pytest"]["ini_options"]
    return found


def places() -> list[str]:
    """Return the folders that hold tests, as the settings of the project name them."""
    return list(settings()["testpaths"])


def files() -> list[Path]:
    """Return the files that hold tests, or may hold examples."""
    return [p for p in stamps.files(stamps.ROOT / place for place in places()) if p.suffix == ".py"]


class Reader:
    """Finds what files of tests depend on; what is read once is remembered."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}
        self._sources: dict[Path, reach.Sources] = {}
        self._pins = stamps.files([stamps.ROOT / "pyproject.toml", stamps.ROOT / "constraints.txt"])
        self._book = functools.cache(the_book)

    def inputs(self, file: Path) -> stamps.Inputs:
        """Return what the outcome of a file's tests depends on."""
        sources, run = self._sources_of(file), with_conftest(file)
        closures = [sources.closure(path, examples=True) for path in run]
        if any(one is None or any(facts.placed for facts in one.values()) for one in closures):
            return self._book()
        named = [p for one in closures for facts in (one or {}).values() for p in stamps.files(folders(facts))]
        return self.imports(file) | stamps.hashes(named, self._known)

    def imports(self, file: Path) -> stamps.Inputs:
        """Return the part of it that is code, with the data that the code names, and the pins."""
        sources, run = self._sources_of(file), with_conftest(file)
        paths = {*run, *self._pins, *(p for path in run for p in sources.reached(path, examples=True))}
        return {"Python": platform.python_version(), **stamps.hashes(paths, self._known)}

    def _sources_of(self, file: Path) -> reach.Sources:
        home = file.parent if is_test(file) else stamps.ROOT / "code"
        if home not in self._sources:
            roots = dict.fromkeys([home, *(stamps.ROOT / name for name in settings()["pythonpath"])])
            cache = stamps.STAMPS / f"reach-{home.name}.json"
            self._sources[home] = reach.Sources(roots, lambda root: stamps.files([root]), cache=cache)
        return self._sources[home]

    def remember(self) -> None:
        """Keep for the next time what was read."""
        for sources in self._sources.values():
            sources.remember(stamps.write_atomically)


def inputs_of(files: Iterable[Path]) -> dict[Path, stamps.Inputs]:
    """Return what the outcome of each file's tests depends on."""
    reader = Reader()
    found = {file: reader.inputs(file) for file in files}
    reader.remember()
    return found


def with_conftest(file: Path) -> list[Path]:
    """Return a file and the `conftest` files that count for it."""
    return [file, *(p for above in file.parents if (p := above / "conftest.py").is_file() and is_test(p))]


class Parts:
    """The pages or notebooks that the tests of one file are about, each with the tests that have passed for it."""

    def __init__(self, file: str, ending: str) -> None:
        self._stamp = stamps.STAMPS / "tests" / f"{file.replace('/', '--')}.parts"
        self._passed: dict[str, Any] = stamps.stamped(self._stamp)
        self._code = json.dumps(Reader().imports(stamps.ROOT / file))
        self._ending = ending
        self._now: dict[str, str] = {}
        if ending == ".ipynb":
            notebooks = stamps.inputs_of(stamps.notebooks(stamps.NOTEBOOKS))
            self._now = {n.stem: stamps.digest([], self._code, json.dumps(inputs)) for n, inputs in notebooks.items()}

    def of(self, test: str) -> str:
        """Return the page or notebook that the id of a test names; "" if it names none."""
        name = test.partition("[")[2].removesuffix("]")
        if self._ending == ".html":
            found = re.search(r"[\w./]+\.html", name)
            return found[0] if found and (SITE / found[0]).is_file() else ""
        return name if name in self._now else ""

    def inputs(self, part: str) -> str:
        """Return the hash of what the tests of a page or a notebook depend on; "" if it is not there any more."""
        if part not in self._now and (SITE / part).is_file():
            self._now[part] = stamps.digest(loaded_by(SITE / part), self._code)
        return self._now.get(part, "")

    def unchanged(self) -> list[str]:
        """Return the tests that need not be run again."""
        same = (old["ids"] for part, old in self._passed.items() if old["inputs"] == self.inputs(part) != "")
        return [test for tests in same for test in tests]

    def record(self, passed: dict[str, bool]) -> None:
        """Keep which pages or notebooks have passed all of their tests, and forget those that have not."""
        tests: dict[str, list[str]] = {}
        for test in passed:
            tests.setdefault(self.of(test), []).append(test)
        for part, ids in tests.items():
            self._passed.pop(part, None)
            if part and all(passed[test] for test in ids):
                self._passed[part] = {"inputs": self.inputs(part), "ids": ids}
        stamps.write_atomically(self._stamp, json.dumps(self._passed, indent=1, ensure_ascii=False))


def folders(facts: reach.Facts) -> set[Path]:
    """Return the folders of the book that strings name, but for that of the modules, which are reached by imports."""
    first = {string.split("/")[0] for string in facts.strings} - {"code", ".", ".."}
    return {path for name in first if "*" not in name and (path := stamps.ROOT / name).is_dir()} - {stamps.ROOT}


def the_book() -> stamps.Inputs:
    """Return the hash of each file and folder of the book; of the built site, its stamp: what it was built from."""
    entries = sorted(p for p in stamps.ROOT.iterdir() if p.name not in stamps.IGNORED)
    hashes = {name_of(entry): stamps.digest([entry]) for entry in entries}
    site = stamps.STAMPS / "site.stamp"
    return hashes | {"the built site": site.read_text(encoding="utf-8") if site.is_file() else "none"}


def is_test(file: Path) -> bool:
    """Return whether a file lies among the tests, and is no module with examples."""
    return stamps.ROOT / "tests" in file.parents


def name_of(path: Path) -> str:
    """Return a path as stamps name it."""
    return path.relative_to(stamps.ROOT).as_posix() + ("/" if path.is_dir() else "")


def stamp_of(file: Path) -> Path:
    """Return the place of a test file's stamp."""
    return stamps.stamp_of("tests", file)


def changes(file: Path, inputs: stamps.Inputs) -> list[str]:
    """Return which inputs have changed since all tests of a file last passed; [] if none has."""
    before = stamps.stamped(stamp_of(file))
    return stamps.changes(stamp_of(file), inputs | {TESTS: before.get(TESTS, "")})


def loaded_by(page: Path) -> list[Path]:
    """Return a page of the site with the files that it names, and those that its style sheets name."""
    named = re.findall(r"(?:_static|_images)/[^\s\"'?#&()<>]+", page.read_text(encoding="utf-8"))
    files = {SITE / name for name in named if (SITE / name).is_file()}
    for sheet in [file for file in files if file.suffix == ".css"]:
        names = re.findall(r"url\([\"']?([^\"')?#]+)", sheet.read_text(encoding="utf-8"))
        files |= {file for name in names if (file := sheet.parent / name).is_file()}
    return [page, *files]


class Outcomes:
    """A plugin of pytest that remembers which tests passed; with workers, in the process that leads them."""

    def __init__(self) -> None:
        self.collected: list[str] = []
        self.finished: set[str] = set()
        self.spoilt: set[str] = set()
        self.seconds = Counter[str]()

    def pytest_collection_finish(self, session: Any) -> None:
        """Take the tests, where no workers collect them."""
        self.collected += [item.nodeid for item in session.items]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Take the tests that a worker has collected: each worker has the same."""
        self.collected = list(ids)

    def pytest_collectreport(self, report: Any) -> None:
        """Notice a file that cannot be read, or that is skipped."""
        if not report.passed:
            self.spoilt.add(report.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notice a test that did not pass, and one that is over."""
        self.seconds[report.nodeid.split("::")[0]] += report.duration
        expected = hasattr(report, "wasxfail") or OF_THE_MACHINE in map(tuple, report.user_properties)
        if report.failed or (report.skipped and not expected):
            self.spoilt.add(report.nodeid)
        if report.when == "teardown":
            self.finished.add(report.nodeid)

    def of(self, file: str) -> dict[str, bool]:
        """Return for each test of a file whether it has passed; for a file that could not be read it is the file."""
        tests = [test for test in self.collected if test.split("::")[0] == file]
        unread = [place for place in self.spoilt if place.split("::")[0] == file and place not in tests]
        return {t: t in self.finished and t not in self.spoilt for t in tests} | dict.fromkeys(unread, False)


def main(arguments: list[str] | None = None) -> int:
    """Run what is due with pytest, stamp the files that passed, and return pytest's exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="also the tests that no change reaches")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run tests (default: 2)")
    options = parser.parse_args(arguments)
    os.environ.pop("PYTEST_ADDOPTS", None)  # what it deselects would count as passed
    everything = options.all or bool(os.environ.get("CI"))
    inputs = inputs_of(files())
    chosen = {name_of(file): file for file in inputs if everything or changes(file, inputs[file])}
    left = [int(stamps.stamped(stamp_of(file))[TESTS]) for file in inputs if name_of(file) not in chosen]
    parts = {file: Parts(file, ending) for file, ending in PARTS.items() if file in chosen}
    same = {file: [] if everything else part.unchanged() for file, part in parts.items()}
    if left or any(same.values()):
        print(f"tests: {sum(left) + sum(map(len, same.values()))} are left out, {sum(left)} of them in {len(left)} of "
              f"{len(inputs)} files: nothing that they reach has changed since they passed (ALL=1 runs every test)",
              flush=True)  # fmt: skip
    if not chosen:
        return 0
    outcomes = Outcomes()
    asked = [
        *(f"--deselect={test}" for tests in same.values() for test in tests),
        *(list(chosen) if left else places()),
    ]
    status = int(pytest.main(["-n", str(options.jobs), "--dist", "worksteal", *asked], plugins=[outcomes]))
    if len(outcomes.seconds) > 1:
        shown = ", ".join(f"{file} {spent:.0f}" for file, spent in outcomes.seconds.most_common(SHOWN))
        print(f"tests: {sum(outcomes.seconds.values()):.0f} s of the workers' time, most of it in {shown}")
    ended = status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    for name, file in chosen.items():
        passed = outcomes.of(name)
        if all(passed.values()) and (ended or passed):  # of an interrupted run, what it has finished
            count = len(passed) + len(same.get(name, []))
            stamps.write_stamp(stamp_of(file), inputs[file] | {TESTS: str(count)})
        if name in parts:
            parts[name].record(passed)
    return 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else status


if __name__ == "__main__":
    os.chdir(stamps.ROOT)
    stamps.run(main)
