"""``python -m linewise [FOLDER]``: audit the ledger of a book, and count its verdicts.

A problem is a claim without a check, a check without a claim or of another one than the claims file now has, or a
sentence of a source without a row. The exit status is 0 if there is none, 1 if there is one, and 2 if the folder or
some of its files cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from linewise import __version__
from linewise.conventions import ConventionError, conventions_of
from linewise.ledger import LedgerError, collate
from linewise.ledger.faults import faults


def main(arguments: list[str] | None = None) -> int:
    """Print the counts and the problems; return the exit status."""
    parser = argparse.ArgumentParser("python -m linewise", description=__doc__)
    parser.add_argument("folder", nargs="?", default=".", help="the folder of the book; default: the current one")
    parser.add_argument("--version", action="version", version=f"linewise {__version__}")
    folder = parser.parse_args(arguments).folder
    try:
        problems, rows, verdicts = faults(folder), collate(folder), conventions_of(folder).verdicts
    except KeyboardInterrupt:
        print("python -m linewise: interrupted; nothing was to be written", file=sys.stderr)
        return 130
    except (OSError, LedgerError, ConventionError) as error:
        for line in str(error).splitlines():
            print(f"python -m linewise: {line}", file=sys.stderr)
        return 2
    counts = Counter(row.claim.verdict for row in rows)
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in verdicts))
    due = [row for row in rows if row.claim.is_decided]
    print(f"{sum(row.record is not None for row in due)} of the {len(due)} claims to check have been checked")
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
