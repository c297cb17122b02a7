"""What axe-core finds wrong with the open page, at the price that a book of many long pages can pay.

Most of axe's time goes to the contrast of each single text. Contrast depends on the colours of a text, on whether it is
large, and on what lies behind it, so one text of each such kind is enough, in the book and not only in a page.
Formulas are replaced by boxes of their size (but in headers, which have to be named), only the first token of each kind
in the code of a page stays an element of its own, and buttons lose the strokes of their pictures. Everything folded is
unfolded, and what comes with scrolling is shown.
"""

from __future__ import annotations

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

#: Rules that are asked of a sample, and what it is: colours, which depend on the theme, and boxes that scroll.
_COLOURS = {"color-contrast": "[data-kind]", "link-in-text-block": "[data-link]"}
_SAMPLED = _COLOURS | {"scrollable-region-focusable": "[data-scrolls]"}

_PREPARE = """() => {
    document.getElementById("pst-back-to-top")?.style.setProperty("display", "block"); // it comes with scrolling
    for (const details of document.querySelectorAll("details")) details.open = true;
    for (const button of document.querySelectorAll(".toggle-button-hidden")) button.click();
    const formulas = [...document.querySelectorAll(":is(mjx-container, math, svg[role=img]):not(th *)")].map((e) => {
        const { width, height } = e.getBoundingClientRect();
        return [e, width, height];
    });
    for (const [e, width, height] of formulas) {
        const box = document.createElement("span");
        box.style.cssText = `display:inline-block; overflow:hidden; width:${width}px; height:${height}px`;
        box.textContent = width ? "x" : "";
        if (e.isConnected) e.replaceWith(box);
    }
    const seen = new Set();
    const visible = [...document.querySelectorAll("pre")].map((pre) => [pre, pre.checkVisibility()]);
    for (const [pre, isVisible] of visible) {
        for (const token of pre.querySelectorAll("span")) {
            if (token.children.length) continue;
            const kind = `${pre.parentElement.parentElement.className} ${token.className}`;
            if (!isVisible || seen.has(kind)) token.replaceWith(token.textContent);
            else seen.add(kind);
        }
        pre.normalize();
    }
    // the title of a button's picture is its name
    for (const stroke of document.querySelectorAll(".copybtn > svg > :not(title)")) stroke.remove();
}"""

# Mark what scrolls, and of texts and links one of each kind that was not seen before; return the kinds. A kind of text
# is made by its colours and by whether it is large, a kind of link also by how it differs from the text around it.
_SAMPLE = """([scope, before]) => {
    for (const e of document.querySelectorAll("[data-kind]")) e.removeAttribute("data-kind");
    for (const e of document.querySelectorAll("[data-link]")) e.removeAttribute("data-link");
    const behind = new Map();
    const layers = (e) => {
        if (!e) return "";
        if (!behind.has(e)) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(e);
            const plain = backgroundImage === "none" && opacity === "1";
            const clear = backgroundColor === "rgba(0, 0, 0, 0)";
            const covers = plain && backgroundColor.startsWith("rgb(");
            const layer = (clear ? "" : backgroundColor) + (plain ? "" : `~${backgroundImage + opacity}`);
            const under = layers(e.parentElement);
            behind.set(e, (covers && !under.includes("~") ? "" : under) + (layer && `|${layer}`));
        }
        return behind.get(e);
    };
    const seen = new Set(before), kinds = [];
    const text = (e) => {
        const { color, fontSize, fontWeight } = getComputedStyle(e);
        const isLarge = parseFloat(fontSize) >= (fontWeight >= 700 ? 18.66 : 24); // as WCAG has it, in pixels
        return [color, isLarge, layers(e)].join();
    };
    const link = (e) => {
        const { textDecorationLine, borderBottom, fontStyle } = getComputedStyle(e);
        return ["link", text(e), textDecorationLine, borderBottom, fontStyle, text(e.parentElement)].join();
    };
    const mark = (e, name, kind) => {
        if (seen.has(kind)) return;
        e.setAttribute(name, seen.add(kind).size);
        kinds.push(kind);
    };
    for (const e of document.querySelectorAll(`${scope} *`)) {
        const scrolls = e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight;
        if (scrolls && /auto|scroll/.test(getComputedStyle(e).overflow)) e.dataset.scrolls = "yes";
        if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
        if ([...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) mark(e, "data-kind", text(e));
        if (e.matches("a[href]")) mark(e, "data-link", link(e));
    }
    return kinds;
}"""

# One look at the page for all rules, or for some of them.
_RUN = """async ([scope, but, sampled, only]) => {
    axe.configure({ rules: Object.entries(sampled).map(([id, selector]) => ({ id, selector })) });
    const options = { resultTypes: ["violations"], selectors: false, ...(only.length && { runOnly: only }) };
    return (await axe.run({ include: [[scope]], exclude: but ? [[but]] : [] }, options)).violations;
}"""


def prepare(page: Page) -> None:
    """Unfold what is folded, and make the page small: it is another page afterwards."""
    page.evaluate(_PREPARE)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def violations(page: Page, scope: str, seen: set[str], everything: bool = True, but: str = "") -> list[str]:
    """Return what axe-core finds in the part of the page that a selector names, but for what another names.

    `seen` are the kinds of texts and links whose colours are known to be right; those of this page join them when
    nothing is found. Without `everything`, only the colours of kinds that are not among them are asked about.
    """
    kinds = page.evaluate(_SAMPLE, [scope, sorted(seen)])
    if not kinds and not everything:
        return []
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate(_RUN, [scope, but, _SAMPLED, [] if everything else [*_COLOURS]])
    if not found:
        seen.update(kinds)
    return [f"{one['id']} ({one['impact']}): {node['html'][:120]}" for one in found for node in one["nodes"]]
