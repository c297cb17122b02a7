"""The built site keeps its promises; and each check rejects a page that does not."""

from __future__ import annotations

import base64
import gzip
import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import site_checks as check
from bs4 import BeautifulSoup, Tag
from conftest import ROOT
from site_checks import GENERATED, parse, parse_frame

from linewise.ledger import collate
from linewise.ledger.coverage import Source, read_sources


@cache
def read(path: Path) -> BeautifulSoup:
    return parse_frame(path.read_text(encoding="utf-8"))


@cache
def by_id(path: Path) -> dict[str, Tag]:
    return {str(element["id"]): element for element in read(path).find_all(id=True)}


@cache
def sources() -> list[Source]:
    return read_sources(ROOT)


@cache
def ids(path: Path) -> Counter[str]:
    return check.ids_of(read(path))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, BeautifulSoup]:
    """The pages in English; `test_edition_pages` compares the others with them."""
    found = {p.relative_to(site): p for p in sorted(site.rglob("*.html")) if not {"_static", "zh"} & set(p.parts)}
    return {name.as_posix(): read(path) for name, path in found.items()}


@pytest.fixture(scope="module")
def written(pages: dict[str, BeautifulSoup]) -> dict[str, BeautifulSoup]:
    return {name: page for name, page in pages.items() if name not in GENERATED}


def none(problems: dict[str, list[str]]) -> None:
    found = [f"{name}: {problem}" for name, of_page in problems.items() for problem in of_page]
    assert not found, "\n".join(found)


def test_every_chapter_has_a_page(written, site):
    chapters = [p.relative_to(ROOT).with_suffix(".html").as_posix() for p in ROOT.glob("chapters/**/*.ipynb")]
    assert set(chapters) <= set(written), "a notebook that _toc.yml does not name"
    assert {"intro.html", "ledger.html", "errata.html", "coverage.html", "references.html"} <= set(written)


def test_nothing_is_fetched_from_elsewhere(pages, site):
    none({name: check.external_fetches(page) for name, page in pages.items()})
    none({p.name: check.external_in_css(p.read_text(encoding="utf-8")) for p in site.rglob("*.css")})


def test_no_setting_fetches_from_elsewhere(config):
    assert check.external_settings(config) == []


def test_no_picture_of_the_site_fetches_from_elsewhere(site):
    pictures = [*site.rglob("*.svg"), *ROOT.glob("_static/*.svg")]
    contents = {p.read_text(encoding="utf-8"): p.name for p in pictures}  # a figure is in the gallery once more
    assert contents
    none({name: check.external_in_svg(content) for content, name in contents.items()})


def test_links_and_anchors_resolve(pages, site):
    none({name: check.broken_links(name, page, site, ids) for name, page in pages.items()})


def test_no_id_occurs_twice(written):
    none({name: check.repeated_ids(page) for name, page in written.items()})


def test_images_say_what_one_sees(written):
    none({name: check.poor_alt_texts(page) for name, page in written.items()})


def test_every_page_describes_itself(written):
    none({name: check.poor_descriptions(page) for name, page in written.items()})


def test_figures_can_be_enlarged(written):
    none({name: check.small_figures(page) for name, page in written.items()})


def in_their_chapters(pages):
    """Pages without those to read along, which show pictures and equations of chapters a second time."""
    return {name: page for name, page in pages.items() if not name.startswith("read/")}


def test_figures_have_captions_and_names(written):
    none({name: check.uncaptioned_figures(page) for name, page in in_their_chapters(written).items()})


def test_equations_have_anchors_and_index_entries(written, site):
    index, written = read(site / "genindex.html"), in_their_chapters(written)
    none({name: check.unanchored_equations(name, page, index) for name, page in written.items()})
    numbers = [number for page in written.values() for number in check.tagged_equations(page)]
    assert numbers, "no page has a numbered equation"
    assert not [n for n, count in Counter(numbers).items() if count > 1], "a number that occurs twice"
    coverage = {a.get_text(): str(a["href"]) for a in read(site / "coverage.html").select("article a[href*=equation-]")}
    displayed = [n for source in sources() for row in source.rows for n in row.equations]
    assert displayed
    assert not [n for n in displayed if not coverage.get(f"({n})", "").endswith(f"#equation-{n}")]


def test_buttons_lead_to_this_repository(written, config):
    repository, launch = config["repository"], config["launch_buttons"]
    none({name: check.wrong_buttons(name, page, repository, launch) for name, page in written.items()})


def test_no_link_to_the_defaults_of_jupyter_book(pages):
    links = [str(a["href"]) for page in pages.values() for a in page.find_all("a", href=True)]
    hosts = {urlsplit(link).path.lower() for link in links if urlsplit(link).netloc == "github.com"}
    assert not [path for path in hosts if path.startswith("/executablebooks")]


