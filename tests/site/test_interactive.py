"""The interactive figures: formulas and tables against the package, and one visit to the page that has all of them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import browser_checks as check
import numpy as np
import pytest
from conftest import ROOT
from playwright.sync_api import Browser, Locator, Page

from attnlab.experiments.sparse_rows import mean_sparsity
from attnlab.heads import load_heads
from attnlab.heads.example import HEAD, LAYER, four_tokens
from attnmath import sparsity
from attnmath.linear_cost.random_features import variance
from attnmath.linear_cost.random_features.maps import positive
from attnmath.linear_cost.random_features.performer import kernel_estimate
from attnmath.matrix import rank
from attnmath.operator import attention

sys.path.insert(0, str(ROOT / "_ext"))

import interactive
from interactive import pictures, tables

FORMULAS = (ROOT / "_ext" / "interactive" / "assets" / "formulas.js").read_text(encoding="utf-8")
#: Some forty operations, each rounded by half an ulp, and functions that are right to a few ulps; exp turns an ulp of
#: its exponent, at most 225, into so many ulps.
TOLERANCE = 1e-12


# --- formulas ------------------------------------------------------------------------------------


@cache
def cases() -> dict[str, tuple[list[tuple[Any, ...]], Any]]:
    """Return for each formula arguments on a grid, and what the package makes of them."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(40, 5)) * np.geomspace(0.1, 60, 40)[:, None]
    weights = attention.softmax(rows)
    beta, gamma = (grid.ravel() for grid in np.meshgrid(np.linspace(-3, 3, 25), np.geomspace(0.1, 6, 25)))
    above = beta > 0
    norms = np.linspace(0, 4, 33)
    of_rows = [(row,) for row in rows.tolist()]
    of_weights = [(row,) for row in weights.tolist()]
    of_scores = list(zip(beta.tolist(), gamma.tolist(), strict=True))
    along = [(norm,) for norm in norms.tolist()]
    x, y = (np.stack([norms / 2, 0 * norms], axis=1),) * 2  # the norm of their sum
    return {
        "softmax": (list(zip(rows.tolist(), [0.3] * 40, strict=True)), attention.softmax(rows, temperature=0.3)),
        "entropy": (of_weights, attention.entropy(weights)),
        "softmaxJacobian": (of_weights[:20], attention.softmax_jacobian(weights)[:20]),
        "jacobianNorm": (of_weights, attention.jacobian_norm(weights)),
        "sparsity": (of_rows, sparsity.sparsity(rows)),
        "effectiveSupport": (of_rows, sparsity.effective_support(rows)),
        "reluSquaredSparsity": (of_scores, sparsity.relu_squared(beta, gamma)),
        "identitySparsity": (of_scores, sparsity.identity(beta, gamma)),
        "exponentialSparsity": ([(g,) for g in gamma.tolist()], sparsity.exponential(gamma)),
        "linearSparsity": (
            [pair for pair, there in zip(of_scores, above, strict=True) if there],
            [sparsity.linear([1.0], [b], [[g * g]]) for b, g in zip(beta[above], gamma[above], strict=True)],
        ),
        "positiveVariance": (along, variance.positive_variance(x, y, relative=True)),
        "pairVariance": (along, variance.hyperbolic_variance(x, y, relative=True)),
    }


@pytest.fixture(scope="module")
def blank(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()


def disagreeing(page: Page, formulas: str) -> list[str]:
    """Return the formulas that give something else than the package on the grid."""
    page.evaluate(formulas)
    arguments = {name: of_one for name, (of_one, _) in cases().items()}
    names = "(all) => Object.entries(all).map(([name, of]) => [name, of.map((one) => attentionFormulas[name](...one))])"
    got = dict(page.evaluate(names, arguments))
    return [
        name
        for name, (_, expected) in cases().items()
        if not np.allclose(np.array(got[name], float), expected, rtol=TOLERANCE, atol=0)
    ]


def test_formulas_agree_with_the_package(blank):
    assert disagreeing(blank, FORMULAS) == []


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ("Math.exp(-square / 4)", "Math.exp(-square / 2)", "reluSquaredSparsity"),
        ("2 * Math.sinh", "Math.sinh", "pairVariance"),
        ("yi * others[i]", "yi * yj", "jacobianNorm"),
        ("(value - top) / temperature", "value - top", "softmax"),
    ],
)
def test_a_formula_with_a_mistake_disagrees(blank, right, wrong, name):
    assert FORMULAS.count(right) == 1
    assert name in disagreeing(blank, FORMULAS.replace(right, wrong))


# --- tables, as the site has them ----------------------------------------------------------------


