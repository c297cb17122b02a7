"""What is asked of a page, the README among them: pictures that say what one sees, and paths that exist.

A link leads where its text says: the text is the number of an equation or the heading of a section, has words of the
page's path or title, or is known. Of a reference to an exercise or a figure only the label can be read, so that another
label that exists passes, as do an alternative text and a caption that are wrong in their words.
"""

from __future__ import annotations

import posixpath
import re
import statistics
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

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


# --- links that lead where their text says ---------------------------------------------------------

#: ``[text](target)``, without pictures; the text may hold brackets.
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^)\s]+)\)")
_EQUATION = re.compile(r"\((\w+(?:\.\w+)+)\)")
_IDLE = frozenset(re.findall(
    r"\w+", "a an the of on and its it is in to for our this that with what why how do does when which where who "
    "chapter chapters page text book part"))  # fmt: skip


@dataclass(frozen=True)
class Contents:
    """What a link can be asked about.

    names : of each page or file that links lead to, by its path below the root, its title.
    order : the paths of the pages, in the order of the contents.
    known : where a text leads whose words do not say it; "stem: text" for a text on one page. So does a text that
        leads to a place of a page, or to an address.
    """

    names: dict[str, str]
    order: list[str]
    known: dict[str, str]

    def misled(self, page: str, markdown: str) -> list[str]:
        """Return the links of a page that do not lead where their text says."""
        prose = re.sub(r"^```[a-z]+$.*?^```", "", markdown, flags=re.MULTILINE | re.DOTALL)
        links = [(" ".join(text.split()), beside(page, target)) for text, target in LINK.findall(prose)]
        return [f"[{text}] leads to {target}" for text, target in links
                if not self.leads(page, text, target)]  # fmt: skip

    def leads(self, page: str, text: str, target: str) -> bool:
        """Return whether a text on a page may lead to a path, to a place of one, or to an address."""
        path, _, place = target.partition("#")
        if number := _EQUATION.fullmatch(text):
            return place == f"equation-{number[1]}"
        if place and not path and place == text.lower().replace(" ", "-"):
            return True
        for name in (f"{PurePosixPath(page).stem}: {text}", text):
            if name in self.known:
                return self.known[name] == target
        if place or "//" in target:
            return False
        if page in self.order and (places := self.by_place(page, text)):
            return path in places
        return self.best(text) == path

    def by_place(self, page: str, text: str) -> list[str]:
        """Return the pages that a text such as "the next chapter" may lead to; none for another text."""
        here = self.order.index(page)
        part = [name for name in self.order if PurePosixPath(name).parent == PurePosixPath(page).parent]
        before, after = self.order[:here], self.order[here + 1 :]
        places = {"next": after[:1], "previous": before[-1:], "chapter before": before[-1:],
                  "first chapter of this part": part[:1], "last chapter of this part": part[-1:],
                  "the first chapter": [name for name in self.order if "chapters/" in name][:1]}  # fmt: skip
        return next((found for words, found in places.items() if words in text), [])

    def best(self, text: str) -> str:
        """Return the page whose path and title share most words with a text, and have few others; "" if none does."""
        wanted = words(text)

        def fit(path: str) -> tuple[int, float]:
            stem = words(PurePosixPath(path).stem)
            return len(wanted & (stem | words(self.names[path]))), len(wanted & stem) / len(wanted | stem)

        first, second = sorted(self.names, key=fit, reverse=True)[:2]
        return first if fit(first) > max(fit(second), (0, 1.0)) else ""


def beside(page: str, target: str) -> str:
    """Return the path of a target of a page, or its address; a place keeps its mark.

    >>> beside("chapters/operator/masks.ipynb", "../matrix/rank.ipynb")
    'chapters/matrix/rank.ipynb'
    """
    if target.startswith("#") or "//" in target:
        return target
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


@cache
def words(name: str) -> frozenset[str]:
    """Return the words of a name that say something, in lower case and without an s at the end.

    >>> sorted(words("The chapter on sparse_patterns"))
    ['pattern', 'sparse']
    """
    found = re.findall(r"[a-z0-9+#]+", name.lower().replace("_", " "))
    return frozenset(word.rstrip("s") or word for word in found if word not in _IDLE)


# --- the README's table of times -------------------------------------------------------------------

_TIMED = re.compile(r"^\| (?P<what>.*?) \| (?P<budget>[\d.]+) s \| (?P<used>\d+) % \| (?P<multiple>[\d.]+) \|$",
                    re.MULTILINE)  # fmt: skip


def mistimed(markdown: str, budgets: dict[str, float]) -> list[str]:
    """Return what is wrong in a table of times: a budget, or a row whose share does not fit its multiple.

    A share of a budget over a multiple is the time of the fixed calculation, the same in all rows to within a sixth.
    What was measured, no program can repeat.
    """
    rows = list(_TIMED.finditer(markdown))
    found = {row["what"]: float(row["budget"]) for row in rows}
    faults = [f"{what}: {found.get(what)} s, expected {budgets.get(what)}"
              for what in found.keys() | budgets.keys() if found.get(what) != budgets.get(what)]  # fmt: skip
    units = []
    for row in rows:  # as exactly as the numbers are written
        used, half = float(row["budget"]) / 100, 0.05 if "." in row["multiple"] else 0.5
        low, high = (int(row["used"]) + side for side in (-0.5, 0.5))
        multiple = float(row["multiple"])
        units.append((row["what"], used * low / (multiple + half), used * high / (multiple - half)))
    unit = statistics.median((low + high) / 2 for _, low, high in units) if units else 0.0
    return faults + [f"{what}: the share and the multiple do not fit the other rows"
                     for what, low, high in units if not low * 6 / 7 <= unit <= high * 7 / 6]  # fmt: skip
