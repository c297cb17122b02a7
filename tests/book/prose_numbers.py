"""Find numbers in a chapter's prose that no cell of the chapter printed or holds.

A number counts when it has a decimal point or at least two significant digits. Rounded as the prose rounds it, it must
be a number in an output or in the source of a code cell nearby, or one of a formula that is worked out (`formula_rules.
untrue`); the opening and the closing of a chapter may name every number of it. An exercise with its solution has its
own cells. Displayed formulas, exponents, indices, and references to sections and equations do not count.

A whole number below ten, in digits or as a word, counts only where it says how many panels a figure has, or how many
there are of something that the book counts once and for all (`COUNTED`): so many small numbers are in every output
that a wrong one nearly always is there too.
"""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise

from formula_rules import formulas, numeric, read
from linewise.pages.first_reading import heading_of
from notebook_rules import Notebook, text

#: How many cells away a number of the prose may be computed, and how many cells are the opening of a chapter.
REACH, OPENING = 8, 3
_CLOSING = "## What to remember"
_SPACE = r"(?:[ ,\u2009\u202f]|\\,|\{,\})"
#: Digits in groups of three, or in one piece, and perhaps decimals; not the parts of 5.1.4 and not those of a name.
NUMBER = re.compile(rf"(?<![\w.])(?:\d{{1,3}}(?:{_SPACE}\d{{3}})+(?!\d)|\d+)(?:\.\d+)?(?!\.?\d)(?P<percent>\s*\\?%)?")
LABEL = re.compile(r"^:label:.*", re.MULTILINE)
_PLACE = r"\(?[\d.]*\d\)?"
NO_STATEMENT = [
    re.compile(r"^([`:]{3,})\{solution-start\}.*?\{solution-end\}", re.MULTILINE | re.DOTALL),
    re.compile(r"^([`:]{3,})\{(?:exercise|solution)\}.*?^\1[ \t]*$", re.MULTILINE | re.DOTALL),
    re.compile(r"\$\$.*?\$\$", re.DOTALL),
    re.compile(r"\{[\w:-]+\}`[^`]*`"),
    re.compile(r"\]\([^)]*\)|https?://\S+"),
    re.compile(rf"\b(?:sections?|equations?|parts?|paragraphs?|sentences?)\s+{_PLACE}"
               rf"(?:(?:,\s+{_PLACE})*,?\s+(?:and|or|to)\s+{_PLACE})?", re.IGNORECASE),
    re.compile(r"\([5AR](?:\.\d+)+\)"),
]  # fmt: skip
_SMALL_PLACES = re.compile(
    r"\de-?\d+|(?<!\d)10\^(?:\{-?\d+\}|\d)|^#+ \d+\.|\\log_\{?10\}?|[_^]\{-?\d\d\}", re.MULTILINE
)
_DIGITS = r"\d+(?:\.\d+)?"
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
COUNT = rf"\b(\d+|{'|'.join(_WORDS)})"
#: What the book counts once and for all: with which words around the number, and how many there are.
COUNTED = {
    rf"{COUNT} (?:(?:small|causal|trained|untrained) )+decoders\b": 4,
    rf"\bthe {COUNT} decoders\b": 4,
    rf"{COUNT} learned heads\b": 8,
    rf"\ball {COUNT} layers\b": 6,
    rf"{COUNT} layers of (?:twelve heads|(?:the|one|its) (?:trained )?(?:encoder|model))\b": 6,
    rf"{COUNT} layers of four heads\b": 4,
    rf"\bsmall head (?:has|of|with) {COUNT} tokens\b": 4,
    rf"\b(?:rule of|asks for) {COUNT} standard errors\b": 4,
    rf"{COUNT} fixed patterns\b": 7,
    rf"{COUNT} language pairs\b": 5,
    r"\b(\d+) heads of (?:the (?:same|trained|book's) |one (?:trained )?|this |its |the )?(?:encoder|model)\b": 72,
    r"\blayer 6,? head (\d+)": 12,
    rf"\bsentence of {COUNT} tokens\b": 18,
    rf"\bpassage of {COUNT} tokens\b": 304,
    rf"{COUNT} % (?:confidence )?intervals?\b": 95,
}
_COUNTED = [re.compile(pattern, re.IGNORECASE) for pattern in COUNTED]
_PRINTED = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def unprinted(notebook: Notebook, phrases: Iterable[str] = ()) -> list[str]:
    """Return one sentence for each number in the prose that is neither printed nor in the source of a code cell.

    What stands in one of the phrases, which somebody has read, does not count.
    """
    values = within_reach(notebook)
    worked = [worked_out(words) for words in _shown(notebook)]
    return [
        f"cell {cell}: no code cell nearby prints or holds {number} (... {around} ...)"
        for cell, number, around in stated(notebook, phrases)
        if not occurs(number, values[cell] | worked[cell])
    ]


