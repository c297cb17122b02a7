"""One site of two editions: the finished pages of the other language beside the English ones.

A page of the edition goes into a folder of the built site. What programs, templates and scripts have written into it in
English is put into the other language here (`Words`); links to pages that are not translated lead to the English ones;
scripts, styles, fonts and pictures that are the same are not stored again. Both pages then name each other.
"""

from __future__ import annotations

import multiprocessing
import re
import shutil
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import blake2b
from html import unescape
from pathlib import Path, PurePosixPath
from posixpath import dirname, join, normpath, relpath
from typing import Any, NamedTuple

from bs4 import BeautifulSoup, Tag
from bs4.dammit import EntitySubstitution
from bs4.element import NavigableString
from bs4.formatter import HTMLFormatter
from pages.chinese import WHOLE, book_font, shared_by, with_own_font
from search import packed, unpacked

from . import scripts
from .faults import HAN
from .marks import close_up

#: The folder of an edition in the site, its language as pages say it, and what the link to each edition says.
FOLDERS = {"zh_CN": "zh"}
CODES = {"zh_CN": "zh-CN"}
SAYS = {"zh_CN": ("中文", "本页的中文版"), "en": ("English", "This page in English")}
#: Attributes that are read out or shown.
_SPOKEN = ("title", "aria-label", "alt", "placeholder", "content", "data-unit")
#: What stays as it is: code, formulas, and what says its own language; names of works, and what a cell prints.
_QUIET = {"script", "style", "math", "svg", "code", "pre", "kbd", "textarea"}
_QUIET_CLASSES = {"bibtex-citation", "chapter-references", "citation", "dataframe", "api-link", "other-names"}
_WORD = re.compile(r"[a-z]{3}")
#: What says of a page what it is about.
_DESCRIBES = {"description", "og:description"}
#: What may be in English beside Chinese: a name in brackets, words that are quoted, and code.
_GLOSS = re.compile(r"(?<=[（，、])[A-Za-z][\w ,.'’-]*(?=[）；，…]|$)|“[^”]*”|《[^》]*》|`[^`]*`")
_SENTENCE = re.compile(r"(?<![\w-])[a-z][a-z'’-]{2,}(?:,? [a-z][a-z'’-]{2,})+(?![\w-])")
#: An identifier, a file or an address.
_NAME = re.compile(r"[(\[]?[\w.-]*\w(?:[/._]|://?)[\w./:#-]*\w[,.;:)\]]*")
#: How sphinx-proof begins the text of a proof.
PROOF = "Proof."
_PLACE = re.compile(r"\{(\w+)\}")


class Words:
    """What stands in pages without being of a page, and what it is in the other language.

    A message may have places in braces, such as ``({minutes} min)``: what stands there is put into the other language
    by itself. Where nobody has said what it is, the message does not fit. Of several messages that fit, the longest is
    taken.

    >>> words = Words({"({n} min)": "（{n} 分钟）", "{what} ({n} min)": "{what}（{n} 分钟）", "path": "路线"})
    >>> words("(9 min)"), words("path (9 min)"), words("A title (9 min)"), words("nothing")
    ('（9 分钟）', '路线（9 分钟）', None, None)
    """

    def __init__(self, known: Mapping[str, str]) -> None:
        places = {message: not re.search(r"[$\\]", message) and bool(_PLACE.search(message)) for message in known}
        self.known = {message: said for message, said in known.items() if not places[message]}
        filled = sorted((message for message in known if places[message]), key=len, reverse=True)
        self.filled = [(_pattern(message), set(_PLACE.findall(message)), known[message]) for message in filled]

    def __call__(self, text: str) -> str | None:
        """Return a text in the other language, and None where nobody has said what it is."""
        plain = " ".join(text.split())
        if (said := self.known.get(plain)) is not None:
            return said
        begins = plain[0] if re.search(rf"[{HAN}]", plain) and re.match("[A-Z][a-z]", plain) else ""
        fitting = self.filled if begins or not re.search(rf"[{HAN}]", plain) else ()
        for pattern, places, said in fitting:
            if begins and not pattern.pattern.startswith(begins):  # a name that is put into the language already
                continue
            if found := pattern.fullmatch(plain):
                parts = {name: self._part(found[name]) for name in places}
                if None not in parts.values():
                    return said.format(**parts)
        return None

    def _part(self, text: str) -> str | None:
        """Return what stands in a place: a number, an identifier, a text of the language, or one that is known."""
        if (said := self(text)) is not None:
            return said
        stays = not _WORD.search(text) or re.search(rf"[{HAN}]", text) or re.fullmatch(r"\S*[/._]\S*", text)
        return text if stays else None


