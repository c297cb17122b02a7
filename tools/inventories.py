"""Write again where the documentation of other projects describes what the package's signatures name.

The build needs no network: `_ext/inventories` holds, for each project, the few objects that are referenced, in
Sphinx's first and readable format. `python tools/inventories.py numpy=objects.inv` looks the names of
`_ext/inventories/numpy.txt` up in a full inventory of that project, which every documentation by Sphinx offers as
`objects.inv`, and writes their pages. To reference another object, add a line with its name first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sphinx.util.inventory import InventoryFile

FOLDER = Path(__file__).resolve().parents[1] / "_ext" / "inventories"


def names_in(text: str) -> list[str]:
    """Return the names of a shipped inventory.

    >>> names_in("# Sphinx inventory version 1\\n# Project: a\\n# Version: \\na.B class b.html\\n")
    ['a.B']
    """
    return sorted({line.split()[0] for line in text.splitlines() if line and not line.startswith("#")})


def as_text(project: str, pages: dict[str, str]) -> str:
    """Return an inventory in the first format; all objects count as classes, which types are.

    >>> print(as_text("a", {"a.B": "b.html#a.B"}))
    # Sphinx inventory version 1
    # Project: a
    # Version:
    a.B class b.html
    <BLANKLINE>
    """
    head = ["# Sphinx inventory version 1", f"# Project: {project}", "# Version:"]
    return "\n".join([*head, *(f"{name} class {page.partition('#')[0]}" for name, page in sorted(pages.items())), ""])


def pages_of(names: list[str], inventory: Path) -> dict[str, str]:
    """Return the page of each name, from a full inventory."""
    with inventory.open("rb") as stream:
        kinds = InventoryFile.load(stream, "", lambda address, page: page)
    python = {name: item[2] for kind, items in kinds.items() if kind.startswith("py:") for name, item in items.items()}
    if lacking := [name for name in names if name not in python]:
        raise SystemExit(f"{inventory}: expected {', '.join(names)}, found no {', '.join(lacking)}")
    return {name: python[name] for name in names}


def main(arguments: list[str] | None = None) -> None:
    """Write the inventories that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("inventory", nargs="+", help="PROJECT=FILE, for example numpy=objects.inv")
    for given in parser.parse_args(arguments).inventory:
        project, _, file = given.partition("=")
        shipped = FOLDER / f"{project}.txt"
        if not shipped.is_file() or not Path(file).is_file():
            known = ", ".join(sorted(path.stem for path in FOLDER.glob("*.txt")))
            sys.exit(f"{given}: expected PROJECT=FILE with an existing file, and one of the projects {known}")
        names = names_in(shipped.read_text(encoding="utf-8"))
        shipped.write_text(as_text(project, pages_of(names, Path(file))), encoding="utf-8")
        print(f"{shipped.name}: {len(names)} objects")


if __name__ == "__main__":
    main()
