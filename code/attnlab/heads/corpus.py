"""The text that the decoders learn: Python's own documentation, the part held out, and n-gram models to compare with.

The text is `pydoc_data.topics`, which every Python ships, so nothing is downloaded. Each version of Python has its
own: a record of a training run holds the text's hash. The text of the decoders that ship with the package ships too.
"""

from __future__ import annotations

import hashlib
import lzma
import math
import re
from collections import Counter
from importlib import resources

from attnmath.checks import non_negative_integer

#: SHA-256 of the text in `documentation.txt.xz`, which is that of Python 3.11.7.
DOCUMENTATION = "f784d6fb39bdb407417b39889b74209e5327a12c530ac010595a0cb3719c903b"

#: A text is cut into this many stretches, and of every so many the last one is held out.
STRETCHES, EVERY = 100, 10


def python_documentation() -> str:
    """Return the texts behind Python's help() in the order of their titles, each paragraph once.

    >>> python_documentation().startswith('The "assert" statement')
    True
    """
    from pydoc_data.topics import topics

    return each_paragraph_once("\n\n".join(topics[title] for title in sorted(topics)))


def shipped_documentation() -> str:
    """Return the text that the shipped decoders have learned, the same on every Python, after checking its hash.

    >>> len(shipped_documentation())
    373102
    """
    content = lzma.decompress((resources.files("attnlab") / "data" / "documentation.txt.xz").read_bytes())
    found = hashlib.sha256(content).hexdigest()
    if found != DOCUMENTATION:
        raise ValueError(f"documentation: expected a text with SHA-256 {DOCUMENTATION}, got {found}")
    return content.decode()


def each_paragraph_once(text: str) -> str:
    """Leave out each paragraph that has occurred before, whatever its white space.

    Paragraphs are separated by an empty line. What is held out then occurs nowhere else.

    >>> each_paragraph_once("one\\n\\ntwo\\n\\n  one\\n\\n\\nthree")
    'one\\n\\ntwo\\n\\nthree'
    """
    found: dict[str, str] = {}
    for paragraph in _text(text, "text").split("\n\n"):
        found.setdefault(" ".join(paragraph.split()), paragraph.strip("\n"))
    return "\n\n".join(paragraph for words, paragraph in found.items() if words)


def split(text: str) -> tuple[str, str]:
    """Return the part of a text to learn, and the tenth that is held out, both of whole paragraphs.

    The text is cut into 100 stretches, at the ends of paragraphs. Every tenth is held out.
    Raises `ValueError` if one of the parts is empty.
    """
    parts: tuple[list[str], list[str]] = ([], [])
    start = 0
    for paragraph in _text(text, "text").split("\n\n"):
        stretch = start * STRETCHES // len(text)
        parts[stretch % EVERY == EVERY - 1].append(paragraph)
        start += len(paragraph) + 2
    if not all(parts):
        got = f"{sum(map(len, parts))} in {len(text)} characters"
        raise ValueError(f"text: expected paragraphs to learn, and some that begin in a tenth stretch, got {got}")
    learn, held_out = ("\n\n".join(part) for part in parts)
    return learn, held_out


def passage(text: str, length: int) -> str:
    """Return the first `length` characters of the first paragraph of prose that has as many.

    Prose begins with a capital letter. Raises `ValueError` if there is no such paragraph.

    >>> passage("x = 1\\n\\nA sentence of words.", 10)
    'A sentence'
    """
    length = non_negative_integer(length, "length")
    for paragraph in _text(text, "text").split("\n\n"):
        if len(paragraph) >= length and paragraph[0].isupper():
            return paragraph[:length]
    raise ValueError(f"text, length: expected a paragraph of prose with {length} characters, got none")


def section(text: str, title: str) -> str:
    """Return a section of a text, from its title to the next title that is underlined with ``=``.

    Raises `ValueError` if no such title has that name.

    >>> section("One\\n===\\n\\nwords\\n\\nTwo\\n===\\n\\nmore", "One")
    'One\\n===\\n\\nwords'
    """
    head = f"{_text(title, 'title')}\n{'=' * len(title)}\n"
    start = _text(text, "text").find(head)
    if start < 0:
        raise ValueError(f"text, title: expected a section with the title {title[:80]!r}, got none")
    after = re.search(r"\n\n[^\n]+\n=+\n", text[start + len(head) :])
    return text[start : start + len(head) + after.start()] if after else text[start:]


def ngram_bits(text: str, learned_from: str, context: int) -> float:
    """Bits per character of a text under an n-gram model that another text has taught.

    context : how many characters before a character the model sees: 0 for unigrams, 1 for bigrams. Each count is
    raised by 1 (Laplace's rule), over the characters of both texts.

    >>> ngram_bits("abab", "abababab", 0)
    1.0
    """
    alphabet = len(set(_text(text, "text")) | set(_text(learned_from, "learned_from")))
    context = non_negative_integer(context, "context")
    if context >= len(text):
        raise ValueError(f"context: expected less than the {len(text)} characters of the text, got {context}")
    seen = Counter(_pieces(learned_from, context + 1))
    before = Counter(piece[:-1] for piece in seen.elements())
    bits = [math.log2((before[piece[:-1]] + alphabet) / (seen[piece] + 1)) for piece in _pieces(text, context + 1)]
    return math.fsum(bits) / len(bits)


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(len(text) - size + 1)]


def _text(value: str, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {type(value).__name__}")
    if not value.strip():
        raise ValueError(f"{name}: expected words, got {value!r}")
    return value