@pytest.fixture(scope="module")
def table(site: Path) -> Any:
    def read(name: str) -> dict[str, Any]:
        text = (site / "_static" / "interactive" / f"{name}.js").read_text(encoding="utf-8")
        return json.loads(re.search(r"\] = (\{.*\});", text)[1])

    return read


def test_table_of_drawn_rows(table):
    found = table("rows")
    n, rows = 64, tables.SCORES // 64
    of_length = found["lengths"].index(n)
    exp, gamma = found["S"]["exp"][of_length], found["gammas"]
    relu, t = found["S"]["relu^2"][of_length], found["ratios"]
    assert exp[8] == round(mean_sparsity("exp", 0.0, gamma[8], n=n, rows=rows, seed=n).value, 4)
    assert relu[48] == round(mean_sparsity("relu^2", t[48], 1.0, n=n, rows=rows, seed=n).value, 4)
    assert exp[8] != round(mean_sparsity("exp", 0.0, gamma[9], n=n, rows=rows, seed=n).value, 4)
    assert relu[0] is None, "at a mean of minus twelve deviations nearly all rows are zero"


def test_table_of_estimates(table):
    found, L, m = table("draws"), 2.0, 16
    t = np.random.default_rng(11).standard_normal((tables.REPETITIONS, int(tables.SIZES[-1])))[:, :m]
    pair = np.array([[L / 2]])
    of_estimates = [kernel_estimate(pair, pair, positive(row[:, None])).item() / np.exp(L * L / 4) for row in t]
    by_table = found["estimates"][found["norms"].index(L)][found["sizes"].index(m)]
    assert by_table == pytest.approx(np.quantile(of_estimates, tables.QUANTILES), rel=1e-3)
    assert by_table != pytest.approx(np.quantile(of_estimates, tables.QUANTILES) * 1.01, rel=1e-3)


def test_table_of_a_trained_head(table):
    found = table(f"spectra-{LAYER + 1}")
    one = len(found["temperatures"]) // 2
    assert found["temperatures"][one] == 1
    sigma = rank.singular_values(load_heads("sentence").weights()[LAYER, HEAD])
    by_table = 10 ** (np.array(found["sigma"][HEAD][one]) / 1000)
    shown = by_table > 1e-4
    assert by_table[shown] == pytest.approx(sigma[shown], rel=10**0.0006 - 1)
    assert by_table[shown] != pytest.approx(sigma[shown] * 1.01, rel=10**0.0006 - 1)
    assert found["entropy"][HEAD][one] == pytest.approx(rank.entropy_rank(sigma), rel=1e-2)


# --- the directive ---------------------------------------------------------------------------------


def run(kind: str, options: dict[str, str]) -> Any:
    directive = SimpleNamespace(arguments=[kind], options=options, error=ValueError)
    return interactive.InteractiveDirective.run(directive)


def test_the_directive_says_what_it_expects():
    with pytest.raises(ValueError, match=r"expected one of row, .*, got 'rwo'"):
        run("rwo", {"name": "fig-play-row"})
    with pytest.raises(ValueError, match=r"expected a name .* `:name: fig-play-row`"):
        run("row", {})


def test_every_figure_has_words():
    assert list(pictures.texts()) == list(pictures.FIGURES)
    assert all(set(words) == {"alt", "caption"} for words in pictures.texts().values())


# --- one visit -------------------------------------------------------------------------------------


def come_alive(page: Page, kind: str) -> Locator:
    figure = page.locator(f"figure.interactive-{kind}")
    figure.scroll_into_view_if_needed()
    page.locator(f"figure.interactive-{kind}.is-live").wait_for(timeout=10_000)
    return figure


def press(figure: Locator, label: str, key: str, times: int = 1) -> None:
    slider = figure.get_by_label(label, exact=True)
    for _ in range(times):
        slider.press(key)


def shown(figure: Locator, column: int = 0) -> list[float]:
    """Return the numbers in a column of the last table."""
    body = figure.locator("table.interactive-numbers").last.locator("tbody tr")
    texts = body.evaluate_all(f"rows => rows.map((row) => row.querySelectorAll('td')[{column}].textContent)")
    return [float(text.replace("\N{MINUS SIGN}", "-").replace("\u202f", "").replace("none", "nan")) for text in texts]


