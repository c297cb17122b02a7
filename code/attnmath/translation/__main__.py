"""Command line: ``python -m attnmath.translation --out translation.csv --jobs 2`` runs the sweep, or what is left of it.

The three parts have 180 runs together. A run that is in the table is not repeated, so that the command goes on where
it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from attnmath.translation.table import PAIRS, PARTS, SEEDS

#: What the package needs beyond its core to train models.
_EXTRA = ("joblib", "torch", "tqdm")


def main() -> int:
    """Run the missing part of the grid and write the table and its provenance; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m attnmath.translation", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="table to write, or to continue (.csv)")
    parser.add_argument("--jobs", type=int, default=None, help="runs at a time (joblib's default unless given)")
    parser.add_argument("--backend", default="loky", help="joblib backend: loky, dask, ray, ...")
    parser.add_argument("--device", default="cpu", help="where torch computes: cpu, cuda, ...; default: cpu")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="parts to run, default: all")
    parser.add_argument("--pairs", nargs="+", type=int, default=PAIRS, help="numbers of training pairs, default: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="language pairs, default: 0 1 2 3 4")
    parser.add_argument("--steps", type=int, default=None, help="training steps in each run")
    given = parser.parse_args()
    if given.jobs is not None and given.jobs == 0:
        parser.error("argument --jobs: expected a number of processes (or -1 for all cores), got 0")
    if given.out.is_dir():
        return _end(f"argument --out: expected a file, got the folder {given.out}", 2)
    try:
        return _run(given)
    except KeyboardInterrupt:
        return _end(f"interrupted; the finished runs are in {given.out}, and the same command does the others", 130)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        return _end(f'{error.name} is not installed; it comes with the extra "train": pip install ".[train]"', 1)
    except OSError as error:
        return _end(f"cannot write {error.filename or given.out} ({error.strerror or error}); when it can be written, "
                    "the same command goes on where it stopped", 1)  # fmt: skip


def _run(given: argparse.Namespace) -> int:
    # Imported here, so that --help needs no more than the core of the package.
    import joblib

    from attnmath.translation import sweep

    try:
        steps = {} if given.steps is None else {"steps": given.steps}
        runs = sweep.grid(given.parts, given.pairs, given.seeds, **steps)
        with joblib.parallel_config(backend=given.backend):
            count = sweep.sweep(runs, given.out, jobs=given.jobs, device=given.device)
        record = sweep.write_provenance(given.out, sweep.command_line())
    except (ValueError, TypeError) as error:
        return _end(f"error: {error}", 2)
    print(f"{count} new runs in {given.out}, described in {record}")
    return 0


def _end(message: str, status: int) -> int:
    print(f"python -m attnmath.translation: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
