r"""Give every equation with a textbook number an address, an index entry, and a row in a table.

A display such as ``$$ q^T k \tag{5.1.3} $$`` gets the id and reference target ``equation-5.1.3``, so that
``[(5.1.3)](#equation-5.1.3)`` links to it from any page, and the index entry ``(5.1.3)``, so that the
site's search finds it by its number. ``{equation-index}`` prints the table of all of them.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from table_nodes import link, paragraph, table

logger = logging.getLogger(__name__)
_TAG = re.compile(r"\\tag\*?\{([^{}]+)\}")


class Equation(NamedTuple):
    """Where a numbered equation stands: its number, page, anchor and nearest heading."""

    number: str
    docname: str
    anchor: str
    heading: str


def tags_of(tex: str) -> list[str]:
    r"""Return the numbers of all ``\tag{..}`` in a formula, in order.

    >>> tags_of(r"a &= b \tag{5.1.3} \\ c &= d \tag{5.1.4}")
    ['5.1.3', '5.1.4']
    """
    return [number.strip() for number in _TAG.findall(tex)]


def anchor_of(number: str) -> str:
    """Return the id of an equation's anchor.

    >>> anchor_of("5.1.5"), anchor_of("A 2")
    ('equation-5.1.5', 'equation-A-2')
    """
    return "equation-" + re.sub(r"[^\w.\-]+", "-", number)


def natural_key(number: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts 5.1.10 after 5.1.9, and numbers before names.

    >>> sorted(["5.1.10", "A.1", "5.1.9"], key=natural_key)
    ['5.1.9', '5.1.10', 'A.1']
    """
    parts = re.findall(r"\d+|[^\d.\s]+", number)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def equations_of(env: BuildEnvironment) -> dict[str, list[Equation]]:
    """Return the numbered equations found so far, by page."""
    if not hasattr(env, "textbook_equations"):
        env.textbook_equations = {}  # type: ignore[attr-defined]
    return env.textbook_equations  # type: ignore[attr-defined, no-any-return]


class AnchorEquations(SphinxTransform):
    """Put an anchor, a reference target and an index entry on each numbered equation."""

    default_priority = 400  # before targets are collected and [text](#anchor) links are resolved

    def apply(self, **kwargs: Any) -> None:
        """Visit the display formulas of one page."""
        found = []
        for block in list(self.document.findall(nodes.math_block)):
            numbers = tags_of(block.astext())
            if not numbers:
                continue
            for number in numbers:
                anchor = anchor_of(number)
                block["names"] += sorted({anchor, anchor.lower()})
                block["ids"].append(anchor)
                found.append(Equation(number, self.env.docname, anchor, _heading(block)))
            self.document.note_explicit_target(block, block)
            entries = [("single", f"({n})", anchor_of(n), "", None) for n in numbers]
            block.parent.insert(block.parent.index(block), addnodes.index(entries=entries))
            _show_as_written(block)
        equations_of(self.env)[self.env.docname] = found


def _heading(node: nodes.Node | None) -> str:
    """Return the title of the nearest section around a node (the body of a theorem is one without a title)."""
    while node is not None and not (isinstance(node, nodes.section) and isinstance(node[0], nodes.title)):
        node = node.parent
    return node[0].astext() if node is not None else ""


def _show_as_written(block: nodes.math_block) -> None:
    r"""Keep Sphinx from wrapping lines in ``split``, in which MathJax allows no ``\tag``."""
    text = r"\[" + block.astext() + r"\]"
    block["nowrap"] = True
    block.children = [nodes.Text(text)]
    block.children[0].parent = block


def register_labels(app: Sphinx, doctree: nodes.document) -> None:
    """Let links without a text read "(5.1.5)", and let Sphinx report a number that two pages claim."""
    std = app.env.get_domain("std")
    for equation in equations_of(app.env).get(app.env.docname, []):
        name = equation.anchor.lower()
        other = std.labels.get(name, ("",))[0]  # type: ignore[attr-defined]
        if other and other != equation.docname:
            message = "equation (%s) is also numbered in %s: number it once, and link to it elsewhere"
            logger.warning(message, equation.number, other, location=equation.docname)
        std.labels[name] = (equation.docname, equation.anchor, f"({equation.number})")  # type: ignore[attr-defined]


class EquationIndexNode(nodes.General, nodes.Element):
    """Where the table of equations goes; filled in once all pages have been read."""


class EquationIndex(SphinxDirective):
    """``{equation-index}``: the table of all numbered equations."""

    def run(self) -> list[nodes.Node]:
        """Leave a placeholder."""
        pages = getattr(self.env, "equation_index_pages", set())
        self.env.equation_index_pages = pages | {self.env.docname}  # type: ignore[attr-defined]
        return [EquationIndexNode()]


def pages_to_rewrite(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Rewrite the pages that show the table when the table has changed."""
    current = {page: list(found) for page, found in equations_of(env).items() if found}
    changed = getattr(env, "equation_index_shown", None) != current
    env.equation_index_shown = current  # type: ignore[attr-defined]
    return sorted(getattr(env, "equation_index_pages", set()) & set(env.found_docs)) if changed else []


def fill_index(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the placeholder by the table."""
    for placeholder in list(doctree.findall(EquationIndexNode)):
        found = [e for page in equations_of(app.env).values() for e in page]
        found.sort(key=lambda e: natural_key(e.number))
        rows = [_index_row(app, docname, equation) for equation in found]
        content = table(["Equation", "Where"], rows, "equation-index")
        placeholder.replace_self(content if rows else paragraph(nodes.Text("No numbered equation yet.")))


def _index_row(app: Sphinx, docname: str, equation: Equation) -> list[list[nodes.Node]]:
    page = app.builder.get_relative_uri(docname, equation.docname)
    chapter = nodes.reference("", "", refuri=page, internal=True)
    chapter += [child.deepcopy() for child in app.env.titles[equation.docname].children]
    return [
        [paragraph(link(f"({equation.number})", f"{page}#{equation.anchor}"))],
        [paragraph(chapter, nodes.Text(f" · {equation.heading}"))],
    ]


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Drop what is known of a page that is read again or was removed."""
    equations_of(env).pop(docname, None)
    getattr(env, "equation_index_pages", set()).discard(docname)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """Join what parallel readers have found."""
    equations_of(env).update({d: e for d, e in equations_of(other).items() if d in docnames})
    pages = getattr(env, "equation_index_pages", set()) | getattr(other, "equation_index_pages", set())
    env.equation_index_pages = pages  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform, the directive and the events."""
    app.add_node(EquationIndexNode)
    app.add_transform(AnchorEquations)
    app.add_directive("equation-index", EquationIndex)
    app.connect("doctree-read", register_labels)
    app.connect("env-updated", pages_to_rewrite)
    app.connect("doctree-resolved", fill_index)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
