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
from attnlab.heads import load_heads, load_pretrained
from attnlab.heads.example import HEAD, LAYER, four_tokens
from attnlab.heads.models import SENTENCE
from attnmath import sparsity
from attnmath.fixed_attention.reachability import layers_to_reach, reach
from attnmath.linear_cost.random_features import variance
from attnmath.linear_cost.random_features.maps import positive
from attnmath.linear_cost.random_features.optimal import optimal_coefficient
from attnmath.linear_cost.random_features.performer import kernel_estimate
from attnmath.matrix import mixing, patterns, rank
from attnmath.operator import attention

sys.path.insert(0, str(ROOT / "_ext"))

import interactive
from interactive import pictures, tables

FORMULAS = "".join((interactive.ASSETS / name).read_text(encoding="utf-8") for name in ("formulas.js", "matrices.js"))
#: Some forty operations, each rounded by half an ulp, and functions that are right to a few ulps; exp turns an ulp of
#: its exponent, at most 225, into so many ulps.
TOLERANCE = 1e-12
#: Singular values are right to some ulps of the largest, and what is made of the smallest ones with them.
OF_SPECTRA = {"singularValues", "entropyRank", "product"}


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
        "bestVariance": (
            [(norm, 2) for norm in norms.tolist()],
            [variance.gerf_variance(u, v, float(optimal_coefficient(norm**2 / 2)), relative=True)
             for u, v, norm in zip(x, y, norms, strict=True)],
        ),
        **of_matrices(rng),
    }  # fmt: skip


def of_matrices(rng: np.random.Generator) -> dict[str, tuple[list[tuple[Any, ...]], Any]]:
    """Return the same for the formulas of matrices."""
    scores = rng.normal(size=(6, 7, 7)) * np.geomspace(0.3, 5, 6)[:, None, None]
    masks = np.stack([patterns.window_mask(7, 2), np.tri(7, dtype=bool)] * 3)
    A = np.stack(
        [attention.attention_weights(S, np.eye(7), scale=1.0, mask=mask) for S, mask in zip(scores, masks, strict=True)]
    )
    sigma = rank.singular_values(A)
    of_sigma, of_A = ([(one,) for one in array.tolist()] for array in (sigma, A))
    sizes = [(n, size) for n in (5, 12) for size in (1, 3)]
    strided = [patterns.factorised_strided(11, stride) for stride in (2, 3)]
    fixed = [patterns.factorised_fixed(11, stride, 1) for stride in (2, 3)]
    hub = patterns.window_mask(12, 1) | patterns.hub_mask(12, 1)
    return {
        "product": (list(zip(A[:3].tolist(), A[3:].tolist(), strict=True)), A[:3] @ A[3:]),
        "attention": (list(zip(scores.tolist(), masks.tolist(), strict=True)), A),
        "singularValues": (of_A, sigma),
        "entropyRank": (of_sigma, rank.entropy_rank(sigma)),
        "stableRank": (of_sigma, rank.stable_rank(sigma)),
        "effectiveRank": ([(one, 0.1) for one in sigma.tolist()], rank.effective_rank(sigma, 0.1)),
        "numericalRank": ([([3.0, 1.0, 1e-17],), ([1.0, 0.5, 0.25],)], [2, 3]),
        "dobrushin": (of_A, mixing.dobrushin(A)),
        "causal": ([(4,)], [np.tri(4)]),
        "both": ([([[True, False]], [[True, True]])], [[[1, 0]]]),
        "either": ([([[True, False]], [[False, False]])], [[[1, 0]]]),
        **{name: (sizes, [make(*size) for size in sizes]) for name, make in (
            ("windowMask", patterns.window_mask), ("stridedMask", patterns.strided_mask),
            ("blockMask", patterns.block_mask), ("hubMask", patterns.hub_mask))},
        "factorisedStrided": ([(11, 2), (11, 3)], strided),
        "factorisedFixed": ([(11, 2, 1), (11, 3, 1)], fixed),
        "halvingMask": ([(n,) for n in (13,)], [patterns.halving_mask(13)]),
        "layersNeeded": ([([mask.tolist() for mask in pair], 2) for pair in (*strided, *fixed, (hub, hub))],
                         [needed(pair) for pair in (*strided, *fixed, (hub, hub))]),
    }  # fmt: skip


