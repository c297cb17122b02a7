"""The site's own Sphinx extensions: their small functions, and a build of two pages that must go wrong."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import forked_sphinx
import pytest
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
EXTENSIONS = ROOT / "_ext"
sys.path.insert(0, str(EXTENSIONS))

from attnmath.estimate import Estimate  # noqa: E402
from linewise.conventions import conventions_of  # noqa: E402
from linewise.ledger import Claim, LedgerError, observation  # noqa: E402
from linewise.ledger.card import MIME  # noqa: E402
from linewise.ledger.coverage import anchor_of, tags_of  # noqa: E402
from linewise.pages import displays, ledger_pages, signs  # noqa: E402


def test_equation_numbers():
    assert tags_of(r"a &= b \tag{5.1.3} \\ c &= d \tag*{ 5.1.10 }") == ["5.1.3", "5.1.10"]
    assert tags_of(r"\text{tag}{5.1.3}") == []
    assert anchor_of("5.1.5") == "equation-5.1.5"


def test_sphinx_gets_records_alone_and_all_of_what_has_none():
    data = {"text/html": "<div>", MIME: {"claim": "1"}}
    notebook = {"cells": [{"outputs": [{"data": data}, {"text": "x"}, {"data": {"text/html": "<table>"}}]}, {}]}
    of_claim, printed, table = displays.records_alone(notebook)["cells"][0]["outputs"]
    assert of_claim == {"data": {MIME: {"claim": "1"}}}
    assert (printed, table) == ({"text": "x"}, {"data": {"text/html": "<table>"}})


def test_a_card_has_the_signs_of_a_book():
    card = r'<details class="claim-card x" id="a_b"><li>d_k of the report&#x27;s E D^-1, <code>x_i</code> \(e^2\)</li>'
    shown = card.replace("d_k", "d<sub>k</sub>").replace("&#x27;", "’").replace("D^-1", "D<sup>−1</sup>")
    assert signs.in_html(card) == shown != card


RECORD = {
    "claim": "5.1/slip", "title": "A slip of d_k", "place": "5.1 p1 s4", "reading": "It is $x_1$ & the rest.",
    "verdict": "amended", "holds": "H_k", "grade": "missing hypothesis",
    "evidence": [{"kind": "derivation", "name": "", "steps": 1, "mistakes": ["none"], "derivation": "0"}],
    "derivations": [{
        "name": "Of d_k",
        "lines": [{"plain": "x"}, {"plain": "y**2", "tex": "y^{2}", "relation": ">=", "rules": ["100 % of $x$"]}],
        "mistakes": [{"name": "one", "line": 2, "plain": "y"}, {"name": "two", "line": 2, "plain": "z"}],
    }],
}  # fmt: skip


def notebook_of(record: dict[str, Any]) -> str:
    """Return a notebook, as text, whose one cell shows a card."""
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: record, "text/plain": "stale"}}
    cell = {"cell_type": "code", "source": "1", "metadata": {}, "outputs": [output], "execution_count": 1}
    title = {"cell_type": "markdown", "source": "# A\n\nText.", "metadata": {}}
    language = {"name": "python", "pygments_lexer": "ipython3"}
    metadata = {"language_info": language}
    return json.dumps({"cells": [title, cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 4})


@pytest.mark.parametrize(
    ("builder", "file", "said"),
    [
        ("html", "a.html", ["A slip of d<sub>k</sub>", "<msub><mi>x</mi><mn>1</mn></msub>", 'id="claim-5.1-slip"',
                            "100 % of <math>", "<summary>Common mistakes, rejected</summary>"]),
        ("text", "a.txt", ["[amended] 5.1/slip (5.1 p1 s4): It is $x_1$ & the rest.", "What holds: H_k"]),
        ("latex", "a.tex", [r"\begin{bookcard}{amended}{}{5.1/slip}{", r"{A slip of d$_{\text{k}}$}",
                            r"\derivationline{\piece{\ge y^{2}}{}}{100 \% of \(x\)}",
                            r"\textbf{Grade:} missing hypothesis",
                            r"two: \longformula{\piece{z}{}}", r"It is \(x_1\) \& the rest.",
                            r"\label{\detokenize{a:claim-5.1-slip}}"]),
    ],
)  # fmt: skip
def test_each_builder_draws_from_the_record(tmp_path, builder, file, said):
    (tmp_path / "a.ipynb").write_text(notebook_of(RECORD), encoding="utf-8")
    (tmp_path / "conf.py").write_text(
        'extensions = ["myst_nb", "mathematics", "linewise.pages"]\nroot_doc = "a"\n'
        'html_math_renderer = "mathml"\nnb_execution_mode = "off"\n'
        'latex_documents = [("a", "a.tex", "", "", "manual")]\n'
        'latex_engine = "xelatex"\n',
        encoding="utf-8",
    )
    (tmp_path / "chapters").mkdir()
    out = tmp_path / "out"
    assert forked_sphinx.build("-q", "-b", builder, str(tmp_path), str(out), said=tmp_path / "said") == ""
    page = (tmp_path / "out" / file).read_text(encoding="utf-8")
    assert [words for words in said if words not in page] == [] and "stale" not in page


def test_places_are_spoken():
    spoken = conventions_of(ROOT).place
    assert spoken("5.1.4 p4 s3") == "Section 5.1.4, paragraph 4, sentence 3"
    assert spoken("article.4 p12 s1") == "Article, part 4, paragraph 12, sentence 1"
    assert spoken("5.5 title") == "Section 5.5, heading" and spoken("report.0 title") == "Report, abstract, heading"


def test_markdown_shows_a_claim_as_it_is_written():
    assert ledger_pages.markdown("2*a_b < 3 | $x_i*y_i$") == r"2\*a{sub}`b` \< 3 \| $x_i*y_i$"
    assert ledger_pages.markdown("two_names, d_k's e^-2") == r"two\_names, d{sub}`k`’s e{sup}`−2`"
    assert ledger_pages.markdown("[a](b) <i> `c` # costs 3 $") == r"\[a\](b) \<i\> \`c\` \# costs 3 \$"


CONFIGURATION = """
extensions = ["myst_parser", "mathematics", "linewise.pages", "pages.tidy_html"]
html_math_renderer = "mathml"
myst_enable_extensions = ["colon_fence", "dollarmath"]
root_doc = "a"
"""


def build(folder: Path, configuration: str = CONFIGURATION, **pages: str) -> tuple[str, str]:
    """Build pages with the book's extensions; return what page `a` became, and the warnings."""
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "conf.py").write_text(configuration, encoding="utf-8")
    said = forked_sphinx.build("-n", "-q", "-E", str(folder), str(folder / "out"), said=folder / "said")
    return (folder / "out" / "a.html").read_text(encoding="utf-8"), said


