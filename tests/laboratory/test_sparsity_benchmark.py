"""The benchmark of S for relu^2: each method where it works and where it breaks, and the shipped table."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from importlib import resources
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
import sympy as sp

from attnlab.experiments import sparsity_benchmark as benchmark


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
    """Article equation (6) as it is printed, at beta = t and gamma = 1, in forty digits."""
    beta = sp.Float(t, 40)
    decay, error = sp.exp(-(beta**2) / 2), sp.erf(beta / sp.sqrt(2)) + 1
    top = sp.sqrt(2) * beta + sp.sqrt(sp.pi) / decay * (beta**2 + 1) * error
    inside = 2 * sp.sqrt(2) * beta * decay * (beta**2 + 5) + 2 * sp.sqrt(sp.pi) * (beta**4 + 6 * beta**2 + 3) * error
    expression = float((decay * top / (sp.root(sp.pi, 4) * sp.sqrt(inside))).evalf(30))
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
    data = resources.files("attnlab") / "data"
    record = json.loads((data / "sparsity_benchmark.json").read_text(encoding="utf-8"))
    assert {"command", "versions", "machine", "seed"} <= set(record)
    assert hashlib.sha256((data / "sparsity_benchmark.csv").read_bytes()).hexdigest() == record["sha256"]


@pytest.mark.parametrize("t", [2e6, -2e6])
def test_sixty_digits_have_their_range(t: float) -> None:
    with pytest.raises(ValueError, match="t: expected a ratio between -1e6 and 1e6"):
        benchmark.exact(t)


def test_the_command_writes_the_table_and_how_it_was_made(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(benchmark, "METHODS", {"this package": benchmark.this_package})
    monkeypatch.setattr(sys, "argv", ["sparsity_benchmark", "--out", str(tmp_path)])
    assert benchmark.main() == 0
    table = (tmp_path / "sparsity_benchmark.csv").read_text(encoding="utf-8")
    head, *rows = table.splitlines()
    assert head == "method,t,relative_error,microseconds"
    assert [row.split(",")[:2] for row in rows] == [["this package", f"{t:g}"] for t in benchmark.RATIOS]
    record = json.loads((tmp_path / "sparsity_benchmark.json").read_text(encoding="utf-8"))
    assert record["sha256"] == hashlib.sha256(table.encode()).hexdigest()
    assert record["command"] == f"python -m attnlab.experiments.sparsity_benchmark --out {tmp_path}"


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="method: expected one of this package"):
        benchmark.relative_errors("guess")
    with pytest.raises(ValueError, match="method: expected one of this package"):
        benchmark.microseconds("guess")
    with pytest.raises(ValueError, match="values: expected a positive integer"):
        benchmark.microseconds("printed form", 0)


def test_the_printed_form_is_the_expression_with_every_term() -> None:
    """The article's expression, term by term in 40 digits, at ratios where double precision still has its digits."""
    for t in (-3.0, -1.0, 0.0, 0.5, 2.0, 5.0):
        with mp.workdps(40):
            x = mp.mpf(t)
            e, error = mp.exp(-x * x / 2), mp.erf(x / mp.sqrt(2)) + 1
            top = e * (mp.sqrt(2) * x + mp.sqrt(mp.pi) / e * (x**2 + 1) * error)
            under = 2 * mp.sqrt(2) * x * e * (x**2 + 5) + 2 * mp.sqrt(mp.pi) * (x**4 + 6 * x**2 + 3) * error
            expected = float(top / (mp.pi ** mp.mpf("0.25") * mp.sqrt(under)))
        assert benchmark.printed(t) == pytest.approx(expected, rel=1e-9)
        assert benchmark.quadrature(t) == pytest.approx(expected, rel=1e-9)
        assert float(benchmark.exact(t)) == pytest.approx(expected, rel=1e-14)
        assert benchmark.this_package(t) == pytest.approx(expected, rel=1e-14)


