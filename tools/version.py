"""The version of the project: ``python tools/version.py [TAG]`` says it, if every place that says one says the same.

With a tag the version must be the tag's as well: v1.0.0 is the version 1.0.0. Standard library only, as the check of a
pushed tag has no environment.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Each place that says the version, and how.
PLACES = {
    "pyproject.toml": r'^version = "([^"]+)"$',
    **{f"code/{name}/pyproject.toml": r'^version = "([^"]+)"$' for name in ("attnmath", "linewise")},
    **{f"code/{name}/__init__.py": r'^__version__ = "([^"]+)"$' for name in ("attnmath", "linewise", "attnlab")},
    "CITATION.cff": r"^version: (\S+)$",
    "_config.yml": r'^ +release: "([^"]+)"',
    "CHANGELOG.md": r"^## \[(\d[^\]]*)\] - ",
}


def versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version that each place says; "nothing" where none is found."""
    found = {}
    for place, pattern in PLACES.items():
        said = re.search(pattern, (root / place).read_text(encoding="utf-8"), re.MULTILINE)
        found[place] = said[1] if said else "nothing"
    return found


def dates(root: Path = ROOT) -> dict[str, str]:
    """Return the day of the version as the list of changes and the citation say it."""
    changes = re.search(r"^## \[\d[^\]]*\] - (\S+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    cited = re.search(r'^date-released: "(\S+)"$', (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    return {"CHANGELOG.md": changes[1] if changes else "nothing", "CITATION.cff": cited[1] if cited else "nothing"}


def faults(root: Path = ROOT, tag: str | None = None) -> list[str]:
    """Return one sentence for each place, and the tag, that differs from pyproject.toml, and for two days."""
    said = versions(root)
    version = said["pyproject.toml"]
    found = [f"{place}: expected the version {version} of pyproject.toml, got {other}"
             for place, other in said.items() if other != version]  # fmt: skip
    if tag is not None and tag != f"v{version}":
        found.append(f"tag: expected v{version}, got {tag}")
    if len(set(dates(root).values())) > 1:
        found.append(f"day of the version: expected one, got {dates(root)}")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the version; return 1, and say what differs, if not all places agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tag", nargs="?", help="a tag that has to be the version's, such as v1.0.0")
    found = faults(tag=parser.parse_args(arguments).tag)
    print(*found or [versions()["pyproject.toml"]], sep="\n", file=sys.stderr if found else sys.stdout)
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
