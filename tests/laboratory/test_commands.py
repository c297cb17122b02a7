"""Every command of the package: its help, what it needs, and how it ends when something is missing or wrong."""

from __future__ import annotations

import argparse
import ast
import functools
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import attnlab
from attnlab.commands import COMMANDS, Command
from attnlab.threads import one_thread

PACKAGE = Path(attnlab.__file__).parent
ROOT = PACKAGE.parents[1]
EXTRA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
#: Where the name of a module is not that of its distribution.
MODULES = {"pyyaml": "yaml"}
#: The optional group of each command that needs one.
EXTRAS = {
    **dict.fromkeys(["heads.train", "heads.weights", "heads.prune", "recall", "translation"], "train"),
    "experiments.locality": "train",
    "experiments.public_implementations": "compare",
    **dict.fromkeys(
        ["heads.extract", "heads.prune_pretrained", "experiments.four_bits", "experiments.sinks", "report"], "model"
    ),
}


# --- what is imported, from the sources -------------------------------------------------------------


@functools.cache
def core() -> tuple[str, ...]:
    """What the distribution asks for, by its setup.py: what its packages ask for together."""
    given: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr("setuptools.setup", lambda **found: given.update(found))
        runpy.run_path("setup.py")
    return tuple(given["install_requires"])


def declared(*extras: str) -> set[str]:
    """The modules that the distribution's core brings, and those of some optional groups."""
    wanted = [*core(), *(one for extra in extras for one in EXTRA[extra])]
    names = [re.match(r"[\w-]+", one)[0] for one in wanted]
    return {MODULES.get(name, name.replace("-", "_")) for name in names}


def place(module: str) -> Path | None:
    """The source of a module of the package."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return next((one for one in (path / "__init__.py", path.with_suffix(".py")) if one.is_file()), None)


@functools.cache
def parsed(source: str) -> ast.Module:
    """A source as a tree, made once: it is asked several questions."""
    return ast.parse(source)


def imports(source: str, *, at_once: bool) -> Iterator[str]:
    """What a module imports: all of it, or what it imports while it is itself imported."""

    def inside(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if at_once and isinstance(node, ast.FunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            yield from inside(child)

    return inside(parsed(source))


@functools.cache
def outside(module: str, *, at_once: bool) -> frozenset[str]:
    """The modules from outside that a module of the package needs, through everything that it imports."""
    seen: set[str] = set()
    found: set[str] = set()
    todo = [module, f"{module}.__main__"]
    while todo:
        name = todo.pop()
        if name.partition(".")[0] not in {"attnlab", "attnmath"}:
            found.add(name.partition(".")[0])
        elif name not in seen and place(name):
            seen.add(name)
            todo += imports(place(name).read_text(encoding="utf-8"), at_once=at_once)
            todo.append(name.rpartition(".")[0])
        elif name not in seen and "." in name:  # a name within a module
            seen.add(name)
            todo.append(name.rpartition(".")[0])
    return frozenset(found - set(sys.stdlib_module_names) - {""})


def test_every_command_is_listed() -> None:
    sources = [path for package in ("attnlab", "attnmath") for path in PACKAGE.with_name(package).rglob("*.py")]
    mains = [path for path in sources if '\nif __name__ == "__main__":' in path.read_text("utf-8")]
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in mains}
    assert {name.removesuffix(".__main__") for name in names} - {"attnlab"} == set(COMMANDS)


def test_everything_that_is_imported_is_declared() -> None:
    found = {path: set(imports(path.read_text("utf-8"), at_once=False)) for path in PACKAGE.rglob("*.py")}
    names = {name.partition(".")[0] for one in found.values() for name in one} - set(sys.stdlib_module_names)
    assert names - {"attnlab", "attnmath"} <= declared("torch", "train", "model", "compare")


@pytest.mark.parametrize("module", COMMANDS)
def test_a_command_needs_its_extra_and_its_help_the_core_alone(module: str) -> None:
    extra = [EXTRAS[name] for name in (module.removeprefix("attnlab."),) if name in EXTRAS]
    assert outside(module, at_once=False) <= declared(*extra)
    assert outside(module, at_once=True) <= declared()
    # The same question, asked of less than it needs, has another answer.
    assert not extra or not outside(module, at_once=False) <= declared()


def test_an_import_is_found_wherever_it_is_written() -> None:
    source = "import a.b\nclass C:\n    import c\n    def f():\n        from d import e\nif TYPE_CHECKING:\n import g"
    assert list(imports(source, at_once=False)) == ["a.b", "c", "d.e"]
    assert list(imports(source, at_once=True)) == ["a.b", "c"]


# --- what each command says, where every optional package is missing ---------------------------------

#: Run in a process of its own, in which the optional packages cannot be imported.
ASK = """
import contextlib, importlib, io, json, sys
names, file, lacking, model = json.loads(sys.argv[1])
sys.modules |= dict.fromkeys(lacking)
from attnlab import commands
seen = []
parse = commands.Parser.parse_args
def remember(self, *given):
    seen.append([(a.option_strings or [a.metavar], a.help) for a in self._actions])
    return parse(self, *given)
