"""Attacks on what the chapter on few data says itself."""

from __future__ import annotations

import instances
import numpy as np
from hunt import attack, equal, rounding
from instances import Array, Kind

# One wrong word -----------------------------------------------------------------------------------------------------


def _one_wrong(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """References of different tokens, and translations with another word at a place that is three from both ends."""
    (length,) = shape
    reference = rng.permuted(np.tile(np.arange(2 * length), (count, 1)), axis=1)[:, :length]
    return _spoilt(reference, rng.integers(3, length - 3, size=count))


def _spoilt(reference: Array, place: Array) -> tuple[Array, Array]:
    translation = reference.copy()
    np.put_along_axis(translation, place[:, None], 2 * reference.shape[1], axis=1)
    return reference, translation


def _anywhere(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    reference, _ = _one_wrong(rng, count, shape)
    return _spoilt(reference, rng.integers(0, shape[0], size=count))


def _repeated(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The wrong word is one of the reference."""
    reference, translation = _one_wrong(rng, count, shape)
    return reference, np.where(translation == 2 * shape[0], reference[:, :1], translation)


SHAPES = [(8,), (9,), (12,), (17,)]
inside: Kind = instances.kind(
    "R T",
    lambda: ((f"{length} tokens, wrong at {place}", tuple(row[0] for row in _spoilt(
        np.arange(length)[None], np.array([place])))) for length in (8, 11, 30) for place in (3, length - 4)),
    _one_wrong,
    SHAPES,
)  # fmt: skip
anywhere: Kind = instances.kind("R T", lambda: (), _anywhere, SHAPES)
repeated: Kind = instances.kind("R T", lambda: (), _repeated, SHAPES)


def bleu(R: Array, T: Array) -> Array:
    """BLEU of each translation by itself; tokens of a reference are different, so that no count has to be cut."""
    same = T[:, :, None] == R[:, None, :]
    run, precisions = same, []
    for n in range(1, 5):
        precisions.append(run.any(axis=2).mean(axis=1))
        run = run[:, :-1, :-1] & same[:, n:, n:]
    return 100 * np.prod(precisions, axis=0) ** 0.25


def of_length(R: Array, formula) -> Array:
    L = R.shape[1]
    return np.full(len(R), 100 * formula(L) ** 0.25)


def closed(L: int) -> float:
    return (L - 5) * (L - 7) / (L * (L - 2))


def one_wrong_word_costs(R, T):
    return equal(bleu(R, T), of_length(R, closed), rounding(20, 100.0, 10.0))


@attack(
    "proposition-one-wrong-word",
    "low_resource/one-wrong-word",
    on=inside,
    wrong={
        "one run of each length": lambda R, T: equal(bleu(R, T), of_length(R, lambda L: (L - 4) / L), 1e-9),
        "L - 2 cancels too": lambda R, T: equal(bleu(R, T), of_length(R, lambda L: (L - 5) * (L - 7) / L), 1e-9),
        "near the ends as well": (one_wrong_word_costs, anywhere),
        "a word of the reference": (one_wrong_word_costs, repeated),
    },
)
def one_wrong_word_spoils_n_runs_of_n(R, T):
    return one_wrong_word_costs(R, T)
