"""``python -m attnlab.translation --out translation.csv --jobs 2``: train the models of the chapter on few data.

Small encoder-decoder models learn to translate between two made-up languages, with learned or with fixed attention in
the encoder. The whole sweep has 190 runs in three parts (--parts).

* main: four designs at five numbers of training pairs;
* extra: further designs at two numbers of pairs;
* equal: designs with few parameters, widened until they have as many trained ones as the learned design.

With --own-rates the table is another one: six designs at two further learning rates, with two of the language pairs;
then each at its best rates with the other language pairs. The best rate of a design and number of pairs is the one with
the lowest loss on validation sentences, and beside it the one with the highest BLEU. The runs at the common rate come
from the table that ships.

A run that is in the table is not repeated.
"""

from __future__ import annotations

import argparse

from attnlab import commands
from attnlab.sweeps import command
from attnlab.translation.table import PAIRS, PARTS, SEEDS

_COMMAND = command.described("attnlab.translation", __doc__, seconds="thirty")
STEPS = 800


def main(arguments: list[str] | None = None) -> int:
    """Run the missing part of the grid and write the table and its provenance; return the exit status."""
    parser = _COMMAND.parser()
    command.add_options(parser)
    command.add_choice(parser, "parts", PARTS, "PART", "the parts of the sweep to run")
    command.add_numbers(parser, "pairs", PAIRS, commands.whole(1), "N", "numbers of training pairs")
    seeds = "seeds of the two languages, the sentences, the weights and their order"
    command.add_numbers(parser, "seeds", SEEDS, commands.whole(0), "SEED", seeds)
    command.add_steps(parser, STEPS)
    parser.add_argument("--own-rates", action="store_true", help="each design at its own learning rate")
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    from attnlab.translation.sweep import SWEEP, grid

    if given.own_rates:
        return _own_rates(given, line)
    return command.carry_out(given, SWEEP, grid(given.parts, given.pairs, given.seeds, steps=given.steps), line)


def _own_rates(given: argparse.Namespace, line: str) -> str:
    from attnlab.translation.results import load_results
    from attnlab.translation.sweep import SWEEP, own_rate_grid, rate_grid

    if given.steps != STEPS or tuple(given.parts) != PARTS or not set(given.pairs) <= set(PAIRS):
        raise ValueError(f"own-rates: expected no --parts, no --steps, and --pairs of {', '.join(map(str, PAIRS))}")
    tried = command.carry_out(given, SWEEP, rate_grid(given.pairs), line)
    own = own_rate_grid([*load_results(), *SWEEP.table.read(given.out)], given.pairs, given.seeds)
    return f"{tried}; {command.carry_out(given, SWEEP, own, line)}" if own else tried


if __name__ == "__main__":
    raise SystemExit(main())