commands.Parser.parse_args = remember
def ask(main, *arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(list(arguments))
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()
found = {}
for name in names:
    try:
        module = importlib.import_module(name + ".__main__")
    except ModuleNotFoundError:
        module = importlib.import_module(name)
    of_a_model = {
        "extract": ["--any-weights"],
        "four_bits": [],
        "sinks": [],
        "prune_pretrained": [],
        "report": ["--text", model + "/config.json"],
    }
    last = name.rpartition(".")[2]
    first = [model, *of_a_model[last]] if last in of_a_model else []
    found[name] = {
        "help": ask(module.main, "--help"), "options": seen[-1],
        "place": ask(module.main, *first, "--out", file + "/x"),
        "unknown": ask(module.main, *first, "--nonsense"),
        "missing": ask(module.main, *first, "--out", file + ("-new.csv")) if name in sys.argv[2:] else None,
    }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every command says, from one process."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "file").touch()
    sizes = {
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "hidden_size": 2,
        "intermediate_size": 2,
        "layer_norm_eps": 1e-12,
    }
    for name, text in (("config.json", json.dumps(sizes)), ("tokenizer.json", "{}"), ("model.safetensors", "")):
        (folder / name).write_text(text, encoding="utf-8")
    lacking = sorted(declared("torch", "train", "model", "compare") - declared() - {"setuptools"})
    given = json.dumps([list(COMMANDS), str(folder / "file"), lacking, str(folder)])
    needing = [f"attnlab.{name}" for name in EXTRAS]
    done = subprocess.run([sys.executable, "-c", ASK, given, *needing], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json", "file", "model.safetensors", "tokenizer.json"]  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("module", COMMANDS)
def test_help_explains_every_option_and_says_how_long_it_takes(module: str, answers: dict[str, Any]) -> None:
    status, said, _ = answers[module]["help"]
    assert status == 0 and all(f"\n{part}: " in said for part in ("Needs", "Takes", "Writes", "After Ctrl-C"))
    assert [names for names, help in answers[module]["options"] if not help] == []


@pytest.mark.parametrize("module", COMMANDS)
def test_a_wrong_option_is_one_line(module: str, answers: dict[str, Any]) -> None:
    for question in ("place", "unknown"):
        status, out, err = answers[module][question]
        assert (status, out) == (2, "") and err.count("\n") == 1 and err.startswith(f"python -m {module}: ")
    assert re.search(r"expected a (file|folder).*, got .*file", answers[module]["place"][2])


@pytest.mark.parametrize("name", EXTRAS)
def test_a_missing_extra_is_named(name: str, answers: dict[str, Any]) -> None:
    status, out, err = answers[f"attnlab.{name}"]["missing"]
    assert (status, out) == (1, "") and err.count("\n") == 1
    assert re.search(
        rf'is not installed; it comes with the extra "{EXTRAS[name]}": pip install ".*\[{EXTRAS[name]}\]', err
    )


# --- how a command ends ------------------------------------------------------------------------------


def ending(error: BaseException, extra: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    def body(given: object, line: str) -> str:
        raise error

    command = Command("attnlab.some", "``some``: thing.", "no time", "nothing", "all is in {out}", extra)
    parser = command.parser()
    parser.add_argument("--out")
    return command.carry_out(parser, body, ["--out", "here"]), capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted; all is in here"),
        (ModuleNotFoundError("", name="torch.nn"), 1, 'torch.nn is not installed; it comes with the extra "train": '),
        (OSError(28, "No space left", "t.csv"), 1, "cannot read or write t.csv: No space left; all is in here"),
        (MemoryError(), 1, "MemoryError; all is in here"),
        (ValueError("seeds: expected one, got none"), 2, "error: seeds: expected one, got none"),
    ],
)
def test_each_end_is_one_line_and_a_status(error: BaseException, status: int, said: str, capsys) -> None:
    found, line = ending(error, "train", capsys)
    assert found == status and line.startswith(f"python -m attnlab.some: {said}") and line.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "extra"),
    [("attnlab.nonsense", "train"), ("attnmath.nonsense", "train"), ("numpy", "")],
    ids=["of the package", "of the numbers", "of the core"],
)
def test_a_module_that_no_extra_brings_is_an_error_of_the_program(name: str, extra: str, capsys) -> None:
    with pytest.raises(ModuleNotFoundError):
        ending(ModuleNotFoundError("", name=name), extra, capsys)


