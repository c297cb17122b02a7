"""Theorems, figures, tables and exercises are counted within their page, so that each keeps its number.

A chapter that gets one more exercise, or another place in the book, changes no number elsewhere. A link from another
page names the chapter: "Theorem 3 of the chapter on rank".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector

from linewise.conventions import conventions_of

Numbers = dict[str, dict[str, tuple[int, ...]]]
#: What a link to something with a number says.
_NUMBERED = re.compile(r"(?P<kind>[^\W\d]+\.?) (?P<number>\d+)")
#: What names the chapter already, behind the link or before it.
_NAMED = re.compile(r"\s*(?:of|in) (?:the|its)\b")
_NAMED_BEFORE = re.compile(r"(?:章|》)的?\s*$")
#: How a link from elsewhere reads.
_ELSEWHERE = "{kind} {number} of {chapter}"
#: Below the title of its chapter a number stands alone.
BELOW_A_TITLE = {"gallery-words", "route"}


def within(numbers: Mapping[str, Mapping[str, tuple[int, ...]]]) -> Numbers:
    """Return the numbers of a page, of each kind from 1, in their order on the page.

    >>> within({"figure": {"fig-a": (7,), "fig-b": (8,)}, "exercise": {"one": (3,)}})
    {'figure': {'fig-a': (1,), 'fig-b': (2,)}, 'exercise': {'one': (1,)}}
    """
    return {kind: {name: (k,) for k, name in enumerate(named, start=1)} for kind, named in numbers.items()}


def chapter_name(docname: str) -> str:
    """Return what a chapter is called in a link from elsewhere.

    >>> chapter_name("chapters/matrix/effective_rank"), chapter_name("play")
    ('the chapter on effective rank', 'the page play')
    """
    name = docname.rpartition("/")[2].replace("_", " ").replace("-", " ")
    return f"the chapter on {name}" if docname.startswith("chapters/") else f"the page {name}"


def count(collector: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Count within each page; return the pages whose numbers have changed."""
    before = env.toc_fignumbers
    _count(collector, env)
    env.toc_fignumbers = {page: within(numbers) for page, numbers in env.toc_fignumbers.items()}
    return [page for page, numbers in env.toc_fignumbers.items() if numbers != before.get(page)]


_count = TocTreeCollector.assign_figure_numbers


def name_chapters(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Have each link to a numbered thing of another page name the page."""
    here, say = app.env.toc_fignumbers, conventions_of(app.srcdir).say
    pages = {name: page for page, kinds in here.items() for named in kinds.values() for name in named}
    for link in doctree.findall(nodes.reference):
        anchor = link.get("refuri", "").rpartition("#")[2]
        page = pages.get(anchor, docname)
        found = _NUMBERED.fullmatch(link.astext())
        if page == docname or not link.get("internal") or not found:
            continue
        place = link.parent.index(link)
        before, behind = (link.parent[k] if 0 <= k < len(link.parent) else None for k in (place - 1, place + 1))
        named = isinstance(behind, nodes.Text) and _NAMED.match(behind.astext())
        named = named or (place and isinstance(before, nodes.Text) and _NAMED_BEFORE.search(before.astext()))
        around = set[str]().union(*(above.get("classes", []) for above in holders(link)))
        if not named and not BELOW_A_TITLE & around:
            words = say(_ELSEWHERE, kind=say(found["kind"]), number=found["number"], chapter=say(chapter_name(page)))
            inner: nodes.Element = link[0] if isinstance(link[0], nodes.inline) else link
            inner[:] = [nodes.Text(words)]


def holders(node: nodes.Element) -> list[nodes.Element]:
    """Return the elements that hold a node."""
    found, above = [], node.parent
    while above is not None:
        found.append(above)
        above = above.parent
    return found


def setup(app: Sphinx) -> dict[str, Any]:
    """Take the place of Sphinx's count, for as long as this process lives."""
    TocTreeCollector.assign_figure_numbers = count  # type: ignore[method-assign, assignment]
    app.connect("doctree-resolved", name_chapters)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
