"""What a notebook or a test reaches is found without running it; a change makes due what reaches it, and no more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import due
import due_tests
import execute
import reach
import stamps
from fabricated import code

LAZY = """
import importlib

def __getattr__(name):
    return importlib.import_module(f"pack.{name}")
"""
# A package whose rooms are imported when they are first named, one that imports its rooms at once, and a single module.
FILES = {
    "pack/__init__.py": LAZY + "\nVERSION = '1'\n",
    "pack/__main__.py": "from pack import left\n",
    "pack/left.py": "from pack import ground\n",
    "pack/right.py": "def f():\n    from pack.deep import inner\n",
    "pack/ground.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack import right\n",
    "pack/deep/__init__.py": "",
    "pack/deep/inner.py": "from . import other\n",
    "pack/deep/other.py": "",
    "pack/alone.py": "",
    "pack/reader.py": "from pathlib import Path\nTABLE = Path('data') / 'table.csv'\n",
    "pack/family.py": "def f(name):\n    return open(f'data/{name}.json')\n",
    "pack/dynamic.py": "import importlib\ndef f(name):\n    return importlib.import_module(name)\n",
    "pack/listed.py": "import importlib\nKNOWN = {'a': 'json', 'b': 'pack.alone'}\nfor k in KNOWN:\n"
    "    importlib.import_module(KNOWN[k])\n",
    "pack/finder.py": "import pack.left\nHERE = pack.left.__file__\n",
    "pack/broken.py": "def f(:\n",
    "pack/data/table.csv": "1\n",
    "pack/data/one.json": "1\n",
    "pack/data/two.json": "1\n",
    "pack/data/README.md": "1\n",
    "eager/__init__.py": "from eager.show import show\n",
    "eager/show.py": "def show(): ...\n",
    "eager/rest.py": "",
    "eager/sheet.mplstyle": "",
    "namespace/room/thing.py": "",
    "single.py": "import eager\n",
}
ALWAYS = {"eager/sheet.mplstyle"}


SETTINGS = "testpaths = ['tests']\npythonpath = ['code']\n"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "code" / name).write_text(text, encoding="utf-8")
    return tmp_path


def reached_by(root: Path, text: str) -> set[str]:
    """Return what a module of this text reaches, but for style sheets, which all reach."""
    path = root / "asks.py"
    path.write_text(text, encoding="utf-8")
    found = {
        p.relative_to(root / "code").as_posix() for p in reach.Sources([root / "code"], stamps_files).reached(path)
    }
    assert found >= ALWAYS
    return found - ALWAYS


def stamps_files(root: Path) -> list[Path]:
    return stamps.files([root])


INIT = "pack/__init__.py"
DEEP = {INIT, "pack/deep/__init__.py", "pack/deep/inner.py", "pack/deep/other.py"}
EVERYTHING = {n for n in FILES if not n.endswith("README.md")} - ALWAYS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import numpy as np\nnp.sum(1)", set()),
        ("from pack import alone", {INIT, "pack/alone.py"}),
        ("import pack.alone", {INIT, "pack/alone.py"}),
        ("import pack.alone as one\none.f()", {INIT, "pack/alone.py"}),
        ("import pack.alone\npack.left.f()", {INIT, "pack/alone.py", "pack/left.py", "pack/ground.py"}),
        ("from pack import left", {INIT, "pack/left.py", "pack/ground.py"}),
        ("def f():\n    from pack import right", {*DEEP, "pack/right.py"}),
        ("import pack.deep.inner", DEEP),
        ("from pack import VERSION", {INIT}),
        ("import eager\neager.show()", {"eager/__init__.py", "eager/show.py"}),
        ("import single", {"single.py", "eager/__init__.py", "eager/show.py"}),
        ("from eager import *", {"eager/__init__.py", "eager/show.py"}),
        ("from namespace.room import thing", {"namespace/room/thing.py"}),
        ("from pack import reader", {INIT, "pack/reader.py", "pack/data/table.csv"}),
        ("open('pack/data/table.csv')", {"pack/data/table.csv"}),
        ("load('table')", {"pack/data/table.csv"}),
        ("load('a sentence about a table')", set()),
        ("from pack import family", {INIT, "pack/family.py", "pack/data/one.json", "pack/data/two.json"}),
        ("'table.csv'\n'pack.alone'", set()),
        ("from pack import listed", {INIT, "pack/listed.py", "pack/alone.py"}),
        ("import importlib\nimportlib.import_module('pack.alone')", {INIT, "pack/alone.py"}),
        ("from pack import dynamic\ndynamic.f('pack.alone')", {INIT, "pack/dynamic.py", "pack/alone.py"}),
        ("from pack import dynamic\nname = 'x'\ndynamic.f(f'pack.de{name}')", {*DEEP, "pack/dynamic.py"}),
        ("import sys\nrun([sys.executable, '-m', 'pack'])",
         {INIT, "pack/__main__.py", "pack/left.py", "pack/ground.py"}),
        ("run(['-c', 'import os; from pack import alone'])", {INIT, "pack/alone.py"}),
        ("TYPE_CHECKING = False\nif TYPE_CHECKING:\n    import pack.alone\nelse:\n    import eager.rest",
         {"eager/__init__.py", "eager/show.py", "eager/rest.py"}),
    ],
)  # fmt: skip
def test_a_module_reaches_what_it_imports_and_names(sources: Path, text: str, found: set[str]) -> None:
    assert reached_by(sources, text) == found


@pytest.mark.parametrize("text", ["import pack", "from pack import left\nimport pack.deep\nvars(pack)",
                                  "from pack import surprise", "import pack.left\nlist(pack.__path__)"])  # fmt: skip
def test_a_package_that_is_not_asked_for_one_room_is_reached_as_a_whole(sources: Path, text: str) -> None:
    (sources / "code" / "pack" / "broken.py").unlink()
    rooms = {n for n in FILES if n.startswith("pack/") and n.endswith(".py")} - {"pack/broken.py", "pack/__main__.py"}
    assert reached_by(sources, text) >= rooms


@pytest.mark.parametrize("text", ["def f(:", "from pack import broken", "from pack import finder"])
def test_what_cannot_be_known_reaches_everything(sources: Path, text: str) -> None:
    assert reached_by(sources, text) >= EVERYTHING


def test_a_module_reaches_the_packages_above_it(sources: Path) -> None:
    other = sources / "code" / "pack" / "deep" / "other.py"  # it imports nothing
    found = reach.Sources([sources / "code"], stamps_files).reached(other)
    assert {sources / "code" / name for name in (INIT, "pack/deep/__init__.py")} <= found


def test_examples_count_where_they_are_run(sources: Path) -> None:
    path = sources / "asks.py"
    path.write_text('"""\n>>> from pack import alone\n"""\n', encoding="utf-8")
    of = reach.Sources([sources / "code"], stamps_files)
    assert sources / "code" / "pack" / "alone.py" in of.reached(path, examples=True) - of.reached(path)


def test_what_was_read_is_remembered_by_its_content(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = sources / "cache.json"

    def found() -> set[Path]:
        path = sources / "asks.py"
        of = reach.Sources([sources / "code"], stamps_files, cache=cache)
        result = of.reached(path)
        of.remember(stamps.write_atomically)
        return result

    (sources / "asks.py").write_text("from pack import left", encoding="utf-8")
    first = found()
    with monkeypatch.context() as nothing_new:
        nothing_new.delattr(reach, "facts")
        assert found() == first
    (sources / "code" / "pack" / "left.py").write_text("from pack import alone", encoding="utf-8")
    assert sources / "code" / "pack" / "alone.py" in found()
    cache.write_text("not JSON", encoding="utf-8")
    assert sources / "code" / "pack" / "alone.py" in found()


@pytest.fixture
def book(sources: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A book of two notebooks whose outputs are as good as proved; its tests have passed."""
    monkeypatch.setattr(stamps, "ROOT", sources)
    monkeypatch.setattr(stamps, "STAMPS", sources / "_build" / "stamps")
    monkeypatch.setattr(stamps, "NOTEBOOKS", (sources / "chapters",))
    chapters = sources / "chapters" / "part"
    chapters.mkdir(parents=True)
    write(chapters / "a.ipynb", "from pack import left\nfrom pack.reader import TABLE\nclaims = load_claims('a')")
    write(chapters / "b.ipynb", "from pack import alone\nclaims = load_claims('b')\nleft = 'a'")
    tests = sources / "tests" / "package"
    tests.mkdir(parents=True)
    contents = {
        "chapters/part/a.claims.yml": "1", "chapters/part/b.claims.yml": "1", "chapters/sources/a.yml": "1",
        "constraints.txt": "1", "pyproject.toml": f"[tool.pytest.ini_options]\n{SETTINGS}",
        "tests/conftest.py": "import single\n", "tests/package/helper.py": "from pack import alone\n",
        "tests/package/test_left.py": "from pack import left\ndef test_it(): pass\n",
        "tests/package/test_alone.py": "from helper import alone\ndef test_it(): pass\n",
        "tests/package/test_book.py": "ROOT = __file__\ndef test_it(): pass\n",
        "tests/package/test_chapters.py": "PAGES = 'chapters/part'\ndef test_it(): pass\n",
    }  # fmt: skip
    for name, text in contents.items():
        (sources / name).parent.mkdir(exist_ok=True)
        (sources / name).write_text(text, encoding="utf-8")
    for kind in ("executed", "proved"):
        for notebook, inputs in stamps.inputs_of(stamps.notebooks([chapters])).items():
            stamps.write_stamp(stamps.stamp_of(kind, notebook), inputs)
    for file, inputs in due_tests.inputs_of(due_tests.files()).items():
        stamps.write_stamp(due_tests.stamp_of(file), inputs | {due_tests.TESTS: "1"})
    return sources


