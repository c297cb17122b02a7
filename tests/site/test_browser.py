"""A browser opens every page: mathematics typeset, no error, no request elsewhere, no sideways scrolling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import axe_checks
import browser_checks as check
import pytest
import site_checks
from conftest import SITE
from playwright.sync_api import Browser, Page

#: The share of a chapter that is there to be read: prose, mathematics and figures, with code and cards folded.
LEAST_READING = 2 / 3
#: The pages in English; those in Chinese, which have the same parts, are opened by `test_edition_pages`.
PAGES = sorted(
    p.relative_to(SITE).as_posix()
    for p in SITE.rglob("*.html")
    if not {"_static", "zh"} & set(p.parts) and p.name != "index.html"
)
CHAPTERS = [name for name in PAGES if name.startswith("chapters/")]
ARTICLE = "article.bd-article"
#: The theme's frame is the same on every page: axe-core is asked about the whole of a few of each kind.
FRAMED = {"intro.html", "search.html", "genindex.html", "ledger.html", "play.html", *CHAPTERS[:1]}


class Opened(NamedTuple):
    """A page of the site in the browser, and what went wrong while it loaded."""

    name: str
    page: Page
    watch: check.Watch
    weight: list[str]


@pytest.fixture(scope="module")
def tab(browser: Browser, address: str) -> Iterator[check.Tab]:
    """The tab in which all pages are opened, one after another: it need not compile the same scripts each time."""
    with check.new_tab(browser, address) as tab:
        yield tab


@pytest.fixture(scope="module")
def opened(request: pytest.FixtureRequest, tab: check.Tab, browser: Browser, address: str) -> Opened:
    """One page of the site, loaded once for all that is asked of it."""
    name: str = request.param
    tab.page.goto("about:blank")
    tab.page.set_viewport_size({"width": 1280, "height": 900})
    tab.page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    tab.watch.begin()
    tab.weight.begin()
    tab.page.goto(address + name)
    check.settle(tab.page)
    too_heavy = check.too_heavy(tab.weight)
    if too_heavy:  # a page is sometimes charged with a font of the page before: this one is weighed by itself
        with check.new_tab(browser, address) as alone:
            alone.page.goto(address + name)
            check.settle(alone.page)
            too_heavy = check.too_heavy(alone.weight)
    tab.page.mouse.move(5, 5)  # the figures that move come now
    tab.page.emulate_media(reduced_motion="reduce")
    check.lay_out(tab.page)
    return Opened(name, tab.page, tab.watch, too_heavy)


@pytest.fixture
def fresh(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 360, "height": 780})
    yield context.new_page()
    context.close()


def show(page: Page, width: int, scheme: str) -> None:
    """Give the window a width, and the page a theme."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function("s => document.documentElement.dataset.theme === s", arg=scheme, timeout=30_000)


every_page = pytest.mark.parametrize("opened", PAGES, indirect=True)
every_chapter = pytest.mark.parametrize("opened", CHAPTERS, indirect=True)


def test_site_is_there(browser, address):
    assert PAGES, "a built site without pages"


# A long page takes seconds to load and to lay out anew: it is loaded once, and made narrow once.


@every_chapter
def test_a_chapter_is_there_to_be_read(opened):
    show(opened.page, 1280, "light")
    share = check.share_of_reading(opened.page)
    assert share >= LEAST_READING, f"{opened.name}: {share:.0%} is prose, mathematics and figures, less than two thirds"


@every_page
def test_page(opened):
    page = opened.page
    show(page, 1280, "light")
    problems = check.bad_math(page) + check.tab_stops_in_math(page)
    for width, scheme in ((1280, "light"), (360, "dark")):
        show(page, width, scheme)
        found = check.crowded_derivations(page) + check.too_wide(page)
        problems += [f"{scheme}, {width} px: {problem}" for problem in found]
        light = check.background(page)
        assert light > 0.8 if scheme == "light" else light < 0.05, f"{scheme}: a background of luminance {light}"
    problems += opened.watch.problems + opened.weight
    assert not problems, "\n".join(problems)


