"""What the download button gives of a chapter: a notebook that says what to install, and runs after that.

Sphinx copies each page's source to ``_sources/``. Here a notebook's copy is replaced by a plain one; the notebook in
the repository stays as it is. `plain_notebooks` makes the copy.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from pybtex.database import BibliographyData, parse_file
from sphinx.application import Sphinx

from linewise.pages.first_reading import in_words, sections

from .numbers import chapter_name
from .plain_notebooks import Page, called, extras_for, needs, plain_notebook, required_name


def name_repository(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the configured repository into the commands of the page that says how to run the book."""
    if docname == "run":
        repository, branch = repository_of(app)
        source[0] = source[0].replace("{{ repository }}", repository).replace("{{ branch }}", branch)


def repository_of(app: Sphinx) -> tuple[str, str]:
    """Return the address of the configured repository, and its branch."""
    theme = app.config.html_theme_options
    return theme["repository_url"].rstrip("/"), theme.get("repository_branch") or "main"


def replace_downloads(app: Sphinx, exception: Exception | None) -> None:
    """Replace each copy of a notebook under ``_sources/``."""
    if exception is not None or app.builder.format != "html" or not app.config.html_copy_source:
        return
    book = Path(app.srcdir)
    extras = tomllib.loads((book / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    works = BibliographyData()
    for name in app.config.bibtex_bibfiles:
        works.add_entries(parse_file(str(book / name)).entries.items())
    repository, branch = repository_of(app)
    numbered = {page: called(kinds) for page, kinds in app.env.toc_fignumbers.items()}
    elsewhere = {
        label: f"{said} of {chapter_name(page)}" for page, labels in numbered.items() for label, said in labels.items()
    }
    for name in sorted(app.env.found_docs):
        source = Path(app.env.doc2path(name))
        if source.suffix != ".ipynb":
            continue
        notebook = json.loads(source.read_text(encoding="utf-8"))
        wanted = extras_for(needs(notebook, book / "code"), {key: extras[key] for key in ("torch", "train", "model")})
        named = f"[{','.join(wanted)}]" if wanted else ""
        requirement = f"attention-checked{named} @ git+{repository}@{branch}"
        modules = ("attnlab", *(required_name(name) for extra in wanted for name in extras[extra]))
        length = tuple(in_words(sections(notebook["cells"])))
        page = Page(name, repository, branch, elsewhere | numbered.get(name, {}), works, length)
        copy = plain_notebook(notebook, page, requirement, modules)
        if app.config.language != "en":  # the same pictures are in the English copy, and a run draws them
            without_pictures(copy)
        target = Path(app.outdir, "_sources", f"{name}.ipynb")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(copy, ensure_ascii=False) + "\n", encoding="utf-8")


def without_pictures(notebook: dict[str, Any]) -> None:
    """Take the pictures out of the outputs of a notebook.

    >>> outputs = [{"data": {"image/svg+xml": "<svg/>", "text/plain": "a figure"}}]
    >>> without_pictures({"cells": [{"outputs": outputs}]})
    >>> outputs
    [{'data': {'text/plain': 'a figure'}}]
    """
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", ())):
        for kind in [kind for kind in output.get("data", {}) if kind.startswith("image/")]:
            del output["data"][kind]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.connect("source-read", name_repository)
    app.connect("build-finished", replace_downloads)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
