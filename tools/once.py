"""Run a command unless it already ran for these inputs.

``python tools/once.py NAME --inputs PATH... --output PATH [--remove PATH...] -- COMMAND...``
runs COMMAND when the output is missing or the inputs' contents, the interpreter or COMMAND itself
differ from those of its last success. With ``--remove`` the named paths go first, so that
nothing of an earlier run survives.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

import stamps


def once(name: str, command: list[str], inputs: list[Path], output: Path, remove: list[Path]) -> int:
    """Run the command if it is due, and return its exit code (0 when it is not due)."""
    stamp = stamps.STAMPS / f"{name}.stamp"
    with stamps.only_one(name):
        wanted = stamps.digest(inputs, stamps.python_version(), *command)
        if output.exists() and stamps.is_fresh(stamp, wanted):
            print(f"{name}: up to date")
            return 0
        stamp.unlink(missing_ok=True)
        for path in remove:
            shutil.rmtree(path, ignore_errors=True)
        started = time.monotonic()
        code = subprocess.run(command).returncode
        if code == 0:
            stamps.record(stamp, wanted)
            print(f"{name}: done in {time.monotonic() - started:.1f} s")
        return code


def main(arguments: list[str] | None = None) -> int:
    """Read the command line and run what it names."""
    words = sys.argv[1:] if arguments is None else arguments
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--inputs", nargs="+", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--remove", nargs="*", type=Path, default=[])
    options = parser.parse_args(words[:cut])
    command = words[cut + 1 :]
    if not command:
        parser.error("expected the command to run after --")
    return once(options.name, command, options.inputs, options.output, options.remove)


if __name__ == "__main__":
    raise SystemExit(main())
