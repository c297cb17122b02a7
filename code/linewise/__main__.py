"""``python -m linewise [FOLDER]``: audit the ledger of a book, and count its verdicts.

A problem is a claim without a check, a check without a claim, or a sentence of a source without a row. The exit status
is 0 if there is none, 1 if there is one, and 2 if the folder or one of its files cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from linewise import __version__
from linewise.conventions import ConventionError, conventions_of
from linewise.ledger import LedgerError, audit, collate, coverage


def main(arguments: list[str] | None = None) -> int:
    """Print the counts and the problems; return the exit status."""
    parser = argparse.ArgumentParser("python -m linewise", description=__doc__)
    parser.add_argument("folder", nargs="?", default=".", help="the folder of the book; default: the current one")
    parser.add_argument("--version", action="version", version=f"linewise {__version__}")
    folder = parser.parse_args(arguments).folder
    try:
        counts = Counter(row.claim.verdict for row in collate(folder))
        problems = audit(folder) if counts else ["no claims in the book"]
        verdicts = conventions_of(folder).verdicts
        if coverage.read_sources(folder):
            problems += coverage.problems(folder)
    except KeyboardInterrupt:
        print("python -m linewise: interrupted; nothing was to be written", file=sys.stderr)
        return 130
    except (OSError, LedgerError, ConventionError) as error:
        print(f"python -m linewise: {' '.join(str(error).split())} (--help lists the options)", file=sys.stderr)
        return 2
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in verdicts))
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
