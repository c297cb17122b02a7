"""``python -m attnlab.heads.extract MODEL``: the queries and keys of a local model's heads, as one small file.

MODEL is a folder in Hugging Face's layout (config.json, tokenizer.json, model.safetensors) with a model of BERT's or
RoBERTa's kind; one that cannot be read exactly is refused, with the name of what is in the way. Nothing is downloaded.
Without further options the command makes the samples of the package again, byte for byte, and checks first that the
weights are the ones they were made from. For a text and a model of your own give --text and --any-weights;
``attnlab.heads.read_heads`` reads the file.
"""

from __future__ import annotations

import argparse
import hashlib
from importlib import resources
from pathlib import Path

import numpy as np

from attnlab import commands
from attnlab.heads.encoder import Encoder, load_encoder, tokenize, weights_hash
from attnlab.heads.load import SAMPLES
from attnlab.records import archive, replace, text_of
from attnmath.checks import instance, silent
from attnmath.operator.attention import attention_weights

#: SHA-256 of the weights of sentence-transformers/all-MiniLM-L6-v2 (model.safetensors).
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


_COMMAND = commands.Command(
    "attnlab.heads.extract",
    __doc__,
    takes="some seconds for a text of some hundred tokens.",
    writes="a file NAME.npz for each text in the folder --out, named after the text's file, with arrays Q and K of "
    "shape (layers, heads, n, d_k) in half precision and the tokens; a file of that name is replaced.",
    kept="a file that was not finished is not there, and the same command begins again",
    extra="model",
)


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
    """Extract the shipped samples, or the text of a file; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("model", type=commands.existing_folder, metavar="MODEL", help="the folder of a local model")
    parser.add_argument("--out", type=commands.folder, default=Path(), metavar="DIR",
                        help="the folder to write to; default: the current one")  # fmt: skip
    parser.add_argument("--text", type=commands.existing_file, metavar="FILE",
                        help="a text in UTF-8 of your own; default: the samples of the package")  # fmt: skip
    parser.add_argument("--any-weights", action="store_true",
                        help="take any model of such a kind, whatever the hash of its weights")  # fmt: skip
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    found = weights_hash(given.model)
    if found != WEIGHTS and not given.any_weights:
        raise ValueError(f"model: expected weights with SHA-256 {WEIGHTS}, got {found} (--any-weights takes them)")
    texts = {given.text.stem: text_of(given.text, "text")} if given.text else shipped_texts()
    encoder = load_encoder(given.model)
    results = {name: extract(encoder, given.model, text) for name, text in texts.items()}
    given.out.mkdir(parents=True, exist_ok=True)
    said = []
    for name, (content, change) in results.items():
        path = given.out / f"{name}.npz"
        replace(path, content)
        said.append(f"{path}  {len(content)} bytes  sha256 {hashlib.sha256(content).hexdigest()}")
        said.append(f"  half precision changes an attention weight by {change:.1e} at most")
    return "\n".join(said)


def shipped_texts() -> dict[str, str]:
    """The texts of the samples that ship with the package."""
    folder = resources.files("attnlab") / "data"
    return {name: (folder / f"{name}.txt").read_text(encoding="utf-8") for name in SAMPLES}


if __name__ == "__main__":
    raise SystemExit(main())
