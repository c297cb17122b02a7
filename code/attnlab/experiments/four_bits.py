"""``python -m attnlab.experiments.four_bits MODEL --out DIR``: what weights of 4 bits do to what is measured of heads.

MODEL is the file of the pretrained decoder that the book measures, whose matrices were rounded to 4 bits (Q4_1: blocks
of 32 successive entries of a row, each entry one of 16 equally spaced numbers). The weights before are not at hand, so
that two other things are measured:

* rounded: the small decoder whose weights ship, with the matrices of its layers rounded in the same way;
* disturbed: both models with a random error in each entry of these matrices, uniform over one step of the rounding,
  which is as large as the error of a rounding is, and independent of it.

Embeddings, which the file holds in 8 bits, and norms are left as they are.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Real
from numpy.typing import NDArray

from attnlab import commands, records
from attnlab.heads import corpus, pretrained, removal
from attnlab.heads.llama_gguf import file_hash
from attnlab.heads.load import load_decoder
from attnlab.heads.positional import distance
from attnlab.records import replace
from attnlab.threads import one_thread
from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import floats, generator, positive_integer
from attnmath.matrix.rank import condition_number, effective_rank, entropy_rank
from attnmath.matrix.spectrum import row_stochastic, singular_values
from attnmath.operator.attention import entropy
from attnmath.sparsity.closed_forms import sparsity

Floats = NDArray[Any]

#: Entries of a block, and the largest number of a rounded entry.
BLOCK, LARGEST = 32, 15
#: Random errors, and windows of held-out text on which the small decoder is judged.
DRAWS, WINDOWS = 4, 96
#: The logarithm of a condition number is cut here, beyond the precision of its singular values.
_CONDITION = 16.0

_COMMAND = commands.Command(
    "attnlab.experiments.four_bits",
    __doc__,
    takes="about three minutes on a processor.",
    writes="four_bits.csv in the folder --out, a row for each model, text, change and measure; and four_bits.json, a "
    "record of the command, versions and settings.",
    kept="nothing was written, and the same command begins again",
    extra="model",
)


@dataclass(frozen=True)
class Row:
    """One measure of the heads of a model on a text, before and after a change of its weights.

    draw : number of the random error; 0 for a rounding.  before, after : means over the heads.
    moved : mean over the heads of the absolute difference.  spread : standard deviation over the heads before.
    For bits per character, of the model as a whole, `moved` is the difference and `spread` 0.
    """

    model: str
    text: str
    change: str
    draw: int
    measure: str
    before: float
    after: float
    moved: float
    spread: float


def load_four_bits() -> tuple[Row, ...]:
    """Load the table that ships with the package, after checking its hash."""
    return records.parsed(records.shipped("four_bits"), Row, "four_bits.csv")


def rounded(W: Real[ArrayLike, "rows columns"]) -> Float[Numpy, "rows columns"]:
    """Round a matrix as Q4_1 does: in each block to its minimum plus 0 to 15 steps of a fifteenth of its range.

    W : float32 is enough; the columns are a multiple of 32.  Minimum and step are kept in half precision.

    >>> rounded([[0.0, 15.0, *[7.3] * 30]])[0, :3]
    array([ 0., 15.,  7.])
    """
    blocks = _blocks(W)
    low = blocks.min(axis=-1, keepdims=True)
    step = _step(blocks)
    numbers = np.floor((blocks - low) / np.where(step > 0, step, 1) + 0.5).clip(0, LARGEST)
    step, low = (_half(part) for part in (step, low))
    return (numbers * step + low).reshape(len(blocks), -1)


def disturbed(W: Real[ArrayLike, "rows columns"], *, rng: np.random.Generator) -> Float[Numpy, "rows columns"]:
    """Add to each entry an independent error, uniform over one step of the rounding of its block.

    >>> W = rounded(np.random.default_rng(0).standard_normal((8, 64)))
    >>> error = disturbed(W, rng=np.random.default_rng(1)) - W
    >>> bool(abs(error).max() < (W.max() - W.min()) / 30)
    True
    """
    blocks = _blocks(W)
    error = generator(rng).uniform(-0.5, 0.5, blocks.shape) * _step(blocks)
    return (blocks + error).reshape(len(blocks), -1)


def measures(A: Real[ArrayLike, "... n n"]) -> dict[str, Float[Numpy, "..."]]:
    """What the chapters measure of attention matrices, by its name: a number for each matrix.

    >>> found = measures(np.full((4, 4), 0.25))
    >>> round(float(found["row entropy"]), 3), int(found["effective rank"])
    (1.386, 1)
    """
    A = np.asarray(row_stochastic(A))
    sigma = singular_values(A)
    with np.errstate(divide="ignore"):
        condition = np.log10(condition_number(A))
    return {
        "row entropy": entropy(A).mean(axis=-1),
        "sparsity S": sparsity(A).mean(axis=-1),
        "weight on the first token": A[..., 1:, 0].mean(axis=-1),
        "effective rank": effective_rank(sigma, 0.1).astype(float),
        "entropy rank": entropy_rank(sigma),
        "log10 of the condition number": np.minimum(condition, _CONDITION),
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the two files; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("model", type=commands.existing_path, metavar="MODEL",
                        help="the GGUF file, or the folder, of a model of Llama's kind")  # fmt: skip
    parser.add_argument("--out", type=commands.folder, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--draws", type=commands.whole(1), default=DRAWS, metavar="N",
                        help=f"random errors for each model and text; default: {DRAWS}")  # fmt: skip
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    path = run(given.model, given.out, given.draws, command=line)
    return f"{path}, described in {path.with_suffix('.json')}"


def run(model: Path, out: Path, draws: int = DRAWS, *, command: str = "") -> Path:
    """Measure, write four_bits.csv and four_bits.json into `out`, and return the path of the table."""
    from tqdm import tqdm

    draws = positive_integer(draws, "draws")
    with one_thread(), tqdm(desc="reading", unit="part") as bar:
        subjects = [_small(), *_large(model, bar.update)]
    rows: list[Row] = []
    versions = sum(1 + len(list(subject.changes(draws))) for subject in subjects)
    with one_thread(), tqdm(total=versions, unit="version") as bar:
        for subject in subjects:
            before = subject.run(subject.matrices)
            bar.update()
            for change, draw in subject.changes(draws):
                rows += _compared(subject, change, draw, before, subject.run(_changed(subject, change, draw)))
                bar.update()
    content = records.written(rows, Row)
    record = {
        "command": command,
        "versions": {"python": platform.python_version(), "numpy": np.__version__, **pretrained.versions()},
        "machine": platform.machine(),
        "sha256": hashlib.sha256(content).hexdigest(),
        "model": file_hash(model) if model.is_file() else None,
        "settings": {"draws": draws, "windows": WINDOWS, "tokens": pretrained.TOKENS, "judged": pretrained.JUDGED},
    }
    out.mkdir(parents=True, exist_ok=True)
    path = out / "four_bits.csv"
    replace(path, content)
    replace(path.with_suffix(".json"), (json.dumps(record, indent=2) + "\n").encode())
    return path


@dataclass(frozen=True)
class _Subject:
    """A model on a text: the matrices of its layers, and what it gives with others in their place.

    run : from matrices to the attention weights of all heads, shape (heads, n, n), and to bits per character.
    exact : whether the matrices are as they were trained, so that a rounding changes them.
    """

    model: str
    text: str
    matrices: Mapping[str, Floats]
    run: Callable[[Mapping[str, Floats]], tuple[Floats, float]]
    exact: bool

    def changes(self, draws: int) -> Iterator[tuple[str, int]]:
        if self.exact:
            yield "rounded", 0
        yield from (("disturbed", draw) for draw in range(draws))


def _changed(subject: _Subject, change: str, draw: int) -> dict[str, Floats]:
    rng = np.random.default_rng([draw, 44])
    one: Callable[[Floats], Floats] = rounded if change == "rounded" else lambda W: disturbed(W, rng=rng)
    return {name: one(W).astype(np.float32) for name, W in subject.matrices.items()}


def _compared(
    subject: _Subject, change: str, draw: int, before: tuple[Floats, float], after: tuple[Floats, float]
) -> Iterator[Row]:
    head = (subject.model, subject.text, change, draw)
    first, second = measures(before[0]), measures(after[0])
    for name, old in first.items():
        moved, new = np.abs(second[name] - old), second[name]
        yield Row(*head, name, *map(_digits, (old.mean(), new.mean(), moved.mean(), old.std(ddof=1))))
    apart = _digits(distance(before[0], after[0]).mean())
    yield Row(*head, "weight at another place", 0.0, apart, apart, 0.0)
    old, new = before[1], after[1]
    yield Row(*head, "bits per character", _digits(old), _digits(new), _digits(new - old), 0.0)


def _small() -> _Subject:
    """The decoder that ships, on the first characters of its held-out text."""
    decoder = load_decoder()
    _, held_out = corpus.split(corpus.shipped_documentation())
    windows = removal.windows(decoder, held_out, WINDOWS)
    shown = decoder.numbers(corpus.passage(held_out, decoder.context + 1))[None]
    matrices = {name: W for name, W in decoder.parameters.items() if name.startswith("layers.") and W.ndim == 2}

    def run(given: Mapping[str, Floats]) -> tuple[Floats, float]:
        other = dataclasses.replace(decoder, parameters={**decoder.parameters, **given})
        A = removal.attention(other, shown)[0]
        return A.reshape(-1, *A.shape[2:]), float(removal.bits(other, windows).mean())

    return _Subject("own decoder", "held out", matrices, run, exact=True)


def _large(path: Path, report: Callable[[], Any]) -> Iterator[_Subject]:
    """The pretrained decoder, on each of its two texts."""
    model, tokenizer = pretrained.load_llama(path, report)
    matrices = {name: W for name, W in model.parameters.items() if name.startswith("layers.") and W.ndim == 2}
    for name, text in pretrained.texts().items():
        ids = pretrained.token_numbers(model, tokenizer, text, pretrained.JUDGED)

        def run(given: Mapping[str, Floats], text: str = text, ids: list[int] = ids) -> tuple[Floats, float]:
            other = dataclasses.replace(model, parameters={**model.parameters, **given})
            A = pretrained.heads_of(other, tokenizer, text, length=pretrained.TOKENS).weights()
            return A.reshape(-1, *A.shape[2:]), pretrained.bits_per_character(other, tokenizer, ids)

        yield _Subject("pretrained decoder", name, matrices, run, exact=False)


def _blocks(W: ArrayLike) -> Floats:
    given = floats(W, "W", ndim=2)
    if given.shape[1] % BLOCK:
        raise ValueError(f"W: expected a multiple of {BLOCK} columns, got {given.shape[1]}")
    if not np.abs(given).max() <= np.finfo(np.float16).max / 2:
        raise ValueError("W: expected entries within half precision, got a larger one")
    return given.reshape(len(given), -1, BLOCK)


def _step(blocks: Floats) -> Floats:
    return np.asarray(np.ptp(blocks, axis=-1, keepdims=True) / LARGEST)


def _half(numbers: Floats) -> Floats:
    return numbers.astype(np.float16).astype(np.float64)


def _digits(value: float) -> float:
    """Four significant digits: the rest depends on the machine."""
    return float(f"{float(value):.4g}")


if __name__ == "__main__":
    raise SystemExit(main())
