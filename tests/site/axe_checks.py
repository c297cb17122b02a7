"""What axe-core finds wrong with the open page, at the price that a book of many long pages can pay.

Most of axe's time goes to the contrast of each single text. Contrast depends on the colours, the size and the weight
of a text and on what lies behind it, so one text of each such kind is enough. Formulas are replaced by boxes of their
size, and only the first token of each kind of code stays an element of its own. Everything folded is unfolded, and what
comes with scrolling is shown.
"""

from __future__ import annotations

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

#: Rules whose answer depends on the theme or on the width of the window; every other one is asked once.
_LAYOUT = ["color-contrast", "scrollable-region-focusable"]

_PREPARE = """() => {
    document.getElementById("pst-back-to-top")?.style.setProperty("display", "block"); // it comes with scrolling
    for (const details of document.querySelectorAll("details")) details.open = true;
    for (const button of document.querySelectorAll(".toggle-button-hidden")) button.click();
    const formulas = [...document.querySelectorAll("mjx-container, math, svg[role=img]")].map((e) => {
        const { width, height } = e.getBoundingClientRect();
        return [e, width, height];
    });
    for (const [e, width, height] of formulas) {
        const box = document.createElement("span");
        box.style.cssText = `display:inline-block; overflow:hidden; width:${width}px; height:${height}px`;
        box.textContent = width ? "x" : "";
        if (e.isConnected) e.replaceWith(box);
    }
    for (const pre of document.querySelectorAll("pre")) {
        const seen = new Set();
        for (const token of pre.querySelectorAll("span")) {
            if (token.children.length) continue;
            if (seen.has(token.className)) token.replaceWith(token.textContent);
            else seen.add(token.className);
        }
        pre.normalize();
    }
}"""

# Mark what scrolls, and one text of each kind of colours, size and weight, and leave it with its ancestors only.
_SAMPLE = """(scope) => {
    for (const e of document.querySelectorAll("[data-sample]")) e.removeAttribute("data-sample");
    const behind = new Map();
    const layers = (e) => {
        if (!e) return "";
        if (!behind.has(e)) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(e);
            const own = backgroundColor === "rgba(0, 0, 0, 0)" ? "" : backgroundColor;
            const plain = backgroundImage === "none" && opacity === "1";
            const layer = own + (plain ? "" : backgroundImage + opacity);
            behind.set(e, layers(e.parentElement) + (layer && `|${layer}`));
        }
        return behind.get(e);
    };
    const seen = new Set();
    for (const e of document.querySelectorAll(`${scope} *`)) {
        const { color, fontSize, fontWeight, overflow } = getComputedStyle(e);
        const scrolls = e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight;
        if (scrolls && /auto|scroll/.test(overflow)) e.dataset.sample = "scrolls";
        if (![...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
        if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
        const kind = [color, fontSize, fontWeight, layers(e)].join();
        if (!seen.has(kind)) e.dataset.sample = seen.add(kind).size;
    }
    return document.querySelectorAll("[data-sample]").length;
}"""

# One look at the page for all rules: those that depend on the layout are asked of the sample only.
_RUN = """async ([scope, layout, everything]) => {
    axe.configure({ rules: layout.map((id) => ({ id, selector: "[data-sample]" })) });
    const options = { resultTypes: ["violations"], ...(!everything && { runOnly: layout }) };
    return (await axe.run({ include: [[scope]] }, options)).violations;
}"""


def prepare(page: Page) -> None:
    """Unfold what is folded, and make the page small: it is another page afterwards."""
    page.evaluate(_PREPARE)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def violations(page: Page, scope: str, everything: bool = True) -> list[str]:
    """Return what axe-core finds in the part of the page that the selector names.

    Without `everything`, only what depends on the theme or on the width of the window.
    """
    page.evaluate(_SAMPLE, scope)
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate(_RUN, [scope, _LAYOUT, everything])
    return [f"{one['id']} ({one['impact']}): {node['html'][:120]}" for one in found for node in one["nodes"]]