@every_chapter
def test_solutions_are_folded(opened):
    show(opened.page, 360, "dark")
    assert not any(check.unfolded_solutions(opened.page)), "delivered unfolded"
    check.press(opened.page, "div.solution.dropdown .toggle-button")
    assert all(check.unfolded_solutions(opened.page))
    assert not check.too_wide(opened.page)


@every_chapter
def test_cards_are_folded_and_a_link_unfolds_its_card(opened):
    page = opened.page
    cards = page.locator("details.claim-card")
    assert cards.count() and not page.locator("details.claim-card[open]").count(), "delivered unfolded"
    for card in (cards.first, cards.last):
        anchor = card.get_attribute("id")
        page.evaluate("anchor => { location.hash = anchor; }", anchor)
        opened_card = page.locator(f'details.claim-card[open][id="{anchor}"]')
        opened_card.wait_for(timeout=5000)
        opened_card.locator(".claim-statement").wait_for(state="visible", timeout=5000)


@pytest.fixture(scope="session")
def seen() -> set[str]:
    """The kinds of texts on the pages so far: colours, size and weight."""
    return set()


@every_page  # it changes the page
def test_axe_finds_nothing(opened, seen):
    page, framed = opened.page, opened.name in FRAMED
    show(page, 360, "dark")
    axe_checks.prepare(page)
    # All rules once, and the colours in the other theme. Most boxes scroll in the narrow window; the frame has other
    # parts in a wide one.
    looks = [(360, "dark", True, ""), (360, "light", False, "")] + [(1440, "light", True, ARTICLE)] * framed
    problems = []
    for width, scheme, everything, but in looks:
        show(page, width, scheme)
        found = axe_checks.violations(page, "html" if framed else ARTICLE, seen, everything, but)
        problems += [f"{scheme}, {width} px: {problem}" for problem in found]
    assert not problems, "\n".join(problems)


@every_chapter  # the last that is asked of a page: only its figures are left
def test_figures_melt_into_the_page(opened):
    assert check.leave_only_figures(opened.page) > 0, f"{opened.name} has no figure"
    for scheme in ("light", "dark"):
        show(opened.page, 360, scheme)
        for _ in range(5):  # on a busy machine the theme may still be on its way
            if not (glaring := check.glaring_figures(opened.page)):
                break
            opened.page.wait_for_timeout(1000)
        assert glaring == []


_TOO_LONG = """() => [...document.querySelectorAll("div.cell pre")].flatMap((box) =>
    box.scrollWidth > box.clientWidth ? [Math.max(...box.textContent.split("\\n").map((line) => line.length))] : [])"""


@pytest.mark.parametrize("width", [800, 1000, 1280, 1600])
def test_lines_of_code_and_of_output_fit_their_boxes(fresh, address, width):
    fresh.set_viewport_size({"width": width, "height": 900})
    fresh.goto(address + CHAPTERS[-1])
    fresh.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert fresh.locator("div.cell pre").count() > 10
    assert fresh.evaluate(_TOO_LONG) == []
    fresh.add_style_tag(content="div.cell pre { font-size: 20px !important; white-space: pre !important }")
    assert max(fresh.evaluate(_TOO_LONG)) > 60


