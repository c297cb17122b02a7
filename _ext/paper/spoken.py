"""What programs have written onto the pages, in the language of a book on paper or of an e-book.

The site gets these words where both editions are joined (`edition.joined`). Paper gets them in the joined document,
and an e-book in each of its pages.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from edition.catalogue import of_words
from edition.joined import PROOF, InOrder, Words, cite, parsed, speak
from edition.marks import close_up
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

ROOT = Path(__file__).resolve().parents[2]


@cache
def words_of(language: str) -> Words:
    """Return what programs write into pages, in a language."""
    return Words(of_words(ROOT, language))


class Spoken(SphinxPostTransform):
    """Put the texts of a document for paper into the language of the book."""

    default_priority = 895  # before boxes are made of admonitions
    builders = ("latex",)
    #: What stays as it is.
    quiet = (nodes.FixedTextElement, nodes.literal, nodes.math, nodes.math_block, nodes.raw, nodes.comment)

    def run(self, **kwargs: Any) -> None:
        """Visit all texts."""
        if self.config.language == "en":
            return
        words = words_of(self.config.language)
        for link in self.document.findall(addnodes.number_reference):
            if said := words(link.get("title", "").replace("%s", "1")):
                link["title"] = said.replace("1", "%s")
        for text in list(self.document.findall(nodes.Text)):
            if isinstance(text.parent, self.quiet):
                continue
            if text.startswith(PROOF) and text.strip() != PROOF:  # sphinx-proof begins the text with it
                text.parent.replace(text, nodes.Text(text.replace(f"{PROOF} ", str(words(PROOF)), 1)))
            elif (said := words(text)) is not None:
                before, behind = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
                text.parent.replace(text, nodes.Text(f"{before}{said}{behind}"))


def spoken(html: str, language: str) -> str:
    """Return a piece of a page of an e-book in the language of the book.

    >>> spoken('<p>proved<br/><img alt="proved" src="a"/></p>', "zh_CN")
    '<p>已证明<br/><img alt="已证明" src="a"/></p>'
    """
    page = parsed(html)
    speak(page, words_of(language))
    cite(page)
    close_up(page)
    return page.decode(formatter=InOrder())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform."""
    app.add_post_transform(Spoken)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
