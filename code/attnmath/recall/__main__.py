"""Command line: ``python -m attnmath.recall --out recall.csv --jobs 2`` runs the sweep, or what is left of it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import joblib

from attnmath.recall import sweep
from attnmath.recall.models import ATTENTIONS


def main() -> int:
    """Run the missing part of the grid and write the table and its provenance."""
    default = sweep.grid.__defaults__ or ()
    parser = argparse.ArgumentParser(prog="python -m attnmath.recall", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="table to write, or to continue (.csv)")
    parser.add_argument("--jobs", type=int, default=None, help="runs at a time (joblib's default unless given)")
    parser.add_argument("--backend", default="loky", help="joblib backend: loky, dask, ray, ...")
    parser.add_argument("--attentions", nargs="+", choices=list(ATTENTIONS), default=default[0])
    for name, kind, values in zip(("pairs", "widths", "seeds", "rates"), (int, int, int, float), default[1:],
                                  strict=True):  # fmt: skip
        parser.add_argument(f"--{name}", nargs="+", type=kind, default=values, help=f"default: {values}")
    parser.add_argument("--steps", type=int, default=1000, help="training steps in each run, default: 1000")
    given = parser.parse_args()
    if given.jobs is not None and given.jobs == 0:
        parser.error("argument --jobs: expected a number of processes (or -1 for all cores), got 0")
    try:
        runs = sweep.grid(given.attentions, given.pairs, given.widths, given.seeds, given.rates, steps=given.steps)
        with joblib.parallel_config(backend=given.backend):
            count = sweep.sweep(runs, given.out, jobs=given.jobs)
        record = sweep.write_provenance(given.out, sweep.command_line())
    except (ValueError, TypeError) as error:
        parser.error(str(error))
    print(f"{count} new runs in {given.out}, described in {record}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
