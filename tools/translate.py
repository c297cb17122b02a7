"""Work on the other edition: ``python tools/translate.py merge [PAGES]``, ``check [PAGES]``, ``build`` and ``join``.

``merge`` writes the catalogues anew (`edition.catalogue`) and lists what is missing or stale; a page that is named and
has no catalogue gets one. ``check`` says what is wrong with the translations that there are (`edition.faults`).
``build`` builds the edition by itself, and ``join`` puts it into the built site (`edition.joined`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "_ext"))

from edition import catalogue, joined, rules, tree  # noqa: E402
from handout.citation import site_of  # noqa: E402
from reference.terms import PAGE as GLOSSARY  # noqa: E402
from reference.terms import read_glossary  # noqa: E402

from linewise.conventions import conventions_of  # noqa: E402

LANGUAGES = ("zh_CN",)
#: Names the pages of an edition that was built, in its folder.
FINISHED = "finished.json"


def merge(language: str, pages: Sequence[str]) -> int:
    """Write the catalogues of pages anew, and list those that are not complete."""
    for page in pages:
        catalogue.merge(ROOT, language, page)
        found = catalogue.of_page(ROOT, language, page)
        if not found.complete:
            print(f"{page}: {len(found.missing)} missing, {len(found.stale)} stale, of {len(found.known)}")
    return 0


def check(language: str, pages: Sequence[str]) -> int:
    """Say what is wrong with the translations of pages."""
    found = [fault for page in pages for fault in rules.faults_of(ROOT, language, page)]
    print(*found, sep="\n")
    return int(bool(found))


def build(language: str) -> int:
    """Build the edition by itself, and note which pages it has."""
    folder = ROOT / "_build" / language
    finished = tree.write(ROOT, language, folder / "source")
    (folder / FINISHED).write_text(json.dumps(finished), encoding="utf-8")
    print(f"{language}: {len(finished)} pages")
    command = "from jupyter_book.cli.main import main; main()"
    asked = ["build", str(folder / "source"), "--path-output", str(folder), "-W", "-n", "--keep-going", "-q"]
    return subprocess.run([sys.executable, "-c", command, *asked], check=False).returncode


def join(language: str) -> int:
    """Put the built edition into the site; say what its pages still say in English."""
    finished = json.loads((ROOT / "_build" / language / FINISHED).read_text(encoding="utf-8"))
    own, site = (ROOT / "_build" / part / "html" for part in (f"{language}/_build", "."))
    known, in_scripts = (catalogue.of_words(ROOT, language, name) for name in (catalogue.WORDS, catalogue.SCRIPTS))
    known = names_that_stay() | known
    repository = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]
    left = joined.join_editions(site, own, finished, known, in_scripts, language, site_of(repository))
    for text in dict.fromkeys(text for texts in left.values() for text in texts):
        print(f"not translated: {text}")
    return int(bool(left))


def names_that_stay() -> dict[str, str]:
    """Return what is English on purpose: the names of terms beside the Chinese ones, and the words of the lexicon."""
    glossary = read_glossary(ROOT / f"{GLOSSARY}.yml")
    names = [name for term in glossary.terms for name in term.english]
    names += [english for _, english in glossary.phrases]
    table = conventions_of(ROOT).lexicon
    assert table is not None
    for word in yaml.safe_load((ROOT / table.table).read_text(encoding="utf-8")).values():
        names += [", ".join(word.get(part, ())) for part in ("words", "but")]
    names += [name.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}") for name in names]
    return {name: name for name in names}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("merge", "check", "build", "join"))
    parser.add_argument(
        "pages", nargs="*", metavar="PAGES", help="as _toc.yml names them (default: those with a catalogue)"
    )
    parser.add_argument("--language", choices=LANGUAGES, default=LANGUAGES[0])
    options = parser.parse_args(arguments)
    pages = options.pages or catalogue.pages_of(ROOT, options.language)
    if options.what == "merge":
        return merge(options.language, pages)
    if options.what == "check":
        return check(options.language, pages)
    return build(options.language) if options.what == "build" else join(options.language)


if __name__ == "__main__":
    sys.exit(main())
