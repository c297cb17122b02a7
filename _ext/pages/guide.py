"""What the guide shows of the chapters: an output of theirs as an example, and which chapter builds on which."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from sphinx.application import Sphinx

from linewise.conventions import conventions_of
from linewise.derive.display import without_styles
from linewise.ledger import card

_NEEDED = r"\*\*{need}:?\*\*(.*?)(?=\*\*{get}|\n#|\Z)"
_LINK = re.compile(r"\]\(([^)#\s]+)\.ipynb\)")


def example(folder: str | Path, notebook: str, claim: str) -> str:
    """Return the card of a claim that a chapter shows, as raw HTML without ids: they belong to the chapter."""
    cells = json.loads(Path(folder, notebook).read_text(encoding="utf-8"))["cells"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    found = [data[card.MIME] for data in outputs if card.MIME in data and data[card.MIME]["claim"] == claim]
    if len(found) != 1:
        raise ValueError(f"claim: expected one that {notebook} judges in one cell, got {claim!r}")
    html = re.sub(r' id="[^"]*"', "", without_styles(card.html(found[0], conventions_of(folder))))
    return f"~~~{{raw}} html\n{html}\n~~~"


def opening(path: Path) -> str:
    """Return the Markdown of a chapter up to its first code cell."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [k for k, cell in enumerate(cells) if cell["cell_type"] == "code"]
    return "\n\n".join("".join(cell["source"]) for cell in cells[: min(code, default=len(cells))])


def needed(path: Path, root: Path) -> list[str]:
    """Return the chapters that a chapter's "What you need" links to, as pages below the root, each once."""
    say = conventions_of(root).say
    pattern = re.compile(_NEEDED.format(need=say("What you need"), get=say("What you get")), re.DOTALL)
    links = [link for paragraph in pattern.findall(opening(path)) for link in _LINK.findall(paragraph)]
    pages = [os.path.relpath(os.path.normpath(path.parent / link), root).replace(os.sep, "/") for link in links]
    return list(dict.fromkeys(pages))


def title(path: Path) -> str:
    """Return a chapter's heading."""
    return opening(path).partition("\n")[0].removeprefix("# ").strip()


def prerequisites(app: Sphinx) -> Iterator[tuple[str, list[tuple[str, str, list[tuple[str, str]]]]]]:
    """Yield for each part of the book its caption, and of each chapter the title, the page and what it builds on."""
    root = Path(app.srcdir)
    contents: dict[str, Any] = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    for part in contents.get("parts", []):
        pages = [entry["file"] for entry in part["chapters"] if str(entry.get("file", "")).startswith("chapters/")]
        if pages:
            paths = {page: root / f"{page}.ipynb" for page in pages}
            yield (
                part["caption"],
                [
                    (title(path), page, [(title(root / f"{other}.ipynb"), other) for other in needed(path, root)])
                    for page, path in paths.items()
                ],
            )


def tell(app: Sphinx, context: dict[str, Any]) -> None:
    """Tell the templates of the guide."""
    context |= {"example": partial(example, app.srcdir), "prerequisites": partial(prerequisites, app)}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event of the engine's pages."""
    app.connect("linewise-context", tell)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
