"""The glossary: its page, and a quiet link to it where a chapter first uses a term.

``reference/glossary.yml`` holds the terms in English and Chinese. The chapters gloss them as "effective rank (有效秩)":
the first gloss of a term in a chapter leads to the glossary, or else the first use of its English name. The glossary
leads back to the chapters. No notebook says anything about it.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from paper.print_book import PRINTERS
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import make_refnode

from .notation import for_paper

PAGE = "reference/glossary"
HAN = r"\u4e00-\u9fff"
#: The first level of GB 2312 is in the order of pinyin: each letter, and the first character that begins with it.
_LETTERS = "ABCDEFGHJKLMNOPQRSTWXYZ"
_FIRST = [character.encode("gb2312") for character in "啊芭擦搭蛾发噶哈击喀垃妈拿哦啪期然撒塌挖昔压匝"]
#: Characters of the second level, and those with two readings, beside one of the first level that sounds the same.
_SOUND = str.maketrans("熵行", "商航")
#: Where a link would disturb, or where the words are not the chapter's own.
_QUIET = (
    nodes.title, nodes.reference, nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.caption,
    nodes.raw, nodes.term, nodes.rubric, addnodes.pending_xref,
)  # fmt: skip


@dataclass(frozen=True)
class Term:
    """An entry of the glossary: its names, and what it is."""

    english: tuple[str, ...]
    chinese: tuple[str, ...]
    says: str

    @property
    def name(self) -> str:
        """Return the name under which the glossary has it."""
        return self.english[0]

    @property
    def anchor(self) -> str:
        """Return the id of its first gloss in a chapter."""
        return "gloss-" + nodes.make_id(self.name)


@dataclass(frozen=True)
class Glossary:
    """The terms, the quoted phrases, and the single words that are linked without a gloss."""

    terms: tuple[Term, ...]
    phrases: tuple[tuple[str, str], ...]
    words: frozenset[str]

    @property
    def by_chinese(self) -> dict[str, Term]:
        """Return the terms by their Chinese names."""
        return {name: term for term in self.terms for name in term.chinese if re.search(f"[{HAN}]", name)}

    @property
    def by_english(self) -> dict[str, Term]:
        """Return the terms by those of their English names that are linked without a gloss."""
        names = {name.lower(): term for term in self.terms for name in term.english}
        return {name: term for name, term in names.items() if " " in name or "-" in name or name in self.words}


def initial(name: str) -> str:
    """Return the capital letter under which a Chinese reader looks for a name: that of its pinyin.

    >>> [initial(name) for name in ("注意力", "熵", "k 均值")]
    ['Z', 'S', 'K']
    """
    first = name[0].translate(_SOUND)
    if not re.match(f"[{HAN}]", first):
        return first.upper()
    code = first.encode("gb2312")
    if not _FIRST[0] <= code < b"\xd8\xa1":
        raise ValueError(
            f"glossary: the pinyin of {name!r} is not known: name a character that sounds as {first!r} does"
        )
    return _LETTERS[bisect(_FIRST, code) - 1]


def by_pinyin(glossary: Glossary) -> str:
    """Return the Chinese names in the order of their pinyin, a paragraph for each letter, each leading to its entry."""
    return index(sorted(glossary.by_chinese, key=place))


def by_alphabet(glossary: Glossary) -> str:
    """Return the English names in the order of the alphabet, a paragraph for each letter, each leading to its entry."""
    return index(sorted((term.name for term in glossary.terms), key=str.lower))


def index(names: Iterable[str]) -> str:
    """Return names in a paragraph for each letter, each leading to its entry."""
    letters = defaultdict(list)
    for name in names:
        letters[initial(name)].append(f"{{term}}`{name}`")
    return "\n\n".join(f"**{letter}**  {' · '.join(letters[letter])}" for letter in sorted(letters))


def place(name: str) -> tuple[str, bytes]:
    """Return what sorts names by their letters, and Chinese ones by their pinyin."""
    return initial(name), name.translate(_SOUND).encode("gb18030")


def rows(text: str, columns: int) -> Iterator[list[str]]:
    """Yield the columns of each line.

    >>> list(rows("a, b | c\\nd | e\\n", 2))
    [['a, b', 'c'], ['d', 'e']]
    """
    for line in text.strip().split("\n"):
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) != columns:
            raise ValueError(f"glossary: expected {columns} columns, got {line!r}")
        yield cells


@cache
def read_glossary(path: Path) -> Glossary:
    """Return the glossary of the book."""
    tables = yaml.safe_load(path.read_text(encoding="utf-8"))
    terms = (Term(_names(en), _names(zh), says) for en, zh, says in rows(tables["terms"], 3))
    phrases = ((zh, en) for zh, en in rows(tables["phrases"], 2))
    return Glossary(tuple(terms), tuple(phrases), frozenset(tables["words"].split()))


def _names(cell: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in cell.split(","))


def glossary_of(env: BuildEnvironment) -> Glossary:
    """Return the glossary of the book that is built."""
    return read_glossary(Path(env.srcdir) / f"{PAGE}.yml")


def pattern(names: dict[str, Term], boundary: str, flags: int = 0) -> re.Pattern[str]:
    """Return what finds any of the names as a whole, the longest first.

    >>> ranks = {"rank": Term(("rank",), (), ""), "stable rank": Term(("stable rank",), (), "")}
    >>> pattern(ranks, r"\\w-").findall("ranked by stable rank and rank.")
    ['stable rank', 'rank']
    """
    longest = sorted(names, key=len, reverse=True)
    return re.compile(rf"(?<![{boundary}])(?:{'|'.join(map(re.escape, longest))})(?![{boundary}])", flags)


def as_markdown(glossary: Glossary, *, by_letter: bool = False, in_chinese: bool = False) -> str:
    """Return the entries of the glossary, in the order of the alphabet; each letter may have a heading.

    An entry begins with the names in the language of the book, which give it its place. The names in the other language
    come first, as a list.
    """
    entries = defaultdict(list)
    for term in sorted(glossary.terms, key=lambda t: place(t.chinese[0] if in_chinese else t.name.lower())):
        names = [*term.chinese, term.name] if in_chinese else [term.name, *term.chinese]
        lines = [*names, f"  {term.says}", "", f"  {{gloss-chapters}}`{term.name}`", ""]
        entries[initial(names[0]) if by_letter else ""].append("\n".join(lines))
    quoted = "\n".join(f"| {zh} | {en} |" for zh, en in glossary.phrases)
    listed = "\n".join(
        (f"## {letter}\n\n" if letter else "") + "`````{glossary}\n" + "\n".join(lines) + "\n`````\n"
        for letter, lines in entries.items()
    )
    others = "## English names" if in_chinese else "## Chinese names, by pinyin"
    listed_others = by_alphabet(glossary) if in_chinese else by_pinyin(glossary)
    others += f"\n\n:::{{container}} other-names\n{listed_others}\n:::\n\n"
    return (
        f"{others if by_letter else ''}{listed}\n## Quoted words\n\n"
        "The chapters also quote words of the sources that name nothing, because a claim turns on them: hedges, and "
        f"parts of sentences.\n\n| Chinese | English |\n|---|---|\n{quoted}\n"
    )


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Write the entries into the page of the glossary."""
    if docname == PAGE:
        printed = app.builder.name in PRINTERS
        chinese = str(app.config.language).startswith("zh")
        text = as_markdown(glossary_of(app.env), by_letter=not printed, in_chinese=chinese)
        source[0] += "\n" + (for_paper(text) if printed else text)


