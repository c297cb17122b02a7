"""``python -m attnmath.figures``: write the published figures, or list them."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

from attnmath.figures.catalogue import FIGURES
from attnmath.figures.published import FORMATS, publish


def main(arguments: list[str] | None = None) -> int:
    """Write the named figures (all of them unless named) in every format asked for."""
    parser = argparse.ArgumentParser(prog="python -m attnmath.figures", description="Write the published figures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures to write (default: all)")
    parser.add_argument("--list", action="store_true", help="print the names of the figures and stop")
    parser.add_argument(
        "--format", action="append", choices=FORMATS, help="png or svg; may be repeated (default: both)"
    )
    parser.add_argument("--out", type=Path, default=Path("figures"), help="the folder to write to (default: figures)")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(sorted(FIGURES)))
        return 0
    if unknown := [name for name in options.names if name not in FIGURES]:
        parser.error(f"NAME: expected a name that --list prints, got {', '.join(unknown)}")
    if options.out.exists() and not options.out.is_dir():
        parser.error(f"--out: expected a folder, got the file {options.out}")
    matplotlib.use("agg")
    for name in options.names or sorted(FIGURES):
        for path in publish(name, FIGURES[name], options.out, tuple(options.format or FORMATS)):
            print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
