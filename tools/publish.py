"""Publish the figures: ``python tools/publish.py [--check]`` takes them from the executed notebooks.

A code cell with a name in its metadata (`mystnb.figure.name`) holds a figure. What the cell drew
is stored in its output, PNG and SVG, and becomes ``figures/NAME.png`` and ``figures/NAME.svg``;
hyphens of the name turn into underscores. A published file that no notebook draws is removed.
With ``--check`` nothing is written: differences are reported, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import stamps

FORMATS = {"image/png": ".png", "image/svg+xml": ".svg"}
#: What is said of a file that differs: by --check, and when it has been put right.
WORDS = {"missing": ("is missing", "added"), "other": ("is not what its notebook drew", "replaced"),
         "not drawn": ("is drawn by no notebook", "removed")}  # fmt: skip


class Unpublishable(Exception):
    """A figure cell that does not hold exactly one picture in both formats, or has another one's name."""


def pictures(notebook: Any) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield the name of each figure of a notebook and its files by suffix; the notebook is its JSON, read.

    Raise `Unpublishable` for a figure cell whose output is not one picture in both formats.
    """
    for cell in notebook["cells"]:
        name = ((cell["metadata"].get("mystnb") or {}).get("figure") or {}).get("name")
        if cell["cell_type"] != "code" or not name:
            continue
        drawn = [o["data"] for o in cell["outputs"] if any(k.startswith("image/") for k in o.get("data", {}))]
        if len(drawn) != 1 or not all(drawn[0].get(kind) for kind in FORMATS):
            got = ", ".join(kind for data in drawn for kind in data if data[kind]) or "none"
            hint = "`make execute` stores what a cell draws"
            raise Unpublishable(f"{name}: expected one picture in the cell's output, PNG and SVG, got {got}; {hint}")
        png, svg = ("".join(drawn[0][kind]) for kind in FORMATS)
        try:
            yield name.replace("-", "_"), {".png": base64.b64decode(png, validate=True), ".svg": svg.encode("utf-8")}
        except binascii.Error as error:
            raise Unpublishable(f"{name}: the cell's PNG is not base64: {error}") from None


def collect(notebooks: Iterable[Path]) -> dict[str, bytes]:
    """Return what is to be published, by file name; raise `Unpublishable`, naming the notebook."""
    found: dict[str, bytes] = {}
    for path in notebooks:
        try:
            for name, contents in pictures(json.loads(path.read_text(encoding="utf-8"))):
                if f"{name}.png" in found:
                    raise Unpublishable(f"{name}: another figure has this name")
                found.update({name + suffix: content for suffix, content in contents.items()})
        except Unpublishable as error:
            raise Unpublishable(f"{path.name}: {error}") from None
    return found


def differences(found: dict[str, bytes], folder: Path) -> dict[str, str]:
    """Return the published files that are not as the notebooks drew them: "missing", "other" or "not drawn"."""
    published = {p.name: p.read_bytes() for p in folder.glob("*") if p.suffix in FORMATS.values()}
    faults = dict.fromkeys(published.keys() - found.keys(), "not drawn")
    faults |= {n: "other" if n in published else "missing" for n in found if published.get(n) != found[n]}
    return dict(sorted(faults.items()))


def main(arguments: list[str] | None = None) -> int:
    """Publish or check: make the folder hold what the notebooks drew and no other picture, or say where it does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    parser.add_argument("--chapters", type=Path, default=stamps.ROOT / "chapters", help="where the notebooks are")
    parser.add_argument("--out", type=Path, default=stamps.ROOT / "figures", help="the folder of published figures")
    options = parser.parse_args(arguments)
    try:
        found = collect(stamps.notebooks([options.chapters]))
    except Unpublishable as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    faults = differences(found, options.out)
    for name, fault in faults.items():
        if options.check:
            print(f"figures/{name} {WORDS[fault][0]}")
            continue
        if fault == "not drawn":
            (options.out / name).unlink()
        else:
            stamps.write_atomically(options.out / name, found[name])
        print(f"{WORDS[fault][1]} figures/{name}")
    done = "differ" if options.check else "changed"
    print(f"figures: {len(found) // len(FORMATS)} in {len(FORMATS)} formats, {len(faults) or 'no'} files {done}")
    return int(options.check and bool(faults))


if __name__ == "__main__":
    stamps.run(main)
