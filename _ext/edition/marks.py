"""The marks of a page in Chinese where programs have joined its texts: full-width beside Han, and without blanks.

A text that a translator wrote has the right marks already. What is set here lies between two texts: a blank between a
word and a link, the brackets around the name of a theorem, the comma of a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bs4 import Tag
from bs4.element import NavigableString

from .faults import HAN

#: Stand between the texts of a line, and for what is no text.
_NEXT, _THING = "\0", "\1"
#: Marks that bring their own blank.
_WIDE = "，。；：、？！（）《》"
#: Marks and what they are behind Han.
_MARKS = str.maketrans(",;:.", "，；：。")
#: What is left as it is: code, formulas, what cells print.
_QUIET = {"pre", "code", "script", "style", "math", "svg", "textarea", "select", "img", "input"}
_QUIET_CLASSES = {"dataframe", "api-link", "bibtex-citation", "chapter-references", "citation"}
#: What begins a line of its own.
_BLOCKS = {
    "p",
    "li",
    "dl",
    "dd",
    "dt",
    "tr",
    "td",
    "th",
    "figure",
    "figcaption",
    "details",
    "summary",
    "div",
    "section",
}
_BLOCKS |= {"ul", "ol", "table", "tbody", "thead", "aside", "form", "label", "br", "h1", "h2", "h3", "h4"}
#: What is set apart from the words around it.
_APART = {"verdict-mark", "verdict-badge", "claim-verdict", "claim-title", "claim-id", "claim-link", "headerlink"}


def closed(line: str) -> str:
    """Return a line with the marks and blanks that Chinese has; a null character stands between two of its texts.

    >>> closed("由 \\0定理 1 \\0 (秩)，").split("\\0"), closed("对\\0有效秩 \\0一章").split("\\0")
    (['由', '定理 1', '（秩），'], ['对', '有效秩', '一章'])
    >>> closed("极限, 导数; 和"), closed("宽度 3, d = 2"), closed("词 (rank) 与 (秩)"), closed("“a” “b” 与 “秩”")
    ('极限，导数；和', '宽度 3, d = 2', '词 (rank) 与（秩）', '“a” “b” 与 “秩”')
    >>> closed("(\\0《秩》图 4\\0)").split("\\0")
    ['（', '《秩》图 4', '）']
    """
    inner = rf"(?:[^()]|\([^()]*\))*[{HAN}](?:[^()]|\([^()]*\))*"
    line = re.sub(rf"\(({inner})\)", r"（\1）", line)
    line = re.sub(rf"(?<=[{HAN}）》])(\0*)([,;:.])(?=[ \0]|$)", lambda m: m[1] + m[2].translate(_MARKS), line)
    line = re.sub(rf"(?<=[{_WIDE}])[ \0]+(?=[^ \0])|[ \0]+(?=[{_WIDE}])", _nulls, line)
    return re.sub(rf"(?<=[{HAN}])[ \0]+(?=[{HAN}])", _nulls, line)


def _nulls(found: re.Match[str]) -> str:
    return _NEXT * found[0].count(_NEXT)


def close_up(element: Tag) -> None:
    """Set the marks between the texts of an element."""
    line: list[NavigableString | str] = []
    for piece in [*_pieces(element), "\n"]:
        if piece != "\n" or isinstance(piece, NavigableString):
            line.append(piece)
        else:
            _close(line)
            line = []


def _close(line: list[NavigableString | str]) -> None:
    before = _NEXT.join(line)
    if not re.search(f"[{HAN}]", before):
        return
    for piece, made in zip(line, closed(before).split(_NEXT), strict=True):
        if isinstance(piece, NavigableString) and made != piece:
            piece.replace_with(NavigableString(made))


def _pieces(element: Tag) -> Iterator[NavigableString | str]:
    """Yield the texts of an element, one character for each thing that is no text, and the ends of lines."""
    for child in element.children:
        if isinstance(child, Tag):
            classes = set(child.get_attribute_list("class"))
            if child.name in _QUIET or classes & _QUIET_CLASSES:
                yield _THING
            elif child.name in _BLOCKS or classes & _APART:
                yield "\n"
                yield from _pieces(child)
                yield "\n"
            else:
                yield from _pieces(child)
        elif type(child) is NavigableString:
            yield child
