r"""Search: what has a number, a name or a title is found by it, and before everything else.

Sphinx's own search looks for words of pages. Four things are added:

* Chinese text is indexed by its characters and pairs of characters, so that 缩放 finds 缩放因子; a number such as
  5.1.8 or A.6 is one word (`words`).
* A table of equations, sections of the sources, claims, terms, symbols and public functions (`entries`), which
  ``finding/finding.js`` consults first. Their results lead to the place itself.
* Titles in results are plain text (`plain`), and so are the excerpts.
* The index is loaded with the first query and not with the page.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from ledger_pages import book_of
from mathematics import plain_text
from notation import PAGE as NOTATION
from notation import Symbol, read_symbols
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.search import languages
from sphinx.search.en import SearchEnglish
from terms import HAN, glossary_of
from terms import PAGE as GLOSSARY

from linewise.ledger.coverage import anchor_of, tags_of
from linewise.ledger.places import section_in_words

SCRIPTS = Path(__file__).parent / "finding"
#: Chinese; numbers of equations and sections; other numbers with a point, which nobody looks for; words.
_WORDS = re.compile(rf"[{HAN}]+|(?<![\w.])(?:[A-Za-z]|5)(?:\.\d+)+(?![\w])|\d+\.\d+|[^\W{HAN}]+")


def words(text: str) -> list[str]:
    """Return the words of a text under which the index has it.

    >>> words("缩放因子, the scale of (5.1.8) and A.6 is 0.125")
    ['缩', '放', '因', '子', '缩放', '放因', '因子', 'the', 'scale', 'of', '5.1.8', 'and', 'A.6', 'is']
    """
    found: list[str] = []
    for word in _WORDS.findall(text):
        if re.match(f"[{HAN}]", word):
            found += [*word, *(word[k : k + 2] for k in range(len(word) - 1))]
        elif not re.fullmatch(r"\d+\.\d+", word) or word.startswith("5."):
            found.append(word)
    return found


class SearchBook(SearchEnglish):
    """English and Chinese words, and numbers of equations."""

    # The same in JavaScript; of Chinese words of two characters or more, the pairs are enough.
    js_splitter_code = r"""