def _pattern(message: str) -> re.Pattern[str]:
    pieces = _PLACE.split(message)
    plain = [re.escape(piece) for piece in pieces[::2]]
    places = [f"(?P<{name}>.+?)" for name in pieces[1::2]]
    return re.compile("".join(part for pair in zip(plain, [*places, ""], strict=True) for part in pair))


def speak(page: BeautifulSoup, words: Words) -> tuple[list[str], list[str]]:
    """Put what a page still says in English into the other language.

    Return the texts that nobody has translated, and the English words that stand in a text of the other language.
    """
    left: list[str] = []
    beside: list[str] = []

    def said(text: str) -> str:
        """Return a text in the other language, with the blanks around it."""
        if not re.search("[A-Za-z]", text):
            return words.known.get(text, text)
        if (spoken := words(text)) is not None:
            return text[: len(text) - len(text.lstrip())] + spoken + text[len(text.rstrip()) :]
        if text.startswith(f"{PROOF} "):
            return text.replace(f"{PROOF} ", words.known[PROOF], 1)
        plain = " ".join(text.split())
        if re.search(rf"[{HAN}]", text):
            found = _SENTENCE.findall(_GLOSS.sub("", plain))
            beside.extend(run for run in found if run not in words.known)
        elif _WORD.search(text) and not _NAME.fullmatch(plain):
            left.append(plain)
        return text

    def visit(element: Tag) -> None:
        """Put what an element says into the other language, and what stands in it."""
        for name in _SPOKEN:
            if name in element.attrs and (element.name != "meta" or _DESCRIBES.intersection(element.attrs.values())):
                element[name] = said(str(element[name]))
        name_of_a_term = element.name == "dt" and "glossary" in (element.parent or element).get_attribute_list("class")
        if name_of_a_term:
            for link in element.find_all("a", recursive=False):
                visit(link)
        # A field knows its answers as they are.
        choice = element.name == "option" and not element.has_attr("value") and element.find_parent(class_="answer")
        gloss = "term-link" in element.get_attribute_list("class")  # a translator wrote it, in either language
        if name_of_a_term or choice or gloss or element.name in _QUIET:
            return
        if _QUIET_CLASSES.intersection(element.get_attribute_list("class")):
            for summary in element.find_all("summary", recursive=False):
                visit(summary)
            return
        for child in list(element.children):
            if isinstance(child, Tag):
                visit(child)
            elif type(child) is NavigableString and (spoken := said(str(child))) != str(child):
                child.replace_with(NavigableString(spoken))

    for child in page.find_all(recursive=False):
        visit(child)
    return left, beside


def texts_of(page: str) -> set[str]:
    """Return the texts and the spoken attributes of a page, each in one line.

    >>> sorted(texts_of('<p title="A note">The <b>rank</b></p>'))
    ['', 'A note', 'The', 'rank']
    """
    said = re.split(r"<[^>]*>", page) + re.findall(rf'(?:{"|".join(_SPOKEN)})="([^"]*)"', page)
    return {" ".join(unescape(text).split()) for text in said}


def left_in_english(page: BeautifulSoup, words: Words, english: str) -> list[str]:
    """Put a page into the other language as `speak` does; return what the English page says in the same words.

    What a translator leaves as it is, such as the English name of a term in brackets, is no part of these.
    """
    known = texts_of(english)
    left, beside = speak(page, words)
    return [said for said in left if said in known] + [said for said in beside if said in "\n".join(known)]


