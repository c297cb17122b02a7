"""What is demanded of a page once a browser shows it. Each check returns what is wrong with the open page."""

from __future__ import annotations

import functools
import http.server
import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import matplotlib.pyplot as plt
import numpy as np
from playwright.sync_api import Locator, Page, Request, Response, TimeoutError

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

# Formulas outside code that MathJax has not typeset.
_RAW_MATH = r"""() => {
    const found = [], walker = document.createTreeWalker(document.body, 4);
    for (let node; (node = walker.nextNode()); ) {
        const hidden = node.parentElement.closest("pre, code, script, style, noscript, template, mjx-container");
        if (!hidden && /\\[(\[]/.test(node.data)) found.push(node.data.trim().slice(0, 60));
    }
    return found;
}"""

# What reaches beyond the window and lies in no box of its own that scrolls or hides it.
_TOO_WIDE = """() => {
    const width = innerWidth, root = document.scrollingElement;
    if (root.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > width + 1);
    const names = wide.slice(0, 5).map((e) => `${e.tagName.toLowerCase()}.${e.className}`);
    return [`scrolls sideways: ${root.scrollWidth} > ${width}: ${names.join(", ")}`];
}"""

# The height of the article, and of what is in it neither prose nor mathematics nor a figure: what a cell shows but its
# derivations and figures (code, prompts, printed output, cards), and code between paragraphs.
_HEIGHTS = """() => {
    const height = (e) => {
        const { height } = e.getBoundingClientRect(), { marginTop, marginBottom } = getComputedStyle(e);
        return height && height + Math.max(0, parseFloat(marginTop)) + Math.max(0, parseFloat(marginBottom));
    };
    const sum = (elements) => [...elements].map(height).reduce((a, b) => a + b, 0);
    const article = document.querySelector("article.bd-article");
    const code = [...article.querySelectorAll("div[class*=highlight-]")].filter((e) => !e.closest("div.cell"));
    const cells = article.querySelectorAll("div.cell");
    const shown = article.querySelectorAll("div.cell :is(.derivation, figure)");
    return [height(article), sum(cells) - sum(shown) + sum(code)];
}"""

# Lines of derivations that are cut off although their reason could go under them.
_CROWDED = """() => {
    const tooWide = (e) => e.scrollWidth > e.clientWidth + 1;
    return [...document.querySelectorAll(".derivation:not(.stacked)")]
        .filter((block) => tooWide(block) || [...block.querySelectorAll(".line > span")].some(tooWide))
        .map((block) => block.textContent.trim().slice(0, 60));
}"""

# Formulas at which the tabulator key stops.
_STOPS = '() => document.querySelectorAll(\'mjx-container[tabindex="0"], mjx-container [tabindex="0"]\').length'

# Whether the body of each solution is visible.
_UNFOLDED = """() => [...document.querySelectorAll("div.solution.dropdown")]
    .map((solution) => solution.querySelector("section").checkVisibility({ visibilityProperty: true }))"""

# Colours as the browser has computed them: [what it is, colour, background], alpha blended over what lies behind.
_COLOURS = """(selector) => {
    const rgb = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
    const behind = (e) => {
        if (!e) return [255, 255, 255, 1];
        const top = rgb(getComputedStyle(e).backgroundColor);
        if (top[3] === 1) return top;
        const under = behind(e.parentElement);
        return [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
    };
    return [...document.querySelectorAll(selector)].filter((e) => e.textContent.trim()).map((e) =>
        [`${e.className} ${e.textContent.trim().slice(0, 30)}`, rgb(getComputedStyle(e).color), behind(e)]);
}"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine, and give its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class Watch:
    """Collect what goes wrong while a page is open: errors, failed requests, requests to other hosts."""

    def __init__(self, page: Page, address: str) -> None:
        self.host = urlsplit(address).netloc
        self.problems: list[str] = []
        page.on("console", lambda message: self._note(message.type == "error", f"console: {message.text}"))
        page.on("pageerror", lambda error: self._note(True, f"error: {error}"))
        page.on("requestfailed", lambda request: self._note(True, f"failed: {request.url}"))
        page.on("request", self._request)
        page.on("response", self._response)

    def _note(self, wrong: bool, text: str) -> None:
        if wrong:
            self.problems.append(text)

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        self._note(parts.scheme not in {"data", "blob"} and parts.netloc != self.host, f"elsewhere: {request.url}")

    def _response(self, response: Response) -> None:
        self._note(response.status >= 400, f"status {response.status}: {response.url}")


def settle(page: Page) -> None:
    """Wait until MathJax has typeset the page, where it has MathJax, and the fonts have come."""
    page.evaluate("async () => { await window.MathJax?.startup?.promise; await document.fonts.ready; }")


def bad_math(page: Page) -> list[str]:
    """Return formulas that were not typeset, or that MathJax could not read."""
    expected = page.locator(".math").count()
    typeset = page.locator("mjx-container").count()
    problems = [f"{typeset} formulas typeset of {expected}"] if typeset < expected else []
    problems += [f"MathJax: {text}" for text in page.locator("mjx-merror").all_text_contents()]
    return problems + [f"not typeset: {text}" for text in page.evaluate(_RAW_MATH)]


def too_wide(page: Page) -> list[str]:
    """Return what makes the page scroll sideways."""
    return list(page.evaluate(_TOO_WIDE))


def share_of_reading(page: Page) -> float:
    """Return the share of an article's height, as it is delivered, that is prose, mathematics and figures."""
    article, machinery = page.evaluate(_HEIGHTS)
    return 1 - machinery / article


