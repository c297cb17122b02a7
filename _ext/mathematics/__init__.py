r"""Typeset every formula when the site is built: TeX becomes MathML, which browsers show by themselves.

MathJax's own parser, from the package ``sphinx-mathjax-offline``, reads the TeX in an embedded V8 (``mini-racer``), and
``assets/mathml.js`` writes MathML Core. A formula that cannot be read is a warning, which fails the build. Formulas
come from three places, and all are treated alike: the text of a page (Sphinx's renderer of mathematics), the stored
HTML of cards and derivations (raw nodes), and whatever the templates and other extensions wrote with ``\(...\)`` or
``\[...\]`` (a last pass over the finished pages).

``typeset`` and ``plain`` serve other extensions: a formula as MathML, and as plain text.
"""

from __future__ import annotations

import atexit
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from docutils import nodes
from pages.finished import rewrite
from py_mini_racer import MiniRacer
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)
MATHJAX = Path(str(files("sphinx-mathjax-offline"))) / "static" / "mathjax"
MATHJAX_PARTS = ("loader.js", "core.js", "input/tex-full.js", "adaptors/liteDOM.js")
WRITER = Path(__file__).parent / "assets" / "mathml.js"


#: Builders whose pages run no script: nobody copies the TeX of their formulas.
PRINTED = ("epub", "latex")

#: Marks above a letter, as plain text puts them: after the letter.
ACCENTS = {"\u02c6": "\u0302", "\u02dc": "\u0303", "\u00af": "\u0304", "\u02d9": "\u0307", "\u2192": "\u20d7"}


class Formula(NamedTuple):
    """A typeset formula: its MathML, and the numbers that its ``\\tag`` gave it."""

    mathml: str
    tags: list[str]


class FormulaError(ValueError):
    """TeX that cannot be typeset."""


@cache
def reader() -> MiniRacer:
    """Return V8 with MathJax's parser and the writer of MathML. It is closed before Python ends: V8 would wait."""
    engine = MiniRacer()
    atexit.register(engine.close)
    engine.eval("var global = globalThis, window = undefined, MathJax = {loader: {load: []}};")
    for part in MATHJAX_PARTS:
        engine.eval((MATHJAX / part).read_text(encoding="utf-8") + ";0")
    engine.eval(f"{{{WRITER.read_text(encoding='utf-8')}}};0")
    return engine


class _Kept:
    """What earlier builds have typeset, in a file that lasts as long as the writer and MathJax do."""

    def __init__(self) -> None:
        self.formulas: dict[str, dict[str, Any]] = {}
        self.file: Path | None = None
        self.key = hashlib.sha256(b"".join(p.read_bytes() for p in (WRITER, MATHJAX / "core.js"))).hexdigest()
        self.changed = False

    def load(self, file: Path) -> None:
        self.file = file
        if file.is_file():
            key, formulas = json.loads(file.read_text(encoding="utf-8"))
            self.formulas |= formulas if key == self.key else {}

    def save(self) -> None:
        if self.file and self.changed:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps([self.key, self.formulas], ensure_ascii=False), encoding="utf-8")
            self.changed = False


kept = _Kept()


def typeset(tex: str, *, display: bool = False) -> Formula:
    r"""Return a formula as MathML.

    >>> typeset(r"\sqrt{d_k}").mathml
    '<math><msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt></math>'
    >>> typeset(r"x \tag{5.1.5}", display=True)
    Formula(mathml='<math display="block"><mi>x</mi></math>', tags=['(5.1.5)'])
    >>> typeset(r"\sqr{2}")
    Traceback (most recent call last):
    mathematics.FormulaError: Undefined control sequence \sqr: \sqr{2}
    """
    key = ("D" if display else "I") + tex
    if key not in kept.formulas:
        [kept.formulas[key]] = json.loads(reader().call("convertAll", json.dumps([[tex, display]])))
        kept.changed = True
    found = kept.formulas[key]
    if "error" in found:
        raise FormulaError(f"{found['error']}: {tex}")
    return Formula(found["mathml"], found["tags"])


