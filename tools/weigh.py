"""Print the README's row on the weight of pages: ``python tools/weigh.py [SITE]`` opens every page of a built site.

Each page is opened in Debian's chromium with nothing in the cache, over a plain server that compresses nothing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: list[str] | None = None) -> int:
    """Print the heaviest page, the most requests and the longest shift."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path, nargs="?", default=ROOT / "_build" / "html", help="a built site")
    site: Path = parser.parse_args(arguments).site
    chromium = shutil.which("chromium")
    if not (site / "intro.html").is_file() or chromium is None:
        print(f"site: expected {site}/intro.html (run `make book`), and chromium on the path", file=sys.stderr)
        return 1
    sys.path.insert(0, str(ROOT / "tests" / "site"))
    import browser_checks as check
    from playwright.sync_api import sync_playwright

    names = [p.relative_to(site).as_posix() for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]
    names.remove("index.html")  # it only leads to another
    measured = []
    with check.served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=check.ARGUMENTS)
        for name in names:
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            weight = check.Weight(page)
            page.goto(address + name, timeout=120_000)
            check.settle(page)
            measured.append((name, *weight.measured()))
            page.context.close()
        browser.close()
    name, size, _, _ = max(measured, key=lambda row: row[1])
    requests, shift = max(row[2] for row in measured), max(row[3] for row in measured)
    print(f"heaviest of {len(measured)} pages: {name}, {size / 1e6:.2f} MB; most requests: {requests}; "
          f"longest shift: {shift:.0f} px")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
