r"""What the search finds: the parts of every page, and everything that has a number, a name or a title of its own."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import yaml
from docutils import nodes
from edition.labels import SAYS
from mathematics import plain_node, plain_text
from pages.plain_notebooks import authors
from reference.notation import PAGE as NOTATION
from reference.notation import Symbol, read_symbols
from reference.terms import PAGE as GLOSSARY
from reference.terms import glossary_of, introduced
from sphinx import addnodes
from sphinx.application import Sphinx

from linewise.conventions import conventions_of
from linewise.ledger.coverage import anchor_of, tags_of
from linewise.pages.ledger_pages import book_of
from linewise.pages.read_along import MARK

#: Pages that are lists of what is found by name: of these only the page itself is a part, and what is asked of it.
LISTS = re.compile(r"ledger(?:/.*)?|errata|coverage|formulas|references|gallery.*|reference/.*")
#: What is no prose: code, stored output, links to other pages, works.
_SILENT = (
    nodes.raw, nodes.literal_block, nodes.comment, nodes.image, nodes.system_message, nodes.substitution_definition,
    nodes.target, addnodes.toctree, addnodes.index,
)  # fmt: skip
#: A file beside the pages: what readers ask in words that the sections have not. A book may have none.
ASKED = "asked.yml"
#: So many characters of what a result says are shown, and of a function less.
SHOWN, SHOWN_OF_A_FUNCTION = 160, 100


@dataclass(frozen=True)
class Document:
    """One thing that is found.

    kind, title, about : what a result says of it, as plain text.
    page, anchor : where it is; without an anchor the whole page is meant.
    keys : names by which it is meant, and comes before everything else.
    names : what else it is called, such as the terms that it introduces.
    above : the titles above it.
    text : its words.
    """

    kind: str
    title: str
    about: str
    page: str
    anchor: str = ""
    keys: tuple[str, ...] = ()
    names: str = ""
    above: str = ""
    text: str = ""

    def indexed(self) -> dict[str, str]:
        """Return what the index is made of."""
        return {
            "title": self.title, "names": " ; ".join([*self.keys, self.names]), "above": self.above,
            "text": self.text or self.about,
        }  # fmt: skip


def plain(text: str) -> str:
    r"""Return a title or a sentence as plain text: formulas, between dollars or in ``\(...\)``, emphasis and links.

    >>> plain(r"Why \(\sqrt{d_k}\)?"), plain(r"$d_k\sigma^4$ and *not* [$W^2$](page.md), {term}`rank`")
    ('Why √d_k?', 'd_kσ^4 and not W^2, rank')
    """
    pieces = re.split(r"(\$[^$]+\$|\\\(.*?\\\))", text)
    pieces[::2] = [re.sub(r"\{[\w-]+\}`([^`]*)`|\*+(?=\S)|(?<=\S)\*+", r"\1", piece) for piece in pieces[::2]]
    said = re.sub(r"\[([^\]]*)\]\([^()]*\)", r"\1", "".join(pieces))
    return plain_text(re.sub(r"\$([^$]+)\$", r"\\(\1\\)", said))


def documents(app: Sphinx) -> Iterator[Document]:
    """Yield everything that is found, the parts of the pages in the order of the book."""
    asked = asked_of(Path(app.srcdir))
    if unknown := asked.keys() - set(pages_of(app)):
        raise ValueError(f"{ASKED}: no page {', '.join(sorted(unknown))}")
    for page in pages_of(app):
        if LISTS.fullmatch(page):
            yield listed(page, plain_node(app.env.titles[page]), asked.get(page, {}))
        else:
            doctree = app.env.get_doctree(page)
            yield from parts(app, page, doctree, asked.get(page, {}))
            yield from _equations(app, page, doctree)
    yield from _sections(app)
    yield from _claims(app)
    yield from _terms(app)
    for symbol in read_symbols(Path(app.srcdir) / f"{NOTATION}.yml"):
        meaning = plain(symbol.meaning)
        yield Document("Symbol", plain(f"${symbol.tex}$"), meaning, NOTATION, symbol.anchor, symbol_keys(symbol))
    yield from _functions(app)


def asked_of(root: Path) -> dict[str, dict[str, list[str]]]:
    """Return what readers ask: of each page, by the titles of the sections that answer."""
    path = root / ASKED
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}


def pages_of(app: Sphinx) -> list[str]:
    """Return the pages that are searched, in the order of the book."""
    order = [page for page in app.config.external_site_map if page in app.env.found_docs]
    silent = {page for page, about in app.env.metadata.items() if "nosearch" in about}
    return [page for page in [*order, *sorted(app.env.found_docs - set(order))] if page not in silent]


# --- the parts of pages ------------------------------------------------------------------------------


def parts(app: Sphinx, page: str, doctree: nodes.document, asked: Mapping[str, Sequence[str]]) -> Iterator[Document]:
    """Yield the parts of a page: from a heading to the next one. What is asked of a part is among its names.

    Raises ValueError where something is asked of a part that the page has not.
    """
    say = conventions_of(app.srcdir).say
    left = set(asked)
    terms = [term for term, places in introduced(app.env).items() if places[:1] == [(page, term.anchor)]]
    for section in filter(titled, doctree.findall(nodes.section)):
        whole = isinstance(section.parent, nodes.document)
        title = heading(section)
        if title == say("References"):
            continue
        inside = list(own(section))
        said = list(paragraphs(app, inside))
        above = " / ".join(heading(one) for one in ancestors(section))
        ids: set[str] = set()
        for node in inside:
            ids.update(node["ids"])
        names = [name for t in terms if t.anchor in ids for name in (*t.english, *t.chinese)]
        names += asked.get(title, ())
        left.discard(title)
        kind = "Exercises" if title == say("Exercises") else "Part"
        lead = shorten(" ".join(said)[: 2 * SHOWN], SHOWN, placeholder=" …")
        anchor = "" if whole else section["ids"][0]
        yield Document(kind, title, lead, page, anchor, names=" ; ".join(names), above=above, text="\n".join(said))
    no_section(page, left)


def listed(page: str, title: str, asked: Mapping[str, Sequence[str]]) -> Document:
    """Return a page that is one part, with what is asked of it among its names.

    >>> listed("errata", "Errata", {"Errata": ["what is wrong"]}).names
    'what is wrong'
    """
    no_section(page, asked.keys() - {title})
    return Document("Part", title, "", page, names=" ; ".join(asked.get(title, ())))


def no_section(page: str, titles: Set[str]) -> None:
    """Raise ValueError if there are titles of sections that a page has not."""
    if titles:
        raise ValueError(f"{ASKED}: {page} has no section {', '.join(sorted(titles))}")


def titled(node: nodes.Node) -> bool:
    """Return whether a node is a section with a title: what a theorem or a proof says is a section without one."""
    return isinstance(node, nodes.section) and isinstance(next(iter(node.children), None), nodes.title)


def heading(section: nodes.section) -> str:
    """Return the title of a section as plain text."""
    return plain_node(section.children[0])


def ancestors(section: nodes.section) -> Iterator[nodes.section]:
    """Yield the sections that hold a section, the outermost last."""
    above: nodes.Node | None = section.parent
    while above is not None:
        if isinstance(above, nodes.section) and titled(above):
            yield above
        above = above.parent


def own(section: nodes.Element) -> Iterator[nodes.Element]:
    """Yield the elements of a section, without those of the sections below it and without what is no prose."""
    for child in section.children:
        if isinstance(child, nodes.Element) and not titled(child) and not isinstance(child, (nodes.title, *_SILENT)):
            yield child
            yield from own(child)


def paragraphs(app: Sphinx, inside: list[nodes.Element]) -> Iterator[str]:
    """Yield the paragraphs, formulas and rows among the elements of a section as plain text.

    The words of a picture, which end a caption of an edition, would be found wherever an axis has that name.
    """
    told = conventions_of(app.srcdir).say(SAYS, words="\0").partition("\0")[0]
    for node in inside:
        inner = isinstance(node.parent, (nodes.TextElement, addnodes.pending_xref))
        whole = isinstance(node, nodes.TextElement) and not inner
        if whole and (text := " ".join(plain_node(as_read(app, node)).split()).partition(told)[0]):
            yield text


def as_read(app: Sphinx, node: nodes.Element) -> nodes.Element:
    """Return a copy of a text as it is read: works by their authors, figures by their numbers, and no marks."""
    copy = node.deepcopy()
    for link in list(copy.findall(nodes.Element)):
        if {MARK, "claim-link"} & set(link.get("classes", ())) and link.parent is not None:
            link.parent.remove(link)
        elif isinstance(link, addnodes.pending_xref) and (said := _said_of(app, link)):
            link.parent.replace(link, nodes.Text(said))
    return copy


def _said_of(app: Sphinx, link: addnodes.pending_xref) -> str:
    """Return what a link to works or to a figure will say; "" for others."""
    if link["refdomain"] == "cite":
        works = app.env.get_domain("cite").bibdata.data.entries  # type: ignore[attr-defined]
        found = [works[key.strip()] for key in link["reftarget"].split(",") if key.strip() in works]
        return ", ".join(f"{authors(work)} ({work.fields['year']})" for work in found)
    if link["reftype"] == "numref":
        page, anchor, _ = app.env.get_domain("std").labels.get(link["reftarget"], ("", "", ""))  # type: ignore[attr-defined]
        number = app.env.toc_fignumbers.get(page, {}).get("figure", {}).get(anchor)
        say = conventions_of(app.srcdir).say
        return say("Figure {number}", number=".".join(map(str, number))) if number else ""
    return ""


# --- what has a name ---------------------------------------------------------------------------------


def _equations(app: Sphinx, page: str, doctree: nodes.document) -> Iterator[Document]:
    """Yield the numbered equations of a chapter, with their formulas as text."""
    say = conventions_of(app.srcdir).say
    for block in doctree.findall(nodes.math_block) if page.startswith("chapters/") else ():
        for number in tags_of(block.astext()):
            formula = block.astext().strip().removeprefix("\\[").removesuffix("\\]").strip()
            about = shorten(plain(f"${formula}$"), SHOWN, placeholder=" …")
            title = say("Equation ({number})", number=number)
            yield Document("Equation", title, about, page, anchor_of(number), equation_keys(number))


def equation_keys(number: str) -> tuple[str, ...]:
    """Return what finds an equation: its number here, and in an article or a report the number that it has there.

    >>> equation_keys("5.1.8"), equation_keys("A.6")
    (('5.1.8',), ('A.6', '(6)', 'article (6)', 'article 6', '文章 (6)', '文章 6'))
    """
    sources = {"A": ("article", "文章"), "R": ("report", "报告")}.get(number.partition(".")[0], ())
    its = number.partition(".")[2]
    there = [key for source in sources for key in (f"{source} ({its})", f"{source} {its}")]
    return (number, f"({its})", *there) if there else (number,)


def _sections(app: Sphinx) -> Iterator[Document]:
    """Yield the sections of the sources, which lead to their rows in the coverage table."""
    book = book_of(app)
    for sentence in book.sentences:
        if sentence.at.endswith("title"):
            section = sentence.section
            number = section.rpartition("article.")[2].rpartition("report.")[2].rpartition("note.")[2]
            keys = (section, book.conventions.section(section), *([number] if "." in number else []))
            title, anchor = book.conventions.section(section), "coverage-" + section.replace(".", "-")
            yield Document("Section", title, plain(sentence.gist), "coverage", anchor, tuple(dict.fromkeys(keys)))


def _claims(app: Sphinx) -> Iterator[Document]:
    say = conventions_of(app.srcdir).say
    for row in book_of(app).rows:
        claim = row.claim
        told = say("{one}: {other}", one=say(claim.verdict), other=claim.reading)
        about = shorten(plain(told), SHOWN, placeholder=" …")
        anchor = "" if claim.verdict == "not decided" else row.anchor
        yield Document("Claim", plain(claim.title), about, row.page, anchor, (claim.id, plain(claim.title)))


def _terms(app: Sphinx) -> Iterator[Document]:
    known = app.env.get_domain("std")._terms  # type: ignore[attr-defined]
    for term in glossary_of(app.env).terms:
        at = known.get(term.name.lower())
        names = (term.name, ", ".join(term.chinese))
        title = " ".join(reversed(names) if app.config.language.startswith("zh") else names)
        yield Document("Term", title, plain(term.says), GLOSSARY, at[1] if at else "", (*term.english, *term.chinese))


def symbol_keys(symbol: Symbol) -> tuple[str, ...]:
    r"""Return what finds a symbol: its names, its TeX with and without backslashes, and its signs as a page shows them.

    >>> symbol_keys(Symbol(r"T,\ \tau", ("T", "temperature"), "", "", (), "", ""))
    ('T', 'temperature', '\\tau', 'tau', 'τ')
    """
    tex = symbol.tex.split(r",\ ")
    signs = (form for t in tex for form in (t, t.replace("\\", ""), plain(f"${t}$")))
    return tuple(dict.fromkeys([*symbol.names, *signs]))


def _functions(app: Sphinx) -> Iterator[Document]:
    """Yield the public functions and classes of the packages, with the first sentence of their descriptions."""
    for name, about in sorted(app.env.get_domain("py").objects.items()):  # type: ignore[attr-defined]
        if about.objtype in {"function", "class", "exception"} and not about.aliased:
            module, _, own_name = name.rpartition(".")
            text = inspect.getdoc(getattr(importlib.import_module(module), own_name, None)) or ""
            first = shorten(" ".join(text.partition("\n\n")[0].split()), SHOWN_OF_A_FUNCTION, placeholder=" …")
            yield Document("Function", name, first, about.docname, about.node_id, (own_name, name))


def as_data(found: list[Document], titles: dict[str, str]) -> dict[str, Any]:
    """Return what the page of the search needs of the documents: as little as it can be."""
    pages = list(dict.fromkeys(document.page for document in found))
    at = {page: k for k, page in enumerate(pages)}
    shown = [[d.kind, d.title, d.about, at[d.page], d.anchor, list(d.keys)] for d in found]
    return {"documents": shown, "pages": [[page, titles.get(page, page)] for page in pages]}
