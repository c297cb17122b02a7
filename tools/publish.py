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
HINT = "; `make execute` stores what a cell draws"


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
        if len(drawn) != 1:
            raise Unpublishable(f"{name}: expected one picture in the cell's output, got {len(drawn)}{HINT}")
        missing = [kind for kind in FORMATS if not _joined(drawn[0].get(kind, ""))]
        if missing:
            raise Unpublishable(f"{name}: the cell's output holds no {' and no '.join(missing)}{HINT}")
        try:
            png = base64.b64decode(_joined(drawn[0]["image/png"]), validate=True)
        except binascii.Error as error:
            raise Unpublishable(f"{name}: the cell's PNG is not base64: {error}") from None
        svg = _joined(drawn[0]["image/svg+xml"]).encode("utf-8")
        yield name.replace("-", "_"), {".png": png, ".svg": svg}


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
    published = {p.name: p for p in folder.glob("*") if p.suffix in FORMATS.values()}
    faults = dict.fromkeys(published.keys() - found.keys(), "not drawn")
    for name, content in found.items():
        if name not in published:
            faults[name] = "missing"
        elif published[name].read_bytes() != content:
            faults[name] = "other"
    return dict(sorted(faults.items()))


def publish(found: dict[str, bytes], folder: Path) -> dict[str, str]:
    """Make the folder hold what was found and no other picture; return what had to be changed."""
    changed = differences(found, folder)
    for name, fault in changed.items():
        if fault == "not drawn":
            (folder / name).unlink()
        else:
            stamps.write_atomically(folder / name, found[name])
    return changed


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, and publish or check."""
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
    changed = differences(found, options.out) if options.check else publish(found, options.out)
    said = {"missing": "is missing", "other": "is not what its notebook drew", "not drawn": "is drawn by no notebook"}
    done = {"missing": "added", "other": "replaced", "not drawn": "removed"}
    for name, fault in changed.items():
        print(f"figures/{name} {said[fault]}" if options.check else f"{done[fault]} figures/{name}")
    print(f"figures: {len(found) // len(FORMATS)} in {len(FORMATS)} formats, {len(changed) or 'no'} files "
          f"{'differ' if options.check else 'changed'}")  # fmt: skip
    return int(options.check and bool(changed))


def _joined(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


if __name__ == "__main__":
    raise SystemExit(main())
