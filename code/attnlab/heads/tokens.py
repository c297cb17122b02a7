"""Texts as numbers of tokens, and back: by the tokenizer that comes with a pretrained decoder.

Reading one needs the package tokenizers (``pip install "attention-checked[model]"``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: How texts are cut before byte pairs are merged, by the names that files give: whether digits stand alone.
CUTS = {"gpt-2": False, "smollm": True}


@dataclass(frozen=True)
class Tokenizer:
    """What a model's tokenizer is asked for.

    inner : the tokenizer, of the library tokenizers.
    """

    inner: Any

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of a text's tokens, with those that the model's tokenizer adds at its ends."""
        if not isinstance(text, str):
            raise TypeError(f"text: expected a string, got {type(text).__name__}")
        return list(self.inner.encode(text).ids)

    def text(self, numbers: Sequence[int]) -> str:
        """Return the text of some tokens."""
        return str(self.inner.decode([int(number) for number in numbers], skip_special_tokens=False))

    def pieces(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """Return the text of each token by itself; a part of a character is shown as U+FFFD."""
        return tuple(self.text([number]) for number in numbers)


def read_tokenizer(file: str | Path) -> Tokenizer:
    """Read a `tokenizer.json`; `ValueError` if it is none."""
    from tokenizers import Tokenizer as Library

    try:
        inner = Library.from_file(str(file))
    except Exception as error:  # the package raises bare Exceptions
        raise ValueError(f"directory: expected a tokenizer in {str(file)[:200]}, got {error}") from None
    inner.no_padding()
    inner.no_truncation()
    return Tokenizer(inner)


def byte_pairs(settings: Mapping[str, Any]) -> Tokenizer:
    """Make the tokenizer that a GGUF file describes: bytes, merged in pairs in the order of a list.

    settings : of the file, by their names after ``tokenizer.ggml.``.  Special tokens are read as plain text.
    Raises `ValueError` for another kind.
    """
    from tokenizers import Tokenizer as Library
    from tokenizers import decoders, models, pre_tokenizers, processors

    for name, wanted in {"model": ("gpt2",), "pre": tuple(CUTS)}.items():
        if settings.get(name) not in wanted:
            expected = f"expected one of {', '.join(wanted)}"
            raise ValueError(f"path: tokenizer.ggml.{name}: {expected}, got {settings.get(name)!r}")
    for name in ("add_eos_token", "add_space_prefix"):
        if settings.get(name):
            raise ValueError(f"path: tokenizer.ggml.{name}: expected False, got {settings[name]!r}")
    try:
        numbers = {token: number for number, token in enumerate(settings["tokens"])}
        inner = Library(models.BPE(numbers, [tuple(pair.split(" ")) for pair in settings["merges"]]))
        digits = [pre_tokenizers.Digits(individual_digits=True)] if CUTS[settings["pre"]] else []
        inner.pre_tokenizer = pre_tokenizers.Sequence([*digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
        inner.decoder = decoders.ByteLevel()
        if settings.get("add_bos_token"):
            number = settings["bos_token_id"]
            first = settings["tokens"][number]
            inner.post_processor = processors.TemplateProcessing(single=[first, "$A"], special_tokens=[(first, number)])
    except Exception as error:  # the package raises bare Exceptions
        raise ValueError(f"path: expected a tokenizer of byte pairs in the file, got {error!r:.200}") from None
    return Tokenizer(inner)