PAGE_A = "# A\n\nSee [(5.1.5)](#equation-5.1.5).\n\n```{toctree}\nb\n```\n"
PAGE_B = "# B\n\n$$\n\\begin{aligned} x &= y \\\\ &= z \\end{aligned} \\tag{5.1.5}\n$$\n"


def test_an_equation_is_found_from_another_page(tmp_path):
    html, warnings = build(tmp_path, a=PAGE_A, b=PAGE_B)
    assert warnings == ""
    assert html.count('href="b.html#equation-5.1.5"') == 1
    assert "(5.1.5)" in (tmp_path / "out" / "genindex.html").read_text(encoding="utf-8")
    page = (tmp_path / "out" / "b.html").read_text(encoding="utf-8")
    assert 'id="equation-5.1.5"' in page
    number = BeautifulSoup(page, "html.parser").select_one("#equation-5\\.1\\.5 > .eqno")
    assert number is not None and number.get_text() == "(5.1.5)"


def test_a_link_to_no_equation_is_reported(tmp_path):
    assert "equation-5.1.6" in build(tmp_path, a=PAGE_A.replace("5.1.5", "5.1.6"), b=PAGE_B)[1]


def test_a_number_used_twice_is_reported(tmp_path):
    warnings = build(tmp_path, a=PAGE_A + PAGE_B[4:], b=PAGE_B)[1]
    assert "b.md" in warnings and "duplicate label equation-5.1.5, other instance in" in warnings


