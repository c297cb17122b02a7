"""Where the built site is, and what happens when it is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

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
