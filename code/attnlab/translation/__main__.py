"""``python -m attnlab.translation --out translation.csv --jobs 2``: train the models of the chapter on few data.

Small encoder-decoder models learn to translate between two made-up languages, with learned or with fixed attention in
the encoder. The whole sweep has 190 runs in three parts (--parts).

* main: four designs at five numbers of training pairs;
* extra: further designs at two numbers of pairs;
* equal: designs with few parameters, widened until they have as many trained ones as the learned design.

A run that is in the table is not repeated.
"""

from __future__ import annotations

import argparse

from attnlab import commands
from attnlab.sweeps import command
from attnlab.translation.table import PAIRS, PARTS, SEEDS

_COMMAND = commands.Command(
    "attnlab.translation",
    __doc__,
    takes="about an hour with --jobs 2 on two cores, some thirty seconds for each run.",
    writes="the table --out, a row for each run, and beside it a record (.json) of the command, versions and settings.",
    kept=command.KEPT,
    extra="train",
)


def main(arguments: list[str] | None = None) -> int:
    """Run the missing part of the grid and write the table and its provenance; return the exit status."""
    parser = _COMMAND.parser()
    command.add_options(parser)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART",
                        help=f"the parts of the sweep to run, of {', '.join(PARTS)}; default: all")  # fmt: skip
    parser.add_argument("--pairs", nargs="+", type=commands.whole(1), default=PAIRS, metavar="N",
                        help=f"numbers of training pairs; default: {' '.join(map(str, PAIRS))}")  # fmt: skip
    parser.add_argument("--seeds", nargs="+", type=commands.whole(0), default=SEEDS, metavar="SEED",
                        help="seeds of the two languages, the sentences, the weights and their order; "
                        f"default: {' '.join(map(str, SEEDS))}")  # fmt: skip
    parser.add_argument("--steps", type=commands.whole(1), default=800, metavar="N",
                        help="training steps in each run; default: 800")  # fmt: skip
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    from attnlab.translation import sweep

    wanted = sweep.grid(given.parts, given.pairs, given.seeds, steps=given.steps)
    return command.carry_out(given, sweep, wanted, line)


if __name__ == "__main__":
    raise SystemExit(main())