def test_every_method_keeps_the_shape_of_its_argument() -> None:
    t = np.asarray([[-1.0, 0.0, 0.5], [1.0, 2.0, 4.0]])
    for name, method in benchmark.METHODS.items():
        assert method(t).shape == (2, 3), name
        np.testing.assert_allclose(method(t)[1, 2], method(4.0), rtol=1e-12)
    z = np.random.default_rng(6).standard_normal(100_000)
    row = np.where(z > 1, z - 1, 0) ** 2
    assert benchmark.monte_carlo(-1.0) == pytest.approx(row.mean() / np.sqrt((row**2).mean()), rel=1e-12)
    assert (benchmark.DRAWS, len(benchmark.RATIOS)) == (100_000, 16)
    assert np.isnan(benchmark.quadrature([-60.0])).all() and np.isnan(benchmark.monte_carlo([-60.0])).all()


def test_ratios_reach_a_million_and_start_at_zero() -> None:
    assert benchmark.exact(1e-80) == benchmark.exact(0.0) == benchmark.exact(-1e-80)
    assert float(benchmark.exact(0.0)) == pytest.approx(6**-0.5, rel=1e-15)
    assert float(benchmark.exact(1e6)) == pytest.approx(1 - 2e-12, rel=1e-13)
    for t in (1.1e6, -1.1e6):
        with pytest.raises(ValueError, match=r"t: expected a ratio between -1e6 and 1e6, got -?1100000.0"):
            benchmark.exact(t)


def test_errors_are_relative_and_infinite_without_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"half": lambda t: np.full(t.shape, 0.5), "none": lambda t: np.full(t.shape, np.nan)}
    monkeypatch.setattr(benchmark, "METHODS", answers)
    found = benchmark.relative_errors("half", [0.0, 40.0])
    expected = [abs(0.5 / float(benchmark.exact(t)) - 1) for t in (0.0, 40.0)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert benchmark.relative_errors("none", [0.0]).tolist() == [np.inf]


def test_a_time_is_the_best_of_five_calls_by_the_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, clock = [], iter([0.0, 5.0, 0.0, 3.0, 0.0, 2.0, 0.0, 4.0, 0.0, 6.0] * 3)
    methods = dict.fromkeys(("this package", "printed form", "quad"), lambda t: seen.append(t))
    monkeypatch.setattr(benchmark, "METHODS", methods)
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: next(clock))
    assert benchmark.microseconds("this package", 40) == 2.0 / 40 * 1e6
    assert benchmark.microseconds("printed form") == 2.0 / 1000 * 1e6
    assert benchmark.microseconds("quad", 40) == 2.0 / 20 * 1e6
    assert [len(t) for t in seen] == [40] * 5 + [1000] * 5 + [20] * 5
    assert all((t[0], t[-1]) == (-5.0, 5.0) for t in seen)
    with pytest.raises(ValueError, match="values: expected a positive integer, at most 10000, got 10001"):
        benchmark.microseconds("quad", 10_001)


def test_the_command_says_how_the_table_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "METHODS", {"this package": benchmark.this_package})
    monkeypatch.setattr(benchmark, "microseconds", lambda method: 12.345)
    monkeypatch.setattr(benchmark, "relative_errors", lambda method: np.full(16, 1.234e-16))
    monkeypatch.setattr(sys, "argv", ["sparsity_benchmark", "--out", str(tmp_path)])
    assert benchmark.main() == 0
    assert (tmp_path / "sparsity_benchmark.csv").read_text(encoding="utf-8") == "".join(
        ["method,t,relative_error,microseconds\n", *(f"this package,{t:g},1.2e-16,12\n" for t in benchmark.RATIOS)]
    )
    record = json.loads((tmp_path / "sparsity_benchmark.json").read_text(encoding="utf-8"))
    assert set(record) == {"command", "versions", "machine", "cores", "draws", "seed", "sha256"}
    assert set(record["versions"]) == {"python", "numpy", "scipy"}
    assert (record["draws"], record["seed"], record["cores"]) == (100_000, 6, os.cpu_count())
