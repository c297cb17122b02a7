"""``python -m attnlab.experiments.locality --out DIR``: does the locality of a text make heads attend to near places?

Small decoders learn Python's documentation in three forms. Everything else is equal.

* text: as it is;
* scattered: the characters of each window in one fixed random order. The same characters depend on one another, but
  near characters of the text lie at places far apart;
* shuffled: all characters of the text in a random order. No character depends on another.

A row that is done is not repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from attnlab import commands, records
from attnlab.heads import corpus
from attnlab.heads.train import torch_version
from attnlab.records import replace
from attnlab.threads import one_thread
from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import flag, integers, positive_integer
from attnmath.operator.attention import attention_weights, causal_mask

if TYPE_CHECKING:
    from attnlab.heads.decoder import Decoder, Settings


FORMS, SEEDS = ("text", "scattered", "shuffled"), tuple(range(4))
#: Sizes of the decoders, and how many places count as near.
SIZES = {"layers": 2, "heads": 2, "width": 48, "context": 32, "steps": 600, "batch": 16}
NEAR, WINDOWS = 4, 64

_COMMAND = commands.Command(
    "attnlab.experiments.locality",
    __doc__,
    takes="about three minutes for the twelve decoders on a processor.",
    writes="locality.csv in the folder --out, a row for each form of the text and seed; and locality.json, a record of "
    "the command, versions and settings.",
    kept="rows that are done are in {out}, and the same command does the others",
    extra="train",
)


@dataclass(frozen=True)
class Row:
    """Weight of the heads of one decoder on near keys, mean over heads and rows, and what equal scores would give.

    near : keys at most `NEAR` places before the predicted character.  near_in_text : keys at most `NEAR` characters
    from it in the text, before or after; both sets are one where the text is read in its order.
    """

    form: str
    seed: int
    near: float
    near_equal: float
    near_in_text: float
    near_in_text_equal: float
    bits: float


def load_locality() -> tuple[Row, ...]:
    """Load the table that ships with the package, after checking its hash."""
    return records.parsed(records.shipped("locality"), Row, "locality.csv")


def main(arguments: list[str] | None = None) -> int:
    """Train the missing decoders, write the two files; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("--out", type=commands.folder, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=commands.whole(0),
        default=list(SEEDS),
        metavar="SEED",
        help="seeds, for each of which a decoder is trained on each form; default: 0 1 2 3",
    )
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    path = run(given.out, tuple(given.seeds), command=line)
    return f"{path}, described in {path.with_suffix('.json')}"


def run(out: Path, seeds: tuple[int, ...] = SEEDS, *, command: str = "") -> Path:
    """Train what is missing, write locality.csv and locality.json into `out`, and return the path of the table."""
    from tqdm import tqdm

    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 0:
        raise ValueError(f"seeds: expected at least one whole number from 0 on, each once, got {list(seeds)}")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "locality.csv"
    done = {(row.form, row.seed): row for row in records.read(path, Row, "locality")}
    if strange := [row for row in done.values() if row.form not in FORMS]:
        raise ValueError(f"out: expected forms of the text among {', '.join(FORMS)} in {path}, got {strange[0].form!r}")
    text = corpus.shipped_documentation()
    for form, seed in tqdm([(form, seed) for form in FORMS for seed in seeds], unit="decoder"):
        if (form, seed) not in done:
            done[form, seed] = one(form, seed, text)
            ordered = sorted(done.values(), key=lambda row: (FORMS.index(row.form), row.seed))
            replace(path, records.written(ordered, Row))
    record = {
        "command": command,
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "torch": torch_version()},
        "machine": platform.machine(),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "text": corpus.DOCUMENTATION,
        "settings": {**SIZES, "near": NEAR, "windows": WINDOWS},
    }
    replace(path.with_suffix(".json"), (json.dumps(record, indent=2) + "\n").encode())
    return path


def one(form: str, seed: int, text: str) -> Row:
    """Train one decoder on a form of the text, and measure its heads on windows that it has not seen."""
    from attnlab.heads.decoder import Settings, train

    settings = Settings(seed, **SIZES)
    alphabet = sorted(set(text))
    rng = np.random.default_rng([seed, 2])
    parts = [np.asarray([alphabet.index(c) for c in part], dtype=np.int64) for part in corpus.split(text)]
    if form == "shuffled":
        parts = [rng.permutation(part) for part in parts]
    length = settings.context + 1
    order = rng.permutation(length) if form == "scattered" else np.arange(length)
    with one_thread():
        model = train(settings, parts[0], len(alphabet), order=order)
        windows = parts[1][np.arange(WINDOWS)[:, None] * (len(parts[1]) // WINDOWS) + order]
        weights, bits = _measured(model, windows, settings)
    sets = [near_keys(order, NEAR, in_text=in_text) for in_text in (False, True)]
    equal = np.tri(settings.context) / np.arange(1, settings.context + 1)[:, None]
    near, text_near = ([round(float((A * one).sum(axis=-1).mean()), 4) for A in (weights, equal)] for one in sets)
    return Row(form, seed, near[0], near[1], text_near[0], text_near[1], round(bits, 4))


def near_keys(order: Int[ArrayLike, "window"], near: int, *, in_text: bool) -> Float[Numpy, "context context"]:
    """Return 1 for each visible key that is near to the character that a row predicts, and 0 for other keys.

    order : the place in the text of each character, as the model reads them; row i predicts character i + 1.
    in_text : whether near means at most `near` characters away in the text, or places in the model's order.

    >>> near_keys(np.asarray([2, 0, 1]), 1, in_text=True)
    array([[0., 0.],
           [1., 1.]])
    """
    order, near = np.asarray(integers(order, "order")), positive_integer(near, "near")
    if len(order) < 2:
        raise ValueError(f"order: expected at least 2 characters, got {len(order)}")
    place = order if flag(in_text, "in_text") else np.arange(len(order))
    return np.tril(np.abs(place[1:, None] - place[None, :-1]) <= near).astype(float)


def _measured(model: Decoder, windows: np.ndarray, settings: Settings) -> tuple[np.ndarray, float]:
    """Mean attention weights over windows, layers and heads, and bits per character."""
    import torch

    total = np.zeros((settings.context, settings.context))
    for window in windows:
        Q, K = (array.astype(float) for array in model.queries_and_keys(torch.from_numpy(window[:-1])))
        A = attention_weights(Q, K, mask=causal_mask(settings.context))
        total += A.mean(axis=(0, 1)) / len(windows)
    with torch.no_grad():
        logits = model(torch.from_numpy(windows[:, :-1])).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(windows[:, 1:]).flatten())
    return total, float(loss) / float(np.log(2))


if __name__ == "__main__":
    raise SystemExit(main())
