"""Resolve the dependencies anew and rewrite the pins: ``python tools/lock.py [--keep NAME...]``.

For each supported Python that is at hand (this one, and ``python3.11`` to ``python3.13`` on PATH)
pip resolves what pyproject.toml asks for, installs nothing, and the answer becomes
``constraints/python-X.Y.txt``. torch keeps its pin unless told otherwise (``--keep`` with no name):
which build a machine gets depends on it. torch's accelerator libraries differ between builds of torch: pins
of those that this machine's build does not bring along are kept while torch's own pin stands.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import stamps

PYTHONS = ("3.11", "3.12", "3.13")
ACCELERATOR = re.compile(r"^(nvidia-|cuda-|triton)")


def requirements(pyproject: str) -> list[str]:
    """Return everything the project asks for, extras and build backend included."""
    content = tomllib.loads(pyproject)
    project = content["project"]
    extras = [r for group in project["optional-dependencies"].values() for r in group]
    return sorted({*content["build-system"]["requires"], *project["dependencies"], *extras})


def find(version: str) -> str | None:
    """Return an interpreter of this version that runs, or None."""
    for candidate in (sys.executable, f"python{version}"):
        question = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            answer = subprocess.run([candidate, "-c", question], capture_output=True, text=True)
        except OSError:
            continue
        if answer.stdout.strip() == version:
            return candidate
    return None


def resolve(python: str, wanted: list[str]) -> dict[str, str]:
    """Return the version that pip chooses for each package, without installing any."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--dry-run", "--ignore-installed", "--report", str(report), *wanted], check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {canonical(i["metadata"]["name"]): i["metadata"]["version"].partition("+")[0] for i in found}


def canonical(name: str) -> str:
    """Return a package's name in its one normal form.

    >>> canonical("Jinja2"), canonical("types_PyYAML")
    ('jinja2', 'types-pyyaml')
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(text: str) -> dict[str, str]:
    """Return the pins of a constraints file.

    >>> read_pins("# a comment\\nnumpy==2.4.6\\n")
    {'numpy': '2.4.6'}
    """
    return dict(line.strip().split("==") for line in text.splitlines() if "==" in line and not line.startswith("#"))


def keep_accelerators(old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    """Return the new pins with the old ones of torch's accelerator libraries, if torch's own stands.

    >>> keep_accelerators({"torch": "2", "nvidia-nccl": "7"}, {"torch": "2"})
    {'nvidia-nccl': '7', 'torch': '2'}
    >>> keep_accelerators({"torch": "1", "nvidia-nccl": "7"}, {"torch": "2"})
    {'torch': '2'}
    """
    kept = {n: v for n, v in old.items() if ACCELERATOR.match(n)} if old.get("torch") == new.get("torch") else {}
    return dict(sorted((kept | new).items()))


def main(arguments: list[str] | None = None) -> int:
    """Rewrite the constraints of every Python at hand, and say which were not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", nargs="*", default=["torch"], metavar="NAME", help="keep these pins (default: torch)")
    keep = parser.parse_args(arguments).keep
    wanted = requirements((stamps.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for version in PYTHONS:
        path = stamps.ROOT / "constraints" / f"python-{version}.txt"
        python = find(version)
        if python is None:
            print(f"{path.name}: left as it is, there is no python{version} here")
            continue
        old = read_pins(path.read_text(encoding="utf-8")) if path.is_file() else {}
        new = keep_accelerators(old, resolve(python, [*wanted, *(f"{n}=={old[n]}" for n in keep if n in old)]))
        stamps.write_atomically(path, "".join(f"{n}=={v}\n" for n, v in new.items()))
        changed = sorted(n for n in old.keys() | new.keys() if old.get(n) != new.get(n))
        print(f"{path.name}: {len(new)} pins, changed: {', '.join(changed) or 'none'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
