"""Make the finished pages light: one style sheet, few scripts, the icons that are used, pictures when they are in view.

The theme and the extensions bring sixteen style sheets of half a megabyte, a dozen scripts, and three fonts with two
thousand icons. The pages use a part of them, and nobody knows which part before all pages are written. So this
extension works on the finished pages:

* The style sheets that all pages share become one, without the rules whose classes occur in no page and no script, and
  without the variables that nothing reads.
* Code has elements around the tokens that have a colour of their own, and no others.
* The scripts that all pages share become three: those that others may need while the page is read, those that wait
  until it is there, and those of the buttons that only pages with code have. A script of one page stays with it.
* The font of formulas is asked for early where a page has formulas beside those in the contents of the book.
* The icons' style sheet and fonts keep the icons that occur.
* A picture carries its size, so that nothing moves when it comes, and comes when it is nearly in view.
* FontAwesome's script (1.5 MB) goes, its style sheet shows the icons as well.

The rest of the site stays as Sphinx wrote it. Nothing here is needed for a page to work.
"""

from __future__ import annotations

import hashlib
import io
import logging
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import tinycss2
from fontTools import subset
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

from .finished import pages_of

logging.getLogger("fontTools").setLevel("WARNING")  # it reports every table
ICON_SCRIPT = re.compile(r'<script src="[^"]*/fontawesome/[^"]*"></script>\n?')
SHEET = re.compile(r'[ \t]*<link(?=[^>]*\brel="stylesheet")(?![^>]*\bmedia=)[^>]*\bhref="([^"]+)"[^>]*>\n?')
SCRIPT = re.compile(r'[ \t]*<script(?![^>]*\b(?:type=|async|defer|data-))[^>]*\bsrc="([^"]+)"[^>]*></script>\n?')
PRELOAD = re.compile(r'[ \t]*<link rel="preload" as="(?:script|font)"[^>]*>\n?')
#: What asks early for the font of formulas, which a page without a formula does not need at once.
MATH_FONT = re.compile(r'<link rel="preload" as="font"[^>]*/book-math\.woff2">\n')
#: Which boxes the theme's script measures to make those that scroll tab stops. It is to ask only those that are laid
#: out (book.css): to measure the others is to lay out the page. _static/accessible.js does the rest when they come.
MEASURED = '"pre, .nboutput > .output_area, .cell_output > .output, .jp-RenderedHTMLCommon"'
NEAR = f'":is({MEASURED[1:-1]}):not(.bd-article > section > section:not(.near) *)"'
#: Classes that Bootstrap's and the theme's scripts give to elements while somebody uses the page.
DYNAMIC = frozenset(
    re.findall(
        r"\S+",
        """
        show showing hide hiding collapse collapsing collapsed fade active disabled open modal-open dropdown-menu
        tooltip tooltip-inner tooltip-arrow bs-tooltip-auto bs-tooltip-top bs-tooltip-bottom bs-tooltip-start
        bs-tooltip-end dropup dropend dropstart dropdown-menu-end scrolled only-light only-dark highlighted search
        """,
    )
)
#: What other scripts of a page may need while the page is read. The other shared scripts wait until it is there.
EARLY = ("documentation_options.js", "doctools.js", "sphinx_highlight.js")
#: The scripts of the buttons that copy code and unfold solutions, which a page without code does not need.
BUTTONS = ("togglebutton.js", "clipboard.min.js", "copybutton.js")
#: The script of tabs, which a page without tabs does not need.
TABS = re.compile(r'[ \t]*<script[^>]*\bsrc="[^"]*/design-tabs\.js[^"]*"[^>]*></script>\n?')
#: How the theme begins, with "auto" where a reader has chosen nothing: no colour is known before its script has run.
THEME = 'dataset.theme = localStorage.getItem("theme") || "auto";'
CHOSEN = """dataset.theme = ["light", "dark"].find((theme) => theme === localStorage.getItem("mode"))
      || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");"""
#: A library whose own words (carousel, accordion, offcanvas) say nothing about what the pages use.
LIBRARIES = ("bootstrap.js",)


# --- style sheets --------------------------------------------------------------------------------


def words_of(texts: Iterable[str]) -> set[str]:
    """Return every word of pages and scripts that could be a class or an id.

    >>> sorted(words_of(['<p class="a b-c">', 'e.classList.add("open")']))
    ['a', 'add', 'b-c', 'class', 'classList', 'e', 'open', 'p']
    """
    return {word for text in texts for word in re.findall(r"[A-Za-z_][\w-]*", text)}


