"""``python -m attnmath.heads.weights --out DIR``: train the decoder of one seed again, and keep its weights.

DIR gets decoder_weights.npz, every parameter in half precision, and decoder_weights.json, which says how they came
about. The training is that of ``python -m attnmath.heads.train``. For a seed that the package ships, the record holds
the largest distance of queries and keys from the shipped ones. A training that is done is not repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnmath.heads import corpus
from attnmath.heads.extract import archive
from attnmath.heads.load import load_decoders, read_decoder
from attnmath.heads.train import EXTRA, STEPS, half, known_device, numbers, replace, stop, torch_version

if TYPE_CHECKING:
    from attnmath.heads.decoder import Settings


def main(arguments: list[str] | None = None) -> int:
    """Train if nothing is there yet, write the two files; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m attnmath.heads.weights", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"training steps, default: {STEPS}")
    parser.add_argument("--device", default="cpu", help="torch's name of where to train: cpu, cuda, ...")
    given = parser.parse_args(arguments)
    line = " ".join(["python -m attnmath.heads.weights", *(sys.argv[1:] if arguments is None else arguments)])
    try:
        path = run(given.out, given.seed, given.steps, device=given.device, command=line)
    except KeyboardInterrupt:
        return stop("weights", "interrupted; nothing was written", 130)
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        reason = f'{error.name} is not installed; it comes with the extra "train": pip install ".[train]"'
        return stop("weights", reason, 1)
    except OSError as error:
        reason = f"cannot read or write {error.filename or given.out} ({error.strerror or error})"
        return stop("weights", reason, 1)
    except (ValueError, TypeError) as error:
        return stop("weights", f"error: {error}", 2)
    print(f"{path}, described in {path.with_suffix('.json')}")
    return 0


def run(out: Path, seed: int, steps: int, *, device: str = "cpu", command: str = "") -> Path:
    """Train unless the same training is done, write the two files into `out`, and return the path of the first."""
    from attnmath.heads.decoder import Settings

    settings = Settings(seed, steps=steps)
    known_device(device)
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

    from attnmath.heads.decoder import bits_per_character, train

    alphabet = sorted(set(text))
    learn, held_out = corpus.split(text)
    ids, others = (numbers(part, alphabet) for part in (learn, held_out))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the other command: the order of sums must not depend on the number of cores
    start = time.perf_counter()
    try:
        with tqdm(total=settings.steps, unit="step", desc=f"seed {settings.seed}") as bar:
            model = train(settings, ids, len(alphabet), device=device, report=lambda step, loss: bar.update() and None)
        seconds = time.perf_counter() - start
        passage = torch.from_numpy(numbers(corpus.passage(held_out, settings.context), alphabet)).to(device)
        Q, K = (half(value) for value in model.queries_and_keys(passage))
        exact = bits_per_character(model, others)
        rounded = {name: half(value.detach().cpu().numpy()) for name, value in model.state_dict().items()}
        model.load_state_dict({name: torch.from_numpy(value.astype(np.float32)) for name, value in rounded.items()})
        bits = {"held_out": exact, "held_out_rounded": bits_per_character(model, others)}
    finally:
        torch.set_num_threads(threads)
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
        record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        read_decoder(path)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return False
    return all(record.get(name) == value for name, value in {**wanted, "sha256": found}.items())


if __name__ == "__main__":
    raise SystemExit(main())
