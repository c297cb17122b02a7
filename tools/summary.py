"""Say in a few lines what ``make test`` has just proved."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import stamps


def test_counts(report: str) -> dict[str, int]:
    """Return the numbers of tests, failures, errors and skips of a JUnit report.

    >>> test_counts('<testsuites><testsuite tests="5" failures="1" errors="0" skipped="2"/></testsuites>')
    {'tests': 5, 'failures': 1, 'errors': 0, 'skipped': 2}
    """
    suites = ElementTree.fromstring(report).iter("testsuite")
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in suites:
        for key in counts:
            counts[key] += int(suite.get(key, 0))
    return counts


def main() -> int:
    """Print the summary; the steps before have failed already if anything was wrong."""
    counts = test_counts((stamps.ROOT / "_build" / "tests.xml").read_text(encoding="utf-8"))
    pages = list((stamps.ROOT / "_build" / "html").rglob("*.html"))
    ledger = subprocess.run([sys.executable, "-m", "attnmath.ledger", stamps.ROOT], capture_output=True, text=True)
    passed = counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"]
    print(
        "\nEverything holds.\n"
        f"  lint       ruff and mypy have nothing to say\n"
        f"  notebooks  {len(stamps.notebooks())} re-executed, every output as stored\n"
        f"  ledger     {ledger.stdout.strip().splitlines()[0] if ledger.stdout.strip() else 'no claims yet'}\n"
        f"  site       {len(pages)} pages, built without a warning\n"
        f"  tests      {passed} passed, {counts['skipped']} skipped"
    )
    return ledger.returncode


if __name__ == "__main__":
    raise SystemExit(main())
