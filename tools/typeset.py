"""Print the book: ``python tools/typeset.py pdf`` makes _build/pdf/attention-checked.pdf, and ``epub`` the e-book.

``packages`` lists the packages of Debian that the two need beside Python.

Sphinx writes LaTeX, by the book's own configuration (_ext/paper/print_book.py); latexmk and XeLaTeX make the PDF. The
result is kept only if LaTeX's log is clean: no character without a glyph, no link that leads nowhere, nothing wider
than its line or higher than its page, and no formula that shrank until nobody can read it; and if its pages hold no
word of TeX and no empty title. The e-book is kept only if epubcheck finds nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import stamps

sys.path.append(str(stamps.ROOT / "_ext"))
from edition import tree
from edition.joined import FOLDERS as LANGUAGES

#: What each format needs beside Python: a command or a file of TeX, and the package of Debian that has it.
NEEDED = {
    "pdf": {
        "xelatex": "texlive-xetex",
        "latexmk": "latexmk",
        "rsvg-convert": "librsvg2-bin",
        "pdftotext": "poppler-utils",
        "tcolorbox.sty": "texlive-latex-extra",
        "pzdr.tfm": "texlive-fonts-recommended",  # the font of hyperref's links
        "xeCJK.sty": "texlive-lang-cjk",
        "ctexhook.sty": "texlive-lang-chinese",
        "texgyrepagella-regular.otf": "fonts-texgyre",
        "texgyrepagella-math.otf": "fonts-texgyre-math",
        "Noto Serif CJK SC": "fonts-noto-cjk",
        "DejaVu Sans": "fonts-dejavu-core",
    },
    "epub": {"epubcheck": "epubcheck", "java": "default-jre-headless"},
}
WORK = stamps.ROOT / "_build" / "print"
#: A formula may shrink to this part of its width.
SMALLEST_FORMULA = 0.7
#: What may stick out of a line, in points.
WIDEST = 1.0
#: What may stick out of a page at its foot, in points: the room below a line.
HIGHEST = 3.0


def is_there(name: str) -> bool:
    """Return whether a command, a file of TeX, or a family of fonts is installed."""
    if name.endswith((".sty", ".otf", ".tfm")):
        command = ["kpsewhich", name]
    elif " " in name:
        command = ["fc-list", name, "family"]
    else:
        return shutil.which(name) is not None
    if shutil.which(command[0]) is None:
        return False
    return bool(subprocess.run(command, capture_output=True, text=True).stdout.strip())


def missing(kind: str) -> list[str]:
    """Return the packages of Debian that a format still needs."""
    return [package for name, package in NEEDED[kind].items() if not is_there(name)]


def points(length: str) -> float:
    """Return a length that TeX wrote.

    >>> points("12.5pt")
    12.5
    """
    return float(length.removesuffix("pt"))


def faults(log: str) -> list[str]:
    r"""Return what is wrong with a run of LaTeX, from its log.

    >>> faults("Overfull \\hbox (0.4pt too wide) in paragraph\nFitted: a formula of 110.0pt on a line of 100.0pt")
    []
    >>> faults("Overfull \\hbox (3.0pt too wide) in paragraph at lines 7--8")
    ['3.0pt too wide in paragraph at lines 7--8']
    >>> faults("Overfull \\vbox (228.0pt too high) has occurred while \\output is active []")
    ['228.0pt too high has occurred while \\output is active []']
    >>> faults("Fitted: a formula of 200.0pt on a line of 100.0pt")
    ['a formula of 200.0pt on a line of 100.0pt']
    >>> faults("Missing character: There is no x in font y!\nLaTeX Warning: Hyper reference `a' on page 1 undefined")
    ['Missing character: There is no x in font y!', "LaTeX Warning: Hyper reference `a' on page 1 undefined"]
    """
    lines = log.splitlines()
    found = [s for s in lines if s.startswith(("Missing character", "!"))]
    found += [s for s in lines if re.search(r"Warning: .*(undefined|multiply.defined)", s)]
    wide = (re.match(r"Overfull \\[hv]box \((.*?)\) (.*)", s) for s in lines)
    found += [f"{m[1]} {m[2]}" for m in wide if m and points(m[1].split()[0]) > (HIGHEST if "high" in m[1] else WIDEST)]
    shrunk = (re.match(r"Fitted: (a formula of (\S+) on a line of (\S+))", s) for s in lines)
    found += [m[1] for m in shrunk if m and points(m[3]) < SMALLEST_FORMULA * points(m[2])]
    return list(dict.fromkeys(found))


def strays(text: str) -> list[str]:
    """Return what no page should say, from the text of the PDF: TeX's words for stretching space, and empty titles.

    >>> strays("the sum is 1\\n  2\\n  .\\n\\fthe second page\\n\\n   .\\nStart\\f   plus    1fil   weights sum to 1")
    ['page 2 has an empty title: "."', 'page 3 says "plus 1fil" of TeX']
    """
    found = []
    for number, page in enumerate(text.split("\f"), start=1):
        if re.search(r"\b(plus|minus)\s+[\d.]*fil", page):
            found.append(f'page {number} says "plus 1fil" of TeX')
        if re.search(r"(^|\n) *\n *\.\n", page):  # below a fraction it ends a sentence
            found.append(f'page {number} has an empty title: "."')
    return found


def work(language: str) -> Path:
    """Return the folder in which the book is made in a language."""
    return WORK if language == "en" else WORK.with_name(f"print-{language}")


def sphinx(builder: Sequence[str], language: str) -> None:
    """Build with Jupyter Book, strictly, in a folder of its own: pages on paper are not read as the site's are."""
    main = "from jupyter_book.cli.main import main; main()"
    source = stamps.ROOT
    if language != "en":
        source = work(language) / "source"
        tree.write(stamps.ROOT, language, source)
    options = ["-W", "-n", "--keep-going", "-q", "--path-output", str(work(language)), *builder]
    subprocess.run([sys.executable, "-c", main, "build", str(source), *options], cwd=stamps.ROOT, check=True)


