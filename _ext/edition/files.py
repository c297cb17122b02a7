"""The files of a page, and each of them with its messages in another language.

A page is Markdown or a notebook. Beside it may stand tables: the claims and answers of a chapter, the rows of the
sources that the coverage shows, the terms of the glossary. A page and its tables share a catalogue. Of a notebook,
Markdown, captions, alternative texts and the words in the records of cards and derivations are messages; code and what
it prints stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from linewise.conventions import TABLES, Conventions
from linewise.derive import display
from linewise.kernel.record import digest
from linewise.ledger import card
from linewise.pages.displays import DRAWS
from linewise.pages.read_along import cells, picture_in

from .blocks import says_something, translated
from .labels import SAYS, SVG, explained

#: A message in, the same message in the other language out.
Translate = Callable[[str], str]
#: Tables of pages that have not the page's name.
_ELSEWHERE = {
    "coverage": ("chapters/sources/section-*.yml", "chapters/sources/[anr]*.yml"),
    "guide/lexicon": ("chapters/sources/lexicon.yml",),
    "gallery": ("tools/figure_models.yml",),
}
#: What a claim says, in its table and in the record of its card.
_CLAIM = ("title", "reading", "holds", "scope", "reason")
#: Where a record has words: derivations, their lines and mistakes, and the parts of evidence.
_RECORD = {*_CLAIM, "name", "of", "because", "where", "units", "rules", "mistakes"}
#: What the rows of other tables say, by the name of the table.
_ROWS = {
    "lexicon.yml": ("reading", "why", "weaker"),
    "routes.yml": ("name", "says"),
    "play.yml": ("alt", "caption", "on_paper"),
}
#: A picture of a chapter that a page shows again, with its own words below it.
_AGAIN = re.compile(
    r"(?P<block>^(?P<fence>:{3,})\{from-chapter\} (?P<page>\S+) (?P<name>\S+)\n.*?)(?P<end>\n(?P=fence)$)", re.M | re.S
)
#: Tables of lines: what stands between the columns, and the columns that say something.
_LINES = {"glossary.yml": (" | ", (2,)), "notation.yml": (" ; ", (2, 3))}


def source_of(root: Path, page: str) -> Path:
    """Return the file of a page; raise ValueError where there is none."""
    for suffix in (".md", ".ipynb"):
        if (path := root / f"{page}{suffix}").is_file():
            return path
    raise ValueError(f"page: expected one of the book, such as read/note, got {page!r}")


def of_page(root: Path, page: str) -> list[Path]:
    """Return the files of a page: itself, and its tables."""
    source = source_of(root, page)
    beside = [source.with_suffix(suffix) for suffix in (".claims.yml", ".answers.yml", ".yml")]
    elsewhere = [path for pattern in _ELSEWHERE.get(page, ()) for path in sorted(root.glob(pattern))]
    return [source, *filter(Path.is_file, beside), *elsewhere]


def in_formulas(text: str, words: Mapping[str, str]) -> str:
    r"""Return a text whose formulas say their words in another language.

    >>> print(in_formulas(r"$0\text{ if }i<j$", {r"\text{if}": r"\text{若}"}))
    $0\text{ 若 }i<j$
    """

    def said(found: re.Match[str]) -> str:
        word = found[1].strip()
        spoken = words.get(rf"\text{{{word}}}", rf"\text{{{word}}}")
        return found[0].replace(word, spoken.removeprefix(r"\text{").removesuffix("}"))

    return re.sub(r"\\text\{([^{}]*)\}", said, text)


def in_language(
    path: Path,
    translation: Translate,
    words: Mapping[str, str] = MappingProxyType({}),
    labels: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the text of a file with its messages translated.

    words : those of formulas (see `in_formulas`), and what a caption says before the words of its picture.
    labels : the words in pictures, by their English ones.
    """
    text = path.read_text(encoding="utf-8")

    def translate(message: str) -> str:
        return in_formulas(translation(message), words)

    if path.suffix == ".md":
        return _told_again(in_formulas(translated(text, translation), words), path.parents[1], words, labels)
    if path.suffix == ".ipynb":
        return _notebook(json.loads(text), translate, words, labels)
    table = yaml.load(text, Loader=TABLES)
    for holder, key in [place for place in _places(path.name, table) if place[0][place[1]]]:
        if path.name in _LINES:
            between, columns = _LINES[path.name]
            holder[key] = _lines(holder[key], between, (1,) if key == "several" else columns, translate)
        else:
            holder[key] = translate(holder[key].strip())
    if path.name.endswith(".answers.yml"):
        _choose(table, translate)
    return yaml.safe_dump(table, allow_unicode=True, sort_keys=False, width=1000)


