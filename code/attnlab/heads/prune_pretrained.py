"""``python -m attnlab.heads.prune_pretrained MODEL --out DIR``: remove heads of a pretrained decoder, and judge it.

A version that is done is not repeated. Kinds of versions:

* alone: each head by itself set to 0, on a window of the part of Python's documentation from which the small decoders
  learned;
* order: the first heads of the order of these costs, the cheapest first, on windows of the part held out; random: as
  many heads in random orders, on the same windows.

A window is a text by itself: its first token has none before it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from attnlab import commands, records
from attnlab.heads import corpus, pretrained
from attnlab.heads.llama import Llama, bits
from attnlab.heads.llama_gguf import file_hash
from attnlab.heads.removal import Head, Row
from attnlab.heads.tokens import Tokenizer
from attnlab.records import replace
from attnmath.arrays import Numpy
from attnmath.checks import instance

#: Windows that choose and that judge, and their tokens; numbers of heads that go together, and random orders.
CHOOSING, JUDGING, LENGTH = 1, 6, 80
REMOVED, DRAWS = {"order": (1, 4, 8, 17, 34, 68), "random": (17, 68)}, 4
KINDS = ("alone", "order", "random")

_COMMAND = commands.Command(
    "attnlab.heads.prune_pretrained",
    __doc__,
    takes="about a quarter of an hour on a processor.",
    writes="pretrained_pruning.csv in the folder --out, a row for each version; and pretrained_pruning.json, a record "
    "of the command, versions and settings.",
    kept="rows that are done are in {out}, and the same command does the others",
    extra="model",
)


def load_pretrained_pruning() -> tuple[Row, ...]:
    """Load the table that ships with the package, after checking its hash.

    In it `bits` are those of a window over its characters, `case` of the kind "alone" is 9 layer + head, and a rise on
    a single window has no standard error: 0.
    """
    return records.parsed(records.shipped("pretrained_pruning"), Row, "pretrained_pruning.csv")


def main(arguments: list[str] | None = None) -> int:
    """Measure the missing versions, write the two files; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("model", type=commands.existing_path, metavar="MODEL",
                        help="the GGUF file, or the folder, of a local decoder")  # fmt: skip
    parser.add_argument("--out", type=commands.folder, required=True, metavar="DIR", help="the folder to write to")
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    path = run(given.model, given.out, command=line)
    return f"{path}, described in {path.with_suffix('.json')}"


def run(model: Path, out: Path, *, command: str = "") -> Path:
    """Measure what is missing, write pretrained_pruning.csv and .json into `out`, and return the path of the table."""
    from tqdm import tqdm

    path = out / "pretrained_pruning.csv"
    done = {(row.kind, row.case, row.removed): row for row in records.read(path, Row, "pretrained_pruning")}
    with tqdm(desc="reading", unit="part") as bar:
        study = _Study(*pretrained.load_llama(model, bar.update))
    heads = study.model.sizes.layers * study.model.sizes.heads
    wanted = list(_cases(heads))
    if strange := [key for key in done if key not in wanted]:
        raise ValueError(f"out: expected versions of this command in {path}, got {strange[0]}")
    out.mkdir(parents=True, exist_ok=True)
    with tqdm(total=len(wanted), initial=len(done), unit="version") as bar:
        for key in wanted:
            if key not in done:
                alone = [done[one].rise for one in wanted if one[0] == "alone" and one in done]
                done[key] = study.row(*key, alone)
                replace(path, records.written([done[one] for one in wanted if one in done], Row))
                bar.update()
    record = {
        "command": command,
        "versions": {"python": platform.python_version(), "numpy": np.__version__, **pretrained.versions()},
        "machine": platform.machine(),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "model": file_hash(model) if model.is_file() else None,
        "windows": {"choosing": CHOOSING, "judging": JUDGING, "tokens": LENGTH},
        "bits_per_character": {name: _digits(found.mean()) for name, found in study.whole.items()},
    }
    replace(path.with_suffix(".json"), (json.dumps(record, indent=2) + "\n").encode())
    return path


def without(model: Llama, tokenizer: Tokenizer, ids: list[int], removed: Collection[Head]) -> float:
    """Bits per character of a window whose named heads, (layer, head), give 0."""
    gone = {(int(layer), int(head)) for layer, head in removed}
    sizes = instance(model, Llama, "model").sizes
    if strange := [one for one in gone if not (0 <= one[0] < sizes.layers and 0 <= one[1] < sizes.heads)]:
        raise ValueError(f"removed: expected pairs below ({sizes.layers}, {sizes.heads}), got {strange[0]}")

    def weights(layer: int, P: Float[Numpy, "heads n n"]) -> NDArray[Any]:
        stays = [(layer, head) not in gone for head in range(len(P))]
        return np.asarray(P * np.asarray(stays)[:, None, None])

    characters = len(tokenizer.text(ids)) - len(tokenizer.text(ids[:1]))
    return float(bits(model.run(ids, weights=weights).logits, ids).sum() / characters)


def windows(model: Llama, tokenizer: Tokenizer, text: str, count: int) -> list[list[int]]:
    """Windows of `LENGTH` tokens, given by their numbers, evenly spread over a text."""
    ids = instance(tokenizer, Tokenizer, "tokenizer").numbers(text)
    many = len(ids) // LENGTH
    if many < count:
        raise ValueError(f"text: expected {count} windows of {LENGTH} tokens, got {len(ids)} tokens")
    return [ids[start : start + LENGTH] for start in (np.arange(count) * many // count * LENGTH).tolist()]


def _cases(heads: int) -> Iterator[tuple[str, int, int]]:
    """Kind, case and number of removed heads of every row, for a model of so many heads."""
    yield from (("alone", head, 1) for head in range(heads))
    yield from (("order", 0, removed) for removed in REMOVED["order"])
    yield from (("random", draw, removed) for draw in range(DRAWS) for removed in REMOVED["random"])


class _Study:
    """What the rows share: the model and the windows."""

    def __init__(self, model: Llama, tokenizer: Tokenizer) -> None:
        self.model, self.tokenizer = model, tokenizer
        learned, held_out = corpus.split(corpus.shipped_documentation())
        self.texts = {
            "choosing": windows(model, tokenizer, learned, CHOOSING),
            "judging": windows(model, tokenizer, held_out, JUDGING),
        }
        self.whole = {name: self._bits(name, []) for name in self.texts}

    def row(self, kind: str, case: int, removed: int, alone: list[float]) -> Row:
        heads = self.model.sizes.heads
        order = np.asarray([case])
        if kind == "order":
            order = np.argsort(alone, kind="stable")
        elif kind == "random":
            order = np.random.default_rng([case, 7]).permutation(self.model.sizes.layers * heads)
        gone = [(int(one) // heads, int(one) % heads) for one in order[:removed]]
        name = "choosing" if kind == "alone" else "judging"
        found = self._bits(name, gone)
        rise = found - self.whole[name]
        error = rise.std(ddof=1) / len(rise) ** 0.5 if len(rise) > 1 else 0.0
        head = ".".join(map(str, gone[-1]))
        return Row(kind, case, removed, head, _digits(found.mean()), _digits(rise.mean()), _digits(error))

    def _bits(self, name: str, gone: list[Head]) -> NDArray[Any]:
        return np.asarray([without(self.model, self.tokenizer, ids, gone) for ids in self.texts[name]])


def _digits(value: float) -> float:
    """Four decimals: the rest depends on the machine."""
    return round(float(value), 4)


if __name__ == "__main__":
    raise SystemExit(main())