#: Formulas and code, into which nothing here looks; and what stands for it in the meantime.
_CLOSED = re.compile(r"(<(math|pre)\b[^>]*>)((?:(?!</\2>|href=).)+)(?=</\2>)", re.DOTALL)
_ASIDE = re.compile("\ue000(\\w+)\ue001")


def put_aside(html: str, aside: dict[str, str]) -> str:
    """Return a page without what is in its formulas and its code, which is most of it: `aside` has it by its marks.

    What is alike has the same mark, on every page.

    >>> aside = {}
    >>> page = put_aside("<h1>The <math><mi>x</mi></math></h1>", aside)
    >>> "<mi>" in page, put_back(page, aside)
    (False, '<h1>The <math><mi>x</mi></math></h1>')
    """

    def mark(found: re.Match[str]) -> str:
        name = blake2b(found[3].encode(), digest_size=8).hexdigest()
        aside[name] = found[3]
        return f"{found[1]}\ue000{name}\ue001"

    return _CLOSED.sub(mark, html)


def put_back(html: str, aside: Mapping[str, str]) -> str:
    """Return a page with what was put aside."""
    return _ASIDE.sub(lambda found: aside[found[1]], html)


def parsed(html: str) -> BeautifulSoup:
    """Return the elements of a page."""
    return BeautifulSoup(html, "html.parser")


def only(page: Tag, selector: str) -> Tag:
    """Return the one element of a page, or of a part of it, that a selector finds."""
    [found] = page.select(selector)
    return found


def cite(page: BeautifulSoup) -> None:
    """Name the authors of a work in a sentence as Chinese does."""
    for works in page.select(".bibtex-citation"):
        for text in works.find_all(string=True):
            said = text.replace(" and ", " 和 ").replace("et al.", "等")
            if said != text and not text.find_parent("a"):
                (text.parent if text == "et al." and text.parent else text).replace_with(NavigableString(said))


def mark_latin(page: BeautifulSoup) -> None:
    """Mark what is emphasised and has no Han character: it stays italic."""
    for element in page.select("article em"):
        if not re.search(rf"[{HAN}]", element.get_text()):
            element["class"] = " ".join([*filter(None, element.get_attribute_list("class")), "latin"]).strip()


#: The page whose sections are those of an alphabet: it has its own order, and its own ids.
GLOSSARY = "reference/glossary"


def same_chapters(page: BeautifulSoup, english: str, own: Path) -> None:
    """Name the chapters in the glossary that the English page names: where a term is glossed, the author has decided.

    own : the folder of the built edition. A gloss that a chapter has not is no goal there.
    """
    there = {str(dt["id"]): entry for entry in parsed(english).select("dd") for dt in _names_of(entry)}
    for entry in page.select("dd:has(.gloss-chapters)"):
        name = next(str(dt["id"]) for dt in _names_of(entry) if str(dt["id"]) in there and dt.get("lang") != "zh")
        place = only(entry, ".gloss-chapters")
        place.replace_with(only(there[name], ".gloss-chapters").extract())
        for link in entry.select(".gloss-chapters a"):
            path, _, anchor = str(link["href"]).partition("#")
            target = own / dirname(GLOSSARY) / path
            if f'id="{anchor}"' not in target.read_text(encoding="utf-8"):
                link["href"] = path


def _names_of(entry: Tag) -> list[Tag]:
    """Return the names of an entry of the glossary, which stand before it."""
    names = []
    before = entry.find_previous_sibling()
    while before is not None and before.name == "dt":
        names.append(before)
        before = before.find_previous_sibling()
    return names