def test_titles_of_tabs_have_no_delimiters(tmp_path):
    html, _ = build(tmp_path, a="# Why divide by $d_k$?\n")
    assert "<title>Why divide by d_k?" in html
    assert '<h1>Why divide by <span class="kept"><math><msub><mi>d</mi><mi>k</mi></msub></math>?</span>' in html


WORKS = """
@book{berry, author = {Berry, Ann}, title = {One}, year = {1941}, publisher = {P}}
@book{arora2024, author = {Arora, Bo}, title = {Two}, year = {2024}, publisher = {P}}
@book{arora2023, author = {Arora, Bo}, title = {Three}, year = {2023}, publisher = {P}}
@book{gone, author = {Gone, Cy}, title = {Nobody cites it}, year = {1999}, publisher = {P}}
"""
CITING = CONFIGURATION.replace("]", ', "sphinxcontrib.bibtex", "pages.chapter_references"]', 1) + (
    'bibtex_bibfiles = ["works.bib"]\nbibtex_default_style = "plain"\nbibtex_cite_id = "{key}"\n'
)
LISTED = "\n\n```{chapter-references}\n```\n"


def test_references_are_listed_once_by_author_and_cited_on_the_page(tmp_path):
    (tmp_path / "works.bib").write_text(WORKS, encoding="utf-8")
    everything = "# All\n\n```{bibliography}\n:all:\n```\n\n```{toctree}\nb\n```\n"
    pages = {"a": everything, "b": "# B\n\n{cite}`berry` {cite}`arora2024` {cite}`arora2023` {cite}`berry`" + LISTED}
    assert build(tmp_path, CITING, **pages)[1] == ""
    page = BeautifulSoup((tmp_path / "out" / "b.html").read_text(encoding="utf-8"), "html.parser")
    listed = [str(item["id"]) for item in page.select("ul.chapter-references > li")]
    assert listed == ["arora2023", "arora2024", "berry"]
    assert {str(a["href"]) for a in page.select(".body p a.internal")} == {"#arora2023", "#arora2024", "#berry"}


def test_references_of_a_page_that_cites_nothing_are_reported(tmp_path):
    (tmp_path / "works.bib").write_text(WORKS, encoding="utf-8")
    assert "this page cites nothing above" in build(tmp_path, CITING, a="# A" + LISTED)[1]


def test_pages_are_made_light_and_keep_what_they_use(tmp_path):
    """The theme itself loads 1.5 MB of FontAwesome's JavaScript into every page, and sheets and fonts of 0.7 MB."""
    theme = 'extensions = ["myst_parser"]\nroot_doc = "a"\nhtml_theme = "sphinx_book_theme"\n'
    for extension, scripts in (("", 1), ("extensions.append('pages.light_pages')\n", 0)):
        build(tmp_path, configuration=theme + extension, a="# A\n")
        for name in ("a.html", "search.html"):
            page = BeautifulSoup((tmp_path / "out" / name).read_text(encoding="utf-8"), "html.parser")
            assert len(page.select("script[src*=fontawesome]")) == scripts
        if extension:
            static = tmp_path / "out" / "_static"
            [css] = [p.read_text(encoding="utf-8") for p in static.glob("site-*.css")]
            assert ".bd-article" in css and ".fa-solid" in css and ".carousel" not in css
            used = {str(c) for icon in page.select("[class*=fa-]") for c in icon["class"] if str(c).startswith("fa-")}
            assert used and all(f".{name}" in css for name in used)
            assert any("PST" in p.read_text(encoding="utf-8") for p in static.glob("site-*.js")), "the theme's script"
            assert sum(p.stat().st_size for p in static.rglob("*.woff2")) < 20_000, "icons that no page has"
            first = (tmp_path / "out" / "a.html").read_text(encoding="utf-8")
            build(tmp_path, configuration=theme + extension, a="# A\n\nAgain.\n")
            again = (tmp_path / "out" / "a.html").read_text(encoding="utf-8")
            assert re.findall(r"site-\w+\.\w+", again) == re.findall(r"site-\w+\.\w+", first), "built upon a build"


