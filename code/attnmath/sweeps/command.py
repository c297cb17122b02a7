"""The command line of a sweep: what its programs have in common, and how they end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

#: What the package needs beyond its core to train models.
_EXTRA = ("joblib", "torch", "tqdm")


def parser_of(program: str, description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of every sweep: where to write, how many runs at a time, and where torch computes."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--out", type=Path, required=True, help="table to write, or to continue (.csv)")
    parser.add_argument("--jobs", type=int, default=None, help="runs at a time (joblib's default unless given)")
    parser.add_argument("--backend", default="loky", help="joblib backend: loky, dask, ray, ...")
    parser.add_argument("--device", default="cpu", help="where torch computes: cpu, cuda, ...; default: cpu")
    return parser


def carry_out(parser: argparse.ArgumentParser, body: Callable[[argparse.Namespace], tuple[int, Path]]) -> int:
    """Read the options, carry the sweep out and return the exit status; every failure ends with one line of advice.

    body : from the options to the number of new runs and the path of the record beside the table. It imports what needs
    torch, so that --help does not.
    """
    given = parser.parse_args()

    def end(message: str, status: int) -> int:
        print(f"{parser.prog}: {message}", file=sys.stderr)
        return status

    if given.jobs is not None and given.jobs == 0:
        parser.error("argument --jobs: expected a number of processes (or -1 for all cores), got 0")
    if given.out.is_dir():
        return end(f"argument --out: expected a file, got the folder {given.out}", 2)
    try:
        import joblib

        with joblib.parallel_config(backend=given.backend):
            count, record = body(given)
    except KeyboardInterrupt:
        return end(f"interrupted; the finished runs are in {given.out}, and the same command does the others", 130)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        return end(f'{error.name} is not installed; it comes with the extra "train": pip install ".[train]"', 1)
    except OSError as error:
        return end(f"cannot write {error.filename or given.out} ({error.strerror or error}); when it can be written, "
                   "the same command goes on where it stopped", 1)  # fmt: skip
    except (ValueError, TypeError) as error:
        return end(f"error: {error}", 2)
    print(f"{count} new runs in {given.out}, described in {record}")
    return 0