def test_frame_of_every_page(written, config):
    none({name: check.poor_frame(page, config["title"], config["author"]) for name, page in written.items()})


def home(row) -> str:
    """The page that says all of a claim: the part of the ledger for its source."""
    [part] = [s.page for s in sources() if row.claim.section in s.shape] if not row.claim.is_own else ["own"]
    return f"ledger/{part}.html"


def test_the_ledger_has_a_line_for_each_claim_and_its_parts_have_all(site, written):
    ledger, script = read(site / "ledger.html"), (site / "_static" / "ledger-entries.js").read_text(encoding="utf-8")
    assert len(ledger.find_all(True)) < 6_000 and len(str(ledger)) < 400_000
    packed = gzip.decompress(base64.b64decode(script.partition('"')[2].rpartition('"')[0])).decode()
    entries = {entry["id"]: entry for entry in parse(packed).select(".claim-entry")}
    rows = [row for row in collate(ROOT) if f"{row.page}.html" in written]
    assert len(rows) == len(entries)
    for row in rows:
        name = row.anchor.replace("claim-", "ledger-", 1)
        line, full = by_id(site / "ledger.html")[name], by_id(site / home(row))[name]
        assert line.select_one("a.claim-id")["href"] == f"{home(row)}#{name}"
        assert len(line.find_all("p")) == 1 < len(full.find_all("p")) == len(entries[name].find_all("p"))
        assert all((site / str(a["href"]).partition("#")[0]).is_file() for a in entries[name].select("a[href]"))


def test_ledger_errata_and_coverage_link_to_every_card(site, written):
    rows = [row for row in collate(ROOT) if f"{row.page}.html" in written]
    assert rows, "the book has no claim"
    wrong = [row for row in rows if row.claim.grade]
    of_sources = [row for row in rows if not row.claim.is_own]
    for page, expected in (("ledger.html", rows), ("errata.html", wrong), ("coverage.html", of_sources)):
        # A claim that is not decided has no card: the ledger says why, and leads to its chapter.
        in_ledger = page == "ledger.html"
        undecided = {r.claim.id: f"{home(r)}#{r.anchor.replace('claim-', 'ledger-', 1)}" for r in expected}
        addresses = [
            f"{row.page}.html#{row.anchor}"
            if row.claim.verdict != "not decided"
            else (f"{row.page}.html" if in_ledger else undecided[row.claim.id])
            for row in expected
        ]
        none({page: check.unlinked_claims(read(site / page), addresses)})


def test_every_card_leads_to_the_ledger_and_to_its_sentence(site, written):
    rows = [row for row in collate(ROOT) if f"{row.page}.html" in written and row.claim.verdict != "not decided"]
    for row in rows:
        card = by_id(site / f"{row.page}.html")[row.anchor]
        links = [link["href"].replace("../", "") for link in card.select(".claim-links a")]
        assert links[0] == f"{home(row)}#" + row.anchor.replace("claim-", "ledger-", 1)
        assert (len(links) == 1) == row.claim.is_own
        assert row.claim.is_own or links[1].startswith("coverage.html#coverage-")


def test_the_head_of_a_page_says_each_thing_once(pages, site):
    for name, page in pages.items():
        assert len(page.find_all("meta", attrs={"name": "viewport"})) <= 1, name
        assert (site / name).read_text(encoding="utf-8").count("var togglebuttonSelector") <= 1, name


def test_the_link_of_a_solution_begins_with_its_first_word(written):
    links = [a for page in written.values() for a in page.select("div.solution > p.admonition-title > a")]
    assert links and not [a for a in links if a.get_text() != a.get_text().strip()]


def test_long_names_in_the_contents_of_a_page_break_behind_their_dots(site):
    links = read(site / "reference" / "api" / "linear_cost.html").select(".bd-toc-nav a")
    names = [a for a in links if re.fullmatch(r"[\w.]+", a.get_text()) and "." in a.get_text()]
    assert names and all(len(a.select("wbr")) >= a.get_text().count(".") for a in names)


def test_the_glossary_has_its_letters_beside_it(site):
    letters = [a.get_text() for a in read(site / "reference" / "glossary.html").select(".bd-toc-nav a")]
    pinyin, *letters, quoted = letters
    assert (pinyin, quoted) == ("Chinese names, by pinyin", "Quoted words")
    assert sorted(letters) == letters and {"A", "Z"} < set(letters) and all(len(letter) == 1 for letter in letters)


def test_a_page_asks_early_for_the_font_of_formulas_only_if_it_has_some(pages):
    for name, page in pages.items():
        asked = bool(page.select("link[rel=preload][href$='book-math.woff2']"))
        assert asked == bool(page.select("main math")) or not page.select("link[rel=preload]"), name


