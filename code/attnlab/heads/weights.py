"""``python -m attnlab.heads.weights --out DIR``: train the decoder of one seed again, and keep its weights.

The training is that of ``python -m attnlab.heads.train``. For a seed that the package ships, the record holds the
largest distance of queries and keys from the shipped ones. A training that is done is not repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab import commands
from attnlab.devices import torch_device
from attnlab.heads import corpus
from attnlab.heads.load import load_decoders, read_decoder
from attnlab.heads.train import STEPS, half, numbers, torch_version
from attnlab.records import archive, json_object, replace
from attnlab.threads import one_thread

if TYPE_CHECKING:
    from attnlab.heads.decoder import Settings

_COMMAND = commands.Command(
    "attnlab.heads.weights",
    __doc__,
    takes="about five minutes on a processor.",
    writes="decoder_weights.npz in the folder --out, every parameter in half precision; and decoder_weights.json, a "
    "record of the command, versions, settings and bits per character.",
    kept="nothing was written, and the same command begins again",
    extra="train",
)


def main(arguments: list[str] | None = None) -> int:
    """Train if nothing is there yet, write the two files; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("--out", type=commands.folder, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--seed", type=commands.whole(0), default=0, metavar="SEED",
                        help="seed of the first weights and of the order of the text; default: 0")  # fmt: skip
    parser.add_argument("--steps", type=commands.whole(1), default=STEPS, metavar="N",
                        help=f"training steps; default: {STEPS}")  # fmt: skip
    parser.add_argument("--device", default="cpu", help="where torch trains: cpu, cuda, ...; default: cpu")
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    path = run(given.out, given.seed, given.steps, device=given.device, command=line)
    return f"{path}, described in {path.with_suffix('.json')}"


def run(out: Path, seed: int, steps: int, *, device: str = "cpu", command: str = "") -> Path:
    """Train unless the same training is done, write the two files into `out`, and return the path of the first."""
    from attnlab.heads.decoder import Settings

    settings = Settings(seed, steps=steps)
    torch_device(device)
    text = corpus.shipped_documentation()
    path = out / "decoder_weights.npz"
    wanted = {"settings": asdict(settings), "device": device, "text": hashlib.sha256(text.encode()).hexdigest()}
    if _done(path, wanted):
        return path
    out.mkdir(parents=True, exist_ok=True)
    content, measured = one_training(settings, text, device)
    record = {
        "command": command,
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "torch": torch_version()},
        "machine": platform.machine(),
        "sha256": hashlib.sha256(content).hexdigest(),
        **wanted,
        **measured,
    }
    replace(path, content)
    replace(path.with_suffix(".json"), (json.dumps(record, indent=2) + "\n").encode())
    return path


def one_training(settings: Settings, text: str, device: str) -> tuple[bytes, dict[str, Any]]:
    """Train one decoder; return its weights in half precision as a file's content, and what was measured."""
    import torch
    from tqdm import tqdm

    from attnlab.heads.decoder import bits_per_character, train

    alphabet = sorted(set(text))
    learn, held_out = corpus.split(text)
    ids, others = (numbers(part, alphabet) for part in (learn, held_out))
    start = time.perf_counter()
    with one_thread():  # as in the other command: sums must not depend on the number of cores
        with tqdm(total=settings.steps, unit="step", desc=f"seed {settings.seed}") as bar:
            model = train(settings, ids, len(alphabet), device=device, report=lambda step, loss: bar.update() and None)
        seconds = time.perf_counter() - start
        passage = torch.from_numpy(numbers(corpus.passage(held_out, settings.context), alphabet)).to(device)
        Q, K = (half(value) for value in model.queries_and_keys(passage))
        exact = bits_per_character(model, others)
        rounded = {name: half(value.detach().cpu().numpy()) for name, value in model.state_dict().items()}
        model.load_state_dict({name: torch.from_numpy(value.astype(np.float32)) for name, value in rounded.items()})
        bits = {"held_out": exact, "held_out_rounded": bits_per_character(model, others)}
    arrays = {**rounded, "alphabet": np.asarray(alphabet), "heads": np.asarray(settings.heads)}
    return archive(arrays), {
        "parameters": int(sum(value.size for value in rounded.values())),
        "seconds": round(seconds),
        "bits_per_character": {name: round(value, 4) for name, value in bits.items()},
        "distance_from_shipped": _distance(settings, Q, K),
    }


def _distance(settings: Settings, Q: Any, K: Any) -> dict[str, float] | None:
    """Largest difference from the shipped queries and keys, and their largest entry; None for another training."""
    shipped = load_decoders()
    if settings.seed not in shipped.seeds or settings.steps != STEPS or shipped.Q.shape[1:] != Q.shape:
        return None
    place = shipped.seeds.index(settings.seed)
    pairs = ((Q, shipped.Q[place]), (K, shipped.K[place]))
    return {
        "largest": float(f"{max(np.abs(ours - theirs).max() for ours, theirs in pairs):.1e}"),
        "of": float(f"{max(np.abs(theirs).max() for _, theirs in pairs):.1e}"),
    }


def _done(path: Path, wanted: dict[str, Any]) -> bool:
    """Whether the two files are there, belong together and are of the wanted training."""
    try:
        record = json_object(path.with_suffix(".json"), "path")
        read_decoder(path)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return False
    return all(record.get(name) == value for name, value in {**wanted, "sha256": found}.items())


if __name__ == "__main__":
    raise SystemExit(main())