def needed(pair: tuple[Any, Any]) -> Any:
    """Return for each pair through how many of two layers the second position reaches the first; inf for neither."""
    one, two = (reach(np.stack(pair[:layers]), residual=True) for layers in (1, 2))
    found = np.where(two, 2.0, np.inf)
    found[one] = 1
    np.fill_diagonal(found, 0)
    return found


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
        name for name, (_, expected) in cases().items() if not agree(got[name], expected, absolute=name in OF_SPECTRA)
    ]


def agree(got: Any, expected: Any, *, absolute: bool) -> bool:
    """Whether numbers are those expected. Their shapes may differ."""
    pairs = [(np.array(one, float), np.array(of, float)) for one, of in zip(got, expected, strict=True)]
    return all(np.allclose(one, of, rtol=TOLERANCE, atol=TOLERANCE if absolute else 0) for one, of in pairs)


def test_formulas_agree_with_the_package(blank):
    assert disagreeing(blank, FORMULAS) == []


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ("Math.exp(-square / 4)", "Math.exp(-square / 2)", "reluSquaredSparsity"),
        ("2 * Math.sinh", "Math.sinh", "pairVariance"),
        ("yi * others[i]", "yi * yj", "jacobianNorm"),
        ("(value - top) / temperature", "value - top", "softmax"),
        ("cosine * (v[k] + tangent * u[k])", "cosine * (v[k] - tangent * u[k])", "singularValues"),
        (">= (1 - epsilon) * total(sigma)", "> epsilon * total(sigma)", "effectiveRank"),
        ("Math.abs(value - v[k]))) / 2", "Math.abs(value - v[k])))", "dobrushin"),
        ("i >= j && i - j <= stride", "i >= j && i - j < stride", "factorisedStrided"),
        ("(16 * A * A) / (1 - 8 * A)", "(16 * A * A) / (1 - 4 * A)", "bestVariance"),
        ("before[a][j] < Infinity", "needed[a][j] < Infinity", "layersNeeded"),
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
        return json.loads(re.search(r"\] = ([{\[].*[}\]]);", text)[1])

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


@pytest.mark.parametrize(("key", "causal"), [("encoder", False), ("small", True), ("pretrained", True)])
def test_tables_of_trained_heads(table, key, causal):
    (model,) = (one for one in table("models") if one["key"] == key)
    heads = load_heads("sentence") if key == "encoder" else tables.models()[key][0]
    assert (model["causal"], model["layers"], model["heads"]) == (causal, heads.layers, heads.heads)
    assert len(model["tokens"]) == heads.n == SENTENCE
    layer, head = (number - 1 for number in model["start"])
    rows = table(f"heads-{key}-{layer + 1}")["scores"][head]
    assert [len(row) for row in rows] == ([*range(1, 19)] if causal else [18] * 18)
    A = heads.weights()[layer, head]
    np.testing.assert_allclose(attention.softmax(rows[-1]), A[-1], atol=1e-3)  # scores have three places
    assert not np.allclose(attention.softmax(np.array(rows[-1]) * 1.1), A[-1], atol=1e-3)


def test_a_shorter_text_of_a_causal_model_has_the_same_heads():
    whole = load_pretrained()
    np.testing.assert_allclose(tables.models()["pretrained"][0].weights(), whole.weights()[:, :, :18, :18], atol=1e-12)


