"""The options that every sweep has: where to write, how many runs at a time, and where torch computes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from types import ModuleType

from attnlab import commands

#: What an interruption of a sweep leaves.
KEPT = "the finished runs are in {out}, and the same command does the others"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every sweep to a parser."""
    parser.add_argument(
        "--out", type=commands.table, required=True, metavar="FILE.csv", help="the table to write, or to continue"
    )
    parser.add_argument(
        "--jobs",
        type=commands.jobs,
        default=None,
        metavar="N",
        help="runs at a time, -1: one for each core; default: joblib's, which is 1",
    )
    parser.add_argument(
        "--backend",
        choices=("loky", "multiprocessing", "threading", "sequential"),
        default="loky",
        metavar="NAME",
        help="joblib's way to run several at a time: loky or multiprocessing (processes), threading, or sequential; "
        "default: loky",
    )
    parser.add_argument("--device", default="cpu", help="where torch computes: cpu, cuda, ...; default: cpu")


def carry_out(given: argparse.Namespace, sweep: ModuleType, wanted: Iterable[object], line: str) -> str:
    """Carry the wanted runs out with the chosen backend, and return the sentence that says what was done.

    sweep : a module with the functions `sweep` and `write_provenance`.  line : the command, for the record.
    """
    import joblib

    wanted = list(wanted)
    if not wanted:
        raise ValueError("expected options that give at least one run, got none: these parts have no such setting")
    with joblib.parallel_config(backend=given.backend):
        count = sweep.sweep(wanted, given.out, jobs=given.jobs, device=given.device)
    return f"{count} new runs in {given.out}, described in {sweep.write_provenance(given.out, line)}"
