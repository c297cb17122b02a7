"""A notebook as text that people can read: ``python tools/readable_notebook.py NOTEBOOK``, for ``git diff``.

Sources and text outputs are shown as they are. A picture or a page of HTML is one line with its size and the beginning
of its hash, so that a change of it is still seen. Standard library only. ``make hooks`` tells git to use it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def readable(text: str) -> str:
    """Return a notebook's text in readable form; what is no notebook comes back as it is."""
    try:
        cells = enumerate(json.loads(text)["cells"], start=1)
        return "\n".join(line for number, cell in cells for line in _cell(number, cell)) + "\n"
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return text


def _cell(number: int, cell: dict[str, Any]) -> Iterator[str]:
    metadata = {name: value for name, value in cell.get("metadata", {}).items() if value}
    yield f"=== {number}: {cell['cell_type']}" + (f" {json.dumps(metadata, sort_keys=True)}" if metadata else "")
    yield _text(cell["source"])
    for output in cell.get("outputs", []):
        yield from _output(output)
    yield ""


def _output(output: dict[str, Any]) -> Iterator[str]:
    if output["output_type"] == "stream":
        yield f"--- {output['name']}"
        yield _text(output["text"]).rstrip("\n")
    elif output["output_type"] == "error":
        yield f"--- error {output['ename']}: {output['evalue']}"
    else:
        for kind, data in sorted(output.get("data", {}).items()):
            if kind in ("text/plain", "text/latex", "text/markdown"):
                yield f"--- {kind}"
                yield _text(data)
            else:
                content = data if isinstance(data, str | list) else json.dumps(data, sort_keys=True)
                encoded = _text(content).encode()
                yield f"--- {kind}: {len(encoded)} bytes, sha256 {hashlib.sha256(encoded).hexdigest()[:12]}"


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def main(arguments: list[str] | None = None) -> int:
    """Print a notebook in readable form; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", type=Path, help="the notebook; git gives the name of a temporary copy")
    path = parser.parse_args(arguments).notebook
    if not path.is_file():
        parser.error(f"argument notebook: expected a file, got {path}")
    text = readable(path.read_text(encoding="utf-8", errors="replace"))
    print(text.encode("utf-8", errors="replace").decode("utf-8"), end="")  # half of a pair of surrogates is no UTF-8
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
