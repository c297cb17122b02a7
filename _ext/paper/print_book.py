r"""The book on paper: which pages, in which order, and in which form LaTeX gets them.

`make pdf` builds with Sphinx's LaTeX builder, which joins all pages to one document. Then, before it is written, the
landing page becomes a preface, the captions of `_toc.yml` become parts, pages that only a screen can show are left out,
code that the site folds is left out too, and the solutions of a chapter go to its end. The look is in
`assets/print/attention-checked.sty`. What an e-book shares with paper is done for the EPUB as well.
"""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from edition.blocks import translated
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.latex import LaTeXBuilder
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.locale import admonitionlabels
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.transforms.post_transforms.images import ImageConverter
from sphinx.util import logging
from sphinx.writers.latex import LaTeXTranslator
from sphinx_exercise.nodes import is_exercise_node, is_solution_node

from linewise.conventions import conventions_of

logger = logging.getLogger(__name__)
HERE = Path(__file__).parent / "assets" / "print"
#: The pages behind the chapters.
APPENDIX = ("reference/notation", "reference/glossary", "formulas", "ledger", "errata", "references")
#: The pages of the book on paper, beside the landing page; all others are for the screen.
PRINTED = ("read/*", "chapters/*", "practice", "practice/*", *APPENDIX)
#: The builders of the book on paper and of the e-book.
PRINTERS = ("latex", "epub")
#: What the style calls the parts of the book, in words that a book in another language translates.
CALLED = {
    "partcalled": r"Part \thepart", "chaptercalled": r"\chaptertitlename\ \thechapter", "contentscalled": "Contents",
}  # fmt: skip
#: Where links to the References page lead on paper.
NAMED = r"\phantomsection\label{\detokenize{references::doc}}"
#: Pages that have a form of their own on paper.
OWN_FORM = ("intro", "ledger")
#: Code and output of no more lines than these stay on one page.
UNBROKEN = 12
#: Code is set in this size (in points), in which so many columns fit a page; no output is set smaller than this.
USUAL_SIZE, COLUMNS, SMALLEST_SIZE = 8.7, 104, 7.2
TAG = re.compile(r"\\tag\{[^}]*\}")
#: What is shown of a cell's output, best first.
OUTPUTS = {
    "latex": ("image/svg+xml", "text/latex", "text/plain"),
    "epub": ("image/svg+xml", "text/latex", "text/plain"),
}


class box(nodes.Element):
    """A theorem, a proof, an exercise, a solution or a note on paper; the first child is its title."""


class box_title(nodes.TextElement):
    """The title of a box."""


def is_printed(docname: str) -> bool:
    """Return whether a page is in the book on paper.

    >>> is_printed("chapters/operator/scaling"), is_printed("coverage")
    (True, False)
    """
    return any(fnmatch.fnmatch(docname, pattern) for pattern in PRINTED)


def configure(app: Sphinx, config: Config) -> None:
    """Tell the LaTeX builder, and the choice among a cell's outputs, what the book needs."""
    title, author = config["html_title"], config["author"]
    style = rf"\usepackage{{attention-checked}}\hypersetup{{pdftitle={{{title}}},pdfauthor={{{author}}}}}"
    if config["language"].startswith("zh"):
        book = conventions_of(app.srcdir)
        style += r"\quotationmarksarechinese"
        style += "".join(rf"\verdictcalled{{{name}}}{{{book.say(name)}}}" for name in book.verdicts)
        style += "".join(rf"\renewcommand{{\{name}}}{{{book.say(words)}}}" for name, words in CALLED.items())
        style += rf"\AtBeginDocument{{\renewcommand{{\bibname}}{{{book.say('References')}}}}}"
    config["latex_engine"] = "xelatex"
    config["latex_documents"] = [(config["root_doc"], "attention-checked.tex", title, author, "manual")]
    config["latex_docclass"] = {"manual": "book"}
    config["latex_toplevel_sectioning"] = "chapter"
    config["latex_use_xindy"] = False
    config["latex_domain_indices"] = False
    config["latex_show_urls"] = "no"
    config["latex_elements"] = {
        "papersize": "a4paper",
        "pointsize": "11pt",
        "extraclassoptions": "openany,oneside",
        "fncychap": "",
        "fontpkg": r"\usepackage{attention-checked-fonts}",
        "sphinxsetup": (HERE / "sphinxsetup.txt").read_text(encoding="utf-8").replace("\n", ""),
        "fvset": rf"\fvset{{fontsize=\fontsize{{{USUAL_SIZE}pt}}{{10.4pt}}\selectfont}}",
        "preamble": style,
        "maketitle": titlepage(conventions_of(app.srcdir).say),
        "tableofcontents": r"\bookcontents",
    }
    chosen = [(name, kind, k) for name, kinds in OUTPUTS.items() for k, kind in enumerate(kinds)]
    config["nb_mime_priority_overrides"] = [*config["nb_mime_priority_overrides"], *chosen]


