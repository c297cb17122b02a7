r"""Give every equation with a number of its source an address and an index entry.

A display such as ``$$ a^2 + b^2 \tag{5.1.3} $$`` gets the id and reference target ``equation-5.1.3``, so that
``[(5.1.3)](#equation-5.1.3)`` links to it from any page, and the index entry ``(5.1.3)``, so that the
site's search finds it by its number. A display that is shown again (``again``, see `read_along`) has its number alone.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from linewise.ledger.coverage import anchor_of, tags_of


class AnchorEquations(SphinxTransform):
    """Put an anchor, a reference target and an index entry on each numbered equation."""

    default_priority = 400  # before targets are collected and [text](#anchor) links are resolved

    def apply(self, **kwargs: Any) -> None:
        """Visit the display formulas of one page."""
        for block in list(self.document.findall(nodes.math_block)):
            numbers = tags_of(block.astext())
            if not numbers:
                continue
            if not block.get("again"):
                self.anchor(block, numbers)
            # As it is written: Sphinx would wrap the lines in ``split``, in which MathJax allows no ``\tag``.
            block["nowrap"] = True
            block[:] = [nodes.Text(rf"\[{block.astext()}\]")]

    def anchor(self, block: nodes.math_block, numbers: list[str]) -> None:
        """Put the three on an equation."""
        for anchor in map(anchor_of, numbers):
            block["names"] += sorted({anchor, anchor.lower()})
            block["ids"].append(anchor)
        self.document.note_explicit_target(block, block)
        entries = [("single", f"({n})", anchor_of(n), "", None) for n in numbers]
        block.parent.insert(block.parent.index(block), addnodes.index(entries=entries))


def register_labels(app: Sphinx, doctree: nodes.document) -> None:
    """Let links without a text read "(5.1.5)". Sphinx then reports a number that another page has as well."""
    labels = app.env.get_domain("std").labels  # type: ignore[attr-defined]
    blocks = (block for block in doctree.findall(nodes.math_block) if not block.get("again"))
    for number in (n for block in blocks for n in tags_of(block.astext())):
        labels[anchor_of(number).lower()] = (app.env.docname, anchor_of(number), f"({number})")


def setup(app: Sphinx) -> None:
    """Register the transform and the event."""
    app.add_transform(AnchorEquations)
    app.connect("doctree-read", register_labels)
