"""A tiny notebook that keeps every rule, to be spoilt in one way at a time."""

from __future__ import annotations

import zlib
from typing import Any

FIRST = """import matplotlib.pyplot as plt
import numpy as np
from attnmath import figures
from linewise.ledger import load_claims

plt.style.use("attnmath.figures.book")
claims = load_claims("tiny")"""

FIGURE = """figure, ax = plt.subplots()
ax.plot([0, 1])
figures.show(figure)"""

EXERCISES = """```{{exercise}} One more
:label: tiny-{0}
Show it for {0}.
```

```{{solution}} tiny-{0}
:class: dropdown
It is {0}.
```
"""


def code(source: str, count: int | None, *outputs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return a code cell."""
    return {
        "cell_type": "code",
        "id": f"cell-{zlib.crc32(source.encode()):x}",
        "source": source,
        "execution_count": count,
        "outputs": list(outputs),
        "metadata": metadata,
    }


def shown(value: str, kind: str = "text/plain") -> dict[str, Any]:
    """Return an output that shows a text."""
    return {"output_type": "display_data", "metadata": {}, "data": {kind: value}}


def picture(svg: str = "<svg/>") -> dict[str, Any]:
    """Return an output that shows a picture."""
    data = {"image/svg+xml": svg, "text/plain": "<figure: 1 panel, 6.4 x 4 in>"}
    return {"output_type": "execute_result", "execution_count": 3, "metadata": {}, "data": data}


def printed(value: str, name: str = "stdout") -> dict[str, Any]:
    """Return an output that printed a text."""
    return {"output_type": "stream", "name": name, "text": value}


def good_notebook() -> dict[str, Any]:
    """Return a notebook in which no rule finds a fault."""
    mystnb = {
        "image": {"alt": "A single line rises from the lower left corner to the upper right one."},
        "figure": {"caption": "A line.", "name": "fig-line"},
    }
    prose = "# Tiny\n\n" + "\n".join(EXERCISES.format(word) for word in ("one", "two", "three"))
    cells = [
        {"cell_type": "markdown", "id": "prose", "source": prose, "metadata": {}},
        code(FIRST, 1),
        code("rng = np.random.default_rng(5)\nprint(1 + 1)", 2, printed("2\n")),
        code(FIGURE, 3, picture(), mystnb=mystnb),
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
