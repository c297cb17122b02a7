"""The benchmark of S for relu^2: each method where it works and where it breaks, and the shipped table."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from attnmath.derive import sparsity as exact
from attnmath.experiments import sparsity_benchmark as benchmark


def test_every_method_is_right_at_zero_and_the_package_everywhere() -> None:
    for method, bound in (("this package", 4e-15), ("printed form", 4e-15), ("quad", 1e-12), ("Monte Carlo", 0.02)):
        assert benchmark.relative_errors(method, [0.0])[0] <= bound
    assert benchmark.relative_errors("this package").max() <= 4e-15


def test_the_others_break_and_say_so() -> None:
    assert np.isinf(benchmark.relative_errors("printed form", [-40.0, 40.0])).all()
    assert benchmark.relative_errors("printed form", [-7.0])[0] > 1e-2
    assert np.isinf(benchmark.relative_errors("Monte Carlo", [-20.0])).all()


@pytest.mark.parametrize("t", [-1.5, 0.25, 3.0])
def test_the_printed_expression_is_the_printed_code(t: float) -> None:
    expression = float(exact.printed_relu_squared(sp.Float(t, 40), sp.Integer(1)).evalf(30))
    assert benchmark.printed(t) == pytest.approx(expression, rel=1e-12)
    assert float(benchmark.exact(t)) == pytest.approx(expression, rel=1e-14)


def test_the_shipped_table_is_what_the_program_finds() -> None:
    table = benchmark.load_table()
    assert {row["method"] for row in table} == set(benchmark.METHODS)
    for method in benchmark.METHODS:
        rows = [row for row in table if row["method"] == method]
        assert tuple(row["t"] for row in rows) == benchmark.RATIOS
        assert all(row["microseconds"] > 0 for row in rows)
        found, stored = benchmark.relative_errors(method), np.asarray([row["relative_error"] for row in rows])
        # Errors below a few ulps differ from machine to machine, and so does what is left where all digits are lost.
        for new, old in zip(found, stored, strict=True):
            assert new == old or max(new, old) < 1e-13 or 0.5 < new / old < 2 or min(new, old) > 0.5
    data = resources.files("attnmath") / "data"
    record = json.loads((data / "sparsity_benchmark.json").read_text(encoding="utf-8"))
    assert {"command", "versions", "machine", "seed"} <= set(record)
    assert hashlib.sha256((data / "sparsity_benchmark.csv").read_bytes()).hexdigest() == record["sha256"]


@pytest.mark.parametrize("t", [2e6, -2e6])
def test_sixty_digits_have_their_range(t: float) -> None:
    with pytest.raises(ValueError, match="t: expected a ratio between -1e6 and 1e6"):
        benchmark.exact(t)


def test_the_command_refuses_a_missing_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attnmath.experiments.sparsity_benchmark", "--out", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "argument --out: expected a directory" in done.stderr


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="method: expected one of this package"):
        benchmark.relative_errors("guess")
    with pytest.raises(ValueError, match="method: expected one of this package"):
        benchmark.microseconds("guess")
    with pytest.raises(ValueError, match="values: expected a positive integer"):
        benchmark.microseconds("printed form", 0)
