"""A pytest plugin for nbval: pictures are compared like every other output, byte for byte.

By itself nbval passes over PNG pictures. `prove` loads this plugin by its name, so that the
worker processes of xdist have it too. The one exception is a cell tagged `this-machine`: its
picture shows seconds, or digits that the processor decides, and only its words are compared.
"""

from __future__ import annotations

from functools import partial
from typing import Any

#: The tag of a cell whose picture is a measurement on one machine.
THIS_MACHINE = "this-machine"
PICTURES = ("image/png", "image/svg+xml")


def pytest_collectstart(collector: Any) -> None:
    """Take the pictures off the list of what a notebook's comparison skips."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare = tuple(k for k in collector.skip_compare if not k.startswith("image/"))


def pytest_itemcollected(item: Any) -> None:
    """Prepare the comparison of one notebook cell."""
    if not hasattr(item, "format_output_compare"):
        return
    item.format_output_compare = partial(report_difference, item, item.format_output_compare)
    if THIS_MACHINE in item.cell.metadata.get("tags", []):
        skipped = (*item.parent.skip_compare, *PICTURES)
        item.compare_outputs = partial(item.compare_outputs, skip_compare=skipped)


def report_difference(item: Any, report: Any, kind: str, stored: Any, drawn: Any) -> None:
    """Report a difference; of two pictures in one line, since a diff of them takes minutes and says nothing."""
    if kind.startswith("image/"):
        item.comparison_traceback.append(f"{kind}: the stored picture is not the one that the cell draws now")
    else:
        report(kind, stored, drawn)
