"""The author's commands do what they say, and leave things alone when they cannot."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bench
import execute
import figure_scripts
import forked_kernels
import prove
import publish
import readable_notebook
import stamps
from fabricated import code
from linewise.ledger import LedgerError
from linewise.ledger.collate import prose_of, records_of

ENVIRONMENT = stamps.ROOT / "tools" / "environment.sh"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A book of its own in a temporary folder, so that no stamp of this one is touched."""
    monkeypatch.setattr(stamps, "ROOT", tmp_path)
    monkeypatch.setattr(stamps, "STAMPS", tmp_path / "_build" / "stamps")
    (tmp_path / "code").mkdir()
    before = dict(os.environ)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


def write(path: Path, *cells: dict[str, Any]) -> Path:
    notebook = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def test_execute_stores_normalised_outputs_once(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jupyter = {"source_hidden": True, "outputs_hidden": False}
    given = [
        code("import os\nprint(os.path.exists('a.ipynb'))", None, jupyter=jupyter),
        code("1 + 1", None, tags=["hide-input"]),
    ]
    path = write(elsewhere / "a.ipynb", *given)
    assert execute.main([str(path), "--jobs", "1"]) == 0
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert [c["execution_count"] for c in stored["cells"]] == [1, 2]
    assert stored["cells"][0]["outputs"][0]["text"] == ["True\n"]  # the kernel's folder is the notebook's
    assert "version" not in stored["metadata"]["language_info"]
    assert all("execution" not in c["metadata"] for c in stored["cells"])
    assert [c["id"] for c in stored["cells"]] == [c["id"] for c in given]
    folded = [c["metadata"]["jupyter"] for c in stored["cells"]]
    assert folded == [{"outputs_hidden": False}, {"source_hidden": True}], "JupyterLab folds what the site folds"
    before = path.read_bytes()
    capsys.readouterr()
    assert execute.main([str(path)]) == 0
    assert "0 of 1 notebooks to execute" in capsys.readouterr().out
    (elsewhere / "constraints.txt").write_text("x==1\n", encoding="utf-8")
    assert list(execute.due([path], "executed")) == [path]
    assert path.read_bytes() == before


def test_execute_leaves_a_failing_notebook_alone(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(elsewhere / "bad.ipynb", code("x = 1", None), code("print(x)\nx / 0", None))
    before = path.read_bytes()
    assert execute.main([str(path)]) == 1
    report = capsys.readouterr().err
    assert "bad.ipynb: code cell 2 of 2 failed" in report
    assert "x / 0" in report
    assert "ZeroDivisionError" in report
    assert report.endswith("The file is as it was.\n"), "what a shell prints next begins a line"
    assert path.read_bytes() == before
    assert sorted(p.name for p in elsewhere.iterdir()) == ["_build", "bad.ipynb", "code"]


def test_kernels_do_not_see_the_callers_settings(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "2", "MATPLOTLIBRC": "mine", "IPYTHONDIR": "mine"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    path = write(elsewhere / "a.ipynb", code(f"import os\n[os.environ.get(name) for name in {list(settings)}]", None))
    [cell] = execute.run(path).cells
    found = str(elsewhere / "_build" / "ipython")
    assert cell.outputs[0].data["text/plain"].replace("\n", "") == str(["1", "1", None, found])


def test_execute_joins_what_was_printed_and_keeps_the_order(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "import sys\nfor k in range(3):\n    print(k)\n    sys.stdout.flush()\ndisplay(7)\nprint(8)"
    path = write(elsewhere / "a.ipynb", code(source, None))
    assert execute.main([str(path)]) == 0
    assert capsys.readouterr().err == ""
    outputs = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["outputs"]
    assert [o.get("text", o.get("data", {}).get("text/plain")) for o in outputs] == [
        ["0\n", "1\n", "2\n"],
        ["7"],
        ["8\n"],
    ]


@pytest.mark.parametrize("what", ["missing.ipynb", "empty", "page.md"])
def test_execute_says_what_it_cannot_find(elsewhere: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    (elsewhere / "empty").mkdir()
    (elsewhere / "page.md").write_text("# A page\n", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        execute.main([str(elsewhere / what)])
    assert stopped.value.code == 2
    assert f"{what}: expected a notebook or a folder" in capsys.readouterr().err


def notebook(**changes: Any) -> str:
    """A notebook of one cell in JSON, with other parts."""
    return json.dumps({"cells": [code("1", 1)], "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | changes)


#: What is no notebook, though some of it is JSON.
NO_NOTEBOOKS: dict[str, str | bytes] = {
    "words": "not JSON", "empty": "", "a bracket": "{", "a list": "[]", "a number": "3", "null": "null",
    "an object": "{}",
    "100,000 brackets": "[" * 100_000, "Latin-1": "\xe4".encode("latin-1"), "a mark of order": "\ufeff" + notebook(),
    "format 99": notebook(nbformat=99), "format 3": notebook(nbformat=3), "a format in words": notebook(nbformat="4"),
    "no cells": json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}}), "cells: 3": notebook(cells=3),
    "a cell in a number": notebook(cells=[3]), "a cell of another type": notebook(cells=[{"cell_type": "heading"}]),
    "a source in a number": notebook(cells=[code("1", 1) | {"source": 3}]),
    "lines in numbers": notebook(cells=[code("1", 1) | {"source": [3]}]),
    "outputs in a number": notebook(cells=[code("1", 1) | {"outputs": 3}]),
    "an output in words": notebook(cells=[code("1", 1) | {"outputs": ["a"]}]),
    "metadata in a list": notebook(metadata=[]),
    "a cell's metadata in a list": notebook(cells=[code("1", 1) | {"metadata": []}]),
    "an id in a number": notebook(cells=[code("1", 1) | {"id": 3}]),
    "one id twice": notebook(cells=[code("1", 1) | {"id": "a"}, code("2", 2) | {"id": "a"}]),
    "half a surrogate": notebook(cells=[code("half", 1)]).replace("half", r"\ud800"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_NOTEBOOKS)
def test_each_tool_says_of_what_is_no_notebook_that_it_is_none(
    elsewhere: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path, given = elsewhere / "text.ipynb", NO_NOTEBOOKS[kind]
    content = given if isinstance(given, bytes) else given.encode()
    path.write_bytes(content)
    assert execute.main([str(path)]) == 1
    assert path.read_bytes() == content
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.startswith("text.ipynb: ") and " expected " in first and rest == ["", "The file is as it was."]
    assert prove.main([str(path)]) == 1
    assert "NOT PROVED text.ipynb: " in capsys.readouterr().out
    assert publish.main(["--check", "--notebooks", str(path), "--out", str(elsewhere)]) == 1
    assert capsys.readouterr().err.startswith("publish: text.ipynb: ")
    with pytest.raises(ValueError, match=r"^text\.ipynb: .*expected "):
        figure_scripts.read([path], elsewhere)
    assert readable_notebook.main([str(path)]) == 0  # git shows what is there
    assert linewise_says(path)


def linewise_says(path: Path) -> bool:
    """Whether the engine reads a file, or says that it is no notebook."""
    for read in (records_of, prose_of):
        try:
            read(path)
        except LedgerError as error:
            assert "expected a notebook, got" in str(error)
    return True


def test_a_notebook_that_deletes_itself_is_kept(elsewhere: Path) -> None:
    path = write(elsewhere / "gone.ipynb", code("import os\nos.remove('gone.ipynb')", None))
    assert execute.main([str(path)]) == 0
    assert json.loads(path.read_text(encoding="utf-8"))["cells"][0]["execution_count"] == 1
    before = write(path, code("import os\nos.remove('gone.ipynb')\n1 / 0", None)).read_bytes()
    assert execute.main([str(path)]) == 1 and path.read_bytes() == before


def test_cells_without_an_id_get_the_same_ones_each_time(elsewhere: Path) -> None:
    cell = {key: value for key, value in code("1", None).items() if key != "id"}
    path = write(elsewhere / "a.ipynb", cell, cell)
    assert execute.main([str(path)]) == 0
    assert [c["id"] for c in json.loads(path.read_text(encoding="utf-8"))["cells"]] == ["cell-1", "cell-2"]


def test_prove_rejects_a_cell_that_was_never_executed(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(elsewhere / "raw.ipynb", code("1 + 1", None))
    assert prove.main([str(path)]) == 1
    assert "raw.ipynb: holds code cells that were never executed" in capsys.readouterr().out


def test_prove_names_the_notebook_whose_outputs_differ(tmp_path: Path) -> None:
    """In a process of its own: pytest inside pytest would share its state."""
    shutil.copytree(stamps.ROOT / "tools", tmp_path / "tools")
    (tmp_path / "code").mkdir()
    write(tmp_path / "true.ipynb", code("print(2)", 1, {"output_type": "stream", "name": "stdout", "text": "2\n"}))
    write(tmp_path / "false.ipynb", code("print(2)", 1, {"output_type": "stream", "name": "stdout", "text": "3\n"}))
    command = [sys.executable, "tools/prove.py", "--jobs", "1", "true.ipynb", "false.ipynb"]
    first = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert first.returncode == 1
    assert "NOT PROVED false.ipynb: code cell 1" in first.stdout
    assert "proved true.ipynb" in first.stdout
    assert "make execute" in first.stdout
    second = subprocess.run([*command[:-1]], cwd=tmp_path, capture_output=True, text=True)
    assert second.returncode == 0
    assert "nothing has changed" in second.stdout


def test_prove_looks_at_cells_that_ask_to_be_left_out(tmp_path: Path) -> None:
    """nbval by itself would pass each of these, which print another word than the stored one."""
    shutil.copytree(stamps.ROOT / "tools", tmp_path / "tools")
    (tmp_path / "code").mkdir()
    stored = {"output_type": "stream", "name": "stdout", "text": "3\n"}
    cells = [code(f"{comment}\nprint(2)", 1, stored) for comment in ("# NBVAL_SKIP", "# NBVAL_IGNORE_OUTPUT")]
    tagged = code("print(2)", 1, stored)
    tagged["metadata"]["tags"] = ["nbval-skip"]
    write(tmp_path / "a.ipynb", *cells, tagged)
    command = [sys.executable, "tools/prove.py", "a.ipynb"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 1
    assert "NOT PROVED a.ipynb: code cell 1, code cell 2, code cell 3\n" in said.stdout


def test_a_forked_kernel_is_a_process_of_its_own_and_others_have_loaded_less(tmp_path: Path) -> None:
    """A notebook's kernel is forked only if its first cell imports all that is loaded before the fork."""
    shutil.copytree(stamps.ROOT / "tools", tmp_path / "tools")
    for folder in ("code", "forked", "usual"):
        (tmp_path / folder).mkdir()
    ours = "import os, sys\nimport matplotlib.pyplot\nfrom attnmath import figures\nfrom linewise import derive, ledger"
    asks = "print(os.getsid(0) == os.getpid(), os.path.basename(os.getcwd()), 'ours' in globals())\n"
    asks += "print(*(name in sys.modules for name in ('sympy', 'multiprocessing.forkserver')))\n"
    asks += "print(os.path.abspath('../tools') in sys.path)"
    for kind, first, said in (("forked", ours, "True forked {}\nTrue True\nFalse\n"),
                              ("usual", "import os, sys", "True usual {}\nFalse False\nFalse\n")):  # fmt: skip
        for name, known in (("a", "False"), ("b", "False")):  # the second has nothing of the first
            stored = {"output_type": "stream", "name": "stdout", "text": said.format(known)}
            write(tmp_path / kind / f"{name}.ipynb", code(first, 1), code(asks, 2, stored), code("ours = 1", 3))
    command = [sys.executable, "tools/prove.py", "--jobs", "1", "forked", "usual"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_forked_kernel_ends_with_the_process_that_launched_it(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    first = "import matplotlib.pyplot\nfrom attnmath import figures\nfrom linewise import derive, ledger"
    slow = "import os, pathlib, time\npathlib.Path('pid').write_text(f'{os.getpid()} ')\ntime.sleep(600)"
    path = write(tmp_path / "a.ipynb", code(first, 1), code(slow, 2))
    judge = prove.Judge()
    asked = judge._process.stdin
    assert asked
    asked.write(json.dumps(str(path)).encode() + b"\n")
    told = tmp_path / "pid"
    in_time(lambda: told.is_file() and told.read_text(encoding="utf-8").endswith(" "))
    judge._process.kill()
    judge.close()
    in_time(partial(is_gone, int(told.read_text(encoding="utf-8"))))


def is_gone(process: int) -> bool:
    """Return whether no such process is there any more."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def in_time(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until the condition is true; fail if it is not true in time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_kernel_of_every_chapter_can_be_forked() -> None:
    for path in stamps.notebooks([stamps.ROOT / "chapters"]):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        first = next("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        assert forked_kernels.imported(first) >= forked_kernels.PRELOADED, path


def test_prove_says_when_pytest_ends_without_an_answer(elsewhere: Path) -> None:
    judge = prove.Judge()
    judge._process.kill()
    prove.JUDGES.mine = judge
    said = prove.prove(write(elsewhere / "a.ipynb", code("x = 1", 1)))
    assert said == "pytest ended without an answer\nNOT PROVED a.ipynb: cannot be read"
    assert not hasattr(prove.JUDGES, "mine")  # the next notebook gets another


@pytest.mark.parametrize("starts", [1, 2])
def test_a_kernel_that_could_not_begin_is_asked_once_more(elsewhere: Path, starts: int) -> None:
    answers = iter([*[(1, f"{prove.NOT_BEGUN}\nERROR a.ipynb::Cell 0\n")] * starts, (0, "")])
    prove.JUDGES.mine = lambda notebook: next(answers)
    said = prove.prove(write(elsewhere / "a.ipynb", code("x = 1", 1)))
    assert said.endswith("NOT PROVED a.ipynb: code cell 1" if starts == 2 else "") and bool(said) == (starts == 2)
    del prove.JUDGES.mine


@pytest.mark.parametrize(("target", "done"), [("execute", "executed"), ("notebooks", "proved")])
def test_an_interrupted_run_says_so_in_one_line_and_is_resumed(tmp_path: Path, target: str, done: str) -> None:
    """Ctrl-C reaches every process of the terminal at once: here, of the process group."""
    shutil.copytree(stamps.ROOT / "tools", tmp_path / "tools")
    shutil.copy(stamps.ROOT / "Makefile", tmp_path)
    (tmp_path / "code").mkdir()
    (tmp_path / "chapters").mkdir()
    (tmp_path / "figures").mkdir()
    write(tmp_path / "chapters" / "a.ipynb", code("x = 1", 1))
    waits = "import pathlib, time\nif not pathlib.Path('../go').exists():\n    time.sleep(600)"
    slow = write(tmp_path / "chapters" / "b.ipynb", code("x = 2", 1), code(waits, 2))
    before = slow.read_bytes()
    command = ["make", target, f"VENV={sys.prefix}", "INSTALL=no"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "ALL"))}
    options: Any = {"cwd": tmp_path, "env": environment, "text": True, "start_new_session": True}
    # Where the tests run in the background, Ctrl-C is ignored, and no program below could hear it.
    options["preexec_fn"] = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    stamp = tmp_path / "_build" / "stamps" / done / "chapters--a.ipynb.stamp"
    for _ in range(600):
        time.sleep(0.1)
        if stamp.exists():
            break
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode != 0
    assert err.count("Interrupted. What was finished is kept, and the next run goes on from there.") == 1
    assert "Traceback" not in out + err
    assert slow.read_bytes() == before
    assert stamp.exists() and not stamp.with_name("chapters--b.ipynb.stamp").exists()

    (tmp_path / "go").touch()
    again = subprocess.run(command, capture_output=True, **options)
    assert again.returncode == 0, again.stdout + again.stderr
    assert f"{done} chapters/b.ipynb" in again.stdout and f"{done} chapters/a.ipynb" not in again.stdout


@pytest.mark.parametrize("name", ["a:b", "it's", 'a"b', "a`b", "a$b"])
def test_make_says_where_it_cannot_work(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    shutil.copy(stamps.ROOT / "Makefile", tmp_path / name)
    said = subprocess.run(["make", "help"], cwd=tmp_path / name, capture_output=True, text=True)
    assert said.returncode == 2
    assert "This folder's path holds the character" in said.stderr and said.stderr.count("\n") == 1


def test_a_stamp_follows_contents_and_not_dates(elsewhere: Path) -> None:
    page = elsewhere / "page.md"
    page.write_text("one", encoding="utf-8")
    before = stamps.digest([page])
    os.utime(page, (0, 0))
    assert stamps.digest([page]) == before
    page.write_text("two", encoding="utf-8")
    assert stamps.digest([page]) != before
    assert stamps.digest([page, elsewhere / "absent"]) == stamps.digest([page])
    assert stamps.digest([page], "python 3.11.0") != stamps.digest([page])


def test_once_runs_when_due_and_only_then(elsewhere: Path) -> None:
    given, made, log = elsewhere / "in", elsewhere / "out", elsewhere / "log"
    given.write_text("1", encoding="utf-8")
    command = ["--inputs", str(given), "--output", str(made), "--", "sh", "-c", f"echo x >> {log}; touch {made}"]

    def runs() -> int:
        assert stamps.main(["copy", *command]) == 0
        return len(log.read_text(encoding="utf-8").split())

    assert [runs(), runs()] == [1, 1]
    given.write_text("2", encoding="utf-8")
    assert runs() == 2
    made.unlink()
    assert runs() == 3


def test_once_does_not_stamp_a_failure(elsewhere: Path) -> None:
    (elsewhere / "out").touch()
    command = ["fail", "--inputs", "in", "--output", str(elsewhere / "out"), "--", "false"]
    assert [stamps.main(command), stamps.main(command)] == [1, 1]


def test_environment_says_which_python_is_missing(tmp_path: Path) -> None:
    stub = tmp_path / "python3"
    stub.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    stub.chmod(0o755)
    result = subprocess.run(
        ["sh", ENVIRONMENT, tmp_path / "venv", stub], capture_output=True, text=True, env={"PATH": os.environ["PATH"]}
    )
    assert result.returncode == 1
    assert "needs Python 3.11, 3.12 or 3.13" in result.stderr
    assert "does not run" in result.stderr


def test_environment_refuses_a_folder_that_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("", encoding="utf-8")
    result = subprocess.run(["sh", ENVIRONMENT, tmp_path, sys.executable], capture_output=True, text=True)
    assert result.returncode == 1
    assert "expected a virtual environment or nothing" in result.stderr
    assert (tmp_path / "precious").exists()


def test_bench_prints_rows_and_notices_what_is_over_its_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "calibrate", lambda: None)
    monkeypatch.setattr(bench, "median", lambda work, repeat: 0.5)
    for seconds, status in ((2.0, 0), (12.0, 1)):
        rows = [("make", 10.0, seconds)]
        monkeypatch.setattr(bench, "benches", lambda kinds, rows=rows: iter(rows))
        assert bench.main(["--only", "book"]) == status
    said = capsys.readouterr().out
    assert "| make | 10 s | 20 % | 4.0 |" in said and "| make | 10 s | 120 % | 24.0 |" in said
    with pytest.raises(SystemExit):
        bench.main(["--only", "nonsense"])
    assert "nonsense" in capsys.readouterr().err


SOME = """
import pytest

def test_needs_a_package():
    pytest.importorskip("no_such_package")

@pytest.mark.skipif(True, reason="one core has one thread")
def test_needs_two_cores():
    pass
"""
ALL = "import pytest\npytest.importorskip('no_such_package')\n"


@pytest.mark.parametrize(("module", "machine", "reader"), [(SOME, "1 failed, 1 skipped", 0), (ALL, "1 error", 5)])
def test_a_machine_skips_nothing_for_want_of_a_package(tmp_path: Path, module: str, machine: str, reader: int) -> None:
    """Where a reader runs the tests, what is optional may be missing."""
    shutil.copy(stamps.ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(module, encoding="utf-8")

    def outcome(ci: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
            capture_output=True, text=True, cwd=tmp_path,
            env=os.environ | {"CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # it asks for none of them
        )  # fmt: skip
        return done.returncode, done.stdout

    assert outcome("")[0] == reader
    status, said = outcome("true")
    assert status and machine in said and "nothing may be skipped" in said, said
