r"""What no other gate would miss if it were changed, so that it stands in a chapter in exactly the words stated.

A formula with another sign, another index or another digit is often another formula of its chapter, and a number next
to a printed one is often printed as well. Of three places no change may pass, whichever it is: of "What to remember"
the formulas, the bounds and the numbers, of tables the formulas, of solutions the numbers with a decimal point or two
digits. So what could be changed there without notice stands a second time in ``stated.yml`` below ``phrases``, with the
words around it, and each phrase has to stand in its chapter, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from formula_rules import BOUND, DISPLAY, GREEK, INLINE, Held, bounds, read, second_places, wrong_numbers
from notebook_rules import Notebook
from prose_numbers import (
    LABEL,
    NO_STATEMENT,
    computed,
    counting,
    exercises,
    in_phrases,
    numbers,
    occurs,
    texts,
    worked_out,
)

_PAIRS = (r"+ -", r"\le \ge", r"< >", r"\sin \cos", r"\max \min", r"\beta \gamma", r"\mu \sigma", "i j", "Q K", "x y",
          "n d", "k q")  # fmt: skip
#: What may stand for a part of a formula by mistake.
OTHER = {one: other for pair in _PAIRS for one, other in (pair.split(), pair.split()[::-1])}
OTHER |= {"m": "n", "r": "n", "V": "K", "v": "k", "=": r"\ne", r"\in": r"\notin", r"\sqrt": "", r"^\top": ""}
_PLACE = re.compile(r"\\(?:tag|text|operatorname|begin|end|math[a-z]+)\{[^}]*\}"
                    r"|(?P<part>\^\\top|\\[A-Za-z]+|[-+<>=]|\d+(?:\.\d+)?|[A-Za-z])")  # fmt: skip
_OPPOSITE = {"at most": "at least", "below": "above", "less than": "more than", "fewer than": "more than",
             "up to": "more than"}  # fmt: skip
_OPPOSITE |= {"at least": "at most", "above": "below", "more than": "less than"}
_FORMULA = re.compile(f"{DISPLAY.pattern}|{INLINE.pattern}", re.DOTALL)
_SMALL = re.compile(r"\b(?:zero|two|three|four|five|six|seven|eight|nine|ten|half|thirds?|quarters?|twice|at most"
                    r"|at least|(?:less|more|fewer|larger|smaller) than|below|above|up to)\b"
                    r"|(?<![\w.])\d+(?:[., ]\d+)*", re.IGNORECASE)  # fmt: skip


def changes(tex: str) -> Iterator[str]:
    r"""Yield a formula with another sign, relation, letter or digit, or without a root, a transposition or an exponent.

    >>> list(changes("2x^2"))
    ['3x^2', '1x^2', '2y^2', '2x^3', '2x^1', '2x']
    """
    for match in _PLACE.finditer(tex):
        for new in _others(match["part"] or ""):
            apart = " " if new[-1:].isalpha() and "\\" in new else ""
            yield tex[: match.start()] + new + apart + tex[match.end() :]
    for match in re.finditer(r"\^(?:[\dA-Za-z]|\{[^{}]*\})", tex):
        yield tex[: match.start()] + tex[match.end() :]


def _others(part: str) -> list[str]:
    if part[:1].isdigit():
        return [part[:-1] + str((int(part[-1]) + by) % 10) for by in (1, -1)]
    known = part in OTHER or part.isalpha() or part[1:] in GREEK
    return [OTHER.get(part, "y" if part.isalpha() else r"\mu")] if known else []


#: The line that a folded section leaves in view.
_TOLD = re.compile(r"^```\{further\}\n.*?^```$", re.MULTILINE | re.DOTALL)


def missing(notebook: Notebook, phrases: Iterable[str]) -> list[str]:
    """Return the phrases that do not stand in the texts of a notebook exactly once.

    The line of a folded section says again what the section has shown, and does not count.
    """
    whole = " ".join(" ".join(_TOLD.sub("", words) for _, words in texts(notebook)).split())
    return [phrase for phrase in phrases if whole.count(" ".join(phrase.split())) != 1]


def near_misses(notebook: Notebook, held: Held, phrases: Sequence[str] = ()) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the texts in which something could be changed without notice, and the span of it, without the phrases."""
    for place, words in second_places(notebook):
        known = in_phrases(words, phrases)
        spans = [match.span() for match in _FORMULA.finditer(words) if _passes(words, match, held)]
        if place == "What to remember":
            bare = _blank(words, [_FORMULA, *NO_STATEMENT[3:]])
            spans += [match.span() for match in _SMALL.finditer(bare) if not BOUND.match(words, match.start())]
        yield from ((words, span) for span in sorted(spans) if not known.issuperset(range(*span)))
    for exercise in exercises(notebook):
        yielded = {value for cell in exercise.cells for value in computed(cell)} | set(numbers(exercise.asked))
        for match in counting(exercise.answered, [LABEL, *NO_STATEMENT[2:]], phrases):
            if any(_unnoticed(exercise.answered, match, by, yielded) for by in (-1, 1)):
                yield exercise.answered, match.span()


def _passes(words: str, match: re.Match[str], held: Held) -> bool:
    """Return whether a change of a formula, or of the word that makes it a bound, goes unnoticed."""
    tex, before = match[1] or match[2], words[: match.start()].rpartition("$")[2]
    called = next((word for word in _OPPOSITE if before.rstrip().endswith(word)), "")
    texts = [f"{before}${changed}$" for changed in changes(tex) if any(True for _ in read([changed]))]
    if called:
        texts.append(f"{_OPPOSITE[called]} ${tex}$")
    return any(not _notices(held, text) for text in texts)


def _notices(held: Held, words: str) -> bool:
    found = [sides for _, sides in read(match[1] or match[2] for match in _FORMULA.finditer(words))]
    return (
        any(held.misses(sides) for sides in found)
        or any((above, side) not in held.bounds for above, side, _ in bounds(words))
        or bool(wrong_numbers(words))
    )


def _unnoticed(words: str, match: re.Match[str], by: int, yielded: set[float]) -> bool:
    last = max(place for place in range(*match.span()) if words[place].isdigit())
    changed = words[:last] + str((int(words[last]) + by) % 10) + words[last + 1 :]
    values = yielded | worked_out(changed)
    return occurs(changed[slice(*match.span())], values) and not wrong_numbers(changed)


def _blank(words: str, patterns: Iterable[re.Pattern[str]]) -> str:
    for pattern in patterns:
        words = pattern.sub(lambda match: " " * len(match[0]), words)
    return words
