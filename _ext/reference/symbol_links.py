"""A quiet link to the notation where a chapter first uses a symbol.

A symbol of several signs, such as d_k, means the same in every chapter. A single letter means much, and so do the
symbols that the notation lists with several meanings: a chapter links them if the notation names it, or one of its
equations, as the place where they are defined. In exercises the letters are the reader's own, so nothing is linked.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from mathematics import plain
from paper.print_book import PRINTERS
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from .notation import PAGE, Symbol, meanings, read_symbols
from .terms import own_words

_TAG = re.compile(r"\\tag\{([\w.]+)\}")


def parts(symbol: Symbol) -> list[str]:
    r"""Return the TeX of each symbol of an entry.

    >>> parts(Symbol(r"Q,\ q_i", ("Q",), "", "", (), "", ""))
    ['Q', 'q_i']
    """
    return symbol.tex.split(r",\ ")


def is_letter(tex: str) -> bool:
    r"""Return whether a symbol is a single letter.

    >>> [tex for tex in ("n", r"\phi", "d_k", r"\mathbb{E}") if is_letter(tex)]
    ['n', '\\phi']
    """
    return re.fullmatch(r"\w|\\[A-Za-z]+", tex) is not None


class LinkSymbols(SphinxTransform):
    """Link the first use of each symbol of a chapter to its line in the notation."""

    default_priority = 861  # after the terms

    def apply(self, **kwargs: Any) -> None:
        """Visit the inline formulas of one chapter."""
        if not self.env.docname.startswith("chapters/") or self.app.builder.name in PRINTERS:
            return
        known = self.known()
        for formula in list(self.document.findall(nodes.math)):
            symbol = known.get(formula.astext().strip())
            if symbol and own_words(formula) and not in_exercise(formula):
                known = {tex: other for tex, other in known.items() if tex != formula.astext().strip()}
                formula.replace_self(self.linked(formula, symbol))

    def known(self) -> dict[str, Symbol]:
        """Return the symbols that this chapter uses in the sense of the notation, by their TeX."""
        path = Path(self.env.srcdir) / f"{PAGE}.yml"
        numbers = {n for block in self.document.findall(nodes.math_block) for n in _TAG.findall(block.astext())}
        here = {self.env.docname.removeprefix("chapters/"), *numbers}
        return {
            tex: symbol
            for symbol in read_symbols(path)
            for tex in parts(symbol)
            if here & {*symbol.places} or not (is_letter(tex) or tex in meanings(path))
        }

    def linked(self, formula: nodes.math, symbol: Symbol) -> nodes.reference:
        """Return a formula that leads to the line of its symbol, and says what it means."""
        target = f"{self.app.builder.get_relative_uri(self.env.docname, PAGE)}#{symbol.anchor}"
        meaning = re.sub(r"\$(.+?)\$", lambda m: plain(m[1]), symbol.meaning)
        return nodes.reference(
            "", "", formula.deepcopy(), internal=True, refuri=target, reftitle=meaning, classes=["symbol-link"]
        )


def in_exercise(node: nodes.Node | None) -> bool:
    """Return whether a node is part of an exercise or of its solution."""
    while node is not None:
        if isinstance(node, nodes.Element) and {"exercise", "solution"} & {*node.get("classes", [])}:
            return True
        node = node.parent
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    app.add_transform(LinkSymbols)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
