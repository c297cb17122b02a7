"""The import contracts of pyproject.toml hold, and a copy of the package that breaks them is noticed by name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

import stamps

LINT = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint()", "--no-cache"]
FLOORS = "imports run downwards, and every module has its floor"
CHAPTERS = "figures, verdicts and experiments are imported by chapters alone"
LEDGER = "derivations are imported by the ledger alone"
SYMPY = "only derivations and the ledger know sympy"
OUTSIDE = "nothing imports a chapter, a tool or a test"
#: A module, what it is made to import, and the contract that this breaks.
SPOILT = [
    ("rank", "sympy", SYMPY),
    ("figures/lines", "sympy", SYMPY),
    ("sparsity", "linewise.derive", FLOORS),
    ("sparsity", "linewise.derive", LEDGER),
    ("spectrum", "linewise.ledger", FLOORS),
    ("mixing", "attnmath.figures", CHAPTERS),
    ("attention", "attnlab.experiments", FLOORS),
    ("figures/heatmap", "attnlab.experiments", FLOORS),
    ("figures/heatmap", "attnmath.matrix.mixing", FLOORS),
    ("figures/show", "linewise.derive", FLOORS),
    ("derive/zero", "linewise.ledger", FLOORS),
    ("derive/zero", "attnmath.figures", CHAPTERS),
    ("ledger/claims", "attnmath.figures", CHAPTERS),
    ("experiments/scaling", "linewise.derive", LEDGER),
    ("estimate", "attnmath.operator.attention", FLOORS),
    ("ledger/collate", "chapters", OUTSIDE),
    ("arrays", "attnmath.checks", FLOORS),
    ("checks", "stamps", OUTSIDE),
]


def report(root: Path) -> str:
    """Return what import-linter says about the package below `root`/code."""
    environment = os.environ | {"PYTHONPATH": str(root / "code"), "COLUMNS": "200"}
    command = [*LINT, "--config", "pyproject.toml"]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment)
    assert "Contracts: " in said.stdout, said.stdout + said.stderr
    return said.stdout


def copied(folder: Path) -> Path:
    """Return a copy of the package, with its contracts."""
    shutil.copy(stamps.ROOT / "pyproject.toml", folder)
    shutil.copytree(stamps.ROOT / "code", folder / "code", ignore=shutil.ignore_patterns("__pycache__", "data"))
    return folder


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what is said of each contract, by its name, where all imports of `SPOILT` were added to a copy."""
    root = copied(tmp_path_factory.mktemp("spoilt"))
    for module, imported, _ in SPOILT:
        with (root / "code" / "attnmath" / f"{module}.py").open("a", encoding="utf-8") as source:
            source.write(f"\n\ndef _unseen_{imported.rpartition('.')[2]}():\n    import {imported}\n")
    said = report(root).partition("Broken contracts\n")[2]
    _, *sections = re.split(r"^(.+)\n-{9,}$", said, flags=re.MULTILINE)
    return dict(zip(sections[::2], sections[1::2], strict=True))


def test_the_contracts_hold() -> None:
    said = report(stamps.ROOT)
    assert "5 kept, 0 broken" in said, said


@pytest.mark.parametrize(("module", "imported", "contract"), SPOILT)
def test_a_forbidden_import_is_noticed(spoilt: dict[str, str], module: str, imported: str, contract: str) -> None:
    assert f"attnmath.{module.replace('/', '.')} -> {imported}" in spoilt[contract], spoilt[contract]


def test_a_module_without_a_floor_is_noticed(tmp_path: Path) -> None:
    root = copied(tmp_path)
    (root / "code" / "attnmath" / "unplaced.py").touch()
    said = report(root)
    assert "4 kept, 1 broken" in said
    assert "- attnmath.unplaced" in said


def test_the_package_says_that_it_is_typed() -> None:
    assert resources.files("attnmath").joinpath("py.typed").is_file()
    assert '"py.typed"' in (stamps.ROOT / "pyproject.toml").read_text(encoding="utf-8")