def test_coverage_has_a_row_for_every_sentence(site):
    rows = [row for source in sources() for row in source.rows if row.none != "heading"]
    assert len(read(site / "coverage.html").select(".coverage-table tbody tr")) == len(rows) > 0


def test_build_suppresses_nothing(config):
    sphinx = config["sphinx"]["config"]
    assert sphinx["suppress_warnings"] == []
    assert not [key for key in sphinx if key.startswith("nitpick_ignore")]
    assert config["execute"]["execute_notebooks"] == "off"
    assert config["only_build_toc_files"] is True


# --- each check rejects what it must reject ----------------------------------------------------

OUTSIDE = "https://cdn.example/x"


@pytest.mark.parametrize(
    "html",
    [
        f'<script src="{OUTSIDE}.js"></script>',
        '<script src="//cdn.example/x.js"></script>',
        f'<link rel="stylesheet" href="{OUTSIDE}.css">',
        f'<link rel="preconnect" href="{OUTSIDE}">',
        f'<img src="{OUTSIDE}.png">',
        f'<img src="a.png" srcset="a.png 1x, {OUTSIDE}.png 2x">',
        f'<picture><source srcset="{OUTSIDE}.png"></picture>',
        f'<iframe src="{OUTSIDE}"></iframe>',
        f"<style>@import '{OUTSIDE}.css';</style>",
        f'<p style="background: url({OUTSIDE}.png)">x</p>',
        f'<script>const THEBE_JS_URL = "{OUTSIDE}.js"</script>',
        f'<meta http-equiv="Refresh" content="0; url={OUTSIDE}">',
    ],
)
def test_external_fetches_rejects(html):
    assert check.external_fetches(parse(html))


@pytest.mark.parametrize("html", [f'<a href="{OUTSIDE}">x</a>', '<img src="data:image/png;base64,AA">'])
def test_external_fetches_accepts(html):
    assert not check.external_fetches(parse(html))


@pytest.mark.parametrize("css", [f"a{{b:url({OUTSIDE})}}", 'a{b:url("//h/x")}', f'@import "{OUTSIDE}";'])
def test_external_in_css_rejects(css):
    assert check.external_in_css(css)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("html_js_files", [f"{OUTSIDE}.js"]),
        ("html_css_files", ["a.css", f"{OUTSIDE}.css"]),
        ("html_js_files", [[f"{OUTSIDE}.js", {"defer": "defer"}]]),
        ("mathjax_path", "//cdn.example/mathjax.js"),
        ("html_logo", f"{OUTSIDE}.svg"),
    ],
)
def test_external_settings_rejects_a_setting_of_sphinx(config, setting, value):
    spoilt = config | {"sphinx": config["sphinx"] | {"config": config["sphinx"]["config"] | {setting: value}}}
    (found,) = check.external_settings(spoilt)
    assert found.startswith(f"sphinx.config.{setting}: ")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("extra_footer", f'<p>a</p><script src="{OUTSIDE}.js"></script>'),
        ("comments", {"hypothesis": True}),
        ("comments", {"utterances": {"repo": "a/b"}}),
        ("google_analytics_id", "UA-1"),
        ("favicon", f"{OUTSIDE}.svg"),
    ],
)
def test_external_settings_rejects_a_setting_of_the_book(config, setting, value):
    found = check.external_settings(config | {"html": config["html"] | {setting: value}})
    assert found
    assert all(fault.startswith(f"html.{setting}") for fault in found)


@pytest.mark.parametrize(
    "content",
    [
        f'<image xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="{OUTSIDE}.png"/>',
        f'<image href="{OUTSIDE}.png"/>',
        f'<use href="{OUTSIDE}.svg#a"/>',
        f"<style>@import '{OUTSIDE}.css';</style>",
        f'<rect style="fill: url({OUTSIDE}#b)"/>',
        f'<script src="{OUTSIDE}.js"/>',
        f'<?xml-stylesheet href="{OUTSIDE}.css"?>',
    ],
)
def test_external_in_svg_rejects(content):
    assert check.external_in_svg(f'<svg xmlns="http://www.w3.org/2000/svg">{content}</svg>')
    assert not check.external_in_svg('<svg xmlns="http://www.w3.org/2000/svg"><use href="#a"/></svg>')


def test_external_in_css_accepts_data_and_comments():
    svg = "url(\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E\")"
    assert not check.external_in_css(f"/* url(https://a.b/c) */ a{{b:{svg}; c:url(../d.png)}}")