def titlepage(say: Callable[[str], str]) -> str:
    """Return the first two pages in LaTeX; `say` says a line in the language of the book."""
    text = (HERE / "titlepage.tex").read_text(encoding="utf-8")
    return re.sub("<<(.*?)>>", lambda line: say(" ".join(line[1].split())), text, flags=re.DOTALL)


def copy_style(app: Sphinx) -> None:
    """Put the style beside the document."""
    if isinstance(app.builder, LaTeXBuilder):
        for style in HERE.glob("*.sty"):
            shutil.copy(style, app.outdir)
        if Vector.converts():
            Vector.to_pdf(Path(app.srcdir, "_static", "logo.svg"), Path(app.outdir, "logo.pdf"))


def on_paper(app: Sphinx, docname: str, source: list[str]) -> None:
    """Read a page's own form for paper, where it has one."""
    if app.builder.name in PRINTERS and docname in OWN_FORM:
        source[0] = translated((HERE / f"{docname}.md").read_text(encoding="utf-8"), conventions_of(app.srcdir).phrase)


def shorten(app: Sphinx) -> None:
    """Take the pages that are for the screen out of the table of contents."""
    if app.builder.name in PRINTERS:
        for document in app.config["external_site_map"].values():
            for tree in document.subtrees:
                tree.items = [item for item in tree.items if is_printed(str(item).partition(".")[0])]
            document.subtrees = [tree for tree in document.subtrees if tree.items]


