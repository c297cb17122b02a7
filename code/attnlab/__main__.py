"""``python -m attnlab``: list the commands of the package."""

from __future__ import annotations

from attnlab import __version__
from attnlab.commands import COMMANDS, Parser


def main(arguments: list[str] | None = None) -> int:
    """Print each command with what it does; return 0."""
    parser = Parser(prog="python -m attnlab", description="List the commands of the package.")
    parser.add_argument("--version", action="version", version=f"attnlab {__version__}")
    parser.parse_args(arguments)
    print(f"attnlab {__version__} is a package to import, with these commands (each has --help):\n")
    for module, about in COMMANDS.items():
        print(f"  python -m {module}\n      {about}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
