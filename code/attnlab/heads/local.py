"""The heads of a local model on a text, whatever the kind of the model: an encoder or a decoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnlab.heads.encoder import load_encoder, tokenize
from attnlab.heads.layout import FAMILIES
from attnlab.heads.load import Heads
from attnlab.heads.pretrained import heads_of, load_llama
from attnlab.records import is_file, json_object
from attnmath.checks import path_to


def is_decoder(model: str | Path) -> bool:
    """Whether a model is of Llama's kind: a file, or a folder whose configuration says so.

    Raises `ValueError` for a folder with a model of a kind that is not known.
    """
    model = path_to(model, "model")
    config = model / "config.json"
    if not model.is_dir() or not is_file(config):
        return is_file(model)
    kind = json_object(config, "model").get("model_type", "bert")
    if kind != "llama" and kind not in list(FAMILIES):
        raise ValueError(f"model: config.json: model_type: expected one of {', '.join(FAMILIES)}, llama, got {kind!r}")
    return bool(kind == "llama")


def local_heads(
    model: str | Path, text: str, *, length: int | None = None, report: Callable[[], Any] = lambda: None
) -> Heads:
    """Return the heads of a local model on a text.

    model : a folder in Hugging Face's layout or a GGUF file.
    length : keep the first so many tokens of a decoder's text; the tokens of an encoder depend on the later ones.
    report : called after each part of a file and after each layer.
    Raises `FileNotFoundError` for a missing file and `ValueError` for a model that cannot be read exactly.
    """
    if is_decoder(model):
        return heads_of(*load_llama(model, report), text, length=length, report=report)
    if length is not None:
        raise ValueError("length: expected a decoder; the tokens of an encoder depend on the later ones")
    folder = path_to(model, "model")
    encoder = load_encoder(folder)
    tokens, ids = tokenize(folder, text, longest=encoder.longest)
    return Heads(*encoder.queries_and_keys(ids), tuple(tokens))