def classes_of(pages: Iterable[str]) -> set[str]:
    """Return the classes and ids of pages, and the words of the scripts in them.

    >>> sorted(classes_of(['<p class="a b-c" id="d">text</p><script>e.add("open")</script>']))
    ['a', 'add', 'b-c', 'd', 'e', 'open']
    """
    found: set[str] = set()
    for page in pages:
        found.update(*(names.split() for names in re.findall(r'\b(?:class|id)="([^"]*)"', page)))
        found |= words_of(re.findall(r"<script[^>]*>(.+?)</script>", page, re.DOTALL))
    return found


def is_used(selector: str, words: set[str]) -> bool:
    """Return whether the classes and ids of a selector occur; what stands in brackets decides nothing.

    >>> is_used(".a > #b", {"a", "b"}), is_used(".a.c", {"a", "b"}), is_used("p:not(.c)", set())
    (True, False, True)
    """
    while (bare := re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", selector)) != selector:
        selector = bare
    names = re.findall(r"[.#](-?[A-Za-z_](?:[\w-]|\\.)*)", selector)
    return all(name.replace("\\", "") in words for name in names)


def split_selectors(prelude: list[Any]) -> list[str]:
    """Return the selectors of a rule, which commas part."""
    parts: list[list[Any]] = [[]]
    for token in prelude:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [tinycss2.serialize(part).strip() for part in parts]


def pruned(css: str, words: set[str]) -> str:
    """Return a style sheet without comments, without needless space, and without the rules that no page uses.

    >>> pruned("/* x */ .a, .b { color: red }  @media print { .b { top: 0 } }", {"a"})
    '.a{color:red}'
    """
    return _rules(tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True), words)


def _rules(rules: list[Any], words: set[str]) -> str:
    written = []
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors = [s for s in split_selectors(rule.prelude) if is_used(s, words)]
            if selectors:
                written.append(f"{','.join(selectors)}{{{_squeezed(rule.content)}}}")
        elif (
            rule.type == "at-rule"
            and rule.lower_at_keyword in {"media", "supports", "layer", "container"}
            and rule.content
        ):
            inside = _rules(
                tinycss2.parse_blocks_contents(rule.content, skip_comments=True, skip_whitespace=True), words
            )
            if inside:
                written.append(f"@{rule.at_keyword}{_squeezed(rule.prelude, ends=False)}{{{inside}}}")
        elif rule.type == "at-rule" and rule.lower_at_keyword != "charset":
            content = ";" if rule.content is None else f"{{{_squeezed(rule.content)}}}"
            written.append(f"@{rule.at_keyword}{_squeezed(rule.prelude, ends=False)}{content}")
        elif rule.type == "error":
            raise ValueError(f"style sheet: {rule.message} in line {rule.source_line}")
    return "".join(written)


def without_unread(css: str, words: set[str]) -> str:
    """Return a pruned style sheet without the variables that neither it nor one of the words reads.

    >>> without_unread(":root{--a:1;--b:var(--a);--c:2;--d:3;top:var(--d)}", {"c"})
    ':root{--c:2;--d:3;top:var(--d)}'
    """
    definition = re.compile(r"(?<=[{;])(--[\w-]+):((?:[^;{}()]|\((?:[^()]|\([^()]*\))*\))*)(;|(?=\}))")
    named = {f"--{word}" for word in words}
    before = ""
    while css != before:  # a variable may be read by one that nothing reads
        before, read = css, named.union(re.findall(r"var\(\s*(--[\w-]+)", css))
        css = definition.sub(partial(_if_read, read), css)
    return css


def _if_read(read: set[str], definition: re.Match[str]) -> str:
    return definition[0] if definition[1] in read else ""


def _squeezed(tokens: list[Any], *, ends: bool = True) -> str:
    tokens = [token for token in tokens if token.type != "comment"]
    after = [None, *tokens]
    text = "".join(
        ("" if before in (":", ",", ";") else " ") if token.type == "whitespace" else token.serialize()
        for before, token in zip(after, tokens, strict=False)
    )
    text = re.sub(r" +", " ", text)
    return text.strip(" ;").replace("; ", ";") if ends else text.rstrip()


