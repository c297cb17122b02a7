"""Ask every address that the book names whether it is there: ``python tools/links.py``. Needs a network.

This is Sphinx's own check, with the book's configuration and the list below. It is no part of
`make test`: other people's servers are no property of the book. It runs weekly (.github/workflows/links.yml).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import stamps

#: Addresses that are not asked, and why.
LEFT_OUT = {
    r"https://doi\.org/": "a DOI is permanent, and the publishers behind it turn programs away",
    r"https://github\.com/attention-checked/": "the book's own repository, where a change is not yet",
    r"https?://(localhost|127\.0\.0\.1)": "the reader's own machine",
}
#: How patient the check is.
PATIENCE = {"linkcheck_timeout": 30, "linkcheck_retries": 3, "linkcheck_workers": 4, "linkcheck_anchors": False,
            "linkcheck_report_timeouts_as_broken": False}  # fmt: skip


def configuration(config: dict[str, Any]) -> dict[str, Any]:
    """Return the book's configuration with the settings of this check; the given one is left as it is."""
    sphinx = config["sphinx"]
    settings = {**sphinx["config"], **PATIENCE, "linkcheck_ignore": list(LEFT_OUT)}
    return {**config, "sphinx": {**sphinx, "config": settings}}


def main(arguments: list[str] | None = None) -> int:
    """Run the check; return Sphinx's exit status, which is not 0 when an address is broken."""
    import yaml

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=stamps.ROOT / "_build" / "links", help="where the report goes")
    out = parser.parse_args(arguments).out
    # The configuration lies beside the original, since its paths are relative to its folder.
    ours = stamps.ROOT / "_config.links.yml"
    text = (stamps.ROOT / "_config.yml").read_text(encoding="utf-8")
    stamps.write_atomically(ours, yaml.safe_dump(configuration(yaml.safe_load(text)), allow_unicode=True))
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", ".",
               "--config", str(ours), "--path-output", str(out), "--builder", "custom",
               "--custom-builder", "linkcheck", "-q"]  # fmt: skip
    try:
        return subprocess.run(command, cwd=stamps.ROOT).returncode
    finally:
        ours.unlink()


if __name__ == "__main__":
    stamps.run(main)