# --- a small book, whose pages are made --------------------------------------------------------------

SOURCES = {
    "section": """
source: The section
shape: {"5.1": [4, 2]}
rows:
  - {at: 5.1 title, gist: "what it is about", none: heading}
  - {at: 5.1 p1 s1, gist: "a formula", equations: ["5.1.5"]}
  - {at: 5.1 p1 s2, gist: "said of ab_cd | all"}
  - {at: 5.1 p1 s3, gist: "a reason"}
  - {at: 5.1 p1 s4, gist: "a case"}
  - {at: 5.1 p2 s1, gist: "an opinion"}
  - {at: 5.1 p2 s2, gist: "the formula again", none: repetition, of: 5.1 p1 s1}
""",
    "article": """
source: The article
shape: {"article.1": [1]}
rows:
  - {at: article.1 title, gist: "an introduction", none: heading}
  - {at: article.1 p1 s1, gist: "a thing measured"}
""",
}
BOOK = """
sources:
  - {table: chapters/sources/section.yml}
  - {table: chapters/sources/article.yml, places: article, section: part}
grades:
  wrong conclusion: {heading: Wrong conclusions}
  missing hypothesis: {heading: Missing hypotheses}
  degenerate case only: {heading: Degenerate cases, brief: true}
"""
CLAIMS = """
"5.1.5": {title: "The $x$ formula", place: 5.1 p1 s1, reading: "It is $x_1$.", verdict: proved, scope: "for 2*ab_c < c"}
"5.1/slip": {title: A slip, place: 5.1 p1 s4, reading: "R-slip", verdict: amended, holds: "H-slip",
             grade: degenerate case only}
"5.1/gap": {title: A gap, place: 5.1 p1 s3, reading: "R-gap", verdict: amended, holds: "H-gap",
            grade: missing hypothesis}
"5.1/wrong": {title: A wrong one, place: 5.1 p1 s2; 5.1 p1 s3, reading: "R-wrong", verdict: refuted, holds: "H-wrong",
              grade: wrong conclusion}
"5.1/opinion": {title: An opinion, place: 5.1 p2 s1, reading: "R-opinion", verdict: not decided,
                reason: "a matter of taste"}
"article/fact": {title: A fact, place: article.1 p1 s1, reading: "R-fact", verdict: measured, outcome: contradicted}
"own/one": {title: Our own, place: beyond 5.1, reading: "R-own", verdict: confirmed}
"""
BROKEN = {
    "kind": "counterexample", "of": "the value", "observed": "2*exp(-3)*W_K", "where": "<n> = 2", "relation": "<=",
    "required": "1_0",
}  # fmt: skip
WHY = "The value is 2*exp(-3)*W_K at <n> = 2; the sentence requires at most 1_0."


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BeautifulSoup]:
    return make(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, BeautifulSoup]]:
    """The same book with a part of the ledger for one of its sources, and one for our own statements."""
    folder = tmp_path_factory.mktemp("divided")
    return folder / "out", make(folder, "ledger/section", "ledger/own")