def _words(element: ElementTree.Element) -> str:
    """Return MathML as a line of text."""
    name, parts = element.tag, [_words(child) for child in element]

    def bracketed(text: str) -> str:
        return text if re.fullmatch(r".|\w+(_\w+)?", text) else f"({text})"

    if name in {"mi", "mn", "mo", "mtext"}:
        text = element.text or ""
        # a relation, and an operator between two, has spaces; functions have one after them
        return (
            f" {text} " if name == "mo" and re.search(r"[a-z=<>≤≥≈≠∼∈→↦+−±×⊆∝≪]", text) else text.replace("\u2061", " ")
        )
    if name == "mspace":
        return "" if "margin" in element.get("style", "") else " "
    if name == "msqrt":
        return "√" + bracketed("".join(parts).strip())
    if name == "mroot":
        return f"{bracketed(parts[1])}√{bracketed(parts[0])}"
    if name == "mfrac" and element.get("linethickness") == "0":
        return f"{parts[0]} over {parts[1]}"
    if name == "mfrac":
        return f"{bracketed(parts[0].strip())}/{bracketed(parts[1].strip())}"
    if name in {"msub", "munder"}:
        return f"{parts[0]}_{bracketed(parts[1].strip())}"
    if name in {"msup", "mover"}:
        return parts[0] + (
            "ᵀ"
            if parts[1] == "⊤"
            else ACCENTS.get(parts[1], parts[1])
            if parts[1] in ACCENTS or parts[1] == "′"
            else f"^{bracketed(parts[1].strip())}"
        )
    if name in {"msubsup", "munderover"}:
        limits = f"{parts[0]}_{bracketed(parts[1].strip())}^{bracketed(parts[2].strip())}"
        return f"{limits} " if parts[0] in {"∑", "∏"} else limits
    if name == "mtr":
        return ", ".join(part.strip() for part in parts)
    if name == "mtable":
        return "; ".join(parts)
    return "".join(parts)


@cache
def plain(tex: str, *, display: bool = False) -> str:
    r"""Return a formula as plain text, for titles of tabs, search results and wherever else there is no MathML.

    >>> plain(r"\sqrt{d_k}"), plain(r"QK^\top/\sqrt{d_k}"), plain(r"\operatorname{Var}(s) = d_k\sigma^4")
    ('√d_k', 'QKᵀ/√d_k', 'Var(s) = d_kσ^4')
    >>> plain(r"\sum_{m=1}^{d_k}\sigma^4")
    '∑_(m = 1)^d_k σ^4'
    >>> plain(r"A^{(1)} = e^{-w} - \infty, \, \{-x\}")
    'A^(1) = e^(−w) − ∞, {−x}'
    """
    try:
        return plain_mathml(typeset(tex, display=display).mathml)
    except FormulaError:
        return tex


def plain_mathml(mathml: str) -> str:
    """Return MathML as plain text.

    >>> plain_mathml("<math><mi>b</mi><mo>&lt;</mo><mn>1</mn></math>")
    'b < 1'
    """
    root = ElementTree.fromstring(f"<formula>{mathml}</formula>")
    text = re.sub(r"\s+", " ", re.sub(r"(?<=\w) (?=[(_^])", "", _words(root))).strip()
    text = re.sub(r"\(\(([^()]*)\)\)", r"(\1)", text)
    text = re.sub(r"(?<=[(\[{]) (?=[−±])", "", text)
    return re.sub(r"(^|[(\[{]|[,=<>≤≥→] )([−±]) (?=\S)", r"\1\2", text)  # a sign is no operator


def plain_text(text: str) -> str:
    r"""Return text in which ``\(...\)`` is replaced by plain text.

    >>> plain_text(r"Why divide by \(\sqrt{d_k}\)?")
    'Why divide by √d_k?'
    """
    return re.sub(r"\\[(\[](.+?)\\[)\]]", lambda m: plain(html.unescape(m[1]).strip()), text, flags=re.DOTALL)


def plain_node(node: nodes.Node) -> str:
    """Return the text of a node, such as a title, with its formulas as plain text."""
    if isinstance(node, nodes.math):
        return plain(node.astext())
    if isinstance(node, nodes.math_block):
        return plain(display_tex(node), display=True)
    if isinstance(node, nodes.Text):
        return str(node)
    return "".join(map(plain_node, node.children))


# --- formulas in HTML -------------------------------------------------------------------------------

