"""What is asked of a page, the README among them: pictures that say what one sees, and paths that exist."""

from __future__ import annotations

import re
from pathlib import Path

from notebook_rules import LEAST_ALT

#: ``![alt](path)``, a figure or an image directive with its options, and HTML.
MARKDOWN = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<source>[^)\s]*)[^)]*\)")
DIRECTIVE = re.compile(r"^[`:]{3,}\{(?:figure|image)\}\s*(?P<source>\S+)[^\n]*\n(?P<options>(?:\s*:[\w-]+:[^\n]*\n)*)",
                       re.MULTILINE)  # fmt: skip
#: The target of a link, and what in backticks has the form of a path.
PATH = re.compile(r"\]\(([^)\s#]+)[^)]*\)|`((?:[\w.-]+/)+[\w.-]*)`")
#: Folders that are made, and stay out of a checkout.
MADE = (".venv", "_build")
HTML = re.compile(r"<img\b[^>]*>", re.IGNORECASE)


def pictures(markdown: str) -> list[tuple[str, str]]:
    """Return the source and the alt text of each picture of a page.

    >>> pictures("![A line](a.png) and <img alt='A curve' src=b.svg>")
    [('a.png', 'A line'), ('b.svg', 'A curve')]
    """
    found = [(match["source"], match["alt"]) for match in MARKDOWN.finditer(markdown)]
    for match in DIRECTIVE.finditer(markdown):
        alt = re.search(r":alt:(.*)", match["options"])
        found.append((match["source"], alt[1] if alt else ""))
    for tag in HTML.findall(markdown):
        found.append((_attribute(tag, "src"), _attribute(tag, "alt")))
    return [(source, " ".join(alt.split())) for source, alt in found]


def _attribute(tag: str, name: str) -> str:
    match = re.search(rf"\b{name}\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", tag, re.IGNORECASE)
    return "".join(match.groups("")) if match else ""


def poor_pictures(markdown: str, folder: Path) -> list[str]:
    """Return what is wrong with the pictures of a page in a folder: no sentence as alt text, no file, another host."""
    faults = []
    for source, alt in pictures(markdown):
        if len(alt) < LEAST_ALT or len(alt.split()) < LEAST_ALT // 8:
            faults.append(f"{source}: the alt text is no sentence: {alt!r}")
        if re.match(r"(?i)([a-z]+:)?//", source):
            faults.append(f"{source}: a picture from another host")
        elif not (folder / source).is_file():
            faults.append(f"{source}: no such file")
    return faults


def dead_paths(markdown: str, folder: Path) -> list[str]:
    """Return the paths that a page in a folder names, and that are not there.

    >>> dead_paths("[here](page_rules.py), `../book/`, `no/such.py`, https://a.b/c", Path(__file__).parent)
    ['no/such.py']
    """
    prose = re.sub(r"^```.*?^```", "", markdown, flags=re.MULTILINE | re.DOTALL)
    named = [link or path for link, path in PATH.findall(prose)]
    there = re.compile(r"[a-z]+:|" + "|".join(map(re.escape, MADE)))
    return [path for path in named if not there.match(path) and not (folder / path).exists()]
