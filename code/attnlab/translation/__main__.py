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

_COMMAND = command.described("attnlab.translation", __doc__, seconds="thirty")


def main(arguments: list[str] | None = None) -> int:
    """Run the missing part of the grid and write the table and its provenance; return the exit status."""
    parser = _COMMAND.parser()
    command.add_options(parser)
    command.add_choice(parser, "parts", PARTS, "PART", "the parts of the sweep to run")
    command.add_numbers(parser, "pairs", PAIRS, commands.whole(1), "N", "numbers of training pairs")
    seeds = "seeds of the two languages, the sentences, the weights and their order"
    command.add_numbers(parser, "seeds", SEEDS, commands.whole(0), "SEED", seeds)
    command.add_steps(parser, 800)
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    from attnlab.translation.sweep import SWEEP, grid

    return command.carry_out(given, SWEEP, grid(given.parts, given.pairs, given.seeds, steps=given.steps), line)


if __name__ == "__main__":
    raise SystemExit(main())
