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
ROOMS = "the rooms of attnmath use only what stands below them"
ENGINE = "the engine: pages show the ledger, the ledger rests on derivations"
RECHECK = "the second opinion knows no rule of the engine"
LABORATORY = "the laboratory: experiments run over sweeps, heads are measured"
NUMBERS = "numbers know neither the engine nor the laboratory"
ATTENTION = "the engine knows nothing of attention"
CHAPTERS = "figures and symbols are imported by chapters alone, and so is the engine"
EXTRAS = "numbers need neither pictures nor symbols"
TORCH = "attnmath imports no torch"
KERNEL = "the second kernel is asked without a rule of the engine"
OUTSIDE = "nothing imports a chapter, a tool or a test"
#: A module, what it is made to import, and the contract that this breaks.
SPOILT = [
    ("attnmath/matrix/rank", "sympy", EXTRAS),
    ("attnmath/figures/lines", "sympy", EXTRAS),
    ("attnmath/operator/online", "matplotlib", EXTRAS),
    ("attnlab/heads/load", "sympy", EXTRAS),
    ("attnmath/operator/attention", "torch", TORCH),
    ("attnmath/sparsity/closed_forms", "linewise.derive", NUMBERS),
    ("attnmath/matrix/spectrum", "attnlab.heads", NUMBERS),
    ("attnmath/matrix/mixing", "attnmath.figures", CHAPTERS),
    ("attnlab/experiments/scaling", "attnmath.figures.lines", CHAPTERS),
    ("attnlab/experiments/scaling", "attnmath.symbols", CHAPTERS),
    ("attnlab/experiments/locality", "linewise.ledger", CHAPTERS),
    ("attnmath/figures/heatmap", "attnmath.matrix.mixing", ROOMS),
    ("attnmath/estimate", "attnmath.operator.attention", ROOMS),
    ("attnmath/matrix/experts", "attnmath.linear_cost.kernels", ROOMS),
    ("attnmath/sparsity/closed_forms", "attnmath.matrix.rank", ROOMS),
    ("attnmath/arrays", "attnmath.checks", ROOMS),
    ("linewise/derive/zero", "linewise.ledger", ENGINE),
    ("linewise/recheck", "linewise.derive.equality", RECHECK),
    ("linewise/kernel/hints", "linewise.derive.normal_form", KERNEL),
    ("linewise/ledger/claims", "linewise.pages", ENGINE),
    ("linewise/ledger/evidence", "attnmath.estimate", ATTENTION),
    ("linewise/pages/signs", "attnlab", ATTENTION),
    ("attnlab/heads/load", "attnlab.experiments", LABORATORY),
    ("attnlab/recall/task", "attnlab.translation.task", LABORATORY),
    ("linewise/ledger/collate", "chapters", OUTSIDE),
    ("attnmath/checks", "stamps", OUTSIDE),
]


def report(root: Path) -> str:
    """Return what import-linter says about the packages below `root`/code."""
    environment = os.environ | {"PYTHONPATH": str(root / "code"), "COLUMNS": "200"}
    command = [*LINT, "--config", "pyproject.toml"]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment)
    assert "Contracts: " in said.stdout, said.stdout + said.stderr
    return said.stdout


def copied(folder: Path) -> Path:
    """Return a copy of the packages, with their contracts."""
    shutil.copy(stamps.ROOT / "pyproject.toml", folder)
    shutil.copytree(stamps.ROOT / "code", folder / "code", ignore=shutil.ignore_patterns("__pycache__", "data"))
    return folder


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what is said of each contract, by its name, where all imports of `SPOILT` were added to a copy."""
    root = copied(tmp_path_factory.mktemp("spoilt"))
    for module, imported, _ in SPOILT:
        with (root / "code" / f"{module}.py").open("a", encoding="utf-8") as source:
            source.write(f"\n\ndef _unseen_{imported.rpartition('.')[2]}():\n    import {imported}\n")
    said = report(root).partition("Broken contracts\n")[2]
    _, *sections = re.split(r"^(.+)\n-{9,}$", said, flags=re.MULTILINE)
    return dict(zip(sections[::2], sections[1::2], strict=True))


def test_the_contracts_hold() -> None:
    said = report(stamps.ROOT)
    assert "11 kept, 0 broken" in said, said


@pytest.mark.parametrize(("module", "imported", "contract"), SPOILT)
def test_a_forbidden_import_is_noticed(spoilt: dict[str, str], module: str, imported: str, contract: str) -> None:
    assert f"{module.replace('/', '.')} -> {imported}" in spoilt[contract], spoilt[contract]


@pytest.mark.parametrize("package", ["attnmath", "linewise", "attnlab"])
def test_a_module_without_a_floor_is_noticed(tmp_path: Path, package: str) -> None:
    root = copied(tmp_path)
    (root / "code" / package / "unplaced.py").touch()
    said = report(root)
    assert "10 kept, 1 broken" in said
    assert f"- {package}.unplaced" in said


@pytest.mark.parametrize("package", ["attnmath", "linewise", "attnlab"])
def test_a_package_says_that_it_is_typed(package: str) -> None:
    assert resources.files(package).joinpath("py.typed").is_file()
    assert f'{package} = ["py.typed"' in (stamps.ROOT / "pyproject.toml").read_text(encoding="utf-8")