def test_ctrl_c_is_one_line(tmp_path: Path) -> None:
    """The signal itself; test_recall sends it to a sweep."""

    def hear() -> None:  # Ctrl-C is ignored in a process that was started in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)

    out = tmp_path / "out"
    command = [sys.executable, "-m", "attnlab.heads.prune", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=hear)
    while not out.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    line = process.communicate(timeout=100)[1].splitlines()[-1]
    said = f"interrupted; rows that are done are in {out}, and the same command does the others"
    assert line == f"python -m attnlab.heads.prune: {said}"
    # A signal that meets `exec` of a string (a library makes a class) ends Python by the signal, whoever catches it.
    # A shell calls both 130.
    assert process.returncode in (130, -signal.SIGINT)


def test_a_place_without_the_right_to_write_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnlab import commands

    assert commands.folder(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b" and not (tmp_path / "a").exists()
    monkeypatch.setattr(commands.os, "access", lambda path, rights: False)
    with pytest.raises(
        argparse.ArgumentTypeError, match=f"expected a folder to write to, got .*, and {tmp_path} cannot be written"
    ):
        commands.folder(str(tmp_path / "a"))


def test_the_line_for_an_extra_fits_how_the_package_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnlab import commands

    def version(name: str) -> str:
        raise commands.metadata.PackageNotFoundError

    assert commands._installation("train") == 'pip install "attention-checked[train]"'
    error = commands.metadata.PackageNotFoundError
    monkeypatch.setattr(commands, "metadata", SimpleNamespace(version=version, PackageNotFoundError=error))
    assert commands._installation("train") == 'pip install ".[train]" in the folder of the book'


# --- one thread --------------------------------------------------------------------------------------


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core has one thread")
def test_one_thread_computes_what_is_kept() -> None:
    def threads() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info()}

    with threadpool_limits(2):
        assert threads() == {2}
        with one_thread():
            assert threads() == {1}
        assert threads() == {2}


@pytest.mark.parametrize("reader", ["folder", "table", "existing_file", "existing_path"])
def test_a_path_that_cannot_be_looked_up_is_a_wrong_option(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnlab import commands

    name = "a" * 300 + ".csv"
    with pytest.raises(argparse.ArgumentTypeError, match="expected .*, got a"):
        getattr(commands, reader)(name)

    def forbidden(path: Path, **_: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", forbidden)
    with pytest.raises(argparse.ArgumentTypeError, match=r"expected .*, got locked/x\.csv"):
        getattr(commands, reader)("locked/x.csv")
