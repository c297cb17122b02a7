"""The gallery: each figure is there with its files and a program that draws it; and the sheet of formulas."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import axe_checks
import browser_checks
import pytest
from bs4 import BeautifulSoup
from conftest import ROOT
from playwright.sync_api import Browser, Page
from site_checks import parse

import figure_models
import figure_scripts
import publish
import stamps
from linewise.ledger.coverage import read_sources

sys.path.insert(0, str(ROOT / "_ext"))

from gallery import formulas
from gallery.figures import OTHER_MODELS

#: What is run here, in a few seconds; ``tools/figure_scripts.py --check`` runs all.
SAMPLE = ("fig_cosine_density", "fig_linear_sparsity", "fig_softmax_trained")


@pytest.fixture(scope="session")
def figures() -> dict[str, figure_scripts.Figure]:
    """The figures of the chapters, each with its program."""
    return {figure.stem: figure for figure in figure_scripts.read(stamps.notebooks([stamps.ROOT / "chapters"]))}


@pytest.fixture(scope="session")
def drawn() -> dict[str, str]:
    """The SVG of every figure of the chapters, as its notebook stores it."""
    return publish.collect(stamps.notebooks([stamps.ROOT / "chapters"]))


# --- the programs ------------------------------------------------------------------------------


def undefined(script: str) -> set[str]:
    """Return the names that a program reads and that nothing above, or in a function's case anywhere, binds."""
    found = figure_scripts.statements([script])
    anywhere = {name for statement in found for name in statement.defines}
    missing: set[str] = set()
    bound: set[str] = set()
    for statement in found:
        late = hasattr(statement.node, "name") or "lambda" in statement.text
        missing |= statement.uses - (anywhere if late else bound)
        bound |= statement.defines
    return missing - {"__name__"}


def test_every_program_has_what_its_lines_name(figures):
    assert len(figures) > 100
    assert {stem: undefined(f.script) for stem, f in figures.items() if undefined(f.script)} == {}


def test_a_program_without_a_definition_is_noticed(figures):
    script = figures["fig_linear_sparsity"].script
    assert undefined(script.replace("import numpy as np", "")) == {"np"}


@pytest.mark.parametrize("stem", SAMPLE)
def test_a_program_draws_what_the_notebook_drew(figures, drawn, stem):
    assert figure_scripts.differences(figures[stem], drawn[stem]) == ""


def test_a_program_that_draws_another_figure_is_noticed(figures, drawn):
    figure, svg = figures[SAMPLE[0]], drawn[SAMPLE[0]]
    other = replace(figure, script=figure.script.replace("figures.show", "figure.axes[0].set_xlim(0, 1)\nfigures.show"))
    assert other.script != figure.script
    assert "drew another fig_cosine_density.svg" in figure_scripts.differences(other, svg)
    svg_alone = replace(figure, script=f"open('{figure.stem}.svg', 'w').close()\n")
    assert figure_scripts.differences(svg_alone, svg) == "fig_cosine_density: drew no fig_cosine_density.png"
    broken = replace(figure, script="import nothing_of_this_name\n")
    assert "nothing_of_this_name" in figure_scripts.differences(broken, svg)


CELLS = [
    "import numpy as np\nfrom attnmath import figures, rank",
    "rng = np.random.default_rng(1)\nx = rng.normal(size=3)",
    "noise = rng.normal(size=3)\nprint(noise)",
    "def doubled(v):\n    return factor * v\n\nfactor = 2",
    "rows = []\nfor k in range(3):\n    rows.append(k)\nclaims['a'].confirm(rows, x)",
    "y = doubled(rng.normal(size=3))",
    "figure, ax = draw()\nfigures.curves(x, {'y': y, 'rows': rows}, ax=ax)\nfigures.show(figure)",
]


def kept(cells: list[str]) -> str:
    return figure_scripts.script(figure_scripts.statements(cells), len(cells) - 1, "fig_a", '"A."')


def test_a_program_holds_what_the_cell_needs_and_no_more():
    script = kept(CELLS)
    assert "noise = rng.normal(size=3)" in script, "a draw that is left out changes all later ones"
    assert "rows.append(k)" in script
    assert "factor = 2" in script, "a function reads it when it is called"
    assert "from attnmath import figures\n" in script
    for needless in ("claims", "print", "rank"):
        assert needless not in script


def test_a_cell_that_does_not_show_its_figure_is_rejected():
    with pytest.raises(ValueError, match=r"fig_a: expected a cell that ends in figures.show\(figure\)"):
        kept([*CELLS[:-1], "figure = draw()"])


