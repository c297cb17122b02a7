"""The finished pages of the site: what works on them asks here which they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sphinx.application import Sphinx


def pages_of(app: Sphinx, exception: Exception | None) -> list[Path]:
    """Return the finished pages of a site; none after a failure, and none of other builders."""
    if exception is not None or app.builder.name not in {"html", "dirhtml"}:
        return []
    out = Path(app.outdir)
    return [path for path in sorted(out.rglob("*.html")) if "_static" not in path.relative_to(out).parts]


def rewrite(change: Callable[[str, str], str]) -> Callable[[Sphinx, Exception | None], None]:
    """Return a listener to "build-finished" that changes each page: `change` gets its text and its name."""

    def finish(app: Sphinx, exception: Exception | None) -> None:
        for path in pages_of(app, exception):
            text = path.read_text(encoding="utf-8")
            if (done := change(text, path.relative_to(app.outdir).as_posix())) != text:
                path.write_text(done, encoding="utf-8")

    return finish
