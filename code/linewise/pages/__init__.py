r"""Extensions of Sphinx that show what the ledger knows: ``extensions: [linewise.pages]``.

* A card in an executed notebook gets links to the ledger and to its sentence, a derivation its reasons beside or below
  its lines; a builder without scripts sets both.
* The pages ``ledger``, ``errata`` and ``coverage`` include a template of the same name, ``{% include "ledger.md" %}``;
  readers filter and sort them in their browser. ``linewise_filled_pages`` names further pages that use the templates.
* The page that the conventions name for the lexicon includes ``lexicon.md``, and the role ``{word}`` links to it.
* The roles ``{verdict}``, ``{card}`` and ``{claims}`` and the directive ``{claim-entry}`` serve them and any page.
* The role ``{mark}`` and the directives ``{paragraph}``, ``{instead}``, ``{numbered}``, ``{from-chapter}`` and
  ``{more}`` make pages that follow a source paragraph by paragraph (`linewise.pages.read_along`).
* The directives ``{reading}`` and ``{further}`` say how long a chapter takes, and fold what goes further
  (`folded_sections`).
* The directive ``{wrong-lines}`` makes exercises of a notebook's derivations (`wrong_lines`).
* A displayed equation with a ``\tag`` has an address, ``#equation-5.1.5``, and an entry in the index.

An extension that has more to tell the templates connects to the event ``linewise-context``, which is emitted with the
mapping from names to values before a page is filled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from linewise.pages import (
    claim_filter,
    displays,
    folded_sections,
    ledger_pages,
    lexicon_page,
    numbered_equations,
    print_cards,
    read_along,
    wrong_lines,
)


def publish(app: Sphinx, config: Config) -> None:
    """Have Sphinx copy the scripts and the style sheets."""
    config.html_static_path.append(str(Path(__file__).parent / "static"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all parts."""
    app.add_config_value("linewise_filled_pages", [], "env", [list])
    app.add_event("linewise-context")
    app.connect("config-inited", publish)
    app.add_css_file("verdicts.css")
    app.add_js_file("derivations.js")
    parts = (
        numbered_equations,
        ledger_pages,
        lexicon_page,
        displays,
        claim_filter,
        print_cards,
        read_along,
        wrong_lines,
        folded_sections,
    )
    for part in parts:
        part.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