# --- another model -----------------------------------------------------------------------------

#: What a program imports from other modules than those of the heads where it shows what was measured on trained ones.
_TABLES = {"load_sinks", "load_locality", "public_implementations"}


def of_trained_heads(script: str) -> bool:
    """Return whether a program shows trained heads; the head of four tokens is not trained."""
    nodes = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.ImportFrom)]
    names = {(str(node.module), alias.name) for node in nodes for alias in node.names}
    names.discard(("attnlab.heads.example", "four_tokens"))
    if not re.search(r"example\.(trained_head|LAYER)", script):
        names.discard(("attnlab.heads", "example"))
    return any(module.startswith("attnlab.heads") or name in _TABLES for module, name in names)


def undecided(figures: dict[str, figure_scripts.Figure]) -> set[str]:
    """Return the figures of trained heads without an entry in the table, and the entries without such a figure."""
    there = {figure.name for figure in figures.values() if of_trained_heads(figure.script)}
    return there ^ {figure.name for figure in figures.values() if figure.choice}


def test_every_figure_of_trained_heads_offers_a_choice_or_says_why_not(figures):
    assert undecided(figures) == set()
    assert set(figure_models.choices()) <= {figure.name for figure in figures.values()}
    lost = figures["fig_attention_norms"]
    assert undecided(figures | {lost.stem: replace(lost, choice=None)}) == {lost.name}
    added = figures["fig_cosine_density"]
    assert undecided(figures | {added.stem: replace(added, choice="no head")}) == {added.name}


def test_one_line_of_a_program_decides_of_which_model_it_is(figures):
    for figure in (figure for figure in figures.values() if figure.others):
        lines = figure.script.splitlines()
        for other in figure.others.values():
            changed = [pair for pair in zip(lines, other.splitlines(), strict=True) if pair[0] != pair[1]]
            assert len(changed) == 1, figure.stem
            assert changed[0][0].startswith(f'MODEL = "{figure.choice.book}"  # or "')


def test_a_change_of_a_text_that_is_not_there_is_noticed(monkeypatch):
    entry = figure_models.Choice("", "head", [("softmax(scores)", "softmax(masked)")])
    monkeypatch.setattr(figure_models, "choices", lambda: {"fig-a": entry})
    assert figure_models.changed("fig-a", ["import a\n\nplt.style.use('b')", "softmax(scores)"])[1] == "softmax(masked)"
    with pytest.raises(ValueError, match="fig-a: .* is in no cell"):
        figure_models.changed("fig-a", ["plt.style.use('b')"])


@pytest.mark.parametrize("entry", [{"heads": "tail"}, {"book": "decoder"}, {"not": {"encoder": "no"}},
                                   {"seen": {"encoder": "bars."}}])  # fmt: skip
def test_an_entry_that_offers_nothing_known_is_rejected(entry):
    with pytest.raises(ValueError, match="fig-a: "):
        figure_models.read("fig-a", {"shows": "", "heads": "head", "edits": []} | entry)


def test_the_caption_of_another_model_says_of_which_it_is(figures):
    """It has no number of the book's model, and no finding."""
    for figure in (figure for figure in figures.values() if figure.others):
        for model in figure.choice.others:
            caption = figure_models.caption(figure.choice, model)
            assert re.search(rf"The (model|head) is (head \d+ of layer \d+ of )?the {model}\b", caption), caption
            assert f"was found with the {figure.choice.book}." in caption
            assert not re.search(r"\b(72|304)\b", caption) or model == "encoder", caption


def test_the_alternative_text_of_another_model_names_it(figures):
    """It has no number of the book's model, which the picture does not show."""
    for figure in (figure for figure in figures.values() if figure.others):
        for model in figure.choice.others:
            alt = figure_models.alternative(figure.choice, model)
            assert f"ith the {model}" in alt and alt.endswith("."), alt
            assert not re.search(r"\b(72|304|encoder)\b", alt) or model == "encoder", alt


@pytest.fixture(scope="module")
def of_others(shown) -> dict[str, tuple[figure_scripts.Figure, str]]:
    """The pictures of other models by the stems of their files: the figure, and the program that draws it."""
    return {stem: (figure, program) for figure in shown for stem, program in figure.others.items()}


def test_the_pictures_of_other_models_are_drawn_by_the_programs_on_the_page(site, of_others):
    for stem, (_, program) in of_others.items():
        assert (OTHER_MODELS / f"{stem}.stamp").read_text(encoding="utf-8") == figure_models.key_of(program), stem
        kept = (OTHER_MODELS / f"{stem}.svg").read_bytes()
        assert (site / "_static" / "figures" / f"{stem}.svg").read_bytes() == kept, stem


