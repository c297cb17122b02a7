"""What is demanded of a page once a browser shows it. Each check returns what is wrong with the open page."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, Request, Response

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