def test_table_of_products(table):
    found = table("widths")
    for one in found["drawn"]:  # the spread of a sample of 32,760 products: five standard errors
        assert one["deviations"][0] == pytest.approx(np.sqrt(one["width"]), rel=5 / np.sqrt(2 * tables.PRODUCTS) * 3)
        assert sum(one["plain"]) == pytest.approx(1, abs=0.01)
    Q, K = (getattr(load_heads("sentence"), name) for name in "QK")
    scores = (Q @ np.swapaxes(K, -1, -2))[:, :, 1:]
    assert found["trained"][0]["deviations"][0] == pytest.approx(scores.std(), rel=1e-3)
    saturated = (attention.softmax(scores / np.sqrt(32)).max(axis=-1) > tables.SATURATED).mean()
    assert found["trained"][0]["saturated"][1] == pytest.approx(saturated, rel=1e-2)


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
    described = pictures.texts(ROOT / pictures.WORDS)
    assert list(described) == list(pictures.FIGURES)
    assert all({"alt", "caption"} <= set(words) <= {"alt", "caption", "on_paper"} for words in described.values())
    assert not [name for name, words in described.items() if re.search(r"\bsite\b", words["caption"])]


# --- one visit -------------------------------------------------------------------------------------


def come_alive(page: Page, kind: str) -> Locator:
    page.mouse.move(5, 5)
    check.lay_out(page)  # what lies above it has its height, and a scroll ends where it was to end
    figure = page.locator(f"figure.interactive-{kind}")
    figure.scroll_into_view_if_needed()
    page.locator(f"figure.interactive-{kind}.is-live").wait_for(timeout=10_000)
    return figure


def test_who_only_opens_a_page_loads_no_figure_to_move(browser, address):
    page = browser.new_page(viewport={"width": 1280, "height": 1200})
    loaded = "() => performance.getEntriesByType('resource').some((r) => r.name.includes('chart.umd'))"
    page.goto(f"{address}chapters/operator/scaling.html")
    figure = page.locator("figure.interactive-widths")
    assert figure.bounding_box()["y"] < 900, "it is in view"
    page.wait_for_timeout(1000)
    assert not page.evaluate(loaded) and page.locator("figure.is-live").count() == 0
    page.mouse.move(5, 5)
    page.locator("figure.interactive-widths.is-live").wait_for(timeout=10_000)
    assert page.evaluate(loaded)
    page.close()


def press(figure: Locator, label: str, key: str, times: int = 1) -> None:
    slider = figure.get_by_label(label, exact=True)
    for _ in range(times):
        slider.press(key)


