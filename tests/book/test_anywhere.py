"""The book runs in other places than its own folder: from a wheel, on Binder, in a container, on Windows."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import stamps

ROOT = stamps.ROOT
CLAIMS = {path.name: path for path in ROOT.glob("chapters/**/*.claims.yml")}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
#: Modules of Python that Windows does not have.
UNIX = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}


# --- the wheel -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel installs; the wheel is built from a copy, so the checkout stays as it is."""
    copy, target = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("installed")
    for path in stamps.files([ROOT / "code", ROOT / "chapters", ROOT / "pyproject.toml", ROOT / "setup.py",
                              ROOT / "linewise.yml", *ROOT.glob("LICENSE*"), ROOT / "README.md"]):  # fmt: skip
        if path.suffix not in (".ipynb", ".npz"):
            place = copy / path.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    left = copy / "build" / "lib" / "attnlab" / "claims" / "gone.claims.yml"  # of an older build
    left.parent.mkdir(parents=True)
    left.write_text("", encoding="utf-8")
    command = [sys.executable, "-c", "import setuptools.build_meta as b; print(b.build_wheel('.'))"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True)
    zipfile.ZipFile(copy / done.stdout.split()[-1]).extractall(target)
    return target


def test_the_wheel_holds_the_claims_of_every_chapter(installed: Path) -> None:
    packed = {path.name: path.read_bytes() for path in (installed / "attnlab" / "claims").iterdir()}
    expected = CLAIMS | {"linewise.yml": ROOT / "linewise.yml"}
    assert packed == {name: path.read_bytes() for name, path in expected.items()}


def test_the_names_of_chapters_are_unique() -> None:
    assert len(CLAIMS) == len(list(ROOT.glob("chapters/**/*.claims.yml"))) > 0


LOADS = """
from pathlib import Path
from linewise.ledger import load_claims

print(*load_claims("scaling"))
Path("scaling.claims.yml").write_text(
    '"9.9.9": {title: t, place: 5.1 p1 s1, reading: s, verdict: proved, scope: all}', encoding="utf-8"
)
print(*load_claims("scaling"))
load_claims("nowhere")
"""


def test_claims_are_found_from_any_folder_and_those_of_the_folder_come_first(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADS], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True, text=True,
    )  # fmt: skip
    anywhere, beside = done.stdout.splitlines()
    assert "5.1.5" in anywhere.split()
    assert beside == "9.9.9"
    assert done.returncode and "expected the claims of 'nowhere' in nowhere.claims.yml of the" in done.stderr


# --- Binder and the container ----------------------------------------------------------------------


def extras_of(text: str) -> set[str]:
    """Return the extras that a text installs of the repository or of the package."""
    named = re.findall(r"(?:-e \"\.|attention-checked)\[([\w,]+)\]", text)
    return {extra for names in named for extra in names.split(",")}


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of Binder's Dockerfile in their order, each with its argument on one line."""
    dockerfile = (ROOT / "binder" / "Dockerfile").read_text(encoding="utf-8")
    joined = re.sub(r"\s*\\\n\s*", " ", re.sub(r"^#.*\n", "", dockerfile, flags=re.MULTILINE))
    return [(name, words) for name, words in (line.split(maxsplit=1) for line in joined.splitlines() if line)]


def names_of(requirements: list[str]) -> set[str]:
    """Return the names of the packages that requirements ask for."""
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}  # type: ignore[index]


def test_binder_builds_for_its_own_user_on_a_named_image() -> None:
    steps = instructions()
    order = [name for name, _ in steps]
    assert order.count("FROM") == 1 and re.fullmatch(r"debian:(?!latest)[a-z]+-slim", dict(steps)["FROM"])
    assert {words.split("=")[0] for name, words in steps if name == "ARG"} == {"NB_USER", "NB_UID"}
    assert ("USER", "$NB_USER") in steps and ("COPY", "--chown=$NB_UID . .") in steps
    # The package is installed by the reader's user, in the folder where Binder's links look for the chapters.
    assert steps[-1] == ("RUN", 'binder/install "$HOME/.binder"') and order.index("USER") < len(order) - 1
    assert ("WORKDIR", "$HOME") in steps


