"""BLEU of Papineni et al. (2002): one reference each, four orders of n-grams, whole corpus, no smoothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

#: Longest n-grams that are counted.
ORDER = 4


def corpus_bleu(translations: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> float:
    """Return BLEU in points from 0 to 100 of sentences that are split into tokens.

    100 times the geometric mean of the precisions of 1- to 4-grams, each n-gram counted at most as often as the
    reference has it, times exp(1 - r/c) if the c tokens of the translations are fewer than the r of the references.
    It is 0 if no n-gram of some order is right.

    >>> corpus_bleu(["the cat sat on the mat".split()], ["the cat sat on the mat".split()])
    100.0
    """
    translations, references = _sentences(translations, "translations"), _sentences(references, "references")
    if len(translations) != len(references):
        raise ValueError(f"references: expected one for each of {len(translations)} sentences, got {len(references)}")
    right, total = [0] * ORDER, [0] * ORDER
    for translation, reference in zip(translations, references, strict=True):
        for n in range(1, ORDER + 1):
            found, wanted = _grams(translation, n), _grams(reference, n)
            right[n - 1] += sum((found & wanted).values())
            total[n - 1] += sum(found.values())
    if min(right) == 0:
        return 0.0
    c, r = sum(map(len, translations)), sum(map(len, references))
    precision = sum(math.log(a / b) for a, b in zip(right, total, strict=True)) / ORDER
    return 100 * math.exp(precision + min(0.0, 1 - r / c))


def _grams(tokens: Sequence[Hashable], n: int) -> Counter[tuple[Hashable, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _sentences(value: Any, name: str) -> Sequence[Sequence[Hashable]]:
    """Return sentences, at least one, each a list of tokens."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{name}: expected a list of sentences, got {type(value).__name__}")
    if not value:
        raise ValueError(f"{name}: expected at least one sentence, got none")
    for sentence in value:
        if isinstance(sentence, str) or not isinstance(sentence, Sequence):
            raise TypeError(f"{name}: expected each sentence as a list of tokens, got {type(sentence).__name__}")
        for token in sentence:
            if not isinstance(token, Hashable):
                raise TypeError(f"{name}: expected tokens such as words, got {type(token).__name__}")
    return value
