"""Each package by itself: its own distribution, what it imports, and what its README says."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import hostile
import pytest

import attnlab
import attnmath
import linewise

CODE = Path(attnmath.__file__).parents[1]
PACKAGES = {package.__name__: package for package in (attnmath, linewise, attnlab)}
#: What a package does without, but for the modules that need it. attnlab is the book's own, and does without nothing.
WITHOUT = {
    "attnmath": ("attnlab", "linewise", "matplotlib", "mpmath", "sphinx", "sympy", "torch", "yaml"),
    "linewise": ("attnlab", "attnmath", "bs4", "jinja2", "matplotlib", "scipy", "sphinx", "torch"),
}
NEEDS_MORE = {"attnmath": ("figures", "symbols"), "linewise": ("pages",)}

#: Run in a process of its own, in which some packages cannot be imported.
IMPORT = """
import importlib, sys
names, lacking = (given.split() for given in sys.argv[1:])
class Lacking:
    @staticmethod
    def find_spec(name, *_):
        if name.partition(".")[0] in lacking:
            raise ModuleNotFoundError(f"No module named {name}", name=name)
sys.meta_path.insert(0, Lacking)
for name in names:
    importlib.import_module(name)
"""


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def imported(names: list[str], lacking: tuple[str, ...]) -> str:
    """Import modules in a process of its own where some packages are missing; return the last line of the error."""
    given = [sys.executable, "-c", IMPORT, " ".join(names), " ".join(lacking)]
    done = subprocess.run(given, capture_output=True, text=True)
    return (done.stderr.splitlines() or [""])[-1] if done.returncode else ""


@pytest.mark.parametrize("name", WITHOUT)
def test_a_package_names_the_folders_that_it_has(name: str) -> None:
    found = project(CODE / name)
    folders = {path.parent.relative_to(CODE) for path in (CODE / name).rglob("__init__.py")}
    assert found["tool"]["setuptools"]["packages"] == sorted(".".join(folder.parts) for folder in folders)
    assert found["tool"]["setuptools"]["package-dir"] == {name: "."}
    assert found["project"]["name"] == name
    data = found["tool"]["setuptools"]["package-data"]
    assert data == {name: project(CODE.parent)["tool"]["setuptools"]["package-data"][name]}
    assert [pattern for pattern in data[name] if not [*(CODE / name).glob(pattern)]] == []


def test_there_is_one_version() -> None:
    versions = {name: package.__version__ for name, package in PACKAGES.items()}
    assert {name: project(CODE / name)["project"]["version"] for name in WITHOUT} | {
        "attnlab": project(CODE.parent)["project"]["version"]
    } == versions
    assert len(set(versions.values())) == 1


@pytest.mark.parametrize("name", WITHOUT)
def test_a_package_is_imported_without_what_only_some_modules_need(name: str) -> None:
    modules = hostile.modules_of(PACKAGES[name])
    plain = [module for module in modules if module.split(".")[1] not in NEEDS_MORE[name]]
    assert len(plain) > 8
    assert imported(plain, WITHOUT[name]) == ""
    for room in NEEDS_MORE[name]:
        said = imported([f"{name}.{room}"], WITHOUT[name])
        assert re.search(rf"ModuleNotFoundError.*({'|'.join(WITHOUT[name])})", said), room


def test_a_module_is_there_when_it_is_named() -> None:
    program = (
        "import sys, attnmath; assert 'numpy' not in sys.modules; attnmath.operator.attention.softmax;"
        "assert 'attnmath.matrix' not in sys.modules; print(attnmath.matrix.rank)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert re.search(r"attnmath.matrix.rank\.py", said)
    assert {"operator", "sparsity", "checks"} <= set(dir(attnmath)) and not hasattr(attnmath, "nonsense")
    assert {"attention", "cost"} <= set(dir(attnmath.operator)) and "_rooms" not in dir(attnmath)
    with pytest.raises(AttributeError, match=r"expected one of its modules, .*operator.*, got tension"):
        _ = attnmath.tension
    with pytest.raises(AttributeError, match=r"attnmath\.operator: expected .*attention.*, got tension"):
        _ = attnmath.operator.tension


@pytest.mark.parametrize("name", ["attnmath", "attnlab"])
def test_the_readme_of_a_package_has_examples_that_run_and_links_that_lead_somewhere(name: str) -> None:
    readme = CODE / name / "README.md"
    folder = CODE / name if name in WITHOUT else CODE.parent
    assert folder / project(folder)["project"]["readme"] == readme
    text = readme.read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    for example in examples:
        exec(compile(example, f"{name}/README.md", "exec"), {})
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert examples and links and all(link.startswith("https://") for link in links)


def test_a_room_says_what_it_holds() -> None:
    packages = [info.name for info in pkgutil.walk_packages(attnmath.__path__, "attnmath.") if info.ispkg]
    rooms = [room for room in map(importlib.import_module, packages) if not hasattr(room, "__all__")]
    assert len(rooms) == 6
    for room in rooms:
        inside = [info.name for info in pkgutil.iter_modules(room.__path__)]
        assert [name for name in inside if not re.search(rf"\b{name}\b", room.__doc__)] == [], room.__name__
