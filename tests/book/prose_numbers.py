"""Find numbers in a chapter's prose that no cell of the chapter printed or holds.

A number counts when it has a decimal point and at least two significant digits, or at least three significant
digits. Rounded as the prose rounds it, it must be a number in an output or in the source of a code cell nearby; the
opening and the closing of a chapter may name every number of it. Displayed formulas, exercises with their solutions,
and references to sections and equations do not count.
"""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from itertools import accumulate

from notebook_rules import Notebook, text

#: How many cells away a number of the prose may be computed, and how many cells are the opening of a chapter.
REACH, OPENING = 8, 3
_CLOSING = "## What to remember"
_SPACE = r"(?:[ ,\u2009\u202f]|\\,|\{,\})"
#: Digits in groups of three, or in one piece, and perhaps decimals; not the parts of 5.1.4 and not those of a name.
NUMBER = re.compile(rf"(?<![\w.])(?:\d{{1,3}}(?:{_SPACE}\d{{3}})+(?!\d)|\d+)(?:\.\d+)?(?!\.?\d)(?P<percent>\s*\\?%)?")
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
_PRINTED = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def unprinted(notebook: Notebook) -> list[str]:
    """Return one sentence for each number in the prose that is neither printed nor in the source of a code cell."""
    values = within_reach(notebook)
    return [
        f"cell {cell}: no code cell nearby prints or holds {number} (... {around} ...)"
        for cell, number, around in stated(notebook)
        if not occurs(number, values[cell])
    ]


def within_reach(notebook: Notebook) -> list[set[float]]:
    """Return for each cell the numbers that its prose may state."""
    cells = notebook["cells"]
    here = [set(computed(cell)) if cell["cell_type"] == "code" else set[float]() for cell in cells]
    closing = next((k for k, cell in enumerate(cells) if _CLOSING in text(cell["source"])), len(cells))
    everywhere = set[float]().union(*here)
    nearby = [set[float]().union(*here[max(0, k - REACH) : k + REACH + 1]) for k in range(len(cells))]
    return [nearby[k] if OPENING <= k < closing else everywhere for k in range(len(cells))]


def stated(notebook: Notebook) -> Iterator[tuple[int, str, str]]:
    """Yield the numbers that the prose states, each with its cell, counted from 0, and the words around it.

    >>> cell = {"cell_type": "markdown", "source": "Of 1 000 rows in Section 5.1.4, 2.5% have $S=0.798$ or 12."}
    >>> [number for _, number, _ in stated({"cells": [cell]})]
    ['1 000', '2.5%', '0.798']
    """
    passages = list(_prose(notebook))
    whole = "\n\n".join(words for _, words in passages)
    ends = list(accumulate(len(words) + 2 for _, words in passages))
    counted = whole
    for pattern in NO_STATEMENT:
        counted = pattern.sub(lambda match: " " * len(match[0]), counted)
    for match in NUMBER.finditer(counted):
        digits = re.sub(r"[^\d]", "", match[0]).lstrip("0")
        if len(digits) >= (2 if "." in match[0] else 3):
            cell = next(number for (number, _), end in zip(passages, ends, strict=True) if match.start() < end)
            yield cell, match[0], " ".join(whole[max(0, match.start() - 40) : match.end() + 25].split())


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
    yield from _literals(text(cell["source"]))
    for output in cell["outputs"]:
        yield from _numbers(text(output.get("text", "")))
        for kind, shown in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield from _numbers(text(shown))


def _prose(notebook: Notebook) -> Iterator[tuple[int, str]]:
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
            yield from _numbers(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield float(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base, exponent = (getattr(side, "value", None) for side in (node.left, node.right))
            if isinstance(base, int | float) and isinstance(exponent, int) and abs(exponent) < 64 and base:
                yield float(base) ** exponent


def _numbers(shown: str) -> Iterator[float]:
    r"""Yield the numbers in an output.

    >>> list(_numbers("<b>200 000</b> draws: \\(1.5\\cdot 10^{-3}\\), 2e+02 and 0.25"))
    [200000.0, 0.0015, 200.0, 0.25]
    """
    words = html.unescape(re.sub(r"<[^>]*>", " ", shown))
    words = re.sub(rf"(?<=\d){_SPACE}(?=\d{{3}}(?!\d))", "", words)
    words = re.sub(r"\s*(?:\\cdot|\\times|×|·)\s*10\^\{?(-?\d+)\}?", r"e\1", words)
    yield from (float(match[0]) for match in _PRINTED.finditer(words))