def test_binder_gets_torch_without_cuda_and_the_pins() -> None:
    folder = ROOT / "binder"
    packages = next(words for name, words in instructions() if name == "RUN")
    assert {"python3-torch", "python3-venv"} <= set(packages.split())
    assert all(os.access(folder / name, os.X_OK) for name in ("install", "run_chapters"))
    script = (folder / "install").read_text(encoding="utf-8")
    assert "--system-site-packages" in script  # where Debian's torch is
    calls = [line for line in script.splitlines() if "/bin/pip" in line]
    assert len(calls) == 2 and all("-c constraints.txt" in call for call in calls)
    extras = extras_of(script)
    asked = set().union(*(names_of(EXTRAS[extra]) for extra in extras))
    assert {"jupyterlab", "notebook"} <= asked and "torch" not in asked  # pip would fetch another, with CUDA
    assert names_of(EXTRAS["train"]) - {"torch"} <= set(calls[-1].split())


def test_the_container_names_what_is_there() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    python = re.fullmatch(r"python:(3\.\d+)-bookworm", container["image"])
    assert python and python[1] in (ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"make ([a-z]+)", container["postCreateCommand"])) <= TARGETS
    assert "chromium" in container["onCreateCommand"] and "make" in container["onCreateCommand"]
    interpreter = container["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert interpreter == "${containerWorkspaceFolder}/.venv/bin/python"


# --- the page that says how -------------------------------------------------------------------------


def missing(page: str) -> list[str]:
    """Return what the commands of a page name, and the repository does not have."""
    blocks = re.findall(r"^```(?:sh|powershell)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    commands = "\n".join(blocks) + "\n" + "\n".join(re.findall(r"`([^`\n]+)`", page))
    found = [f"make {name}" for name in re.findall(r"\bmake ([a-z]+)", commands) if name not in TARGETS]
    found += [f"[{name}]" for name in extras_of(commands) if name not in EXTRAS]
    paths = re.findall(r"\b(?:tools|tests|chapters|binder|\.devcontainer)[\\/][\w\\/.-]*", commands)
    return found + [path for path in paths if not (ROOT / path.replace("\\", "/")).exists()]


def test_what_the_page_names_is_there() -> None:
    page = (ROOT / "run.md").read_text(encoding="utf-8")
    assert missing(page) == []
    assert missing(page.replace("make lab", "make labs", 1).replace(r"tools\prove.py", r"tools\gone.py").replace(
        '".[lab]"', '".[labs]"')) == ["make labs", "[labs]", r"tools\gone.py"]  # fmt: skip


def test_the_commands_without_make_are_those_of_make() -> None:
    page = (ROOT / "run.md").read_text(encoding="utf-8")
    script = (ROOT / "tools" / "environment.sh").read_text(encoding="utf-8")
    assert extras_of(page) - {"lab"} == extras_of(script) - {"test"}
    build = re.search(r"JUPYTER_BOOK\) (build .*?) -q\n", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert build and f"jupyter-book {build[1]}\n" in page


# --- Windows ----------------------------------------------------------------------------------------


def needed_at_once(code: str) -> Iterator[str]:
    """Yield the modules that Windows lacks, and that code imports at once, with nothing to catch their absence.

    >>> list(needed_at_once("import os, fcntl\\ntry:\\n    import pwd\\nexcept ImportError:\\n    pwd = None"))
    ['fcntl']
    """
    for node in ast.parse(code).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in UNIX)
        elif isinstance(node, ast.ImportFrom) and node.module in UNIX:
            yield node.module


def test_nothing_asks_for_a_module_that_windows_lacks() -> None:
    files = [p for p in stamps.files([ROOT / "code", ROOT / "tools", ROOT / "_ext"]) if p.suffix == ".py"]
    assert [(p.name, name) for p in files for name in needed_at_once(p.read_text(encoding="utf-8"))] == []
    assert list(needed_at_once("import fcntl\nfrom resource import getrusage")) == ["fcntl", "resource"]


def test_every_file_has_a_name_that_windows_allows() -> None:
    names = [path.relative_to(ROOT).as_posix() for path in stamps.files([ROOT])]
    assert [name for name in names if re.search(r'[<>:"|?*\\]|[. ](/|$)', name)] == []
    assert len({name.lower() for name in names}) == len(names)
