"""Publish the figures: ``python tools/publish.py [--check]`` fills ``figures/`` from the executed notebooks.

A code cell with a name in its metadata (`mystnb.figure.name`) holds a figure. What the cell drew is stored in its
output as SVG, and becomes ``figures/NAME.svg``, with underscores for hyphens; ``figures/NAME.png`` is drawn from that
SVG. Only figures whose SVG is another one than before are written. A file that no notebook draws is removed. Git keeps
the few files that are shown or named outside of the notebooks, and ignores the others (``.gitignore``). With
``--check`` nothing is written; differences are reported, and exit code 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import resvg_py

import reach
import stamps

SVG = "image/svg+xml"
SUFFIXES = (".png", ".svg")
#: The resolution of the PNG in dots per inch, as in the book's style (`savefig.dpi`).
DOTS = 200


def pictures(notebook: Any) -> Iterator[tuple[str, str]]:
    """Yield the stem of each figure's files and its SVG; the notebook is its JSON, read.

    Raise ValueError for a figure cell whose output is not one picture, as SVG alone.
    """
    for cell in notebook["cells"]:
        name = ((cell["metadata"].get("mystnb") or {}).get("figure") or {}).get("name")
        if cell["cell_type"] != "code" or not name:
            continue
        drawn = [{k: v for k, v in o.get("data", {}).items() if k.startswith("image/") and v} for o in cell["outputs"]]
        kinds = [kind for data in drawn for kind in data]
        if kinds != [SVG]:
            got = ", ".join(kinds) or "none"
            raise ValueError(f"{name}: expected one picture, SVG alone, as `make execute` stores it, got {got}")
        yield name.replace("-", "_"), "".join(next(filter(None, drawn))[SVG])


def collect(notebooks: Iterable[Path]) -> dict[str, str]:
    """Return the SVG of every figure by the stem of its files; raise ValueError, naming the notebook."""
    found: dict[str, str] = {}
    for path in notebooks:
        try:
            for stem, svg in pictures(reach.notebook_of(path.read_bytes())):
                if stem in found:
                    raise ValueError(f"{stem}: another figure has this name")
                found[stem] = svg
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from None
    return found


def as_png(svg: str) -> bytes:
    """Draw an SVG as PNG, with the same bytes on every run; raise ValueError for what is no SVG.

    No font is read: the book's SVGs hold their letters as outlines.
    """
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, dpi=DOTS, skip_system_fonts=True))


def is_published(stem: str, svg: str, folder: Path) -> bool:
    """Return whether the folder has this SVG, and a PNG beside it."""
    file = folder / f"{stem}.svg"
    return file.with_suffix(".png").is_file() and file.is_file() and file.read_bytes() == svg.encode("utf-8")


def publish(drawn: Mapping[str, str], folder: Path, everything: bool = False) -> list[str]:
    """Write PNG and SVG of the figures that the folder does not have, or of all; return what was done, a line each.

    Raise ValueError, naming the figure, for an SVG that cannot be drawn.
    """
    done = []
    for stem, svg in drawn.items():
        if everything or not is_published(stem, svg, folder):
            target = folder / f"{stem}.svg"
            verb = "replaced" if target.is_file() else "added"
            try:
                png = as_png(svg)
            except ValueError as error:
                raise ValueError(f"{stem}: expected an SVG that can be drawn: {error}") from None
            stamps.write_atomically(target.with_suffix(".png"), png)  # first: the SVG says which one the PNG shows
            stamps.write_atomically(target, svg)
            done.append(f"{verb} figures/{stem}, PNG and SVG")
    return done


def main(arguments: list[str] | None = None) -> int:
    """Publish or check: make the folder hold what the notebooks drew and no other picture, or say where it does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    parser.add_argument("--all", action="store_true", help="write every figure anew, its PNG too")
    parser.add_argument("--notebooks", type=Path, nargs="+", default=stamps.NOTEBOOKS, help="where the notebooks are")
    parser.add_argument("--out", type=Path, default=stamps.ROOT / "figures", help="the folder of published figures")
    options = parser.parse_args(arguments)
    try:
        drawn = collect(stamps.notebooks(options.notebooks))
        nobodys = [p for p in sorted(options.out.glob("*")) if p.suffix in SUFFIXES and p.stem not in drawn]
        if options.check:
            due = [stem for stem, svg in drawn.items() if not is_published(stem, svg, options.out)]
            said = [f"figures/{stem} is not what its notebook drew" for stem in due]
            said += [f"figures/{path.name} is drawn by no notebook" for path in nobodys]
        else:
            said = publish(drawn, options.out, options.all)
            said += [f"removed figures/{path.name}" for path in nobodys]
            for path in nobodys:
                path.unlink()
    except ValueError as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    print(*said, sep="\n", end="\n" if said else "")
    print(f"figures: {len(drawn)}, each as PNG and SVG; {len(said) or 'none'} differed")
    return int(options.check and bool(said))


if __name__ == "__main__":
    stamps.run(main)
