r"""Search: whole questions in English and Chinese, numbers of equations, names; its results lead to the place itself.

MiniSearch (``assets/vendor``) keeps and ranks the words. Beside it are:

* what is found: the parts of pages, and everything that has a number or a name (``documents``);
* how text becomes words, and what a question asks for (``assets/finding.js``). The build makes the index with the same
  script that asks it in the browser, so the two cannot differ;
* what a book's reader calls things (``assets/words.yml`` and the glossary);
* the page (``assets/results.js``). It loads the index with the first question, and no other page.

Sphinx's own index is not made: it knows neither numbers nor Chinese, and wants all words of a question on one page.
"""

from __future__ import annotations

import atexit
import base64
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import yaml
from mathematics import plain_node
from pages.light_pages import without_remarks
from py_mini_racer import MiniRacer
from reference.terms import HAN, Glossary, glossary_of
from sphinx.application import Sphinx
from sphinx.config import Config

from .documents import as_data, documents

ASSETS = Path(__file__).parent / "assets"
#: What the page loads.
SHIPPED = ("vendor/minisearch.js", "finding.js", "results.js")
#: How a book in Chinese ranks its pages, as the Chinese questions of both halves of tests/site/questions.yml chose: the
#: pages that follow a source are full of the words of a question, and lead to the chapters.
RANKING = {
    "weights": {"title": 3, "names": 3, "above": 1, "text": 1},
    "together": 0,
    "others": 0.7,
    "folders": {"read": 0.6},
}
#: What Sphinx would search with.
REPLACED = ("searchtools.js", "language_data.js")


def words_of_questions(glossary: Glossary, text: str, in_chinese: bool = False) -> dict[str, Any]:
    """Return what the search knows of words: what Chinese words are called, words alike, and words to leave out.

    Of `traditional`, the second text has the simplified characters of the first. In a book in Chinese an English word
    is alike what it is called there: a term of the glossary, or else the first word that is called so.

    >>> from reference.terms import Term
    >>> glossary = Glossary((Term(("rank",), ("秩",), ""),), (), frozenset())
    >>> table = "{chinese: 秩 order, names: 秩 轶, traditional: [陣, 阵], alike: a b, stop: {en: the}}"
    >>> words_of_questions(glossary, table)["chinese"]
    {'秩': ['rank', 'order'], '轶': ['秩', 'rank', 'order']}
    >>> words_of_questions(glossary, table, in_chinese=True)["alike"]
    [['a', 'b'], ['rank', '秩']]
    """
    table = yaml.safe_load(text)
    chinese: dict[str, list[str]] = {}
    for term in glossary.terms:
        for name in term.chinese:
            if re.fullmatch(f"[{HAN}]+", name):
                chinese.setdefault(name, []).append(term.name)
    for line in table["chinese"].strip().split("\n"):
        name, *english = line.split()
        chinese.setdefault(name, []).extend(english)
    for line in table["names"].strip().split("\n"):
        name, *others = line.split()
        chinese |= {other: [name, *chinese.get(name, ())] for other in others}
    alike = [line.split() for line in table["alike"].strip().split("\n")]
    if in_chinese:
        called = [(word, term.chinese[0]) for term in glossary.terms for word in term.english]
        called += [(english[0], name) for name, english in chinese.items()]
        alike += ([word, name] for word, name in dict(reversed(called)).items() if re.fullmatch("[A-Za-z]+", word))
    stop = [word for line in table["stop"].values() for word in line.split()]
    return {
        "chinese": chinese,
        "alike": alike,
        "stop": stop,
        "traditional": ["".join(s.split()) for s in table["traditional"]],
    }


def engine() -> MiniRacer:
    """Return V8 with MiniSearch and the script that asks it. It is closed before Python ends: V8 would wait."""
    made = MiniRacer()
    atexit.register(made.close)
    for name in SHIPPED[:2]:
        made.eval(shipped(name).replace("const Finding =", "var Finding =", 1) + ";0")
    return made


def shipped(name: str) -> str:
    """Return a script as the page loads it: without remarks, which are more than half of MiniSearch."""
    head = f"/* {name}: see LICENSE-minisearch.txt */\n" if name.startswith("vendor/") else ""
    return head + without_remarks((ASSETS / name).read_text(encoding="utf-8"))


def data_of(app: Sphinx) -> dict[str, Any]:
    """Return what the page of the search loads: the packed index, the words of questions, documents and pages."""
    found = list(documents(app))
    titles = {page: " ".join(plain_node(title).split()) for page, title in app.env.titles.items()}
    in_chinese = app.config.language.startswith("zh")
    table = (ASSETS / "words.yml").read_text(encoding="utf-8")
    words = words_of_questions(glossary_of(app.env), table, in_chinese)
    given = json.dumps([words, [document.indexed() for document in found]], ensure_ascii=False)
    made = engine()
    index = json.loads(str(made.call("((given) => JSON.stringify(Finding.build(...JSON.parse(given))))", given)))
    data = {"index": index, "words": words, **as_data(found, titles)}
    return data | ({"ranking": RANKING} if in_chinese else {})


def packed(data: dict[str, Any]) -> str:
    """Return data as a script that hands it to the page: the same bytes for the same data."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    bytes_ = gzip.compress(text.encode(), mtime=0)
    return f'Finding.arriving = Finding.arrive("{base64.b64encode(bytes_).decode()}");\n'


def unpacked(script: str) -> dict[str, Any]:
    """Return the data of such a script.

    >>> unpacked(packed({"a": ["秩"]}))
    {'a': ['秩']}
    """
    return json.loads(gzip.decompress(base64.b64decode(script.partition('"')[2].rpartition('"')[0])))


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Write what the page of the search loads."""
    if exception is not None or app.builder.name != "html":
        return
    static = Path(app.outdir) / "_static"
    (static / "vendor").mkdir(parents=True, exist_ok=True)
    for name in SHIPPED:
        (static / name).write_text(shipped(name), encoding="utf-8")
    shutil.copy(ASSETS / "vendor" / "LICENSE-minisearch.txt", static / "vendor")
    (static / "finding-data.js").write_text(packed(data_of(app)), encoding="utf-8")
    for name in REPLACED:
        (static / name).unlink(missing_ok=True)


def replace(app: Sphinx) -> None:
    """Have Sphinx make no index of its own."""
    app.builder.search = False  # type: ignore[attr-defined]


def publish(app: Sphinx, config: Config) -> None:
    """Have Sphinx make the page of the search from our template."""
    config.templates_path.insert(0, str(ASSETS / "templates"))
    config.html_additional_pages["search"] = "search.html"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    app.connect("config-inited", publish)
    app.connect("builder-inited", replace)
    app.connect("build-finished", finish)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
