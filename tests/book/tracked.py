"""What no file of the project may mention: package registries' hosts, and places on one machine.

A pin is a version, not an address: where packages come from is each reader's own setting. The
forbidden words are put together here from parts, so that this file does not mention them either.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import stamps

HOSTS = [".".join(parts) for parts in (
    ("pypi", "org"), ("pythonhosted", "org"), ("download", "pytorch", "org"), ("anaconda", "org"), ("npmjs", "org"),
    ("npmjs", "com"), ("pypi", "python", "org"),
)]  # fmt: skip
#: A home folder or a working folder, with something below it. (A site's address may hold such a word: not after a dot
#: or a letter.)
PLACE = re.compile(r"(?<![\w.:/-])/(?:home|root|Users|work|workspace)/[\w.-]+")
#: Files whose long encoded data may hold anything, and which rules of their own look into.
SKIPPED = {".ipynb", ".png", ".svg", ".woff", ".woff2", ".ico", ".npz", ".npy"}


def tracked(root: Path = stamps.ROOT) -> list[Path]:
    """Return the files under git, or, where there is no git, all that are not caches or outputs."""
    try:
        listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return stamps.files([root])
    return sorted(p for name in listing.stdout.decode().split("\0") if name and (p := root / name).is_file())


def mentions(text: str) -> list[str]:
    """Return what the text mentions that no file of the project may.

    >>> mentions("pip installs what the constraints pin; see the README, or example.org/home/x")
    []
    """
    lowered = text.lower()
    return [host for host in HOSTS if host in lowered] + PLACE.findall(text)


def faults(paths: list[Path]) -> list[str]:
    """Return one sentence for each file that mentions what it must not."""
    found = []
    for path in paths:
        if path.suffix not in SKIPPED:
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            found += [f"{path.name} mentions {word}" for word in mentions(text)]
    return found