def make(folder: Path, *parts: str) -> dict[str, BeautifulSoup]:
    """Build the book in a folder; the ledger has these parts."""
    (folder / "chapters" / "sources").mkdir(parents=True)
    (folder / "linewise.yml").write_text(BOOK, encoding="utf-8")
    for name, table in SOURCES.items():
        (folder / "chapters" / "sources" / f"{name}.yml").write_text(table, encoding="utf-8")
    (folder / "chapters" / "c.claims.yml").write_text(CLAIMS, encoding="utf-8")
    records = [
        {"data": {MIME: {"claim": key, **claim, "evidence": [BROKEN]}}}
        for key, claim in yaml.safe_load(CLAIMS).items()
        if claim["verdict"] != "not decided"
    ]
    shown = {"cell_type": "markdown", "source": r"$$ x \tag{5.1.5} $$", "metadata": {}}
    notebook = {"cells": [shown, {"cell_type": "code", "source": "", "metadata": {}, "outputs": records}]}
    (folder / "chapters" / "c.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (folder / "chapters" / "c.md").write_text("# The chapter\n\n$$ x \\tag{5.1.5} $$\n", encoding="utf-8")
    pages = {name: (ROOT / f"{name}.md").read_text(encoding="utf-8") for name in ("ledger", "errata", "coverage")}
    (folder / "ledger").mkdir()
    pages |= dict.fromkeys(parts, '# A part\n\n{% include "ledger.md" %}\n')
    listed = "\n".join(["chapters/c", *pages])
    _, warnings = build(folder, a=f"# A\n\n{{card}}`!5.1.5`\n\n```{{toctree}}\n{listed}\n```\n", **pages)
    assert [line for line in warnings.splitlines() if "WARNING" in line or "ERROR" in line] == []
    return {
        name: BeautifulSoup((folder / "out" / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        for name in ("a", *pages)
    }


def words(page: BeautifulSoup, selector: str) -> list[str]:
    return [" ".join(found.get_text(" ").split()) for found in page.select(selector)]


def test_ledger_is_made(made):
    page = made["ledger"]
    titles = ["The x formula", "A wrong one", "A gap", "A slip", "An opinion", "A fact", "Our own"]
    assert words(page, ".claim-entry .claim-link") == titles, "in the order of the source, our own at the end"
    assert words(page, "h2") == ["Section 5.1 ¶", "Article, part 1 ¶", "Our own statements ¶"]
    first, wrong, _, _, opinion, fact, _ = words(page, ".claim-entry")
    assert "Scope: for 2*ab_c < c" in first
    assert wrong.startswith("refuted wrong conclusion A wrong one 5.1/wrong") and "What holds: H-wrong" in wrong
    assert "Why not: a matter of taste" in opinion
    assert "measured contradicted A fact" in fact


def test_a_divided_ledger_has_lines_that_lead_to_its_parts(divided):
    out, pages = divided
    whole, part, own = pages["ledger"], pages["ledger/section"], pages["ledger/own"]
    lines = words(whole, ".claim-entry")
    assert lines[:2] == ["proved The x formula 5.1.5", "refuted wrong conclusion A wrong one 5.1/wrong"]
    assert "R-fact" in lines[5], "a source without a part"
    assert [str(a["href"]) for a in whole.select("a.claim-id")][::5] == [
        "ledger/section.html#ledger-5.1.5", "ledger/own.html#ledger-own-one",
    ]  # fmt: skip
    assert words(part, "h2") == ["Section 5.1 ¶"] and words(own, "h2") == ["Our own statements ¶"]
    assert "Scope: for 2*ab_c < c" in words(part, ".claim-entry")[0] and "R-own" in words(own, ".claim-entry")[0]
    assert (
        not part.select("form.claim-filter, a.claim-id") and len(whole.select("form.claim-filter[data-entries]")) == 1
    )
    opinion = pages["coverage"].select('.coverage-table a.claim-link[href*="ledger"]')
    assert [str(a["href"]) for a in opinion] == ["ledger/section.html#ledger-5.1-opinion"]
    assert str(part.select("a.claim-link")[-1]["href"]) == "../chapters/c.html", "nobody decides it"
    script = (out / "_static" / "ledger-entries.js").read_text(encoding="utf-8")
    packed = gzip.decompress(base64.b64decode(script.partition('"')[2].rpartition('"')[0])).decode()
    assert packed.count('class="claim-entry') == 6 and 'href="chapters/c.html#claim-5.1.5"' in packed


def test_an_entry_with_a_box_in_it_is_refused():
    with pytest.raises(ValueError, match="expected 1 entries without boxes in them, got 0"):
        ledger_pages.entries_of('<div class="claim-entry" id="a"><p>b</p><div>c</div></div>')


def test_verdicts_are_counted(made):
    for name in ("ledger", "coverage"):
        given = words(made[name], ".verdict-summary td:first-child")
        counts = dict(zip(given, words(made[name], ".verdict-summary td:last-child"), strict=True))
        assert counts == dict.fromkeys(conventions_of(ROOT).verdicts, "1") | {"amended": "2", "defined": "0"}


def test_errata_are_made_gravest_first(made):
    page = made["errata"]
    assert words(page, "h2") == ["Wrong conclusions ¶", "Missing hypotheses ¶", "Degenerate cases ¶"]
    wrong, gap = words(page, ".erratum")
    assert "Section 5.1, paragraph 1, sentence 2; Section 5.1, paragraph 1, sentence 3" in wrong
    assert f"The source says: R-wrong What holds: H-wrong Why: {WHY.replace('_K', ' K')}" in wrong
    assert "R-gap" in gap
    [short] = words(page, ".errata-short")
    assert "Section 5.1, paragraph 1, sentence 4: H-slip" in short and "R-slip" not in short
    assert [str(a["href"]) for a in page.select("article a.claim-link, .body a.claim-link")] == [
        "chapters/c.html#claim-5.1-wrong", "chapters/c.html#claim-5.1-gap", "chapters/c.html#claim-5.1-slip",
    ]  # fmt: skip


def test_coverage_is_made(made):
    page = made["coverage"]
    assert words(page, "details.coverage > summary") == [
        "Section 5.1: what it is about 6 sentences", "Article, part 1: an introduction 1 sentence",
    ]  # fmt: skip
    rows = [" | ".join(words(row, "td")) for row in page.select(".coverage-table tbody tr")]
    assert rows == [
        "p1 s1 | a formula (5.1.5) | proved",
        "p1 s2 | said of ab_cd | all | refuted",
        "p1 s3 | a reason | refuted amended",
        "p1 s4 | a case | amended",
        "p2 s1 | an opinion | not decided",
        "p2 s2 | the formula again | repetition of 5.1 p1 s1",
        "p1 s1 | a thing measured | measured",
    ]
    links = [str(a["href"]) for a in page.select(".coverage-table a.claim-link")]
    assert links[0] == "chapters/c.html#claim-5.1.5"
    assert "ledger.html#ledger-5.1-opinion" in links, "a claim that is not decided has no card; the ledger says why"
    assert [str(a["href"]) for a in page.select("section#all-equations p a")] == ["chapters/c.html#equation-5.1.5"]
    reasons = dict(zip(words(page, ".reasons td:first-child"), words(page, ".reasons td:last-child"), strict=True))
    assert reasons["heading"] == "2" and reasons["repetition"] == "1" and "notation" not in reasons


ALONG = """# Along

::::{paragraph} 5.1 p1 第一$x$
One. {mark}`5.1.5` Two. {mark}`5.1/wrong`

```{numbered} 5.1.5
```

:::{instead} 5.1/wrong
一句: it is three.
:::

:::{from-chapter} chapters/c fig-a
A line.
:::
::::

:::{paragraph} 5.1 p2
An opinion on $x$. {mark}`5.1/opinion`
:::

```{more} 5.1
```
"""
FIGURE = "```{figure} a.svg\n:name: fig-a\n:alt: A line.\n\nA line that rises.\n```\n"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'


def along(folder: Path, builder: str, text: str = ALONG) -> tuple[str, str]:
    """Build a page that follows a source, of a chapter with an equation and a figure; return it, and the warnings."""
    (folder / "chapters" / "sources").mkdir(parents=True)
    (folder / "linewise.yml").write_text(BOOK, encoding="utf-8")
    for name, table in SOURCES.items():
        (folder / "chapters" / "sources" / f"{name}.yml").write_text(table, encoding="utf-8")
    (folder / "chapters" / "c.claims.yml").write_text(CLAIMS, encoding="utf-8")
    (folder / "chapters" / "a.svg").write_text(SVG, encoding="utf-8")
    equation = "# The chapter\n\nWords. $$ x \\tag{5.1.5} $$\n\n"
    (folder / "chapters" / "c.md").write_text(equation + FIGURE, encoding="utf-8")
    described = {"mystnb": {"figure": {"name": "fig-a"}, "image": {"alt": "A line."}}}
    drawn = {"cell_type": "code", "source": "", "metadata": described, "outputs": [{"data": {"image/svg+xml": SVG}}]}
    cells = [{"cell_type": "markdown", "source": equation, "metadata": {}}, drawn]
    (folder / "chapters" / "c.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    (folder / "along.md").write_text(text, encoding="utf-8")
    (folder / "a.md").write_text("# A\n\n```{toctree}\nalong\nchapters/c\n```\n", encoding="utf-8")
    more = "\nnumfig = True\nlatex_documents = [('a', 'a.tex', '', '', 'manual')]\nlatex_engine = 'xelatex'\n"
    (folder / "conf.py").write_text(CONFIGURATION + more, encoding="utf-8")
    out, said = folder / "out", folder / "said"
    warnings = forked_sphinx.build("-q", "-E", "-b", builder, str(folder), str(out), said=said)
    return (out / {"latex": "a.tex", "html": "along.html", "epub": "along.xhtml"}[builder]).read_text("utf-8"), warnings


def test_a_page_to_read_along_is_made(tmp_path):
    html, warnings = along(tmp_path, "html")
    assert warnings == ""
    page = BeautifulSoup(html, "html.parser")
    assert words(page, "section.paragraph > h2") == ["1 · 第一 x ¶", "2 ¶"]
    first, second = page.select("section.paragraph")
    assert [first["id"], second["id"]] == ["p-5-1-1", "p-5-1-2"]
    assert [str(span["id"]) for span in page.select("section.paragraph > span")] == ["p-5.1-1", "p-5.1-2"]
    marks = [(a.get_text(), str(a["href"]), a["class"][-1]) for a in page.select("a.verdict-mark")]
    assert marks == [
        ("5.1.5: proved", "chapters/c.html#claim-5.1.5", "verdict-proved"),
        ("5.1/wrong: refuted", "chapters/c.html#claim-5.1-wrong", "verdict-refuted"),
        ("5.1/opinion: not decided", "chapters/c.html", "verdict-not-decided"),
    ]
    assert [str(kept).partition("<a")[0] for kept in page.select(".with-mark")] == [
        '<span class="with-mark">One.\u00a0',
        '<span class="with-mark">Two.\u00a0',
        '<span class="with-mark"><span class="kept"><math><mi>x</mi></math>.</span>\u00a0',
    ], "a mark stays beside the last word of its sentence, or its last formula"
    assert words(page, ".holds-instead") == ["refuted wrong conclusion 一句: it is three."]
    assert words(page, ".eqno") == ["(5.1.5)"] and 'id="equation-5.1.5"' not in html
    assert words(page, "figure figcaption") == ["A line. ( Fig. 1 )"] and page.select_one('img[alt="A line."]')
    assert words(page, ".read-more") == ["More in The chapter (1 min)"]


def test_on_paper_a_mark_is_a_word_of_its_own_class(tmp_path):
    tex, warnings = along(tmp_path, "latex")
    assert "ERROR" not in warnings
    mark = r"{\hyperref[\detokenize{chapters/c:claim-5.1.5}]{\sphinxcrossref{\DUrole{mark,verdict-proved}{"
    assert f"One.\u00a0{mark}" in tex
    assert r"\begin{sphinxuseclass}{holds-instead}" in tex
    styles = (EXTENSIONS / "paper" / "assets" / "print" / "attention-checked.sty").read_text(encoding="utf-8")
    assert r"DUrolemark,verdict-#1" in styles and "sphinxclassholds-instead" in styles


def test_in_the_ebook_a_mark_is_the_word(tmp_path):
    html, _ = along(tmp_path, "epub")
    assert "[refuted]" in BeautifulSoup(html, "html.parser").get_text()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{mark}`5.1.5`", "{mark}`5.1.6`", "mark: no claim '5.1.6'"),
        ("{paragraph} 5.1 p2", "{paragraph} 5.1 p3", "paragraph: no paragraph '5.1 p3' in a source"),
        ("{numbered} 5.1.5", "{numbered} 5.1.6", "numbered: no chapter shows the equation (5.1.6)"),
        ("{instead} 5.1/wrong", "{instead} 5.1.5", "instead: no amended or refuted claim '5.1.5'"),
        ("一句: it is three.", "", "instead: expected words on what holds instead of 5.1/wrong"),
        ("c fig-a", "c fig-b", "from-chapter: no figure 'fig-b' in 'chapters/c'"),
        ("{more} 5.1", "{more} 5.2", "more: no claim of section '5.2'"),
    ],
)
def test_what_a_page_to_read_along_cannot_show_is_an_error(tmp_path, old, new, says):
    assert old in ALONG
    assert says in along(tmp_path, "html", ALONG.replace(old, new))[1]


LEXICON = """
few: {original: [几个], words: [few, a few], reading: "It is $5$.", why: A hand., weaker: Ten.,
      changes: {5.1/few: refuted}, departs: {5.1/few: "ten < n"}}
"""
FEW = '"5.1/few": {title: A few, place: beyond 5.1, words: [few], reading: r, verdict: not decided, reason: r}'


def test_the_lexicon_is_shown_and_linked(tmp_path):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "linewise.yml").write_text("lexicon: {table: few.yml, page: words}", encoding="utf-8")
    (tmp_path / "few.yml").write_text(LEXICON, encoding="utf-8")
    (tmp_path / "chapters" / "c.claims.yml").write_text(FEW, encoding="utf-8")
    pages = {"words": "# W\n\n" + '{% include "lexicon.md" %}', "chapters/c": "# C\n"}
    listed = "# A\n\n{word}`few` {word}`fwe`\n\n```{toctree}\n" + "\n".join(pages) + "\n```\n"
    html, warnings = build(tmp_path, CONFIGURATION + "\nlinewise_filled_pages = ['words']\n", a=listed, **pages)
    assert "word: no entry 'fwe' of the lexicon; there are few" in warnings and warnings.count("ERROR") == 1
    [entry] = words(
        BeautifulSoup((tmp_path / "out" / "words.html").read_text(encoding="utf-8"), "html.parser"), "#word-few"
    )
    assert entry.startswith("few, a few (几个) It is") and "With it: not decided 5.1/few: refuted" in entry
    assert "Read otherwise: not decided 5.1/few: ten < n In 1 claim not decided A few" in entry
    assert 'href="words.html#word-few"' in html


def test_unknown_cards_and_verdicts_are_reported(tmp_path):
    (tmp_path / "chapters").mkdir()
    _, warnings = build(tmp_path, a="# A\n\n{verdict}`perhaps` {card}`9.9.9`\n")
    assert "verdict: expected one of" in warnings and "card: no claim '9.9.9'" in warnings


def test_a_card_escapes_what_people_write():
    claim = Claim("x/y", "<b>&", "beyond x", "a < b, so <i>", "measured", outcome="supported")
    seen = observation(Estimate(1.0, 0.1), ">", 0, null=("none", Estimate(0.0, 0.1)), units="<u>", of="<em>")
    html = claim.measure(seen).html()
    assert not [tag for tag in ("<b>", "<i>", "<u>", "<em>") if tag in html] and "&lt;b&gt;&amp;" in html
    for wrong in ({"id": 'x" onclick="y'}, {"id": "<x>"}, {"outcome": "<b>"}):
        with pytest.raises(LedgerError):
            replace(claim, **wrong)
