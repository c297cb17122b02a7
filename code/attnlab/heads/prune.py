"""``python -m attnlab.heads.prune --out DIR``: remove or replace heads of the shipped decoder, measure its output.

A version that is done is not repeated. Kinds of versions (--kinds), all judged on the same windows of the held-out
text:

* greedy: heads set to 0, in the order that is cheapest on windows of the learned text; random: in random orders;
* directions: in the layers of the greedy order, as many random directions of the joined outputs of the heads;
* units: in the same layers, random units of the feed-forward part with about as many parameters;
* zero, pattern, mean: one head set to 0, or its weights replaced by the nearest of the fixed patterns, or by its mean
  weights on the learned text; pattern-order, mean-order: the heads of the greedy order replaced;
* trained-on: heads of the greedy order set to 0, and the decoder trained further on the learned text (needs torch).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from attnlab import commands, records
from attnlab.heads import corpus, positional, removal
from attnlab.heads.load import WEIGHTS, TrainedDecoder, load_decoder
from attnlab.heads.removal import Head, Row
from attnlab.heads.train import numbers
from attnlab.records import replace
from attnlab.threads import one_thread
from attnmath.fixed_attention.fixed_patterns import fixed_patterns

#: Windows of the learned text that choose, and of the held-out text that judge; random orders; further training.
CHOOSING, JUDGING, DRAWS, STEPS, RATE = 48, 96, 8, 200, 1e-3
KINDS = (
    "greedy",
    "random",
    "directions",
    "units",
    "zero",
    "pattern",
    "mean",
    "pattern-order",
    "mean-order",
    "trained-on",
)
TRAINED_ON = (0, 4, 8)

_COMMAND = commands.Command(
    "attnlab.heads.prune",
    __doc__,
    takes="about ten minutes on a processor.",
    writes="pruning.csv in the folder --out, a row for each version; and pruning.json, a record of the command, "
    "versions and settings.",
    kept="rows that are done are in {out}, and the same command does the others",
    extra="train",
)


def load_pruning() -> tuple[Row, ...]:
    """Load the table that ships with the package, after checking its hash."""
    return records.parsed(records.shipped("pruning"), Row, "pruning.csv")


def main(arguments: list[str] | None = None) -> int:
    """Measure the missing versions, write the two files; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("--out", type=commands.folder, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND",
                        help=f"kinds of versions, of {', '.join(KINDS)}; default: all")  # fmt: skip
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    path = run(given.out, tuple(given.kinds), command=line)
    return f"{path}, described in {path.with_suffix('.json')}"


def run(out: Path, kinds: tuple[str, ...] = KINDS, *, command: str = "") -> Path:
    """Measure what is missing, write pruning.csv and pruning.json into `out`, and return the path of the table."""
    from tqdm import tqdm

    out.mkdir(parents=True, exist_ok=True)
    path = out / "pruning.csv"
    versions = {"python": platform.python_version(), "numpy": np.__version__, "torch": metadata.version("torch")}
    rows = records.read(path, Row, "pruning")
    cases = {key for kind in KINDS for key in _cases(kind)}
    if strange := [row for row in rows if (row.kind, row.case, row.removed) not in cases]:
        raise ValueError(f"out: expected versions of this command in {path}, got {strange[0]}")
    done = {(row.kind, row.case, row.removed): row for row in rows}
    study = _Study(load_decoder(), done)
    wanted = [key for kind in KINDS for key in _cases(kind) if kind in kinds]
    with tqdm(total=len(wanted), unit="version") as bar:
        for key in wanted:
            if key not in done:
                done[key] = study.row(*key)
                ordered = sorted(done.values(), key=lambda row: (KINDS.index(row.kind), row.case, row.removed))
                replace(path, records.written(ordered, Row))
            bar.update()
    record = {
        "command": command,
        "versions": versions,
        "machine": platform.machine(),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "weights": WEIGHTS,
        "windows": {"choosing": CHOOSING, "judging": JUDGING},
        "training": {"steps": STEPS, "rate": RATE},
        "bits_per_character": round(float(study.whole.mean()), 4),
    }
    replace(path.with_suffix(".json"), (json.dumps(record, indent=2) + "\n").encode())
    return path


def _cases(kind: str) -> Iterator[tuple[str, int, int]]:
    """Kind, case and number of removed heads of every row of a kind, for the shipped decoder of 16 heads."""
    if kind in ("zero", "pattern", "mean"):
        yield from ((kind, head, 1) for head in range(16))
    elif kind == "trained-on":
        yield from ((kind, 0, removed) for removed in TRAINED_ON)
    else:
        draws = DRAWS if kind in ("random", "directions", "units") else 1
        yield from ((kind, draw, removed) for draw in range(draws) for removed in range(1, 17))


