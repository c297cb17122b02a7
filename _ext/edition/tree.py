"""The sources of an edition: the book's own, with the messages of the translated pages in the other language.

Sphinx reads them as it reads the book. A page that is not wholly translated is read in English, so that every reference
to it is right; `joined` then leads to it in the English edition.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml
from search.documents import ASKED, asked_of

from linewise.conventions import FILE as CONVENTIONS
from linewise.conventions import conventions_of
from linewise.kernel import record

from . import catalogue, files

#: Folders that hold pages, or what belongs to them; everything else is linked to.
FOLDERS = ("chapters", "gallery", "guide", "ledger", "practice", "read", "reference")
#: The page whose table is a program's, which looks a message up when it writes it.
GALLERY = "gallery"
#: The works that the book names.
WORKS = "references.bib"
#: What no edition reads.
LEFT_OUT = {".git", ".venv", "_build", "results", "tests", catalogue.FOLDER}


def write(root: Path, language: str, target: Path) -> list[str]:
    """Write the sources of an edition, and return the pages that are wholly translated.

    target : a folder that is made anew.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for entry in sorted(root.iterdir()):
        if entry.name in LEFT_OUT or entry.name.startswith("."):
            continue
        if entry.name in FOLDERS:
            shutil.copytree(entry, target / entry.name)
        elif entry.suffix in (".md", ".yml"):
            shutil.copy2(entry, target / entry.name)
        else:
            (target / entry.name).symlink_to(entry)
    finished = [page for page in catalogue.pages_of(root, language) if catalogue.of_page(root, language, page).complete]
    asked = {page: of for page, of in asked_of(root / catalogue.FOLDER / language).items() if page in finished}
    (target / ASKED).write_text(yaml.safe_dump(asked, allow_unicode=True, sort_keys=False), encoding="utf-8")
    known = catalogue.of_words(root, language) | catalogue.of_words(root, language, catalogue.ENGINE)
    if GALLERY in finished:
        known |= catalogue.of_page(root, language, GALLERY).known
    labels = catalogue.of_words(root, language, catalogue.LABELS)
    write_conventions(target / CONVENTIONS, known)
    conventions = conventions_of(target)
    named: dict[str, str] = {}
    for page in finished:
        translation = catalogue.of_page(root, language, page)
        for source in files.of_page(root, page):
            where = source.relative_to(root)
            if where.parts[0] not in (*FOLDERS, where.name):  # below a link: its messages are among the phrases
                continue
            text = files.in_language(source, translation, known, labels)
            if source.suffix == ".ipynb":
                named |= files.digests(source.read_text(encoding="utf-8"), text)
                text = files.drawn_again(text, conventions)
            (target / where).write_text(text, encoding="utf-8")
    write_kernel(root, target, named)
    if (root / WORKS).is_file():
        write_works(target / WORKS, known)
    configure(target / "_config.yml", language)
    return finished


def write_conventions(path: Path, words: Mapping[str, str]) -> None:
    """Have the engine write its own words in the language: cards, places, and what verdicts and reasons mean."""
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    for verdict in given["verdicts"].values():
        verdict["means"] = words.get(verdict["means"], verdict["means"])
    for grade in given["grades"].values():
        grade["heading"] = words.get(grade["heading"], grade["heading"])
    for table in (given.get("reasons", {}), given.get("levels", {})):
        table |= {name: words.get(means, means) for name, means in table.items()}
    given["phrases"] = dict(words)
    path.write_text(yaml.safe_dump(given, allow_unicode=True, sort_keys=False), encoding="utf-8")


def write_works(path: Path, words: Mapping[str, str]) -> None:
    """Name the works that are in the language as they are called there, with their authors."""
    text = path.read_text(encoding="utf-8")
    path.unlink()  # a link to the original
    for entry in re.findall(r"^@.*?^}", text, re.MULTILINE | re.DOTALL):
        if any(title in words for title in re.findall(r"title *= *\{(.*)\},$", entry, re.MULTILINE)):
            said = re.sub(
                r"(?<== \{)(.*)(?=\},?$)", lambda field: words.get(field[1], field[1]), entry, flags=re.MULTILINE
            )
            text = text.replace(entry, said)
    path.write_text(text, encoding="utf-8")


def write_kernel(root: Path, target: Path, named: Mapping[str, str]) -> None:
    """Write what a second kernel has proved, by the names that derivations have now: `named`, by the old ones."""
    known = record.kernel_of(root)
    if known is not None:
        path = target / conventions_of(root).kernel
        path.unlink()  # a link to the original
        chapters = {
            chapter: {named.get(key, key): entry for key, entry in entries.items()}
            for chapter, entries in known.chapters.items()
        }
        record.write(record.Kernel(known.prover, chapters), path)


def configure(path: Path, language: str) -> None:
    """Have Sphinx write its own words in the language."""
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings["sphinx"]["config"]["language"] = language
    # What has a number is named in English, as the extensions expect; its name is among the words of the edition.
    settings["sphinx"]["config"]["numfig_format"] = {"figure": "Fig. %s", "table": "Table %s"}
    path.write_text(yaml.safe_dump(settings, allow_unicode=True, sort_keys=False), encoding="utf-8")
