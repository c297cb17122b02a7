"""Find the wrong line, in a real browser: lines are buttons, what was found stays, and the day chooses five."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import browser_checks as check
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

SETS = ("encoder_decoder", "fixed_attention", "linear_cost", "matrix", "operator", "sparsity")
SMALL = f"practice/{SETS[0]}.html"
KEY = "localStorage.getItem('wrong-lines')"


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(30_000)
    yield context
    context.close()


@pytest.fixture
def visit(context: BrowserContext, address: str) -> Callable[[str], Page]:
    def visit(name: str, date: str = "") -> Page:
        page = context.new_page()
        if date:
            page.clock.set_fixed_time(f"{date}T12:00:00")
        page.goto(address + name)
        check.settle(page)
        return page

    return visit


def wrong(article: Locator) -> int:
    return int(article.get_attribute("data-wrong") or 0)


def button(article: Locator, number: int) -> Locator:
    return article.locator(f"ol > li:nth-child({number}) > button")


def stored(page: Page) -> dict[str, int]:
    return json.loads(page.evaluate(KEY) or "{}")


def test_each_line_but_the_first_has_a_button_with_a_name(visit):
    page = visit(SMALL)
    for article in page.locator(".wrong-line").all():
        lines = article.locator("ol > li").count()
        names = [b.get_attribute("aria-label") for b in article.locator("ol button").all()]
        assert names == [f"Line {k} does not follow" for k in range(2, lines + 1)]
        assert wrong(article) in range(2, lines + 1)


def test_by_keyboard_a_right_line_is_told_and_the_wrong_one_is_found(visit):
    page = visit(SMALL)
    article = page.locator(".wrong-line").first
    number = wrong(article)
    other = next(k for k in range(2, article.locator("ol > li").count() + 1) if k != number)
    status = article.locator("[role=status]")
    button(article, other).press("Enter")
    expect(status).to_have_text(f"Line {other} follows from the right line before it. Look again.")
    expect(button(article, other)).to_be_focused()
    assert stored(page) == {} and not article.locator("details").get_attribute("open")
    button(article, number).press("Space")
    mistake = article.locator("details .wrong-line-mistake").text_content()
    expect(status).to_have_text(f"Found at try 2: line {number} does not follow. The mistake: {mistake}.")
    expect(button(article, number)).to_be_focused()
    expect(button(article, number)).to_have_accessible_name(f"Line {number} is the wrong one")
    expect(article.locator("details > p")).to_be_visible()
    assert list(stored(page).values()) == [2]


def test_what_was_found_is_there_after_another_visit_and_can_be_forgotten(visit):
    page = visit(SMALL)
    article = page.locator(".wrong-line").first
    article.locator(f"ol > li:nth-child({wrong(article)}) > .formula").click()  # the line itself, with the mouse
    section = page.locator("section", has=page.locator(".wrong-line")).last
    score = section.locator(".wrong-line-score")
    of = section.locator(".wrong-line").count()
    expect(score).to_have_text(re.compile(rf"^[01] of {of} found$"))
    again = visit(SMALL)
    first = again.locator(".wrong-line").first
    expect(first.locator("[role=status]")).to_have_text("You have found this one.")
    again.locator(".wrong-line-forget > button").click()
    expect(again.locator(".wrong-line-forget > [role=status]")).to_contain_text("Forgotten")
    expect(first.locator("[role=status]")).to_be_empty()
    assert stored(again) == {}
    expect(button(first, wrong(first))).to_have_accessible_name(f"Line {wrong(first)} does not follow")


def todays(page: Page) -> list[str]:
    box = page.locator(".wrong-line-today")
    expect(box.locator(".wrong-line.live")).to_have_count(5)
    chapters = box.locator(".wrong-line-from a").all_text_contents()
    assert len(set(chapters)) == 5
    assert sum(article.locator("ol > li").count() > 3 for article in box.locator(".wrong-line").all()) >= 3
    return [str(article.get_attribute("id")) for article in box.locator(".wrong-line").all()]


def test_the_day_chooses_five_and_the_same_five_for_all(visit):
    one, again, other = (todays(visit("practice.html", date)) for date in ("2031-05-06", "2031-05-06", "2031-05-07"))
    assert one == again and not set(one) & set(other)


def test_an_exercise_of_the_day_counts_in_its_set(visit):
    page = visit("practice.html", "2031-05-06")
    todays(page)
    article = page.locator(".wrong-line-today .wrong-line").first
    expect(page.locator(".wrong-line-sets .score", has_text=re.compile("^1 of"))).to_have_count(0)
    button(article, wrong(article)).click()
    expect(page.locator(".wrong-line-sets .score", has_text=re.compile("^1 of"))).to_have_count(1)
    expect(page.locator(".wrong-line-today .wrong-line-score")).to_have_text("1 of 5 found")


def test_without_copies_the_day_still_leads_to_its_exercises(context, address):
    page = context.new_page()
    page.route("**/wrong-lines/*.json", lambda route: route.fulfill(status=404))
    page.goto(f"{address}practice.html")
    links = page.locator(".wrong-line-today .wrong-line-from a")
    expect(links).to_have_count(5)
    target = str(links.first.get_attribute("href"))
    page.goto(address + target)
    expect(page.locator(f"#{target.partition('#')[2]}")).to_be_visible()


def test_the_sets_have_all_exercises_and_each_has_its_copy(site: Path):
    copies = {path.stem: path for path in (site / "_static" / "wrong-lines").iterdir()}
    for edition in (site, site / "zh"):
        overview = BeautifulSoup((edition / "practice.html").read_text("utf-8"), "html.parser")
        sets = [one for part in overview.select(".wrong-line-sets") for one in json.loads(str(part["data-sets"]))]
        ids = [name for _, _, _, of in sets for name, _ in of]
        shown = [name for part in SETS
                 for name in re.findall(r'<article class="wrong-line" id="wrong-line-(\w+)"',
                                        (edition / f"practice/{part}.html").read_text("utf-8"))]  # fmt: skip
        assert shown and sorted(ids) == sorted(shown) and set(shown) <= copies.keys()
        copy = json.loads(copies[shown[0]].read_text("utf-8"))
        assert "<math" in copy and r"\(" not in copy
        assert ("正确的行" in copy) == (edition != site)
        copies = {name: path for name, path in copies.items() if name not in shown}
    assert not copies


def test_without_a_script_the_solution_is_folded_below_each_exercise(browser: Browser, address: str):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + SMALL)
    article = page.locator(".wrong-line").first
    expect(article.locator("button")).to_have_count(0)
    expect(article.locator("details > p")).not_to_be_visible()
    article.locator("summary").click()
    expect(article.locator("details > p")).to_be_visible()
    context.close()