def test_figures_follow_the_arrow_keys(browser, address):
    page = browser.new_page(viewport={"width": 360, "height": 800}, color_scheme="light")
    watch = check.Watch(page, address)
    page.goto(f"{address}play.html", wait_until="domcontentloaded")
    head = four_tokens()
    S = head.Q @ head.K.T / np.sqrt(2)
    near = {"abs": 5.1e-4, "rel": 0}

    row = come_alive(page, "row")
    press(row, "temperature T", "ArrowLeft", 4)  # a fifth of a power of ten
    press(row, "score of took", "ArrowRight")
    T, scores = 10**-0.2, S[3] + np.array([0, 0.5, 0, 0]) / np.sqrt(2)
    p = attention.softmax(scores, temperature=T)
    norm = attention.jacobian_norm(p)
    assert shown(row) == pytest.approx([attention.entropy(p), norm, norm / (T * np.sqrt(2))], **near)
    red = "cells => cells.map((cell) => cell.classList.contains('is-negative'))"
    entries = row.locator(".interactive-heat tbody td")
    assert entries.evaluate_all(red) == (attention.softmax_jacobian(p) < 0).ravel().tolist()
    status = row.locator("[aria-live=polite]")
    page.wait_for_function("e => e.textContent.includes('Entropy')", arg=status.element_handle(), timeout=5000)
    row.get_by_role("button", name="Reset").click()
    at_rest = attention.softmax(S[3])
    assert shown(row)[:2] == pytest.approx([attention.entropy(at_rest), attention.jacobian_norm(at_rest)], **near)
    row.get_by_label("query").select_option("rabbit")
    assert shown(row)[0] == pytest.approx(attention.entropy(attention.softmax(S[0])), **near)

    rows = come_alive(page, "rows")
    press(rows, "shift", "ArrowRight")
    both = [attention.softmax(S[3] + 0.25), np.maximum(S[3] + 0.25, 0) ** 2]
    for column, weights in enumerate(both):
        S_and_support = [sparsity.sparsity(weights), sparsity.effective_support(weights)]
        assert shown(rows, column)[:2] == pytest.approx(S_and_support, **near)
    press(rows, "shift", "Home")
    assert np.isnan(shown(rows, 1)[0]), "a row of zeros has no S"

    laws = come_alive(page, "laws")
    press(laws, "mean \N{GREEK SMALL LETTER BETA}", "ArrowRight", 6)
    beta, gamma = pictures.BETA + 1.5, pictures.GAMMA
    expected = [f(beta, gamma) for f in (sparsity.relu_squared, sparsity.identity)]
    limits = [sparsity.exponential(gamma), *expected, sparsity.linear([1.0], [beta], [[gamma**2]])]
    assert shown(laws) == pytest.approx(limits, **near)

    spectrum = come_alive(page, "spectrum")
    press(spectrum, "temperature T", "ArrowRight")
    press(spectrum, "head", "ArrowLeft")
    T = tables.TEMPERATURES[len(tables.TEMPERATURES) // 2 + 1]
    weights = attention.softmax(load_heads("sentence").scores()[LAYER, HEAD - 1], temperature=float(T))
    sigma = rank.singular_values(weights)
    ranks = [rank.entropy_rank(sigma), rank.effective_rank(sigma, tables.EPSILON), rank.stable_rank(sigma)]
    assert shown(spectrum) == pytest.approx(ranks, abs=1e-2)

    features = come_alive(page, "features")
    press(features, "norm of x + y", "ArrowRight")
    press(features, "features m", "ArrowRight")
    along, across, m = pictures.NORM_OF_SUM / 2 + 0.125, pictures.NORM_OF_DIFFERENCE / 2, 128
    x, y = np.array([[along, across], [along, -across]])
    one, *two = (
        f(x, y, relative=True)
        for f in (variance.positive_variance, variance.hyperbolic_variance, variance.trigonometric_variance)
    )
    errors = [np.sqrt(one / m), *(np.sqrt(2 * of_pair / m) for of_pair in two)]
    assert shown(features) == pytest.approx(errors, rel=5.1e-3)

    # Both themes, paper, a narrow window: nothing goes wrong, and charts take the theme's colours.
    colour = "canvas => Chart.getChart(canvas).options.scales.x.ticks.color"
    light = row.locator("canvas").evaluate(colour)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"([canvas, light]) => ({colour})(canvas) !== light",
                           arg=[row.locator("canvas").element_handle(), light], timeout=5000)  # fmt: skip
    assert check.poor_contrast(page, ".interactive-live :is(label, output, th, td, caption, button)") == []
    assert check.too_wide(page) == []
    page.emulate_media(media="print")
    assert row.locator("img").is_visible()
    assert not row.locator(".interactive-live").is_visible()
    assert watch.problems == []
    page.close()


def test_without_scripts_there_are_pictures(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}play.html", wait_until="domcontentloaded")
    pictures_shown = page.locator("figure.interactive img")
    assert pictures_shown.count() == len(pictures.FIGURES)
    assert all(image.is_visible() for image in pictures_shown.all())
    assert page.locator(".interactive-live").count() == 0
    heights = page.locator("figure.interactive").evaluate_all("all => all.map((e) => e.offsetHeight)")
    assert max(heights) < 600, "room is kept for figures that no script will make"
    context.close()
