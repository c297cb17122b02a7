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
from typing import NamedTuple
from urllib.parse import urlsplit

import matplotlib.pyplot as plt
import numpy as np
from playwright.sync_api import Browser, Page, Request, Response, TimeoutError

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

# Formulas outside code that nobody has typeset.
_RAW_MATH = r"""() => {
    const found = [], walker = document.createTreeWalker(document.body, 4);
    for (let node; (node = walker.nextNode()); ) {
        const hidden = node.parentElement.closest("pre, code, script, style, noscript, template, math");
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
        .filter((block) => [...block.querySelectorAll("table, td")].some(tooWide))
        .map((block) => block.textContent.trim().slice(0, 60));
}"""

# Unfold everything in an article; the value is what was folded.
_UNFOLD = """() => {
    const folded = [...document.querySelectorAll("article details:not([open])")];
    for (const e of folded) e.open = true;
    return folded;
}"""

# Formulas at which the tabulator key stops.
_STOPS = '() => document.querySelectorAll(\'math[tabindex="0"], math [tabindex="0"]\').length'

# Formulas that the browser takes for something else, elements that MathML Core lacks, and formulas without a size.
_BAD_MATHML = """() => {
    const known = new Set(("math mrow mi mn mo mtext mspace mstyle mpadded mphantom mfrac msqrt mroot msub msup "
        + "msubsup munder mover munderover mtable mtr mtd").split(" "));
    const shown = (e) => !e.checkVisibility || e.checkVisibility();
    const found = [];
    for (const math of document.querySelectorAll("math")) {
        if (!window.MathMLElement || !(math instanceof MathMLElement)) found.push("no MathML in this browser");
        for (const e of math.querySelectorAll("*")) if (!known.has(e.localName)) found.push(`unknown: ${e.localName}`);
        const { width, height } = math.getBoundingClientRect();
        if (shown(math) && !(width > 0 && height > 0)) found.push(`no size: ${math.textContent.slice(0, 60)}`);
    }
    for (const e of document.querySelectorAll(".math")) if (!e.querySelector("math")) found.push("no formula in .math");
    return found;
}"""

# Whether the body of each solution is visible.
_UNFOLDED = """() => [...document.querySelectorAll("div.solution.dropdown")]
    .map((solution) => solution.querySelector("section").checkVisibility({ visibilityProperty: true }))"""

# Name and edges, in pixels of the whole page, of each picture; pictures otherwise come when they are nearly in view.
_PICTURES = """async (selector) => {
    const images = [...document.querySelectorAll(selector)];
    for (const e of images) e.loading = "eager";
    await Promise.all(images.map((e) => e.decode()));
    return images.map((e) => {
        const { left, top, right, bottom } = e.getBoundingClientRect();
        const name = e.closest("figure").id || e.getAttribute("src").slice(0, 60);
        return [name, left + scrollX, top + scrollY, right + scrollX, bottom + scrollY];
    });
}"""

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

    def begin(self) -> None:
        """Forget the page before."""
        self.problems.clear()

    def _note(self, wrong: bool, text: str) -> None:
        if wrong:
            self.problems.append(text)

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        self._note(parts.scheme not in {"data", "blob"} and parts.netloc != self.host, f"elsewhere: {request.url}")

    def _response(self, response: Response) -> None:
        self._note(response.status >= 400, f"status {response.status}: {response.url}")


# What moves while a page loads: for each shift how far, in pixels, the element that moved most has moved.
_SHIFTS = """() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
            if (entry.hadRecentInput) continue;
            const moved = entry.sources.map(({ previousRect: a, currentRect: b }) => Math.abs(a.top - b.top));
            shifts.push([entry.value, Math.max(0, ...moved)]);
        }
    }).observe({ type: "layout-shift", buffered: true });
}"""

#: At most this much on the first load of a page: bytes, requests, and a shift of one line, in pixels.
MOST_BYTES, MOST_REQUESTS, MOST_SHIFT = 1_000_000, 25, 28


class Weight:
    """What a page loads, uncompressed, with nothing in the cache, and how far its text is shifted meanwhile."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.files: dict[str, int] = {}
        page.add_init_script(f"({_SHIFTS})()")
        page.on("response", self._response)

    def _response(self, response: Response) -> None:
        if not response.url.startswith("data:"):
            self.files[response.url] = int(response.headers.get("content-length", 0))

    def begin(self) -> None:
        """Forget the page before."""
        self.files.clear()

    def measured(self) -> tuple[int, int, float]:
        """Return bytes, requests, and the longest way that something was shifted."""
        shifts = self.page.evaluate("() => window.shifts")
        return sum(self.files.values()), len(self.files), max((far for value, far in shifts if value > 1e-3), default=0)


def too_heavy(weight: Weight) -> list[str]:
    """Return in what a page is beyond the limits."""
    size, requests, shift = weight.measured()
    problems = [f"{size} bytes"] if size > MOST_BYTES else []
    problems += [f"{requests} requests"] if requests > MOST_REQUESTS else []
    return problems + ([f"{shift:.0f} pixels of shift"] if shift > MOST_SHIFT else [])


class Tab(NamedTuple):
    """A page of the browser without a cache, and who looks at what it loads."""

    page: Page
    watch: Watch
    weight: Weight


@contextmanager
def new_tab(browser: Browser, address: str) -> Iterator[Tab]:
    """Open a wide and light window without a cache, in which one page after another may be opened."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    yield Tab(page, Watch(page, address), Weight(page))
    context.close()