def test_a_picture_of_another_model_is_drawn_again_alike(site, figures, tmp_path):
    figure = figures["fig_softmax_trained"]
    assert figure_scripts.main(["--models", str(tmp_path), figure.name]) == 0
    for stem in figure.others:
        drawn = (tmp_path / f"{stem}.svg").read_bytes()
        assert drawn == (site / "_static" / "figures" / f"{stem}.svg").read_bytes()
    assert list(figure_models.draw(figure.others, tmp_path)) == [], "nothing is due"


def test_no_two_models_have_one_picture(site, shown, drawn):
    for figure in (figure for figure in shown if figure.others):
        others = [(site / "_static" / "figures" / f"{stem}.svg").read_text(encoding="utf-8") for stem in figure.others]
        assert len({drawn[figure.stem], *others}) == 1 + len(others), figure.stem


# --- the pages ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, BeautifulSoup]:
    names = ["gallery.html", "formulas.html", *(p.relative_to(site).as_posix() for p in site.glob("gallery/*.html"))]
    return {name: parse((site / name).read_text(encoding="utf-8")) for name in names}


@pytest.fixture(scope="module")
def shown(site: Path, figures: dict[str, figure_scripts.Figure]) -> list[figure_scripts.Figure]:
    """The figures whose chapter is in the site."""
    return [figure for figure in figures.values() if (site / f"{figure.page}.html").is_file()]


def unlisted(figures: list[figure_scripts.Figure], overview: BeautifulSoup, parts: list[BeautifulSoup]) -> list[str]:
    """Return what the gallery lacks: a card with a picture in words, an entry, a file or the program on the page."""
    cards = {str(a["href"]).partition("#")[2]: a for a in overview.select(".gallery-card a[href]")}
    words = {str(e["aria-label"]) for e in overview.select(".gallery-card .gallery-thumb")}
    entries = {str(a["href"]): a for page in parts for a in page.select(".gallery-entry a[href]")}
    programs = {"".join(page.get_text().split()) for page in parts}
    found = []
    for f in figures:
        found += [f"{f.stem}: no card"] * (f"gallery-{f.name}" not in cards or f.alt not in words)
        files = [f"../_static/figures/{f.stem}.{kind}" for kind in ("svg", "png", "py")]
        found += [f"{f.stem}: no link to {a}" for a in [*files, f"../{f.page}.html#{f.name}"] if a not in entries]
        found += [f"{f.stem}: no program"] * (not any("".join(f.script.split()) in page for page in programs))
    return found


def test_the_gallery_has_every_figure(shown, pages):
    parts = [page for name, page in pages.items() if name.startswith("gallery/")]
    assert shown
    assert unlisted(shown, pages["gallery.html"], parts) == []
    lost = replace(shown[0], name="fig-lost", script="lost = 16")
    assert len(unlisted([lost], pages["gallery.html"], parts)) == 6


def test_the_files_of_the_gallery_are_what_the_notebooks_drew(site, shown, drawn):
    copies = site / "_static" / "figures"
    for figure in shown:
        assert publish.is_published(figure.stem, drawn[figure.stem], copies), figure.stem
        assert (copies / f"{figure.stem}.py").read_text(encoding="utf-8") == figure.script


def weight(html: str, sizes: dict[str, int]) -> int:
    """Return how many bytes a page of the gallery loads at first: itself, and the first sheet that it names."""
    sheets = dict.fromkeys(re.findall(r"_static/figures/([\w-]+\.webp)", html))
    return len(html.encode()) + sum(sizes[name] for name in list(sheets)[:1])


def test_a_page_of_the_gallery_is_light(site, pages):
    sizes = {path.name: path.stat().st_size for path in site.glob("_static/figures/*.webp")}
    for name in (name for name in pages if name.startswith("gallery")):
        assert weight((site / name).read_text(encoding="utf-8"), sizes) < 600_000, name
    assert weight("url(_static/figures/a.webp) url(_static/figures/a.webp)", {"a.webp": 700_000}) > 700_000


def unlisted_numbers(sheet: BeautifulSoup, numbers: set[str]) -> set[str]:
    """Return the numbers that the sheet of formulas does not link to their equations."""
    links = {(a.get_text(), str(a["href"]).partition("#")[2]) for a in sheet.select(".formula a[href*='#equation-']")}
    return {number for number in numbers if (f"({number})", f"equation-{number}") not in links}


