"""Command line: ``python -m attnmath.recall --out recall.csv --jobs 2`` runs the sweep, or what is left of it.

The three designs have 1710 runs together. A run that is in the table is not repeated, so that the command goes on where
it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from attnmath.recall.table import ATTENTION_NAMES, DESIGNS, RATES, SEEDS
from attnmath.sweeps.command import carry_out, parser_of

_VALUES = {
    "seeds": (int, SEEDS, "seeds of weights and sequences"),
    "rates": (float, RATES, "learning rates"),
}


def main() -> int:
    """Run the missing part of the grid and write the table and its provenance; return the exit status."""
    parser = parser_of("python -m attnmath.recall", __doc__)
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=DESIGNS, help="parts to run, default: all")
    parser.add_argument("--attentions", nargs="+", choices=ATTENTION_NAMES, default=ATTENTION_NAMES,
                        help="what turns scores into weights, default: all")  # fmt: skip
    for name, (kind, values, meaning) in _VALUES.items():
        shown = " ".join(map(str, values))
        parser.add_argument(f"--{name}", nargs="+", type=kind, default=values, help=f"{meaning}, default: {shown}")
    parser.add_argument("--steps", type=int, default=300, help="training steps in each run, default: 300")
    return carry_out(parser, _run)


def _run(given: argparse.Namespace) -> tuple[int, Path]:
    # Imported here, so that --help needs no more than the core of the package.
    from attnmath.recall import sweep

    wanted = sweep.grid(given.designs, given.attentions, given.seeds, given.rates, steps=given.steps)
    count = sweep.sweep(wanted, given.out, jobs=given.jobs, device=given.device)
    return count, sweep.write_provenance(given.out, sweep.command_line())


if __name__ == "__main__":
    sys.exit(main())
