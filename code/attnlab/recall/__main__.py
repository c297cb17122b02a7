"""``python -m attnlab.recall --out recall.csv --jobs 2``: train the models of the chapter on associative recall.

A small model reads keys with their values, and then has to give the value of each key. The whole sweep has 1710 runs:
five kinds of attention (--attentions) in three designs (--designs), with five seeds and six learning rates.

* concentration: each attention at several strengths of its parameter, which spread or concentrate its rows;
* width: four widths of the heads, and three of the model;
* pairs: 4, 8 or 16 pairs of a key and a value.

A run that is in the table is not repeated.
"""

from __future__ import annotations

import argparse

from attnlab import commands
from attnlab.recall.table import ATTENTION_NAMES, DESIGNS, RATES, SEEDS
from attnlab.sweeps import command

_COMMAND = commands.Command(
    "attnlab.recall",
    __doc__,
    takes="about an hour with --jobs 2 on two cores, some five seconds for each run.",
    writes="the table --out, a row for each run, and beside it a record (.json) of the command, versions and settings.",
    kept=command.KEPT,
    extra="train",
)


def main(arguments: list[str] | None = None) -> int:
    """Run the missing part of the grid and write the table and its provenance; return the exit status."""
    parser = _COMMAND.parser()
    command.add_options(parser)
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=DESIGNS, metavar="DESIGN",
                        help=f"the parts of the sweep to run, of {', '.join(DESIGNS)}; default: all")  # fmt: skip
    parser.add_argument(
        "--attentions",
        nargs="+",
        choices=ATTENTION_NAMES,
        default=ATTENTION_NAMES,
        metavar="NAME",
        help=f"what turns scores into weights, of {', '.join(ATTENTION_NAMES)}; default: all",
    )
    parser.add_argument("--seeds", nargs="+", type=commands.whole(0), default=SEEDS, metavar="SEED",
                        help=f"seeds of weights and sequences; default: {_shown(SEEDS)}")  # fmt: skip
    parser.add_argument("--rates", nargs="+", type=commands.positive, default=RATES, metavar="RATE",
                        help="learning rates, each tried for every setting, of which the chapter keeps the best; "
                        f"default: {_shown(RATES)}")  # fmt: skip
    parser.add_argument("--steps", type=commands.whole(1), default=300, metavar="N",
                        help="training steps in each run; default: 300")  # fmt: skip
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    from attnlab.recall import sweep

    wanted = sweep.grid(given.designs, given.attentions, given.seeds, given.rates, steps=given.steps)
    return command.carry_out(given, sweep, wanted, line)


def _shown(values: tuple[float, ...]) -> str:
    return " ".join(map(str, values))


if __name__ == "__main__":
    raise SystemExit(main())
