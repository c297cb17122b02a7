r"""Give every equation with a textbook number an address and an index entry.

A display such as ``$$ q^T k \tag{5.1.3} $$`` gets the id and reference target ``equation-5.1.3``, so that
``[(5.1.3)](#equation-5.1.3)`` links to it from any page, and the index entry ``(5.1.3)``, so that the
site's search finds it by its number.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from attnmath.ledger.coverage import anchor_of, tags_of

logger = logging.getLogger(__name__)


def equations_of(env: BuildEnvironment) -> dict[str, list[str]]:
    """Return the numbers of the equations found so far, by page."""
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
                found.append(number)
            self.document.note_explicit_target(block, block)
            entries = [("single", f"({n})", anchor_of(n), "", None) for n in numbers]
            block.parent.insert(block.parent.index(block), addnodes.index(entries=entries))
            _show_as_written(block)
        equations_of(self.env)[self.env.docname] = found


def _show_as_written(block: nodes.math_block) -> None:
    r"""Keep Sphinx from wrapping lines in ``split``, in which MathJax allows no ``\tag``."""
    text = r"\[" + block.astext() + r"\]"
    block["nowrap"] = True
    block.children = [nodes.Text(text)]
    block.children[0].parent = block


def register_labels(app: Sphinx, doctree: nodes.document) -> None:
    """Let links without a text read "(5.1.5)", and let Sphinx report a number that two pages claim."""
    std = app.env.get_domain("std")
    page = app.env.docname
    for number in equations_of(app.env).get(page, []):
        anchor = anchor_of(number)
        other = std.labels.get(anchor.lower(), ("",))[0]  # type: ignore[attr-defined]
        if other and other != page:
            message = "equation (%s) is also numbered in %s: number it once, and link to it elsewhere"
            logger.warning(message, number, other, location=page)
        std.labels[anchor.lower()] = (page, anchor, f"({number})")  # type: ignore[attr-defined]


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Drop what is known of a page that is read again or was removed."""
    equations_of(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """Join what parallel readers have found."""
    equations_of(env).update({d: e for d, e in equations_of(other).items() if d in docnames})


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform and the events."""
    app.add_transform(AnchorEquations)
    app.connect("doctree-read", register_labels)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    return {"version": "1", "env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}
