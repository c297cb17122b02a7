"""Write again where the documentation of other projects describes what the package's signatures name.

The build needs no network: `_ext/reference/assets/inventories` holds, for each project, the few objects that are
referenced, in Sphinx's first and readable format. `python tools/inventories.py numpy=objects.inv` looks the names of
`numpy.txt` there up in a full inventory of that project, which every documentation by Sphinx offers as `objects.inv`,
and writes their pages. To reference another object, add a line with its name first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sphinx.util.inventory import InventoryFile

FOLDER = Path(__file__).resolve().parents[1] / "_ext" / "reference" / "assets" / "inventories"


def renewed(shipped: str, inventory: Path) -> str:
    """Return a shipped inventory with the pages of a full one; all objects count as classes, which types are."""
    lines = shipped.splitlines()
    head = [line for line in lines if line.startswith("#")]
    names = sorted({line.split()[0] for line in lines if line and not line.startswith("#")})
    with inventory.open("rb") as stream:
        kinds = InventoryFile.load(stream, "", lambda address, page: page)
    pages = {name: item[2] for kind, items in kinds.items() if kind.startswith("py:") for name, item in items.items()}
    if lacking := [name for name in names if name not in pages]:
        raise SystemExit(f"{inventory}: expected {', '.join(names)}, found no {', '.join(lacking)}")
    return "\n".join([*head, *(f"{name} class {pages[name].partition('#')[0]}" for name in names), ""])


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
        shipped.write_text(renewed(shipped.read_text(encoding="utf-8"), Path(file)), encoding="utf-8")


if __name__ == "__main__":
    main()
