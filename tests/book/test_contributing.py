"""What CONTRIBUTING.md tells a contributor is true: its examples run, and its table has every rule."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import yaml

import stamps
from attnmath import figures
from linewise.conventions import conventions_of
from linewise.ledger import Claim
from notebook_rules import RULES, described_figures

PAGE = (stamps.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TESTS = [p.relative_to(stamps.ROOT / "tests").as_posix() for p in sorted(stamps.ROOT.glob("tests/*/test_*.py"))]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_every_verdict_has_a_claim_and_every_check_a_call_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (claims,), (program, _) = blocks("yaml"), blocks("python")
    shutil.copy(stamps.ROOT / "linewise.yml", tmp_path)
    (tmp_path / "demo.claims.yml").write_text(claims, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    judged = []
    judge = Claim._judge
    monkeypatch.setattr(Claim, "_judge", lambda claim, *given: judged.append(claim.id) or judge(claim, *given))
    exec(compile(program, "CONTRIBUTING.md", "exec"), {})
    given = {name: claim["verdict"] for name, claim in yaml.safe_load(claims).items()}
    verdicts = conventions_of(stamps.ROOT).verdicts
    assert sorted(given.values()) == sorted(verdicts)
    assert judged == [name for name, verdict in given.items() if verdicts[verdict].check != "none"]


def test_the_figure_is_drawn_and_described() -> None:
    (_, program), (metadata,) = blocks("python"), blocks("json")
    drawn: dict[str, Any] = {"plt": plt, "figures": figures, "widths": np.arange(1, 65)}
    exec(compile(program, "CONTRIBUTING.md", "exec"), drawn)
    assert drawn["ax"].get_ylabel() == "variance"
    plt.close(drawn["figure"])
    cell = {"cell_type": "code", "metadata": json.loads(metadata), "outputs": [{"data": {"image/svg+xml": ""}}]}
    assert described_figures({"cells": [cell]}) == []


def unnamed(page: str) -> list[str]:
    """Return the rules, and the files of tests, that the table of a page does not name."""
    rows = "\n".join(row.rpartition(" | ")[2] for row in re.findall(r"^\|.*\|$", page, re.MULTILINE))
    named = {name.removeprefix("tests/") for name in re.findall(r"`([^`]+)`", rows)}
    folders = ("package", "laboratory", "engine", "site")  # a row names those of their files that hold a rule for all
    files = [file.removeprefix("book/") for file in TESTS if not file.startswith(folders)]
    return [name for name in (*RULES, *files) if name not in named]


def test_the_table_names_every_rule() -> None:
    assert unnamed(PAGE) == []
    assert unnamed(PAGE.replace("`no_errors`", "").replace("`test_unused.py`", "")) == ["no_errors", "test_unused.py"]


def test_the_files_that_the_table_names_are_there() -> None:
    named = re.findall(r"`(?:tests/)?((?:\w+/)?test_\w+\.py)`", PAGE)
    assert [name for name in named if name not in TESTS and f"book/{name}" not in TESTS] == []
    assert len(named) > 20
