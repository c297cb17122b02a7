"""``python -m attnlab.recall --out recall.csv --jobs 2``: train the models of the chapter on associative recall.

A small model reads keys with their values, and then has to give the value of each key. The whole sweep has 1710 runs:
five kinds of attention (--attentions) in three designs (--designs), with five seeds and six learning rates.

* concentration: each attention at several strengths of its parameter, which spread or concentrate its rows;
* width: four widths of the heads, and three of the model;
* pairs: 4, 8 or 16 pairs of a key and a value.

A fourth design, division, has 180 runs and a table of its own: softmax with scores that are divided by sqrt(d_k), and
with scores that are not.

A run that is in the table is not repeated.
"""

from __future__ import annotations

import argparse

from attnlab import commands
from attnlab.recall.table import ATTENTION_NAMES, DESIGNS, DIVISION, RATES, SEEDS
from attnlab.sweeps import command

_COMMAND = command.described("attnlab.recall", __doc__, seconds="five")


def main(arguments: list[str] | None = None) -> int:
    """Run the missing part of the grid and write the table and its provenance; return the exit status."""
    parser = _COMMAND.parser()
    command.add_options(parser)
    command.add_choice(parser, "designs", DESIGNS, "DESIGN", "the parts of the sweep to run", DIVISION)
    command.add_choice(parser, "attentions", ATTENTION_NAMES, "NAME", "what turns scores into weights")
    command.add_numbers(parser, "seeds", SEEDS, commands.whole(0), "SEED", "seeds of weights and sequences")
    rates = "learning rates, each tried for every setting, of which the chapter keeps the best"
    command.add_numbers(parser, "rates", RATES, commands.positive, "RATE", rates)
    command.add_steps(parser, 300)
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    from attnlab.recall.sweep import SWEEP, grid

    wanted = grid(given.designs, given.attentions, given.seeds, given.rates, steps=given.steps)
    return command.carry_out(given, SWEEP, wanted, line)


if __name__ == "__main__":
    raise SystemExit(main())
