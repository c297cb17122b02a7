"""The gallery: every figure of the book with its caption, its files, and a script that draws it.

`gallery.md` shows all figures small, and ``gallery/<folder>.md`` those of a folder of ``chapters/`` with all that can
be taken away. When the site is built, the figures are published into ``figures/`` where they are not yet (`publish`),
the published files and the scripts are copied to ``_static/figures``, and each folder's thumbnails are put on one
sheet, so that a page with many of them needs one request. Figures of trained heads are drawn with other models as well,
by the same programs (`figure_models`); these pictures are kept below ``_build``, and drawn again where their inputs
change.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml
from pages.guide import title
from paper.print_book import PRINTERS
from PIL import Image
from reference.terms import PAGE as GLOSSARY
from reference.terms import pattern, read_glossary
from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import figure_models  # noqa: E402
import publish  # noqa: E402
import stamps  # noqa: E402
from figure_scripts import Figure, figures_of  # noqa: E402
from linewise.ledger.coverage import tags_of  # noqa: E402

from . import filled  # noqa: E402

#: Thumbnails of a sheet: so many in a row, each of so many pixels with a white margin.
COLUMNS = 4
WIDTH, HEIGHT, MARGIN = 320, 200, 4
#: Where the pictures of other models are kept from one build to the next.
OTHER_MODELS = ROOT / "_build" / "other_models"


@dataclass(frozen=True)
class Chapter:
    """A chapter: its page, its title in Markdown, and its figures."""

    page: str
    title: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Part:
    """A part of the book: its folder below ``chapters/``, its caption, and its chapters with figures."""

    folder: str
    caption: str
    chapters: tuple[Chapter, ...]

    @property
    def figures(self) -> list[Figure]:
        """All figures of the part, in order."""
        return [figure for chapter in self.chapters for figure in chapter.figures]

    @property
    def offers(self) -> bool:
        """Whether a figure of the part is drawn of several models."""
        return any(figure.others for figure in self.figures)


@cache
def parts(root: Path) -> tuple[Part, ...]:
    """Return the parts of the book that have figures, in the order of its contents."""
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    found = []
    for part in contents["parts"]:
        pages = [entry["file"] for entry in part["chapters"] if entry["file"].startswith("chapters/")]
        chapters = tuple(chapter for page in pages if (chapter := read_chapter(root, page)).figures)
        if chapters:
            found.append(Part(pages[0].split("/")[1], part["caption"], chapters))
    return tuple(found)


def read_chapter(root: Path, page: str) -> Chapter:
    """Return a chapter from its notebook."""
    path = root / f"{page}.ipynb"
    return Chapter(page, title(path), tuple(figures_of(json.loads(path.read_text(encoding="utf-8")), page)))


def first_sentence(caption: str) -> str:
    """Return what a caption says first: its message.

    >>> first_sentence("The row sums to $1.5$. (a) One row.")
    'The row sums to $1.5$.'
    """
    return re.split(r"(?<=[.:])\s+(?=[A-Z(])", caption)[0].rstrip(":")


@cache
def numbers_around(path: Path) -> dict[str, list[str]]:
    """Return for each figure of a notebook the numbers of the equations of its section."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    numbers: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            if re.match(r"##? ", source):
                names, numbers = [], []
            numbers += tags_of(source)
        elif name := cell["metadata"].get("mystnb", {}).get("figure", {}).get("name"):
            names.append(name)
        found |= dict.fromkeys(names, numbers)
    return found


def found_by(root: Path, figure: Figure) -> str:
    """Return what finds a figure beside its own words: its terms in Chinese, and equations of its section."""
    names = {name.lower(): term for term in read_glossary(root / f"{GLOSSARY}.yml").terms for name in term.english}
    said = f"{figure.caption} {figure.alt}".lower()
    terms = [names[name] for name in pattern(names, r"\w-").findall(said)]
    numbers = numbers_around(root / f"{figure.page}.ipynb")[figure.name]
    return " ".join(dict.fromkeys([*(zh for term in terms for zh in term.chinese), *numbers]))


def corner(place: int, part: Part) -> str:
    """Return where the thumbnail of a part's figure is on its sheet, as CSS counts: from 0 % at the left to 100 %.

    >>> corner(5, Part("a", "A", (Chapter("p", "t", (None,) * 12),)))
    'background-position:33.33% 50%'
    """
    rows = -(-len(part.figures) // COLUMNS)
    row, column = divmod(place, COLUMNS)
    return f"background-position:{100 * column / (COLUMNS - 1):.4g}% {100 * row / max(rows - 1, 1):.4g}%"


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill the template of a page of the gallery."""
    if docname.partition("/")[0] == "gallery":
        above = "../" * docname.count("/")
        folder = docname.partition("/")[2]
        root = Path(app.srcdir)
        filters = {
            "first_sentence": first_sentence, "corner": corner, "found_by": partial(found_by, root),
            "slug": figure_models.slug, "caption_of": figure_models.caption,
            "alternative_of": figure_models.alternative,
        }  # fmt: skip
        source[0] = filled(source[0], filters, parts=parts(root), folder=folder, above=above)


def sheet(pictures: Sequence[Path]) -> Image.Image:
    """Return one picture with the thumbnails of all, row by row."""
    rows = -(-len(pictures) // COLUMNS)
    found = Image.new("RGB", (COLUMNS * WIDTH, rows * HEIGHT), "white")
    for place, path in enumerate(pictures):
        with Image.open(path) as picture:
            small = picture.convert("RGB")
        small.thumbnail((WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN), Image.Resampling.LANCZOS, reducing_gap=2.0)
        row, column = divmod(place, COLUMNS)
        corner = (column * WIDTH + (WIDTH - small.width) // 2, row * HEIGHT + (HEIGHT - small.height) // 2)
        found.paste(small, corner)
    return found


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Write the sheets of thumbnails, the files of the figures and the scripts where the pages link to them."""
    if exception is not None or app.builder.format != "html" or app.builder.name in PRINTERS:
        return
    published = Path(app.srcdir, "figures")
    publish.publish(publish.collect(stamps.notebooks([Path(app.srcdir, "chapters")])), published)
    chosen = [figure for part in parts(Path(app.srcdir)) for figure in part.figures if figure.others]
    script = [sys.executable, str(ROOT / "tools" / "figure_scripts.py"), "--models", str(OTHER_MODELS)]
    if chosen:
        subprocess.run([*script, *(figure.stem for figure in chosen)], check=True, stdout=subprocess.DEVNULL)
    target = Path(app.outdir, "_static", "figures")
    target.mkdir(parents=True, exist_ok=True)
    for name in (name for figure in chosen for name in figure.others):
        copy_asset(str(OTHER_MODELS / f"{name}.svg"), str(target))
    for part in parts(Path(app.srcdir)):
        sheet([published / f"{figure.stem}.png" for figure in part.figures]).save(
            target / f"sheet-{part.folder}.webp", quality=60, method=4
        )
        for figure in part.figures:
            for suffix in publish.SUFFIXES:
                copy_asset(str(published / f"{figure.stem}{suffix}"), str(target))
            (target / f"{figure.stem}.py").write_text(figure.script, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.connect("source-read", fill)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
