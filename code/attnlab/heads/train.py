"""``python -m attnlab.heads.train --out DIR``: train small decoders from several seeds, keep their queries and keys.

The decoders predict the next character of Python's documentation, and differ in their seed alone. A seed that is done
is not repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int, Shaped

from attnlab import commands
from attnlab.devices import torch_device
from attnlab.heads import corpus
from attnlab.records import archive, arrays_of, replace, text_of
from attnlab.threads import one_thread
from attnmath.arrays import Numpy
from attnmath.checks import silent
from attnmath.operator.attention import attention_weights, causal_mask

if TYPE_CHECKING:
    from attnlab.heads.decoder import Settings

SEEDS, STEPS = (0, 1, 2, 3), 1000

_COMMAND = commands.Command(
    "attnlab.heads.train",
    __doc__,
    takes="about 25 minutes for the four seeds on a processor, six for each seed.",
    writes="decoder.npz in the folder --out, the queries and keys of every head on a passage that was held out, before "
    "and after training; decoder.json, a record of the command, versions, settings and bits per character; and the "
    "folder decoder.parts with each seed by itself, so that seeds can be added.",
    kept="finished seeds are in {out}, and the same command does the others",
    extra="train",
)


def main(arguments: list[str] | None = None) -> int:
    """Train the missing seeds and write the two files; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("--out", type=commands.folder, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--seeds", nargs="+", type=commands.whole(0), default=list(SEEDS), metavar="SEED",
                        help="seeds of the first weights and of the order of the text; default: 0 1 2 3")  # fmt: skip
    parser.add_argument("--steps", type=commands.whole(1), default=STEPS, metavar="N",
                        help=f"training steps of each seed; default: {STEPS}")  # fmt: skip
    parser.add_argument("--device", default="cpu", help="where torch trains: cpu, cuda, ...; default: cpu")
    parser.add_argument("--text", type=commands.existing_file, metavar="FILE",
                        help="a text in UTF-8 to learn; default: the documentation of this Python")  # fmt: skip
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    path = run(given.out, given.seeds, given.steps, device=given.device, text=given.text, command=line)
    return f"{path}, described in {path.with_suffix('.json')}"


def run(
    out: Path, seeds: Sequence[int], steps: int, *, device: str = "cpu", text: Path | None = None, command: str = ""
) -> Path:
    """Train what is missing, write decoder.npz and decoder.json into the folder `out`, and return the first's path."""
    from attnlab.heads.decoder import Settings

    settings = [Settings(seed, steps=steps) for seed in seeds]
    if not settings or len(set(seeds)) != len(seeds):
        raise ValueError(f"seeds: expected at least one, each once, got {list(seeds)}")
    torch_device(device)
    source = corpus.python_documentation() if text is None else corpus.each_paragraph_once(text_of(text, "text"))
    parts = out / "decoder.parts"
    parts.mkdir(parents=True, exist_ok=True)
    found = [_done(one, source, device, parts) for one in settings]
    arrays = {name: np.stack([part[name] for part in found]) for name in ("Q", "K", "Q_untrained", "K_untrained")}
    learn, held_out = corpus.split(source)
    tokens = np.asarray(list(corpus.passage(held_out, settings[0].context)))
    content = archive({**arrays, "tokens": tokens, "seeds": np.asarray(seeds)})
    path = out / "decoder.npz"
    replace(path, content)
    record = {
        "command": command,
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "torch": torch_version()},
        "machine": platform.machine(),
        "sha256": hashlib.sha256(content).hexdigest(),
        "text": {"source": "pydoc_data.topics, each paragraph once" if text is None else text.name,
                 "sha256": hashlib.sha256(source.encode()).hexdigest(), "characters": len(source),
                 "learned": len(learn), "held_out": len(held_out), "alphabet": len(set(source))},
        "settings": {name: value for name, value in asdict(settings[0]).items() if name != "seed"},
        "bits_per_character": {f"{name} of the part learned": round(corpus.ngram_bits(held_out, learn, context), 4)
                               for context, name in enumerate(("unigrams", "bigrams", "trigrams"))},
        "runs": [json.loads(str(part["record"])) for part in found],
    }  # fmt: skip
    replace(path.with_suffix(".json"), (json.dumps(record, indent=2) + "\n").encode())
    return path


