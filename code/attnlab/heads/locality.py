"""How much symbols of a text tell about one another at a distance: mutual information in bits (section 1.2.1)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
from jaxtyping import Int, Real
from numpy.typing import NDArray

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import exponent, floats, positive_integer, silently
from attnmath.estimate import Estimate

#: Kinds of symbols that a text may have at most.
LARGEST = 4096


def characters(text: str) -> Int[Numpy, "length"]:
    """Return the number of each character of a text, in the order of the alphabet of the text.

    >>> characters("abca")
    array([0, 1, 2, 0])
    """
    _, numbers = np.unique(np.asarray(list(_text(text))), return_inverse=True)
    return numbers.ravel().astype(np.int64)


def frequent_words(text: str, count: int) -> Int[Numpy, "length"]:
    """Return a number for each word of a text: its rank among the `count` most frequent words, or `count` for another.

    Words are runs of letters, compared in lower case. Equally frequent words are ranked by the alphabet.

    >>> frequent_words("The cat saw the dog", 1)
    array([0, 1, 1, 0, 1])
    """
    count = positive_integer(count, "count")
    words = re.findall(r"[^\W\d_]+", _text(text).lower())
    if not words:
        raise ValueError(f"text: expected words, got {text[:20]!r}")
    often = Counter(words)
    rank = {word: place for place, word in enumerate(sorted(often, key=lambda word: (-often[word], word))[:count])}
    return np.asarray([rank.get(word, count) for word in words], dtype=np.int64)


def pair_counts(
    numbers: Int[ArrayLike, "length"], distance: int, *, blocks: int = 1
) -> Int[Numpy, "blocks kinds kinds"]:
    """Count the pairs of symbols at a distance, in consecutive blocks of a text.

    Entry (b, x, y) says how often y comes `distance` places after x in block b; no pair crosses blocks.

    >>> pair_counts([0, 1, 0, 1], 1)
    array([[[0, 2],
            [1, 0]]])
    """
    numbers, distance = _symbols(numbers), positive_integer(distance, "distance")
    blocks = positive_integer(blocks, "blocks")
    size = len(numbers) // blocks
    if size <= distance:
        got = f"{len(numbers)} symbols in {blocks} blocks"
        raise ValueError(f"numbers, distance, blocks: expected blocks of more than {distance} symbols, got {got}")
    kinds = int(numbers.max()) + 1
    part = numbers[: size * blocks].reshape(blocks, size)
    pairs = part[:, :-distance] * kinds + part[:, distance:]
    return np.stack([np.bincount(row, minlength=kinds**2) for row in pairs]).reshape(blocks, kinds, kinds)


@silently
def mutual_information(counts: Real[ArrayLike, "kinds kinds"]) -> float:
    """Mutual information in bits of two symbols whose pairs are counted; the shares are taken as probabilities.

    A finite sample makes it too large by about (kinds - 1)^2 / (2 log(2) pairs): compare with shuffled symbols.

    >>> mutual_information([[2, 0], [0, 2]]), mutual_information([[1, 1], [1, 1]])
    (1.0, 0.0)
    """
    table = floats(counts, "counts", ndim=2)
    if np.any(table < 0) or not table.sum() > 0:
        raise ValueError("counts: expected non-negative numbers, and one that is positive")
    P = np.ldexp(table, -exponent(table).item())
    P /= P.sum()
    filled = P > 0
    # Where a sum is 0, so is every entry beside it, and the logarithm is not used.
    rows, columns = (np.maximum(P.sum(axis=axis, keepdims=True), np.finfo(float).tiny) for axis in (1, 0))
    terms = np.log2(P[filled]) - (np.log2(rows) + np.log2(columns))[filled]
    return max(0.0, float((P[filled] * terms).sum()))


def information_at(numbers: Int[ArrayLike, "length"], distance: int, *, blocks: int) -> Estimate:
    """Mutual information in bits of the symbols at a distance, with its jackknife error over blocks of the text.

    The blocks, at least 2, are taken as independent.
    """
    blocks = positive_integer(blocks, "blocks")
    if blocks < 2:
        raise ValueError(f"blocks: expected at least 2, got {blocks}")
    counts = pair_counts(numbers, distance, blocks=blocks)
    total = counts.sum(axis=0)
    left = np.asarray([mutual_information(total - one) for one in counts])
    error = float(np.sqrt((blocks - 1) / blocks * ((left - left.mean()) ** 2).sum()))
    return Estimate(mutual_information(total), error)


def _symbols(value: Any) -> NDArray[np.int64]:
    numbers = floats(value, "numbers", ndim=1)
    if np.any(numbers != np.round(numbers)) or not 0 <= numbers.min() <= numbers.max() < LARGEST:
        got = f"{numbers.min():g} to {numbers.max():g}"
        raise ValueError(f"numbers: expected whole numbers from 0 to {LARGEST - 1}, got {got}")
    return numbers.astype(np.int64)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text: expected a string, got {type(value).__name__}")
    if not value:
        raise ValueError("text: expected characters, got none")
    return value