def rebased(css: str, folder: str, root: str) -> str:
    """Return a style sheet whose addresses are seen from another folder, with what it imports written out before.

    >>> rebased("a{b:url(../x.png)} c{d:url('data:,')}", "/s/styles", "/s")
    "a{b:url(x.png)} c{d:url('data:,')}"
    """

    def address(match: re.Match[str]) -> str:
        if re.match(r"data:|#|[a-z]+:|/", match[2]):
            return match[0]
        moved = posixpath.relpath(posixpath.normpath(posixpath.join(folder, match[2])), root)
        return f"url({match[1]}{moved}{match[1]})"

    return re.sub(r"""url\(\s*(["']?)([^"')]+)\1\s*\)""", address, css)


def read_sheet(path: Path, root: Path) -> str:
    """Return a style sheet with its imports, seen from the folder of the bundle."""
    css = path.read_text(encoding="utf-8-sig")
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    imports = re.compile(r"""@import\s+(?:url\()?["']([^"':]+)["']\)?\s*;""")
    inner = "".join(read_sheet((path.parent / name).resolve(), root) for name in imports.findall(css))
    return inner + rebased(imports.sub("", css), path.parent.resolve().as_posix(), root.resolve().as_posix()) + "\n"


# --- code ----------------------------------------------------------------------------------------


def colourless(css: str) -> set[str]:
    """Return the classes of tokens to which a style sheet of Pygments gives the colour of all code, in every theme.

    >>> sorted(colourless(".highlight {color:#000} .highlight .n {color:#000} .highlight .k {color:#00f}"))
    ['n']
    """
    usual: dict[str, str] = {}
    of_class: dict[str, list[bool]] = {}
    rules = re.findall(r"([^{}]*)\.highlight *(?:\.(\w+) *)?\{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", css))
    for theme, name, content in rules:
        declared = content.replace(" ", "").strip(";")
        if not name:
            usual[theme.strip()] = f"color:{declared.rpartition('color:')[2]}"
        else:
            of_class.setdefault(name, []).append(declared == usual.get(theme.strip()))
    return {name for name, plain in of_class.items() if all(plain)}


def without_plain_tokens(page: str, plain: set[str]) -> str:
    """Return a page whose code has no element around tokens of these classes.

    >>> without_plain_tokens('<pre><span class="k">if</span> <span class="n">x</span></pre>', {"n"})
    '<pre><span class="k">if</span> x</pre>'
    """
    token = re.compile(rf'<span class="(?:{"|".join(sorted(plain))})">([^<]*)</span>')
    return re.sub(r"<pre\b.*?</pre>", lambda m: token.sub(r"\1", m[0]), page, flags=re.DOTALL) if plain else page


# --- icons ---------------------------------------------------------------------------------------


def icons_used(css: str, words: set[str]) -> tuple[str, set[int]]:
    """Return FontAwesome's style sheet with the icons that occur, and their characters.

    >>> css = '.fa-a:before,.fa-b:before{content:"\\\\f001"}.fa-c:before{content:"\\\\f002"}.fa{x:y}'
    >>> icons_used(css, {"fa-b", "fa"})
    ('.fa-a:before,.fa-b:before{content:"\\\\f001"}.fa{x:y}', {61441})
    """
    found = set()

    def rule(match: re.Match[str]) -> str:
        if not words.intersection(re.findall(r"\.(fa-[\w-]+)", match[1])):
            return ""
        found.add(int(match[2], 16) if len(match[2]) > 1 else ord(match[2]))
        return match[0]

    return re.sub(r'((?:\.fa-[\w-]+:{1,2}before,?)+)\{content:"\\?([0-9a-f]+|.)"\}', rule, css), found