def test_the_sheet_of_formulas_has_every_number(site, pages):
    chapters = [path.read_text(encoding="utf-8") for path in site.glob("chapters/**/*.html")]
    there = {number for chapter in chapters for number in re.findall(r'id="equation-([\w.]+)"', chapter)}
    wanted = {n for source in read_sources(ROOT) for row in source.rows for n in row.equations} & there
    assert wanted
    assert unlisted_numbers(pages["formulas.html"], wanted) == set()
    assert unlisted_numbers(pages["formulas.html"], {"9.9.9"}) == {"9.9.9"}


def test_a_formula_that_is_too_wide_is_broken_at_its_relations():
    assert formulas.broken("a=b") == "a=b"
    tex = r"S(a)=\frac{x_{i=1}}{y}<z,\qquad y=2"
    broken = r"\begin{aligned}S(a)&=\frac{x_{i=1}}{y}\\&<z\\y&=2\end{aligned}"
    assert formulas.broken(tex, longest=8) == broken
    alone = r"\begin{aligned}&S(a)\\&=\frac{x_{i=1}}{y}\\&<z\\y&=2\end{aligned}"
    assert formulas.broken(tex, longest=7) == alone, "a side that is too long for the line beside it"


def test_displays_are_read_as_they_are_written():
    cell = {"cell_type": "markdown", "source": [r"$$a = b \tag{5.1.5}$$"]}
    assert formulas.displays({"cells": [cell]}) == {"5.1.5": "a = b"}
    assert formulas.displays({"cells": [cell | {"cell_type": "code"}]}) == {}


# --- in a browser ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tab(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(base_url=address, viewport={"width": 1280, "height": 900})
    yield page
    page.close()


def test_the_filter_finds_figures_by_their_captions(tab, shown):
    tab.goto("gallery.html")
    count = tab.locator(".gallery-card:visible").count()
    assert count == len(shown)
    fetched = "performance.getEntriesByType('resource').filter(r => r.name.endsWith('.webp')).length"
    folders = {figure.page.split("/")[1] for figure in shown}
    tab.wait_for_function(f"{fetched} > 0")
    assert tab.evaluate(fetched) <= max(1, len(folders) - 2), "thumbnails that are far below the window"
    # Parts get their heights when they come near the window, and the last one moves until then.
    to_the_last = "[...document.querySelectorAll('.gallery-part')].at(-1).scrollIntoView()"
    tab.wait_for_function(f"() => {{ {to_the_last}; return {fetched} > 1 || {len(folders)} === 1; }}")
    first = shown[0]
    tab.get_by_label("Find a figure").fill(" ".join(first.alt.split()[:6]))
    assert 1 <= tab.locator(".gallery-card:visible").count() < count
    for said in ("方差", "5.1.8", "（5.1.8）"):
        tab.get_by_label("Find a figure").fill(said)
        assert 1 <= tab.locator(".gallery-card:visible").count() < count, said
    tab.get_by_label("Find a figure").fill("no figure has these words")
    assert tab.locator(".gallery-card:visible").count() == 0
    assert tab.locator(".gallery-filter output").text_content() == f"0 of {count} figures"


# By which factor the shape of each thumbnail differs from its place on the sheet.
_SHAPES = """() => [...document.querySelectorAll(".gallery-thumb")].map((e) => {
    const [across, down] = getComputedStyle(e).aspectRatio.split("/");
    return (e.clientWidth / e.clientHeight) * (down / across);
})"""


@pytest.mark.parametrize("width", [1280, 820, 390])
def test_a_thumbnail_keeps_its_shape_beside_an_open_program(tab, shown, width):
    """A stretched one would show parts of its neighbours on the sheet."""
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto(f"gallery/{shown[0].page.split('/')[1]}.html")
    tab.add_style_tag(content=".gallery-entry { content-visibility: visible !important }")
    tab.evaluate("document.querySelectorAll('.gallery-code').forEach((e) => { e.open = true; })")
    shapes = tab.evaluate(_SHAPES)
    assert len(shapes) > 1 and all(abs(shape - 1) < 0.02 for shape in shapes)
    tab.add_style_tag(content=".gallery-thumb { align-self: stretch !important }")
    if width > 720:
        assert any(abs(shape - 1) > 0.02 for shape in tab.evaluate(_SHAPES))


