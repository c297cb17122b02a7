"""The sources of an edition: the book's own, with the messages of the translated pages in the other language.

Sphinx reads them as it reads the book. A page that is not wholly translated is read in English, so that every reference
to it is right; `joined` then leads to it in the English edition.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from . import catalogue

#: Folders that hold pages, or what belongs to them; everything else is linked to.
FOLDERS = ("chapters", "gallery", "guide", "ledger", "practice", "read", "reference")
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
    finished = [page for page in catalogue.pages_of(root, language) if page != catalogue.WORDS]
    finished = [page for page in finished if catalogue.of_page(root, language, page).complete]
    for page in finished:
        source = catalogue.source_of(root, page)
        text = catalogue.translated_page(source, catalogue.of_page(root, language, page))
        (target / source.relative_to(root)).write_text(text, encoding="utf-8")
    configure(target / "_config.yml", language)
    return finished


def configure(path: Path, language: str) -> None:
    """Have Sphinx write its own words in the language."""
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings["sphinx"]["config"]["language"] = language
    # What has a number is named in English, as the extensions expect; its name is among the words of the edition.
    settings["sphinx"]["config"]["numfig_format"] = {"figure": "Fig. %s", "table": "Table %s"}
    path.write_text(yaml.safe_dump(settings, allow_unicode=True, sort_keys=False), encoding="utf-8")