# Fonts, and the pictures that one sees without scrolling.
_SETTLED = """async () => {
    await document.fonts.ready;
    const near = [...document.images].filter((e) => e.getBoundingClientRect().top < innerHeight && e.checkVisibility());
    await Promise.all(near.map((e) => e.decode().catch(() => null)));
}"""


def settle(page: Page) -> None:
    """Wait until the fonts have come, and the pictures at the top of the page."""
    page.evaluate(_SETTLED)


# The sections that are far from the window are laid out as for paper; and then the page is again for a screen.
_LAY_OUT = """() => ["beforeprint", "afterprint"].forEach((name) => dispatchEvent(new Event(name)))"""


def lay_out(page: Page) -> None:
    """Have a page lay out all of its sections, so that everything on it has its place and its size."""
    page.evaluate(_LAY_OUT)


def bad_math(page: Page) -> list[str]:
    """Return formulas that were not typeset, and those that a browser cannot show as MathML."""
    return page.evaluate(_BAD_MATHML) + [f"not typeset: {text}" for text in page.evaluate(_RAW_MATH)]


def too_wide(page: Page) -> list[str]:
    """Return what makes the page scroll sideways."""
    return list(page.evaluate(_TOO_WIDE))


def share_of_reading(page: Page) -> float:
    """Return the share of an article's height that is prose, mathematics and figures.

    It is measured as the article is delivered, but with the sections that go further unfolded.
    """
    fold = "(open) => document.querySelectorAll('details.further').forEach((e) => { e.open = open; })"
    page.evaluate(fold, True)
    article, machinery = page.evaluate(_HEIGHTS)
    page.evaluate(fold, False)
    return 1 - machinery / article


def crowded_derivations(page: Page, patience: float = 30) -> list[str]:
    """Return the derivations that have not enough room for reasons at the right, and have them there.

    What is folded is unfolded meanwhile. The page arranges derivations once it knows its width; `patience` is how many
    seconds it may take over it.
    """
    folded = page.evaluate_handle(_UNFOLD)
    with suppress(TimeoutError):
        page.wait_for_function(f"() => !({_CROWDED})().length", timeout=1000 * patience)
    found = [f"crowded: {name}" for name in page.evaluate(_CROWDED)]
    folded.evaluate("all => all.forEach((e) => { e.open = false; })")
    return found


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


def leave_only_figures(page: Page) -> int:
    """Take everything else out of the article and unfold what is left, so that pictures of the figures are quick.

    Returns how many figures there are.
    """
    return int(
        page.evaluate("""() => {
            const figures = [...document.querySelectorAll("figure:not(.interactive)")];
            const kept = (e) => figures.some((figure) => e.contains(figure) || figure.contains(e));
            for (const e of document.querySelectorAll("article.bd-article *")) if (!kept(e)) e.remove();
            for (const folded of document.querySelectorAll("article.bd-article details")) folded.open = true;
            return figures.length;
        }""")
    )


def glaring_figures(page: Page, most: float = 0.04) -> list[str]:
    """Return the figures whose edge differs from the page around them, and the bright slabs on a dark page.

    The pictures of interactive figures are left out: a script hides them while one looks.
    """
    wanted = np.array(_parse_rgb(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))) / 255
    boxes = page.evaluate(_PICTURES, "figure:not(.interactive) img")
    whole = plt.imread(io.BytesIO(page.screenshot(full_page=True)), format="png")[..., :3]
    problems = []
    for name, *box in boxes:
        left, top, right, bottom = (max(0, round(edge)) for edge in box)
        pixels = whole[top:bottom, left:right]
        if not pixels.size:
            problems.append(f"{name}: its place, {box}, lies outside of the picture of the page")
            continue
        edge = np.concatenate([pixels[2, :], pixels[-3, :], pixels[:, 2], pixels[:, -3]])
        off = float(np.median(np.abs(edge - wanted).max(axis=1)))
        if off > most:
            problems.append(f"{name}: its edge is off the background by {off:.2f}")
        bright = float(np.mean(pixels @ [0.2126, 0.7152, 0.0722] > 0.5))
        if wanted.max() < 0.5 and bright > 1 / 3:
            problems.append(f"{name}: {bright:.0%} of it is bright, on a dark page")
    return problems


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