def worked_out(words: str) -> set[float]:
    r"""Return the numbers of those formulas of a text that hold nothing else.

    >>> sorted(worked_out(r"$x=31$, $2\cdot11=22$"))
    [2.0, 11.0, 22.0]
    """
    chains = [side for _, found in read(formulas(words)) for pair in numeric(found) for side in pair]
    return {float(n) for side in chains for n in re.findall(_DIGITS, side.tex)} | {side.value.real for side in chains}


def within_reach(notebook: Notebook) -> list[set[float]]:
    """Return for each cell the numbers that its prose may state."""
    cells = notebook["cells"]
    here = [set(computed(cell)) if cell["cell_type"] == "code" else set[float]() for cell in cells]
    at = places(cells)
    closing = next((k for k, cell in zip(at, cells, strict=True) if _CLOSING in text(cell["source"])), len(cells))
    everywhere = set[float]().union(*here)
    nearby = [set[float]().union(*(held for held, j in zip(here, at, strict=True) if abs(j - k) <= REACH)) for k in at]
    return [nearby[k] if OPENING <= at[k] < closing else everywhere for k in range(len(cells))]


def places(cells: list[Notebook]) -> list[int]:
    """Return for each cell how many come before it; where a folded section begins or ends, its text goes on.

    >>> further = "## On\\n\\n```{further}\\nIt goes on.\\n```"
    >>> kinds = [("markdown", "So."), ("markdown", further), ("markdown", "Thus."), ("code", ""), ("markdown", "End")]
    >>> places([{"cell_type": kind, "source": source} for kind, source in kinds])
    [0, 0, 0, 1, 2]
    """
    at, folded_from, cut_here = [0], 0, False
    for before, cell in pairwise(cells):
        words = text(cell["source"]) if cell["cell_type"] == "markdown" else ""
        level = (heading_of(words) or (0,))[0]
        ends = 0 < level <= folded_from
        begins = "{further}" in words
        goes_on = words and before["cell_type"] == "markdown" and (ends or begins or cut_here)
        at.append(at[-1] if goes_on else at[-1] + 1)
        folded_from = level if begins else 0 if ends else folded_from
        cut_here = begins
    return at


def stated(notebook: Notebook, phrases: Iterable[str] = ()) -> Iterator[tuple[int, str, str]]:
    """Yield the numbers that the prose states, each with its cell, counted from 0, and the words around it.

    >>> cell = {"cell_type": "markdown", "source": "Of 1 000 rows in Section 5.1.4, 2.5% have $S=0.798$ or 7."}
    >>> [number for _, number, _ in stated({"cells": [cell]})]
    ['1 000', '2.5%', '0.798']
    """
    passages = list(texts(notebook))
    whole = "\n\n".join(words for _, words in passages)
    ends = list(accumulate(len(words) + 2 for _, words in passages))
    for match in counting(whole, NO_STATEMENT, phrases):
        cell = next(number for (number, _), end in zip(passages, ends, strict=True) if match.start() < end)
        yield cell, match[0], _around(whole, match)


