"""The reference is whole: every public module, every gloss of a chapter; and each check rejects what lacks one."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import sys
from pathlib import Path

import pytest
import site_checks as check
from conftest import ROOT
from sphinx.util.inventory import InventoryFile

import attnmath

sys.path.insert(0, str(ROOT / "_ext"))
from reference import api, notation, terms

GLOSSARY = terms.read_glossary(ROOT / f"{terms.PAGE}.yml")


def public_modules() -> set[str]:
    """The modules of the three packages but for the extensions of Sphinx, which nobody imports."""
    packages = [importlib.import_module(name) for name in api.PACKAGES]
    found = {m.name for one in packages for m in pkgutil.walk_packages(one.__path__, f"{one.__name__}.")}
    found |= set(api.PACKAGES)
    parts = (name.split(".") for name in found)
    return {".".join(part) for part in parts if part[-1] != "__main__" and not part[-1].startswith("_")
            and part[:2] != ["linewise", "pages"]}  # fmt: skip


def test_every_module_has_its_place_once():
    pages = (ROOT / api.PAGES).glob("*.md")
    listed = [name for page in pages for name in api.modules_of(page.read_text(encoding="utf-8"))]
    assert sorted(listed) == sorted(public_modules())


# --- the glossary ------------------------------------------------------------------------------

_GLOSS = re.compile(rf"[(（]([^()（）]*[{terms.HAN}][^()（）]*)[)）]")


def glosses(text: str) -> list[str]:
    return [" ".join(found.split()) for found in _GLOSS.findall(text)]


def unknown_glosses(text: str) -> list[str]:
    """Return the Chinese in brackets that the glossary knows neither as a term nor as a quoted phrase."""
    known = {*(name for term in GLOSSARY.terms for name in term.chinese), *(zh for zh, _ in GLOSSARY.phrases)}
    return [g for g in glosses(text) if not known & {g, *(part.strip(" .") for part in g.split(", "))}]


def text_of(chapter: Path) -> str:
    cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


CHAPTERS = {p: text_of(p) for p in sorted(ROOT.glob("chapters/**/*.ipynb"))}


def test_every_gloss_is_in_the_glossary():
    assert not [f"{path.stem}: {g}" for path, text in CHAPTERS.items() for g in unknown_glosses(text)]
    assert unknown_glosses("A word (无此词), and the rank (秩).") == ["无此词"]


def test_every_term_occurs_in_a_chapter():
    words = "\n".join(CHAPTERS.values())
    assert not [name for term in GLOSSARY.terms for name in term.chinese if name not in words]
    names = [name for term in GLOSSARY.terms for name in (*term.english, *term.chinese)]
    assert sorted(set(names)) == sorted(names), "one name, one entry"


def test_chinese_names_are_found_by_pinyin(site):
    letters = {name: terms.initial(name) for name in GLOSSARY.by_chinese}
    spoken = {
        "行随机": "H",
        "熵": "S",
        "秩": "Z",
        "值": "Z",
        "雅可比矩阵": "Y",
        "凹": "A",
        "张量幂": "Z",
        "QR 分解": "Q",
    }
    assert {name: letters[name] for name in spoken} == spoken
    with pytest.raises(ValueError, match="the pinyin of '谧' is not known"):
        terms.initial("谧")
    page = check.parse((site / f"{terms.PAGE}.html").read_text(encoding="utf-8"))
    [section] = page.select("section#chinese-names-by-pinyin")
    leads = {a.get_text(): str(a["href"]).removeprefix("#") for a in section.select("a.reference.internal")}
    assert leads.keys() == letters.keys()
    assert not [name for name, target in leads.items() if name not in page.find(id=target).get_text()]


def unlinked_terms(text: str, page: str) -> list[str]:
    """Return the glossed terms of a chapter without a link to the glossary."""
    known = GLOSSARY.by_chinese
    terms_of = {known[part.strip()].name for g in glosses(text) for part in g.split(", ") if part.strip() in known}
    links = set(re.findall(r'href="[^"]*glossary\.html#([^"]+)"', page))
    ids = {name: "term-" + re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in terms_of}
    return sorted(name for name in terms_of if ids[name] not in links)


def test_terms_are_linked_where_a_chapter_glosses_them(site):
    for path, text in CHAPTERS.items():
        page = site / path.relative_to(ROOT).with_suffix(".html")
        if page.is_file():
            assert unlinked_terms(text, page.read_text(encoding="utf-8")) == [], path.stem
    assert unlinked_terms("The rank (秩).", "<p>rank</p>") == ["rank"]


def test_symbols_have_one_anchor_each_and_their_equations():
    symbols = notation.read_symbols(ROOT / f"{notation.PAGE}.yml")
    anchors = [s.anchor for s in symbols]
    assert len(set(anchors)) == len(anchors) > 40
    with pytest.raises(ValueError, match="expected 6 columns"):
        notation.symbol("d_k ; too few", "G")


def symbol_links_of(page: str) -> list[tuple[str, str]]:
    """Return the symbols that a chapter links, and the anchors to which they lead."""
    links = check.parse("".join(re.findall(r"<a [^>]*\bsymbol-link\b.*?</a>", page, re.DOTALL))).select("a.symbol-link")
    return [(a.get_text(), str(a["href"]).partition("notation.html#")[2]) for a in links]


def lines_of(page: str) -> dict[str, str]:
    """Return the lines of the notation by their anchors."""
    return {str(e["id"]): e.parent.get_text() for e in check.parse(page).select(".symbol-anchor")}


def misled(links: list[tuple[str, str]], lines: dict[str, str]) -> list[str]:
    """Return the links to lines of the notation that do not hold the symbol, and the symbols that are linked twice."""
    twice = [text for k, (text, _) in enumerate(links) if text in [before for before, _ in links[:k]]]
    return twice + [text for text, anchor in links if text not in lines.get(anchor, "")]


def test_symbols_are_linked_where_a_chapter_first_uses_them(site):
    lines = lines_of((site / f"{notation.PAGE}.html").read_text(encoding="utf-8"))
    found = {p: symbol_links_of((site / p).read_text("utf-8")) for p in sorted(site.glob("chapters/*/*.html"))}
    assert {p.name: faults for p, links in found.items() if (faults := misled(links, lines))} == {}
    names = {p.relative_to(site / "chapters").as_posix(): [text for text, _ in links] for p, links in found.items()}
    assert {"n", "dk", "vj", "WQ"} <= set(names["operator/query_match_aggregate.html"])
    if "sparsity/linear_attention.html" in names:
        assert "qi" not in names["sparsity/linear_attention.html"], "a component of the query there"
    first = found[site / "chapters/operator/query_match_aggregate.html"][0]
    assert misled([first, first], lines) == [first[0]]
    assert misled([("?", first[1])], lines) == ["?"]


# --- the built pages ---------------------------------------------------------------------------


def test_the_inventory_names_the_project(site):
    head = (site / "objects.inv").read_bytes().split(b"\n")[:3]
    assert head[1:] == [b"# Project: Attention, Checked", b"# Version: " + attnmath.__version__.encode()]
    with (site / "objects.inv").open("rb") as stream:
        inventory = InventoryFile.load(stream, "", lambda a, b: b)
    assert "attnmath.operator.attention.attention" in inventory["py:function"]
    assert "effective rank" in inventory["std:term"]


def test_the_index_has_functions_terms_and_symbols_and_its_numbers_in_order(site):
    index = [
        a.get_text() for a in check.parse((site / "genindex.html").read_text(encoding="utf-8")).select("article a")
    ]
    assert {"softmax() (in module attnmath.operator.attention)", "effective rank", "有效秩"} <= set(index)
    numbers = [entry for entry in index if entry.startswith("(5.1.")]
    assert numbers == sorted(numbers, key=lambda entry: int(re.findall(r"\d+", entry)[-1]))


def test_signatures_show_shapes_and_lead_to_what_they_name(site):
    html = (site / "reference/api/operator.html").read_text(encoding="utf-8")
    page = check.parse(
        html[html.index('<dt class="sig sig-object py" id="attnmath.operator.attention.softmax_jacobian"') :][:20000]
    )
    signature = page.find(id="attnmath.operator.attention.softmax_jacobian")
    assert "y: Real[ArrayLike[Array], '... n'],) → Float[Array, '... n n']" in signature.get_text().replace("\n", "")
    assert [a["href"] for a in signature.select("a.reference")] == [
        "ground.html#module-attnmath.arrays", "ground.html#attnmath.arrays.ArrayLike",
        "ground.html#attnmath.arrays.Array",
        "ground.html#module-attnmath.arrays", "ground.html#attnmath.arrays.Array",
    ]  # fmt: skip
    chapters = [a["href"] for a in signature.find_next("div", class_="used-in").select("a")]
    assert "../../chapters/operator/softmax.html" in chapters
    assert all(page.stat().st_size < 1e6 for page in (site / "reference/api").glob("*.html"))


def test_imports_of_a_chapter_lead_to_the_reference(site):
    html = (site / "chapters/operator/softmax.html").read_text(encoding="utf-8")
    links = re.findall(r'<a class="api-link" href="([^"]+)">(?:<span class="n">)?(\w+)', html)
    assert ("../../reference/api/operator.html#attnmath.operator.attention.softmax", "softmax") in links