def one_seed(settings: Settings, text: str, device: str) -> dict[str, Shaped[Numpy, "..."]]:
    """Train one decoder; return Q and K of its heads before and after, in half precision, and a record in JSON."""
    import torch
    from tqdm import tqdm

    from attnlab.heads.decoder import bits_per_character, initial, train

    alphabet = sorted(set(text))
    learn, held_out = corpus.split(text)
    tokens = numbers(corpus.passage(held_out, settings.context), alphabet)
    ids, others = (numbers(part, alphabet) for part in (learn, held_out))
    start = time.perf_counter()
    with one_thread():  # the order of sums, and so the result, must not depend on the number of cores
        with tqdm(total=settings.steps, unit="step", desc=f"seed {settings.seed}") as bar:

            def show(step: int, loss: float) -> None:
                bar.set_postfix(bits=f"{loss / np.log(2):.2f}", refresh=False)
                bar.update()

            after = train(settings, ids, len(alphabet), device=device, report=show)
        seconds = time.perf_counter() - start
        before = initial(settings, len(alphabet)).to(device)
        arrays: dict[str, Any] = {}
        for name, model in (("", after), ("_untrained", before)):
            exact = model.queries_and_keys(torch.from_numpy(tokens).to(device))
            arrays |= {f"{kind}{name}": half(value) for kind, value in zip("QK", exact, strict=True)}
            if model is after:
                change = rounding(*exact)
        bits = {"untrained": bits_per_character(before, others), "held_out": bits_per_character(after, others),
                "learned": bits_per_character(after, ids[: len(others)])}  # fmt: skip
    record = {"seed": settings.seed, "bits_per_character": {name: round(value, 4) for name, value in bits.items()},
              "device": device, "seconds": round(seconds), "rounding": float(f"{change:.1e}")}  # fmt: skip
    return {**arrays, "record": np.asarray(json.dumps(record))}


def half(exact: Shaped[Numpy, "*shape"]) -> Shaped[Numpy, "*shape"]:
    """Round to half precision; what is too large for it is a `ValueError`."""
    with silent():
        rounded = np.asarray(exact).astype(np.float16)
    if not np.all(np.isfinite(rounded)):
        raise ValueError("steps: expected queries and keys within half precision, got an overflow or NaN")
    return rounded


def rounding(Q: Shaped[Numpy, "... n d_k"], K: Shaped[Numpy, "... n d_k"]) -> float:
    """Return the largest change of a causal attention weight by the rounding of Q and K to half precision."""
    mask = causal_mask(Q.shape[-2])
    weights, rounded = (
        attention_weights(*(a.astype(float) for a in pair), mask=mask) for pair in ((Q, K), (half(Q), half(K)))
    )
    return float(np.abs(weights - rounded).max())


def _done(settings: Settings, text: str, device: str, parts: Path) -> dict[str, Any]:
    """Return a seed's arrays from its file, which is named by everything that they depend on, or make them now."""
    key = json.dumps([asdict(settings), hashlib.sha256(text.encode()).hexdigest(), device])
    path = parts / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.npz"
    if not path.exists():
        replace(path, archive(one_seed(settings, text, device)))
    return arrays_of(path, "a seed that this command has trained (without the file it is trained again)")


def numbers(text: str, alphabet: list[str]) -> Int[Numpy, "length"]:
    """Return the place of each character in the alphabet."""
    place = {character: number for number, character in enumerate(alphabet)}
    return np.asarray([place[character] for character in text], dtype=np.int64)


def torch_version() -> str:
    """Return the version of torch."""
    import torch

    return str(torch.__version__)


if __name__ == "__main__":
    raise SystemExit(main())
