"""Publish the figures: ``python tools/publish.py [--check]`` takes them from the executed notebooks.

A code cell with a name in its metadata (`mystnb.figure.name`) holds a figure. What the cell drew is stored in its
output, PNG and SVG, and becomes ``figures/NAME.png`` and ``figures/NAME.svg``, with underscores for hyphens. A file
that no notebook draws is removed. With ``--check`` nothing is written; differences are reported, and exit code 1.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import stamps

FORMATS = {"image/png": ".png", "image/svg+xml": ".svg"}


def pictures(notebook: Any) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield the name of each figure of a notebook and its files by suffix; the notebook is its JSON, read.

    Raise ValueError for a figure cell whose output is not one picture in both formats.
    """
    for cell in notebook["cells"]:
        name = ((cell["metadata"].get("mystnb") or {}).get("figure") or {}).get("name")
        if cell["cell_type"] != "code" or not name:
            continue
        drawn = [o["data"] for o in cell["outputs"] if any(k.startswith("image/") for k in o.get("data", {}))]
        if len(drawn) != 1 or not all(drawn[0].get(kind) for kind in FORMATS):
            got = ", ".join(kind for data in drawn for kind in data if data[kind]) or "none"
            raise ValueError(f"{name}: expected one picture, PNG and SVG, as `make execute` stores it, got {got}")
        png, svg = ("".join(drawn[0][kind]) for kind in FORMATS)
        try:
            yield name.replace("-", "_"), {".png": base64.b64decode(png, validate=True), ".svg": svg.encode("utf-8")}
        except ValueError as error:
            raise ValueError(f"{name}: expected the cell's PNG in base64: {error}") from None


def collect(notebooks: Iterable[Path]) -> dict[str, bytes]:
    """Return what is to be published, by file name; raise ValueError, naming the notebook."""
    found: dict[str, bytes] = {}
    for path in notebooks:
        try:
            for name, contents in pictures(json.loads(path.read_text(encoding="utf-8"))):
                if f"{name}.png" in found:
                    raise ValueError(f"{name}: another figure has this name")
                found.update({name + suffix: content for suffix, content in contents.items()})
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from None
    return found


def main(arguments: list[str] | None = None) -> int:
    """Publish or check: make the folder hold what the notebooks drew and no other picture, or say where it does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    parser.add_argument("--notebooks", type=Path, nargs="+", default=stamps.NOTEBOOKS, help="where the notebooks are")
    parser.add_argument("--out", type=Path, default=stamps.ROOT / "figures", help="the folder of published figures")
    options = parser.parse_args(arguments)
    try:
        drawn = collect(stamps.notebooks(options.notebooks))
    except ValueError as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    published = {p.name: p.read_bytes() for p in options.out.glob("*") if p.suffix in FORMATS.values()}
    differing = sorted(name for name in drawn | published if drawn.get(name) != published.get(name))
    for name in differing:
        old, new = published.get(name), drawn.get(name)
        if options.check:
            fault = "missing" if old is None else "not what its notebook drew"
            print(f"figures/{name} is {'drawn by no notebook' if new is None else fault}")
        elif new is None:
            (options.out / name).unlink()
            print(f"removed figures/{name}")
        else:
            stamps.write_atomically(options.out / name, new)
            print(f"{'added' if old is None else 'replaced'} figures/{name}")
    print(f"figures: {len(drawn) // len(FORMATS)} in {len(FORMATS)} formats, {len(differing) or 'no'} files differed")
    return int(options.check and bool(differing))


if __name__ == "__main__":
    stamps.run(main)
