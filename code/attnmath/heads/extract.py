"""``python -m attnmath.heads.extract MODEL``: the queries and keys of a local model's heads, as one small file.

MODEL is a directory in Hugging Face's layout (config.json, tokenizer.json, model.safetensors).
Without further options the command re-makes the samples of the package, byte for byte, and
first checks that the weights are the ones they were made from.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import zipfile
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from attnmath.attention import attention_weights
from attnmath.checks import instance, silent
from attnmath.heads.encoder import Encoder, load_encoder, tokenize, weights_hash
from attnmath.heads.load import SAMPLES

#: SHA-256 of the weights of sentence-transformers/all-MiniLM-L6-v2 (model.safetensors).
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def archive(arrays: dict[str, Shaped[np.ndarray, "..."]]) -> bytes:
    """Encode arrays as an .npz file whose bytes depend on the arrays alone: no dates, no compression."""
    if not isinstance(arrays, dict) or not all(isinstance(name, str) for name in arrays):
        raise TypeError(f"arrays: expected a dictionary from names to arrays, got {type(arrays).__name__}")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as zipped:
        for name, array in arrays.items():
            member = io.BytesIO()
            if not isinstance(array, np.ndarray) or array.dtype.hasobject:
                raise TypeError(f"arrays: expected numpy arrays without objects, got {type(array).__name__} for {name}")
            np.lib.format.write_array(member, array, allow_pickle=False)
            zipped.writestr(zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0)), member.getvalue())
    return buffer.getvalue()


def extract(encoder: Encoder, directory: Path, text: str) -> tuple[bytes, float]:
    """Encode Q, K and tokens of a text in half precision; also the largest change of a weight by the rounding."""
    instance(encoder, Encoder, "encoder")
    tokens, ids = tokenize(directory, text, longest=encoder.longest)
    Q, K = encoder.queries_and_keys(ids)
    with silent():  # an overflow is an error below
        half = {"Q": Q.astype(np.float16), "K": K.astype(np.float16), "tokens": np.asarray(tokens)}
    if not all(np.all(np.isfinite(half[name])) for name in "QK"):
        raise ValueError("text: expected queries and keys within half precision, got an overflow")
    rounded = attention_weights(*(half[name].astype(np.float64) for name in "QK"))
    return archive(half), float(np.abs(rounded - attention_weights(Q, K)).max())


def main(arguments: list[str] | None = None) -> int:
    """Extract the shipped samples, or the text of a file; return 0."""
    parser = argparse.ArgumentParser(prog="python -m attnmath.heads.extract", description=__doc__)
    parser.add_argument("model", type=Path, help="a local model directory")
    parser.add_argument("--out", type=Path, default=Path(), help="the folder to write to (default: here)")
    parser.add_argument("--text", type=Path, help="a text file of your own (default: the samples of the package)")
    parser.add_argument("--any-weights", action="store_true", help="take any BERT-layout model, whatever its hash")
    options = parser.parse_args(arguments)
    try:
        found = weights_hash(options.model)
        if found != WEIGHTS and not options.any_weights:
            parser.error(f"model: expected weights with SHA-256 {WEIGHTS}, got {found} (--any-weights takes them)")
        texts = {options.text.stem: options.text.read_text(encoding="utf-8")} if options.text else shipped_texts()
        encoder = load_encoder(options.model)
        results = {name: extract(encoder, options.model, text) for name, text in texts.items()}
    except ModuleNotFoundError as missing:
        parser.error(f"{missing.name} is not installed: pip install attnmath[model] brings it")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for name, (content, change) in results.items():
        path = options.out / f"{name}.npz"
        try:
            options.out.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            parser.error(f"argument --out: expected a folder to write to, got {options.out} ({error.strerror})")
        print(f"{path}  {len(content)} bytes  sha256 {hashlib.sha256(content).hexdigest()}")
        print(f"  half precision changes an attention weight by {change:.1e} at most")
    return 0


def shipped_texts() -> dict[str, str]:
    """The texts of the samples that ship with the package."""
    folder = resources.files("attnmath") / "data"
    return {name: (folder / f"{name}.txt").read_text(encoding="utf-8") for name in SAMPLES}


if __name__ == "__main__":
    raise SystemExit(main())
