r"""Indices, powers and apostrophes of the plain text of claims and cards, as a book prints them.

A check says "d_k = 64", "e^2" or "E D^-1" in plain text, which a terminal shows as well. The pages show an index below
the line and a power above it. Formulas in TeX, mark-up and names of code are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes

#: An index belongs to a single letter, and is not the middle of a name; an apostrophe may be escaped as in HTML.
_SIGN = re.compile(
    r"(?<![\w/.])(?P<base>[A-Za-z])_(?P<sub>[A-Za-z]+|\d+)(?![\w/(])"
    r"|(?<=[\w|)])\^(?P<sup>-?\d+|T)(?!\w)"
    r"|(?<=\w)(?P<apostrophe>'|&\#x27;|&\#39;)(?=\w)",
)
_MARKUP = re.compile(r"(\\\(.*?\\\)|<code.*?</code>|<[^>]+>)", re.DOTALL)


def split(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of plain text, each with what it is: text, sub or sup.

    >>> list(split("the sheet's d_k = e^-2"))
    [('text', 'the sheet’s d'), ('sub', 'k'), ('text', ' = e'), ('sup', '−2')]
    >>> list(split("least_squares/rank at same_row"))
    [('text', 'least_squares/rank at same_row')]
    """
    plain, start = "", 0
    for sign in _SIGN.finditer(text):
        plain += text[start : sign.start()] + (sign["base"] or "") + ("’" if sign["apostrophe"] else "")
        start = sign.end()
        kind = "sub" if sign["sub"] else "sup" if sign["sup"] else ""
        if kind:
            yield "text", plain
            yield kind, sign[kind].replace("-", "−")
            plain = ""
    if plain + text[start:]:
        yield "text", plain + text[start:]


def in_html(text: str) -> str:
    r"""Return stored HTML with its signs; formulas and code are left as they are.

    >>> in_html(r'<li title="a_b">d_k and \(d_k\)</li>')
    '<li title="a_b">d<sub>k</sub> and \\(d_k\\)</li>'
    """
    parts = _MARKUP.split(text)
    return "".join(
        part if k % 2 else "".join(t if kind == "text" else f"<{kind}>{t}</{kind}>" for kind, t in split(part))
        for k, part in enumerate(parts)
    )


def as_nodes(text: str) -> Iterator[nodes.Node]:
    """Yield plain text as nodes of docutils."""
    for kind, part in split(text):
        if kind == "text":
            yield nodes.Text(part)
        else:
            yield (nodes.subscript if kind == "sub" else nodes.superscript)(part, part)
