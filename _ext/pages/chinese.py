"""Mark the Chinese of the pages as Chinese: screen readers change their voice, and browsers choose forms and breaks.

Each run of Han characters in the text of a finished page becomes ``<span lang="zh">``, unless its element says so.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

from .finished import rewrite

HAN = r"[\u2e80-\u2fdf\u3400-\u9fff\uf900-\ufaff]"
RUN = re.compile(rf"{HAN}(?:[\u3000-\u303f\uff00-\uffef·“”‘’—…]*{HAN})*[\u3001-\u3003\uff00-\uff65]*")
_TOKEN = re.compile(r"<!--.*?-->|<(script|style|textarea|title)\b.*?</\1>|<[^>]*>|[^<]+", re.DOTALL)


def marked(page: str) -> str:
    """Return a page whose Chinese says that it is.

    >>> marked('<title>熵</title><p title="熵">the entropy (信息熵) is</p>')
    '<title>熵</title><p title="熵">the entropy (<span lang="zh">信息熵</span>) is</p>'
    >>> marked(marked("<p>缩放因子</p>")) == marked("<p>缩放因子</p>")
    True
    """
    before = ""

    def token(match: re.Match[str]) -> str:
        nonlocal before
        text, tag = match[0], before
        before = text
        if text.startswith("<") or re.search(r'\blang="zh', tag):
            return text
        return RUN.sub(lambda run: f'<span lang="zh">{run[0]}</span>', text)

    return _TOKEN.sub(token, page) if re.search(HAN, page) else page


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event."""
    app.connect("build-finished", rewrite(lambda page, _: marked(page)), priority=810)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