SUPERSCRIPTS = str.maketrans("\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "-0123456789")


def number(text: str) -> float:
    """Return a number as a figure shows it, NaN for words."""
    plain = text.replace("\N{MINUS SIGN}", "-").replace("\u202f", "").replace(" %", "")
    digits, _, power = plain.partition("10") if "\N{MULTIPLICATION SIGN}10" in plain else (plain, "", "")
    if not power and re.fullmatch("10[\u207b\u2070-\u2079\u00b9\u00b2\u00b3]+", plain):
        digits, power = "1", plain[2:]
    try:
        return float(f"{digits.rstrip(chr(0xD7))}e{power.translate(SUPERSCRIPTS) or 0}")
    except ValueError:
        return float("nan")


def shown(figure: Locator, column: int = 0) -> list[float]:
    """Return the numbers in a column of the last table."""
    body = figure.locator("table.interactive-numbers").last.locator("tbody tr")
    texts = body.evaluate_all(f"rows => rows.map((row) => row.querySelectorAll('td')[{column}].textContent)")
    return [number(text) for text in texts]


def test_figures_follow_the_arrow_keys(browser, address):
    page = browser.new_page(viewport={"width": 360, "height": 800}, color_scheme="light")
    watch = check.Watch(page, address)
    page.goto(f"{address}play.html", wait_until="domcontentloaded")
    head = four_tokens()
    S = head.Q @ head.K.T / np.sqrt(2)
    near = {"abs": 5.1e-4, "rel": 0}

    row = come_alive(page, "row")
    press(row, "temperature T", "ArrowLeft", 4)  # a fifth of a power of ten
    press(row, "score of took", "ArrowRight", 5)
    T, scores = 10**-0.2, S[3] + np.array([0, 0.5, 0, 0]) / np.sqrt(2)
    p = attention.softmax(scores, temperature=T)
    norm = attention.jacobian_norm(p)
    assert shown(row) == pytest.approx([attention.entropy(p), norm, norm / (T * np.sqrt(2))], **near)
    red = "cells => cells.map((cell) => cell.classList.contains('is-negative'))"
    entries = row.locator(".interactive-heat tbody td")
    assert entries.evaluate_all(red) == (attention.softmax_jacobian(p) < 0).ravel().tolist()
    status = row.locator(".visually-hidden[aria-live=polite]")
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
    T = pictures.TEMPERATURES[len(pictures.TEMPERATURES) // 2 + 1]
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

    widths = come_alive(page, "widths")
    press(widths, "width d_k", "ArrowRight")
    drawn = {one["width"]: one for one in tables.tables()["widths"]["drawn"]}
    assert shown(widths)[0] == pytest.approx(drawn[32]["deviations"][0], abs=5e-3)
    widths.get_by_label("queries and keys").select_option("pretrained decoder, width 64")
    assert shown(widths, 1)[0] == pytest.approx(tables.tables()["widths"]["trained"][2]["deviations"][1], abs=5e-3)
    assert widths.get_by_label("width d_k", exact=True).is_disabled()

    mask = come_alive(page, "mask")
    mask.get_by_label("model").select_option("pretrained decoder")
    mask.get_by_label("first token").select_option("left out")
    mask.get_by_label("mask", exact=True).select_option("window")
    layer, head = tables.models()["pretrained"][1]
    A = tables.models()["pretrained"][0].weights()[layer, head, 1:, 1:]
    A, window = A / A.sum(axis=1, keepdims=True), patterns.window_mask(17, 2)
    behind = A * window / (A * window).sum(axis=1, keepdims=True)
    numbers = [[rank.numerical_rank(M).rank, rank.effective_rank(rank.singular_values(M), 0.1),
                rank.entropy_rank(rank.singular_values(M))] for M in (behind, A)]  # fmt: skip
    page.wait_for_function("e => e.textContent.includes('17')", arg=mask.locator("table").last.element_handle())
    for column, (expected, kept) in enumerate(zip(numbers, [(A * window).sum() / 17, 1], strict=True)):
        assert shown(mask, column) == pytest.approx([*expected, kept], abs=0.011)

    powers = come_alive(page, "powers")
    press(powers, "passes k", "ArrowRight", 2)
    A = attention.softmax(load_heads("sentence").scores()[LAYER, HEAD])
    assert shown(powers)[0] == pytest.approx(mixing.dobrushin(np.linalg.matrix_power(A, 3)), rel=1e-2)

    reached = come_alive(page, "reach")
    press(reached, "width, stride or block", "ArrowRight")
    turns = np.stack(patterns.factorised_strided(48, 8))
    lower = np.tri(48, dtype=bool)
    share = reach(turns, residual=True)[lower].mean()
    entries = turns.sum() / 48 / 2
    assert shown(reached) == pytest.approx([entries, share, 48, layers_to_reach(turns, lower)], abs=0.051)

    kernel = come_alive(page, "kernel")
    press(kernel, "first of x", "ArrowRight")
    x, y = np.add(pictures.VECTORS, [[0.1, 0], [0, 0]])
    one = variance.positive_variance(x, y, relative=True), variance.hyperbolic_variance(x, y, relative=True)
    assert shown(kernel)[:2] == pytest.approx(one, rel=6e-3)

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


# --- questions, links, handles ---------------------------------------------------------------------


def test_a_link_brings_back_what_was_moved_and_reset_takes_it_away(browser, address):
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.goto(f"{address}play.html", wait_until="domcontentloaded")
    mask = come_alive(page, "mask")
    mask.get_by_label("model").select_option("small decoder")
    press(mask, "layer", "Home")
    mask.get_by_role("button", name="Copy link").click()
    page.wait_for_url("**mask.model=1**#fig-play-mask-here")
    before, link = shown(mask), page.url
    page.goto("about:blank")
    page.goto(link, wait_until="domcontentloaded")
    mask = come_alive(page, "mask")
    page.wait_for_function("e => e.textContent !== ''", arg=mask.locator("tbody td").last.element_handle())
    assert shown(mask) == before and mask.get_by_label("layer", exact=True).input_value() == "1"
    assert mask.get_by_label("layer", exact=True).get_attribute("max") == "4"
    mask.get_by_role("button", name="Reset").click()
    page.wait_for_function("() => !location.search.includes('mask.')")
    assert mask.get_by_label("layer", exact=True).get_attribute("max") == "6"
    page.goto(f"{address}play.html?mask.model=nonsense&mask.layer=99&other=1", wait_until="domcontentloaded")
    mask = come_alive(page, "mask")
    assert mask.get_by_label("layer", exact=True).input_value() == "6"
    page.close()


@pytest.mark.parametrize("kind", pictures.FIGURES)
def test_a_guess_is_answered_by_what_the_figure_then_shows(browser, address, kind):
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.goto(f"{address}play.html", wait_until="domcontentloaded")
    figure = come_alive(page, kind)
    page.wait_for_function("e => e.textContent !== ''", arg=figure.locator("tbody td").last.element_handle())
    at_rest = {column: shown(figure, column) for column in range(2) if kind != "reach" or column == 0}
    choices = figure.locator(".interactive-question button")
    choices.first.click()
    right = figure.locator(".interactive-question button.is-right")
    assert right.count() == 1 and choices.count() in (2, 3)
    said = figure.locator(".interactive-question p").last
    first = choices.first.inner_text() == right.inner_text()
    assert said.inner_text().startswith("Yes. " if first else f"No: {right.inner_text()}.")
    page.wait_for_timeout(300)
    assert AFTER[kind](at_rest, {column: shown(figure, column) for column in at_rest})
    page.close()


#: What has to be true of the numbers, by column, before and after the answer, if the answer is right.
AFTER = {
    "row": lambda old, new: new[0][1] == 0.5,
    "rows": lambda old, new: old[0][0] == new[0][0] and old[1][0] != new[1][0],
    "laws": lambda old, new: old[0][0] == new[0][0] and old[0][1] != new[0][1] and old[0][2] != new[0][2],
    "spectrum": lambda old, new: new[0][0] < old[0][0] < 2.5,  # lower at 5; the picture has more than 2.5 between
    "features": lambda old, new: new[1][0] > 1e5 * old[1][0],
    "widths": lambda old, new: new[0][0] == pytest.approx(4 * old[0][0], rel=0.02),
    "mask": lambda old, new: new[0][2] > old[0][2] and new[0][2] > new[1][2],
    "powers": lambda old, new: new[0][0] < 1e-5,
    "reach": lambda old, new: new[0][2] == 15,
    "kernel": lambda old, new: max(new[0][0], new[0][1]) < new[0][2],
}


def test_bars_and_points_are_dragged(browser, address):
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.goto(f"{address}play.html", wait_until="domcontentloaded")
    at = """(canvas, [dataset, index]) => {
        const point = Chart.getChart(canvas).getDatasetMeta(dataset).data[index];
        const { left, top } = canvas.getBoundingClientRect();
        return [left + point.x, top + point.y];
    }"""

    def drag(figure: Locator, canvas: int, point: list[int], by: tuple[float, float]) -> None:
        x, y = figure.locator("canvas").nth(canvas).evaluate(at, point)
        page.mouse.move(x, y + 1)
        page.mouse.down()
        page.mouse.move(x + by[0], y + by[1], steps=4)
        page.mouse.up()

    row = come_alive(page, "row")
    before = row.get_by_label("score of took", exact=True).input_value()
    drag(row, 0, [0, 1], (0, -60))
    assert float(row.get_by_label("score of took", exact=True).input_value()) > float(before)
    kernel = come_alive(page, "kernel")
    kernel.scroll_into_view_if_needed()
    before = float(kernel.get_by_label("first of x", exact=True).input_value())
    drag(kernel, 0, [0, 1], (30, 0))
    assert float(kernel.get_by_label("first of x", exact=True).input_value()) > before
    assert kernel.get_by_label("first of y", exact=True).input_value() == "0.8"
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