def name_titles(page: BeautifulSoup, name: str, titles: Mapping[str, Set[str]]) -> None:
    """Put the marks of a title around that of a chapter where it stands in a sentence.

    titles : of each page, as `titles_of` has them.
    """
    for link in page.select("article :is(p, li, dd, td) a[href]"):
        target = normpath(join(dirname(name), str(link["href"]).partition("#")[0])).removesuffix(".html")
        said, around = _bare(link.get_text()), _bare((link.parent or link).get_text())
        if said in titles.get(target, ()) and said != around and not around.partition(said)[0].endswith("《"):
            inner = link.find("span") or link
            inner.insert(0, NavigableString("《"))
            inner.append(NavigableString("》"))


def _bare(text: str) -> str:
    """Return a text without blanks, and without what marks an index where formulas are written as text."""
    return re.sub(r"[\s_]", "", text)


def titles_of(own: Path, pages: Sequence[str]) -> dict[str, set[str]]:
    """Return the titles of built chapters, without blanks: with their formulas, and with those put aside."""
    found = {}
    for name in pages:
        if name.startswith("chapters/"):
            head = re.search(
                r"<h1>((?:(?!<h1>).)*?)<a class=\"headerlink", (own / f"{name}.html").read_text(encoding="utf-8"), re.S
            )
            assert head is not None
            found[name] = {_bare(parsed(title).get_text()) for title in (head[1], put_aside(head[1], {}))}
    return found


def same_ids(page: BeautifulSoup, english: str, name: str) -> dict[str, str]:
    """Give the sections of a page the ids that they have in English; return the new ids by the old ones."""
    if name == GLOSSARY:
        return {}
    here, there = page.select("article section[id]"), re.findall(r'<section\b[^>]*? id="([^"]+)"', english)
    if len(here) != len(there):
        raise ValueError(f"{name}: {len(here)} sections, and {len(there)} in English")
    changed: dict[str, str] = {}
    for section, wanted in zip(here, there, strict=True):
        own = str(section["id"])
        changed[own] = wanted
        section["id"] = wanted
        for twin in page.select(f'span[id="{wanted}"]'):
            twin.decompose()
        if own != wanted and f'id="{own}"' in english:  # a label of the author's
            section.insert(0, page.new_tag("span", id=own))
    for link in page.select('a[href^="#"]'):
        anchor = str(link["href"])[1:]
        link["href"] = "#" + changed.get(anchor, anchor)
    return changed


class Files:
    """The files of a built edition that its pages load: what differs from the English file is kept beside it.

    site, own : the built English pages, and the built edition.
    folder : of the edition in the site; it also marks the names of its files, as in ``terms.zh.js``.
    finished : the pages of the edition.
    words : what a script says, in the language of the edition.
    """

    def __init__(self, site: Path, own: Path, folder: str, finished: Sequence[str], words: Mapping[str, str]) -> None:
        self.site, self.own, self.folder, self.words = site, own, folder, words
        self.finished = frozenset(finished)
        self.differing = {}
        for path in sorted(path for path in (own / "_static").rglob("*") if path.is_file()):
            name = path.relative_to(own).as_posix()
            there = site / name
            if path.suffix != ".py" and there.is_file() and there.read_bytes() != path.read_bytes():
                self.differing[name] = self._marked(name)
                there = site / self.differing[name]
            if not there.is_file():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, there)
        self._basenames = {Path(one).name: Path(other).name for one, other in self.differing.items()}
        self._said: dict[str, str] = {}

    def _marked(self, name: str) -> str:
        path = PurePosixPath(name)
        return path.with_name(f"{path.stem}.{self.folder}{path.suffix}").as_posix()

    def script(self, name: str) -> str:
        """Return the name of a script whose words are those of the edition: its own, or that of a copy."""
        if name not in self._said:
            there = self.differing.get(name, name)
            text = (self.site / there).read_text(encoding="utf-8")
            said = scripts.in_language(text, {**self._basenames, **self.words})
            if said != text:
                there = self._marked(name)
                (self.site / there).write_text(said, encoding="utf-8")
            self._said[name] = there
        return self._said[name]

    def led(self, page: BeautifulSoup, name: str) -> None:
        """Lead every link of a page to where its target is: beside the page, or in the English edition."""
        for attribute in ("href", "src", "data-content_root", "data-entries"):
            for element in page.select(f"[{attribute}]"):
                before = str(element[attribute])
                element[attribute] = self._moved(before, name)
                if element.name == "a" and element[attribute] != before and ".html" in before:
                    element["hreflang"] = "en"
        for element in page.select('[style*="url("]'):
            style = str(element["style"])
            element["style"] = re.sub(r"(?<=url\()[^)]+", lambda found: self._moved(found[0], name), style)
        for script in page.select("script:not([src])"):  # one of the theme's writes a picture
            if script.string and 'src="' in script.string:
                script.string = re.sub(r'(?<=src=")[^"]+', lambda found: self._moved(found[0], name), script.string)

    def _moved(self, address: str, name: str) -> str:
        """Return an address as a page of the edition has to write it."""
        found = re.fullmatch(r"([^?#]*)(.*)", address, re.DOTALL)
        assert found is not None
        path, rest = found[1], found[2]
        if not path or re.match(r"[a-z]+:|//", path):
            return address
        target = normpath(join(dirname(name), path))
        if target.removesuffix(".html") in self.finished:
            return address
        if target.endswith(".js") and target.startswith("_static/") and (self.site / target).is_file():
            target = self.script(target)
        elif target in self.differing:
            target = self.differing[target]
        elif not target.endswith(".html") and not alike(self.own / target, self.site / target):
            # A name that is free there is as good.
            beside = target if not (self.site / target).exists() else join(self.folder, target)
            (self.site / beside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.own / target, self.site / beside)
            if beside != target:
                return address
        return relpath(target, join(self.folder, dirname(name))) + "/" * path.endswith("/") + rest


