"""What all tests share: deterministic hypothesis, no window, no colours from the environment, no silent skip."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from typing import Any

import matplotlib
import pytest
from hypothesis import settings

# Notebooks choose their own backend; the tests draw in memory. Not by environment variable: kernels inherit it.
os.environ.pop("MPLBACKEND", None)
# sympy remembers the last 1,000 results of each function: too few where thousands of lines are checked.
os.environ.setdefault("SYMPY_CACHE_SIZE", "50000")
matplotlib.use("Agg")

# The same examples on every run: a test that fails by chance would be one nobody believes.
# To explore with fresh ones: pytest --hypothesis-profile=explore
settings.register_profile("fixed", derandomize=True, deadline=None, database=None, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("fixed")

# Parsed pages, notebooks and expressions are trees of many small objects: with Python's default the collector visits
# them after every 700 new ones.
gc.set_threshold(200_000, 10, 100)

#: Skips that say something of the machine, and not that a part of the environment is missing.
OF_THE_MACHINE = ("set ATTNMATH_MODEL", "here a long double", "one core has one thread")


def _forbid_skip(report: Any) -> None:
    """Where a machine runs the tests, a skip for want of a package is a failure: nothing may go unchecked there."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if any(words in reason for words in OF_THE_MACHINE):
        report.user_properties = [("skipped", "of the machine")]  # tools/due_tests.py asks: such a file has passed
    elif os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"{reason} (CI is set: nothing may be skipped)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Look at the report of each test."""
    report = yield
    _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Look at the report of each module: it may be skipped as a whole."""
    report = yield
    _forbid_skip(report)
    return report