def crowded_derivations(page: Page, patience: float = 30) -> list[str]:
    """Return the derivations that have not enough room for reasons at the right, and have them there.

    The page arranges them once it knows its width; `patience` is how many seconds it may take over it.
    """
    with suppress(TimeoutError):
        page.wait_for_function(f"() => !({_CROWDED})().length", timeout=1000 * patience)
    return [f"crowded: {name}" for name in page.evaluate(_CROWDED)]


def unfolded_solutions(page: Page) -> list[bool]:
    """Return of each solution whether its body can be seen."""
    return list(page.evaluate(_UNFOLDED))


def press(page: Page, selector: str) -> None:
    """Press each button that the selector finds."""
    page.locator(selector).evaluate_all("buttons => buttons.forEach((button) => button.click())")


def tab_stops_in_math(page: Page) -> list[str]:
    """Return how many formulas the tabulator key stops at, if there is one."""
    count = page.evaluate(_STOPS)
    return [f"{count} formulas are tab stops"] if count else []


def glaring_figures(page: Page, most: float = 0.04) -> list[str]:
    """Return the figures whose edge differs from the page around them, and the bright slabs on a dark page."""
    wanted = np.array(_parse_rgb(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))) / 255
    problems = []
    for image in page.locator("figure img").all():
        pixels = plt.imread(io.BytesIO(image.screenshot()), format="png")[..., :3]
        edge = np.concatenate([pixels[2, :], pixels[-3, :], pixels[:, 2], pixels[:, -3]])
        off = float(np.median(np.abs(edge - wanted).max(axis=1)))
        if off > most:
            problems.append(f"{_name(image)}: its edge is off the background by {off:.2f}")
        bright = float(np.mean(pixels @ [0.2126, 0.7152, 0.0722] > 0.5))
        if wanted.max() < 0.5 and bright > 1 / 3:
            problems.append(f"{_name(image)}: {bright:.0%} of it is bright, on a dark page")
    return problems


def _name(image: Locator) -> str:
    return str(image.evaluate("e => e.closest('figure').id || e.getAttribute('src').slice(0, 60)"))


def _parse_rgb(colour: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", colour)[:3]]


def luminance(colour: list[float]) -> float:
    """Return the relative luminance of an sRGB colour, as WCAG defines it.

    >>> luminance([255, 255, 255]), luminance([0, 0, 0])
    (1.0, 0.0)
    """
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in colour[:3])]
    return round(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2], 12)


def contrast(one: list[float], other: list[float]) -> float:
    """Return the contrast of two colours, from 1 to 21.

    >>> contrast([255, 255, 255], [0, 0, 0])
    21.0
    """
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def poor_contrast(page: Page, selector: str, least: float = 4.5) -> list[str]:
    """Return the texts that are hard to read on what lies behind them."""
    found = [(what, contrast(colour, behind)) for what, colour, behind in page.evaluate(_COLOURS, selector)]
    return [f"contrast {ratio:.2f}: {what}" for what, ratio in found if ratio < least]


def background(page: Page) -> float:
    """Return the luminance of the page's background."""
    [[_, _, behind]] = page.evaluate(_COLOURS, "main")
    return luminance(behind)
