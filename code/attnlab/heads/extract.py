"""``python -m attnlab.heads.extract MODEL``: the queries and keys of a local model's heads, as one small file.

MODEL is a local model, an encoder or a decoder:

* a folder in Hugging Face's layout (config.json, tokenizer.json, model.safetensors) with a model of BERT's,
  RoBERTa's or Llama's kind;
* a GGUF file with a model of Llama's kind, whatever the format of its numbers.

One that cannot be read exactly is refused, with the name of what is in the way. Nothing is downloaded. Without further
options the command makes the samples of the package again that are of this model, byte for byte, and checks first that
the weights are the ones they were made from. For a text and a model of your own give --text and --any-weights;
``attnlab.heads.read_heads`` reads the file.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import platform
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from attnlab import commands
from attnlab.heads import pretrained
from attnlab.heads.encoder import Encoder, load_encoder, tokenize, weights_hash
from attnlab.heads.llama_gguf import file_hash
from attnlab.heads.load import SAMPLES, Heads
from attnlab.heads.local import is_decoder
from attnlab.records import archive, replace, text_of
from attnmath.checks import instance, silent

#: SHA-256 of the weights of sentence-transformers/all-MiniLM-L6-v2 (model.safetensors).
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

#: The content of each file by its name, and the largest change of a weight by its rounding.
_Results = dict[str, tuple[bytes, float]]

_COMMAND = commands.Command(
    "attnlab.heads.extract",
    __doc__,
    takes="some seconds for an encoder and a text of some hundred tokens, half a minute for a decoder of 135 million "
    "parameters.",
    writes="a file NAME.npz for each text in the folder --out, named after the text's file, with arrays Q and K of "
    "shape (layers, heads, n, d_k) in half precision and the tokens; a key head that heads share is there once. "
    "A file of that name is replaced. The samples of a decoder have a record, pretrained.json, of the model and its "
    "loss.",
    kept="a file that was not finished is not there, and the same command begins again",
    extra="model",
    called={"directory": "MODEL", "path": "MODEL", "model": "MODEL"},
)


def extract(encoder: Encoder, directory: Path, text: str) -> tuple[bytes, float]:
    """Encode Q, K and tokens of a text in half precision; also the largest change of a weight by the rounding."""
    instance(encoder, Encoder, "encoder")
    tokens, ids = tokenize(directory, text, longest=encoder.longest)
    return _encoded(Heads(*encoder.queries_and_keys(ids), tuple(tokens)))


def _encoded(heads: Heads) -> tuple[bytes, float]:
    with silent():  # an overflow is an error below
        Q, K = (part.astype(np.float16) for part in (heads.Q, heads.K))
    if not all(np.all(np.isfinite(part)) for part in (Q, K)):
        raise ValueError("text: expected queries and keys within half precision, got an overflow")
    rounded = dataclasses.replace(heads, Q=Q.astype(np.float64), K=K.astype(np.float64))
    change = float(np.abs(rounded.weights() - heads.weights()).max())
    arrays = {"Q": Q, "K": K[:, :: heads.group], "tokens": np.asarray(heads.tokens)}
    return archive(arrays | ({"causal": np.asarray(True)} if heads.causal else {})), change


def main(arguments: list[str] | None = None) -> int:
    """Extract the shipped samples, or the text of a file; return the exit status."""
    parser = _COMMAND.parser()
    parser.add_argument("model", type=commands.existing_path, metavar="MODEL",
                        help="the folder, or the GGUF file, of a local model")  # fmt: skip
    parser.add_argument("--out", type=commands.folder, default=Path(), metavar="DIR",
                        help="the folder to write to; default: the current one")  # fmt: skip
    parser.add_argument("--text", type=commands.existing_file, metavar="FILE",
                        help="a text in UTF-8 of your own; default: the samples of the package")  # fmt: skip
    parser.add_argument("--length", type=commands.whole(1), metavar="N",
                        help="keep the first N tokens of a decoder's text; default: all, of a sample "
                        f"{pretrained.TOKENS}")  # fmt: skip
    parser.add_argument("--any-weights", action="store_true",
                        help="take any model of such a kind, whatever the hash of its weights")  # fmt: skip
    return _COMMAND.carry_out(parser, _run, arguments)


def _run(given: argparse.Namespace, line: str) -> str:
    own = {given.text.stem: text_of(given.text, "text")} if given.text else None
    results, record = (_decoder if is_decoder(given.model) else _encoder)(given, own)
    given.out.mkdir(parents=True, exist_ok=True)
    said = []
    for name, (content, change) in results.items():
        path, digest = given.out / f"{name}.npz", hashlib.sha256(content).hexdigest()
        replace(path, content)
        said.append(f"{path}  {len(content)} bytes  sha256 {digest}")
        said.append(f"  half precision changes an attention weight by {change:.1e} at most")
        record.setdefault("files", {})[path.name] = {"sha256": digest, "rounding": float(f"{change:.1e}")}
    if "model" in record:
        about = {"command": line, "versions": _versions(), "machine": platform.machine()}
        replace(given.out / "pretrained.json", (json.dumps(about | record, indent=2) + "\n").encode())
        said.append(f"{given.out / 'pretrained.json'}  the record of the model and its loss")
    return "\n".join(said)


def _encoder(given: argparse.Namespace, own: dict[str, str] | None) -> tuple[_Results, dict[str, Any]]:
    if given.length is not None:
        raise ValueError("length: expected a decoder; the tokens of an encoder depend on the later ones")
    _check(weights_hash(given.model), WEIGHTS, given)
    encoder = load_encoder(given.model)
    named = shipped_texts() if own is None else own
    return {name: extract(encoder, given.model, text) for name, text in named.items()}, {}


def _decoder(given: argparse.Namespace, own: dict[str, str] | None) -> tuple[_Results, dict[str, Any]]:
    from tqdm import tqdm

    found = "those of a folder" if given.model.is_dir() else file_hash(given.model)
    _check(found, pretrained.WEIGHTS, given)
    with tqdm(desc="reading", unit="part") as bar:
        model, tokenizer = pretrained.load_llama(given.model, bar.update)
    length = given.length or (pretrained.TOKENS if own is None else None)
    named = {f"pretrained_{name}": text for name, text in pretrained.texts().items()} if own is None else own
    results = {}
    with tqdm(total=len(named) * model.sizes.layers, desc="heads", unit="layer") as bar:
        for name, text in named.items():
            results[name] = _encoded(pretrained.heads_of(model, tokenizer, text, length=length, report=bar.update))
    if own is not None:
        return results, {}
    return results, {"model": {"sha256": found, **model.about}, **pretrained.judged(model, tokenizer)}


def _check(found: str, expected: str, given: argparse.Namespace) -> None:
    if found != expected and not given.any_weights:
        raise ValueError(f"model: expected weights with SHA-256 {expected}, got {found} (--any-weights takes them)")


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), "numpy": np.__version__, **pretrained.versions()}


def shipped_texts() -> dict[str, str]:
    """The texts of the encoder's samples that ship with the package."""
    folder = resources.files("attnlab") / "data"
    return {name: (folder / f"{name}.txt").read_text(encoding="utf-8") for name in SAMPLES}


if __name__ == "__main__":
    raise SystemExit(main())
