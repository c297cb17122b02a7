"""A reader without a mouse, a reader on paper, and a reader who looks for claims: real keys in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import browser_checks as check
import pytest
from playwright.sync_api import Browser, Page, expect

PATIENCE = 30_000
# The element that has the focus: what is wrong with it, and a name for it.
_FOCUS = """() => {
    const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
    const name = `${e.tagName.toLowerCase()}.${e.className} ${e.textContent.trim().slice(0, 30)}`;
    const wrong = [];
    if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) wrong.push("no outline");
    if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || !box.width) wrong.push("invisible");
    if (box.bottom < 0 || box.top > innerHeight || box.right < 0 || box.left > innerWidth) wrong.push("off the screen");
    if (e.dataset.visited) return [name, null];
    e.dataset.visited = "yes";
    return [name, wrong];
}"""
_MOVING = """() => [...document.querySelectorAll("*")].filter((e) => {
    const { transitionDuration, scrollBehavior } = getComputedStyle(e);
    return scrollBehavior === "smooth" || transitionDuration.split(",").some((time) => parseFloat(time) > 0.001);
}).map((e) => e.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def open_page(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    contexts = []

    def open_page(name: str, **options: Any) -> Page:
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(address + name)
        check.settle(page)
        return page

    yield open_page
    for context in contexts:
        context.close()


def chapter(site: Path) -> str:
    """The smallest chapter: it has all that a chapter has."""
    chapters = site.glob("chapters/*/*.html")
    return min(chapters, key=lambda path: path.stat().st_size).relative_to(site).as_posix()


def faults_of_stops(page: Page, most: int = 400) -> tuple[list[str], list[str]]:
    """Press the tabulator key through a page; return where it stopped, and what is wrong there."""
    stops: list[str] = []
    faults: list[str] = []
    for _ in range(most):
        page.keyboard.press("Tab")
        name, wrong = page.evaluate(_FOCUS)
        if name.startswith(("body", "html")) or wrong is None:
            break
        stops.append(name)
        faults += [f"{problem}: {name}" for problem in wrong]
    return stops, faults


def test_the_keyboard_reaches_everything_and_one_sees_where_it_is(open_page, site):
    page = open_page(chapter(site), color_scheme="light", reduced_motion="reduce")
    assert page.evaluate(_MOVING) == []
    stops, faults = faults_of_stops(page)
    assert faults == [] and "skip to main" in stops[0].lower()
    for wanted in ("theme-switch", "search-button", "fullscreen", "summary", "toggle-button", "reference"):
        assert any(wanted in stop for stop in stops), f"no stop at {wanted}"

    page.reload()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the skip link
    page.keyboard.press("Tab")
    assert page.evaluate("() => Boolean(document.activeElement.closest('main'))")

    page.keyboard.press("Control+k")
    expect(page.locator("#search-input")).to_be_focused(timeout=PATIENCE)
    page.keyboard.press("Escape")
    expect(page.locator("#search-input")).not_to_be_visible(timeout=PATIENCE)

    card = page.locator("details.claim-card").first
    card.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(card).to_have_attribute("open", "", timeout=PATIENCE)
    solution = page.locator("div.solution button.toggle-button").first
    expect(solution).to_have_accessible_name(re.compile("Solution to"))
    solution.focus()
    page.keyboard.press("Enter")
    expect(solution).to_have_attribute("aria-expanded", "true", timeout=PATIENCE)

    on_paper(page, "dark")


def on_paper(page: Page, theme: str) -> None:
    """A page is printed in the light theme, unfolded, without navigation; afterwards it is as it was."""
    page.emulate_media(color_scheme=theme, media="print")
    page.wait_for_function("s => document.documentElement.dataset.theme === s", arg=theme)
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert check.background(page) > 0.8
    shown = page.locator(".claim-card .claim-statement, div.solution section p").all()
    assert shown and all(one.is_visible() for one in shown)
    for gone in ("nav.bd-docs-nav", ".bd-toc-nav", ".bd-header-article", ".copybtn", "summary:has(p.collapsed)"):
        assert not any(one.is_visible() for one in page.locator(gone).all()), gone
    assert page.evaluate("() => [...document.querySelectorAll('pre')].every((e) => e.scrollWidth <= e.clientWidth + 1)")
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("() => document.documentElement.dataset.theme") == theme


def test_an_invisible_focus_is_noticed(browser):
    page = browser.new_page()
    page.set_content('<a href="#">fine</a><a href="#" style="outline:none">bad</a><a href="#" style="opacity:0">no</a>')
    page.add_style_tag(content="a:focus { outline: 3px solid blue } a { transition: color 1s }")
    assert len(page.evaluate(_MOVING)) == 3
    _, faults = faults_of_stops(page)
    assert [fault.split(":")[0] for fault in faults] == ["no outline", "invisible"]
    page.close()


# --- ledger, errata, coverage ----------------------------------------------------------------------

# Sections that are shown without an entry, or listed without being shown, or the other way round.
_HEADINGS = """() => [...document.querySelectorAll("section section:has(.claim-entry)")].filter((section) => {
    const filled = Boolean(section.querySelector(".claim-entry:not([hidden])"));
    const listed = document.querySelector(`.bd-toc-nav a[href="#${section.id}"]`).checkVisibility();
    return section.checkVisibility() !== filled || listed !== filled;
}).map((section) => section.id)"""

FORM = "form.claim-filter"
SHOWN = ".claim-entry:not([hidden])"


def count(page: Page) -> int:
    """How many claims are shown, once the page knows what each says."""
    expect(page.locator(FORM)).not_to_have_attribute("aria-busy", "true", timeout=PATIENCE)
    return int(page.locator(f"{FORM} output").inner_text().split()[0])


def test_the_ledger_is_filtered_by_verdict_by_text_and_by_the_address(open_page):
    page = open_page("ledger.html?verdict=proved")
    every = page.locator(".claim-entry").count()
    proved = page.locator(".claim-entry:has(.verdict-proved)").count()
    assert 0 < proved < every and count(page) == proved == page.locator(SHOWN).count()
    assert page.locator('.verdict-summary a[href$="?verdict=proved"]').inner_text() == str(proved)
    assert page.evaluate(_HEADINGS) == [], "a heading without entries, in the page or in its contents"

    page.locator(f"{FORM} button").press("Enter")
    expect(page.locator(SHOWN)).to_have_count(every, timeout=PATIENCE)
    assert "?" not in page.url
    name = page.locator(".claim-entry:has(.verdict-proved) .claim-id").last.text_content()
    page.get_by_label("Find words, a formula or a number").focus()
    page.keyboard.type(name[:3])
    assert 0 < count(page) < every
    page.get_by_label("Find words, a formula or a number").fill(name)
    assert 0 < count(page) < every and name in page.locator(f"{SHOWN} .claim-id").all_text_contents()
    page.keyboard.type("#~")
    assert count(page) == 0 and page.locator(FORM).is_visible()
    page.keyboard.press("Escape")
    assert count(page) == every
    chinese = page.locator(FORM).get_attribute("data-words").replace("|", " ").split()[0]
    page.get_by_label("Find words, a formula or a number").fill(chinese)
    assert 0 < count(page) < every

    page.get_by_label("Find words, a formula or a number").fill("")
    page.get_by_label("Section of the source").select_option("5.1")
    held = page.locator(SHOWN).evaluate_all(
        "all => all.map((e) => e.dataset.sections ?? e.querySelector('.claim-id').textContent)"
    )
    assert any(sections.startswith("5.1.8") for sections in held), "a section holds its subsections"
    assert all(re.search(r"(^| )5\.1([./ ]|$)", sections) for sections in held)
    page.get_by_label("Section of the source").select_option("")
    before = page.locator(".claim-entry").evaluate_all("all => all.map((e) => e.id)")
    page.get_by_label("Order").select_option("book")
    ranks = page.locator(".claim-entry").evaluate_all("all => all.map((e) => Number(e.dataset.book))")
    assert ranks == sorted(ranks) and page.url.endswith("?sort=book")
    page.get_by_label("Order").select_option("")
    assert page.locator(".claim-entry").evaluate_all("all => all.map((e) => e.id)") == before
    seconds = page.evaluate("""() => {
        const input = document.querySelector("form.claim-filter input");
        const times = [..."softmax"].map((letter) => {
            input.value += letter;
            const start = performance.now();
            input.dispatchEvent(new Event("input", { bubbles: true }));
            document.body.getBoundingClientRect();
            return performance.now() - start;
        });
        return times.sort((a, b) => a - b)[3] / 1000;
    }""")
    print(f"a key takes {seconds:.3f} s")
    assert seconds < 0.1


def test_numbers_and_formulas_are_found_as_pages_print_them(open_page):
    page = open_page("ledger.html")
    field = page.get_by_label("Find words, a formula or a number")

    def shown(text: str) -> set[str]:
        field.fill(text)
        count(page)
        return set(page.locator(f"{SHOWN} .claim-id").all_text_contents())

    assert shown("5.1.9") == shown("(5.1.9)") == shown("（5.1.9）") != set()
    assert "report/23" in shown("R.23") == shown("(R.23)")
    assert shown("d_k") == shown("dk") > shown("√d_k") == shown(r"\sqrt{d_k}") != set()


@pytest.mark.parametrize(
    ("mathml", "typed"),
    [
        ("<msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt>", "√d_k"),
        ("<mfrac><mn>1</mn><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></mfrac>", "1/(n+1)"),
        ("<msup><mi>n</mi><mn>2</mn></msup><mspace width='1em'></mspace><mi>w</mi>", "n^2 w"),
        ("<mover><mi>q</mi><mo>˜</mo></mover><msubsup><mi>a</mi><mi>i</mi><mn>2</mn></msubsup>", "q˜a_i^2"),
        ("<munder><mo>max</mo><mrow><mi>i</mi><mo>≤</mo><mi>n</mi></mrow></munder>", "max_(i≤n)"),
    ],
)
def test_formulas_that_are_filtered_are_what_one_would_type(open_page, mathml, typed):
    text = """(html) => formulaText(new DOMParser().parseFromString(html, "text/html").querySelector("math"))"""
    assert " ".join(open_page("ledger.html").evaluate(text, f"<math>{mathml}</math>").split()) == typed


def test_a_line_of_the_ledger_unfolds_to_what_the_claim_says(open_page):
    page = open_page("ledger.html")
    scripts = "() => performance.getEntriesByType('resource').filter((r) => r.name.includes('ledger-entries')).length"
    anchor, next_one = page.locator(".claim-entry.brief").evaluate_all("all => [all[3].id, all[4].id]")
    entry, other = (page.locator(f'[id="{name}"]') for name in (anchor, next_one))
    assert entry.locator("p").count() == 1 and page.evaluate(scripts) == 0
    number = entry.locator("a.claim-id")
    address = number.get_attribute("href")
    number.press("Enter")
    expect(entry.locator("p").nth(1)).to_be_visible(timeout=PATIENCE)
    expect(number).to_have_attribute("aria-expanded", "true")
    assert page.evaluate(scripts) == 1 and page.url.endswith("ledger.html") and other.locator("p").count() == 1
    said = entry.inner_text()
    number.press("Enter")
    expect(entry.locator("p")).to_have_count(1)
    again = open_page(f"ledger.html#{anchor}")
    expect(again.locator(f'[id="{anchor}"] p').nth(1)).to_be_visible(timeout=PATIENCE)
    full = open_page(address, java_script_enabled=False)
    at = full.locator(f'[id="{anchor}"]')
    expect(at).to_be_in_viewport()
    assert " ".join(at.inner_text().split()) == " ".join(said.replace("\u203a", "").split())


def test_without_its_script_the_ledger_says_that_it_knows_the_titles_alone(open_page):
    page = open_page("ledger.html")
    page.route("**/ledger-entries.js", lambda route: route.abort())
    page.get_by_label("Find words, a formula or a number").fill("softmax")
    expect(page.locator(f"{FORM} output")).to_contain_text("by their titles alone", timeout=PATIENCE)
    assert 0 < count(page) == page.locator(SHOWN).count()


def test_an_address_asks_only_for_what_the_form_offers(open_page):
    page = open_page("ledger.html?verdict=Amended&sort=bogus&grade=wrong%20sign")
    assert count(page) == page.locator(".claim-entry").count()
    selected = page.locator(f"{FORM} select").evaluate_all("all => all.map((menu) => menu.selectedIndex)")
    assert set(selected) == {0}


def test_a_reload_leaves_the_reader_where_he_is(open_page):
    page = open_page("ledger.html?verdict=amended")
    unfolded = "(n) => document.querySelectorAll('.claim-entry:not([hidden], .brief)').length > n"
    page.wait_for_function(unfolded, arg=20)
    name = page.locator(SHOWN).nth(20).evaluate("(e) => { e.scrollIntoView({ behavior: 'instant' }); return e.id; }")
    far = "(id) => scrollY > 2000 && Math.abs(document.getElementById(id).getBoundingClientRect().top) < 400"
    assert page.evaluate(far, name)
    page.reload()
    page.wait_for_function(unfolded, arg=20)
    page.wait_for_timeout(500)  # as long as it takes to jump to the top
    assert page.evaluate(far, name)


def test_the_coverage_shows_the_rows_that_are_asked_for(open_page):
    page = open_page("coverage.html?verdict=motivation")
    rows = page.locator(".coverage-table tbody tr:not([hidden])")
    assert 0 < count(page) == rows.count()
    assert all(row.is_visible() and "motivation" in row.inner_text() for row in rows.all()[:5])


@pytest.mark.parametrize("name", ["ledger", "errata", "coverage"])
def test_without_scripts_the_pages_are_complete(open_page, name):
    page = open_page(f"{name}.html?verdict=measured", java_script_enabled=False)
    assert not page.locator(FORM).is_visible()
    entries = page.locator(".claim-entry, details.coverage")
    assert entries.count() and all(entry.is_visible() for entry in (entries.first, entries.last))
