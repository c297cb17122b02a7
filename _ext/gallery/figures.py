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
from linewise.conventions import conventions_of  # noqa: E402
from linewise.ledger.coverage import tags_of  # noqa: E402

from . import filled  # noqa: E402

#: A sheet has so many columns and a row's height, in pixels; a thumbnail has a white margin, and one of several panels
#: beside one another takes two columns, so that it can be read.
COLUMNS = 4
WIDTH, HEIGHT, ROW, MARGIN = 320, 200, 260, 4
#: The shapes, width over height, from which a picture has panels beside one another, and below which under one another.
WIDE, TALL = 1.9, 1.3
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
    return re.split(r"(?<=[.:])\s+(?=[A-Z(])|(?<=[。：])", caption)[0].rstrip(":：")


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


@dataclass(frozen=True)
class Place:
    """Where a thumbnail is on its sheet, in pixels."""

    left: int
    top: int
    width: int
    height: int


def is_wide(figure: Figure) -> bool:
    """Return whether a figure has panels beside one another, by its shape."""
    return figure.ratio > WIDE


def places(figures: Sequence[Figure]) -> list[Place]:
    """Return the place of each figure's thumbnail on the sheet of all, row by row.

    >>> from types import SimpleNamespace
    >>> [(p.left, p.top, p.width) for p in places([SimpleNamespace(ratio=ratio) for ratio in (1, 1.6, 1, 2.4, 1)])]
    [(0, 0, 320), (320, 0, 320), (640, 0, 320), (0, 260, 640), (640, 260, 320)]
    """
    found, row, column = [], 0, 0
    for figure in figures:
        taken = 2 if is_wide(figure) else 1
        if column + taken > COLUMNS:
            row, column = row + 1, 0
        tall = taken == 2 or figure.ratio < TALL
        found.append(Place(column * WIDTH, row * ROW, taken * WIDTH, ROW if tall else HEIGHT))
        column += taken
    return found


def style(place: int, part: Part) -> str:
    """Return the place of a part's thumbnail as CSS counts: its shape, the size of the sheet, its offset."""
    all_places = places(part.figures)
    here, width, height = all_places[place], COLUMNS * WIDTH, all_places[-1].top + ROW
    across = 100 * here.left / (width - here.width)
    down = 100 * here.top / max(height - here.height, 1)
    return (
        f"aspect-ratio:{here.width}/{here.height};background-size:{100 * width // here.width}% auto;"
        f"background-position:{across:.4g}% {down:.4g}%"
    )


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Fill the template of a page of the gallery."""
    if docname.partition("/")[0] == "gallery":
        above = "../" * docname.count("/")
        folder = docname.partition("/")[2]
        root = Path(app.srcdir)
        known = conventions_of(root)
        say = known.say if known.phrases else str.format
        filters = {
            "first_sentence": first_sentence, "style": style, "is_wide": is_wide,
            "found_by": partial(found_by, root),
            "slug": figure_models.slug, "say": say,
            "caption_of": partial(figure_models.caption, say=say),
            "alternative_of": partial(figure_models.alternative, say=say),
        }  # fmt: skip
        source[0] = filled(source[0], filters, parts=parts(root), folder=folder, above=above)


def sheet(pictures: Sequence[Path], where: Sequence[Place]) -> Image.Image:
    """Return one picture with the thumbnails of all, each in the middle of its place."""
    found = Image.new("RGB", (COLUMNS * WIDTH, where[-1].top + ROW), "white")
    for path, place in zip(pictures, where, strict=True):
        with Image.open(path) as picture:
            small = picture.convert("RGB")
        size = (place.width - 2 * MARGIN, place.height - 2 * MARGIN)
        small.thumbnail(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
        corner = (place.left + (place.width - small.width) // 2, place.top + (place.height - small.height) // 2)
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
        thumbnails = sheet([published / f"{figure.stem}.png" for figure in part.figures], places(part.figures))
        thumbnails.save(target / f"sheet-{part.folder}.webp", quality=60, method=4)
        for figure in part.figures:
            for suffix in publish.SUFFIXES:
                copy_asset(str(published / f"{figure.stem}{suffix}"), str(target))
            (target / f"{figure.stem}.py").write_text(figure.script, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.connect("source-read", fill)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