def cut_icons(font: Path, characters: set[int]) -> None:
    """Leave these characters in a font."""
    options = subset.Options(flavor="woff2", hinting=False, layout_features=[], ignore_missing_unicodes=True)
    opened = TTFont(io.BytesIO(font.read_bytes()), recalcTimestamp=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(opened)
    subset.save_font(opened, str(font), options)


# --- pages ---------------------------------------------------------------------------------------


def shared(pages: Iterable[str], pattern: re.Pattern[str]) -> list[str]:
    """Return the files of ``_static`` that every page asks for, in the order of the first page."""
    lists = [[static_name(address) for address in pattern.findall(page)] for page in pages]
    first, *others = lists or [[]]
    return [name for name in dict.fromkeys(first) if name and all(name in other for other in others)]


def static_name(address: str) -> str:
    """Return a file's path below ``_static``, without what follows a question mark.

    >>> static_name("../../_static/styles/theme.css?digest=1"), static_name("https://a.b/c.css")
    ('styles/theme.css', '')
    """
    parts = urlsplit(address)
    return parts.path.rpartition("_static/")[2] if "_static/" in parts.path and not parts.netloc else ""


def expanded(page: str) -> str:
    """Return a page of an earlier build as Sphinx wrote it: with the files that became its bundles.

    >>> expanded('<link rel="stylesheet" data-of="a.css b.css" href="../_static/site-1.css">')
    '<link rel="stylesheet" href="../_static/a.css"><link rel="stylesheet" href="../_static/b.css">'
    """

    def tag(match: re.Match[str]) -> str:
        names = match[3].split()
        return "".join(f'{match[1]} {match[4]}="{match[5]}_static/{name}"{match[6]}' for name in names)

    pattern = (
        r'(<(link rel="stylesheet"|script)) data-of="([^"]*)" (href|src)="([^"]*)_static/site-[^"]*"'
        r"(?: defer)?(>(?:</script>)?)"
    )
    return re.sub(pattern, tag, page)


class Bundle(NamedTuple):
    """A file in place of several: what finds those in a page, their names, what asks for it, and who needs it."""

    pattern: re.Pattern[str]
    names: list[str]
    tag: str
    needed_by: str = ""

    def put_into(self, page: str) -> str:
        """Return a page that asks for the bundle where it asked for the first of these files, and for none of them."""
        tags = iter([self.tag] if self.needed_by in page else [])

        def one(match: re.Match[str]) -> str:
            if static_name(match[1]) not in self.names:
                return match[0]
            return next(tags, "").replace("_static/", f"{match[1].partition('_static/')[0]}_static/")

        return self.pattern.sub(one, page)


def size_of(svg: str) -> tuple[int, int] | None:
    """Return the size of a picture in pixels.

    >>> size_of('<svg width="662.4pt" height="288pt" viewBox="0 0 662.4 288">'), size_of('<svg viewBox="0 0 60 40">')
    ((883, 384), (60, 40))
    """
    if found := re.search(r'<svg\b[^>]*?\bwidth="([\d.]+)(pt|)"[^>]*?\bheight="([\d.]+)\2"', svg, re.DOTALL):
        unit = 4 / 3 if found[2] else 1
        return round(float(found[1]) * unit), round(float(found[3]) * unit)
    found = re.search(r'<svg\b[^>]*?\bviewBox="0 0 ([\d.]+) ([\d.]+)"', svg, re.DOTALL)
    return (round(float(found[1])), round(float(found[2]))) if found else None


def sized_pictures(page: str, folder: Path) -> str:
    """Return a page whose pictures have their size, so that nothing moves; figures come when nearly in view."""

    def picture(match: re.Match[str]) -> str:
        source = re.search(r'\bsrc="([^":?]+\.svg)', match[0])
        file = folder / source[1] if source else None
        if file is None or not file.is_file():
            return match[0]
        size = None if " width=" in match[0] else size_of(file.read_text(encoding="utf-8")[:2000])
        lazy = ' loading="lazy"' if "_images/" in match[0] and " loading=" not in match[0] else ""
        return f"<img{lazy}" + (f' width="{size[0]}" height="{size[1]}"' if size else "") + match[0][4:]

    return re.sub(r"<img\b[^>]*>", picture, page)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Rewrite the finished pages."""
    static = Path(app.outdir, "_static")
    pages = {p: expanded(ICON_SCRIPT.sub("", p.read_text(encoding="utf-8"))) for p in pages_of(app, exception)}
    # The pages of the theme: neither the one that only leads to another, nor what somebody made without the theme.
    whole = {p: text for p, text in pages.items() if "/pydata-sphinx-theme.css" in text or "basic.css" in text}
    colours = static / "pygments.css"
    plain = colourless(colours.read_text(encoding="utf-8")) if colours.is_file() else set()
    whole = {path: without_plain_tokens(text, plain) for path, text in whole.items()}
    if not shared(whole.values(), SHEET):
        return
    skipped = (*LIBRARIES, "site-")
    scripts = [p for p in sorted(static.rglob("*.js")) if "vendor" not in p.parts and not p.name.startswith(skipped)]
    words = words_of(p.read_text(encoding="utf-8") for p in scripts) | classes_of(whole.values()) | DYNAMIC
    fonts = ["vendor/fonts/book-math.woff2", *lighten_icons(static, words)]
    for old in static.glob("site-*"):
        old.unlink()
    bundles = [style_bundle(static, whole.values(), words, fonts), *script_bundles(static, whole.values())]
    pages |= {path: lightened(text, bundles, path.parent) for path, text in whole.items()}
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")


def style_bundle(static: Path, pages: Collection[str], words: set[str], fonts: list[str]) -> Bundle:
    """Write the style sheets that all pages share as one, which these fonts are loaded beside."""
    sheets = shared(pages, SHEET)
    css = pruned("".join(read_sheet(static / name, static) for name in sheets), words)
    others = [p for p in static.rglob("*.css") if p.relative_to(static).as_posix() not in sheets]
    css = without_unread(css, words | words_of([*pages, *(p.read_text(encoding="utf-8") for p in others)]))
    preload = "".join(
        f'<link rel="preload" as="font" type="font/woff2" crossorigin href="_static/{name}">\n'
        for name in fonts
        if (static / name).is_file()
    )
    address = f'data-of="{" ".join(sheets)}" href="_static/{write_bundle(static, css, ".css")}"'
    return Bundle(SHEET, sheets, f'{preload}<link rel="stylesheet" {address}>\n')


def without_remarks(script: str) -> str:
    """Return a script without lines that are remarks, except for licences (``/*!``), and without indentation.

    >>> without_remarks("// why\\n/** how\\n * far */\\nif (a) {\\n  b();  // c\\n}\\n")
    'if (a) {\\nb();  // c\\n}\\n'
    """
    code = re.sub(r"(?ms)^[ \t]*/\*(?!!).*?\*/[ \t]*\n", "", script)
    return re.sub(r"(?m)^[ \t]+", "", re.sub(r"(?m)^[ \t]*//.*\n", "", code))


def script_bundles(static: Path, pages: Collection[str]) -> Iterator[Bundle]:
    """Write the scripts that all pages share as three: those that cannot wait, the buttons of code, and the others."""
    programs = [name for name in shared(pages, SCRIPT) if name != "design-tabs.js"]
    early, buttons = ([n for n in programs if n in some] for some in (EARLY, BUTTONS))
    late = [n for n in programs if n not in (*early, *buttons)]
    for names, wait, needed_by in ((early, "", ""), (late, " defer", ""), (buttons, " defer", 'class="highlight')):
        if names:
            # An unfinished last line or comment of one script does not reach the next.
            joined = "\n;\n".join(without_remarks((static / name).read_text(encoding="utf-8")) for name in names)
            joined = joined.replace(MEASURED, NEAR)
            address = f'data-of="{" ".join(names)}" src="_static/{write_bundle(static, joined, ".js")}"'
            yield Bundle(SCRIPT, names, f"<script {address}{wait}></script>\n", needed_by)


def lightened(page: str, bundles: Iterable[Bundle], folder: Path) -> str:
    """Return a page of that folder that asks for the bundles, and for nothing that it has no use for."""
    page = PRELOAD.sub("", page)
    for bundle in bundles:
        page = bundle.put_into(page)
    if "sd-tab-set" not in page:
        page = TABS.sub("", page)
    if "<math" not in page.partition("<main")[2]:
        page = MATH_FONT.sub("", page)
    page = page.replace(THEME, CHOSEN).replace(' data-theme="auto"', ' data-theme="light"', 1)
    return sized_pictures(page, folder)


def lighten_icons(static: Path, words: set[str]) -> list[str]:
    """Cut FontAwesome down to the icons that are used; return the font that most of them are in."""
    found = sorted(static.glob("vendor/fontawesome/*/css/all.min.css"))
    own = "".join(p.read_text(encoding="utf-8") for p in static.rglob("*.css") if "vendor" not in p.parts)
    for sheet in found:
        css, characters = icons_used(sheet.read_text(encoding="utf-8"), words)
        characters |= {int(code, 16) for code in re.findall(r"\\([ef][0-9a-f]{3})\b", own)}
        sheet.write_text(re.sub(r",url\([^)]*\.ttf\) format\(\"truetype\"\)", "", css), encoding="utf-8")
        for font in sorted((sheet.parents[1] / "webfonts").iterdir()):
            if font.suffix == ".woff2":
                cut_icons(font, characters)
            else:
                font.unlink()
    return [
        p.relative_to(static).as_posix()
        for p in sorted(static.glob("vendor/fontawesome/*/webfonts/fa-solid-900.woff2"))
    ]


def write_bundle(static: Path, text: str, suffix: str) -> str:
    """Write a bundle under a name that changes with it; return the name."""
    name = f"site-{hashlib.sha256(text.encode()).hexdigest()[:12]}{suffix}"
    (static / name).write_text(text, encoding="utf-8")
    return name


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event: after everything else that works on finished pages."""
    app.connect("build-finished", finish, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