def chapters_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = None
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Leave a place for the chapters that use a term: they are known once all are read."""
    return [nodes.inline(text, "", classes=["gloss-chapters"], term=text)], []


class LinkTerms(SphinxTransform):
    """Link the first use of each term of a chapter to the glossary."""

    default_priority = 860  # after everything that the text itself says

    def apply(self, **kwargs: Any) -> None:
        """Visit the words of one chapter."""
        if not self.env.docname.startswith("chapters/"):
            return
        glossary = glossary_of(self.env)
        seen: dict[str, str] = {}
        # A gloss says what the term is, so it is linked even where the bare word came before.
        self.link(glossary.by_chinese, pattern(glossary.by_chinese, HAN), seen, glossed=True)
        self.link(glossary.by_english, pattern(glossary.by_english, r"\w-", re.I), seen, glossed=False)
        if not hasattr(self.env, "terms_used"):
            self.env.terms_used = {}  # type: ignore[attr-defined]
        self.env.terms_used[self.env.docname] = seen  # type: ignore[attr-defined]

    def link(self, names: dict[str, Term], names_pattern: re.Pattern[str], seen: dict[str, str], glossed: bool) -> None:
        """Link the first occurrence of each name that is not seen yet."""
        for text in [t for t in self.document.findall(nodes.Text) if own_words(t)]:
            made: list[nodes.Node] = []
            words, at = str(text), 0
            for found in names_pattern.finditer(words):
                term = names.get(found[0]) or names[found[0].lower()]
                if term.name in seen:
                    continue
                seen[term.name] = term.anchor if glossed else ""
                made += [nodes.Text(words[at : found.start()]), self.linked(found[0], term, glossed)]
                at = found.end()
            if made:
                text.parent.replace(text, [*made, nodes.Text(words[at:])])

    def linked(self, words: str, term: Term, glossed: bool) -> nodes.Node:
        """Return words that lead to a term of the glossary."""
        inner = nodes.inline(words, words, classes=["term-link"])
        link = addnodes.pending_xref(
            words, inner, refdomain="std", reftype="term", reftarget=term.name, refdoc=self.env.docname,
            refexplicit=True, refwarn=True,
        )  # fmt: skip
        return nodes.inline("", "", link, ids=[term.anchor]) if glossed else link


def own_words(text: nodes.Node) -> bool:
    """Return whether a text is a chapter's prose: no heading, link, code, formula, caption or output of a cell."""
    node = text.parent
    while node is not None:
        if isinstance(node, _QUIET) or "cell_output" in node.get("classes", []):
            return False
        node = node.parent
    return True


