"""The task: translate between two synthetic languages, by rules that leave nothing to chance.

A source sentence fills the slots below from left to right; what is in brackets may be missing:

    [question] article [adjective] noun [preposition article [adjective] noun] verb article [adjective] noun
    [adverb] [particle]

Its translation is a function of the sentence. Each target token has a kind, which says what decides it:

* lexical : one source word alone. Words change their order: the adverb goes to the front, an adjective behind its
  noun, the verb to the end.
* agreement : one of three genders of a neighbouring noun, and the number that the article tells. Articles and the
  endings of adjectives agree with both.
* sense : a word and its neighbour. A noun has one translation in the singular and an unrelated one in the plural; half
  of the adjectives have one for each of four classes of the following noun; each preposition has one for each class of
  the noun before it.
* long : words far apart. A separable verb has a translation for each particle at the end of the sentence and one for
  none; the ending of the verb says the number of the subject's article, beyond a prepositional phrase, and whether
  the sentence began with the question particle; an adverb has another translation in a question.

Words of each class follow Zipf's law. Which noun has which gender and class, which adjective is ambiguous, and which
verb is separable, differs from language pair to language pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int

from attnmath.arrays import ArrayLike, Numpy
from attnmath.checks import (
    fits_memory,
    floats,
    generator,
    instance,
    non_negative_integer,
    one_of,
    positive_integer,
)

#: Words in each class of the source language; besides, one question particle and four articles.
NOUNS, ADJECTIVES, VERBS, PREPOSITIONS, ADVERBS = 120, 70, 60, 6, 20
#: Genders and classes of nouns, and particles of separable verbs.
GENDERS, CLASSES, PARTICLES = 3, 4, 3
#: Tokens of both languages that are no words.
PAD, BEGIN, END = 0, 1, 2
#: What decides a target token; `end` is the mark at the end of the sentence.
KINDS = ("lexical", "agreement", "sense", "long", "end")
#: Sentences to choose a checkpoint by, and to report on. None of them is trained on.
VALIDATION, TEST = 300, 300
#: Shortest source sentence, and the most slots of both languages (the target's with its end).
SHORTEST, SOURCE_SLOTS, TARGET_SLOTS = 6, 14, 17

_MISSING = -1
_SOURCE_CLASSES = {"question": 1, "article": 4, "particle": PARTICLES, "preposition": PREPOSITIONS, "adverb": ADVERBS,
                   "adjective": ADJECTIVES, "verb": VERBS, "noun": NOUNS}  # fmt: skip
_TARGET_CLASSES = {"article": 4 * GENDERS, "adjective ending": 2 * GENDERS, "verb ending": 4,
                   "preposition": CLASSES * PREPOSITIONS, "adverb": 2 * ADVERBS, "adjective": CLASSES * ADJECTIVES,
                   "verb": (PARTICLES + 1) * VERBS, "noun": 2 * NOUNS}  # fmt: skip


def _starts(classes: dict[str, int]) -> tuple[dict[str, int], int]:
    """First token of each class of words, and the number of all tokens."""
    starts, size = {}, END + 1
    for name, count in classes.items():
        starts[name] = size
        size += count
    return starts, size


#: First token of each class of words, and the number of tokens, in the two languages.
SOURCE, SOURCE_SIZE = _starts(_SOURCE_CLASSES)
TARGET, TARGET_SIZE = _starts(_TARGET_CLASSES)


@dataclass(frozen=True)
class Language:
    """What a language pair has by chance: genders and classes of nouns, ambiguous and separable words."""

    gender: Int[Numpy, "nouns"]
    noun_class: Int[Numpy, "nouns"]
    ambiguous: Bool[Numpy, "adjectives"]
    separable: Bool[Numpy, "verbs"]


@dataclass(frozen=True)
class Sentences:
    """Pairs of sentences, filled up with `PAD`; a target ends with `END`, and has the kind of each of its tokens.

    source : tokens of the source language.  target : tokens of the target language.
    kind : places in `KINDS`, -1 where there is no token.
    """

    source: Int[Numpy, "size source_slots"]
    target: Int[Numpy, "size target_slots"]
    kind: Int[Numpy, "size target_slots"]

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: slice | Int[Numpy, "some"] | Bool[Numpy, "size"]) -> Sentences:
        return Sentences(self.source[index], self.target[index], self.kind[index])


@dataclass(frozen=True)
class Corpus:
    """A language pair and its sentences: no test or validation sentence occurs in training."""

    language: Language
    training: Sentences
    validation: Sentences
    test: Sentences


def draw_language(rng: np.random.Generator) -> Language:
    """Draw a language pair. Half of the adjectives are ambiguous, two verbs of five are separable.

    >>> language = draw_language(np.random.default_rng(0))
    >>> int(language.ambiguous.sum()), int(language.separable.sum())
    (35, 24)
    """
    generator(rng)
    return Language(
        gender=rng.integers(0, GENDERS, NOUNS),
        noun_class=rng.integers(0, CLASSES, NOUNS),
        ambiguous=rng.permutation(ADJECTIVES) < ADJECTIVES // 2,
        separable=rng.permutation(VERBS) < 2 * VERBS // 5,
    )


def draw_sources(size: int, language: Language, rng: np.random.Generator) -> Int[Numpy, "{size} slots"]:
    """Draw source sentences of 6 to 14 words, filled up with `PAD`.

    >>> rng = np.random.default_rng(0)
    >>> draw_sources(5, draw_language(rng), rng).shape
    (5, 14)
    """
    size, rng = positive_integer(size, "size"), generator(rng)
    instance(language, Language, "language")
    fits_memory("size", size, 8 * SOURCE_SLOTS)
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < size:
        slots = _draw_slots(size, language, rng)
        kept.append(_packed(slots, SOURCE_SLOTS)[(slots >= 0).sum(1) >= SHORTEST])
    return np.concatenate(kept)[:size]


def _draw_slots(size: int, language: Language, rng: np.random.Generator) -> Int[Numpy, "size slots"]:
    def words(name: str, count: int, present: np.ndarray | bool = True) -> np.ndarray:
        weights = 1 / np.arange(1, count + 1)
        return np.where(present, SOURCE[name] + rng.choice(count, size, p=weights / weights.sum()), _MISSING)

    def chance(share: float) -> np.ndarray:
        return rng.random(size) < share

    phrase = chance(0.5)
    noun_phrases = []
    for present in (True, phrase, True):
        article = np.where(present, SOURCE["article"] + rng.integers(0, 4, size), _MISSING)
        adjective = words("adjective", ADJECTIVES, present & chance(0.5))
        noun_phrases.append([article, adjective, words("noun", NOUNS, present)])
    subject, inner, thing = noun_phrases
    question = np.where(chance(0.4), SOURCE["question"], _MISSING)
    verb = words("verb", VERBS)
    particle = rng.integers(-1, PARTICLES, size)
    has_particle = (particle >= 0) & language.separable[verb - SOURCE["verb"]]
    return np.stack([
        question, *subject, words("preposition", PREPOSITIONS, phrase), *inner, verb, *thing,
        words("adverb", ADVERBS, chance(0.4)), np.where(has_particle, SOURCE["particle"] + particle, _MISSING),
    ], axis=1)  # fmt: skip


def translate(source: Int[ArrayLike, "size slots"], language: Language) -> Sentences:
    """Translate source sentences by the rules of the language pair.

    Raises ValueError for a row that is not a sentence of the source language.
    """
    instance(language, Language, "language")
    source = _tokens(source, 2, "source")
    slots = _parsed(source)
    question, particle, adverb = slots[:, 0], slots[:, 13], slots[:, 12]
    verb, preposition = slots[:, 8] - SOURCE["verb"], slots[:, 4]
    nouns = [np.where(slots[:, i] >= 0, slots[:, i] - SOURCE["noun"], 0) for i in (3, 7, 11)]
    number = (slots[:, 1] - SOURCE["article"]) // 2
    target: list[tuple[np.ndarray, str | np.ndarray]] = [
        (np.where(adverb >= 0, TARGET["adverb"] + 2 * (adverb - SOURCE["adverb"]) + (question >= 0), _MISSING), "long")
    ]
    for phrase, (first, noun) in enumerate(zip((1, 5, 9), nouns, strict=True)):
        if phrase == 1:
            senses = CLASSES * (preposition - SOURCE["preposition"]) + language.noun_class[nouns[0]]
            target.append((np.where(preposition >= 0, TARGET["preposition"] + senses, _MISSING), "sense"))
        target += _noun_phrase(slots[:, first], slots[:, first + 1], noun, language)
    sense = np.where(particle >= 0, particle - SOURCE["particle"] + 1, 0)
    kind = np.where(language.separable[verb], KINDS.index("long"), KINDS.index("lexical"))
    target.append((TARGET["verb"] + (PARTICLES + 1) * verb + sense, kind))
    target.append((TARGET["verb ending"] + 2 * number + (question >= 0), "long"))
    target.append((np.full(len(slots), END), "end"))
    tokens = np.stack([tokens for tokens, _ in target], axis=1)
    kinds = np.stack([np.broadcast_to(KINDS.index(k) if isinstance(k, str) else k, len(slots)) for _, k in target], 1)
    kinds = np.where(tokens >= 0, kinds, _MISSING)
    order = np.argsort(tokens < 0, axis=1, kind="stable")
    return Sentences(source, _packed(tokens, TARGET_SLOTS), np.take_along_axis(kinds, order, axis=1))


def _noun_phrase(
    article: np.ndarray, adjective: np.ndarray, noun: np.ndarray, language: Language
) -> list[tuple[np.ndarray, str | np.ndarray]]:
    """Article, noun, adjective and its ending, with their kinds."""
    gender, plural = language.gender[noun], (article - SOURCE["article"]) // 2
    definite = (article - SOURCE["article"]) % 2
    at = np.where(adjective >= 0, adjective - SOURCE["adjective"], 0)
    senses = CLASSES * at + np.where(language.ambiguous[at], language.noun_class[noun], 0)
    kind = np.where(language.ambiguous[at], KINDS.index("sense"), KINDS.index("lexical"))
    there, described = article >= 0, adjective >= 0
    return [
        (np.where(there, TARGET["article"] + GENDERS * (2 * definite + plural) + gender, _MISSING), "agreement"),
        (np.where(there, TARGET["noun"] + 2 * noun + plural, _MISSING), "sense"),
        (np.where(described, TARGET["adjective"] + senses, _MISSING), kind),
        (np.where(described, TARGET["adjective ending"] + GENDERS * plural + gender, _MISSING), "agreement"),
    ]


#: The class of words that each of the 14 slots takes.
_SLOT_CLASSES = ("question", "article", "adjective", "noun", "preposition", "article", "adjective", "noun", "verb",
                 "article", "adjective", "noun", "adverb", "particle")  # fmt: skip


def _parsed(source: np.ndarray) -> Int[Numpy, "size slots"]:
    """Return the 14 slots of each sentence, -1 for the missing ones."""
    slots = np.full((len(source), SOURCE_SLOTS), _MISSING)
    at = np.zeros(len(source), dtype=int)
    for token in source.T:
        wanted = (token >= END + 1) & (token < SOURCE_SIZE)
        if np.any(~wanted & (token != PAD)):
            raise ValueError("source: expected sentences of the source language, got a token that is no word")
        for slot, name in enumerate(_SLOT_CLASSES):
            first = SOURCE[name]
            here = wanted & (at <= slot) & (token >= first) & (token < first + _SOURCE_CLASSES[name])
            if slot == 5:  # an article opens the inner noun phrase after a preposition only
                here &= slots[:, 4] >= 0
            slots[here, slot] = token[here]
            at[here] = slot + 1
            wanted &= ~here
        if np.any(wanted):
            raise ValueError("source: expected sentences of the source language, got words in another order")
    needed = slots[:, [1, 3, 8, 9, 11]] >= 0
    inner = np.isin((slots[:, [4, 5, 7]] >= 0).sum(axis=1), (0, 3))
    if not (needed.all() and inner.all() and np.all((slots[:, 6] < 0) | (slots[:, 4] >= 0))):
        raise ValueError("source: expected sentences of the source language, got one without a word that it needs")
    return slots


def _packed(slots: np.ndarray, width: int) -> Int[Numpy, "size width"]:
    """Close the gaps of missing slots, and fill up with `PAD`."""
    order = np.argsort(slots < 0, axis=1, kind="stable")
    packed = np.take_along_axis(slots, order, axis=1)
    packed = np.pad(packed, ((0, 0), (0, width - packed.shape[1])), constant_values=_MISSING)
    return np.where(packed < 0, PAD, packed)


def _tokens(value: ArrayLike, ndim: int, name: str) -> np.ndarray:
    """Whole numbers on so many axes."""
    found = floats(value, name, ndim=ndim)
    if np.any(found != np.floor(found)) or np.any(np.abs(found) > 10**6):
        raise ValueError(f"{name}: expected tokens, which are whole numbers, got {found.tolist()}")
    return found.astype(int)


#: Syllables of the made-up words, which differ between the languages.
_SYLLABLES = {"source": ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su"),
              "target": ("ak", "el", "im", "on", "ur", "as", "et", "ib", "ok", "uv")}  # fmt: skip
#: Endings show the class of a word: of a noun, an adjective and so on.
_MARKS = {"noun": "n", "adjective": "j", "verb": "v", "adverb": "w", "preposition": "p", "article": "t",
          "particle": "k", "question": "q", "adjective ending": "j", "verb ending": "v"}  # fmt: skip


def sentence(tokens: Int[ArrayLike, "length"], language: str) -> str:
    """Write tokens of the source or the target language as made-up words; the last letter shows the word's class.

    >>> sentence([3, 7, 167], "source")
    'baq got ban'
    """
    first, classes = {"source": (SOURCE, _SOURCE_CLASSES), "target": (TARGET, _TARGET_CLASSES)}[
        one_of(language, ("source", "target"), "language")
    ]
    size = SOURCE_SIZE if language == "source" else TARGET_SIZE
    found = _tokens(tokens, 1, "tokens")
    if np.any((found < 0) | (found >= size)):
        raise ValueError(f"tokens: expected tokens of the {language} language on one axis, got {found.tolist()}")
    words = []
    for token in found.tolist():
        if token > END:
            name = next(name for name in classes if first[name] <= token < first[name] + classes[name])
            words.append(_word(token - first[name], name, _SYLLABLES[language]))
    return " ".join(words)


def _word(number: int, name: str, syllables: tuple[str, ...]) -> str:
    ending = name.endswith("ending")
    digits = [int(digit) for digit in str(number)]
    return ("-" if ending else "") + "".join(syllables[digit] for digit in digits) + _MARKS[name]


def corpus(seed: int, pairs: int) -> Corpus:
    """Return the language pair of a seed with so many different training pairs.

    Of one seed, the language, validation and test are the same for every number of pairs, and a smaller training set
    is the beginning of a larger one.

    >>> few, many = corpus(0, 100), corpus(0, 200)
    >>> bool((few.training.source == many.training.source[:100]).all())
    True
    """
    return _corpus(non_negative_integer(seed, "seed"), positive_integer(pairs, "pairs", at_most=10**6))


@lru_cache(maxsize=2)
def _corpus(seed: int, pairs: int) -> Corpus:
    rng = np.random.default_rng([seed, 1])
    language = draw_language(rng)
    held = np.unique(draw_sources(2 * (VALIDATION + TEST), language, rng), axis=0)
    held = rng.permutation(held)[: VALIDATION + TEST]
    seen = {row.tobytes() for row in held}
    kept: list[np.ndarray] = []
    rng = np.random.default_rng([seed, 2])
    while len(kept) < pairs:
        for row in draw_sources(1000, language, rng):
            if (key := row.tobytes()) not in seen:
                seen.add(key)
                kept.append(row)
    training = translate(np.array(kept[:pairs]), language)
    held_out = translate(held, language)
    return Corpus(language, training, held_out[:VALIDATION], held_out[VALIDATION:])