def _told_again(text: str, root: Path, words: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Return a page in which the pictures of chapters that it shows again have their words told."""

    def told(found: re.Match[str]) -> str:
        picture = picture_in(cells(root, found["page"]), found["name"]) if labels else None
        said = explained(picture[0], labels) if picture else ""
        return found["block"] + (words[SAYS].format(words=said) if said else "") + found["end"]

    return _AGAIN.sub(told, text)


def messages(root: Path, page: str) -> list[str]:
    """Return the messages of a page and of its tables, each once, in order."""
    heard: dict[str, str] = {}
    for path in of_page(root, page):
        in_language(path, lambda message: heard.setdefault(message, message))
    return [message for message in heard if says_something(message)]


def _places(name: str, table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where a table has messages, as mappings or lists and their keys."""
    if name.endswith(".claims.yml"):
        yield from ((claim, key) for claim in table.values() for key in _CLAIM if key in claim)
    elif name.endswith(".answers.yml"):
        for answer in _answers(table):
            yield from ((answer, key) for key in ("ask", "says"))
            yield from ((answer.get("mistakes", {}), wrong) for wrong in answer.get("mistakes", {}))
    elif name in _LINES:
        yield from ((table, key) for key in table if key not in ("phrases", "words"))
    elif name == "figure_models.yml":
        yield from ((table, figure) for figure, reason in table.items() if isinstance(reason, str))
        for choice in (choice for choice in table.values() if isinstance(choice, dict)):
            yield choice, "shows"
            yield from ((choice[part], model) for part in ("seen", "not") for model in choice.get(part, ()))
    elif name in _ROWS:
        for row in table.values() if isinstance(table, dict) else table:
            yield from ((row, key) for key in _ROWS[name] if key in row)
            yield from ((row["departs"], claim) for claim in row.get("departs", {}))
    elif "rows" in table:
        yield table, "source"
        yield from ((row, "gist") for row in table["rows"])


def _answers(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the answers of a chapter; an open exercise has none."""
    yield from (answer for asked in table.values() if isinstance(asked, list) for answer in asked)


def _choose(table: Mapping[str, Any], translate: Translate) -> None:
    """Translate what there is to choose from, wherever an answer names it."""
    for answer in _answers(table):
        if "choices" in answer:
            said = {choice: translate(choice) if says_something(choice) else choice for choice in answer["choices"]}
            answer["choices"], answer["right"] = list(said.values()), said[answer["right"]]
            answer["mistakes"] = {said[wrong]: name for wrong, name in answer.get("mistakes", {}).items()}


def _lines(text: str, between: str, columns: tuple[int, ...], translate: Translate) -> str:
    """Return the lines of a table with the cells of some columns translated."""
    said = []
    for line in text.strip("\n").split("\n"):
        cells = line.split(between)
        for column in columns:
            if says_something(cells[column]):
                blanks = len(cells[column]) - len(cells[column].rstrip())
                cells[column] = translate(cells[column].strip()) + " " * blanks
        said.append(between.join(cells))
    return "\n".join(said) + "\n"


# --- notebooks ------------------------------------------------------------------------------------


def _notebook(
    notebook: dict[str, Any], translate: Translate, words: Mapping[str, str], labels: Mapping[str, str]
) -> str:
    named: dict[str, str] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            said = in_formulas(translated("".join(cell["source"]), translate), words)
            cell["source"] = said.splitlines(keepends=True)
        elif cell["cell_type"] == "code":
            for holder, key in _described(cell):
                holder[key] = translate(holder[key])
                if key == "caption" and (told := explained(picture_of(cell), labels)):
                    holder[key] = holder[key].rstrip() + words[SAYS].format(words=told)
            for record in _records(cell):
                named |= _record(record, translate, words)
    for record in (record for cell in notebook["cells"] for record in _records(cell)):
        for evidence in record.get("evidence", ()):
            if "derivation" in evidence:
                evidence["derivation"] = named.get(evidence["derivation"], evidence["derivation"])
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def picture_of(cell: Mapping[str, Any]) -> str:
    """Return the picture that a cell has drawn; "" where it has drawn none."""
    return "".join("".join(output.get("data", {}).get(SVG, "")) for output in cell.get("outputs", ()))


def _described(cell: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield where the caption and the alternative text of a cell's figure are."""
    described = cell["metadata"].get("mystnb") or {}
    for part, key in (("figure", "caption"), ("image", "alt")):
        if (described.get(part) or {}).get(key):
            yield described[part], key


def _records(cell: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the records of the cards and derivations that a cell shows."""
    for output in cell.get("outputs", ()):
        yield from (record for kind, record in output.get("data", {}).items() if kind in DRAWS)


def _record(record: dict[str, Any], translate: Translate, words: Mapping[str, str]) -> dict[str, str]:
    """Translate what a record says; return the fingerprints of its derivations, by those that they had."""
    chains = [record] if "lines" in record else record.get("derivations", [])
    before = [display.fingerprint(chain) for chain in chains]
    for holder, key in list(_spoken(record)):
        holder[key] = translate(holder[key])
    for assumed in (one for chain in chains for one in chain.get("assumed", ())):
        assumed["tex"] = in_formulas(assumed["tex"], words)
    return dict(zip(before, map(display.fingerprint, chains), strict=True))


def _spoken(record: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where a record has words: a mapping or a list, and the key there."""
    for key, value in record.items() if isinstance(record, dict) else enumerate(record):
        if key == "at" and isinstance(value, list):
            yield from ((pair, at) for pair in value for at, part in enumerate(pair) if _is_word(part))
        elif isinstance(value, dict | list):
            words = isinstance(value, list) and key in _RECORD
            yield from ((value, at) for at, one in enumerate(value) if words and isinstance(one, str))
            yield from _spoken(value)
        elif key in _RECORD and isinstance(value, str) and says_something(value):
            yield record, key


def _is_word(part: Any) -> bool:
    """Return whether a part of an instance is words: ``["order", "not transposed"]`` are, ``["d_k", 2]`` are not."""
    return isinstance(part, str) and bool(re.search("[A-Za-z]{3}", part))


def drawn_again(text: str, conventions: Conventions) -> str:
    """Return a translated notebook whose cards and derivations are drawn again from their records."""
    notebook = json.loads(text)
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", ())):
        data = output.get("data", {})
        for record in (data[kind] for kind in DRAWS if kind in data):
            if "claim" in record:
                drawn = card.html(record, conventions), card.latex(record, conventions)
            else:
                drawn = display.html(record, conventions.say), display.latex(record, conventions.say)
            data |= {kind: said for kind, said in zip(("text/html", "text/latex"), drawn, strict=True) if kind in data}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def digests(before: str, after: str) -> dict[str, str]:
    """Return the names by which a second kernel knows a notebook's derivations: the translated by the original."""
    pairs = zip(*(_chains(json.loads(text)) for text in (before, after)), strict=True)
    return {digest(one): digest(other) for one, other in pairs}


def _chains(notebook: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of all derivations of a notebook."""
    shown = [record for cell in notebook["cells"] for record in _records(cell)]
    return [chain for record in shown for chain in ([record] if "lines" in record else record.get("derivations", []))]
