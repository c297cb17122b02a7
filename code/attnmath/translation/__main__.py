"""Command line: ``python -m attnmath.translation --out translation.csv --jobs 2`` runs the sweep, or what is left.

The three parts have 190 runs together. A run that is in the table is not repeated, so that the command goes on where
it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from attnmath.sweeps.command import carry_out, parser_of
from attnmath.translation.table import PAIRS, PARTS, SEEDS


def main() -> int:
    """Run the missing part of the grid and write the table and its provenance; return the exit status."""
    parser = parser_of("python -m attnmath.translation", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="parts to run, default: all")
    for name, values, meaning in (("pairs", PAIRS, "numbers of training pairs"), ("seeds", SEEDS, "language pairs")):
        shown = " ".join(map(str, values))
        parser.add_argument(f"--{name}", nargs="+", type=int, default=values, help=f"{meaning}, default: {shown}")
    parser.add_argument("--steps", type=int, default=800, help="training steps in each run, default: 800")
    return carry_out(parser, _run)


def _run(given: argparse.Namespace) -> tuple[int, Path]:
    # Imported here, so that --help needs no more than the core of the package.
    from attnmath.translation import sweep

    wanted = sweep.grid(given.parts, given.pairs, given.seeds, steps=given.steps)
    count = sweep.sweep(wanted, given.out, jobs=given.jobs, device=given.device)
    return count, sweep.write_provenance(given.out, sweep.command_line())


if __name__ == "__main__":
    sys.exit(main())