def published(kind: str, language: str) -> Path:
    """Return where a reader looks for a finished file.

    >>> published("pdf", "zh_CN").relative_to(stamps.ROOT).as_posix()
    '_build/pdf/attention-checked.zh_CN.pdf'
    """
    name = "attention-checked" if language == "en" else f"attention-checked.{language}"
    return stamps.ROOT / "_build" / kind / f"{name}.{kind}"


def pdf(language: str) -> list[str]:
    """Make the PDF, and return what is wrong with it."""
    sphinx(["--builder", "latex"], language)
    folder = work(language) / "_build" / "latex"
    command = ["latexmk", "-pdfxe", "-interaction=nonstopmode", "-halt-on-error", "-silent", "attention-checked.tex"]
    # Lines of the log are not to be broken, and the date in the file is to be nobody's.
    environment = os.environ | {"max_print_line": "10000", "SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace")
    log = folder / "attention-checked.log"
    found = faults(log.read_text(encoding="utf-8", errors="replace")) if log.is_file() else []
    if done.returncode and not found:
        found = [f"latexmk failed: {(done.stdout + done.stderr)[-2000:]}"]
    made = folder / "attention-checked.pdf"
    if not found:
        said = subprocess.run(["pdftotext", "-layout", str(made), "-"], check=True, capture_output=True)
        found = strays(said.stdout.decode("utf-8"))
    if not found:
        stamps.write_atomically(published("pdf", language), made.read_bytes())
    return found


def epub(language: str) -> list[str]:
    """Make the e-book, and return what is wrong with it."""
    sphinx(["--builder", "custom", "--custom-builder", "epub"], language)
    (made,) = (work(language) / "_build" / "epub").glob("*.epub")
    done = subprocess.run(["java", "-jar", str(shutil.which("epubcheck")), str(made)], capture_output=True, text=True)
    said = done.stdout + done.stderr
    found = [s for s in said.splitlines() if s.startswith(("ERROR", "FATAL", "WARNING"))]
    if done.returncode and not found:
        found = [said[-2000:]]
    if not found:
        stamps.write_atomically(published("epub", language), made.read_bytes())
    return found


def main(arguments: list[str] | None = None) -> int:
    """Make one of the two, and say what is wrong with it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("format", choices=[*NEEDED, "packages"])
    parser.add_argument("--language", choices=["en", *LANGUAGES], default="en")
    options = parser.parse_args(arguments)
    kind: str = options.format
    if kind == "packages":
        print(*sorted({package for needed in NEEDED.values() for package in needed.values()}))
        return 0
    if packages := missing(kind):
        print(f"make {kind} needs more than Python: apt-get install --no-install-recommends {' '.join(packages)}",
              file=sys.stderr)  # fmt: skip
        return 1
    started = time.monotonic()
    try:
        found = {"pdf": pdf, "epub": epub}[kind](options.language)
    except subprocess.CalledProcessError as error:
        who = "Sphinx" if error.cmd[0] == sys.executable else error.cmd[0]
        said = (error.stderr or b"").decode(errors="replace").strip()
        print(f"{kind}: {who} reports what is wrong {f'({said})' if said else 'above'}", file=sys.stderr)
        return 1
    for fault in found:
        print(f"{kind}: {fault}", file=sys.stderr)
    if not found:
        made = published(kind, options.language).relative_to(stamps.ROOT)
        print(f"{made}: made in {time.monotonic() - started:.0f} s")
    return bool(found)


if __name__ == "__main__":
    stamps.run(main)