def introduced(env: BuildEnvironment) -> dict[Term, list[tuple[str, str]]]:
    """Return for each term the chapters that use it, the introducing one first, and the ids of its glosses there."""
    used: dict[str, dict[str, str]] = getattr(env, "terms_used", {})
    order = [page for page in getattr(env.config, "external_site_map", None) or sorted(used) if page in used]
    found = {}
    for term in glossary_of(env).terms:
        places = [(page, used[page][term.name]) for page in order if term.name in used[page]]
        found[term] = sorted(places, key=lambda place: place is not next((p for p in places if p[1]), places[0]))
    return found


def name_chapters(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write into the glossary which chapter introduces each term, and how many others use it."""
    if docname != PAGE:
        return
    places = {term.name: found for term, found in introduced(app.env).items()}
    for node in [n for n in doctree.findall(nodes.inline) if "gloss-chapters" in n["classes"]]:
        for page, anchor in places[node["term"]][:1]:
            title = nodes.inline("", "", *(child.deepcopy() for child in app.env.titles[page].children))
            node += nodes.Text("Introduced in ")
            node += make_refnode(app.builder, docname, page, anchor, title)
            others = len(places[node["term"]]) - 1
            if others:
                node += nodes.Text(f"; also in {others} other chapter{'s' * (others > 1)}")
            node += nodes.Text(".")


def tell_language(app: Sphinx, doctree: nodes.document) -> None:
    """Mark the Chinese names in the glossary as Chinese; makeindex, which reads bytes, cannot sort them on paper."""
    for term in doctree.findall(nodes.term) if app.env.docname == PAGE else ():
        if re.search(f"[{HAN}]", term.astext()):
            term["classes"].append("language-zh")
            for index in list(term.findall(addnodes.index)) if app.builder.name == "latex" else ():
                index["entries"] = []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the role, the transform and the events."""
    app.add_role("gloss-chapters", chapters_role)
    app.add_transform(LinkTerms)
    app.connect("source-read", fill)
    app.connect("doctree-read", tell_language)
    app.connect("doctree-resolved", name_chapters)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