def test_the_gallery_is_printed_with_its_pictures(tab):
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.goto("gallery.html")
    without = "() => document.querySelectorAll('.gallery-part:not(.near)').length"
    assert tab.evaluate(without) > 0
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate(without) == 0
    tab.emulate_media(media="print")
    thumbs = "() => [...document.querySelectorAll('.gallery-thumb')].map((e) => getComputedStyle(e))"
    assert all(tab.evaluate(f"({thumbs})().map((s) => s.backgroundImage !== 'none' && s.printColorAdjust === 'exact')"))
    tab.emulate_media(media="null")


def with_choice(site: Path) -> str:
    """Return a page of the gallery on which models are chosen."""
    pages = sorted(site.glob("gallery/*.html"))
    return next(page.relative_to(site).as_posix() for page in pages if "gallery-models" in page.read_text("utf-8"))


_FETCHED = "() => performance.getEntriesByType('resource').filter(r => /-(en|de)coder\\.svg$/.test(r.name)).length"


def test_a_model_is_chosen_with_the_keyboard(tab, site):
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.goto(with_choice(site))
    entry = tab.locator(".gallery-entry:has(.gallery-models)").first
    entry.scroll_into_view_if_needed()
    picture = entry.locator(".gallery-picture:visible img")
    assert picture.count() == 0 and tab.evaluate(_FETCHED) == 0, "a picture that nobody has asked for"
    entry.locator("input:checked").focus()
    tab.keyboard.press("ArrowDown")
    assert entry.locator("input:checked").get_attribute("value") != "encoder"
    tab.wait_for_function("e => e.complete && e.naturalWidth > 0", arg=picture.element_handle())
    assert tab.evaluate(_FETCHED) == 1
    for of_the_book in (".gallery-thumb", ".gallery-drawn.gallery-book"):
        assert not entry.locator(of_the_book).is_visible()
    assert "with the" in entry.locator(".gallery-drawn:visible strong").inner_text()
    tab.keyboard.press("ArrowUp")
    assert entry.locator(".gallery-thumb").is_visible() and picture.count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_where_another_model_is_chosen(browser, address, site, width, scheme):
    page = browser.new_page(base_url=address, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(with_choice(site))
    page.wait_for_function("s => document.documentElement.dataset.theme === s", arg=scheme)
    page.evaluate(
        "document.querySelectorAll('label:last-of-type > [name^=model-]').forEach(e => { e.checked = true; })"
    )
    assert page.locator(".gallery-picture:visible").count() > 1
    assert browser_checks.too_wide(page) == []
    browser_checks.lay_out(page)
    axe_checks.prepare(page)
    assert axe_checks.violations(page, "article.bd-article", set()) == []
    page.close()


def test_without_scripts_the_picture_of_the_book_is_there(browser, address, site):
    context = browser.new_context(base_url=address, java_script_enabled=False, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(with_choice(site))
    entry = page.locator(".gallery-entry:has(.gallery-models)").first
    assert entry.locator(".gallery-thumb").is_visible() and entry.locator(".gallery-picture:visible").count() == 0
    entry.locator("label").last.click()
    assert entry.locator(".gallery-picture").last.is_visible(), "the choice needs no script either"
    context.close()


_BEYOND = """() => [...document.querySelectorAll(".formula")].flatMap((box) => {
    const right = box.getBoundingClientRect().right;
    return [...box.querySelectorAll("math *")].filter((e) => e.getBoundingClientRect().right > right + 1);
}).length"""


def sheet_on_paper(page: Page) -> tuple[int, float]:
    """Return on how many pages a browser prints the sheet, and the size of its smallest letters in points."""
    paper = len(re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(prefer_css_page_size=True)))
    page.emulate_media(media="print")
    texts = "[...document.querySelectorAll('.formula :is(p, div.math, mjx-container, math)')]"
    return paper, 72 / 96 * page.evaluate(f"Math.min(...{texts}.map(e => parseFloat(getComputedStyle(e).fontSize)))")


def test_the_sheet_of_formulas_prints_on_two_pages(tab):
    tab.goto("formulas.html")
    browser_checks.settle(tab)
    paper, smallest = sheet_on_paper(tab)
    assert paper <= 2
    assert smallest >= 7
    # The sheet's column on paper: A4 less its margins, in two columns.
    tab.set_viewport_size({"width": 726, "height": 1000})
    assert tab.evaluate(_BEYOND) == 0, "a formula is wider than its column"
    tab.add_style_tag(content=".formula p { font-size: 5pt !important } .formula { height: 140mm }")
    paper, smallest = sheet_on_paper(tab)
    assert paper > 2
    assert smallest < 7