def counting(words: str, without: Iterable[re.Pattern[str]], phrases: Iterable[str]) -> Iterator[re.Match[str]]:
    """Yield the numbers of a text that count."""
    known = in_phrases(words, phrases)
    for pattern in (*without, *_COUNTED, _SMALL_PLACES):
        words = pattern.sub(lambda match: " " * len(match[0]), words)
    for match in NUMBER.finditer(words):
        digits = re.sub(r"[^\d]", "", match[0]).lstrip("0")
        if len(digits) >= (1 if "." in match[0] else 2) and match.start() not in known:
            yield match


def in_phrases(words: str, phrases: Iterable[str]) -> set[int]:
    """Return the places of a text that stand in one of the phrases."""
    spelt = [re.compile(r"\s+".join(map(re.escape, phrase.split()))) for phrase in phrases]
    return {place for pattern in spelt for match in pattern.finditer(words) for place in range(*match.span())}


def _around(words: str, match: re.Match[str]) -> str:
    return " ".join(words[max(0, match.start() - 40) : match.end() + 25].split())


def occurs(number: str, values: set[float]) -> bool:
    """Return whether one of the values is the number, rounded as the number is; a percentage may be a share.

    >>> [occurs("0.80", {v}) for v in (0.7979, -0.8, 0.794)], occurs("2.5%", {0.0251}), occurs("1 000", {1000.0})
    ([True, True, False], True, True)
    """
    plain = re.sub(r"[^\d.]", "", number)
    half = 0.5 * 10.0 ** -len(plain.partition(".")[2]) * (1 + 1e-9)
    scales = (1, 100) if "%" in number else (1,)
    return any(abs(abs(value) * scale - float(plain)) <= half for value in values for scale in scales)


def computed(cell: Notebook) -> Iterator[float]:
    """Yield the numbers in the source and the outputs of a code cell."""
    yield from _of_source(text(cell["source"]))
    for output in cell["outputs"]:
        yield from _of_output(text(output.get("text", "")))
        for kind, shown in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield from _of_output(text(shown))


@cache  # several tests read every notebook
def _of_source(source: str) -> frozenset[float]:
    return frozenset(_literals(source))


@cache
def _of_output(shown: str) -> frozenset[float]:
    return frozenset(numbers(shown))


# --- exercises -----------------------------------------------------------------------------------


@dataclass
class Exercise:
    """An exercise: what it asks, with its hint, what its solution says, and the cells in the solution."""

    label: str
    asked: str
    answered: str
    cells: list[Notebook]


def exercises(notebook: Notebook) -> Iterator[Exercise]:
    """Yield the exercises of a notebook; one ends where the next, or a section, begins."""
    words, cells = "", list[Notebook]()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cells += [cell] if words else []
            continue
        for part in re.split(r"^(?=[`:]{3,}\{exercise|#{1,3} )", text(cell["source"]), flags=re.MULTILINE):
            if re.match(r"[`:]{3,}\{exercise|#", part):
                yield from _exercise(words, cells)
                words, cells = ("" if part.startswith("#") else part), []
            elif words:
                words += f"\n{part}"
    yield from _exercise(words, cells)


def _exercise(words: str, cells: list[Notebook]) -> Iterator[Exercise]:
    asked, *answered = re.split(r"^[`:]{3,}\{solution(?:-start)?\}", words, maxsplit=1, flags=re.MULTILINE)
    if answered:
        label = re.search(r":label: (\S+)", asked)
        yield Exercise(label[1] if label else "", asked, answered[0], cells)