@pytest.mark.parametrize("href", ["nowhere.html", "there.html#claim-9.9.9", "#gone", "_images/none.png"])
def test_broken_links_rejects(href, tmp_path):
    (tmp_path / "there.html").write_text('<p id="claim-5.1.5">x</p>')
    (tmp_path / "here.html").write_text("")
    page = parse(f'<a href="{href}">x</a><a href="there.html#claim-5.1.5">good</a><a href="https://a.b">out</a>')
    assert len(check.broken_links("here.html", page, tmp_path, lambda p: check.ids_of(parse(p.read_text())))) == 1


def test_repeated_ids_rejects():
    assert check.repeated_ids(parse('<p id="a"></p><p id="a"></p><p id="b"></p>')) == ["a"]


def in_article(html: str) -> BeautifulSoup:
    return parse(f'<article class="bd-article">{html}</article>')


GOOD_ALT = "A line that rises from zero to six over fifty steps."


@pytest.mark.parametrize("alt", ["", "fig-entropy-against-width-of-the-softmax-row", "../_images/a1b2.png", "A plot."])
def test_poor_alt_texts_rejects(alt):
    assert check.poor_alt_texts(in_article(f'<img src="a.png" alt="{alt}">'))
    assert not check.poor_alt_texts(in_article(f'<img src="a.png" alt="{GOOD_ALT}">'))


@pytest.mark.parametrize(
    "html",
    [
        "<img src='a.png'>",
        "<figure id='fig-a'><img src='a.png'></figure>",
        "<figure id='fig-a'><figcaption><span class='caption-text'></span></figcaption></figure>",
        "<figure id='id7'><figcaption><span class='caption-text'>A walk of fifty steps.</span></figcaption></figure>",
    ],
)
def test_uncaptioned_figures_rejects(html):
    assert check.uncaptioned_figures(in_article(html))


def test_unanchored_equations_rejects():
    index = parse('<a href="a.html#equation-5.1.5">(5.1.5)</a>')
    good = in_article('<div class="math" id="equation-5.1.5"><span class="eqno">(5.1.5)</span></div>')
    assert not check.unanchored_equations("a.html", good, index)
    assert check.unanchored_equations("a.html", good, parse("")) == [
        "(5.1.5): no index entry that leads to a.html#equation-5.1.5"
    ]
    assert (
        len(
            check.unanchored_equations(
                "a.html", in_article('<div class="math"><span class="eqno">(5.1.6)</span></div>'), index
            )
        )
        == 2
    )


def test_wrong_buttons_rejects():
    repository = {"url": "https://github.com/me/book", "branch": "main"}
    launch = {"binderhub_url": "https://mybinder.org"}

    def page(owner: str) -> BeautifulSoup:
        hrefs = [
            f"https://github.com/{owner}", f"https://github.com/{owner}/issues/new?title=x",
            f"https://github.com/{owner}/edit/main/c/x.ipynb", f"https://mybinder.org/v2/gh/{owner}/main?urlpath=lab/tree/c/x.ipynb",
        ]  # fmt: skip
        links = "".join(f'<a href="{href}"></a>' for href in hrefs)
        source = '<a class="btn-download-source-button" href="../_sources/c/x.ipynb"></a>'
        return parse(f'<div class="article-header-buttons">{links}{source}</div>')

    assert not check.wrong_buttons("c/x.html", page("me/book"), repository, launch)
    assert len(check.wrong_buttons("c/x.html", page("executablebooks/jupyter-book"), repository, launch)) >= 4
    colab = page("me/book").new_tag("a", href="https://colab.research.google.com/github/me/book/blob/main/c/x.ipynb")
    buttons = page("me/book")
    buttons.div.append(colab)
    assert check.wrong_buttons("c/x.html", buttons, repository, launch) == [f"a button leads to {colab['href']}"]


def test_poor_frame_rejects():
    assert len(check.poor_frame(parse("<title>My Jupyter Book</title>"), "Attention, Checked", "The authors")) == 6


def test_unlinked_claims_rejects():
    page = in_article('<a class="claim-link" href="a.html#claim-5.1.5">The variance</a>')
    assert not check.unlinked_claims(page, ["a.html#claim-5.1.5"])
    assert check.unlinked_claims(page, ["a.html#claim-5.1.6"])


@pytest.mark.parametrize(
    "said", ["", "Short.", r"The rows of \\(A\\) are distributions, and this makes it a stochastic matrix."]
)
def test_poor_descriptions_rejects(said):
    head = f'<meta name="description" content="{said}">' if said else ""
    assert check.poor_descriptions(check.parse(f"<html><head>{head}</head></html>"))


def test_small_figures_rejects():
    good = '<figure><a href="a.svg"><img src="a.svg"></a></figure>'
    assert not check.small_figures(in_article(good))
    assert check.small_figures(in_article(good.replace("svg", "png"))) == ["a.png: not a vector graphic"]
    assert check.small_figures(in_article('<figure><img src="a.svg"></figure>')) == ["a.svg: no link to it"]
