"""``python -m linewise.ledger [ROOT]``: audit the ledger of a copy of the book, and count its verdicts.

A problem is a claim without a check, a check without a claim, or a sentence of a source without a row. The exit status
is 1 if there is one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from attnlab import commands
from linewise.ledger import VERDICTS, LedgerError, audit, collate, coverage

_COMMAND = commands.Command(
    "linewise.ledger",
    __doc__,
    takes="some seconds.",
    writes="nothing; the counts and the problems are printed.",
    kept="nothing was to be written",
)


def main(arguments: list[str] | None = None) -> int:
    """Print the counts and the problems; return 1 when there is a problem."""
    parser = _COMMAND.parser()
    parser.add_argument("root", nargs="?", type=commands.existing_folder, default=".", metavar="ROOT",
                        help="the folder that holds chapters/; default: the current one")  # fmt: skip
    root = parser.parse_args(arguments).root
    try:
        counts = Counter(row.claim.verdict for row in collate(root))
        problems = audit(root) if counts else ["no claims below chapters/"]
        if (Path(root) / "chapters" / "sources").is_dir():
            problems += coverage.problems(root)
    except KeyboardInterrupt:
        return _COMMAND.end(f"interrupted; {_COMMAND.kept}", 130)
    except (OSError, LedgerError) as error:
        parser.error(str(error))
    print(", ".join(f"{counts[v]} {v}" for v in VERDICTS))
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
