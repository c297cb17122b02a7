"""``python -m attnlab.experiments.sinks MODEL --out DIR``: what a model loses when its tokens no longer see the first.

MODEL is the file of the pretrained decoder that the book measures. Each version of it reads texts of 304 tokens, and
its loss is counted in bits per character. In a version every head of every layer

* windows: sees as many keys as `size` says, the last ones before its query and the query itself. Some versions give
  the places of the oldest to tokens that are kept for the whole text: the first, the first four, or another one,
  drawn for each text from the 2nd to the 32nd;
* strides: sees the query itself, the `size` keys before it and, farther back, each `size`-th; some versions keep the
  first token as well;
* heads: is as it was, but `size` of all heads are taken away: those with the most weight on the first token, as many
  drawn at random, or as many drawn at random within each of their layers.

Weights that a query loses go to the keys that it still sees, in proportion: it is the softmax of the scores left.
The same is done to the small decoder whose weights ship, which reads windows of 128 characters of its held-out text.
The lengths of the first token's values, in each layer over the median of the others', are written as well.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool
from numpy.typing import NDArray

from attnlab import commands, records
from attnlab.heads import corpus, pretrained, removal
from attnlab.heads.llama import bits
from attnlab.heads.llama_gguf import file_hash
from attnlab.heads.load import WEIGHTS, load_decoder
from attnlab.records import replace
from attnlab.threads import one_thread
from attnmath.arrays import Numpy
from attnmath.checks import positive_integer
from attnmath.matrix.patterns import factorised_strided, renormalised, window_mask
from attnmath.matrix.sinks import sink_weight
from attnmath.operator.attention import causal_mask

Floats = NDArray[Any]
#: From a layer and its attention weights, shape (..., heads, n, n), to those of a version.
Change = Callable[[int, Floats], Floats]

#: Keys of a window, steps of a stride, and heads that are taken away in hundredths of all.
WINDOWS, STRIDES, HEADS = (8, 16, 32, 64), (8, 16), (10, 20)
#: What a window keeps, and which heads go.
KEPT = {"none": 0, "first": 1, "first four": 4}
ORDERS = ("most", "random", "same layers")
#: Random sets of heads for each text, and the end of the positions from which another token is drawn.
DRAWS, NEAR = 2, 32
#: Sections of Python's documentation that the pretrained decoder reads as well, in windows of so many keys alone.
SECTIONS = (
    "Value comparisons",
    'The "with" statement',
    "Function definitions",
    "Naming and binding",
    "Exceptions",
    "Ranges",
)
ALONE = 16
#: Stretches of the small decoder's held-out text, and windows in each.
PARTS, IN_PART = 8, 12

_COMMAND = commands.Command(
    "attnlab.experiments.sinks",
    __doc__,
    takes="about six minutes on a processor.",
    writes="sinks.csv in the folder --out, a row for each model, text and version; and sinks.json, a record of the "
    "command, versions and settings.",
    kept="nothing was written, and the same command begins again",
    extra="model",
)


@dataclass(frozen=True)
class Row:
    """A number of one version of a model on a text.

    change : whole, window, stride, heads, or length.  size : keys of a window, step of a stride, heads that are away,
    or a layer.  choice : what is kept, which heads go, or whose length it is.  draw : number of the random draw.
    value : bits per character, or, for lengths, the ratio to the median length.
    """

    model: str
    text: str
    change: str
    size: int
    choice: str
    draw: int
    value: float


def load_sinks() -> tuple[Row, ...]:
    """Load the table that ships with the package, after checking its hash."""
    return records.parsed(records.shipped("sinks"), Row, "sinks.csv")


def _seen_keys(n: int, change: str, size: int, kept: tuple[int, ...]) -> Bool[Numpy, "{n} {n}"]:
    """Which keys each query sees, under the causal mask, when some positions are kept for the whole text.

    change : "window", of `size` keys with the kept ones, or "stride", of the query, the `size` keys before it
    and each `size`-th farther back, and the kept ones beside.
    """
    if change == "stride":
        near, far = factorised_strided(n, size)
        seen = near | far
    else:
        seen = window_mask(n, size - len(kept) - 1)
    seen[:, list(kept)] = True
    return seen & causal_mask(n)


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the two files; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("model", type=commands.existing_path, metavar="MODEL",
                        help="the GGUF file, or the folder, of a model of Llama's kind")  # fmt: skip
    parser.add_argument("--out", type=commands.folder, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--draws", type=commands.whole(1), default=DRAWS, metavar="N",
                        help=f"random sets of heads for each text and number; default: {DRAWS}")  # fmt: skip
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    path = run(given.model, given.out, given.draws, command=line)
    return f"{path}, described in {path.with_suffix('.json')}"


def run(model: Path, out: Path, draws: int = DRAWS, *, command: str = "") -> Path:
    """Measure, write sinks.csv and sinks.json into `out`, and return the path of the table."""
    from tqdm import tqdm

    draws = positive_integer(draws, "draws")
    with one_thread(), tqdm(desc="reading", unit="part") as bar:
        subjects = [*_small(), *_large(model, bar.update)]
    rows: list[Row] = []
    with one_thread(), tqdm(total=sum(subject.versions(draws) for subject in subjects), unit="version") as bar:
        for number, subject in enumerate(subjects):
            rows += subject.rows(draws, np.random.default_rng([number, 45]), bar.update)
    content = records.written(rows, Row)
    record = {
        "command": command,
        "versions": {"python": platform.python_version(), "numpy": np.__version__, **pretrained.versions()},
        "machine": platform.machine(),
        "sha256": hashlib.sha256(content).hexdigest(),
        "model": file_hash(model) if model.is_file() else None,
        "weights": WEIGHTS,
        "settings": {"draws": draws, "tokens": pretrained.JUDGED, "alone": ALONE, "windows": PARTS * IN_PART},
    }
    out.mkdir(parents=True, exist_ok=True)
    path = out / "sinks.csv"
    replace(path, content)
    replace(path.with_suffix(".json"), (json.dumps(record, indent=2) + "\n").encode())
    return path


@dataclass(frozen=True)
class _Subject:
    """A model on a text of n tokens: its bits per character, as it is and in a version.

    loss : takes a function from the weights of a layer to those that mix its values.
    shares : the mean weight of each head on the first token, shape (layers, heads).
    lengths : of the first token's values over the median of the others', for each layer; None where not asked.
    alone : whether windows of `ALONE` keys are all that is asked.
    """

    model: str
    text: str
    n: int
    whole: float
    loss: Callable[[Change], float]
    shares: Floats
    lengths: Floats | None = None
    alone: bool = False

    def versions(self, draws: int) -> int:
        return len(list(self._changes(draws, np.random.default_rng(0))))

    def rows(self, draws: int, rng: np.random.Generator, report: Callable[[], Any]) -> Iterator[Row]:
        head = (self.model, self.text)
        yield Row(*head, "whole", 0, "none", 0, _digits(self.whole))
        for change, size, choice, draw, version in self._changes(draws, rng):
            yield Row(*head, change, size, choice, draw, _digits(self.loss(version)))
            report()
        for layer, ratio in enumerate([] if self.lengths is None else self.lengths):
            yield Row(*head, "length", layer, "first", 0, _digits(ratio))

    def _changes(self, draws: int, rng: np.random.Generator) -> Iterator[tuple[str, int, str, int, Change]]:
        other = int(rng.integers(1, min(NEAR, self.n)))
        if self.alone:
            for choice, kept in (("none", ()), ("first", (0,)), ("another", (other,))):
                yield "window", ALONE, choice, 0, self._seeing("window", ALONE, *kept)
            return
        for size in WINDOWS:
            for choice, many in KEPT.items():
                yield "window", size, choice, 0, self._seeing("window", size, *range(many))
            yield "window", size, "another", 0, self._seeing("window", size, other)
        for size in STRIDES:
            yield "stride", size, "none", 0, self._seeing("stride", size)
            yield "stride", size, "first", 0, self._seeing("stride", size, 0)
        for hundredths in HEADS:
            many = max(1, round(self.shares.size * hundredths / 100))
            for order in ORDERS:
                for draw in range(1 if order == "most" else draws):
                    yield "heads", many, order, draw, _without(self._chosen(order, many, rng))

    def _seeing(self, change: str, size: int, *kept: int) -> Change:
        mask = _seen_keys(self.n, change, size, kept)
        return lambda layer, P: renormalised(P, mask)

    def _chosen(self, order: str, many: int, rng: np.random.Generator) -> Floats:
        """Which heads go, shape (layers, heads)."""
        places = np.argsort(-self.shares, axis=None, kind="stable")
        gone = np.zeros(self.shares.size, dtype=bool)
        gone[(rng.permutation(places) if order == "random" else places)[:many]] = True
        gone = gone.reshape(self.shares.shape)
        return np.asarray(rng.permuted(gone, axis=1) if order == "same layers" else gone)


def _without(gone: Floats) -> Change:
    return lambda layer, P: np.where(gone[layer][:, None, None], 0, P)


def _small() -> Iterator[_Subject]:
    """The decoder that ships, on stretches of its held-out text."""
    decoder = load_decoder()
    _, held_out = corpus.split(corpus.shipped_documentation())
    windows = removal.windows(decoder, held_out, PARTS * IN_PART)
    for part, ids in enumerate(np.split(windows, PARTS)):

        def loss(change: Change | None, ids: Floats = ids) -> float:
            return float(removal.bits(decoder, ids, weights=change).mean())

        shares = sink_weight(removal.attention(decoder, ids), causal=True).mean(axis=0)
        yield _Subject("own decoder", f"held out {part}", decoder.context, loss(None), loss, shares)


def _large(path: Path, report: Callable[[], Any]) -> Iterator[_Subject]:
    """The pretrained decoder, on its two texts and on sections of documentation."""
    model, tokenizer = pretrained.load_llama(path, report)
    texts = pretrained.texts()
    more = {title: corpus.section(corpus.shipped_documentation(), title) for title in SECTIONS}
    for name, text in (texts | more).items():
        ids = pretrained.token_numbers(model, tokenizer, text, pretrained.JUDGED)
        characters = len(tokenizer.text(ids)) - len(tokenizer.text(ids[:1]))
        shares: list[Floats] = []

        def noted(layer: int, P: Floats, shares: list[Floats] = shares) -> Floats:
            shares.append(P[:, 1:, 0].mean(axis=-1, dtype=float))
            return P

        def loss(change: Change, ids: list[int] = ids, characters: int = characters) -> float:
            return float(bits(model.run(ids, weights=change).logits, ids).sum() / characters)

        whole = model.run(ids, weights=noted)
        yield _Subject(
            "pretrained decoder", name, len(ids), float(bits(whole.logits, ids).sum() / characters),
            loss, np.stack(shares), _ratios(whole.V), alone=name in more,
        )  # fmt: skip
        report()


def _ratios(V: Floats) -> Floats:
    """The length of the first token's values over the median of the others': for each layer, mean over key heads."""
    lengths = np.linalg.norm(V.astype(float), axis=-1)
    return np.asarray((lengths[..., 0] / np.median(lengths[..., 1:], axis=-1)).mean(axis=1))


def _digits(value: float) -> float:
    """Five significant digits: the rest depends on the machine."""
    return float(f"{float(value):.5g}")


if __name__ == "__main__":
    raise SystemExit(main())
