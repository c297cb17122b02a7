"""The search finds numbers, names and Chinese words, leads to the place itself, and is light until it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote, unquote

import pytest
from playwright.sync_api import Browser, Page

#: What is typed, and the address of the first result.
FIRST = {
    "5.1.8": "chapters/operator/softmax.html#equation-5.1.8",
    "(5.1.8)": "chapters/operator/softmax.html#equation-5.1.8",
    "eq. 5.1.8": "chapters/operator/softmax.html#equation-5.1.8",
    "equation 5.1.8": "chapters/operator/softmax.html#equation-5.1.8",
    "A.6": "chapters/sparsity/squared_relu.html#equation-A.6",
    "article (6)": "chapters/sparsity/squared_relu.html#equation-A.6",
    "report (5)": "chapters/linear_cost/linear_time.html#equation-R.5",
    "缩放点积": "reference/glossary.html#term-scaled-dot-product-attention",
    "scaled dot-product attention": "reference/glossary.html#term-scaled-dot-product-attention",
    "γ": "reference/notation.html#symbol-chance-gamma",
    "ϕ": "reference/notation.html#symbol-attention-in-linear-cost-phi",
    "φ": "reference/notation.html#symbol-attention-in-linear-cost-phi",
    r"\varphi": "reference/notation.html#symbol-attention-in-linear-cost-phi",
    r"\gamma": "reference/notation.html#symbol-chance-gamma",
    "S(a)": "reference/notation.html#symbol-sparsity-capital-s",
    "effective_rank": "reference/api/what_is_true_of_it.html#attnmath.matrix.rank.effective_rank",
    "R.5": "chapters/linear_cost/linear_time.html#equation-R.5",
    "5.5.4": "coverage.html#coverage-5-5-4",
    "缩放因子": "reference/glossary.html#term-scaling-factor",
    "缩放": "reference/glossary.html#term-scaling-factor",
    "effective rank": "reference/glossary.html#term-effective-rank",
    "kappa": "reference/notation.html#symbol-the-attention-matrix-kappa",
    "d_k": "reference/notation.html#symbol-the-attention-operator-d-k",
    "sigma": "reference/notation.html#symbol-chance-sigma",
    "Variance of the score": "chapters/operator/scaling.html#claim-5.1.5",
    "report/locality-of-weights": "chapters/fixed_attention/fixed_patterns.html#claim-report-locality-of-weights",
    "softmax_jacobian": "reference/api/operator.html#attnmath.operator.attention.softmax_jacobian",
}


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(base_url=address)
    page.goto("search.html")
    yield page
    page.close()


def test_the_search_page_is_light_until_it_is_asked(page):
    loaded = page.evaluate("performance.getEntriesByType('resource').map((r) => r.name.split('/').pop())")
    assert not [name for name in loaded if name.startswith(("searchindex.js", "finding-table.js"))], loaded
    assert any(name.startswith("finding.js") for name in loaded)


def results(page: Page, query: str) -> list[str]:
    """Return the addresses of the results, best first; the page has the index already."""
    found = page.evaluate("(query) => Search._performSearch(...Search._parseQuery(query)).reverse()", query)
    return [f"{name}.html{unquote(anchor)}" for name, _, anchor, *_ in found]


def test_numbers_names_and_chinese_words_are_found(page, site):
    page.goto(f"search.html?q={quote('equation 5.1.8')}")
    page.wait_for_function("/finished|did not/.test(document.querySelector('.search-summary')?.innerText)")
    shown = page.locator("#search-results").inner_text()
    assert shown.index("Equation (5.1.8)") < 200
    assert "\\(" not in shown and "\\frac" not in shown
    han = page.locator("#search-results [lang=zh]").all_text_contents()
    assert set("".join(han)) == {sign for sign in shown if "\u4e00" <= sign <= "\u9fff"} != set()
    first = page.locator("#search-results li a").first.get_attribute("href")
    assert first.endswith("softmax.html#equation-5.1.8")
    wanted = {q: a for q, a in FIRST.items() if (site / a.partition("#")[0]).is_file()}
    assert len(wanted) > 10
    assert {query: (results(page, query) or ["nothing"])[0] for query in wanted} == wanted
    assert {"chapters/sparsity/squared_relu.html#equation-A.6"} < set(results(page, "(6)")), "an article has a (6) too"
    assert results(page, "qqqqzzzz") == [], "what the book does not have is not found"


def test_every_symbol_is_found_as_the_page_prints_it(page):
    page.goto("search.html?q=softmax")
    page.wait_for_function("Finding.table")
    symbols = page.evaluate("Finding.table.entries.filter((e) => e.kind === 'Symbol').map((e) => [e.title, e.anchor])")
    assert len(symbols) > 50
    look = "(q) => Finding.look(q).map((e) => e.anchor)"
    assert [
        sign for title, anchor in symbols for sign in title.split(", ") if anchor not in page.evaluate(look, sign)
    ] == []


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
def test_formulas_of_excerpts_are_what_one_would_type(page, mathml, typed):
    page.goto("search.html")
    assert page.evaluate("(html) => Search.htmlToText(html, '')", f"<article>the <math>{mathml}</math></article>") == (
        f"the {typed}"
    )


def test_chinese_words_are_marked_whole(page):
    page.goto(f"search.html?q={quote('稀疏注意力')}")
    page.wait_for_function("/finished/.test(document.querySelector('.search-summary')?.innerText)")
    assert "稀疏注意力" in page.locator("#search-results .highlighted").all_text_contents()


def test_blanks_find_nothing(page):
    page.goto("search.html?q=softmax")
    page.wait_for_function("/finished/.test(document.querySelector('.search-summary')?.innerText)")
    assert results(page, "   ") == []
    index = page.request.get("searchindex.js").text()
    assert '"alltitles":' in index and '"":' not in index.partition('"alltitles":')[2].partition('"docnames":')[0]
