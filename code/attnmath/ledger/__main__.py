"""``python -m attnmath.ledger [ROOT]``: audit the ledger of the book and count its verdicts."""

from __future__ import annotations

import argparse
from collections import Counter

from attnmath.ledger import VERDICTS, LedgerError, audit, collate


def main(arguments: list[str] | None = None) -> int:
    """Print the counts and the problems; return 1 when there is a problem."""
    parser = argparse.ArgumentParser(prog="python -m attnmath.ledger", description=__doc__)
    parser.add_argument("root", nargs="?", default=".", help="the folder that holds chapters/ (default: here)")
    root = parser.parse_args(arguments).root
    try:
        counts, problems = Counter(row.claim.verdict for row in collate(root)), audit(root)
    except (OSError, LedgerError) as error:
        parser.error(str(error))
    print(", ".join(f"{counts[v]} {v}" for v in VERDICTS))
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
