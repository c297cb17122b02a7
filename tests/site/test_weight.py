"""Pages are light, complete without scripts, and have the characters of the fonts that they need."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import browser_checks as check
import pytest
from conftest import ROOT
from fontTools.ttLib import TTFont
from playwright.sync_api import Browser, Page

FONTS = ROOT / "_static" / "vendor" / "fonts"
HAN = "[\u2e80-\u2fdf\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"
ITALIC = {0x61: 0x1D44E, 0x41: 0x1D434, 0x3B1: 0x1D6FC, 0x391: 0x1D6E2}


def missing(text: str, math: set[int], han: set[int]) -> set[str]:
    """Return the characters of a page that it needs and that the fonts of the site lack."""
    found = set(re.findall(HAN, text))
    lacking = {c for c in found if ord(c) not in han}
    for formula in re.findall(r"<math\b.*?</math>", text, re.DOTALL):
        for content in re.findall(r"<m(?:i|o|n|text)\b[^>]*>([^<]*)<", formula):
            lacking |= {c for c in html.unescape(content) if ord(c) not in (han if re.match(HAN, c) else math)}
        for letter in re.findall(r"<mi>(\w)</mi>", formula):  # browsers show a single letter as an italic one
            for first, slanted in ITALIC.items():
                code = slanted + ord(letter) - first
                if 0 <= ord(letter) - first < 26 and letter != "h" and not 0x1D6E2 <= code < 0x1D6FC:
                    lacking |= {letter} if code not in math else set()
    return lacking


@pytest.fixture(scope="module")
def fonts() -> tuple[set[int], set[int]]:
    math, han = (set(TTFont(FONTS / f"book-{name}.woff2").getBestCmap()) for name in ("math", "han"))
    return math, han


def test_the_fonts_of_the_site_have_every_character(site, fonts):
    for page in site.rglob("*.html"):
        lacking = missing(page.read_text(encoding="utf-8"), *fonts)
        assert not lacking, f"{page.name}: add {sorted(lacking)} in tools/fonts.py, and run it"


def test_missing_rejects(fonts):
    assert missing("<p>齉 a</p><math><mi>x</mi><mo>⋘</mo></math>", *fonts) == {"齉", "⋘"}
    assert missing("<math><mi>b</mi></math>", fonts[0] - {0x1D44F}, fonts[1]) == {"b"}
    assert missing("<math><mtext>若</mtext></math>", fonts[0], fonts[1] - {ord("若")}) == {"若"}


_FONTS = """() => performance.getEntriesByType("resource").map((r) => r.name)
    .filter((name) => /fonts.(pages|book-han)/.test(name))"""


def test_a_page_loads_a_font_with_its_own_characters(browser, address, site):
    page = browser.new_page()
    chapters = sorted(p.relative_to(site).as_posix() for p in site.glob("chapters/**/*.html"))
    for name in (chapters[0], "read/section-5-1.html", "zh/read/section-5-1.html", "reference/glossary.html"):
        page.goto(address + name)
        check.settle(page)
        loaded = page.evaluate(_FONTS)
        had = {code for font in loaded for code in TTFont(site / font.removeprefix(address)).getBestCmap()}
        shown = set(re.findall(HAN, page.locator("html").inner_text()))
        assert shown and all("fonts/pages/" in font for font in loaded)
        if name.startswith("zh/"):  # a reader's own fonts come first; then that of many pages, and the page's own
            assert len(loaded) in (0, 2)
        else:
            assert len(loaded) == 1
        assert not loaded or {ord(c) for c in shown} <= had
    page.evaluate("document.querySelector('article h1').textContent = '龘'")  # the page has no such character
    page.wait_for_function(f"() => ({_FONTS})().length === 2", timeout=5000)
    page.close()


def test_the_math_font_has_the_measures_of_mathematics():
    font = TTFont(FONTS / "book-math.woff2")
    assert "MATH" in font
    grown = font["MATH"].table.MathVariants.VertGlyphCoverage.glyphs
    assert {font.getBestCmap()[ord(c)] for c in "()[]{}|‖∑√"} <= set(grown)


def test_chinese_says_that_it_is(site):
    for page in (p for p in site.rglob("*.html") if "zh" not in p.parts):  # there the whole page says so
        text = re.sub(r"(?s)<(script|style|textarea|title)\b.*?</\1>|<!--.*?-->", "", page.read_text(encoding="utf-8"))
        for tag, words in re.findall(r"(<[^>]*>)([^<]+)", text):
            if re.search("[\u3400-\u9fff]", words):
                assert 'lang="zh' in tag, f"{page.name}: {words.strip()[:40]}"


@pytest.fixture
def plain(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def test_without_scripts_text_and_mathematics_are_there(plain, address, site):
    name = min((p for p in site.glob("chapters/**/*.html")), key=lambda p: p.stat().st_size)
    plain.goto(address + name.relative_to(site).as_posix())
    # evaluating needs scripts: the picture of the page's first formula shows whether it is drawn
    formula = plain.locator("article.bd-article section > p math").first
    box = formula.bounding_box()
    assert box is not None and box["width"] > 4 and box["height"] > 8
    assert plain.locator("article.bd-article h1").inner_text().strip()


def test_weigh_rejects(browser: Browser, tmp_path: Path):
    move = "() => setTimeout(() => document.querySelector('p').style.marginTop = '300px', 100)"
    shifting = f"<p>a</p><script>requestAnimationFrame(() => requestAnimationFrame({move}))</script>"
    (tmp_path / "heavy.html").write_text(
        f"<link rel=icon href=data:,><!-- {'x' * 1_000_000} -->" + "".join(f"<img src='{k}.png'>" for k in range(30))
    )
    (tmp_path / "shift.html").write_text("<link rel=icon href=data:,>" + shifting + "<h1>b</h1>" * 20)
    for k in range(30):
        (tmp_path / f"{k}.png").write_bytes(b"x")
    with check.served(tmp_path) as address:
        for name, faults in (("heavy", {"bytes", "requests"}), ("shift", {"shift"})):
            page = browser.new_page()
            weight = check.Weight(page)
            page.goto(f"{address}{name}.html")
            page.wait_for_timeout(400)
            if name == "shift":  # a busy machine may show the first frame late
                page.wait_for_function("window.shifts.length > 0")
            found = check.too_heavy(weight)
            assert {fault.split()[-1] for fault in found} == faults, found
            page.close()
