r"""How long a chapter takes: its words, its displays and its exercises, and the minutes for them.

What is folded (hints, solutions, code, cards) is not counted. A display is a formula or a line of a derivation on a
line of its own, or a picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from linewise.derive import display

#: How many words and displays a minute has, and how many minutes an exercise.
WORDS, DISPLAYS, EXERCISE = 200, 5, 6
_FOLDED = re.compile(r"^(`{3,}|:{3,})\{admonition\}[^\n]*\n:class: dropdown\n.*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
_EXERCISE = re.compile(r"^(`{3,}|:{3,})\{exercise\}.*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
_DISPLAY = re.compile(r"\$\$.*?\$\$", re.DOTALL)
_SILENT = re.compile(
    r"<!--.*?-->|<[^>\n]+>"  # comments and tags
    r"|^[ ]*(?:`{3,}|:{3,})[^\n]*$|^:[\w-]+:[^\n]*$|^\([\w.-]+\)=$"  # fences, options, anchors
    r"|\{[\w:-]+\}`[^`]*`|(?<=\])\([^)\s]*\)",  # roles, addresses of links
    re.MULTILINE | re.DOTALL,
)
_HAN = r"[\u3400-\u9fff]"
_WORD = re.compile(rf"\$[^$]+\$|{_HAN}{{1,2}}|(?:(?!{_HAN})[^\W_])+(?:['’.,/-](?:(?!{_HAN})[^\W_])+)*")


@dataclass(frozen=True)
class Length:
    """What a reader of a chapter meets: words, displays and exercises."""

    words: int
    displays: int
    exercises: int

    @property
    def minutes(self) -> int:
        """The minutes for reading, without the exercises."""
        return minutes(self.words, self.displays, 0)


def minutes(words: int, displays: int, exercises: int) -> int:
    """Return how many minutes a text takes, at least 1; from 20 on in steps of 5, since nobody reads by the minute.

    >>> minutes(1000, 10, 0), minutes(1000, 10, 2), minutes(4200, 60, 0), minutes(3, 0, 0)
    (7, 19, 35, 1)
    """
    if min(words, displays, exercises) < 0:
        raise ValueError(f"expected no negative number, got words {words}, displays {displays}, exercises {exercises}")
    time = max(ceil(words / WORDS + displays / DISPLAYS + EXERCISE * exercises), 1)
    return time if time < 20 else 5 * round(time / 5)


def words_of(markdown: str) -> int:
    r"""Return the number of words of a text in Markdown; a formula counts as a word, and so do two Chinese characters.

    >>> words_of("The *variance* of $q\\cdot k$ is [known](#here). {mark}`5.1.5`"), words_of("注意力 (attention)")
    (6, 3)
    """
    return len(_WORD.findall(_SILENT.sub(" ", _DISPLAY.sub(" ", markdown))))


def length_of(cells: Iterable[Mapping[str, Any]]) -> Length:
    """Return the length of a notebook, given the cells of its JSON."""
    words = displays = exercises = 0
    in_solution = False
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            shown, in_solution = _without_solutions(text, in_solution)
            exercises += len(_EXERCISE.findall(shown))
            shown = _FOLDED.sub("", _EXERCISE.sub("", shown))
            words, displays = words + words_of(shown), displays + len(_DISPLAY.findall(shown))
        elif not in_solution:
            displays += sum(_displays(output.get("data", {})) for output in cell.get("outputs", ()))
    return Length(words, displays, exercises)


def _without_solutions(text: str, inside: bool) -> tuple[str, bool]:
    """Return what of a cell is no solution, and whether its end is in one; a solution may begin in an earlier cell."""
    kept = []
    for part in re.split(r"(\{solution-(?:start|end)\})", text):
        if part.startswith("{solution-"):
            inside = part == "{solution-start}"
        elif not inside:
            kept.append(part)
    return "".join(kept), inside


def _displays(data: Mapping[str, Any]) -> int:
    """Return the number of displays in an output: the lines of a derivation, or a picture."""
    if display.MIME in data:
        return len(data[display.MIME]["lines"])
    return int(any(kind.startswith("image/") for kind in data))