def alike(one: Path, other: Path) -> bool:
    """Return whether a file of the edition is in the site already, or is in neither."""
    return not one.is_file() or (other.is_file() and one.read_bytes() == other.read_bytes())


#: What `named` writes into a page, so that it is written once.
_NAMED = re.compile(r'<link rel="alternate" hreflang="[^>]*>\n|<a class="btn btn-sm other-edition".*?</a>\n')
_HEADER = '<div class="article-header-buttons">'


def named(html: str, name: str, language: str, base: str, here: bool) -> str:
    """Return a page that names its other edition: a link in the header, and the addresses of both in the head.

    base : the address at which the site is published.
    here : whether this is the page of the edition, and not the English one.
    """
    folder, code = FOLDERS[language], CODES[language]
    addresses = {"en": f"{base}{name}.html", code: f"{base}{folder}/{name}.html"}
    begins = {code} if name == "intro" and not here else set()  # the first page leads on who reads the language
    head = "".join(
        f'<link rel="alternate" hreflang="{which}" href="{address}"{" data-begins" if which in begins else ""}>\n'
        for which, address in addresses.items()
    )
    says, title = SAYS["en" if here else language]
    other, goal = ("en", f"{name}.html") if here else (code, f"{folder}/{name}.html")
    address = relpath(goal, dirname(f"{folder}/{name}" if here else name) or ".")
    about = f'href="{address}" title="{title}" hreflang="{other}" lang="{other}"'
    switch = f'\n<a class="btn btn-sm other-edition" {about}>{says}</a>\n'
    html = _NAMED.sub("", html)
    return html.replace("</head>", f"{head}</head>", 1).replace(_HEADER, _HEADER + switch, 1)


#: A character of at least this share of the pages of an edition is in a font that they share.
SHARED = 0.2
#: The page of the search, and what it loads from beside itself.
SEARCH, FOUND = "search", "_static/finding-data.js"