def write(path: Path, source: str) -> None:
    notebook = {"cells": [code(source, 1)], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8")


def due_notebooks(book: Path) -> str:
    found = execute.due(stamps.notebooks([book / "chapters"]), "executed", "proved")
    return " ".join(path.stem for path in found)


def changed(path: Path) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    comment = {".py": "# more", ".ipynb": " "}.get(path.suffix, "more")
    path.write_text(f"{text}{comment}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "due"),
    [
        ("code/pack/ground.py", "a"),
        ("code/pack/alone.py", "b"),
        ("code/pack/__init__.py", "a b"),
        ("code/pack/right.py", ""),
        ("code/new.py", ""),
        ("chapters/part/a.claims.yml", "a"),
        ("chapters/part/b.claims.yml", "b"),
        ("chapters/part/b.ipynb", "b"),
        ("chapters/sources/a.yml", ""),
        ("code/pack/data/table.csv", "a"),
        ("code/pack/data/one.json", ""),
        ("code/pack/data/README.md", ""),
        ("code/eager/sheet.mplstyle", "a b"),
        ("constraints.txt", "a b"),
    ],
)
def test_a_change_makes_due_the_notebooks_that_reach_it(book: Path, name: str, due: str) -> None:
    assert due_notebooks(book) == ""
    changed(book / name)
    assert due_notebooks(book) == due
    notebooks = stamps.notebooks([book / "chapters"])
    said = {
        stamps.changes(stamps.stamp_of("proved", n), i)[0]
        for n, i in stamps.inputs_of(notebooks).items()
        if n.stem in due
    }
    assert said == ({name} if due else set())


def test_another_python_and_a_stamp_that_cannot_be_read_make_due(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = book / "chapters" / "part" / "a.ipynb"
    for kind in ("executed", "proved"):
        stamps.stamp_of(kind, notebook).write_text("0123abcd", encoding="utf-8")  # as an older version left it
    assert due_notebooks(book) == "a"
    monkeypatch.setattr(stamps.platform, "python_version", lambda: "3.99")
    assert due_notebooks(book) == "a b"


def test_a_stamp_says_what_is_new_and_what_no_longer_counts(book: Path) -> None:
    notebook = book / "chapters" / "part" / "a.ipynb"
    write(notebook, "from pack import left, alone\nclaims = load_claims('a')")
    changes = stamps.changes(stamps.stamp_of("proved", notebook), stamps.inputs_of([notebook])[notebook])
    assert {"code/pack/alone.py (new)", "code/pack/data/table.csv (no longer)", "chapters/part/a.ipynb"} <= set(changes)
    stamp = json.loads(stamps.stamp_of("proved", notebook).read_text(encoding="utf-8"))
    assert {"Python", "constraints.txt", "code/pack/ground.py", "chapters/part/a.claims.yml"} <= set(stamp)


@pytest.mark.parametrize(
    ("name", "due"),
    [
        ("code/pack/ground.py", {"test_left", "test_book"}),
        ("code/pack/alone.py", {"helper", "test_alone", "test_book"}),
        ("code/eager/show.py", {"conftest", "helper", "test_left", "test_alone", "test_book", "test_chapters"}),
        ("tests/package/helper.py", {"helper", "test_alone", "test_book"}),
        ("tests/package/test_left.py", {"test_left", "test_book"}),
        ("chapters/part/b.ipynb", {"test_chapters", "test_book"}),
        ("pyproject.toml", {"conftest", "helper", "test_left", "test_alone", "test_book", "test_chapters"}),
        ("_build/stamps/site.stamp", {"test_book"}),
        ("README.md", {"test_book"}),
    ],
)
def test_a_change_makes_due_the_tests_that_reach_it(book: Path, name: str, due: set[str]) -> None:
    def found() -> set[str]:
        return {f.stem for f, inputs in due_tests.inputs_of(due_tests.files()).items() if due_tests.changes(f, inputs)}

    assert found() == set()
    if name == "pyproject.toml":
        (book / name).write_text("[tool.pytest.ini_options]\ntestpaths = ['tests']\n# more\n", encoding="utf-8")
    else:
        changed(book / name)
    assert found() == due


def test_due_lists_what_is_due_and_why(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert due.main() == 0
    assert [line[-6:] for line in capsys.readouterr().out.splitlines()] == ["0 of 2", "0 of 2", "0 of 6"]
    changed(book / "code" / "pack" / "left.py")
    due.main()
    said = capsys.readouterr().out
    assert "to execute (make execute): 1 of 2\n  chapters/part/a.ipynb: code/pack/left.py\n" in said
    assert "tests to run (make test): 2 of 6\n  tests/package/test_book.py: code/\n" in said
    assert due.reasons(list("abcd")) == "a, b, c and 1 more"


OUTCOMES = {
    "test_good.py": "import os\nimport pytest\nfrom pack import alone\n\n@pytest.mark.parametrize('k', range(3))\n"
    "def test_it(k):\n    assert True\n\n@pytest.mark.xfail\ndef test_not_yet():\n    assert False\n",
    "test_bad.py": "from pack import alone\n\ndef test_it():\n    assert False\n",
    "test_skips.py": "import pytest\n\ndef test_it():\n    pytest.skip('no browser')\n",
    "test_slow.py": "import pytest\n\ndef test_it():\n    pass\n\n"
    "@pytest.fixture\ndef ends():\n    yield\n    1 / 0\n\ndef test_ends_badly(ends):\n    pass\n",
    "test_machine.py": "import pytest\n\ndef test_it():\n    pytest.skip('one core has one thread')\n",
    "helper.py": 'def double(x):\n    """Double.\n\n    >>> double(2)\n    4\n    """\n    return 2 * x\n',
}


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_file_is_left_out_when_all_its_tests_have_passed_and_nothing_it_reaches_has_changed(
    sources: Path, workers: str
) -> None:
    shutil.copytree(stamps.ROOT / "tools", sources / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (sources / "tests").mkdir()
    shutil.copy(stamps.ROOT / "tests" / "conftest.py", sources / "tests")
    for name, text in OUTCOMES.items():
        (sources / "tests" / name).write_text(text, encoding="utf-8")
    options = "['--doctest-modules', '-q', '-p', 'no:cacheprovider']"
    settings = f"{SETTINGS}addopts = {options}\n"
    (sources / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{settings}", encoding="utf-8")

    def run(*options: str, ci: str = "") -> tuple[int, str]:
        command = [sys.executable, "tools/due_tests.py", "--jobs", workers, *options]
        environment = os.environ | {"CI": ci, "PYTEST_ADDOPTS": "-k nothing"}  # which would leave everything out
        done = subprocess.run(command, cwd=sources, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    status, said = run()
    assert status == 1 and "6 passed, 2 skipped, 1 xfailed" in said and "1 failed" in said and "left out" not in said
    assert "s of the workers' time, most of it in tests/" in said
    status, said = run()
    assert (
        status == 1
        and "tests: 6 are left out, 6 of them in 4 of 7 files" in said
        and "1 failed, 2 passed, 1 skipped, 1 error" in said
    )
    for name in ("test_bad.py", "test_skips.py", "test_slow.py"):
        (sources / "tests" / name).write_text("from pack import alone\n\ndef test_it():\n    pass\n", encoding="utf-8")
    status, said = run()
    assert status == 0 and "6 of them in 4 of 7 files" in said and "3 passed" in said
    status, said = run()
    assert status == 0 and "9 of them in 7 of 7 files" in said and "passed in" not in said
    (sources / "code" / "pack" / "alone.py").write_text("x = 1\n", encoding="utf-8")
    status, said = run()
    assert "2 of them in 3 of 7 files" in said and "6 passed" in said
    assert "7 passed" in run("--all")[1]
    assert "left out" not in run(ci="true")[1]


def test_of_a_page_that_is_as_it_was_the_tests_are_left_out(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = book / "_build" / "html"
    pages = {
        "a.html": "<link href='_static/book.css?v=1'><img src='_images/a.svg'>", "b.html": "<p>b</p>",
        "_static/book.css": "p { background: url('paper.png') }", "_static/paper.png": "1", "_static/table.js": "1",
        "_images/a.svg": "1",
    }  # fmt: skip
    for name, text in pages.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(due_tests, "SITE", site)
    file = "tests/package/test_left.py"

    def unchanged() -> list[str]:
        return due_tests.Parts(file, ".html").unchanged()

    tests = [f"{file}::test_it[{page}]" for page in ("a.html-1280", "a.html-360", "b.html", "gone.html")]
    assert unchanged() == []
    due_tests.Parts(file, ".html").record(dict.fromkeys([*tests, f"{file}::test_all"], True))
    assert unchanged() == tests[:3]
    for name, left in (
        ("_static/table.js", tests[:3]),
        ("_static/paper.png", tests[2:3]),
        ("_images/a.svg", tests[2:3]),
    ):
        changed(site / name)
        assert unchanged() == left, name
        (site / name).write_text("1", encoding="utf-8")
    due_tests.Parts(file, ".html").record({tests[0]: True, tests[1]: False})
    assert unchanged() == tests[2:3], "one of the tests of a page has failed"
    changed(book / "code" / "pack" / "ground.py")
    assert unchanged() == [], "what the tests themselves reach"
    (site / "b.html").unlink()
    due_tests.Parts(file, ".html").record({tests[2]: True})
    assert unchanged() == []


def test_of_a_notebook_that_is_as_it_was_the_tests_are_left_out(book: Path) -> None:
    file = "tests/package/test_left.py"
    tests = {f"{file}::test_it[{name}]": True for name in ("a", "b", "c")}
    due_tests.Parts(file, ".ipynb").record(tests)
    assert due_tests.Parts(file, ".ipynb").unchanged() == list(tests)[:2]
    changed(book / "code" / "pack" / "data" / "table.csv")
    assert due_tests.Parts(file, ".ipynb").unchanged() == list(tests)[1:2]