def test_a_link_from_another_page_unfolds_its_card(fresh, address, site):
    name = min(CHAPTERS, key=lambda name: (site / name).stat().st_size)
    anchor = site_checks.parse((site / name).read_text(encoding="utf-8")).select("details.claim-card")[-1]["id"]
    fresh.goto(f"{address}{name}#{anchor}")
    fresh.locator(f'details.claim-card[open][id="{anchor}"]').wait_for(timeout=5000)
    assert not check.too_wide(fresh)


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith(("ledger", "gallery/"))])
def test_a_link_from_another_page_leads_to_its_entry(fresh, address, name, width):
    """What is far from the window is not laid out on these pages, so that its place could be wrong."""
    fresh.set_viewport_size({"width": width, "height": 900})
    fresh.goto(f"{address}{name}")
    far = fresh.locator(f"{ARTICLE} :is(.claim-entry, .gallery-entry)[id]")
    anchor = far.nth(far.count() * 3 // 4).get_attribute("id")
    fresh.goto("about:blank")
    fresh.goto(f"{address}{name}#{anchor}")
    arrived = (
        "id => { const top = document.getElementById(id).getBoundingClientRect().top; return top >= 0 && top < 200; }"
    )
    fresh.wait_for_function(arrived, arg=anchor, timeout=5000)  # the window glides there


# How many sections of a page are laid out, of how many.
_LAID_OUT = """() => {
    const sections = [...document.querySelectorAll("article.bd-article > section > section")];
    const shown = (e) => e.firstElementChild.checkVisibility({ contentVisibilityAuto: true });
    return [sections.filter(shown).length, sections.length];
}"""


def layout_time(page: Page, address: str) -> float:
    """Return the processor time, in seconds, in which a page was laid out until it had loaded."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(address)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return float(found["LayoutDuration"] + found["RecalcStyleDuration"])


def test_a_long_chapter_is_laid_out_where_it_is_read(browser, address, site):
    """The rest is laid out when it comes near, at once where an address leads into it, and for paper."""
    name = max(CHAPTERS, key=lambda name: (site / name).stat().st_size)
    with check.new_tab(browser, address) as tab:
        lazy = layout_time(tab.page, address + name)
        some, all_sections = tab.page.evaluate(_LAID_OUT)
        assert 0 < some <= all_sections / 2
        last = tab.page.locator(f"{ARTICLE} > section > section").last
        last.scroll_into_view_if_needed()
        tab.page.wait_for_function("(section) => section.classList.contains('near')", arg=last.element_handle())
        assert tab.page.evaluate(_LAID_OUT)[0] < all_sections, "what was passed over"
        tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert tab.page.evaluate(_LAID_OUT) == [all_sections, all_sections]
        anchor = last.get_attribute("id")
    with check.new_tab(browser, address) as tab:
        tab.page.goto(f"{address}{name}#{anchor}")
        assert tab.page.evaluate(_LAID_OUT) == [all_sections, all_sections]
    print(f"{name}: {lazy:.2f} s")
    assert 4 * lazy < 3, "on a processor that is four times slower"


# Formulas that go on outside of their boxes although they need not: which part of each is in view.
_CUT = """() => [...document.querySelectorAll("article div.math, article div.math > .formula")]
    .filter((e) => !e.closest("details:not([open])") && e.scrollWidth > e.clientWidth + 1)
    .map((e) => e.clientWidth / e.scrollWidth)"""


@pytest.mark.parametrize("width", [1440, 390])
def test_a_formula_is_in_view_or_shows_that_it_goes_on(browser, address, site, width):
    name = max(CHAPTERS, key=lambda name: (site / name).read_text(encoding="utf-8").count('class="math'))
    with check.new_tab(browser, address) as tab:
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.page.goto(address + name)
        check.lay_out(tab.page)
        tab.page.wait_for_function(f"() => ({_CUT})().every((share) => share < 0.81)")
        boxes = tab.page.locator('article :is(.math, .formula)[aria-label$="scrolls sideways"]')
        if tab.page.evaluate(_CUT):
            boxes.first.wait_for(state="attached")
        edges = boxes.evaluate_all("all => all.map((e) => getComputedStyle(e).backgroundImage)")
        assert all("gradient" in edge for edge in edges) and bool(edges) == bool(tab.page.evaluate(_CUT))
        tab.page.evaluate("document.querySelectorAll('.math, .formula').forEach((e) => { e.style.width = '9rem'; })")
        assert tab.page.evaluate(_CUT), "formulas that are cut"


_EXERCISE_AT = """async () => {
    await document.fonts.ready;
    await new Promise((done) => setTimeout(done, 700)); // as long as a window glides
    return document.getElementById(location.hash.slice(1)).getBoundingClientRect().top;
}"""


def test_a_link_to_an_exercise_leads_there(browser, address, site):
    """Above it, solutions fold and derivations are arranged while the page loads: the way to it grows shorter."""
    name = max(CHAPTERS, key=lambda name: (site / name).stat().st_size)
    exercises = site_checks.parse((site / name).read_text(encoding="utf-8")).select("div.exercise[id]")
    anchor = exercises[len(exercises) // 2]["id"]
    with check.new_tab(browser, address) as tab:  # the second visit finds fonts and scripts, and is right in any case
        tab.page.goto(f"{address}{name}#{anchor}")
        assert 0 < tab.page.evaluate(_EXERCISE_AT) < 150


_BROKEN_WORDS = """() => {
    const range = document.createRange();
    const cells = document.querySelectorAll(".bd-article table :is(th, td:first-child, td.text-right)");
    return [...cells].filter((cell) => cell.checkVisibility()).flatMap((cell) => {
        const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        const broken = [];
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            for (const word of node.data.matchAll(/[A-Za-z0-9]+/g)) {
                range.setStart(node, word.index);
                range.setEnd(node, word.index + word[0].length);
                if (new Set([...range.getClientRects()].map((box) => box.top)).size > 1) broken.push(word[0]);
            }
        }
        return broken;
    });
}"""


@pytest.mark.parametrize("width", [320, 640])
@pytest.mark.parametrize("name", [name for name in PAGES if name in {"intro.html", "ledger.html", "coverage.html"}])
def test_words_and_numbers_of_tables_stay_whole(fresh, address, name, width):
    fresh.set_viewport_size({"width": width, "height": 780})
    fresh.goto(address + name)
    assert fresh.evaluate(_BROKEN_WORDS) == []
    fresh.add_style_tag(content=".bd-article th p { overflow-wrap: anywhere !important; max-width: 2em }")
    assert fresh.evaluate(_BROKEN_WORDS) != []


# --- each check must reject what it is there to reject -------------------------------------------


@pytest.fixture(scope="module")
def bad(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, str]]:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "wide.html").write_text('<main style="margin:0"><div style="width:2000px">x</div></main>')
    (folder / "raw.html").write_text(r'<main><p class="math">\(x\)</p><code>\(y\)</code></main>')
    (folder / "merror.html").write_text("<main><math><mfenced><mi>x</mi></mfenced></math><math></math></main>")
    (folder / "grey.html").write_text('<main><p style="color:#999;background:#fff">grey</p></main>')
    (folder / "inaccessible.html").write_text(
        '<html lang="en"><title>t</title><main><h1>h</h1><p>black</p><p style="color:#ccc">light grey</p><p>black</p>'
        '<img src="data:," width="9"><details><summary>s</summary><button></button></details>'
        '<div style="overflow:auto;height:30px"><p style="width:3000px;height:300px">x</p></div></main>'
    )
    cell = '<div class="cell"><div class="cell_input" style="height:{}px"></div>{}</div>'
    shown = '<div class="derivation" style="height:300px"></div>'
    article = '<article class="bd-article"><div style="height:300px">prose</div>{}</article>'
    (folder / "code.html").write_text(article.format(cell.format(300, "")))
    (folder / "folded.html").write_text(article.format(cell.format(20, shown)))
    (folder / "fence.html").write_text(article.format('<div class="highlight-python" style="height:300px"></div>'))
    line = '<div class="derivation{}"><table><td style="display:block;overflow:auto;width:300px">{}</td></table></div>'
    (folder / "crowded.html").write_text(line.format("", "<p style='width:2000px'>wide</p>"))
    (folder / "stacked.html").write_text(line.format(" stacked", "<p style='width:2000px'>wide</p>"))
    (folder / "fits.html").write_text(line.format("", "<p>short</p>"))
    (folder / "math.html").write_text('<p>x</p><math tabindex="0"><mi>y</mi></math>')
    patch = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='90' height='90'%3E{}%3C/svg%3E"
    for name, page, filling in (
        ("slab", "#fff", "%3Cpath fill='%23888' d='M0 0h90v90H0z'/%3E"),
        ("panel", "#121212", "%3Cpath fill='%23fcf' d='M9 9h72v72H9z'/%3E"),
        ("clear", "#fff", ""),
        ("dark", "#121212", "%3Cpath stroke='%23fff' d='M9 9l72 72'/%3E"),
    ):
        figure = f'<figure><img src="{patch.format(filling)}"></figure>'
        (folder / f"{name}.html").write_text(f'<body style="background:{page}">{figure}')
    (folder / "loud.html").write_text('<main></main><script>console.error("x")</script><img src="none.png">')
    (folder / "away.html").write_text('<main></main><img src="http://cdn.invalid/x.png">')
    context = browser.new_context(viewport={"width": 360, "height": 780})
    with check.served(folder) as address:
        yield context.new_page(), address
    context.close()


def test_too_wide_rejects(bad):
    page, address = bad
    page.goto(address + "wide.html")
    assert check.too_wide(page)


def test_bad_math_rejects(bad):
    page, address = bad
    page.goto(address + "raw.html")
    assert check.bad_math(page) == ["no formula in .math", r"not typeset: \(x\)"]
    page.goto(address + "merror.html")
    assert check.bad_math(page) == ["unknown: mfenced", "no size: "]


def test_axe_rejects(bad):
    page, address = bad
    page.goto(address + "inaccessible.html")
    axe_checks.prepare(page)
    seen: set[str] = set()
    found = {problem.split()[0]: problem for problem in axe_checks.violations(page, "html", seen)}
    assert {"image-alt", "button-name", "color-contrast", "scrollable-region-focusable"} <= set(found)
    assert "light grey" in found["color-contrast"], "a text among others of better contrast"
    assert not seen, "a text that is hard to read counts as known"
    [again] = axe_checks.violations(page, "html", seen, everything=False)
    assert again.startswith("color-contrast") and "light grey" in again


def test_axe_asks_once_for_a_kind_of_text(bad):
    page, address = bad
    page.goto(address + "grey.html")
    axe_checks.prepare(page)
    page.add_style_tag(content="p { color: black !important }")
    seen: set[str] = set()
    assert axe_checks.violations(page, "html", seen, everything=False) == [] and len(seen) == 1
    page.add_style_tag(content="p { color: #999 !important }")
    assert len(axe_checks.violations(page, "html", seen, everything=False)) == len(seen) == 1


def test_poor_contrast_rejects(bad):
    page, address = bad
    page.goto(address + "grey.html")
    assert check.poor_contrast(page, "p")
    assert not check.poor_contrast(page, "p", least=2.0)


@pytest.mark.parametrize(("name", "enough"), [("code", False), ("fence", False), ("folded", True)])
def test_share_of_reading_rejects_a_page_that_is_half_code(bad, name, enough):
    page, address = bad
    page.goto(f"{address}{name}.html")
    assert (check.share_of_reading(page) >= LEAST_READING) is enough


@pytest.mark.parametrize(("name", "crowded"), [("crowded", True), ("stacked", False), ("fits", False)])
def test_crowded_derivations_rejects(bad, name, crowded):
    page, address = bad
    page.goto(f"{address}{name}.html")
    assert bool(check.crowded_derivations(page, patience=0.5)) is crowded


def test_tab_stops_in_math_rejects(bad):
    page, address = bad
    page.goto(address + "math.html")
    assert check.tab_stops_in_math(page) == ["1 formulas are tab stops"]
    page.goto(address + "raw.html")
    assert not check.tab_stops_in_math(page)


@pytest.mark.parametrize(("name", "glaring"), [("slab", True), ("panel", True), ("clear", False), ("dark", False)])
def test_glaring_figures_rejects(bad, name, glaring):
    page, address = bad
    page.goto(f"{address}{name}.html")
    assert bool(check.glaring_figures(page)) is glaring


def test_watch_rejects(bad):
    page, address = bad
    watch = check.Watch(page, address)
    page.goto(address + "loud.html")
    assert {problem.split(":")[0] for problem in watch.problems} == {"console", "status 404"}
    watch.problems.clear()
    page.goto(address + "away.html")
    assert any(problem.startswith("elsewhere: http://cdn.invalid") for problem in watch.problems)
