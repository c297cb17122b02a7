"""Mark the Chinese of the pages as Chinese, and give each page a font with the characters that it has.

Each run of Han characters in the text of a finished page becomes ``<span lang="zh">``, unless its element says so:
screen readers change their voice, and browsers choose forms and breaks.

A chapter in English has some thirty characters. Its own font takes 10 kB instead of that of the whole book; what is
written into the page later, such as results of a search, has the font of the book, with the characters of the English
edition. Pages in Chinese share a font of the characters that many of them have, and one of all.
"""

from __future__ import annotations

import hashlib
import io
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

from .finished import pages_of, rewrite

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import fonts

HAN = r"[\u2e80-\u2fdf\u3400-\u9fff\uf900-\ufaff]"
RUN = re.compile(rf"{HAN}(?:[\u3000-\u303f\uff00-\uffef·“”‘’—…]*{HAN})*[\u3001-\u3003\uff00-\uff65]*")
_TOKEN = re.compile(r"<!--.*?-->|<(script|style|textarea|title)\b.*?</\1>|<[^>]*>|[^<]+", re.DOTALL)


def marked(page: str) -> str:
    """Return a page whose Chinese says that it is.

    >>> marked('<title>熵</title><p title="熵">the entropy (信息熵) is</p>')
    '<title>熵</title><p title="熵">the entropy (<span lang="zh">信息熵</span>) is</p>'
    >>> marked(marked("<p>缩放因子</p>")) == marked("<p>缩放因子</p>")
    True
    """
    before = ""

    def token(match: re.Match[str]) -> str:
        nonlocal before
        text, tag = match[0], before
        before = text
        if text.startswith("<") or re.search(r'\blang="zh', tag):
            return text
        return RUN.sub(lambda run: f'<span lang="zh">{run[0]}</span>', text)

    whole = re.search(r"<html\b[^>]*\blang=[\"']?zh", page)  # a page of the Chinese edition says it once
    return _TOKEN.sub(token, page) if re.search(HAN, page) and not whole else page


#: Where the fonts of the pages are, and what says it in a page.
FONTS = Path("_static", "vendor", "fonts", "pages")
_STYLE = re.compile(r'<style class="han">.*?</style>\n')
#: The characters that a font of the site may be for, as in ``_static/fonts.css``.
EVERY = "U+2E80-2FDF,U+3000-303F,U+3400-9FFF,U+F900-FAFF,U+FF00-FFEF"
#: What a page shows, and what the attributes of its elements may show.
_SHOWN = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1>", re.DOTALL)


class Shared(NamedTuple):
    """A font that several pages share, and its characters; and the font that has what is on none of the pages yet.

    Both are where they stand from the root of the site.
    """

    address: str
    characters: frozenset[int]
    whole: str


def shared_by(pages: Sequence[str], least: float, whole: str, site: Path, always: str = "") -> Shared:
    """Write a font of the characters that at least this share of some pages has, and of those of a text."""
    count = Counter(code for page in pages for code in shown_by(page))
    often = {code for code, number in count.items() if number >= least * len(pages)}
    characters = frozenset(often | shown_by(always))
    name = written(characters, (site / whole).read_bytes(), site)
    return Shared((FONTS / name).as_posix(), characters, whole)


def shown_by(page: str) -> set[int]:
    """Return the Chinese characters of a page."""
    return set(fonts.han_characters([_SHOWN.sub("", page)]))


def written(characters: Set[int], font: bytes, site: Path) -> str:
    """Write a font of some characters of the book's font into a site, and return its name."""
    name = hashlib.sha256(font + repr(sorted(characters)).encode()).hexdigest()[:12] + ".woff2"
    if not (site / FONTS / name).is_file():
        whole = TTFont(io.BytesIO(font), recalcTimestamp=False, recalcBBoxes=False)
        fonts.cut(whole, set(characters), "Book Han", site / FONTS / name, ("locl",))
    return name


def with_font(page: str, faces: Mapping[str, Set[int]]) -> str:
    """Return a page that finds its characters in fonts, by their addresses; without any it is for every Chinese one.

    >>> with_font("<head></head>", {"a.woff2": {0x71B5, 0x79E9}}).partition("format")[2]
    '("woff2");unicode-range:U+71B5,U+79E9}</style>\\n</head>'
    """
    said = ""
    for address, characters in faces.items():
        which = ",".join(f"U+{code:04X}" for code in sorted(characters)) or EVERY
        face = f'font-family:"Book Han";font-display:swap;src:url("{address}") format("woff2");unicode-range:{which}'
        said += f"@font-face{{{face}}}"
    return page.replace("</head>", f'<style class="han">{said}</style>\n</head>', 1) if said else page


def with_own_font(page: str, font: bytes, site: Path, depth: int, shared: Shared | None = None) -> tuple[str, str]:
    """Return a page with a font of the characters that it has, and the font's name, "" where it has none.

    font : the font of the book.
    site : where the site is, which gets the page's font.
    depth : in how many folders of the site the page is.
    shared : a font that other pages have as well; the page's own has the other characters.
    """
    page = _STYLE.sub("", page)
    characters, name = shown_by(page), ""
    faces: dict[str, Set[int]] = {}
    up = "../" * depth
    if shared:  # of two fonts that have a character, the browser takes the later
        faces[up + shared.whole] = set()
        faces[up + shared.address] = characters & shared.characters
        characters -= shared.characters
    if characters:
        name = written(characters, font, site)
        faces[f"{up}{(FONTS / name).as_posix()}"] = characters
    return with_font(page, faces), name


#: The font of the book in the site.
WHOLE = "_static/vendor/fonts/book-han.woff2"


def book_font() -> bytes:
    """Return the font with all Chinese characters of the book."""
    return (fonts.TARGET / "book-han.woff2").read_bytes()


def give_fonts(app: Sphinx, exception: Exception | None) -> None:
    """Write the fonts of the pages that have Chinese, and leave none that no page has."""
    if app.config.language != "en":  # the pages of another edition get theirs where both are joined
        return
    font, out, used = book_font(), Path(app.outdir), set()
    pages = list(pages_of(app, exception))
    if pages:
        english = fonts.han_characters(fonts.book_texts(patterns=fonts.IN_ENGLISH))
        fonts.cut(TTFont(io.BytesIO(font)), english, "Book Han", out / WHOLE, ("locl",))
    for path in pages:
        page = path.read_text(encoding="utf-8")
        changed, name = with_own_font(page, font, out, len(path.relative_to(out).parts) - 1)
        if name:
            path.write_text(changed, encoding="utf-8")
            used.add(name)
    for left in set((out / FONTS).glob("*")) if used else ():
        if left.name not in used:
            left.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.connect("build-finished", rewrite(lambda page, _: marked(page)), priority=810)
    app.connect("build-finished", give_fonts, priority=820)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