def find_in_edition(
    site: Path, folder: str, found: str, changed: Mapping[str, Mapping[str, str]], words: Words
) -> None:
    """Give the search of the edition its index; pages that are not translated are found in English.

    found : the edition's index as it was built, which is taken from there.
    changed : of each page of the edition the ids that its sections have now, by those that they had.
    words : what a template has written, in the language of the edition: some titles are its.
    """
    data = unpacked((site / found).read_text(encoding="utf-8"))
    names = [name for name, _ in data["pages"]]
    for document in data["documents"]:
        _, title, _, page, anchor, _ = document
        document[1] = words(title) or title
        document[4] = changed.get(names[page], {}).get(anchor, anchor)
    data["pages"] = [[name if name in changed else f"../{name}", title] for name, title in data["pages"]]
    (site / folder / FOUND).parent.mkdir(parents=True, exist_ok=True)
    (site / folder / FOUND).write_text(packed(data), encoding="utf-8")
    (site / found).unlink()


class InOrder(HTMLFormatter):
    """Write attributes in the order in which they stand, and ``<`` and ``&`` in text as they have to be."""

    def __init__(self) -> None:
        super().__init__(entity_substitution=EntitySubstitution.substitute_xml)

    def attributes(self, tag: Tag) -> list[tuple[str, Any]]:
        """Return the attributes of an element."""
        return list(tag.attrs.items())


def join_editions(
    site: Path,
    own: Path,
    finished: Sequence[str],
    known: Mapping[str, str],
    in_scripts: Mapping[str, str],
    language: str,
    base: str,
) -> dict[str, list[str]]:
    """Put the finished pages of a built edition into the site; return what each still says in English.

    site : the folder of the built English pages.
    own : the folder of the built edition.
    known : the words of the edition; `in_scripts` those that scripts write.
    base : the address at which the site is published.
    """
    words, folder = Words(known), FOLDERS[language]
    shutil.rmtree(site / folder, ignore_errors=True)
    finished = [*finished, SEARCH]
    files = Files(site, own, folder, finished, in_scripts)
    font = book_font()
    made = partial(_in_edition, site, own, files, words, titles_of(own, finished), language, base)
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as workers:
        pages = dict(zip(finished, workers.map(made, finished), strict=True))
    # What scripts write is on no page yet, and may come to any; the last word is that of the buttons that copy code.
    written = "".join([*in_scripts.values(), "复制到剪贴板"])
    shared = shared_by([page.html for page in pages.values()], SHARED, files.differing[WHOLE], site, written)
    for name, page in pages.items():
        english = (site / f"{name}.html").read_text(encoding="utf-8")
        for address, html, common in ((f"{folder}/{name}", page.html, shared), (name, english, None)):
            target = site / f"{address}.html"
            target.parent.mkdir(parents=True, exist_ok=True)
            html = named(html, name, language, base, common is not None)
            target.write_text(with_own_font(html, font, site, address.count("/"), common)[0], encoding="utf-8")
    changed = {name: page.changed for name, page in pages.items()}
    find_in_edition(site, folder, files.differing[FOUND], changed, words)
    return {name: page.left for name, page in pages.items() if page.left}


class _Page(NamedTuple):
    """A page of an edition: its HTML, the ids that its sections have now by the old ones, and what is in English."""

    html: str
    changed: dict[str, str]
    left: list[str]


def _in_edition(
    site: Path,
    own: Path,
    files: Files,
    words: Words,
    titles: Mapping[str, Set[str]],
    language: str,
    base: str,
    name: str,
) -> _Page:
    """Return a page as the site gets it, but for its fonts and the link to the other edition."""
    text = (own / f"{name}.html").read_text(encoding="utf-8")
    english = (site / f"{name}.html").read_text(encoding="utf-8")
    aside: dict[str, str] = {}
    page = parsed(put_aside(text.replace(f"{base}{name}.html", f"{base}{FOLDERS[language]}/{name}.html"), aside))
    only(page, "html")["lang"] = CODES[language]
    changed = same_ids(page, english, name)
    if name == GLOSSARY:
        same_chapters(page, english, own)
    left = left_in_english(page, words, english)
    name_titles(page, name, titles)
    cite(page)
    for article in page.select("article.bd-article"):
        close_up(article)
    mark_latin(page)
    files.led(page, name)
    return _Page(put_back(page.decode(formatter=InOrder()), aside), changed, list(dict.fromkeys(left)))
