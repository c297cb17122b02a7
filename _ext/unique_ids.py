"""Drop the ids that sphinx-exercise and sphinx-proof repeat: an id may stand once on an HTML page."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

REPEATED = {"exercise-content", "solution-content", "proof-content"}


class UniqueIds(SphinxPostTransform):
    """Strip the repeated ids from the bodies of exercises, solutions and theorems."""

    default_priority = 900

    def run(self, **kwargs: Any) -> None:
        """Visit the sections of one page."""
        for section in self.document.findall(nodes.section):
            section["ids"] = [name for name in section["ids"] if name not in REPEATED]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    app.add_post_transform(UniqueIds)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
