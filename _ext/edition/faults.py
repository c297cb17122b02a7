r"""What is wrong with a translation, message by message: what a reader of the other language would be told differently.

Each fault is a sentence. A translation keeps formulas, numbers, code, links, labels and citations; it marks what the
original marks; it names the glossary's terms by the glossary's names; and it keeps the words that a claim turns on:
not, at most, only, every, almost, may.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from markdown_it import MarkdownIt

HAN = "\u4e00-\u9fff"
_FORMULA = re.compile(r"\$\$?[^$]+\$\$?")
_CODE = re.compile(r"`[^`]+`")
_ROLE = re.compile(r"\{([\w:-]+)\}`([^`]+)`")
_TARGET = re.compile(r"\]\(([^()\s]+)\)")
_FILLED = re.compile(r"\{\{.*?\}\}|\{%.*?%\}")
_NUMBER = re.compile(r"(\d+(?:\.\d+)*)(?: ?(million|billion|万|亿))?")
_SIZES = {"million": 10**6, "billion": 10**9, "万": 10**4, "亿": 10**8}
#: A mark of half width beside a Han character, on either side.
_HALF = re.compile(rf"(?<=[{HAN}])[,;:?!()]|[,;:?!()](?=[{HAN}])|(?<=[{HAN}])\.(?!\d)")
#: Marks with which no line begins.
_NO_BEGIN = "，。、；：？！）》」』”’"
#: A formula, or the mark in its place, that touches a Han character.
_TOUCHES = re.compile(rf"[{HAN}]\$|\$[{HAN}]")
_MARKDOWN = MarkdownIt("commonmark")
#: Words of a source, which are written as the source writes them.
_QUOTED = re.compile(r"“[^”]*”")


def _links(text: str) -> list[str]:
    roles = [(name, re.sub(r".*<(.+)>$", r"\1", body, flags=re.DOTALL)) for name, body in _ROLE.findall(text)]
    return [" ".join(role) for role in roles] + _TARGET.findall(text)


def _code(text: str) -> list[str]:
    return _CODE.findall(_ROLE.sub(" ", text))


def _numbers(text: str) -> list[str]:
    for pattern in (_FILLED, _FORMULA, _ROLE, _CODE, _TARGET):
        text = pattern.sub(" ", text)
    return [f"{float(digits) * _SIZES[size]:.12g}" if size else digits for digits, size in _NUMBER.findall(text)]


def _marks(text: str) -> list[str]:
    """Return the kinds of marks that a browser would show: bold, italic, code."""
    plain = _FORMULA.sub("x", _ROLE.sub("x", text))
    tokens = _MARKDOWN.parseInline(plain)[0].children or []
    return [token.type for token in tokens if token.type in ("strong_open", "em_open", "code_inline", "link_open")]


#: What is the same in both languages: how it is called, and how it is found.
_SAME: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
    ("formulas", _FORMULA.findall),
    ("code", _code),
    ("links", _links),
    ("places that a template fills", _FILLED.findall),
    ("numbers", _numbers),
    ("marks", _marks),
)


def words_of(text: str) -> str:
    """Return the words of a message, without formulas, code, roles and the targets of links."""
    for pattern in (_FILLED, _FORMULA, _ROLE, _CODE):
        text = pattern.sub(" ", text)
    return re.sub(r"[*_\[\]]", "", _TARGET.sub("]", text))


@cache
def _finder(pattern: str) -> re.Pattern[str]:
    """Return what finds a pattern as a word."""
    return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE)


def faults(
    message: str, said: str, terms: Mapping[str, Sequence[str]], logic: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    r"""Yield what is wrong with a translation, a sentence each.

    terms : the names in the other language that a term may have, by the pattern that finds it.
    logic : what a word that a claim turns on may be in the other language, by the pattern that finds it.

    >>> list(faults("At most $n$ rows.", "至少有 $m$ 行.", {}, {"at most": ["至多"]}))[:2]
    ["formulas: lost ['$n$'], new ['$m$']", "'.' of half width beside a Han character"]
    """
    for name, find in _SAME:
        before, after = Counter(find(message)), Counter(find(said))
        if before != after:
            lost, new = (sorted((a - b).elements()) for a, b in ((before, after), (after, before)))
            yield f"{name}: lost {lost}, new {new}"
    bare = _ROLE.sub(" ", _CODE.sub(" ", _FORMULA.sub(" ", _QUOTED.sub("", _FILLED.sub(" ", _TARGET.sub("]", said))))))
    yield from (f"{mark!r} of half width beside a Han character" for mark in dict.fromkeys(_HALF.findall(bare)))
    yield from (f"a line begins with {line[0]}" for line in said.split("\n") if line.strip()[:1] in _NO_BEGIN and line)
    if _TOUCHES.search(_QUOTED.sub("", _CODE.sub("", said))):
        yield "no space between a Han character and a formula"
    english, words = words_of(message), words_of(said).lower()
    for table, kind in ((terms, "the term"), (logic, "the word")):
        for pattern, names in table.items():
            found = _finder(pattern).search(english)
            if found and not any(name.lower() in words for name in names):
                yield f"{kind} {found[0]!r}: expected one of {', '.join(names)}"
