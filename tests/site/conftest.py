"""Where the built site is, what happens when it is not there, and the browser that shows it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import browser_checks as check
import pytest
import yaml
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("BOOK_SITE", ROOT / "_build" / "html"))


def missing(what: str) -> None:
    """Skip where a reader runs the tests, fail where a machine does: there nothing may go unchecked."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI is set: nothing may go unchecked here")
    pytest.skip(what)


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    if not (SITE / "intro.html").is_file():
        missing(f"the site is not built: no {SITE}/intro.html (run `make book`)")
    return SITE


@pytest.fixture(scope="session")
def config() -> dict:
    """The book's configuration."""
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser without a window: Debian's chromium."""
    executable = shutil.which("chromium")
    if executable is None:
        missing("no chromium on this machine (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=check.ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the built site is served."""
    with check.served(site) as address:
        yield address
