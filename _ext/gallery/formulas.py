r"""A sheet of formulas: every numbered equation of the sources, its verdict, and what holds where a source is wrong.

`formulas.md` includes the template ``assets/sheet.md``, which is filled from the ``\tag``ged displays of
the chapters and from the ledger when Sphinx reads the page. Printed, the sheet has two pages (``formulas.css``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from linewise.ledger import Row
from linewise.ledger.coverage import Book, Sentence, tags_of
from linewise.pages.ledger_pages import book_of, markdown

from . import filled

#: Of the sentences without a number, the sheet has those whose conclusion is false.
GRAVEST = "wrong conclusion"
#: A formula that shows more signs gets a line for each of its relations: three columns fit on a page of A4.
LONGEST = 34
#: So short a left side shares its line with what follows, if the line is little longer than that.
SHORT = 8
_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)


@dataclass(frozen=True)
class Formula:
    """An equation: its number, its name in a few words, its TeX, the claim that decides it, and what holds instead."""

    number: str
    name: str
    tex: str
    row: Row | None
    corrections: tuple[Row, ...]


def displays(notebook: Any) -> dict[str, str]:
    r"""Return the displays of a notebook by their numbers, without the numbers.

    A display that ends in a comma goes on in the formula that a "with" or "where" below it begins with, if that is an
    equation, a bound or a membership.

    >>> cell = {"cell_type": "markdown", "source": "$$a=2b, \\tag{6}$$\n\nwith $b=1$. Then $$c \\tag{7}$$"}
    >>> displays({"cells": [cell]})
    {'6': 'a=2b,\\quad b=1', '7': 'c'}
    """
    found: dict[str, str] = {}
    for text in ("".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown"):
        for display in _DISPLAY.finditer(text):
            tex = untagged(display[1])
            more = re.match(r"\s*(?:with|where|其中) \$([^$]+)\$", text[display.end() :])
            if tex.endswith(",") and more and re.search(r"[=<>]|\\(?:in|sim|[lg]eq?)\b", more[1]):
                tex += rf"\quad {more[1]}"
            found |= dict.fromkeys(tags_of(display[1]), tex.rstrip(".,; "))
    return found


def untagged(tex: str) -> str:
    r"""Return the TeX of a display without its number.

    >>> untagged("\n  x = 1 .\\tag{5.1.3}\n")
    'x = 1 .'
    """
    return " ".join(re.sub(r"\\tag\*?\{[^{}]+\}", "", tex).split())


def width(tex: str) -> int:
    r"""Return about how many signs a formula shows in a line.

    >>> width(r"\lVert x\rVert^2=\mathrm{Var}(x)")
    11
    """
    plain = re.sub(r"\\(?:[td]?frac|sqrt|tilde|math\w+|left|right|[bB]igg?[lr]|q?quad|[,;! ])", "", tex)
    return len(re.findall(r"\\[a-zA-Z]+|[^{}^_&\s\\]", plain))


def broken(tex: str, longest: int = LONGEST) -> str:
    r"""Return a wide formula in lines: a line for each relation of a chain, and one after each wide gap.

    >>> print(broken("S=a_{i=1}<b", longest=6))
    \begin{aligned}S&=a_{i=1}\\&<b\end{aligned}
    """
    aligned = re.fullmatch(r"\\begin\{aligned\}(.*)\\end\{aligned\}", tex)
    if (r"\begin" in tex and not aligned) or width(tex) <= longest:
        return tex
    lines = []
    for part in re.split(r"\\\\ ?" if aligned else r",?(?:\\q?quad ?)+", aligned[1] if aligned else tex):
        left, *chain = _at_relations(part.replace("&", ""))
        together = width(left + chain[0]) if chain else 0
        if chain and left.strip() and (together <= longest or (width(left) <= SHORT and together <= longest + 2)):
            left = f"{left}&{chain.pop(0)}"
        elif left.strip():
            left = f"&{left}"
        lines += [left] * bool(left.strip()) + [f"&{link}" for link in chain]
    return r"\begin{aligned}" + r"\\".join(lines) + r"\end{aligned}"


def _at_relations(tex: str) -> list[str]:
    r"""Split before the relations that are in no braces and in no brackets that grow with their contents.

    >>> _at_relations(r"f(x)=\bigl(a=b\bigr)\le c")
    ['f(x)', '=\\bigl(a=b\\bigr)', '\\le c']
    """
    parts, depth, start = [], 0, 0
    for found in re.finditer(r"[{}=<]|\\(?:le|ge|approx|left|right|[bB]igg?[lr])(?![a-zA-Z])", tex):
        sign = found[0]
        if sign in ("=", "<", r"\le", r"\ge", r"\approx"):
            if not depth:
                parts.append(tex[start : found.start()])
                start = found.start()
        else:
            depth += 1 if sign == "{" or sign.endswith(("left", "l")) else -1
    return [*parts, tex[start:]]


def formulas(book: Book, found: dict[str, str]) -> Iterator[tuple[str, list[Formula]]]:
    """Yield the name of each source and its numbered equations that the site shows, in order."""
    for source in book.sources:
        numbered = [(row, n) for row in source.rows for n in row.equations if n in found]
        if numbered:
            yield source.name, [formula(book, row, n, found[n]) for row, n in numbered]


def formula(book: Book, sentence: Sentence, number: str, tex: str) -> Formula:
    """Return an equation of a sentence: its own claim decides it, or the first claim that treats the sentence."""
    treating = book.deciding.get(sentence.at, [])
    names = (number, re.sub(r"^A\.", "article/", number), re.sub(r"^R\.", "report/", number))
    own = [book.by_id.get(name) for name in names]
    row = next((row for row in [*own, *treating] if row), None)
    corrections = tuple(row for row in treating if row.claim.grade)
    name = row.claim.title if row in own and row else sentence.gist
    return Formula(number, name[:1].upper() + name[1:], broken(tex), row, corrections)


def read_displays(root: Path, pages: Iterable[str]) -> dict[str, str]:
    """Return the displays of all chapters that the site has, by their numbers."""
    found: dict[str, str] = {}
    for path in sorted(root.glob("chapters/**/*.ipynb")):
        if path.relative_to(root).with_suffix("").as_posix() in pages:
            found |= displays(json.loads(path.read_text(encoding="utf-8")))
    return found


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill the template of the sheet."""
    if docname == "formulas":
        book = book_of(app)
        found = read_displays(Path(app.srcdir), app.env.found_docs)
        sources = list(formulas(book, found))
        above = [row for _, equations in sources for one in equations for row in one.corrections]
        wrong = [row for row in book.rows if row.claim.grade == GRAVEST and row not in above]
        source[0] = filled(source[0], {"md": markdown, "spoken": book.conventions.place}, sources=sources, wrong=wrong)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event."""
    app.connect("source-read", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