def leave_out(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Read no page that is for the screen."""
    if app.builder.name in PRINTERS:
        env.project.docnames = {name for name in env.found_docs if name == app.config.root_doc or is_printed(name)}
        docnames[:] = [name for name in docnames if name in env.found_docs]


def note_captions(app: Sphinx, doctree: nodes.document) -> None:
    """Keep the captions of the table of contents where the LaTeX builder does not drop them."""
    for tree in doctree.findall(addnodes.toctree):
        tree.parent["caption"] = tree.get("caption") or ""


def left_out(app: Sphinx, target: str) -> bool:
    """Return whether a link leads to a page of the site that is not printed."""
    name = target.lstrip("/").removesuffix(".md").removesuffix(".ipynb")
    return name not in app.env.found_docs and (Path(app.srcdir) / f"{name}.md").is_file()


class Unlink(SphinxPostTransform):
    """Leave of a link to a page that is left out its words."""

    default_priority = 1
    builders = PRINTERS

    def run(self, **kwargs: Any) -> None:
        """Visit the links that name a page."""
        for link in list(self.document.findall(addnodes.pending_xref)):
            if link.get("reftype") in {"doc", "myst"} and left_out(self.app, link["reftarget"]):
                link.replace_self([nodes.inline("", link.astext())])


class Arrange(SphinxPostTransform):
    """Bring the joined document into the order of a book, before links are resolved."""

    default_priority = 1
    builders = ("latex",)

    def run(self, **kwargs: Any) -> None:
        """Make a preface and the parts."""
        for file in self.document.findall(addnodes.start_of_file):
            if file["docname"] == "references":
                self.only_the_list(file)
        document, (root,) = self.document, [n for n in self.document.children if isinstance(n, nodes.section)]
        wrappers = [n for n in document.findall(nodes.compound) if "toctree-wrapper" in n["classes"]]
        inner = {id(n) for file in document.findall(addnodes.start_of_file) for n in file.findall(nodes.compound)}
        shelves = [n for n in wrappers if id(n) not in inner]  # pages below a page stay below it
        for shelf in shelves:
            shelf.parent.remove(shelf)
        title, *preface = root.children
        # The writer takes the first title for the book's, which it knows, and passes over it.
        root.replace_self([nodes.section("", title, ids=root["ids"], docname=self.env.docname), *preface])
        document += latex(r"\mainmatter")
        in_appendix = False
        for shelf in shelves:
            files = [n for n in shelf.children if isinstance(n, addnodes.start_of_file)]
            if not files:
                continue
            if not in_appendix and files[0]["docname"] in APPENDIX:
                in_appendix = True
                document += latex(r"\bookappendix")
            caption = conventions_of(self.app.srcdir).phrase(shelf.get("caption", ""))
            document += latex(rf"\part{{{caption}}}")
            document += files
        targets = [s["docname"] for s in document.findall(addnodes.start_of_file)]
        logger.info("on paper: %d pages", len(targets))

    @staticmethod
    def only_the_list(file: nodes.Element) -> None:
        """Leave of the References page what LaTeX moves to the end of the book under a heading of its own."""
        section = next(iter(file.findall(nodes.section)))
        kept = [n for n in section.children if not isinstance(n, nodes.title | nodes.paragraph)]
        # A section that stays bears the name of the page.
        named = [] if any(isinstance(n, nodes.section) for n in kept) else [latex(NAMED)]
        section.replace_self([*named, *kept])


def latex(text: str) -> nodes.raw:
    """Return a line of LaTeX as a node."""
    return nodes.raw("", f"\n{text}\n", format="latex")


class FoldedCode(SphinxPostTransform):
    """Leave out the code that the site folds; the preface says where it is."""

    default_priority = 2
    builders = PRINTERS

    def run(self, **kwargs: Any) -> None:
        """Visit all cells."""
        for cell in list(self.document.findall(nodes.container)):
            if cell.get("nb_element") == "cell_code" and "tag_hide-input" in cell["classes"]:
                inputs = [c for c in cell.children if isinstance(c, nodes.Element) and "cell_input" in c["classes"]]
                for source in inputs:
                    cell.remove(source)
                if not cell.children:
                    cell.parent.remove(cell)


class Solutions(SphinxPostTransform):
    """Gather the solutions of each chapter at its end."""

    default_priority = 30  # sphinx-exercise has written their titles
    builders = PRINTERS

    def run(self, **kwargs: Any) -> None:
        """Visit each page of the joined document, or the one page of an e-book."""
        files: list[nodes.Element] = [*self.document.findall(addnodes.start_of_file)]
        for file in files or [self.document]:
            solutions = list(file.findall(is_solution_node))
            chapter = next(iter(file.findall(nodes.section)), None)
            if not solutions or chapter is None:
                continue
            for solution in solutions:
                solution.parent.remove(solution)
            say = conventions_of(self.app.srcdir).say
            section = nodes.section("", nodes.title("", say("Solutions")), *solutions, ids=["solutions"], names=[])
            section["docname"] = chapter.get("docname", self.env.docname)
            last = [n for n in chapter.children if isinstance(n, nodes.section)]
            bibliography = last and last[-1][0].astext() == say("References")
            chapter.insert(chapter.index(last[-1]) if bibliography else len(chapter), section)


class Boxes(SphinxPostTransform):
    """Turn theorems, proofs, exercises, solutions and notes into boxes of one kind, with their anchors and numbers."""

    default_priority = 900
    builders = ("latex",)

    def run(self, **kwargs: Any) -> None:
        """Visit all of them."""
        for file in self.document.findall(addnodes.start_of_file):
            for node in [n for n in file.findall(nodes.Element) if isinstance(n, nodes.Admonition)]:
                made = self.box(node, file["docname"])
                made += [inner for child in node.children[made["titled"] :] for inner in unwrapped(child)]
                node.replace_self(made)
            for figure in list(file.findall(nodes.figure)):
                numbers = self.env.toc_fignumbers.get(file["docname"], {}).get("figure", {})
                if number := numbers.get(next(iter(figure["ids"]), "")):
                    figure.parent.insert(
                        figure.parent.index(figure),
                        latex(rf"\setcounter{{figure}}{{{number[0] - 1}}}\stepcounter{{everyfigure}}"),
                    )
            for table in list(file.findall(nodes.table)):
                if (columns := next(table.findall(nodes.tgroup))["cols"]) > 4:
                    size = r"\footnotesize}{2pt" if columns < 7 else r"\scriptsize}{1pt"
                    around = [latex(rf"\begin{{manycolumns}}{{{size}}}"), table, latex(r"\end{manycolumns}")]
                    table.replace_self(around)
            if file["docname"] in APPENDIX:
                self.add_pages(file)

    def add_pages(self, file: nodes.Element) -> None:
        """Say on which page a card is, beside the links to cards in the lists at the end."""
        for link in list(file.findall(nodes.reference)):
            key = link.next_node(nodes.inline, siblings=True, descend=False)
            if "claim-link" not in link["classes"] or key is None:
                continue
            page, behind = [], key.next_node(nodes.Text, siblings=True, descend=False)
            if "#" in link["refuri"]:  # a claim that is not decided has no card
                label = link["refuri"].removeprefix("%").replace("#", ":")
                spaced = r"\ %" if behind is not None and behind.startswith(" ") else "%"
                page = [latex(rf"\cardpage{{\detokenize{{{label}}}}}{spaced}")]
            for part, added in ((key, page), *((n, []) for n in before(link)), (link, [])):
                part.replace_self([latex(r"\hskip.5em\relax%"), part, *added])

    def say(self, words: str) -> str:
        """Say the name of a box in the language of the book."""
        return conventions_of(self.app.srcdir).say(words)

    def box(self, node: nodes.Element, docname: str) -> box:
        """Return an empty box for an admonition."""
        kind = kind_of(node)
        first = node.children[0] if node.children else None
        titled = isinstance(first, nodes.title)
        # A hint or a note has its name from Sphinx; the text of a proof says that it is one.
        named = [nodes.Text(admonitionlabels[node.tagname])] if node.tagname in admonitionlabels else []
        title = box_title("", "", *(first.children if isinstance(first, nodes.title) else named))
        made = box("", kind=kind, titled=titled, ids=[i for i in node["ids"] if not i.endswith("-content")])
        if label := node.get("label"):
            made["ids"] = sorted({*made["ids"], label})
            made["label"] = label
        if "realtype" in node:
            numbers = self.env.toc_fignumbers.get(docname, {}).get(node["countertype"], {})
            number = ".".join(map(str, numbers.get(node["ids"][0], ())))
            rest = [nodes.Text(" "), *title.children] if title.children else []
            title = box_title("", "", nodes.Text(f"{self.say(node['realtype'].title())} {number}"), *rest)
        made += title
        return made


def before(link: nodes.reference) -> list[nodes.Element]:
    """Return what is between the badge of a claim and its link: the outcome of a measured one."""
    previous = link.parent[link.parent.index(link) - 1]
    return [previous] if isinstance(previous, nodes.strong) else []


def unwrapped(node: nodes.Node) -> list[nodes.Node]:
    """Return what a box holds: sphinx-proof and sphinx-exercise wrap it in a section without a title."""
    if isinstance(node, nodes.section) or (isinstance(node, nodes.admonition) and "proof" in node["classes"]):
        return list(node.children)
    return [node]


def kind_of(node: nodes.Element) -> str:
    """Return the kind of a box: the style file knows them."""
    if is_exercise_node(node):
        return "exercise"
    if is_solution_node(node):
        return "solution"
    if "realtype" in node:
        return "theorem"
    if "proof" in type(node).__name__:
        return "proof"
    return "hint" if "dropdown" in node["classes"] else "note"


class CodeBlocks(SphinxPostTransform):
    """Keep short code and output on one page, and print long lines of output smaller, as long as they can be read."""

    default_priority = 901
    builders = ("latex",)

    def run(self, **kwargs: Any) -> None:
        """Visit what cells hold and print."""
        for output in self.document.findall(nodes.container):
            for block in list(output.findall(nodes.literal_block)) if "cell_output" in output["classes"] else ():
                if size := size_for(block.astext()):
                    around = [latex(rf"\begin{{widelines}}{{{size:.2f}pt}}"), block, latex(r"\end{widelines}")]
                    block.replace_self(around)
        for block in list(self.document.findall(nodes.literal_block)):
            if (lines := len(block.astext().splitlines())) <= UNBROKEN:
                block.parent.insert(block.parent.index(block), latex(rf"\roomforlines{{{lines}}}"))


def size_for(printed: str) -> float | None:
    """Return the size in points in which the longest line fits the page; None where the usual size serves.

    >>> size_for("short"), size_for("x" * 120), size_for("x" * 400)
    (None, 7.54, 7.2)
    """
    columns = max((sum(1 + (ord(c) > 0x2E7F) for c in line) for line in printed.splitlines()), default=0)
    return round(max(USUAL_SIZE * COLUMNS / columns, SMALLEST_SIZE), 2) if columns > COLUMNS else None


class Vector(ImageConverter):
    """Figures as vectors: librsvg turns an SVG into a PDF, with its fonts as the outlines that they are."""

    conversion_rules = [("image/svg+xml", "application/pdf")]  # noqa: RUF012 - as in the base class

    def is_available(self) -> bool:
        """Return whether librsvg's command is there."""
        return self.converts()

    def convert(self, _from: str, _to: str) -> bool:
        """Convert one picture."""
        self.to_pdf(Path(_from), Path(_to))
        return True

    @staticmethod
    def converts() -> bool:
        """Return whether librsvg's command is there."""
        return shutil.which("rsvg-convert") is not None

    @staticmethod
    def to_pdf(picture: Path, target: Path) -> None:
        """Write a picture as PDF."""
        subprocess.run(["rsvg-convert", "--format=pdf", f"--output={target}", str(picture)], check=True)


def visit_box(self: LaTeXTranslator, node: box) -> None:
    """Begin a box, with the anchors of its links."""
    anchors = "".join(self.hypertarget(name) for name in node["ids"])
    if node["kind"] == "exercise":
        anchors += rf"\label{{exercise:{node.get('label', '')}}}"
    self.body.append(f"\n\\begin{{bookbox}}{{{node['kind']}}}{{{anchors}}}")


def writes(text: str) -> Callable[[LaTeXTranslator, nodes.Element], None]:
    """Return a visitor that writes this text."""
    return lambda self, node: self.body.append(text)


def visit_math_block(self: LaTeXTranslator, node: nodes.math_block) -> None:
    r"""Set a display as wide as the page at most; a number (``\tag``) goes where LaTeX puts it."""
    tex = node.astext().strip().removeprefix(r"\[").removesuffix(r"\]").strip()
    tag = "".join(TAG.findall(tex))
    anchors = "".join(self.hypertarget(name) for name in node["ids"])
    self.body.append(f"%\n{anchors}\\fitdisplay{{{TAG.sub('', tex).strip()}}}{{{tag}}}%\n")
    raise nodes.SkipNode


def in_number_order(tex: str) -> str:
    r"""Return a document whose index has the equations in the order of their numbers.

    >>> in_number_order(r"\index{(5.1.10)@\spxentry{(5.1.10)}}")
    '\\index{(005.001.010)@\\spxentry{(5.1.10)}}'
    """

    def sortable(entry: re.Match[str]) -> str:
        return re.sub(r"\d+", lambda number: number[0].zfill(3), entry[0])

    return re.sub(r"(?<=\\index\{)\([^@{}]*\)(?=@)", sortable, tex)


def sort_index(app: Sphinx, error: Exception | None) -> None:
    """Give makeindex keys for the numbers of equations: it sorts letters."""
    if not error and isinstance(app.builder, LaTeXBuilder):
        for document in Path(app.outdir).glob("*.tex"):
            document.write_text(in_number_order(document.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what the builders need."""
    app.add_node(box, latex=(visit_box, writes("\\end{bookbox}\n")))
    app.add_node(box_title, latex=(writes("{"), writes("}\n")))
    app.add_node(nodes.math_block, override=True, latex=(visit_math_block, None))
    app.connect("config-inited", configure, priority=950)  # behind sphinx-external-toc, which names the first page
    app.connect("builder-inited", copy_style)
    app.connect("builder-inited", shorten)
    app.connect("env-before-read-docs", leave_out)
    app.connect("source-read", on_paper, priority=400)  # before the templates are filled
    app.connect("build-finished", sort_index)
    app.connect("doctree-read", note_captions, priority=900)  # behind sphinx-external-toc, which adds the trees
    for transform in (Arrange, Unlink, FoldedCode, Solutions, Boxes, CodeBlocks, Vector):
        app.add_post_transform(transform)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