def _without_units(by_layer: np.ndarray, width: int, heads: int, rng: np.random.Generator) -> np.ndarray:
    """1 for each unit of a layer that stays, and 0 for as many units as have the weights of so many heads.

    A head has 4 width d_k weights, a unit 2 width and a bias: about 2 d_k units have as many as a head.
    """
    units = np.ones((len(by_layer), 4 * width))
    for row, many in zip(units, by_layer, strict=True):
        row[rng.permutation(len(row))[: 2 * many * width // heads]] = 0
    return units


class _Study:
    """What the rows share: the windows, the order of the heads, and what replaces them."""

    def __init__(self, decoder: TrainedDecoder, done: dict[tuple[str, int, int], Row]) -> None:
        self.decoder = decoder
        self.learned, held_out = corpus.split(corpus.shipped_documentation())
        self.choosing = removal.windows(decoder, self.learned, CHOOSING)
        self.judging = removal.windows(decoder, held_out, JUDGING)
        self.whole = removal.bits(decoder, self.judging).mean(axis=1)
        named = [done[key].head for key in _cases("greedy") if key in done]
        if len(named) == decoder.layers * decoder.heads:
            self.order = [(int(one.split(".")[0]), int(one.split(".")[1])) for one in named]
        else:
            self.order = removal.greedy_order(decoder, self.choosing)
        A = removal.attention(decoder, self.choosing)
        self.mean = A.mean(axis=0)
        self.fixed = fixed_patterns(decoder.context)
        self.nearest = positional.distances(A, self.fixed).mean(axis=0).argmin(axis=-1)

    def row(self, kind: str, case: int, removed: int) -> Row:
        layers, heads = self.decoder.layers, self.decoder.heads
        gone, head = self.order[:removed], ""
        if kind in ("zero", "pattern", "mean"):
            gone = [(case // heads, case % heads)]
        elif kind == "random":
            rng = np.random.default_rng([case, 7])
            every = rng.permutation(layers * heads)
            gone = [(int(k) // heads, int(k) % heads) for k in every[:removed]]
        if kind not in ("directions", "units", "trained-on"):
            head = ".".join(map(str, gone[-1]))
        if kind == "trained-on":
            found = self._trained_on(gone)
        else:
            found = removal.bits(self.decoder, self.judging, **self._version(kind, case, gone)).mean(axis=1)
        rise = found - self.whole
        error = float(rise.std(ddof=1) / len(rise) ** 0.5)
        mean, difference = float(found.mean()), float(rise.mean())
        return Row(kind, case, removed, head, round(mean, 4), round(difference, 4), round(error, 4))

    def _version(self, kind: str, case: int, gone: list[Head]) -> dict[str, Any]:
        """The keywords of `removal.bits` for a version."""
        by_layer = np.bincount([layer for layer, _ in gone], minlength=self.decoder.layers)
        width = self.decoder.width
        rng = np.random.default_rng([case, len(gone)])
        if kind == "directions":
            return {"kept": removal.projected(self.decoder, by_layer * width // self.decoder.heads, rng=rng)}
        if kind == "units":
            return {"units": _without_units(by_layer, width, self.decoder.heads, rng)}
        if kind.startswith("mean"):
            return {"patterns": {head: self.mean[head] for head in gone}}
        if kind.startswith("pattern"):
            return {"patterns": {head: self.fixed[self.nearest[head]] for head in gone}}
        return {"kept": removal.without(self.decoder, gone)}

    def _trained_on(self, gone: list[Head]) -> np.ndarray:
        """Bits of each window after further training without the given heads.

        With zero values and a zero output, the gradients of both are zero, so that a removed head stays removed.
        """
        import torch

        from attnlab.heads.decoder import Decoder, Settings, train

        d = self.decoder
        settings = Settings(0, d.layers, d.heads, d.width, d.context, steps=STEPS, rate=RATE)
        model = Decoder(settings, len(d.alphabet), torch.Generator().manual_seed(0))
        weights = {name: torch.tensor(value) for name, value in d.parameters.items()}
        d_k = d.width // d.heads
        for layer, head in gone:
            part = slice(head * d_k, (head + 1) * d_k)
            weights[f"layers.{layer}.project.2.weight"][part] = 0
            weights[f"layers.{layer}.project.3.weight"][:, part] = 0
        model.load_state_dict(weights)
        with one_thread():
            train(settings, numbers(self.learned, list(d.alphabet)), len(d.alphabet), start=model)
        after = {name: value.detach().numpy() for name, value in model.state_dict().items()}
        return np.asarray(removal.bits(TrainedDecoder(after, d.heads, d.alphabet), self.judging).mean(axis=1))


if __name__ == "__main__":
    raise SystemExit(main())
