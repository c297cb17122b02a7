"""What is wrong with an entry of a book's files, in words that name it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any


def not_text(value: Any) -> str:
    """Say of a value that it is no text; YAML takes what is written without quotes for a number, a date or no.

    >>> not_text(None), not_text(5.1)
    ('expected text, got NoneType None', 'expected text, got float 5.1; put it in quotes')
    """
    quotes = "" if value is None or isinstance(value, str | list | dict) else "; put it in quotes"
    return f"expected text, got {type(value).__name__} {value!r}{quotes}"


def meant(name: object, known: Iterable[str]) -> str:
    """Say which of the known names are like an unknown one, or else which there are.

    >>> meant("own/halfs", ["own/halves", "2/mean"]), meant("x", ["own/halves", "2/mean"])
    ('did you mean own/halves?', 'there are own/halves, 2/mean')
    """
    names = list(known)
    like = get_close_matches(str(name), names, cutoff=0.7)
    return f"did you mean {' or '.join(like)}?" if like else f"there are {', '.join(names)}"


def wrong_keys(entry: Any, needed: Collection[str], optional: Collection[str] = ()) -> str:
    """Say which key of a mapping is unknown or missing; "" where none is.

    >>> wrong_keys({"title": "One", "scopee": "all"}, ["title"], ["scope"])
    'scopee: no such key; did you mean scope?'
    >>> wrong_keys({}, ["title"]), wrong_keys("One", ["title"]), wrong_keys({"title": "One"}, ["title"])
    ('title: missing', "expected a mapping of title, got 'One'", '')
    """
    known = [*needed, *optional]
    if not isinstance(entry, dict):
        return f"expected a mapping of {', '.join(known)}, got {entry!r}"
    unknown = next((f"{key}: no such key; {meant(key, known)}" for key in entry if key not in known), "")
    missing = [key for key in needed if key not in entry]
    return unknown or (f"{', '.join(missing)}: missing" if missing else "")
