"""The page of symbols, from ``reference/notation.yml``, with an anchor and an index entry for each symbol."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from mathematics import plain
from paper.print_book import PRINTERS
from sphinx.application import Sphinx

from linewise.conventions import conventions_of

PAGE = "reference/notation"


@dataclass(frozen=True)
class Symbol:
    """A symbol of the book: in TeX, its names, what it means and where it is defined."""

    tex: str
    names: tuple[str, ...]
    meaning: str
    shape: str
    places: tuple[str, ...]
    code: str
    group: str

    @property
    def anchor(self) -> str:
        """Return its id on the page.

        >>> Symbol("d_k", ("d_k", "dk"), "", "", (), "", "The attention operator").anchor
        'symbol-the-attention-operator-d-k'
        """
        case = "capital " if self.names[0].isupper() else ""
        return "symbol-" + nodes.make_id(f"{self.group} {case}{self.names[0]}")


@cache
def read_symbols(path: Path) -> tuple[Symbol, ...]:
    """Return the symbols of the book, in the order of the page."""
    groups = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(symbol(line, group) for group, lines in groups.items() if group != "several"
                 for line in lines.strip().split("\n"))  # fmt: skip


@cache
def meanings(path: Path) -> dict[str, str]:
    """Return the symbols that have several meanings, in TeX, and what they are."""
    lines = yaml.safe_load(path.read_text(encoding="utf-8"))["several"].strip().split("\n")
    return {letter.strip(): says for letter, _, says in (line.partition(" ; ") for line in lines)}


def symbol(line: str, group: str) -> Symbol:
    """Return the symbol of a line."""
    cells = [cell.strip() for cell in re.split(r" ;(?: |$)", line)]
    if len(cells) != 6:
        raise ValueError(f"notation: expected 6 columns between ' ; ', got {line!r}")
    tex, names, meaning, shape, places, code = cells
    return Symbol(tex, tuple(names.split()), meaning, shape, tuple(places.split()), code, group)


def place(name: str) -> str:
    """Return the Markdown of an equation's number, or of a chapter.

    >>> place("5.1.8"), place("operator/masks")
    ('[(5.1.8)](#equation-5.1.8)', '{doc}`/chapters/operator/masks`')
    """
    return f"{{doc}}`/chapters/{name}`" if "/" in name else f"[({name})](#equation-{name})"


def code(words: str) -> str:
    """Return the Markdown of a function with its reference, or of an argument.

    >>> code("{attnmath.matrix.rank.effective_rank}"), code("W_Q, W_K")
    ('{py:obj}`~attnmath.matrix.rank.effective_rank`', '`W_Q`, `W_K`')
    """
    if words.startswith("{"):
        return f"{{py:obj}}`~{words[1:-1]}`"
    return ", ".join(f"`{word.strip()}`" for word in words.split(","))


def row(symbol: Symbol) -> str:
    """Return a line of the table."""
    target = f'<span class="symbol-anchor" id="{symbol.anchor}"></span>'
    cells = [
        f"{target}${symbol.tex}$",
        symbol.meaning,
        symbol.shape,
        ", ".join(map(place, symbol.places)),
        code(symbol.code),
    ]
    return "| " + " | ".join(cell.replace("|", r"\vert ") for cell in cells) + " |"


def as_markdown(
    symbols: tuple[Symbol, ...], several: dict[str, str], say: Callable[..., str] = str.format
) -> Iterator[str]:
    """Yield the lines of the page; `say` says its words in the language of the book."""
    for group in dict.fromkeys(s.group for s in symbols):
        of_group = [s for s in symbols if s.group == group]
        yield from (f"## {group}", "")
        for symbol in of_group:
            about = re.sub(r"\$(.+?)\$", lambda m: plain(m[1]), re.split(" [(]|[:;]", symbol.meaning)[0])
            yield from (f"```{{index}} single: {symbol.names[0]} (symbol); {about}", "```", "")
        yield from ("| Symbol | Meaning | Shape or unit | Defined in | Code |", "|---|---|---|---|---|")
        yield from (*map(row, of_group), "")
    yield from ("## Letters with several meanings", "", "| Letter | Meanings, and chapters |", "|---|---|")
    for letter, says in several.items():
        linked = re.sub(r" \[([\w/]+)\]", lambda m: say(" (in {chapter})", chapter=place(m[1])), says)
        yield f"| ${letter}$ | {linked.replace('|', chr(92) + 'vert ')} |"


def for_paper(text: str) -> str:
    """Return the tables as lists, which have room on paper, and functions without links: no page there has them.

    >>> print(for_paper("| Symbol | Code |\\n|---|---|\\n| $n$ | {py:obj}`~m.f` |"))
    * $n$; `f`
    """
    text = re.sub(r"\{py:obj\}`~[\w.]*?(\w+)`", r"`\1`", text)
    # The font of the printed index has no mathematics.
    text = re.sub(r"^(```\{index\} single: [^;\n]*);[^\n]*[^\x00-\x7f][^\n]*$", r"\1", text, flags=re.MULTILINE)
    text = re.sub(r"^\|[^\n]*\n\|---[^\n]*\n", "", text, flags=re.MULTILINE)

    def joined(line: re.Match[str]) -> str:
        return "* " + "; ".join(cell.strip() for cell in line[1].split(" | ") if cell.strip())

    return re.sub(r"^\| (.*) \|$", joined, text, flags=re.MULTILINE)


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Write the tables into the page."""
    if docname == PAGE:
        path = Path(app.srcdir) / f"{PAGE}.yml"
        text = "\n".join(as_markdown(read_symbols(path), meanings(path), conventions_of(app.srcdir).say))
        if app.builder.name in PRINTERS:
            text = for_paper(text)
        source[0] += f"\n{text}\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event."""
    app.connect("source-read", fill)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
