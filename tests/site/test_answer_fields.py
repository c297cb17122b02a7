"""Fields for answers, in a real browser: a right answer, a named mistake, and what opens the hint."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import browser_checks as check
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

PAGE = "chapters/operator/scaling.html"


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(address + PAGE)
    check.settle(page)
    yield page
    context.close()


def field(page: Page, label: str, number: int) -> Locator:
    return page.locator(f"form.answer[data-answer*='\"{label}-{number}\"']")


def answer(form: Locator, given: str) -> Locator:
    form.locator("input").fill(given)
    form.locator("input").press("Enter")
    return form.locator("output")


@pytest.mark.parametrize(
    ("label", "number", "given"),
    [
        ("by-hand", 0, "2.72"),
        ("by-hand", 0, "2,718"),
        ("by-hand", 0, "e"),
        ("by-hand", 1, "exp(1/sqrt 2)"),
        ("by-hand", 1, "e^(2^-0.5)"),
        ("magnitude", 1, "1.5"),
        ("magnitude", 2, "√(2/π)"),
        ("magnitude", 2, str(math.sqrt(2 / math.pi))),
        ("unit-variance", 0, "sqrt(d_k) sigma_k sigma_q"),
        ("unit-variance", 0, "(sigma_q^2*sigma_k^2*d_k)^(1/2)"),
        ("aligned", 1, "1/(1 + (n-1)exp(-rho sigma^2))"),
        ("no-excess", 0, "3^-(1/2)"),
    ],
)
def test_a_right_answer_is_right_however_it_is_written(page, label, number, given):
    expect(answer(field(page, f"exercise-scaling-{label}", number), given)).to_have_text("Right.")


@pytest.mark.parametrize(
    ("label", "number", "given", "said"),
    [
        ("by-hand", 0, "2.03", "Not right: this is the factor with the division."),
        ("magnitude", 0, "1.41421", "Not right: this is the root mean square."),
        ("unit-variance", 0, "d_k*sigma_q^2*sigma_k^2", "Not right: this is the variance, and"),
        ("by-hand", 0, "alert(1)", "This is no formula that can be read"),
        ("by-hand", 0, "1/0", "This is no formula that can be read"),
        ("by-hand", 0, "2 +", "This is no formula that can be read"),
        ("by-hand", 0, " ", "Nothing is given yet."),
    ],
)
def test_a_mistake_has_its_name_and_what_cannot_be_read_says_so(page, label, number, given, said):
    expect(answer(field(page, f"exercise-scaling-{label}", number), given)).to_contain_text(said)


def test_an_answer_that_nobody_expected_opens_the_hint_and_keeps_the_focus(page):
    form = field(page, "exercise-scaling-magnitude", 1)
    hint = page.locator(".admonition.dropdown", has_text="Each product").first
    expect(hint.locator("p", has_text="Each product")).not_to_be_visible()
    expect(answer(form, "17")).to_have_text("Not right. The hint below is open.")
    expect(hint.locator("p", has_text="Each product")).to_be_visible()
    expect(form.locator("input")).to_be_focused()


def test_a_choice_is_checked(page):
    form = field(page, "exercise-scaling-shift", 0)
    form.locator("select").select_option("the queries")
    form.locator("button").click()
    expect(form.locator("output")).to_contain_text("Not right: it adds the same preference")
    form.locator("select").select_option("the keys")
    expect(form.locator("output")).to_be_empty()
    form.locator("button").click()
    expect(form.locator("output")).to_have_text("Right.")


def test_the_page_does_not_hold_the_answer(page):
    known = json.loads(field(page, "exercise-scaling-no-excess", 0).get_attribute("data-answer"))
    assert not {"0.577", "5.77e-1", "1/sqrt(3)"} & {*known["right"], *known["wrong"]}
    assert all(len(one) > 8 for one in known["right"])


def test_without_a_script_there_is_no_field(browser: Browser, address: str):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + PAGE)
    expect(page.locator("form.answer").first).not_to_be_visible()
    context.close()
