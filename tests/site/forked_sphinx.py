"""Sphinx in a process that is forked from one in which Sphinx and its extensions are loaded already.

To load them takes longer than to build two pages. A forked process is one of its own, as ``python -m sphinx`` is: it
shares nothing that a build before it has registered.
"""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

#: What the extensions of the tests' pages import. A preloaded module that is not there is passed over, and then fails
#: in the build.
PRELOADED = ["sphinx.cmd.build", "sphinx_book_theme", "sphinxcontrib.bibtex", "myst_nb", "linewise.pages", "bs4"]


def build(*arguments: str, said: Path) -> str:
    """Run ``python -m sphinx`` with some arguments; return what it wrote to standard error, by way of a file."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    said.touch()  # a process that ends before it can say anything
    process = context.Process(target=_become_sphinx, args=(arguments, said))
    process.start()
    process.join()
    written = said.read_text(encoding="utf-8")
    assert process.exitcode == 0, written
    process.close()
    return written


def _become_sphinx(arguments: tuple[str, ...], said: Path) -> None:
    from sphinx.cmd.build import main

    sys.stderr = said.open("w", encoding="utf-8")
    status = main(arguments)
    sys.stderr.close()
    sys.stderr = sys.__stderr__
    sys.exit(status)
