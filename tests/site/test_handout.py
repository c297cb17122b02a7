"""What a page gives a lecturer and a writer: its citation, its TeX, a handout, and the meaning of its terms."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import site_checks
from conftest import ROOT
from playwright.sync_api import Browser
from pybtex.database import parse_string

sys.path.insert(0, str(ROOT / "_ext"))

from handout import citation

from linewise.derive.display import MIME

PAGE = "chapters/operator/scaling.html"


@pytest.fixture(scope="module")
def page(site: Path):
    return site_checks.parse((site / PAGE).read_text(encoding="utf-8"))


def test_every_page_of_text_can_be_cited(site):
    lacking = []
    for path in site.rglob("*.html"):
        html, name = path.read_text(encoding="utf-8"), path.relative_to(site).as_posix()
        if "_static" in path.parts or "<h1" not in html or path.name in {"search.html", "genindex.html"}:
            continue
        address = re.search(r'<link rel="canonical" href="([^"]*)"', html)
        if '<details class="citation"' not in html or not address or not address[1].endswith(f"/{name}"):
            lacking.append(name)
    assert lacking == []


def test_the_entry_is_read_by_a_program_for_bibliographies(page):
    entries = parse_string(page.select_one("details.citation pre").get_text(), "bibtex").entries
    ((key, entry),) = entries.items()
    assert key == "attentionchecked200scaling" and entry.type == "incollection"
    assert (
        entry.fields["title"].strip("{}").replace("\\_", "_")
        == page.select_one('meta[name="citation_title"]')["content"]
    )
    assert entry.fields["url"].endswith(PAGE) and entry.fields["note"] == "Version 2.0.0"


def test_the_files_are_those_of_a_release(page):
    links = [a["href"] for a in page.select("a[href*='/releases/download/']")]
    sys.path.insert(0, str(ROOT / "tools"))
    import release

    names = {link.rpartition("/")[2] for link in links}
    assert {name.rpartition(".")[2] for name in names} == {"pdf", "epub"} and names <= set(release.expected("2.0.0"))


def test_the_address_of_a_fork_is_its_own():
    assert citation.site_of("https://github.com/Some/fork") == "https://some.github.io/fork/"


def test_displays_offer_their_tex_and_words_their_meaning(browser: Browser, address):
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, permissions=["clipboard-read", "clipboard-write"]
    )
    page = context.new_page()
    page.goto(address + PAGE)
    display = page.locator("div.math[data-tex]").first
    display.hover()
    display.get_by_role("button", name="Copy this formula as TeX").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    notebook = (ROOT / PAGE.replace(".html", ".ipynb")).read_text(encoding="utf-8")
    words = re.findall(r"\\[a-zA-Z]+", copied)
    assert words and all(word.replace("\\", "\\\\") in notebook for word in words)

    derivation = page.locator("div.derivation[data-tex]").first
    derivation.hover()
    derivation.get_by_role("button", name="Copy this derivation as TeX").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    records = [output["data"][MIME] for cell in json.loads(notebook)["cells"] for output in cell.get("outputs", [])
               if MIME in output.get("data", {})]  # fmt: skip
    lines = records[0]["lines"]
    assert copied.startswith(r"\begin{aligned}") and copied.count("&&") == len(lines) - 1
    assert all(line["tex"] in copied for line in lines)

    box = page.locator("#meaning")
    for link in (page.locator("a.symbol-link").first, page.locator("a:has(> .term-link)").first):
        link.scroll_into_view_if_needed()
        page.keyboard.press("Tab")  # the next focus is one of the keyboard
        link.focus()
        box.wait_for(state="visible", timeout=5000)
        assert len(box.inner_text()) > 10 and link.get_attribute("aria-describedby") == "meaning"
        page.keyboard.press("Escape")
        assert not box.is_visible()
    context.close()


def test_a_finger_shows_the_meaning_and_then_follows(browser: Browser, address):
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True)
    page = context.new_page()
    page.goto(address + PAGE)
    link = page.locator("a:has(> .term-link)").first
    link.scroll_into_view_if_needed()
    link.tap()
    page.locator("#meaning").wait_for(state="visible", timeout=5000)
    assert page.url.endswith(PAGE)
    link.tap()
    page.wait_for_url("**/reference/glossary.html**")
    context.close()


def test_a_handout_has_no_solutions_and_says_where_it_is_from(browser: Browser, address):
    page = browser.new_page()
    page.goto(address + PAGE)
    page.evaluate("window.print = () => {}; printWithoutSolutions()")
    page.emulate_media(media="print")
    assert page.locator(".printed-from").is_visible()
    assert page.locator("div.exercise").first.is_visible()
    assert not any(solution.is_visible() for solution in page.locator("div.solution").all())
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("div.solution").first.is_visible()
    page.close()