var splitQuery = (query) => {
    const pattern = /[\u4e00-\u9fff]+|(?<![\w.])(?:[A-Za-z]|5)(?:\.\d+)+(?!\w)|[\p{Letter}\p{Number}_]+/gu;
    const found = query.match(pattern) || [];
    return found.flatMap((word) => {
        const pieces = word.match(/[\u4e00-\u9fff]+|[^\u4e00-\u9fff]+/g);
        return pieces.flatMap((piece) => /^[\u4e00-\u9fff]{2}/.test(piece)
            ? [...piece].slice(1).map((character, k) => piece[k] + character) : [piece]);
    });
};
"""

    def split(self, input: str) -> list[str]:
        """Return the words of a text."""
        return words(input)


def plain(text: str) -> str:
    r"""Return a title or a sentence whose formulas, between dollars or in ``\(...\)``, are plain text.

    >>> plain(r"Why \(\sqrt{d_k}\)?"), plain(r"$d_k\sigma^4$ and $\mathrm{Var}(s)$")
    ('Why √d_k?', 'd_kσ^4 and Var(s)')
    """
    return plain_text(re.sub(r"\$([^$]+)\$", r"\\(\1\\)", text))


Entry = dict[str, Any]


def entry(kind: str, keys: list[str], title: str, about: str, page: str, anchor: str) -> Entry:
    """Return what the table says of one thing; the keys find it."""
    said = [unicodedata.normalize("NFKC", key).lower() for key in keys]  # as the script says the query
    return {"kind": kind, "keys": said, "title": plain(title), "about": plain(about), "page": page, "anchor": anchor}


def entries(app: Sphinx) -> Iterator[Entry]:
    """Yield everything in the book that has a number, a name or a title of its own."""
    yield from _equations(app)
    yield from _sections(app)
    for row in book_of(app).rows:
        claim = row.claim
        anchor = "" if claim.verdict == "not decided" else row.anchor
        yield entry(
            "Claim",
            [claim.id, claim.title],
            f"{claim.title} ({claim.id})",
            f"{claim.verdict}: {claim.reading}",
            row.page,
            anchor,
        )
    glossary = glossary_of(app.env)
    terms = app.env.get_domain("std")._terms  # type: ignore[attr-defined]
    for term in glossary.terms:
        at = terms.get(term.name.lower())
        title = f"{term.name} {', '.join(term.chinese)}"
        yield entry("Term", [*term.english, *term.chinese], title, term.says, GLOSSARY, at[1] if at else "")
    for symbol in read_symbols(Path(app.srcdir) / f"{NOTATION}.yml"):
        yield entry("Symbol", symbol_keys(symbol), f"${symbol.tex}$", symbol.meaning, NOTATION, symbol.anchor)
    yield from _functions(app)


def _equations(app: Sphinx) -> Iterator[Entry]:
    """Yield the numbered equations, with their formulas as text."""
    for page in sorted(app.env.found_docs):
        if not page.startswith("chapters/"):
            continue
        for block in app.env.get_doctree(page).findall(nodes.math_block):
            for number in tags_of(block.astext()):
                keys = equation_keys(number)
                formula = block.astext().strip().removeprefix("\\[").removesuffix("\\]").strip()
                yield entry("Equation", keys, f"Equation ({number})", f"${formula}$", page, anchor_of(number))


def equation_keys(number: str) -> list[str]:
    """Return what finds an equation: its number here, and in an article or a report the number that it has there.

    >>> equation_keys("5.1.8")[:3], [key for key in equation_keys("A.6") if "A" not in key][-2:]
    (['5.1.8', '(5.1.8)', 'eq 5.1.8'], ['equation (6)', 'article (6)'])
    """
    source = {"A": "article", "R": "report"}.get(number.partition(".")[0])
    own = [f"({number.partition('.')[2]})"] if source else []
    names = [number, f"({number})", *own]
    said = [f"{word} {name}" for name in names for word in ("eq", "eq.", "equation")]
    return [*names, *said, *(f"{source} {name}" for name in own)]


def symbol_keys(symbol: Symbol) -> list[str]:
    r"""Return what finds a symbol: its names, its TeX with and without backslashes, and its signs as a page shows them.

    >>> symbol_keys(Symbol(r"T,\ \tau", ("T", "temperature"), "", "", (), "", ""))
    ['T', 'temperature', '\\tau', 'tau', 'τ']
    """
    tex = symbol.tex.split(r",\ ")
    return list(dict.fromkeys([*symbol.names, *(f for t in tex for f in (t, t.replace("\\", ""), plain(f"${t}$")))]))


def _functions(app: Sphinx) -> Iterator[Entry]:
    """Yield the public functions and classes of the package, with the first sentence of their descriptions."""
    for name, entry_ in sorted(app.env.get_domain("py").objects.items()):  # type: ignore[attr-defined]
        if entry_.objtype in {"function", "class", "exception"} and not entry_.aliased:
            module, _, own = name.rpartition(".")
            about = inspect.getdoc(getattr(importlib.import_module(module), own, None)) or ""
            first = " ".join(about.partition("\n\n")[0].split())
            yield entry("Function", [own, name], name, first, entry_.docname, entry_.node_id)


def _sections(app: Sphinx) -> Iterator[Entry]:
    """Yield the sections of the sources, which lead to their rows in the coverage table."""
    for sentence in book_of(app).sentences:
        if sentence.at.endswith("title"):
            section = sentence.section
            name = section_in_words(section)
            number = section.rpartition("article.")[2].rpartition("report.")[2].rpartition("note.")[2]
            keys = [section, name, *([number, f"section {number}"] if "." in number else [])]
            yield entry("Section", keys, name, sentence.gist, "coverage", "coverage-" + section.replace(".", "-"))


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Write the table, put plain titles into the index, and load both when they are needed."""
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    table = list(entries(app))
    titles = {page: plain(title.astext()) for page, title in app.env.titles.items()}
    data = {"entries": table, "titles": {e["page"]: titles.get(e["page"], "") for e in table}}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (out / "_static" / "finding-table.js").write_text(f"Finding.setTable({text});\n", encoding="utf-8")
    index = out / "searchindex.js"
    index.write_text(plain_titles(index.read_text(encoding="utf-8"), titles), encoding="utf-8")
    page = out / "search.html"
    html = page.read_text(encoding="utf-8")
    ours = '<script src="_static/formula_text.js"></script>\n<script src="_static/finding.js"'
    page.write_text(re.sub(r'<script src="searchindex\.js[^"]*"', ours, html), encoding="utf-8")


def plain_titles(index: str, titles: dict[str, str]) -> str:
    r"""Return Sphinx's index with plain text in place of TeX in the titles, and without titles that are empty.

    titles : of each page, as plain text.

    >>> index = '{"docnames":["a"],"titles":["Why dk?"],"alltitles":{"Why \\\\(d_k\\\\)?":[[0,null]],"":[]}}'
    >>> plain_titles(f"Search.setIndex({index})", {"a": "Why d_k?"})
    'Search.setIndex({"docnames":["a"],"titles":["Why d_k?"],"alltitles":{"Why d_k?":[[0,null]]}})'
    """
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    found["titles"] = [titles[page] for page in found["docnames"]]
    alltitles: dict[str, list[Any]] = {}
    for title, places in found["alltitles"].items():
        if title.strip():
            alltitles.setdefault(plain(title), []).extend(places)
    found["alltitles"] = alltitles
    return f"Search.setIndex({json.dumps(found, ensure_ascii=False, separators=(',', ':'))})"


def publish(app: Sphinx, config: Config) -> None:
    """Have Sphinx copy the scripts."""
    config.html_static_path.append(str(SCRIPTS))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the language of the index and the event."""
    languages["en"] = SearchBook
    app.connect("config-inited", publish)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
