"""The command line of a sweep: the options that every one has, and the kinds of those that choose a part of it."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from attnlab import commands

if TYPE_CHECKING:  # it needs torch, and --help does not
    from attnlab.sweeps.runs import Sweep


def described(module: str, about: str, *, seconds: str) -> commands.Command:
    """Return the command that carries a sweep out.

    module, about : as of every command.  seconds : how many of them a run takes, in words.
    """
    return commands.Command(
        module,
        about,
        takes=f"about an hour with --jobs 2 on two cores, some {seconds} seconds for each run.",
        writes="the table --out, a row for each run, and beside it a record (.json) of the command, versions and "
        "settings.",
        kept="the finished runs are in {out}, and the same command does the others",
        extra="train",
    )


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


def add_choice(
    parser: argparse.ArgumentParser,
    name: str,
    words: tuple[str, ...],
    metavar: str,
    what: str,
    apart: str | None = None,
) -> None:
    """Add the option --NAME: some of these words, all of them unless given.

    apart : a further word, which has to be given to be taken.
    """
    parser.add_argument(
        f"--{name}",
        nargs="+",
        choices=words if apart is None else (*words, apart),
        default=words,
        metavar=metavar,
        help=f"{what}, of {', '.join(words)}; default: all" + ("" if apart is None else f"; or {apart}"),
    )


def add_numbers(
    parser: argparse.ArgumentParser,
    name: str,
    default: tuple[float, ...],
    read: Callable[[str], float],
    metavar: str,
    what: str,
) -> None:
    """Add the option --NAME: one or more numbers.

    read : one of them from its text.
    """
    parser.add_argument(
        f"--{name}",
        nargs="+",
        type=read,
        default=default,
        metavar=metavar,
        help=f"{what}; default: {' '.join(map(str, default))}",
    )


def add_steps(parser: argparse.ArgumentParser, default: int) -> None:
    """Add the option --steps, which every training has."""
    parser.add_argument(
        "--steps",
        type=commands.whole(1),
        default=default,
        metavar="N",
        help=f"training steps in each run; default: {default}",
    )


def carry_out(given: argparse.Namespace, sweep: Sweep[Any], wanted: Iterable[Any], line: str) -> str:
    """Carry the wanted runs out with the chosen backend, and return the sentence that says what was done.

    line : the command, for the record.
    """
    import joblib

    wanted = list(wanted)
    if not wanted:
        raise ValueError("expected options that give at least one run, got none: these parts have no such setting")
    # An interrupted command has its own sentence; joblib's advice about the runs not done would stand beside it.
    warnings.filterwarnings("ignore", message=".*limit unnecessary computation time")
    with joblib.parallel_config(backend=given.backend):
        count = sweep.carry_out(wanted, given.out, jobs=given.jobs, device=given.device)
    return f"{count} new runs in {given.out}, described in {sweep.write_provenance(given.out, line)}"
