r"""Markdown as a list of messages, and Markdown again with the messages translated.

A message is a paragraph, a heading, the text of a list item, a row of a table, the title of a directive or an
alternative text. Everything else is structure, which no translator sees: fences, options, labels, displayed formulas,
code. A page whose messages are left as they are comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin

#: Directives whose body is Markdown.
_TEXT = re.compile(
    r"paragraph|instead|from-chapter|further|exercise|hint|admonition|note|figure|grid|grid-item-card|container|glossary|"
    r"prf:(?:theorem|proposition|lemma|proof)"
)
#: Directives whose argument is a title.
_TITLED = re.compile(r"exercise|admonition|grid-item-card|prf:(?:theorem|proposition|lemma)")
_DIRECTIVE = re.compile(r"\{([\w:-]+)\}\s*(.*)")
_OPTION = re.compile(r"\s*:([\w-]+):\s*(.*)")
#: A line that a template fills, and nothing else.
_FILLED = re.compile(r"\s*\{%.*%\}\s*|\s*\{\{.*\}\}\s*")
#: What is left of a message that has no words: formulas, code, roles and marks.
_NO_WORDS = re.compile(r"\$[^$]*\$|`[^`]*`|\{[\w:-]+\}|\W|\d|_")


@dataclass(frozen=True)
class Block:
    """A message and where it stands: the lines from `start` to `end`, what stands before it, and after it."""

    start: int
    end: int
    before: str
    text: str
    after: str = ""


def parser() -> MarkdownIt:
    """Return a parser that knows the blocks of the book's Markdown."""
    return (
        MarkdownIt("commonmark")
        .enable("table")
        .use(front_matter_plugin)
        .use(dollarmath_plugin)
        .use(colon_fence_plugin)
        .use(deflist_plugin)
        .use(myst_block_plugin)
    )


_PARSER = parser()


def unwrapped(text: str) -> str:
    r"""Return a text in one line, but for the breaks that the author wants.

    >>> unwrapped("one\ntwo\\\nthree")
    'one two\\\nthree'
    """
    return re.sub(r"(?<!\\)\n[ \t]*", " ", text).strip()


def blocks(text: str) -> list[Block]:
    r"""Return the messages of a page or of a cell, in order.

    >>> [block.text for block in blocks("# A title\n\nSome\nwords.\n\n```{exercise} Pencil\n:label: x\n\nWhy?\n```\n")]
    ['A title', 'Some words.', 'Pencil', 'Why?']
    """
    lines = text.split("\n")
    return [block for block in _blocks(lines, 0, len(lines)) if says_something(block.text)]


def says_something(text: str) -> bool:
    """Return whether a message has a word to translate."""
    return bool(_NO_WORDS.sub("", text)) and not _FILLED.fullmatch(text)


def _blocks(lines: list[str], first: int, last: int) -> Iterator[Block]:
    """Yield the messages of the lines from `first` to `last`, which no block crosses."""
    row = False
    for token in _PARSER.parse("\n".join(lines[first:last])):
        if token.map is None:
            row = row and token.type != "tr_close"
            continue
        start, end = token.map[0] + first, token.map[1] + first
        if token.type == "tr_open":
            row = True
            yield Block(start, start + 1, "", lines[start].strip())
        elif token.type == "inline" and not row:
            yield from _paragraphs(lines, start, end, token)
        elif token.type in ("fence", "colon_fence"):
            yield from _directive(lines, start, end, token)


def _paragraphs(lines: list[str], start: int, end: int, token: Token) -> Iterator[Block]:
    """Yield a paragraph; the lines of a template divide it."""
    content = token.content.split("\n")
    shown = lines[start : start + len(content)]
    at = 0
    while at < len(content):
        if _FILLED.fullmatch(content[at]):
            at += 1
            continue
        to = at
        while to < len(content) and not _FILLED.fullmatch(content[to]):
            to += 1
        before = shown[at].partition(content[at])[0]
        after = shown[at][len(before) + len(content[at]) :] if to == at + 1 else ""
        yield Block(start + at, start + to, before, unwrapped("\n".join(content[at:to])), after)
        at = to


def _directive(lines: list[str], start: int, end: int, token: Token) -> Iterator[Block]:
    """Yield the title, the alternative text and the messages in the body of a directive."""
    found = _DIRECTIVE.fullmatch(token.info.strip())
    if not found:
        return
    name, title = found[1], found[2].strip()
    if title and _TITLED.fullmatch(name):
        before = lines[start][: lines[start].rindex(title)]
        yield Block(start, start + 1, before, title)
    closes = end - start > 1 and re.fullmatch(
        rf"\s*{re.escape(token.markup[0])}{{{len(token.markup)},}}\s*", lines[end - 1]
    )
    body, stop = start + 1, end - 1 if closes else end
    while body < stop and (option := _OPTION.fullmatch(lines[body])):
        if option[1] == "alt":
            yield Block(body, body + 1, lines[body][: option.start(2)], option[2].strip())
        body += 1
    if _TEXT.fullmatch(name):
        yield from _blocks(lines, body, stop)


def translated(text: str, translate: Callable[[str], str]) -> str:
    r"""Return a page or a cell with its messages translated.

    >>> print(translated("# A title\n\n* one\n* two\n", str.upper))
    # A TITLE
    <BLANKLINE>
    * ONE
    * TWO
    <BLANKLINE>
    """
    lines: list[str | None] = list(text.split("\n"))
    for block in blocks(text):
        said = translate(block.text)
        if said == block.text:
            continue
        if block.before.strip() == "" and block.text.startswith("|"):
            lines[block.start] = said
            continue
        margin = re.sub(r"[^>\s]", " ", block.before)
        lines[block.start] = block.before + said.replace("\n", "\n" + margin) + block.after
        lines[block.start + 1 : block.end] = [None] * (block.end - block.start - 1)
    return "\n".join(line for line in lines if line is not None)
