r"""The words of scripts: what a script writes into a page, in another language.

A script is not changed for it. The literals of its text that a catalogue knows are put into the other language in a
copy, which the pages of the edition load: strings, and templates, whose places are numbered: ``{1} of {2} figures``.
A single word may be a key. It is put into the other language where the script calls it a word: ``say("layer")``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

#: What a literal may begin behind, where ``/`` begins a regular expression.
_BEFORE_REGEX = re.compile(r"(?:[(,=:\[!&|?{};+*~^<>-]|\b(?:return|typeof|case|of|in)|^)\s*$")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
#: A literal that a reader would be shown: words, and no name of a program, address or selector.
_PROSE = re.compile(
    r"(?=.*[a-z]{2})(?:[^\w]*[A-Z][a-z]+(?:[ ,].*)?|.*[a-z]{2,},? [a-z]+.*)"
    r"|(?=.*\{\d\})[^<>=\"/.:#-]*(?:\s[a-z]{2,}|[a-z]{2,}\s)[^<>=\"/.:#-]*",  # {1} of {2} figures
    re.DOTALL,
)
#: What may be a key of a program as well as a word, and what stands before the one that is a word.
_KEY = re.compile(r"[a-z]+(?:-[a-z]+)*")
_SAID = "say("
Translate = Callable[[str, bool], str]


def translated(script: str, translate: Translate) -> str:
    r"""Return a script with its literals translated.

    translate : takes a literal, and whether the script says it to the reader; an unknown one comes back as it is.

    >>> words = {"Nothing found.": "没有结果。", "{1} of {2}": "共 {2}，有 {1}"}
    >>> print(translated("f(n ? `${n} of ${of('a')}` : \"Nothing found.\")", lambda text, _: words.get(text, text)))
    f(n ? `共 ${of('a')}，有 ${n}` : "没有结果。")
    """
    made, at = "", 0
    while at < len(script):
        marked = made.endswith(_SAID)
        if script[at] == "`":
            said, at = _template(script, at, translate, marked)
        elif string := _STRING.match(script, at):
            said, at = _string(string[0], translate, marked), string.end()
        else:
            quiet = _quiet(script, at)
            said, at = (quiet[0], quiet.end()) if quiet else (script[at], at + 1)
        made += said
    return made


def _quiet(script: str, at: int) -> re.Match[str] | None:
    """Return the remark or the regular expression that begins here: what stands in it is no literal."""
    if script[at] != "/":
        return None
    if remark := _COMMENT.match(script, at):
        return remark
    return _REGEX.match(script, at) if _BEFORE_REGEX.search(script[max(0, at - 40) : at]) else None


def _string(literal: str, translate: Translate, marked: bool) -> str:
    """Return a string with what it says translated."""
    quote, inside = literal[0], re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), literal[1:-1])
    said = translate(inside, marked)
    return literal if said == inside else quote + said.replace(quote, "\\" + quote) + quote


def _template(script: str, start: int, translate: Translate, marked: bool) -> tuple[str, int]:
    """Return a template with what it says translated, and where it ends."""
    pieces, places, at, piece = [], [], start + 1, ""
    while script[at] != "`":
        if script.startswith("${", at):
            end = _closing(script, at + 2)
            pieces.append(piece)
            places.append(translated(script[at + 2 : end], translate))
            piece, at = "", end + 1
        else:
            width = 2 if script[at] == "\\" else 1
            piece += script[at : at + width]
            at += width
    pieces.append(piece)
    message = "".join(part + (f"{{{k}}}" if k <= len(places) else "") for k, part in enumerate(pieces, 1))
    said = re.sub(r"\{(\d+)\}", lambda place: f"${{{places[int(place[1]) - 1]}}}", translate(message, marked))
    return f"`{said}`", at + 1


def _closing(script: str, at: int) -> int:
    """Return where the brace closes that is open."""
    depth = 1
    while True:
        if script[at] == "`":
            at = _template(script, at, lambda text, _: text, False)[1]
            continue
        if script[at] in "\"'" and (found := _STRING.match(script, at)):
            at = found.end()
            continue
        depth += {"{": 1, "}": -1}.get(script[at], 0)
        if depth == 0:
            return at
        at += 1


def messages(script: str) -> Iterator[str]:
    """Yield the literals of a script that look like words for a reader, or are called so.

    >>> list(messages('slider("layer", say("layer"), "Which layer?")'))
    ['layer', 'Which layer?']
    """
    heard: list[tuple[str, bool]] = []
    translated(script, lambda text, marked: heard.append((text, marked)) or text)  # type: ignore[func-returns-value]
    yield from dict.fromkeys(text for text, marked in heard if marked or _PROSE.fullmatch(text))


def in_language(script: str, known: Mapping[str, str]) -> str:
    """Return a script with the literals that a catalogue knows in its language.

    >>> in_language('slider("layer", say("layer"))', {"layer": "层"})
    'slider("layer", say("层"))'
    """
    return translated(script, lambda text, said: known.get(text, text) if said or not _KEY.fullmatch(text) else text)