_TOKEN = re.compile(r"<!--.*?-->|<(script|style|pre|code|textarea|math|title)\b.*?</\1>|<[^>]*>|[^<]+", re.DOTALL)
_DELIMITED = re.compile(r"\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)


def in_html(text: str, report: Any = None) -> str:
    r"""Return HTML in which the formulas of the text are MathML; `report` is told of those that cannot be read.

    >>> in_html(r"<p>\(x\)</p><code>\(x\)</code>")
    '<p><math><mi>x</mi></math></p><code>\\(x\\)</code>'
    """
    if r"\(" not in text and r"\[" not in text:
        return text

    def formula(match: re.Match[str]) -> str:
        tex = html.unescape(match[1] or match[2]).strip()
        try:
            return typeset(tex, display=bool(match[2])).mathml
        except FormulaError as error:
            if report is None:
                raise
            report(str(error))
            return match[0]

    def token(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith("<") else _DELIMITED.sub(formula, match[0])

    return _TOKEN.sub(token, text)


# A line never begins with the punctuation that ends a formula: both are in one box that does not break.
_FORMULA = r"<math>(?:(?!</math>).)*</math>"
_PUNCTUATED = re.compile(
    rf'(?<!<span class="kept">)(<a [^<>]*>{_FORMULA}</a>|{_FORMULA})([,.;:!?)\]’”，。；：！？、）》]+|-\w+)', re.DOTALL
)


def keep_punctuation(text: str) -> str:
    """Return HTML in which inline formulas and the punctuation after them are not parted.

    >>> keep_punctuation("<math><mi>x</mi></math>, y")
    '<span class="kept"><math><mi>x</mi></math>,</span> y'
    >>> keep_punctuation('<a href="#x"><math></math></a>.')
    '<span class="kept"><a href="#x"><math></math></a>.</span>'
    >>> keep_punctuation(keep_punctuation("<math></math>, y")) == keep_punctuation("<math></math>, y")
    True
    """
    return _PUNCTUATED.sub(r'<span class="kept">\1\2</span>', text)


# --- Sphinx -----------------------------------------------------------------------------------------


def _mathml(translator: Any, node: nodes.Element, tex: str, *, display: bool) -> Formula:
    try:
        found = typeset(tex, display=display)
    except FormulaError as error:
        logger.warning("mathematics: %s", error, location=node)
        return Formula(f"<code>{html.escape(tex)}</code>", [])
    return Formula(in_xml(found.mathml), found.tags) if translator.builder.name == "epub" else found


def in_xml(mathml: str) -> str:
    """Return MathML with its namespace, which the XHTML of an e-book asks for."""
    return mathml.replace("<math", '<math xmlns="http://www.w3.org/1998/Math/MathML"')


def visit_math(translator: Any, node: nodes.math) -> None:
    """Write an inline formula."""
    translator.body.append(_mathml(translator, node, node.astext(), display=False).mathml)
    raise nodes.SkipNode


def display_tex(node: nodes.math_block) -> str:
    """Return a display formula as Sphinx has MathJax read it: with several lines, they are aligned."""
    tex = node.astext().strip()
    if node.get("nowrap") or node.get("no-wrap"):
        return tex.removeprefix(r"\[").removesuffix(r"\]").strip()
    return rf"\begin{{split}}{tex}\end{{split}}" if r"\\" in tex and not tex.startswith(r"\begin") else tex


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    """Write a display formula: it scrolls by itself where it is too wide, and its number is beside it."""
    formula = _mathml(translator, node, display_tex(node), display=True)
    numbers = [f"({number})" for number in [node["number"] and get_node_equation_number(translator, node)] if number]
    numbers += formula.tags
    source = {} if translator.builder.name in PRINTED else {"data-tex": node.astext().strip()}
    translator.body.append(translator.starttag(node, "div", CLASS="math numbered" if numbers else "math", **source))
    if numbers:
        translator.body.append(f'<div class="formula">{formula.mathml}</div><span class="eqno">{" ".join(numbers)}')
        if node["number"]:
            translator.add_permalink_ref(node, _("Link to this equation"))
        translator.body.append("</span>")
    else:
        translator.body.append(formula.mathml)
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def in_raw_nodes(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Typeset the formulas of stored HTML: cards, derivations, tables."""
    if app.builder.format != "html":
        return
    for raw in doctree.findall(nodes.raw):
        if "html" in raw.get("format", "").split():
            text = in_html(raw.astext(), lambda fault: logger.warning("mathematics: %s", fault, location=docname))
            text = in_xml(text) if app.builder.name == "epub" else text
            raw[:] = [nodes.Text(text)]
            raw.rawsource = text


def plain_title(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Give the tab of a browser plain text: it shows neither MathML nor TeX."""
    title = app.env.titles.get(page)
    if title is not None:
        context["title"] = html.escape(plain_node(title), quote=False)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Typeset what is left in the finished pages, and keep punctuation with its formula."""

    def finished(text: str, page: str) -> str:
        return keep_punctuation(in_html(text, lambda fault: logger.warning("mathematics: %s: %s", page, fault)))

    rewrite(finished)(app, exception)
    kept.save()


def begin(app: Sphinx) -> None:
    """Take over what earlier builds have typeset."""
    kept.load(Path(app.doctreedir).parent / ".mathml" / "formulas.json")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer and the events."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("builder-inited", begin)
    app.connect("doctree-resolved", in_raw_nodes)
    app.connect("html-page-context", plain_title)
    app.connect("build-finished", finish, priority=800)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