def unsolved(notebook: Notebook, phrases: Iterable[str] = ()) -> list[str]:
    """Return one sentence for each number of a solution that neither its cells nor the question nor a sum yields.

    And one for each number of a question that neither the cells nor the solution takes up.
    """
    faults = []
    for exercise in exercises(notebook):
        yielded = {value for cell in exercise.cells for value in computed(cell)}
        for part, words, other in (("solution", exercise.answered, exercise.asked),
                                   ("question", exercise.asked, exercise.answered)):  # fmt: skip
            values = yielded | worked_out(words) | set(numbers(other))
            for match in counting(words, [LABEL, *NO_STATEMENT[2:]], phrases):
                if not occurs(match[0], values):
                    around = _around(words, match)
                    faults.append(f"the {part} of {exercise.label}: nothing yields {match[0]} (... {around} ...)")
    return faults


# --- counts --------------------------------------------------------------------------------------


def miscounted(notebook: Notebook) -> list[str]:
    """Return what is counted wrongly: the panels of a figure by its caption or alt text, or what `COUNTED` names."""
    faults = []
    for cell, words in texts(notebook):
        panels = _panels(notebook["cells"][cell])
        counts = COUNTED | ({rf"{COUNT} panels?\b": panels} if panels else {})
        faults += [f"cell {cell}: {fault}" for fault in wrong_counts(words, counts)]
    return faults


def wrong_counts(words: str, counts: dict[str, int]) -> list[str]:
    """Return what a text counts wrongly: for each pattern there is one number.

    >>> wrong_counts("Seven patterns and two heads.", {COUNT + " patterns": 7, COUNT + " heads": 3})
    ['two heads, and there are 3']
    """
    flat = " ".join(re.sub(r"\$[^$]*\$", "$", words).split())
    found = [
        (match, number) for pattern, number in counts.items() for match in re.finditer(pattern, flat, re.IGNORECASE)
    ]
    return [f"{match[0]}, and there are {number}" for match, number in found if _count(match[1]) != number]


def _panels(cell: Notebook) -> int:
    """Return how many panels the figure of a cell has; 0 if it shows none."""
    shown = [text(output.get("data", {}).get("text/plain", "")) for output in cell.get("outputs", [])]
    counts = [int(match[1]) for words in shown if (match := re.match(r"<figure: (\d+) panel", words))]
    return sum(counts)


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _WORDS.index(word.lower())


# --- what a notebook says, and what it computes ----------------------------------------------------


def _shown(notebook: Notebook) -> list[str]:
    """Return what each cell says to its reader."""
    said = [""] * len(notebook["cells"])
    for number, words in texts(notebook):
        said[number] += f"\n{words}"
    return said


def texts(notebook: Notebook) -> Iterator[tuple[int, str]]:
    """Yield each cell's number with its text, or with its figure's caption and alt text."""
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "markdown":
            yield number, text(cell["source"])
        else:
            mystnb = cell["metadata"].get("mystnb") or {}
            yield number, str((mystnb.get("figure") or {}).get("caption") or "")
            yield number, str((mystnb.get("image") or {}).get("alt") or "")


def _literals(source: str) -> Iterator[float]:
    """Yield the numbers that a source holds, those in its strings among them, and its powers such as 2**20."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from numbers(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield float(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base, exponent = (getattr(side, "value", None) for side in (node.left, node.right))
            if isinstance(base, int | float) and isinstance(exponent, int) and abs(exponent) < 64 and base:
                yield float(base) ** exponent


def numbers(shown: str) -> Iterator[float]:
    r"""Yield the numbers in an output.

    >>> list(numbers("<b>200 000</b> draws: \\(1.5\\cdot 10^{-3}\\), 2e+02 and 0.25"))
    [200000.0, 0.0015, 200.0, 0.25]
    """
    words = html.unescape(re.sub(r"<[^>]*>", " ", shown))
    words = re.sub(rf"(?<=\d){_SPACE}(?=\d{{3}}(?!\d))", "", words)
    words = re.sub(r"\s*(?:\\cdot|\\times|×|·)\s*10\^\{?(-?\d+)\}?", r"e\1", words)
    yield from (float(match[0]) for match in _PRINTED.finditer(words))
